#include "run/run.h"

#include "base/error.h"
#include "base/os.h"
#include "base/pretend.h"
#include "bootstrap/unique_id.h"
#include "command.h"
#include "run/descendants.h"
#include "descriptors.h"
#include "memory/host_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Descriptors of the launcher beside three a rank: board, signals, two sinks, the guard's, and the
 * rank's ends and a socket pair while it is started. */
enum { OWN_DESCRIPTORS = 10, RANK_DESCRIPTORS = 3 };

/* How long an interrupted launcher waits for its reader to take the last of the output. */
#define LAST_OUTPUT_NS COHI_NS_PER_S

static const int watched[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};

/* ---- the event loop ---- */

static void shift(uint64_t *deadline, uint64_t by)
{
    if (*deadline != UINT64_MAX)
        *deadline += by;
}

/* Whether a shell that controls jobs is above. Without one nobody would continue what has stopped,
 * and the kernel, too, lets such a program go on. */
static int could_be_continued(void)
{
    pid_t parent = getppid(); /* 0: of another namespace */
    return parent > 0 && getsid(parent) == getsid(0);
}

/* Stops with the ranks; the time until it is continued counts for nothing. */
static void stop_here(cohi_job *run, int by_kernel)
{
    if (by_kernel && !could_be_continued()) {
        cohi_run_order(run, SIGCONT); /* the terminal has stopped the ranks already */
        return;
    }
    if (!by_kernel)
        cohi_run_order(run, SIGSTOP);
    uint64_t stopped = cohi_now_ns();
    kill(getpid(), SIGSTOP);
    uint64_t away = cohi_now_ns() - stopped;
    shift(&run->stage_deadline_ns, away);
    shift(&run->timeout_at_ns, away);
    cohi_run_order(run, SIGCONT);
}

static void take_signals(cohi_job *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo, by_kernel = info.ssi_code == SI_KERNEL;
        if (signal == SIGCHLD)
            cohi_run_reap(run);
        else if (signal == SIGTSTP)
            stop_here(run, by_kernel);
        else if (signal == SIGCONT)
            cohi_run_order(run, SIGCONT);
        else
            cohi_run_signal(run, signal, by_kernel);
    }
    if (errno != EAGAIN)
        cohi_run_reap(run); /* what cannot be read may be that a supervisor has ended */
}

enum { POLL_SIGNALS = 0, POLL_SINKS = 1, POLL_GUARD = 3, POLL_RANKS = 4 };

static int poll_count(const cohi_job *run)
{
    return POLL_RANKS + RANK_DESCRIPTORS * run->size;
}

static struct pollfd interest(int fd, short events, int wanted)
{
    return (struct pollfd){.fd = wanted ? fd : -1, .events = events};
}

static void fill_polls(cohi_job *run)
{
    run->polls[POLL_SIGNALS] = interest(run->signals, POLLIN, 1);
    run->polls[POLL_GUARD] = interest(run->guard_link, POLLIN, 1);
    for (int i = 0; i < 2; i++) {
        const cohi_sink *sink = &run->output.sinks[i];
        run->polls[POLL_SINKS + i] =
            interest(sink->fd, POLLOUT, !sink->error && cohi_sink_pending(sink) > 0);
    }
    for (int rank = 0; rank < run->size; rank++) {
        struct pollfd *polls = &run->polls[POLL_RANKS + RANK_DESCRIPTORS * rank];
        const cohi_source *sources = &run->output.sources[2 * rank];
        polls[0] = interest(run->ranks[rank].control, POLLIN, 1);
        polls[1] = interest(sources[0].fd, POLLIN, cohi_source_wants(&sources[0]));
        polls[2] = interest(sources[1].fd, POLLIN, cohi_source_wants(&sources[1]));
    }
}

