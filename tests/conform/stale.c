/* Handles of a world that is finalized: every call that takes one says so, and none crashes. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

/* What the program has kept. */
struct kept {
    coh_world *world;
    coh_team *all, *host, *team, *destroyed;
    coh_context *context, *closed;
    coh_request *receive, *send, *started;
    uint64_t *words;
    coh_array array;
    coh_view view;
};

#define GONE(call) CHECK_STATUS(call, COH_FINALIZED)

static uint64_t buffer[2][64];
static const size_t counts[TEST_RANKS_MAX];

static bool keep_memory(test_rank *self, struct kept *kept)
{
    coh_world *world = self->world;
    if (!test_has_memory(self->engine))
        return true;
    return CHECK_OK(coh_calloc(world, 8, sizeof *kept->words, (void **)&kept->words))
           && CHECK_OK(coh_array_malloc(world, COH_U64, 8, &kept->array, NULL))
           && CHECK_OK(coh_view_of(world, kept->words, 8, 0, &kept->view));
}

static bool keep_handles(test_rank *self, struct kept *kept)
{
    coh_world *world = kept->world = self->world;
    kept->all = coh_team_world(world);
    kept->host = coh_team_host(world);
    return keep_memory(self, kept)
           && CHECK_OK(coh_team_split_strided(kept->all, 0, 1, self->size, &kept->team))
           && CHECK_OK(coh_team_split_strided(kept->all, 0, 1, self->size, &kept->destroyed))
           && CHECK_OK(coh_team_destroy(kept->destroyed))
           && CHECK_OK(coh_context_create(world, &kept->context))
           && CHECK_OK(coh_context_create(world, &kept->closed))
           && CHECK_OK(coh_context_destroy(kept->closed));
}

/* Nobody sends what is received; what is sent is not received; the barrier is not waited for. */
static bool keep_requests(test_rank *self, struct kept *kept)
{
    int right = (self->rank + 1) % self->size;
    return CHECK_OK(coh_receive_start(kept->team, COH_ANY_RANK, 7, buffer, 8, &kept->receive))
           && CHECK_OK(coh_send_start(kept->team, right, 8, buffer, 8, &kept->send))
           && CHECK_OK(coh_barrier_start(kept->team, &kept->started));
}

/* ---- the calls ---- */

static void ask_world(struct kept *kept)
{
    coh_world *world = kept->world;
    coh_heap_stats stats = {.size = sizeof stats};
    coh_peer_state state;
    void *memory = NULL;
    CHECK(coh_rank(world) == -1 && coh_size(world) == -1);
    CHECK(coh_local_rank(world) == -1 && coh_local_size(world) == -1);
    CHECK(coh_engine(world) == NULL);
    CHECK(coh_team_world(world) == NULL && coh_team_host(world) == NULL);
    GONE(coh_malloc(world, 8, &memory));
    GONE(coh_calloc(world, 8, 8, &memory));
    GONE(coh_align(world, 64, 8, &memory));
    GONE(coh_realloc(world, kept->words, 8, &memory));
    GONE(coh_free(world, kept->words));
    GONE(coh_heap_query(world, &stats));
    GONE(coh_ptr(world, kept->words, 0, &memory));
    GONE(coh_fence(world));
    GONE(coh_quiet(world));
    GONE(coh_sync(world));
    GONE(coh_barrier(world));
    GONE(coh_peer_query(world, 0, &state, NULL, 0));
    GONE(coh_global_exit(world, 3));
    GONE(coh_register(world, buffer, sizeof buffer));
    GONE(coh_unregister(world, buffer));
    GONE(coh_context_create(world, &kept->context));
    CHECK_OK(coh_finalize(world));
}

static void transfer(struct kept *kept)
{
    coh_world *world = kept->world;
    uint64_t *words = kept->words, value = 1;
    coh_array array;
    GONE(coh_put(world, words, &value, 8, 0));
    GONE(coh_get(world, &value, words, 8, 0));
    GONE(coh_put_nbi(world, words, &value, 8, 0));
    GONE(coh_get_nbi(world, &value, words, 8, 0));
    GONE(coh_put_strided(world, words, 8, &value, 8, 8, 1, 0));
    GONE(coh_get_strided(world, &value, 8, words, 8, 8, 1, 0));
    GONE(coh_view_of(world, words, 8, 0, &kept->view));
    GONE(coh_put_view(world, kept->view, &value, 8));
    GONE(coh_get_view(world, &value, 8, kept->view));
    GONE(coh_array_malloc(world, COH_U64, 8, &array, NULL));
    GONE(coh_array_free(world, kept->array));
    GONE(coh_put_array(world, kept->array, 0, COH_U64, buffer, 8));
    GONE(coh_get_array(world, COH_U64, buffer, 8, kept->array, 0));
}

