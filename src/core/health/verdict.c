#include "core/health/verdict.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/health/control.h"
#include "core/health/far.h"
#include "core/health/peer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* How long a verdict that others have may take to come here. */
#define AWAIT_NS (300 * COHI_NS_PER_MS)

/* And the circle that led to one. */
#define CIRCLE_NS (200 * COHI_NS_PER_MS)

static unsigned cause_of(uint64_t verdict)
{
    return (unsigned)(verdict >> 8 & 0xff);
}

static int detail_of(uint64_t verdict)
{
    return (int)(uint32_t)(verdict >> 32);
}

coh_status cohi_verdict_status(uint64_t verdict)
{
    switch ((cohi_verdict_kind)(verdict & 0xff)) {
    case COHI_VERDICT_NONE:
        return COH_OK;
    case COHI_VERDICT_LOST:
        return COH_PEER_LOST;
    case COHI_VERDICT_TIMED_OUT:
        return COH_TIMED_OUT;
    case COHI_VERDICT_STOPPED:
    case COHI_VERDICT_STUCK:
    case COHI_VERDICT_MUTE:
        break;
    }
    return COH_STALLED;
}

static void describe_loss(cohi_loss loss, int detail, char *text, size_t room)
{
    switch (loss) {
    case COHI_LOSS_EXITED:
        snprintf(text, room, "exited with status %d", detail);
        return;
    case COHI_LOSS_SIGNALED:
        snprintf(text, room, "killed by signal %d (%s)", detail, cohi_os_signal_text(detail));
        return;
    case COHI_LOSS_UNFINISHED:
        snprintf(text, room, "exited without finalize");
        return;
    case COHI_LOSS_THREAD:
        snprintf(text, room, "its thread ended without finalize");
        return;
    case COHI_LOSS_LEFT:
        snprintf(text, room, "finalized while others still needed it");
        return;
    case COHI_LOSS_LINK:
        snprintf(text, room, "the connection to it broke");
        return;
    case COHI_LOSS_REPLACED:
        snprintf(text, room, "its process runs another program now, without finalize");
        return;
    case COHI_LOSS_KILLED:
        snprintf(text, room, "killed by the simulator at step %d", detail);
        return;
    case COHI_LOSS_SILENT:
        snprintf(text, room, "its host has not answered for %d s", detail);
        return;
    case COHI_LOSS_ABSENT:
        snprintf(text, room, "nobody listens at its address any more");
        return;
    case COHI_LOSS_ENDED:
        break;
    }
    snprintf(text, room, "its process ended");
}

void cohi_verdict_describe(uint64_t verdict, char *text, size_t room)
{
    const char *where = cohi_opcode_name((unsigned)detail_of(verdict));
    bool inside = detail_of(verdict) != COHI_OP_NONE;
    switch ((cohi_verdict_kind)(verdict & 0xff)) {
    case COHI_VERDICT_LOST:
        describe_loss((cohi_loss)cause_of(verdict), detail_of(verdict), text, room);
        return;
    case COHI_VERDICT_STOPPED:
        snprintf(text, room, "stopped %s%s", inside ? "in " : "", where);
        return;
    case COHI_VERDICT_STUCK:
        snprintf(text, room, "stuck %s%s", inside ? "in " : "", where);
        return;
    case COHI_VERDICT_MUTE:
        snprintf(text, room, "its process does not answer, though its host does (stopped?)%s%s",
                 inside ? "; it was last seen in " : "", inside ? where : "");
        return;
    case COHI_VERDICT_TIMED_OUT:
        snprintf(text, room, "%s%s past COHORT_TIMEOUT", inside ? "in " : "", where);
        return;
    case COHI_VERDICT_NONE:
        break;
    }
    snprintf(text, room, "alive");
}

uint64_t cohi_verdict_on(const coh_world *world, int rank)
{
    return atomic_load(cohi_slot_verdict(world->slot, rank));
}

uint64_t cohi_verdict_heed(coh_world *world, int rank)
{
    uint64_t verdict = cohi_verdict_on(world, rank);
    if (COHI_UNLIKELY(verdict != COHI_VERDICT_NONE))
        atomic_store(&world->slot->alarm, 1);
    return verdict;
}

/* The engine ends what it has under way for a rank that is lost. */
static void let_go(coh_world *world, int rank)
{
    const cohi_device *device = cohi_world_device(world);
    if (rank != world->rank && world->endpoint && world->engine->lifecycle->lose)
        world->engine->lifecycle->lose(world->endpoint, rank);
    if (rank != world->rank && device)
        device->server.engine->lifecycle->lose(device->server.endpoint, rank);
}

/* A verdict that another rank has written here did not come by note. */
void cohi_verdict_let_go(coh_world *world)
{
    const cohi_device *device = cohi_world_device(world);
    if (!device || atomic_load_explicit(&world->slot->alarm, memory_order_acquire) == 0)
        return;
    for (int rank = 0; rank < world->size; rank++)
        if (rank != world->rank && cohi_verdict_on(world, rank) != COHI_VERDICT_NONE)
            device->server.engine->lifecycle->lose(device->server.endpoint, rank);
}

