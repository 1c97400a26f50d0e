/* run/reap.c - the ends of supervisors and guard, and what they leave. */
#include "run/squad.h"

#include "base/clock.h"
#include "base/os.h"
#include "run/descendants.h"
#include "descriptors.h"
#include "run/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A killed process is gone within a few; one that is not hangs in the kernel. */
enum { SWEEP_LOOKS = 200, SWEEP_PAUSE_US = 5000 };

/* A guard that is told to end kills what it has, and is gone as soon. */
#define GUARD_PATIENCE_NS COHI_NS_PER_S
enum { GUARD_LOOK_MS = 50 };

/* ---- a supervisor's end, and its rank's ---- */

static int rank_supervised_by(const cohi_squad *squad, pid_t pid)
{
    for (int rank = squad->charge.first; rank < cohi_squad_end(squad); rank++) {
        if (cohi_squad_at(squad, rank)->supervisor == pid)
            return rank;
    }
    return -1;
}

static int rank_of(const cohi_squad *squad, pid_t pid)
{
    for (int rank = squad->charge.first; rank < cohi_squad_end(squad); rank++) {
        if (cohi_squad_at(squad, rank)->pid == pid && !cohi_squad_at(squad, rank)->ended)
            return rank;
    }
    return -1;
}

static void say_orphan(cohi_squad *squad, int rank, pid_t supervisor, int wait_status)
{
    char how[96];
    cohi_describe_end(wait_status, how, sizeof how);
    cohi_squad_say(squad, "the supervisor of rank %d (process %d) %s%s; the rank ends with it",
                   rank, (int)supervisor, WIFSIGNALED(wait_status) ? "was " : "", how);
}

/* What such a rank leaves is the guard's now; the rank itself dies with its supervisor, unless
 * the supervisor had reaped it already and only its notice is missing. */
static void note_orphan(cohi_squad *squad, int rank, pid_t supervisor, int wait_status)
{
    cohi_squad_rank *state = cohi_squad_at(squad, rank);
    uint64_t end = atomic_load(&cohi_board_slot(&squad->board, rank)->end);
    if (end & COHI_ENDED) {
        cohi_squad_note_end(squad, rank, (int)(end & UINT32_MAX), cohi_now_ns());
        return;
    }
    if (!squad->abandoned)
        say_orphan(squad, rank, supervisor, wait_status);
    if (!state->pid)
        cohi_squad_note_end(squad, rank, SIGKILL, cohi_now_ns());
}

void cohi_squad_count_out(cohi_squad *squad, int rank)
{
    cohi_squad_rank *state = cohi_squad_at(squad, rank);
    state->supervisor = 0;
    squad->alive -= state->counted;
    state->counted = 0;
}

static void note_supervisor(cohi_squad *squad, int rank, int wait_status)
{
    cohi_squad_rank *state = cohi_squad_at(squad, rank);
    pid_t supervisor = state->supervisor;
    cohi_squad_notices(squad, rank);
    cohi_squad_count_out(squad, rank);
    if (!state->ended && !squad->refused)
        note_orphan(squad, rank, supervisor, wait_status);
}

/* The supervisor would have told the board. */
static void note_orphaned_rank(cohi_squad *squad, int rank, int wait_status)
{
    atomic_store(&cohi_board_slot(&squad->board, rank)->end, COHI_ENDED | (uint32_t)wait_status);
    cohi_board_ring(&squad->board);
    cohi_squad_note_end(squad, rank, wait_status, cohi_now_ns());
}

/* ---- what the guard tells ---- */

/* The number of a rank whose supervisor was killed may still be in that one's socket. */
static void note_orphan_end(cohi_squad *squad, pid_t pid, int wait_status)
{
    int rank = rank_of(squad, pid);
    for (int other = squad->charge.first; rank < 0 && other < cohi_squad_end(squad); other++)
        cohi_squad_notices(squad, other);
    if (rank < 0)
        rank = rank_of(squad, pid);
    if (rank >= 0)
        note_orphaned_rank(squad, rank, wait_status);
}

static void take_news(cohi_squad *squad, const cohi_guard_news *news)
{
    switch ((cohi_guard_news_kind)news->kind) {
    case COHI_GUARD_STARTED:
        cohi_squad_at(squad, news->rank)->supervisor = news->pid;
        return;
    case COHI_GUARD_NO_FORK:
        cohi_squad_count_out(squad, news->rank);
        cohi_squad_no_fork(squad, news->rank, news->value);
        return;
    case COHI_GUARD_ENDED:
        note_supervisor(squad, news->rank, news->value);
        return;
    case COHI_GUARD_ORPHAN:
        note_orphan_end(squad, news->pid, news->value);
        return;
    }
}

