/* Every algorithm, forced by its knob, on every engine: the same as by choice, or COH_UNSUPPORTED
 * on all ranks. */
#include "worlds.h"

#include "collectives/calls.h"

#include "coll/call/algorithm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 8, CALLS_MOST = 512 };

/* What the ranks of the run share: the row that is forced, and how many did each of its calls. */
struct scene {
    unsigned row;
    _Atomic uint64_t performed[CALLS_MOST];
    _Atomic uint64_t refused[CALLS_MOST];
    _Atomic uint64_t ended;
};

/* The kind of algorithms that a collective has: its own name, or what it begins with. */
static coh_collective_kind family_of(call_kind kind)
{
    const char *name = call_table[kind].name;
    size_t longest = 0;
    coh_collective_kind found = COH_COLLECTIVE_BARRIER;
    for (coh_collective_kind family = COHI_KIND_FIRST; family <= COHI_KIND_LAST; family++) {
        size_t length = strlen(coh_collective_name(family));
        if (strncmp(name, coh_collective_name(family), length) == 0 && length > longest) {
            found = family;
            longest = length;
        }
    }
    return found;
}

static test_call way_of(const test_rank *self, call_kind kind, size_t count, int way)
{
    static const coh_dtype dtypes[] = {COH_F32, COH_BF16, COH_I64, COH_U8};
    return (test_call){.kind = kind,
                       .dtype = dtypes[way % 4],
                       .op = way % 3 ? COH_SUM : COH_MAX,
                       .count = count,
                       .root = way % self->size,
                       .parts = (call_parts)(way % PARTS_COUNT),
                       .place = (call_place)(way % PLACE_COUNT),
                       .in_place = way % 3 == 1,
                       .started = way % 4 == 2,
                       .shifted = way % 2,
                       .seed = self->seed + (uint64_t)way * 131 + count};
}

/* Performed and right, or refused with a reason and nothing written. */
static void try_call(test_rank *self, call_rig *rig, const test_call *call, int number)
{
    struct scene *scene = worlds_scratch(self);
    const cohi_algorithm *row = cohi_algorithm_at(scene->row);
    coh_team *team = coh_team_world(self->world);
    char text[256];
    call_prepare(rig, team, call);
    coh_status status = call_make(rig, team, call);
    if (status == COH_OK && call->started)
        status = coh_request_wait(&rig->request, NULL);
    if (status == COH_OK) {
        atomic_fetch_add(&scene->performed[number], 1);
        if (!call_check(rig, call))
            test_fail("that was by %s", row->name);
    } else if (CHECK_REFUSED(status, COH_UNSUPPORTED, row->name)) {
        atomic_fetch_add(&scene->refused[number], 1);
    } else {
        test_fail("that was by %s: %s", row->name, call_text(call, text));
    }
}

static void all_calls(test_rank *self)
{
    struct scene *scene = worlds_scratch(self);
    const cohi_algorithm *row = cohi_algorithm_at(scene->row);
    const size_t n = (size_t)self->size, counts[] = {0, 1, n + 1, 40, 1030, 9001};
    bool slow = strncmp(self->engine, "sim", 3) == 0 || TEST_SANITIZED;
    size_t most = slow ? 1030 : 9001;
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_I64, .count = most};
    int number = 0;
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (call_kind kind = 0; kind < CALL_KIND_COUNT; kind++)
        for (int i = 0; i < 6 && family_of(kind) == row->kind; i++)
            for (int way = 0; way < (counts[i] > 1000 || slow ? 3 : WAYS) && counts[i] <= most;
                 way++) {
                test_call call = way_of(self, kind, counts[i], way + i);
                if (!test_failed())
                    try_call(self, &rig, &call, number++);
            }
    if (!test_failed())
        call_rig_close(&rig);
    atomic_fetch_add(&scene->ended, 1);
}

