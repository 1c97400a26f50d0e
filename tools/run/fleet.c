#include "run/fleet.h"

#include "base/config.h"
#include "base/error.h"
#include "base/os.h"
#include "run/descendants.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the launcher: summary, signals, two sinks, the input, and the ends of pipes while a host is reached;
 * and of each host: its input, output and error. */
enum { OWN_DESCRIPTORS = 12, HOST_DESCRIPTORS = 3 };

/* How long shells may take to end when their agents have. */
enum { SWEEP_LOOKS = 100, SWEEP_PAUSE_US = 5000 };

extern char **environ;

/* ---- what all agents are told ---- */

static int is_own(const char *variable)
{
    static const char *const own[] = {
        "COHORT_RANK=", "COHORT_SIZE=", "COHORT_JOB_FD=", "COHORT_HOST="};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strncmp(variable, own[i], strlen(own[i])) == 0)
            return 1;
    }
    return 0;
}

/* What libraries of ours read. */
static int goes_along(const char *variable)
{
    return (strncmp(variable, "COHORT_", 7) == 0 && !is_own(variable))
           || strncmp(variable, "SHMEM_", 6) == 0;
}

/* Of this process, then what flags have set; a place is left for what differs. */
static char **make_environment(const cohi_run_options *options)
{
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = calloc(count + (size_t)options->environment_count + 2, sizeof *list);
    for (size_t i = 0; list && i < count; i++) {
        if (goes_along(environ[i]))
            list[used++] = environ[i];
    }
    for (int i = 0; list && i < options->environment_count; i++)
        list[used++] = options->environment[i];
    return list;
}

static cohi_order_host *list_hosts(const cohi_hosts *hosts)
{
    cohi_order_host *list = calloc((size_t)hosts->count, sizeof *list);
    for (int i = 0; list && i < hosts->count; i++) {
        list[i].first = hosts->list[i].first;
        snprintf(list[i].name, sizeof list[i].name, "%s", cohi_host_label(&hosts->list[i]));
    }
    return list;
}

/* Hosts that are played share this machine's cores. */
static cohi_bind bind_of(const cohi_run_options *options)
{
    if (!options->bind_core)
        return COHI_BIND_NONE;
    return options->pretend_hosts ? COHI_BIND_MACHINE : COHI_BIND_HOST;
}

static coh_status describe_order(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    char *folder = getcwd(NULL, 0);
    fleet->order = (cohi_order){.size = run->size,
                                .bind = (int)bind_of(&run->options),
                                .input_fd = fleet->plan.input,
                                .folder = folder ? folder : "",
                                .hosts = list_hosts(&run->options.hosts),
                                .host_count = fleet->count,
                                .command = run->options.command,
                                .environment = make_environment(&run->options)};
    fleet->order.text = folder;
    if (!folder || !fleet->order.hosts || !fleet->order.environment)
        return cohi_fail(COH_NO_MEMORY, "no memory to describe the job");
    int error = cohi_os_random(&fleet->order.job, sizeof fleet->order.job);
    return error ? cohi_fail_os(error, "cannot name the job") : COH_OK;
}

/* Without a shell, rank 0 inherits the launcher's standard input through its agent; else it is sent. */
static coh_status plan_shells(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    fleet->plan = (cohi_shell_plan){
        .input = -1, .mask = run->squad.charge.mask, .files = run->squad.charge.files};
    if (run->options.pretend_hosts) {
        fleet->plan.input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        fleet->input_ended = 1;
        return COH_OK;
    }
    fleet->input_credit = COHI_CREDIT_BYTES;
    fleet->plan.command = run->options.shell ? run->options.shell : "ssh";
    fleet->plan.program = fleet->program = cohi_shell_program();
    return fleet->program ? COH_OK : COH_INVALID_ARGUMENT;
}

