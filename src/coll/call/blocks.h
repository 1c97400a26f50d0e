/* blocks.h - what algorithms do with blocks of elements. */
#ifndef COHI_COLL_CALL_BLOCKS_H
#define COHI_COLL_CALL_BLOCKS_H

#include "coll/call/call.h"
#include "memory/reduce.h"

#include <string.h>

/* The reduction of the call, over all members; not streamed. */
cohi_reduction cohi_call_reduction(const cohi_call *call);

/* Elements that lie `stride` elements apart, put one behind the other, and back. */
void cohi_pack(char *packed, const char *source, size_t stride, size_t element, size_t count);
void cohi_unpack(char *target, size_t stride, const char *packed, size_t element, size_t count);

/* From elements that lie apart to elements that lie apart. */
void cohi_copy_strided(char *target, size_t target_stride, const char *source, size_t source_stride,
                       size_t element, size_t count);

/* `count` elements that change nothing in the call's reduction. */
/* The bits of one such element. */
uint64_t cohi_identity_of(const cohi_call *call);

void cohi_fill_identity(const cohi_call *call, char *target, size_t count);

/* Copies, unless it is there already. */
static inline void cohi_bring(void *target, const void *source, size_t bytes)
{
    if (target != source && bytes > 0)
        memcpy(target, source, bytes);
}

/* A range of elements. */
typedef struct cohi_span {
    size_t first;
    size_t count;
} cohi_span;

/* Part `index` when `count` elements are cut into `parts` parts that differ by one at most. */
static inline cohi_span cohi_slice(size_t count, int parts, int index)
{
    size_t each = count / (size_t)parts, more = count % (size_t)parts, at = (size_t)index;
    return (cohi_span){at * each + (at < more ? at : more), each + (at < more)};
}

/* Parts `from` up to but not including `to`. */
static inline cohi_span cohi_slices(size_t count, int parts, int from, int to)
{
    cohi_span first = cohi_slice(count, parts, from), last = cohi_slice(count, parts, to - 1);
    return (cohi_span){first.first, last.first + last.count - first.first};
}

/* Piece `number`, `most` long, of a span. */
static inline cohi_span cohi_span_piece(cohi_span span, size_t number, size_t most)
{
    size_t gone = number * most < span.count ? number * most : span.count;
    size_t left = span.count - gone;
    return (cohi_span){span.first + gone, left < most ? left : most};
}

static inline size_t cohi_pieces_of(size_t count, size_t most)
{
    return count / most + (count % most != 0);
}

enum { COHI_ALIGN = 64 }; /* of the parts of a workspace */

/*
 * How long to make the pieces of `count` elements of `size` bytes; none is longer than `most`. If there are two, they are
 * about equal: the second can then be sent while the first is received and combined, which a very short one does not
 * give time for. An all_reduce of 64 KiB over TCP on the loopback of a Zen 5 took 41 us in chunks of 63 and 1 KiB, and 34 in
 * two of 32 KiB. Equal pieces made no difference where there are more than two.
 */
static inline size_t cohi_piece_length(size_t count, size_t size, size_t most)
{
    size_t line = size < COHI_ALIGN ? COHI_ALIGN / size : 1;
    size_t half = cohi_pieces_of(count - count / 2, line) * line;
    return cohi_pieces_of(count, most) == 2 && half < most ? half : most;
}

/* Bytes of a workspace's part, up to where the next begins; and the part itself. */
static inline size_t cohi_part_bytes(size_t bytes)
{
    return (bytes + COHI_ALIGN - 1) / COHI_ALIGN * COHI_ALIGN;
}

/* The share of member `index` in `count` elements: nearly equal ones, cut where cache lines begin
 * if the array begins at one. */
cohi_span cohi_share(const cohi_call *call, size_t count, int index);

#endif
