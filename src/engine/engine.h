/*
 * Room: engine.
 *
 * The contract between core and what connects the ranks, the registry, and one folder for each
 * engine.
 * Uses base, memory, secure and bootstrap. An engine exports one descriptor and calls core by upcalls
 * alone.
 * Hides transports: no other room asks which engine it is.
 */
/*
 * engine.h - the contract between core and what connects the ranks.
 *
 * An engine is one descriptor that points to groups of functions. A group that is NULL is a
 * capability that the engine does not have: core builds it from the others where it can, and
 * answers COH_UNSUPPORTED at the call where it cannot. Each group is led by its size, so that a
 * module built against an older contract can be told from one that fills every slot.
 *
 * Rules for every slot:
 *   - It does not block. What takes time gets a cohi_op, which the engine completes later;
 *     waiting, deadlines and the watch for lost ranks are core's, in one place. Slots that all
 *     ranks call in the same step of joining (`connect`, `segment_add`, `region_attach`) may wait
 *     for the peers' calls, up to args->deadline_ns.
 *   - It may be called by several threads at once, except `open` and `close`.
 *   - A failure is a coh_status with its error message set by cohi_fail; nothing has changed.
 *   - Ranks, segments, offsets and lengths were checked by core before the call: the engine need
 *     not check its own caller. What arrives from another host is to be checked by the engine.
 *   - Upcalls (cohi_upcalls) may be made from any thread, engine threads included, but not from
 *     inside a slot while it holds a lock that the upcall could need: core may call back from
 *     within.
 */
#ifndef COHI_ENGINE_ENGINE_H
#define COHI_ENGINE_ENGINE_H

#include "base/config.h"
#include "bootstrap/group.h"
#include "bootstrap/traffic.h"

#include <cohort.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raised when a slot changes meaning or place; a module with another number is refused. */
#define COHI_CONTRACT 4

/* An engine's own state for one rank of one world. */
typedef struct cohi_endpoint cohi_endpoint;

/* Segments have small numbers. These two exist in every world whose engine has memory. */
enum {
    COHI_SEGMENT_CONTROL = 0, /* the rank's slot of the board (bootstrap/board.h) */
    COHI_SEGMENT_HEAP = 1,
    COHI_SEGMENTS_MAX = 64
};

/* Contexts are small numbers too: independent streams of one-sided operations. */
enum {
    COHI_CONTEXT_DEFAULT = 0, /* the user's puts and gets */
    COHI_CONTEXT_CONTROL = 1, /* core's own */
    COHI_CONTEXT_FIRST_FREE = 2,
    COHI_CONTEXT_MESSAGES = 64, /* core's puts and gets of long messages */
    COHI_CONTEXTS_MAX = 65
};

/* A put of at most this many bytes has copied its source when the slot returns. */
enum { COHI_INLINE_BYTES = 64 };

/* The head of a channel message has at most this many bytes, and a short one behind it. */
enum { COHI_HEAD_BYTES = 128, COHI_SHORT_BYTES = 8192 };

/*
 * One operation under way. It begins as COHI_NEW_OP. The engine sets `status` and, where it failed,
 * `rank`, then stores `done` with release order, and makes the `arrived` upcall. After `done` the
 * engine touches neither the op nor the operation's buffers.
 *
 * Until then `waits_for` is a rank whose part is missing, so that a wait that takes long can tell
 * whom it is for: the engine sets it before the slot returns, and again when another rank is the
 * next. -1: no rank, or the engine cannot tell.
 */
typedef struct cohi_op {
    atomic_int done;
    atomic_int waits_for;
    coh_status status;
    int rank;       /* that failed, or -1 */
    void *internal; /* the engine's */
} cohi_op;

#define COHI_NEW_OP                                   \
    {                                                 \
        .waits_for = -1, .status = COH_OK, .rank = -1 \
    }