static int poll_timeout_ms(uint64_t deadline)
{
    uint64_t now = cohi_now_ns();
    if (deadline == UINT64_MAX)
        return -1;
    if (deadline <= now)
        return 0;
    uint64_t left = (deadline - now) / COHI_NS_PER_MS + 1;
    return left > 60000 ? 60000 : (int)left;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Waits on the first `count` of the polls. */
static void wait_for_events(cohi_job *run, int count)
{
    uint64_t deadline = cohi_output_deadline(&run->output);
    deadline = earlier(deadline, earlier(run->stage_deadline_ns, run->timeout_at_ns));
    deadline = earlier(deadline, run->terminal.look_at_ns);
    fill_polls(run);
    if (cohi_descriptors_poll(run->polls, (nfds_t)count, poll_timeout_ms(deadline)) <= 0)
        memset(run->polls, 0, (size_t)count * sizeof *run->polls);
}

/* The signals first: a rank that a signal to the whole group has ended did not fail by itself. */
static void take_events(cohi_job *run)
{
    if (run->polls[POLL_SIGNALS].revents)
        take_signals(run);
    for (int rank = 0; rank < run->size; rank++) {
        const struct pollfd *polls = &run->polls[POLL_RANKS + RANK_DESCRIPTORS * rank];
        cohi_source *sources = &run->output.sources[2 * rank];
        if (polls[0].revents)
            cohi_run_notices(run, rank);
        if (polls[1].revents)
            cohi_source_read(&run->output, &sources[0]);
        if (polls[2].revents)
            cohi_source_read(&run->output, &sources[1]);
    }
    if (run->polls[POLL_GUARD].revents)
        cohi_run_guard_news(run);
}

static void turn(cohi_job *run)
{
    uint64_t now = cohi_now_ns();
    cohi_terminal_tick(run, now);
    cohi_output_tick(&run->output, now);
    int lost = cohi_output_error(&run->output);
    if (lost)
        cohi_run_end(run, COHI_WHY_OUTPUT, lost);
    cohi_run_advance(run, now);
    wait_for_events(run, poll_count(run));
    take_events(run);
    cohi_run_judge(run);
}

static int output_pending(const cohi_job *run)
{
    const cohi_sink *sinks = run->output.sinks;
    return cohi_sink_pending(&sinks[0]) > 0 || cohi_sink_pending(&sinks[1]) > 0;
}

/* The first signal that asks for the end, or 0. */
static int take_last_signals(cohi_job *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGTSTP)
            stop_here(run, info.ssi_code == SI_KERNEL);
        else if (cohi_run_ends_by(signal))
            return signal;
    }
    return 0;
}

/* All ranks are gone; a slow reader may take its time, unless the user has lost patience: then the
 * signal that said so, else 0. */
static int write_last_output(cohi_job *run)
{
    run->timeout_at_ns = UINT64_MAX;
    run->stage_deadline_ns =
        run->why == COHI_WHY_SIGNAL ? cohi_now_ns() + LAST_OUTPUT_NS : UINT64_MAX;
    for (;;) {
        cohi_output_tick(&run->output, cohi_now_ns());
        if (!output_pending(run) || cohi_now_ns() >= run->stage_deadline_ns)
            return 0;
        wait_for_events(run, POLL_RANKS);
        int signal = take_last_signals(run);
        if (signal)
            return signal;
    }
}

/* ---- setting up ---- */

