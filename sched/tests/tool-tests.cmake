# Tests of what stands beside the code: the models of all layers, and the gdb script. A tool that is missing fails its test
# with a message of its own; no test run passes over it. The label `all` leaves them to `./dev test all`: they need
# packages that little else needs.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)

file(GLOB models CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*/model/*.pml)
foreach(file IN LISTS models)
  cmake_path(GET file STEM model)
  add_test(NAME models.${model}
    COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/.ci/models.py ${PROJECT_BINARY_DIR}/models ${model})
  # COST: the long ones begin first, or the last of them would run alone.
  set_tests_properties(models.${model} PROPERTIES TIMEOUT 900 LABELS "models;all" COST 400)
endforeach()

add_executable(gdb_target tests/gdb_target.cpp)
target_compile_options(gdb_target PRIVATE -O1 -g)
target_link_libraries(gdb_target PRIVATE tuza::sched tuza_flags)
add_test(NAME gdb_script
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tests/gdb_test.py
    $<TARGET_FILE:gdb_target> ${CMAKE_CURRENT_SOURCE_DIR}/tuza-gdb.py)
set_tests_properties(gdb_script PROPERTIES TIMEOUT 300 LABELS "gdb;all")

add_executable(valgrind_target tests/valgrind_target.cpp)
target_compile_options(valgrind_target PRIVATE -O1 -g)
target_link_libraries(valgrind_target PRIVATE tuza::sched tuza_flags)
add_test(NAME valgrind
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tests/valgrind_test.py $<TARGET_FILE:valgrind_target>)
set_tests_properties(valgrind PROPERTIES TIMEOUT 900 LABELS all)
