#include "run/agent.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/elsewhere.h"
#include "bootstrap/root.h"
#include "bootstrap/unique_id.h"
#include "core/health/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Descriptors beside three a rank: board, signals, the stream's, the guard's, the listener, and the
 * rank's ends and a socket pair while it is started. */
enum { OWN_DESCRIPTORS = 14 };

/* ---- what to run ---- */

/* The order's variables are the agent's too: they choose the network, the profile, ... */
static coh_status enter(const cohi_order *order)
{
    for (char **variable = order->environment; *variable; variable++)
        putenv(*variable);
    if (*order->folder && chdir(order->folder) != 0)
        return cohi_fail_os(errno, "cannot run in '%s', the folder that cohort run was started in",
                            order->folder);
    return COH_OK;
}

static void describe_charge(cohi_agent *agent)
{
    const cohi_order *order = &agent->order;
    cohi_charge *charge = &agent->squad.charge;
    charge->size = order->size;
    charge->first = cohi_order_first(order);
    charge->count = cohi_order_count(order);
    charge->command = order->command;
    charge->environment = order->environment;
    charge->bind = (cohi_bind)order->bind;
    charge->input = order->input_fd;
}

static coh_status allocate(cohi_agent *agent)
{
    size_t count = (size_t)agent->squad.charge.count;
    agent->pipes = calloc(2 * count, sizeof *agent->pipes);
    agent->facts = calloc(count, sizeof *agent->facts);
    agent->sights = calloc(count, sizeof *agent->sights);
    agent->stopped = calloc(count, sizeof *agent->stopped);
    agent->blamed = calloc((size_t)agent->squad.charge.size, sizeof *agent->blamed);
    if (!agent->pipes || !agent->facts || !agent->sights || !agent->stopped || !agent->blamed)
        return cohi_fail(COH_NO_MEMORY, "no memory for %zu ranks", count);
    for (size_t i = 0; i < 2 * count; i++)
        agent->pipes[i].fd = -1;
    return COH_OK;
}

static coh_status make_squad(cohi_agent *agent)
{
    const cohi_order *order = &agent->order;
    const char *warning;
    if (cohi_squad_raise_limit(&agent->squad, OWN_DESCRIPTORS) != 0
        || cohi_squad_make(&agent->squad, order->hosts[order->here].name, order->job, &warning)
               != 0)
        return COH_SYSTEM;
    if (warning)
        cohi_stream_send_text(&agent->stream, COHI_FRAME_SAY, warning);
    for (int host = 0; host < order->host_count; host++) {
        int end = host + 1 < order->host_count ? order->hosts[host + 1].first : order->size;
        for (int rank = order->hosts[host].first; rank < end; rank++)
            cohi_board_tell_host(&agent->squad.board, rank, order->hosts[host].name);
    }
    return COH_OK;
}

/* Where rank 0 will be, its host makes the id. */
static coh_status make_id(cohi_agent *agent)
{
    cohi_config config;
    coh_unique_id id;
    if (agent->order.here != 0)
        return COH_OK;
    coh_status status = cohi_config_load(&config);
    if (status == COH_OK)
        status = cohi_unique_id_make(&id);
    if (status == COH_OK && agent->order.host_count > 1)
        status = cohi_root_listen(&config, &id, &agent->squad.listeners);
    if (status == COH_OK)
        cohi_stream_send(&agent->stream, COHI_FRAME_ROOT, -1, &id, sizeof id);
    return status;
}

/* A program that is named by its path is looked for before any rank is started, on any host. */
static int has_program(cohi_agent *agent)
{
    const char *program = agent->order.command[0];
    if (!strchr(program, '/') || access(program, X_OK) == 0)
        return 1;
    cohi_squad_refuse(&agent->squad, errno, "cannot start %s: %s", program, strerror(errno));
    return 0;
}

static void take_order(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_ready ready = {.cores = cohi_os_core_count(), .pid = (int32_t)getpid()};
    if (agent->ordered || agent->over)
        return;
    coh_status status = cohi_order_read(frame->data, frame->length, &agent->order);
    if (status == COH_OK) {
        agent->stream.size = agent->order.size;
        describe_charge(agent);
        status = enter(&agent->order);
    }
    if (status == COH_OK)
        status = allocate(agent);
    if (status == COH_OK && !has_program(agent))
        return;
    if (status == COH_OK)
        status = cohi_agent_open_input(agent);
    if (status == COH_OK)
        status = make_squad(agent);
    if (status == COH_OK)
        status = make_id(agent);
    if (status != COH_OK) {
        cohi_agent_tell_failure(agent);
        return;
    }
    agent->ordered = 1;
    cohi_stream_send(&agent->stream, COHI_FRAME_READY, -1, &ready, sizeof ready);
}