static void use_words(struct kept *kept)
{
    coh_world *world = kept->world;
    uint64_t *words = kept->words, one = 1, got = 0;
    coh_watch watch = COH_WATCH_INIT;
    size_t index = 0, found = 0;
    int is = 0;
    watch.words = words;
    watch.count = 1;
    watch.values = &one;
    GONE(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, words, &one, 0));
    GONE(coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, words, &one, &got, 0));
    GONE(coh_atomic_compare_swap(world, COH_U64, words, &one, &one, &got, 0));
    GONE(coh_atomic_fetch_nbi(world, COH_ATOMIC_ADD, COH_U64, words, &one, &got, 0));
    GONE(coh_atomic_compare_swap_nbi(world, COH_U64, words, &one, &one, &got, 0));
    GONE(coh_put_signal(world, words, &one, 8, words + 1, 1, COH_SIGNAL_SET, 0));
    GONE(coh_put_signal_nbi(world, words, &one, 8, words + 1, 1, COH_SIGNAL_SET, 0));
    GONE(coh_signal(world, words, 1, COH_SIGNAL_SET, 0));
    GONE(coh_signal_fetch(world, words, &got));
    GONE(coh_wait_until(world, COH_U64, words, COH_EQ, &one, COH_ANY_RANK));
    GONE(coh_wait_any(world, &watch, &index));
    GONE(coh_wait_all(world, &watch));
    GONE(coh_wait_some(world, &watch, &index, &found));
    GONE(coh_test_any(world, &watch, &index));
    GONE(coh_test_all(world, &watch, &is));
    GONE(coh_test_some(world, &watch, &index, &found));
    GONE(coh_lock_set(world, words));
    GONE(coh_lock_test(world, words, &is));
    GONE(coh_lock_clear(world, words));
}

static void use_context(coh_context *context, uint64_t *words)
{
    uint64_t one = 1, got = 0;
    GONE(coh_context_put(context, words, &one, 8, 0));
    GONE(coh_context_get(context, &got, words, 8, 0));
    GONE(coh_context_put_nbi(context, words, &one, 8, 0));
    GONE(coh_context_get_nbi(context, &got, words, 8, 0));
    GONE(coh_context_atomic(context, COH_ATOMIC_ADD, COH_U64, words, &one, 0));
    GONE(coh_context_atomic_fetch(context, COH_ATOMIC_ADD, COH_U64, words, &one, &got, 0));
    GONE(coh_context_atomic_compare_swap(context, COH_U64, words, &one, &one, &got, 0));
    GONE(coh_context_put_signal(context, words, &one, 8, words + 1, 1, COH_SIGNAL_SET, 0));
    GONE(coh_context_fence(context));
    GONE(coh_context_quiet(context));
    GONE(coh_context_destroy(context));
}

static void use_team(coh_team *team)
{
    coh_team *made = NULL, *other = NULL;
    coh_request *request = NULL;
    int first = 0, there = 0;
    CHECK(coh_team_index(team) == -1 && coh_team_size(team) == -1);
    CHECK(coh_team_rank(team, 0) == -1 && coh_team_translate(team, 0, team) == -1);
    GONE(coh_team_split_strided(team, 0, 1, 1, &made));
    GONE(coh_team_split_color(team, 0, 0, &made));
    GONE(coh_team_split_2d(team, 1, &made, &other));
    GONE(coh_team_from_list(team, &first, 1, &made));
    GONE(coh_team_sync(team));
    GONE(coh_team_barrier(team));
    GONE(coh_team_destroy(team));
    GONE(coh_send(team, 0, 1, buffer, 8));
    GONE(coh_send(team, 0, 1, buffer, sizeof buffer));
    GONE(coh_receive(team, 0, 1, buffer, 8, NULL));
    GONE(coh_receive(team, COH_ANY_RANK, COH_ANY_TAG, buffer, 8, NULL));
    GONE(coh_probe(team, 0, 1, &there, NULL));
    GONE(coh_send_start(team, 0, 1, buffer, 8, &request));
    GONE(coh_receive_start(team, 0, 1, buffer, 8, &request));
    CHECK(made == NULL && other == NULL && request == NULL);
}

static void call_collectives(coh_team *team)
{
    void *from = buffer[0], *to = buffer[1];
    coh_parts parts = {counts, NULL};
    const char *name;
    GONE(coh_all_reduce(team, COH_U64, COH_SUM, from, to, 1));
    GONE(coh_reduce(team, COH_U64, COH_SUM, from, to, 1, 0));
    GONE(coh_reduce_scatter(team, COH_U64, COH_SUM, from, to, 1));
    GONE(coh_reduce_scatter_v(team, COH_U64, COH_SUM, from, to, counts));
    GONE(coh_all_gather(team, COH_U64, from, to, 1));
    GONE(coh_all_gather_v(team, COH_U64, from, to, counts));
    GONE(coh_gather(team, COH_U64, from, to, 1, 0));
    GONE(coh_scatter(team, COH_U64, from, to, 1, 0));
    GONE(coh_broadcast(team, COH_U64, from, to, 1, 0));
    GONE(coh_all_to_all(team, COH_U64, from, to, 1));
    GONE(coh_all_to_all_v(team, COH_U64, from, &parts, to, &parts));
    GONE(coh_all_to_all_strided(team, COH_U64, from, 1, to, 1, 1));
    GONE(coh_scan(team, COH_U64, COH_SUM, from, to, 1));
    GONE(coh_scan_exclusive(team, COH_U64, COH_SUM, from, to, 1));
    coh_collective described = COH_COLLECTIVE_INIT;
    described.team = team;
    GONE(coh_collective_run(&described));
    described.kind = COH_COLLECTIVE_ALL_REDUCE;
    GONE(coh_collective_run(&described));
    GONE(coh_collective_choice(&described, &name, NULL));
}

