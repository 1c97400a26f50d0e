/*
 * ranges.cuh - one pass over a range of elements: many sources into many targets, or a copy.
 *
 * The range is shared by `workers` threads, of which the caller is number `worker`. Where all addresses are
 * multiples of 16, it goes by 16 bytes, several of them in flight in each thread; else by elements.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_RANGES_CUH
#define COHI_ENGINE_CUDA_KERNELS_RANGES_CUH

#include "shared.h"
#include "types.cuh"

namespace
{

/* Vectors of each of two sources that a thread has in flight. */
#ifndef COHI_CUDA_FLIGHT
#define COHI_CUDA_FLIGHT 4
#endif

struct crowd {
    uint32_t worker, workers;
};

/* The same crowd, or so many of it that the flights of all come out even, of which each keeps `flight` vectors on the
 * way: one that is short of some, or a vector after another, waits for memory once more for nothing. What is over with
 * one flight of all is left to all. */
__device__ inline crowd even_crowd(crowd crowd, uint64_t count, uint32_t flight)
{
    uint64_t together = static_cast<uint64_t>(crowd.workers) * flight;
    if (count <= together)
        return crowd;
    uint64_t flights = (count + together - 1) / together * flight;
    crowd.workers = static_cast<uint32_t>((count + flights - 1) / flights + 31) / 32 * 32;
    return crowd;
}

/* All data are read once and written once, and past the first cache, which does not see what other
 * multiprocessors write. */
template <class word> __device__ inline word load(const char *address, uint64_t index)
{
    return __ldcs(reinterpret_cast<const word *>(address) + index);
}

template <class word> __device__ inline void store(char *address, uint64_t index, word it)
{
    __stcs(reinterpret_cast<word *>(address) + index, it);
}

/* Has the first lines of what will be read fetched from the card's memory, one by each worker. */
__device__ inline void bring_near(const char *from, uint64_t bytes, crowd crowd)
{
    constexpr uint64_t LINE = 128;
    uint64_t at = crowd.worker * LINE;
    if (at < bytes)
        asm volatile("prefetch.global.L2 [%0];" : : "l"(from + at));
}

template <class word>
__device__ inline bool all_aligned(const char *const *sources, int source_count,
                                   char *const *targets, int target_count)
{
    uint64_t bits = 0;
    for (int i = 0; i < source_count; i++)
        bits |= reinterpret_cast<uint64_t>(sources[i]);
    for (int i = 0; i < target_count; i++)
        bits |= reinterpret_cast<uint64_t>(targets[i]);
    return bits % sizeof(word) == 0;
}

/* ---- copies ---- */

