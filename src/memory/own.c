#include "memory/own.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

/*
 * A target may be any of the sources, so a chunk is combined in a buffer and stored at the end. What
 * comes from a post or a stage is aligned as it happens to be; it goes by a copy unless it is aligned
 * for any type.
 */
enum { CHUNK_BYTES = 4096 };

_Static_assert(CHUNK_BYTES >= COH_OWN_ELEMENT_MAX, "one element fits");

typedef struct chunk {
    alignas(max_align_t) char bytes[CHUNK_BYTES];
} chunk;

static const void *aligned(const char *from, size_t bytes, chunk *room)
{
    if ((uintptr_t)from % alignof(max_align_t) == 0)
        return from;
    return memcpy(room->bytes, from, bytes);
}

static size_t chunk_count(const cohi_own *own, size_t left)
{
    size_t most = CHUNK_BYTES / own->element;
    return left < most ? left : most;
}

void cohi_own_reduce(const cohi_own *own, void *const *targets, int target_count,
                     const void *const *sources, int source_count, size_t count)
{
    chunk into, room;
    for (size_t done = 0, part; done < count; done += part) {
        part = chunk_count(own, count - done);
        size_t at = done * own->element, bytes = part * own->element;
        memcpy(into.bytes, (const char *)sources[0] + at, bytes);
        for (int i = 1; i < source_count; i++)
            own->function(into.bytes, aligned((const char *)sources[i] + at, bytes, &room), part,
                          own->user);
        for (int i = 0; i < target_count; i++)
            memcpy((char *)targets[i] + at, into.bytes, bytes);
    }
}

/* The next source is read before a target is stored, which may be the same memory. */
void cohi_own_scan(const cohi_own *own, void *const *targets, const void *const *sources,
                   int members, size_t count)
{
    chunk into, next;
    for (size_t done = 0, part; done < count; done += part) {
        part = chunk_count(own, count - done);
        size_t at = done * own->element, bytes = part * own->element;
        memcpy(into.bytes, (const char *)sources[0] + at, bytes);
        for (int i = 0; i < members; i++) {
            bool more = i + 1 < members;
            if (more)
                memcpy(next.bytes, (const char *)sources[i + 1] + at, bytes);
            memcpy((char *)targets[i] + at, into.bytes, bytes);
            if (more)
                own->function(into.bytes, next.bytes, part, own->user);
        }
    }
}