/* Why a rank is lost. */
typedef enum cohi_loss {
    COHI_LOSS_ENDED = 1,      /* its process ended; nobody knows how */
    COHI_LOSS_EXITED = 2,     /* detail: the exit status */
    COHI_LOSS_SIGNALED = 3,   /* detail: the signal */
    COHI_LOSS_UNFINISHED = 4, /* exit(3) without finalize */
    COHI_LOSS_THREAD = 5,     /* its thread ended without finalize */
    COHI_LOSS_LEFT = 6,       /* finalized while others still needed it */
    COHI_LOSS_LINK = 7,       /* the connection to it broke */
    COHI_LOSS_KILLED = 8,     /* killed by the simulator; detail: the step */
    COHI_LOSS_REPLACED = 9,   /* its process runs another program */
    COHI_LOSS_SILENT = 10,    /* its host does not answer; detail: for how many seconds */
    COHI_LOSS_ABSENT = 11 /* its host answers that nobody listens at its address any more. It ended,
                               * or it has left without a connection on which to say so */
} cohi_loss;

/* A message that has begun to come: its first bytes, of so many in all. */
typedef struct cohi_arriving {
    const void *bytes;
    size_t here;
    uint64_t count;
} cohi_arriving;

/* What an engine tells core. `world` is args->world. */
typedef struct cohi_upcalls {
    /* Rank `rank` is lost to this rank. The engine completes all its operations that need it, with
     * COH_PEER_LOST, before or after. May name this rank itself. Repeats are ignored. */
    void (*lost)(void *world, int rank, cohi_loss loss, int detail);

    /* Rank `rank` has said that it leaves, and all that it sent before has arrived: the end of the
     * connection to it is no loss. */
    void (*left)(void *world, int rank);

    /* Nothing was heard of `rank` for `silent_ns`, though something should have been: an answer, or
     * a keepalive. Repeated while it lasts. What follows from it is core's to decide; it calls `lose`
     * when the rank counts as lost. */
    void (*silent)(void *world, int rank, uint64_t silent_ns);

    /* Instead of that, from an engine that can tell: the rank says nothing, but its host's kernel
     * still acknowledges what is sent to it. So the process is there, and likely stopped. */
    void (*mute)(void *world, int rank);

    /* From a thread of the engine: lets core move messages while the rank computes. */
    void (*attend)(void *world);

    /* Something that a thread of this rank may be waiting for has happened: an op is done, or a
     * peer wrote into one of this rank's segments. Cheap; wakes sleepers only. */
    void (*arrived)(void *world);

    /* Instead of that, where a peer wrote into a heap and nothing else has happened: wakes those alone that sleep
     * for a word of it. */
    void (*stored)(void *world);

    /* A message from `from` on its channel to this rank, whole and in order. `bytes` are valid
     * during the call. */
    void (*deliver)(void *world, int from, const void *bytes, size_t count);

    /*
     * For an engine that reads a long message bit by bit, or has one in memory that it cannot keep, in
     * place of `deliver`. `claim` asks whether core has a buffer for what follows the first *head bytes. At
     * least COHI_HEAD_BYTES are here, or all that the sender gave as the head. 0: no, it is to be
     * delivered. Else the engine borrows the place of the next `bytes` bytes and returns it, with how many
     * of them came, until all have. NULL: nobody wants the message any more, it is dropped and nothing
     * returned. What is borrowed is returned without waiting for anybody. The caller may hold a lock that
     * slots take: core calls no slot with the lock held that these three take.
     */
    uint64_t (*claim)(void *world, int from, const cohi_arriving *message, size_t *head);
    void *(*borrow)(void *world, int from, uint64_t claim, size_t bytes);
    void (*give_back)(void *world, int from, uint64_t claim, size_t come);

    /* The program ends the library behind the engine while the world is still open (MPI_Finalize), on all
     * ranks. From the thread that does so, while the library still works: core parts from the others as it
     * would at finalize, and calls `leave`. A finalize that follows finds that done. */
    void (*part)(void *world);
} cohi_upcalls;

/*
 * What ranks of one process have in common. `fabric` is for the engine: NULL at first; the first
 * endpoint opened may set it, the last one closed frees it. Endpoints of a crew are opened and
 * closed one at a time.
 */