static bool note(coh_world *world, int rank, uint64_t verdict)
{
    uint64_t none = COHI_VERDICT_NONE;
    if (!atomic_compare_exchange_strong(cohi_slot_verdict(world->slot, rank), &none, verdict))
        return false;
    if (cohi_verdict_status(verdict) == COH_PEER_LOST)
        let_go(world, rank);
    atomic_store(&world->slot->alarm, 1);
    cohi_slot_ring(world->slot);
    bool of_many = (verdict & 0xff) == COHI_VERDICT_STUCK && rank != world->rank;
    if (!of_many && cohi_log_wants(COH_LOG_ERROR)) {
        char text[128], where[COHI_FAR_TEXT];
        cohi_verdict_describe(verdict, text, sizeof text);
        cohi_log(COH_LOG_ERROR, "rank %d: rank %d%s is %s: %s", world->rank, rank,
                 cohi_far_text(world, rank, where),
                 cohi_verdict_status(verdict) == COH_PEER_LOST ? "lost" : "stalled", text);
    }
    return true;
}

void cohi_verdict_note(coh_world *world, int rank, uint64_t verdict)
{
    note(world, rank, verdict);
}

/* What cannot be told to a peer is its own affair: it finds out by its own watch. */
static void tell(coh_world *world, int to, int rank, uint64_t verdict)
{
    (void)cohi_control_put(world, to, cohi_slot_verdict_offset(rank), &verdict, sizeof verdict);
}

/* After all verdicts: a rank that is woken finds them together. */
static void raise_alarm(coh_world *world, int to)
{
    static const uint32_t alarm = 1;
    (void)cohi_control_fence(world);
    (void)cohi_control_put(world, to, offsetof(cohi_slot, alarm), &alarm, sizeof alarm);
}

void cohi_verdict_pass_all(coh_world *world, uint64_t *verdicts)
{
    for (int rank = 0; rank < world->size; rank++)
        if (verdicts[rank] && !note(world, rank, verdicts[rank]))
            verdicts[rank] = COHI_VERDICT_NONE;
    for (int to = 0; to < world->size; to++) {
        if (to == world->rank || (!verdicts[to] && cohi_verdict_on(world, to)))
            continue; /* but a rank learns what the others think of it */
        for (int rank = 0; rank < world->size; rank++)
            if (verdicts[rank])
                tell(world, to, rank, verdicts[rank]);
        raise_alarm(world, to);
    }
}

void cohi_verdict_pass(coh_world *world, int rank, uint64_t verdict)
{
    if (!note(world, rank, verdict))
        return;
    for (int to = 0; to < world->size; to++) {
        if (to == world->rank || (to != rank && cohi_verdict_on(world, to)))
            continue;
        tell(world, to, rank, verdict);
        raise_alarm(world, to);
    }
}

/* A rank that is stuck still looks for verdicts, in its wait. */
static bool can_hear(const coh_world *world, int rank)
{
    uint64_t verdict = cohi_verdict_on(world, rank);
    return verdict == COHI_VERDICT_NONE || (verdict & 0xff) == COHI_VERDICT_STUCK;
}

void cohi_verdict_spread(coh_world *world)
{
    for (int of = 0; of < world->size; of++) {
        uint64_t verdict = cohi_verdict_on(world, of);
        for (int to = 0; verdict && to < world->size; to++)
            if (to != world->rank && can_hear(world, to)) {
                tell(world, to, of, verdict);
                raise_alarm(world, to);
            }
    }
}

/* In the last meeting of all, ranks that need no more of it are gone already. */
void cohi_verdict_lost(void *world, int rank, cohi_loss loss, int detail)
{
    coh_world *told = world;
    if (loss == COHI_LOSS_ABSENT && atomic_load(&told->parting))
        atomic_store_explicit(&told->left[rank], true, memory_order_release);
    else if (!cohi_far_doubts(told, rank, loss))
        cohi_verdict_note(world, rank, cohi_verdict(COHI_VERDICT_LOST, loss, detail));
}

void cohi_verdict_silent(void *world, int rank, uint64_t silent_ns)
{
    const coh_world *told = world;
    if (told->link_timeout_ns && silent_ns >= told->link_timeout_ns)
        cohi_verdict_lost(world, rank, COHI_LOSS_SILENT, (int)(silent_ns / COHI_NS_PER_S));
}

int cohi_verdict_cause(const coh_world *world, int rank)
{
    if (cohi_verdict_on(world, rank))
        return rank;
    if (cohi_verdict_on(world, world->rank))
        return world->rank;
    for (int of = 0; of < world->size; of++)
        if (cohi_verdict_on(world, of))
            return of;
    return -1;
}

uint64_t cohi_verdict_await(coh_world *world, int rank)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    uint64_t until = cohi_now_ns() + AWAIT_NS;
    int held = cohi_cancel_hold();
    while (!cohi_verdict_on(world, rank) && cohi_now_ns() < until)
        nanosleep(&moment, NULL);
    cohi_cancel_release(held);
    return cohi_verdict_heed(world, rank);
}

