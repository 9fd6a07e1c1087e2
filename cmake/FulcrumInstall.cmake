# install() and export of what other programs may link: fulcrum::model, fulcrum::model_io and
# fulcrum::calibrate, the `fulcrum` binary, and data/. Included last, when all targets are known.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(exported)
foreach(target fulcrum_model fulcrum_model_io fulcrum_calibrate fulcrum_calibrate_io)
  if(TARGET ${target})
    list(APPEND exported ${target})
  endif()
endforeach()
# Includes are rooted at the repository root in the build tree and at <prefix>/include/fulcrum once
# installed, so `#include "model/units.h"` reads the same in both.
foreach(target IN LISTS exported)
  get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT includes)
    set(includes "")  # a target without includes of its own gives includes-NOTFOUND
  endif()
  list(REMOVE_ITEM includes ${PROJECT_SOURCE_DIR} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:include/fulcrum>")
  set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/fulcrum>" ${includes})
  string(REGEX REPLACE "^fulcrum_" "" name ${target})
  set_property(TARGET ${target} PROPERTY EXPORT_NAME ${name})
  if(NOT TARGET fulcrum::${name})
    add_library(fulcrum::${name} ALIAS ${target})
  endif()
endforeach()
if(exported)
  install(TARGETS ${exported} EXPORT fulcrumTargets)
  foreach(folder model calibrate)
    install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fulcrum/${folder}
      FILES_MATCHING PATTERN "*.h")
  endforeach()
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fulcrum)
  install(EXPORT fulcrumTargets NAMESPACE fulcrum:: DESTINATION ${package_dir})
  configure_package_config_file(cmake/fulcrumConfig.cmake.in ${PROJECT_BINARY_DIR}/fulcrumConfig.cmake
    INSTALL_DESTINATION ${package_dir})
  # Before 1.0 a minor release may break the API.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/fulcrumConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/fulcrumConfig.cmake
    ${PROJECT_BINARY_DIR}/fulcrumConfigVersion.cmake DESTINATION ${package_dir})
endif()
if(TARGET fulcrum_cli)
  install(TARGETS fulcrum_cli)
endif()
install(DIRECTORY data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fulcrum/data)