typedef struct cohi_crew_space {
    void *fabric;
    int open; /* endpoints, counted by the engine */
} cohi_crew_space;

/* Whom the engine is to connect. */
typedef struct cohi_need {
    int size;
    int in_process; /* not 0: the ranks are threads of this process */
    int hosts;      /* that the ranks are on; 0: not known, as when asked without a job */
} cohi_need;

typedef struct cohi_engine_args {
    int rank;
    cohi_need need;
    const cohi_config *config; /* valid during open */
    uint64_t deadline_ns;      /* for open and attach */
    cohi_crew_space *crew;     /* when need.in_process, else NULL */
    const cohi_upcalls *upcalls;
    void *world;             /* the upcalls' first argument */
    const coh_unique_id *id; /* the job's, valid during open: what ranks of several hosts prove
                              * themselves by. NULL: the ranks are threads */
    cohi_traffic *traffic;   /* [size], valid until close: where an engine that reaches other hosts
                              * counts what goes to each rank. NULL: nobody looks */
    int device;              /* of an engine for memory of a card: its number, or -1: any */
    int local_rank;          /* among the ranks of this host */
} cohi_engine_args;

/* How what travels to other hosts is protected. The texts are for people (registry.c). */
typedef enum cohi_network {
    COHI_NETWORK_NONE = 0,     /* nothing does, or the engine cannot tell */
    COHI_NETWORK_SEALED = 1,   /* encrypted and authenticated */
    COHI_NETWORK_CLEAR = 2,    /* as it is, behind a handshake */
    COHI_NETWORK_LOOPBACK = 3, /* as it is, without one, over loopback addresses alone */
    COHI_NETWORKS
} cohi_network;

/* "sealed (AES-256-GCM)"; "" for COHI_NETWORK_NONE and what is none of them. */
const char *cohi_network_text(unsigned network);

/*
 * Facts of the library behind. Core reads all of them: it refuses a world too many, and one after
 * the last of an engine that does not reopen; it says at start where the loss of a rank on another
 * host would not be noticed; a heap that is backed whole is small unless its size was given, and is
 * checked against the host's memory before it is made. That an engine brings its own rank and size is
 * no row here: it has the group `job`.
 */
typedef struct cohi_engine_facts {
    size_t size;
    int worlds_at_once;       /* of one process; 0: any number */
    int closes_for_good;      /* it cannot be opened again in a process once it was closed */
    int detects_loss;         /* calls `lost`; else core's watcher, where it can, is all there is */
    int cpu_coherent_atomics; /* remote atomics are atomic with the CPU's on the same word */
    uint64_t message_bytes;   /* most bytes of one channel message, head and body; 0: any */
    int moves_by_messages; /* of long ones: no slower than by a put or get, which have no other way either */
    int takes_prepared;   /* a segment can begin with memory that was prepared for it */
    int commits_whole;    /* segment_add backs all of a segment that the engine provides:
                               * segment_commit and segment_decommit are never called */
    int pretended_host;   /* the number, from 1, of the host that the endpoint plays; 0: none */
    cohi_network network; /* of an endpoint that is connected */

    /* Of an engine for memory that is not the host's, which has segments for further heaps beside the
     * world's own engine. */
    int grows_by_keys;      /* what `commit` adds reaches the peers by another export and attach */
    uint64_t growth_bytes;  /* least that a segment grows by; 0: any */
    uint64_t control_bytes; /* of a control segment, which it fills itself; 0: none */
    uint64_t memory_bytes;  /* of the card */
    int device;             /* its number */
    int sharing;            /* how ranks share it: a coh_cuda_sharing */
    int reaches_far; /* `rma` also serves ranks that have no peer_address, where the local side is in a
                      * segment; an op of a put is then done when the bytes are at the target */
} cohi_engine_facts;

/* ---- lifecycle: always there ---- */

