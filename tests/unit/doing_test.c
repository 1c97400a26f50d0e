/* doing_test.c - what a wait shows of itself, as `cohort ps` prints it. */
#include "core/world/doing.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* A world of which a wait needs the slot alone. */
static coh_world *make_world(void)
{
    coh_world *world = aligned_alloc(COHI_CACHE_LINE, sizeof *world);
    assert_non_null(world);
    memset(world, 0, sizeof *world);
    world->slot = aligned_alloc(COHI_CACHE_LINE, sizeof *world->slot);
    assert_non_null(world->slot);
    memset(world->slot, 0, sizeof *world->slot);
    return world;
}

static void free_world(coh_world *world)
{
    free(world->slot);
    free(world);
}

static const char *listed(const coh_world *world)
{
    static char text[256];
    cohi_doing_list(world->slot, text, sizeof text);
    return text;
}

static void waits_in_words(void **state)
{
    coh_world *world = make_world();
    cohi_doing *shown = NULL, *other = NULL;
    cohi_awaited word = {.op = COHI_OP_WAIT, .tag = -1, .rank = 2};
    cohi_awaited message = {.op = COHI_OP_RECEIVE, .tag = 7, .rank = -1};
    (void)state;
    assert_string_equal(listed(world), "");
    word.word = (cohi_awaited_word){true, false, COH_U64, COH_GE, 3, 2, 128};
    cohi_doing_show(world, &word, 1, &shown);
    assert_string_equal(listed(world), "rank 2: u64 >= 3, is 2, offset 128");
    cohi_spans_add(&message.ranks, 0);
    cohi_spans_add(&message.ranks, 3);
    cohi_doing_show(world, &message, 1, &other);
    assert_string_equal(listed(world), "rank 2: u64 >= 3, is 2, offset 128; any of 0 and 3, tag 7");
    cohi_doing_hide(&shown);
    assert_string_equal(listed(world), "any of 0 and 3, tag 7");
    cohi_doing_hide(&other);
    free_world(world);
}

/* Sets of ranks: exact as long as the spans suffice, whatever the order; a superset beyond that. */
static void sets_of_ranks(void **state)
{
    enum { SIZE = COHI_WORLD_MAX };
    static const int order[] = {7, 100000, 5, 6, 3, 100001, SIZE - 1, 4, 0};
    cohi_spans spans = {0};
    (void)state;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        cohi_spans_add(&spans, order[i]);
    for (int rank = 0; rank < SIZE; rank++) {
        bool wanted = rank == 0 || (rank >= 3 && rank <= 7) || rank == 100000 || rank == 100001
                      || rank == SIZE - 1;
        assert_int_equal(cohi_spans_have(&spans, rank), wanted);
    }
    spans = (cohi_spans){0};
    for (int rank = 0; rank < SIZE; rank++)
        cohi_spans_add(&spans, rank);
    assert_int_equal(spans.span[0].end, SIZE);
    assert_int_equal(spans.span[1].end, 0);
    spans = (cohi_spans){0};
    for (int rank = 0; rank < 1000; rank += 3)
        cohi_spans_add(&spans, rank);
    for (int rank = 0; rank < 1000; rank += 3)
        assert_true(cohi_spans_have(&spans, rank));
    assert_false(cohi_spans_have(&spans, 1));
    assert_false(cohi_spans_have(&spans, 1000));
}

/* A word that changes without being what is waited for leaves the wait the same. */
static void values_that_change(void **state)
{
    coh_world *world = make_world();
    cohi_doing *shown = NULL;
    cohi_awaited awaited = {.op = COHI_OP_WAIT, .tag = -1, .rank = 0};
    (void)state;
    awaited.word = (cohi_awaited_word){true, true, COH_I32, COH_NE, (uint32_t)-5, (uint32_t)-5, 8};
    cohi_doing_show(world, &awaited, 1, &shown);
    assert_string_equal(listed(world), "rank 0: i32 != -5, is -5, offset 8, among others");
    unsigned turn = atomic_load(&shown->turn);
    awaited.word.found = 6;
    cohi_doing_show(world, &awaited, 2, &shown);
    assert_string_equal(listed(world), "rank 0: i32 != -5, is 6, offset 8, among others");
    assert_int_equal(atomic_load(&shown->turn), turn);
    awaited.word.spot = 16;
    cohi_doing_show(world, &awaited, 3, &shown);
    assert_int_not_equal(atomic_load(&shown->turn), turn);
    cohi_doing_hide(&shown);
    free_world(world);
}

static void sentences(void **state)
{
    char text[128];
    cohi_awaited_word word = {true, false, COH_I64, COH_LT, (uint64_t)-1, 0, 64};
    (void)state;
    cohi_doing_describe_word(&word, text, sizeof text);
    assert_string_equal(text, "i64 < -1 at offset 64, which is 0");
    word.dtype = COH_U64;
    cohi_doing_describe_word(&word, text, sizeof text);
    assert_string_equal(text, "u64 < 18446744073709551615 at offset 64, which is 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_ranks),
        cmocka_unit_test(waits_in_words),
        cmocka_unit_test(values_that_change),
        cmocka_unit_test(sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
