#include "run.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/launch.h"
#include "descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A killed process is gone within a few; one that is not hangs in the kernel. */
enum { SWEEP_LOOKS = 200, SWEEP_PAUSE_US = 5000 };

/* ---- starting ---- */

/* What one rank needs: the launcher keeps one end of each, the rank gets the other. */
struct rank_ends {
    int control[2]; /* launcher, supervisor */
    int output[2];  /* launcher, rank */
    int error[2];
    int job_fd;
};

static void close_all(struct rank_ends *ends)
{
    int *const fds = (int *)ends;
    for (size_t i = 0; i < sizeof *ends / sizeof(int); i++)
        cohi_os_close(fds[i]);
}

/* The launcher's end alone does not block: the other is the program's standard output. */
static int make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

static coh_status make_ends(const cohi_run *run, int rank, struct rank_ends *ends)
{
    *ends = (struct rank_ends){{-1, -1}, {-1, -1}, {-1, -1}, -1};
    int error = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->control) != 0)
        error = errno;
    if (!error)
        error = make_pipe(ends->output);
    if (!error)
        error = make_pipe(ends->error);
    if (error)
        return cohi_fail_os(error, "cannot make the pipes of rank %d of %d", rank, run->size);
    return cohi_launch_offer(&run->id, rank, run->size, run->board.fd, &ends->job_fd);
}

static _Noreturn void become_supervisor(const cohi_run *run, int rank, const struct rank_ends *ends)
{
    cohi_charge charge = run->charge;
    charge.rank = rank;
    charge.control = ends->control[1];
    charge.output = ends->output[1];
    charge.error = ends->error[1];
    charge.job_fd = ends->job_fd;
    cohi_supervise(&charge);
}

static coh_status start_rank(cohi_run *run, int rank)
{
    struct rank_ends ends;
    cohi_run_rank *state = &run->ranks[rank];
    coh_status status = make_ends(run, rank, &ends);
    if (status != COH_OK) {
        close_all(&ends);
        return status;
    }
    state->supervisor = fork();
    if (state->supervisor == 0)
        become_supervisor(run, rank, &ends);
    if (state->supervisor < 0) {
        status = cohi_fail_os(errno, "cannot start a process for rank %d of %d (see ulimit -u)",
                              rank, run->size);
        state->supervisor = 0;
        close_all(&ends);
        return status;
    }
    run->alive++;
    state->control = ends.control[0];
    cohi_output_attach(&run->output, rank, 0, ends.output[0]);
    cohi_output_attach(&run->output, rank, 1, ends.error[0]);
    ends.control[0] = ends.output[0] = ends.error[0] = -1;
    close_all(&ends);
    return COH_OK;
}

int cohi_run_start(cohi_run *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (start_rank(run, rank) != COH_OK)
            return -1;
    }
    return 0;
}

/* ---- what the supervisors tell ---- */

static void note_end(cohi_run *run, int rank, int wait_status, uint64_t at_ns)
{
    cohi_run_rank *state = &run->ranks[rank];
    if (state->ended)
        return;
    state->ended = 1;
    state->wait_status = wait_status;
    state->ended_ns = at_ns;
    state->by_launcher = at_ns >= run->ended_by_us_ns;
}

/* A program that something else is missing for is there, and cannot be run. */
static void refuse_start(cohi_run *run, const cohi_notice *notice)
{
    int by_other = notice->name[0] != '\0';
    if (run->why != COHI_WHY_NO_START)
        cohi_run_say(run, "cannot start %s: %s%s%s", run->options.command[0], notice->name,
                     by_other ? ": " : "", strerror(notice->value));
    cohi_run_end(run, COHI_WHY_NO_START, by_other ? ENOEXEC : notice->value);
}

static void take_notice(cohi_run *run, int rank, const cohi_notice *notice)
{
    switch ((cohi_notice_kind)notice->kind) {
    case COHI_NOTICE_STARTED:
        run->ranks[rank].pid = notice->value;
        return;
    case COHI_NOTICE_REFUSED:
        refuse_start(run, notice);
        return;
    case COHI_NOTICE_NO_FORK:
        if (run->why != COHI_WHY_NO_START)
            cohi_run_say(run, "cannot start a process for rank %d of %d: %s (see ulimit -u)", rank,
                         run->size, strerror(notice->value));
        cohi_run_end(run, COHI_WHY_NO_START, notice->value);
        return;
    case COHI_NOTICE_UNSAFE:
        if (run->why != COHI_WHY_NO_START)
            cohi_run_say(run, "rank %d of %d cannot be supervised: %s", rank, run->size,
                         strerror(notice->value));
        cohi_run_end(run, COHI_WHY_NO_START, EPERM);
        return;
    case COHI_NOTICE_ENDED:
        note_end(run, rank, notice->value, notice->at_ns);
        return;
    }
}

