# Runs while installing: writes the pkg-config files. Below a prefix of one's own --libs has the folder of the libraries
# as a run path too, without which a program would not find them; the system's folders are found by the loader.
#
# TEMPLATES are the files, whose @RPATH@ is filled in here; FOLDER is where they go, below the prefix.
include("${CMAKE_CURRENT_LIST_DIR}/system_prefix.cmake")
set(RPATH " -Wl,-rpath,\${libdir}")
if(SYSTEM_PREFIX)
  set(RPATH "")
endif()
foreach(template ${TEMPLATES})
  string(REGEX REPLACE "\\.in$" "" file "${template}")
  configure_file("${template}" "${file}" @ONLY)
  file(INSTALL "${file}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${FOLDER}")
endforeach()
