# What `tuza_tests` runs after linking a test program of a sanitizer build: one ctest test for each test suite.
# (gtest_discover_tests makes one for each test, but a process of a sanitizer takes longer to start and to end
# than most tests.)
#
#   cmake -DCOMMAND=<program, with what starts it> -DNAME=<label> -DOUTPUT=<file for ctest to include> -P ...
execute_process(COMMAND ${COMMAND} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE result TIMEOUT 60)
if(NOT result STREQUAL "0")
  message(FATAL_ERROR "${COMMAND} --gtest_list_tests: ${result}\n${listed}")
endif()
string(REPLACE ";" "\\;" listed "${listed}")
string(REPLACE "\n" ";" listed "${listed}")
set(tests)
foreach(line IN LISTS listed)
  # A suite's line begins at the margin: "Prefix/Suite/0.  # TypeParam = int"; tests of it are indented.
  if(line MATCHES "^([^ ]+)\\.( |$)")
    set(suite "${CMAKE_MATCH_1}")
    list(JOIN COMMAND "]==] [==[" words)
    string(APPEND tests "add_test([==[${suite}]==] [==[${words}]==] [==[--gtest_filter=${suite}.*]==])\n"
      "set_tests_properties([==[${suite}]==] PROPERTIES TIMEOUT 300 LABELS ${NAME})\n")
  endif()
endforeach()
if(tests STREQUAL "")
  message(FATAL_ERROR "${NAME} has no tests")
endif()
file(WRITE ${OUTPUT} "${tests}")