static void start_collectives(coh_team *team)
{
    void *from = buffer[0], *to = buffer[1];
    coh_parts parts = {counts, NULL};
    coh_request *none = NULL;
    GONE(coh_all_reduce_start(team, COH_U64, COH_SUM, from, to, 1, &none));
    GONE(coh_reduce_start(team, COH_U64, COH_SUM, from, to, 1, 0, &none));
    GONE(coh_reduce_scatter_start(team, COH_U64, COH_SUM, from, to, 1, &none));
    GONE(coh_reduce_scatter_v_start(team, COH_U64, COH_SUM, from, to, counts, &none));
    GONE(coh_all_gather_start(team, COH_U64, from, to, 1, &none));
    GONE(coh_all_gather_v_start(team, COH_U64, from, to, counts, &none));
    GONE(coh_gather_start(team, COH_U64, from, to, 1, 0, &none));
    GONE(coh_scatter_start(team, COH_U64, from, to, 1, 0, &none));
    GONE(coh_broadcast_start(team, COH_U64, from, to, 1, 0, &none));
    GONE(coh_all_to_all_start(team, COH_U64, from, to, 1, &none));
    GONE(coh_all_to_all_v_start(team, COH_U64, from, &parts, to, &parts, &none));
    GONE(coh_all_to_all_strided_start(team, COH_U64, from, 1, to, 1, 1, &none));
    GONE(coh_scan_start(team, COH_U64, COH_SUM, from, to, 1, &none));
    GONE(coh_scan_exclusive_start(team, COH_U64, COH_SUM, from, to, 1, &none));
    GONE(coh_barrier_start(team, &none));
    coh_collective described = COH_COLLECTIVE_INIT;
    described.team = team;
    GONE(coh_collective_start(&described, &none));
    described.kind = COH_COLLECTIVE_BROADCAST;
    GONE(coh_collective_start(&described, &none));
    CHECK(none == NULL);
}

static void wait_for_requests(struct kept *kept)
{
    coh_request *requests[] = {NULL, kept->receive, kept->send, kept->started};
    size_t index = 0;
    for (size_t i = 1; i < 4; i++) {
        int done = 0;
        GONE(coh_request_wait(&requests[i], NULL));
        GONE(coh_request_test(&requests[i], &done, NULL));
        CHECK(!done && requests[i]);
    }
    GONE(coh_request_wait_any(requests, 4, &index, NULL));
}

static void use_all(struct kept *kept)
{
    coh_team *const teams[] = {kept->all, kept->host, kept->team, kept->destroyed};
    ask_world(kept);
    transfer(kept);
    use_words(kept);
    use_context(kept->context, kept->words);
    use_context(kept->closed, kept->words);
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
        use_team(teams[i]);
        call_collectives(teams[i]);
        start_collectives(teams[i]);
    }
    wait_for_requests(kept);
}

/* Collectives before that, so that the fast path of the second one would be taken. */
static void handles_after_finalize(test_rank *self)
{
    struct kept kept = {.world = NULL};
    uint64_t one = 1, sum = 0;
    if (!keep_handles(self, &kept))
        return;
    for (int i = 0; i < 2; i++)
        CHECK_OK(coh_all_reduce(kept.team, COH_U64, COH_SUM, &one, &sum, 1));
    CHECK_EQ(sum, self->size);
    if (!keep_requests(self, &kept) || !CHECK_OK(coh_finalize(self->world)))
        return;
    self->world = NULL;
    use_all(&kept);
}

/* ---- many of them ---- */

static bool make_and_finalize(test_rank *self, coh_context **context, coh_team **team)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *world;
    options.engine = self->engine;
    options.heap = 1 << 20;
    if (!CHECK_OK(coh_init_threads(1, &options, &world)))
        return false;
    *team = coh_team_world(world);
    return CHECK_OK(coh_context_create(world, context)) && CHECK_OK(coh_finalize(world));
}

/* More than are remembered: the oldest are freed, the last ones are known. */
static void more_than_are_remembered(test_rank *self)
{
    enum { WORLDS = 4096 + 100, LAST = 50 };
    coh_context *contexts[LAST];
    coh_team *teams[LAST];
    for (int i = 0; i < WORLDS; i++)
        if (!make_and_finalize(self, &contexts[i % LAST], &teams[i % LAST]))
            return;
    for (int i = 0; i < LAST; i++) {
        GONE(coh_context_quiet(contexts[i]));
        GONE(coh_team_sync(teams[i]));
    }
}

const test_case conform_stale[] = {
    CASE(handles_after_finalize, "S46", ON_ALL, ANY_SIZE),
    CASE(more_than_are_remembered, "S46", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(stale);
