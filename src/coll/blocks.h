/* blocks.h - what algorithms do with blocks of elements. */
#ifndef COHI_COLL_BLOCKS_H
#define COHI_COLL_BLOCKS_H

#include "coll/call.h"
#include "memory/reduce.h"

/* The reduction of the call, over all members; not streamed. */
cohi_reduction cohi_call_reduction(const cohi_call *call);

/* Elements that lie `stride` elements apart, put one behind the other, and back. */
void cohi_pack(char *packed, const char *source, size_t stride, size_t element, size_t count);
void cohi_unpack(char *target, size_t stride, const char *packed, size_t element, size_t count);

/* From elements that lie apart to elements that lie apart. */
void cohi_copy_strided(char *target, size_t target_stride, const char *source, size_t source_stride,
                       size_t element, size_t count);

/* `count` elements that change nothing in the call's reduction. */
void cohi_fill_identity(const cohi_call *call, char *target, size_t count);

/* A range of elements. */
typedef struct cohi_span {
    size_t first;
    size_t count;
} cohi_span;

/* The share of member `index` in `count` elements: nearly equal ones, cut where cache lines begin
 * if the array begins at one. */
cohi_span cohi_share(const cohi_call *call, size_t count, int index);

#endif
