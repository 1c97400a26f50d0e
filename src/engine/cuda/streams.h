/*
 * streams.h - what the files of stream operations share: kernels, the layout of control segments, teams, and
 * the caller's streams that have work of this engine.
 */
#ifndef COHI_ENGINE_CUDA_STREAMS_H
#define COHI_ENGINE_CUDA_STREAMS_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/shared.h"

enum { COHI_CUDA_TYPES = COH_BOOL + 1, COHI_CUDA_STREAMS_MAX = 64 };

/* A stream of the caller's. The event is behind the last operation on it; marks are behind earlier ones, where it is
 * held back (chain.c). */
typedef struct cohi_cuda_tail {
    uint64_t id; /* 0: free */
    CUevent event, marks[2];
    unsigned since; /* operations since the last mark */
    unsigned next;  /* the mark that is set next */
} cohi_cuda_tail;

/* A word that a stream waits for where ranks take turns. */
typedef struct cohi_cuda_awaited {
    CUdeviceptr word;
    uint64_t value;
    int rank; /* of who writes it, or -1: any */
    int tail; /* behind which it is over */
} cohi_cuda_awaited;

/* What this rank knows of the team of a number. */
typedef struct cohi_cuda_team {
    uint32_t life;
    int tail;         /* where its last operation was, or -1; where streams are counted */
    CUstream last;    /* elsewhere: the stream itself, */
    uint64_t last_id; /* and its number; 0: there was none */
    CUevent event;    /* for another stream to wait for that; NULL: not needed yet */
    bool captured;    /* an operation of it was captured, */
    CUstream capture; /* from this stream */
    uint64_t ticks;   /* of ranks that take turns */
} cohi_cuda_team;

/* Forms of one kernel: for every call, or for a few members and one way. Those may be missing, all. */
typedef struct cohi_cuda_kernels {
    CUfunction whole, packed, direct, staged;
} cohi_cuda_kernels;

/* What the status page says of a team's waits, unchanged since then. */
typedef struct cohi_cuda_seen {
    uint64_t word, since_ns;
} cohi_cuda_seen;

struct cohi_cuda_streams {
    pthread_mutex_t lock; /* of all that changes */
    CUfunction wait, push, strided;
    cohi_cuda_kernels copy;
    cohi_cuda_kernels any[COHI_CUDA_TYPES]; /* reductions, by type */
    cohi_cuda_kernels sum[COHI_CUDA_TYPES]; /* made for sums, or NULL */
    bool laid_out;
    cohi_cuda_layout layout;
    uint64_t scratch[COHI_CUDA_TEAMS];      /* where it begins in a control segment */
    uint32_t scratch_each[COHI_CUDA_TEAMS]; /* bytes for a block and half */
    uint64_t packets[COHI_CUDA_TEAMS];      /* likewise, of the packets */
    uint32_t packets_each[COHI_CUDA_TEAMS];
    CUstream own;                    /* for tables, and words of lost ranks */
    CUstream calls[COHI_CUDA_TEAMS]; /* for calls without a stream; NULL: none yet */
    uint64_t *bases;                 /* [segment][rank], as the card has them */
    unsigned known;                  /* endpoint->attached of that */
    uint32_t delay;                  /* for tests: see cohi_cuda_call */
    cohi_cuda_team teams[COHI_CUDA_TEAMS];
    cohi_cuda_tail tails[COHI_CUDA_STREAMS_MAX];
    cohi_cuda_seen seen[COHI_CUDA_TEAMS + 1]; /* of the one thread that asks */
    cohi_cuda_awaited *awaited;
    size_t awaited_count, awaited_room;
};

/* A stream of the caller's while an operation is enqueued on it. */
typedef struct cohi_cuda_lineup {
    CUstream stream;
    uint64_t id; /* of one that is not captured, for what may wait; else 0 */
    int tail;    /* likewise */
    bool captured;
    bool entered; /* the context was not current before */
} cohi_cuda_lineup;

