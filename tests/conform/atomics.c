/* Atomics on one word: each operation and type against an oracle, and what is refused.
 * docs/semantics.md S31 and S32. */
#include "conform.h"

#include <string.h>

/* A word between two that nothing may touch. */
struct cell {
    uint64_t before;
    uint64_t word;
    uint64_t after;
};

#define GUARD UINT64_C(0xa5a5a5a5a5a5a5a5)

static const coh_dtype integers[] = {COH_I32, COH_U32, COH_I64, COH_U64};
static const coh_atomic_op operations[] = {COH_ATOMIC_SET, COH_ATOMIC_ADD, COH_ATOMIC_AND,
                                           COH_ATOMIC_OR,  COH_ATOMIC_XOR, COH_ATOMIC_FETCH};
static const uint64_t values[] = {0,
                                  1,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  UINT64_C(0x7fffffffffffffff),
                                  UINT64_C(0x8000000000000000),
                                  UINT64_C(0xffffffffffffffff),
                                  UINT64_C(0x0123456789abcdef)};

enum {
    INTEGERS = sizeof integers / sizeof *integers,
    OPERATIONS = sizeof operations / sizeof *operations,
    VALUES = sizeof values / sizeof *values
};

static uint64_t expected(coh_atomic_op op, uint64_t word, uint64_t operand)
{
    switch (op) {
    case COH_ATOMIC_SET:
        return operand;
    case COH_ATOMIC_ADD:
        return word + operand;
    case COH_ATOMIC_AND:
        return word & operand;
    case COH_ATOMIC_OR:
        return word | operand;
    case COH_ATOMIC_XOR:
        return word ^ operand;
    default:
        return word;
    }
}

/* A 32-bit word is half of the cell's; the other half is a guard too. */
static uint64_t in_word(coh_dtype dtype, uint64_t value)
{
    uint64_t word = GUARD;
    memcpy(&word, &value, coh_dtype_size(dtype));
    return word;
}

static uint64_t cut(coh_dtype dtype, uint64_t value)
{
    uint64_t word = 0;
    memcpy(&word, &value, coh_dtype_size(dtype));
    return word;
}

static bool set_cell(coh_world *world, struct cell *cell, coh_dtype dtype, uint64_t value, int rank)
{
    struct cell fresh = {GUARD, in_word(dtype, value), GUARD};
    return CHECK_OK(coh_put(world, cell, &fresh, sizeof fresh, rank)) && CHECK_OK(coh_quiet(world));
}

static bool check_cell(coh_world *world, struct cell *cell, coh_dtype dtype, uint64_t value,
                       int rank)
{
    struct cell found;
    return CHECK_OK(coh_get(world, &found, cell, sizeof found, rank))
           && CHECK_EQ(found.word, in_word(dtype, value)) && CHECK_EQ(found.before, GUARD)
           && CHECK_EQ(found.after, GUARD);
}

/* One combination, by the three forms. */
struct combination {
    coh_atomic_op op;
    coh_dtype dtype;
    uint64_t word;
    uint64_t operand;
};

static struct combination combination_of(int index)
{
    return (struct combination){.op = operations[index % OPERATIONS],
                                .dtype = integers[index / OPERATIONS % INTEGERS],
                                .word = values[index / OPERATIONS / INTEGERS % VALUES],
                                .operand = values[index / OPERATIONS / INTEGERS / VALUES]};
}

static bool combine(test_rank *self, struct cell *cell, struct combination it, int form, int rank)
{
    coh_world *world = self->world;
    const void *operand = it.op == COH_ATOMIC_FETCH ? NULL : &it.operand;
    uint64_t result = 0, unset = it.word;
    if (form == 0 && it.op == COH_ATOMIC_FETCH)
        return true;
    if (!set_cell(world, cell, it.dtype, it.word, rank))
        return false;
    coh_status status =
        form == 0 ? coh_atomic(world, it.op, it.dtype, &cell->word, operand, rank)
        : form == 1
            ? coh_atomic_fetch(world, it.op, it.dtype, &cell->word, operand, &result, rank)
            : coh_atomic_fetch_nbi(world, it.op, it.dtype, &cell->word, operand, &result, rank);
    bool good = CHECK_OK(status) && (form == 1 || CHECK_OK(coh_quiet(world)))
                && CHECK_EQ(result, form == 0 ? 0 : cut(it.dtype, unset))
                && check_cell(world, cell, it.dtype,
                              cut(it.dtype, expected(it.op, it.word, it.operand)), rank);
    if (!good)
        test_fail("that was operation %d on %s, %#llx with %#llx, form %d", (int)it.op,
                  coh_dtype_name(it.dtype), (unsigned long long)it.word,
                  (unsigned long long)it.operand, form);
    return good;
}

