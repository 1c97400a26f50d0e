/*
 * stream.h - the contract's last group: operations in the order of a stream of the caller's, on memory of a
 * card. Filled by engines that serve device heaps (cuda, nvshmem).
 *
 * Rules, beside those of engine.h:
 *   - A slot enqueues on the stream and returns; nothing of it waits on the host.
 *   - Core has checked ranks, segments, offsets, lengths and the descriptor of a collective. Whether the
 *     stream and the local buffers are of the right card the engine checks, before it enqueues anything.
 *   - What fails later is kept by the engine, and given out by `failure`.
 *   - An operation whose peer is lost ends: core calls `lose`, after which nothing on any stream waits for
 *     that rank any more.
 */
#ifndef COHI_ENGINE_STREAM_H
#define COHI_ENGINE_STREAM_H

#include "engine/engine.h"

typedef void *cohi_stream; /* a CUstream */

/* Who meets. The same on all members but for `index`. */
typedef struct cohi_stream_team {
    unsigned number; /* of the team in its members' worlds, below 64: what it keeps on the card */
    uint32_t life;   /* tells it from an earlier team of that number */
    int index;       /* of this rank */
    int size;
    const int *ranks; /* [size]: of the world; valid during the call */
} cohi_stream_team;

/* A buffer of a collective: symmetric, or private memory of this rank. */
typedef struct cohi_stream_buffer {
    void *local; /* this rank's; NULL: it has none */
    int segment; /* -1: private */
    uint64_t offset;
} cohi_stream_buffer;

typedef struct cohi_stream_call {
    coh_collective_kind kind;
    coh_dtype dtype;
    coh_reduce_op op;
    size_t count;         /* elements, as in coh_collective */
    const size_t *counts; /* of the variable forms, else NULL; valid during the call */
    double scale;         /* of this member's source; 1: none */
    uint64_t identity;    /* bits of the element that the first member of an exclusive scan gets */
    int root;
    /* Which way it may go, the same on all members: by packets up to so many bytes times members, and from so many
     * bytes on straight from and to the members' buffers. */
    uint64_t packets_to, direct_from;
    cohi_stream_buffer source, target;
    uint64_t
        fingerprint; /* of all that members must agree on, the privacy of the buffers included */
} cohi_stream_call;

/* A failure that became known after a slot had returned. */
typedef struct cohi_stream_failure {
    coh_status status;     /* COH_OK: none */
    int rank;              /* that it is about, or -1 */
    unsigned team;         /* its number; 64: of a wait for a word */
    uint32_t life;         /* of the team */
    uint64_t epoch;        /* of the team's calls, of a mismatch */
    uint64_t mine, theirs; /* fingerprints, of a mismatch */
    char text[256];        /* the library's words, or empty */
} cohi_stream_failure;

/* A stream of this rank's that waits for another rank. */
typedef struct cohi_stream_wait {
    int rank;
    uint64_t since_ns; /* by cohi_now_ns(); not before it was first asked about */
} cohi_stream_wait;

enum { COHI_STREAM_WAITS = 65 }; /* that `waits` tells of at most */

typedef struct cohi_engine_stream {
    size_t size;

    coh_status (*put)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                      const void *source, size_t bytes);
    coh_status (*get)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote from, void *target,
                      size_t bytes);

    /* A put whose data is seen before the signal. `at` is the signal's word, of `to`'s rank; bytes may be 0. */
    coh_status (*put_signal)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                             const void *source, size_t bytes, cohi_remote at,
                             const cohi_remote_signal *signal);

    /* Blocks at regular distances; by[0] at the target, by[1] at the source. NULL: core uses put, get. */
    coh_status (*put_strided)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                              const void *source, const size_t by[2], const size_t blocks[2]);
    coh_status (*get_strided)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote from,
                              void *target, const size_t by[2], const size_t blocks[2]);

    /* `result` is memory of the card, or NULL. The values are read during the call. */
    coh_status (*atomic)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote at,
                         const cohi_remote_atomic *atomic, void *result);

    /* Until `*word compare value` holds for this rank's own word; `at.rank` is who writes it, or -1. */
    coh_status (*wait)(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote at,
                       coh_compare compare, uint64_t value);

    coh_status (*quiet)(cohi_endpoint *endpoint, cohi_stream stream);

    /* All members' streams arrive here. `fingerprint` as of a collective. */
    coh_status (*sync)(cohi_endpoint *endpoint, cohi_stream stream, const cohi_stream_team *team,
                       uint64_t fingerprint);

    coh_status (*collective)(cohi_endpoint *endpoint, cohi_stream stream,
                             const cohi_stream_team *team, const cohi_stream_call *call);

    /* A collective on a stream of the engine's own, one for each team: the op is done when it is. The members have
     * met: where it fails, the others' end too, with COH_TRANSPORT and this rank as their `failure`. */
    coh_status (*run)(cohi_endpoint *endpoint, const cohi_stream_team *team,
                      const cohi_stream_call *call, cohi_op *op);

    /* The first failure of that team, or of any where it is NULL; or the card's own. Does not wait. */
    void (*failure)(cohi_endpoint *endpoint, const cohi_stream_team *team,
                    cohi_stream_failure *failure);

    /* Fills in waits that have lasted for some time, as far as they are known, and returns how many. One thread asks,
     * several times a second. NULL: nothing is known of them. */
    int (*waits)(cohi_endpoint *endpoint, uint64_t now_ns,
                 cohi_stream_wait waits[COHI_STREAM_WAITS]);
} cohi_engine_stream;

#endif
