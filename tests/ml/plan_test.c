/* Plans: offsets of random and of transformer-like graphs, against what must hold for any plan. */
#include "ml.h"

#include <stdio.h>

enum { NODES = 120, STEPS = 60 };

static coh_plan_value value(const char *name, uint64_t bytes, int first, int last)
{
    coh_plan_value made = COH_PLAN_VALUE_INIT;
    made.name = name;
    made.bytes = bytes;
    made.first = first;
    made.last = last;
    return made;
}

static int add(coh_plan *plan, coh_plan_value made)
{
    int node = -7;
    assert_ok(coh_plan_add(plan, &made, &node));
    return node;
}

static uint64_t offset_of(const coh_plan *plan, int node)
{
    uint64_t offset;
    assert_ok(coh_plan_slot(plan, node, &offset, NULL));
    return offset;
}

static coh_plan_info solve(coh_plan *plan)
{
    coh_plan_info info = {.size = sizeof info};
    assert_ok(coh_plan_solve(plan));
    assert_ok(coh_plan_query(plan, &info));
    return info;
}

static void lives_that_do_not_meet_share(void **state)
{
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int a = add(plan, value("a", 1000, 0, 1));
    int b = add(plan, value("b", 1000, 1, 2)); /* meets a at step 1 */
    int c = add(plan, value("c", 1000, 2, 3)); /* meets b, not a */
    coh_plan_info info = solve(plan);
    assert_true(offset_of(plan, a) != offset_of(plan, b));
    assert_int_equal(offset_of(plan, a), offset_of(plan, c));
    assert_int_equal(info.total, 2048);
    assert_int_equal(info.least, 2048);
    assert_int_equal(info.apart, 3072);
    assert_int_equal(info.steps, 4);
    assert_int_equal(info.slots, 3);
    coh_plan_destroy(plan);
}

static void in_place_where_the_other_dies(void **state)
{
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int x = add(plan, value("x", 4096, 0, 1));
    coh_plan_value y = value("y", 4096, 1, 3);
    y.in_place = x;
    int in_place = add(plan, y);
    coh_plan_value z = value("z", 4096, 2, 4); /* y lives on: not in place */
    z.in_place = in_place;
    int apart = add(plan, z);
    coh_plan_value w = value("w", 8192, 5, 5); /* larger than z: not in place */
    w.in_place = apart;
    add(plan, w);
    coh_plan_info info = solve(plan);
    assert_int_equal(offset_of(plan, x), offset_of(plan, in_place));
    assert_true(offset_of(plan, apart) != offset_of(plan, in_place));
    assert_int_equal(info.least, 8192);
    assert_int_equal(info.total, 8192);
    coh_plan_destroy(plan);
}

/* The op that would overwrite x reads it as a reshape too. */
static void not_in_place_of_what_is_read_by_another_name(void **state)
{
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int x = add(plan, value("x", 4096, 0, 2));
    coh_plan_value flat = value("flat", 4096, 1, 2);
    flat.alias_of = x;
    add(plan, flat);
    coh_plan_value y = value("y", 4096, 2, 3);
    y.in_place = x;
    int node = add(plan, y);
    solve(plan);
    assert_true(offset_of(plan, x) != offset_of(plan, node));
    coh_plan_destroy(plan);
}

static void an_alias_lies_in_its_value_and_keeps_it(void **state)
{
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int x = add(plan, value("x", 4096, 0, 1));
    coh_plan_value slice = value("slice", 1024, 1, 5);
    slice.alias_of = x;
    slice.alias_at = 2048;
    int node = add(plan, slice);
    coh_plan_value inner = value("inner", 512, 2, 6);
    inner.alias_of = node;
    inner.alias_at = 512;
    int inner_node = add(plan, inner);
    int late = add(plan, value("late", 4096, 6, 6)); /* while inner lives, so does x */
    coh_plan_info info = solve(plan);
    assert_int_equal(offset_of(plan, node), offset_of(plan, x) + 2048);
    assert_int_equal(offset_of(plan, inner_node), offset_of(plan, x) + 2560);
    assert_true(offset_of(plan, late) != offset_of(plan, x));
    assert_int_equal(info.total, 8192);
    coh_plan_destroy(plan);
}

