# Tests with libraries that are large to install or to compile: of `./dev test all`, which builds them when it runs them.
#
# tuza_ecosystem_test(<name> <source> LIBRARIES <target>... [LAUNCHER <word>...]): the tests <name>_build and <name>.
function(tuza_ecosystem_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LIBRARIES;LAUNCHER")
  set(program ${name}_tests)
  add_executable(${program} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${program} PRIVATE tuza::framework ${arg_LIBRARIES} tuza_flags GTest::gtest_main)
  tuza_compile_quickly(${program})
  add_test(NAME ${name}_build
    COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --config $<CONFIG> --target ${program})
  set_tests_properties(${name}_build PROPERTIES
    FIXTURES_SETUP ${name} RESOURCE_LOCK build_tree LABELS all COST 300 TIMEOUT 900)
  add_test(NAME ${name} COMMAND ${arg_LAUNCHER} $<TARGET_FILE:${program}>)
  set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED ${name} LABELS all TIMEOUT 600)
endfunction()

tuza_ecosystem_test(boost tests/boost_test.cpp LIBRARIES)
# Boost's headers are not free of what our warnings find.
find_path(BOOST_INCLUDE_DIR boost/beast.hpp)
mark_as_advanced(BOOST_INCLUDE_DIR)
if(BOOST_INCLUDE_DIR)
  target_include_directories(boost_tests SYSTEM PRIVATE ${BOOST_INCLUDE_DIR})
  # Since Boost 1.84; Debian has it since 13.
  if(EXISTS ${BOOST_INCLUDE_DIR}/boost/redis.hpp)
    find_package(OpenSSL 3 REQUIRED)
    tuza_ecosystem_test(boost_redis tests/boost_redis_test.cpp LIBRARIES OpenSSL::SSL
      LAUNCHER Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tests/with_redis.py)
    target_include_directories(boost_redis_tests SYSTEM PRIVATE ${BOOST_INCLUDE_DIR})
  endif()
endif()

find_package(PostgreSQL)
if(PostgreSQL_FOUND)
  tuza_ecosystem_test(postgres tests/postgres_test.cpp LIBRARIES PostgreSQL::PostgreSQL
    LAUNCHER Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/tests/with_postgres.py)
endif()
