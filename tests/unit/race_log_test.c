/* The log of puts under way: order, room, and what becomes of it when a rank dies with it. */
#include "core/onesided/race_log.h"
#include "unit.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAP = 16 << 20, OTHER = 3 };

static cohi_race_log *log_;
static cohi_race_view view;
static coh_world *world;
static char *heap;

static int set_up(void **state)
{
    (void)state;
    log_ = mmap(NULL, COHI_LOG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    heap = calloc(1, HEAP);
    world = aligned_alloc(_Alignof(coh_world), sizeof *world);
    memset(world, 0, sizeof *world);
    world->peers = calloc(1, sizeof *world->peers);
    world->peers[0].heap = heap;
    view = (cohi_race_view){.world = world};
    cohi_race_log_open(log_);
    return !cohi_race_log_take(log_, 0, 0);
}

static int tear_down(void **state)
{
    (void)state;
    cohi_race_log_give(log_);
    free(world->peers);
    free(world);
    free(heap);
    return munmap(log_, COHI_LOG_BYTES);
}

/* A put of `bytes` bytes of `value`. */
static uint64_t put(uint64_t offset, uint64_t bytes, int value, uint64_t epoch)
{
    char *payload = malloc(bytes);
    memset(payload, value, bytes);
    cohi_race_entry entry = {.spot = offset, .bytes = bytes, .source = OTHER, .epoch = epoch};
    uint64_t number = cohi_race_log_add(log_, &view, &entry, payload);
    free(payload);
    return number;
}

static void fences_are_kept(void **state)
{
    (void)state;
    put(0, 100, 1, 0);
    put(0, 100, 2, 1);
    uint64_t flag = put(200, 8, 3, 2);
    uint64_t after = put(300, 100, 4, 3);
    cohi_race_log_bring(log_, &view, cohi_race_log_find(log_, flag), true);
    assert_int_equal(heap[0], 2);
    assert_int_equal(heap[99], 2);
    assert_int_equal(heap[200], 3);
    assert_int_equal(heap[300], 0);
    assert_non_null(cohi_race_log_find(log_, after));
    assert_null(cohi_race_log_find(log_, flag));
}

static void a_signal_has_its_data_and_no_more(void **state)
{
    (void)state;
    put(0, 100, 1, 0);
    cohi_race_entry signal = {.spot = 400,
                              .bytes = 8,
                              .source = OTHER,
                              .kind = COHI_RACE_SIGNAL_ADD,
                              .value = 5,
                              .data = put(200, 100, 2, 0)};
    uint64_t number = cohi_race_log_add(log_, &view, &signal, NULL);
    cohi_race_log_bring(log_, &view, cohi_race_log_find(log_, number), false);
    assert_int_equal(heap[400], 5);
    assert_int_equal(heap[299], 2);
    assert_int_equal(heap[0], 0);
}

/* Unfenced: the last long put comes first, words keep their order. */
static void unfenced_orders(void **state)
{
    (void)state;
    put(0, 100, 1, 0);
    put(0, 100, 2, 0);
    put(200, 8, 1, 0);
    put(200, 8, 2, 0);
    assert_true(cohi_race_log_complete(log_, OTHER, 0, NULL));
    assert_true(cohi_race_log_bring_complete(log_, &view));
    assert_int_equal(heap[0], 1);
    assert_int_equal(heap[200], 2);
    assert_false(cohi_race_log_bring_complete(log_, &view));
}

/* What a barrier completes is not complete for who has not come to it; epochs wrap. */
static void barriers_complete_for_those_that_come(void **state)
{
    const uint32_t barrier = 2;
    (void)state;
    put(0, 100, 1, 0);
    cohi_race_log_complete(log_, OTHER, -1, &barrier);
    view.entered = UINT32_MAX;
    assert_false(cohi_race_log_bring_complete(log_, &view));
    view.entered = 1;
    assert_false(cohi_race_log_bring_complete(log_, &view));
    view.entered = 2;
    assert_true(cohi_race_log_bring_complete(log_, &view));
    assert_int_equal(heap[50], 1);
}

static void a_brought_range_stays_until_it_is_ordered(void **state)
{
    (void)state;
    uint64_t number = put(64, 100, 1, 0);
    cohi_race_log_bring(log_, &view, cohi_race_log_find(log_, number), false);
    assert_int_equal(heap[64], 1);
    assert_non_null(cohi_race_log_next(log_, NULL, 100, 1));
    assert_null(cohi_race_log_next(log_, NULL, 164, 10));
    assert_null(cohi_race_log_next(log_, NULL, 0, 64));
    assert_false(cohi_race_log_complete(log_, OTHER, 0, NULL));
    assert_null(cohi_race_log_next(log_, NULL, 100, 1));
}

/* Of a long put the start is held; with no room left the oldest are written. */
static void room(void **state)
{
    enum { LONG = 3 << 20, PIECES = 5 };
    (void)state;
    for (int i = 0; i < PIECES; i++) {
        put((uint64_t)i * LONG, LONG, i + 1, 0);
        assert_int_equal(heap[i * LONG], 0);
        assert_int_equal(heap[i * LONG + COHI_RACE_HELD_BYTES], i + 1);
    }
    assert_int_equal(heap[0], 1);
    for (uint64_t i = 0; i < 2 * COHI_RACE_ENTRIES; i++)
        put(15 << 20 | i * 8, 8, 7, 0);
    cohi_race_log_complete(log_, OTHER, 0, NULL);
    cohi_race_log_bring_complete(log_, &view);
    for (int i = 0; i < PIECES * LONG; i += 4096)
        assert_int_equal(heap[i], i / LONG + 1);
    for (int i = 0; i < 2 * COHI_RACE_ENTRIES; i++)
        assert_int_equal(heap[(15 << 20) + 8 * i], 7);
    assert_int_equal(log_->free_blocks, COHI_RACE_BLOCKS);
}

static void a_rank_dies_with_the_log(void **state)
{
    (void)state;
    put(0, 100, 1, 0);
    cohi_race_log_give(log_);
    pid_t child = fork();
    if (child == 0)
        _exit(cohi_race_log_take(log_, 1, 0) ? 0 : 1);
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_true(cohi_race_log_take(log_, 0, COHI_NS_PER_S));
    assert_true(cohi_race_log_is_empty(log_));
    assert_int_equal(log_->free_blocks, COHI_RACE_BLOCKS);
}

static void a_rank_stops_with_the_log(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(cohi_race_log_take(log_, 1, 50 * COHI_NS_PER_MS) || log_->holder != 0);
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child && status == 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fences_are_kept),
        TEST(a_signal_has_its_data_and_no_more),
        TEST(unfenced_orders),
        TEST(barriers_complete_for_those_that_come),
        TEST(a_brought_range_stays_until_it_is_ordered),
        TEST(room),
        TEST(a_rank_dies_with_the_log),
        TEST(a_rank_stops_with_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
