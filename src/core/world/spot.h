/*
 * spot.h - where in a rank's symmetric memory something is: the number of the heap and the offset in
 * it, in one word.
 *
 * Of the world's own heap, number 0, the word is the offset. Words of different heaps are so far apart that
 * ranges of them never meet: what compares ranges of offsets compares ranges of spots.
 */
#ifndef COHI_CORE_WORLD_SPOT_H
#define COHI_CORE_WORLD_SPOT_H

#include "engine/engine.h"

typedef uint64_t cohi_spot;

enum {
    COHI_HEAPS_MAX = COHI_SEGMENTS_MAX - COHI_SEGMENT_HEAP, /* of a world, its own among them */
    COHI_HEAP_BITS = 47, /* of the most bytes that one can have */
    COHI_SPOT_BITS = 48  /* of the offset in a spot */
};

#define COHI_NO_SPOT UINT64_MAX

/* `offset` is below 1 << COHI_SPOT_BITS. */
static inline cohi_spot cohi_spot_make(int heap, uint64_t offset)
{
    return (uint64_t)heap << COHI_SPOT_BITS | offset;
}

static inline int cohi_spot_heap(cohi_spot spot)
{
    return (int)(spot >> COHI_SPOT_BITS);
}

static inline uint64_t cohi_spot_offset(cohi_spot spot)
{
    return spot & ((UINT64_C(1) << COHI_SPOT_BITS) - 1);
}

/* The engine's number of the segment that it is in. */
static inline int cohi_spot_segment(cohi_spot spot)
{
    return COHI_SEGMENT_HEAP + cohi_spot_heap(spot);
}

/* "offset 128"; of a heap that is not the world's own, "offset 128 of heap 2". */
typedef struct cohi_spot_text {
    char text[48];
} cohi_spot_text;

cohi_spot_text cohi_spot_describe(cohi_spot spot);

/* The same of any number and offset. */
cohi_spot_text cohi_spot_describe_in(int heap, uint64_t offset);

#endif
