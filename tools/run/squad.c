#include "run/squad.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/launch.h"
#include "descriptors.h"
#include "memory/host_profile.h"
#include "run/descendants.h"
#include "run/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of a rank, while it runs. */
enum { RANK_DESCRIPTORS = 3 };

/* ---- making ---- */

void cohi_squad_init(cohi_squad *squad, const cohi_squad_hooks *hooks, void *owner)
{
    *squad = (cohi_squad){.hooks = hooks,
                          .owner = owner,
                          .charge = {.input = -1},
                          .board = {.fd = -1},
                          .guard_link = -1};
}

int cohi_squad_remember(cohi_squad *squad)
{
    squad->charge.inherited_count = cohi_descriptors_list(&squad->inherited);
    squad->charge.inherited = squad->inherited;
    squad->children_before_count = cohi_children_list(&squad->children_before);
    if (squad->inherited)
        return 0;
    cohi_fail(COH_NO_MEMORY, "no memory for the list of open descriptors");
    return -1;
}

int cohi_squad_raise_limit(cohi_squad *squad, int own)
{
    struct rlimit *limit = &squad->charge.files;
    rlim_t need =
        (rlim_t)(squad->charge.inherited_count + own + RANK_DESCRIPTORS * squad->charge.count);
    if (getrlimit(RLIMIT_NOFILE, limit) != 0 || limit->rlim_cur >= need)
        return 0;
    struct rlimit raised = {.rlim_cur = need, .rlim_max = limit->rlim_max};
    if (limit->rlim_max >= need && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return 0;
    cohi_fail(COH_LIMIT,
              "the job needs %llu descriptors here, but the limit is %llu (see ulimit -n -H)",
              (unsigned long long)need, (unsigned long long)limit->rlim_max);
    return -1;
}

/* For all ranks: see memory/host_profile.h. */
static cohi_profile obtain_profile(int size, const char **warning)
{
    static cohi_host_profile host;
    const char *knob = getenv("COHORT_PROFILE");
    if (size > 1)
        cohi_host_profile_obtain(knob ? knob : "", &host);
    else
        cohi_host_profile_read(knob ? knob : "", &host);
    *warning = *host.warning ? host.warning : NULL;
    return host.profile;
}

static coh_status make_board(cohi_squad *squad, const char *host, uint64_t job,
                             const char **warning)
{
    const cohi_charge *charge = &squad->charge;
    cohi_profile profile = obtain_profile(charge->size, warning);
    int *ranks = calloc((size_t)charge->count, sizeof *ranks);
    if (!ranks)
        return cohi_fail(COH_NO_MEMORY, "no memory for %d ranks", charge->count);
    for (int i = 0; i < charge->count; i++)
        ranks[i] = charge->first + i;
    cohi_board_spec spec = {.size = charge->size,
                            .ranks = ranks,
                            .count = charge->count,
                            .launcher = getpid(),
                            .job = job,
                            .host = host,
                            .program = charge->command[0],
                            .profile = &profile};
    coh_status status = cohi_board_create(&spec, &squad->board);
    free(ranks);
    return status;
}

int cohi_squad_make(cohi_squad *squad, const char *host, uint64_t job, const char **warning)
{
    cohi_charge *charge = &squad->charge;
    *warning = NULL;
    squad->ranks = calloc((size_t)charge->count, sizeof *squad->ranks);
    charge->snapshot = cohi_snapshot_make(charge->size);
    if (!squad->ranks || !charge->snapshot) {
        cohi_fail(COH_NO_MEMORY, "no memory for %d ranks", charge->count);
        return -1;
    }
    for (int i = 0; i < charge->count; i++)
        squad->ranks[i].control = -1;
    if (make_board(squad, host, job, warning) != COH_OK)
        return -1;
    charge->board = &squad->board;
    charge->launcher = getpid();
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return 0;
    cohi_fail_os(errno, "cannot adopt the ranks' processes");
    return -1;
}

void cohi_squad_close(cohi_squad *squad)
{
    for (int i = 0; squad->ranks && i < squad->charge.count; i++)
        cohi_os_close(squad->ranks[i].control);
    cohi_os_close(squad->guard_link);
    cohi_listeners_close(&squad->listeners);
    cohi_snapshot_free(squad->charge.snapshot, squad->charge.size);
    cohi_board_close(&squad->board);
    free(squad->children_before);
    free(squad->inherited);
    free(squad->ranks);
}

/* ---- telling the owner ---- */

void cohi_squad_say(cohi_squad *squad, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    squad->hooks->say(squad->owner, text);
}

void cohi_squad_refuse(cohi_squad *squad, int error, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!squad->refused)
        squad->hooks->no_start(squad->owner, error, text);
    squad->refused = 1;
}

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

