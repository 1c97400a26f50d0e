# Engines in files of their own, which libcohort opens at run time. A module links what it needs, and of libcohort
# nothing: that reaches it by a table (engine/module.h).
set(COHORT_MODULES)

# Without the library's functions behind it, so that tests can link it with the library's archive.
if(COHORT_TCP)
  add_library(cohort-tcp-objects OBJECT
    engine/modules/parts.c
    engine/modules/segments.c
    engine/tcp/call.c
    engine/tcp/callers.c
    engine/tcp/congestion.c
    engine/tcp/fork.c
    engine/tcp/link.c
    engine/tcp/listen.c
    engine/tcp/memory.c
    engine/tcp/ops.c
    engine/tcp/places.c
    engine/tcp/poll.c
    engine/tcp/receive.c
    engine/tcp/send.c
    engine/tcp/serve.c
    engine/tcp/socket.c
    engine/tcp/stream.c
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
    secure/seal.c
    secure/tls.c)
  target_link_libraries(cohort-tcp PRIVATE cohort-tcp-objects Threads::Threads)
  list(APPEND COHORT_MODULES cohort-tcp)
endif()

# UCX's headers are needed to build it, and its libraries to use it: they are opened at run time.
set(COHORT_UCX AUTO CACHE STRING "Build the engine over UCX, a module: AUTO (where its headers are found), ON or OFF")
set_property(CACHE COHORT_UCX PROPERTY STRINGS AUTO ON OFF)
set(COHORT_UCX_INCLUDE "" CACHE PATH "Where ucp/api/ucp.h is, if not where the compiler looks")
set(COHORT_BUILDS_UCX OFF)
if(COHORT_UCX)
  include(CheckIncludeFile)
  set(CMAKE_REQUIRED_INCLUDES ${COHORT_UCX_INCLUDE})
  set(CMAKE_REQUIRED_QUIET ON)
  unset(COHORT_HAS_UCX CACHE) # it may have been installed since
  check_include_file(ucp/api/ucp.h COHORT_HAS_UCX)
  unset(CMAKE_REQUIRED_QUIET)
  unset(CMAKE_REQUIRED_INCLUDES)
  set(COHORT_BUILDS_UCX ${COHORT_HAS_UCX})
  if(COHORT_HAS_UCX)
    message(STATUS "engine ucx: built, UCX's headers are there")
  elseif(COHORT_UCX STREQUAL "AUTO")
    message(STATUS "engine ucx: not built, UCX's headers (ucp/api/ucp.h, libucx-dev) are not there")
  else()
    message(FATAL_ERROR "COHORT_UCX is ${COHORT_UCX}, but UCX's headers (ucp/api/ucp.h, libucx-dev) are not there")
  endif()
endif()
set_property(GLOBAL PROPERTY COHORT_BUILDS_UCX ${COHORT_BUILDS_UCX})

if(COHORT_BUILDS_UCX)
  add_library(cohort-ucx-objects OBJECT
    engine/modules/apply.c
    engine/modules/events.c
    engine/modules/parts.c
    engine/modules/segments.c
    engine/ucx/async.c
    engine/ucx/library.c
    engine/ucx/link.c
    engine/ucx/memory.c
    engine/ucx/operations.c
    engine/ucx/receive.c
    engine/ucx/request.c
    engine/ucx/serve.c
    engine/ucx/thread.c
    engine/ucx/ucx.c
    engine/ucx/worker.c)
  if(COHORT_UCX_INCLUDE)
    target_include_directories(cohort-ucx-objects SYSTEM PRIVATE ${COHORT_UCX_INCLUDE})
  endif()
  add_library(cohort-ucx MODULE
    engine/ucx/module.c
    engine/modules/services.c
    engine/mapped.c
    base/dtype.c
    base/os_basic.c
    memory/host_atomic.c)
  target_link_libraries(cohort-ucx PRIVATE cohort-ucx-objects Threads::Threads ${CMAKE_DL_LIBS})
  list(APPEND COHORT_MODULES cohort-ucx)
