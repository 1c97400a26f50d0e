/*
 * limit_reduce_loops.h - the loops of a reduction, for a file that says what one unit is.
 *
 * It must define `unit` (the sum of 64 bytes of any type, as f32 or words) and for each
 * type T of f32, bf16, f16, words: load_T, add_T, store_T (cached, to any address), and
 * unless CACHED_ONLY is defined stream_T (past the caches, to an aligned address) and end_stream.
 */
#include "bench/limit/limit.h"

#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

typedef unit load_function(const char *from);
typedef unit add_function(unit left, unit right);
typedef void store_function(char *to, unit sum);

/* What is left at the end and is no whole unit. */
ALWAYS void sum_rest(char *const *targets, int target_count, char *const *sources, int source_count,
                     size_t from, size_t to, load_function *load, add_function *add,
                     store_function *store)
{
    _Alignas(64) char piece[COHI_LIMIT_UNIT] = {0};
    memcpy(piece, sources[0] + from, to - from);
    unit sum = load(piece);
    for (int i = 1; i < source_count; i++) {
        memcpy(piece, sources[i] + from, to - from);
        sum = add(sum, load(piece));
    }
    store(piece, sum);
    for (int i = 0; i < target_count; i++)
        memcpy(targets[i] + from, piece, to - from);
}

/* Two units a turn: the loads of one do not wait for the sum of the other. */
ALWAYS void sum_units(char *const *targets, int target_count, char *const *sources,
                      int source_count, size_t from, size_t to, load_function *load,
                      add_function *add, store_function *store)
{
    for (; from + 2 * COHI_LIMIT_UNIT <= to; from += 2 * COHI_LIMIT_UNIT) {
        unit a = load(sources[0] + from), b = load(sources[0] + from + COHI_LIMIT_UNIT);
        for (int i = 1; i < source_count; i++) {
            a = add(a, load(sources[i] + from));
            b = add(b, load(sources[i] + from + COHI_LIMIT_UNIT));
        }
        for (int i = 0; i < target_count; i++) {
            store(targets[i] + from, a);
            store(targets[i] + from + COHI_LIMIT_UNIT, b);
        }
    }
    for (; from + COHI_LIMIT_UNIT <= to; from += COHI_LIMIT_UNIT) {
        unit a = load(sources[0] + from);
        for (int i = 1; i < source_count; i++)
            a = add(a, load(sources[i] + from));
        for (int i = 0; i < target_count; i++)
            store(targets[i] + from, a);
    }
}

/* With pointers of its own for two sources and two targets, which is what two ranks have. */
ALWAYS void sum_all(char *const *targets, int target_count, char *const *sources, int source_count,
                    size_t from, size_t to, load_function *load, add_function *add,
                    store_function *store, store_function *store_rest)
{
    size_t whole = from + (to - from) / COHI_LIMIT_UNIT * COHI_LIMIT_UNIT;
    char *const two_sources[] = {sources[0], sources[source_count > 1 ? 1 : 0]};
    char *const two_targets[] = {targets[0], targets[target_count > 1 ? 1 : 0]};
    if (source_count == 2 && target_count == 2)
        sum_units(two_targets, 2, two_sources, 2, from, whole, load, add, store);
    else if (source_count == 2 && target_count == 1)
        sum_units(two_targets, 1, two_sources, 2, from, whole, load, add, store);
    else
        sum_units(targets, target_count, sources, source_count, from, whole, load, add, store);
    if (whole < to)
        sum_rest(targets, target_count, sources, source_count, whole, to, load, add, store_rest);
}

ALWAYS void prefix_all(char *const *targets, char *const *sources, int count, size_t from,
                       size_t to, load_function *load, add_function *add, store_function *store,
                       store_function *store_rest)
{
    for (; from + COHI_LIMIT_UNIT <= to; from += COHI_LIMIT_UNIT) {
        unit sum = load(sources[0] + from);
        store(targets[0] + from, sum);
        for (int i = 1; i < count; i++) {
            sum = add(sum, load(sources[i] + from));
            store(targets[i] + from, sum);
        }
    }
    for (int i = 0; from < to && i < count; i++)
        sum_rest(targets + i, 1, sources, i + 1, from, to, load, add, store_rest);
}

ALWAYS unit add_two(const char *source)
{
    return add_words(load_words(source), load_words(source + COHI_LIMIT_UNIT));
}

