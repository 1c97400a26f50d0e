/* Collectives on streams, on values of an arena that lies in the symmetric heap. */
#include "ml.h"

enum { COUNT = 1000 };

/* Two values of size * COUNT elements each, alive at once. */
typedef struct rig {
    coh_plan *plan;
    coh_arena *arena;
    coh_stream *stream;
    float *source;
    float *target;
} rig;

static coh_status make_rig(coh_world *world, coh_device *device, rig *made)
{
    coh_arena_options in_heap = {sizeof in_heap, world};
    coh_stream_options named = {sizeof named, "graph", 0, 0};
    coh_plan_value value = COH_PLAN_VALUE_INIT;
    value.bytes = (uint64_t)coh_size(world) * COUNT * sizeof(float);
    coh_status status = coh_plan_create(&made->plan);
    for (int i = 0; status == COH_OK && i < 2; i++)
        status = coh_plan_add(made->plan, &value, NULL);
    if (status == COH_OK)
        status = coh_plan_solve(made->plan);
    if (status == COH_OK)
        status = coh_arena_create(device, made->plan, &in_heap, &made->arena);
    if (status == COH_OK)
        status = coh_arena_pointer(made->arena, 0, (void **)&made->source, NULL);
    if (status == COH_OK)
        status = coh_arena_pointer(made->arena, 1, (void **)&made->target, NULL);
    return status == COH_OK ? coh_stream_create(device, &named, &made->stream) : status;
}

static const char *free_rig(rig *made)
{
    if (coh_stream_destroy(made->stream) != COH_OK || coh_arena_destroy(made->arena) != COH_OK)
        return "the end";
    coh_plan_destroy(made->plan);
    return NULL;
}

/* What element i of rank r holds at first, and what each collective makes of it on `rank`. */
static float held(int rank, size_t i)
{
    return (float)(rank * 3 + (int)(i % 17));
}

static float sum_to(int ranks, size_t i)
{
    float sum = 0;
    for (int r = 0; r < ranks; r++)
        sum += held(r, i);
    return sum;
}

typedef struct kind_case {
    coh_collective_kind kind;
    int blocks; /* in the target: 1, or one for each rank (0) */
    float (*expected)(int rank, int size, size_t i);
} kind_case;

static float all_reduced(int rank, int size, size_t i)
{
    (void)rank;
    return sum_to(size, i);
}

static float scattered_sum(int rank, int size, size_t i)
{
    return sum_to(size, (size_t)rank * COUNT + i);
}

static float gathered(int rank, int size, size_t i)
{
    (void)rank, (void)size;
    return held((int)(i / COUNT), i % COUNT);
}

static float from_root(int rank, int size, size_t i)
{
    (void)rank, (void)size;
    return held(0, i);
}

static float scattered(int rank, int size, size_t i)
{
    (void)size;
    return held(0, (size_t)rank * COUNT + i);
}

static float exchanged(int rank, int size, size_t i)
{
    (void)size;
    return held((int)(i / COUNT), (size_t)rank * COUNT + i % COUNT);
}

static float scanned(int rank, int size, size_t i)
{
    (void)size;
    return sum_to(rank + 1, i);
}

static float scanned_before(int rank, int size, size_t i)
{
    (void)size;
    return sum_to(rank, i);
}

static const kind_case cases[] = {
    {COH_COLLECTIVE_ALL_REDUCE, 1, all_reduced},
    {COH_COLLECTIVE_REDUCE_SCATTER, 1, scattered_sum},
    {COH_COLLECTIVE_ALL_GATHER, 0, gathered},
    {COH_COLLECTIVE_BROADCAST, 1, from_root},
    {COH_COLLECTIVE_SCATTER, 1, scattered},
    {COH_COLLECTIVE_ALL_TO_ALL, 0, exchanged},
    {COH_COLLECTIVE_SCAN, 1, scanned},
    {COH_COLLECTIVE_SCAN_EXCLUSIVE, 1, scanned_before},
    {COH_COLLECTIVE_REDUCE, 1, NULL},
    {COH_COLLECTIVE_GATHER, 0, NULL},
    {COH_COLLECTIVE_BARRIER, 0, NULL},
};

