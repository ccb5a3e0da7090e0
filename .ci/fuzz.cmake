# tuza_fuzz(<name> LIBRARIES <target>... [SOURCES <file>...]): the fuzz target fuzz/<name>_fuzz.cpp of this folder, as
# program fuzz_<name>.
#
# With TUZA_FUZZ it is linked with libFuzzer, and the code under test is instrumented for it; .ci/fuzz.py runs it.
# Otherwise, in builds with tests, it is linked with a main function that replays the kept corpus, and the test
# fuzz.<name> runs that: an input that once mattered is checked by every compiler and sanitizer.
if(TUZA_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "TUZA_FUZZ needs Clang: libFuzzer is a part of it.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(tuza_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;SOURCES")
  if(NOT TUZA_FUZZ AND (NOT TUZA_TESTS OR TUZA_CHAOS OR CMAKE_CROSSCOMPILING))
    return()
  endif()
  set(program fuzz_${name})
  add_executable(${program} fuzz/${name}_fuzz.cpp ${arg_SOURCES})
  target_link_libraries(${program} PRIVATE ${arg_LIBRARIES} tuza_flags)
  set_target_properties(${program} PROPERTIES UNITY_BUILD OFF)
  if(TUZA_FUZZ)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/sched/fuzz/replay.cpp)
  tuza_compile_quickly(${program})
  set(launcher)
  if(TUZA_SANITIZE STREQUAL "thread")
    set(launcher setarch -R)  # as for the test programs
  endif()
  add_test(NAME fuzz.${name} COMMAND ${launcher} $<TARGET_FILE:${program}> ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 120 LABELS fuzz)
endfunction()
