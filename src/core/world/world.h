/*
 * Room: core/world.
 *
 * A rank's handle and the gate of every call; what the rank shows of itself; whom it shares its
 * core with; faults on purpose.
 * Uses base, bootstrap and engine. What it must ask of rooms above goes through tables that they
 * fill in.
 * Hides when a call may take the fast path, behind one word of state.
 */
/*
 * world.h - one rank's handle, and the gate that every call passes.
 *
 * The handle outlives coh_finalize as a tombstone, and so do those of its teams, contexts and
 * requests, so that a call after it is an error instead of a crash.
 */
#ifndef COHI_CORE_WORLD_WORLD_H
#define COHI_CORE_WORLD_WORLD_H

#include "base/atomics.h"
#include "base/config.h"
#include "base/error.h"
#include "bootstrap/board.h"
#include "bootstrap/group.h"
#include "core/world/company.h"
#include "core/world/spot.h"
#include "engine/engine.h"

#include <pthread.h>
#include <stdbool.h>

struct cohi_crew;
struct cohi_fault;
struct cohi_mailbox;
struct cohi_delays;
struct cohi_race;
struct cohi_relay;
struct cohi_survey;

/* Bits of coh_world.state; 0 is an open world with nothing special about it. */
enum {
    COHI_WORLD_CLOSED = 1,
    COHI_WORLD_FORKED = 2,  /* we are in a child of the process that joined */
    COHI_WORLD_CAREFUL = 4, /* take the slow path: COHORT_CHECK or COHORT_FAULT is on */
    COHI_WORLD_BOUND = 8,   /* a thread-rank's: only its own thread and unbound ones may call */
    COHI_WORLD_ENGINE_ATOMICS = 16, /* the engine's are not the CPU's: all atomics go by engine */
    COHI_WORLD_DEVICE = 32, /* take the slow path: pointers may be those of a card, see `device` */
};

typedef struct cohi_peer {
    char *heap;      /* its heap in this process, or NULL: by engine */
    cohi_slot *slot; /* its slot on the board, or NULL: by engine */
    pid_t pid;
    int pidfd;                          /* -1: a thread of this process, or on another host */
    struct cohi_inspection *inspection; /* of a slot that is not mapped, or NULL: none yet */
} cohi_peer;

_Static_assert(sizeof(cohi_peer) == 32, "the index on the way of every put is a shift");

/* Memory of this process that is a view of part of its heap (core/heap/register.h). Others look at it
 * while it changes: `bytes` is stored last, and zeroed first. */
typedef struct cohi_window {
    _Atomic(char *) base;
    _Atomic uint64_t bytes;  /* 0: this one is free */
    _Atomic uint64_t offset; /* in the heap */
    void *spare;             /* during a fork: the copy that the child gets */
    bool prepared;           /* it is a view without us, and stays one (memory/prepared.h) */
} cohi_window;

enum { COHI_WINDOWS_MAX = 8 };

/* What a rank tells the others of a segment that it has added. */
typedef struct cohi_segment_card {
    uint64_t bytes; /* the most that it can have */
    cohi_region_key key;
    unsigned char more[COHI_KEY_BYTES]; /* of what does not fit the key */
} cohi_segment_card;

/* What serves memory to this rank: an engine, and the rank's endpoint of it. */
typedef struct cohi_server {
    const cohi_engine *engine;
    cohi_endpoint *endpoint;
} cohi_server;

/* An engine beside the world's own, for heaps on a card (core/heap/device.h). */
typedef struct cohi_device {
    cohi_server server;
    cohi_engine_facts facts;
    /* Of the watcher alone (core/health/streams.h): when it last looked, and for how long it has seen a rank stopped that
     * streams wait for. */
    uint64_t looked_ns;
    uint64_t stopped_ns[]; /* [size] */
} cohi_device;

struct coh_world {
    /* Read by every call. */
    _Alignas(COHI_CACHE_LINE) atomic_uint state;
    int rank;
    int size;
    bool driven; /* with the others of its crew, by a single thread */
    cohi_slot *slot;
    cohi_peer *peers; /* [size] */
    char *heap_base;
    _Atomic uint64_t heap_limit; /* bytes that put and get may touch */

    /* Read where an address is not in the heap. */
    atomic_int window_count; /* that have been used; it never shrinks */
    atomic_int heap_count;   /* the same of `heaps`; 1 and more where there is memory */
    cohi_window windows[COHI_WINDOWS_MAX];
    _Atomic(coh_heap *) heaps[COHI_HEAPS_MAX]; /* by number; NULL: never used (core/heap/heap.h) */

