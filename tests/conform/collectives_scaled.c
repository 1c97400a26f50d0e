/* Reductions of what each member has multiplied by a number of its own. */
#include "conform.h"

#include "collectives/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 5000 };

static double scale_of(int member)
{
    return member % 3 == 0 ? 0.5 : member % 3 == 1 ? -0.3 : 1;
}

/* What a member has: numbers of a few bits, and such as overflow the small types. */
static void draw(coh_dtype dtype, int member, size_t i, void *element)
{
    uint64_t state = (uint64_t)member * 77 + i + 1;
    double value = (double)(test_random(&state) % 64) - 31.5;
    oracle_encode(dtype, i % 101 == 100 ? 3e38 : value, element);
}

/* The same scaled: in f64 or f32, and rounded to the type. */
static void draw_scaled(coh_dtype dtype, int member, size_t i, void *element)
{
    double scale = scale_of(member), value;
    draw(dtype, member, i, element);
    value = oracle_decode(dtype, element);
    if (scale != 1)
        oracle_encode(dtype,
                      dtype == COH_F64 ? value * scale : (double)((float)value * (float)scale),
                      element);
}

/* Of the first `members`, in their order. */
static void expect(coh_dtype dtype, coh_reduce_op op, int members, size_t i, void *element)
{
    unsigned char brought[TEST_RANKS_MAX * 8];
    size_t bytes = coh_dtype_size(dtype);
    for (int member = 0; member < members; member++)
        draw_scaled(dtype, member, i, brought + (size_t)member * bytes);
    oracle_reduce(dtype, op, brought, members, element);
}

static bool same(coh_dtype dtype, coh_reduce_op op, int members, size_t first, size_t count,
                 const unsigned char *got, const char *what)
{
    size_t bytes = coh_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char want[8];
        const unsigned char *have = got + i * bytes;
        expect(dtype, op, members, first + i, want);
        if (memcmp(have, want, bytes) == 0
            || (oracle_is_nan(dtype, have) && oracle_is_nan(dtype, want)))
            continue;
        test_fail("%s of %s: element %zu of %zu is %g, expected %g", what, coh_dtype_name(dtype), i,
                  count, oracle_decode(dtype, have), oracle_decode(dtype, want));
        return false;
    }
    return true;
}

/* Whether every order gives these bits: with messages rows may combine in any. */
static void fill(test_rank *self, coh_dtype dtype, unsigned char *source, size_t count)
{
    for (size_t i = 0; i < count; i++)
        draw(dtype, self->rank, i, source + i * coh_dtype_size(dtype));
}

static bool all_kinds(test_rank *self, coh_dtype dtype, size_t count, unsigned char *source,
                      unsigned char *target)
{
    coh_team *team = coh_team_world(self->world);
    coh_reduction how = COH_REDUCTION_INIT;
    coh_reduce_op op = count % 2 ? COH_MAX : COH_SUM;
    int n = self->size, root = n - 1;
    size_t bytes = count * coh_dtype_size(dtype);
    coh_request *request = NULL;
    how.dtype = dtype;
    how.op = op;
    how.scale = scale_of(self->rank);

    fill(self, dtype, source, count * (size_t)n);
    unsigned char *kept = malloc(bytes * (size_t)n + 1);
    memcpy(kept, source, bytes * (size_t)n);
    bool good = CHECK_OK(coh_all_reduce_with(team, &how, source, target, count))
                && same(dtype, op, n, 0, count, target, "all_reduce");
    memset(target, 0x5a, bytes);
    good = good && CHECK_OK(coh_reduce_with(team, &how, source, target, count, root))
           && (self->rank == root ? same(dtype, op, n, 0, count, target, "reduce")
                                  : CHECK(count == 0 || target[0] == 0x5a));
    good = good
           && CHECK_OK(coh_reduce_scatter_with_start(team, &how, source, target, count, &request))
           && CHECK_OK(coh_request_wait(&request, NULL))
           && same(dtype, op, n, (size_t)self->rank * count, count, target, "reduce_scatter");
    good = good && CHECK_OK(coh_scan_with(team, &how, source, target, count))
           && same(dtype, op, self->rank + 1, 0, count, target, "scan")
           && CHECK(memcmp(source, kept, bytes * (size_t)n) == 0); /* the source is as it was */
    memcpy(target, source, bytes);
    good = good && CHECK_OK(coh_all_reduce_with(team, &how, target, target, count))
           && same(dtype, op, n, 0, count, target, "all_reduce in place");
    free(kept);
    return good;
}

/* COHORT_DETERMINISTIC, so that sums are in the order of the members on every engine. */
static void scaled_by_member(test_rank *self)
{
    static const coh_dtype dtypes[] = {COH_F32, COH_F64, COH_BF16, COH_F16, COH_F8E4M3, COH_F8E5M2};
    static const size_t counts[] = {0, 1, 102, MOST};
    bool slow = strncmp(self->engine, "sim", 3) == 0;
    size_t room = (size_t)(slow ? 102 : MOST) * 8 * (size_t)self->size;
    unsigned char *private_memory = malloc(2 * room), *shared = NULL;
    if (test_has_memory(self->engine) && !CHECK_OK(COH_MALLOC(self->world, 2 * room, &shared)))
        return;
    for (size_t i = 0; i < 4 && !(slow && counts[i] > 102) && !test_failed(); i++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes && !test_failed(); d++)
            if (all_kinds(self, dtypes[d], counts[i], private_memory, private_memory + room)
                && shared)
                all_kinds(self, dtypes[d], counts[i], shared, shared + room);
    if (!test_failed() && shared)
        CHECK_OK(coh_free(self->world, shared));
    free(private_memory);
}

static void scaled_arguments(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int32_t one = 1, target = 5;
    coh_reduction how = COH_REDUCTION_INIT;
    how.dtype = COH_I32;
    how.scale = 0.5;
    CHECK_REFUSED(coh_all_reduce_with(team, &how, &one, &target, 1), COH_INVALID_ARGUMENT,
                  "i32|0.5");
    CHECK_EQ(target, 5);
    how.scale = 1;
    CHECK_OK(coh_all_reduce_with(team, &how, &one, &target, 1));
    CHECK_EQ(target, self->size);
    how.dtype = COH_BOOL;
    how.op = COH_MEAN;
    CHECK_REFUSED(coh_all_reduce_with(team, &how, &one, &target, 1), COH_INVALID_ARGUMENT,
                  "mean|bool");
}

const test_case conform_coll_scaled[] = {
    CASE(scaled_by_member, "S40", ON_ALL, SIZE(1) | SIZE(2) | SIZE(3),
         .environment = "COHORT_DETERMINISTIC=1", .limit_s = 60),
    CASE(scaled_arguments, "F17", ON_ALL, SIZE(1) | SIZE(3)),
};
CONFORM_COUNT(coll_scaled);
