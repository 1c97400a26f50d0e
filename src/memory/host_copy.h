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
#include "memory/copy_forms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Below this libc's memmove is as good as any loop, and choosing among them is not worth the call. */
enum { COHI_HOST_PLAIN_BYTES = 192 * 1024 };

/* Copies as memmove does, by the loop that the profile has for so many bytes. */
void cohi_host_copy_large(void *target, const void *source, size_t bytes);

/*
 * The loop for work in which one rank copies `all` bytes, `bytes` of them from `source`, while
 * `ranks` ranks of the host, this one included, do the same. Some lines of the source are timed: if
 * it is in no cache, stores past the caches are right for less. (The target tells nothing: once
 * stored past the caches it is in none.)
 */
cohi_copy_form cohi_host_copy_form(const void *source, size_t bytes, size_t all, int ranks);

/*
 * Whether results made of such a source should be stored past the caches: from `from` bytes on, or
 * if the ranks' caches are too small for all of them, or if the source is in none. Two ranks, 1 MiB
 * in no cache, us cached (streamed), Sapphire Rapids: all_reduce 159 (87).
 */
bool cohi_host_should_stream(const void *source, size_t bytes, size_t all, int ranks, size_t from);

/* The time of the lines by which a source in memory is told from one in a cache. Two pages at
 * least. */
uint64_t cohi_host_look_ns(const void *memory, size_t bytes);

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

/* Inline, since a call would take longer than the one load and store. */
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
    else if (bytes < COHI_HOST_PLAIN_BYTES)
        memmove(target, source, bytes);
    else
        cohi_host_copy_large(target, source, bytes);
}

#endif
