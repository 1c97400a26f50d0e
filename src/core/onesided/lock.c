/*
 * lock.c - a queue of ranks for each lock, in the manner of Mellor-Crummey and Scott.
 *
 * Each rank's copy of the lock is one word. On the lock's home, its TAIL is the last rank that
 * asked. A rank that asks puts itself there, links itself to the one it found (the NEXT of that
 * one's copy), and waits for GRANTED in its own copy, which its predecessor sets. Nobody can be
 * taken out of the queue: when a rank in it is lost, stalled or gives up, the home's copy is marked
 * DEAD with the rank to blame and the KIND of the verdict, which every waiting rank looks at from
 * time to time.
 */
#include "core/onesided/atomic.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/health/peer.h"
#include "core/heap/device.h"
#include "core/onesided/rma.h"
#include "core/health/far.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

/* Fields: a rank + 1, or 0 for none; KIND: a cohi_verdict_kind. */
enum { FIELD_BITS = 17, TAIL_AT = 0, NEXT_AT = 17, DEAD_AT = 34, KIND_AT = 51, KIND_BITS = 4 };

_Static_assert(COHI_WORLD_MAX < 1 << FIELD_BITS, "a field holds a rank + 1");

#define FIELD      ((UINT64_C(1) << FIELD_BITS) - 1)
#define KIND       ((UINT64_C(1) << KIND_BITS) - 1)
#define GRANTED    (UINT64_C(1) << 60)
#define HELD       (UINT64_C(1) << 61) /* in one's own copy */
#define BUSY       (UINT64_C(1) << 62) /* likewise: a thread of the rank is in a call on it */
#define HOME_STEPS 64                  /* looks at one's own copy between two at the home's */

static int field(uint64_t word, int at)
{
    return (int)(word >> at & FIELD) - 1;
}

static uint64_t in_field(int rank, int at)
{
    return (uint64_t)(rank + 1) << at;
}

/* One lock, as a call sees it. */
struct lock {
    coh_world *world;
    const char *call;
    coh_lock *mine;
    cohi_spot spot;
    int home;
};

/* ---- words ---- */

/* What is done to one's own copy is complete on return, since the next call looks at it; what is
 * done to another's may still be on its way when no result is wanted. */
static coh_status apply(const struct lock *lock, int rank, coh_atomic_op op, uint64_t operand,
                        const uint64_t *compare, uint64_t *result)
{
    uint64_t unwanted;
    if (!result && rank == lock->world->rank)
        result = &unwanted;
    return cohi_atomic_apply(lock->world, &(cohi_amo){.call = lock->call,
                                                      .doing = COHI_OP_LOCK,
                                                      .context = COHI_CONTEXT_DEFAULT,
                                                      .op = op,
                                                      .dtype = COH_U64,
                                                      .rank = rank,
                                                      .spot = lock->spot,
                                                      .operand = &operand,
                                                      .compare = compare,
                                                      .result = result,
                                                      .blocking = true});
}

static uint64_t own_word(const struct lock *lock)
{
    return __atomic_load_n(lock->mine, __ATOMIC_ACQUIRE);
}

/* " on host b was lost: killed by signal 9 (Killed)", as far as that is known. The rank is what the
 * user's memory says. */
static void describe_dead(coh_world *world, int rank, const char *happened, char *text, size_t room)
{
    char where[COHI_FAR_TEXT] = "", why[128] = "";
    uint64_t verdict = COHI_VERDICT_NONE;
    if (rank >= 0 && rank < world->size) {
        cohi_far_text(world, rank, where);
        verdict = world->crew ? cohi_verdict_heed(world, rank) : cohi_verdict_await(world, rank);
    }
    if (verdict)
        cohi_verdict_describe(verdict, why, sizeof why);
    snprintf(text, room, "%s %s%s%s", where, happened, verdict ? ": " : "", why);
}

/* `word` has the mark; the verdict itself may come here later. A rank that gave up for reasons of its
 * own is lost to the others. */
