/*
 * cuda.h - the engine for memory of a card, as its files see it. All of them but cuda.c and memory.c are also
 * in engine nvshmem, whose segments are NVSHMEM's.
 *
 *   library.c   libcuda, opened at run time
 *   cards.c     the cards of this host, and which of them a rank takes
 *   cuda.c      the descriptor
 *   endpoint.c  endpoints opened, connected and closed
 *   memory.c    segments: virtual memory in parts, whose descriptors the peers map
 *   place.c     where segments are, and what is in them
 *   under_way.c operations that the card has, and how their end is found
 *   rma.c       put, get, put with signal, fence, quiet and copies, from the host
 *   atomic.c    atomics from the host, by a kernel
 *   kernels/    what runs on the card, and image.c, which loads it
 *   streams.h   operations in the order of the caller's streams: what they share
 *   stream.c    the state of it, and one-sided operations
 *   chain.c     which streams there are, and in which order a team's operations are
 *   layout.c    how control segments are divided
 *   meet.c      collectives
 *   turns.c     the same of processes that take turns on a card
 *
 * The endpoint works in the primary context of its card, which is the one that CUDA's runtime uses. Every
 * entry makes it current and lets the thread make calls that a capture elsewhere would forbid
 * (cohi_cuda_enter), and puts back what was there (cohi_cuda_leave).
 *
 * Nothing here waits for the card: what was enqueued ends when an event behind it has passed, which
 * `progress` looks for.
 */
#ifndef COHI_ENGINE_CUDA_CUDA_H
#define COHI_ENGINE_CUDA_CUDA_H

#include "engine/cuda/library.h"
#include "engine/engine.h"
#include "engine/stream.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    COHI_CUDA_CONTROL_BYTES = 96 << 20, /* of the control segment, which stream.c divides */
    COHI_CUDA_STATUS_BYTES = 64 << 10,  /* of the memory that the card writes and the host reads */
    COHI_CUDA_GROWTH_BYTES =
        64 << 20,        /* least that a segment grows by: each growth is an exchange */
    COHI_CUDA_WORDS = 64 /* results of atomics that can be under way at once */
};

/* How ranks that are on one card get along; numbered as coh_cuda_sharing. */
typedef enum cohi_cuda_sharing {
    COHI_CUDA_ALONE = 0,
    COHI_CUDA_THREADS = 1,
    COHI_CUDA_MPS = 2,
    COHI_CUDA_TURNS = 3
} cohi_cuda_sharing;

/* What ranks tell each other at `address`, of which there is a copy for each rank. */
typedef struct cohi_cuda_address {
    unsigned char uuid[16]; /* of the card */
    int32_t pid;
    int32_t device;          /* its number in that process */
    int32_t mps;             /* its contexts are MPS's */
    int32_t multiprocessors; /* that this process may use */
    int32_t of_card;         /* that the card has */
} cohi_cuda_address;

_Static_assert(sizeof(cohi_cuda_address) <= COHI_ADDRESS_BYTES, "it fits a card");

/* ---- segments (memory.c) ---- */

/* [from, to) of a segment, backed by one allocation of the card. */
typedef struct cohi_cuda_part {
    uint64_t from, to;
    CUmemGenericAllocationHandle handle;
} cohi_cuda_part;

/* A rank's segment as this process sees it: address space, of which the first parts are mapped. */
typedef struct cohi_cuda_region {
    CUdeviceptr base; /* 0: not reachable from here */
    uint64_t bytes;  /* of address space; 0: the addresses are another endpoint's of this process */
    uint64_t backed; /* the end of the last part */
    int part_count;
    cohi_cuda_part *parts;
} cohi_cuda_region;

typedef struct cohi_cuda_segment {
    bool there;
    int fd; /* of the last part, for the others, or -1 */
    cohi_cuda_region own;
    cohi_cuda_region *peers; /* [size], from the first attach on; this rank's own is not in it */
} cohi_cuda_segment;

/* ---- what is under way (under_way.c) ---- */

