#include "search.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOST = 1 << COH_PEER_LOST,
    STALLED = 1 << COH_STALLED,
    MISMATCH = 1 << COH_MISMATCH,
    ANY_OF_THEM = LOST | STALLED | MISMATCH
};

/* What the ranks that are not the victim may get; a victim that is still there may too. */
static const struct expected {
    search_fault fault;
    unsigned statuses;
    unsigned one_has;  /* at least one rank gets one of these */
    bool names_victim; /* in every rank's error message */
    bool victim_ends;  /* without a status of its own */
} table[] = {
    {FAULT_KILLED, LOST, LOST, true, true},
    {FAULT_STOPPED, STALLED, STALLED, true, true},
    {FAULT_EXITED, LOST, LOST, true, true},
    {FAULT_LEFT, ANY_OF_THEM, ANY_OF_THEM, false, true},
    {FAULT_NOT_SENT, STALLED, STALLED, false, false},
    {FAULT_NOT_WRITTEN, STALLED, STALLED, false, false},
    {FAULT_WRONG_TAG, STALLED, STALLED, false, false},
    {FAULT_LOCKS, STALLED, STALLED, false, false},
    {FAULT_LEFT_OUT, ANY_OF_THEM, ANY_OF_THEM, false, false},
    {FAULT_DIFFERENT, ANY_OF_THEM, MISMATCH, false, false},
    {FAULT_CIRCLE, STALLED, STALLED, false, false},
    {FAULT_NOT_BROUGHT, STALLED, STALLED, false, false},
};

/* After all have come to where they learn of it. Three times what is promised: the machine may be
 * busy with other programs. */
static const double SOON_S = 3 * 1.0;
static const double STALLED_S = 3 * (SEARCH_STALL_S + 1);

struct judgement {
    const search_program *program;
    search_record *records;
    int findings;
};

/* A rank that waits for itself fails alone; the others see that it leaves. */
static bool is_own_affair(const search_program *program)
{
    const search_step *step = &program->steps[program->fault_step];
    const search_step *begun = &program->steps[step->of];
    return program->fault == FAULT_NOT_BROUGHT && begun->from == begun->to;
}

static struct expected expected_of(const search_program *program)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct expected expected = table[i];
        if (is_own_affair(program))
            expected.statuses = ANY_OF_THEM;
        if (expected.fault == program->fault)
            return expected;
    }
    abort();
}

static void find(struct judgement *judgement, int rank, const char *what)
{
    const search_record *record = &judgement->records[rank];
    judgement->findings++;
    printf("search: rank %d, step %d: %s", rank, atomic_load(&record->step), what);
    if (atomic_load(&record->written))
        printf(" (%s at step %d: %s: %s)", record->what, record->failed_step,
               coh_status_name(record->status), record->sentence);
    printf("\n");
}

/* ---- single questions ---- */

static bool has_threads(const search_step *step)
{
    bool by_helper = step->kind != SEARCH_LOCK && step->takers != 0;
    return by_helper || step->kind == SEARCH_HELPER || step->kind == SEARCH_DELAYED
           || step->kind == SEARCH_CROWDED || step->kind == SEARCH_IDLE;
}

bool search_is_certain(const search_program *program)
{
    bool certain = program->faulty && strcmp(program->engine, "shm") == 0
                   && expected_of(program).statuses == STALLED && program->fault != FAULT_STOPPED;
    for (int i = 0; i < program->count; i++)
        certain = certain && !has_threads(&program->steps[i]);
    return certain;
}

static bool is_rank_at(const char *text, const char *at, int rank)
{
    bool begins = at == text || !isdigit((unsigned char)at[-1]);
    bool numbered = at > text && (at[-1] == '#' || (at > text + 4 && !strncmp(at - 4, "tag ", 4)));
    char *end;
    return begins && !numbered && strtol(at, &end, 10) == rank && end > at;
}

static bool names(const char *sentence, int rank)
{
    for (const char *at = sentence; *at; at++)
        if (isdigit((unsigned char)*at) && is_rank_at(sentence, at, rank))
            return true;
    return false;
}