static coh_status make_ends(const cohi_squad *squad, int rank, struct rank_ends *ends)
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
        return cohi_fail_os(error, "cannot make the pipes of rank %d of %d", rank,
                            squad->charge.size);
    return cohi_launch_offer(&squad->id, rank, squad->charge.size, squad->board.fd,
                             rank == 0 ? &squad->listeners : NULL, &ends->job_fd);
}

/* The guard starts the rank's supervisor; what becomes of that comes as news. */
static coh_status ask_for_supervisor(const cohi_squad *squad, int rank,
                                     const struct rank_ends *ends)
{
    cohi_guard_request request = {.rank = rank};
    const int fds[COHI_GUARD_FDS] = {[COHI_GUARD_CONTROL] = ends->control[1],
                                     [COHI_GUARD_OUTPUT] = ends->output[1],
                                     [COHI_GUARD_ERROR] = ends->error[1],
                                     [COHI_GUARD_JOB] = ends->job_fd};
    int error =
        cohi_os_send(squad->guard_link, &request, sizeof request, fds, COHI_GUARD_FDS, UINT64_MAX);
    return error ? cohi_fail_os(error, "cannot ask for a process for rank %d of %d", rank,
                                squad->charge.size)
                 : COH_OK;
}

static coh_status start_rank(cohi_squad *squad, int rank)
{
    struct rank_ends ends;
    cohi_squad_rank *state = cohi_squad_at(squad, rank);
    coh_status status = make_ends(squad, rank, &ends);
    if (status == COH_OK)
        status = ask_for_supervisor(squad, rank, &ends);
    if (status != COH_OK) {
        close_all(&ends);
        return status;
    }
    squad->alive++;
    state->counted = 1;
    state->control = ends.control[0];
    squad->hooks->piped(squad->owner, rank, 0, ends.output[0]);
    squad->hooks->piped(squad->owner, rank, 1, ends.error[0]);
    ends.control[0] = ends.output[0] = ends.error[0] = -1;
    close_all(&ends);
    return COH_OK;
}

static coh_status start_guard(cohi_squad *squad)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return cohi_fail_os(errno, "cannot make the socket of the job's guard");
    squad->guard = fork();
    if (squad->guard == 0)
        cohi_guard(&squad->charge, ends[1]);
    int error = errno;
    cohi_os_close(ends[1]);
    if (squad->guard > 0) {
        squad->guard_link = ends[0];
        return COH_OK;
    }
    squad->guard = 0;
    cohi_os_close(ends[0]);
    return cohi_fail_os(error, "cannot start a process for the job's guard (see ulimit -u)");
}

/* The news are read after each request, so that guard and launcher do not wait for each other, both
 * with a full socket. */
int cohi_squad_start(cohi_squad *squad)
{
    if (start_guard(squad) != COH_OK)
        return -1;
    for (int i = 0; i < squad->charge.count && !squad->refused; i++) {
        if (start_rank(squad, squad->charge.first + i) != COH_OK)
            return -1;
        cohi_squad_guard_news(squad);
    }
    cohi_squad_tell_guard(squad, COHI_GUARD_STARTED_ALL);
    return 0;
}

/* ---- what the supervisors tell ---- */

