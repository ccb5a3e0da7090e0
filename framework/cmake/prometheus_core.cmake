# The target tuza::prometheus_core: the core library of prometheus-cpp, which serializes metrics. The library's own package
# also looks for CURL, zlib and civetweb, which only its other libraries need. Included by the build and by the
# installed package; sets tuza_prometheus_core_MISSING if the library is not there.
unset(tuza_prometheus_core_MISSING)
if(NOT TARGET tuza::prometheus_core)
  if(TARGET prometheus-cpp::core)  # a part of the same build
    add_library(tuza::prometheus_core INTERFACE IMPORTED GLOBAL)
    set_target_properties(tuza::prometheus_core PROPERTIES INTERFACE_LINK_LIBRARIES prometheus-cpp::core)
    return()
  endif()
  find_path(PROMETHEUS_CPP_INCLUDE_DIR prometheus/text_serializer.h)
  find_library(PROMETHEUS_CPP_CORE_LIBRARY prometheus-cpp-core)
  mark_as_advanced(PROMETHEUS_CPP_INCLUDE_DIR PROMETHEUS_CPP_CORE_LIBRARY)
  if(NOT PROMETHEUS_CPP_INCLUDE_DIR OR NOT PROMETHEUS_CPP_CORE_LIBRARY)
    set(tuza_prometheus_core_MISSING
      "prometheus-cpp-core was not found. Set PROMETHEUS_CPP_INCLUDE_DIR and PROMETHEUS_CPP_CORE_LIBRARY.")
    return()
  endif()
  add_library(tuza::prometheus_core UNKNOWN IMPORTED GLOBAL)
  set_target_properties(tuza::prometheus_core PROPERTIES
    IMPORTED_LOCATION ${PROMETHEUS_CPP_CORE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${PROMETHEUS_CPP_INCLUDE_DIR})
endif()
