/*
 * shared.h - what the host and the kernels of this engine both know: where things lie in a rank's control
 * segment and in its status page, and what a kernel is told. Plain C that nvcc reads as C++.
 *
 * The control segment is memory of the card that every rank of the host maps:
 *
 *     bases     [segment][rank]        where this rank's kernels find a segment of a rank
 *     marks     [team][block]          how far each block of this rank's kernels has come in a team
 *     broken    [team]                 the life of the team that this rank has given up
 *     values    [team][rank]           of ranks that take turns: written by cuStreamWriteValue64
 *     posts     [team][block][rank]    written by that rank: its flag, and where its buffers are
 *     scratch   [team][half][block]    what peers read of this rank that is not symmetric
 *
 * A flag is 16 bytes that are stored at once: the tick, the life of the team, the fingerprint of the call. A
 * block of a kernel counts one tick each time it meets the same block of all members. Ticks are in memory of
 * the card and go on from one kernel to the next, so that a kernel in a graph can be replayed. The life tells a
 * team from an earlier one of its number; its first tick is 1.
 *
 * The scratch has two halves, which alternate with the ticks. What a block stores before tick t it stores to
 * half t % 2, which peers last read before they came to tick t - 1, which this block has seen.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_SHARED_H
#define COHI_ENGINE_CUDA_KERNELS_SHARED_H

#include <stdint.h>

enum {
    COHI_CUDA_TEAMS = 64,
    COHI_CUDA_MEMBERS = 64, /* of a team on one host's cards */
    COHI_CUDA_SEGMENTS = 64,
    COHI_CUDA_BLOCK_THREADS =
        512, /* of a block; one block a multiprocessor reaches the memory's bandwidth */
    COHI_CUDA_LOST_WORDS = 64
};

typedef struct cohi_cuda_flag {
    uint32_t tick, life;
    uint64_t fingerprint;
} cohi_cuda_flag;

/* What a member tells another at the beginning of a call. */
typedef struct cohi_cuda_post {
    cohi_cuda_flag flag;
    uint64_t source, target; /* COHI_CUDA_PLACE of its buffers, where they are symmetric */
    double scale;            /* of its source */
    uint64_t buffers;        /* COHI_CUDA_IN_PLACE and so on */
} cohi_cuda_post;

/* Of a member's buffers. One that is not there, or empty, counts as symmetric. */
enum { COHI_CUDA_IN_PLACE = 1, COHI_CUDA_SOURCE_SHARED = 2, COHI_CUDA_TARGET_SHARED = 4 };

/* A segment's number and an offset in it. */
#define COHI_CUDA_PLACE(segment, offset) ((uint64_t)(segment) << 48 | (uint64_t)(offset))

typedef struct cohi_cuda_mark {
    uint32_t tick, life;
} cohi_cuda_mark;

/* Where the parts of a control segment begin. The same for all ranks of a world. */
typedef struct cohi_cuda_layout {
    uint32_t ranks, blocks; /* `blocks`: the most that a kernel has */
    uint64_t bases, marks, broken, values, posts;
} cohi_cuda_layout;

/* ---- the status page: memory of the host ---- */

typedef enum cohi_cuda_trouble {
    COHI_CUDA_FINE = 0,
    COHI_CUDA_MISMATCH = 1,
    COHI_CUDA_LOST = 2 /* a rank that is lost was waited for */
} cohi_cuda_trouble;

/* Written once by the first block that finds it; `trouble` last. */
typedef struct cohi_cuda_report {
    uint64_t mine, theirs;
    uint32_t tick;
    int32_t rank;
    uint32_t life;
    uint32_t trouble;
} cohi_cuda_report;

/* Whom a kernel has waited for, for so long that it told the host. */
typedef struct cohi_cuda_waiting {
    uint32_t tick;
    int32_t rank; /* -1: it goes on */
} cohi_cuda_waiting;

typedef struct cohi_cuda_status {
    uint64_t lost[COHI_CUDA_LOST_WORDS];           /* a bit for each rank; written by the host */
    cohi_cuda_report reports[COHI_CUDA_TEAMS + 1]; /* the last: of waits for a word */
    cohi_cuda_waiting waiting[COHI_CUDA_TEAMS + 1];
} cohi_cuda_status;

/* ---- a call ---- */

/* How the data go. */
typedef enum cohi_cuda_way {
    COHI_CUDA_DIRECT =
        0, /* from and to symmetric memory, between two ticks; if the posts say that some is
                           * private, or in the way, by the scratch */
    COHI_CUDA_STAGED = 1, /* by the scratch, a tick for each piece of it */
    COHI_CUDA_SLICED =
        2 /* all_reduce by the scratch, where each member reduces a slice: two ticks */
} cohi_cuda_way;

/* What a launch does. Kernels of ranks that take turns do not wait, so that a call is several. */
typedef enum cohi_cuda_phase {
    COHI_CUDA_WHOLE = 0,
    COHI_CUDA_BEGIN = 1, /* posts, and stages the first piece */
    COHI_CUDA_GO_ON = 2  /* compares the posts; takes what was staged for `tick`; stages the next */
} cohi_cuda_phase;

typedef struct cohi_cuda_call {
    uint64_t
        control[COHI_CUDA_MEMBERS]; /* the members' control segments, as this rank reaches them */
    uint64_t counts[COHI_CUDA_MEMBERS]; /* elements of each member's block */
    uint64_t firsts[COHI_CUDA_MEMBERS]; /* and where it begins */
    /* Where this member's own source and target segments are of each member: mostly these are the ones that
     * the others name too. */
    uint64_t source_bases[COHI_CUDA_MEMBERS], target_bases[COHI_CUDA_MEMBERS];
    uint16_t ranks[COHI_CUDA_MEMBERS];
    cohi_cuda_layout layout;
    uint64_t scratch;      /* where the team's begins in a control segment */
    uint32_t scratch_each; /* bytes of it for a block and half: a multiple of 16 */
    uint32_t team, life;
    int32_t index, size, root;
    int32_t kind, op; /* coh_collective_kind, coh_reduce_op */
    uint32_t element; /* bytes */
    uint32_t way, phase;
    uint32_t tick;  /* of GO_ON: which one has passed */
    uint64_t step;  /* of GO_ON: the piece that is taken */
    uint64_t steps; /* pieces; 1 and more */
    uint64_t piece; /* elements of a block's part of a piece, of each of the source's blocks */
    uint64_t count; /* elements */
    uint64_t source, target;             /* this member's own */
    uint64_t source_place, target_place; /* where symmetric */
    uint64_t fingerprint;
    double scale;
    uint64_t
        neutral; /* bits of the element that the first member of a scan gets that leaves it out */
    uint64_t status;  /* the status page */
    uint32_t delay;   /* not 0: kernels are held up here and there, for tests; a seed */
    uint32_t buffers; /* as in the post */
} cohi_cuda_call;

/* A word that is waited for. */
typedef struct cohi_cuda_word {
    uint64_t word, value, status;
    int32_t compare; /* coh_compare */
    int32_t rank;    /* of who writes it; -1: any */
    int32_t ranks;   /* of the world */
} cohi_cuda_word;

/* A small put, and a signal behind it. */
typedef struct cohi_cuda_push {
    uint64_t target, source, bytes;
    uint64_t signal; /* 0: none */
    uint64_t value;
    uint32_t add;
} cohi_cuda_push;

/* Blocks at regular distances. */
typedef struct cohi_cuda_blocks {
    uint64_t target, source, target_by, source_by, block, count;
} cohi_cuda_blocks;

#endif
