/*
 * search.h - random programs, right or with one planted fault, each judged by what it should get.
 *
 * A program is a list of steps that follows from the seed, the kind, the engine and the number of
 * ranks alone, so every rank knows what all others do. Each rank goes through the steps in order,
 * and a step needs nothing of later ones: a program without a fault cannot deadlock. Some steps
 * have two halves with other steps between them: a collective that is started early, a helper
 * thread that waits for something.
 *
 * A rank that gets an error writes it down, ends its threads, finalizes and leaves. All ranks meet
 * at the end, so a fault reaches every one of them.
 *
 *   draw.c     a program from a seed
 *   perform.c  the steps, and their checks
 *   messages.c, words.c, collectives.c  groups of steps
 *   threads.c  helpers, crowds and idle pools
 *   plant.c    what the victim of a fault does
 *   judge.c    what each rank should have got
 *   run.c      the ranks of one program, and their time limit
 *   search.c   many programs, several at a time
 */
#ifndef TEST_SEARCH_H
#define TEST_SEARCH_H

#include "harness/harness.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SEARCH_RANKS = 5,
    SEARCH_STEPS = 32,
    SEARCH_CROWD = 40,       /* more threads than a rank can show */
    SEARCH_POOL = 4,         /* idle threads */
    SEARCH_COUNT_MAX = 4096, /* elements of a collective */
    SEARCH_BYTES_MAX = 20000 /* of a message: more than is taken without being asked for */
};

/* As COHORT_STALL is set, in seconds, unless the deadlock is certain. */
#define SEARCH_STALL_S 1.0

/* X(constant, name, performing function) */
#define SEARCH_KINDS(X)                                   \
    X(SEARCH_BARRIER, "barrier", search_barrier)          \
    X(SEARCH_COLLECTIVE, "collective", search_collective) \
    X(SEARCH_START, "start", search_start)                \
    X(SEARCH_LATE, "late", search_late)                   \
    X(SEARCH_MESSAGE, "message", search_message)          \
    X(SEARCH_WORD, "word", search_word)                   \
    X(SEARCH_TIMED, "timed", search_timed)                \
    X(SEARCH_LOCK, "lock", search_lock)                   \
    X(SEARCH_COMPUTE, "compute", search_compute)          \
    X(SEARCH_HELPER, "helper", search_helper)             \
    X(SEARCH_DELAYED, "delayed", search_delayed)          \
    X(SEARCH_CROWDED, "crowd", search_crowd)              \
    X(SEARCH_IDLE, "pool", search_pool)                   \
    X(SEARCH_POLL, "poll", search_poll)                   \
    X(SEARCH_FINISH, "finish", search_finish)             \
    X(SEARCH_CROSSED, "crossed locks", search_crossed)    \
    X(SEARCH_CIRCLE, "circle", search_circle)

typedef enum search_kind {
#define SEARCH_ENUM(constant, name, perform) constant,
    SEARCH_KINDS(SEARCH_ENUM)
#undef SEARCH_ENUM
        SEARCH_KIND_COUNT
} search_kind;

/* Teams of a program. All but SEARCH_PART have every rank. */
enum { SEARCH_WORLD, SEARCH_PART, SEARCH_EARLY, SEARCH_TAGS, SEARCH_TEAMS };

/* Ways of a message. */
enum { MESSAGE_NAMED, MESSAGE_RING, MESSAGE_ANY_RANK, MESSAGE_ANY_TAG, MESSAGE_SEVERAL, MESSAGES };

/* Ways of a word. */
enum { WORD_PUT, WORD_ADD, WORD_SIGNAL, WORD_PUT_SIGNAL, WORDS };

/* What a helper waits for. */
enum { AWAIT_MESSAGE, AWAIT_WORD, AWAIT_LOCK, AWAITS };

/* Calls of a collective. */
enum { CALL_BARRIER, CALL_SYNC, CALL_REDUCE, CALL_GATHER, CALL_BROADCAST, CALL_SCAN, CALLS };

typedef struct search_step {
    search_kind kind;
    int how;         /* MESSAGE_*, WORD_*, AWAIT_*, CALL_* */
    int from, to;    /* who brings something, and who waits for it */
    int team;        /* SEARCH_WORLD or SEARCH_PART */
    bool any;        /* `to` waits for whoever comes */
    bool spins;      /* a computation uses its core; else it sleeps */
    bool by_test;    /* a request is tested for until it is done */
    bool ticks;      /* idle threads wake now and then */
    size_t amount;   /* elements, bytes or threads */
    double seconds;  /* of a computation or a delay */
    unsigned takers; /* of a lock; otherwise the ranks that make the step on a thread of its own */
    int of;          /* SEARCH_FINISH: the step that it ends */
} search_step;

/* X(constant, name); judge.c has what each must bring */
#define SEARCH_FAULTS(X)                \
    X(FAULT_NONE, "none")               \
    X(FAULT_KILLED, "killed")           \
    X(FAULT_STOPPED, "stopped")         \
    X(FAULT_EXITED, "exited")           \
    X(FAULT_LEFT, "left early")         \
    X(FAULT_NOT_SENT, "not sent")       \
    X(FAULT_NOT_WRITTEN, "not written") \
    X(FAULT_WRONG_TAG, "wrong tag")     \
    X(FAULT_LOCKS, "crossed locks")     \
    X(FAULT_LEFT_OUT, "left out")       \
    X(FAULT_DIFFERENT, "different")     \
    X(FAULT_CIRCLE, "circle")           \
    X(FAULT_NOT_BROUGHT, "not brought to a helper")

