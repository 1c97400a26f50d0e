/*
 * words.h - how bytes that came from another host are stored where somebody may be reading.
 *
 * The contract has aligned 1, 2, 4 and 8 bytes arrive whole.
 */
#ifndef COHI_ENGINE_MODULES_WORDS_H
#define COHI_ENGINE_MODULES_WORDS_H

#include "memory/host_copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether so many bytes there are one word, which is stored and loaded whole. */
static inline bool cohi_words_is_one(const void *place, uint64_t bytes)
{
    bool width = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    return width && cohi_host_aligned(place, (size_t)bytes);
}

/* One word, of that width. */
static inline void cohi_words_copy(void *target, const void *source, uint64_t bytes)
{
    switch (bytes) {
    case 8:
        cohi_host_copy64(target, source);
        break;
    case 4:
        cohi_host_copy32(target, source);
        break;
    case 2:
        cohi_host_copy16(target, source);
        break;
    default:
        cohi_host_copy8(target, source);
        break;
    }
}

/* Of several words the first comes last, so that a reader who sees it sees the others. */
static inline void cohi_words_store(char *target, const void *source, uint64_t bytes)
{
    const char *from = source;
    const size_t first = sizeof(uint64_t);
    if (cohi_words_is_one(target, bytes)) {
        cohi_words_copy(target, from, bytes);
    } else if (bytes > first && cohi_words_is_one(target, first)) {
        memcpy(target + first, from + first, (size_t)bytes - first);
        cohi_words_copy(target, from, first);
    } else {
        memcpy(target, from, (size_t)bytes);
    }
}

#endif
