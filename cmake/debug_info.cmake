# Runs while installing, after the files are in place: their debug information goes beside them, into .debug/, where gdb,
# lldb, valgrind and elfutils look by the link that each file then has. That works below any prefix, unlike
# lib/debug/.build-id, which is looked for below /usr alone.
#
# Only where the files are stripped (cmake --install --strip). BUILT is a list of "FOLDER|FILE": what was built, and the
# folder below the prefix that it is installed in. OBJCOPY is the program.
if(NOT CMAKE_INSTALL_DO_STRIP)
  return()
endif()
foreach(row ${BUILT})
  string(REGEX MATCH "^(.*)\\|(.*)$" row "${row}")
  set(folder ${CMAKE_MATCH_1})
  set(built ${CMAKE_MATCH_2})
  get_filename_component(name ${built} NAME)
  set(installed "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${folder}/${name}")
  if(NOT EXISTS "${installed}")
    continue() # another component
  endif()
  set(apart "${built}.debug")
  execute_process(COMMAND ${OBJCOPY} --only-keep-debug --compress-debug-sections "${built}" "${apart}"
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OBJCOPY} --remove-section=.gnu_debuglink "${installed}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OBJCOPY} "--add-gnu-debuglink=${apart}" "${installed}" COMMAND_ERROR_IS_FATAL ANY)
  file(INSTALL "${apart}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}/.debug")
  file(REMOVE "${apart}")
endforeach()
