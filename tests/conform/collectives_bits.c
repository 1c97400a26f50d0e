/* The same bits on all ranks, in every run, by every algorithm: docs/semantics.md S39. */
#include "worlds.h"

#include "collectives/oracle.h"

#include "coll/call/algorithm.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const coh_dtype floats[] = {COH_F32, COH_F64, COH_F16, COH_BF16, COH_F8E4M3, COH_F8E5M2};

/* Lengths on both sides of where algorithms may change. */
static const size_t lengths[] = {1, 5, 16, 300, 2500, 9001, 70000};

enum { FLOATS = sizeof floats / sizeof *floats, LENGTHS = sizeof lengths / sizeof *lengths };

/* Numbers of all sizes, so that each order of summing gives other bits. */
static void draw(coh_dtype dtype, int member, size_t at, void *element)
{
    uint64_t state = (uint64_t)member * 1000003 + at;
    uint64_t dice = test_random(&state);
    double fraction = (double)(dice >> 12) * 0x1p-52 + 0.25;
    oracle_encode(dtype, ldexp(dice & 1 ? -fraction : fraction, (int)(dice >> 1) % 5), element);
}

static void draw_all(coh_dtype dtype, int member, size_t count, unsigned char *elements)
{
    for (size_t i = 0; i < count; i++)
        draw(dtype, member, i, elements + i * coh_dtype_size(dtype));
}

static uint64_t digest_of(const unsigned char *bytes, size_t count)
{
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static size_t most_of(const test_rank *self)
{
    return strncmp(self->engine, "sim", 3) == 0 ? 2500 : lengths[LENGTHS - 1];
}

/* ---- on all ranks, from run to run ---- */

static bool digests_agree(test_rank *self, uint64_t digest, coh_dtype dtype, size_t count)
{
    uint64_t all[TEST_RANKS_MAX];
    if (!CHECK_OK(coh_all_gather(coh_team_world(self->world), COH_U64, &digest, all, 1)))
        return false;
    for (int rank = 0; rank < self->size; rank++)
        if (all[rank] != digest) {
            test_fail("all_reduce of %zu %s: rank %d has other bits than rank %d", count,
                      coh_dtype_name(dtype), rank, self->rank);
            return false;
        }
    return true;
}

/* Rank 0's digests of the run before, where there was one. */
static void compare_with_before(test_rank *self, int number, uint64_t digest)
{
    uint64_t *before = worlds_scratch(self);
    if (self->rank != 0)
        return;
    if (before[number] == 0)
        before[number] = digest;
    else if (before[number] != digest)
        test_fail("digest %d is other than in the run before", number);
}

static void sum_in_world(test_rank *self)
{
    unsigned char *source = malloc(lengths[LENGTHS - 1] * 8), *target = malloc(most_of(self) * 8);
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < FLOATS * LENGTHS && !test_failed(); i++) {
        coh_dtype dtype = floats[i % FLOATS];
        size_t count = lengths[i / FLOATS];
        if (count > most_of(self))
            continue;
        for (int repeat = 0; repeat < 3; repeat++) {
            draw_all(dtype, self->rank, count, source);
            if (!CHECK_OK(coh_all_reduce(team, dtype, COH_SUM, source, target, count)))
                return;
            uint64_t digest = digest_of(target, count * coh_dtype_size(dtype));
            if (!digests_agree(self, digest, dtype, count))
                return;
            compare_with_before(self, i, digest);
        }
    }
    free(source);
    free(target);
}

static void bits_are_equal(test_rank *self)
{
    worlds_run(self, "", sum_in_world);
    worlds_run(self, "", sum_in_world);
}

/* Some members bring heap, others private memory: whatever that changes, it changes for all. */
static void bits_with_mixed_memory(test_rank *self)
{
    unsigned char *heap, *own = malloc(2 * 9001 * 4);
    coh_team *team = coh_team_world(self->world);
    if (!CHECK_OK(coh_malloc(self->world, 2 * 9001 * 4, (void **)&heap)))
        return;
    for (int i = 0; i < 24 && !test_failed(); i++) {
        size_t count = lengths[i % 6], bytes = count * 4;
        unsigned char *source = (self->rank + i) % 2 ? heap : own;
        unsigned char *target = (i / 2 + self->rank) % 3 ? heap + 9001 * 4 : own + 9001 * 4;
        if (count > most_of(self))
            continue;
        draw_all(COH_F32, self->rank, count, source);
        if (!CHECK_OK(coh_all_reduce(team, COH_F32, COH_SUM, source, target, count))
            || !digests_agree(self, digest_of(target, bytes), COH_F32, count))
            return;
    }
    free(own);
    CHECK_OK(coh_free(self->world, heap));
}

