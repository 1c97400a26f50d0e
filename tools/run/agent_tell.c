#include "run/agent.h"

#include "base/clock.h"
#include "base/os.h"
#include "core/health/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS  (500 * COHI_NS_PER_MS)
#define STOPS_NS (100 * COHI_NS_PER_MS)

static int index_of(const cohi_agent *agent, int rank)
{
    return rank - agent->squad.charge.first;
}

void cohi_agent_tell_failure(cohi_agent *agent)
{
    cohi_stream_send_text(&agent->stream, COHI_FRAME_FAILED, coh_last_error());
    agent->over = 1;
}

/* ---- what the squad tells ---- */

static void tell_start(void *owner, int rank, pid_t pid)
{
    cohi_agent *agent = owner;
    int32_t number = (int32_t)pid;
    cohi_stream_send(&agent->stream, COHI_FRAME_STARTED, rank, &number, sizeof number);
}

static void tell_facts(cohi_agent *agent, int rank)
{
    cohi_facts facts, *told = &agent->facts[index_of(agent, rank)];
    cohi_facts_read(&agent->squad.board, rank, &facts);
    if (memcmp(&facts, told, sizeof facts) == 0)
        return;
    *told = facts;
    cohi_facts_pack(&facts, cohi_now_ns());
    cohi_stream_send(&agent->stream, COHI_FRAME_FACTS, rank, &facts, sizeof facts);
}

static void tell_sight(cohi_agent *agent, int rank)
{
    cohi_sight sight, *told = &agent->sights[index_of(agent, rank)];
    cohi_sight_look(&agent->squad.board, rank, cohi_now_ns(), &sight);
    uint64_t waiting = sight.waiting_ns;
    sight.waiting_ns = waiting > 0; /* that it goes on is no news */
    if (memcmp(&sight, told, sizeof sight) == 0)
        return;
    *told = sight;
    sight.waiting_ns = waiting;
    cohi_stream_send(&agent->stream, COHI_FRAME_SIGHT, rank, &sight, sizeof sight);
}

/* What a rank has written on the board for the whole job. */
static void tell_job(cohi_agent *agent)
{
    cohi_board_head *head = agent->squad.board.head;
    uint64_t asked = atomic_load(&head->global_exit);
    int32_t code = (int32_t)(asked & 0xff);
    char race[sizeof head->race + 1];
    if ((asked & COHI_ENDED) && !agent->exit_told++)
        cohi_stream_send(&agent->stream, COHI_FRAME_EXIT, -1, &code, sizeof code);
    if (atomic_load(&head->race_state) == 2 && !agent->race_told++) {
        snprintf(race, sizeof race, "%.*s", (int)sizeof head->race, head->race);
        cohi_stream_send_text(&agent->stream, COHI_FRAME_RACE, race);
    }
}

/* What it knew against others when it ended, which may be why it has: it may not have come to telling the
 * ranks of other hosts, and its supervisor may be faster than that of one that was killed. */
static void tell_blames(cohi_agent *agent, int rank)
{
    cohi_slot *slot = cohi_board_slot(&agent->squad.board, rank);
    for (int other = 0; other < agent->squad.charge.size; other++) {
        cohi_blame blame = {.rank = other, .verdict = atomic_load(cohi_slot_verdict(slot, other))};
        if (!cohi_verdict_is_for_all(blame.verdict) || agent->blamed[other])
            continue;
        agent->blamed[other] = 1;
        cohi_stream_send(&agent->stream, COHI_FRAME_BLAMED, rank, &blame, sizeof blame);
    }
}

/* First that by which the launcher judges it, and the other hosts' ranks. */
static void tell_end(void *owner, int rank, int wait_status, uint64_t at_ns)
{
    cohi_agent *agent = owner;
    uint64_t now = cohi_now_ns();
    cohi_end end = {.wait_status = wait_status, .age_ns = now > at_ns ? now - at_ns : 0};
    tell_facts(agent, rank);
    tell_sight(agent, rank);
    tell_job(agent);
    tell_blames(agent, rank);
    cohi_stream_send(&agent->stream, COHI_FRAME_ENDED, rank, &end, sizeof end);
}

