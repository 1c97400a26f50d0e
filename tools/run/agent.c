#include "run/agent.h"

#include "base/clock.h"
#include "base/os.h"
#include "command.h"
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The launcher pings every second. One that says nothing for so long is behind a cut line, unless it
 * has stopped its ranks, and so itself. */
#define PATIENCE_NS (60 * COHI_NS_PER_S)
/* How long supervisors may take to end what is below them. */
#define TAKE_DOWN_NS COHI_NS_PER_S
/* How often to look at what ranks are doing. */
enum { LOOK_MS = 100 };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* ---- the event loop ---- */

enum { AT_SIGNALS, AT_IN, AT_OUT, AT_INPUT, AT_SQUAD };

static int pipe_count(const cohi_agent *agent)
{
    return agent->pipes ? 2 * agent->squad.charge.count : 0;
}

static int squad_polls(const cohi_agent *agent)
{
    return agent->started ? cohi_squad_poll_count(&agent->squad) : 0;
}

static int fill_polls(cohi_agent *agent)
{
    const cohi_stream *stream = &agent->stream;
    int count = AT_SQUAD + squad_polls(agent), usable = !stream->at_end && !stream->error;
    struct pollfd *polls =
        realloc(agent->polls, (size_t)(count + pipe_count(agent)) * sizeof *polls);
    if (!polls)
        return -1;
    agent->polls = polls;
    int writes = usable && cohi_stream_pending(stream) > 0;
    polls[AT_SIGNALS] = (struct pollfd){.fd = agent->signals, .events = POLLIN};
    polls[AT_IN] = (struct pollfd){.fd = usable ? stream->in : -1, .events = POLLIN};
    polls[AT_OUT] = (struct pollfd){.fd = writes ? stream->out : -1, .events = POLLOUT};
    polls[AT_INPUT] = (struct pollfd){.fd = cohi_agent_has_input(agent) ? agent->input.fd : -1,
                                      .events = POLLOUT};
    if (agent->started)
        cohi_squad_fill_polls(&agent->squad, &polls[AT_SQUAD]);
    for (int i = 0; i < pipe_count(agent); i++) {
        int wanted = usable && cohi_agent_may_send(agent, &agent->pipes[i]);
        polls[count + i] =
            (struct pollfd){.fd = wanted ? agent->pipes[i].fd : -1, .events = POLLIN};
    }
    return count + pipe_count(agent);
}

