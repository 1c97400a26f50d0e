/*
 * shared.h - what the host and the kernels of this engine both know: where things lie in a rank's control
 * segment and in its status page, and what a kernel is told. Plain C that nvcc reads as C++.
 *
 * The control segment is memory of the card that every rank of the host maps:
 *
 *     bases     [segment][rank]        where this rank's kernels find a segment of a rank
 *     marks     [team][block]          how far each block of this rank's kernels has come in a team
 *     broken    [team]                 the life of the team that this rank has given up, and COHI_CUDA_GIVEN_UP
 *     values    [team][rank]           of ranks that take turns: written by cuStreamWriteValue64
 *     posts     [team][block][rank]    written by that rank: its flag, and where its buffers are
 *     scratch   [team][half][block]    what peers read of this rank that is not symmetric
 *     packets   [team][half][block]    what peers store for this rank, of calls that are short
 *
 * A flag is 16 bytes that are stored at once: the tick, the life of the team, the fingerprint of the call. A
 * block of a kernel counts one tick each time it meets the same block of all members. A packet is 16 bytes that
 * are stored at once, too: 8 of data, and a tag of the tick, the team's life and the call, by which its reader
 * knows that it has come. So what goes by packets needs no fence and no flag that is stored behind it. Ticks are in memory of
 * the card and go on from one kernel to the next, so that a kernel in a graph can be replayed. The life tells a
 * team from an earlier one of its number; its first tick is 1.
 *
 * The scratch and the packets have two halves, which alternate with the ticks. What a block stores before tick t
 * it stores to half t % 2, which was last read before its reader came to tick t - 1, which this block has seen.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_SHARED_H
#define COHI_ENGINE_CUDA_KERNELS_SHARED_H

#include <stddef.h>
#include <stdint.h>

enum {
    COHI_CUDA_TEAMS = 64,
    COHI_CUDA_MEMBERS = 64, /* of a team on one host's cards */
    COHI_CUDA_FEW = 8,      /* members of a team whose kernels are told of so many alone */
    COHI_CUDA_SEGMENTS = 64,
    COHI_CUDA_BLOCK_THREADS =
        512, /* of a block; one block a multiprocessor reaches the memory's bandwidth */
    COHI_CUDA_LOST_WORDS = 64
};

typedef struct cohi_cuda_flag {
    uint32_t tick, life;
    uint64_t fingerprint;
} cohi_cuda_flag;

typedef struct cohi_cuda_packet {
    uint64_t data, tag;
} cohi_cuda_packet;

/* What a member tells another at the beginning of a call. All four parts are 16 bytes that are stored at once. */
typedef struct cohi_cuda_post {
    cohi_cuda_flag flag;
    cohi_cuda_packet source, target; /* COHI_CUDA_PLACE of its buffers, where they are symmetric */
    cohi_cuda_packet scale;          /* of its source, the bits of a double */
} cohi_cuda_post;

/* Of a member's buffers. One that is not there, or empty, counts as symmetric. */
enum { COHI_CUDA_IN_PLACE = 1, COHI_CUDA_SOURCE_SHARED = 2, COHI_CUDA_TARGET_SHARED = 4 };

/* A segment's number and an offset in it; in a post's source also what is said of the buffers. */
#define COHI_CUDA_PLACE(segment, offset)       ((uint64_t)(segment) << 48 | (uint64_t)(offset))
#define COHI_CUDA_PLACE_SEGMENT(place)         ((place) >> 48 & 0xff)
#define COHI_CUDA_PLACE_OFFSET(place)          ((place) & ((UINT64_C(1) << 48) - 1))
#define COHI_CUDA_PLACE_BUFFERS(place)         ((uint32_t)((place) >> 56))
#define COHI_CUDA_WITH_BUFFERS(place, buffers) ((place) | (uint64_t)(buffers) << 56)

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
    COHI_CUDA_LOST = 2,   /* a rank that is lost was waited for */
    COHI_CUDA_REFUSED = 3 /* a rank could not enqueue its part */
} cohi_cuda_trouble;

