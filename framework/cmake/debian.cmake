# The Debian package libtuza-dev: `cpack -G DEB` in a build tree. Included by install.cmake. The libraries are static, so
# a program needs the package only where it is built, and the package needs those of the headers and libraries that are
# linked with them. The test `debian_package` installs it, links programs against it, and removes it.
if(TUZA_SCHED_ONLY OR tuza_flavour OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(package libtuza-dev)

# Files that only a package of Debian has. They are a component of their own, which `cmake --install` leaves out.
set(doc ${PROJECT_BINARY_DIR}/debian)
file(READ ${PROJECT_SOURCE_DIR}/LICENSE licence)
string(REGEX REPLACE "^[^\n]*\n\nCopyright \\(c\\) ([^\n]*)\n\n" "" licence "${licence}")
set(copyright_holder "${CMAKE_MATCH_1}")
string(REPLACE "\n\n" "\n.\n" licence "${licence}")
string(STRIP "${licence}" licence)
string(REPLACE "\n" "\n " licence "${licence}")
file(CONFIGURE OUTPUT ${doc}/copyright @ONLY CONTENT [[
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Tuza

Files: *
Copyright: @copyright_holder@
License: Expat

License: Expat
 @licence@
]])
set(maintainer "The Tuza developers <developers@tuza.invalid>")  # .invalid: no mail is ever sent there
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${doc}/changelog @ONLY CONTENT [[
tuza (@PROJECT_VERSION@-1) unstable; urgency=medium

  * CHANGELOG.md of the sources says what is new.

 -- @maintainer@  @now@
]])
file(ARCHIVE_CREATE OUTPUT ${doc}/changelog.Debian.gz PATHS ${doc}/changelog FORMAT raw COMPRESSION GZip
  COMPRESSION_LEVEL 9)
file(ARCHIVE_CREATE OUTPUT ${doc}/changelog.gz PATHS ${PROJECT_SOURCE_DIR}/CHANGELOG.md FORMAT raw COMPRESSION GZip
  COMPRESSION_LEVEL 9)
# sched/tuza-gdb.py reads the types in the library's debug information, so it is not stripped.
file(WRITE ${doc}/${package} "${package}: unstripped-static-library *\n")
install(FILES ${doc}/copyright ${doc}/changelog.Debian.gz ${doc}/changelog.gz
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${doc}/${package}
  DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT debian EXCLUDE_FROM_ALL)

# The packages whose headers or libraries a program needs; `needs` of the README's table of targets.
set(depends libasio-dev libssl-dev zlib1g-dev "libspdlog-dev" "prometheus-cpp-dev")
foreach(library IN ITEMS brotli psl zstd)
  if(${library}_INCLUDE_DIR)
    list(APPEND depends lib${library}-dev)
  endif()
endforeach()
get_target_property(llhttp_type tuza_llhttp TYPE)
if(NOT llhttp_type STREQUAL "STATIC_LIBRARY")
  list(APPEND depends libllhttp-dev)
endif()
list(JOIN depends ", " CPACK_DEBIAN_PACKAGE_DEPENDS)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ${package})
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "network servers with a goroutine per connection (development files)")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION [[Tuza is a C++23 framework for network servers that are written the way Go
servers are: one goroutine per connection and plain blocking code. It has a
scheduler of goroutines, TCP, TLS, an HTTP/1.1 server, settings, logs and
metrics.
.
This package contains the headers, the static libraries, and files for CMake,
pkg-config and gdb.]])
set(CPACK_PACKAGE_VENDOR "The Tuza developers")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ (>= 4:12)")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake (>= 3.25), pkgconf, gdb")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};tuza;ALL;/;${PROJECT_BINARY_DIR};tuza;debian;/")
include(CPack)
