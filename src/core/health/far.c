#include "core/health/far.h"

#include "base/cancel.h"
#include "base/clock.h"
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

static bool is_supervised(const coh_world *world)
{
    return world->board->head->launcher != 0;
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
    if (!may_have_reason || !world->doubts || !is_supervised(world) || !cohi_far(world, rank)
        || !world->watched)
        return false;
    atomic_compare_exchange_strong(&world->doubts[rank], &none, doubt_now(loss));
    cohi_watch_wake();
    return true;
}

static bool is_killed(uint64_t verdict)
{
    return (verdict >> 8 & 0xff) == COHI_LOSS_SIGNALED;
}

uint64_t cohi_far_explain(coh_world *world, int rank, uint64_t verdict)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    uint64_t since = 0, found;
    if (!world->doubts || !is_supervised(world) || !cohi_far(world, rank))
        return verdict;
    /* Ranks that were lost together share the time. */
    if (atomic_compare_exchange_strong(&world->doubts[rank], &since, cohi_now_ns()))
        since = cohi_now_ns();
    for (;;) {
        cohi_told told = cohi_board_read(world->board, rank);
        found = verdict_on(&told);
        uint64_t patience = !found ? REASON_NS : is_killed(found) ? 0 : LEAVING_NS;
        if (cohi_now_ns() >= since + patience || cohi_verdict_cause(world, rank) >= 0)
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
    bool in_vain = since != 0 && cohi_now_ns() >= since + REASON_NS;
    unsigned loss = since & 1 ? COHI_LOSS_ABSENT : COHI_LOSS_LINK;
    return in_vain ? cohi_verdict(COHI_VERDICT_LOST, loss, 0) : COHI_VERDICT_NONE;
}

bool cohi_far_next(coh_world *world, int *from, int *rank, uint64_t *verdict)
{
    for (; world->doubts && *from < world->size; ++*from) {
        if (!cohi_far(world, *from) || cohi_verdict_on(world, *from)
            || atomic_load(&world->left[*from]))
            continue;
        *verdict = examine(world, *from);
        if (*verdict == COHI_VERDICT_NONE)
            continue;
        *rank = (*from)++;
        return true;
    }
    return false;
}
