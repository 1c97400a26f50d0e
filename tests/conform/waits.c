/* Waits and tests on words of one's own memory: docs/semantics.md S7 and S12. */
#include "conform.h"

#include "core/world/world.h"

#include <pthread.h>
#include <string.h>

static const uint64_t SHORT_NS = 20 * 1000 * 1000;

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

/* ---- comparisons ---- */

static const uint64_t samples[] = {0,
                                   1,
                                   0x7fffffff,
                                   0x80000000,
                                   0xffffffff,
                                   UINT64_C(0x7fffffffffffffff),
                                   UINT64_C(0x8000000000000000),
                                   UINT64_C(0xffffffffffffffff)};

enum { SAMPLES = sizeof samples / sizeof *samples };

/* The order of two samples as words of that type: -1, 0 or 1. */
static int order_of(coh_dtype dtype, uint64_t a, uint64_t b)
{
    switch (dtype) {
    case COH_I32:
        return ((int32_t)(uint32_t)a > (int32_t)(uint32_t)b)
               - ((int32_t)(uint32_t)a < (int32_t)(uint32_t)b);
    case COH_U32:
        return ((uint32_t)a > (uint32_t)b) - ((uint32_t)a < (uint32_t)b);
    case COH_I64:
        return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    default:
        return (a > b) - (a < b);
    }
}

static bool satisfied(coh_compare compare, int order)
{
    const bool table[] = {
        [COH_EQ] = order == 0, [COH_NE] = order != 0, [COH_GT] = order > 0,
        [COH_GE] = order >= 0, [COH_LT] = order < 0,  [COH_LE] = order <= 0,
    };
    return table[compare];
}

static bool compare_once(test_rank *self, void *word, coh_dtype dtype, coh_compare compare,
                         uint64_t have, uint64_t wanted)
{
    coh_watch watch = COH_WATCH_INIT;
    bool holds = satisfied(compare, order_of(dtype, have, wanted));
    size_t index = 9;
    int all = -1;
    memcpy(word, &have, coh_dtype_size(dtype));
    watch.dtype = dtype;
    watch.words = word;
    watch.count = 1;
    watch.compare = compare;
    watch.values = &wanted;
    bool good = CHECK_OK(coh_test_all(self->world, &watch, &all)) && CHECK_EQ(all, holds)
                && CHECK_OK(coh_test_any(self->world, &watch, &index)) && CHECK_EQ(index, !holds);
    if (good && holds)
        good = CHECK_OK(coh_wait_until(self->world, dtype, word, compare, &wanted, COH_ANY_RANK));
    if (!good)
        test_fail("that was comparison %d of %s %#llx with %#llx", (int)compare,
                  coh_dtype_name(dtype), (unsigned long long)have, (unsigned long long)wanted);
    return good;
}

static void every_comparison_and_type(test_rank *self)
{
    static const coh_dtype types[] = {COH_I32, COH_U32, COH_I64, COH_U64};
    void *word;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof(uint64_t), &word)))
        return;
    for (int i = 0; i < 4 * 6 * SAMPLES * SAMPLES; i++)
        if (!compare_once(self, word, types[i % 4], (coh_compare)(COH_EQ + i / 4 % 6),
                          samples[i / 24 % SAMPLES], samples[i / 24 / SAMPLES]))
            return;
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, word));
}

/* ---- any, all, some ---- */

enum { WORDS = 10 };

static coh_watch watch_of(const uint32_t *words, const int *skip, const uint32_t *values, int each)
{
    coh_watch watch = COH_WATCH_INIT;
    watch.dtype = COH_U32;
    watch.words = words;
    watch.count = WORDS;
    watch.skip = skip;
    watch.values = values;
    watch.each = each;
    return watch;
}