typedef struct cohi_engine_lifecycle {
    size_t size;

    /* Whether the engine could serve `need` here and now. COH_OK, or COH_NOT_AVAILABLE with the
     * reason (the library is not installed, the kernel lacks something, the ranks are of the wrong
     * sort). Looks only; opens libraries lazily and leaves nothing behind. */
    coh_status (*probe)(const cohi_need *need);

    /* Makes this rank's endpoint. With a crew it is called for each rank in turn, by one thread, so
     * it must not wait for the others there. On failure nothing is left. */
    coh_status (*open)(const cohi_engine_args *args, cohi_endpoint **endpoint);

    /* What the peers need to know to reach this endpoint, COHI_ADDRESS_BYTES of it at most;
     * all of them get it. NULL: nothing. */
    coh_status (*address)(cohi_endpoint *endpoint, unsigned char *address);

    /* Given the addresses of all ranks, in order, and the hosts they are on, numbered from 0, before
     * a segment is added. Ranks of one host can map each other's memory. May wait for the peers (a
     * library that has a collective start of its own makes it here), except with a crew. NULL:
     * nothing to do. */
    coh_status (*connect)(cohi_endpoint *endpoint,
                          const unsigned char (*addresses)[COHI_ADDRESS_BYTES], const int *host_of);

    /* The rank leaves. The op is done when all that it issued, on every context and channel, has
     * reached its targets, and they know that the end of the connection is no loss. Nothing is issued
     * after it. A target that is lost is not waited for. NULL: nothing is ever under way. */
    coh_status (*leave)(cohi_endpoint *endpoint, cohi_op *op);

    /* Ends the endpoint; all operations are done or cancelled, and no slot is called any more.
     * After it returns no upcall is made. What was not complete, because `leave` was not called or
     * did not come to its end, may be lost. Not collective: peers may be gone. */
    void (*close)(cohi_endpoint *endpoint);

    /* The facts; of the engine as such where the endpoint is NULL, before it is opened. */
    void (*query)(cohi_endpoint *endpoint, cohi_engine_facts *facts);

    /* Core knows that `rank` is lost: the engine completes what it has under way for that rank with
     * COH_PEER_LOST and sends it nothing more. Repeats are harmless. NULL: nothing can be under way
     * that `rank` holds up. */
    void (*lose)(cohi_endpoint *endpoint, int rank);

    /* Gives up on an op that is not done: on return it is done, with COH_TRANSPORT, and the engine
     * touches neither it nor its buffers again, if need be by closing the link to the peer. There
     * where a slot takes an op. */
    void (*cancel)(cohi_endpoint *endpoint, cohi_op *op);

    /* Does what can be done at once: polls completions, moves bytes. NULL for an engine whose
     * progress needs no calls. Never sleeps. A waiting rank calls it between looks, also where it
     * waits for a peer that it maps: others may need its part. */
    void (*progress)(cohi_endpoint *endpoint);

    /* Sleeps until something may have arrived, at most `timeout_ns`. NULL: core sleeps on the
     * slot's bell, which `arrived` rings, after it has looked and yielded as for a mapped peer. That
     * is the way for an engine whose peers are partly mapped, since these ring the bell and nothing
     * else. With an `idle` core calls it at once, between looks. May return early. */
    void (*idle)(cohi_endpoint *endpoint, uint64_t timeout_ns);

    /* A rank that has called `progress` is about to sleep on its bell. True: what arrives from now on is for a
     * thread of the engine, and the rank need not call `progress` while it sleeps. Called before each sleep, since it may
     * have sent something in between. NULL: there is no thread. */
    bool (*rest)(cohi_endpoint *endpoint);

    /* Before `leave`, where the rank could not part from all others in order: some may never come to the
     * library's own collective end. NULL: it has none. */
    void (*abandon)(cohi_endpoint *endpoint);

    /* Of an engine for memory of a card: all ranks' control segments are attached, and all ranks call it, so it
     * may run operations between them, and wait. NULL: there is nothing to find out. */
    coh_status (*settle)(cohi_endpoint *endpoint);
} cohi_engine_lifecycle;

/* ---- memory: segments, and reaching the peers' ---- */

