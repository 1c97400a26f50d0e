/*
 * host_copy.h - copying between host memory of this process and host memory that ranks share.
 *
 * One call, memmove's meaning (the ranges may overlap), and one promise more: 1, 2, 4 and 8 bytes
 * to an address aligned to their size are a single release store, and from an address so aligned a
 * single acquire load. A rank that polls the target never sees a torn value, and whoever sees the
 * value sees what was stored before it.
 */
#ifndef COHI_MEMORY_HOST_COPY_H
#define COHI_MEMORY_HOST_COPY_H

#include "base/atomics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Bytes from which on stores bypass the caches: source and target together no longer fit in a
 * second-level cache (2 MiB where this was measured), so that a cached store would first read the
 * line that it overwrites. Sapphire Rapids, private source, shared target, GB/s memmove / streamed:
 * 1 MiB 23 / 22, 1.25 MiB 16 / 20, 2 MiB 13 / 18, 16 MiB 12 / 17, 64 MiB 6 / 16.
 */
enum { COHI_HOST_STREAM_BYTES = 1280 * 1024 };

/* Copies as memmove does, at the speed of the memory: past the caches, but for what is shorter than
 * a few pages. */
void cohi_host_copy_large(void *target, const void *source, size_t bytes);

/*
 * Whether work that moves `all` bytes, `bytes` of them from `source`, should store past the caches:
 * from `from` bytes on, and less if the source is in none of them, which some of its lines are
 * timed to find out. (The target tells nothing: once stored past the caches it is in none.) Two
 * ranks, 1 MiB in no cache, us cached (streamed): all_reduce 159 (87), all_to_all 167 (90),
 * broadcast 79 (46).
 */
bool cohi_host_should_stream(const void *source, size_t bytes, size_t all, size_t from);

/* X(width in bits): the words that are copied whole. */
#define COHI_HOST_WORD_TABLE(X) \
    X(64)                       \
    X(32)                       \
    X(16)                       \
    X(8)

/*
 * The user's objects have types of their own, so these words may alias them. A source need not be
 * aligned. Where it is, its word is loaded whole and with acquire order; on x86-64 one and the same
 * instruction does either, so there nobody looks which it is.
 */
#if defined(__x86_64__) && !defined(COHI_TSAN)
#define COHI_HOST_WORD_LOAD(bits)                                                        \
    typedef uint##bits##_t cohi_host_loose##bits __attribute__((may_alias, aligned(1))); \
    static inline cohi_host_word##bits cohi_host_load##bits(const void *source)          \
    {                                                                                    \
        cohi_host_word##bits word = *(const volatile cohi_host_loose##bits *)source;     \
        atomic_signal_fence(memory_order_acquire);                                       \
        return word;                                                                     \
    }
#else
#define COHI_HOST_WORD_LOAD(bits)                                                           \
    static inline cohi_host_word##bits cohi_host_load##bits(const void *source)             \
    {                                                                                       \
        cohi_host_word##bits word;                                                          \
        if ((uintptr_t)source % sizeof word == 0)                                           \
            return __atomic_load_n((const cohi_host_word##bits *)source, __ATOMIC_ACQUIRE); \
        memcpy(&word, source, sizeof word);                                                 \
        return word;                                                                        \
    }
#endif

#define COHI_HOST_WORD_DEFINE(bits)                                                    \
    typedef uint##bits##_t cohi_host_word##bits __attribute__((may_alias));            \
    COHI_HOST_WORD_LOAD(bits)                                                          \
    static inline void cohi_host_copy##bits(void *target, const void *source)          \
    {                                                                                  \
        __atomic_store_n((cohi_host_word##bits *)target, cohi_host_load##bits(source), \
                         __ATOMIC_RELEASE);                                            \
    }
COHI_HOST_WORD_TABLE(COHI_HOST_WORD_DEFINE)
#undef COHI_HOST_WORD_DEFINE
#undef COHI_HOST_WORD_LOAD

static inline int cohi_host_aligned(const void *address, size_t bytes)
{
    return ((uintptr_t)address & (bytes - 1)) == 0;
}

/* Inline, since beside one load and one store a call is most of the time. */
static inline void cohi_host_copy(void *target, const void *source, size_t bytes)
{
    if (bytes == 8 && cohi_host_aligned(target, 8))
        cohi_host_copy64(target, source);
    else if (bytes == 4 && cohi_host_aligned(target, 4))
        cohi_host_copy32(target, source);
    else if (bytes == 2 && cohi_host_aligned(target, 2))
        cohi_host_copy16(target, source);
    else if (bytes == 1)
        cohi_host_copy8(target, source);
    else if (bytes < COHI_HOST_STREAM_BYTES)
        memmove(target, source, bytes);
    else
        cohi_host_copy_large(target, source, bytes);
}

#endif
