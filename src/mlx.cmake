# The engine over MLX: one module for each back end, of the same files, and a shim in C++ beside them that is linked
# with libmlx. Both come in PyPI's wheel, headers and library; at run time the library is looked for again.
set(COHORT_MLX AUTO CACHE STRING "Build the engine over MLX, modules and a shim: AUTO (where its headers are found), ON or OFF")
set_property(CACHE COHORT_MLX PROPERTY STRINGS AUTO ON OFF)
set(COHORT_MLX_ROOT "" CACHE PATH "Python's package mlx, with include/mlx and lib/libmlx.so, if Python is not to be asked")

# The folder of Python's package; that of the environment that scripts/need-packages makes comes first. Both are this
# machine's: where the build is for another, COHORT_MLX_ROOT alone counts.
function(cohort_find_mlx found)
  set(folders ${COHORT_MLX_ROOT})
  if(NOT COHORT_MLX_ROOT AND NOT CMAKE_CROSSCOMPILING)
    find_program(python NAMES python3 NO_CACHE)
    if(python)
      execute_process(COMMAND ${python} -c "import mlx; print(list(mlx.__path__)[0])"
        OUTPUT_VARIABLE told ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    endif()
    file(GLOB made ${PROJECT_SOURCE_DIR}/.mlx/lib/python3*/site-packages/mlx)
    set(folders ${made} ${told})
  endif()
  set(${found} "" PARENT_SCOPE)
  foreach(folder ${folders})
    if(EXISTS ${folder}/include/mlx/distributed/distributed_impl.h AND EXISTS ${folder}/lib/libmlx.so)
      set(${found} ${folder} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

set(COHORT_BUILDS_MLX)
set(mlx_folder)
if(COHORT_MLX AND NOT COHORT_SANITIZE) # a sanitizer does not see libmlx, whose classes cross the border
  cohort_find_mlx(mlx_folder)
  if(mlx_folder AND CMAKE_CXX_COMPILER_LOADED)
    message(STATUS "engine mlx: built, MLX is in ${mlx_folder}")
    set(COHORT_BUILDS_MLX ring mpi jaccl nccl)
  elseif(COHORT_MLX STREQUAL "AUTO")
    message(STATUS "engine mlx: not built, MLX (pip install 'mlx[cpu]', COHORT_MLX_ROOT) or a C++ compiler is not there")
  else()
    message(FATAL_ERROR "COHORT_MLX is ${COHORT_MLX}, but MLX (pip install 'mlx[cpu]', COHORT_MLX_ROOT) or a C++ compiler is not there")
  endif()
endif()
set_property(GLOBAL PROPERTY COHORT_BUILDS_MLX ${COHORT_BUILDS_MLX})
set_property(GLOBAL PROPERTY COHORT_MLX_FOLDER ${mlx_folder})

if(COHORT_BUILDS_MLX)
  add_library(cohort-mlx-objects OBJECT
    engine/mlx/frame.c
    engine/mlx/library.c
    engine/mlx/mlx.c
    engine/mlx/process.c
    engine/mlx/round.c
    engine/mlx/sockets.c
    engine/mlx/watch.c
    engine/modules/events.c
    engine/modules/threads.c)
  target_compile_definitions(cohort-mlx-objects PRIVATE COHI_MLX_FOLDER="${mlx_folder}")
  foreach(backend ${COHORT_BUILDS_MLX})
    add_library(cohort-mlx-${backend} MODULE
      engine/mlx/module.c
      engine/modules/services.c
      base/dtype.c
      base/os_basic.c)
    target_compile_definitions(cohort-mlx-${backend} PRIVATE COHI_MLX_BACKEND="${backend}")
    target_link_libraries(cohort-mlx-${backend} PRIVATE cohort-mlx-objects Threads::Threads ${CMAKE_DL_LIBS})
    add_dependencies(cohort-mlx-${backend} cohort-mlx)
    list(APPEND COHORT_MODULES cohort-mlx-${backend})
  endforeach()
  # MLX's headers are not written for our warnings.
  add_library(cohort-mlx MODULE engine/mlx/shim.cpp)
  target_compile_features(cohort-mlx PRIVATE cxx_std_20)
  target_include_directories(cohort-mlx SYSTEM PRIVATE ${mlx_folder}/include)
  target_link_libraries(cohort-mlx PRIVATE ${mlx_folder}/lib/libmlx.so)
  set_target_properties(cohort-mlx PROPERTIES SKIP_BUILD_RPATH ON
    COHORT_MAP ${CMAKE_CURRENT_SOURCE_DIR}/engine/mlx/shim.map)
  list(APPEND COHORT_MODULES cohort-mlx)
endif()
