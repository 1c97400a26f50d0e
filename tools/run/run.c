#include "run/run.h"

#include "base/os.h"
#include "command.h"
#include "descriptors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

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
    int stopped_with_us = by_kernel && run->means->in_group;
    if (by_kernel && !could_be_continued()) {
        if (stopped_with_us)
            run->means->order(run, SIGCONT); /* the terminal has stopped the ranks already */
        return;
    }
    if (!stopped_with_us)
        run->means->order(run, SIGSTOP);
    uint64_t stopped = cohi_now_ns();
    kill(getpid(), SIGSTOP);
    uint64_t away = cohi_now_ns() - stopped;
    shift(&run->stage_deadline_ns, away);
    shift(&run->timeout_at_ns, away);
    run->means->order(run, SIGCONT);
}

static void take_signals(cohi_job *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo, by_kernel = info.ssi_code == SI_KERNEL;
        if (signal == SIGCHLD)
            run->means->reap(run);
        else if (signal == SIGTSTP)
            stop_here(run, by_kernel);
        else if (signal == SIGCONT)
            run->means->order(run, SIGCONT);
        else
            cohi_run_signal(run, signal, by_kernel);
    }
    if (errno != EAGAIN)
        run->means->reap(run); /* what cannot be read may be that a supervisor has ended */
}

/* Then those of the sources, two a rank, and those of the means. */
enum { POLL_SIGNALS = 0, POLL_SINKS = 1, POLL_SOURCES = 3 };

static int poll_means(const cohi_job *run)
{
    return POLL_SOURCES + run->output.count;
}

static int poll_count(const cohi_job *run)
{
    return poll_means(run) + run->means->poll_count(run);
}

static struct pollfd interest(int fd, short events, int wanted)
{
    return (struct pollfd){.fd = wanted ? fd : -1, .events = events};
}

static void fill_polls(cohi_job *run)
{
    run->polls[POLL_SIGNALS] = interest(run->signals, POLLIN, 1);
    for (int i = 0; i < 2; i++) {
        const cohi_sink *sink = &run->output.sinks[i];
        run->polls[POLL_SINKS + i] =
            interest(sink->fd, POLLOUT, !sink->error && cohi_sink_pending(sink) > 0);
    }
    for (int i = 0; i < run->output.count; i++) {
        const cohi_source *source = &run->output.sources[i];
        run->polls[POLL_SOURCES + i] = interest(source->fd, POLLIN, cohi_source_wants(source));
    }
    run->means->fill_polls(run, &run->polls[poll_means(run)]);
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
    deadline = earlier(deadline, run->means->deadline(run));
    fill_polls(run);
    if (cohi_descriptors_poll(run->polls, (nfds_t)count, poll_timeout_ms(deadline)) <= 0)
        memset(run->polls, 0, (size_t)count * sizeof *run->polls);
}

/* The signals first: a rank that a signal to the whole group has ended did not fail by itself. */
static void take_events(cohi_job *run)
{
    if (run->polls[POLL_SIGNALS].revents)
        take_signals(run);
    run->means->take_polls(run, &run->polls[poll_means(run)]);
    for (int i = 0; i < run->output.count; i++) {
        if (run->polls[POLL_SOURCES + i].revents)
            cohi_source_read(&run->output, &run->output.sources[i]);
    }
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
    run->means->tick(run, now);
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
        wait_for_events(run, POLL_SOURCES);
        int signal = take_last_signals(run);
        if (signal)
            return signal;
    }
}

/* ---- setting up ---- */

/* A signal that was ignored from the start, as nohup and background shells have it, stays so. */
static int watch_signals(cohi_job *run)
{
    sigset_t set;
    sigemptyset(&set);
    struct sigaction ignore = {.sa_handler = SIG_IGN}, normal = {.sa_handler = SIG_DFL}, now;
    sigaction(SIGPIPE, &ignore, &run->squad.charge.on_pipe);
    sigaction(SIGCHLD, &normal, &run->squad.charge.on_child);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        if (sigaction(watched[i], NULL, &now) != 0 || now.sa_handler != SIG_IGN)
            sigaddset(&set, watched[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &run->squad.charge.mask);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (run->signals >= 0)
        return 0;
    perror("cohort run: cannot watch for signals");
    return -1;
}

static int allocate(cohi_job *run)
{
    run->ranks = calloc((size_t)run->size, sizeof *run->ranks);
    run->facts = calloc((size_t)run->size, sizeof *run->facts);
    if (!run->ranks || !run->facts
        || cohi_output_open(&run->output, run->size, run->options.tag_output) != 0) {
        fprintf(stderr, "cohort run: no memory for %d ranks\n", run->size);
        return -1;
    }
    return 0;
}

static char *end_of_arguments(char **arguments)
{
    while (arguments[1])
        arguments++;
    return *arguments + strlen(*arguments) + 1;
}

static int prepare(cohi_job *run)
{
    run->squad.charge.title_end = end_of_arguments(run->options.command);
    if (run->means->prepare(run) != 0) {
        fprintf(stderr, "cohort run: %s\n", coh_last_error());
        return -1;
    }
    run->polls = calloc((size_t)poll_count(run), sizeof *run->polls);
    if (run->polls)
        return 0;
    fprintf(stderr, "cohort run: no memory for %d ranks\n", run->size);
    return -1;
}

/* What was open before belongs to the user and goes on to the ranks. */
static int set_up(cohi_job *run)
{
    if (cohi_squad_remember(&run->squad) != 0) {
        fprintf(stderr, "cohort run: %s\n", coh_last_error());
        return -1;
    }
    return watch_signals(run) != 0 || allocate(run) != 0 || prepare(run) != 0 ? -1 : 0;
}

static void tear_down(cohi_job *run)
{
    cohi_output_close(&run->output);
    run->means->close(run);
    cohi_os_close(run->signals);
    cohi_run_options_free(&run->options);
    free(run->polls);
    free(run->facts);
    free(run->ranks);
}

static int run_job(cohi_job *run)
{
    if (run->options.timeout_ns)
        run->timeout_at_ns = cohi_now_ns() + run->options.timeout_ns;
    cohi_terminal_begin(run);
    if (run->means->start(run) != 0) {
        cohi_run_say(run, "%s", coh_last_error());
        cohi_run_end(run, COHI_WHY_NO_START, errno);
    }
    while (run->means->alive(run) && run->stage != COHI_STAGE_GONE)
        turn(run);
    run->means->sweep(run);
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
                    .first = -1,
                    .stage_deadline_ns = UINT64_MAX,
                    .timeout_at_ns = UINT64_MAX,
                    .ended_by_us_ns = UINT64_MAX};
    if (cohi_run_parse(argc, argv, &run.options, &status) != 0)
        return status;
    run.size = run.options.ranks;
    run.means = run.options.hosts.count > 0 ? &cohi_run_fleet : &cohi_run_local;
    cohi_squad_init(&run.squad, NULL, NULL);
    status = set_up(&run) == 0 ? run_job(&run) : 1;
    tear_down(&run);
    return status;
}