static void a_node_without_a_slot_says_why(void **state)
{
    uint64_t offset = 77;
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    coh_plan_value weight = value("weight", 4096, 0, 9);
    weight.outside = 1;
    int w = add(plan, weight);
    int empty = add(plan, value("empty", 0, 0, 1));
    coh_plan_value part = value("part", 64, 1, 2);
    part.alias_of = w;
    int p = add(plan, part);
    int x = add(plan, value("x", 64, 0, 1));
    assert_int_equal(coh_plan_has_slot(plan, x), 0); /* not yet */
    assert_fails(coh_plan_slot(plan, x, &offset, NULL), COH_INVALID_ARGUMENT, "not solved");
    solve(plan);
    assert_int_equal(coh_plan_has_slot(plan, x), 1);
    assert_int_equal(coh_plan_has_slot(plan, w), 0);
    assert_int_equal(coh_plan_has_slot(plan, -1), 0);
    assert_int_equal(coh_plan_has_slot(plan, 4), 0);
    assert_fails(coh_plan_slot(plan, w, &offset, NULL), COH_INVALID_ARGUMENT,
                 "node 0 ('weight') has no slot: its bytes are outside");
    assert_fails(coh_plan_slot(plan, empty, &offset, NULL), COH_INVALID_ARGUMENT, "no bytes");
    assert_fails(coh_plan_slot(plan, p, &offset, NULL), COH_INVALID_ARGUMENT, "lies in a value");
    assert_fails(coh_plan_slot(plan, 4, &offset, NULL), COH_INVALID_ARGUMENT, "no node 4");
    assert_int_equal(offset, 77);
    coh_plan_destroy(plan);
}

static void adding_is_checked(void **state)
{
    int node = -7;
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int x = add(plan, value("x", 100, 3, 4));
    coh_plan_value bad = value("bad", 100, 2, 1);
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "'bad'");
    bad = value("bad", 100, -1, 1);
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "-1");
    bad = value("bad", UINT64_MAX, 0, 1);
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "bytes");
    bad = value("bad", 100, 3, 4);
    bad.alignment = 3;
    assert_fails(coh_plan_add(plan, &bad, &node), COH_BAD_ALIGNMENT, "3");
    bad.alignment = 0;
    bad.in_place = 1;
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "in place of node 1");
    bad.in_place = COH_NO_NODE;
    bad.alias_of = x;
    bad.alias_at = UINT64_MAX;
    assert_fails(coh_plan_add(plan, &bad, &node), COH_OUT_OF_BOUNDS, "leaves 'x' of 100");
    bad.alias_at = 1;
    assert_fails(coh_plan_add(plan, &bad, &node), COH_OUT_OF_BOUNDS, "leaves 'x' of 100");
    bad.alias_at = 0;
    bad.first = 2;
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "before it");
    assert_int_equal(node, -7);
    solve(plan);
    bad = value("late", 1, 0, 0);
    assert_fails(coh_plan_add(plan, &bad, &node), COH_INVALID_ARGUMENT, "solved");
    assert_fails(coh_plan_solve(plan), COH_INVALID_ARGUMENT, "solved already");
    coh_plan_destroy(plan);
}

static void a_plan_of_nothing_is_empty(void **state)
{
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    coh_plan_info info = solve(plan);
    assert_int_equal(info.total, 0);
    assert_int_equal(info.least, 0);
    coh_plan_destroy(plan);
}