/* One that wants the end of the agent wants the end of its ranks. */
static void take_signals(cohi_agent *agent)
{
    struct signalfd_siginfo info;
    while (read(agent->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            agent->stream.error = EINTR;
    }
    if (agent->started)
        cohi_squad_reap(&agent->squad);
}

static void take_events(cohi_agent *agent)
{
    int pipes = AT_SQUAD + squad_polls(agent), started = agent->started;
    if (agent->polls[AT_SIGNALS].revents)
        take_signals(agent);
    if (started)
        cohi_squad_take_polls(&agent->squad, &agent->polls[AT_SQUAD]);
    for (int i = 0; started && i < pipe_count(agent); i++) {
        if (agent->polls[pipes + i].revents)
            (void)cohi_agent_send_output(agent, i);
    }
    if (agent->polls[AT_INPUT].revents)
        cohi_agent_write_input(agent);
    if (agent->polls[AT_IN].revents)
        cohi_agent_take(agent);
}

/* The launcher is gone when its stream is: nobody wants the ranks any more. */
static void heed_silence(cohi_agent *agent)
{
    if (!agent->held && cohi_now_ns() - agent->heard_ns > PATIENCE_NS)
        agent->stream.error = ETIMEDOUT;
    if (agent->gone || (!agent->stream.at_end && !agent->stream.error))
        return;
    agent->gone = agent->over = 1;
    if (agent->started)
        cohi_squad_order(&agent->squad, COHI_ORDER_END);
}

static void turn(cohi_agent *agent)
{
    cohi_agent_tell_changes(agent, cohi_now_ns());
    cohi_stream_flush(&agent->stream);
    int count = fill_polls(agent);
    if (count < 0)
        agent->stream.error = ENOMEM;
    else if (cohi_descriptors_poll(agent->polls, (nfds_t)count, LOOK_MS) > 0)
        take_events(agent);
    heed_silence(agent);
}

/* ---- the end ---- */

/* All of its ranks are gone, and nobody writes into their pipes; what is in there is sent on credit.
 * A pipe with nothing in it that is still held has a stranger behind it. */
static void send_last_output(cohi_agent *agent)
{
    for (int i = 0; i < pipe_count(agent) && !agent->gone; i++) {
        while (agent->pipes[i].fd >= 0 && !agent->gone) {
            if (!cohi_agent_may_send(agent, &agent->pipes[i]))
                turn(agent);
            else if (!cohi_agent_send_output(agent, i))
                break;
        }
    }
}

/* After all output: the launcher hangs up then. */
static void say_farewell(cohi_agent *agent)
{
    send_last_output(agent);
    cohi_stream_send_output(&agent->stream, COHI_FRAME_DONE, -1, NULL, 0);
    while (!agent->gone)
        turn(agent);
}

static void run_ranks(cohi_agent *agent)
{
    uint64_t abandon_at = UINT64_MAX;
    while (agent->started ? agent->squad.alive > 0 : !agent->over) {
        turn(agent);
        if (agent->gone && abandon_at == UINT64_MAX)
            abandon_at = cohi_now_ns() + TAKE_DOWN_NS;
        if (cohi_now_ns() > abandon_at) {
            cohi_squad_abandon(&agent->squad);
            abandon_at = UINT64_MAX - 1;
        }
    }
    if (agent->started)
        cohi_squad_sweep(&agent->squad);
}

/* ---- the beginning ---- */

/* The stream moves out of the way of what the ranks inherit, which is listed before. */
static int move_stream(cohi_agent *agent)
{
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0
        || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    cohi_os_close(null);
    cohi_stream_open(&agent->stream, in, out);
    agent->stream.size = COHI_RANKS_MAX;
    return 0;
}

/* What the shell may have ignored is the ranks' as usual. */
static int watch_signals(cohi_agent *agent)
{
    static const int usual[] = {SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGTERM, SIGCHLD};
    sigset_t set;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        signal(usual[i], SIG_DFL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, &agent->squad.charge.on_pipe);
    agent->squad.charge.on_pipe.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, NULL, &agent->squad.charge.on_child);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        sigaddset(&set, ending[i]);
    sigprocmask(SIG_BLOCK, &set, &agent->squad.charge.mask);
    agent->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return agent->signals >= 0 ? 0 : -1;
}

static int set_up(cohi_agent *agent, char *title_end)
{
    cohi_squad_init(&agent->squad, &cohi_agent_hooks, agent);
    agent->heard_ns = cohi_now_ns();
    agent->squad.charge.title_end = title_end;
    if (cohi_squad_remember(&agent->squad) != 0 || move_stream(agent) != 0
        || watch_signals(agent) != 0) {
        perror("cohort agent: cannot begin");
        return -1;
    }
    (void)setsid(); /* a terminal's signals are the launcher's */
    return 0;
}

static void close_agent(cohi_agent *agent)
{
    for (int i = 0; i < pipe_count(agent); i++)
        cohi_os_close(agent->pipes[i].fd);
    cohi_agent_close_input(agent);
    cohi_squad_close(&agent->squad);
    cohi_order_free(&agent->order);
    cohi_stream_close(&agent->stream);
    cohi_os_close(agent->signals);
    free(agent->pipes);
    free(agent->facts);
    free(agent->sights);
    free(agent->stopped);
    free(agent->blamed);
    free(agent->polls);
}

static int refuse_use(void)
{
    fprintf(stderr, "cohort agent: it is started by cohort run --hosts, and takes no arguments\n");
    return COHI_EXIT_USAGE;
}

int cohi_tool_agent(int argc, char **argv)
{
    static cohi_agent agent = {.signals = -1, .stream = {.in = -1, .out = -1}, .input = {.fd = -1}};
    char hello[96];
    if (argc > 1 || isatty(STDIN_FILENO))
        return refuse_use();
    if (set_up(&agent, argv[0] + strlen(argv[0]) + 1) != 0)
        return 1;
    snprintf(hello, sizeof hello, "\n" COHI_AGENT_MAGIC "%s\n", coh_version_string());
    cohi_stream_send_line(&agent.stream, hello);
    run_ranks(&agent);
    say_farewell(&agent);
    close_agent(&agent);
    return 0;
}