static void take_start(cohi_agent *agent, const cohi_frame *frame)
{
    if (!agent->ordered || agent->started || agent->over)
        return;
    cohi_frame_copy(frame, &agent->squad.id, sizeof agent->squad.id);
    agent->started = 1;
    if (cohi_squad_start(&agent->squad) != 0)
        cohi_squad_refuse(&agent->squad, errno, "%s", coh_last_error());
}

/* ---- while they run ---- */

static void take_signal(cohi_agent *agent, const cohi_frame *frame)
{
    int32_t order;
    cohi_frame_copy(frame, &order, sizeof order);
    agent->held = order == SIGSTOP;
    if (order == COHI_ORDER_END)
        agent->over = 1;
    if (agent->started)
        cohi_squad_order(&agent->squad, order);
}

static void take_abandon(cohi_agent *agent, const cohi_frame *frame)
{
    (void)frame;
    agent->over = 1;
    if (agent->started)
        cohi_squad_abandon(&agent->squad);
}

static int is_here(const cohi_agent *agent, int rank)
{
    return rank >= agent->squad.charge.first && rank < cohi_squad_end(&agent->squad);
}

static void take_credit(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_credit credit;
    cohi_frame_copy(frame, &credit, sizeof credit);
    if (!agent->ordered || !is_here(agent, frame->rank))
        return;
    int index = 2 * (frame->rank - agent->squad.charge.first) + (credit.is_error != 0);
    agent->pipes[index].credit += credit.granted;
    agent->received = credit.received;
}

static void take_look(cohi_agent *agent, const cohi_frame *frame)
{
    (void)frame;
    cohi_agent_tell_snapshot(agent);
}

/* The ranks of this host leave what they are in when they read it: so what that is first. */
static void take_end(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_end end;
    cohi_frame_copy(frame, &end, sizeof end);
    if (!agent->ordered || is_here(agent, frame->rank))
        return;
    if (end.wait_status != 0)
        cohi_snapshot_take(agent->squad.charge.snapshot, &agent->squad.board, 0);
    cohi_board_tell_end(&agent->squad.board, frame->rank, end.wait_status);
}

static void take_blame(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_blame blame;
    cohi_frame_copy(frame, &blame, sizeof blame);
    if (agent->ordered && !is_here(agent, frame->rank) && blame.rank >= 0
        && blame.rank < agent->order.size && cohi_verdict_is_for_all(blame.verdict))
        cohi_board_tell_verdict(&agent->squad.board, blame.rank, blame.verdict);
}

static void take_stop(cohi_agent *agent, const cohi_frame *frame)
{
    cohi_stop stop;
    cohi_frame_copy(frame, &stop, sizeof stop);
    if (agent->ordered && !is_here(agent, frame->rank))
        cohi_board_tell_stopped(&agent->squad.board, frame->rank, stop.stopped != 0, stop.op);
}

static void take_exit(cohi_agent *agent, const cohi_frame *frame)
{
    int32_t code;
    cohi_frame_copy(frame, &code, sizeof code);
    if (agent->ordered)
        cohi_board_tell_exit(&agent->squad.board, code);
}

static void take_ping(cohi_agent *agent, const cohi_frame *frame)
{
    (void)frame;
    cohi_stream_send(&agent->stream, COHI_FRAME_PING, -1, NULL, 0);
}

static void take_input(cohi_agent *agent, const cohi_frame *frame)
{
    if (cohi_agent_take_input(agent, frame) != 0)
        agent->stream.error = EPROTO;
}

static void (*const takers[COHI_FRAME_KINDS])(cohi_agent *, const cohi_frame *) = {
    [COHI_FRAME_ORDER] = take_order,   [COHI_FRAME_START] = take_start,
    [COHI_FRAME_SIGNAL] = take_signal, [COHI_FRAME_ABANDON] = take_abandon,
    [COHI_FRAME_CREDIT] = take_credit, [COHI_FRAME_LOOK] = take_look,
    [COHI_FRAME_ENDED] = take_end,     [COHI_FRAME_STOPPED] = take_stop,
    [COHI_FRAME_EXIT] = take_exit,     [COHI_FRAME_PING] = take_ping,
    [COHI_FRAME_INPUT] = take_input,   [COHI_FRAME_BLAMED] = take_blame,
};

void cohi_agent_take(cohi_agent *agent)
{
    cohi_frame frame;
    int got;
    cohi_stream_read(&agent->stream);
    while ((got = cohi_stream_next(&agent->stream, &frame)) > 0) {
        agent->heard_ns = cohi_now_ns();
        if (takers[frame.kind])
            takers[frame.kind](agent, &frame);
    }
    if (got < 0)
        agent->stream.error = EPROTO;
}
