/* remote.c - one host of a job, as the launcher sees it through its agent. */
#include "run/fleet.h"

#include "base/error.h"
#include "base/os.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOISE_MAX = 64 << 10, EXIT_NOT_FOUND = 127 };

#define PING_NS COHI_NS_PER_S
/* After the end of the stream, for the shell to say how it ended. */
#define LAST_WORDS_NS (500 * COHI_NS_PER_MS)

coh_status cohi_remote_start(cohi_job *run, cohi_fleet_host *remote)
{
    remote->ping_at_ns = UINT64_MAX;
    remote->reach_by_ns = cohi_now_ns() + run->options.host_timeout_ns;
    coh_status status = cohi_shell_start(&run->fleet->plan, remote->entry->name, &remote->shell);
    if (status != COH_OK) {
        remote->state = COHI_REMOTE_GONE;
        return status;
    }
    cohi_stream_open(&remote->stream, remote->shell.from, remote->shell.to);
    remote->stream.size = run->size;
    return COH_OK;
}

/* ---- losing it ---- */

void cohi_remote_hang_up(cohi_fleet_host *remote)
{
    remote->state = COHI_REMOTE_GONE;
    cohi_stream_close(&remote->stream);
    if (remote->shell.pid > 0)
        kill(remote->shell.pid, SIGKILL);
}

/* Its ranks die with their agent, or have died with it. */
static void lose_ranks(cohi_job *run, cohi_fleet_host *remote)
{
    cohi_end end = {.wait_status = SIGKILL};
    for (int i = 0; i < remote->entry->ranks; i++) {
        int rank = remote->entry->first + i;
        if (run->ranks[rank].ended)
            continue;
        cohi_run_note_end(run, rank, SIGKILL, cohi_now_ns());
        run->ranks[rank].lost = 1;
        cohi_fleet_tell(run, remote, COHI_FRAME_ENDED, rank, &end, sizeof end);
    }
}

static void describe_ranks(const cohi_fleet_host *remote, char *text, size_t room)
{
    int first = remote->entry->first, last = first + remote->entry->ranks - 1;
    if (first == last)
        snprintf(text, room, "its rank %d is lost", first);
    else
        snprintf(text, room, "its ranks %d-%d are lost", first, last);
}

/* A job that is being ended anyway needs no word on it. */
void cohi_remote_lose(cohi_job *run, cohi_fleet_host *remote, const char *format, ...)
{
    char why[400], ranks[48];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    int ran = remote->state == COHI_REMOTE_RUNNING;
    if (remote->state == COHI_REMOTE_GONE)
        return;
    cohi_remote_hang_up(remote);
    describe_ranks(remote, ranks, sizeof ranks);
    if (!ran) {
        if (run->why == COHI_WHY_NONE || run->why == COHI_WHY_NO_HOST)
            cohi_run_say(run, "host %s: %s", remote->label, why);
        cohi_run_end(run, COHI_WHY_NO_HOST, 0);
        return;
    }
    if (run->stage < COHI_STAGE_KILL && run->why != COHI_WHY_NONE)
        cohi_run_say(run, "host %s: %s; %s", remote->label, why, ranks);
    if (run->why == COHI_WHY_NONE)
        snprintf(run->lost_host, sizeof run->lost_host, "host %s: %s; %s", remote->label, why,
                 ranks);
    cohi_run_end(run, COHI_WHY_HOST_LOST, remote->index);
    lose_ranks(run, remote);
}

/* ": ssh: Could not resolve hostname b", if the shell has said anything. */
static void add_last_line(const cohi_fleet_host *remote, const char *before, char *text,
                          size_t room)
{
    const char *line = *remote->last_line ? remote->last_line : remote->line;
    *text = '\0';
    if (*line)
        snprintf(text, room, "%s%.200s", before, line);
}

/* The stream has ended without the agent's farewell, and how the shell ended is known, or it takes
 * too long to say so. */
static void conclude(cohi_job *run, cohi_fleet_host *remote)
{
    char said[256], how[96] = "it closed the connection";
    int known = remote->shell.pid == 0;
    if (known)
        cohi_describe_end(remote->shell_status, how, sizeof how);
    add_last_line(remote, ": ", said, sizeof said);
    const char *shell = run->fleet->plan.command ? "the shell " : "the agent ";
    if (remote->state != COHI_REMOTE_REACHING)
        cohi_remote_lose(run, remote, "the connection ended (%s%s%s)%s", known ? shell : "",
                         known && WIFSIGNALED(remote->shell_status) ? "was " : "", how, said);
    else if (known && WIFEXITED(remote->shell_status)
             && WEXITSTATUS(remote->shell_status) == EXIT_NOT_FOUND)
        cohi_remote_lose(run, remote, "there is no '%s' there, or no such shell%s",
                         run->fleet->program ? run->fleet->program : "cohort", said);
    else
        cohi_remote_lose(run, remote, "it cannot be reached (%s%s)%s", known ? shell : "", how,
                         said);
}