/*
 * A supervisor that ends with an order unread resets the connection. The kernel then reports
 * ECONNRESET once, before the notices that are still in the socket; the next call reads those, and
 * the end of the stream comes after them.
 */
static int reads_on(int error)
{
    return error == EINTR || error == ECONNRESET;
}

void cohi_run_notices(cohi_run *run, int rank)
{
    cohi_notice notice;
    int *control = &run->ranks[rank].control;
    while (*control >= 0) {
        ssize_t got = recv(*control, &notice, sizeof notice, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof notice) {
            take_notice(run, rank, &notice);
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got >= 0 || !reads_on(errno)) {
            cohi_os_close(*control);
            *control = -1;
        }
    }
}

/* ---- reaping ---- */

static int rank_supervised_by(const cohi_run *run, pid_t pid)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].supervisor == pid)
            return rank;
    }
    return -1;
}

static int rank_of(const cohi_run *run, pid_t pid)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].pid == pid && !run->ranks[rank].ended)
            return rank;
    }
    return -1;
}

static void say_orphan(cohi_run *run, int rank, pid_t supervisor, int wait_status)
{
    char how[96];
    cohi_describe_end(wait_status, how, sizeof how);
    cohi_run_say(run, "the supervisor of rank %d (process %d) %s%s; the rank ends with it", rank,
                 (int)supervisor, WIFSIGNALED(wait_status) ? "was " : "", how);
}

/* What such a rank leaves is the launcher's now; the rank itself dies with its supervisor, unless
 * the supervisor had reaped it already and only its notice is missing. */
static void note_orphan(cohi_run *run, int rank, pid_t supervisor, int wait_status)
{
    cohi_run_rank *state = &run->ranks[rank];
    uint64_t end = atomic_load(&cohi_board_slot(&run->board, rank)->end);
    state->orphaned = 1;
    if (end & COHI_ENDED) {
        note_end(run, rank, (int)(end & UINT32_MAX), cohi_now_ns());
        return;
    }
    if (run->stage < COHI_STAGE_ABANDON)
        say_orphan(run, rank, supervisor, wait_status);
    if (!state->pid)
        note_end(run, rank, SIGKILL, cohi_now_ns());
}

static void note_supervisor(cohi_run *run, int rank, int wait_status)
{
    pid_t supervisor = run->ranks[rank].supervisor;
    cohi_run_notices(run, rank);
    run->ranks[rank].supervisor = 0;
    run->alive--;
    if (!run->ranks[rank].ended && run->why != COHI_WHY_NO_START)
        note_orphan(run, rank, supervisor, wait_status);
}

/* The supervisor would have told the board. */
static void note_orphaned_rank(cohi_run *run, int rank, int wait_status)
{
    atomic_store(&cohi_board_slot(&run->board, rank)->end, COHI_ENDED | (uint32_t)wait_status);
    for (int other = 0; other < run->size; other++)
        cohi_slot_ring(cohi_board_slot(&run->board, other));
    note_end(run, rank, wait_status, cohi_now_ns());
}

/* All children but the supervisors, and those that the launcher was started with. */
static int kill_orphans(const cohi_run *run)
{
    int count = run->children_before_count;
    pid_t *spared = calloc((size_t)(count + run->size), sizeof *spared);
    if (!spared)
        return 0;
    for (int i = 0; i < count; i++)
        spared[i] = run->children_before[i];
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].supervisor > 0)
            spared[count++] = run->ranks[rank].supervisor;
    }
    int killed = cohi_children_signal(SIGKILL, spared, count);
    free(spared);
    return killed;
}

static int orphans_possible(const cohi_run *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].orphaned)
            return 1;
    }
    return 0;
}

void cohi_run_reap(cohi_run *run)
{
    int wait_status;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        int rank = rank_supervised_by(run, pid);
        if (rank >= 0)
            note_supervisor(run, rank, wait_status);
        else if ((rank = rank_of(run, pid)) >= 0)
            note_orphaned_rank(run, rank, wait_status);
    }
    if (orphans_possible(run))
        kill_orphans(run);
}

void cohi_run_sweep(cohi_run *run)
{
    for (int look = 0; look < SWEEP_LOOKS; look++) {
        cohi_run_reap(run);
        if (kill_orphans(run) == 0)
            return;
        usleep(SWEEP_PAUSE_US);
    }
}

void cohi_run_order(const cohi_run *run, int order)
{
    int32_t word = order;
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].control >= 0)
            (void)!send(run->ranks[rank].control, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}