/* What test_* and wait_* say of words that do not change, against a count by hand. */
static void ask_about(test_rank *self, const coh_watch *watch, const bool *holds, size_t relevant)
{
    size_t indices[WORDS], found = 99, index = 99, count = 0;
    int all = -1;
    for (size_t i = 0; i < WORDS; i++)
        count += holds[i];
    CHECK_OK(coh_test_some(self->world, watch, indices, &found));
    CHECK_EQ(found, count);
    for (size_t i = 0; i < found && i < WORDS; i++)
        CHECK(indices[i] < WORDS && holds[indices[i]] && (i == 0 || indices[i] != indices[i - 1]));
    CHECK_OK(coh_test_any(self->world, watch, &index));
    CHECK(count ? index < WORDS && holds[index] : index == WORDS);
    CHECK_OK(coh_test_all(self->world, watch, &all));
    CHECK_EQ(all, count == relevant);
    if (count == 0 && relevant > 0)
        return;
    CHECK_OK(coh_wait_some(self->world, watch, indices, &found));
    CHECK_EQ(found, count);
    CHECK_OK(coh_wait_any(self->world, watch, &index));
    CHECK(count ? index < WORDS && holds[index] : index == WORDS);
    if (count == relevant)
        CHECK_OK(coh_wait_all(self->world, watch));
}

static void masks_and_vectors(test_rank *self)
{
    uint64_t random = self->seed + (uint64_t)self->rank + 1;
    uint32_t *words, values[WORDS];
    if (!CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words)))
        return;
    for (int round = 0; round < 300 && !test_failed(); round++) {
        int skip[WORDS], each = round % 2, masked = round / 2 % 2;
        bool holds[WORDS];
        size_t relevant = 0;
        uint64_t range = 1 + test_random(&random) % 3, mask_range = 1 + test_random(&random) % 4;
        for (int i = 0; i < WORDS; i++) {
            words[i] = (uint32_t)(test_random(&random) % range);
            values[i] = (uint32_t)(test_random(&random) % range);
            skip[i] = test_random(&random) % mask_range ? 0 : (int)test_random(&random) | 1;
        }
        for (int i = 0; i < WORDS; i++) {
            bool counts = !masked || !skip[i];
            relevant += counts;
            holds[i] = counts && words[i] == values[each ? i : 0];
        }
        coh_watch watch = watch_of(words, masked ? skip : NULL, values, each);
        ask_about(self, &watch, holds, relevant);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* Nothing to watch is satisfied at once, and gives no index. */
static void empty_watches(test_rank *self)
{
    uint32_t *words, value = 1;
    int skip[WORDS];
    size_t indices[WORDS], found = 99, index = 99;
    int all = -1;
    if (!CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words)))
        return;
    for (int i = 0; i < WORDS; i++)
        skip[i] = i + 1;
    coh_watch watches[] = {watch_of(words, skip, &value, 0), watch_of(words, NULL, &value, 0)};
    watches[1].count = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(coh_wait_any(self->world, &watches[i], &index));
        CHECK_EQ(index, watches[i].count);
        CHECK_OK(coh_wait_all(self->world, &watches[i]));
        CHECK_OK(coh_wait_some(self->world, &watches[i], indices, &found));
        CHECK_EQ(found, 0);
        index = found = 99;
        CHECK_OK(coh_test_any(self->world, &watches[i], &index));
        CHECK_EQ(index, watches[i].count);
        CHECK_OK(coh_test_some(self->world, &watches[i], indices, &found));
        CHECK_EQ(found, 0);
        CHECK_OK(coh_test_all(self->world, &watches[i], &all));
        CHECK_EQ(all, 1);
        all = -1;
    }
    CHECK_OK(coh_free(self->world, words));
}

static void timeouts_pass(test_rank *self)
{
    uint32_t *words, value = 1;
    size_t indices[WORDS], found = 99, index = 99;
    if (!CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words)))
        return;
    coh_watch watch = watch_of(words, NULL, &value, 0);
    watch.timeout_ns = SHORT_NS;
    double began = test_now();
    CHECK_REFUSED(coh_wait_any(self->world, &watch, &index), COH_TIMED_OUT, "coh_wait_any|0.020");
    CHECK_REFUSED(coh_wait_some(self->world, &watch, indices, &found), COH_TIMED_OUT,
                  "coh_wait_some");
    test_store(self, words, &value, sizeof value);
    CHECK_REFUSED(coh_wait_all(self->world, &watch), COH_TIMED_OUT, "coh_wait_all");
    CHECK(test_now() - began >= 3e-9 * (double)SHORT_NS);
    CHECK_EQ(index, 99);
    CHECK_EQ(found, 99);
    CHECK_OK(coh_wait_any(self->world, &watch, &index));
    CHECK_EQ(index, 0);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* The longest time is as good as none. */
