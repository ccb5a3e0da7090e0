# CMake toolchain: Debian's cross compiler for aarch64, and qemu-user to run what it makes.
#
# Programs are linked dynamically, as on a real system; the emulator finds the libraries of the cross
# compiler's packages (aarch64-emulator.sh). A missing tool is reported by the package that has it.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

# Debian 12 calls it qemu-aarch64-static (package qemu-user-static), Debian 13 also qemu-aarch64 (qemu-user).
find_program(TUZA_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
find_program(TUZA_AARCH64_CXX aarch64-linux-gnu-g++)
find_program(TUZA_AARCH64_CC aarch64-linux-gnu-gcc)
mark_as_advanced(TUZA_QEMU_AARCH64 TUZA_AARCH64_CXX TUZA_AARCH64_CC)
if(NOT TUZA_AARCH64_CXX OR NOT TUZA_AARCH64_CC)
  message(FATAL_ERROR "aarch64-linux-gnu-g++ is missing. Package: g++-aarch64-linux-gnu. "
    "`./dev setup` installs it.")
endif()
if(NOT TUZA_QEMU_AARCH64)
  message(FATAL_ERROR "qemu-aarch64 is missing. Package: qemu-user-static (Debian 13: qemu-user). "
    "`./dev setup` installs it.")
endif()

set(CMAKE_C_COMPILER ${TUZA_AARCH64_CC})
set(CMAKE_CXX_COMPILER ${TUZA_AARCH64_CXX})
set(CMAKE_ASM_COMPILER ${TUZA_AARCH64_CC})
set(CMAKE_CROSSCOMPILING_EMULATOR ${CMAKE_CURRENT_LIST_DIR}/aarch64-emulator.sh ${TUZA_QEMU_AARCH64})

# The build machine's programs, the target's libraries and headers.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