static void printing_is_cut_to_its_room(void **state)
{
    char text[2000], small[40];
    size_t needed, again;
    coh_plan *plan;
    (void)state;
    assert_ok(coh_plan_create(&plan));
    int x = add(plan, value("x", 100, 0, 1));
    coh_plan_value y = value("y", 100, 1, 2);
    y.in_place = x;
    add(plan, y);
    coh_plan_value weight = value("weight", 4096, 0, 9);
    weight.outside = 1;
    add(plan, weight);
    assert_fails(coh_plan_print(plan, text, sizeof text, NULL), COH_INVALID_ARGUMENT, "not solved");
    solve(plan);
    assert_ok(coh_plan_print(plan, NULL, 0, &needed));
    assert_ok(coh_plan_print(plan, text, sizeof text, &again));
    assert_int_equal(needed, again);
    assert_int_equal(strlen(text) + 1, needed);
    assert_non_null(strstr(text, "in place of 0"));
    assert_non_null(strstr(text, "no slot"));
    assert_non_null(strstr(text, "128 bytes; at least 128, apart 256"));
    assert_ok(coh_plan_print(plan, small, sizeof small, &again));
    assert_int_equal(again, needed);
    assert_int_equal(strlen(small), sizeof small - 1);
    coh_plan_destroy(plan);
}

/* ---- random plans ---- */

typedef struct oracle {
    coh_plan_value values[NODES];
    int count;
} oracle;

static int root_of(const oracle *all, int node)
{
    while (all->values[node].alias_of != COH_NO_NODE)
        node = all->values[node].alias_of;
    return node;
}

static int last_of(const oracle *all, int root)
{
    int last = all->values[root].last;
    for (int i = 0; i < all->count; i++)
        if (root_of(all, i) == root && all->values[i].last > last)
            last = all->values[i].last;
    return last;
}

static coh_plan_value random_value(oracle *all, uint64_t *seed)
{
    coh_plan_value made = value("", 1 + random_next(seed) % 5000, 0, 0);
    made.first = (int)(random_next(seed) % STEPS);
    made.last = made.first + (int)(random_next(seed) % 8);
    made.alignment = UINT64_C(1) << (random_next(seed) % 10);
    if (all->count == 0)
        return made;
    int other = (int)(random_next(seed) % (uint64_t)all->count);
    uint64_t what = random_next(seed) % 4;
    if (what == 0) {
        made.in_place = other;
        made.first = last_of(all, root_of(all, other));
        made.last = made.first + (int)(random_next(seed) % 8);
        made.bytes = 1 + random_next(seed) % all->values[other].bytes;
    }
    if (what == 1) {
        made.alias_of = other;
        made.alias_at = random_next(seed) % all->values[other].bytes;
        made.bytes = 1 + random_next(seed) % (all->values[other].bytes - made.alias_at);
        made.first = all->values[other].first;
        made.last = made.first + (int)(random_next(seed) % 8);
    }
    return made;
}

/* Two roots whose lives meet lie apart, except that one may overwrite, at its first step, what it
 * asked for. */
static void check_pair(const coh_plan *plan, const oracle *all, int a, int b)
{
    const coh_plan_value *x = &all->values[a], *y = &all->values[b];
    int x_last = last_of(all, a), y_last = last_of(all, b);
    if (x->first > y_last || y->first > x_last)
        return;
    uint64_t from = offset_of(plan, a), to = offset_of(plan, b);
    if (from + x->bytes <= to || to + y->bytes <= from)
        return;
    if (y->first == x_last && y->in_place != COH_NO_NODE && root_of(all, y->in_place) == a)
        return;
    fail_msg("values %d and %d meet at steps %d..%d, %d..%d and share bytes", a, b, x->first,
             x_last, y->first, y_last);
}

