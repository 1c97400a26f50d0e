/* until.c - waiting for words of this rank's own memory, and testing them. */
#include "base/clock.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/heap/device.h"
#include "core/onesided/race.h"
#include "core/onesided/rma.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"

#include <stdlib.h>
#include <string.h>

/* ---- one word ---- */

/* The order of two words: below 0, 0 or above 0. */
typedef int order_of(uint64_t a, uint64_t b);

static int order_u32(uint64_t a, uint64_t b)
{
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    return (x > y) - (x < y);
}

static int order_i32(uint64_t a, uint64_t b)
{
    int32_t x = (int32_t)(uint32_t)a, y = (int32_t)(uint32_t)b;
    return (x > y) - (x < y);
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_i64(uint64_t a, uint64_t b)
{
    int64_t x = (int64_t)a, y = (int64_t)b;
    return (x > y) - (x < y);
}

static order_of *const orders[] = {
    [COH_I32] = order_i32, [COH_U32] = order_u32, [COH_I64] = order_i64, [COH_U64] = order_u64};

/* Which orders satisfy a comparison: bit 0 below, bit 1 equal, bit 2 above. */
enum { BELOW = 1, EQUAL = 2, ABOVE = 4 };

static const unsigned char satisfying[] = {
    [COH_EQ] = EQUAL,         [COH_NE] = BELOW | ABOVE, [COH_GT] = ABOVE,
    [COH_GE] = EQUAL | ABOVE, [COH_LT] = BELOW,         [COH_LE] = BELOW | EQUAL,
};

static uint64_t load_word(const char *word, size_t bytes)
{
    if (bytes == sizeof(uint32_t))
        return __atomic_load_n((const uint32_t *)(const void *)word, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)(const void *)word, __ATOMIC_ACQUIRE);
}

static uint64_t read_value(const char *value, size_t bytes)
{
    uint64_t word = 0;
    uint32_t half;
    if (bytes == sizeof word) {
        memcpy(&word, value, sizeof word);
        return word;
    }
    memcpy(&half, value, sizeof half);
    return half;
}

static bool holds(const coh_watch *watch, size_t index)
{
    size_t bytes = coh_dtype_size(watch->dtype);
    uint64_t word = load_word((const char *)watch->words + index * bytes, bytes);
    uint64_t value =
        read_value((const char *)watch->values + (watch->each ? index : 0) * bytes, bytes);
    int order = orders[watch->dtype](word, value);
    return satisfying[watch->compare] & (order < 0 ? BELOW : order > 0 ? ABOVE : EQUAL);
}

static bool counts(const coh_watch *watch, size_t index)
{
    return !watch->skip || watch->skip[index] == 0;
}

static bool is_on_card(coh_world *world, const void *words)
{
    return cohi_world_device(world)
           && cohi_device_serves(world, cohi_heap_further_spot(world, words, 1));
}

/* ---- many words ---- */

/* What a call asks of a watch, and what was found. */
struct question {
    bool all;          /* all must hold; else one is enough */
    size_t *indices;   /* NULL, or where to list those that hold */
    size_t found;      /* that hold, as far as was looked */
    size_t first;      /* one that holds */
    size_t relevant;   /* words that count */
    coh_status status; /* why the words cannot be looked at */
};

static bool answered(const coh_watch *watch, struct question *question)
{
    question->found = question->relevant = 0;
    for (size_t i = 0; i < watch->count; i++) {
        if (!counts(watch, i))
            continue;
        question->relevant++;
        if (!holds(watch, i)) {
            if (question->all)
                return false;
            continue;
        }
        if (question->found == 0)
            question->first = i;
        if (question->indices)
            question->indices[question->found] = i;
        question->found++;
        if (!question->all && !question->indices)
            return true;
    }
    return question->all || question->found > 0 || question->relevant == 0;
}

