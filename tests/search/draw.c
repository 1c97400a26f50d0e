#include "search.h"

#include <stdio.h>
#include <string.h>

/* One stream of random numbers for a program. */
struct dice {
    uint64_t state;
};

static int roll(struct dice *dice, int sides)
{
    return (int)(test_random(&dice->state) % (uint64_t)sides);
}

static bool chance(struct dice *dice, int percent)
{
    return roll(dice, 100) < percent;
}

static double between(struct dice *dice, double least, double most)
{
    return least + (most - least) * roll(dice, 1000) / 1000.0;
}

static int other_than(struct dice *dice, int rank, int size)
{
    return (rank + 1 + roll(dice, size - 1)) % size;
}

/* ---- single steps ---- */

/* Kinds that may come anywhere, by weight. */
static const struct {
    search_kind kind;
    int weight;
    bool only_right; /* with a fault it may keep the job busy for ever */
} kinds[] = {
    {SEARCH_BARRIER, 2, false}, {SEARCH_COLLECTIVE, 4, false}, {SEARCH_START, 3, false},
    {SEARCH_LATE, 2, false},    {SEARCH_MESSAGE, 5, false},    {SEARCH_WORD, 4, false},
    {SEARCH_TIMED, 1, false},   {SEARCH_LOCK, 3, false},       {SEARCH_COMPUTE, 4, false},
    {SEARCH_HELPER, 4, false},  {SEARCH_DELAYED, 2, false},    {SEARCH_CROWDED, 1, false},
    {SEARCH_IDLE, 1, false},    {SEARCH_POLL, 2, true},
};

static search_kind draw_kind(struct dice *dice, bool faulty)
{
    int all = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        all += faulty && kinds[i].only_right ? 0 : kinds[i].weight;
    int at = roll(dice, all);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        at -= faulty && kinds[i].only_right ? 0 : kinds[i].weight;
        if (at < 0)
            return kinds[i].kind;
    }
    return SEARCH_BARRIER;
}

static int draw_way(struct dice *dice, search_kind kind)
{
    switch (kind) {
    case SEARCH_MESSAGE:
        return roll(dice, MESSAGES);
    case SEARCH_WORD:
    case SEARCH_CROWDED:
        return roll(dice, WORDS);
    case SEARCH_HELPER:
    case SEARCH_DELAYED:
        return roll(dice, AWAITS);
    default:
        return roll(dice, CALLS);
    }
}

static size_t draw_amount(struct dice *dice, search_kind kind, bool faulty)
{
    if (kind == SEARCH_CROWDED)
        return (size_t)(2 + roll(dice, faulty ? 6 : SEARCH_CROWD - 1));
    if (kind == SEARCH_IDLE)
        return (size_t)(1 + roll(dice, SEARCH_POOL));
    if (kind == SEARCH_MESSAGE || kind == SEARCH_POLL)
        return (size_t)(chance(dice, 25) ? SEARCH_BYTES_MAX : 1 + roll(dice, 300));
    return (size_t)(chance(dice, 20) ? SEARCH_COUNT_MAX : 1 + roll(dice, 50));
}

/* One long computation in a third of the programs; the others are short. */
static double draw_seconds(struct dice *dice, search_kind kind)
{
    if (kind == SEARCH_TIMED)
        return between(dice, 0.05, 1.5 * SEARCH_STALL_S);
    if (kind == SEARCH_DELAYED)
        return between(dice, 0, chance(dice, 30) ? 2.5 * SEARCH_STALL_S : 0.3);
    if (kind == SEARCH_LOCK)
        return chance(dice, 15) ? between(dice, 0, 1.5 * SEARCH_STALL_S) : 0;
    return kind == SEARCH_COMPUTE ? between(dice, 0, 0.3) : 0;
}

static search_step draw_step(struct dice *dice, const search_program *program, search_kind kind)
{
    search_step step = {.kind = kind, .how = draw_way(dice, kind)};
    step.to = roll(dice, program->size);
    step.from = other_than(dice, step.to, program->size);
    if ((kind == SEARCH_HELPER || kind == SEARCH_DELAYED) && chance(dice, 20))
        step.from = step.to; /* two threads of one rank */
    if (step.from == step.to && step.how == AWAIT_LOCK)
        step.how = AWAIT_WORD; /* a lock is the rank's, not a thread's */
    step.team = chance(dice, 40) ? SEARCH_PART : SEARCH_WORLD;
    step.any = chance(dice, 40);
    step.spins = chance(dice, 50);
    step.by_test = !program->faulty && chance(dice, 15);
    step.ticks = !program->faulty && chance(dice, 50);
    step.amount = draw_amount(dice, kind, program->faulty);
    step.seconds = draw_seconds(dice, kind);
    step.takers = chance(dice, 15) || kind == SEARCH_LOCK
                      ? (unsigned)(1 + roll(dice, (1 << program->size) - 1))
                      : 0;
    return step;
}

