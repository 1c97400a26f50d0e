/* far_test.c - long messages between ranks that are not mapped: what is in flight is bounded by peer,
 * data goes from buffer to buffer, and an engine's thread moves it while the rank computes. */
#include "unit.h"

#include "base/clock.h"
#include "core/health/verdict.h"
#include "core/message/parcel.h"
#include "engine/sim/fabric.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, STOPPED = 1, LONG = 16 << 20, TAG = 5, HELD_MOST = 64 };

#define PATIENCE_NS (20 * COHI_NS_PER_S)

/* ---- the simulator behind a layer that counts, and holds back what is for a stopped rank ---- */

struct held {
    bool put;
    unsigned char head[COHI_HEAD_BYTES]; /* or the bytes of a put without an op */
    size_t head_bytes;
    int segment;
    uint64_t offset;
    const void *body;
    size_t bytes;
    cohi_op *op; /* NULL: cancelled, or none */
    bool cancelled;
};

static struct layer {
    pthread_mutex_t lock;
    cohi_engine engine;
    cohi_engine_lifecycle lifecycle;
    cohi_engine_channel channel;
    cohi_engine_rma rma;
    const cohi_engine *below;
    bool holds;
    int held_count, cancels;
    struct held held[HELD_MOST];
    uint64_t sent[RANKS], put[RANKS], got[RANKS]; /* bytes, by the rank that asked */
} layer = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* True when it is held back. */
static bool hold(int rank, const struct held *held)
{
    pthread_mutex_lock(&layer.lock);
    bool holds = layer.holds && rank == STOPPED && layer.held_count < HELD_MOST;
    if (holds)
        layer.held[layer.held_count++] = *held;
    pthread_mutex_unlock(&layer.lock);
    return holds;
}

static void count(uint64_t *counter, size_t bytes)
{
    __atomic_fetch_add(counter, bytes, __ATOMIC_RELAXED);
}

static coh_status layer_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                             const void *body, size_t body_bytes, cohi_op *op)
{
    struct held held = {.head_bytes = head_bytes, .body = body, .bytes = body_bytes, .op = op};
    memcpy(held.head, head, head_bytes);
    count(&layer.sent[endpoint->rank], body_bytes);
    if (body_bytes > 0 && hold(rank, &held))
        return COH_OK;
    return layer.below->channel->send(endpoint, rank, head, head_bytes, body, body_bytes, op);
}

static coh_status layer_put(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                            size_t bytes, cohi_op *op)
{
    struct held held = {.put = true,
                        .head_bytes = op ? 0 : bytes,
                        .segment = to.segment,
                        .offset = to.offset,
                        .body = source,
                        .bytes = bytes,
                        .op = op};
    if (to.context != COHI_CONTEXT_MESSAGES)
        return layer.below->rma->put(endpoint, to, source, bytes, op);
    if (!op)
        memcpy(held.head, source, bytes);
    count(&layer.put[endpoint->rank], to.segment == COHI_SEGMENT_HEAP ? bytes : 0);
    if (hold(to.rank, &held))
        return COH_OK;
    return layer.below->rma->put(endpoint, to, source, bytes, op);
}

static coh_status layer_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                            cohi_op *op)
{
    count(&layer.got[endpoint->rank], from.context == COHI_CONTEXT_MESSAGES ? bytes : 0);
    return layer.below->rma->get(endpoint, from, target, bytes, op);
}

static void layer_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    pthread_mutex_lock(&layer.lock);
    bool found = false;
    for (int i = 0; i < layer.held_count; i++) {
        if (layer.held[i].op != op || layer.held[i].cancelled)
            continue;
        found = layer.held[i].cancelled = true;
        layer.cancels++;
    }
    pthread_mutex_unlock(&layer.lock);
    if (!found) {
        layer.below->lifecycle->cancel(endpoint, op);
        return;
    }
    op->status = COH_TRANSPORT;
    op->rank = STOPPED;
    atomic_store_explicit(&op->done, 1, memory_order_release);
}

