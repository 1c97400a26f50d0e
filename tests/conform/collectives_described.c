/* Collectives by description: coh_collective_run and coh_collective_start. */
#include "conform.h"

#include "collectives/calls.h"

#include <stdlib.h>
#include <string.h>

static coh_collective describe(test_rank *self, coh_collective_kind kind, const void *source,
                               void *target, size_t count)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = kind;
    call.team = coh_team_world(self->world);
    call.dtype = COH_I32;
    call.source = source;
    call.target = target;
    call.count = count;
    return call;
}

/* Some members describe the call, and others make it by its name. */
static void mixed(test_rank *self)
{
    const size_t counts[] = {0, 1, 40, 1030};
    coh_team *team = coh_team_world(self->world);
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = 1030};
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (call_kind kind = 0; kind < CALL_KIND_COUNT; kind++)
        for (int way = 0; way < 8 && !test_failed(); way++) {
            test_call call = {.kind = kind,
                              .dtype = way % 3 ? COH_F64 : COH_I32,
                              .op = way % 3 ? COH_SUM : COH_MAX,
                              .count = counts[way % 4],
                              .root = way % self->size,
                              .parts = (call_parts)(way % PARTS_COUNT),
                              .place = (call_place)(way % PLACE_COUNT),
                              .in_place = way % 2,
                              .described = (self->rank + way) % 2,
                              .started = (self->rank + way) / 2 % 2,
                              .seed = self->seed + (uint64_t)way};
            call_perform(&rig, team, &call);
        }
    if (!test_failed())
        call_rig_close(&rig);
}

/* Made again and again, with what the kind does not look at changing. */
static void repeated(test_rank *self)
{
    int32_t mine = self->rank + 1, sum = 0, all[CALL_MEMBERS];
    coh_collective reduce = describe(self, COH_COLLECTIVE_ALL_REDUCE, &mine, &sum, 1);
    coh_collective gather = describe(self, COH_COLLECTIVE_ALL_GATHER, &mine, all, 1);
    for (int turn = 0; turn < 6 && !test_failed(); turn++) {
        int32_t expected = self->size * (self->size + 1) / 2;
        reduce.root = gather.root = turn * 1000;
        gather.op = (coh_reduce_op)(turn * 7);
        sum = all[0] = 0;
        if (turn % 3 == 2)
            CHECK_OK(coh_all_reduce(reduce.team, COH_I32, COH_SUM, &mine, &sum, 1));
        else
            CHECK_OK(coh_collective_run(&reduce));
        CHECK_EQ(sum, expected);
        CHECK_OK(coh_collective_run(&gather));
        CHECK_EQ(all[0], 1);
        CHECK_EQ(all[self->size - 1], self->size);
    }
}

static void barriers(test_rank *self)
{
    coh_collective barrier = describe(self, COH_COLLECTIVE_BARRIER, NULL, NULL, 0);
    coh_request *request = NULL;
    CHECK_OK(coh_collective_run(&barrier));
    if (CHECK_OK(coh_collective_start(&barrier, &request)))
        CHECK_OK(coh_request_wait(&request, NULL));
    if (self->rank % 2)
        CHECK_OK(coh_collective_run(&barrier));
    else
        CHECK_OK(coh_team_barrier(barrier.team));
}

static void larger(void *into, const void *from, size_t count, void *user)
{
    int32_t *have = into;
    const int32_t *more = from;
    for (size_t i = 0; i < count; i++)
        have[i] = more[i] > have[i] ? more[i] : have[i];
    (void)user;
}

/* By a function, and scaled. */
static void with_a_reduction(test_rank *self)
{
    int32_t mine[2] = {self->rank, -self->rank}, most[2] = {-1, -1};
    float one = 2, sum = 0;
    coh_reduction how = COH_REDUCTION_INIT;
    coh_collective call = describe(self, COH_COLLECTIVE_ALL_REDUCE, mine, most, 2);
    coh_request *request = NULL;
    how.function = larger;
    how.element = sizeof *mine;
    call.how = &how;
    CHECK_OK(coh_collective_run(&call));
    CHECK_EQ(most[0], self->size - 1);
    CHECK_EQ(most[1], 0);
    how = (coh_reduction)COH_REDUCTION_INIT;
    how.scale = 0.5;
    call = describe(self, COH_COLLECTIVE_ALL_REDUCE, &one, &sum, 1);
    call.how = &how;
    if (!CHECK_OK(coh_collective_start(&call, &request)))
        return;
    memset(&how, 0xee, sizeof how); /* a started call has a copy */
    CHECK_OK(coh_request_wait(&request, NULL));
    CHECK_EQ((int)sum, self->size);
}

/* ---- what is refused ---- */

