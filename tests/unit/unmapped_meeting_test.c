/* Members that are not mapped: what a call finds after one in which a word could not be sent, and an
 * engine that does not say whom it lost. */
#include "unit.h"

#include "core/health/verdict.h"
#include "core/team/team.h"
#include "core/world/world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RANKS = 2 };

/* ---- an engine that fails when told to ---- */

static struct {
    const cohi_engine_rma *real;
    cohi_engine_rma rma;
    cohi_engine engine;
    bool refuses_puts;
    bool loses_nobody; /* a quiet of control writes fails, and no rank is named */
    uint64_t quieted;  /* contexts, a bit each */
} broken;

static coh_status put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                      cohi_op *op)
{
    return broken.refuses_puts ? COH_NO_MEMORY : broken.real->put(endpoint, to, source, bytes, op);
}

static coh_status quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    broken.quieted |= UINT64_C(1) << context % 64;
    if (!broken.loses_nobody || context != COHI_CONTEXT_CONTROL)
        return broken.real->quiet(endpoint, context, op);
    op->status = COH_PEER_LOST;
    op->rank = -1;
    atomic_store(&op->done, 1);
    return COH_OK;
}

static void break_engine(coh_world *world)
{
    broken.real = world->engine->rma;
    broken.rma = *broken.real;
    broken.rma.put = put;
    broken.rma.quiet = quiet;
    broken.engine = *world->engine;
    broken.engine.rma = &broken.rma;
    world->engine = &broken.engine;
}

/* ---- two ranks, of which this thread is the first ---- */

static coh_world *worlds[RANKS];

static int open_worlds(void **state)
{
    (void)state;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim";
    options.heap = 1 << 20;
    if (coh_init_threads(RANKS, &options, worlds) != COH_OK)
        return -1;
    break_engine(worlds[0]);
    return worlds[0]->team->mapped ? -1 : 0;
}

static void *finalize_other(void *world)
{
    (void)!coh_finalize(world);
    return NULL;
}

/* The first leaves; the other sees that, or meets it. */
static int close_worlds(void **state)
{
    (void)state;
    pthread_t other;
    broken.refuses_puts = broken.loses_nobody = false;
    if (pthread_create(&other, NULL, finalize_other, worlds[1]) != 0)
        return -1;
    (void)!coh_finalize(worlds[0]);
    return pthread_join(other, NULL);
}

/* ---- the cases ---- */

static void a_rank_that_could_not_tell_is_out_of_step(void **state)
{
    (void)state;
    int64_t value = 1, sum;
    void *block;
    broken.refuses_puts = true;
    assert_int_equal(coh_barrier(worlds[0]), COH_NO_MEMORY);
    broken.refuses_puts = false;
    assert_int_equal(coh_barrier(worlds[0]), COH_TRANSPORT);
    assert_says("collective #1 of this team failed on this rank");
    assert_int_equal(coh_malloc(worlds[0], 64, &block), COH_TRANSPORT);
    assert_int_equal(coh_all_reduce(worlds[0]->team, COH_I64, COH_SUM, &value, &sum, 1),
                     COH_TRANSPORT);
    assert_says("out of step with the others since");
}

static void a_lost_rank_without_a_number_is_an_error(void **state)
{
    (void)state;
    void *block;
    broken.loses_nobody = true;
    assert_int_equal(coh_malloc(worlds[0], 64, &block), COH_PEER_LOST);
    assert_says("the operation failed");
}

static void *make_and_destroy(void *world)
{
    coh_heap *heap;
    if (coh_heap_create(world, NULL, &heap) == COH_OK)
        (void)!coh_heap_destroy(heap);
    return NULL;
}

static void a_heap_goes_when_all_contexts_are_complete(void **state)
{
    (void)state;
    coh_heap *heap;
    coh_context *context;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, make_and_destroy, worlds[1]), 0);
    assert_int_equal(coh_heap_create(worlds[0], NULL, &heap), COH_OK);
    assert_int_equal(coh_context_create(worlds[0], &context), COH_OK);
    broken.quieted = 0;
    assert_int_equal(coh_heap_destroy(heap), COH_OK);
    assert_true(broken.quieted >> COHI_CONTEXT_DEFAULT & 1);
    assert_true(broken.quieted >> COHI_CONTEXT_FIRST_FREE & 1);
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* ---- a verdict without its alarm, which is put after it ---- */

static struct {
    pthread_t thread;
    atomic_bool over;
} lost;

/* A thread that ends would be lost in earnest. */
static void *allocate_and_stay(void *world)
{
    void *memory;
    (void)!coh_calloc(world, 1, sizeof(uint64_t), &memory);
    while (!atomic_load(&lost.over))
        sched_yield();
    (void)!coh_finalize(world);
    return NULL;
}

