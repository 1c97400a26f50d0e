/*
 * cohort-cuda.h - symmetric memory on a card, and operations in the order of a CUDA stream.
 *
 * It compiles without CUDA's headers, and libcohort links nothing of CUDA: the driver is opened when the
 * first heap on a card is made. Where there is none, that call is COH_NOT_AVAILABLE with the reason.
 *
 *   1. Heaps on a card     coh_heap_create of kind COH_HEAP_CUDA (cohort.h, group 19)
 *   2. Cards               what this host has
 *   3. Put and get         one-sided operations on a stream
 *   4. Signals and waits   words of device memory, in the order of a stream
 *   5. Barriers            of a team, on a stream
 *   6. Collectives         of a team, on a stream
 *   7. Failure             what became of operations that were enqueued
 *
 * Conventions, beside those at the head of cohort.h:
 *   - A call with a stream checks its arguments, enqueues, and returns. The operation takes place in the
 *     order of the stream, after what was enqueued before, and what is enqueued later sees its effects.
 *     Buffers may be used again by later work on the same stream.
 *   - A stream belongs to the card that the rank's heaps are on. NULL is the default stream of the
 *     card's primary context, in which Cohort works; a stream of another card or context is
 *     COH_INVALID_ARGUMENT. So is NULL for what waits for other ranks where those are threads of this process
 *     (COH_CUDA_THREADS): they have that stream in common.
 *   - Local buffers are memory of the card, in a heap of it or private (cuMemAlloc and the like), or pinned
 *     memory of the host. Pageable memory of the host is COH_INVALID_ARGUMENT, as the stream would
 *     wait for it.
 *   - Operations can be captured into a CUDA graph (cuStreamBeginCapture) and replayed any number of times,
 *     by all ranks equally often and in the same order. COH_UNSUPPORTED where several processes share a
 *     card without MPS, and between hosts, where the host counts what it enqueues.
 *   - Operations of one team are carried out in the order of the calls, whatever streams they are on: one on
 *     another stream than the last is made to wait for it, so the last one's stream, captured or not, must
 *     still be there then. While a stream is captured with operations of a team, these must all be on that
 *     one: COH_UNSUPPORTED on another.
 *   - Host forms (coh_put, coh_get, atomics, signals, coh_all_reduce and the other collectives) take
 *     pointers into device memory too. They are not ordered with any stream: synchronize first.
 */
#ifndef COHORT_CUDA_H
#define COHORT_CUDA_H

#include <cohort.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CUstream and cudaStream_t are this type. */
struct CUstream_st;
typedef struct CUstream_st *coh_cuda_stream;

/* ---- 2. Cards -------------------------------------------------------------------------- */

/* How ranks that have heaps on the same card get along. */
typedef enum coh_cuda_sharing {
    COH_CUDA_ALONE = 0,   /* one rank has the card */
    COH_CUDA_THREADS = 1, /* threads of one process: kernels run side by side */
    COH_CUDA_MPS = 2,     /* processes under NVIDIA's Multi-Process Service: side by side */
    COH_CUDA_TURNS = 3 /* processes without it: they take turns, each switch costs some 150 us; no
                           * capture. Start nvidia-cuda-mps-control -d */
} coh_cuda_sharing;

typedef struct coh_cuda_card {
    size_t size; /* set by the caller: sizeof(coh_cuda_card) */
    char name[64];
    int major, minor;    /* compute capability */
    int multiprocessors; /* of the card */
    uint64_t memory;     /* bytes of the card */
    int driver;          /* version of the CUDA driver interface, 12080 is 12.8 */
    int mps;             /* not 0: contexts on it are shared by MPS */
} coh_cuda_card;

/* How many cards there are; COH_NOT_AVAILABLE, with the reason, where CUDA cannot be used here. */
COH_API coh_status coh_cuda_count(int *count);

/* Fills `card` for card `device`, from 0; COH_INVALID_ARGUMENT where there is no such card. */
COH_API coh_status coh_cuda_query(int device, coh_cuda_card *card);

/* The card that the world's device heaps are on, and how its ranks share it; -1: it has none yet. */
COH_API coh_status coh_cuda_device(coh_world *world, int *device, coh_cuda_sharing *sharing);

/* ---- 3. Put and get -------------------------------------------------------------------- */

/* Copies `bytes` from `source` to rank `rank`'s copy of the symmetric `target`, which is in a heap
 * on a card. It is there when the operation is over on the stream, and visible to the other rank
 * after a signal, a barrier or coh_cuda_quiet that follows on this stream. */
COH_API coh_status coh_cuda_put(coh_world *world, void *target, const void *source, size_t bytes,
                                int rank, coh_cuda_stream stream);

/* Copies `bytes` from rank `rank`'s copy of the symmetric `source` to `target`. */
COH_API coh_status coh_cuda_get(coh_world *world, void *target, const void *source, size_t bytes,
                                int rank, coh_cuda_stream stream);

/* `count` blocks of `block` bytes, which begin at regular distances: as coh_put_strided and
 * coh_get_strided. */
COH_API coh_status coh_cuda_put_strided(coh_world *world, void *target, size_t target_stride,
                                        const void *source, size_t source_stride, size_t block,
                                        size_t count, int rank, coh_cuda_stream stream);
