/*
 * cohort.h - one symmetric memory for a group of ranks.
 *
 * Read top to bottom; each group stands on the ones before it:
 *
 *   1. Status and errors      how a call says what went wrong
 *   2. Log                    what the library would like to tell
 *   3. World                  joining a job, rank and size, leaving it
 *   4. Symmetric heap         memory that every rank allocates alike
 *   5. Put and get            by symmetric pointer and rank
 *   6. Views                  put and get by (rank, offset, length), and of typed arrays
 *   7. Ordering and barriers  fence, quiet, sync, barrier
 *   8. Peers                  what another rank is doing, and whether it lives
 *   9. Atomics                read-modify-writes on a word of any rank's heap
 *  10. Strided copies         put and get of blocks at regular distances
 *  11. Signals                a put that tells of its arrival
 *  12. Waits and tests        until words of one's own memory have a value
 *  13. Contexts               independent streams of one-sided operations
 *  14. Teams                  ordered subsets of the ranks
 *  15. Messages               tagged send and receive within a team
 *  16. Locks                  one holder at a time, in order of asking
 *  17. Collectives            reductions and exchanges in which all members of a team take part
 *  18. Registered memory      memory that the program had before, made symmetric
 *  19. Further heaps          symmetric memory apart from the world's own, with a size of its own
 *
 * Conventions, true for every call unless it says otherwise:
 *   - It is thread-safe, and may be made by any thread of the rank. Cancellation (pthread_cancel)
 *     is deferred inside it: the call goes on to its end, and the request stays pending until the
 *     thread's next cancellation point. The asynchronous type is not supported.
 *   - It returns a coh_status. Outputs come last and are set only on COH_OK.
 *   - A refused call changed nothing; coh_last_error() says what was refused and why.
 *   - "Collective" means that every rank of the world makes the call, in the same order.
 *     A rank that makes another one instead gets, like all others, COH_MISMATCH.
 *   - A blocking call returns COH_PEER_LOST when a rank that it needs has died, and
 *     COH_STALLED when one is stuck, or when ranks wait for each other in a circle; it never waits
 *     without end for what cannot happen.
 */
#ifndef COHORT_H
#define COHORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Marks the calls whose result must be used: compilers that can will warn where it is ignored. A
 * cast, (void)coh_free(world, pointer), says that this is meant. To have no such warnings at all,
 * define COH_NODISCARD as empty before you include this header.
 */
#ifndef COH_NODISCARD
#if defined(__cplusplus) && __cplusplus >= 201703L
#define COH_NODISCARD [[nodiscard]]
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L
#define COH_NODISCARD [[nodiscard]]
#elif defined(__clang__)
#define COH_NODISCARD __attribute__((warn_unused_result))
#elif defined(__GNUC__) && __GNUC__ >= 10 && !defined(__cplusplus)
#define COH_NODISCARD __extension__ [[nodiscard]] /* gcc's own attribute cannot be cast away */
#else
#define COH_NODISCARD
#endif
#endif

#if defined(__GNUC__)
#define COH_EXPORT __attribute__((visibility("default")))
#else
#define COH_EXPORT
#endif

#define COH_API COH_NODISCARD COH_EXPORT

#define COH_VERSION_MAJOR 0
#define COH_VERSION_MINOR 1
#define COH_VERSION_PATCH 0

/* The version of the library that is running, as numbers; any output may be NULL. */
COH_EXPORT void coh_version(int *major, int *minor, int *patch);

/* The version of the library that is running, as text: "0.1.0". */
COH_API const char *coh_version_string(void);

/* ---- 1. Status and errors -------------------------------------------------------------- */

/* X(constant, value, what it means). The values are part of the binary interface. */
#define COH_STATUS_TABLE(X)                                                            \
    X(COH_OK, 0, "success")                                                            \
    X(COH_INVALID_ARGUMENT, 1, "an argument has a value that the call does not take")  \
    X(COH_UNKNOWN_RANK, 2, "there is no such rank in this world")                      \
    X(COH_OUT_OF_BOUNDS, 3, "the range does not lie inside the symmetric memory")      \
    X(COH_LENGTH_MISMATCH, 4, "two lengths that must agree do not")                    \
    X(COH_NOT_SYMMETRIC, 5, "the address is not in the symmetric memory of this rank") \
    X(COH_BAD_ALIGNMENT, 6, "the alignment is not one that can be given")              \
    X(COH_NO_MEMORY, 7, "there is not enough memory")                                  \
    X(COH_UNSUPPORTED, 8, "this cannot be done here, by its nature")                   \
    X(COH_NOT_AVAILABLE, 9, "something needed is not installed or not permitted here") \
    X(COH_TRANSPORT, 10, "the connection between ranks failed")                        \
    X(COH_PEER_LOST, 11, "a rank that the call depends on is gone")                    \
    X(COH_STALLED, 12, "a rank that the call depends on is stuck")                     \
    X(COH_TIMED_OUT, 13, "the time that was set for the call has passed")              \
    X(COH_MISMATCH, 14, "the ranks made different collective calls")                   \
    X(COH_FINALIZED, 15, "the world is finalized")                                     \
    X(COH_FORKED, 16, "the world belongs to the parent of this process")               \
    X(COH_WRONG_THREAD, 17, "the calling thread is another rank's")                    \
    X(COH_BUSY, 18, "another thread of this rank is in a collective of the same team") \
    X(COH_LIMIT, 19, "a limit of the process or the system was reached")               \
    X(COH_SYSTEM, 20, "the operating system refused a request")                        \
    X(COH_RACE, 21, "two accesses to the same memory are in no order")

typedef enum coh_status {
#define COH_STATUS_ENUM(constant, value, text) constant = value,
    COH_STATUS_TABLE(COH_STATUS_ENUM)
#undef COH_STATUS_ENUM
} coh_status;

/* The constant's name without its prefix, "PEER_LOST"; "UNKNOWN" for a value not in the table. */
COH_API const char *coh_status_name(coh_status status);

/* What the status means, in a few words. */
COH_API const char *coh_status_text(coh_status status);

/*
 * The error message of the last call that failed on the calling thread: which rank called what with
 * which arguments, what was found, what to do. Empty when none failed. It belongs to the thread
 * and is overwritten by its next failure.
 */
COH_API const char *coh_last_error(void);

/* The value of a number in coh_error that does not apply to the failure. */
#define COH_NO_FACT UINT64_MAX