static coh_status fail_dead(const struct lock *lock, uint64_t word)
{
    static const char *const happened[] = {
        [COHI_VERDICT_NONE] = "gave up waiting for it",
        [COHI_VERDICT_LOST] = "was lost",
        [COHI_VERDICT_STOPPED] = "stalled",
        [COHI_VERDICT_STUCK] = "stalled",
        [COHI_VERDICT_TIMED_OUT] = "was past COHORT_TIMEOUT",
        [COHI_VERDICT_MUTE] = "stalled",
    };
    uint64_t kind = word >> KIND_AT & KIND;
    if (kind >= sizeof happened / sizeof *happened) /* the user's memory, after all */
        kind = COHI_VERDICT_LOST;
    coh_status status = kind == COHI_VERDICT_NONE ? COH_PEER_LOST : cohi_verdict_status(kind);
    char what[256];
    if (kind == COHI_VERDICT_NONE)
        snprintf(what, sizeof what, " %s", happened[kind]);
    else
        describe_dead(lock->world, field(word, DEAD_AT), happened[kind], what, sizeof what);
    return cohi_world_fail(lock->world, lock->call, status,
                           "the lock at %s is dead since rank %d%s",
                           cohi_spot_describe(lock->spot).text, field(word, DEAD_AT), what);
}

/* Replaces the home's word by `change` of it and `bits`, whatever others do meanwhile; *before is
 * what it was. `change` gives the same word back to leave it. */
static coh_status change_home(const struct lock *lock,
                              uint64_t (*change)(uint64_t word, uint64_t bits), uint64_t bits,
                              uint64_t *before)
{
    uint64_t word = 0, seen;
    coh_status status = apply(lock, lock->home, COH_ATOMIC_FETCH, 0, NULL, &word);
    while (status == COH_OK) {
        uint64_t wanted = change(word, bits);
        if (wanted == word)
            break;
        status = apply(lock, lock->home, COH_ATOMIC_COMPARE_SWAP, wanted, &word, &seen);
        if (status != COH_OK || seen == word)
            break;
        word = seen;
    }
    *before = word;
    return status;
}

static uint64_t join_queue(uint64_t word, uint64_t tail)
{
    return field(word, DEAD_AT) >= 0 ? word : (word & ~(FIELD << TAIL_AT)) | tail;
}

static uint64_t join_if_free(uint64_t word, uint64_t tail)
{
    return field(word, TAIL_AT) >= 0 ? word : join_queue(word, tail);
}

static uint64_t leave_if_last(uint64_t word, uint64_t tail)
{
    return (word & FIELD << TAIL_AT) == tail ? word & ~(FIELD << TAIL_AT) : word;
}

static uint64_t mark_dead(uint64_t word, uint64_t mark)
{
    return field(word, DEAD_AT) >= 0 ? word : word | mark;
}

static uint64_t own_tail(const struct lock *lock)
{
    return in_field(lock->world->rank, TAIL_AT);
}

/* What is known against `rank` is the KIND. Returns the mark that stays, which may be an earlier
 * one. */
static uint64_t declare_dead(const struct lock *lock, int rank)
{
    uint64_t before;
    uint64_t mark =
        in_field(rank, DEAD_AT) | (cohi_verdict_on(lock->world, rank) & KIND) << KIND_AT;
    coh_status status = change_home(lock, mark_dead, mark, &before);
    return status == COH_OK && field(before, DEAD_AT) >= 0 ? before : mark;
}

/* What became of a wait for `rank`, or of an operation on it. An error leaves a place in the queue
 * that nobody will pass, so the lock is dead, and by whom is the error if that is `rank`. */
static coh_status conclude(const struct lock *lock, int rank, coh_status status)
{
    if (status == COH_OK)
        return COH_OK;
    cohi_error kept;
    cohi_error_keep(&kept);
    int cause = cohi_verdict_cause(lock->world, rank);
    uint64_t mark = declare_dead(lock, cause >= 0 ? cause : lock->world->rank);
    return cause == rank ? fail_dead(lock, mark) : cohi_fail_again(&kept);
}

/* ---- entering ---- */

static coh_status begin(coh_world *world, const char *call, coh_lock *pointer, struct lock *lock)
{
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    *lock = (struct lock){.world = world, .call = call, .mine = pointer};
    status = cohi_heap_locate(world, call, pointer, &lock->spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, world->rank, lock->spot, sizeof *pointer);
    if (status == COH_OK && (uintptr_t)pointer % sizeof *pointer != 0)
        status = cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                                 "the lock at %p is not aligned to its 8 bytes", (void *)pointer);
    if (status == COH_OK && cohi_device_serves(world, lock->spot))
        status = cohi_world_fail(world, call, COH_UNSUPPORTED,
                                 "the lock at %s is in a heap on a card, where the ranks' CPUs "
                                 "cannot wait for it; allocate it in a heap of kind host",
                                 cohi_spot_describe(lock->spot).text);
    /* Neighbouring locks have different homes, so that no rank has them all. */
    lock->home = (int)(lock->spot / sizeof *pointer % (uint64_t)world->size);
    return status == COH_OK ? cohi_fault_strike(world->fault, COHI_OP_LOCK) : status;
}