static void random_plans_keep_values_apart(void **state)
{
    uint64_t seed = 88172645463325252u;
    (void)state;
    for (int round = 0; round < 60; round++) {
        oracle all = {.count = 0};
        coh_plan *plan;
        assert_ok(coh_plan_create(&plan));
        int wanted = 1 + (int)(random_next(&seed) % NODES);
        while (all.count < wanted) {
            coh_plan_value made = random_value(&all, &seed);
            assert_int_equal(add(plan, made), all.count);
            all.values[all.count++] = made;
        }
        coh_plan_info info = solve(plan);
        assert_true(info.least <= info.total);
        for (int a = 0; a < all.count; a++) {
            const coh_plan_value *x = &all.values[a];
            uint64_t at = offset_of(plan, a);
            assert_true(at + x->bytes <= info.total);
            if (x->alias_of == COH_NO_NODE)
                assert_int_equal(at % x->alignment, 0);
            else
                assert_int_equal(at, offset_of(plan, x->alias_of) + x->alias_at);
            for (int b = a + 1; x->alias_of == COH_NO_NODE && b < all.count; b++)
                if (all.values[b].alias_of == COH_NO_NODE)
                    check_pair(plan, &all, a, b);
        }
        coh_plan_destroy(plan);
    }
}

/* A decoder's layers: hidden states, norms, heads, scores, a wide feed-forward. */
static void add_layer(coh_plan *plan, int *step, int *hidden, uint64_t rows, uint64_t width)
{
    uint64_t bytes = rows * width * 4;
    int at = *step;
    int norm = add(plan, value("norm", bytes, at, at + 3));
    int q = add(plan, value("q", bytes, at + 1, at + 4));
    int k = add(plan, value("k", bytes / 4, at + 2, at + 4));
    add(plan, value("v", bytes / 4, at + 3, at + 6));
    int scores = add(plan, value("scores", rows * rows * 4 * 8, at + 4, at + 5));
    coh_plan_value softmax = value("softmax", rows * rows * 4 * 8, at + 5, at + 6);
    softmax.in_place = scores;
    add(plan, softmax);
    add(plan, value("mixed", bytes, at + 6, at + 7));
    int out = add(plan, value("out", bytes, at + 7, at + 8));
    coh_plan_value sum = value("sum", bytes, at + 8, at + 14);
    sum.in_place = out;
    int kept = add(plan, sum);
    add(plan, value("norm2", bytes, at + 9, at + 11));
    int gate = add(plan, value("gate", bytes * 11 / 4, at + 10, at + 12));
    add(plan, value("up", bytes * 11 / 4, at + 11, at + 12));
    coh_plan_value product = value("product", bytes * 11 / 4, at + 12, at + 13);
    product.in_place = gate;
    add(plan, product);
    int down = add(plan, value("down", bytes, at + 13, at + 14));
    coh_plan_value next = value("hidden", bytes, at + 14, at + 22);
    next.in_place = down;
    *hidden = add(plan, next);
    *step = at + 14;
    (void)norm, (void)q, (void)k, (void)kept;
}

static void a_transformer_is_near_its_bound(void **state)
{
    const uint64_t shapes[][2] = {{1, 256}, {7, 256}, {64, 256}, {512, 512}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int step = 1, hidden;
        coh_plan *plan;
        assert_ok(coh_plan_create(&plan));
        hidden = add(plan, value("embedded", shapes[i][0] * shapes[i][1] * 4, 0, 9));
        for (int layer = 0; layer < 24; layer++)
            add_layer(plan, &step, &hidden, shapes[i][0], shapes[i][1]);
        coh_plan_info info = solve(plan);
        if ((double)info.total > 1.1 * (double)info.least)
            fail_msg("%llu rows: %llu bytes, at least %llu", (unsigned long long)shapes[i][0],
                     (unsigned long long)info.total, (unsigned long long)info.least);
        assert_true(info.total * 4 < info.apart);
        coh_plan_destroy(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lives_that_do_not_meet_share),
        cmocka_unit_test(in_place_where_the_other_dies),
        cmocka_unit_test(not_in_place_of_what_is_read_by_another_name),
        cmocka_unit_test(an_alias_lies_in_its_value_and_keeps_it),
        cmocka_unit_test(a_node_without_a_slot_says_why),
        cmocka_unit_test(adding_is_checked),
        cmocka_unit_test(a_plan_of_nothing_is_empty),
        cmocka_unit_test(printing_is_cut_to_its_room),
        cmocka_unit_test(random_plans_keep_values_apart),
        cmocka_unit_test(a_transformer_is_near_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
