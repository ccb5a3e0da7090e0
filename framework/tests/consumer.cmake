# The test `consumer`: what is installed is complete and can be used from anywhere.
#
#   cmake -DTREE=<build tree> -DSOURCE=<Tuza's sources> -DWORK=<scratch folder> -DGENERATOR= -DMAKE_PROGRAM= -DCXX=
#         -P consumer.cmake
#
# Installs into a staging folder (DESTDIR), so that the prefix the package was made for is not where it lies,
# and builds the project in consumer/ against it.
set(prefix ${WORK}/stage/opt/tuza)
file(REMOVE_RECURSE ${WORK})

function(run what)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
  if(NOT result STREQUAL "0")
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
  message(STATUS "${what}: ok")
endfunction()

run("install" ${CMAKE_COMMAND} -E env DESTDIR=${WORK}/stage ${CMAKE_COMMAND} --install ${TREE} --prefix /opt/tuza)

# Nothing that is true on this machine only, nor our taste in warnings, is passed on.
file(GLOB_RECURSE package_files ${prefix}/*.cmake ${prefix}/*.pc)
if(NOT package_files)
  message(FATAL_ERROR "no package files in ${prefix}")
endif()
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  foreach(leak IN ITEMS ${SOURCE} ${TREE} ${WORK} /opt/tuza -Werror -Wall)
    string(FIND "${text}" "${leak}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} contains ${leak}")
    endif()
  endforeach()
endforeach()
if(NOT EXISTS ${prefix}/share/tuza/tuza-gdb.py)
  message(FATAL_ERROR "share/tuza/tuza-gdb.py is not installed")
endif()

run("configure" ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G ${GENERATOR}
  -DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix}
  -DTUZA_PREFIX=${prefix})
run("build, with all headers" ${CMAKE_COMMAND} --build ${WORK}/build --parallel 2)
# What it logs through spdlog takes Tuza's path: to standard error, in Tuza's format.
function(run_logging what program)
  execute_process(COMMAND ${program} OUTPUT_VARIABLE output ERROR_VARIABLE log RESULT_VARIABLE result)
  if(NOT result STREQUAL "0" OR NOT output STREQUAL ""
      OR NOT log MATCHES "^[0-9-]+T[0-9:.]+Z info    logged by the program\n$")
    message(FATAL_ERROR "${what}: ${result}\nstandard output:\n${output}\nstandard error:\n${log}")
  endif()
  message(STATUS "${what}: ok")
endfunction()

run_logging("run" ${WORK}/build/consumer)
run("run, sched alone" ${WORK}/build/consumer_sched)
run("run, with checkpoints" ${WORK}/build/consumer_checkpoints)

# The same by pkg-config, without CMake.
foreach(program IN ITEMS sched_only:tuza-sched main:tuza)
  string(REPLACE ":" ";" program ${program})
  list(POP_FRONT program source module)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${prefix}/lib/pkgconfig
      pkg-config --cflags --libs ${module}
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("compile and link, by pkg-config ${module}" ${CXX} ${CMAKE_CURRENT_LIST_DIR}/consumer/${source}.cpp
    -o ${WORK}/${source} ${flags})
  if(source STREQUAL "main")
    run_logging("run, by pkg-config ${module}" ${WORK}/${source})
  else()
    run("run, by pkg-config ${module}" ${WORK}/${source})
  endif()
endforeach()