/* What an event is behind of. */
typedef struct cohi_cuda_pending {
    struct cohi_cuda_pending *next;
    cohi_op *op; /* NULL: nobody waits for it */
    CUstream stream;
    CUevent event;
    void *result; /* of an atomic, or NULL */
    size_t result_bytes;
    int word; /* of endpoint->words where it came, or -1 */
} cohi_cuda_pending;

struct cohi_cuda_streams;
struct cohi_cuda_image;

/*
 * What carries operations to ranks whose memory this card does not map: another library's calls, on a stream. The
 * local side of a transfer is memory of a segment. A wait inside them cannot be ended when a rank is lost.
 */
typedef struct cohi_cuda_far {
    coh_status (*put)(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                      const void *source, size_t bytes);
    coh_status (*get)(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *from,
                      void *target, size_t bytes);

    /* After the put, of which there is none where `bytes` is 0. */
    coh_status (*put_signal)(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                             const void *source, size_t bytes, const cohi_remote *at,
                             const cohi_remote_signal *signal);

    /* What is on the stream before is at its targets when what is behind begins. */
    coh_status (*quiet)(cohi_endpoint *endpoint, CUstream stream);

    /* A collective of the team by the library's own, where it has that one. */
    coh_status (*collective)(cohi_endpoint *endpoint, CUstream stream, const cohi_stream_team *team,
                             const cohi_stream_call *call);

    /* Whether the library's is to be taken though the kernels here could do it: the same on all members. */
    bool (*prefers)(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                    const cohi_stream_call *call);
} cohi_cuda_far;

/* Gives back what is left of the segments; with the context current. */
typedef void cohi_cuda_closer(cohi_endpoint *endpoint);

struct cohi_endpoint {
    const cohi_cuda_library *library;
    const cohi_upcalls *upcalls;
    void *world;
    int rank, size;
    cohi_cuda_closer *close_segments;
    const cohi_cuda_far *far; /* NULL: only ranks that the card reaches are served */
    void *beneath;   /* the state of the library that segments are of, or NULL: the driver's own */
    bool in_process; /* the ranks are threads of this process */

    int device; /* the card's number in this process */
    CUdevice card;
    CUcontext context; /* primary */
    int multiprocessors;
    int major, minor; /* compute capability */
    bool mps;
    bool writes_values; /* cuStreamWriteValue64 and WaitValue64 work on it */
    char name[64];
    unsigned char uuid[16];
    uint64_t memory_bytes; /* of the card */
    uint64_t granule;      /* of an allocation */

    /* Set by `connect`. */
    cohi_cuda_address *addresses; /* [size] */
    int *host_of;                 /* [size] */
    cohi_cuda_sharing sharing;    /* of the ranks on this rank's card */
    int on_card;                  /* ranks on it, this one among them */
    int card_index;               /* of this one among them */
    bool *lost;                   /* [size] */

    /* Pinned memory of the host that the card writes too: status words, abort words. */
    void *status;             /* COHI_CUDA_STATUS_BYTES, as the host sees it */
    CUdeviceptr status_there; /* and as kernels do */

    pthread_mutex_t lock; /* of all that follows */
    cohi_cuda_segment segments[COHI_SEGMENTS_MAX];
    CUstream lanes[COHI_CONTEXTS_MAX]; /* for a context each; NULL: not used yet */
    cohi_cuda_pending *pending;        /* oldest first */
    cohi_cuda_pending **last;          /* where the next goes */
    cohi_cuda_pending *spare;          /* with their events */
    uint64_t *words;                   /* pinned, COHI_CUDA_WORDS */
    CUdeviceptr words_there;
    uint64_t free_words; /* a bit each */
    CUfunction atomic_kernel;

    struct cohi_cuda_image *image;     /* the kernels as loaded (kernels/image.c) */
    struct cohi_cuda_streams *streams; /* the state of stream.c */
    unsigned attached;                 /* counts what changes the addresses of segments */
};

/* ---- entering ---- */

typedef struct cohi_cuda_guard {
    CUstreamCaptureMode mode;
    bool entered;
} cohi_cuda_guard;