void cohi_remote_note_shell(cohi_job *run, cohi_fleet_host *remote, int wait_status)
{
    remote->shell.pid = 0;
    remote->shell_status = wait_status;
    if (remote->state == COHI_REMOTE_GONE)
        return;
    for (int reads = 0; reads < 64 && !remote->stream.at_end; reads++)
        cohi_remote_read(run, remote);
    cohi_remote_read_errors(run, remote);
    if (remote->state != COHI_REMOTE_GONE)
        conclude(run, remote);
}

/* ---- its standard error ---- */

/* Before the agent answers the shell's words are kept, for the case that it never does. */
static void end_line(cohi_job *run, cohi_fleet_host *remote)
{
    remote->line[remote->line_used] = '\0';
    remote->line_used = 0;
    if (*remote->line)
        memcpy(remote->last_line, remote->line, sizeof remote->last_line);
    if (*remote->line && remote->state == COHI_REMOTE_RUNNING)
        cohi_run_say(run, "host %s: %s", remote->label, remote->line);
    remote->line[0] = '\0';
}

void cohi_remote_read_errors(cohi_job *run, cohi_fleet_host *remote)
{
    char bytes[512];
    ssize_t got = remote->shell.errors < 0 ? -1 : read(remote->shell.errors, bytes, sizeof bytes);
    if (got == 0) {
        cohi_os_close(remote->shell.errors);
        remote->shell.errors = -1;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n')
            end_line(run, remote);
        else if (remote->line_used < sizeof remote->line - 1 && bytes[i] != '\r')
            remote->line[remote->line_used++] = isprint((unsigned char)bytes[i]) ? bytes[i] : '?';
    }
    remote->line[remote->line_used] = '\0';
}

/* ---- the beginning ---- */

/* The variable that differs from host to host: where it is reached, or that it only plays a host. (Real
 * ones must not have COHORT_HOST: it makes ranks listen at the loopback address too.) */
static void write_variable(const cohi_job *run, const cohi_fleet_host *remote, char text[96])
{
    const char *address = remote->entry->address;
    int is_ipv4 = strspn(address, "0123456789.") == strlen(address);
    *text = '\0';
    if (!run->fleet->plan.command)
        snprintf(text, 96, "COHORT_HOST=%s", remote->label);
    else if (*address)
        snprintf(text, 96, "COHORT_NET_INTERFACE=%s%s", address,
                 strchr(address, ':') ? "/128"
                 : is_ipv4            ? "/32"
                                      : "");
}

static void send_order(cohi_job *run, cohi_fleet_host *remote)
{
    cohi_order order = run->fleet->order;
    char variable[96], *text;
    size_t length, last = 0;
    while (order.environment[last])
        last++;
    order.here = remote->index;
    write_variable(run, remote, variable);
    order.environment[last] = *variable ? variable : NULL; /* room was left for it */
    coh_status status = cohi_order_write(&order, &text, &length);
    order.environment[last] = NULL;
    if (status == COH_OK && length <= COHI_FRAME_ORDER_MAX) {
        cohi_stream_send(&remote->stream, COHI_FRAME_ORDER, -1, text, length);
        remote->state = COHI_REMOTE_ASKED;
    } else {
        cohi_remote_lose(run, remote, "the arguments and variables are too long");
    }
    if (status == COH_OK)
        free(text);
}

static void meet(cohi_job *run, cohi_fleet_host *remote)
{
    char version[80];
    if (!cohi_stream_find_magic(&remote->stream, version, sizeof version)) {
        if (cohi_stream_unread(&remote->stream) > NOISE_MAX)
            cohi_remote_lose(run, remote, "it answers, but not as an agent of Cohort does");
        return;
    }
    if (strcmp(version, coh_version_string()) != 0)
        cohi_remote_lose(run, remote, "it has version %s of Cohort, and this host %s", version,
                         coh_version_string());
    else
        send_order(run, remote);
}

/* ---- frames ---- */

static int is_here(const cohi_fleet_host *remote, int rank)
{
    int first = remote->entry->first;
    return rank >= first && rank < first + remote->entry->ranks;
}

static void take_ready(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    (void)frame;
    if (remote->state != COHI_REMOTE_ASKED)
        return;
    remote->state = COHI_REMOTE_READY;
    remote->reach_by_ns = UINT64_MAX;
    remote->ping_at_ns = cohi_now_ns() + PING_NS;
    cohi_fleet_begin(run);
}

static void take_root(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    if (remote->index != 0)
        return;
    cohi_frame_copy(frame, &run->fleet->id, sizeof run->fleet->id);
    run->fleet->has_id = 1;
}