static inline cohi_cuda_status *cohi_cuda_status_of(const cohi_endpoint *endpoint)
{
    return endpoint->status;
}

/* Between these the context is current and the lock is held. Begin: COH_INVALID_ARGUMENT for a stream of
 * another context. `waits`: the operation may wait for other ranks. */
coh_status cohi_cuda_lineup_begin(cohi_endpoint *endpoint, cohi_stream stream, bool waits,
                                  cohi_cuda_lineup *lineup);
coh_status cohi_cuda_lineup_end(cohi_endpoint *endpoint, cohi_cuda_lineup *lineup,
                                coh_status status);

/* The team's next operation is on this stream: makes it wait for the last, if that was on another. */
coh_status cohi_cuda_chain(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                           const cohi_stream_team *team, cohi_cuda_team **mine);

/* An operation that may wait is enqueued; of a team, or NULL. */
coh_status cohi_cuda_chain_on(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                              cohi_cuda_team *team);

/* Forgets all streams. */
void cohi_cuda_tails_close(cohi_endpoint *endpoint);

/* Of ranks that take turns: the stream waits for a word of that rank's; ends such waits by writing the word. */
coh_status cohi_cuda_note_wait(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                               CUdeviceptr word, uint64_t value, int rank);
void cohi_cuda_end_waits(cohi_endpoint *endpoint, int rank);

/* Multiprocessors of its card that are that rank's. */
int cohi_cuda_share_of(const cohi_endpoint *endpoint, int rank);

/* Blocks that a kernel of that team may have; the same on all members. */
unsigned cohi_cuda_blocks_of(const cohi_endpoint *endpoint, unsigned team);

/* COH_INVALID_ARGUMENT unless the card can load and store it. */
coh_status cohi_cuda_check_buffer(cohi_endpoint *endpoint, const char *what, const void *pointer);

coh_status cohi_cuda_launch(cohi_endpoint *endpoint, CUfunction kernel, unsigned blocks,
                            unsigned threads, CUstream stream, void *argument);

typedef struct cohi_cuda_grid {
    unsigned blocks, threads;
} cohi_cuda_grid;

/* Carries a call out where ranks take turns: kernels that do not wait, and values that streams wait for between them. */
coh_status cohi_cuda_run_in_turns(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                  CUfunction kernel, cohi_cuda_grid grid, cohi_cuda_call *told,
                                  cohi_cuda_team *team);

/* Whether several processes have the card without MPS: nothing may wait on it. */
static inline bool cohi_cuda_takes_turns(const cohi_endpoint *endpoint)
{
    return endpoint->sharing == COHI_CUDA_TURNS;
}

/* Whether it must be known at any time what is under way on which stream: of thread-ranks to count streams, of
 * ranks that take turns to end waits. It costs an event behind each operation. */
static inline bool cohi_cuda_keeps_tails(const cohi_endpoint *endpoint)
{
    return endpoint->sharing == COHI_CUDA_THREADS || endpoint->sharing == COHI_CUDA_TURNS;
}

/* A copy that is over when it returns. Nothing that waits is before it on its stream. */
CUresult cohi_cuda_write_now(cohi_endpoint *endpoint, CUdeviceptr target, const void *source,
                             size_t bytes);

/* What is written for a tick where ranks take turns. */
uint64_t cohi_cuda_value(uint32_t life, uint64_t tick);

/* The layout of control segments, and the table of addresses, are what they should be. */
coh_status cohi_cuda_streams_ready(cohi_endpoint *endpoint);

coh_status cohi_cuda_sync(cohi_endpoint *endpoint, cohi_stream stream, const cohi_stream_team *team,
                          uint64_t fingerprint);
coh_status cohi_cuda_collective(cohi_endpoint *endpoint, cohi_stream stream,
                                const cohi_stream_team *team, const cohi_stream_call *call);
coh_status cohi_cuda_run(cohi_endpoint *endpoint, const cohi_stream_team *team,
                         const cohi_stream_call *call, cohi_op *op);

#endif
