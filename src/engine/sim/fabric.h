/*
 * fabric.h - the simulated network between the ranks of one process.
 *
 * A discrete-event simulation. Its time is the step: every engine call is one. What a rank issues
 * becomes events, each with the step at which it is due, drawn from the seed when it is issued;
 * arriving is nothing but executing the event. All of it happens under one lock, by whichever
 * thread is in a call.
 *
 *   fabric.c   the ranks' endpoints, their death, and what core is told
 *   flight.c   operations, cut into events and given the step at which each is due
 *   arrive.c   the events' effects; operations cancelled and cut off
 *   word.c     single words: whole stores and loads, read-modify-writes
 *   turn.c     which thread goes on: the baton that makes a run repeatable
 *   sim.c      the engine's slots
 *
 * So that one seed gives one run, only one thread of the fabric runs at a time, also outside of
 * Cohort: a thread that calls in waits until all others are in a call too, then the seed picks one
 * of them. A thread that does not come back within the script's patience is no longer waited for
 * until it does; the run goes on without deadlock, but is then no longer the seed's alone.
 */
#ifndef COHI_ENGINE_SIM_FABRIC_H
#define COHI_ENGINE_SIM_FABRIC_H

#include "engine/engine.h"
#include "engine/sim/script.h"

#include <pthread.h>

typedef struct cohi_fabric cohi_fabric;

/* A stream of numbers from a seed (splitmix64). */
typedef struct cohi_dice {
    uint64_t state;
} cohi_dice;

/* ---- operations under way (flight.c) ---- */

typedef enum cohi_verb {
    COHI_VERB_PUT = 1,
    COHI_VERB_GET = 2,
    COHI_VERB_ATOMIC = 3,
    COHI_VERB_MESSAGE = 4,
    COHI_VERB_QUIET = 5,
    COHI_VERB_NOTICE = 6, /* `target` learns that `source` was killed */
    COHI_VERB_LEFT = 7,   /* `target` learns that `source` leaves */
    COHI_VERBS
} cohi_verb;

/* What was issued so far, of all ranks: flights by verb, and those of the puts that move a word or
 * less. */
typedef struct cohi_flights {
    uint64_t flights[COHI_VERBS];
    uint64_t words;
} cohi_flights;

typedef struct cohi_word_call {
    coh_atomic_op kind;
    coh_dtype dtype;
    uint64_t operand;
    uint64_t compare;
    uint64_t old;
} cohi_word_call;

typedef enum cohi_flight_stage {
    COHI_FLIGHT_COPY = 1,   /* the source is copied, the op done */
    COHI_FLIGHT_PIECE = 2,  /* some bytes arrive */
    COHI_FLIGHT_SIGNAL = 3, /* the signal of a put arrives */
    COHI_FLIGHT_DONE = 4    /* the issuer learns that it is done */
} cohi_flight_stage;

typedef struct cohi_event {
    struct cohi_event *next; /* by due step, then by issue */
    struct cohi_flight *flight;
    cohi_flight_stage stage;
    uint64_t due;
    size_t at; /* the piece */
    size_t bytes;
} cohi_event;

/* One operation and the events it is made of; the last one of them ends it. */
typedef struct cohi_flight {
    struct cohi_flight *next; /* among those that wait for their upcall */
    cohi_verb verb;
    int source;
    int target;
    unsigned context;
    int segment;
    uint64_t offset;
    size_t bytes;
    int told;         /* given to the upcalls, which free it */
    const char *from; /* of a put: the caller's memory, or `copy` once that is filled; of a message:
                        * the body, until it is copied */
    size_t head_bytes; /* of a message */
    char *copy;        /* of a put or a message */
    char *to;          /* of a get or a fetch */
    cohi_op *op;       /* until it is done */
    coh_status status; /* with which it will be */
    int failed_rank;
    cohi_word_call word;  /* of an atomic; of a put with signal, the signal's */
    uint64_t word_offset; /* of the signal */
    unsigned made;        /* events so far */
    unsigned left;        /* of them, not yet executed */
    cohi_event events[];
} cohi_flight;

/* What one context of one rank has issued, as due steps. */
typedef struct cohi_stream {
    uint64_t last_due; /* of everything */
    coh_status failed; /* something was dropped, and no quiet has said so yet */
    int failed_rank;   /* the rank that it was for */
    uint64_t *to_due;  /* by target: the last put or atomic's */
    uint64_t *fenced;  /* by target: what comes after the fence must not be before this */
} cohi_stream;

/* ---- ranks (fabric.c) ---- */

typedef struct cohi_sim_segment {
    char *base; /* NULL: none */
    uint64_t bytes;
    int owned;
    uint64_t *attached; /* by rank: bytes of its segment of this number that this rank may reach */
} cohi_sim_segment;