static void take_failed(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    char text[400];
    cohi_frame_text(frame, 0, text, sizeof text);
    cohi_remote_lose(run, remote, "%s", text);
}

static void take_started(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    int32_t pid;
    (void)remote;
    cohi_frame_copy(frame, &pid, sizeof pid);
    run->ranks[frame->rank].pid = pid;
}

static void take_no_start(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    int32_t error;
    char text[1024];
    cohi_frame_copy(frame, &error, sizeof error);
    cohi_frame_text(frame, sizeof error, text, sizeof text);
    cohi_run_no_start(run, remote->label, error, text);
}

static void take_output(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    int is_error = frame->kind == COHI_FRAME_ERROR;
    uint32_t *credit = &remote->credit[2 * (frame->rank - remote->entry->first) + is_error];
    if (frame->length > *credit) {
        cohi_remote_lose(run, remote, "it sends more output than it was allowed");
        return;
    }
    *credit -= (uint32_t)frame->length;
    remote->received += frame->length;
    cohi_output_feed(&run->output, frame->rank, is_error, frame->data, frame->length);
}

/* A rank that has finalized has told the others itself that it leaves, in an order with what it had told
 * them before; its end would overtake that. */
static void take_end(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    cohi_end end;
    uint64_t now = cohi_now_ns();
    cohi_frame_copy(frame, &end, sizeof end);
    cohi_run_note_end(run, frame->rank, end.wait_status, end.age_ns < now ? now - end.age_ns : now);
    if (run->facts[frame->rank].phase != COHI_PHASE_LEFT)
        cohi_fleet_tell(run, remote, COHI_FRAME_ENDED, frame->rank, &end, sizeof end);
}

/* For the ranks of the other hosts, before the end that it explains. */
static void take_blame(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    if (run->facts[frame->rank].phase != COHI_PHASE_LEFT)
        cohi_fleet_tell(run, remote, COHI_FRAME_BLAMED, frame->rank, frame->data, frame->length);
}

static void take_stop(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    cohi_fleet_tell(run, remote, COHI_FRAME_STOPPED, frame->rank, frame->data, frame->length);
}

static void take_exit(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    int32_t code;
    cohi_frame_copy(frame, &code, sizeof code);
    if (run->exit_asked)
        return;
    run->exit_asked = 1;
    run->exit_code = code & 0xff;
    cohi_fleet_tell(run, remote, COHI_FRAME_EXIT, -1, &code, sizeof code);
}

static void take_pong(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    (void)run;
    (void)frame;
    remote->pinged_ns = 0;
}

static void take_taken(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    uint32_t bytes;
    cohi_frame_copy(frame, &bytes, sizeof bytes);
    if (cohi_fleet_note_taken(run, bytes) != 0)
        cohi_remote_lose(run, remote, "it has taken more input than it was sent");
}

static void take_facts(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    cohi_facts *facts = &run->facts[frame->rank];
    (void)remote;
    cohi_frame_copy(frame, facts, sizeof *facts);
    cohi_facts_unpack(facts, cohi_now_ns());
}

static void take_sight(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    cohi_sight sight;
    (void)remote;
    cohi_frame_copy(frame, &sight, sizeof sight);
    cohi_sight_check(&sight);
    cohi_summary_write(run->fleet->summary, frame->rank, &sight, cohi_now_ns());
}

static void take_snapshot(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    cohi_snapshot_row *row = &run->snapshot->rows[frame->rank];
    (void)remote;
    cohi_frame_copy(frame, row, sizeof *row);
    cohi_snapshot_check(row);
}

static void take_race(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    (void)remote;
    if (!*run->race)
        cohi_frame_text(frame, 0, run->race, sizeof run->race);
}

static void take_word(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    char text[1024];
    cohi_frame_text(frame, 0, text, sizeof text);
    cohi_run_say(run, "host %s: %s", remote->label, text);
}

/* The shell ends by itself now. */
static void take_done(cohi_job *run, cohi_fleet_host *remote, const cohi_frame *frame)
{
    (void)run;
    (void)frame;
    remote->state = COHI_REMOTE_GONE;
    cohi_stream_close(&remote->stream);
}