static coh_status read_link_timeout(cohi_fleet *fleet)
{
    const char *text = getenv("COHORT_LINK_TIMEOUT");
    fleet->link_timeout_ns = 10 * COHI_NS_PER_S;
    if (!text || !*text)
        return COH_OK;
    return cohi_parse_seconds("COHORT_LINK_TIMEOUT", text, &fleet->link_timeout_ns);
}

/* ---- making ---- */

static int make_remotes(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    fleet->remotes = calloc((size_t)fleet->count, sizeof *fleet->remotes);
    for (int i = 0; fleet->remotes && i < fleet->count; i++) {
        cohi_fleet_host *remote = &fleet->remotes[i];
        remote->entry = &run->options.hosts.list[i];
        remote->label = cohi_host_label(remote->entry);
        remote->index = i;
        remote->shell = (cohi_shell){.to = -1, .from = -1, .errors = -1};
        remote->stream = (cohi_stream){.in = -1, .out = -1};
        remote->credit = calloc(2 * (size_t)remote->entry->ranks, sizeof *remote->credit);
        if (!remote->credit)
            return -1;
    }
    return fleet->remotes ? 0 : -1;
}

static void name_hosts(cohi_job *run)
{
    for (int i = 0; i < run->fleet->count; i++) {
        const cohi_fleet_host *remote = &run->fleet->remotes[i];
        for (int k = 0; k < remote->entry->ranks; k++) {
            int rank = remote->entry->first + k;
            run->ranks[rank].host = remote->label;
            cohi_output_expect(&run->output, rank, 0, remote->label);
            cohi_output_expect(&run->output, rank, 1, remote->label);
            snprintf(run->fleet->summary->rows[rank].host, COHI_HOST_NAME_BYTES, "%s",
                     remote->label);
        }
    }
}

static int prepare(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet = calloc(1, sizeof *fleet);
    run->snapshot = cohi_snapshot_make(run->size);
    if (!fleet || !run->snapshot) {
        cohi_fail(COH_NO_MEMORY, "no memory for %d ranks", run->size);
        return -1;
    }
    fleet->count = run->options.hosts.count;
    fleet->summary_fd = -1;
    if (cohi_squad_raise_limit(&run->squad, OWN_DESCRIPTORS + HOST_DESCRIPTORS * fleet->count) != 0
        || read_link_timeout(fleet) != COH_OK || plan_shells(run) != COH_OK
        || describe_order(run) != COH_OK)
        return -1;
    fleet->summary = cohi_summary_create(run->size, run->options.command[0], fleet->order.job,
                                         &fleet->summary_fd);
    if (!fleet->summary)
        return -1;
    if (make_remotes(run) != 0) {
        cohi_fail(COH_NO_MEMORY, "no memory for %d hosts", fleet->count);
        return -1;
    }
    name_hosts(run);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* an agent whose shell was killed is to be found */
    return 0;
}

static void close_fleet(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    cohi_squad_close(&run->squad);
    cohi_snapshot_free(run->snapshot, run->size);
    if (!fleet)
        return;
    for (int i = 0; fleet->remotes && i < fleet->count; i++) {
        cohi_stream_close(&fleet->remotes[i].stream);
        cohi_os_close(fleet->remotes[i].shell.errors);
        free(fleet->remotes[i].credit);
    }
    free(fleet->remotes);
    free(fleet->order.hosts);
    free(fleet->order.environment);
    free(fleet->order.text);
    free(fleet->program);
    cohi_summary_close(fleet->summary);
    cohi_os_close(fleet->summary_fd);
    cohi_os_close(fleet->plan.input);
    free(fleet);
}

/* ---- starting ---- */

static int start(cohi_job *run)
{
    for (int i = 0; i < run->fleet->count; i++) {
        if (cohi_remote_start(run, &run->fleet->remotes[i]) != COH_OK)
            return -1;
    }
    return 0;
}