    /* Fixed at init. */
    const cohi_engine *engine;
    char engine_name[32]; /* with that of the engine for cards, where one was named */
    const char *cards;    /* the name of the engine for cards */
    uint64_t card_heap;   /* COHORT_CARD_HEAP; 0: auto */
    uint64_t prepared;    /* bytes that the heap begins with: see memory/prepared.h */
    cohi_endpoint *endpoint;
    const cohi_upcalls *upcalls;   /* what engines are given */
    cohi_engine_facts facts;       /* of the endpoint */
    _Atomic(cohi_device *) device; /* from the first heap on a card on; NULL: there is none */
    int hosts;                     /* that the ranks are on */
    int *host_of;                  /* [size]: the host of each rank, from 0 */
    bool remote;                   /* some peer is reached by the engine */
    bool delayed; /* puts may arrive later: by the engine, or for a look for races */
    bool
        crowded; /* more ranks than cores, with those of hosts that share the machine; the same on the host */
    bool checks_bounds; /* put and get are held to allocations (COHORT_CHECK) */
    bool huge_pages;    /* heaps ask for them (COHORT_HUGE_PAGES) */
    uint64_t warn_ns, stall_ns, timeout_ns, link_timeout_ns; /* 0: never */
    int local_rank;
    int local_size;
    cohi_profile profile; /* of the host; its ranks have the same */
    atomic_uint spins;    /* looks before a wait does anything else; see cohi_world_spins */
    cohi_company company; /* these two change as waits learn */
    _Alignas(8) unsigned char tuning[COHI_TUNING_BYTES]; /* rank 0's; see coll/tuning.h */

    cohi_board *board;
    cohi_group *group;          /* processes, else NULL */
    const coh_unique_id *id;    /* while it joins; of threads NULL */
    struct cohi_crew *crew;     /* ranks of this process, else NULL */
    cohi_segment_card arriving; /* of the heap that is being made, for the others of the crew */
    struct cohi_fault *fault;
    struct cohi_relay *relay; /* of several hosts, else NULL (core/onesided/relay.h) */
    struct cohi_race *race;   /* NULL unless races are looked for (core/onesided/race.h) */
    const struct cohi_delays
        *delays;         /* what holds puts back, or NULL: the engine (core/health/order.h) */
    bool watched;        /* by the watcher thread */
    int exiting_looks;   /* of that thread, since this rank was in exit(3) */
    atomic_bool parting; /* in the last meeting, from which others leave as soon as they can */
    atomic_int parted;   /* not 0: it has parted ahead of finalize, with that status less one */
    pthread_mutex_t team_lock;      /* of the next four */
    coh_team *teams;                /* all, destroyed ones too */
    uint64_t free_teams;            /* numbers, a bit each */
    uint32_t team_epoch;            /* the last that any destroyed team used */
    uint32_t team_ends[COHI_TEAMS]; /* the same by number */
    coh_team *team;                 /* of all ranks */
    coh_team *host_team;
    pthread_mutex_t context_lock; /* of the next two */
    coh_context *contexts;
    uint64_t free_contexts; /* numbers, a bit each */
    struct cohi_mailbox *mailbox;
    void (*progress)(
        coh_world *world);      /* moves messages while a call waits; NULL: there are none */
    pthread_mutex_t rest_lock;  /* of the next */
    uint64_t rest_runs;         /* of the threads that wait for nothing, at the last look */
    struct cohi_survey *survey; /* what its waits have seen of all ranks, or NULL */
    pthread_mutex_t survey_lock;
    coh_request *requests; /* of a tombstone: those that nobody had waited for */
    pthread_mutex_t inspect_lock;
    atomic_bool *left; /* [size]: peers that have said that they leave, where it cannot be seen */
    _Atomic uint64_t *doubts; /* [size], or NULL: one host; when a far peer was seen to be gone */
    _Atomic uint64_t *mute;   /* [size], or NULL too; of one that is mute (core/health/peer.c) */

    coh_world *next; /* in the list of worlds, or of tombstones */
};

/* The world that the calling thread is bound to, if any. Initial-exec: every put of a thread-rank
 * reads it. */
extern _Thread_local coh_world *cohi_bound_world __attribute__((tls_model("initial-exec")));

/* Whether the thread may use a thread-rank's world: it is its own, or a helper that is bound to
 * none. The first to call, which makes it its own, takes the slow path. */
static inline bool cohi_world_admits(const coh_world *world)
{
    return cohi_bound_world == world
           || (!cohi_bound_world
               && atomic_load_explicit(&world->slot->thread, memory_order_relaxed) != 0);
}