/* The upper half of a word of `broken`: this rank's kernels have found a reason, which is reported; or a member has
 * written there that it will not come, COHI_CUDA_REFUSED_BY and its rank. */
enum { COHI_CUDA_GIVEN_UP = 1, COHI_CUDA_REFUSED_BY = 2 };

/* Written once by the first block that finds it, or by the host of a rank that refuses; `trouble` last. */
typedef struct cohi_cuda_report {
    uint64_t mine, theirs;
    uint32_t tick;
    int32_t rank;
    uint32_t life;
    uint32_t trouble;
} cohi_cuda_report;

/* Whom a kernel has waited for, for so long that it told the host; also one that is replayed. Of several it is the
 * one that told last. */
typedef struct cohi_cuda_waiting {
    uint32_t tick; /* of a wait for a word: the value */
    int32_t rank;  /* -1: it goes on, or waits for any */
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
        2, /* all_reduce by the scratch, where each member reduces a slice: two ticks */
    COHI_CUDA_PACKED = 3 /* by packets: one tick, no fence; twice the bytes */
} cohi_cuda_way;

/* What a launch does. Kernels of ranks that take turns do not wait, so that a call is several. */
typedef enum cohi_cuda_phase {
    COHI_CUDA_WHOLE = 0,
    COHI_CUDA_BEGIN = 1, /* posts, and stages the first piece */
    COHI_CUDA_GO_ON = 2  /* compares the posts; takes what was staged for `tick`; stages the next */
} cohi_cuda_phase;

/* One of the members. */
typedef struct cohi_cuda_member {
    uint64_t control;      /* its control segment, as this rank reaches it */
    uint64_t count, first; /* elements of its block, and where that begins */
    /* Where it has the segments of this member's own source and target: mostly it names the same. */
    uint64_t source_base, target_base;
    uint64_t rank;
} cohi_cuda_member;

/*
 * A kernel gets it by value, and what it gets costs time at each launch and when it is first read: the members come
 * last, and kernels for a few of them get no more than those (cohi_cuda_few_call).
 */
typedef struct cohi_cuda_call {
    int32_t index, size, root;
    int32_t kind, op; /* coh_collective_kind, coh_reduce_op */
    uint32_t team, life;
    uint32_t element; /* bytes */
    uint32_t way, phase;
    uint32_t tag;     /* upper half of a packet's */
    uint32_t buffers; /* as in the post */
    cohi_cuda_layout layout;
    uint64_t fingerprint;
    uint64_t status;       /* the status page */
    uint64_t scratch;      /* where the team's begins in a control segment */
    uint64_t packets;      /* likewise */
    uint32_t scratch_each; /* bytes of it for a block and half: a multiple of 16 */
    uint32_t packets_each; /* likewise; `room` packets of each member */
    uint32_t room;
    uint32_t tick;  /* of GO_ON: which one has passed */
    uint64_t step;  /* of GO_ON: the piece that is taken */
    uint64_t steps; /* pieces; 1 and more */
    uint64_t piece; /* elements of a block's part of a piece, of each of the source's blocks */
    uint64_t count; /* elements */
    uint64_t source, target;             /* this member's own */
    uint64_t source_place, target_place; /* where symmetric */
    double scale;
    uint64_t
        neutral; /* bits of the element that the first member of a scan gets that leaves it out */
    uint32_t delay; /* not 0: kernels are held up here and there, for tests; a seed */
    cohi_cuda_member members[COHI_CUDA_MEMBERS];
} cohi_cuda_call;

/* The first bytes of a call, with COHI_CUDA_FEW members. */
typedef struct cohi_cuda_few_call {
    uint64_t words[(offsetof(cohi_cuda_call, members) + COHI_CUDA_FEW * sizeof(cohi_cuda_member))
                   / sizeof(uint64_t)];
} cohi_cuda_few_call;

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