static void longest_timeout(test_rank *self)
{
    uint32_t *words, value = 1;
    size_t index = 99;
    if (!CHECK_OK(coh_calloc(self->world, WORDS, sizeof *words, (void **)&words)))
        return;
    coh_watch watch = watch_of(words, NULL, &value, 0);
    watch.timeout_ns = UINT64_MAX;
    if (self->rank == 0)
        CHECK_OK(coh_wait_any(self->world, &watch, &index));
    if (self->rank == 1) {
        test_sleep(0.05);
        CHECK_OK(coh_put(self->world, &words[2], &value, sizeof value, 0));
    }
    CHECK_EQ(index, self->rank == 0 ? 2 : 99);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
}

/* ---- what satisfies a wait ---- */

struct mail {
    uint64_t flag;
    uint64_t answer;
    unsigned char data[1000];
};

static bool await(test_rank *self, const uint64_t *word, uint64_t value, int from)
{
    return CHECK_OK(coh_wait_until(self->world, COH_U64, word, COH_GE, &value, from));
}

/* A plain store of a mapped peer, by the address that coh_ptr gives; the data comes before the
 * flag. */
static void satisfied_by_a_store(test_rank *self)
{
    struct mail *mail, *theirs;
    if (test_looks_for_races()) {
        test_skip("the race check has no coh_ptr");
        return;
    }
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *mail, (void **)&mail))
        || !CHECK_OK(coh_ptr(self->world, mail, right_of(self), (void **)&theirs)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 200);
    for (uint64_t i = 1; i <= rounds; i++) {
        if (self->rank == 0 && i % 50 == 0)
            test_sleep(0.003); /* so that the others sleep in their waits */
        test_fill(theirs->data, sizeof theirs->data, i);
        __atomic_store_n(&theirs->flag, i, __ATOMIC_RELEASE);
        if (!await(self, &mail->flag, i, left_of(self))
            || !CHECK_EQ(test_differs(mail->data, sizeof mail->data, i), sizeof mail->data)
            || !CHECK_OK(coh_barrier(self->world)))
            return;
    }
    CHECK_OK(coh_free(self->world, mail));
}

/* A put of the flag behind a fence: an acquire, so that plain loads see the data. */
static void satisfied_by_a_put(test_rank *self)
{
    unsigned char data[1000];
    struct mail *mail;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *mail, (void **)&mail)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    for (uint64_t i = 1; i <= rounds; i++) {
        int right = right_of(self), left = left_of(self);
        test_fill(data, sizeof data, i);
        CHECK_OK(coh_put(self->world, mail->data, data, sizeof data, right));
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_put(self->world, &mail->flag, &i, sizeof i, right));
        if (!await(self, &mail->flag, i, left)
            || !CHECK_EQ(test_differs(mail->data, sizeof mail->data, i), sizeof mail->data)
            || !CHECK_OK(coh_put(self->world, &mail->answer, &i, sizeof i, left))
            || !await(self, &mail->answer, i, right))
            return;
    }
    CHECK_OK(coh_free(self->world, mail));
}

struct second {
    test_rank *self;
    struct mail *mail;
    uint64_t rounds;
};

static void *answer_each(void *arg)
{
    struct second *second = arg;
    struct mail *mail = second->mail;
    test_this_is_rank(second->self->rank);
    for (uint64_t i = 1; i <= second->rounds; i++) {
        if (!await(second->self, &mail->flag, i, COH_ANY_RANK)
            || !CHECK_EQ(test_differs(mail->data, 100, i), 100))
            return NULL;
        test_fill(mail->data, 100, i + 1);
        __atomic_store_n(&mail->answer, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Stores of another thread of this rank, also where this rank's memory is not mapped by others. */
static void satisfied_by_a_thread(test_rank *self)
{
    pthread_t thread;
    struct mail *mail;
    struct second second = {.self = self, .rounds = (uint64_t)test_scaled(self, 200)};
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *mail, (void **)&mail)))
        return;
    second.mail = mail;
    if (!CHECK(pthread_create(&thread, NULL, answer_each, &second) == 0))
        return;
    for (uint64_t i = 1; i <= second.rounds; i++) {
        test_fill(mail->data, 100, i);
        __atomic_store_n(&mail->flag, i, __ATOMIC_RELEASE);
        if (!await(self, &mail->answer, i, self->rank)
            || !CHECK_EQ(test_differs(mail->data, 100, i + 1), 100))
            break;
    }
    pthread_join(thread, NULL);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, mail));
}