static inline cohi_server cohi_world_server(const coh_world *world)
{
    return (cohi_server){world->engine, world->endpoint};
}

/* NULL: no heap of the world is on a card. */
static inline cohi_device *cohi_world_device(const coh_world *world)
{
    return atomic_load_explicit(&((coh_world *)world)->device, memory_order_acquire);
}

/* Whether the world uses a card and `pointer` is memory of one, which the CPU cannot load. */
bool cohi_world_is_on_card(const coh_world *world, const void *pointer);

/* Lets the engines do what they can do at once; or the one of the card alone, if there is one. */
void cohi_world_progress(coh_world *world);
void cohi_world_progress_device(coh_world *world);

/* How often a call looks again for what it waits for, before it takes the ladder (core/health/wait.h). */
static inline unsigned cohi_world_spins(const coh_world *world)
{
    return atomic_load_explicit(&((coh_world *)world)->spins, memory_order_relaxed);
}

/* What is special about the world, but for `bits`. */
static inline unsigned cohi_world_state_but(const coh_world *world, unsigned bits)
{
    return atomic_load_explicit(&((coh_world *)world)->state, memory_order_relaxed) & ~bits;
}

static inline bool cohi_world_plain_but(const coh_world *world, unsigned bits)
{
    return COHI_LIKELY(world != NULL)
           && (COHI_LIKELY(cohi_world_state_but(world, bits) == 0)
               || (cohi_world_state_but(world, bits) == COHI_WORLD_BOUND
                   && cohi_world_admits(world)))
           && COHI_LIKELY(atomic_load_explicit(&world->slot->alarm, memory_order_relaxed) == 0);
}

/* Whether the call may take the fast path: the world is open, the thread may use it, nobody is
 * lost. */
static inline bool cohi_world_plain(const coh_world *world)
{
    return cohi_world_plain_but(world, COHI_WORLD_ENGINE_ATOMICS);
}

static inline bool cohi_world_atomics_by_engine(coh_world *world)
{
    return atomic_load_explicit(&world->state, memory_order_relaxed) & COHI_WORLD_ENGINE_ATOMICS;
}

/* As cohi_world_plain, and atomics are the CPU's; in one look. */
static inline bool cohi_world_plain_atomics(const coh_world *world)
{
    return cohi_world_plain_but(world, 0);
}

/*
 * The whole gate, first in every call: NULL, closed, forked, wrong thread are refused; an unbound
 * thread-rank's world is bound to the caller. `call` names the public function.
 */
coh_status cohi_world_enter(coh_world *world, const char *call);

/* cohi_fail with "rank 2: coh_put: " in front. The launcher sees it on the board. */
coh_status cohi_world_fail(const coh_world *world, const char *call, coh_status status,
                           const char *format, ...) __attribute__((cold, format(printf, 4, 5)));

/* COH_UNKNOWN_RANK with how many there are. */
coh_status cohi_world_check_rank(const coh_world *world, const char *call, int rank);

/* Around an operation of an engine that is waited for: what this rank is doing, for others to
 * see. */
void cohi_world_show_op(coh_world *world, cohi_opcode op);

/* ---- making and ending (world.c) ---- */

/* A handle with nothing in it yet, registered so that a fork or an exit finds it. */
coh_status cohi_world_new(int rank, int size, coh_world **world);

/* Opens it to calls. */
void cohi_world_publish(coh_world *world);

/* The first and the last step of its end (start/dissolve.h). Withdraw: closes it to calls. Bury: frees
 * what `new` made, but for the handle, which stays as a tombstone; a tombstone that is too old is
 * freed after `forget` has freed what hangs on it. */
void cohi_world_withdraw(coh_world *world);
void cohi_world_bury(coh_world *world, void (*forget)(coh_world *world));

/* Calls `visit` for each open world, under the registry's lock. */
void cohi_world_each(void (*visit)(coh_world *world, void *arg), void *arg);

/* Around a fork: holds the list of open worlds; visits them; in the child, marks all as the parent's
 * and forgets them. */
void cohi_world_hold(void);
void cohi_world_release(void);
void cohi_world_each_held(void (*visit)(coh_world *world));
void cohi_world_disown_held(void);

/* From now on `ended` is told, under the registry's lock, of a rank whose thread has ended. 0, or an
 * errno. Once a process, before the first cohi_world_new. */
int cohi_world_watch_threads(void (*ended)(coh_world *world));

/* Marks a thread-rank as this thread's; the rank is lost when the thread ends first. */
void cohi_world_bind(coh_world *world);
void cohi_world_unbind(coh_world *world);

#endif
