#include "run/run.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/launch.h"
#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

static coh_status make_ends(const cohi_job *run, int rank, struct rank_ends *ends)
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
    return cohi_launch_offer(&run->id, rank, run->size, run->board.fd, -1, &ends->job_fd);
}

/* The guard starts the rank's supervisor; what becomes of that comes as news. */
static coh_status ask_for_supervisor(const cohi_job *run, int rank, const struct rank_ends *ends)
{
    cohi_guard_request request = {.rank = rank};
    const int fds[COHI_GUARD_FDS] = {[COHI_GUARD_CONTROL] = ends->control[1],
                                     [COHI_GUARD_OUTPUT] = ends->output[1],
                                     [COHI_GUARD_ERROR] = ends->error[1],
                                     [COHI_GUARD_JOB] = ends->job_fd};
    int error =
        cohi_os_send(run->guard_link, &request, sizeof request, fds, COHI_GUARD_FDS, UINT64_MAX);
    return error
               ? cohi_fail_os(error, "cannot ask for a process for rank %d of %d", rank, run->size)
               : COH_OK;
}

static coh_status start_rank(cohi_job *run, int rank)
{
    struct rank_ends ends;
    cohi_run_rank *state = &run->ranks[rank];
    coh_status status = make_ends(run, rank, &ends);
    if (status == COH_OK)
        status = ask_for_supervisor(run, rank, &ends);
    if (status != COH_OK) {
        close_all(&ends);
        return status;
    }
    run->alive++;
    state->counted = 1;
    state->control = ends.control[0];
    cohi_output_attach(&run->output, rank, 0, ends.output[0]);
    cohi_output_attach(&run->output, rank, 1, ends.error[0]);
    ends.control[0] = ends.output[0] = ends.error[0] = -1;
    close_all(&ends);
    return COH_OK;
}

static coh_status start_guard(cohi_job *run)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return cohi_fail_os(errno, "cannot make the socket of the job's guard");
    run->guard = fork();
    if (run->guard == 0)
        cohi_guard(&run->charge, ends[1]);
    int error = errno;
    cohi_os_close(ends[1]);
    if (run->guard > 0) {
        run->guard_link = ends[0];
        return COH_OK;
    }
    run->guard = 0;
    cohi_os_close(ends[0]);
    return cohi_fail_os(error, "cannot start a process for the job's guard (see ulimit -u)");
}

/* The news are read after each request, so that guard and launcher do not wait for each other, both
 * with a full socket. */
int cohi_run_start(cohi_job *run)
{
    if (start_guard(run) != COH_OK)
        return -1;
    for (int rank = 0; rank < run->size && run->why == COHI_WHY_NONE; rank++) {
        if (start_rank(run, rank) != COH_OK)
            return -1;
        cohi_run_guard_news(run);
    }
    cohi_run_tell_guard(run, COHI_GUARD_STARTED_ALL);
    return 0;
}

/* ---- what the supervisors tell ---- */

void cohi_run_note_end(cohi_job *run, int rank, int wait_status, uint64_t at_ns)
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
static void refuse_start(cohi_job *run, const cohi_notice *notice)
{
    int by_other = notice->name[0] != '\0';
    if (run->why != COHI_WHY_NO_START)
        cohi_run_say(run, "cannot start %s: %s%s%s", run->options.command[0], notice->name,
                     by_other ? ": " : "", strerror(notice->value));
    cohi_run_end(run, COHI_WHY_NO_START, by_other ? ENOEXEC : notice->value);
}

void cohi_run_no_fork(cohi_job *run, int rank, int error)
{
    if (run->why != COHI_WHY_NO_START)
        cohi_run_say(run, "cannot start a process for rank %d of %d: %s (see ulimit -u)", rank,
                     run->size, strerror(error));
    cohi_run_end(run, COHI_WHY_NO_START, error);
}

static void take_notice(cohi_job *run, int rank, const cohi_notice *notice)
{
    switch ((cohi_notice_kind)notice->kind) {
    case COHI_NOTICE_STARTED:
        run->ranks[rank].pid = notice->value;
        return;
    case COHI_NOTICE_REFUSED:
        refuse_start(run, notice);
        return;
    case COHI_NOTICE_NO_FORK:
        cohi_run_no_fork(run, rank, notice->value);
        return;
    case COHI_NOTICE_UNSAFE:
        if (run->why != COHI_WHY_NO_START)
            cohi_run_say(run, "rank %d of %d cannot be supervised: %s", rank, run->size,
                         strerror(notice->value));
        cohi_run_end(run, COHI_WHY_NO_START, EPERM);
        return;
    case COHI_NOTICE_ENDED:
        cohi_run_note_end(run, rank, notice->value, notice->at_ns);
        return;
    }
}

int cohi_run_reads_on(int error)
{
    return error == EINTR || error == ECONNRESET;
}

/* The end of the stream is the supervisor's, which has said all there is to say where its rank's end
 * is known. How else it ended is for the guard to tell. */
void cohi_run_notices(cohi_job *run, int rank)
{
    cohi_notice notice;
    int *control = &run->ranks[rank].control;
    while (*control >= 0) {
        ssize_t got = recv(*control, &notice, sizeof notice, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof notice) {
            take_notice(run, rank, &notice);
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got >= 0 || !cohi_run_reads_on(errno)) {
            cohi_os_close(*control);
            *control = -1;
            if (run->ranks[rank].ended)
                cohi_run_count_out(run, rank);
        }
    }
}

/* ---- orders ---- */

void cohi_run_order(const cohi_job *run, int order)
{
    int32_t word = order;
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].control >= 0)
            (void)!send(run->ranks[rank].control, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}
