#include "core/heap/blocks.h"

#include <stdlib.h>

/*
 * Every block is in a tree by offset; a free one is also in a tree by (length, offset). Both are
 * treaps whose priorities are a hash of the offset: balanced in expectation, and the same on every
 * rank.
 */
enum tree { BY_OFFSET, BY_LENGTH, TREES };

struct block {
    uint64_t offset;
    uint64_t length;             /* a multiple of the grain */
    uint64_t asked;              /* bytes the user asked for; 0: free */
    uint64_t bare_from, bare_to; /* see cohi_hole; of a taken one until it is claimed */
    struct block *left[TREES];
    struct block *right[TREES];
};

struct cohi_blocks {
    struct block *root[TREES];
    uint64_t capacity;
    uint64_t used;
    uint64_t count;
    uint64_t bare;
};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) & ~(to - 1);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- treap ---- */

static uint64_t priority(const struct block *block)
{
    uint64_t hash = block->offset / COHI_BLOCK_BYTES + 1;
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

static bool before(enum tree tree, const struct block *a, const struct block *b)
{
    if (tree == BY_LENGTH && a->length != b->length)
        return a->length < b->length;
    return a->offset < b->offset;
}

static struct block *merge(enum tree tree, struct block *low, struct block *high)
{
    if (!low || !high)
        return low ? low : high;
    if (priority(low) > priority(high)) {
        low->right[tree] = merge(tree, low->right[tree], high);
        return low;
    }
    high->left[tree] = merge(tree, low, high->left[tree]);
    return high;
}

/* Everything before `at` into *low, the rest into *high. */
static void split(enum tree tree, struct block *root, const struct block *at, struct block **low,
                  struct block **high)
{
    if (!root) {
        *low = *high = NULL;
    } else if (before(tree, root, at)) {
        split(tree, root->right[tree], at, &root->right[tree], high);
        *low = root;
    } else {
        split(tree, root->left[tree], at, low, &root->left[tree]);
        *high = root;
    }
}

static void insert(cohi_blocks *blocks, enum tree tree, struct block *block)
{
    struct block *low, *high;
    split(tree, blocks->root[tree], block, &low, &high);
    block->left[tree] = block->right[tree] = NULL;
    blocks->root[tree] = merge(tree, merge(tree, low, block), high);
}

static void extract(cohi_blocks *blocks, enum tree tree, struct block *block)
{
    struct block **at = &blocks->root[tree];
    while (*at != block)
        at = before(tree, block, *at) ? &(*at)->left[tree] : &(*at)->right[tree];
    *at = merge(tree, block->left[tree], block->right[tree]);
}

/* The block with the highest offset that is not behind `offset`. */
static struct block *floor_of(const cohi_blocks *blocks, uint64_t offset)
{
    struct block *best = NULL, *at = blocks->root[BY_OFFSET];
    while (at) {
        if (at->offset <= offset)
            best = at;
        at = at->offset <= offset ? at->right[BY_OFFSET] : at->left[BY_OFFSET];
    }
    return best;
}

static struct block *successor(const cohi_blocks *blocks, const struct block *block)
{
    struct block *next = floor_of(blocks, block->offset + block->length);
    return next != block ? next : NULL;
}

static struct block *predecessor(const cohi_blocks *blocks, const struct block *block)
{
    return block->offset > 0 ? floor_of(blocks, block->offset - 1) : NULL;
}

/* ---- choosing ---- */

static bool fits(const struct block *block, uint64_t length, uint64_t alignment)
{
    uint64_t start = round_up(block->offset, alignment);
    uint64_t skipped = start - block->offset;
    return skipped <= block->length && block->length - skipped >= length;
}

/* The first in order of length that fits, among those long enough. Short blocks are passed over by
 * the tree; only the alignment can make a long one unfit. */
static struct block *best_fit(struct block *at, uint64_t length, uint64_t alignment)
{
    if (!at)
        return NULL;
    if (at->length < length)
        return best_fit(at->right[BY_LENGTH], length, alignment);
    struct block *shorter = best_fit(at->left[BY_LENGTH], length, alignment);
    if (shorter)
        return shorter;
    return fits(at, length, alignment) ? at : best_fit(at->right[BY_LENGTH], length, alignment);
}

/* ---- cutting and joining ---- */

static struct block *make_block(uint64_t offset, uint64_t length)
{
    struct block *block = calloc(1, sizeof *block);
    if (block) {
        block->offset = offset;
        block->length = length;
    }
    return block;
}

/* Shortens `block` (in the offset tree only) and gives the rest, from `rest` on, to `spare`. */
static void cut(cohi_blocks *blocks, struct block *block, uint64_t rest, struct block *spare)
{
    spare->offset = rest;
    spare->length = block->offset + block->length - rest;
    block->length = rest - block->offset;
    spare->bare_from = most(block->bare_from, rest);
    spare->bare_to = most(block->bare_to, spare->bare_from);
    block->bare_to = least(block->bare_to, rest);
    block->bare_from = least(block->bare_from, block->bare_to);
    insert(blocks, BY_OFFSET, spare);
}

static void set_bare(cohi_blocks *blocks, struct block *block, uint64_t from, uint64_t to)
{
    blocks->bare += (to - from) - (block->bare_to - block->bare_from);
    block->bare_from = from;
    block->bare_to = to;
}

static void add_bare(cohi_blocks *blocks, struct block *block, uint64_t from, uint64_t to)
{
    if (from == to)
        return;
    bool first = block->bare_from == block->bare_to;
    set_bare(blocks, block, first ? from : least(from, block->bare_from),
             first ? to : most(to, block->bare_to));
}

/* Adds `behind` to `block`, which it follows; neither is in the length tree. */
static void join(cohi_blocks *blocks, struct block *block, struct block *behind)
{
    extract(blocks, BY_OFFSET, behind);
    block->length += behind->length;
    blocks->bare -= behind->bare_to - behind->bare_from;
    add_bare(blocks, block, behind->bare_from, behind->bare_to);
    free(behind);
}

cohi_blocks *cohi_blocks_create(uint64_t capacity)
{
    cohi_blocks *blocks = calloc(1, sizeof *blocks);
    struct block *all = make_block(0, capacity);
    if (!blocks || !all) {
        free(blocks);
        free(all);
        return NULL;
    }
    blocks->capacity = capacity;
    insert(blocks, BY_OFFSET, all);
    insert(blocks, BY_LENGTH, all);
    return blocks;
}

static void free_tree(struct block *at)
{
    if (!at)
        return;
    free_tree(at->left[BY_OFFSET]);
    free_tree(at->right[BY_OFFSET]);
    free(at);
}

void cohi_blocks_destroy(cohi_blocks *blocks)
{
    if (!blocks)
        return;
    free_tree(blocks->root[BY_OFFSET]);
    free(blocks);
}

/* Cuts [start, start + length) out of a free block; the two spares become what is left of it, and a
 * spare that is not needed is freed. */
static struct block *carve(cohi_blocks *blocks, struct block *block, uint64_t start,
                           uint64_t length, struct block *spares[2])
{
    extract(blocks, BY_LENGTH, block);
    struct block *taken = block;
    if (start > block->offset) {
        cut(blocks, block, start, spares[0]);
        insert(blocks, BY_LENGTH, block);
        taken = spares[0];
    } else {
        free(spares[0]);
    }
    if (taken->length > length) {
        cut(blocks, taken, taken->offset + length, spares[1]);
        insert(blocks, BY_LENGTH, spares[1]);
    } else {
        free(spares[1]);
    }
    return taken;
}

bool cohi_blocks_take(cohi_blocks *blocks, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    if (bytes == 0 || bytes > blocks->capacity)
        return false;
    uint64_t length = round_up(bytes, COHI_BLOCK_BYTES);
    struct block *block = best_fit(blocks->root[BY_LENGTH], length, alignment);
    if (!block)
        return false;
    struct block *spares[2] = {make_block(0, 0), make_block(0, 0)};
    if (!spares[0] || !spares[1]) {
        free(spares[0]);
        free(spares[1]);
        return false;
    }
    block = carve(blocks, block, round_up(block->offset, alignment), length, spares);
    block->asked = bytes;
    blocks->used += length;
    blocks->count++;
    *offset = block->offset;
    return true;
}

static struct block *taken_at(const cohi_blocks *blocks, uint64_t offset)
{
    struct block *block = floor_of(blocks, offset);
    return block && block->asked && block->offset == offset ? block : NULL;
}

bool cohi_blocks_give(cohi_blocks *blocks, uint64_t offset)
{
    struct block *block = taken_at(blocks, offset);
    if (!block)
        return false;
    blocks->used -= block->length;
    blocks->count--;
    block->asked = 0;
    struct block *next = successor(blocks, block), *previous = predecessor(blocks, block);
    if (next && !next->asked) {
        extract(blocks, BY_LENGTH, next);
        join(blocks, block, next);
    }
    if (previous && !previous->asked) {
        extract(blocks, BY_LENGTH, previous);
        join(blocks, previous, block);
        block = previous;
    }
    insert(blocks, BY_LENGTH, block);
    return true;
}

/* Gives the end of a taken block back. */
static bool shrink(cohi_blocks *blocks, struct block *block, uint64_t length)
{
    struct block *spare = make_block(0, 0);
    if (!spare)
        return false;
    cut(blocks, block, block->offset + length, spare);
    struct block *next = successor(blocks, spare);
    if (next && !next->asked) {
        extract(blocks, BY_LENGTH, next);
        join(blocks, spare, next);
    }
    insert(blocks, BY_LENGTH, spare);
    return true;
}

/* Takes what is missing from the free block behind. */
static bool grow(cohi_blocks *blocks, struct block *block, uint64_t length)
{
    struct block *next = successor(blocks, block);
    uint64_t missing = length - block->length;
    if (!next || next->asked || next->length < missing)
        return false;
    struct block *spare = next->length > missing ? make_block(0, 0) : NULL;
    if (next->length > missing && !spare)
        return false;
    extract(blocks, BY_LENGTH, next);
    join(blocks, block, next);
    if (spare) {
        cut(blocks, block, block->offset + length, spare);
        insert(blocks, BY_LENGTH, spare);
    }
    return true;
}

bool cohi_blocks_resize(cohi_blocks *blocks, uint64_t offset, uint64_t bytes)
{
    struct block *block = taken_at(blocks, offset);
    if (!block || bytes == 0 || bytes > blocks->capacity)
        return false;
    uint64_t length = round_up(bytes, COHI_BLOCK_BYTES), had = block->length;
    if (length < had && !shrink(blocks, block, length))
        return false;
    if (length > had && !grow(blocks, block, length))
        return false;
    block->asked = bytes;
    blocks->used = blocks->used - had + length;
    return true;
}

bool cohi_blocks_find(const cohi_blocks *blocks, uint64_t offset, uint64_t *start, uint64_t *bytes)
{
    struct block *block = floor_of(blocks, offset);
    if (!block || !block->asked || offset - block->offset >= block->length)
        return false;
    *start = block->offset;
    *bytes = block->asked;
    return true;
}

bool cohi_blocks_hole(const cohi_blocks *blocks, uint64_t offset, cohi_hole *hole)
{
    const struct block *block = floor_of(blocks, offset);
    if (!block || block->asked || offset - block->offset >= block->length)
        return false;
    *hole =
        (cohi_hole){block->offset, block->offset + block->length, block->bare_from, block->bare_to};
    return true;
}

void cohi_blocks_strip(cohi_blocks *blocks, uint64_t from, uint64_t to)
{
    struct block *block = floor_of(blocks, from);
    if (block && !block->asked)
        add_bare(blocks, block, from, to);
}

void cohi_blocks_claim(cohi_blocks *blocks, uint64_t offset, uint64_t *from, uint64_t *to)
{
    struct block *block = taken_at(blocks, offset);
    *from = block ? block->bare_from : 0;
    *to = block ? block->bare_to : 0;
    if (block)
        set_bare(blocks, block, 0, 0);
}

uint64_t cohi_blocks_bare(const cohi_blocks *blocks)
{
    return blocks->bare;
}

uint64_t cohi_blocks_used(const cohi_blocks *blocks)
{
    return blocks->used;
}

uint64_t cohi_blocks_count(const cohi_blocks *blocks)
{
    return blocks->count;
}

uint64_t cohi_blocks_largest(const cohi_blocks *blocks)
{
    const struct block *at = blocks->root[BY_LENGTH];
    while (at && at->right[BY_LENGTH])
        at = at->right[BY_LENGTH];
    return at ? at->length : 0;
}

/* ---- soundness ---- */

struct audit {
    uint64_t end; /* of the block before */
    uint64_t used, count, free_blocks, bare;
    bool was_free;
    bool sound;
};

static bool is_bare_inside(const struct block *block)
{
    return block->bare_from == block->bare_to
           || (block->bare_from >= block->offset && block->bare_from < block->bare_to
               && block->bare_to <= block->offset + block->length);
}

static void audit_block(const struct block *block, struct audit *audit)
{
    bool is_free = block->asked == 0;
    audit->sound = audit->sound && block->offset == audit->end && block->length > 0
                   && block->length % COHI_BLOCK_BYTES == 0 && block->asked <= block->length
                   && !(is_free && audit->was_free) && is_bare_inside(block);
    audit->bare += block->bare_to - block->bare_from;
    audit->end += block->length;
    audit->was_free = is_free;
    audit->free_blocks += is_free;
    audit->used += is_free ? 0 : block->length;
    audit->count += !is_free;
}

static void audit_tree(const struct block *at, struct audit *audit)
{
    if (!at)
        return;
    audit_tree(at->left[BY_OFFSET], audit);
    audit_block(at, audit);
    audit_tree(at->right[BY_OFFSET], audit);
}

static uint64_t count_free(const struct block *at)
{
    return at ? 1 + count_free(at->left[BY_LENGTH]) + count_free(at->right[BY_LENGTH]) : 0;
}

bool cohi_blocks_sound(const cohi_blocks *blocks)
{
    struct audit audit = {.sound = true};
    audit_tree(blocks->root[BY_OFFSET], &audit);
    return audit.sound && audit.end == blocks->capacity && audit.used == blocks->used
           && audit.count == blocks->count && audit.bare == blocks->bare
           && audit.free_blocks == count_free(blocks->root[BY_LENGTH]);
}