template <class word>
__device__ inline void copy_words(char *target, const char *source, uint64_t count, crowd crowd)
{
    constexpr int FLIGHT = 8;
    crowd = even_crowd(crowd, count, FLIGHT);
    if (crowd.worker >= crowd.workers)
        return;
    uint64_t at = crowd.worker;
    const uint64_t by = crowd.workers;
    for (; at + (FLIGHT - 1) * by < count; at += FLIGHT * by) {
        word words[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            words[i] = load<word>(source, at + i * by);
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            store<word>(target, at + i * by, words[i]);
    }
    for (; at + by < count; at += 2 * by) {
        word one = load<word>(source, at), two = load<word>(source, at + by);
        store<word>(target, at, one);
        store<word>(target, at + by, two);
    }
    if (at < count)
        store<word>(target, at, load<word>(source, at));
}

/* Where source and target lie differently in their words: each word of the target is made of two of the
 * source's, both of which are within the range. */
__device__ __noinline__ void copy_shifted(char *target, const char *source, uint64_t bytes,
                                          crowd crowd)
{
    uint64_t head = -reinterpret_cast<uint64_t>(target) & 3;
    uint32_t shift = static_cast<uint32_t>((reinterpret_cast<uint64_t>(source) + head) & 3) * 8;
    if (shift != 0 && head < 4)
        head += 4; /* so that the word before the first is within */
    if (bytes < head + 8) {
        copy_words<uint8_t>(target, source, bytes, crowd);
        return;
    }
    uint64_t words = (bytes - head - (shift != 0 ? 4 : 0)) / 4;
    const char *first = source + head - shift / 8;
    for (uint64_t at = crowd.worker; at < words; at += crowd.workers) {
        uint32_t low = load<uint32_t>(first, at);
        uint32_t high = shift != 0 ? load<uint32_t>(first, at + 1) : 0;
        store<uint32_t>(target + head, at, __funnelshift_r(low, high, shift));
    }
    uint64_t done = head + words * 4;
    copy_words<uint8_t>(target, source, head, crowd);
    copy_words<uint8_t>(target + done, source + done, bytes - done, crowd);
}

__device__ __noinline__ void copy_range(char *target, const char *source, uint64_t bytes,
                                        crowd crowd)
{
    uint64_t bits = reinterpret_cast<uint64_t>(target) | reinterpret_cast<uint64_t>(source);
    if (target == source)
        return;
    if (bits % 16 != 0) {
        copy_shifted(target, source, bytes, crowd);
        return;
    }
    copy_words<uint4>(target, source, bytes / 16, crowd);
    uint64_t done = bytes & ~15ull;
    copy_words<uint8_t>(target + done, source + done, bytes - done, crowd);
}

/* The same to several targets, of which some may be the source. */
__device__ __noinline__ void copy_to_many(char *const *targets, int target_count,
                                          const char *source, uint64_t bytes, crowd crowd)
{
    constexpr int FLIGHT = 4;
    if (!all_aligned<uint4>(&source, 1, targets, target_count)) {
        for (int t = 0; t < target_count; t++)
            copy_range(targets[t], source, bytes, crowd);
        return;
    }
    const uint64_t count = bytes / 16;
    ::crowd even = even_crowd(crowd, count, FLIGHT);
    uint64_t at = even.worker < even.workers ? even.worker : count;
    const uint64_t by = even.workers;
    for (; at + (FLIGHT - 1) * by < count; at += FLIGHT * by) {
        uint4 words[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            words[i] = load<uint4>(source, at + i * by);
        for (int t = 0; t < target_count; t++) {
            char *target = targets[t];
            if (target == source)
                continue;
#pragma unroll
            for (int i = 0; i < FLIGHT; i++)
                store<uint4>(target, at + i * by, words[i]);
        }
    }
    for (; at < count; at += by) {
        uint4 word = load<uint4>(source, at);
        for (int t = 0; t < target_count; t++)
            store<uint4>(targets[t], at, word);
    }
    for (int t = 0; t < target_count; t++)
        copy_range(targets[t] + count * 16, source + count * 16, bytes % 16, crowd);
}

/* ---- reductions ---- */

/* A word of several elements, and what they are reduced as. */
template <class type, class word = uint4> struct vector_of {
    static constexpr int LANES = sizeof(word) / sizeof(typename type::raw);
    union form {
        word whole;
        typename type::raw each[LANES];
    };
    struct result {
        typename type::wide each[LANES];
    };
    __device__ static result widen(word whole)
    {
        form form;
        form.whole = whole;
        result result;
#pragma unroll
        for (int i = 0; i < LANES; i++)
            result.each[i] = type::widen(form.each[i]);
        return result;
    }
    template <int OP> __device__ static void combine_as(result &into, word whole)
    {
        form form;
        form.whole = whole;
#pragma unroll
        for (int i = 0; i < LANES; i++)
            into.each[i] = type::combine(OP, into.each[i], type::widen(form.each[i]));
    }
    template <int OP> __device__ static void combine(int op, result &into, word whole)
    {
        switch (OP == ANY ? op : OP) {
        case PRODUCT:
            combine_as<PRODUCT>(into, whole);
            break;
        case MIN:
            combine_as<MIN>(into, whole);
            break;
        case MAX:
            combine_as<MAX>(into, whole);
            break;
        case AND:
            combine_as<AND>(into, whole);
            break;
        case OR:
            combine_as<OR>(into, whole);
            break;
        case XOR:
            combine_as<XOR>(into, whole);
            break;
        default:
            combine_as<SUM>(into, whole);
        }
    }
    __device__ static word finish(int op, const result &result, int ranks)
    {
        form form;
#pragma unroll
        for (int i = 0; i < LANES; i++)
            form.each[i] = type::narrow(type::finish(op, result.each[i], ranks));
        return form.whole;
    }
    __device__ static word scaled(word whole, double scale)
    {
        form form;
        form.whole = whole;
#pragma unroll
        for (int i = 0; i < LANES; i++)
            form.each[i] = type::narrow(type::scaled(type::widen(form.each[i]), scale));
        return form.whole;
    }
};

/* What a reduction is told. */
struct recipe {
    int op;
    int ranks;            /* that a mean is divided by */
    const double *scales; /* of the sources; NULL: all are 1 */
};

template <class type>
__device__ inline void finish_vector(recipe recipe, int op, char *const *targets, int target_count,
                                     uint64_t at, const typename vector_of<type>::result &result)
{
    uint4 whole = vector_of<type>::finish(op, result, recipe.ranks);
    for (int t = 0; t < target_count; t++)
        store<uint4>(targets[t], at, whole);
}

/* So many sources, all of whose loads are in flight before the first is used, and as many targets or one; all
 * addresses in registers. */
template <class type, int OP, int SOURCES, int TARGETS, int FLIGHT>
__device__ inline uint64_t reduce_together(recipe recipe, int op, char *const *targets,
                                           const char *const *sources, uint64_t count, uint64_t at,
                                           uint64_t by)
{
    const char *from[SOURCES];
    char *to[TARGETS];
#pragma unroll
    for (int s = 0; s < SOURCES; s++)
        from[s] = sources[s];
#pragma unroll
    for (int t = 0; t < TARGETS; t++)
        to[t] = targets[t];
    for (; at + (FLIGHT - 1) * by < count; at += FLIGHT * by) {
        uint4 loaded[SOURCES][FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
#pragma unroll
            for (int s = 0; s < SOURCES; s++)
                loaded[s][i] = load<uint4>(from[s], at + i * by);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            typename vector_of<type>::result result = vector_of<type>::widen(loaded[0][i]);
#pragma unroll
            for (int s = 1; s < SOURCES; s++)
                vector_of<type>::template combine<OP>(op, result, loaded[s][i]);
            uint4 whole = vector_of<type>::finish(op, result, recipe.ranks);
#pragma unroll
            for (int t = 0; t < TARGETS; t++)
                store<uint4>(to[t], at + i * by, whole);
        }
    }
    return at;
}

/* Any number of both; the loads of four sources are in flight together. */
template <class type, int OP, int FLIGHT>
__device__ inline uint64_t reduce_many(recipe recipe, int op, char *const *targets,
                                       int target_count, const char *const *sources,
                                       int source_count, uint64_t count, uint64_t at, uint64_t by)
{
    typedef vector_of<type> vector;
    constexpr int TOGETHER = 4;
    for (; at + (FLIGHT - 1) * by < count; at += FLIGHT * by) {
        typename vector::result results[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            results[i] = vector::widen(load<uint4>(sources[0], at + i * by));
        int s = 1;
        for (; s + TOGETHER <= source_count; s += TOGETHER) {
            uint4 loaded[TOGETHER][FLIGHT];
#pragma unroll
            for (int t = 0; t < TOGETHER; t++)
#pragma unroll
                for (int i = 0; i < FLIGHT; i++)
                    loaded[t][i] = load<uint4>(sources[s + t], at + i * by);
#pragma unroll
            for (int t = 0; t < TOGETHER; t++)
#pragma unroll
                for (int i = 0; i < FLIGHT; i++)
                    vector::template combine<OP>(op, results[i], loaded[t][i]);
        }
        for (; s < source_count; s++) {
            uint4 loaded[FLIGHT];
#pragma unroll
            for (int i = 0; i < FLIGHT; i++)
                loaded[i] = load<uint4>(sources[s], at + i * by);
#pragma unroll
            for (int i = 0; i < FLIGHT; i++)
                vector::template combine<OP>(op, results[i], loaded[i]);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            finish_vector<type>(recipe, op, targets, target_count, at + i * by, results[i]);
    }
    return at;
}

template <class type, int OP>
__device__ inline void reduce_one_by_one(recipe recipe, int op, char *const *targets,
                                         int target_count, const char *const *sources,
                                         int source_count, uint64_t count, uint64_t at, uint64_t by)
{
    for (; at < count; at += by) {
        typename vector_of<type>::result result =
            vector_of<type>::widen(load<uint4>(sources[0], at));
#pragma unroll 2
        for (int s = 1; s < source_count; s++)
            vector_of<type>::template combine<OP>(op, result, load<uint4>(sources[s], at));
        finish_vector<type>(recipe, op, targets, target_count, at, result);
    }
}

template <class type, int OP>
__device__ inline void reduce_vectors(recipe recipe, char *const *targets, int target_count,
                                      const char *const *sources, int source_count, uint64_t count,
                                      crowd crowd)
{
    const int op = OP == ANY ? recipe.op : OP;
    const bool pair = source_count == 2 && target_count <= 2,
               four = source_count == 4 && target_count == 4;
    crowd = even_crowd(crowd, count, OP != ANY && pair ? COHI_CUDA_FLIGHT : 2);
    if (crowd.worker >= crowd.workers)
        return;
    uint64_t at = crowd.worker;
    const uint64_t by = crowd.workers;
    if (OP != ANY && pair && target_count == 2)
        at = reduce_together<type, OP, 2, 2, COHI_CUDA_FLIGHT>(recipe, op, targets, sources, count,
                                                               at, by);
    else if (OP != ANY && pair)
        at = reduce_together<type, OP, 2, 1, COHI_CUDA_FLIGHT>(recipe, op, targets, sources, count,
                                                               at, by);
    else if (OP != ANY && four)
        at = reduce_together<type, OP, 4, 4, 2>(recipe, op, targets, sources, count, at, by);
    else if (OP != ANY && source_count > 2)
        at = reduce_many<type, OP, 2>(recipe, op, targets, target_count, sources, source_count,
                                      count, at, by);
    /* What is left is fewer than a flight: two of it together, then one. */
    if (pair && target_count == 2)
        at = reduce_together<type, OP, 2, 2, 2>(recipe, op, targets, sources, count, at, by);
    else if (OP != ANY && pair)
        at = reduce_together<type, OP, 2, 1, 2>(recipe, op, targets, sources, count, at, by);
    reduce_one_by_one<type, OP>(recipe, op, targets, target_count, sources, source_count, count, at,
                                by);
}

template <class type, int OP>
__device__ inline void reduce_elements(recipe recipe, char *const *targets, int target_count,
                                       const char *const *sources, int source_count, uint64_t at,
                                       uint64_t count, crowd crowd)
{
    typedef typename type::raw raw;
    typedef typename type::wide wide;
    const int op = OP == ANY ? recipe.op : OP;
    for (at += crowd.worker; at < count; at += crowd.workers) {
        wide result = wide();
        for (int s = 0; s < source_count; s++) {
            raw element = load<raw>(sources[s], at);
            wide next = type::widen(element);
            if (recipe.scales && recipe.scales[s] != 1.0)
                next = type::widen(type::narrow(type::scaled(next, recipe.scales[s])));
            result = s == 0 ? next : type::combine(op, result, next);
        }
        raw narrow = type::narrow(type::finish(op, result, recipe.ranks));
        for (int t = 0; t < target_count; t++)
            store<raw>(targets[t], at, narrow);
    }
}

/* targets[t][i] = sources[0][i] op sources[1][i] ..., of `count` elements. */
template <class type, int OP>
__device__ __noinline__ void reduce_range(recipe recipe, char *const *targets, int target_count,
                                          const char *const *sources, int source_count,
                                          uint64_t count, crowd crowd)
{
    constexpr int LANES = vector_of<type>::LANES;
    uint64_t done = 0;
    if (!recipe.scales && all_aligned<uint4>(sources, source_count, targets, target_count)) {
        reduce_vectors<type, OP>(recipe, targets, target_count, sources, source_count,
                                 count / LANES, crowd);
        done = count / LANES * LANES;
    }
    reduce_elements<type, OP>(recipe, targets, target_count, sources, source_count, done, count,
                              crowd);
}

/* ---- scans ---- */

/* Vectors of all sources, in flight together; each target gets what the sources up to its own come to, or up to the
 * one before. A vector of the source is loaded before its target is stored, which may be the same. */
template <class type, int OP, int FLIGHT>
__device__ inline uint64_t scan_vectors(recipe recipe, int op, char *const *targets,
                                        const char *const *sources, int members, bool exclusive,
                                        uint64_t count, uint64_t at, uint64_t by)
{
    typedef vector_of<type> vector;
    for (; at + (FLIGHT - 1) * by < count; at += FLIGHT * by) {
        typename vector::result sums[FLIGHT];
        uint4 next[FLIGHT], loaded[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++)
            next[i] = load<uint4>(sources[0], at + i * by);
        for (int m = 0; m < members; m++) {
#pragma unroll
            for (int i = 0; i < FLIGHT; i++)
                loaded[i] = next[i];
            if (m + 1 < members) {
#pragma unroll
                for (int i = 0; i < FLIGHT; i++)
                    next[i] = load<uint4>(sources[m + 1], at + i * by);
            }
#pragma unroll
            for (int i = 0; i < FLIGHT; i++) {
                if (exclusive && m > 0)
                    store<uint4>(targets[m], at + i * by,
                                 vector::finish(op, sums[i], recipe.ranks));
                if (m == 0)
                    sums[i] = vector::widen(loaded[i]);
                else
                    vector::template combine<OP>(op, sums[i], loaded[i]);
                if (!exclusive)
                    store<uint4>(targets[m], at + i * by,
                                 vector::finish(op, sums[i], recipe.ranks));
            }
        }
    }
    return at;
}

template <class type, int OP>
__device__ inline void scan_elements(recipe recipe, int op, char *const *targets,
                                     const char *const *sources, int members, bool exclusive,
                                     uint64_t count, uint64_t at, uint64_t by)
{
    typedef typename type::raw raw;
    for (; at < count; at += by) {
        typename type::wide sum = typename type::wide();
        for (int m = 0; m < members; m++) {
            typename type::wide next = type::widen(load<raw>(sources[m], at));
            if (recipe.scales && recipe.scales[m] != 1.0)
                next = type::widen(type::narrow(type::scaled(next, recipe.scales[m])));
            if (exclusive && m > 0)
                store<raw>(targets[m], at, type::narrow(type::finish(op, sum, recipe.ranks)));
            sum = m == 0 ? next : type::combine(op, sum, next);
            if (!exclusive)
                store<raw>(targets[m], at, type::narrow(type::finish(op, sum, recipe.ranks)));
        }
    }
}

/* targets[m][i] = sources[0][i] op ... op sources[m][i], or without the last of these, where targets[0] is left as
 * it is. */
template <class type, int OP>
__device__ __noinline__ void scan_range(recipe recipe, char *const *targets,
                                        const char *const *sources, int members, bool exclusive,
                                        uint64_t count, crowd crowd)
{
    constexpr uint64_t LANES = vector_of<type>::LANES;
    const int op = OP == ANY ? recipe.op : OP;
    const uint64_t by = crowd.workers;
    uint64_t done = 0;
    if (!recipe.scales && all_aligned<uint4>(sources, members, targets, members)) {
        uint64_t vectors = count / LANES, at = crowd.worker;
        if (OP != ANY)
            at = scan_vectors<type, OP, 4>(recipe, op, targets, sources, members, exclusive,
                                           vectors, at, by);
        scan_vectors<type, OP, 1>(recipe, op, targets, sources, members, exclusive, vectors, at,
                                  by);
        done = vectors * LANES;
    }
    scan_elements<type, OP>(recipe, op, targets, sources, members, exclusive, count,
                            done + crowd.worker, by);
}

/* A source as others are to see it: multiplied by its scale. */
template <class type>
__device__ __noinline__ void scale_range(double scale, char *target, const char *source,
                                         uint64_t count, crowd crowd)
{
    typedef typename type::raw raw;
    for (uint64_t at = crowd.worker; at < count; at += crowd.workers) {
        raw element = load<raw>(source, at);
        store<raw>(target, at, type::narrow(type::scaled(type::widen(element), scale)));
    }
}

} /* namespace */

#endif