static coh_status refuse_held(const struct lock *lock, const char *how)
{
    return cohi_world_fail(lock->world, lock->call, COH_INVALID_ARGUMENT,
                           "this rank %s the lock at %s", how, cohi_spot_describe(lock->spot).text);
}

/* ---- waiting ---- */

static coh_status look_at_home(const struct lock *lock)
{
    uint64_t word;
    coh_status status = apply(lock, lock->home, COH_ATOMIC_FETCH, 0, NULL, &word);
    if (status == COH_OK && field(word, DEAD_AT) >= 0)
        return fail_dead(lock, word);
    return status;
}

/* Until one's own word has one of `bits`, which `rank` should see to, or the lock is dead. */
static coh_status wait_for(const struct lock *lock, uint64_t bits, int rank)
{
    coh_world *world = lock->world;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_world_show_op(world, COHI_OP_LOCK);
    cohi_wait_begin(&wait, world, lock->call, COHI_OP_LOCK, NULL, rank);
    for (unsigned step = 1; status == COH_OK && !(own_word(lock) & bits); step++) {
        status = cohi_wait_step(&wait);
        if (status == COH_OK && step % HOME_STEPS == 0)
            status = look_at_home(lock);
    }
    cohi_wait_end(&wait);
    cohi_world_show_op(world, COHI_OP_NONE);
    return conclude(lock, rank, status);
}

static coh_status queue_behind(const struct lock *lock, int predecessor)
{
    coh_status status =
        apply(lock, predecessor, COH_ATOMIC_ADD, in_field(lock->world->rank, NEXT_AT), NULL, NULL);
    return status == COH_OK ? wait_for(lock, GRANTED, predecessor)
                            : conclude(lock, predecessor, status);
}

/* ---- one's own copy ---- */

/* Makes the lock this thread's business alone, among those of its rank. *was is the word before. */
static coh_status occupy(const struct lock *lock, uint64_t *was)
{
    coh_status status = apply(lock, lock->world->rank, COH_ATOMIC_OR, BUSY, NULL, was);
    if (status != COH_OK || !(*was & BUSY))
        return status;
    return cohi_world_fail(lock->world, lock->call, COH_BUSY,
                           "another thread of this rank is in a call on the lock at %s",
                           cohi_spot_describe(lock->spot).text);
}

/* For a rank that may hold it: another of its threads that asks meanwhile is refused, and gone in a
 * moment. */
static coh_status occupy_in_time(const struct lock *lock, uint64_t *was)
{
    coh_status status;
    while ((status = occupy(lock, was)) == COH_BUSY)
        sched_yield();
    return status;
}

/* Ends that, leaving `bits` of what is set. */
static coh_status release(const struct lock *lock, uint64_t bits, coh_status status)
{
    coh_status kept = apply(lock, lock->world->rank, COH_ATOMIC_AND, bits & ~BUSY, NULL, NULL);
    return status == COH_OK ? kept : status;
}

static coh_status complete_own(const struct lock *lock)
{
    cohi_world_show_op(lock->world, COHI_OP_LOCK);
    coh_status status = cohi_order_quiet(lock->world, lock->call, COHI_OP_LOCK);
    cohi_world_show_op(lock->world, COHI_OP_NONE);
    return status;
}

/* What was left there by the last time, and by a grant that came after a failure; `was` is the word
 * as it was found. */
static coh_status clean_up(const struct lock *lock, uint64_t was)
{
    if (!(was & (FIELD << NEXT_AT | GRANTED)))
        return COH_OK;
    coh_status status =
        apply(lock, lock->world->rank, COH_ATOMIC_AND, ~(FIELD << NEXT_AT | GRANTED), NULL, NULL);
    return status == COH_OK ? complete_own(lock) : status;
}

/* From occupied to held in one step: the one bit goes, the other comes. */
static coh_status hold(const struct lock *lock)
{
    return apply(lock, lock->world->rank, COH_ATOMIC_ADD, HELD - BUSY, NULL, NULL);
}

/* ---- the calls ---- */

/* Has it, once this is COH_OK, and is to hold it. */
static coh_status set(const struct lock *lock, uint64_t was)
{
    uint64_t before = 0;
    coh_status status = clean_up(lock, was);
    if (status == COH_OK)
        status = change_home(lock, join_queue, own_tail(lock), &before);
    if (status != COH_OK)
        return status;
    if (field(before, DEAD_AT) >= 0)
        return fail_dead(lock, before);
    if (field(before, TAIL_AT) >= 0)
        status = queue_behind(lock, field(before, TAIL_AT));
    return status;
}

