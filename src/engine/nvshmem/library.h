/*
 * library.h - libnvshmem_host, NVSHMEM's library for calls of the host, opened at run time.
 *
 * Nothing of NVSHMEM is needed to build the module: the prototypes and the few structures that its host
 * interface takes are declared here, in the form that releases 3.4 to 3.8 have them. A release outside of
 * that range is refused with both numbers, since a structure that has changed would be read as something else.
 */
#ifndef COHI_ENGINE_NVSHMEM_LIBRARY_H
#define COHI_ENGINE_NVSHMEM_LIBRARY_H

#include <cohort.h>
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* A structure says which form it has: (form << 16) + its bytes. Releases from 3.5 on know a second form of
 * the attributes, and take the first one too. */
#define COHI_NVSHMEM_FORM_1(type) ((1 << 16) + (int)sizeof(type))

typedef struct cohi_nvshmem_id {
    int form;
    char bytes[124];
} cohi_nvshmem_id;

typedef struct cohi_nvshmem_joining {
    int form;
    cohi_nvshmem_id *id;
    int rank, ranks;
} cohi_nvshmem_joining;

typedef struct cohi_nvshmem_arguments {
    int form;
    cohi_nvshmem_joining joining;
    char rest[96];
} cohi_nvshmem_arguments;

typedef struct cohi_nvshmem_attributes {
    int form;
    void *communicator; /* of MPI, which is not used */
    cohi_nvshmem_arguments arguments;
} cohi_nvshmem_attributes;

_Static_assert(sizeof(cohi_nvshmem_id) == 128, "as releases 3.4 to 3.8 have it");
_Static_assert(sizeof(cohi_nvshmem_joining) == 24, "likewise");
_Static_assert(sizeof(cohi_nvshmem_arguments) == 128, "likewise");
_Static_assert(sizeof(cohi_nvshmem_attributes) == 144, "likewise");

/* Its constants. */
enum {
    COHI_NVSHMEM_WITH_ID = 1 << 3, /* how init is told of the others */
    COHI_NVSHMEM_TEAM_WORLD = 0,
    COHI_NVSHMEM_SIGNAL_SET = 9,
    COHI_NVSHMEM_SIGNAL_ADD = 10
};

/* X(field, symbol, result, parameters): every function that is called. */
#define COHI_NVSHMEM_FUNCTIONS(X)                                                                  \
    X(get_version, "nvshmemx_vendor_get_version_info", void, (int *major, int *minor, int *patch)) \
    X(get_id, "nvshmemx_get_uniqueid", int, (cohi_nvshmem_id * id))                                \
    X(join, "nvshmemx_hostlib_init_attr", int,                                                     \
      (unsigned flags, cohi_nvshmem_attributes *attributes))                                       \
    X(finalize, "nvshmemx_hostlib_finalize", void, (void))                                         \
    X(my_pe, "nvshmem_my_pe", int, (void))                                                         \
    X(n_pes, "nvshmem_n_pes", int, (void))                                                         \
    X(align, "nvshmem_align", void *, (size_t alignment, size_t bytes))                            \
    X(ptr, "nvshmem_ptr", void *, (const void *symmetric, int pe))                                 \
    X(put, "nvshmemx_putmem_on_stream", void,                                                      \
      (void *target, const void *source, size_t bytes, int pe, CUstream stream))                   \
    X(get, "nvshmemx_getmem_on_stream", void,                                                      \
      (void *target, const void *source, size_t bytes, int pe, CUstream stream))                   \
    X(signal, "nvshmemx_signal_op_on_stream", void,                                                \
      (uint64_t * word, uint64_t value, int op, int pe, CUstream stream))                          \
    X(put_signal, "nvshmemx_putmem_signal_on_stream", void,                                        \
      (void *target, const void *source, size_t bytes, uint64_t *word, uint64_t value, int op,     \
       int pe, CUstream stream))                                                                   \
    X(quiet, "nvshmemx_quiet_on_stream", void, (CUstream stream))                                  \
    X(sync_all, "nvshmemx_sync_all_on_stream", void, (CUstream stream))                            \
    X(all_gather, "nvshmemx_fcollectmem_on_stream", int,                                           \
      (int32_t team, void *target, const void *source, size_t bytes, CUstream stream))             \
    X(all_to_all, "nvshmemx_alltoallmem_on_stream", int,                                           \
      (int32_t team, void *target, const void *source, size_t bytes, CUstream stream))

typedef struct cohi_nvshmem_library {
    int major, minor, patch;
    char path[512]; /* what was opened */
#define COHI_NVSHMEM_MEMBER(field, symbol, result, parameters) result(*field) parameters;
    COHI_NVSHMEM_FUNCTIONS(COHI_NVSHMEM_MEMBER)
#undef COHI_NVSHMEM_MEMBER
    void *handle; /* of the loader, for symbols of collectives */
} cohi_nvshmem_library;

/* Opens it, once a process; it stays open. Looks at COHORT_NVSHMEM, a file or the folder of one; then as the
 * loader does; then inside the installed Python's packages. COH_NOT_AVAILABLE with the reason: it is nowhere, it
 * has a release that is not known here, or lacks a function. */
coh_status cohi_nvshmem_library_open(const cohi_nvshmem_library **library);

#endif