/* Nobody can be told of what is no description: each member finds out for itself. */
static void not_a_description(test_rank *self)
{
    int32_t one = 1, two = 2;
    coh_request *request = NULL;
    coh_collective good = describe(self, COH_COLLECTIVE_ALL_REDUCE, &one, &two, 1), bad = good;
    CHECK_REFUSED(coh_collective_run(NULL), COH_INVALID_ARGUMENT, "coh_collective_run|NULL");
    CHECK_REFUSED(coh_collective_start(NULL, &request), COH_INVALID_ARGUMENT,
                  "coh_collective_start|NULL");
    bad.size = 8;
    CHECK_REFUSED(coh_collective_run(&bad), COH_INVALID_ARGUMENT, "size is 8|COH_COLLECTIVE_INIT");
    CHECK_REFUSED(coh_collective_start(&bad, &request), COH_INVALID_ARGUMENT, "size is 8");
    bad = good;
    bad.kind = (coh_collective_kind)11;
    CHECK_REFUSED(coh_collective_run(&bad), COH_INVALID_ARGUMENT, "11 is not a collective");
    bad.kind = (coh_collective_kind)-1;
    CHECK_REFUSED(coh_collective_start(&bad, &request), COH_INVALID_ARGUMENT,
                  "-1 is not a collective");
    for (bad.kind = COH_COLLECTIVE_BARRIER; bad.kind <= COH_COLLECTIVE_SCAN_EXCLUSIVE; bad.kind++) {
        bad.team = NULL;
        CHECK_STATUS(coh_collective_run(&bad), COH_INVALID_ARGUMENT);
        CHECK_STATUS(coh_collective_start(&bad, &request), COH_INVALID_ARGUMENT);
        bad.team = good.team;
        CHECK_REFUSED(coh_collective_start(&bad, NULL), COH_INVALID_ARGUMENT, "request");
    }
    CHECK(request == NULL);
    CHECK_EQ(two, 2);
    CHECK_OK(coh_collective_run(&good));
    CHECK_EQ(two, self->size);
}

/* Each takes its place in the team's sequence, also where one member alone is wrong. */
static void refuse_form(const coh_collective *bad, const char *words)
{
    coh_request *request = NULL;
    CHECK_REFUSED(coh_collective_run(bad), COH_INVALID_ARGUMENT, words);
    if (CHECK_OK(coh_collective_start(bad, &request)))
        CHECK_REFUSED(coh_request_wait(&request, NULL), COH_INVALID_ARGUMENT, words);
}

static bool reduces(coh_collective_kind kind)
{
    static const bool answers[] = {
#define ANSWER(constant, value, name, reduces, root, source, target) reduces,
        COH_COLLECTIVE_TABLE(ANSWER)
#undef ANSWER
    };
    return answers[kind];
}

static void forms_that_a_kind_does_not_have(test_rank *self)
{
    int32_t one[CALL_MEMBERS] = {1}, two[CALL_MEMBERS] = {0};
    size_t counts[CALL_MEMBERS] = {0};
    coh_parts parts = {counts, NULL};
    coh_reduction how = COH_REDUCTION_INIT, short_one = COH_REDUCTION_INIT;
    short_one.size = 8;
    for (coh_collective_kind kind = COH_COLLECTIVE_ALL_REDUCE;
         kind <= COH_COLLECTIVE_SCAN_EXCLUSIVE && !test_failed(); kind++) {
        const coh_collective good = describe(self, kind, one, two, 0);
        coh_collective bad = good;
        bool exchange = kind == COH_COLLECTIVE_ALL_TO_ALL;
        bool cut = kind >= COH_COLLECTIVE_REDUCE_SCATTER && kind <= COH_COLLECTIVE_SCATTER;
        bad.counts = counts;
        if (!cut)
            refuse_form(&bad, "counts are for");
        bad = good;
        bad.source_parts = bad.target_parts = &parts;
        if (!exchange)
            refuse_form(&bad, "parts are for");
        bad.source_stride = exchange ? 2 : 1;
        if (exchange)
            refuse_form(&bad, "strides|parts");
        bad = good;
        bad.source_parts = &parts;
        refuse_form(&bad, exchange ? "counts of the target are NULL" : "parts are for");
        bad = good;
        bad.target_stride = exchange ? 0 : 2;
        refuse_form(&bad, exchange ? "stride of the target is 0" : "strides");
        bad = good;
        bad.how = &how;
        if (!reduces(kind))
            refuse_form(&bad, "no reduction");
        bad.how = &short_one;
        if (reduces(kind))
            refuse_form(&bad, "size|COH_REDUCTION_INIT");
        CHECK_OK(coh_collective_run(&good));
    }
}

/* The error says which call it was; where one member is refused, those hear of it that need it. */
static void errors_name_the_call(test_rank *self)
{
    int32_t one = 1, two = 0;
    coh_collective call = describe(self, COH_COLLECTIVE_ALL_REDUCE, &one, &two, 1);
    coh_request *request = NULL;
    if (self->rank == 0)
        call.source = NULL;
    CHECK_REFUSED(coh_collective_run(&call), COH_INVALID_ARGUMENT,
                  self->rank == 0 ? "coh_collective_run(all_reduce)|source is NULL"
                                  : "coh_collective_run(all_reduce)|rank 0");
    if (CHECK_OK(coh_collective_start(&call, &request)))
        CHECK_REFUSED(coh_request_wait(&request, NULL), COH_INVALID_ARGUMENT,
                      "coh_collective_start(all_reduce)");
    call.source = &one;
    CHECK_OK(coh_collective_run(&call));
    CHECK_EQ(two, self->size);
}

const test_case conform_coll_described[] = {
    CASE(mixed, "S53", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(repeated, "S53", ON_ALL, ANY_SIZE),
    CASE(barriers, "S53", ON_ALL, ANY_SIZE),
    CASE(with_a_reduction, "S53", ON_ALL, ANY_SIZE),
    CASE(not_a_description, "F17", ON_ALL, ANY_SIZE),
    CASE(forms_that_a_kind_does_not_have, "S53 F17", ON_ALL, ANY_SIZE),
    CASE(errors_name_the_call, "S53", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(coll_described);