/* Where each step is slow, every rank tries another part of the combinations. */
static void every_operation_and_type(test_rank *self)
{
    struct cell *cells;
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *cells, (void **)&cells)))
        return;
    int all = OPERATIONS * INTEGERS * VALUES * VALUES;
    int part = all / test_scaled(self, all);
    int right = (self->rank + 1) % self->size;
    for (int i = (int)((self->seed + (uint64_t)self->rank) % (unsigned)part); i < all; i += part)
        for (int form = 0; form < 3; form++)
            if (!combine(self, &cells[self->rank], combination_of(i), form, right))
                return;
    CHECK_OK(coh_free(self->world, cells));
}

static bool swap_if(test_rank *self, struct cell *cell, coh_dtype dtype, uint64_t word,
                    uint64_t compare, bool later)
{
    uint64_t desired = ~word, result = 0;
    coh_world *world = self->world;
    int left = (self->rank + self->size - 1) % self->size;
    bool equal = cut(dtype, word) == cut(dtype, compare);
    if (!set_cell(world, cell, dtype, word, left))
        return false;
    coh_status status = later ? coh_atomic_compare_swap_nbi(world, dtype, &cell->word, &compare,
                                                            &desired, &result, left)
                              : coh_atomic_compare_swap(world, dtype, &cell->word, &compare,
                                                        &desired, &result, left);
    return CHECK_OK(status) && (!later || CHECK_OK(coh_quiet(world)))
           && CHECK_EQ(result, cut(dtype, word))
           && check_cell(world, cell, dtype, cut(dtype, equal ? desired : word), left);
}

static void compare_swap_compares(test_rank *self)
{
    struct cell *cells;
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *cells, (void **)&cells)))
        return;
    for (int type = 0; type < INTEGERS; type++)
        for (int i = 0; i < VALUES; i++) {
            int other = (i + 1 + self->rank) % VALUES;
            struct cell *cell = &cells[self->rank];
            if (!swap_if(self, cell, integers[type], values[i], values[i], i % 2)
                || !swap_if(self, cell, integers[type], values[i], values[other], (i + 1) % 2))
                return;
        }
    CHECK_OK(coh_free(self->world, cells));
}

/* Set, fetch and swap move the bits of a float, NaNs and -0 too. */
static void floats_move_whole(test_rank *self)
{
    static const uint64_t doubles[] = {0x3ff8000000000000, 0x8000000000000000, 0x7ff8000000000123,
                                       0x7ff0000000000000, 1};
    static const uint32_t singles[] = {0x3fc00000, 0x80000000, 0x7fc00123, 0xff800000, 1};
    coh_world *world = self->world;
    uint64_t *words, old = 0;
    uint32_t old32 = 0;
    int right = (self->rank + 1) % self->size;
    if (!CHECK_OK(coh_calloc(world, 2 * (size_t)self->size, sizeof *words, (void **)&words)))
        return;
    uint64_t *word = &words[2 * self->rank];
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        CHECK_OK(coh_atomic(world, COH_ATOMIC_SET, COH_F64, word, &doubles[i], right));
        CHECK_OK(coh_quiet(world));
        CHECK_OK(coh_atomic_fetch(world, COH_ATOMIC_FETCH, COH_F64, word, NULL, &old, right));
        CHECK_EQ(old, doubles[i]);
        CHECK_OK(coh_atomic(world, COH_ATOMIC_SET, COH_F32, word + 1, &singles[i], right));
        CHECK_OK(coh_quiet(world));
        uint32_t next = singles[i] ^ 0x10;
        CHECK_OK(coh_atomic_fetch(world, COH_ATOMIC_SET, COH_F32, word + 1, &next, &old32, right));
        CHECK_EQ(old32, singles[i]);
        CHECK_OK(coh_atomic_fetch(world, COH_ATOMIC_FETCH, COH_F32, word + 1, NULL, &old32, right));
        CHECK_EQ(old32, next);
    }
    CHECK_OK(coh_free(world, words));
}

/* ---- refused ---- */

