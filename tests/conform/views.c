/* Views and typed arrays: docs/semantics.md S25 and the public header. */
#include "conform.h"

#include <string.h>

enum { BYTES = 3000 };

static void views_move_bytes(test_rank *self)
{
    unsigned char *memory, sent[BYTES], found[BYTES];
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    coh_view view;
    if (!CHECK_OK(coh_malloc(self->world, BYTES, (void **)&memory))
        || !CHECK_OK(coh_view_of(self->world, memory, BYTES, right, &view)))
        return;
    CHECK_EQ(view.rank, right);
    CHECK_EQ(view.length, BYTES);
    test_fill(sent, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_put_view(self->world, view, sent, BYTES));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(test_differs(memory, BYTES, (uint64_t)left), BYTES);
    CHECK_OK(coh_get_view(self->world, found, BYTES, view));
    CHECK_EQ(test_differs(found, BYTES, (uint64_t)self->rank), BYTES);
    CHECK_OK(coh_free(self->world, memory));
}

static void parts_of_views(test_rank *self)
{
    unsigned char *memory, found[100];
    coh_view view, part, empty;
    if (!CHECK_OK(coh_malloc(self->world, BYTES, (void **)&memory))
        || !CHECK_OK(coh_view_of(self->world, memory, BYTES, self->rank, &view)))
        return;
    test_fill(memory, BYTES, 4);
    CHECK_OK(coh_view_part(view, 1000, 100, &part));
    CHECK_EQ(part.offset, view.offset + 1000);
    CHECK_EQ(part.length, 100);
    CHECK_EQ(part.rank, view.rank);
    CHECK_OK(coh_get_view(self->world, found, 100, part));
    CHECK(memcmp(found, memory + 1000, 100) == 0);
    CHECK_OK(coh_view_part(view, BYTES, 0, &empty));
    CHECK_EQ(empty.length, 0);
    CHECK_REFUSED(coh_view_part(view, BYTES - 1, 2, &part), COH_OUT_OF_BOUNDS, "2999|2|3000");
    CHECK_EQ(part.length, 100); /* an output is set only on success */
    CHECK_REFUSED(coh_view_part(view, BYTES + 1, 0, &part), COH_OUT_OF_BOUNDS, "3001|3000");
    CHECK_OK(coh_free(self->world, memory));
}

static void view_lengths_must_agree(test_rank *self)
{
    unsigned char *memory, bytes[BYTES + 1] = {0};
    coh_view view;
    if (!CHECK_OK(coh_calloc(self->world, 1, BYTES, (void **)&memory))
        || !CHECK_OK(coh_view_of(self->world, memory, BYTES, self->rank, &view)))
        return;
    memset(bytes, 0xff, sizeof bytes);
    CHECK_REFUSED(coh_put_view(self->world, view, bytes, BYTES + 1), COH_LENGTH_MISMATCH,
                  "3000|3001");
    CHECK_REFUSED(coh_put_view(self->world, view, bytes, 7), COH_LENGTH_MISMATCH, "3000|7");
    CHECK_REFUSED(coh_get_view(self->world, bytes, 2999, view), COH_LENGTH_MISMATCH, "3000|2999");
    CHECK_REFUSED(coh_get_view(self->world, bytes, 0, view), COH_LENGTH_MISMATCH, "3000|0");
    for (size_t i = 0; i < BYTES; i++)
        if (!CHECK_EQ(memory[i], 0) || !CHECK_EQ(bytes[i], 0xff))
            break;
    CHECK_OK(coh_free(self->world, memory));
}

/* ---- arrays ---- */

static bool array_round_trip(test_rank *self, coh_dtype dtype)
{
    enum { COUNT = 123 };
    size_t bytes = COUNT * coh_dtype_size(dtype);
    unsigned char sent[COUNT * 8], found[COUNT * 8], *mine;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    coh_array array;
    if (!CHECK_OK(coh_array_malloc(self->world, dtype, COUNT, &array, (void **)&mine))
        || !CHECK_EQ(array.dtype, dtype) || !CHECK_EQ(array.count, COUNT))
        return false;
    test_fill(sent, bytes, (uint64_t)self->rank);
    CHECK_OK(coh_put_array(self->world, array, right, dtype, sent, COUNT));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(test_differs(mine, bytes, (uint64_t)left), bytes);
    CHECK_OK(coh_get_array(self->world, dtype, found, COUNT, array, right));
    CHECK_EQ(test_differs(found, bytes, (uint64_t)self->rank), bytes);
    return CHECK_OK(coh_array_free(self->world, array));
}

static void arrays_of_every_type(test_rank *self)
{
    static const coh_dtype types[] = {
#define TYPE(constant, value, name, bytes) constant,
        COH_DTYPE_TABLE(TYPE)
#undef TYPE
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!array_round_trip(self, types[i]))
            return;
}