/* Which of two NaNs comes out depends on the loop that they meet in. Targets that are not aligned
 * alike are no reason to take another one. */
static void bits_of_nans(test_rank *self)
{
    static const size_t counts[] = {7, 5000, 100003, (5 << 18) + 1, (13 << 18) + 5};
    enum { COUNTS = sizeof counts / sizeof *counts, MOST = (13 << 18) + 5, LINE = 64 };
    uint32_t *source = malloc(MOST * sizeof *source);
    char *room = malloc(MOST * sizeof *source + 2 * LINE);
    uint32_t *target = (uint32_t *)(void *)(room + (LINE - (uintptr_t)room % LINE)) + self->rank;
    for (size_t i = 0; i < MOST; i++)
        source[i] = (self->rank % 2 ? 0xffc00000 : 0x7fc00000)
                    | ((uint32_t)i * 8 + (uint32_t)self->rank) % (1 << 22);
    for (int i = 0; i < 2 * COUNTS; i++) {
        size_t count = counts[i % COUNTS];
        if (!CHECK_OK(coh_all_reduce(coh_team_world(self->world), COH_F32, COH_MAX, source, target,
                                     count))
            || !digests_agree(self, digest_of((unsigned char *)target, count * sizeof *target),
                              COH_F32, count))
            break;
    }
    free(source);
    free(room);
}

/* ---- deterministic: in the order of the members, whatever the algorithm and the length ---- */

static bool in_rank_order(coh_dtype dtype, coh_reduce_op op, int members, size_t first,
                          size_t count, const unsigned char *found)
{
    size_t bytes = coh_dtype_size(dtype);
    unsigned char brought[TEST_RANKS_MAX * 8], expected[8];
    for (size_t i = 0; i < count; i++) {
        for (int member = 0; member < members; member++)
            draw(dtype, member, first + i, brought + (size_t)member * bytes);
        oracle_reduce(dtype, op, brought, members, expected);
        if (memcmp(expected, found + i * bytes, bytes) == 0)
            continue;
        test_fail("%s of %zu %s: element %zu is %.9g, in rank order it is %.9g",
                  coh_reduce_op_name(op), count, coh_dtype_name(dtype), first + i,
                  oracle_decode(dtype, found + i * bytes), oracle_decode(dtype, expected));
        return false;
    }
    return true;
}

/* COH_UNSUPPORTED is what a forced algorithm may say, to all alike. */
static bool done(test_rank *self, coh_status status)
{
    const char *forced = worlds_scratch(self);
    if (status == COH_UNSUPPORTED && forced[0])
        return false;
    return CHECK_OK(status);
}

static bool reduce_each_way(test_rank *self, coh_dtype dtype, size_t count,
                            const unsigned char *source, unsigned char *target)
{
    coh_team *team = coh_team_world(self->world);
    int n = self->size, root = (int)count % n;
    size_t block = count / (size_t)n, first = (size_t)self->rank * block;
    if (done(self, coh_all_reduce(team, dtype, COH_SUM, source, target, count))
        && !in_rank_order(dtype, COH_SUM, n, 0, count, target))
        return false;
    if (done(self, coh_reduce(team, dtype, COH_PRODUCT, source, target, count, root))
        && self->rank == root && !in_rank_order(dtype, COH_PRODUCT, n, 0, count, target))
        return false;
    if (done(self, coh_reduce_scatter(team, dtype, COH_SUM, source, target, block))
        && !in_rank_order(dtype, COH_SUM, n, first, block, target))
        return false;
    return !done(self, coh_scan(team, dtype, COH_SUM, source, target, count))
           || in_rank_order(dtype, COH_SUM, self->rank + 1, 0, count, target);
}

static void reduce_in_order(test_rank *self)
{
    size_t most = strncmp(self->engine, "sim", 3) == 0 ? 300 : 9001;
    unsigned char *source = malloc(most * 8), *target = malloc(most * 8);
    for (int i = 0; i < FLOATS * LENGTHS && !test_failed(); i++) {
        coh_dtype dtype = floats[i % FLOATS];
        if (lengths[i / FLOATS] > most)
            continue;
        draw_all(dtype, self->rank, lengths[i / FLOATS], source);
        if (!reduce_each_way(self, dtype, lengths[i / FLOATS], source, target))
            break;
    }
    free(source);
    free(target);
}

static const char *knob_of(const cohi_algorithm *row, char knob[64])
{
    snprintf(knob, 64, "COHORT_%s", coh_collective_name(row->kind));
    for (char *at = knob; *at; at++)
        *at = (char)toupper((unsigned char)*at);
    return knob;
}