struct cohi_endpoint {
    cohi_fabric *fabric;
    cohi_crew_space *crew;
    int rank;
    const cohi_upcalls *upcalls;
    void *world;
    int called;         /* some thread has made a first call */
    uint64_t calls;     /* engine calls so far; a strike counts these */
    uint64_t killed_at; /* the call that killed it; 0: it lives */
    uint64_t arrivals;  /* what its threads may wait for, counted */
    int ring;           /* it is to be told of an arrival */
    int telling;        /* upcalls under way; close waits for them */
    pthread_cond_t told;
    cohi_dice dice;        /* its operations' delays and pieces, whatever the order of threads */
    uint64_t *pair_due;    /* by target, for order=keep */
    uint64_t *channel_due; /* by target: the last message's */
    cohi_stream *streams[COHI_CONTEXTS_MAX]; /* made at first use */
    uint64_t open_contexts;                  /* of the user's, a bit each */
    cohi_sim_segment segments[COHI_SEGMENTS_MAX];
};

/* ---- threads (turn.c) ---- */

typedef enum cohi_turn_state {
    COHI_TURN_AWAY = 0,  /* somewhere outside, not waited for */
    COHI_TURN_RUNS = 1,  /* has the baton */
    COHI_TURN_CALLS = 2, /* in a call, ready to go on */
    COHI_TURN_POLLS = 3, /* in progress: ready when something arrived, or nothing can */
    COHI_TURN_IDLES =
        4, /* in idle: ready when something arrived; sleeps until `until_ns` when nothing can */
    COHI_TURN_STALLS = 5 /* stalled by the script until `until_ns` */
} cohi_turn_state;

typedef struct cohi_sim_thread {
    struct cohi_sim_thread *next; /* by rank, so that the seed picks alike in every run */
    const void *token;            /* which thread */
    int rank;                     /* of its last call */
    cohi_turn_state state;
    int granted;       /* it has the baton but has not woken up to it */
    uint64_t since_ns; /* when it went on */
    uint64_t until_ns;
    uint64_t parked_step;
    uint64_t parked;    /* serial number: the least has waited longest */
    uint64_t seen;      /* the rank's arrivals when it last went out */
    uint64_t seen_idle; /* as of the last idle: a thread that polls and then idles must not sleep
                         * through what the poll brought */
    pthread_cond_t turn;
} cohi_sim_thread;

struct cohi_fabric {
    pthread_mutex_t lock; /* of everything here; never held during an upcall */
    cohi_script script;
    int size;
    int open;
    cohi_endpoint **endpoints; /* by rank; NULL: not open */
    uint64_t step;
    uint64_t trace; /* hash of all events executed */
    cohi_flights traffic;
    cohi_event *events;

    cohi_flight *upcalls; /* messages and notices to be told, in order */
    cohi_flight **upcalls_end;
    int rings;          /* endpoints whose `ring` is set */
    const void *teller; /* the thread that makes upcalls, one at a time */
    uint64_t teller_since_ns;
    int teller_late; /* it blocks: the others go on meanwhile */

    cohi_dice dice; /* picks the thread that goes on */
    cohi_sim_thread *threads;
    int thread_count;
    uint64_t parks;
    uint64_t first_call_ns;
    int gave_up;         /* on ranks that never called */
    unsigned left_alone; /* how often a thread was not waited for */
    pthread_t clock;     /* the one thread that looks at the time */
    pthread_cond_t tick;
    uint64_t tick_ns; /* when it looks next */
    int closing;
};

/* A number below `bound`, which is not 0. */
uint64_t cohi_dice_below(cohi_dice *dice, uint64_t bound);

/* Opens rank args->rank; makes the crew's fabric when it is the first. */
coh_status cohi_fabric_join(const cohi_engine_args *args, cohi_endpoint **endpoint);

/* Closes it: what it issued and is not due yet is lost, and so is what is on its way to it. The last
 * one frees the fabric. */
void cohi_fabric_leave(cohi_endpoint *endpoint);

/* Whether two ranks are of one pretended host, and so map each other. */
int cohi_fabric_neighbors(const cohi_fabric *fabric, int rank, int other);

/* The host that the rank plays, from 0. */
int cohi_fabric_host(const cohi_fabric *fabric, int rank);

/* The endpoint of a rank that takes part, or NULL: closed or killed. */
cohi_endpoint *cohi_fabric_alive(cohi_fabric *fabric, int rank);

/* Kills the endpoint at its current call. COH_NO_MEMORY, and nothing has changed. Lock held. */
coh_status cohi_fabric_kill(cohi_endpoint *endpoint);

/* Notes that something arrived for the rank. Lock held. */
void cohi_fabric_ring(cohi_endpoint *endpoint);

/* Hands a message or notice over to be told; owns it from then on. Lock held. */
void cohi_fabric_tell_later(cohi_fabric *fabric, cohi_flight *flight);

