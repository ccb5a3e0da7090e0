# Files for pkg-config: tuza-sched, tuza-netpoll, tuza-http, and tuza, which is all of it. Included by install.cmake.
#
#     g++ server.cpp $(pkg-config --cflags --libs tuza)
#
# The libraries are static, so a program links what they need, too: nothing is "private". The prefix is where the file
# lies, as for the CMake package.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_up /${pkgconfig_dir} /)
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")

# pc_include(<variable> <folder>): -I of a folder that the compiler does not search anyway.
function(pc_include variable folder)
  if(folder AND NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set(${variable} "-I${folder}" PARENT_SCOPE)
  endif()
endfunction()

function(pc_file name layer description requires cflags libs)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/tuza.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/${name}.pc DESTINATION ${pkgconfig_dir})
endfunction()

set(sched_flags -std=c++23 -pthread ${tuza_program_flags})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND sched_flags ${tuza_program_flags_gcc})
endif()
get_target_property(definitions tuza_sched INTERFACE_COMPILE_DEFINITIONS)
if(definitions)
  list(TRANSFORM definitions PREPEND -D)
  list(APPEND sched_flags ${definitions})
endif()
if(TUZA_SANITIZE)
  list(APPEND sched_flags -fsanitize=${TUZA_SANITIZE})
  set(sanitize -fsanitize=${TUZA_SANITIZE})
endif()
list(JOIN sched_flags " " sched_flags)
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE dl)
pc_file(tuza-sched sched "Goroutines, channels, locks and timers" "" "${sched_flags}" "${dl} ${sanitize}")
if(TUZA_SCHED_ONLY)
  return()
endif()

pc_file(tuza-netpoll netpoll "TCP, TLS and files for goroutines" "tuza-sched, openssl >= 3" "" "")

# Found as http/cmake/Findllhttp.cmake found it: compiled here, or a library of the system.
get_target_property(llhttp_type tuza_llhttp TYPE)
if(llhttp_type STREQUAL "STATIC_LIBRARY")
  set(llhttp_libs -ltuza_llhttp)
else()
  set(llhttp_libs -lllhttp)
endif()
list(JOIN tuza_http_flags " " http_libs)
pc_file(tuza-http http "HTTP/1.1 server on goroutines" "tuza-netpoll" "" "${llhttp_libs} ${http_libs}")
pc_include(asio_flags "${ASIO_INCLUDE_DIR}")
pc_file(tuza framework "Network servers with a goroutine per connection"
  "tuza-http, spdlog, prometheus-cpp-core" "${asio_flags}" "")
