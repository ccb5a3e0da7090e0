# llhttp, in the order of preference: a CMake package, an installed library (Debian 13: libllhttp-dev), the
# sources that Debian 12 ships for Node (node-llhttp), a pinned release from its home. Target: tuza_llhttp, which
# can be exported; llhttp_PACKAGE tells whether whoever imports it must find the CMake package, too.
set(llhttp_PACKAGE OFF)
find_package(llhttp CONFIG QUIET)
foreach(candidate llhttp::llhttp llhttp::llhttp_shared llhttp::llhttp_static)
  if(TARGET ${candidate} AND NOT TARGET tuza_llhttp)
    add_library(tuza_llhttp INTERFACE)
    target_link_libraries(tuza_llhttp INTERFACE ${candidate})
    set(llhttp_PACKAGE ON)
    set(llhttp_ORIGIN "package ${candidate}")
  endif()
endforeach()

if(NOT TARGET tuza_llhttp)
  find_path(llhttp_INCLUDE_DIR llhttp.h)
  find_library(llhttp_LIBRARY llhttp)
  mark_as_advanced(llhttp_INCLUDE_DIR llhttp_LIBRARY)
  if(llhttp_INCLUDE_DIR AND llhttp_LIBRARY)
    add_library(tuza_llhttp INTERFACE)
    target_include_directories(tuza_llhttp SYSTEM INTERFACE $<BUILD_INTERFACE:${llhttp_INCLUDE_DIR}>)
    target_link_libraries(tuza_llhttp INTERFACE
      $<BUILD_INTERFACE:${llhttp_LIBRARY}> $<INSTALL_INTERFACE:-lllhttp>)
    set(llhttp_ORIGIN ${llhttp_LIBRARY})
  endif()
endif()

if(NOT TARGET tuza_llhttp)
  find_path(llhttp_SOURCE_DIR llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH)
  find_path(llhttp_NODE_INCLUDE_DIR llhttp.h PATHS /usr/share/include/llhttp NO_DEFAULT_PATH)
  mark_as_advanced(llhttp_SOURCE_DIR llhttp_NODE_INCLUDE_DIR)
  if(NOT llhttp_SOURCE_DIR OR NOT llhttp_NODE_INCLUDE_DIR)
    include(FetchContent)
    FetchContent_Declare(llhttp_release
      URL https://github.com/nodejs/llhttp/archive/refs/tags/release/v9.3.0.tar.gz)
    FetchContent_GetProperties(llhttp_release)
    if(NOT llhttp_release_POPULATED)
      FetchContent_Populate(llhttp_release)
    endif()
    set(llhttp_SOURCE_DIR ${llhttp_release_SOURCE_DIR}/src)
    set(llhttp_NODE_INCLUDE_DIR ${llhttp_release_SOURCE_DIR}/include)
  endif()
  add_library(tuza_llhttp STATIC
    ${llhttp_SOURCE_DIR}/api.c ${llhttp_SOURCE_DIR}/http.c ${llhttp_SOURCE_DIR}/llhttp.c)
  # Releases before 9 choose strictness when they are compiled.
  target_compile_definitions(tuza_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
  target_compile_options(tuza_llhttp PRIVATE -w -O2)
  set_target_properties(tuza_llhttp PROPERTIES UNITY_BUILD OFF)
  target_include_directories(tuza_llhttp SYSTEM PUBLIC $<BUILD_INTERFACE:${llhttp_NODE_INCLUDE_DIR}>)
  set(llhttp_ORIGIN ${llhttp_SOURCE_DIR})
endif()

message(STATUS "llhttp: ${llhttp_ORIGIN}")