static void (*const takers[COHI_FRAME_KINDS])(cohi_job *, cohi_fleet_host *, const cohi_frame *) = {
    [COHI_FRAME_READY] = take_ready,       [COHI_FRAME_ROOT] = take_root,
    [COHI_FRAME_FAILED] = take_failed,     [COHI_FRAME_STARTED] = take_started,
    [COHI_FRAME_NO_START] = take_no_start, [COHI_FRAME_OUTPUT] = take_output,
    [COHI_FRAME_ERROR] = take_output,      [COHI_FRAME_ENDED] = take_end,
    [COHI_FRAME_STOPPED] = take_stop,      [COHI_FRAME_EXIT] = take_exit,
    [COHI_FRAME_PING] = take_pong,         [COHI_FRAME_FACTS] = take_facts,
    [COHI_FRAME_SIGHT] = take_sight,       [COHI_FRAME_SNAPSHOT] = take_snapshot,
    [COHI_FRAME_RACE] = take_race,         [COHI_FRAME_SAY] = take_word,
    [COHI_FRAME_BLAMED] = take_blame,      [COHI_FRAME_DONE] = take_done,
    [COHI_FRAME_TAKEN] = take_taken,
};

static void take_frames(cohi_job *run, cohi_fleet_host *remote)
{
    cohi_frame frame;
    int got = 0;
    while (remote->state != COHI_REMOTE_GONE
           && (got = cohi_stream_next(&remote->stream, &frame)) > 0) {
        if (!takers[frame.kind] || (frame.rank >= 0 && !is_here(remote, frame.rank)))
            cohi_remote_lose(run, remote, "it speaks of what is not its own (kind %d, rank %d)",
                             (int)frame.kind, frame.rank);
        else
            takers[frame.kind](run, remote, &frame);
    }
    if (got < 0)
        cohi_remote_lose(run, remote, "what it says makes no sense: %s", coh_last_error());
}

void cohi_remote_read(cohi_job *run, cohi_fleet_host *remote)
{
    cohi_stream_read(&remote->stream);
    if (remote->state == COHI_REMOTE_REACHING)
        meet(run, remote);
    if (remote->state != COHI_REMOTE_REACHING)
        take_frames(run, remote);
    if (remote->state == COHI_REMOTE_GONE || (!remote->stream.at_end && !remote->stream.error))
        return;
    remote->stream.at_end = 1;
    if (remote->shell.pid == 0)
        return; /* cohi_remote_note_shell concludes */
    uint64_t soon = cohi_now_ns() + LAST_WORDS_NS;
    remote->reach_by_ns = soon < remote->reach_by_ns ? soon : remote->reach_by_ns;
}

/* ---- time ---- */

void cohi_remote_grant(cohi_job *run, cohi_fleet_host *remote)
{
    int streams = remote->state == COHI_REMOTE_RUNNING ? 2 * remote->entry->ranks : 0;
    for (int i = 0; i < streams; i++) {
        int rank = remote->entry->first + i / 2;
        const cohi_source *source = &run->output.sources[2 * rank + i % 2];
        uint32_t missing = COHI_CREDIT_BYTES - remote->credit[i];
        if (!source->fed || !cohi_source_has_room(source))
            missing = 0;
        if (missing < COHI_CREDIT_BYTES / 2
            && remote->received - remote->confirmed < COHI_CREDIT_BYTES)
            continue;
        cohi_credit credit = {
            .is_error = (uint32_t)(i % 2), .granted = missing, .received = remote->received};
        remote->credit[i] += missing;
        remote->confirmed = remote->received;
        cohi_stream_send(&remote->stream, COHI_FRAME_CREDIT, rank, &credit, sizeof credit);
    }
}

/* The answer may be there and not read, if the launcher itself was stopped. */
static int is_silent(cohi_job *run, cohi_fleet_host *remote, uint64_t now)
{
    uint64_t limit = run->fleet->link_timeout_ns;
    if (limit && now - remote->pinged_ns > limit)
        cohi_remote_read(run, remote);
    return limit && remote->pinged_ns && now - remote->pinged_ns > limit;
}

static void ping(cohi_job *run, cohi_fleet_host *remote, uint64_t now)
{
    if (now < remote->ping_at_ns)
        return;
    remote->ping_at_ns = now + PING_NS;
    cohi_stream_send(&remote->stream, COHI_FRAME_PING, -1, NULL, 0);
    if (remote->pinged_ns == 0)
        remote->pinged_ns = now;
    else if (is_silent(run, remote, now))
        cohi_remote_lose(run, remote, "it has not answered for %.0f s",
                         (double)(now - remote->pinged_ns) / (double)COHI_NS_PER_S);
}

void cohi_remote_tick(cohi_job *run, cohi_fleet_host *remote, uint64_t now)
{
    char said[256];
    ping(run, remote, now);
    if (remote->state == COHI_REMOTE_GONE || now < remote->reach_by_ns)
        return;
    if (remote->stream.at_end) {
        conclude(run, remote);
        return;
    }
    add_last_line(remote, "; it said: ", said, sizeof said);
    cohi_remote_lose(run, remote, "it has not answered within %.0f s (--host-timeout)%s",
                     (double)run->options.host_timeout_ns / (double)COHI_NS_PER_S, said);
}