/* Words of a heap on a card, as they are now: this rank's own copy, in memory of the host. */
static bool look_at_card(coh_world *world, const char *call, const coh_watch *watch,
                         struct question *question)
{
    enum { NEAR_BYTES = 1024 };
    char near[NEAR_BYTES];
    size_t bytes = watch->count * coh_dtype_size(watch->dtype);
    char *words = bytes <= sizeof near ? near : malloc(bytes);
    coh_watch seen = *watch;
    seen.words = words;
    question->status = words
                           ? cohi_device_read(world, call, watch->words, bytes, words)
                           : cohi_world_fail(world, call, COH_NO_MEMORY,
                                             "out of memory for %zu words of a card", watch->count);
    bool found = question->status == COH_OK && answered(&seen, question);
    if (words != near)
        free(words);
    return found;
}

/* The same, after what is under way to those words when races are looked for: one thing at a time,
 * so that no value is passed over. */
static bool look(coh_world *world, const char *call, const coh_watch *watch,
                 struct question *question)
{
    if (COHI_UNLIKELY(watch->count > 0 && is_on_card(world, watch->words)))
        return look_at_card(world, call, watch, question);
    bool found = answered(watch, question);
    if (COHI_LIKELY(!world->race))
        return found;
    while (!found
           && cohi_race_bring(world, watch->words, watch->count * coh_dtype_size(watch->dtype)))
        found = answered(watch, question);
    if (found)
        cohi_race_acquire(world);
    return found;
}

/* ---- checks ---- */

static coh_status check_kind(const coh_world *world, const char *call, const coh_watch *watch)
{
    bool typed = (unsigned)watch->dtype < sizeof orders / sizeof *orders && orders[watch->dtype];
    if (!typed)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "words of type %d (%s) cannot be waited for; i32, u32, i64 and u64 "
                               "can",
                               (int)watch->dtype,
                               coh_dtype_name(watch->dtype) ? coh_dtype_name(watch->dtype)
                                                            : "none");
    if (watch->compare < COH_EQ || watch->compare > COH_LE)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%d is not a coh_compare",
                               (int)watch->compare);
    if (watch->from != COH_ANY_RANK)
        return cohi_world_check_rank(world, call, watch->from);
    return COH_OK;
}

static coh_status check_words(coh_world *world, const char *call, const coh_watch *watch)
{
    size_t bytes = coh_dtype_size(watch->dtype), length;
    cohi_spot spot;
    if (watch->count == 0)
        return COH_OK;
    if (!watch->values)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "values is NULL");
    coh_status status = cohi_device_refuse(world, call, "values", watch->values);
    if (status != COH_OK)
        return status;
    if (__builtin_mul_overflow(watch->count, bytes, &length))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%zu words of %zu bytes overflow",
                               watch->count, bytes);
    status = cohi_heap_locate(world, call, watch->words, &spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, world->rank, spot, length);
    if (status == COH_OK && (uintptr_t)watch->words % bytes != 0)
        status = cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                                 "address %p is not aligned to the %zu bytes of %s", watch->words,
                                 bytes, coh_dtype_name(watch->dtype));
    return status;
}

static coh_status begin(coh_world *world, const char *call, const coh_watch *watch,
                        const void *output)
{
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    if (!watch || !output)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%s is NULL",
                               watch ? "the place for the result" : "watch");
    if (watch->size != sizeof *watch)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "watch->size is %zu where this library knows %zu; start from "
                               "COH_WATCH_INIT",
                               watch->size, sizeof *watch);
    status = check_kind(world, call, watch);
    if (status == COH_OK)
        status = check_words(world, call, watch);
    return status == COH_OK ? cohi_fault_strike(world->fault, COHI_OP_WAIT) : status;
}

/* ---- waiting ---- */

