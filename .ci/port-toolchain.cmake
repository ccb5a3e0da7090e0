# CMake toolchain of .ci/port.py: Zig's compiler for another system, by wrappers in the folder that TUZA_PORT_TOOLS names.
#
# It compiles and archives, but CMake's own checks link nothing: a program would need libc++, which Zig compiles first.

set(CMAKE_SYSTEM_NAME $ENV{TUZA_PORT_SYSTEM})
set(CMAKE_SYSTEM_PROCESSOR $ENV{TUZA_PORT_PROCESSOR})
set(CMAKE_C_COMPILER $ENV{TUZA_PORT_TOOLS}/cc)
set(CMAKE_CXX_COMPILER $ENV{TUZA_PORT_TOOLS}/c++)
set(CMAKE_ASM_COMPILER $ENV{TUZA_PORT_TOOLS}/cc)
set(CMAKE_AR $ENV{TUZA_PORT_TOOLS}/ar)
set(CMAKE_RANLIB $ENV{TUZA_PORT_TOOLS}/ranlib)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# macOS's headers are in the compiler, not in a folder of Xcode's.
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "")
