/* sync_half.c - waiting for words of 16 bits, and testing them.
 *
 * Cohort waits for words of 32 bits. Those around the half words are looked at: each time that one
 * of them has changed, the half words are compared again.
 */
#include "internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Half words, and what they are waited to be. */
struct halves {
    const char *routine;
    const uint16_t *words;
    size_t count;
    const int *skip;
    int cmp;
    const uint16_t *values;
    bool each; /* a value for each, else one for all */
    bool is_signed;
};

static bool holds(int word, int cmp, int value)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return word == value;
    case SHMEM_CMP_NE:
        return word != value;
    case SHMEM_CMP_GT:
        return word > value;
    case SHMEM_CMP_GE:
        return word >= value;
    case SHMEM_CMP_LT:
        return word < value;
    default:
        return word <= value;
    }
}

static int widen(const struct halves *halves, uint16_t half)
{
    return halves->is_signed ? (int16_t)half : half;
}

static void check(const struct halves *halves)
{
    shmemi_enter(halves->routine);
    if (halves->count == 0)
        return;
    coh_view view;
    if (coh_view_of(shmemi.world, halves->words, halves->count * sizeof(uint16_t), shmemi.pe, &view)
        != COH_OK)
        shmemi_fail(halves->routine, "ivars=%p, nelems=%zu", (const void *)halves->words,
                    halves->count);
    if ((uintptr_t)halves->words % sizeof(uint16_t) != 0)
        shmemi_refuse(halves->routine, "a short is not at an even address");
}

/* ---- looking ---- */

/* How many hold, and of how many; indices[] are those, where it is not NULL. */
static size_t count_holding(const struct halves *halves, size_t *indices, size_t *relevant)
{
    size_t found = 0;
    *relevant = 0;
    for (size_t i = 0; i < halves->count; i++) {
        if (halves->skip && halves->skip[i])
            continue;
        (*relevant)++;
        uint16_t word = __atomic_load_n(&halves->words[i], __ATOMIC_ACQUIRE);
        uint16_t value = halves->values[halves->each ? i : 0];
        if (!holds(widen(halves, word), halves->cmp, widen(halves, value)))
            continue;
        indices[found++] = i;
    }
    return found;
}

/* ---- waiting ---- */

/* The 32-bit words around them, and as they were before the half words were compared. */
struct cover {
    const uint32_t *words;
    size_t count;
    uint32_t *seen;
};

/* They are read where the heap has them: at its own address, a variable's neighbour may be out of
 * bounds to a sanitizer. */
static struct cover cover_of(const struct halves *halves)
{
    uintptr_t from = (uintptr_t)halves->words & ~(uintptr_t)3;
    uintptr_t to = (uintptr_t)(halves->words + halves->count);
    struct cover cover = {.count = (to - from + 3) / 4};
    void *direct = NULL;
    if (cover.count > 0 && coh_ptr(shmemi.world, (const void *)from, shmemi.pe, &direct) != COH_OK)
        shmemi_fail(halves->routine, "ivars=%p", (const void *)halves->words);
    cover.words = direct;
    cover.seen = calloc(cover.count + 1, sizeof *cover.seen);
    if (!cover.seen)
        shmemi_refuse(halves->routine, "out of memory for the words that are waited for");
    return cover;
}

static void look(struct cover *cover)
{
    for (size_t i = 0; i < cover->count; i++)
        cover->seen[i] = __atomic_load_n(&cover->words[i], __ATOMIC_ACQUIRE);
}

static void wait_for_change(const struct halves *halves, const struct cover *cover)
{
    size_t index;
    coh_watch watch = COH_WATCH_INIT;
    watch.dtype = COH_U32;
    watch.words = cover->words;
    watch.count = cover->count;
    watch.compare = COH_NE;
    watch.values = cover->seen;
    watch.each = 1;
    if (coh_wait_any(shmemi.world, &watch, &index) != COH_OK)
        shmemi_fail(halves->routine, "ivars=%p, nelems=%zu, cmp=%d", (const void *)halves->words,
                    halves->count, halves->cmp);
}

/* Until at least one holds, or all do; the number of those that hold. */
static size_t wait_until(const struct halves *halves, bool all, size_t *indices)
{
    check(halves);
    struct cover cover = cover_of(halves);
    size_t found, relevant;
    for (;;) {
        look(&cover);
        found = count_holding(halves, indices, &relevant);
        if (found == relevant || (found > 0 && !all))
            break;
        wait_for_change(halves, &cover);
    }
    free(cover.seen);
    return found;
}

