#include "unit.h"

#include "core/heap/blocks.h"

#include <stdlib.h>

enum { CAPACITY = 1 << 20, GRAINS = CAPACITY / COHI_BLOCK_BYTES, LIVE = 200 };

/* The oracle: who owns each grain of the range. */
struct oracle {
    int owner[GRAINS]; /* index of the live block + 1, or 0 */
    uint64_t offset[LIVE];
    uint64_t bytes[LIVE]; /* 0: not live */
};

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t grains_of(uint64_t bytes)
{
    return (bytes + COHI_BLOCK_BYTES - 1) / COHI_BLOCK_BYTES;
}

static void mark(struct oracle *oracle, int index, int owner)
{
    uint64_t first = oracle->offset[index] / COHI_BLOCK_BYTES;
    for (uint64_t i = 0; i < grains_of(oracle->bytes[index]); i++) {
        assert_true(first + i < GRAINS);
        assert_true((oracle->owner[first + i] == 0) == (owner != 0)); /* no overlap, ever */
        oracle->owner[first + i] = owner;
    }
}

static bool oracle_fits(const struct oracle *oracle, uint64_t bytes, uint64_t alignment)
{
    uint64_t step = alignment > COHI_BLOCK_BYTES ? alignment / COHI_BLOCK_BYTES : 1;
    for (uint64_t first = 0; first + grains_of(bytes) <= GRAINS; first += step) {
        uint64_t run = 0;
        while (run < grains_of(bytes) && oracle->owner[first + run] == 0)
            run++;
        if (run == grains_of(bytes))
            return true;
    }
    return false;
}

static uint64_t oracle_largest(const struct oracle *oracle)
{
    uint64_t best = 0, run = 0;
    for (size_t i = 0; i < GRAINS; i++) {
        run = oracle->owner[i] == 0 ? run + 1 : 0;
        best = run > best ? run : best;
    }
    return best * COHI_BLOCK_BYTES;
}

static void take_one(cohi_blocks *blocks, struct oracle *oracle, int index, uint64_t *random)
{
    uint64_t bytes = 1 + random_next(random) % (random_next(random) % 4 == 0 ? 40000 : 700);
    uint64_t alignment = UINT64_C(1) << (random_next(random) % 14), offset = 12345;
    bool fits = oracle_fits(oracle, bytes, alignment);
    bool taken = cohi_blocks_take(blocks, bytes, alignment, &offset);
    assert_int_equal(taken, fits);
    if (!taken)
        return;
    assert_int_equal(offset % alignment, 0);
    assert_int_equal(offset % COHI_BLOCK_BYTES, 0);
    oracle->offset[index] = offset;
    oracle->bytes[index] = bytes;
    mark(oracle, index, index + 1);
}

static void give_one(cohi_blocks *blocks, struct oracle *oracle, int index)
{
    assert_true(cohi_blocks_give(blocks, oracle->offset[index]));
    mark(oracle, index, 0);
    oracle->bytes[index] = 0;
}

static void resize_one(cohi_blocks *blocks, struct oracle *oracle, int index, uint64_t *random)
{
    uint64_t bytes = 1 + random_next(random) % 3000;
    if (!cohi_blocks_resize(blocks, oracle->offset[index], bytes)) {
        assert_true(grains_of(bytes) > grains_of(oracle->bytes[index])); /* shrinking works */
        return;
    }
    mark(oracle, index, 0);
    oracle->bytes[index] = bytes;
    mark(oracle, index, index + 1);
}

static void check_find(const cohi_blocks *blocks, const struct oracle *oracle, uint64_t at)
{
    uint64_t start = 0, bytes = 0;
    int owner = oracle->owner[at / COHI_BLOCK_BYTES];
    assert_int_equal(cohi_blocks_find(blocks, at, &start, &bytes), owner != 0);
    if (owner == 0)
        return;
    assert_int_equal(start, oracle->offset[owner - 1]);
    assert_int_equal(bytes, oracle->bytes[owner - 1]);
}

static void check_totals(const cohi_blocks *blocks, const struct oracle *oracle)
{
    uint64_t used = 0, count = 0;
    for (int i = 0; i < LIVE; i++) {
        used += grains_of(oracle->bytes[i]) * COHI_BLOCK_BYTES;
        count += oracle->bytes[i] != 0;
    }
    assert_true(cohi_blocks_sound(blocks));
    assert_int_equal(cohi_blocks_used(blocks), used);
    assert_int_equal(cohi_blocks_count(blocks), count);
    assert_int_equal(cohi_blocks_largest(blocks), oracle_largest(oracle));
}