typedef enum cohi_memory_kind {
    COHI_MEMORY_HOST = 0,
    COHI_MEMORY_CUDA = 1,
} cohi_memory_kind;

/* What an address is to the CPU and to a card. */
typedef enum cohi_memory_place {
    COHI_PLACE_HOST = 0,   /* ordinary memory: the CPU's alone, as far as the engine knows */
    COHI_PLACE_PINNED = 1, /* memory of the host that the card reaches too */
    COHI_PLACE_CARD = 2,   /* the CPU cannot load it */
    COHI_PLACE_OTHER = 3   /* of another card than the endpoint's */
} cohi_memory_place;

#define COHI_UNKNOWN_BYTES UINT64_MAX

typedef struct cohi_segment_spec {
    int id;
    cohi_memory_kind kind;
    uint64_t bytes;
    void *existing; /* memory to register, or NULL: the engine provides it, `bytes` of address space
                     * that `commit` backs as it is needed, or that are backed at once (facts) */
    int huge_pages; /* ask for them */
    int prepared;   /* it begins with the memory of memory/prepared.h; set only for engines that say
                     * so in their facts */
} cohi_segment_spec;

/* How a peer gets at a segment: bytes that mean something to the same engine there, and perhaps a
 * descriptor, which the bootstrap passes along (ranks of one host only). */
typedef struct cohi_region_key {
    unsigned char bytes[COHI_KEY_BYTES];
    int fd; /* -1: none. On export: still the engine's. On attach: the engine may take it, setting
               -1 */
} cohi_region_key;

typedef struct cohi_engine_memory {
    size_t size;

    /* Adds a segment to this rank. *base is where this rank loads and stores it. */
    coh_status (*segment_add)(cohi_endpoint *endpoint, const cohi_segment_spec *spec, void **base);

    /* Backs [from, to) with memory. COH_NO_MEMORY, and nothing has changed, when there is none. */
    coh_status (*segment_commit)(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to);

    /* Gives [from, to) back, when other ranks could not follow. What was there is lost. */
    void (*segment_decommit)(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to);

    /* Local again: undoes segment_add and detaches the peers' regions of that number. */
    void (*segment_remove)(cohi_endpoint *endpoint, int id);

    coh_status (*region_export)(cohi_endpoint *endpoint, int id, cohi_region_key *key);

    /* Makes the first `bytes` of rank `rank`'s segment reachable; the key came from its
     * region_export. */
    coh_status (*region_attach)(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                cohi_region_key *key);

    /* Where this rank can load and store that region, or NULL: then by `rma`. Fixed after attach.
     */
    void *(*peer_pointer)(cohi_endpoint *endpoint, int id, int rank);

    /* The rest is of memory that is not the host's, and NULL elsewhere. */

    /* Where what runs on this rank's card loads and stores that region, which the CPU cannot; NULL: it
     * cannot either. Fixed after attach. */
    void *(*peer_address)(cohi_endpoint *endpoint, int id, int rank);

    /* Sets `bytes` of this rank's segment to zero. */
    coh_status (*zero)(cohi_endpoint *endpoint, int id, uint64_t offset, uint64_t bytes,
                       cohi_op *op);

    /* Copies between any two places that this process can name, its own host memory, memory of its
     * cards, and what peer_address gave. They do not overlap. */
    coh_status (*copy)(cohi_endpoint *endpoint, void *target, const void *source, size_t bytes,
                       cohi_op *op);

    /* Bytes that could be committed now; COHI_UNKNOWN_BYTES: it cannot be told. */
    uint64_t (*available)(cohi_endpoint *endpoint);

    /* What sort of memory `pointer` is in. */
    cohi_memory_place (*place_of)(cohi_endpoint *endpoint, const void *pointer);
} cohi_engine_memory;

/* ---- rma: one-sided operations on regions that are not mapped ---- */

/* Where an operation goes: on a context of this rank, to an offset of a rank's segment. */
typedef struct cohi_remote {
    unsigned context;
    int rank;
    int segment;
    uint64_t offset;
} cohi_remote;

