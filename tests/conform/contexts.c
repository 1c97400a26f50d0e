/* Independent streams of one-sided operations, context by context:
 * docs/semantics.md S1, S4 and S5. */
#include "conform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS_MOST = 62, LANES = 3 };

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

/* ---- the same calls ---- */

static void transfers_by_context(test_rank *self)
{
    enum { BYTES = 3000 };
    unsigned char *memory, sent[BYTES], found[BYTES];
    coh_context *context;
    int right = right_of(self);
    if (!CHECK_OK(coh_calloc(self->world, 2, BYTES, (void **)&memory))
        || !CHECK_OK(coh_context_create(self->world, &context)))
        return;
    test_fill(sent, BYTES, (uint64_t)self->rank);
    CHECK_OK(coh_context_put(context, memory, sent, BYTES, right));
    CHECK_OK(coh_context_put_nbi(context, memory + BYTES, sent, BYTES, right));
    CHECK_OK(coh_context_quiet(context));
    memset(sent, 0, BYTES);
    CHECK_OK(coh_context_get(context, found, memory, BYTES, right));
    CHECK_EQ(test_differs(found, BYTES, (uint64_t)self->rank), BYTES);
    memset(found, 0, BYTES);
    CHECK_OK(coh_context_get_nbi(context, found, memory + BYTES, BYTES, right));
    CHECK_OK(coh_context_quiet(context));
    CHECK_EQ(test_differs(found, BYTES, (uint64_t)self->rank), BYTES);
    CHECK_OK(coh_context_destroy(context));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(test_differs(memory, BYTES, (uint64_t)left_of(self)), BYTES);
    CHECK_OK(coh_free(self->world, memory));
}

static void words_by_context(test_rank *self)
{
    coh_context *context;
    uint64_t *words, value = 5, other = 9, got = 99;
    int right = right_of(self), left = left_of(self);
    if (!CHECK_OK(coh_calloc(self->world, 3, sizeof *words, (void **)&words))
        || !CHECK_OK(coh_context_create(self->world, &context)))
        return;
    CHECK_OK(coh_context_atomic(context, COH_ATOMIC_ADD, COH_U64, &words[0], &value, right));
    CHECK_OK(coh_context_quiet(context));
    CHECK_OK(
        coh_context_atomic_fetch(context, COH_ATOMIC_ADD, COH_U64, &words[0], &value, &got, right));
    CHECK_EQ(got, 5);
    value = 10;
    CHECK_OK(
        coh_context_atomic_compare_swap(context, COH_U64, &words[0], &value, &other, &got, right));
    CHECK_EQ(got, 10);
    CHECK_OK(coh_context_put_signal(context, &words[1], &other, sizeof other, &words[2], 4,
                                    COH_SIGNAL_ADD, right));
    value = 4;
    CHECK_OK(coh_wait_until(self->world, COH_U64, &words[2], COH_EQ, &value, left));
    CHECK_EQ(words[1], 9);
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(words[0], 9);
    CHECK_OK(coh_context_destroy(context));
    CHECK_OK(coh_free(self->world, words));
}

/* Row 1 within one context. */
static void fence_orders_its_context(test_rank *self)
{
    struct box {
        uint64_t flag, answer;
        unsigned char data[2000];
    } * box;
    unsigned char data[2000];
    coh_context *context;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *box, (void **)&box))
        || !CHECK_OK(coh_context_create(self->world, &context)))
        return;
    uint64_t rounds = (uint64_t)test_scaled(self, 200);
    for (uint64_t i = 1; i <= rounds; i++) {
        test_fill(data, sizeof data, i);
        CHECK_OK(coh_context_put(context, box->data, data, sizeof data, right_of(self)));
        CHECK_OK(coh_context_fence(context));
        CHECK_OK(coh_context_put(context, &box->flag, &i, sizeof i, right_of(self)));
        if (!CHECK_OK(coh_wait_until(self->world, COH_U64, &box->flag, COH_EQ, &i, left_of(self)))
            || !CHECK_EQ(test_differs(box->data, sizeof data, i), sizeof data)
            || !CHECK_OK(coh_barrier(self->world)))
            return;
    }
    CHECK_OK(coh_context_destroy(context));
    CHECK_OK(coh_free(self->world, box));
}

/* ---- independence, on the simulator ---- */

enum { ATTEMPTS = 48 };

/* Quiet of `other` does not complete what `context` put; its own does. */
static void quiet_of_another(test_rank *self, uint64_t *words, coh_context *context,
                             coh_context *other)
{
    uint64_t one = 1, found;
    for (int i = 0; i < ATTEMPTS && self->rank == 0; i++) {
        uint64_t *word = &words[2 * i];
        CHECK_OK(coh_context_put(context, word, &one, sizeof one, 1));
        CHECK_OK(coh_context_put(other, word + 1, &one, sizeof one, 1));
        CHECK_OK(coh_context_quiet(other));
        CHECK_OK(coh_get(self->world, &found, word, sizeof found, 1));
        conform_note(self->shared, found == 1);
        CHECK_OK(coh_get(self->world, &found, word + 1, sizeof found, 1));
        CHECK_EQ(found, 1);
        CHECK_OK(coh_context_quiet(context));
        CHECK_OK(coh_get(self->world, &found, word, sizeof found, 1));
        CHECK_EQ(found, 1);
    }
}