/* ---- steps with two halves ---- */

static bool has_two_halves(search_kind kind)
{
    return kind == SEARCH_START || kind == SEARCH_LATE || kind == SEARCH_HELPER
           || kind == SEARCH_DELAYED || kind == SEARCH_CROWDED;
}

static void add(search_program *program, search_step step)
{
    if (program->count < SEARCH_STEPS)
        program->steps[program->count++] = step;
}

static bool is_open(const search_program *program, int step)
{
    if (!has_two_halves(program->steps[step].kind))
        return false;
    for (int i = step + 1; i < program->count; i++)
        if (program->steps[i].kind == SEARCH_FINISH && program->steps[i].of == step)
            return false;
    return true;
}

static int count_open(const search_program *program, search_kind kind)
{
    int count = 0;
    for (int i = 0; i < program->count; i++)
        count +=
            is_open(program, i) && (kind == SEARCH_KIND_COUNT || program->steps[i].kind == kind);
    return count;
}

static void finish_some(struct dice *dice, search_program *program, int percent)
{
    for (int i = program->count - 1; i >= 0; i--)
        if (is_open(program, i) && chance(dice, percent))
            add(program, (search_step){.kind = SEARCH_FINISH, .of = i});
}

/* One that may come after the steps so far. */
static search_kind draw_next_kind(struct dice *dice, const search_program *program)
{
    search_kind kind = draw_kind(dice, program->faulty);
    if (kind == SEARCH_LATE && count_open(program, SEARCH_LATE) > 0)
        return SEARCH_MESSAGE; /* there is one team for it */
    return kind;
}

/* ---- the fault ---- */

static search_fault draw_fault(struct dice *dice, const search_program *program)
{
    search_fault fault = (search_fault)(1 + roll(dice, SEARCH_FAULT_COUNT - 1));
    bool stop = fault == FAULT_STOPPED && strcmp(program->engine, "shm") != 0;
    return stop ? FAULT_KILLED : fault;
}

/* The step that the fault is planted in, where it takes one of a kind. */
static search_kind kind_of_fault(struct dice *dice, const search_program *program)
{
    switch (program->fault) {
    case FAULT_NOT_SENT:
    case FAULT_WRONG_TAG:
        return SEARCH_MESSAGE;
    case FAULT_NOT_WRITTEN:
        return SEARCH_WORD;
    case FAULT_LOCKS:
        return SEARCH_CROSSED;
    case FAULT_LEFT_OUT:
        return chance(dice, 50) ? SEARCH_BARRIER : SEARCH_COLLECTIVE;
    case FAULT_DIFFERENT:
        return SEARCH_COLLECTIVE;
    case FAULT_CIRCLE:
        return SEARCH_CIRCLE;
    case FAULT_NOT_BROUGHT:
        return SEARCH_HELPER;
    default:
        return draw_next_kind(dice, program);
    }
}

/* The rank in the world of a member of SEARCH_PART. */
static int part_rank(const search_program *program, int member)
{
    return program->part_start + member * program->part_stride;
}

/* What makes the fault one that all members feel. */
static void fit_to_fault(struct dice *dice, search_program *program, search_step *step)
{
    search_fault fault = program->fault;
    bool in_part = step->kind == SEARCH_COLLECTIVE && step->team == SEARCH_PART;
    /* The last call of a part is not compared by a later one: it has to be one that waits. */
    int calls = in_part ? CALL_GATHER + 1 : CALLS;
    if (fault == FAULT_WRONG_TAG)
        step->how = step->how == MESSAGE_RING ? MESSAGE_RING : MESSAGE_NAMED;
    if (fault == FAULT_LEFT_OUT || fault == FAULT_DIFFERENT)
        step->how = roll(dice, calls);
    if (fault == FAULT_LOCKS || fault == FAULT_CIRCLE)
        step->takers = 0;
    if (fault == FAULT_NOT_SENT || fault == FAULT_NOT_WRITTEN || fault == FAULT_NOT_BROUGHT)
        program->victim = step->from;
    else if (fault == FAULT_WRONG_TAG || fault == FAULT_LOCKS || fault == FAULT_CIRCLE)
        program->victim = step->to;
    else
        program->victim = in_part ? part_rank(program, roll(dice, program->part_size))
                                  : roll(dice, program->size);
}

