# What `make install` puts where: headers, libraries, manual, pkg-config file, CMake package. The tool and its own
# pages are installed by tools/.
#
# The pkg-config file and the CMake package find their prefix from where they lie, so that the prefix may be
# chosen when installing, and an installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(COHORT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)

set(libraries cohort)
set(archives cohort-static)
set(headers include/cohort.h include/cohort-collectives.h)
if(COHORT_ML)
  list(APPEND libraries cohort-ml)
  list(APPEND archives cohort-ml-static)
  list(APPEND headers include/cohort-ml.h include/cohort-graph.h)
endif()
install(TARGETS ${libraries} EXPORT cohort-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# By pkg-config, or by name: CMake's targets are the shared ones.
install(TARGETS ${archives} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# ---- pkg-config, CMake's find_package ----

file(RELATIVE_PATH COHORT_PC_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" COHORT_PC_TO_PREFIX "${COHORT_PC_TO_PREFIX}")
foreach(library ${libraries})
  configure_file(cmake/${library}.pc.in cmake/${library}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cmake/${library}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

configure_package_config_file(cmake/cohort-config.cmake.in cmake/cohort-config.cmake
  INSTALL_DESTINATION ${COHORT_PACKAGE_DIR})
write_basic_package_version_file(cmake/cohort-config-version.cmake
  COMPATIBILITY SameMinorVersion) # while the major version is 0
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/cmake/cohort-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/cmake/cohort-config-version.cmake
  DESTINATION ${COHORT_PACKAGE_DIR})
install(EXPORT cohort-targets NAMESPACE cohort:: DESTINATION ${COHORT_PACKAGE_DIR})

# ---- manual: a page a group of calls, and for each call that it names a link to it ----

file(GLOB pages CONFIGURE_DEPENDS docs/man/*.3 docs/man/*.7)
foreach(page ${pages})
  string(REGEX MATCH "[37]$" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  if(section EQUAL 3)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    get_filename_component(name ${page} NAME)
    file(STRINGS ${page} named REGEX "^coh_[a-z_, ]+ .-")
    string(REGEX MATCHALL "coh_[a-z_]+" calls "${named}")
    foreach(call ${calls})
      if(NOT name STREQUAL "${call}.3")
        set(link ${CMAKE_CURRENT_BINARY_DIR}/man/${call}.3)
        file(WRITE ${link} ".so man3/${name}\n")
        install(FILES ${link} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
      endif()
    endforeach()
  endif()
endforeach()

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
file(GLOB documents CONFIGURE_DEPENDS docs/*.md)
install(FILES ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
install(FILES examples/ring.c examples/halo.c examples/in_process.c
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# ---- whether a stranger can use what was installed ----

if(COHORT_TESTS)
  add_test(NAME install COMMAND ${PROJECT_SOURCE_DIR}/tests/install_test.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(install PROPERTIES TIMEOUT 120)
endif()
