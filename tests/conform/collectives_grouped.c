/* Many all_reduces in one call. */
#include "conform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 60, LONG = 40000 };

/* Few elements mostly, none now and then; part 7 is longer than what is laid together. */
static size_t count_of(size_t part)
{
    return part == 7 ? LONG : part % 11 == 10 ? 0 : part * 37 % 300;
}

static coh_dtype dtype_of(size_t part)
{
    static const coh_dtype dtypes[] = {COH_F32, COH_I64, COH_F64, COH_U8, COH_F32};
    return dtypes[part % 5];
}

static coh_reduce_op op_of(size_t part)
{
    return part % 7 == 6 ? COH_MAX : COH_SUM;
}

/* Whole numbers, so that every order of adding gives the same. */
static void store(coh_dtype dtype, void *at, size_t i, int64_t value)
{
    if (dtype == COH_F32)
        ((float *)at)[i] = (float)value;
    else if (dtype == COH_F64)
        ((double *)at)[i] = (double)value;
    else if (dtype == COH_I64)
        ((int64_t *)at)[i] = value;
    else
        ((uint8_t *)at)[i] = (uint8_t)value;
}

static int64_t value_of(size_t part, size_t i, int member)
{
    return (int64_t)((part * 5 + i) % 9) * (member + 1);
}

static int64_t expected(size_t part, size_t i, int members)
{
    int64_t sum = 0;
    for (int member = 0; member < members; member++)
        sum += value_of(part, i, member);
    return op_of(part) == COH_MAX ? value_of(part, i, members - 1) : sum;
}

static bool check_part(const coh_group_part *part, size_t number, int members)
{
    unsigned char want[8];
    size_t bytes = coh_dtype_size(part->dtype);
    for (size_t i = 0; i < part->count; i++) {
        store(part->dtype, want, 0, expected(number, i, members));
        if (memcmp((const char *)part->target + i * bytes, want, bytes) == 0)
            continue;
        test_fail("element %zu of %zu of part %zu (%s) differs", i, part->count, number,
                  coh_dtype_name(part->dtype));
        return false;
    }
    return true;
}

/* Every third part in place. A guard of 0x5a behind each target. */
static size_t lay_out(test_rank *self, char *memory, coh_group_part *parts)
{
    size_t at = 0;
    for (size_t p = 0; p < PARTS; p++) {
        coh_dtype dtype = dtype_of(p);
        size_t bytes = (count_of(p) * coh_dtype_size(dtype) + 8 + 7) / 8 * 8;
        char *source = memory + at, *target = p % 3 == 0 ? source : source + bytes;
        at += 2 * bytes;
        parts[p] = (coh_group_part){source, target, count_of(p), dtype, op_of(p)};
        memset(source, 0x5a, 2 * bytes);
        for (size_t i = 0; i < count_of(p); i++)
            store(dtype, source, i, value_of(p, i, self->rank));
    }
    return at;
}

static size_t room_of_all(void)
{
    size_t bytes = 0;
    for (size_t p = 0; p < PARTS; p++)
        bytes += 2 * ((count_of(p) * 8 + 8 + 7) / 8 * 8);
    return bytes;
}

static bool perform(test_rank *self, char *memory, bool started)
{
    coh_team *team = coh_team_world(self->world);
    coh_group_part parts[PARTS], copy[PARTS];
    coh_request *request = NULL;
    lay_out(self, memory, parts);
    memcpy(copy, parts, sizeof copy);
    coh_status status = started ? coh_all_reduce_group_start(team, copy, PARTS, &request)
                                : coh_all_reduce_group(team, copy, PARTS);
    memset(copy, 0, sizeof copy); /* a started call has a list of its own */
    if (!CHECK_OK(status) || (started && !CHECK_OK(coh_request_wait(&request, NULL))))
        return false;
    for (size_t p = 0; p < PARTS; p++) {
        const char *end = (const char *)parts[p].target + count_of(p) * coh_dtype_size(dtype_of(p));
        if (!check_part(&parts[p], p, self->size) || !CHECK_EQ(*end, 0x5a))
            return false;
    }
    return true;
}

