# Engines in files of their own, which libcohort opens at run time. A module links what it needs, and of libcohort
# nothing: that reaches it by a table (engine/module.h).
set(COHORT_MODULES)

# Without the library's functions behind it, so that tests can link it with the library's archive.
if(COHORT_TCP)
  add_library(cohort-tcp-objects OBJECT
    engine/tcp/call.c
    engine/tcp/callers.c
    engine/tcp/fork.c
    engine/tcp/link.c
    engine/tcp/listen.c
    engine/tcp/memory.c
    engine/tcp/ops.c
    engine/tcp/places.c
    engine/tcp/receive.c
    engine/tcp/send.c
    engine/tcp/serve.c
    engine/tcp/socket.c
    engine/tcp/tcp.c
    engine/tcp/thread.c
    engine/tcp/wire.c)
  add_library(cohort-tcp MODULE
    engine/tcp/module.c
    engine/modules/services.c
    engine/mapped.c
    base/dtype.c
    base/os_basic.c
    memory/host_atomic.c
    secure/openssl.c
    secure/tls.c)
  target_link_libraries(cohort-tcp PRIVATE cohort-tcp-objects Threads::Threads)
  list(APPEND COHORT_MODULES cohort-tcp)
endif()

set_property(GLOBAL PROPERTY COHORT_MODULES ${COHORT_MODULES})
foreach(module ${COHORT_MODULES})
  target_include_directories(${module}-objects PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(${module} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_options(${module} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/engine/modules/module.map)
  if(NOT COHORT_SANITIZE)
    target_link_options(${module} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${module} PROPERTIES
    PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/cohort
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/engine/modules/module.map)
endforeach()
