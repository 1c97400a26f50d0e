/*
 * soak.h - random operations of all ranks against a sequential oracle.
 *
 * A run is a sequence of phases. What each rank does in a phase follows from the seed, the phase
 * and the rank alone, so every rank knows what all others do. Within a phase no two operations on
 * one place depend on their order: puts go to places that the source has for itself, operations on
 * shared words commute, gets read what the phase before left. After it every rank applies the phase
 * to a model of all memories, and compares its own with it.
 *
 *   plan.c     the operations of a rank in a phase
 *   oracle.c   their effect on the model, one after the other
 *   perform.c  the same by Cohort, and what can be checked on the way
 *   groups.c   teams, messages, broadcasts and locks
 *   collectives.c  collectives, blocking and started
 *   soak.c     the ranks, the phases, the report
 */
#ifndef TEST_SOAK_H
#define TEST_SOAK_H

#include "harness/harness.h"

enum {
    SOAK_RANKS = 8,
    SOAK_WORDS = 8,   /* shared by all, of each type */
    SOAK_CHUNKS = 8,  /* of each source rank, one for each operation of a phase */
    SOAK_CHUNK = 600, /* bytes */
    SOAK_LANES = 3    /* the world's own context and two more */
};

/* One rank's symmetric memory. What a phase puts is in `data` of its parity. */
struct soak_heap {
    uint64_t words[SOAK_WORDS];
    uint32_t halves[SOAK_WORDS];
    uint64_t owned[SOAK_RANKS]; /* by the rank that writes it */
    uint64_t signals[SOAK_RANKS][SOAK_CHUNKS];
    uint64_t counted; /* under the lock */
    unsigned char data[2][SOAK_RANKS][SOAK_CHUNKS][SOAK_CHUNK];
};

/* X(constant, weight) */
#define SOAK_KINDS(X)      \
    X(SOAK_PUT, 4)         \
    X(SOAK_PUT_NBI, 4)     \
    X(SOAK_PUT_STRIDED, 3) \
    X(SOAK_SIGNAL, 3)      \
    X(SOAK_SIGNAL_NBI, 3)  \
    X(SOAK_GET, 3)         \
    X(SOAK_GET_NBI, 3)     \
    X(SOAK_GET_STRIDED, 2) \
    X(SOAK_CHANGE, 4)      \
    X(SOAK_CHANGE_HALF, 2) \
    X(SOAK_FETCH, 4)       \
    X(SOAK_SET_OWN, 2)     \
    X(SOAK_SWAP_OWN, 2)    \
    X(SOAK_COMPARE_OWN, 2)

typedef enum soak_kind {
#define SOAK_ENUM(constant, weight) constant,
    SOAK_KINDS(SOAK_ENUM)
#undef SOAK_ENUM
} soak_kind;

typedef struct soak_op {
    soak_kind kind;
    int to;       /* the rank whose memory it is about */
    int source;   /* of a get: whose chunk it reads there */
    size_t chunk; /* an operation's number in its phase, or the one it reads */
    size_t word;
    size_t at, bytes; /* in the chunk */
    size_t block, count, stride, other_stride;
    int lane;
    int adds;       /* a signal: adds, else sets; a comparison: holds, else not */
    uint64_t value; /* operand, or the pattern of the data */
} soak_op;

/* The run as one rank sees it. */
typedef struct soak_run {
    const char *engine;
    int rank, size;
    uint64_t seed, phase;
    coh_world *world;
    coh_context *contexts[SOAK_LANES]; /* [0] is NULL: the world's */
    struct soak_heap *heap;            /* NULL where the engine has no memory */
    coh_lock *lock;
    struct soak_heap *model; /* [size] */
    uint64_t operations;
} soak_run;

/* Says what is wrong, with the run's replay, and ends the process. */
_Noreturn void soak_fail(const soak_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same unless `status` is COH_OK. */
void soak_must(const soak_run *run, coh_status status, const char *what);

/* A generator for one purpose of this phase; `who` is a rank, or -1 for what all share. */
uint64_t soak_stream(const soak_run *run, const char *purpose, int who);

/* The operations of `rank` in this phase. */
void soak_plan(const soak_run *run, int rank, soak_op ops[SOAK_CHUNKS]);

/* What all ranks do to the shared word of that number in this phase; they commute. */
coh_atomic_op soak_change(const soak_run *run, size_t word);

/* The bytes that an operation carries; room for SOAK_CHUNK. */
void soak_fill(const soak_op *op, unsigned char *bytes);

/* Applies one rank's operation to the model. */
void soak_apply(struct soak_heap *model, const soak_run *run, int rank, const soak_op *op);

/* Copies blocks from one stride to another. */
void soak_copy(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride,
               size_t block, size_t count);

/* This rank's operations, and all that can be known before the next barrier. */
void soak_perform(soak_run *run);

/* Teams, messages, a broadcast and the lock. */
typedef struct soak_groups soak_groups;
soak_groups *soak_groups_open(soak_run *run);
void soak_groups_phase(soak_run *run, soak_groups *groups);
void soak_groups_close(soak_run *run, soak_groups *groups);

/* Collectives, on the team of `members` that is this rank's own, or NULL where it has none. What is
 * started may still be under way after the phase. */
typedef struct soak_collectives soak_collectives;
soak_collectives *soak_collectives_open(soak_run *run);
void soak_collectives_phase(soak_run *run, soak_collectives *collectives, coh_team *team,
                            int members);
void soak_collectives_close(soak_run *run, soak_collectives *collectives);

#endif
