/*
 * Room: core/health.
 *
 * Waiting, and who keeps whom waiting: verdicts on ranks, the watcher of processes, control
 * writes to a peer's slot, completing what was issued.
 * Uses base, memory, bootstrap and core/world. A wait knows its team only as a party (party.h),
 * and messages only as world->progress.
 * Hides sleeping, waking, deadlines and how a lost rank is noticed.
 */
/*
 * wait.h - how a blocking call waits, everywhere.
 *
 * The ladder: look often; then look on or yield the core between looks, whichever suits the company
 * (core/world/company.h); then sleep, looking again at least every millisecond (a plain store from a
 * mapped peer wakes nobody) or when the bell rings. On the way it watches for verdicts, warns, and
 * passes a verdict itself on a rank that keeps others waiting without need.
 *
 *     cohi_wait wait;
 *     cohi_wait_begin(&wait, world, call, op, party, rank);
 *     while (status == COH_OK && !what_I_wait_for())
 *         status = cohi_wait_step(&wait);
 *     cohi_wait_end(&wait);
 *
 * Time is counted as the waiter's own: a step that took long (the job was paused) counts little.
 *
 * A thread that sleeps here cannot be cancelled (pthread_cancel): what it waits for may be half done
 * by others. The request stays pending, for the first cancellation point after the call.
 */
#ifndef COHI_CORE_HEALTH_WAIT_H
#define COHI_CORE_HEALTH_WAIT_H

#include "core/world/doing.h"
#include "core/health/party.h"

typedef struct cohi_wait {
    coh_world *world;
    const char *call;
    cohi_opcode op;
    cohi_party *party; /* whose members are waited for, or NULL */
    int rank;          /* the one that is waited for next; -1: any */
    int tag;           /* of the message; -1: none */
    bool ends;         /* by itself, at a time that the caller gave */
    const char *hint;  /* what else to say when it cannot end, or NULL */
    /* Of whom any can end it, where that is not every rank; or NULL. */
    void (*list)(const void *waiting, cohi_spans *ranks);
    /* The word that it is for; or NULL. */
    void (*word)(const void *waiting, cohi_awaited_word *word);
    const void *waiting; /* passed to both */
    unsigned looks;
    unsigned climbed; /* steps after the first looks */
    unsigned yields;  /* among them */
    cohi_rung rung;   /* of the last of them */
    uint64_t looked_from_ns;
    bool asleep;   /* announced in slot->sleepers */
    bool relieved; /* while it is asleep a thread of the engine takes what comes */
    bool slept;
    unsigned bell;
    uint64_t last_ns;
    uint64_t waited_ns;
    uint64_t examine_at_ns; /* in waited time, as the next */
    uint64_t warn_at_ns;
    uint64_t examined_ns; /* when it last was */
    cohi_doing *doing;    /* where others see it, once it takes long */
    int cancel_state;     /* the thread's, before it slept */
    int left;             /* a rank that was seen to have left; -1: none */
    bool looked_again;    /* the caller has looked once more after a verdict */
} cohi_wait;

void cohi_wait_begin(cohi_wait *wait, coh_world *world, const char *call, cohi_opcode op,
                     cohi_party *party, int rank);

/* COH_OK: look again. Else the error to return. */
coh_status cohi_wait_step(cohi_wait *wait);

void cohi_wait_end(cohi_wait *wait);

/* Waits for an engine's op, which is cancelled if the wait fails. */
coh_status cohi_wait_op(coh_world *world, const char *call, cohi_opcode op, int rank,
                        cohi_op *engine_op);

/* The same for an op of another engine than the world's own. */
coh_status cohi_wait_op_of(coh_world *world, cohi_server server, const char *call, cohi_opcode op,
                           int rank, cohi_op *engine_op);

#endif