static void random_history(uint64_t seed)
{
    cohi_blocks *blocks = cohi_blocks_create(CAPACITY);
    struct oracle *oracle = calloc(1, sizeof *oracle);
    uint64_t random = seed;
    assert_non_null(blocks);
    for (int step = 0; step < 4000; step++) {
        int index = (int)(random_next(&random) % LIVE);
        if (oracle->bytes[index] == 0)
            take_one(blocks, oracle, index, &random);
        else if (random_next(&random) % 3 == 0)
            resize_one(blocks, oracle, index, &random);
        else
            give_one(blocks, oracle, index);
        check_find(blocks, oracle, random_next(&random) % CAPACITY);
        if (step % 50 == 0)
            check_totals(blocks, oracle);
    }
    for (int i = 0; i < LIVE; i++)
        if (oracle->bytes[i] != 0)
            give_one(blocks, oracle, i);
    check_totals(blocks, oracle);
    assert_int_equal(cohi_blocks_largest(blocks), CAPACITY);
    free(oracle);
    cohi_blocks_destroy(blocks);
}

static void against_the_oracle(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++)
        random_history(seed * UINT64_C(0x9e3779b97f4a7c15));
}

/* Two ranks with one history come to the same offsets; that is what keeps heaps symmetric. */
static void equal_histories_equal_offsets(void **state)
{
    cohi_blocks *one = cohi_blocks_create(CAPACITY), *two = cohi_blocks_create(CAPACITY);
    uint64_t random = 42, kept[64], count = 0;
    (void)state;
    for (int step = 0; step < 3000; step++) {
        uint64_t a = 1, b = 2;
        if (count == 64 || (count > 0 && random_next(&random) % 2)) {
            uint64_t index = random_next(&random) % count;
            assert_int_equal(cohi_blocks_give(one, kept[index]),
                             cohi_blocks_give(two, kept[index]));
            kept[index] = kept[--count];
            continue;
        }
        uint64_t bytes = 1 + random_next(&random) % 5000;
        assert_true(cohi_blocks_take(one, bytes, 64, &a));
        assert_true(cohi_blocks_take(two, bytes, 64, &b));
        assert_int_equal(a, b);
        kept[count++] = a;
    }
    cohi_blocks_destroy(one);
    cohi_blocks_destroy(two);
}

static void edges(void **state)
{
    cohi_blocks *blocks = cohi_blocks_create(4096);
    uint64_t offset = 99, other, start, bytes;
    (void)state;
    assert_false(cohi_blocks_take(blocks, 4097, 64, &offset));
    assert_false(cohi_blocks_take(blocks, UINT64_MAX, 64, &offset));
    assert_false(cohi_blocks_take(blocks, UINT64_MAX - 63, 1, &offset));
    assert_int_equal(offset, 99);
    assert_true(cohi_blocks_take(blocks, 4096, 64, &offset));
    assert_int_equal(offset, 0);
    assert_int_equal(cohi_blocks_largest(blocks), 0);
    assert_false(cohi_blocks_take(blocks, 1, 1, &other));
    assert_false(cohi_blocks_give(blocks, 64));   /* inside, not the start */
    assert_false(cohi_blocks_give(blocks, 4096)); /* past the end */
    assert_false(cohi_blocks_give(blocks, UINT64_MAX));
    assert_false(cohi_blocks_find(blocks, 4096, &start, &bytes));
    assert_false(cohi_blocks_resize(blocks, 0, 5000));
    assert_true(cohi_blocks_give(blocks, 0));
    assert_false(cohi_blocks_give(blocks, 0)); /* twice */
    assert_true(cohi_blocks_sound(blocks));
    cohi_blocks_destroy(blocks);
}

/* An alignment as large as the range or larger: offset 0 is aligned to anything. */
static void large_alignments(void **state)
{
    cohi_blocks *blocks = cohi_blocks_create(CAPACITY);
    uint64_t offset;
    (void)state;
    assert_true(cohi_blocks_take(blocks, 100, UINT64_C(1) << 30, &offset));
    assert_int_equal(offset, 0);
    assert_false(cohi_blocks_take(blocks, 100, UINT64_C(1) << 30, &offset));
    assert_true(cohi_blocks_take(blocks, 100, CAPACITY / 2, &offset));
    assert_int_equal(offset, CAPACITY / 2);
    assert_true(cohi_blocks_sound(blocks));
    cohi_blocks_destroy(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_the_oracle),
        cmocka_unit_test(equal_histories_equal_offsets),
        cmocka_unit_test(edges),
        cmocka_unit_test(large_alignments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
