/*
 * library.h - MPI's functions and handles, found in a library that is opened at run time.
 *
 * The module is compiled twice from the same files, against the headers of Open MPI and against those of
 * MPICH: the two differ in what a handle is, and in nothing else that is used here. MPICH's handles are
 * numbers, Open MPI's the addresses of variables in the library.
 */
#ifndef COHI_ENGINE_MPI_LIBRARY_H
#define COHI_ENGINE_MPI_LIBRARY_H

#include <cohort.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(OPEN_MPI)
#define COHI_MPI_NAME    "mpi:openmpi"
#define COHI_MPI_LIBRARY "Open MPI"
#define COHI_MPI_FILES   "libmpi.so.40"
#elif defined(MPICH_NAME) || defined(MPICH_VERSION)
#define COHI_MPI_NAME    "mpi:mpich"
#define COHI_MPI_LIBRARY "MPICH"
#define COHI_MPI_FILES   "libmpich.so.12", "libmpi.so.12"
#else
#error "these headers are neither Open MPI's nor MPICH's"
#endif

/* X(function) */
#define COHI_MPI_FUNCTIONS(X)    \
    X(MPI_Bcast)                 \
    X(MPI_Cancel)                \
    X(MPI_Comm_create_group)     \
    X(MPI_Comm_create_keyval)    \
    X(MPI_Comm_free)             \
    X(MPI_Comm_group)            \
    X(MPI_Comm_rank)             \
    X(MPI_Comm_set_attr)         \
    X(MPI_Comm_set_errhandler)   \
    X(MPI_Comm_size)             \
    X(MPI_Error_string)          \
    X(MPI_Finalize)              \
    X(MPI_Finalized)             \
    X(MPI_Get_count)             \
    X(MPI_Get_library_version)   \
    X(MPI_Get_version)           \
    X(MPI_Iallgather)            \
    X(MPI_Iallreduce)            \
    X(MPI_Ialltoall)             \
    X(MPI_Ibcast)                \
    X(MPI_Igather)               \
    X(MPI_Iprobe)                \
    X(MPI_Ireduce)               \
    X(MPI_Ireduce_scatter_block) \
    X(MPI_Iscatter)              \
    X(MPI_Group_free)            \
    X(MPI_Group_incl)            \
    X(MPI_Init_thread)           \
    X(MPI_Initialized)           \
    X(MPI_Irecv)                 \
    X(MPI_Is_thread_main)        \
    X(MPI_Isend)                 \
    X(MPI_Query_thread)          \
    X(MPI_Request_free)          \
    X(MPI_Test)

/* What keeps MPI alive beyond the program's MPI_Finalize, where that is wanted (process.c); NULL in a library that is
 * older than its headers. */
#if !defined(OPEN_MPI) && MPI_VERSION >= 4
#define COHI_MPI_HAS_SESSIONS
#define COHI_MPI_SESSION_FUNCTIONS(X) \
    X(MPI_Session_init)               \
    X(MPI_Session_finalize)
#else
#define COHI_MPI_SESSION_FUNCTIONS(X)
#endif

/* X(type, field, Open MPI's variable, MPICH's value) */
#define COHI_MPI_HANDLES(X)                                           \
    X(MPI_Comm, world, "ompi_mpi_comm_world", MPI_COMM_WORLD)         \
    X(MPI_Comm, self, "ompi_mpi_comm_self", MPI_COMM_SELF)            \
    X(MPI_Comm, no_comm, "ompi_mpi_comm_null", MPI_COMM_NULL)         \
    X(MPI_Request, no_request, "ompi_request_null", MPI_REQUEST_NULL) \
    X(MPI_Datatype, byte, "ompi_mpi_byte", MPI_BYTE)                  \
    X(MPI_Datatype, int32, "ompi_mpi_int32_t", MPI_INT32_T)           \
    X(MPI_Datatype, int64, "ompi_mpi_int64_t", MPI_INT64_T)           \
    X(MPI_Datatype, uint32, "ompi_mpi_uint32_t", MPI_UINT32_T)        \
    X(MPI_Datatype, uint64, "ompi_mpi_uint64_t", MPI_UINT64_T)        \
    X(MPI_Datatype, float32, "ompi_mpi_float", MPI_FLOAT)             \
    X(MPI_Datatype, float64, "ompi_mpi_double", MPI_DOUBLE)           \
    X(MPI_Op, sum, "ompi_mpi_op_sum", MPI_SUM)                        \
    X(MPI_Op, product, "ompi_mpi_op_prod", MPI_PROD)                  \
    X(MPI_Op, min, "ompi_mpi_op_min", MPI_MIN)                        \
    X(MPI_Op, max, "ompi_mpi_op_max", MPI_MAX)                        \
    X(MPI_Op, bits_and, "ompi_mpi_op_band", MPI_BAND)                 \
    X(MPI_Op, bits_or, "ompi_mpi_op_bor", MPI_BOR)                    \
    X(MPI_Op, bits_xor, "ompi_mpi_op_bxor", MPI_BXOR)                 \
    X(MPI_Errhandler, errors_return, "ompi_mpi_errors_return", MPI_ERRORS_RETURN)

typedef struct cohi_mpi_library {
#define COHI_MPI_FIELD(name) __typeof__(name) *name;
    COHI_MPI_FUNCTIONS(COHI_MPI_FIELD)
    COHI_MPI_SESSION_FUNCTIONS(COHI_MPI_FIELD)
#undef COHI_MPI_FIELD
#define COHI_MPI_FIELD(type, field, variable, value) type field;
    COHI_MPI_HANDLES(COHI_MPI_FIELD)
#undef COHI_MPI_FIELD
} cohi_mpi_library;

/* Opens it, once a process. COH_NOT_AVAILABLE: it is not installed, is too old, or another MPI is in the
 * process. */
coh_status cohi_mpi_library_open(const cohi_mpi_library **library);

/* Whether it could be opened, and then its name and version in `text` (NULL: not wanted). Unless it is
 * open, it is closed again: both libraries can be asked in one process, but only one used. */
coh_status cohi_mpi_library_look(char *text, size_t room);

#endif