/* A lock whose last holder died or left looks taken for ever; asking for that is part of the test.
 * A rank that leaves may have cleared it just before. */
static coh_status test_holder(const struct lock *lock, int tail, int *taken)
{
    coh_world *world = lock->world;
    uint64_t word;
    *taken = 0;
    if (tail == world->rank)
        return COH_OK;
    if (cohi_verdict_on(world, tail))
        return fail_dead(lock, declare_dead(lock, tail));
    if (!cohi_peer_has_left(world, tail))
        return COH_OK;
    coh_status status = apply(lock, lock->home, COH_ATOMIC_FETCH, 0, NULL, &word);
    if (status != COH_OK || field(word, TAIL_AT) != tail)
        return status;
    return conclude(lock, tail, cohi_verdict_presume(world, lock->call, tail, COHI_LOSS_LEFT));
}

static coh_status test(const struct lock *lock, uint64_t was, int *taken)
{
    uint64_t before = 0;
    coh_status status = clean_up(lock, was);
    if (status == COH_OK)
        status = change_home(lock, join_if_free, own_tail(lock), &before);
    if (status != COH_OK)
        return status;
    if (field(before, DEAD_AT) >= 0)
        return fail_dead(lock, before);
    if (field(before, TAIL_AT) >= 0)
        return test_holder(lock, field(before, TAIL_AT), taken);
    *taken = 1;
    return COH_OK;
}

/* Somebody has joined, and is about to say who. If it died before it could, it is the last in
 * the queue, or those behind it find out. */
static coh_status pass_on(const struct lock *lock, int tail)
{
    coh_status status = wait_for(lock, FIELD << NEXT_AT, tail);
    if (status != COH_OK)
        return status;
    int next = field(own_word(lock), NEXT_AT);
    return conclude(lock, next, apply(lock, next, COH_ATOMIC_OR, GRANTED, NULL, NULL));
}

static coh_status leave(const struct lock *lock)
{
    uint64_t before = 0;
    coh_status status = change_home(lock, leave_if_last, own_tail(lock), &before);
    if (status == COH_OK && field(before, TAIL_AT) != lock->world->rank)
        status = pass_on(lock, field(before, TAIL_AT));
    return status;
}

/* What cannot be completed, since its target is lost, is no reason to keep the next one waiting. */
static coh_status clear(const struct lock *lock)
{
    coh_status completed = complete_own(lock);
    coh_status left = leave(lock);
    return left == COH_OK ? completed : left;
}

coh_status coh_lock_set(coh_world *world, coh_lock *pointer)
{
    struct lock lock;
    uint64_t was = 0;
    coh_status status = begin(world, "coh_lock_set", pointer, &lock);
    if (status == COH_OK)
        status = occupy(&lock, &was);
    if (status != COH_OK)
        return status;
    status = was & HELD ? refuse_held(&lock, "already holds") : set(&lock, was);
    cohi_order_acquire(world);
    return status == COH_OK ? hold(&lock) : release(&lock, UINT64_MAX, status);
}

coh_status coh_lock_test(coh_world *world, coh_lock *pointer, int *taken)
{
    struct lock lock;
    uint64_t was = 0;
    coh_status status = begin(world, "coh_lock_test", pointer, &lock);
    if (status == COH_OK && !taken)
        status = cohi_world_fail(world, lock.call, COH_INVALID_ARGUMENT, "taken is NULL");
    if (status == COH_OK)
        status = occupy(&lock, &was);
    if (status != COH_OK)
        return status;
    int got = 0;
    status = was & HELD ? refuse_held(&lock, "already holds") : test(&lock, was, &got);
    cohi_order_acquire(world);
    if (status == COH_OK)
        *taken = got;
    return status == COH_OK && got ? hold(&lock) : release(&lock, UINT64_MAX, status);
}

coh_status coh_lock_clear(coh_world *world, coh_lock *pointer)
{
    struct lock lock;
    uint64_t was = 0;
    coh_status status = begin(world, "coh_lock_clear", pointer, &lock);
    if (status == COH_OK)
        status = occupy_in_time(&lock, &was);
    if (status != COH_OK)
        return status;
    if (!(was & HELD))
        return release(&lock, UINT64_MAX, refuse_held(&lock, "does not hold"));
    return release(&lock, ~(HELD | GRANTED | FIELD << NEXT_AT), clear(&lock));
}