/* With nobody named, a lost rank may be the one that should have written. */
static coh_status check_writers(coh_world *world, const char *call)
{
    if (atomic_load_explicit(&world->slot->alarm, memory_order_acquire) == 0)
        return COH_OK;
    for (int rank = 0; rank < world->size; rank++) {
        coh_status status = cohi_verdict_check(world, call, rank);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* A call that waits, as its wait shows it. */
struct watching {
    coh_world *world;
    const coh_watch *watch;
};

static uint64_t read_now(coh_world *world, const char *place, size_t bytes)
{
    uint64_t word = 0;
    if (!is_on_card(world, place))
        return load_word(place, bytes);
    return cohi_device_read(world, "", place, bytes, &word) == COH_OK ? word : 0;
}

/* The first word for which the comparison does not hold; on a card, the first. */
static void find_word(const void *waiting, cohi_awaited_word *word)
{
    const struct watching *watching = waiting;
    const coh_watch *watch = watching->watch;
    size_t bytes = coh_dtype_size(watch->dtype), index = 0;
    bool card = watch->count > 0 && is_on_card(watching->world, watch->words);
    while (!card && index + 1 < watch->count && (!counts(watch, index) || holds(watch, index)))
        index++;
    const char *place = (const char *)watch->words + index * bytes;
    *word = (cohi_awaited_word){
        .shown = true,
        .others = watch->count > 1,
        .dtype = watch->dtype,
        .compare = watch->compare,
        .wanted =
            read_value((const char *)watch->values + (watch->each ? index : 0) * bytes, bytes),
        .found = read_now(watching->world, place, bytes)};
    (void)cohi_heap_locate(watching->world, "", place, &word->spot);
}

/* "it waited for u64 == 1 at offset 128, which is 0" */
static coh_status tell(const struct watching *watching, coh_status status)
{
    cohi_awaited_word word;
    char text[192];
    find_word(watching, &word);
    cohi_doing_describe_word(&word, text, sizeof text);
    return cohi_fail_add(status, "it waited for %s", text);
}

static coh_status fail_timeout(const coh_world *world, const char *call, const coh_watch *watch)
{
    return cohi_world_fail(world, call, COH_TIMED_OUT,
                           "the comparison did not hold for the words at %p within %.3f s",
                           watch->words, (double)watch->timeout_ns / 1e9);
}

static coh_status wait_long(coh_world *world, const char *call, const coh_watch *watch,
                            struct question *question)
{
    coh_status status = COH_OK;
    uint64_t now = cohi_now_ns();
    bool ends = watch->timeout_ns > 0 && watch->timeout_ns < UINT64_MAX - now;
    uint64_t deadline = ends ? now + watch->timeout_ns : UINT64_MAX;
    struct watching watching = {world, watch};
    cohi_wait wait;
    cohi_world_show_op(world, COHI_OP_WAIT);
    cohi_wait_begin(&wait, world, call, COHI_OP_WAIT, NULL, watch->from);
    wait.ends = ends;
    wait.word = find_word;
    wait.waiting = &watching;
    while (status == COH_OK && !look(world, call, watch, question)) {
        status = question->status == COH_OK ? cohi_wait_step(&wait) : question->status;
        if (status == COH_OK && watch->from == COH_ANY_RANK)
            status = check_writers(world, call);
        if (status != COH_OK
            && look(world, call, watch, question)) /* it wrote before it was lost */
            status = COH_OK;
        if (status == COH_OK && deadline != UINT64_MAX && cohi_now_ns() >= deadline)
            status = fail_timeout(world, call, watch);
    }
    cohi_wait_end(&wait);
    cohi_world_show_op(world, COHI_OP_NONE);
    return COHI_LIKELY(status == COH_OK) ? status : tell(&watching, status);
}

static coh_status wait_for(coh_world *world, const char *call, const coh_watch *watch,
                           struct question *question)
{
    if (watch->count > 0 && is_on_card(world, watch->words)) /* where a look takes microseconds */
        return wait_long(world, call, watch, question);
    for (unsigned looks = 0, most = cohi_world_spins(world); looks <= most; looks++) {
        if (look(world, call, watch, question))
            return COH_OK;
        cohi_cpu_relax();
    }
    return wait_long(world, call, watch, question);
}

/*
 * The fast path: one word of this rank's heap, all arguments in order, and it comes while this rank
 * still looks. What is out of order, or takes longer, is for the slow path.
 */
static bool wait_fast(coh_world *world, coh_dtype dtype, const void *word, coh_compare compare,
                      const void *value, int from)
{
    bool narrow = dtype == COH_I32 || dtype == COH_U32;
    size_t bytes = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    if ((!narrow && dtype != COH_I64 && dtype != COH_U64) || compare < COH_EQ || compare > COH_LE
        || !value || (uintptr_t)word % bytes != 0 || !cohi_world_plain(world)
        || (from != COH_ANY_RANK && (unsigned)from >= (unsigned)world->size)
        || !cohi_rma_direct(world, word, bytes, world->rank))
        return false;
    uint64_t wanted = read_value(value, bytes);
    order_of *order_words = orders[dtype];
    for (unsigned looks = 0, most = cohi_world_spins(world); looks <= most; looks++) {
        int order = order_words(load_word(word, bytes), wanted);
        if (satisfying[compare] & (order < 0 ? BELOW : order > 0 ? ABOVE : EQUAL))
            return true;
        cohi_cpu_relax();
    }
    return false;
}

coh_status coh_wait_until(coh_world *world, coh_dtype dtype, const void *word, coh_compare compare,
                          const void *value, int from)
{
    static const char call[] = "coh_wait_until";
    if (COHI_LIKELY(wait_fast(world, dtype, word, compare, value, from)))
        return COH_OK;
    struct question question = {.all = true};
    coh_watch watch = COH_WATCH_INIT;
    watch.dtype = dtype;
    watch.words = word;
    watch.count = 1;
    watch.compare = compare;
    watch.values = value;
    watch.from = from;
    coh_status status = begin(world, call, &watch, call);
    return status == COH_OK ? wait_for(world, call, &watch, &question) : status;
}

coh_status coh_wait_any(coh_world *world, const coh_watch *watch, size_t *index)
{
    static const char call[] = "coh_wait_any";
    struct question question = {.all = false};
    coh_status status = begin(world, call, watch, index);
    if (status == COH_OK)
        status = wait_for(world, call, watch, &question);
    if (status == COH_OK)
        *index = question.found > 0 ? question.first : watch->count;
    return status;
}

coh_status coh_wait_all(coh_world *world, const coh_watch *watch)
{
    static const char call[] = "coh_wait_all";
    struct question question = {.all = true};
    coh_status status = begin(world, call, watch, call);
    return status == COH_OK ? wait_for(world, call, watch, &question) : status;
}

coh_status coh_wait_some(coh_world *world, const coh_watch *watch, size_t *indices, size_t *found)
{
    static const char call[] = "coh_wait_some";
    struct question question = {.indices = indices};
    coh_status status = begin(world, call, watch, indices ? (const void *)found : NULL);
    if (status == COH_OK)
        status = wait_for(world, call, watch, &question);
    if (status == COH_OK)
        *found = question.found;
    return status;
}

/* ---- testing ---- */

/* Looking does not move what is under way, on an engine that must be asked to, and when races are
 * looked for. */
static void poke(coh_world *world)
{
    cohi_world_progress(world);
    cohi_order_acquire(world);
}

coh_status coh_test_any(coh_world *world, const coh_watch *watch, size_t *index)
{
    static const char call[] = "coh_test_any";
    struct question question = {.all = false};
    coh_status status = begin(world, call, watch, index);
    if (status != COH_OK)
        return status;
    poke(world);
    look(world, call, watch, &question);
    if (question.status == COH_OK)
        *index = question.found > 0 ? question.first : watch->count;
    return question.status;
}

coh_status coh_test_all(coh_world *world, const coh_watch *watch, int *all)
{
    static const char call[] = "coh_test_all";
    struct question question = {.all = true};
    coh_status status = begin(world, call, watch, all);
    if (status != COH_OK)
        return status;
    poke(world);
    *all = look(world, call, watch, &question);
    return question.status;
}

coh_status coh_test_some(coh_world *world, const coh_watch *watch, size_t *indices, size_t *found)
{
    static const char call[] = "coh_test_some";
    struct question question = {.indices = indices};
    coh_status status = begin(world, call, watch, indices ? (const void *)found : NULL);
    if (status != COH_OK)
        return status;
    poke(world);
    look(world, call, watch, &question);
    if (question.status == COH_OK)
        *found = question.found;
    return question.status;
}