/* Makes the upcalls that are due, unless another thread does. Lock held; let go of meanwhile. */
void cohi_fabric_tell(cohi_fabric *fabric);

/* Tells apart the threads of this process. */
const void *cohi_thread_token(void);

/* ---- issuing, lock held; on failure nothing was issued ---- */

/* `signal` may be NULL: the 64-bit word at `signal_offset` changes after the bytes are there. */
coh_status cohi_flight_put(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                           size_t bytes, uint64_t signal_offset, const cohi_word_call *signal,
                           cohi_op *op);
coh_status cohi_flight_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                           cohi_op *op);
/* `result` is NULL for a post. */
coh_status cohi_flight_atomic(cohi_endpoint *endpoint, cohi_remote at, const cohi_word_call *word,
                              void *result, cohi_op *op);
/* The head is copied at once, the body when the op is done. */
coh_status cohi_flight_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                            const void *body, size_t body_bytes, cohi_op *op);
/* Tells all ranks that this one leaves, after all that it issued; the op is done behind that. */
coh_status cohi_flight_leave(cohi_endpoint *endpoint, cohi_op *op);
/* Of a context of the user's. */
coh_status cohi_flight_open(cohi_endpoint *endpoint, unsigned context);
void cohi_flight_close(cohi_endpoint *endpoint, unsigned context);

void cohi_flight_fence(cohi_endpoint *endpoint, unsigned context);
coh_status cohi_flight_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op);

/* Room for one operation of `events` events, or NULL. */
cohi_flight *cohi_flight_new(cohi_endpoint *endpoint, cohi_verb verb, int target, unsigned events);

/* Sends a COHI_VERB_NOTICE of one event on its way. */
void cohi_flight_notice(cohi_fabric *fabric, cohi_flight *notice);

/* Executes what is due by `step`; returns whether there was anything. */
int cohi_flight_deliver(cohi_fabric *fabric, uint64_t step);

/* Ends an op with COH_TRANSPORT, unless it is done, and drops its events. */
void cohi_flight_cancel(cohi_endpoint *endpoint, cohi_op *op);

/* Executes now, in order, what the endpoint issued and is due by `until`, and drops the rest. A
 * `status` other than COH_OK is what all its ops end with. */
void cohi_flight_sever(cohi_endpoint *endpoint, uint64_t until, coh_status status);

/* Forgets all events, at the fabric's end. */
void cohi_flight_clear(cohi_fabric *fabric);

/* Ends an op of that endpoint. */
void cohi_op_complete(cohi_endpoint *endpoint, cohi_op *op, coh_status status, int rank);

void cohi_stream_free(cohi_stream *stream);
void cohi_flight_free(cohi_flight *flight);

/* ---- single words (word.c) ---- */

/* Whether `bytes` at this address are one word that is stored and loaded whole. */
int cohi_word_whole(const void *address, size_t bytes);

/* A whole word, stored with release and loaded with acquire order. `plain` may be unaligned. */
void cohi_word_store(void *address, const void *plain, size_t bytes);
void cohi_word_load(const void *address, void *plain, size_t bytes);

/* Copies from memory that its owner may be changing atomically; by words, so that it is no
 * data race. */
void cohi_word_read(void *plain, const void *shared, size_t bytes);

/* Whether the operation exists for the type. */
coh_status cohi_word_check(coh_atomic_op kind, coh_dtype dtype);

/* Applies call->kind to the word and leaves its old value in call->old. */
void cohi_word_apply(void *address, cohi_word_call *call);

/* ---- turns (turn.c) ---- */

/*
 * Begins a counted engine call: waits for the thread's turn, then lets the script strike. Always
 * returns with the lock held. COH_PEER_LOST: the rank was killed, now or before; the error
 * message is set.
 */
coh_status cohi_turn_call(cohi_endpoint *endpoint);

/* Begins progress (until_ns == 0) or idle, which are not counted. Returns with the lock held. */
void cohi_turn_poll(cohi_endpoint *endpoint, uint64_t until_ns);

/* Ends a call, progress or idle: makes the upcalls it caused, unlocks. */
void cohi_turn_end(cohi_endpoint *endpoint);

/* No longer waits for threads of that rank, which is closed; lets stalled ones go that waited for
 * it. Lock held. */
void cohi_turn_forget(cohi_fabric *fabric, int rank);

/* Lets threads go that stall until all others are gone, if they are. Lock held. */
void cohi_turn_unstall(cohi_fabric *fabric);

/* Carries the simulation on until a thread runs or nothing can happen. Lock held; let go of for
 * upcalls. */
void cohi_turn_next(cohi_fabric *fabric);

/* Starts and ends the fabric's clock. */
coh_status cohi_turn_start(cohi_fabric *fabric);
void cohi_turn_stop(cohi_fabric *fabric);

#endif
