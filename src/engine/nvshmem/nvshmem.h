/*
 * nvshmem.h - the engine for memory of a card over NVSHMEM, as its files see it.
 *
 *   library.c   libnvshmem_host, opened at run time
 *   nvshmem.c   the descriptor; NVSHMEM started and ended with the endpoint
 *   guard.c     calls that wait for the other ranks inside NVSHMEM, with a limit on how long
 *   memory.c    segments: parts of areas of NVSHMEM's symmetric heap
 *   far.c       ranks that the card does not map: NVSHMEM's puts, gets and signals on a stream
 *   collective.c NVSHMEM's collectives on a stream
 *   tune.c      which collectives are NVSHMEM's, by measurement
 *   module.c    the engine as a file of its own
 *
 * The rest is engine cuda's: streams, kernels, copies and waits work on the addresses that nvshmem_ptr gives
 * just as they do on memory of the driver's own. So all that its promises rest on, a lost rank that ends a wait
 * above all, holds here too; NVSHMEM is asked to start, for memory, and to end.
 *
 * NVSHMEM lets one thread at a time into it, and it has the process to itself: one start, one end.
 */
#ifndef COHI_ENGINE_NVSHMEM_NVSHMEM_H
#define COHI_ENGINE_NVSHMEM_NVSHMEM_H

#include "engine/cuda/cuda.h"
#include "engine/nvshmem/library.h"

/* Part of the symmetric heap, at the same place in it on every rank. */
typedef struct cohi_nvshmem_area {
    char *base; /* this rank's */
    uint64_t bytes;
} cohi_nvshmem_area;

/* Which part of which area a segment is. */
typedef struct cohi_nvshmem_piece {
    int area; /* from 0; -1: there is no segment */
    uint64_t offset, bytes;
} cohi_nvshmem_piece;

enum { COHI_NVSHMEM_AREAS = COHI_SEGMENTS_MAX };

/* Whose collectives are taken where both could. */
typedef enum cohi_nvshmem_wanted {
    COHI_NVSHMEM_FASTER = 0, /* by measurement */
    COHI_NVSHMEM_OURS = 1,
    COHI_NVSHMEM_THEIRS = 2
} cohi_nvshmem_wanted;

/* What an endpoint has beside engine cuda's (endpoint->beneath). */
typedef struct cohi_nvshmem {
    const cohi_nvshmem_library *library;
    cohi_nvshmem_id id; /* rank 0's own; of the others empty */
    bool joined;        /* NVSHMEM has started, and is to be ended */
    bool abandoned;     /* some rank will not come to its end */
    bool refused; /* it has failed to allocate, and keeps a lock of its own since then: nothing that
                          * all ranks do together may be asked of it any more */
    bool
        calls_only; /* COHORT_TEST_NVSHMEM_REACH=calls: no rank is mapped, for tests of NVSHMEM's calls */
    bool has_far;               /* some rank is not mapped */
    cohi_nvshmem_wanted wanted; /* rank 0's COHORT_NVSHMEM_COLLECTIVES */
    uint64_t choice;  /* where NVSHMEM's collectives are taken: a bit for each case of tune.c */
    bool collectives; /* NVSHMEM's can be called: the ranks of each card can run side by side */
    int area_count;
    cohi_nvshmem_area areas[COHI_NVSHMEM_AREAS];
    cohi_nvshmem_piece pieces[COHI_SEGMENTS_MAX];
} cohi_nvshmem;

/* What ranks tell each other beside engine cuda's part of an address. */
typedef struct cohi_nvshmem_address {
    cohi_nvshmem_id id;
    int32_t major, minor, patch;
    int32_t wanted; /* a cohi_nvshmem_wanted */
} cohi_nvshmem_address;

enum { COHI_NVSHMEM_ADDRESS_AT = 64 }; /* in an address */

_Static_assert(sizeof(cohi_cuda_address) <= COHI_NVSHMEM_ADDRESS_AT,
               "engine cuda's part is before");
_Static_assert(COHI_NVSHMEM_ADDRESS_AT + sizeof(cohi_nvshmem_address) <= COHI_ADDRESS_BYTES,
               "it fits a card");

static inline cohi_nvshmem *cohi_nvshmem_of(const cohi_endpoint *endpoint)
{
    return endpoint->beneath;
}

/* ---- calls that all ranks make together (guard.c) ---- */

/* What is done, by a thread of its own in which the endpoint's context is current. */
typedef void cohi_nvshmem_work(const cohi_nvshmem_library *library, void *arg);

/*
 * Runs `work` with a copy of the `bytes` at `arg`, and copies them back when it has returned. COH_TIMED_OUT after
 * `limit_ns`: the thread is left where it is, and no later call is let into NVSHMEM. `what` names the call in
 * error messages.
 */
coh_status cohi_nvshmem_guard(const cohi_endpoint *endpoint, const char *what,
                              cohi_nvshmem_work *work, void *arg, size_t bytes, uint64_t limit_ns);

/* ---- segments (memory.c) ---- */

/* The first area, for the control segment and a small one. All ranks call it together. */
coh_status cohi_nvshmem_memory_open(cohi_endpoint *endpoint);
cohi_cuda_closer cohi_nvshmem_memory_close;

/* A segment that lasts for a while, at the same place on all ranks, which reach each other's without an exchange. */
coh_status cohi_nvshmem_segment_try(cohi_endpoint *endpoint, int id, uint64_t bytes);

extern const cohi_engine_memory cohi_nvshmem_memory;

/* ---- NVSHMEM's calls on a stream (far.c, collective.c) ---- */

/* Around every call into it: it lets one thread in at a time. */
void cohi_nvshmem_enter(void);
void cohi_nvshmem_leave(void);

/* Whether it is this rank's part of a segment. */
bool cohi_nvshmem_is_symmetric(const cohi_endpoint *endpoint, const void *pointer, size_t bytes);

/* Whether NVSHMEM has the collective; the same on all members but for private buffers. */
bool cohi_nvshmem_has(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                      const cohi_stream_call *call);

/* Finds out where they are the faster ones; by all ranks together, when they reach each other. */
coh_status cohi_nvshmem_tune(cohi_endpoint *endpoint);

coh_status cohi_nvshmem_collective(cohi_endpoint *endpoint, CUstream stream,
                                   const cohi_stream_team *team, const cohi_stream_call *call);
bool cohi_nvshmem_prefers(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                          const cohi_stream_call *call);

extern const cohi_cuda_far cohi_nvshmem_far;

#endif