endif()

# MPI: one module for each of the two binary interfaces, from the same files. Their headers are needed to build
# them, and a library of the kind to use one: it is opened at run time.
set(COHORT_MPI AUTO CACHE STRING "Build the engine over MPI, two modules: AUTO (those whose headers are found), ON (both) or OFF")
set_property(CACHE COHORT_MPI PROPERTY STRINGS AUTO ON OFF)
set(COHORT_OPENMPI_INCLUDE "" CACHE PATH "Where Open MPI's mpi.h is, if its compiler wrapper is not to be asked")
set(COHORT_MPICH_INCLUDE "" CACHE PATH "Where MPICH's mpi.h is, if its compiler wrapper is not to be asked")

# Of the folders that a compiler wrapper names, the one whose mpi.h has the mark of that MPI.
function(cohort_find_mpi mark given found)
  set(folders ${given})
  foreach(wrapper ${ARGN})
    find_program(program ${wrapper} NO_CACHE)
    if(program)
      execute_process(COMMAND ${program} -show OUTPUT_VARIABLE line ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      string(REGEX MATCHALL "-I[^ ]+" flags "${line}")
      list(TRANSFORM flags REPLACE "^-I" "")
      list(APPEND folders ${flags})
    endif()
    unset(program)
  endforeach()
  set(${found} "" PARENT_SCOPE)
  foreach(folder ${folders})
    if(EXISTS ${folder}/mpi.h)
      file(STRINGS ${folder}/mpi.h lines REGEX "^ *# *define +${mark}" LIMIT_COUNT 1)
      if(lines)
        set(${found} ${folder} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

function(cohort_add_mpi kind folder)
  add_library(cohort-mpi-${kind}-objects OBJECT
    engine/modules/apply.c
    engine/modules/events.c
    engine/modules/parts.c
    engine/modules/segments.c
    engine/mpi/collective.c
    engine/mpi/finalize.c
    engine/mpi/library.c
    engine/mpi/link.c
    engine/mpi/memory.c
    engine/mpi/mpi.c
    engine/mpi/process.c
    engine/mpi/receive.c
    engine/mpi/send.c
    engine/mpi/serve.c
    engine/mpi/thread.c
    engine/modules/threads.c)
  target_include_directories(cohort-mpi-${kind}-objects SYSTEM PRIVATE ${folder})
  add_library(cohort-mpi-${kind} MODULE
    engine/mpi/module.c
    engine/modules/services.c
    engine/mapped.c
    base/dtype.c
    base/os_basic.c
    memory/host_atomic.c)
  target_link_libraries(cohort-mpi-${kind} PRIVATE cohort-mpi-${kind}-objects Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

# A process that MPI_Finalize does not give back at exit ends with the status it had, which only on_exit tells.
set(COHORT_BUILDS_MPI)
include(CheckSymbolExists)
set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
set(CMAKE_REQUIRED_QUIET ON)
check_symbol_exists(on_exit stdlib.h COHORT_HAS_ON_EXIT)
unset(CMAKE_REQUIRED_QUIET)
unset(CMAKE_REQUIRED_DEFINITIONS)
if(COHORT_MPI STREQUAL "AUTO" AND NOT COHORT_HAS_ON_EXIT)
  message(STATUS "engine mpi: not built, this C library has no on_exit")
elseif(COHORT_MPI AND NOT COHORT_HAS_ON_EXIT)
  message(FATAL_ERROR "COHORT_MPI is ${COHORT_MPI}, but this C library has no on_exit")
elseif(COHORT_MPI)
  cohort_find_mpi(OPEN_MPI "${COHORT_OPENMPI_INCLUDE}" openmpi_folder mpicc.openmpi mpicc)
  cohort_find_mpi(MPICH_VERSION "${COHORT_MPICH_INCLUDE}" mpich_folder mpicc.mpich mpicc)
  foreach(kind openmpi mpich)
    if(${kind}_folder)
      message(STATUS "engine mpi:${kind}: built, its headers are in ${${kind}_folder}")
      cohort_add_mpi(${kind} ${${kind}_folder})
      list(APPEND COHORT_MODULES cohort-mpi-${kind})
      list(APPEND COHORT_BUILDS_MPI ${kind})
    elseif(COHORT_MPI STREQUAL "AUTO")
      message(STATUS "engine mpi:${kind}: not built, its headers (lib${kind}-dev) are not there")
    else()
      message(FATAL_ERROR "COHORT_MPI is ${COHORT_MPI}, but the headers for mpi:${kind} (lib${kind}-dev) are not there")
    endif()
  endforeach()
endif()
set_property(GLOBAL PROPERTY COHORT_BUILDS_MPI ${COHORT_BUILDS_MPI})

# Kernels are compiled by nvcc, and the driver's header is beside it; the driver itself is opened at run time.
set(COHORT_CUDA AUTO CACHE STRING "Build the engine for memory of a card, a module: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE COHORT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(COHORT_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities that kernels are compiled for; the last one also as PTX")
set(COHORT_BUILDS_CUDA OFF)
if(COHORT_CUDA)
  find_program(COHORT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(COHORT_NVCC)
    get_filename_component(cuda_folder ${COHORT_NVCC} REALPATH)
    get_filename_component(cuda_folder ${cuda_folder} DIRECTORY)
    find_path(COHORT_CUDA_INCLUDE cuda.h HINTS ${cuda_folder}/../include
      ${cuda_folder}/../targets/x86_64-linux/include)
  endif()
  if(COHORT_NVCC AND EXISTS "${COHORT_NVCC}" AND COHORT_CUDA_INCLUDE)
    set(COHORT_BUILDS_CUDA ON)
    message(STATUS "engine cuda: built, with ${COHORT_NVCC}")
  elseif(COHORT_CUDA STREQUAL "AUTO")
    message(STATUS "engine cuda: not built, nvcc and cuda.h (CUDA's toolkit, COHORT_NVCC) are not there")
  else()
    message(FATAL_ERROR "COHORT_CUDA is ${COHORT_CUDA}, but nvcc and cuda.h (CUDA's toolkit, COHORT_NVCC) are not there")
  endif()
endif()
set_property(GLOBAL PROPERTY COHORT_BUILDS_CUDA ${COHORT_BUILDS_CUDA})

if(COHORT_BUILDS_CUDA)
  set(kernel_files atomic copies reduce_float reduce_integer reduce_small words)
  set(kernel_flags -O3 -std=c++17 --fatbin --fmad=false -Xfatbin -compress-all)
  foreach(architecture ${COHORT_CUDA_ARCHITECTURES})
    list(APPEND kernel_flags -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET COHORT_CUDA_ARCHITECTURES -1 architecture)
  list(APPEND kernel_flags -gencode arch=compute_${architecture},code=compute_${architecture})
  set(kernel_folder ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  set(kernel_images)
  set(COHORT_CUDA_IMAGES "")
  set(COHORT_CUDA_IMAGE_ROWS "")
  file(GLOB kernel_headers CONFIGURE_DEPENDS engine/cuda/kernels/*.cuh engine/cuda/kernels/shared.h)
  foreach(name ${kernel_files})
    set(kernel_source ${CMAKE_CURRENT_SOURCE_DIR}/engine/cuda/kernels/${name}.cu)
    set(kernel_image ${kernel_folder}/${name}.fatbin)
    add_custom_command(OUTPUT ${kernel_image}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${kernel_folder}
      COMMAND ${COHORT_NVCC} ${kernel_flags} -I${CMAKE_CURRENT_SOURCE_DIR} -o ${kernel_image} ${kernel_source}
      DEPENDS ${kernel_source} ${kernel_headers}
      COMMENT "Compiling kernels of ${name}"
      VERBATIM)
    list(APPEND kernel_images ${kernel_image})
    string(APPEND COHORT_CUDA_IMAGES
      "__asm__(\".section .rodata\\n.balign 64\\n.hidden cohi_cuda_image_${name}\\n\"\n"
      "        \".global cohi_cuda_image_${name}\\ncohi_cuda_image_${name}:\\n.incbin \\\"${kernel_image}\\\"\\n.previous\");\n"
      "extern const unsigned char cohi_cuda_image_${name}[];\n")
    string(APPEND COHORT_CUDA_IMAGE_ROWS "    {\"${name}\", cohi_cuda_image_${name}},\n")
  endforeach()
  configure_file(engine/cuda/kernels/images.c.in ${kernel_folder}/images.c @ONLY)
  set_source_files_properties(${kernel_folder}/images.c PROPERTIES OBJECT_DEPENDS "${kernel_images}")
  # What works on memory of a card, whoever has allocated it: in both modules.
  add_library(cohort-card-objects OBJECT
    engine/cuda/atomic.c
    engine/cuda/cards.c
    engine/cuda/chain.c
    engine/cuda/endpoint.c
    engine/cuda/kernels/image.c
    engine/cuda/layout.c
    engine/cuda/library.c
    engine/cuda/meet.c
    engine/cuda/place.c
    engine/cuda/rma.c
    engine/cuda/stream.c
    engine/cuda/turns.c
    engine/cuda/under_way.c
    ${kernel_folder}/images.c)
  string(REGEX MATCH "^[0-9]+" architecture "${architecture}")
  target_compile_definitions(cohort-card-objects PRIVATE COHI_CUDA_PTX=${architecture})
  add_library(cohort-cuda-objects OBJECT
    engine/cuda/cuda.c
    engine/cuda/memory.c)
  # Of NVSHMEM nothing is needed to build its module: the library is opened at run time.
  add_library(cohort-nvshmem-objects OBJECT
    engine/nvshmem/collective.c
    engine/nvshmem/far.c
    engine/nvshmem/guard.c
    engine/nvshmem/library.c
    engine/nvshmem/memory.c
    engine/nvshmem/nvshmem.c
    engine/nvshmem/tune.c)
  foreach(objects cohort-card-objects cohort-cuda-objects cohort-nvshmem-objects)
    target_include_directories(${objects} SYSTEM PRIVATE ${COHORT_CUDA_INCLUDE})
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  endforeach()
  add_library(cohort-cuda MODULE
    engine/cuda/module.c
    engine/modules/services.c
    base/dtype.c
    base/os_basic.c)
  add_library(cohort-nvshmem MODULE
    engine/nvshmem/module.c
    engine/modules/services.c
    base/dtype.c
    base/os_basic.c)
  foreach(module cohort-cuda cohort-nvshmem)
    target_link_libraries(${module} PRIVATE ${module}-objects cohort-card-objects Threads::Threads ${CMAKE_DL_LIBS})
    list(APPEND COHORT_MODULES ${module})
  endforeach()
endif()

include(mlx.cmake)

set_property(GLOBAL PROPERTY COHORT_MODULES ${COHORT_MODULES})
foreach(module ${COHORT_MODULES})
  # LLD takes no name that a module does not have, so what is no module of the engines' contract has a map of its own.
  get_target_property(map ${module} COHORT_MAP)
  if(NOT map)
    set(map ${CMAKE_CURRENT_SOURCE_DIR}/engine/modules/module.map)
  endif()
  if(TARGET ${module}-objects)
    target_include_directories(${module}-objects PRIVATE
      ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  target_include_directories(${module} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_options(${module} PRIVATE -Wl,--version-script=${map})
  if(NOT COHORT_SANITIZE)
    target_link_options(${module} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${module} PROPERTIES
    PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/cohort
    LINK_DEPENDS ${map})
endforeach()
