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
set(headers include/cohort.h include/cohort-collectives.h include/cohort-cuda.h include/cohort.hpp)
if(COHORT_ML)
  list(APPEND libraries cohort-ml)
  list(APPEND archives cohort-ml-static)
  list(APPEND headers include/cohort-ml.h include/cohort-graph.h)
endif()
install(TARGETS ${libraries} EXPORT cohort-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
get_property(modules GLOBAL PROPERTY COHORT_MODULES)
foreach(module ${modules})
  install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/cohort)
endforeach()
# By pkg-config, or by name: CMake's targets are the shared ones.
install(TARGETS ${archives} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# ---- pkg-config, CMake's find_package ----

file(RELATIVE_PATH COHORT_PC_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" COHORT_PC_TO_PREFIX "${COHORT_PC_TO_PREFIX}")
# All but the run path is filled in here; cmake/pkgconfig.cmake does that when the prefix is known.
set(RPATH "@RPATH@")
set(templates)
foreach(library ${libraries})
  configure_file(cmake/${library}.pc.in cmake/${library}.pc.in @ONLY)
  list(APPEND templates ${CMAKE_CURRENT_BINARY_DIR}/cmake/${library}.pc.in)
endforeach()
if(COHORT_TOOLS)
  configure_file(compat/shmem/tools/shmem.pc.in cmake/shmem.pc.in @ONLY)
  list(APPEND templates ${CMAKE_CURRENT_BINARY_DIR}/cmake/shmem.pc.in)
endif()
install(CODE "set(TEMPLATES \"${templates}\")
set(FOLDER \"${CMAKE_INSTALL_LIBDIR}/pkgconfig\")
include(\"${PROJECT_SOURCE_DIR}/cmake/pkgconfig.cmake\")")

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
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
  PATTERN bin EXCLUDE
  PATTERN CMakeLists.txt EXCLUDE # they are part of this build; the Makefile is for strangers
  PATTERN "*_test.sh" EXCLUDE)

# ---- debug information, apart: last, when all else is in place ----

option(COHORT_DEBUG_INFO "With --strip, install the debug information apart, in .debug beside each file" ON)
if(COHORT_DEBUG_INFO AND CMAKE_OBJCOPY)
  set(built)
  foreach(library ${libraries})
    list(APPEND built "${CMAKE_INSTALL_LIBDIR}|$<TARGET_FILE:${library}>")
  endforeach()
  foreach(module ${modules})
    list(APPEND built "${CMAKE_INSTALL_LIBDIR}/cohort|$<TARGET_FILE:${module}>")
  endforeach()
  if(COHORT_TOOLS)
    list(APPEND built "${CMAKE_INSTALL_LIBDIR}|$<TARGET_FILE:cohort-shmem>"
      "${CMAKE_INSTALL_BINDIR}|$<TARGET_FILE:cohort-tool>")
  endif()
  install(CODE "set(BUILT \"${built}\")
set(OBJCOPY \"${CMAKE_OBJCOPY}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/debug_info.cmake\")")
endif()

# ---- whether a stranger can use what was installed ----

if(COHORT_TESTS)
  add_test(NAME install COMMAND ${PROJECT_SOURCE_DIR}/tests/install_test.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(install PROPERTIES TIMEOUT 120)
endif()