/* A fence of `other` does not order two puts of `context`. */
static void fence_of_another(test_rank *self, uint64_t *words, coh_context *context,
                             coh_context *other)
{
    uint64_t one = 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t *word = &words[2 * i];
        if (self->rank == 0) {
            CHECK_OK(coh_context_put(context, word, &one, sizeof one, 1));
            CHECK_OK(coh_context_fence(other));
            CHECK_OK(coh_fence(self->world));
            CHECK_OK(coh_context_put(context, word + 1, &one, sizeof one, 1));
        } else if (CHECK_OK(coh_wait_until(self->world, COH_U64, word + 1, COH_EQ, &one, 0))) {
            conform_note(self->shared, __atomic_load_n(word, __ATOMIC_ACQUIRE) == 1);
        }
    }
    if (self->rank == 0)
        CHECK_OK(coh_context_quiet(context));
}

static void with_two_contexts(test_rank *self,
                              void (*body)(test_rank *self, uint64_t *words, coh_context *context,
                                           coh_context *other))
{
    uint64_t *words;
    coh_context *context, *other;
    if (!CHECK_OK(coh_calloc(self->world, 2 * ATTEMPTS, sizeof *words, (void **)&words))
        || !CHECK_OK(coh_context_create(self->world, &context))
        || !CHECK_OK(coh_context_create(self->world, &other)))
        return;
    body(self, words, context, other);
    CHECK_OK(coh_context_destroy(other));
    CHECK_OK(coh_context_destroy(context));
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_finalize(self->world));
}

static void quiet_world(test_rank *self)
{
    with_two_contexts(self, quiet_of_another);
}

static void fence_world(test_rank *self)
{
    with_two_contexts(self, fence_of_another);
}

static void quiet_is_per_context(test_rank *self)
{
    conform_until_both_seen(self, 2, quiet_world);
}

static void fence_is_per_context(test_rank *self)
{
    conform_until_both_seen(self, 2, fence_world);
}

/* ---- threads ---- */

struct lane {
    test_rank *self;
    coh_context *context; /* NULL: makes its own */
    uint64_t *words;
    int index;
};

static void *drive_lane(void *arg)
{
    struct lane *lane = arg;
    test_rank *self = lane->self;
    coh_context *context = lane->context;
    uint64_t rounds = (uint64_t)test_scaled(self, 500), found = 0, one = 1;
    test_this_is_rank(self->rank);
    if (!context && !CHECK_OK(coh_context_create(self->world, &context)))
        return NULL;
    for (uint64_t i = 1; i <= rounds; i++) {
        uint64_t *word = &lane->words[lane->index];
        if (!CHECK_OK(coh_context_put_nbi(context, word, &i, sizeof i, right_of(self)))
            || !CHECK_OK(coh_context_atomic(context, COH_ATOMIC_ADD, COH_U64, &lane->words[LANES],
                                            &one, right_of(self)))
            || !CHECK_OK(coh_context_quiet(context))
            || !CHECK_OK(coh_context_get(context, &found, word, sizeof found, right_of(self)))
            || !CHECK_EQ(found, i))
            return NULL;
    }
    if (!lane->context)
        CHECK_OK(coh_context_destroy(context));
    return NULL;
}

