#include "run/run.h"

#include <sys/wait.h>

enum { UNLIMITED = -1, BY_GRACE = -2 };

/* What is done on entering a stage, and what follows it after which time. The times of a failure
 * add up to less than a second. */
static const struct stage_row {
    int order;       /* to the supervisors; -1: none */
    int duration_ms; /* or UNLIMITED, or BY_GRACE: the user's --grace */
    cohi_run_stage next;
} stages[] = {
    [COHI_STAGE_RUN] = {-1, UNLIMITED, COHI_STAGE_RUN},
    [COHI_STAGE_GRACE] = {-1, BY_GRACE, COHI_STAGE_TERM},
    [COHI_STAGE_ASKED] = {-1, BY_GRACE, COHI_STAGE_KILL},
    [COHI_STAGE_TERM] = {SIGTERM, 200, COHI_STAGE_KILL},
    [COHI_STAGE_KILL] = {COHI_ORDER_END, 2000, COHI_STAGE_ABANDON},
    [COHI_STAGE_ABANDON] = {-1, 1000, COHI_STAGE_GONE},
    [COHI_STAGE_GONE] = {-1, UNLIMITED, COHI_STAGE_GONE},
};

static const cohi_run_stage first_stage[] = {
    [COHI_WHY_NONE] = COHI_STAGE_RUN,          [COHI_WHY_FAILED] = COHI_STAGE_GRACE,
    [COHI_WHY_GLOBAL_EXIT] = COHI_STAGE_GRACE, [COHI_WHY_NO_START] = COHI_STAGE_KILL,
    [COHI_WHY_TIMEOUT] = COHI_STAGE_TERM,      [COHI_WHY_SIGNAL] = COHI_STAGE_ASKED,
    [COHI_WHY_OUTPUT] = COHI_STAGE_TERM,       [COHI_WHY_NO_HOST] = COHI_STAGE_KILL,
    [COHI_WHY_HOST_LOST] = COHI_STAGE_GRACE,
};

static uint64_t stage_deadline(const cohi_job *run, const struct stage_row *row, uint64_t now)
{
    if (row->duration_ms == UNLIMITED)
        return UINT64_MAX;
    if (row->duration_ms == BY_GRACE)
        return now + run->options.grace_ns;
    return now + (uint64_t)row->duration_ms * COHI_NS_PER_MS;
}

static void enter_stage(cohi_job *run, cohi_run_stage stage)
{
    const struct stage_row *row = &stages[stage];
    uint64_t now = cohi_now_ns();
    run->stage = stage;
    run->stage_deadline_ns = stage_deadline(run, row, now);
    if (stage >= COHI_STAGE_ASKED && run->ended_by_us_ns == UINT64_MAX)
        run->ended_by_us_ns = now;
    if (row->order >= 0)
        run->means->order(run, row->order);
    if (stage == COHI_STAGE_ABANDON)
        run->means->abandon(run);
}

void cohi_run_advance(cohi_job *run, uint64_t now)
{
    if (now >= run->timeout_at_ns)
        cohi_run_end(run, COHI_WHY_TIMEOUT, 0);
    while (now >= run->stage_deadline_ns)
        enter_stage(run, stages[run->stage].next);
}

void cohi_run_end(cohi_job *run, cohi_run_why why, int value)
{
    if (run->why != COHI_WHY_NONE)
        return;
    run->why = why;
    run->why_value = value;
    int by_a_rank = why == COHI_WHY_FAILED || why == COHI_WHY_GLOBAL_EXIT;
    run->means->snapshot(run, !by_a_rank);
    enter_stage(run, first_stage[why]);
}

/* ---- signals ---- */

int cohi_run_ends_by(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/* The terminal has already sent its signal to ranks that are in the launcher's process group. */
void cohi_run_signal(cohi_job *run, int signal, int by_kernel)
{
    int ends = cohi_run_ends_by(signal);
    if (ends && run->why != COHI_WHY_NONE) {
        if (run->stage < COHI_STAGE_KILL)
            enter_stage(run, COHI_STAGE_KILL);
        return;
    }
    if (ends)
        cohi_run_end(run, COHI_WHY_SIGNAL, signal);
    if (!by_kernel || !run->means->in_group)
        run->means->order(run, signal);
}

/* ---- judging the ends ---- */

int cohi_run_unfinished(const cohi_job *run, int rank)
{
    return run->ranks[rank].wait_status == 0 && cohi_facts_unfinished(&run->facts[rank]);
}

int cohi_run_failed(const cohi_job *run, int rank)
{
    const cohi_run_rank *state = &run->ranks[rank];
    if (!state->ended || state->by_launcher || state->lost)
        return 0;
    return state->wait_status != 0 || cohi_run_unfinished(run, rank);
}

static int holds_lost(const cohi_job *run, int rank, int other)
{
    return cohi_ranks_has(&run->facts[rank].lost, other);
}

/*
 * Two supervisors may be heard in another order than their ranks ended. A rank that itself held
 * another for lost, which did not hold it for lost, ended after that one, and most likely for that.
 */
static int ended_before(const cohi_job *run, int rank)
{
    for (int other = 0; other < run->size; other++) {
        if (other != rank && holds_lost(run, rank, other) && !holds_lost(run, other, rank))
            return other;
    }
    return -1;
}

int cohi_run_followed(const cohi_job *run, int rank)
{
    return ended_before(run, rank) >= 0;
}

static int cause_of(const cohi_job *run, int rank)
{
    for (int hops = 0; hops < run->size; hops++) {
        int before = ended_before(run, rank);
        if (before < 0)
            break;
        rank = before;
    }
    return rank;
}

static void tell_going_on(cohi_job *run, int rank)
{
    char how[96];
    cohi_describe_end(run->ranks[rank].wait_status, how, sizeof how);
    cohi_run_say(run, "rank %d %s; the others go on (--keep-going)", rank,
                 cohi_run_unfinished(run, rank) ? "exited without finalize" : how);
}

static int some_ended(const cohi_job *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].ended && !run->ranks[rank].judged)
            return 1;
    }
    return 0;
}

/* The earliest of the failures not judged yet, or -1. */
static int next_failure(cohi_job *run)
{
    int first = -1;
    for (int rank = 0; rank < run->size; rank++) {
        cohi_run_rank *state = &run->ranks[rank];
        if (!state->ended || state->judged)
            continue;
        state->judged = 1;
        if (!cohi_run_failed(run, rank))
            continue;
        if (run->options.keep_going && run->why == COHI_WHY_NONE)
            tell_going_on(run, rank);
        if (first < 0 || state->ended_ns < run->ranks[first].ended_ns)
            first = rank;
    }
    return first;
}

/* A rank of another host may be heard to have ended for it before the one that asked is. */
static void heed_global_exit(cohi_job *run)
{
    if (!run->exit_asked)
        return;
    if (run->why == COHI_WHY_FAILED && run->first >= 0
        && run->ranks[run->first].wait_status == run->exit_code << 8) {
        run->why = COHI_WHY_GLOBAL_EXIT;
        run->why_value = run->exit_code;
    }
    cohi_run_end(run, COHI_WHY_GLOBAL_EXIT, run->exit_code);
}

void cohi_run_judge(cohi_job *run)
{
    if (!some_ended(run))
        return;
    run->means->look(run);
    int failed = next_failure(run);
    heed_global_exit(run);
    if (failed < 0)
        return;
    if (run->first < 0)
        run->first = cause_of(run, failed);
    if (!run->options.keep_going)
        cohi_run_end(run, COHI_WHY_FAILED, 0);
}
