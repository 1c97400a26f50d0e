/* run/reap.c - the ends of supervisors and guard, and what they leave. */
#include "run/run.h"

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

static int rank_supervised_by(const cohi_job *run, pid_t pid)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].supervisor == pid)
            return rank;
    }
    return -1;
}

static int rank_of(const cohi_job *run, pid_t pid)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].pid == pid && !run->ranks[rank].ended)
            return rank;
    }
    return -1;
}

static void say_orphan(cohi_job *run, int rank, pid_t supervisor, int wait_status)
{
    char how[96];
    cohi_describe_end(wait_status, how, sizeof how);
    cohi_run_say(run, "the supervisor of rank %d (process %d) %s%s; the rank ends with it", rank,
                 (int)supervisor, WIFSIGNALED(wait_status) ? "was " : "", how);
}

/* What such a rank leaves is the guard's now; the rank itself dies with its supervisor, unless
 * the supervisor had reaped it already and only its notice is missing. */
static void note_orphan(cohi_job *run, int rank, pid_t supervisor, int wait_status)
{
    cohi_run_rank *state = &run->ranks[rank];
    uint64_t end = atomic_load(&cohi_boards_slot(&run->boards, rank)->end);
    if (end & COHI_ENDED) {
        cohi_run_note_end(run, rank, (int)(end & UINT32_MAX), cohi_now_ns());
        return;
    }
    if (run->stage < COHI_STAGE_ABANDON)
        say_orphan(run, rank, supervisor, wait_status);
    if (!state->pid)
        cohi_run_note_end(run, rank, SIGKILL, cohi_now_ns());
}

void cohi_run_count_out(cohi_job *run, int rank)
{
    run->ranks[rank].supervisor = 0;
    run->alive -= run->ranks[rank].counted;
    run->ranks[rank].counted = 0;
}

static void note_supervisor(cohi_job *run, int rank, int wait_status)
{
    pid_t supervisor = run->ranks[rank].supervisor;
    cohi_run_notices(run, rank);
    cohi_run_count_out(run, rank);
    if (!run->ranks[rank].ended && run->why != COHI_WHY_NO_START)
        note_orphan(run, rank, supervisor, wait_status);
}

/* The supervisor would have told the board. */
static void note_orphaned_rank(cohi_job *run, int rank, int wait_status)
{
    cohi_boards_tell_end(&run->boards, rank, wait_status);
    cohi_run_note_end(run, rank, wait_status, cohi_now_ns());
}

/* ---- what the guard tells ---- */

/* The number of a rank whose supervisor was killed may still be in that one's socket. */
static void note_orphan_end(cohi_job *run, pid_t pid, int wait_status)
{
    int rank = rank_of(run, pid);
    for (int other = 0; rank < 0 && other < run->size; other++)
        cohi_run_notices(run, other);
    if (rank < 0)
        rank = rank_of(run, pid);
    if (rank >= 0)
        note_orphaned_rank(run, rank, wait_status);
}

static void take_news(cohi_job *run, const cohi_guard_news *news)
{
    switch ((cohi_guard_news_kind)news->kind) {
    case COHI_GUARD_STARTED:
        run->ranks[news->rank].supervisor = news->pid;
        return;
    case COHI_GUARD_NO_FORK:
        cohi_run_count_out(run, news->rank);
        cohi_run_no_fork(run, news->rank, news->value);
        return;
    case COHI_GUARD_ENDED:
        note_supervisor(run, news->rank, news->value);
        return;
    case COHI_GUARD_ORPHAN:
        note_orphan_end(run, news->pid, news->value);
        return;
    }
}

void cohi_run_guard_news(cohi_job *run)
{
    cohi_guard_news news;
    while (run->guard_link >= 0) {
        ssize_t got = recv(run->guard_link, &news, sizeof news, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof news) {
            take_news(run, &news);
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got >= 0 || !cohi_run_reads_on(errno)) {
            cohi_os_close(run->guard_link);
            run->guard_link = -1;
        }
    }
}