static void grouped_as_one_by_one(test_rank *self)
{
    char *memory = malloc(room_of_all()), *shared = NULL;
    for (int i = 0; i < 2 && !test_failed(); i++)
        perform(self, memory, i == 1);
    if (test_has_memory(self->engine) && !test_failed()
        && CHECK_OK(COH_MALLOC(self->world, room_of_all(), &shared))
        && perform(self, shared, false))
        CHECK_OK(coh_free(self->world, shared));
    free(memory);
}

/* More than one pack of the same type. */
static void more_than_fits_together(test_rank *self)
{
    enum { MANY = 40, EACH = 15000 };
    coh_team *team = coh_team_world(self->world);
    coh_group_part parts[MANY];
    float *memory = malloc(sizeof *memory * MANY * EACH);
    for (int p = 0; p < MANY; p++) {
        float *at = memory + p * EACH;
        parts[p] = (coh_group_part){at, at, EACH, COH_F32, COH_SUM};
        for (int i = 0; i < EACH; i++)
            at[i] = (float)(p + i % 5 + self->rank);
    }
    int n = self->size;
    if (CHECK_OK(coh_all_reduce_group(team, parts, MANY)))
        for (int p = 0; p < MANY && !test_failed(); p++)
            for (int i = 0; i < EACH; i++)
                if (!CHECK_EQ(memory[p * EACH + i], n * (p + i % 5) + n * (n - 1) / 2))
                    break;
    free(memory);
}

static void grouped_nothing(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_group_part empty[2] = {{NULL, NULL, 0, COH_F32, COH_SUM}, {NULL, NULL, 0, COH_I8, COH_MAX}};
    CHECK_OK(coh_all_reduce_group(team, NULL, 0));
    CHECK_OK(coh_all_reduce_group(team, empty, 2));
    CHECK_OK(coh_barrier(self->world));
}

/* A part that is wrong on one member: all get the error, and nothing has been written. */
static void a_wrong_part(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    bool odd = self->rank == self->size - 1;
    float one = 1, sum = 7;
    double two = 2, double_sum = 7;
    char words[32];
    coh_group_part parts[3] = {{&one, &sum, 1, COH_F32, COH_SUM},
                               {&two, odd ? NULL : &double_sum, 1, COH_F64, COH_SUM},
                               {&one, &sum, 1, COH_F32, COH_XOR}};
    snprintf(words, sizeof words, "rank %d", self->size - 1);
    CHECK_REFUSED(coh_all_reduce_group(team, parts, 2), COH_INVALID_ARGUMENT,
                  odd ? "target is NULL|part 1" : words);
    CHECK(sum > 6);
    CHECK_REFUSED(coh_all_reduce_group(team, parts + 2, 1), COH_INVALID_ARGUMENT, "xor|part 0");
    CHECK_REFUSED(coh_all_reduce_group(team, NULL, 3), COH_INVALID_ARGUMENT, "parts is NULL");
    CHECK_OK(coh_all_reduce_group(team, parts, 1));
    CHECK_EQ(sum, self->size);
}

/* The same meetings, but lists that differ: a count, a type, the order. */
static void lists_that_differ(test_rank *self)
{
    static float source[64], target[64];
    bool odd = self->rank == 0;
    for (int way = 0; way < 3; way++) {
        coh_team *copy;
        coh_group_part parts[3] = {{source, target, 10, COH_F32, COH_SUM},
                                   {source, target, 20, COH_F32, COH_SUM},
                                   {source, target, 5, COH_I32, COH_SUM}};
        if (odd && way == 0) {
            parts[0].count = 20;
            parts[1].count = 10;
        } else if (odd && way == 1) {
            parts[2].dtype = COH_U32;
        } else if (odd) {
            parts[2].count = 6;
        }
        CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &copy));
        CHECK_REFUSED(coh_all_reduce_group(copy, parts, 3), COH_MISMATCH, "all_reduce|hash");
    }
}

const test_case conform_coll_grouped[] = {
    CASE(grouped_as_one_by_one, "S37", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(more_than_fits_together, "S37", ON_MAPPED | ON_TCP, SIZE(1) | SIZE(3)),
    CASE(grouped_nothing, "S37", ON_ALL, ANY_SIZE),
    CASE(a_wrong_part, "S42", ON_ALL, SIZE(2) | SIZE(3)),
    CASE(lists_that_differ, "S42", ON_ALL, SIZE(2) | SIZE(3)),
};
CONFORM_COUNT(coll_grouped);
