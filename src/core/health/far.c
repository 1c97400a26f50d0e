#include "core/health/far.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "core/health/peer.h"
#include "core/health/verdict.h"
#include "core/health/watch.h"

#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

/* How long a broken connection waits for its reason. The agents of two hosts and the launcher between
 * them have to be scheduled first; pending calls are to fail within a second. */
#define REASON_NS (600 * COHI_NS_PER_MS)

/* A rank that finalized says so on its connections, which its agent's word may overtake; and one that
 * exited may have done so because of another, whose end is told a little later. */
#define LEAVING_NS (300 * COHI_NS_PER_MS)

/* The same without agents, where the rank's own word or another's mismatch is all that may come. */
#define ALONE_NS (100 * COHI_NS_PER_MS)

/* Until all have learnt of a loss that one has seen. */
#define SETTLING_NS COHI_NS_PER_S

const char *cohi_far_text(const coh_world *world, int rank, char text[COHI_FAR_TEXT])
{
    const char *name = world->hosts > 1 ? cohi_board_host_of(world->board, rank) : "";
    snprintf(text, COHI_FAR_TEXT, "%s%s", *name ? " on host " : "", name);
    return text;
}

static uint64_t verdict_on(const cohi_told *told)
{
    if (!told->ended)
        return COHI_VERDICT_NONE;
    if (WIFSIGNALED(told->wait_status))
        return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_SIGNALED, WTERMSIG(told->wait_status));
    if (WEXITSTATUS(told->wait_status) != 0)
        return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_EXITED, WEXITSTATUS(told->wait_status));
    return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_UNFINISHED, 0);
}

/* How long somebody may still have a word on a rank that is gone: agents and the launcher; without
 * them, the rank itself that has left, or one that has found why, by links of their own. */
static uint64_t patience(const coh_world *world)
{
    return world->board->head->launcher != 0 ? REASON_NS : ALONE_NS;
}

/* When it was first seen to be gone; in the lowest bit, whether nobody listens at its address. */
static uint64_t doubt_now(unsigned loss)
{
    return (cohi_now_ns() & ~UINT64_C(1)) | (loss == COHI_LOSS_ABSENT);
}

bool cohi_far_doubts(coh_world *world, int rank, unsigned loss)
{
    uint64_t none = 0;
    bool may_have_reason = loss == COHI_LOSS_LINK || loss == COHI_LOSS_ABSENT;
    if (!may_have_reason || !world->doubts || !cohi_far(world, rank) || !world->watched)
        return false;
    atomic_compare_exchange_strong(&world->doubts[rank], &none, doubt_now(loss));
    cohi_watch_wake();
    return true;
}

bool cohi_far_settles(const coh_world *world)
{
    uint64_t now_ns = cohi_now_ns();
    for (int rank = 0; world->doubts && rank < world->size; rank++) {
        uint64_t since = atomic_load_explicit(&world->doubts[rank], memory_order_relaxed);
        if (since != 0 && now_ns < since + SETTLING_NS)
            return true;
    }
    return false;
}

static bool is_killed(uint64_t verdict)
{
    return (verdict >> 8 & 0xff) == COHI_LOSS_SIGNALED;
}

/* Of one that exited it may have been the reason that another was killed, which the board says before
 * the watcher has seen it there. */
static void note_killed(coh_world *world)
{
    for (int of = 0; of < world->size; of++) {
        if (of == world->rank || cohi_verdict_on(world, of) || cohi_peer_has_left(world, of))
            continue;
        cohi_told told = cohi_board_read(world->board, of);
        uint64_t found = verdict_on(&told);
        if (is_killed(found))
            cohi_verdict_note(world, of, found);
    }
}

uint64_t cohi_far_explain(coh_world *world, int rank, uint64_t verdict)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    uint64_t since = 0, found;
    if (!world->doubts || !cohi_far(world, rank))
        return verdict;
    /* Ranks that were lost together share the time. */
    if (atomic_compare_exchange_strong(&world->doubts[rank], &since, cohi_now_ns()))
        since = cohi_now_ns();
    for (;;) {
        cohi_told told = cohi_board_read(world->board, rank);
        found = verdict_on(&told);
        uint64_t wait_ns = !found ? patience(world) : is_killed(found) ? 0 : LEAVING_NS;
        if (found && !is_killed(found))
            note_killed(world);
        if (cohi_now_ns() >= since + wait_ns || cohi_verdict_cause(world, rank) >= 0)
            return found ? found : verdict;
        int held = cohi_cancel_hold();
        nanosleep(&moment, NULL);
        cohi_cancel_release(held);
    }
}

/* Whether what was told is to be noted: of a rank that may be on its way out, not at once. */
static bool is_certain(const coh_world *world, int rank, uint64_t verdict)
{
    uint64_t since = atomic_load(&world->doubts[rank]), none = 0;
    if (is_killed(verdict))
        return true;
    if (since == 0)
        atomic_compare_exchange_strong(&world->doubts[rank], &none, cohi_now_ns());
    return since != 0 && cohi_now_ns() >= since + LEAVING_NS;
}

/* The verdict on one rank now; none: there is nothing to say, or not yet. */
static uint64_t examine(coh_world *world, int rank)
{
    cohi_told told = cohi_board_read(world->board, rank);
    uint64_t found = verdict_on(&told), since = atomic_load(&world->doubts[rank]);
    if (found)
        return is_certain(world, rank, found) ? found : COHI_VERDICT_NONE;
    bool in_vain = since != 0 && cohi_now_ns() >= since + patience(world);
    unsigned loss = since & 1 ? COHI_LOSS_ABSENT : COHI_LOSS_LINK;
    return in_vain ? cohi_verdict(COHI_VERDICT_LOST, loss, 0) : COHI_VERDICT_NONE;
}

/* Those that a signal killed come first: the others may have ended because of them, and who waits is
 * woken by the first that is noted. */
bool cohi_far_next(coh_world *world, int *from, int *rank, uint64_t *verdict)
{
    for (; world->doubts && *from < 2 * world->size; ++*from) {
        int of = *from % world->size;
        if (!cohi_far(world, of) || cohi_verdict_on(world, of) || atomic_load(&world->left[of]))
            continue;
        *verdict = examine(world, of);
        if (*verdict == COHI_VERDICT_NONE || (*from < world->size && !is_killed(*verdict)))
            continue;
        *rank = of;
        ++*from;
        return true;
    }
    return false;
}