/* When the last of them had come to the call that failed. */
static double last_entered(const struct judgement *judgement)
{
    double last = 0;
    for (int rank = 0; rank < judgement->program->size; rank++) {
        double entered = (double)atomic_load(&judgement->records[rank].entered_ns) / 1e9;
        last = entered > last ? entered : last;
    }
    return last + judgement->program->fault_delay;
}

static void judge_time(struct judgement *judgement, int rank, double last)
{
    const search_record *record = &judgement->records[rank];
    bool presumed = record->status == COH_STALLED && !search_is_certain(judgement->program);
    double limit = presumed ? STALLED_S : SOON_S;
    char what[64];
    if (record->at <= last + limit)
        return;
    snprintf(what, sizeof what, "told %.1f s after all had come", record->at - last);
    find(judgement, rank, what);
}

/* ---- ranks ---- */

static void judge_right(struct judgement *judgement, int rank)
{
    if (atomic_load(&judgement->records[rank].failures) > 0)
        find(judgement, rank, "a program without a fault got an error");
}

static bool program_has_threads(const search_program *program)
{
    for (int i = 0; i < program->count; i++)
        if (has_threads(&program->steps[i]))
            return true;
    return false;
}

/* A rank that failed joins its helper, which may wait for what another rank holds, while that one
 * waits for the rank that failed: a real circle, which comes of the fault. */
static bool follows_from_another(const struct judgement *judgement, int rank,
                                 const struct expected *expected)
{
    const search_record *record = &judgement->records[rank];
    bool follows = false;
    for (int of = 0; of < judgement->program->size; of++) {
        const search_record *other = &judgement->records[of];
        follows = follows
                  || (of != rank && atomic_load(&other->written) && other->at < record->at
                      && expected->statuses >> other->status & 1 && names(record->sentence, of));
    }
    return follows && record->status == COH_STALLED && program_has_threads(judgement->program);
}

static void judge_faulty(struct judgement *judgement, int rank, const struct expected *expected)
{
    const search_record *record = &judgement->records[rank];
    if (!atomic_load(&record->written)) {
        find(judgement, rank, "learned nothing of the fault");
        return;
    }
    bool follows = follows_from_another(judgement, rank, expected);
    if (!(expected->statuses >> record->status & 1) && !follows)
        find(judgement, rank, "got another status than the fault should give");
    else if (!follows && expected->names_victim
             && !names(record->sentence, judgement->program->victim))
        find(judgement, rank, "the sentence does not name the victim");
    else if (!strstr(record->sentence, "rank "))
        find(judgement, rank, "the sentence names no rank");
    judge_time(judgement, rank, last_entered(judgement));
}

/* At least one rank gets what only this fault gives. */
static void judge_together(struct judgement *judgement, const struct expected *expected)
{
    for (int rank = 0; rank < judgement->program->size; rank++)
        if (atomic_load(&judgement->records[rank].written)
            && expected->one_has >> judgement->records[rank].status & 1)
            return;
    find(judgement, judgement->program->victim, "no rank got the status of this fault");
}

static void show(const struct judgement *judgement, int rank)
{
    const search_record *record = &judgement->records[rank];
    if (!atomic_load(&record->written)) {
        printf("rank %d: no error\n", rank);
        return;
    }
    printf("rank %d, step %d, %.2f s after all had come: %s: %s: %s\n", rank, record->failed_step,
           record->at - last_entered(judgement), record->what, coh_status_name(record->status),
           record->sentence);
}

int search_judge(const search_program *program, search_record *records, bool hung)
{
    struct judgement judgement = {.program = program, .records = records};
    struct expected found = {.fault = FAULT_NONE};
    if (program->faulty)
        found = expected_of(program);
    const struct expected *expected = program->faulty ? &found : NULL;
    for (int rank = 0; program->show && rank < program->size; rank++)
        show(&judgement, rank);
    for (int rank = 0; rank < program->size; rank++) {
        bool excused = expected && expected->victim_ends && rank == program->victim;
        if (excused)
            continue;
        if (hung && !atomic_load(&records[rank].done))
            find(&judgement, rank, "hangs");
        else if (expected)
            judge_faulty(&judgement, rank, expected);
        else
            judge_right(&judgement, rank);
    }
    if (expected && !hung)
        judge_together(&judgement, expected);
    return judgement.findings;
}