/* The context is current in this thread until cohi_cuda_leave. A failure of the driver here comes again
 * from the call that follows. */
cohi_cuda_guard cohi_cuda_enter(const cohi_endpoint *endpoint);
void cohi_cuda_leave(const cohi_endpoint *endpoint, cohi_cuda_guard guard);

/* Whether a rank's memory can be mapped by this one: they are on one host. */
static inline bool cohi_cuda_is_near(const cohi_endpoint *endpoint, int rank)
{
    return endpoint->host_of[rank] == endpoint->host_of[endpoint->rank];
}

/* Where kernels and copies of this rank reach that place, or 0. */
CUdeviceptr cohi_cuda_reach(const cohi_endpoint *endpoint, const cohi_remote *at);

/* What segments are made of. */
CUmemAllocationProp cohi_cuda_allocation(const cohi_endpoint *endpoint);

cohi_cuda_closer cohi_cuda_segments_close;

/* The address of a rank's segment for kernels and copies of this rank; 0: it cannot be reached. */
CUdeviceptr cohi_cuda_base(const cohi_endpoint *endpoint, int id, int rank);

/* ---- slots that all engines for memory of a card share ---- */

coh_status cohi_cuda_open(const cohi_engine_args *args, cohi_cuda_closer *close_segments,
                          cohi_endpoint **made);
coh_status cohi_cuda_get_address(cohi_endpoint *endpoint, unsigned char *address);
coh_status cohi_cuda_connect(cohi_endpoint *endpoint,
                             const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                             const int *host_of);
void cohi_cuda_close(cohi_endpoint *endpoint);
void cohi_cuda_query(const cohi_endpoint *endpoint, cohi_engine_facts *facts);
void cohi_cuda_lose(cohi_endpoint *endpoint, int rank);

void *cohi_cuda_peer_pointer(cohi_endpoint *endpoint, int id, int rank);
void *cohi_cuda_peer_address(cohi_endpoint *endpoint, int id, int rank);
cohi_memory_place cohi_cuda_place_of(cohi_endpoint *endpoint, const void *pointer);
uint64_t cohi_cuda_available(cohi_endpoint *endpoint);
coh_status cohi_cuda_zero(cohi_endpoint *endpoint, int id, uint64_t offset, uint64_t bytes,
                          cohi_op *op);
coh_status cohi_cuda_copy(cohi_endpoint *endpoint, void *target, const void *source, size_t bytes,
                          cohi_op *op);

/* ---- on a stream, the engine's or the caller's; the context is current ---- */

/* Copies between any two places that the card and the driver reach. */
coh_status cohi_cuda_move(cohi_endpoint *endpoint, CUstream stream, CUdeviceptr target,
                          CUdeviceptr source, size_t bytes);

/* The word as it was goes to `result`, which the card reaches, unless that is 0. */
coh_status cohi_cuda_launch_atomic(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *at,
                                   const cohi_remote_atomic *atomic, CUdeviceptr result);

/* ---- kernels (kernels/image.c); the context is current ---- */

coh_status cohi_cuda_image_open(cohi_endpoint *endpoint);
void cohi_cuda_image_close(cohi_endpoint *endpoint);

/* A kernel of a file of kernels/. */
coh_status cohi_cuda_image_find(const cohi_endpoint *endpoint, const char *file, const char *name,
                                CUfunction *function);

/* ---- streams of the caller's (stream.c); the context is current ---- */

coh_status cohi_cuda_streams_open(cohi_endpoint *endpoint);
void cohi_cuda_streams_close(cohi_endpoint *endpoint);

/* Nothing on a stream waits for that rank any more. */
void cohi_cuda_streams_lose(cohi_endpoint *endpoint, int rank);

extern const cohi_engine_stream cohi_cuda_stream;
extern const cohi_engine_memory cohi_cuda_memory;
extern const cohi_engine_rma cohi_cuda_rma;
extern const cohi_engine_atomic cohi_cuda_atomic;
extern const cohi_engine_cards cohi_cuda_cards;

#endif
