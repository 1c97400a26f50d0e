/*
 * bench/gpu.h - `cohort bench gpu`: operations on memory of a card.
 *
 *   bench/gpu.c          the command line, the jobs and the report
 *   bench/gpu_worker.c   the ranks: what is measured with which sizes
 *   bench/gpu_cases.c    the benchmarks, as rows: Cohort's calls, the card's copy, NVSHMEM's calls
 *   bench/gpu_rounds.c   rounds on a stream, in a captured graph and by calls of the host
 *   bench/gpu_nvshmem.c  NVSHMEM, opened at run time
 *
 * All contenders are in the same processes and take turns, round by round. A round is a number of operations
 * between two events of the stream.
 */
#ifndef COHI_TOOLS_BENCH_GPU_H
#define COHI_TOOLS_BENCH_GPU_H

#include "bench/bench.h"
#include "card.h"

#include <cohort-cuda.h>

enum { COHI_GPU_SIZES = 40, COHI_GPU_RANK_COUNTS = 8 };

/* How operations are issued. */
typedef enum cohi_gpu_way {
    COHI_GPU_STREAM,
    COHI_GPU_GRAPH,
    COHI_GPU_HOST,
    COHI_GPU_WAYS
} cohi_gpu_way;

extern const char *const cohi_gpu_way_names[COHI_GPU_WAYS];

typedef struct cohi_gpu_options {
    unsigned chosen; /* one bit for each row; 0: all */
    unsigned ways;   /* one bit for each way; 0: all */
    uint64_t ranks[COHI_GPU_RANK_COUNTS];
    size_t rank_count;
    uint64_t sizes[COHI_GPU_SIZES];
    size_t size_count;
    const char *size_text;
    uint64_t rounds;
    const char *engine;
    int no_peers;
    int json, csv, quick;
    const char *html;
    int worker; /* 1: this process is a rank, or all of them */
} cohi_gpu_options;

/* The command. */
int cohi_bench_gpu(int argc, char **argv);

/* ---- a rank (bench/gpu_worker.c) ---- */

typedef struct cohi_gpu_nvshmem cohi_gpu_nvshmem;

typedef struct cohi_gpu_rank {
    coh_world *world;
    coh_team *team;
    int rank, size, device;
    coh_cuda_sharing sharing;
    const cohi_card_driver *driver;
    coh_cuda_stream stream;
    void *events[2];
    uint64_t rounds;
    cohi_gpu_nvshmem *nvshmem; /* NULL: it is not measured */

    /* Of the point at hand. */
    uint64_t bytes;
    coh_dtype dtype;
    char *source, *target; /* symmetric, on the card */
    uint64_t *signal;
    uint64_t signals; /* sent so far */
    char *from, *to;  /* private, for the card's copy */
    uint64_t copied;  /* bytes of the card's copy that stands for the limit */
    char *peer_source, *peer_target;
    uint64_t *peer_signal;
    uint64_t peer_signals;
} cohi_gpu_rank;

/* Is one rank, or all of them as threads; writes a line of JSON for each result. The exit status. */
int cohi_gpu_worker(const cohi_gpu_options *options);

/* ---- benchmarks (bench/gpu_cases.c) ---- */

typedef coh_status cohi_gpu_enqueue(cohi_gpu_rank *self);

typedef struct cohi_gpu_case {
    const char *name, *what, *limit;
    int least_ranks;
    int sized;
    coh_dtype dtype;
    int pair;        /* ranks 0 and 1 alone do something; others wait */
    int round_trips; /* an operation is there and back: half of it is shown. It is not captured: its
                        values differ each time */
    /* Bytes that a copy on the card would have to move in the same time, for `bytes` and `size` ranks. */
    double (*copies)(double bytes, double size);
    cohi_gpu_enqueue *ours, *host, *peer;     /* host, peer: NULL where there is none */
    coh_status (*check)(cohi_gpu_rank *self); /* after one call of ours; NULL: none */
} cohi_gpu_case;

/* By index from 0; NULL past the last. */
const cohi_gpu_case *cohi_gpu_case_at(size_t index);

/* The card's copy of self->copied bytes, or of a part of it (see cohi_gpu_copy_share). */
coh_status cohi_gpu_copy(cohi_gpu_rank *self);

/* How many times the time of cohi_gpu_copy the whole copy takes: large ones are measured by a part. */
double cohi_gpu_copy_share(const cohi_gpu_rank *self);

enum { COHI_GPU_COPY_MOST = 1 << 30 }; /* bytes of that part */

/* ---- rounds (bench/gpu_rounds.c) ---- */

/* Measures the row in that way and fills the result on rank 0, the peer's figure (0: none) included. Collective. */
coh_status cohi_gpu_measure(cohi_gpu_rank *self, const cohi_gpu_case *row, cohi_gpu_way way,
                            cohi_bench_result *result, cohi_bench_figure *peer);

/* ---- NVSHMEM (bench/gpu_nvshmem.c) ---- */

/* The functions that are used. Those of collectives return 0, or an error. */
struct cohi_gpu_nvshmem {
    void *(*align)(size_t alignment, size_t bytes);
    void (*free)(void *memory);
    void (*put)(void *target, const void *source, size_t bytes, int rank, coh_cuda_stream stream);
    void (*get)(void *target, const void *source, size_t bytes, int rank, coh_cuda_stream stream);
    void (*signal)(uint64_t *word, uint64_t value, int op, int rank, coh_cuda_stream stream);
    void (*wait)(uint64_t *word, int compare, uint64_t value, coh_cuda_stream stream);
    void (*barrier)(coh_cuda_stream stream);
    int (*sum_f32)(int team, void *target, const void *source, size_t count,
                   coh_cuda_stream stream);
    int (*sum_bf16)(int team, void *target, const void *source, size_t count,
                    coh_cuda_stream stream);
    int (*reduce_scatter)(int team, void *target, const void *source, size_t count,
                          coh_cuda_stream stream);
    int (*all_gather)(int team, void *target, const void *source, size_t count,
                      coh_cuda_stream stream);
    int (*broadcast)(int team, void *target, const void *source, size_t count, int root,
                     coh_cuda_stream stream);
    int (*all_to_all)(int team, void *target, const void *source, size_t count,
                      coh_cuda_stream stream);
    void (*finalize)(void);
    char version[64];
};

/* Whether the library can be opened; if not, why. To be called before CUDA is: NVSHMEM takes several ranks on one card only where
 * MPS gives each its share of the multiprocessors, which is set here for `ranks` of them. */
int cohi_gpu_nvshmem_prepare(int ranks, char *why, size_t room);

/*
 * Opens the library on all ranks and joins them, with a heap of `heap` bytes; 0: the world's engine has done
 * so, and will end it. NULL on all of them, and the reason in `why`, where one cannot. Collective.
 */
cohi_gpu_nvshmem *cohi_gpu_nvshmem_open(coh_world *world, uint64_t heap, char *why, size_t room);
void cohi_gpu_nvshmem_close(cohi_gpu_nvshmem *nvshmem);

#endif