void cohi_run_tell_guard(const cohi_job *run, int order)
{
    cohi_guard_request request = {.rank = order};
    if (run->guard_link >= 0)
        (void)cohi_os_send(run->guard_link, &request, sizeof request, NULL, 0, UINT64_MAX);
}

void cohi_run_kill_supervisors(const cohi_job *run)
{
    cohi_run_tell_guard(run, COHI_GUARD_KILL_ALL);
    for (int rank = 0; !run->guard && rank < run->size; rank++) {
        if (run->ranks[rank].supervisor > 0)
            kill(run->ranks[rank].supervisor, SIGKILL);
    }
}

/* ---- the guard's end ---- */

static void say_guard(cohi_job *run, int wait_status)
{
    char how[96];
    cohi_describe_end(wait_status, how, sizeof how);
    cohi_run_say(run, "the guard of the job (process %d) %s%s; the job ends with it",
                 (int)run->guard, WIFSIGNALED(wait_status) ? "was " : "", how);
}

/* Its supervisors are the launcher's children by now, and end by themselves, with their ranks. Some
 * may have ended, or have never been started, without news of it. */
static void note_guard(cohi_job *run, int wait_status)
{
    cohi_run_guard_news(run);
    if (run->alive > 0 && run->stage < COHI_STAGE_ABANDON)
        say_guard(run, wait_status);
    run->guard = 0;
    for (int rank = 0; rank < run->size; rank++) {
        const cohi_run_rank *state = &run->ranks[rank];
        if (state->counted && !(state->supervisor && cohi_children_has(state->supervisor)))
            note_supervisor(run, rank, wait_status);
    }
}

/* Sends it the end of its stream, reads what it still tells, and does not wait for it for long. */
static void end_guard(cohi_job *run)
{
    uint64_t until = cohi_now_ns() + GUARD_PATIENCE_NS;
    if (run->guard_link >= 0)
        shutdown(run->guard_link, SHUT_WR);
    while (run->guard_link >= 0 && cohi_now_ns() < until) {
        struct pollfd look = {.fd = run->guard_link, .events = POLLIN};
        cohi_descriptors_poll(&look, 1, GUARD_LOOK_MS);
        cohi_run_guard_news(run);
    }
    if (run->guard > 0 && kill(run->guard, SIGKILL) == 0)
        waitpid(run->guard, NULL, 0);
    cohi_run_guard_news(run);
    run->guard = 0;
}

/* ---- what is left ---- */

/* All children but guard and supervisors, and those that the launcher was started with. */
static int kill_orphans(const cohi_job *run)
{
    int count = run->children_before_count;
    pid_t *spared = calloc((size_t)(count + run->size + 1), sizeof *spared);
    if (!spared)
        return 0;
    for (int i = 0; i < count; i++)
        spared[i] = run->children_before[i];
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].supervisor > 0)
            spared[count++] = run->ranks[rank].supervisor;
    }
    if (run->guard > 0)
        spared[count++] = run->guard;
    int killed = cohi_children_signal(SIGKILL, spared, count);
    free(spared);
    return killed;
}

/* Supervisors and what they leave become the launcher's when the guard was killed. */
void cohi_run_reap(cohi_job *run)
{
    int wait_status;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        int rank = rank_supervised_by(run, pid);
        if (pid == run->guard)
            note_guard(run, wait_status);
        else if (rank >= 0)
            note_supervisor(run, rank, wait_status);
        else
            note_orphan_end(run, pid, wait_status);
    }
    if (!run->guard)
        kill_orphans(run);
}

void cohi_run_sweep(cohi_job *run)
{
    end_guard(run);
    for (int look = 0; look < SWEEP_LOOKS; look++) {
        cohi_run_reap(run);
        if (kill_orphans(run) == 0)
            return;
        usleep(SWEEP_PAUSE_US);
    }
}