static size_t *new_indices(const struct halves *halves)
{
    size_t *indices = malloc((halves->count + 1) * sizeof *indices);
    if (!indices)
        shmemi_refuse(halves->routine, "out of memory for the indices");
    return indices;
}

static void wait_all(struct halves halves)
{
    size_t *indices = new_indices(&halves);
    (void)wait_until(&halves, true, indices);
    free(indices);
}

/* One of those that hold, another each time. */
static size_t pick(const size_t *indices, size_t found)
{
    return found > 0 ? indices[shmemi_turn++ % found] : SIZE_MAX;
}

static size_t wait_any(struct halves halves)
{
    size_t *indices = new_indices(&halves);
    size_t first = pick(indices, wait_until(&halves, false, indices));
    free(indices);
    return first;
}

static size_t wait_some(struct halves halves, size_t *indices)
{
    return wait_until(&halves, false, indices);
}

/* ---- testing ---- */

static size_t test_some(struct halves halves, size_t *indices)
{
    size_t relevant;
    check(&halves);
    size_t found = count_holding(&halves, indices, &relevant);
    if (found == 0)
        sched_yield();
    return found;
}

static int test_all(struct halves halves)
{
    size_t relevant, *indices = new_indices(&halves);
    check(&halves);
    bool all = count_holding(&halves, indices, &relevant) == relevant;
    free(indices);
    if (!all)
        sched_yield();
    return all;
}

static size_t test_any(struct halves halves)
{
    size_t *indices = new_indices(&halves);
    size_t first = pick(indices, test_some(halves, indices));
    free(indices);
    return first;
}

/* ---- the routines ---- */

#define HALVES(T, words, count, skip, values, each)                            \
    ((struct halves){SHMEMI_NAME, (const uint16_t *)(words), count, skip, cmp, \
                     (const uint16_t *)(values), each, (T)-1 < 0})
#define ALL(T, values, each) HALVES(T, ivars, nelems, status, values, each)

#define DEFINE_ONE(T, NAME)                                                          \
    SHMEMI_DEFINE(void, shmem_##NAME##_wait_until, (T * ivar, int cmp, T cmp_value)) \
    {                                                                                \
        wait_all(HALVES(T, ivar, 1, NULL, &cmp_value, false));                       \
    }                                                                                \
    SHMEMI_DEFINE(int, shmem_##NAME##_test, (T * ivar, int cmp, T cmp_value))        \
    {                                                                                \
        return test_all(HALVES(T, ivar, 1, NULL, &cmp_value, false));                \
    }
SHMEMI_SHORT_TYPES(DEFINE_ONE)

#define DEFINE_MANY(T, NAME, suffix, V, values, each)                                          \
    SHMEMI_DEFINE(void, shmem_##NAME##_wait_until_all##suffix,                                 \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        wait_all(ALL(T, values, each));                                                        \
    }                                                                                          \
    SHMEMI_DEFINE(size_t, shmem_##NAME##_wait_until_any##suffix,                               \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return wait_any(ALL(T, values, each));                                                 \
    }                                                                                          \
    SHMEMI_DEFINE(                                                                             \
        size_t, shmem_##NAME##_wait_until_some##suffix,                                        \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, V cmp_value)) \
    {                                                                                          \
        return wait_some(ALL(T, values, each), indices);                                       \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##NAME##_test_all##suffix,                                        \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return test_all(ALL(T, values, each));                                                 \
    }                                                                                          \
    SHMEMI_DEFINE(size_t, shmem_##NAME##_test_any##suffix,                                     \
                  (T * ivars, size_t nelems, const int *status, int cmp, V cmp_value))         \
    {                                                                                          \
        return test_any(ALL(T, values, each));                                                 \
    }                                                                                          \
    SHMEMI_DEFINE(                                                                             \
        size_t, shmem_##NAME##_test_some##suffix,                                              \
        (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, V cmp_value)) \
    {                                                                                          \
        return test_some(ALL(T, values, each), indices);                                       \
    }
#define DEFINE_SETS(T, NAME)                     \
    DEFINE_MANY(T, NAME, , T, &cmp_value, false) \
    DEFINE_MANY(T, NAME, _vector, const T *, cmp_value, true)
SHMEMI_SHORT_TYPES(DEFINE_SETS)

SHMEMI_DEFINE(void, shmem_short_wait, (short *ivar, short cmp_value))
{
    const int cmp = SHMEM_CMP_NE;
    wait_all(HALVES(short, ivar, 1, NULL, &cmp_value, false));
}