ALWAYS void halve_all(char *target, const char *source, size_t bytes, store_function *store)
{
    for (size_t from = 0; from < bytes; from += 2 * COHI_LIMIT_UNIT, target += COHI_LIMIT_UNIT)
        store(target, add_two(source + from));
}

ALWAYS void quarter_all(char *target, const char *source, size_t bytes, store_function *store)
{
    for (size_t from = 0; from < bytes; from += 4 * COHI_LIMIT_UNIT, target += COHI_LIMIT_UNIT)
        store(target,
              add_words(add_two(source + from), add_two(source + from + 2 * COHI_LIMIT_UNIT)));
}

ALWAYS void repeat_all(char *target, const char *source, size_t bytes, int times,
                       store_function *store)
{
    for (size_t from = 0; from < bytes; from += COHI_LIMIT_UNIT) {
        unit one = load_words(source + from);
        for (int i = 0; i < times; i++, target += COHI_LIMIT_UNIT)
            store(target, one);
    }
}

#define RESIZE_LOOPS(prefix, store, end)                                         \
    static void prefix##halve(char *target, const char *source, size_t bytes)    \
    {                                                                            \
        halve_all(target, source, bytes, store);                                 \
        end;                                                                     \
    }                                                                            \
    static void prefix##quarter(char *target, const char *source, size_t bytes)  \
    {                                                                            \
        quarter_all(target, source, bytes, store);                               \
        end;                                                                     \
    }                                                                            \
    static void prefix##twice(char *target, const char *source, size_t bytes)    \
    {                                                                            \
        repeat_all(target, source, bytes, 2, store);                             \
        end;                                                                     \
    }                                                                            \
    static void prefix##fourfold(char *target, const char *source, size_t bytes) \
    {                                                                            \
        repeat_all(target, source, bytes, 4, store);                             \
        end;                                                                     \
    }
#define RESIZES(prefix)                                                         \
    .halve = prefix##halve, .quarter = prefix##quarter, .twice = prefix##twice, \
    .fourfold = prefix##fourfold

RESIZE_LOOPS(plain_, store_words, (void)0)

#define CACHED_LOOPS_OF(T)                                                                      \
    static void sum_##T(char *const *targets, int target_count, char *const *sources,           \
                        int source_count, size_t from, size_t to)                               \
    {                                                                                           \
        sum_all(targets, target_count, sources, source_count, from, to, load_##T, add_##T,      \
                store_##T, store_##T);                                                          \
    }                                                                                           \
    static void prefix_##T(char *const *targets, char *const *sources, int count, size_t from,  \
                           size_t to)                                                           \
    {                                                                                           \
        prefix_all(targets, sources, count, from, to, load_##T, add_##T, store_##T, store_##T); \
    }

#define STREAMED_LOOPS_OF(T)                                                                     \
    static void stream_sum_##T(char *const *targets, int target_count, char *const *sources,     \
                               int source_count, size_t from, size_t to)                         \
    {                                                                                            \
        sum_all(targets, target_count, sources, source_count, from, to, load_##T, add_##T,       \
                stream_##T, store_##T);                                                          \
        end_stream();                                                                            \
    }                                                                                            \
    static void stream_prefix_##T(char *const *targets, char *const *sources, int count,         \
                                  size_t from, size_t to)                                        \
    {                                                                                            \
        prefix_all(targets, sources, count, from, to, load_##T, add_##T, stream_##T, store_##T); \
        end_stream();                                                                            \
    }

CACHED_LOOPS_OF(f32)
CACHED_LOOPS_OF(bf16)
CACHED_LOOPS_OF(f16)
CACHED_LOOPS_OF(words)

#define CACHED_LOOPS                                \
    .sum = {sum_f32, sum_bf16, sum_f16, sum_words}, \
    .prefix = {prefix_f32, prefix_bf16, prefix_f16, prefix_words}, RESIZES(plain_)

#ifndef CACHED_ONLY
RESIZE_LOOPS(stream_, stream_words, end_stream())

STREAMED_LOOPS_OF(f32)
STREAMED_LOOPS_OF(bf16)
STREAMED_LOOPS_OF(f16)
STREAMED_LOOPS_OF(words)

#define STREAMED_LOOPS                                                                         \
    .sum = {stream_sum_f32, stream_sum_bf16, stream_sum_f16, stream_sum_words},                \
    .prefix = {stream_prefix_f32, stream_prefix_bf16, stream_prefix_f16, stream_prefix_words}, \
    RESIZES(stream_)
#endif