/* NULL as expected: on the root what its sister gives everywhere. */
static float expect(const kind_case *row, int rank, int size, size_t i)
{
    if (row->expected)
        return row->expected(rank, size, i);
    if (row->kind == COH_COLLECTIVE_BARRIER || rank != 0)
        return -1;
    return row->kind == COH_COLLECTIVE_REDUCE ? sum_to(size, i) : gathered(rank, size, i);
}

static coh_status run_case(const kind_case *row, coh_world *world, rig *made)
{
    size_t all = (size_t)coh_size(world) * COUNT;
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = row->kind;
    call.team = coh_team_world(world);
    call.source = made->source;
    call.target = made->target;
    call.count = COUNT;
    for (size_t i = 0; i < all; i++) {
        made->source[i] = held(coh_rank(world), i);
        made->target[i] = -1;
    }
    coh_status status = coh_stream_collective(made->stream, &call);
    return status == COH_OK ? coh_stream_submit_wait(made->stream) : status;
}

static const char *every_collective(coh_world *world, coh_device *device)
{
    rig made = {0};
    coh_device_info before = {.size = sizeof before}, after = {.size = sizeof after};
    int rank = coh_rank(world), size = coh_size(world);
    if (make_rig(world, device, &made) != COH_OK || coh_device_query(device, &before) != COH_OK)
        return "the rig";
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const kind_case *row = &cases[c];
        if (run_case(row, world, &made) != COH_OK)
            return coh_collective_name(row->kind);
        for (size_t i = 0; i < (row->blocks ? COUNT : (size_t)size * COUNT); i++)
            if (made.target[i] != expect(row, rank, size, i))
                return coh_collective_name(row->kind);
    }
    if (coh_device_query(device, &after) != COH_OK || after.moved != before.moved)
        return "bytes were moved to make the values reachable";
    return free_rig(&made);
}

static void added(void *into, const void *from, size_t count, void *user)
{
    float *have = into;
    const float *more = from;
    (void)user;
    for (size_t i = 0; i < count; i++)
        have[i] += more[i];
}

/* Other forms of the calls: counts, parts, strides, a reduction by a function. */
static coh_status run_form(rig *made, coh_collective call, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        made->target[i] = -1;
    call.source = made->source;
    call.target = made->target;
    coh_status status = coh_stream_collective(made->stream, &call);
    if (status == COH_OK)
        status = coh_stream_submit_wait(made->stream);
    for (size_t i = 0; status == COH_OK && i < count; i++)
        if (made->target[i] != expected[i])
            return COH_LENGTH_MISMATCH; /* none of these calls has it */
    return status;
}