static void tell_no_start(void *owner, int error, const char *text)
{
    cohi_agent *agent = owner;
    char data[COHI_FRAME_TEXT_MAX];
    int32_t number = error;
    memcpy(data, &number, sizeof number);
    int length = snprintf(data + sizeof number, sizeof data - sizeof number, "%s", text);
    size_t most = sizeof data - sizeof number - 1;
    cohi_stream_send(&agent->stream, COHI_FRAME_NO_START, -1, data,
                     sizeof number + ((size_t)length < most ? (size_t)length : most));
}

static void say(void *owner, const char *text)
{
    cohi_stream_send_text(&((cohi_agent *)owner)->stream, COHI_FRAME_SAY, text);
}

static void attach(void *owner, int rank, int is_error, int fd)
{
    cohi_agent *agent = owner;
    agent->pipes[2 * index_of(agent, rank) + is_error].fd = fd;
}

const cohi_squad_hooks cohi_agent_hooks = {
    .started = tell_start,
    .ended = tell_end,
    .no_start = tell_no_start,
    .say = say,
    .piped = attach,
};

/* ---- by time ---- */

/* As the supervisors have noted it on the board. */
static void tell_stops(cohi_agent *agent)
{
    for (int i = 0; i < agent->squad.charge.count; i++) {
        int rank = agent->squad.charge.first + i;
        cohi_slot *slot = cohi_board_slot(&agent->squad.board, rank);
        unsigned stopped = atomic_load(&slot->stopped) != 0;
        if (stopped == agent->stopped[i])
            continue;
        agent->stopped[i] = (unsigned char)stopped;
        cohi_stop stop = {.stopped = stopped, .op = atomic_load(&slot->op)};
        cohi_stream_send(&agent->stream, COHI_FRAME_STOPPED, rank, &stop, sizeof stop);
    }
}

void cohi_agent_tell_changes(cohi_agent *agent, uint64_t now)
{
    if (!agent->started || agent->gone)
        return;
    if (now >= agent->stops_at_ns) {
        tell_stops(agent);
        agent->stops_at_ns = now + STOPS_NS;
    }
    if (now < agent->look_at_ns)
        return;
    agent->look_at_ns = now + LOOK_NS;
    for (int i = 0; i < agent->squad.charge.count; i++) {
        if (agent->squad.ranks[i].ended)
            continue;
        tell_facts(agent, agent->squad.charge.first + i);
        tell_sight(agent, agent->squad.charge.first + i);
    }
}

void cohi_agent_tell_snapshot(cohi_agent *agent)
{
    cohi_snapshot *snapshot = agent->squad.charge.snapshot;
    if (!agent->ordered)
        return;
    cohi_snapshot_take(snapshot, &agent->squad.board, 0);
    for (int i = 0; i < agent->squad.charge.count; i++) {
        int rank = agent->squad.charge.first + i;
        cohi_stream_send(&agent->stream, COHI_FRAME_SNAPSHOT, rank, &snapshot->rows[rank],
                         sizeof snapshot->rows[rank]);
    }
}

/* ---- output ---- */

int cohi_agent_may_send(const cohi_agent *agent, const cohi_agent_pipe *pipe)
{
    return pipe->fd >= 0 && pipe->credit > 0
           && agent->sent - agent->received < COHI_ON_THE_WAY_BYTES;
}

int cohi_agent_send_output(cohi_agent *agent, int index)
{
    cohi_agent_pipe *pipe = &agent->pipes[index];
    char bytes[COHI_FRAME_BYTES_MAX];
    int rank = agent->squad.charge.first + index / 2;
    size_t room = pipe->credit < sizeof bytes ? pipe->credit : sizeof bytes;
    ssize_t got = read(pipe->fd, bytes, room);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    size_t count = got > 0 ? (size_t)got : 0;
    cohi_stream_send_output(&agent->stream, index % 2 ? COHI_FRAME_ERROR : COHI_FRAME_OUTPUT, rank,
                            bytes, count);
    agent->sent += count;
    pipe->credit -= (uint32_t)count;
    if (count > 0)
        return 1;
    cohi_os_close(pipe->fd);
    pipe->fd = -1;
    return 0;
}