static void forward(cohi_endpoint *endpoint, const struct held *held)
{
    if (held->cancelled)
        return;
    if (!held->put) {
        (void)layer.below->channel->send(endpoint, STOPPED, held->head, held->head_bytes,
                                         held->body, held->bytes, held->op);
        return;
    }
    (void)layer.below->rma->fence(endpoint, COHI_CONTEXT_MESSAGES);
    (void)layer.below->rma->put(
        endpoint, (cohi_remote){COHI_CONTEXT_MESSAGES, STOPPED, held->segment, held->offset},
        held->op ? held->body : held->head, held->bytes, held->op);
}

/* The stopped rank goes on. */
static void release(const coh_world *world)
{
    pthread_mutex_lock(&layer.lock);
    layer.holds = false;
    pthread_mutex_unlock(&layer.lock);
    for (int i = 0; i < layer.held_count; i++)
        forward(world->endpoint, &layer.held[i]);
}

static int held_count(void)
{
    pthread_mutex_lock(&layer.lock);
    int held = layer.held_count;
    pthread_mutex_unlock(&layer.lock);
    return held;
}

/* ---- worlds over it ---- */

static coh_world *worlds[RANKS];
static coh_status outcomes[RANKS];
static unsigned char *sources[RANKS], *targets[RANKS];

/* The first call of each rank's thread makes its world its own. */
static void open_worlds(const cohi_engine *below, int ranks)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = below->name;
    setenv("COHORT_SIM", "seed=3,patience=1", 1);
    assert_int_equal(coh_init_threads(ranks, &options, worlds), COH_OK);
    layer.below = below;
    layer.engine = *below;
    layer.lifecycle = *below->lifecycle;
    layer.channel = *below->channel;
    layer.engine.lifecycle = &layer.lifecycle;
    layer.engine.channel = &layer.channel;
    layer.lifecycle.cancel = layer_cancel;
    layer.channel.send = layer_send;
    layer.channel.send_now = NULL; /* all go by the layer */
    if (below->rma) {
        layer.rma = *below->rma;
        layer.rma.put = layer_put;
        layer.rma.get = layer_get;
        layer.engine.rma = &layer.rma;
    }
    layer.holds = false;
    layer.held_count = layer.cancels = 0;
    memset(layer.sent, 0, sizeof layer.sent);
    memset(layer.put, 0, sizeof layer.put);
    memset(layer.got, 0, sizeof layer.got);
    for (int rank = 0; rank < ranks; rank++)
        worlds[rank]->engine = &layer.engine;
}

struct part {
    coh_status (*body)(int rank);
    int rank;
};

static void *run_part(void *arg)
{
    const struct part *part = arg;
    coh_status status = part->body(part->rank);
    coh_status left = coh_finalize(worlds[part->rank]);
    outcomes[part->rank] = status == COH_OK ? left : status;
    return NULL;
}