/* A 64-bit word of the same rank and segment, which is set or added to. */
typedef struct cohi_remote_signal {
    uint64_t offset;
    uint64_t value;
    bool add;
} cohi_remote_signal;

typedef struct cohi_engine_rma {
    size_t size;

    /* Around the life of a context from COHI_CONTEXT_FIRST_FREE on that the user makes; core's own are
     * there with the endpoint. Nothing is issued on a context that is not open, and a quiet went
     * before `context_close`; what that could not complete, for a rank that is lost or stuck, may
     * still be under way. NULL: contexts need nothing. */
    coh_status (*context_open)(cohi_endpoint *endpoint, unsigned context);
    void (*context_close)(cohi_endpoint *endpoint, unsigned context);

    /* Writes `bytes` to `to`. The op is done when the source may be reused; with a NULL op, at quiet
     * (or on return, up to COHI_INLINE_BYTES). Aligned 1, 2, 4 and 8 bytes arrive whole; more may
     * arrive in parts, in any order, at any time before quiet. The target rank need not call
     * anything. */
    coh_status (*put)(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                      cohi_op *op);

    /* Reads into `target`. The op is done when all bytes are there; with a NULL op, at quiet. */
    coh_status (*get)(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                      cohi_op *op);

    /* A put, then the signal, not seen before the data. NULL: core uses put, fence, atomic post. */
    coh_status (*put_signal)(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                             size_t bytes, const cohi_remote_signal *signal, cohi_op *op);

    /* Orders, per target: puts of this context before it arrive before those after it. */
    coh_status (*fence)(cohi_endpoint *endpoint, unsigned context);

    /* The op is done when all that this context issued before is complete, at the targets too. */
    coh_status (*quiet)(cohi_endpoint *endpoint, unsigned context, cohi_op *op);
} cohi_engine_rma;

/* ---- atomic: read-modify-writes on regions that are not mapped ---- */

/* What to do with a word. Types are 4 or 8 bytes wide, and words aligned. */
typedef struct cohi_remote_atomic {
    coh_atomic_op kind;
    coh_dtype dtype;
    const void *operand;
    const void *compare; /* of COMPARE_SWAP, else NULL */
} cohi_remote_atomic;

typedef struct cohi_engine_atomic {
    size_t size;

    /* Applies without a result; complete at quiet. The values are copied when the slot returns. */
    coh_status (*post)(cohi_endpoint *endpoint, cohi_remote at, const cohi_remote_atomic *atomic);

    /* The same; the old value is in *result when the op is done. */
    coh_status (*fetch)(cohi_endpoint *endpoint, cohi_remote at, const cohi_remote_atomic *atomic,
                        void *result, cohi_op *op);
} cohi_engine_atomic;

/* ---- channel: ordered messages between pairs; tags and matching are core's ---- */

typedef struct cohi_engine_channel {
    size_t size;

    /* Sends a message to `rank`: `head`, then `body`, which its core gets by `deliver` in one piece,
     * messages in order of sending. The head, of up to COHI_HEAD_BYTES, is copied when the slot
     * returns. The body may be of any length up to the facts' message_bytes, and stays the caller's:
     * the op is done when it may be reused. Without a body the op may be NULL. */
    coh_status (*send)(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                       const void *body, size_t body_bytes, cohi_op *op);

    /* Sends a message of up to COHI_SHORT_BYTES behind the head where nothing is in front of it, and has a
     * copy of what is not sent when it returns. False: nothing was sent, and `send` is called instead. An engine
     * without this slot leaves it NULL. */
    bool (*send_now)(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                     const void *body, size_t body_bytes);
} cohi_engine_channel;

/* ---- collective: those that the library behind the engine has ---- */

/* What a library offers. Sets are bits, 1 << value. Costs are in messages of the same engine, by which core's own
 * algorithms go: what counts is which of the two is faster, not how fast the network is. */