COH_API coh_status coh_cuda_get_strided(coh_world *world, void *target, size_t target_stride,
                                        const void *source, size_t source_stride, size_t block,
                                        size_t count, int rank, coh_cuda_stream stream);

/* Orders this rank's puts on the stream, for each target rank: those before are seen before those after. */
COH_API coh_status coh_cuda_fence(coh_world *world, coh_cuda_stream stream);

/* Completes what this rank put on the stream: it is at its targets, for every rank to see. */
COH_API coh_status coh_cuda_quiet(coh_world *world, coh_cuda_stream stream);

/* ---- 4. Signals, atomics and waits ----------------------------------------------------- */

/* Puts, then sets or adds to rank `rank`'s copy of the 64-bit symmetric `signal`, in the same or another
 * heap on a card: a rank that sees the signal sees the data. Zero bytes still signal. */
COH_API coh_status coh_cuda_put_signal(coh_world *world, void *target, const void *source,
                                       size_t bytes, uint64_t *signal, uint64_t value,
                                       coh_signal_op op, int rank, coh_cuda_stream stream);

/* Sets or adds to a signal; what this rank put on the stream before is seen before it. */
COH_API coh_status coh_cuda_signal(coh_world *world, uint64_t *signal, uint64_t value,
                                   coh_signal_op op, int rank, coh_cuda_stream stream);

/* The stream goes on when `*word compare value` holds, for a 64-bit word of this rank's own copy in a
 * heap on a card, written by rank `from` or COH_ANY_RANK. What was put before the signal is visible to
 * what follows. When `from` is lost the stream goes on, and coh_cuda_status tells. Where processes take turns on the card
 * a stream waits for COH_EQ, and for COH_GE and COH_GT of values below 2^63 and words less than 2^63 above them; the
 * rest is COH_UNSUPPORTED. */
COH_API coh_status coh_cuda_wait_until(coh_world *world, const uint64_t *word, coh_compare compare,
                                       uint64_t value, int from, coh_cuda_stream stream);

/* coh_atomic on a stream, for words in a heap on a card. `result` is NULL, or memory of the card for the
 * word as it was before. COMPARE_SWAP takes `expected`; for the others it is NULL. Values are read
 * from the host during the call. */
COH_API coh_status coh_cuda_atomic(coh_world *world, coh_atomic_op op, coh_dtype dtype,
                                   void *target, const void *operand, const void *expected,
                                   void *result, int rank, coh_cuda_stream stream);

/* ---- 5. Barriers ----------------------------------------------------------------------- */

/* Waits on the stream until all members' streams have arrived. */
COH_API coh_status coh_cuda_sync(coh_team *team, coh_cuda_stream stream);

/* coh_cuda_quiet, then coh_cuda_sync: what any member put on its stream before is everywhere. */
COH_API coh_status coh_cuda_barrier(coh_team *team, coh_cuda_stream stream);

/* ---- 6. Collectives -------------------------------------------------------------------- */

/*
 * Enqueues the collective that is described (cohort-collectives.h): any kind, of any type and operation,
 * with counts, on the stream. Source and target are memory of the card. Either all members'
 * sources are in heaps on the card or all are private, and so for targets: members that differ are told
 * COH_MISMATCH. What is symmetric is read in place; what is private is staged. Results have the same
 * bits on all members, in every run, and those that the CPU's collectives have with
 * COHORT_DETERMINISTIC=1.
 *
 * COH_UNSUPPORTED: a reduction by a function of the caller's (`how`), and parts and strides of
 * coh_all_to_all_v and _strided, which the host forms have.
 *
 * Members that disagree in kind, type, operation, count or root are told COH_MISMATCH by
 * coh_cuda_status and by their next calls; nothing is written from a member that differed.
 */
COH_API coh_status coh_cuda_collective(const coh_collective *collective, coh_cuda_stream stream);

/* The common ones by name, as the calls without `cuda` in their name (cohort-collectives.h). */
COH_API coh_status coh_cuda_all_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                       const void *source, void *target, size_t count,
                                       coh_cuda_stream stream);
COH_API coh_status coh_cuda_reduce_scatter(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                           const void *source, void *target, size_t count,
                                           coh_cuda_stream stream);
COH_API coh_status coh_cuda_all_gather(coh_team *team, coh_dtype dtype, const void *source,
                                       void *target, size_t count, coh_cuda_stream stream);
COH_API coh_status coh_cuda_broadcast(coh_team *team, coh_dtype dtype, const void *source,
                                      void *target, size_t count, int root, coh_cuda_stream stream);
COH_API coh_status coh_cuda_all_to_all(coh_team *team, coh_dtype dtype, const void *source,
                                       void *target, size_t count, coh_cuda_stream stream);

/* ---- 7. Failure ------------------------------------------------------------------------ */

/*
 * What became of the operations that this rank enqueued, as far as it is known now: COH_OK, or the first
 * that failed. COH_PEER_LOST names the rank, COH_MISMATCH both sides' values;
 * COH_TRANSPORT has the driver's words where the card or a kernel of the program failed. Does not
 * wait: synchronize the stream first to hear of all. A failure stays, and later calls with a
 * stream on the teams and ranks concerned return it too. A stream never hangs because of it: it goes
 * on, with the targets undefined.
 */
COH_API coh_status coh_cuda_status(coh_world *world);

#ifdef __cplusplus
}
#endif

#endif /* COHORT_CUDA_H */