/* All ranks came to the same, and an algorithm does something where it can. */
static void judge(test_rank *self, const cohi_algorithm *row)
{
    struct scene *scene = worlds_scratch(self);
    uint64_t performed = 0, refused = 0, all = (uint64_t)self->size;
    for (int i = 0; i < CALLS_MOST; i++) {
        uint64_t good = atomic_load(&scene->performed[i]), bad = atomic_load(&scene->refused[i]);
        if (good != 0 && good != all)
            test_fail("%s: %llu ranks performed call %d and %llu refused it", row->name,
                      (unsigned long long)good, i, (unsigned long long)bad);
        performed += good;
        refused += bad;
    }
    bool mapped = strncmp(self->engine, "sim", 3) != 0 && (test_hosts < 2 || self->size == 1);
    bool levels = test_hosts > 1 && test_hosts < self->size && test_has_memory(self->engine);
    bool can = row->traits & COHI_BY_LEVELS ? levels : mapped || !(row->traits & COHI_MAPPED);
    if (row->traits
        & COHI_NATIVE) /* of a library that has collectives, and for several hosts alone */
        can = !mapped && strncmp(self->engine, "mpi:", 4) == 0;
    if (can && performed == 0)
        test_fail("%s of %s refused all of %llu calls", row->name, coh_collective_name(row->kind),
                  (unsigned long long)refused);
    if (!mapped && row->traits & COHI_MAPPED && performed > 0)
        test_fail("%s of %s needs mapped memory and was performed without", row->name,
                  coh_collective_name(row->kind));
}

static void knob_of(coh_collective_kind kind, char knob[64])
{
    snprintf(knob, 64, "COHORT_%s", coh_collective_name(kind));
    for (char *at = knob; *at; at++)
        *at = (char)toupper((unsigned char)*at);
}

/* Rank 0 clears what the others have all written to, and looked at, by then. */
static void force_row(test_rank *self, unsigned number)
{
    struct scene *scene = worlds_scratch(self);
    const cohi_algorithm *row = cohi_algorithm_at(number);
    char knob[64], knobs[160];
    knob_of(row->kind, knob);
    snprintf(knobs, sizeof knobs, "%s=%s", knob, row->name);
    if (self->rank == 0) {
        memset(scene, 0, sizeof *scene);
        scene->row = number;
    }
    worlds_run(self, knobs, all_calls);
    if (self->rank == 0 && CHECK(test_await(&scene->ended, (uint64_t)self->size, 20)))
        judge(self, row);
    if (test_failed())
        test_fail("that was with %s", knobs);
}

/* The row's name says which collective: a row each, so that each has a time limit. */
static void forced(test_rank *self)
{
    int tried = 0;
    call_kind kind = call_kind_in(self->row->name);
    for (unsigned i = 0; cohi_algorithm_at(i) && !test_failed(); i++) {
        if (cohi_algorithm_at(i)->kind != family_of(kind))
            continue;
        force_row(self, i);
        tried++;
    }
    CHECK(tried > 0);
}

/* ---- what is chosen, and names that are not there ---- */

/* In the heap, or in none. */
static void choices_are_told(test_rank *self)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    const char *name = NULL;
    double nanoseconds = -1;
    call.team = coh_team_world(self->world);
    call.dtype = COH_U8;
    for (call.kind = COHI_KIND_FIRST; call.kind <= COH_COLLECTIVE_SCAN_EXCLUSIVE; call.kind++)
        for (call.count = 0; call.count <= 1 << 26; call.count = call.count ? call.count * 8 : 8) {
            if (!CHECK_OK(coh_collective_choice(&call, &name, &nanoseconds))
                || !CHECK(name && *name) || !CHECK(nanoseconds >= 0))
                return;
            CHECK_OK(coh_collective_choice(&call, &name, NULL));
        }
    call.kind = (coh_collective_kind)50;
    CHECK_REFUSED(coh_collective_choice(&call, &name, NULL), COH_INVALID_ARGUMENT, "50");
    call.kind = COH_COLLECTIVE_BARRIER;
    CHECK_REFUSED(coh_collective_choice(&call, &name, NULL), COH_INVALID_ARGUMENT, "barrier");
    call.kind = COH_COLLECTIVE_REDUCE;
    CHECK_STATUS(coh_collective_choice(&call, NULL, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_collective_choice(NULL, &name, NULL), COH_INVALID_ARGUMENT);
    call.root = self->size;
    CHECK_STATUS(coh_collective_choice(&call, &name, NULL), COH_UNKNOWN_RANK);
    call.root = 0;
    call.op = COH_XOR;
    call.dtype = COH_F32;
    CHECK_REFUSED(coh_collective_choice(&call, &name, NULL), COH_INVALID_ARGUMENT, "xor");
    call.team = NULL;
    CHECK_STATUS(coh_collective_choice(&call, &name, NULL), COH_INVALID_ARGUMENT);
}