static const char *every_form(coh_world *world, coh_device *device)
{
    rig made = {0};
    int rank = coh_rank(world), size = coh_size(world);
    size_t counts[3] = {1, 2, 3}, ones[3] = {1, 1, 1};
    float expected[6];
    size_t all = 0;
    if (make_rig(world, device, &made) != COH_OK)
        return "the rig";
    for (int i = 0; i < size * COUNT; i++)
        made.source[i] = held(rank, (size_t)i);
    coh_collective call = COH_COLLECTIVE_INIT;
    call.team = coh_team_world(world);
    call.kind = COH_COLLECTIVE_ALL_GATHER;
    call.counts = counts;
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < counts[r]; i++)
            expected[all++] = held(r, i);
    if (run_form(&made, call, expected, all) != COH_OK)
        return "all_gather_v";
    coh_parts parts = {ones, NULL};
    call.counts = NULL;
    call.kind = COH_COLLECTIVE_ALL_TO_ALL;
    call.source_parts = call.target_parts = &parts;
    for (int r = 0; r < size; r++)
        expected[r] = held(r, (size_t)rank);
    if (run_form(&made, call, expected, (size_t)size) != COH_OK)
        return "all_to_all_v";
    call.source_parts = call.target_parts = NULL;
    call.source_stride = 2;
    call.count = 1;
    for (int r = 0; r < size; r++)
        expected[r] = held(r, 2 * (size_t)rank);
    if (run_form(&made, call, expected, (size_t)size) != COH_OK)
        return "all_to_all_strided";
    coh_reduction how = COH_REDUCTION_INIT;
    how.function = added;
    how.element = sizeof(float);
    call = (coh_collective)COH_COLLECTIVE_INIT;
    call.team = coh_team_world(world);
    call.kind = COH_COLLECTIVE_ALL_REDUCE;
    call.count = 6;
    call.how = &how;
    for (size_t i = 0; i < 6; i++)
        expected[i] = sum_to(size, i);
    if (run_form(&made, call, expected, 6) != COH_OK)
        return "all_reduce_with";
    call.counts = counts;
    if (run_form(&made, call, expected, 6) != COH_INVALID_ARGUMENT
        || !strstr(coh_last_error(), "all_reduce of parts")
        || !strstr(coh_last_error(), "counts are for"))
        return "a form that the kind does not have";
    return free_rig(&made);
}

static void streams_take_every_form(void **state)
{
    (void)state;
    run_ranks(1, every_form);
    run_ranks(3, every_form);
}

static void values_in_the_heap_need_no_copy(void **state)
{
    (void)state;
    run_ranks(1, every_collective);
    run_ranks(2, every_collective);
    run_ranks(3, every_collective);
}

/* Ranks disagree: the wait says in which operation of which stream. */
static const char *different_counts(coh_world *world, coh_device *device)
{
    rig made = {0};
    coh_collective call = COH_COLLECTIVE_INIT;
    if (make_rig(world, device, &made) != COH_OK)
        return "the rig";
    call.kind = COH_COLLECTIVE_ALL_REDUCE;
    call.team = coh_team_world(world);
    call.source = made.source;
    call.target = made.target;
    call.count = coh_rank(world) == 1 ? 8 : 16;
    coh_status status = COH_OK;
    for (int i = 0; status == COH_OK && i < 2; i++) { /* at this call or at the next */
        status = coh_stream_collective(made.stream, &call);
        if (status == COH_OK)
            status = coh_stream_submit_wait(made.stream);
    }
    if (status != COH_MISMATCH || !strstr(coh_last_error(), "stream 'graph': operation")
        || !strstr(coh_last_error(), "all_reduce of"))
        return "the failure is not told with its operation";
    (void)coh_stream_destroy(made.stream);
    (void)coh_arena_destroy(made.arena); /* the team is broken: nothing of it can be collective */
    coh_plan_destroy(made.plan);
    return NULL;
}

/* As run_ranks, but leaving the job fails too, as it must. */
static void *run_disagreeing(void *arg)
{
    rank_thread *self = arg;
    coh_device *device = NULL;
    (void)coh_device_open(COH_DEVICE_CPU, 0, &device);
    self->wrong = different_counts(self->world, device);
    strncpy(self->sentence, coh_last_error(), sizeof self->sentence - 1);
    (void)coh_device_close(device);
    (void)coh_finalize(self->world);
    return NULL;
}

static void a_mismatch_names_the_operation(void **state)
{
    coh_world *worlds[2];
    rank_thread threads[2] = {{0}};
    pthread_t ids[2];
    (void)state;
    assert_ok(coh_init_threads(2, NULL, worlds));
    for (int i = 0; i < 2; i++) {
        threads[i].world = worlds[i];
        assert_int_equal(pthread_create(&ids[i], NULL, run_disagreeing, &threads[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < 2; i++)
        if (threads[i].wrong)
            fail_msg("rank %d: %s: %s", i, threads[i].wrong, threads[i].sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_in_the_heap_need_no_copy),
        cmocka_unit_test(streams_take_every_form),
        cmocka_unit_test(a_mismatch_names_the_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