static void add_fault(struct dice *dice, search_program *program)
{
    search_step step = draw_step(dice, program, kind_of_fault(dice, program));
    fit_to_fault(dice, program, &step);
    program->fault_step = program->count;
    program->fault_delay = chance(dice, 50) ? between(dice, 0, 0.2) : 0;
    add(program, step);
    if (program->fault == FAULT_NOT_BROUGHT) {
        add(program, (search_step){.kind = SEARCH_FINISH, .of = program->fault_step});
        program->fault_step++;
    }
}

/* ---- the program ---- */

static void draw_part(struct dice *dice, search_program *program)
{
    program->part_stride = 1 + roll(dice, program->size > 2 ? 2 : 1);
    program->part_start = roll(dice, program->size - program->part_stride);
    int most = 1 + (program->size - 1 - program->part_start) / program->part_stride;
    program->part_size = 2 + (most > 2 ? roll(dice, most - 1) : 0);
}

static void add_any(struct dice *dice, search_program *program)
{
    add(program, draw_step(dice, program, draw_next_kind(dice, program)));
}

static void add_long_computation(struct dice *dice, search_program *program)
{
    search_step step = draw_step(dice, program, SEARCH_COMPUTE);
    step.seconds = between(dice, 0.8, 3) * SEARCH_STALL_S;
    add(program, step);
}

void search_draw(search_program *program)
{
    enum {
        MOST = 10,
        OPEN = 7
    }; /* with their second halves, a fault and more: below SEARCH_STEPS */
    struct dice dice = {program->seed * 2 + program->faulty};
    int wanted = 3 + roll(&dice, MOST - 2), fault_at = -1, long_at = -1;
    draw_part(&dice, program);
    if (program->faulty) {
        program->fault = draw_fault(&dice, program);
        fault_at = roll(&dice, wanted);
    }
    if (chance(&dice, program->faulty ? 15 : 40))
        long_at = roll(&dice, wanted);
    for (int i = 0; i < wanted; i++) {
        if (i == fault_at)
            add_fault(&dice, program);
        if (i == long_at)
            add_long_computation(&dice, program);
        if (count_open(program, SEARCH_KIND_COUNT) < OPEN)
            add_any(&dice, program);
        finish_some(&dice, program, 30);
    }
    finish_some(&dice, program, 100);
}

void search_draw_place(search_program *program)
{
    static const char *const engines[] = {"shm", "shm", "shm", "threads", "sim"};
    struct dice dice = {program->seed * 31 + 7};
    int engine = roll(&dice, 5), size = 2 + roll(&dice, SEARCH_RANKS - 1);
    if (!program->engine[0])
        snprintf(program->engine, sizeof program->engine, "%s", engines[engine]);
    if (program->size == 0)
        program->size = size;
}

/* ---- words ---- */

const char *search_fault_name(search_fault fault)
{
#define SEARCH_NAME(constant, name) name,
    static const char *const names[] = {SEARCH_FAULTS(SEARCH_NAME)};
#undef SEARCH_NAME
    return names[fault];
}

void search_print(const search_program *program)
{
#define SEARCH_NAME(constant, name, perform) name,
    static const char *const names[] = {SEARCH_KINDS(SEARCH_NAME)};
#undef SEARCH_NAME
    printf("%s x%d, part %d+%d x%d, fault: %s at %d, rank %d, after %.2f s\n", program->engine,
           program->size, program->part_start, program->part_stride, program->part_size,
           search_fault_name(program->fault), program->fault_step, program->victim,
           program->fault_delay);
    for (int i = 0; i < program->count; i++) {
        const search_step *step = &program->steps[i];
        printf("  %2d %-13s how %d, %d -> %d%s, team %d, amount %zu, %.2f s%s, takers %#x, of %d\n",
               i, names[step->kind], step->how, step->from, step->to, step->any ? " (any)" : "",
               step->team, step->amount, step->seconds, step->spins ? " spinning" : "",
               step->takers, step->of);
    }
}