/* Which kinds need the sources, the targets or one of both where others reach them. */
static const struct needs {
    coh_collective_kind kind;
    bool source, target, either;
} needs[] = {
    {COH_COLLECTIVE_ALL_REDUCE, true, true, false},
    {COH_COLLECTIVE_REDUCE, true, true, false},
    {COH_COLLECTIVE_REDUCE_SCATTER, true, false, false},
    {COH_COLLECTIVE_ALL_GATHER, false, false, true},
    {COH_COLLECTIVE_GATHER, false, false, true},
    {COH_COLLECTIVE_SCATTER, false, false, true},
    {COH_COLLECTIVE_BROADCAST, true, false, false},
    {COH_COLLECTIVE_ALL_TO_ALL, true, false, false},
    {COH_COLLECTIVE_SCAN_EXCLUSIVE, true, true, false},
};

enum { CHOICE_COUNT = 128 << 10 }; /* more than goes in one shot */

static void ask_of_buffers(test_rank *self, const struct needs *row, char *heap, char *private)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = row->kind;
    call.team = coh_team_world(self->world);
    call.dtype = COH_U8;
    call.count = CHOICE_COUNT;
    for (int way = 0; way < 4 && !test_failed(); way++) {
        bool source = way & 1, target = way & 2;
        bool reached =
            row->either ? source || target : (source || !row->source) && (target || !row->target);
        const char *name = NULL;
        double nanoseconds = 0;
        call.source = source ? heap : private;
        call.target =
            target ? heap + CALL_MEMBERS * CHOICE_COUNT : private + CALL_MEMBERS * CHOICE_COUNT;
        if (CHECK_OK(coh_collective_choice(&call, &name, &nanoseconds))
            && (strcmp(name, "staged") == 0) == reached)
            test_fail("%s with the source %s and the target %s: %s", coh_collective_name(call.kind),
                      source ? "in the heap" : "private", target ? "in the heap" : "private", name);
    }
}

/* Of private memory the choice is what is carried out in the end. */
static void choices_go_by_the_buffers(test_rank *self)
{
    const size_t room = (size_t)2 * CALL_MEMBERS * CHOICE_COUNT;
    char *heap = NULL, *own = malloc(room);
    if (!CHECK(own) || !CHECK_OK(coh_malloc(self->world, room, (void **)&heap)))
        return;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        ask_of_buffers(self, &needs[i], heap, own);
    free(own);
    CHECK_OK(coh_free(self->world, heap));
}

/* The first algorithm of its kind must be named as one that there is. */
static void unknown_algorithms(test_rank *self)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *worlds[2];
    options.engine = self->engine;
    for (coh_collective_kind kind = COHI_KIND_FIRST; kind <= COHI_KIND_LAST; kind++) {
        char knob[64], words[160];
        unsigned first = 0;
        while (cohi_algorithm_at(first) && cohi_algorithm_at(first)->kind != kind)
            first++;
        if (!CHECK(cohi_algorithm_at(first) != NULL))
            return;
        knob_of(kind, knob);
        snprintf(words, sizeof words, "%s|by_magic|%s", knob, cohi_algorithm_at(first)->name);
        setenv(knob, "by_magic", 1);
        CHECK_REFUSED(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT, words);
        unsetenv(knob);
    }
}

#define FORCED(collective)                                                               \
    {.name = "forced_" collective,                                                       \
     .rows = "S39",                                                                      \
     .body = forced,                                                                     \
     .engines = ON_PROCESSES,                                                            \
     .sizes = FROM_TWO,                                                                  \
     .mode = TEST_UNJOINED,                                                              \
     .limit_s = 120},                                                                    \
    {                                                                                    \
        .name = "forced_" collective, .rows = "S39", .body = forced, .engines = ON_CREW, \
        .sizes = FROM_TWO, .mode = TEST_ALONE, .limit_s = 120                            \
    }

const test_case conform_coll_forced[] = {
    FORCED("all_reduce"),
    FORCED("reduce"),
    FORCED("reduce_scatter"),
    FORCED("all_gather"),
    FORCED("gather"),
    FORCED("scatter"),
    FORCED("broadcast"),
    FORCED("all_to_all"),
    FORCED("scan"),
    CASE(choices_are_told, "F17", ON_ALL, ANY_SIZE),
    CASE(choices_go_by_the_buffers, "S39", ON_SHM, FROM_TWO),
    CASE(unknown_algorithms, "F17", ON_CREW, SIZE(2), .mode = TEST_ALONE),
};
CONFORM_COUNT(coll_forced);
