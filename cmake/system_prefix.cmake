# Included while installing, since the prefix may be chosen then. SYSTEM_PREFIX: it is one of the system's, which other
# packages share and where the loader looks for libraries.
set(SYSTEM_PREFIX OFF)
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?/*$")
  set(SYSTEM_PREFIX ON)
endif()