/* The facts of a failure, for programs that act on it. */
typedef struct coh_error {
    size_t size;        /* set by the caller: sizeof(coh_error) */
    coh_status status;  /* COH_OK: no call has failed on this thread */
    int rank;           /* that made the call; -1: it is not known yet, or the call has no world */
    int peer;           /* the rank that the failure is about: the one that is lost or stalled, made
                         * another call, or has no such memory; -1: none */
    char operation[40]; /* the call, "coh_put"; empty: a function that Cohort called back */
    uint64_t offset;    /* in the peer's heap; of a part, in the view or array */
    uint64_t length;    /* asked for: bytes; of arrays and collectives, elements */
    uint64_t limit;     /* where the memory ends; the room, the expected length, the largest free
                         * block; of COH_UNKNOWN_RANK how many ranks there are */
    int heap;           /* the number of the heap that `offset` is in; -1: in none */
} coh_error;

/* Fills `facts` for the failure that coh_last_error() describes. */
COH_API coh_status coh_last_error_facts(coh_error *facts);

/*
 * For libraries built on Cohort, and for functions that Cohort calls back: sets the calling
 * thread's error message, as printf would (cut to 1023 bytes), and returns `status`.
 */
COH_EXPORT coh_status coh_fail(coh_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/* ---- 2. Log ---------------------------------------------------------------------------- */

typedef enum coh_log_level {
    COH_LOG_OFF = 0,
    COH_LOG_ERROR = 1, /* the job is broken: a rank was lost, a verdict was passed */
    COH_LOG_WARN = 2,  /* it goes on, but somebody should look: a rank keeps others waiting */
    COH_LOG_INFO = 3,  /* once per world: engine, ranks, heap */
    COH_LOG_DEBUG = 4  /* each step of joining and leaving */
} coh_log_level;

typedef void coh_log_hook(void *arg, coh_log_level level, const char *message);

/*
 * Sends messages up to `level` to `hook`. The hook runs on the thread that has the message, on
 * several threads at once perhaps, and must not call Cohort. A NULL hook stops all messages. Before
 * the first call, messages go to standard error if COHORT_LOG names a level; if it does not, the
 * library prints nothing.
 */
COH_EXPORT void coh_log_to(coh_log_hook *hook, void *arg, coh_log_level level);

/* ---- 3. World -------------------------------------------------------------------------- */

/* One rank's handle on a job. A process may hold many. */
typedef struct coh_world coh_world;

/* How to join; start from COH_OPTIONS_INIT. What is 0 or NULL is taken from the environment. */
typedef struct coh_options {
    size_t size;        /* sizeof(coh_options), so that the struct can grow */
    const char *engine; /* "threads", "shm", "sim"; NULL or "any": the best that is there */
    int fall_back;      /* not 0: where the job cannot be joined, be a world of one */
    int driven;         /* coh_init_threads only; see there */
    uint64_t heap;      /* most bytes the heap of each rank can grow to; 0: COHORT_HEAP */
    int check_bounds;   /* not 0: this rank's puts and gets are held to allocations, see coh_put */
} coh_options;

#define COH_OPTIONS_INIT                      \
    {                                         \
        sizeof(coh_options), NULL, 0, 0, 0, 0 \
    }

/*
 * Joins the job that the process was started in: the launcher's, or a world of one when there
 * is none, or it started one process. Collective over the job. `options` may be NULL.
 *
 * Fails on every rank, naming those that are missing, when some have not come within
 * COHORT_INIT_TIMEOUT. With fall_back, an engine that is COH_NOT_AVAILABLE, or a launcher that
 * cannot be joined, gives a world of one and a warning instead.
 *
 * Launchers are cohort run, and by their variables torchrun (TORCHELASTIC_RUN_ID), mlx.launch
 * (MLX_RANK), PMIx (PMIX_RANK: Open MPI's mpirun, srun --mpi=pmix), PMI-1 (PMI_FD: MPICH's mpiexec,
 * srun --mpi=pmi2), RANK with WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and Slurm's
 * SLURM_STEP_NUM_TASKS; the first of these is joined. All after PMI-1, and the first two, need
 * COHORT_SECRET or COHORT_SECRET_FILE for ranks of several hosts. A job that cannot be joined is
 * COH_NOT_AVAILABLE, with the variables that were found and those that are missing: never a world
 * of one, unless fall_back is set. cohort info shows which launcher would be used here.
 */
COH_API coh_status coh_init(const coh_options *options, coh_world **world);

/*
 * Makes `ranks` ranks inside this process, worlds[0] to worlds[ranks - 1], over one set of
 * heaps. Not collective: one thread calls it. The worlds are made for one of two uses.
 *
 * driven == 0: one thread each. A world is bound to the first thread that calls it (queries such
 * as coh_rank do not bind). Threads that are bound to no rank may call it as well; a thread that is
 * bound to another rank is refused with COH_WRONG_THREAD, since it would wait for itself. If the
 * bound thread ends before it finalized the world, the rank is lost to the others.
 *
 * driven != 0: a single thread drives all of them in turn. Allocation does not wait: each rank's
 * n-th call must ask for the same as the first one that got there. Put, get, fence and quiet work;
 * collectives that wait are COH_UNSUPPORTED, since nobody could arrive.
 */
COH_API coh_status coh_init_threads(int ranks, const coh_options *options, coh_world **worlds);

/* A job's secret meeting place. Hand it to the ranks by a pipe or a file only they can read. */
typedef struct coh_unique_id {
    unsigned char bytes[128];
} coh_unique_id;

/*
 * Makes an id; any process may, then gives it to all ranks. For ranks of one host it holds no
 * resource.
 *
 * For ranks of several hosts COHORT_NET_INTERFACE or COHORT_PORTS is set where it is made, and it is
 * made by the process that joins as rank 0, or by one that forks it: then the process listens from
 * now on for the other hosts, and the id tells them its addresses and port. The socket is closed
 * when rank 0 has joined.
 */
COH_API coh_status coh_unique_id_create(coh_unique_id *id);

/*
 * Joins the job of `id` as rank `rank` of `size`. Collective: each of the `size` ranks calls it
 * with the same id and size and a rank of its own. Processes of one network namespace are one host,
 * unless COHORT_HOST tells them apart; engine tcp connects hosts. Errors as for coh_init.
 */
COH_API coh_status coh_init_unique_id(const coh_unique_id *id, int rank, int size,
                                      const coh_options *options, coh_world **world);

/* This rank, 0 to size - 1; how many there are. -1 when `world` is not an open world. */
COH_API int coh_rank(const coh_world *world);
COH_API int coh_size(const coh_world *world);

/* This rank's index among the ranks that share this host, and how many those are; -1 when `world`
 * is not an open world. */
COH_API int coh_local_rank(const coh_world *world);
COH_API int coh_local_size(const coh_world *world);

/* The name of the engine that connects the ranks, "shm"; NULL when `world` is not open. */
COH_API const char *coh_engine(const coh_world *world);

/* The engines that this library knows, by index from 0; NULL past the last. */
COH_API const char *coh_engine_name(int index);

/*
 * Whether ranks could be connected by that engine here and now. COH_OK; or COH_NOT_AVAILABLE with
 * the reason in coh_last_error(); or COH_INVALID_ARGUMENT for a name that is not an engine's.
 */
COH_API coh_status coh_engine_available(const char *engine);

/*
 * Leaves the job: completes what this rank issued, waits for the others, frees everything.
 * Collective. No other thread may be inside a call on the world. A second call, or one with NULL,
 * is COH_OK and does nothing.
 *
 * These statuses are reports; everything is freed all the same:
 *   COH_PEER_LOST, COH_STALLED  the other ranks could not be waited for
 *   COH_MISMATCH                likewise; or the members of a team ended with different calls on it
 *   COH_RACE                    COHORT_CHECK=order found a race on some rank
 * COH_BUSY, COH_WRONG_THREAD and COH_FORKED refuse the call, and nothing is freed.
 *
 * Afterwards every other call on the world, its teams, contexts and requests is COH_FINALIZED. A
 * process remembers the last 4096 worlds that it finalized.
 */
COH_API coh_status coh_finalize(coh_world *world);

/*
 * Ends the whole job: every rank's process exits with `code`, this one through exit(3), the others
 * with their stdio flushed, within a second. Not collective. Returns only when refused.
 */
COH_API coh_status coh_global_exit(coh_world *world, int code);

/* ---- 4. Symmetric heap ----------------------------------------------------------------- */

/*
 * Allocates `bytes` on every rank at the same offset of its heap, aligned to 64 bytes. Collective,
 * with equal arguments: unequal ones are COH_MISMATCH naming them. Ends with a barrier. Zero bytes
 * give NULL without meeting the others. When one rank has no memory left, all get COH_NO_MEMORY and
 * the heap is as before. The contents are undefined, and zero where memory is used the first time.
 */
COH_API coh_status coh_malloc(coh_world *world, size_t bytes, void **pointer);

/* Allocates count * size bytes, checked for overflow, and sets them to zero; else as coh_malloc. */
COH_API coh_status coh_calloc(coh_world *world, size_t count, size_t size, void **pointer);

/*
 * COH_MALLOC(world, count, &pointer) allocates `count` objects of the type that `pointer` points
 * to, as coh_malloc does; COH_CALLOC sets them to zero. For a pointer of any type, without a cast:
 *
 *     double *cells;
 *     coh_status status = COH_CALLOC(world, 1000, &cells);
 */
#define COH_MALLOC(world, count, place) \
    coh_malloc_typed((world), (count), sizeof **(place), (place))
#define COH_CALLOC(world, count, place) \
    coh_calloc_typed((world), (count), sizeof **(place), (place))

/* What these two call: count * size bytes, checked for overflow; the pointer is stored at `place`,
 * a pointer to an object pointer of any type. */
COH_API coh_status coh_malloc_typed(coh_world *world, size_t count, size_t size, void *place);
COH_API coh_status coh_calloc_typed(coh_world *world, size_t count, size_t size, void *place);

/* Allocates at a multiple of `alignment`, a power of two up to 16 MiB; else as coh_malloc. */
COH_API coh_status coh_align(coh_world *world, size_t alignment, size_t bytes, void **pointer);

/*
 * Changes an allocation's size; *resized is where it is now, with the contents of the shorter of
 * both sizes. Collective; begins and ends with a barrier. NULL allocates; zero bytes free and give
 * NULL. On failure the allocation is as it was.
 */
COH_API coh_status coh_realloc(coh_world *world, void *pointer, size_t bytes, void **resized);

/*
 * Frees what one of the above returned. Collective; begins with a barrier. NULL does nothing. A
 * pointer that is not the start of a live allocation is refused on this rank before anything moves.
 * Free memory goes back to the host when there is much of it; an allocation in its place gets
 * memory again, or fails.
 */
COH_API coh_status coh_free(coh_world *world, void *pointer);

typedef struct coh_heap_stats {
    size_t size;        /* set by the caller: sizeof(coh_heap_stats) */
    uint64_t reserved;  /* bytes the heap can grow to */
    uint64_t committed; /* the bound that put and get check; backed, but for what was given back */
    uint64_t used;      /* bytes in live allocations, rounded up to 64 each */
    uint64_t largest;   /* the largest allocation that could succeed now, memory permitting */
    uint64_t count;     /* live allocations */
} coh_heap_stats;

/* Fills `stats` for the world's own heap; by design they are the same on all ranks. */
COH_API coh_status coh_heap_query(coh_world *world, coh_heap_stats *stats);

/* ---- 5. Put and get -------------------------------------------------------------------- */

/*
 * Copies `bytes` from `source` (any memory) to rank `rank`'s copy of the symmetric `target`. On
 * return the source may be reused; the target has the data after coh_quiet or coh_barrier here, or,
 * in the order given by coh_fence, when it sees a later put. Aligned puts of 1, 2, 4 and 8 bytes
 * are single stores. To oneself, source and target may overlap, as for memmove.
 *
 * COH_UNKNOWN_RANK, COH_NOT_SYMMETRIC and COH_OUT_OF_BOUNDS are found before anything moves. The
 * bound is the heap's, not the allocation's; with COHORT_CHECK=1, or check_bounds in coh_options,
 * it is the allocation's. With COHORT_CHECK=order this call, gets, atomics and collectives return
 * COH_RACE when they touch the range of an earlier put and nothing orders the two.
 */
COH_API coh_status coh_put(coh_world *world, void *target, const void *source, size_t bytes,
                           int rank);

/* Copies `bytes` from rank `rank`'s copy of the symmetric `source` to `target`; done on return. */
COH_API coh_status coh_get(coh_world *world, void *target, const void *source, size_t bytes,
                           int rank);

/*
 * Put and get that are complete only at coh_quiet or coh_barrier: until then the source of the put
 * must not change, and the target of the get is undefined. Otherwise as coh_put and coh_get.
 */
COH_API coh_status coh_put_nbi(coh_world *world, void *target, const void *source, size_t bytes,
                               int rank);
COH_API coh_status coh_get_nbi(coh_world *world, void *target, const void *source, size_t bytes,
                               int rank);

/*
 * The address at which this process can load and store rank `rank`'s copy of `pointer`. Valid until
 * the allocation is freed. COH_UNSUPPORTED where that rank's memory is not mapped here, and with
 * COHORT_CHECK=order: use put and get.
 */
COH_API coh_status coh_ptr(coh_world *world, const void *pointer, int rank, void **direct);

/* ---- 6. Views -------------------------------------------------------------------------- */

/* `length` bytes at `offset` of rank `rank`'s heap: what a symmetric pointer and a rank name. */
typedef struct coh_view {
    int rank;
    uint64_t offset;
    uint64_t length;
    int heap; /* 0: the world's own; else as coh_heap_number */
} coh_view;

/* The view of `length` bytes at symmetric `pointer` on `rank`. */
COH_API coh_status coh_view_of(coh_world *world, const void *pointer, size_t length, int rank,
                               coh_view *view);

/* A part of a view: `length` bytes from its byte `first` on. */
COH_API coh_status coh_view_part(coh_view view, uint64_t first, uint64_t length, coh_view *part);

/*
 * Put into a view, get from one. `bytes` must be the view's length, else COH_LENGTH_MISMATCH with
 * both. Otherwise as coh_put and coh_get.
 */
COH_API coh_status coh_put_view(coh_world *world, coh_view target, const void *source,
                                size_t bytes);
COH_API coh_status coh_get_view(coh_world *world, void *target, size_t bytes, coh_view source);

/* X(constant, value, name, bytes of one element) */
#define COH_DTYPE_TABLE(X)         \
    X(COH_I8, 1, "i8", 1)          \
    X(COH_I16, 2, "i16", 2)        \
    X(COH_I32, 3, "i32", 4)        \
    X(COH_I64, 4, "i64", 8)        \
    X(COH_U8, 5, "u8", 1)          \
    X(COH_U16, 6, "u16", 2)        \
    X(COH_U32, 7, "u32", 4)        \
    X(COH_U64, 8, "u64", 8)        \
    X(COH_F16, 9, "f16", 2)        \
    X(COH_BF16, 10, "bf16", 2)     \
    X(COH_F32, 11, "f32", 4)       \
    X(COH_F64, 12, "f64", 8)       \
    X(COH_F8E4M3, 13, "f8e4m3", 1) \
    X(COH_F8E5M2, 14, "f8e5m2", 1) \
    X(COH_BOOL, 15, "bool", 1)

typedef enum coh_dtype {
#define COH_DTYPE_ENUM(constant, value, name, bytes) constant = value,
    COH_DTYPE_TABLE(COH_DTYPE_ENUM)
#undef COH_DTYPE_ENUM
} coh_dtype;

/* The type's name and the bytes of one element; NULL and 0 for a value not in the table. */
COH_API const char *coh_dtype_name(coh_dtype dtype);
COH_API size_t coh_dtype_size(coh_dtype dtype);

/*
 * Converts `count` elements of memory that do not overlap. One of the types is f32, or both are the
 * same (then it is a copy); others are COH_UNSUPPORTED. Floats round to nearest even; what is too
 * large becomes infinity (NaN in f8e4m3, which has none). To integers: the fraction is cut off, the
 * value held within the type's range, NaN is 0. To bool: what is not 0 is 1, NaN too.
 */
COH_API coh_status coh_convert(void *target, coh_dtype to, const void *source, coh_dtype from,
                               size_t count);

/* `count` elements of `dtype` at byte `offset` of every rank's heap. */
typedef struct coh_array {
    coh_dtype dtype;
    uint64_t offset;
    uint64_t count;
    int heap; /* 0: the world's own; else as coh_heap_number */
} coh_array;

/* coh_malloc for count elements; *pointer (may be NULL) is this rank's copy. Collective. */
COH_API coh_status coh_array_malloc(coh_world *world, coh_dtype dtype, size_t count,
                                    coh_array *array, void **pointer);

/* This rank's copy of an array, or of a part of one; NULL where it has no elements. */
COH_API coh_status coh_array_pointer(coh_world *world, coh_array array, void **pointer);

/* Frees what coh_array_malloc gave. Collective. */
COH_API coh_status coh_array_free(coh_world *world, coh_array array);

/* `count` elements from element `first` on. */
COH_API coh_status coh_array_part(coh_array array, uint64_t first, uint64_t count, coh_array *part);

/*
 * Moves a whole array to or from rank `rank`. The caller's type and count of elements must be the
 * array's, else COH_LENGTH_MISMATCH (counts) or COH_INVALID_ARGUMENT (types), with both.
 */
COH_API coh_status coh_put_array(coh_world *world, coh_array target, int rank, coh_dtype dtype,
                                 const void *source, size_t count);
COH_API coh_status coh_get_array(coh_world *world, coh_dtype dtype, void *target, size_t count,
                                 coh_array source, int rank);

/* ---- 7. Ordering and barriers ---------------------------------------------------------- */

/*
 * Puts become visible at their targets in any order, at the latest when coh_quiet or coh_barrier
 * returns on the rank that issued them. A fence between two puts to one rank orders them. To
 * pass data from rank 0 to rank 1, with `data` and `flag` (a uint64_t, 0 at first) in the heap:
 *
 *     rank 0:  coh_put(world, data, source, bytes, 1);
 *              coh_fence(world);                           the data is seen before the flag
 *              coh_put(world, flag, &one, sizeof one, 1);
 *
 *     rank 1:  coh_wait_until(world, COH_U64, flag, COH_EQ, &one, 0);
 *              use(data);                                  ordinary loads see what was put
 *
 * Without the fence rank 1 could see the flag and old data. A signal does both steps in one call:
 *
 *     rank 0:  coh_put_signal(world, data, source, bytes, flag, 1, COH_SIGNAL_SET, 1);
 *
 * Before rank 0 overwrites the data, rank 1 must tell it in the same way that it has been used.
 */

/*
 * Orders, for each target rank: what this rank put there before is seen there before what it puts
 * there after. It orders nothing between different targets, and no non-blocking gets.
 */
COH_API coh_status coh_fence(coh_world *world);

/*
 * Completes what this rank issued: puts are at their targets, non-blocking gets have arrived, and
 * plain stores to mapped peers are visible.
 */
COH_API coh_status coh_quiet(coh_world *world);

/* Waits until all ranks have arrived. Completes nothing that was issued. Collective. */
COH_API coh_status coh_sync(coh_world *world);

/* coh_quiet, then coh_sync: all that any rank issued before is everywhere. Collective. */
COH_API coh_status coh_barrier(coh_world *world);

/* ---- 8. Peers -------------------------------------------------------------------------- */

typedef enum coh_peer_state {
    COH_PEER_ALIVE = 0,
    COH_PEER_LEFT = 1,  /* it finalized */
    COH_PEER_GONE = 2,  /* its process or thread ended without that */
    COH_PEER_STUCK = 3, /* it was found stalled; it stays so */
} coh_peer_state;

/*
 * What is known of rank `rank`, without asking it: its state and, in `text` (cut to `bytes`, which
 * may be 0), a phrase such as "in barrier #88" or "killed by signal 11". Never blocks.
 */
COH_API coh_status coh_peer_query(coh_world *world, int rank, coh_peer_state *state, char *text,
                                  size_t bytes);

/* ---- 9. Atomics ------------------------------------------------------------------------ */

/* X(constant, value, name). FETCH has no operand; COMPARE_SWAP has calls of its own. */
#define COH_ATOMIC_TABLE(X)         \
    X(COH_ATOMIC_SET, 0, "set")     \
    X(COH_ATOMIC_ADD, 1, "add")     \
    X(COH_ATOMIC_AND, 2, "and")     \
    X(COH_ATOMIC_OR, 3, "or")       \
    X(COH_ATOMIC_XOR, 4, "xor")     \
    X(COH_ATOMIC_FETCH, 5, "fetch") \
    X(COH_ATOMIC_COMPARE_SWAP, 6, "compare_swap")

typedef enum coh_atomic_op {
#define COH_ATOMIC_ENUM(constant, value, name) constant = value,
    COH_ATOMIC_TABLE(COH_ATOMIC_ENUM)
#undef COH_ATOMIC_ENUM
} coh_atomic_op;

/*
 * Applies `op` to the word of `dtype` at rank `rank`'s copy of the symmetric `target`, as one
 * indivisible step with respect to all other atomics and waits on that word. Complete at coh_quiet.
 * Types: i32, u32, i64, u64; f32 and f64 for FETCH and SET. Sums wrap. An increment is ADD of 1.
 * The word must be aligned to its size, else COH_BAD_ALIGNMENT. A type or operation that is not
 * supported is COH_INVALID_ARGUMENT.
 */
COH_API coh_status coh_atomic(coh_world *world, coh_atomic_op op, coh_dtype dtype, void *target,
                              const void *operand, int rank);

/* Applies `op` as coh_atomic does; *result is the word as it was before. SET is a swap; FETCH takes
 * a NULL operand. */
COH_API coh_status coh_atomic_fetch(coh_world *world, coh_atomic_op op, coh_dtype dtype,
                                    void *target, const void *operand, void *result, int rank);

/* Stores *desired if the word is *expected; *result is the word as it was before. Integers. */
COH_API coh_status coh_atomic_compare_swap(coh_world *world, coh_dtype dtype, void *target,
                                           const void *expected, const void *desired, void *result,
                                           int rank);

/* coh_atomic_fetch and coh_atomic_compare_swap that complete at coh_quiet: until then *result is
 * undefined. */
COH_API coh_status coh_atomic_fetch_nbi(coh_world *world, coh_atomic_op op, coh_dtype dtype,
                                        void *target, const void *operand, void *result, int rank);
COH_API coh_status coh_atomic_compare_swap_nbi(coh_world *world, coh_dtype dtype, void *target,
                                               const void *expected, const void *desired,
                                               void *result, int rank);

/* ---- 10. Strided copies ---------------------------------------------------------------- */

/*
 * Put and get `count` blocks of `block` bytes. The blocks begin `target_stride` bytes apart at the
 * target and `source_stride` bytes apart at the source. Strides are at least `block`, unless count
 * is 1. In all else as coh_put and coh_get.
 */
COH_API coh_status coh_put_strided(coh_world *world, void *target, size_t target_stride,
                                   const void *source, size_t source_stride, size_t block,
                                   size_t count, int rank);
COH_API coh_status coh_get_strided(coh_world *world, void *target, size_t target_stride,
                                   const void *source, size_t source_stride, size_t block,
                                   size_t count, int rank);

/* ---- 11. Signals ----------------------------------------------------------------------- */

typedef enum coh_signal_op {
    COH_SIGNAL_SET = 0,
    COH_SIGNAL_ADD = 1,
} coh_signal_op;

/*
 * Puts, then sets or adds to rank `rank`'s copy of the 64-bit symmetric `signal`: a rank that
 * sees the signal sees the data of this put, though not always that of earlier ones. Zero bytes
 * still signal. When several puts add to one signal, a partial sum does not say which of them have
 * arrived; the full sum says that all have. Give each chunk a signal of its own to tell them apart.
 */
COH_API coh_status coh_put_signal(coh_world *world, void *target, const void *source, size_t bytes,
                                  uint64_t *signal, uint64_t value, coh_signal_op op, int rank);

/* As coh_put_signal, but the source must not change before coh_quiet. */
COH_API coh_status coh_put_signal_nbi(coh_world *world, void *target, const void *source,
                                      size_t bytes, uint64_t *signal, uint64_t value,
                                      coh_signal_op op, int rank);

/*
 * coh_put_strided, then the signal: a rank that sees the signal sees all blocks. A count of 0 still
 * signals. Nothing is put when the signal is refused.
 */
COH_API coh_status coh_put_strided_signal(coh_world *world, void *target, size_t target_stride,
                                          const void *source, size_t source_stride, size_t block,
                                          size_t count, uint64_t *signal, uint64_t value,
                                          coh_signal_op op, int rank);

/* Sets or adds to a signal without data. */
COH_API coh_status coh_signal(coh_world *world, uint64_t *signal, uint64_t value, coh_signal_op op,
                              int rank);

/* Reads this rank's own copy of a signal. */
COH_API coh_status coh_signal_fetch(coh_world *world, const uint64_t *signal, uint64_t *value);

/* ---- 12. Waits and tests --------------------------------------------------------------- */

/* X(constant, value, sign) */
#define COH_COMPARE_TABLE(X) \
    X(COH_EQ, 1, "==")       \
    X(COH_NE, 2, "!=")       \
    X(COH_GT, 3, ">")        \
    X(COH_GE, 4, ">=")       \
    X(COH_LT, 5, "<")        \
    X(COH_LE, 6, "<=")

typedef enum coh_compare {
#define COH_COMPARE_ENUM(constant, value, sign) constant = value,
    COH_COMPARE_TABLE(COH_COMPARE_ENUM)
#undef COH_COMPARE_ENUM
} coh_compare;

#define COH_ANY_RANK (-1)

/*
 * Words of this rank's own symmetric memory, and a condition for each: words[i] compare values[i],
 * or values[0] for all. Integers of 32 and 64 bits.
 */
typedef struct coh_watch {
    size_t size; /* sizeof(coh_watch); start from COH_WATCH_INIT */
    coh_dtype dtype;
    const void *words;
    size_t count;
    const int *skip; /* NULL, or [count]: words whose entry is not 0 do not count */
    coh_compare compare;
    const void *values; /* one value, or [count] when `each` is set */
    int each;
    int from;            /* the rank that will write; or COH_ANY_RANK */
    uint64_t timeout_ns; /* COH_TIMED_OUT after this long; 0: COHORT_TIMEOUT alone counts */
} coh_watch;

#define COH_WATCH_INIT                                                              \
    {                                                                               \
        sizeof(coh_watch), COH_U64, NULL, 0, NULL, COH_EQ, NULL, 0, COH_ANY_RANK, 0 \
    }

/*
 * Waits until `*word compare *value` holds. An acquire: what was put before the word, with a fence
 * between, is visible after the wait. Satisfied by a store of a mapped peer, a put, an atomic, a
 * signal, or another thread of this rank. When `from` is lost the wait ends with COH_PEER_LOST;
 * with COH_ANY_RANK, when any rank is.
 */
COH_API coh_status coh_wait_until(coh_world *world, coh_dtype dtype, const void *word,
                                  coh_compare compare, const void *value, int from);

/* Waits until the comparison holds for one of the words; *index is its index. With nothing to
 * watch, *index is `count`. */
COH_API coh_status coh_wait_any(coh_world *world, const coh_watch *watch, size_t *index);

/* Waits until the comparison holds for all of the words. */
COH_API coh_status coh_wait_all(coh_world *world, const coh_watch *watch);

/* Waits until the comparison holds for at least one word; indices[0 .. *found - 1] are those for
 * which it does. */
COH_API coh_status coh_wait_some(coh_world *world, const coh_watch *watch, size_t *indices,
                                 size_t *found);

/* Look once, and never wait. *index is a word for which the comparison holds, or `count`; *all is 1
 * if it holds for all of them, else 0; indices[0 .. *found - 1] are those for which it does. */
COH_API coh_status coh_test_any(coh_world *world, const coh_watch *watch, size_t *index);
COH_API coh_status coh_test_all(coh_world *world, const coh_watch *watch, int *all);
COH_API coh_status coh_test_some(coh_world *world, const coh_watch *watch, size_t *indices,
                                 size_t *found);

/* ---- 13. Contexts ---------------------------------------------------------------------- */

/* A stream of puts, gets and atomics with fence and quiet of its own. */
typedef struct coh_context coh_context;

/* Not collective. Several threads may use one; one each is faster. COH_LIMIT beyond 62 of a world.
 */
COH_API coh_status coh_context_create(coh_world *world, coh_context **context);

/* Completes what was issued on the context, and frees it. NULL does nothing. coh_finalize frees the
 * contexts that are left. */
COH_API coh_status coh_context_destroy(coh_context *context);

/* Each does on `context` what the call without `context` in its name does on the world's own. */
COH_API coh_status coh_context_put(coh_context *context, void *target, const void *source,
                                   size_t bytes, int rank);
COH_API coh_status coh_context_get(coh_context *context, void *target, const void *source,
                                   size_t bytes, int rank);
COH_API coh_status coh_context_put_nbi(coh_context *context, void *target, const void *source,
                                       size_t bytes, int rank);
COH_API coh_status coh_context_get_nbi(coh_context *context, void *target, const void *source,
                                       size_t bytes, int rank);
COH_API coh_status coh_context_atomic(coh_context *context, coh_atomic_op op, coh_dtype dtype,
                                      void *target, const void *operand, int rank);
COH_API coh_status coh_context_atomic_fetch(coh_context *context, coh_atomic_op op, coh_dtype dtype,
                                            void *target, const void *operand, void *result,
                                            int rank);
COH_API coh_status coh_context_atomic_compare_swap(coh_context *context, coh_dtype dtype,
                                                   void *target, const void *expected,
                                                   const void *desired, void *result, int rank);
COH_API coh_status coh_context_put_signal(coh_context *context, void *target, const void *source,
                                          size_t bytes, uint64_t *signal, uint64_t value,
                                          coh_signal_op op, int rank);
COH_API coh_status coh_context_fence(coh_context *context);
COH_API coh_status coh_context_quiet(coh_context *context);

/* ---- 14. Teams ------------------------------------------------------------------------- */

/* An ordered subset of the ranks, with indices of its own: 0 to size - 1. */
typedef struct coh_team coh_team;

/* The team of all ranks, and that of the ranks on this host. Predefined: they cannot be destroyed.
 * NULL when `world` is not open. */
COH_API coh_team *coh_team_world(coh_world *world);
COH_API coh_team *coh_team_host(coh_world *world);

/* This rank's index in the team, and how many members it has. -1 for NULL, for a destroyed team
 * and after coh_finalize. */
COH_API int coh_team_index(const coh_team *team);
COH_API int coh_team_size(const coh_team *team);

/* The index in `to` of what is `index` in `from`; -1 when it is not a member, or an argument is not
 * a team or index. */
COH_API int coh_team_translate(const coh_team *from, int index, const coh_team *to);

/* The rank in the world of member `index`; -1 when there is no such member or team. */
COH_API int coh_team_rank(const coh_team *team, int index);

/*
 * Makes a team of the `size` members start, start + stride, start + 2 * stride, ... of `parent`.
 * Collective over the parent, with equal arguments; *team is NULL on ranks that are not in it. A
 * stride may be negative, and 0 for size 1; indices that leave the parent are refused. The status
 * is the same on all ranks of the parent.
 */
COH_API coh_status coh_team_split_strided(coh_team *parent, int start, int stride, int size,
                                          coh_team **team);

/* One team for each colour: members are ordered by key, then by index in the parent. A negative
 * colour joins none. Collective over the parent. */
COH_API coh_status coh_team_split_color(coh_team *parent, int color, int key, coh_team **team);

/* The parent as rows of `width`: *row has those of this rank's row, *column those of its column.
 * The last row may be short. Collective over the parent. */
COH_API coh_status coh_team_split_2d(coh_team *parent, int width, coh_team **row,
                                     coh_team **column);

/* The members `indices` of the parent, in that order. Collective over the parent, with equal lists.
 */
COH_API coh_status coh_team_from_list(coh_team *parent, const int *indices, int count,
                                      coh_team **team);

/* Wait until all members have arrived. coh_team_barrier first completes what this rank issued, as
 * coh_barrier does. */
COH_API coh_status coh_team_sync(coh_team *team);
COH_API coh_status coh_team_barrier(coh_team *team);

/* Frees the team. Collective over it. NULL does nothing; a predefined team is refused. */
COH_API coh_status coh_team_destroy(coh_team *team);

#define COH_GRID_DIMENSIONS 8
#define COH_NO_NEIGHBOR     (-1)

/* Members of a team as the cells of a grid; made by coh_grid_make. The last dimension is the one in
 * which neighbours have consecutive indices. */
typedef struct coh_grid {
    int dimensions;
    int extent[COH_GRID_DIMENSIONS];   /* cells in each dimension */
    int periodic[COH_GRID_DIMENSIONS]; /* not 0: the last cell is a neighbour of the first */
} coh_grid;

/*
 * Lays `size` members out in `dimensions` (1 to 8). extents[i] is the extent of dimension i, or 0
 * to have it chosen: chosen extents are as equal as possible, larger ones first. NULL has all of
 * them chosen. The product must be `size`. With `periodic` NULL no dimension is. This call and the
 * next three are not collective and keep no state: equal arguments give equal grids.
 */
COH_API coh_status coh_grid_make(int size, int dimensions, const int *extents, const int *periodic,
                                 coh_grid *grid);

/* The coordinates of member `index`, [dimensions]. COH_UNKNOWN_RANK when there is no such member.
 */
COH_API coh_status coh_grid_coordinates(const coh_grid *grid, int index, int *coordinates);

/* The member at the coordinates, which wrap around in periodic dimensions; COH_NO_NEIGHBOR outside
 * of the grid. */
COH_API int coh_grid_index(const coh_grid *grid, const int *coordinates);

/* The member `steps` cells from `index` along a dimension; negative steps go towards 0.
 * COH_NO_NEIGHBOR beyond the border, and for a member or dimension that does not exist. */
COH_API int coh_grid_neighbor(const coh_grid *grid, int index, int dimension, int steps);

/* ---- 15. Messages ---------------------------------------------------------------------- */

#define COH_ANY_TAG (-1)
#define COH_TAG_MAX 0x3fffffff

/* A message that was received, or that a probe found. */
typedef struct coh_message {
    int source; /* index in the team */
    int tag;
    size_t bytes;
} coh_message;

/*
 * Sends `bytes` to member `to` of the team, under a tag of 0 to COH_TAG_MAX. On return the data may
 * be reused; the receiver may not have asked for it yet. Messages from one rank to another in one
 * team with one tag are received in the order of sending. A sender
 * waits for a receiver that asks for nothing: after a bounded amount of short messages, and at once
 * with a message of more than 8 KiB, or between hosts 63 KiB (512 over TCP). Messages move
 * inside Cohort's calls, in any that waits, on both sides.
 */
COH_API coh_status coh_send(coh_team *team, int to, int tag, const void *data, size_t bytes);

/*
 * Receives the first message from member `from` (or COH_ANY_RANK) under `tag` (or COH_ANY_TAG) into
 * `room` bytes at `data`. One that is longer is COH_LENGTH_MISMATCH with both lengths, and stays
 * for the next receive; *got is set then too, so that the program can make room. `got` may be NULL.
 */
COH_API coh_status coh_receive(coh_team *team, int from, int tag, void *data, size_t room,
                               coh_message *got);

/* Whether a message that coh_receive would take is there. Never waits. */
COH_API coh_status coh_probe(coh_team *team, int from, int tag, int *there, coh_message *message);

/* Waits until a message that coh_receive would take is there, and describes it in *message. The
 * next matching receive takes it, whichever thread makes that call. Fails where that receive would.
 */
COH_API coh_status coh_probe_wait(coh_team *team, int from, int tag, coh_message *message);

/* A send, a receive or a collective under way. */
typedef struct coh_request coh_request;

/* Start a send or a receive, and return at once. Until the request is done, data to be sent must
 * not change, and memory to receive into must not be used. */
COH_API coh_status coh_send_start(coh_team *team, int to, int tag, const void *data, size_t bytes,
                                  coh_request **request);
COH_API coh_status coh_receive_start(coh_team *team, int from, int tag, void *data, size_t room,
                                     coh_request **request);

/* Waits for the request, frees it and sets *request to NULL. The status is the operation's, and
 * *got as coh_receive sets it. A NULL request is done: COH_OK. */
COH_API coh_status coh_request_wait(coh_request **request, coh_message *got);

/* Never waits. If the request is done, *done is 1 and all is as after coh_request_wait; else *done
 * is 0. A NULL request is done. */
COH_API coh_status coh_request_test(coh_request **request, int *done, coh_message *got);

/* Waits for one of `count` requests, NULL ones left out, which is freed; *index says which. With
 * none left *index is `count`. */
COH_API coh_status coh_request_wait_any(coh_request **requests, size_t count, size_t *index,
                                        coh_message *got);

/*
 * Waits for all of `count` requests, NULL ones left out, frees them and sets them to NULL; got[i]
 * (`got` may be NULL) is what came by requests[i]. When some fail, all others are still waited for,
 * and the status and the error are those of the first of the array that failed.
 */
COH_API coh_status coh_request_wait_all(coh_request **requests, size_t count, coh_message *got);

/* ---- 16. Locks ------------------------------------------------------------------------- */

/* A lock is a 64-bit word of symmetric memory, zero at first on all ranks. */
typedef uint64_t coh_lock;

/*
 * Takes the lock, in the order of asking. Completes nothing by itself; coh_lock_clear completes
 * what this rank issued before. When a rank that holds the lock or waits for it dies, the lock is
 * dead: every rank that waits, or asks later, gets COH_PEER_LOST naming the dead one. A rank that
 * is found stalled or past COHORT_TIMEOUT kills the lock too, with COH_STALLED or COH_TIMED_OUT.
 */
COH_API coh_status coh_lock_set(coh_world *world, coh_lock *lock);

/* Takes the lock if it is free; *taken says whether. Does not wait for the holder. */
COH_API coh_status coh_lock_test(coh_world *world, coh_lock *lock, int *taken);

/* Completes what this rank issued, then passes the lock to the next rank that asked. If something
 * cannot be completed, the lock is passed on all the same and the call returns that error.
 * COH_INVALID_ARGUMENT when this rank does not hold the lock. */
COH_API coh_status coh_lock_clear(coh_world *world, coh_lock *lock);

/* ---- 17. Collectives ------------------------------------------------------------------- */

/* A header of its own, which this one ends with: cohort-collectives.h. */

/* ---- 18. Registered memory ------------------------------------------------------------- */

/*
 * Makes `bytes` of existing memory at `base`, whole pages of private memory of this process (a
 * program's variables, a mapping of its own), symmetric: from then on its addresses are taken
 * wherever a symmetric pointer is, and name the other ranks' memory at the same distance from their
 * base. Collective, with equal sizes; the addresses may differ. The contents stay. They are moved
 * into the heap, which grows by as much, and the pages become a view of it; so no other thread may
 * write to the memory during the call, nor a message or collective be under way from or to it. A
 * child made by fork(2) gets a private copy. The memory is private again, with its contents, after
 * coh_unregister or coh_finalize. COH_LIMIT beyond 8 ranges.
 *
 * COH_UNSUPPORTED for ranks that are threads of one process, which have one copy of it between
 * them, and with an engine whose heap is not shared memory.
 */
COH_API coh_status coh_register(coh_world *world, void *base, size_t bytes);

/*
 * Makes memory ready for a coh_register of exactly this range in a later world, which then copies
 * nothing: no store that another thread makes to it while the rank joins or leaves is lost. To be
 * called while the process has no world and a single thread (COH_BUSY otherwise), by all ranks with
 * the same sizes in the same order; where they differ coh_register copies as without it. The memory
 * becomes a view of a file that the heap of each world of this process, one at a time, begins with,
 * and takes no more memory than before. It stays prepared until the process ends; a child made by
 * fork(2) gets a private copy. COH_LIMIT beyond 8 ranges.
 */
COH_API coh_status coh_prepare(void *base, size_t bytes);

/* Undoes coh_register of the memory that begins at `base`. No message or collective may be using
 * it. Collective; begins with a barrier. */
COH_API coh_status coh_unregister(coh_world *world, void *base);

/* ---- 19. Further heaps ----------------------------------------------------------------- */

/*
 * A symmetric heap. A world has one of its own, number 0, which coh_malloc allocates from; others are
 * made by coh_heap_create. A pointer into any of them is a symmetric pointer: put, get, atomics, signals,
 * waits, locks, messages, collectives, coh_ptr, coh_free and coh_realloc take it, also together
 * with pointers into others. An allocation is freed, and grows, in the heap that it is in.
 */
typedef struct coh_heap coh_heap;

/* What a heap is made of. */
typedef enum coh_heap_kind {
    COH_HEAP_HOST = 0, /* memory of the host */
    COH_HEAP_CUDA = 1  /* of a card: cohort-cuda.h */
} coh_heap_kind;

/* Start from COH_HEAP_OPTIONS_INIT. */
typedef struct coh_heap_options {
    size_t size; /* sizeof(coh_heap_options), so that the struct can grow */
    coh_heap_kind kind;
    uint64_t
        bytes;  /* most that it can grow to on each rank, at most 2^47; 0: as the world's own, or
                     * all that the card has */
    int device; /* of kind cuda: the card's number on this host, from 0; -1: one that fits, which
                     * is coh_local_rank modulo the cards. Ranks may differ in it. A rank has one card:
                     * that of its first such heap */
} coh_heap_options;

#define COH_HEAP_OPTIONS_INIT                          \
    {                                                  \
        sizeof(coh_heap_options), COH_HEAP_HOST, 0, -1 \
    }

/*
 * Makes a heap. Collective, with equal options (COH_MISMATCH names both); `options` may be NULL. When one
 * rank cannot, all fail and nothing is made. Memory is reserved, and taken when it is allocated.
 * COH_LIMIT beyond 63 heaps of a world, its own among them. COH_UNSUPPORTED for driven ranks, and with
 * an engine that has no one-sided memory.
 */
COH_API coh_status coh_heap_create(coh_world *world, const coh_heap_options *options,
                                   coh_heap **heap);

/*
 * Frees the heap and all that is allocated in it. Collective; begins by completing all
 * contexts of all ranks. NULL does nothing; the world's own is refused. Heaps that are
 * left are freed by coh_finalize. The number, and the handle, may serve a later heap.
 */
COH_API coh_status coh_heap_destroy(coh_heap *heap);

/* The world's own heap. NULL when `world` is not open, or its engine has no one-sided memory. */
COH_API coh_heap *coh_heap_default(coh_world *world);

/* The number that views, arrays and messages know the heap by: 0, the world's own, to 62. The same on all
 * ranks. -1 for NULL, for a destroyed heap and after coh_finalize. */
COH_API int coh_heap_number(const coh_heap *heap);

/* Each does in `heap` what the call without `heap` in its name does in the world's own: collective, by all
 * ranks on the same heap. */
COH_API coh_status coh_heap_malloc(coh_heap *heap, size_t bytes, void **pointer);
COH_API coh_status coh_heap_calloc(coh_heap *heap, size_t count, size_t size, void **pointer);
COH_API coh_status coh_heap_align(coh_heap *heap, size_t alignment, size_t bytes, void **pointer);
COH_API coh_status coh_heap_array_malloc(coh_heap *heap, coh_dtype dtype, size_t count,
                                         coh_array *array, void **pointer);

/* Fills `stats` for this heap, as coh_heap_query does for the world's own. */
COH_API coh_status coh_heap_usage(coh_heap *heap, coh_heap_stats *stats);

#ifdef __cplusplus
}
#endif

#include <cohort-collectives.h>

#endif /* COHORT_H */
