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
file(GLOB_RECURSE package_files ${prefix}/*.cmake)
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
run("run" ${WORK}/build/consumer)
run("run, sched alone" ${WORK}/build/consumer_sched)
run("run, with checkpoints" ${WORK}/build/consumer_checkpoints)