static void drive_lanes(test_rank *self, coh_context *context)
{
    pthread_t threads[LANES];
    struct lane lanes[LANES];
    uint64_t *words;
    if (!CHECK_OK(coh_calloc(self->world, LANES + 1, sizeof *words, (void **)&words)))
        return;
    for (int i = 0; i < LANES; i++) {
        lanes[i] = (struct lane){self, context, words, i};
        CHECK(pthread_create(&threads[i], NULL, drive_lane, &lanes[i]) == 0);
    }
    for (int i = 0; i < LANES; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(words[LANES], LANES * test_scaled(self, 500));
    CHECK_OK(coh_free(self->world, words));
}

static void a_context_for_each_thread(test_rank *self)
{
    drive_lanes(self, NULL);
}

static void one_context_for_all_threads(test_rank *self)
{
    coh_context *context;
    if (!CHECK_OK(coh_context_create(self->world, &context)))
        return;
    drive_lanes(self, context);
    CHECK_OK(coh_context_destroy(context));
}

/* ---- life ---- */

static void contexts_are_limited_and_reused(test_rank *self)
{
    coh_context *contexts[CONTEXTS_MOST], *more = NULL;
    for (int i = 0; i < CONTEXTS_MOST; i++)
        if (!CHECK_OK(coh_context_create(self->world, &contexts[i])))
            return;
    CHECK_REFUSED(coh_context_create(self->world, &more), COH_LIMIT, "62");
    CHECK(more == NULL);
    for (int i = 0; i < 300; i++) {
        int at = i * 7 % CONTEXTS_MOST;
        if (!CHECK_OK(coh_context_destroy(contexts[at]))
            || !CHECK_OK(coh_context_create(self->world, &contexts[at])))
            return;
    }
    CHECK_STATUS(coh_context_create(self->world, &more), COH_LIMIT);
    for (int i = 0; i < CONTEXTS_MOST; i += 2) /* the others are left to finalize */
        CHECK_OK(coh_context_destroy(contexts[i]));
}

/* Destroying completes what was issued. */
static void destroying_completes(test_rank *self)
{
    enum { PIECES = 16, PIECE = 900 };
    unsigned char *memory, *source = malloc(PIECES * PIECE);
    coh_context *context;
    if (!CHECK_OK(coh_calloc(self->world, PIECES, PIECE, (void **)&memory))
        || !CHECK_OK(coh_context_create(self->world, &context)))
        return;
    for (size_t i = 0; i < PIECES; i++) {
        test_fill(source + i * PIECE, PIECE, i);
        CHECK_OK(coh_context_put_nbi(context, memory + i * PIECE, source + i * PIECE, PIECE,
                                     right_of(self)));
    }
    CHECK_OK(coh_context_destroy(context));
    free(source);
    CHECK_OK(coh_sync(self->world));
    for (size_t i = 0; i < PIECES; i++)
        CHECK_EQ(test_differs(memory + i * PIECE, PIECE, i), PIECE);
    CHECK_OK(coh_free(self->world, memory));
}

/* Every call on a context that is none any more, or none at all. */
static void refuse_all(coh_context *context, uint64_t *word)
{
    uint64_t value = 1, got = 55;
    const coh_status wrong = COH_INVALID_ARGUMENT;
    CHECK_REFUSED(coh_context_put(context, word, &value, 8, 0), wrong, "coh_context_put");
    CHECK_STATUS(coh_context_get(context, &got, word, 8, 0), wrong);
    CHECK_STATUS(coh_context_put_nbi(context, word, &value, 8, 0), wrong);
    CHECK_STATUS(coh_context_get_nbi(context, &got, word, 8, 0), wrong);
    CHECK_STATUS(coh_context_atomic(context, COH_ATOMIC_ADD, COH_U64, word, &value, 0), wrong);
    CHECK_STATUS(coh_context_atomic_fetch(context, COH_ATOMIC_ADD, COH_U64, word, &value, &got, 0),
                 wrong);
    CHECK_STATUS(coh_context_atomic_compare_swap(context, COH_U64, word, &got, &value, &got, 0),
                 wrong);
    CHECK_STATUS(coh_context_put_signal(context, word, &value, 8, word, 1, COH_SIGNAL_SET, 0),
                 wrong);
    CHECK_STATUS(coh_context_fence(context), wrong);
    CHECK_STATUS(coh_context_quiet(context), wrong);
    CHECK_EQ(got, 55);
}

static void bad_contexts_refused(test_rank *self)
{
    uint64_t *word, value = 1, got = 55;
    coh_context *context;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word))
        || !CHECK_OK(coh_context_create(self->world, &context)))
        return;
    CHECK_REFUSED(coh_context_put(context, word, &value, sizeof value, self->size),
                  COH_UNKNOWN_RANK, "coh_context_put");
    CHECK_STATUS(coh_context_get(context, &got, &value, sizeof value, 0), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_context_put_nbi(context, word, &value, SIZE_MAX, 0), COH_OUT_OF_BOUNDS);
    CHECK_STATUS(coh_context_atomic(context, COH_ATOMIC_ADD, COH_F64, word, &value, 0),
                 COH_INVALID_ARGUMENT);
    CHECK_OK(coh_context_destroy(context));
    refuse_all(context, word);
    refuse_all(NULL, word);
    CHECK_STATUS(coh_context_destroy(context), COH_INVALID_ARGUMENT);
    CHECK_OK(coh_context_destroy(NULL));
    CHECK_STATUS(coh_context_create(self->world, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_context_create(NULL, &context), COH_INVALID_ARGUMENT);
    CHECK_OK(coh_barrier(self->world));
    test_is_zero(self, word, sizeof *word);
    CHECK_OK(coh_free(self->world, word));
}

const test_case conform_contexts[] = {
    CASE(transfers_by_context, "S4 S5", ON_MEMORY, ANY_SIZE),
    CASE(words_by_context, "S5 S8", ON_MEMORY, ANY_SIZE),
    CASE(fence_orders_its_context, "S1", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(quiet_is_per_context, "S5", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(fence_is_per_context, "S3", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(a_context_for_each_thread, "S14", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(one_context_for_all_threads, "S14", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(contexts_are_limited_and_reused, "S35", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(3)),
    CASE(destroying_completes, "S5", ON_MEMORY, ANY_SIZE),
    CASE(bad_contexts_refused, "F17", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
};
CONFORM_COUNT(contexts);
