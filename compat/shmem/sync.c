/* sync.c - waiting for words of one's own memory, and testing them. */
#include "internal.h"

#include <sched.h>

_Thread_local size_t shmemi_turn;

/* ---- one word ---- */

static _Noreturn __attribute__((noinline, cold)) void fail_wait(const char *routine,
                                                                const void *ivar, int cmp)
{
    shmemi_enter(routine);
    shmemi_fail(routine, "ivar=%p, cmp=%d", ivar, cmp);
}

SHMEMI_INLINE void wait_word(const char *routine, coh_dtype dtype, const void *ivar, int cmp,
                             const void *value)
{
    coh_status status =
        coh_wait_until(shmemi.world, dtype, ivar, (coh_compare)cmp, value, COH_ANY_RANK);
    if (!SHMEMI_LIKELY(status == COH_OK))
        fail_wait(routine, ivar, cmp);
}

/* ---- many words ---- */

static coh_watch watch_of(const char *routine, coh_dtype dtype, const void *ivars, size_t nelems,
                          const int *status, int cmp, const void *values, bool each)
{
    shmemi_enter(routine);
    coh_watch watch = COH_WATCH_INIT;
    watch.dtype = dtype;
    watch.words = ivars;
    watch.count = nelems;
    watch.skip = status;
    watch.compare = (coh_compare)cmp;
    watch.values = values;
    watch.each = each;
    return watch;
}

static void check(const char *routine, coh_status status, const coh_watch *watch)
{
    if (status != COH_OK)
        shmemi_fail(routine, "ivars=%p, nelems=%zu, cmp=%d", watch->words, watch->count,
                    (int)watch->compare);
}

/* A program that tests in a loop would keep the core from the PE that it waits for. */
static void let_others_run(bool found)
{
    if (!found)
        sched_yield();
}

static void wait_all(const char *routine, coh_watch watch)
{
    check(routine, coh_wait_all(shmemi.world, &watch), &watch);
}

/* A part of the watch: `count` words from word `first` on. */
static coh_watch part_of(const coh_watch *watch, size_t first, size_t count)
{
    coh_watch part = *watch;
    size_t bytes = coh_dtype_size(watch->dtype);
    part.words = (const char *)watch->words + first * bytes;
    part.count = count;
    part.skip = watch->skip ? watch->skip + first : NULL;
    part.values = (const char *)watch->values + (watch->each ? first * bytes : 0);
    return part;
}

/* One that holds, SIZE_MAX when none does. Each call begins at another word, so that none is
 * passed over for ever: the standard asks for it. */
static size_t find_any(const char *routine, const coh_watch *watch)
{
    size_t index = 0, begin = watch->count ? shmemi_turn++ % watch->count : 0;
    coh_watch part = part_of(watch, begin, watch->count - begin);
    check(routine, coh_test_any(shmemi.world, &part, &index), watch);
    if (index < part.count)
        return begin + index;
    part = part_of(watch, 0, begin);
    check(routine, coh_test_any(shmemi.world, &part, &index), watch);
    return index < part.count ? index : SIZE_MAX;
}

static size_t wait_any(const char *routine, coh_watch watch)
{
    size_t index = find_any(routine, &watch);
    if (index != SIZE_MAX)
        return index;
    check(routine, coh_wait_any(shmemi.world, &watch, &index), &watch);
    return index == watch.count ? SIZE_MAX : index;
}

static size_t wait_some(const char *routine, coh_watch watch, size_t *indices)
{
    size_t found = 0;
    if (watch.count > 0)
        check(routine, coh_wait_some(shmemi.world, &watch, indices, &found), &watch);
    return found;
}

static int test_all(const char *routine, coh_watch watch)
{
    int all = 0;
    check(routine, coh_test_all(shmemi.world, &watch, &all), &watch);
    let_others_run(all);
    return all != 0;
}

static size_t test_any(const char *routine, coh_watch watch)
{
    size_t index = find_any(routine, &watch);
    let_others_run(index != SIZE_MAX);
    return index;
}