/* As it was written down, on this host or by a rank of another; "" where it was not. */
static const char *shown_circle(const coh_world *world)
{
    cohi_board_head *head = world->board->head;
    if (atomic_load(&head->circle_state) == 2)
        return head->circle;
    world->slot->circle[COHI_CIRCLE_BYTES - 1] = '\0';
    return world->slot->circle;
}

/* Who waits for whom, where that led to the verdict. Between hosts a verdict may come by another link,
 * ahead of it. */
static const char *circle_of(const coh_world *world, uint64_t verdict)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    unsigned kind = verdict & 0xff;
    if (kind != COHI_VERDICT_STUCK && kind != COHI_VERDICT_STOPPED && kind != COHI_VERDICT_MUTE)
        return "";
    uint64_t deadline_ns = cohi_now_ns() + CIRCLE_NS;
    while (world->hosts > 1 && !*shown_circle(world) && cohi_now_ns() < deadline_ns) {
        int held = cohi_cancel_hold();
        nanosleep(&moment, NULL);
        cohi_cancel_release(held);
    }
    return shown_circle(world);
}

/* A rank that is mapped notes in its slot that it leaves. */
static bool may_have_left(coh_world *world, int rank)
{
    return !world->peers[rank].slot || cohi_peer_has_left(world, rank);
}

void cohi_verdict_learn(coh_world *world, int rank)
{
    cohi_slot *slot = world->peers[rank].slot;
    for (int of = 0; slot && of < world->size; of++) {
        uint64_t verdict = atomic_load(cohi_slot_verdict(slot, of));
        if (verdict)
            note(world, of, verdict);
    }
}

/* Another rank that `rank` knew something against before it was lost; or -1. */
static int known_to(coh_world *world, int rank)
{
    cohi_slot *slot = world->peers[rank].slot;
    cohi_verdict_learn(world, rank);
    for (int of = 0; slot && of < world->size; of++)
        if (of != rank && atomic_load(cohi_slot_verdict(slot, of)))
            return of;
    return -1;
}

int cohi_verdict_origin(coh_world *world, int rank)
{
    for (int hops = 0; hops < world->size; hops++) {
        bool lost = cohi_verdict_status(cohi_verdict_on(world, rank)) == COH_PEER_LOST;
        int before = lost && rank != world->rank ? known_to(world, rank) : -1;
        if (before < 0)
            break;
        rank = before;
    }
    return rank;
}

/*
 * Something that is known already explains it better: this rank itself is lost, and the engine
 * refuses it everything; or another is, and `rank` has left because of that.
 */
coh_status cohi_verdict_presume(coh_world *world, const char *call, int rank, cohi_loss loss)
{
    if (cohi_peer_has_left(world, rank))
        cohi_verdict_learn(world, rank);
    int cause = cohi_verdict_cause(world, rank);
    if (cause < 0 || (cause != world->rank && !may_have_left(world, rank))) {
        uint64_t verdict = cohi_verdict(COHI_VERDICT_LOST, loss, 0);
        if (loss == COHI_LOSS_LINK)
            verdict = cohi_far_explain(world, rank, verdict);
        int known = cohi_verdict_cause(world, rank); /* what came to be known meanwhile */
        if (known < 0 || known == cause)
            note(world, rank, verdict);
        cause = known < 0 || known == cause ? rank : known;
    }
    if (cause != rank && cause != world->rank)
        cause = cohi_verdict_origin(world, cause);
    if (cause == rank || cause == world->rank)
        return cohi_verdict_check(world, call, cause);
    char text[128], where[COHI_FAR_TEXT];
    uint64_t verdict = cohi_verdict_heed(world, cause);
    coh_status status = cohi_verdict_status(verdict);
    const char *circle = circle_of(world, verdict);
    cohi_verdict_describe(verdict, text, sizeof text);
    (void)cohi_world_fail(
        world, call, status, "rank %d cannot be reached any more, after rank %d%s %s: %s%s%s", rank,
        cause, cohi_far_text(world, cause, where), status == COH_PEER_LOST ? "was lost" : "stalled",
        text, *circle ? ": " : "", circle);
    return cohi_fail_peer(status, cause);
}

coh_status cohi_verdict_check(coh_world *world, const char *call, int rank)
{
    uint64_t verdict = cohi_verdict_heed(world, rank);
    if (COHI_LIKELY(verdict == COHI_VERDICT_NONE))
        return COH_OK;
    char text[128], where[COHI_FAR_TEXT];
    coh_status status = cohi_verdict_status(verdict);
    const char *circle = circle_of(world, verdict);
    if (status == COH_PEER_LOST) /* which may be another rank's verdict */
        let_go(world, rank);
    cohi_verdict_describe(verdict, text, sizeof text);
    (void)cohi_world_fail(world, call, status, "rank %d%s is %s: %s%s%s", rank,
                          rank == world->rank ? " (this rank)" : cohi_far_text(world, rank, where),
                          status == COH_PEER_LOST ? "lost" : "stalled", text, *circle ? ": " : "",
                          circle);
    return cohi_fail_peer(status, rank);
}