void cohi_squad_guard_news(cohi_squad *squad)
{
    cohi_guard_news news;
    while (squad->guard_link >= 0) {
        ssize_t got = recv(squad->guard_link, &news, sizeof news, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof news) {
            take_news(squad, &news);
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got >= 0 || !cohi_squad_reads_on(errno)) {
            cohi_os_close(squad->guard_link);
            squad->guard_link = -1;
        }
    }
}

void cohi_squad_tell_guard(const cohi_squad *squad, int order)
{
    cohi_guard_request request = {.rank = order};
    if (squad->guard_link >= 0)
        (void)cohi_os_send(squad->guard_link, &request, sizeof request, NULL, 0, UINT64_MAX);
}

void cohi_squad_abandon(cohi_squad *squad)
{
    squad->abandoned = 1;
    cohi_squad_tell_guard(squad, COHI_GUARD_KILL_ALL);
    for (int i = 0; !squad->guard && i < squad->charge.count; i++) {
        if (squad->ranks[i].supervisor > 0)
            kill(squad->ranks[i].supervisor, SIGKILL);
    }
}

/* ---- the guard's end ---- */

static void say_guard(cohi_squad *squad, int wait_status)
{
    char how[96];
    cohi_describe_end(wait_status, how, sizeof how);
    cohi_squad_say(squad, "the guard of the job (process %d) %s%s; the job ends with it",
                   (int)squad->guard, WIFSIGNALED(wait_status) ? "was " : "", how);
}

/* Its supervisors are the launcher's children by now, and end by themselves, with their ranks. Some
 * may have ended, or have never been started, without news of it. */
static void note_guard(cohi_squad *squad, int wait_status)
{
    cohi_squad_guard_news(squad);
    if (squad->alive > 0 && !squad->abandoned)
        say_guard(squad, wait_status);
    squad->guard = 0;
    for (int rank = squad->charge.first; rank < cohi_squad_end(squad); rank++) {
        const cohi_squad_rank *state = cohi_squad_at(squad, rank);
        if (state->counted && !(state->supervisor && cohi_children_has(state->supervisor)))
            note_supervisor(squad, rank, wait_status);
    }
}

/* Sends it the end of its stream, reads what it still tells, and does not wait for it for long. */
static void end_guard(cohi_squad *squad)
{
    uint64_t until = cohi_now_ns() + GUARD_PATIENCE_NS;
    if (squad->guard_link >= 0)
        shutdown(squad->guard_link, SHUT_WR);
    while (squad->guard_link >= 0 && cohi_now_ns() < until) {
        struct pollfd look = {.fd = squad->guard_link, .events = POLLIN};
        cohi_descriptors_poll(&look, 1, GUARD_LOOK_MS);
        cohi_squad_guard_news(squad);
    }
    if (squad->guard > 0 && kill(squad->guard, SIGKILL) == 0)
        waitpid(squad->guard, NULL, 0);
    cohi_squad_guard_news(squad);
    squad->guard = 0;
}

/* ---- what is left ---- */

/* All children but guard and supervisors, and those that the launcher was started with. */
static int kill_orphans(const cohi_squad *squad)
{
    int count = squad->children_before_count;
    pid_t *spared = calloc((size_t)(count + squad->charge.count + 1), sizeof *spared);
    if (!spared)
        return 0;
    for (int i = 0; i < count; i++)
        spared[i] = squad->children_before[i];
    for (int i = 0; i < squad->charge.count; i++) {
        if (squad->ranks[i].supervisor > 0)
            spared[count++] = squad->ranks[i].supervisor;
    }
    if (squad->guard > 0)
        spared[count++] = squad->guard;
    int killed = cohi_children_signal(SIGKILL, spared, count);
    free(spared);
    return killed;
}

/* Supervisors and what they leave become the launcher's when the guard was killed. */
void cohi_squad_reap(cohi_squad *squad)
{
    int wait_status;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        int rank = rank_supervised_by(squad, pid);
        if (pid == squad->guard)
            note_guard(squad, wait_status);
        else if (rank >= 0)
            note_supervisor(squad, rank, wait_status);
        else
            note_orphan_end(squad, pid, wait_status);
    }
    if (!squad->guard)
        kill_orphans(squad);
}

void cohi_squad_sweep(cohi_squad *squad)
{
    end_guard(squad);
    for (int look = 0; look < SWEEP_LOOKS; look++) {
        cohi_squad_reap(squad);
        if (kill_orphans(squad) == 0)
            return;
        usleep(SWEEP_PAUSE_US);
    }
}