static bool reduces(coh_collective_kind kind)
{
    return cohi_kind_rows[kind].reduces;
}

static void deterministic_by_choice(test_rank *self)
{
    worlds_run(self, "COHORT_DETERMINISTIC=1", reduce_in_order);
}

/* With each algorithm of a reducing collective in turn, and `others` of the knobs. */
static void with_each_algorithm(test_rank *self, const char *others, void (*body)(test_rank *self))
{
    char *forced = worlds_scratch(self), knob[64], knobs[256];
    for (unsigned i = 0; cohi_algorithm_at(i) && !test_failed(); i++) {
        const cohi_algorithm *row = cohi_algorithm_at(i);
        if (!reduces(row->kind))
            continue;
        snprintf(knobs, sizeof knobs, "%s %s=%s", others, knob_of(row, knob), row->name);
        if (self->rank == 0)
            snprintf(forced, 256, "%s", knobs);
        worlds_run(self, knobs, body);
    }
    if (test_failed())
        test_fail("that was with %s", knobs);
}

static void deterministic_by_force(test_rank *self)
{
    with_each_algorithm(self, "COHORT_DETERMINISTIC=1", reduce_in_order);
}

/* ---- bool: any byte but 0 is true, and results are 0 and 1 ---- */

enum { TRUTHS = 67 };

static unsigned char truth_of(int member, size_t at)
{
    static const unsigned char bytes[] = {0, 5, 0, 1, 0x80, 0, 0xff};
    return bytes[(at + 3 * (size_t)member) % sizeof bytes];
}

/* Xor, of the first `members`: no byte of theirs can be lost, or counted as more than one. */
static bool are_truths(const char *name, int members, size_t first, size_t count,
                       const unsigned char *found)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char expected = 0;
        for (int member = 0; member < members; member++)
            expected ^= truth_of(member, first + i) != 0;
        if (found[i] == expected)
            continue;
        test_fail("%s of %d members: element %zu is %d, not %d", name, members, first + i, found[i],
                  expected);
        return false;
    }
    return true;
}

static void reduce_truths(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int n = self->size, root = n - 1;
    size_t block = TRUTHS / (size_t)n, first = (size_t)self->rank * block;
    unsigned char source[TRUTHS], target[TRUTHS];
    for (size_t i = 0; i < TRUTHS; i++)
        source[i] = truth_of(self->rank, i);
    if (done(self, coh_all_reduce(team, COH_BOOL, COH_XOR, source, target, TRUTHS)))
        are_truths("all_reduce", n, 0, TRUTHS, target);
    if (done(self, coh_reduce(team, COH_BOOL, COH_XOR, source, target, TRUTHS, root))
        && self->rank == root)
        are_truths("reduce", n, 0, TRUTHS, target);
    if (done(self, coh_reduce_scatter(team, COH_BOOL, COH_XOR, source, target, block)))
        are_truths("reduce_scatter", n, first, block, target);
    if (done(self, coh_scan(team, COH_BOOL, COH_XOR, source, target, TRUTHS)))
        are_truths("scan", self->rank + 1, 0, TRUTHS, target);
    if (done(self, coh_scan_exclusive(team, COH_BOOL, COH_XOR, source, target, TRUTHS)))
        are_truths("scan_exclusive", self->rank, 0, TRUTHS, target);
    if (done(self, coh_scan(team, COH_BOOL, COH_XOR, source, source, TRUTHS)))
        are_truths("scan in place", self->rank + 1, 0, TRUTHS, source);
}

static void truths_by_force(test_rank *self)
{
    with_each_algorithm(self, "", reduce_truths);
}

const test_case conform_coll_bits[] = {
    IN_WORLDS(bits_are_equal, "S39", FROM_TWO, .limit_s = 60),
    CASE(bits_with_mixed_memory, "S39", ON_MEMORY, FROM_TWO),
    CASE(bits_of_nans, "S39 S40", ON_PROCESSES, TEST_TSAN ? 0 : SIZE(2) | SIZE(3), .limit_s = 60),
    IN_WORLDS(deterministic_by_choice, "S39", FROM_TWO, .limit_s = 60),
    IN_WORLDS(deterministic_by_force, "S39", SIZE(2) | SIZE(3) | SIZE(5), .limit_s = 120),
    IN_WORLDS(truths_by_force, "S40", SIZE(1) | SIZE(2) | SIZE(3) | SIZE(6), .limit_s = 60),
};
CONFORM_COUNT(coll_bits);