static void run_ranks(int ranks, coh_status (*body)(int rank))
{
    pthread_t threads[RANKS];
    struct part parts[RANKS];
    for (int rank = 0; rank < ranks; rank++) {
        parts[rank] = (struct part){body, rank};
        assert_int_equal(pthread_create(&threads[rank], NULL, run_part, &parts[rank]), 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(pthread_join(threads[rank], NULL), 0);
}

static void expect_all_well(int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(outcomes[rank], COH_OK);
}

static void fill(unsigned char *bytes, size_t count_of, unsigned seed)
{
    for (size_t i = 0; i < count_of; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static bool is_filled(const unsigned char *bytes, size_t count_of, unsigned seed)
{
    for (size_t i = 0; i < count_of; i++)
        if (bytes[i] != (unsigned char)(i * 7 + i / 251 + seed))
            return false;
    return true;
}

/* Memory for a message, in the heap or not. Collective. */
static coh_status make_buffers(int rank, bool heap)
{
    void *memory = NULL;
    coh_status status = heap ? coh_malloc(worlds[rank], 2 * LONG, &memory) : COH_OK;
    if (!heap)
        memory = malloc(2 * LONG);
    sources[rank] = memory;
    targets[rank] = sources[rank] + LONG;
    return status;
}

/* Tests until it is done; false when that takes too long. */
static bool comes_through(coh_request **request, coh_status *status)
{
    uint64_t end = cohi_now_ns() + PATIENCE_NS;
    int done = 0;
    while (!done && *status == COH_OK && cohi_now_ns() < end)
        *status = coh_request_test(request, &done, NULL);
    return done;
}

/* ---- one peer is stopped ---- */

static bool others_went_on;
static coh_status way_of_stopped;

/* Starts a send to the stopped rank, and returns when no more of it can be in flight. */
static coh_status fill_window(int rank, coh_request **request)
{
    coh_status status =
        coh_send_start(coh_team_world(worlds[rank]), STOPPED, TAG, sources[rank], LONG, request);
    int done = 0;
    uint64_t end = cohi_now_ns() + PATIENCE_NS;
    while (status == COH_OK && held_count() < COHI_PARCELS_LONG && cohi_now_ns() < end)
        status = coh_request_test(request, &done, NULL);
    return status;
}

static coh_status send_past_stopped(int rank)
{
    coh_team *team = coh_team_world(worlds[rank]);
    coh_request *held = NULL, *free_one = NULL;
    layer.holds = true;
    coh_status status = fill_window(rank, &held);
    if (status == COH_OK)
        status = coh_send_start(team, 2, TAG, sources[rank], LONG, &free_one);
    others_went_on = comes_through(&free_one, &status);
    release(worlds[rank]);
    coh_status later = free_one ? coh_request_wait(&free_one, NULL) : COH_OK;
    status = status == COH_OK ? later : status;
    way_of_stopped = coh_request_wait(&held, NULL);
    return status == COH_OK ? way_of_stopped : status;
}

static coh_status receive_one(int rank)
{
    coh_message got;
    coh_status status =
        coh_receive(coh_team_world(worlds[rank]), 0, TAG, targets[rank], LONG, &got);
    return status == COH_OK && !is_filled(targets[rank], LONG, 0) ? COH_TRANSPORT : status;
}

static coh_status one_is_stopped(int rank)
{
    bool heap = layer.below->rma != NULL;
    coh_status status = make_buffers(rank, heap);
    if (status != COH_OK)
        return status;
    fill(sources[rank], LONG, (unsigned)rank);
    status = rank == 0 ? send_past_stopped(rank) : receive_one(rank);
    if (heap && status == COH_OK)
        status = coh_free(worlds[rank], sources[rank]);
    if (!heap)
        free(sources[rank]);
    return status;
}

static void a_stopped_peer_holds_up_its_own_messages_alone(void **state)
{
    (void)state;
    const cohi_engine *engines[] = {&cohi_engine_sim_channel, &cohi_engine_sim};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        open_worlds(engines[i], RANKS);
        run_ranks(RANKS, one_is_stopped);
        assert_true(others_went_on);
        expect_all_well(RANKS);
    }
}

/* ---- giving up ---- */

static coh_status give_up_on_stopped(int rank)
{
    coh_request *held = NULL;
    layer.holds = true;
    coh_status status = fill_window(rank, &held);
    for (int i = 0; i < layer.held_count; i++) {
        const unsigned char *body = layer.held[i].body;
        if (body < sources[rank] || body >= sources[rank] + LONG)
            status = COH_TRANSPORT;
    }
    cohi_verdict_lost(worlds[rank], STOPPED, COHI_LOSS_LINK, 0);
    way_of_stopped = coh_request_wait(&held, NULL);
    return status;
}

static coh_status one_is_given_up(int rank)
{
    coh_status status = make_buffers(rank, false);
    if (rank == 0)
        status = give_up_on_stopped(rank);
    else if (rank == STOPPED)
        status = receive_one(rank); /* it ends when rank 0 has left */
    free(sources[rank]);
    return status;
}

static void a_send_that_is_given_up_takes_its_memory_back(void **state)
{
    (void)state;
    open_worlds(&cohi_engine_sim_channel, RANKS);
    run_ranks(RANKS, one_is_given_up);
    assert_int_equal(way_of_stopped, COH_PEER_LOST);
    assert_true(layer.held_count >= COHI_PARCELS_LONG);
    assert_int_equal(layer.cancels, layer.held_count);
}

/* ---- from buffer to buffer ---- */

enum { FROM_HEAP = 1, TO_HEAP = 2, COMBINATIONS = 4 };

static coh_status exchange_one(int rank, int combination, unsigned char *heap, unsigned char *own)
{
    coh_team *team = coh_team_world(worlds[rank]);
    unsigned char *source = combination & FROM_HEAP ? heap : own;
    unsigned char *target = combination & TO_HEAP ? heap : own;
    unsigned seed = (unsigned)combination + 1;
    if (rank == 0) {
        fill(source, LONG, seed);
        return coh_send(team, 1, TAG, source, LONG);
    }
    memset(target, 0, LONG);
    coh_status status = coh_receive(team, 0, TAG, target, LONG, NULL);
    return status == COH_OK && !is_filled(target, LONG, seed) ? COH_TRANSPORT : status;
}

static struct traffic {
    uint64_t sent, put, got;
} traffic[COMBINATIONS];

static coh_status all_combinations(int rank)
{
    void *heap;
    unsigned char *own = malloc(LONG);
    coh_status status = coh_malloc(worlds[rank], LONG, &heap);
    for (int i = 0; i < COMBINATIONS && status == COH_OK; i++) {
        struct traffic before = {layer.sent[0], layer.put[0], layer.got[1]};
        status = coh_barrier(worlds[rank]);
        if (status == COH_OK)
            status = exchange_one(rank, i, heap, own);
        if (status == COH_OK)
            status = coh_barrier(worlds[rank]);
        if (rank == 0)
            traffic[i] = (struct traffic){layer.sent[0] - before.sent, layer.put[0] - before.put,
                                          layer.got[1] - before.got};
    }
    free(own);
    return status == COH_OK ? coh_free(worlds[rank], heap) : status;
}

static void symmetric_buffers_need_no_frames(void **state)
{
    (void)state;
    const struct traffic expected[COMBINATIONS] = {
        [0] = {.sent = LONG},
        [FROM_HEAP] = {.got = LONG},
        [TO_HEAP] = {.put = LONG},
        [FROM_HEAP | TO_HEAP] = {.put = LONG},
    };
    open_worlds(&cohi_engine_sim, 2);
    run_ranks(2, all_combinations);
    expect_all_well(2);
    for (int i = 0; i < COMBINATIONS; i++) {
        assert_int_equal(traffic[i].sent, expected[i].sent);
        assert_int_equal(traffic[i].put, expected[i].put);
        assert_int_equal(traffic[i].got, expected[i].got);
    }
}

/* ---- from an engine's thread ---- */

static atomic_int received, finished, helpers;
static bool came_while_computing;

/* As an engine's thread would: without being asked by a rank, until the endpoints close. */
static void *attend(void *arg)
{
    (void)arg;
    while (atomic_load(&finished) < 2) {
        cohi_mailbox_attend(worlds[0]);
        cohi_mailbox_attend(worlds[1]);
        usleep(50);
    }
    atomic_fetch_sub(&helpers, 1);
    return NULL;
}

static coh_status await_helpers(coh_status status)
{
    atomic_fetch_add(&finished, 1);
    while (atomic_load(&helpers) > 0)
        usleep(50);
    return status;
}

static void run_attended(int helper_count, coh_status (*body)(int rank))
{
    pthread_t threads[2];
    atomic_store(&received, 0);
    atomic_store(&finished, 0);
    atomic_store(&helpers, helper_count);
    for (int i = 0; i < helper_count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, attend, NULL), 0);
    run_ranks(2, body);
    for (int i = 0; i < helper_count; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Calls nothing until the other has the message. */
static coh_status compute_meanwhile(int rank)
{
    coh_request *request = NULL;
    coh_status status =
        coh_send_start(coh_team_world(worlds[rank]), 1, TAG, sources[rank], LONG, &request);
    uint64_t end = cohi_now_ns() + PATIENCE_NS;
    while (!atomic_load(&received) && cohi_now_ns() < end)
        usleep(100);
    came_while_computing = atomic_load(&received);
    coh_status sent = coh_request_wait(&request, NULL);
    return status == COH_OK ? sent : status;
}

static coh_status one_computes(int rank)
{
    coh_status status = make_buffers(rank, false);
    fill(sources[rank], LONG, (unsigned)rank);
    if (rank == 0) {
        status = compute_meanwhile(rank);
    } else if (status == COH_OK) {
        status = receive_one(rank);
        atomic_store(&received, 1);
    }
    free(sources[rank]);
    return await_helpers(status);
}

static void an_engines_thread_moves_messages(void **state)
{
    (void)state;
    open_worlds(&cohi_engine_sim_channel, 2);
    run_attended(1, one_computes);
    assert_true(came_while_computing);
    expect_all_well(2);
}

/* Both send before they receive, messages of every sort. */
static coh_status exchange_all_sorts(int rank)
{
    enum { ROUNDS = 40, AT_ONCE = 4 };
    static const size_t lengths[] = {0, 8, 80, 81, 3000, 8192, 8193, 65536, 65537, 300000};
    coh_team *team = coh_team_world(worlds[rank]);
    coh_status status = make_buffers(rank, true);
    for (int round = 0; round < ROUNDS && status == COH_OK; round++) {
        size_t bytes = lengths[round % (int)(sizeof lengths / sizeof *lengths)];
        coh_request *requests[2 * AT_ONCE] = {NULL};
        fill(sources[rank], AT_ONCE * bytes, (unsigned)(round + rank));
        for (int i = 0; i < AT_ONCE && status == COH_OK; i++)
            status = coh_send_start(team, 1 - rank, i, sources[rank] + (size_t)i * bytes, bytes,
                                    &requests[i]);
        for (int i = 0; i < AT_ONCE && status == COH_OK; i++)
            status = coh_receive_start(team, 1 - rank, i, targets[rank] + (size_t)i * bytes, bytes,
                                       &requests[AT_ONCE + i]);
        coh_status all = coh_request_wait_all(requests, 2 * AT_ONCE, NULL);
        status = status == COH_OK ? all : status;
        if (status == COH_OK
            && !is_filled(targets[rank], AT_ONCE * bytes, (unsigned)(round + 1 - rank)))
            status = COH_TRANSPORT;
    }
    if (status == COH_OK)
        status = coh_free(worlds[rank], sources[rank]);
    return await_helpers(status);
}

static void engines_threads_and_calls_at_once(void **state)
{
    (void)state;
    open_worlds(&cohi_engine_sim, 2);
    run_attended(2, exchange_all_sorts);
    expect_all_well(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_peer_holds_up_its_own_messages_alone),
        cmocka_unit_test(a_send_that_is_given_up_takes_its_memory_back),
        cmocka_unit_test(symmetric_buffers_need_no_frames),
        cmocka_unit_test(an_engines_thread_moves_messages),
        cmocka_unit_test(engines_threads_and_calls_at_once),
    };
    return cmocka_run_group_tests_name("far", tests, NULL, NULL);
}