static size_t test_some(const char *routine, coh_watch watch, size_t *indices)
{
    size_t found = 0;
    if (watch.count > 0)
        check(routine, coh_test_some(shmemi.world, &watch, indices, &found), &watch);
    let_others_run(found > 0);
    return found;
}

/* ---- by type ---- */

#define WATCH(T, values, each) \
    watch_of(SHMEMI_NAME, SHMEMI_DTYPE(T), ivars, nelems, status, cmp, values, each)

#define DEFINE_ONE(T, NAME)                                                          \
    SHMEMI_DEFINE(void, shmem_##NAME##_wait_until, (T * ivar, int cmp, T cmp_value)) \
    {                                                                                \
        wait_word(SHMEMI_NAME, SHMEMI_DTYPE(T), ivar, cmp, &cmp_value);              \
    }                                                                                \
    SHMEMI_DEFINE(int, shmem_##NAME##_test, (T * ivar, int cmp, T cmp_value))        \
    {                                                                                \
        T *ivars = ivar;                                                             \
        const size_t nelems = 1;                                                     \
        const int *status = NULL;                                                    \
        return test_all(SHMEMI_NAME, WATCH(T, &cmp_value, false));                   \
    }
SHMEMI_AMO_TYPES(DEFINE_ONE)

/* With one value for all, and with one for each. */
#define DEFINE_MANY(T, NAME, suffix, V, values, each)                                          \
    SHMEMI_DEFINE(void, shmem_##NAME##_wait_until_all##suffix,                                 \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        wait_all(SHMEMI_NAME, WATCH(T, values, each));                                         \
    }                                                                                          \
    SHMEMI_DEFINE(size_t, shmem_##NAME##_wait_until_any##suffix,                               \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return wait_any(SHMEMI_NAME, WATCH(T, values, each));                                  \
    }                                                                                          \
    SHMEMI_DEFINE(                                                                             \
        size_t, shmem_##NAME##_wait_until_some##suffix,                                        \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, V cmp_value)) \
    {                                                                                          \
        return wait_some(SHMEMI_NAME, WATCH(T, values, each), indices);                        \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##NAME##_test_all##suffix,                                        \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return test_all(SHMEMI_NAME, WATCH(T, values, each));                                  \
    }                                                                                          \
    SHMEMI_DEFINE(size_t, shmem_##NAME##_test_any##suffix,                                     \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return test_any(SHMEMI_NAME, WATCH(T, values, each));                                  \
    }                                                                                          \
    SHMEMI_DEFINE(                                                                             \
        size_t, shmem_##NAME##_test_some##suffix,                                              \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, V cmp_value)) \
    {                                                                                          \
        return test_some(SHMEMI_NAME, WATCH(T, values, each), indices);                        \
    }
#define DEFINE_SETS(T, NAME)                     \
    DEFINE_MANY(T, NAME, , T, &cmp_value, false) \
    DEFINE_MANY(T, NAME, _vector, const T *, cmp_value, true)
SHMEMI_AMO_TYPES(DEFINE_SETS)

/* ---- deprecated ---- */

SHMEMI_DEFINE(void, shmem_wait_until, (long *ivar, int cmp, long cmp_value))
{
    wait_word(SHMEMI_NAME, SHMEMI_DTYPE(long), ivar, cmp, &cmp_value);
}

SHMEMI_DEFINE(void, shmem_wait, (long *ivar, long cmp_value))
{
    wait_word(SHMEMI_NAME, SHMEMI_DTYPE(long), ivar, SHMEM_CMP_NE, &cmp_value);
}

#define DEFINE_OLD_WAIT(T, NAME)                                                 \
    SHMEMI_DEFINE(void, shmem_##NAME##_wait, (T * ivar, T cmp_value))            \
    {                                                                            \
        wait_word(SHMEMI_NAME, SHMEMI_DTYPE(T), ivar, SHMEM_CMP_NE, &cmp_value); \
    }
SHMEMI_OLD_AMO_TYPES(DEFINE_OLD_WAIT)
