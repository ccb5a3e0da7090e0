# What `cmake --install` puts where, and the package that find_package(tuza) finds. Included by the root.
#
# Each layer has its own file of exported targets, so that tuzaConfig.cmake asks only for the dependencies of
# the layers a program wants.
include(CMakePackageConfigHelpers)
set(package_dir ${tuza_libdir}/cmake/tuza)
# The targets, one set for each sanitizer. What package_dir has besides is the same for all.
set(targets_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tuza)

set(layers sched netpoll http framework)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/public_folders.txt header_dirs)  # .ci/check.py and the reference read it, too
if(TUZA_SCHED_ONLY)
  set(layers sched)
  list(FILTER header_dirs INCLUDE REGEX "^sched")
endif()

# Public are the headers that lie in these folders. Those of detail/ go with them, because public ones include them;
# what lies elsewhere stays here. The test `consumer` compiles each installed header alone: one that needs a header
# that stays here fails.
foreach(dir IN LISTS header_dirs)
  foreach(folder IN ITEMS ${dir} ${dir}/detail)
    file(GLOB headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.h)
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tuza/${folder})
  endforeach()
endforeach()

# Umbrella headers, of the layers that are there.
set(umbrellas tuza sync time)
if(NOT TUZA_SCHED_ONLY)
  list(APPEND umbrellas net http)
endif()
foreach(umbrella IN LISTS umbrellas)
  install(FILES include/tuza/${umbrella}.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tuza)
endforeach()

foreach(layer IN LISTS layers)
  install(EXPORT tuza-${layer} NAMESPACE tuza:: FILE tuza-${layer}.cmake DESTINATION ${targets_dir})
endforeach()
list(JOIN layers " " TUZA_LAYERS)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/tuzaConfig.cmake.in ${PROJECT_BINARY_DIR}/tuzaConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
configure_file(${CMAKE_CURRENT_LIST_DIR}/tuzaTargets.cmake.in ${PROJECT_BINARY_DIR}/tuzaTargets.cmake @ONLY)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/tuzaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/tuzaConfig.cmake ${PROJECT_BINARY_DIR}/tuzaConfigVersion.cmake
    ${CMAKE_CURRENT_LIST_DIR}/prometheus_core.cmake ${CMAKE_CURRENT_LIST_DIR}/sanitizer_flavour.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/tuzaTargets.cmake DESTINATION ${targets_dir})
install(FILES sched/tuza-gdb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/tuza)
include(${CMAKE_CURRENT_LIST_DIR}/pkgconfig.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