/* Rank 1 is lost for rank 0, as it would say of itself; a word of the heap. */
static void *lose_other(void)
{
    void *memory;
    atomic_store(&lost.over, false);
    assert_int_equal(pthread_create(&lost.thread, NULL, allocate_and_stay, worlds[1]), 0);
    assert_int_equal(coh_calloc(worlds[0], 1, sizeof(uint64_t), &memory), COH_OK);
    atomic_store(cohi_slot_verdict(worlds[0]->slot, 1),
                 cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_THREAD, 0));
    assert_int_equal(atomic_load(&worlds[0]->slot->alarm), 0);
    return memory;
}

/* Without the alarm it would wait in the barrier, where nobody comes. */
static void check_next_calls(void)
{
    assert_int_equal(atomic_load(&worlds[0]->slot->alarm), 1);
    assert_int_equal(coh_barrier(worlds[0]), COH_PEER_LOST);
    assert_int_equal(coh_finalize(worlds[0]), COH_PEER_LOST);
    atomic_store(&lost.over, true);
    assert_int_equal(pthread_join(lost.thread, NULL), 0);
}

static void what_a_get_tells_the_next_call_knows(void **state)
{
    (void)state;
    uint64_t value;
    const void *word = lose_other();
    assert_int_equal(coh_get(worlds[0], &value, word, sizeof value, 1), COH_PEER_LOST);
    assert_says("rank 1 is lost: its thread ended without finalize; it was for ");
    check_next_calls();
}

static void what_a_query_tells_the_next_call_knows(void **state)
{
    (void)state;
    coh_peer_state found;
    (void)lose_other();
    assert_int_equal(coh_peer_query(worlds[0], 1, &found, NULL, 0), COH_OK);
    assert_int_equal(found, COH_PEER_GONE);
    check_next_calls();
}

/* ---- the last call of a team ---- */

enum { ROUNDS = 60 };

struct leaver {
    coh_world *world;
    int found; /* words that came behind the last call of a team */
    coh_status status;
};

/* Whether the other leader's record of the team's last call is in this rank's slot. */
static bool has_word(coh_world *world, int number, uint32_t epoch)
{
    const cohi_record *record =
        cohi_slot_record(world->slot, world->size, number, epoch, 1 - world->rank);
    return record->op == COHI_OP_DESTROY && record->epoch == epoch;
}

static void *make_teams_and_leave_them(void *arg)
{
    struct leaver *leaver = arg;
    coh_world *world = leaver->world;
    for (int i = 0; i < ROUNDS && leaver->status == COH_OK; i++) {
        coh_team *team = NULL;
        leaver->status = coh_team_split_strided(world->team, 0, 1, RANKS, &team);
        if (leaver->status == COH_OK)
            leaver->status = coh_team_destroy(team);
        uint32_t epoch = team ? team->epoch : 0;
        int number = team ? team->number : 0;
        if (leaver->status == COH_OK)
            leaver->status = coh_barrier(world); /* which completes what was sent before it */
        leaver->found += leaver->status == COH_OK && has_word(world, number, epoch);
    }
    return NULL;
}

static int open_slow_worlds(void **state)
{
    setenv("COHORT_SIM", "delay=200,hosts=2", 1);
    int failed = open_worlds(state);
    unsetenv("COHORT_SIM");
    return failed;
}

/* A leader that sleeps tells the next one what it called. In the last call of a team it must not: the
 * next one may have left, and the team's number be that of another, whose records the word would
 * destroy. */
static void a_team_ends_without_a_late_word(void **state)
{
    (void)state;
    pthread_t other;
    struct leaver leavers[RANKS] = {{.world = worlds[0]}, {.world = worlds[1]}};
    assert_int_equal(pthread_create(&other, NULL, make_teams_and_leave_them, &leavers[1]), 0);
    make_teams_and_leave_them(&leavers[0]);
    assert_int_equal(pthread_join(other, NULL), 0);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(leavers[rank].status, COH_OK);
        assert_int_equal(leavers[rank].found, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rank_that_could_not_tell_is_out_of_step, open_worlds,
                                        close_worlds),
        cmocka_unit_test_setup_teardown(a_heap_goes_when_all_contexts_are_complete, open_worlds,
                                        close_worlds),
        cmocka_unit_test_setup_teardown(a_lost_rank_without_a_number_is_an_error, open_worlds,
                                        close_worlds),
        cmocka_unit_test_setup(what_a_get_tells_the_next_call_knows, open_worlds),
        cmocka_unit_test_setup(what_a_query_tells_the_next_call_knows, open_worlds),
        cmocka_unit_test_setup_teardown(a_team_ends_without_a_late_word, open_slow_worlds,
                                        close_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