static void unknown_kinds_refused(test_rank *self)
{
    static const coh_dtype others[] = {COH_I8,   COH_I16,      COH_U8,       COH_U16,
                                       COH_F16,  COH_BF16,     COH_F8E4M3,   COH_F8E5M2,
                                       COH_BOOL, (coh_dtype)0, (coh_dtype)99};
    static const coh_atomic_op arithmetic[] = {COH_ATOMIC_ADD, COH_ATOMIC_AND, COH_ATOMIC_OR,
                                               COH_ATOMIC_XOR};
    coh_world *world = self->world;
    uint64_t *word, one = 1, result = 77;
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *word, (void **)&word)))
        return;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        coh_dtype dtype = others[i];
        CHECK_REFUSED(coh_atomic(world, COH_ATOMIC_ADD, dtype, word, &one, 0), COH_INVALID_ARGUMENT,
                      "coh_atomic");
        CHECK_STATUS(coh_atomic_fetch(world, COH_ATOMIC_SET, dtype, word, &one, &result, 0),
                     COH_INVALID_ARGUMENT);
        CHECK_STATUS(coh_atomic_compare_swap(world, dtype, word, &one, &one, &result, 0),
                     COH_INVALID_ARGUMENT);
    }
    for (int type = 0; type < 2; type++) {
        coh_dtype dtype = type ? COH_F64 : COH_F32;
        for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++) {
            CHECK_REFUSED(coh_atomic(world, arithmetic[i], dtype, word, &one, 0),
                          COH_INVALID_ARGUMENT, coh_dtype_name(dtype));
            CHECK_STATUS(coh_atomic_fetch(world, arithmetic[i], dtype, word, &one, &result, 0),
                         COH_INVALID_ARGUMENT);
        }
        CHECK_STATUS(coh_atomic_compare_swap(world, dtype, word, &one, &one, &result, 0),
                     COH_INVALID_ARGUMENT);
    }
    for (int op = -1; op < 9; op += op < 0 ? 7 : 1) { /* -1, compare_swap, and past the last */
        CHECK_REFUSED(coh_atomic(world, (coh_atomic_op)op, COH_U64, word, &one, 0),
                      COH_INVALID_ARGUMENT, "coh_atomic");
        CHECK_STATUS(coh_atomic_fetch(world, (coh_atomic_op)op, COH_U64, word, &one, &result, 0),
                     COH_INVALID_ARGUMENT);
        CHECK_STATUS(
            coh_atomic_fetch_nbi(world, (coh_atomic_op)op, COH_U64, word, &one, &result, 0),
            COH_INVALID_ARGUMENT);
    }
    CHECK_EQ(result, 77);
    CHECK_OK(coh_barrier(world));
    test_is_zero(self, word, sizeof *word);
    CHECK_OK(coh_free(world, word));
}

static void misplaced_words_refused(test_rank *self)
{
    coh_world *world = self->world;
    uint64_t *words, one = 1, result = 77, private_word = 0;
    if (!CHECK_OK(coh_calloc(world, 4, sizeof *words, (void **)&words)))
        return;
    char *bytes = (char *)words;
    for (int off = 1; off < 8; off++) {
        CHECK_REFUSED(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, bytes + off, &one, 0),
                      COH_BAD_ALIGNMENT, "8|u64");
        coh_status status =
            coh_atomic_fetch(world, COH_ATOMIC_FETCH, COH_I32, bytes + off, NULL, &result, 0);
        CHECK(status == (off == 4 ? COH_OK : COH_BAD_ALIGNMENT));
        CHECK_STATUS(coh_atomic_compare_swap(world, COH_I64, bytes + off, &one, &one, &result, 0),
                     COH_BAD_ALIGNMENT);
    }
    result = 77;
    CHECK_REFUSED(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, &private_word, &one, 0),
                  COH_NOT_SYMMETRIC, "coh_atomic");
    CHECK_STATUS(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, NULL, &one, 0), COH_NOT_SYMMETRIC);
    CHECK_REFUSED(
        coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, words, &one, &result, self->size),
        COH_UNKNOWN_RANK, "coh_atomic_fetch");
    CHECK_STATUS(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, words, &one, -1), COH_UNKNOWN_RANK);
    CHECK_STATUS(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, words, NULL, 0), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, words, &one, NULL, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, words, NULL, &result, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_atomic_compare_swap(world, COH_U64, words, NULL, &one, &result, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_atomic_compare_swap(world, COH_U64, words, &one, NULL, &result, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_atomic_compare_swap_nbi(world, COH_U64, words, &one, &one, NULL, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_EQ(result, 77);
    CHECK_OK(coh_barrier(world));
    test_is_zero(self, words, 4 * sizeof *words);
    CHECK_OK(coh_free(world, words));
}

/* Row 32's bound: a word that begins inside the committed heap and ends outside, or begins
 * outside. */
static void words_past_the_heap_refused(test_rank *self)
{
    coh_world *world = self->world;
    coh_heap_stats stats = {.size = sizeof stats};
    coh_view view;
    uint64_t *word, one = 1;
    if (!CHECK_OK(coh_calloc(world, 1, sizeof *word, (void **)&word))
        || !CHECK_OK(coh_view_of(world, word, sizeof *word, self->rank, &view))
        || !CHECK_OK(coh_heap_query(world, &stats)))
        return;
    char *end = (char *)word - view.offset + stats.committed;
    coh_status status = coh_atomic(world, COH_ATOMIC_ADD, COH_U64, end, &one, 0);
    CHECK(status == COH_OUT_OF_BOUNDS || status == COH_NOT_SYMMETRIC);
    CHECK_OK(coh_free(world, word));
}

const test_case conform_atomics[] = {
    CASE(every_operation_and_type, "S31 S32", ON_MEMORY | ON_CARD, ANY_SIZE, .limit_s = 60),
    CASE(compare_swap_compares, "S32", ON_MEMORY | ON_CARD, ANY_SIZE, .limit_s = 60),
    CASE(floats_move_whole, "S32", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(unknown_kinds_refused, "S32", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(misplaced_words_refused, "S32", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(3)),
    CASE(words_past_the_heap_refused, "S32 S23", ON_MEMORY | ON_CARD, SIZE(2)),
};
CONFORM_COUNT(atomics);
