/*
 * blocks.h - which parts of a range are taken. It holds no memory of the range itself, only
 * offsets.
 *
 * Best fit, lowest offset first among equals, neighbours merged when freed. Equal histories give
 * equal offsets, on every rank. Not thread-safe.
 */
#ifndef COHI_CORE_HEAP_BLOCKS_H
#define COHI_CORE_HEAP_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum { COHI_BLOCK_BYTES = 64 }; /* the grain: offsets and lengths are multiples */

typedef struct cohi_blocks cohi_blocks;

/* A free range of `capacity` bytes, a multiple of the grain. NULL when out of memory. */
cohi_blocks *cohi_blocks_create(uint64_t capacity);
void cohi_blocks_destroy(cohi_blocks *blocks);

/* Takes `bytes` > 0 at a multiple of `alignment`, a power of two. False when nothing fits. */
bool cohi_blocks_take(cohi_blocks *blocks, uint64_t bytes, uint64_t alignment, uint64_t *offset);

/* Frees the block that starts at `offset`; false when no taken block does. */
bool cohi_blocks_give(cohi_blocks *blocks, uint64_t offset);

/* Changes the length of the block at `offset` where it is; false when it cannot. */
bool cohi_blocks_resize(cohi_blocks *blocks, uint64_t offset, uint64_t bytes);

/* The taken block that `offset` lies in: its start, and its length as asked for. An offset in the
 * rounding behind it counts as inside. */
bool cohi_blocks_find(const cohi_blocks *blocks, uint64_t offset, uint64_t *start, uint64_t *bytes);

/*
 * Free parts without memory behind them. A free block has at most one, its bare range: where two
 * meet because what lay between is freed, all from the one to the other counts as bare.
 */
typedef struct cohi_hole {
    uint64_t from, to;           /* the free block */
    uint64_t bare_from, bare_to; /* in it; equal: none */
} cohi_hole;

/* The free block that `offset` lies in; false when there is none. */
bool cohi_blocks_hole(const cohi_blocks *blocks, uint64_t offset, cohi_hole *hole);

/* Adds [from, to) to the bare range of the free block around `from`. */
void cohi_blocks_strip(cohi_blocks *blocks, uint64_t from, uint64_t to);

/* The bare range that the taken block at `offset` got with what it was made of; equal: none. It has
 * none from then on: the caller puts memory behind it. */
void cohi_blocks_claim(cohi_blocks *blocks, uint64_t offset, uint64_t *from, uint64_t *to);

uint64_t cohi_blocks_bare(const cohi_blocks *blocks);    /* bytes of all bare ranges */
uint64_t cohi_blocks_used(const cohi_blocks *blocks);    /* bytes taken, rounding included */
uint64_t cohi_blocks_largest(const cohi_blocks *blocks); /* the largest free block */
uint64_t cohi_blocks_count(const cohi_blocks *blocks);   /* blocks taken */

/* Checks every invariant; for tests. */
bool cohi_blocks_sound(const cohi_blocks *blocks);

#endif