void cohi_fleet_begin(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    for (int i = 0; i < fleet->count; i++) {
        if (fleet->remotes[i].state != COHI_REMOTE_READY)
            return;
    }
    if (!fleet->has_id || run->why != COHI_WHY_NONE)
        return;
    fleet->started = 1;
    for (int i = 0; i < fleet->count; i++)
        fleet->remotes[i].state = COHI_REMOTE_RUNNING;
    cohi_fleet_tell(run, NULL, COHI_FRAME_START, -1, &fleet->id, sizeof fleet->id);
}

static int alive(const cohi_job *run)
{
    for (int i = 0; i < run->fleet->count; i++) {
        if (run->fleet->remotes[i].state != COHI_REMOTE_GONE)
            return 1;
    }
    return 0;
}

/* ---- orders ---- */

void cohi_fleet_tell(cohi_job *run, const cohi_fleet_host *except, cohi_frame_kind kind, int rank,
                     const void *data, size_t length)
{
    for (int i = 0; i < run->fleet->count; i++) {
        cohi_fleet_host *remote = &run->fleet->remotes[i];
        if (remote == except || remote->state == COHI_REMOTE_REACHING
            || remote->state == COHI_REMOTE_GONE)
            continue;
        cohi_stream_send(&remote->stream, kind, rank, data, length);
        cohi_stream_flush(&remote->stream); /* the launcher may be about to stop */
    }
}

/* An agent that was not reached yet has nothing to end. */
static void order(cohi_job *run, int order)
{
    int32_t word = order;
    cohi_fleet_tell(run, NULL, COHI_FRAME_SIGNAL, -1, &word, sizeof word);
    for (int i = 0; order == COHI_ORDER_END && i < run->fleet->count; i++) {
        if (run->fleet->remotes[i].state == COHI_REMOTE_REACHING)
            cohi_remote_hang_up(&run->fleet->remotes[i]);
    }
}

static void abandon(cohi_job *run)
{
    cohi_fleet_tell(run, NULL, COHI_FRAME_ABANDON, -1, NULL, 0);
}

/* What the agents have said is up to date. */
static void look(cohi_job *run)
{
    (void)run;
}

static void take_snapshot(cohi_job *run, int again)
{
    (void)again;
    cohi_fleet_tell(run, NULL, COHI_FRAME_LOOK, -1, NULL, 0);
}

static int absent_hosts(const cohi_job *run, char *names, size_t room)
{
    int count = 0;
    size_t used = 0;
    *names = '\0';
    for (int i = 0; i < run->fleet->count; i++) {
        const cohi_fleet_host *remote = &run->fleet->remotes[i];
        if (remote->state >= COHI_REMOTE_READY)
            continue;
        if (used < room)
            used += (size_t)snprintf(names + used, room - used, "%s%s", count ? ", " : "",
                                     remote->label);
        count++;
    }
    return count;
}

/* ---- ends ---- */

static cohi_fleet_host *remote_of(const cohi_fleet *fleet, pid_t shell)
{
    for (int i = 0; i < fleet->count; i++) {
        if (fleet->remotes[i].shell.pid == shell)
            return &fleet->remotes[i];
    }
    return NULL;
}

static void reap(cohi_job *run)
{
    int wait_status;
    for (pid_t pid; (pid = waitpid(-1, &wait_status, WNOHANG)) > 0;) {
        cohi_fleet_host *remote = remote_of(run->fleet, pid);
        if (remote)
            cohi_remote_note_shell(run, remote, wait_status);
    }
}

static int shells_left(const cohi_fleet *fleet)
{
    int count = 0;
    for (int i = 0; i < fleet->count; i++)
        count += fleet->remotes[i].shell.pid > 0;
    return count;
}

/* The agents are gone or cut off: their shells end by themselves, or are killed. What those leave
 * here (an agent whose shell was killed) ends by itself, and is waited for. */