/* The launcher raises its own soft limit where it must; the ranks get it back as it was. */
static int raise_descriptor_limit(cohi_job *run)
{
    struct rlimit *limit = &run->charge.files;
    int own = OWN_DESCRIPTORS + run->options.pretend_hosts; /* a board each */
    rlim_t need = (rlim_t)(run->charge.inherited_count + own + RANK_DESCRIPTORS * run->size);
    if (getrlimit(RLIMIT_NOFILE, limit) != 0 || limit->rlim_cur >= need)
        return 0;
    struct rlimit raised = {.rlim_cur = need, .rlim_max = limit->rlim_max};
    if (limit->rlim_max >= need && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        return 0;
    fprintf(stderr,
            "cohort run: -n %d needs %llu descriptors, but the limit is %llu (see ulimit -n -H)\n",
            run->size, (unsigned long long)need, (unsigned long long)limit->rlim_max);
    return -1;
}

/* A signal that was ignored from the start, as nohup and background shells have it, stays so. */
static int watch_signals(cohi_job *run)
{
    sigset_t set;
    sigemptyset(&set);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL}, now;
    sigaction(SIGPIPE, &ignore, &run->charge.on_pipe);
    sigaction(SIGCHLD, &normal, &run->charge.on_child);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        if (sigaction(watched[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaddset(&set, watched[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &run->charge.mask);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals >= 0)
        return 0;
    perror("cohort run: cannot watch for signals");
    return -1;
}

static int allocate(cohi_job *run)
{
    run->ranks = calloc((size_t)run->size, sizeof *run->ranks);
    run->polls = calloc((size_t)poll_count(run), sizeof *run->polls);
    run->charge.snapshot = cohi_snapshot_make(run->size);
    if (!run->ranks || !run->polls || !run->charge.snapshot
        || cohi_output_open(&run->output, run->size, run->options.tag_output) != 0) {
        fprintf(stderr, "cohort run: no memory for %d ranks\n", run->size);
        return -1;
    }
    for (int rank = 0; rank < run->size; rank++)
        run->ranks[rank].control = -1;
    return 0;
}

/* By the launcher, for all ranks: see memory/host_profile.h. */
static cohi_profile obtain_profile(const cohi_job *run)
{
    static cohi_host_profile host;
    const char *knob = getenv("COHORT_PROFILE");
    if (run->size > 1)
        cohi_host_profile_obtain(knob ? knob : "", &host);
    else
        cohi_host_profile_read(knob ? knob : "", &host);
    if (*host.warning)
        fprintf(stderr, "cohort run: warning: %s\n", host.warning);
    return host.profile;
}

/* One for each host that the ranks play. */
static coh_status make_boards(cohi_job *run)
{
    int hosts = run->options.pretend_hosts ? run->options.pretend_hosts : 1;
    int *ranks = calloc((size_t)run->size, sizeof *ranks);
    coh_status status = COH_OK;
    run->boards.list = calloc((size_t)hosts, sizeof *run->boards.list);
    if (!ranks || !run->boards.list)
        status = cohi_fail(COH_NO_MEMORY, "no memory for %d ranks", run->size);
    cohi_profile profile = obtain_profile(run);
    for (int host = 0, rank = 0; host < hosts && status == COH_OK; host++) {
        char name[COHI_HOST_NAME_BYTES];
        int count = 0;
        while (rank < run->size && cohi_pretended_host(rank, run->size, hosts) == host)
            ranks[count++] = rank++;
        cohi_os_host_name(name, sizeof name);
        if (run->options.pretend_hosts)
            snprintf(name, sizeof name, "host%d", host);
        cohi_board_spec spec = {.size = run->size,
                                .ranks = ranks,
                                .count = count,
                                .launcher = getpid(),
                                .job = cohi_unique_id_job(&run->id),
                                .host = name,
                                .program = run->options.command[0],
                                .profile = &profile};
        status = cohi_board_create(&spec, &run->boards.list[host]);
        run->boards.count += status == COH_OK;
    }
    free(ranks);
    return status;
}

static int make_job(cohi_job *run)
{
    if (coh_unique_id_create(&run->id) == COH_OK && make_boards(run) == COH_OK)
        return 0;
    fprintf(stderr, "cohort run: %s\n", coh_last_error());
    return -1;
}

static void describe_charge(cohi_job *run)
{
    run->charge.size = run->size;
    run->charge.command = run->options.command;
    run->charge.environment = run->options.environment;
    run->charge.bind_core = run->options.bind_core;
    run->charge.pretend_hosts = run->options.pretend_hosts;
    run->charge.boards = &run->boards;
    run->charge.launcher = getpid();
    run->charge.inherited = run->inherited;
}

static int set_up(cohi_job *run)
{
    /* What was open before belongs to the user and goes on to the ranks. */
    run->charge.inherited_count = cohi_descriptors_list(&run->inherited);
    run->children_before_count = cohi_children_list(&run->children_before);
    if (!run->inherited) {
        fprintf(stderr, "cohort run: no memory for the list of open descriptors\n");
        return -1;
    }
    if (raise_descriptor_limit(run) != 0 || watch_signals(run) != 0 || allocate(run) != 0
        || make_job(run) != 0)
        return -1;
    describe_charge(run);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return 0;
    perror("cohort run: cannot adopt the ranks' processes");
    return -1;
}

static void tear_down(cohi_job *run)
{
    for (int rank = 0; run->ranks && rank < run->size; rank++)
        cohi_os_close(run->ranks[rank].control);
    cohi_os_close(run->guard_link);
    cohi_output_close(&run->output);
    cohi_snapshot_free(run->charge.snapshot, run->size);
    for (int i = 0; i < run->boards.count; i++)
        cohi_board_close(&run->boards.list[i]);
    free(run->boards.list);
    cohi_os_close(run->signals);
    cohi_run_options_free(&run->options);
    free(run->children_before);
    free(run->inherited);
    free(run->polls);
    free(run->ranks);
}

static int run_job(cohi_job *run)
{
    if (run->options.timeout_ns)
        run->timeout_at_ns = cohi_now_ns() + run->options.timeout_ns;
    cohi_terminal_begin(run);
    if (cohi_run_start(run) != 0) {
        cohi_run_say(run, "%s", coh_last_error());
        cohi_run_end(run, COHI_WHY_NO_START, errno);
    }
    while (run->alive > 0 && run->stage != COHI_STAGE_GONE)
        turn(run);
    cohi_run_sweep(run);
    cohi_run_judge(run);
    cohi_terminal_end(run);
    cohi_output_drain(&run->output);
    int status = cohi_run_report(run);
    int signal = write_last_output(run);
    if (status == 0 && signal)
        return 128 + signal;
    if (status != 0 || !cohi_output_error(&run->output))
        return status;
    run->why = COHI_WHY_OUTPUT;
    run->why_value = cohi_output_error(&run->output);
    status = cohi_run_report(run);
    (void)write_last_output(run);
    return status;
}

int cohi_tool_run(int argc, char **argv)
{
    int status;
    cohi_job run = {.signals = -1,
                    .guard_link = -1,
                    .first = -1,
                    .stage_deadline_ns = UINT64_MAX,
                    .timeout_at_ns = UINT64_MAX,
                    .ended_by_us_ns = UINT64_MAX};
    if (cohi_run_parse(argc, argv, &run.options, &status) != 0)
        return status;
    run.size = run.options.ranks;
    status = set_up(&run) == 0 ? run_job(&run) : 1;
    tear_down(&run);
    return status;
}