typedef struct cohi_native_offer {
    size_t size;
    uint32_t kinds;       /* of coh_collective_kind; blocks are of one length */
    uint32_t types;       /* of coh_dtype, that it reduces; what is only moved may be of any */
    uint32_t integer_ops; /* of coh_reduce_op, with the results of core's own */
    uint32_t float_ops;
    int same_bits; /* sums and products of floats have the same bits on all members and in each run */
    double
        call; /* short messages, one after the other, that a call takes for each doubling of members */
    double byte; /* time of a byte that a member sends, by that of a byte of a long message */
} cohi_native_offer;

typedef struct cohi_native_team {
    int number;     /* teams with a common member that are open at a time have others */
    uint32_t epoch; /* of the call: those of one number, over its teams, have others */
    int size;
    int index;        /* this rank's */
    const int *ranks; /* [size], in the world */
} cohi_native_team;

/* In place where source and target are the same, as in coh_collective. */
typedef struct cohi_native_call {
    coh_collective_kind kind;
    coh_dtype dtype;
    coh_reduce_op op; /* of kinds that reduce */
    int root;         /* index in the team */
    size_t count;     /* elements, or those of each block; at most INT_MAX bytes with all blocks */
    const void *source;
    void *target;
} cohi_native_call;

/*
 * Rank 0's offer travels to all ranks when they join, and the choice between the library's collectives and
 * core's goes by it, so that all make the same one. With COHORT_DETERMINISTIC they are never taken.
 *
 * Such a library hangs, or mixes up bytes, where calls differ. So before `run` core lets all members meet
 * and compare their calls, and gives the library memory of core's own: what it holds when an op fails or is
 * cancelled is left to it for ever. Where one member fails core tells the others, who cancel theirs; none of
 * its collectives is called in this team again.
 */
typedef struct cohi_engine_collective {
    size_t size;

    /* What the library of an endpoint that is not connected yet can do; kinds 0: nothing. */
    void (*offer)(cohi_endpoint *endpoint, cohi_native_offer *offer);

    /* Whether it can be done among these ranks of a connected world: the same answer on all of them. */
    bool (*serves)(cohi_endpoint *endpoint, const int *ranks, int size);

    /* Makes what the library needs of a team (a communicator), *native, which is valid once the op is done
     * and good. All members are in it; they have met. On failure, or when it is cancelled, nothing is left
     * that core has to close, and core opens no other for this team. */
    coh_status (*open)(cohi_endpoint *endpoint, const cohi_native_team *team, void **native,
                       cohi_op *op);

    /* Nothing is under way; the other members need not do the same. */
    void (*close)(cohi_endpoint *endpoint, void *native);

    /* The op is done when this member's target is complete and the source may be reused. One at a time for
     * a team. When it is cancelled, the team is of no use any more, and its buffers stay the library's. */
    coh_status (*run)(cohi_endpoint *endpoint, void *native, const cohi_native_call *call,
                      cohi_op *op);
} cohi_engine_collective;

/* ---- job: ranks that the library behind the engine brings ---- */

/*
 * There where the library behind the engine was started as a job of its own and knows who is which
 * rank of how many (MPI below mpirun). Where coh_init finds no launcher of Cohort's own, and such an
 * engine is asked for by name, rank and size are taken from it: rank 0 makes the unique id, `share`
 * takes it to the others, and from there on the ranks join as all others do.
 *
 * All slots are called by one thread, before the endpoint is opened and after that by `end` alone.
 * They may block, since they are the library's own collective start, up to `deadline_ns` where it can
 * be told to.
 */
typedef struct cohi_engine_job {
    size_t size;

    /* Starts the library, if nobody has, and tells which rank of how many this process is: 0 of 1
     * where it was started alone. On failure nothing is left. */
    coh_status (*begin)(uint64_t deadline_ns, int *rank, int *size);

    /* Called by all ranks of the job in the same order: on return each has rank 0's `count` bytes. */
    coh_status (*share)(void *bytes, size_t count, uint64_t deadline_ns);

    /* Undoes `begin`, once the rank has joined or could not. An endpoint that is open needs the
     * library still. */
    void (*end)(void);
} cohi_engine_job;

/* ---- cards: what an engine for memory of a card finds on this host ---- */