static void sweep(cohi_job *run)
{
    cohi_fleet *fleet = run->fleet;
    for (int i = 0; i < fleet->count; i++) {
        if (fleet->remotes[i].state != COHI_REMOTE_GONE)
            cohi_remote_hang_up(&fleet->remotes[i]);
    }
    for (int look = 0; look < SWEEP_LOOKS; look++) {
        reap(run);
        if (shells_left(fleet) == 0)
            break;
        usleep(SWEEP_PAUSE_US);
    }
    for (int look = 0; look < SWEEP_LOOKS; look++) {
        reap(run);
        if (cohi_children_signal(look < SWEEP_LOOKS / 2 ? 0 : SIGKILL, run->squad.children_before,
                                 run->squad.children_before_count)
            == 0)
            return;
        usleep(SWEEP_PAUSE_US);
    }
}

/* ---- the event loop ---- */

enum { AT_IN, AT_OUT, AT_ERRORS, AT_COUNT };

static int poll_count(const cohi_job *run)
{
    return AT_COUNT * run->fleet->count + 1; /* the input */
}

static void fill_polls(const cohi_job *run, struct pollfd *polls)
{
    for (int i = 0; i < run->fleet->count; i++, polls += AT_COUNT) {
        const cohi_fleet_host *remote = &run->fleet->remotes[i];
        const cohi_stream *stream = &remote->stream;
        int reads = !stream->at_end && !stream->error, writes = cohi_stream_pending(stream) > 0;
        polls[AT_IN] = (struct pollfd){.fd = reads ? stream->in : -1, .events = POLLIN};
        polls[AT_OUT] =
            (struct pollfd){.fd = reads && writes ? stream->out : -1, .events = POLLOUT};
        polls[AT_ERRORS] = (struct pollfd){.fd = remote->shell.errors, .events = POLLIN};
    }
    *polls =
        (struct pollfd){.fd = cohi_fleet_wants_input(run) ? STDIN_FILENO : -1, .events = POLLIN};
}

static void take_polls(cohi_job *run, const struct pollfd *polls)
{
    for (int i = 0; i < run->fleet->count; i++, polls += AT_COUNT) {
        cohi_fleet_host *remote = &run->fleet->remotes[i];
        if (polls[AT_ERRORS].revents)
            cohi_remote_read_errors(run, remote);
        if (polls[AT_IN].revents)
            cohi_remote_read(run, remote);
        if (polls[AT_OUT].revents)
            cohi_stream_flush(&remote->stream);
    }
    if (polls->revents && cohi_fleet_wants_input(run))
        cohi_fleet_read_input(run);
}

static void tick(cohi_job *run, uint64_t now)
{
    for (int i = 0; i < run->fleet->count; i++) {
        cohi_fleet_host *remote = &run->fleet->remotes[i];
        if (remote->state == COHI_REMOTE_GONE)
            continue;
        cohi_remote_grant(run, remote);
        cohi_remote_tick(run, remote, now);
        cohi_stream_flush(&remote->stream);
    }
}

static uint64_t deadline(const cohi_job *run)
{
    uint64_t soonest = UINT64_MAX;
    for (int i = 0; i < run->fleet->count; i++) {
        const cohi_fleet_host *remote = &run->fleet->remotes[i];
        if (remote->state == COHI_REMOTE_GONE)
            continue;
        soonest = remote->reach_by_ns < soonest ? remote->reach_by_ns : soonest;
        soonest = remote->ping_at_ns < soonest ? remote->ping_at_ns : soonest;
    }
    return soonest;
}

const cohi_run_means cohi_run_fleet = {
    .prepare = prepare,
    .start = start,
    .alive = alive,
    .order = order,
    .abandon = abandon,
    .reap = reap,
    .sweep = sweep,
    .look = look,
    .snapshot = take_snapshot,
    .absent_hosts = absent_hosts,
    .tick = tick,
    .deadline = deadline,
    .poll_count = poll_count,
    .fill_polls = fill_polls,
    .take_polls = take_polls,
    .close = close_fleet,
    .in_group = 0,
};
