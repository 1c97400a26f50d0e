/* local.c - a job whose ranks are all of this host. */
#include "run/run.h"

#include "base/os.h"
#include "bootstrap/unique_id.h"

#include <stdio.h>

/* Descriptors of the launcher beside three a rank: board, signals, two sinks, the guard's, and the
 * rank's ends and a socket pair while it is started. */
enum { OWN_DESCRIPTORS = 10 };

/* ---- what the squad tells ---- */

static void note_start(void *owner, int rank, pid_t pid)
{
    ((cohi_job *)owner)->ranks[rank].pid = pid;
}

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

static void note_end(void *owner, int rank, int wait_status, uint64_t at_ns)
{
    cohi_run_note_end(owner, rank, wait_status, at_ns);
}

void cohi_run_no_start(cohi_job *run, const char *host, int error, const char *text)
{
    if (run->why != COHI_WHY_NO_START)
        cohi_run_say(run, "%s%s%s%s", host ? "host " : "", host ? host : "", host ? ": " : "",
                     text);
    cohi_run_end(run, COHI_WHY_NO_START, error);
}

static void refuse_start(void *owner, int error, const char *text)
{
    cohi_run_no_start(owner, NULL, error, text);
}

static void say(void *owner, const char *text)
{
    cohi_run_say(owner, "%s", text);
}

static void attach(void *owner, int rank, int is_error, int fd)
{
    cohi_output_attach(&((cohi_job *)owner)->output, rank, is_error, fd);
}

static const cohi_squad_hooks hooks = {
    .started = note_start,
    .ended = note_end,
    .no_start = refuse_start,
    .say = say,
    .piped = attach,
};

/* ---- the means ---- */

static void describe_charge(cohi_job *run)
{
    cohi_charge *charge = &run->squad.charge;
    charge->size = charge->count = run->size;
    charge->command = run->options.command;
    charge->environment = run->options.environment;
    charge->bind = run->options.bind_core ? COHI_BIND_HOST : COHI_BIND_NONE;
}

static int prepare(cohi_job *run)
{
    char host[COHI_HOST_NAME_BYTES];
    const char *warning;
    run->squad.hooks = &hooks;
    run->squad.owner = run;
    describe_charge(run);
    cohi_os_host_name(host, sizeof host);
    if (cohi_squad_raise_limit(&run->squad, OWN_DESCRIPTORS) != 0
        || cohi_unique_id_make(&run->squad.id) != COH_OK
        || cohi_squad_make(&run->squad, host, 0, &warning) != 0)
        return -1;
    run->snapshot = run->squad.charge.snapshot;
    if (warning)
        fprintf(stderr, "cohort run: warning: %s\n", warning);
    return 0;
}

/* Ranks that were not asked for any more have no end to wait for. */
static int start(cohi_job *run)
{
    int failed = cohi_squad_start(&run->squad);
    run->squad.refused |= failed != 0;
    return failed;
}

static int alive(const cohi_job *run)
{
    return run->squad.alive > 0;
}

static void order(cohi_job *run, int order)
{
    cohi_squad_order(&run->squad, order);
}

static void abandon(cohi_job *run)
{
    cohi_squad_abandon(&run->squad);
}

static void reap(cohi_job *run)
{
    cohi_squad_reap(&run->squad);
}

static void sweep(cohi_job *run)
{
    cohi_squad_sweep(&run->squad);
}

static void look(cohi_job *run)
{
    const cohi_board_head *head = run->squad.board.head;
    uint64_t asked = atomic_load(&head->global_exit);
    for (int rank = 0; rank < run->size; rank++)
        cohi_facts_read(&run->squad.board, rank, &run->facts[rank]);
    run->exit_asked = (asked & COHI_ENDED) != 0;
    run->exit_code = (int)(asked & 0xff);
    if (atomic_load(&head->race_state) == 2)
        snprintf(run->race, sizeof run->race, "%.*s", (int)sizeof head->race, head->race);
}

static void take_snapshot(cohi_job *run, int again)
{
    cohi_snapshot_take(run->snapshot, &run->squad.board, again);
}

static int absent_hosts(const cohi_job *run, char *names, size_t room)
{
    (void)run;
    (void)names;
    (void)room;
    return 0;
}

static void tick(cohi_job *run, uint64_t now)
{
    (void)run;
    (void)now;
}

static uint64_t deadline(const cohi_job *run)
{
    (void)run;
    return UINT64_MAX;
}

static int poll_count(const cohi_job *run)
{
    return cohi_squad_poll_count(&run->squad);
}

static void fill_polls(const cohi_job *run, struct pollfd *polls)
{
    cohi_squad_fill_polls(&run->squad, polls);
}

static void take_polls(cohi_job *run, const struct pollfd *polls)
{
    cohi_squad_take_polls(&run->squad, polls);
}

static void close_squad(cohi_job *run)
{
    cohi_squad_close(&run->squad);
}

const cohi_run_means cohi_run_local = {
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
    .close = close_squad,
    .in_group = 1,
};