void cohi_squad_note_end(cohi_squad *squad, int rank, int wait_status, uint64_t at_ns)
{
    cohi_squad_rank *state = cohi_squad_at(squad, rank);
    if (state->ended)
        return;
    state->ended = 1;
    squad->hooks->ended(squad->owner, rank, wait_status, at_ns);
}

/* A program that something else is missing for is there, and cannot be run. */
static void refuse_program(cohi_squad *squad, const cohi_notice *notice)
{
    int by_other = notice->name[0] != '\0';
    cohi_squad_refuse(squad, by_other ? ENOEXEC : notice->value, "cannot start %s: %s%s%s",
                      squad->charge.command[0], notice->name, by_other ? ": " : "",
                      strerror(notice->value));
}

void cohi_squad_no_fork(cohi_squad *squad, int rank, int error)
{
    cohi_squad_refuse(squad, error, "cannot start a process for rank %d of %d: %s (see ulimit -u)",
                      rank, squad->charge.size, strerror(error));
}

static void note_start(cohi_squad *squad, int rank, pid_t pid)
{
    cohi_squad_at(squad, rank)->pid = pid;
    squad->hooks->started(squad->owner, rank, pid);
}

static void take_notice(cohi_squad *squad, int rank, const cohi_notice *notice)
{
    switch ((cohi_notice_kind)notice->kind) {
    case COHI_NOTICE_STARTED:
        note_start(squad, rank, notice->value);
        return;
    case COHI_NOTICE_REFUSED:
        refuse_program(squad, notice);
        return;
    case COHI_NOTICE_NO_FORK:
        cohi_squad_no_fork(squad, rank, notice->value);
        return;
    case COHI_NOTICE_UNSAFE:
        cohi_squad_refuse(squad, EPERM, "rank %d of %d cannot be supervised: %s", rank,
                          squad->charge.size, strerror(notice->value));
        return;
    case COHI_NOTICE_ENDED:
        cohi_squad_note_end(squad, rank, notice->value, notice->at_ns);
        return;
    }
}

int cohi_squad_reads_on(int error)
{
    return error == EINTR || error == ECONNRESET;
}

/* The end of the stream is the supervisor's, which has said all there is to say where its rank's end
 * is known. How else it ended is for the guard to tell. */
void cohi_squad_notices(cohi_squad *squad, int rank)
{
    cohi_notice notice;
    int *control = &cohi_squad_at(squad, rank)->control;
    while (*control >= 0) {
        ssize_t got = recv(*control, &notice, sizeof notice, MSG_DONTWAIT);
        if (got == (ssize_t)sizeof notice) {
            take_notice(squad, rank, &notice);
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else if (got >= 0 || !cohi_squad_reads_on(errno)) {
            cohi_os_close(*control);
            *control = -1;
            if (cohi_squad_at(squad, rank)->ended)
                cohi_squad_count_out(squad, rank);
        }
    }
}

/* ---- orders ---- */

void cohi_squad_order(const cohi_squad *squad, int order)
{
    int32_t word = order;
    for (int i = 0; i < squad->charge.count; i++) {
        if (squad->ranks[i].control >= 0)
            (void)!send(squad->ranks[i].control, &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

/* ---- polling ---- */

int cohi_squad_poll_count(const cohi_squad *squad)
{
    return 1 + squad->charge.count;
}

void cohi_squad_fill_polls(const cohi_squad *squad, struct pollfd *polls)
{
    polls[0] = (struct pollfd){.fd = squad->guard_link, .events = POLLIN};
    for (int i = 0; i < squad->charge.count; i++)
        polls[1 + i] = (struct pollfd){.fd = squad->ranks[i].control, .events = POLLIN};
}

/* The guard last: the supervisor's own word on its rank comes before that of its end. */
void cohi_squad_take_polls(cohi_squad *squad, const struct pollfd *polls)
{
    for (int i = 0; i < squad->charge.count; i++) {
        if (polls[1 + i].revents)
            cohi_squad_notices(squad, squad->charge.first + i);
    }
    if (polls[0].revents)
        cohi_squad_guard_news(squad);
}