typedef struct cohi_engine_card {
    size_t size;
    char name[64];
    unsigned char uuid[16];
    int major, minor; /* compute capability */
    int multiprocessors;
    uint64_t memory; /* bytes */
    int driver;      /* version of its interface: 12080 is 12.8 */
    int mps;         /* not 0: its contexts are shared by MPS */
} cohi_engine_card;

typedef struct cohi_engine_cards {
    size_t size;
    coh_status (*count)(int *count);
    coh_status (*look)(int device, cohi_engine_card *card); /* `device` is below the count */
} cohi_engine_cards;

/* ---- the descriptor ---- */

typedef struct cohi_engine {
    size_t size;
    unsigned contract; /* COHI_CONTRACT */
    const char *name;  /* "shm"; with a back end inside, "mlx:ring" */
    const cohi_engine_lifecycle *lifecycle;
    const cohi_engine_memory *memory;
    const cohi_engine_rma *rma;
    const cohi_engine_atomic *atomic;
    const cohi_engine_channel *channel;
    const cohi_engine_job *job;
    const struct cohi_engine_stream *stream; /* engine/stream.h */
    const cohi_engine_cards *cards;
    const cohi_engine_collective *collective;

    /* The library behind it, its version and what it was told to use, for people to read, once a probe
     * went well. False: it cannot be told. NULL: there is no library. */
    bool (*library)(char *text, size_t room);

    /* Whether this host has a fabric that the library drives by more than sockets (RDMA). NULL: never. */
    bool (*has_fabric)(void);
} cohi_engine;

/* ---- the registry (registry.c) ---- */

/* Finds the engine called `name`, or for NULL and "any" the first that probes well for `need`. Of "tcp+nvshmem"
 * it is tcp, and of "nvshmem" as of "any": what is for cards is probed too. An
 * unknown name is COH_INVALID_ARGUMENT and lists those that exist; one that cannot serve is
 * COH_NOT_AVAILABLE with its reason. */
coh_status cohi_engine_select(const char *name, const cohi_need *need, const cohi_engine **engine);

/* The engine that a rank would take for "any" over a network that is trusted (COHORT_NET=clear) if all ranks could,
 * since it drives a fabric; NULL: none. */
const cohi_engine *cohi_engine_with_fabric(const cohi_need *need);

/* Whether no engine is named. */
bool cohi_engine_is_any(const char *name);

/* The engine called `name` if it brings its own rank and size, else NULL: so too for NULL and "any",
 * since an engine is asked for its job only by name. */
const cohi_engine *cohi_engine_with_job(const char *name);

/* The engine whose job this process is in already, since the program itself started the library behind it
 * (MPI_Init); NULL: none. */
const cohi_engine *cohi_engine_with_running_job(void);

/* What the engine of that index, of which coh_engine_name knows the name, is for. */
const char *cohi_engine_summary(int index);

/* What the engine of that index, which is available, says of the library behind it; false: nothing. */
bool cohi_engine_library(int index, char *text, size_t room);

/* Whether the facts of the engine allow one more endpoint in this process; the others go around each
 * endpoint. */
coh_status cohi_engine_allows(const cohi_engine *engine);
coh_status cohi_engine_admit(const cohi_engine *engine);
void cohi_engine_dismiss(const cohi_engine *engine);

/* The engine for memory of a card, which no world has as its own, by the name that cohi_engine_cards_of
 * gave. COH_NOT_AVAILABLE where it was not built, or cannot be opened; whether it can be used its probe tells. */
coh_status cohi_engine_for_cards(const char *name, const cohi_engine **engine);

/* Which engine heaps on a card have where `name` was asked for: "nvshmem" of "nvshmem" and "tcp+nvshmem", else
 * "cuda". */
const char *cohi_engine_cards_of(const char *name);

extern const cohi_engine cohi_engine_threads;
extern const cohi_engine cohi_engine_shm;
extern const cohi_engine cohi_engine_sim;
extern const cohi_engine cohi_engine_sim_channel;

#endif
