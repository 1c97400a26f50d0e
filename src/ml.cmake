# libcohort-ml: layers device to parallel, over the public interface of libcohort.
set(COHORT_ML_SOURCES
  device/arena.c
  device/buffer.c
  device/copier.c
  device/cpu.c
  device/cuda.c
  device/device.c
  device/enqueue.c
  device/event.c
  device/file.c
  device/fork.c
  device/handle.c
  device/operation.c
  device/options.c
  device/pipeline.c
  device/plan.c
  device/plan_solve.c
  device/plan_text.c
  device/plan_units.c
  device/stream.c
  device/transfer.c
  device/worker.c
  graph/attributes.c
  graph/chain.c
  graph/compile.c
  graph/cpu/blas.c
  graph/cpu/blas_core.c
  graph/cpu/blas_library.c
  graph/cpu/vector.c
  graph/cpu/vector_plain.c
  graph/execute.c
  graph/graph.c
  graph/layout.c
  graph/names.c
  graph/ops/ops.c
  graph/ops/ops_attention.c
  graph/ops/ops_collective.c
  graph/ops/ops_elementwise.c
  graph/ops/ops_layout.c
  graph/ops/ops_lookup.c
  graph/ops/ops_matmul.c
  graph/ops/ops_norm.c
  graph/ops/ops_reduce.c
  graph/program.c
  graph/registry.c
  graph/text.c
  parallel/block.c
  parallel/linear.c
  parallel/partition.c
  parallel/relay.c)

# The loops of the cpu's kernels, once for each instruction set. Their sums may be reordered, or
# they could not be vectorised; for one cpu they always give the same bits.
set(loop_options -fno-math-errno -fno-trapping-math -fno-signed-zeros -fassociative-math
  -ffp-contract=fast $<$<NOT:$<CONFIG:Debug>>:-O3>)
set_source_files_properties(graph/cpu/vector_plain.c PROPERTIES COMPILE_OPTIONS "${loop_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND COHORT_ML_SOURCES graph/cpu/vector_avx2.c graph/cpu/vector_avx512.c)
  set_source_files_properties(graph/cpu/vector_avx2.c PROPERTIES
    COMPILE_OPTIONS "${loop_options};-mavx2;-mfma")
  set_source_files_properties(graph/cpu/vector_avx512.c PROPERTIES COMPILE_OPTIONS
    "${loop_options};-mfma;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512")
endif()
# For its header: the library is opened at run time.
pkg_check_modules(OPENBLAS REQUIRED openblas)
set(OPENBLAS_INCLUDE_DIRS ${OPENBLAS_INCLUDE_DIRS} PARENT_SCOPE)

add_library(cohort-ml-objects OBJECT ${COHORT_ML_SOURCES})
target_include_directories(cohort-ml-objects PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

add_library(cohort-ml SHARED)
add_library(cohort::cohort-ml ALIAS cohort-ml)
target_include_directories(cohort-ml-objects SYSTEM PRIVATE ${OPENBLAS_INCLUDE_DIRS})
target_link_libraries(cohort-ml PRIVATE cohort-ml-objects Threads::Threads ${CMAKE_DL_LIBS} m
  PUBLIC cohort)
target_link_options(cohort-ml PRIVATE
  -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cohort-ml.map)
if(NOT COHORT_SANITIZE)
  target_link_options(cohort-ml PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(cohort-ml PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  INSTALL_RPATH $ORIGIN # libcohort lies beside it
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cohort-ml.map)

# As an archive over the archive of libcohort, for tools and tests.
add_library(cohort-ml-static STATIC)
target_link_libraries(cohort-ml-static PRIVATE cohort-ml-objects
  PUBLIC cohort-static ${CMAKE_DL_LIBS} m)
set_target_properties(cohort-ml-static PROPERTIES OUTPUT_NAME cohort-ml)