/* Words come from all ranks in turn; some, any and all see each. */
static void words_from_all_ranks(test_rank *self)
{
    coh_world *world = self->world;
    size_t size = (size_t)self->size, indices[8], found = 0, index = 0;
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(world, size, sizeof *words, (void **)&words)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 100);
    for (uint64_t i = 1; i <= rounds; i++) {
        coh_watch watch = COH_WATCH_INIT;
        watch.words = words;
        watch.count = size;
        watch.compare = COH_GE;
        watch.values = &i;
        for (int rank = 0; rank < self->size; rank++)
            CHECK_OK(coh_signal(world, &words[self->rank], 1, COH_SIGNAL_ADD, rank));
        CHECK_OK(coh_wait_some(world, &watch, indices, &found));
        CHECK(found >= 1 && found <= size);
        CHECK_OK(coh_wait_any(world, &watch, &index));
        CHECK(index < size);
        if (!CHECK_OK(coh_wait_all(world, &watch)) || !CHECK_OK(coh_sync(world)))
            return;
    }
    CHECK_OK(coh_free(world, words));
}

/* ---- refused ---- */

static void bad_watches_refused(test_rank *self)
{
    uint32_t *words, value = 1, mine[WORDS] = {0};
    size_t index = 99, indices[WORDS], found = 99;
    int all = 99;
    coh_world *world = self->world;
    if (!CHECK_OK(coh_calloc(world, WORDS, sizeof *words, (void **)&words)))
        return;
    const coh_watch good = watch_of(words, NULL, &value, 0);
    struct {
        coh_watch watch;
        coh_status status;
    } rows[12];
    int count = 0;
#define BAD(field, wrong, expected)        \
    do {                                   \
        rows[count].watch = good;          \
        rows[count].watch.field = (wrong); \
        rows[count++].status = (expected); \
    } while (0)
    BAD(dtype, COH_F32, COH_INVALID_ARGUMENT);
    BAD(dtype, COH_I16, COH_INVALID_ARGUMENT);
    BAD(dtype, (coh_dtype)77, COH_INVALID_ARGUMENT);
    BAD(words, mine, COH_NOT_SYMMETRIC);
    BAD(words, NULL, COH_NOT_SYMMETRIC);
    BAD(words, (char *)words + 2, COH_BAD_ALIGNMENT);
    BAD(compare, (coh_compare)0, COH_INVALID_ARGUMENT);
    BAD(compare, (coh_compare)7, COH_INVALID_ARGUMENT);
    BAD(values, NULL, COH_INVALID_ARGUMENT);
    BAD(from, self->size, COH_UNKNOWN_RANK);
    BAD(from, -2, COH_UNKNOWN_RANK);
    BAD(size, 3, COH_INVALID_ARGUMENT);
#undef BAD
    for (int i = 0; i < count; i++) {
        const coh_watch *watch = &rows[i].watch;
        CHECK_REFUSED(coh_wait_any(world, watch, &index), rows[i].status, "coh_wait_any");
        CHECK_STATUS(coh_wait_all(world, watch), rows[i].status);
        CHECK_STATUS(coh_wait_some(world, watch, indices, &found), rows[i].status);
        CHECK_STATUS(coh_test_any(world, watch, &index), rows[i].status);
        CHECK_STATUS(coh_test_all(world, watch, &all), rows[i].status);
        if (!CHECK_STATUS(coh_test_some(world, watch, indices, &found), rows[i].status))
            test_fail("that was row %d", i);
    }
    coh_watch huge = good;
    huge.count = SIZE_MAX / 2;
    coh_status status = coh_test_any(world, &huge, &index);
    CHECK(status == COH_INVALID_ARGUMENT || status == COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_wait_any(world, &good, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_wait_any(world, NULL, &index), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_wait_some(world, &good, NULL, &found), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_wait_some(world, &good, indices, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_test_all(world, &good, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_wait_until(world, COH_U32, words, COH_EQ, NULL, 0), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_wait_until(world, COH_U32, mine, COH_EQ, &value, 0), COH_NOT_SYMMETRIC);
    CHECK(index == 99 && found == 99 && all == 99);
    CHECK_OK(coh_free(world, words));
}

/* ---- sleeping ---- */

static bool all_others_sleep(const test_rank *self)
{
    bool asleep = true;
    for (int rank = 0; rank < self->size; rank++)
        asleep =
            asleep
            && (rank == self->rank || atomic_load(&self->world->peers[rank].slot->sleepers) > 0);
    return asleep;
}

static coh_status meet_by_barrier(coh_world *world)
{
    return coh_barrier(world);
}

static coh_status meet_by_all_reduce(coh_world *world)
{
    int32_t one = 1, sum = 0;
    coh_status status = coh_all_reduce(coh_team_world(world), COH_I32, COH_SUM, &one, &sum, 1);
    CHECK(status != COH_OK || sum == coh_size(world));
    return status;
}

/* The last one comes when all others sleep, and must have rung the bell of each. They come when
 * they have awoken from what they waited for before. Of three, two would wait for each other
 * first, and then anew. */
static void come_last(test_rank *self, coh_status (*meet)(coh_world *world), uint64_t arrived)
{
    unsigned bells[TEST_RANKS_MAX];
    if (!CHECK(test_await(self->shared, arrived, 30)))
        return;
    for (double end = test_now() + 30; !all_others_sleep(self) && test_now() < end;)
        test_sleep(0.001);
    if (!CHECK(all_others_sleep(self)))
        return;
    for (int rank = 0; rank < self->size; rank++)
        bells[rank] = atomic_load(&self->world->peers[rank].slot->bell);
    CHECK_OK(meet(self->world));
    for (int rank = 0; rank < self->size; rank++)
        CHECK(rank == self->rank
              || atomic_load(&self->world->peers[rank].slot->bell) != bells[rank]);
}

static void sleepers_are_rung(test_rank *self)
{
    coh_status (*const meets[])(coh_world *) = {meet_by_barrier, meet_by_all_reduce};
    _Atomic uint64_t *arrivals = self->shared;
    uint64_t before = atomic_load(arrivals);
    CHECK_OK(coh_barrier(self->world));
    for (size_t i = 0; i < sizeof meets / sizeof *meets; i++) {
        if (self->rank == 0) {
            come_last(self, meets[i], before + (i + 1) * (uint64_t)(self->size - 1));
        } else {
            atomic_fetch_add(arrivals, 1);
            CHECK_OK(meets[i](self->world));
        }
    }
}

/* A number of looks that the user set is not changed by what waits learn. */
static void forced_looks_stay(test_rank *self)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cohi_world_spins(self->world), 7);
        CHECK(!self->world->company.own_core);
        sleepers_are_rung(self);
    }
}

const test_case conform_waits[] = {
    CASE(every_comparison_and_type, "S12", ON_MEMORY, SIZE(1) | SIZE(2), .limit_s = 60),
    CASE(masks_and_vectors, "S12", ON_MEMORY, SIZE(1) | SIZE(3), .limit_s = 60),
    CASE(empty_watches, "S12", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(longest_timeout, "S12", ON_MEMORY, FROM_TWO),
    CASE(timeouts_pass, "S12", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(satisfied_by_a_store, "S7 S12", ON_MAPPED, ANY_SIZE, .limit_s = 60),
    CASE(satisfied_by_a_put, "S7 S12", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(satisfied_by_a_thread, "S7 S12", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(words_from_all_ranks, "S12", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(bad_watches_refused, "S12", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(sleepers_are_rung, "S12", ON_MAPPED, SIZE(2), .limit_s = 60),
    CASE(forced_looks_stay, "S12", ON_MAPPED, SIZE(2), .limit_s = 60,
         .environment = "COHORT_SPIN=7"),
};
CONFORM_COUNT(waits);