typedef enum search_fault {
#define SEARCH_ENUM(constant, name) constant,
    SEARCH_FAULTS(SEARCH_ENUM)
#undef SEARCH_ENUM
        SEARCH_FAULT_COUNT
} search_fault;

typedef struct search_program {
    char engine[16];
    int size;
    bool faulty;
    uint64_t seed;
    search_step steps[SEARCH_STEPS];
    int count;
    int part_start, part_stride, part_size; /* of the team SEARCH_PART */
    search_fault fault;
    int fault_step;
    int victim;
    double fault_delay; /* of a kill or stop, after the step began */
    bool show;          /* what each rank got is printed */
} search_program;

/* What became of a rank, for the judge. */
typedef struct search_record {
    _Atomic int64_t entered_ns; /* when it last began something, before its first error */
    _Atomic int step;
    atomic_int failures; /* the first one writes the rest */
    coh_status status;
    int failed_step;
    double at;
    char what[64];
    char sentence[512];
    atomic_bool written; /* the above is complete */
    atomic_bool done;    /* it has finalized, as far as it could */
} search_record;

/* Symmetric memory of a rank; each step has its own. */
struct search_heap {
    uint64_t words[SEARCH_STEPS][2];
    uint64_t data[SEARCH_STEPS];
    coh_lock locks[SEARCH_STEPS][2];
    uint64_t counters[SEARCH_STEPS];
};

struct search_helper;

/* A program as one rank sees it. */
typedef struct search_rank {
    const search_program *program;
    int rank;
    coh_world *world;
    coh_team *teams[SEARCH_TEAMS];
    struct search_heap *heap;
    search_record *record;
    coh_request *requests[SEARCH_STEPS];
    int64_t *sources[SEARCH_STEPS], *targets[SEARCH_STEPS];
    struct search_helper *helpers[SEARCH_STEPS];
    struct search_helper *pool;
    bool gone; /* the victim's part is over */
} search_rank;

/* ---- draw.c ---- */

/* Fills in the steps; engine, size, faulty and seed are set. */
void search_draw(search_program *program);

/* Engine and size of a seed, where none was asked for. */
void search_draw_place(search_program *program);

const char *search_fault_name(search_fault fault);
void search_print(const search_program *program);

/* ---- perform.c ---- */

/* Joins nothing: the world is open. Everything up to the end of finalize. */
void search_perform(search_rank *self);

/* Writes down the first error of the rank, and tells whether there was none. */
bool search_must(search_rank *self, coh_status status, const char *what);
bool search_must_be(search_rank *self, bool good, const char *what);

/* Notes that the rank begins to do something that may wait. */
void search_enter(search_rank *self);

/* Computes or sleeps. */
void search_spend(double seconds, bool spins);

bool search_is_fault(const search_rank *self, int step, search_fault fault);

/* After FAULT_LEFT_OUT and FAULT_DIFFERENT ranks are at different calls, and data means nothing. */
bool search_checks_data(const search_rank *self);

int search_index_of(const search_rank *self, const search_step *step);
int search_tag(int step);

bool search_make_step(search_rank *self, const search_step *step);

#define SEARCH_DECLARE(constant, name, perform) \
    bool perform(search_rank *self, const search_step *step);
SEARCH_KINDS(SEARCH_DECLARE)
#undef SEARCH_DECLARE

/* ---- the second halves ---- */

bool search_finish_start(search_rank *self, const search_step *begun);
bool search_finish_late(search_rank *self, const search_step *begun);
bool search_finish_helper(search_rank *self, const search_step *begun);
bool search_finish_delayed(search_rank *self, const search_step *begun);
bool search_finish_crowd(search_rank *self, const search_step *begun);

/* ---- for helpers ---- */

bool search_await_word(search_rank *self, const search_step *step);
bool search_write_word(search_rank *self, const search_step *step);
bool search_receive_one(search_rank *self, const search_step *step, int from);
bool search_send_one(search_rank *self, const search_step *step);

/* Makes the step on another thread and waits for that. */
bool search_by_helper(search_rank *self, const search_step *step);

/* Ends all threads that the rank has left. */
void search_join_all(search_rank *self);

/* ---- plant.c ---- */

/* Does what a victim does at the begin of a step; false: its part is over. */
bool search_strike(search_rank *self, int step);

/* The victim of a delayed signal does not get past this. */
void search_await_strike(const search_rank *self);

/* ---- judge.c ---- */

/* Whether the ranks of a program wait for each other and have no other threads: then they are told
 * at once, however long COHORT_STALL is. */
bool search_is_certain(const search_program *program);

/* Prints what is wrong and returns how much. `hung`: the limit passed. */
int search_judge(const search_program *program, search_record *records, bool hung);

/* ---- run.c ---- */

/* Runs one program in processes of its own; the number of findings. */
int search_run(const search_program *program);

#endif