static void array_counts_and_types_must_agree(test_rank *self)
{
    float *mine, values[100] = {0};
    coh_array array;
    if (!CHECK_OK(coh_array_malloc(self->world, COH_F32, 100, &array, (void **)&mine)))
        return;
    for (int i = 0; i < 100; i++)
        mine[i] = 1.5f;
    int rank = self->rank;
    CHECK_REFUSED(coh_put_array(self->world, array, rank, COH_F32, values, 99), COH_LENGTH_MISMATCH,
                  "100|99");
    CHECK_REFUSED(coh_get_array(self->world, COH_F32, values, 101, array, rank),
                  COH_LENGTH_MISMATCH, "100|101");
    CHECK_REFUSED(coh_put_array(self->world, array, rank, COH_I32, values, 100),
                  COH_INVALID_ARGUMENT, "f32|i32");
    CHECK_REFUSED(coh_get_array(self->world, COH_F64, values, 100, array, rank),
                  COH_INVALID_ARGUMENT, "f32|f64");
    CHECK(mine[0] == 1.5f && mine[99] == 1.5f && values[0] == 0);
    CHECK_OK(coh_array_free(self->world, array));
}

static void parts_of_arrays(test_rank *self)
{
    int32_t *mine, found[10];
    coh_array array, part;
    if (!CHECK_OK(coh_array_malloc(self->world, COH_I32, 50, &array, (void **)&mine)))
        return;
    for (int i = 0; i < 50; i++)
        mine[i] = i + 100 * self->rank;
    CHECK_OK(coh_array_part(array, 20, 10, &part));
    CHECK_EQ(part.offset, array.offset + 80);
    CHECK_EQ(part.count, 10);
    CHECK_OK(coh_barrier(self->world));
    int right = (self->rank + 1) % self->size;
    CHECK_OK(coh_get_array(self->world, COH_I32, found, 10, part, right));
    for (int i = 0; i < 10; i++)
        CHECK_EQ(found[i], i + 20 + 100 * right);
    CHECK_REFUSED(coh_array_part(array, 41, 10, &part), COH_OUT_OF_BOUNDS, "41|10|50");
    CHECK_OK(coh_array_malloc(self->world, COH_U8, 10, &part, NULL)); /* no pointer wanted */
    CHECK_OK(coh_array_free(self->world, part));
    CHECK_OK(coh_array_free(self->world, array));
}

static void array_types_must_exist(test_rank *self)
{
    static const int bad[] = {0, 16, -1, 1000};
    coh_array array = {COH_I8, 1, 2, 0};
    void *pointer;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        coh_dtype dtype = (coh_dtype)bad[i];
        coh_array forged = {.dtype = dtype, .count = 1};
        char byte;
        CHECK_STATUS(coh_array_malloc(self->world, dtype, 10, &array, &pointer),
                     COH_INVALID_ARGUMENT);
        CHECK_STATUS(coh_array_part(forged, 0, 1, &array), COH_INVALID_ARGUMENT);
        CHECK_STATUS(coh_put_array(self->world, forged, 0, dtype, &byte, 1), COH_INVALID_ARGUMENT);
        CHECK_STATUS(coh_get_array(self->world, dtype, &byte, 1, forged, 0), COH_INVALID_ARGUMENT);
    }
    CHECK_EQ(array.count, 2);
}

/* ---- direct pointers ---- */

static void direct_pointers(test_rank *self)
{
    uint64_t *words, *theirs;
    if (test_looks_for_races()) {
        test_skip("the race check has no coh_ptr");
        return;
    }
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words)))
        return;
    for (int rank = 0; rank < self->size; rank++) {
        if (!CHECK_OK(coh_ptr(self->world, words, rank, (void **)&theirs)))
            return;
        if (rank == self->rank)
            CHECK(theirs == words);
        theirs[self->rank] = (uint64_t)self->rank + 1;
    }
    CHECK_OK(coh_barrier(self->world));
    for (int rank = 0; rank < self->size; rank++)
        CHECK_EQ(words[rank], rank + 1);
    CHECK_OK(coh_ptr(self->world, words + self->size - 1, 0, (void **)&theirs)); /* interior */
    CHECK_OK(coh_free(self->world, words));
}

/* The simulator maps nothing between hosts: another rank's memory has no address here. */
static void no_direct_pointers(test_rank *self)
{
    char mark;
    void *memory, *direct = &mark;
    if (!CHECK_OK(coh_malloc(self->world, 100, &memory)))
        return;
    int right = (self->rank + 1) % self->size;
    if (test_same_host(self, right)) {
        CHECK_OK(coh_ptr(self->world, memory, right, &direct));
    } else {
        CHECK_REFUSED(coh_ptr(self->world, memory, right, &direct), COH_UNSUPPORTED, "sim");
        CHECK(direct == &mark);
    }
    CHECK_OK(coh_ptr(self->world, memory, self->rank, &direct));
    CHECK(direct == memory);
    CHECK_OK(coh_free(self->world, memory));
}

const test_case conform_views[] = {
    CASE(views_move_bytes, "S25", ON_MEMORY, ANY_SIZE),
    CASE(parts_of_views, "S25", ON_MEMORY, SIZE(1) | SIZE(2)),
    CASE(view_lengths_must_agree, "S25", ON_MEMORY, SIZE(1) | SIZE(2)),
    CASE(arrays_of_every_type, "S25", ON_MEMORY, ANY_SIZE),
    CASE(array_counts_and_types_must_agree, "S25", ON_MEMORY, SIZE(1) | SIZE(2)),
    CASE(parts_of_arrays, "S25", ON_MEMORY, ANY_SIZE),
    CASE(array_types_must_exist, "F17", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(direct_pointers, "S24", ON_MAPPED, ANY_SIZE),
    CASE(no_direct_pointers, "S24", ON_SIM, FROM_TWO),
};
CONFORM_COUNT(views);
