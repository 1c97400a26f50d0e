/* reduce.c - reductions and scans of teams.
 *
 * What Cohort has a type for is one call of it. long double and complex numbers are gathered, a
 * piece at a time, and combined here in the order of the PEs, so that all get the same bits.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 10 }; /* of one PE; two levels of cache hold those of a few */

static int finish(const char *routine, coh_status status, const void *dest, const void *source,
                  size_t count)
{
    if (status != COH_OK)
        shmemi_fail(routine, "dest=%p, source=%p, nreduce=%zu", dest, source, count);
    return 0;
}

/* The contributions of members [0, until), one behind the other in `all`, combined into the
 * first. */
static void combine_members(const struct shmemi_kind *kind, char *all, size_t bytes, int until)
{
    for (int member = 1; member < until; member++)
        kind->combine(all, all + bytes * (size_t)member, bytes / kind->size);
}

/* dest = what members [0, until) have, combined; zero where there are none. */
static coh_status gather_and_combine(const char *routine, coh_team *team,
                                     const struct shmemi_kind *kind, char *dest, const char *source,
                                     size_t count, int until)
{
    int members = coh_team_size(team);
    if (members < 0)
        return COH_INVALID_ARGUMENT;
    size_t piece = PIECE_BYTES / kind->size;
    size_t room = (count < piece ? count : piece) * kind->size;
    char *all = malloc(room * (size_t)members + 1);
    if (!all)
        shmemi_refuse(routine, "out of memory for the members' contributions");
    coh_status status = COH_OK;
    size_t done = 0, total = shmemi_bytes(count, kind->size);
    do {
        size_t bytes = total - done < room ? total - done : room;
        status = coh_all_gather(team, COH_U8, source + done, all, bytes);
        if (status != COH_OK)
            break;
        combine_members(kind, all, bytes, until);
        if (until > 0)
            memcpy(dest + done, all, bytes);
        else
            memset(dest + done, 0, bytes);
        done += bytes;
    } while (done < total);
    free(all);
    return status;
}

int shmemi_team_reduce(const char *routine, shmem_team_t handle, const struct shmemi_kind *kind,
                       void *dest, const void *source, size_t count)
{
    shmemi_enter(routine);
    coh_team *team = shmemi_team(handle)->team;
    coh_status status =
        kind->dtype
            ? coh_all_reduce(team, kind->dtype, kind->op, source, dest, count)
            : gather_and_combine(routine, team, kind, dest, source, count, coh_team_size(team));
    return finish(routine, status, dest, source, count);
}

static int scan(const char *routine, shmem_team_t handle, const struct shmemi_kind *kind,
                bool inclusive, void *dest, const void *source, size_t count)
{
    shmemi_enter(routine);
    coh_team *team = shmemi_team(handle)->team;
    coh_status status;
    if (!kind->dtype)
        status = gather_and_combine(routine, team, kind, dest, source, count,
                                    coh_team_index(team) + inclusive);
    else if (inclusive)
        status = coh_scan(team, kind->dtype, COH_SUM, source, dest, count);
    else
        status = coh_scan_exclusive(team, kind->dtype, COH_SUM, source, dest, count);
    return finish(routine, status, dest, source, count);
}

/* ---- combining what Cohort has no type for ---- */

#define DEFINE_COMBINE(T, NAME, name, expression)                                   \
    static void combine_##NAME##_##name(void *into, const void *from, size_t count) \
    {                                                                               \
        T *a = into;                                                                \
        const T *b = from;                                                          \
        for (size_t i = 0; i < count; i++)                                          \
            a[i] = (expression);                                                    \
    }
#define DEFINE_ARITHMETIC(T, NAME)            \
    DEFINE_COMBINE(T, NAME, sum, a[i] + b[i]) \
    DEFINE_COMBINE(T, NAME, prod, a[i] * b[i])
DEFINE_ARITHMETIC(long double, longdouble)
SHMEMI_COMPLEX_TYPES(DEFINE_ARITHMETIC)
DEFINE_COMBINE(long double, longdouble, max, b[i] > a[i] || b[i] != b[i] ? b[i] : a[i])
DEFINE_COMBINE(long double, longdouble, min, b[i] < a[i] || b[i] != b[i] ? b[i] : a[i])

/* ---- the routines ---- */

/* A reduction whose `combine` is needed (of a type without a dtype), or is not. */
#define DEFINE_REDUCE(T, name, cohort, combiner)                                               \
    SHMEMI_DEFINE(int, shmem_##name##_reduce,                                                  \
                  (shmem_team_t team, T * dest, const T *source, size_t nreduce))              \
    {                                                                                          \
        static const struct shmemi_kind kind = {SHMEMI_DTYPE(T), cohort, sizeof(T), combiner}; \
        return shmemi_team_reduce(SHMEMI_NAME, team, &kind, dest, source, nreduce);            \
    }
#define DEFINE_SCANS(T, NAME, combiner)                                                         \
    SHMEMI_DEFINE(int, shmem_##NAME##_sum_inscan,                                               \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems))                \
    {                                                                                           \
        static const struct shmemi_kind kind = {SHMEMI_DTYPE(T), COH_SUM, sizeof(T), combiner}; \
        return scan(SHMEMI_NAME, team, &kind, true, dest, source, nelems);                      \
    }                                                                                           \
    SHMEMI_DEFINE(int, shmem_##NAME##_sum_exscan,                                               \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems))                \
    {                                                                                           \
        static const struct shmemi_kind kind = {SHMEMI_DTYPE(T), COH_SUM, sizeof(T), combiner}; \
        return scan(SHMEMI_NAME, team, &kind, false, dest, source, nelems);                     \
    }

#define DEFINE_BITS(T, NAME)                    \
    DEFINE_REDUCE(T, NAME##_and, COH_AND, NULL) \
    DEFINE_REDUCE(T, NAME##_or, COH_OR, NULL)   \
    DEFINE_REDUCE(T, NAME##_xor, COH_XOR, NULL)
SHMEMI_BITWISE_TYPES(DEFINE_BITS)

#define DEFINE_NUMBERS(T, NAME)                      \
    DEFINE_REDUCE(T, NAME##_sum, COH_SUM, NULL)      \
    DEFINE_REDUCE(T, NAME##_prod, COH_PRODUCT, NULL) \
    DEFINE_REDUCE(T, NAME##_max, COH_MAX, NULL)      \
    DEFINE_REDUCE(T, NAME##_min, COH_MIN, NULL)      \
    DEFINE_SCANS(T, NAME, NULL)
SHMEMI_NUMBERS(DEFINE_NUMBERS)

#define DEFINE_UNTYPED(T, NAME)                                       \
    DEFINE_REDUCE(T, NAME##_sum, COH_SUM, combine_##NAME##_sum)       \
    DEFINE_REDUCE(T, NAME##_prod, COH_PRODUCT, combine_##NAME##_prod) \
    DEFINE_SCANS(T, NAME, combine_##NAME##_sum)
DEFINE_UNTYPED(long double, longdouble)
SHMEMI_COMPLEX_TYPES(DEFINE_UNTYPED)
DEFINE_REDUCE(long double, longdouble_max, COH_MAX, combine_longdouble_max)
DEFINE_REDUCE(long double, longdouble_min, COH_MIN, combine_longdouble_min)
