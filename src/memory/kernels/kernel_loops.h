/*
 * kernel_loops.h - one pass over all sources, into all targets.
 *
 * Included after a lanes_*.h. A kernel is the loop below with everything known at compile time: how
 * elements come out of memory into lanes (`in`), how two are combined, what is done at the end, and
 * how they go back (`out`). All of it is inlined, so that results stay in registers from the first
 * source to the last target.
 */
#ifndef COHI_MEMORY_KERNELS_KERNEL_LOOPS_H
#define COHI_MEMORY_KERNELS_KERNEL_LOOPS_H

#include "memory/kernels/kernels.h"

/* A vector's lanes, of whatever type. */
typedef v_u8 lanes;

/* Vectors in flight at a time: they hide the latency of loads and sums. Four of
 * them, four that are loaded, and what a conversion takes still fit in sixteen registers. */
enum { BLOCK_UNITS = 4 };

typedef void store_form(char *target, lanes a, lanes b, lanes c, lanes d);

/* Between memory and lanes. The _some forms take the first elements only. */
struct codec {
    size_t element; /* bytes */
    size_t unit;    /* elements that fill the lanes */
    lanes (*load)(const char *source);
    lanes (*load_some)(const char *source, size_t bytes);
    void (*store)(char *target, lanes result);
    void (*store_some)(char *target, lanes result, size_t bytes);
    store_form *store_block;
    store_form *stream_block;
};

struct recipe {
    const struct codec *in;
    const struct codec *out; /* with as many elements a unit */
    lanes (*combine)(lanes a, lanes b);
    lanes (*finish)(lanes result, int ranks);
};

/* Whole blocks from element `at` on, while they end at or before `count`; where it stopped. */
LANES_INLINE size_t reduce_blocks(const cohi_kernel_job *job, const struct recipe *recipe,
                                  store_form *store, size_t at)
{
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element, element = recipe->out->element;
    const int source_count = job->source_count, target_count = job->target_count;
    for (; job->count - at >= BLOCK_UNITS * in->unit; at += BLOCK_UNITS * in->unit) {
        const char *from = (const char *)job->sources[0] + at * in->element;
        lanes a = in->load(from), b = in->load(from + step);
        lanes c = in->load(from + 2 * step), d = in->load(from + 3 * step);
        for (int s = 1; s < source_count; s++) {
            from = (const char *)job->sources[s] + at * in->element;
            a = recipe->combine(a, in->load(from));
            b = recipe->combine(b, in->load(from + step));
            c = recipe->combine(c, in->load(from + 2 * step));
            d = recipe->combine(d, in->load(from + 3 * step));
        }
        a = recipe->finish(a, job->ranks);
        b = recipe->finish(b, job->ranks);
        c = recipe->finish(c, job->ranks);
        d = recipe->finish(d, job->ranks);
        for (int t = 0; t < target_count; t++)
            store((char *)job->targets[t] + at * element, a, b, c, d);
    }
    return at;
}

/* reduce_blocks for two sources and one target, with the pointers in registers. */
LANES_INLINE size_t reduce_pairs(const cohi_kernel_job *job, const struct recipe *recipe, size_t at)
{
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element, element = recipe->out->element, count = job->count;
    const char *first = job->sources[0], *second = job->sources[1];
    char *target = job->targets[0];
    const int ranks = job->ranks;
    for (; count - at >= BLOCK_UNITS * in->unit; at += BLOCK_UNITS * in->unit) {
        const char *x = first + at * in->element, *y = second + at * in->element;
        lanes a = recipe->combine(in->load(x), in->load(y));
        lanes b = recipe->combine(in->load(x + step), in->load(y + step));
        lanes c = recipe->combine(in->load(x + 2 * step), in->load(y + 2 * step));
        lanes d = recipe->combine(in->load(x + 3 * step), in->load(y + 3 * step));
        recipe->out->store_block(target + at * element, recipe->finish(a, ranks),
                                 recipe->finish(b, ranks), recipe->finish(c, ranks),
                                 recipe->finish(d, ranks));
    }
    return at;
}

/*
 * reduce_pairs with stores past the caches, while there are bytes to copy in the same pass. Loads
 * that come from far and stores that go far then wait for each other less. (For what this is see
 * staged_reduce.c: 16 MiB in turns of a whole part 2.53 ms, of 1 KiB 2.37, of a block 2.32.)
 */
LANES_INLINE size_t stream_pairs_and_copy(const cohi_kernel_job *job, const struct recipe *recipe,
                                          store_form *store, size_t at)
{
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element, block = BLOCK_UNITS * in->unit;
    cohi_kernel_copy *copy = job->copy;
    const char *first = job->sources[0], *second = job->sources[1];
    char *target = job->targets[0];
    size_t copied = 0;
    for (; job->count - at >= block && copy->bytes - copied >= BLOCK_UNITS * step; at += block) {
        const char *x = first + at * in->element, *y = second + at * in->element;
        lanes a = recipe->combine(in->load(x), in->load(y));
        lanes b = recipe->combine(in->load(x + step), in->load(y + step));
        lanes c = recipe->combine(in->load(x + 2 * step), in->load(y + 2 * step));
        lanes d = recipe->combine(in->load(x + 3 * step), in->load(y + 3 * step));
        for (size_t end = copied + BLOCK_UNITS * step; copied < end; copied += LANES_BYTES)
            *(v_u8_there *)(copy->target + copied) = *(const v_u8_there *)(copy->source + copied);
        store(target + at * recipe->out->element, recipe->finish(a, job->ranks),
              recipe->finish(b, job->ranks), recipe->finish(c, job->ranks),
              recipe->finish(d, job->ranks));
    }
    *copy = (cohi_kernel_copy){copy->target + copied, copy->source + copied, copy->bytes - copied};
    return at;
}

/* Blocks of a conversion: one source and one target, of other elements. */
LANES_INLINE size_t convert_blocks(const cohi_kernel_job *job, const struct recipe *recipe,
                                   store_form *store, size_t at)
{
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element, blocks = (job->count - at) / in->unit / BLOCK_UNITS;
    const char *from = (const char *)job->sources[0] + at * in->element;
    char *to = (char *)job->targets[0] + at * recipe->out->element;
    for (size_t i = 0; i < blocks; i++) {
        store(to, in->load(from), in->load(from + step), in->load(from + 2 * step),
              in->load(from + 3 * step));
        from += BLOCK_UNITS * step;
        to += BLOCK_UNITS * in->unit * recipe->out->element;
    }
    return at + blocks * BLOCK_UNITS * in->unit;
}

/*
 * convert_blocks with a page of f32 each at four places side by side, where the profile says so: 64
 * MiB of f32 to f16, streamed, Sapphire Rapids, 3.3 ms, straight on 3.9. The next four are
 * prefetched, since arithmetic leaves little room for loads in flight: to f8e4m3 when it took 40
 * operations for 64 elements, seven runs each, 9.6 to 11.5 ns, not ahead 9.7 to 13.2.
 */
LANES_INLINE size_t convert_pages(const cohi_kernel_job *job, const struct recipe *recipe,
                                  store_form *store, size_t at)
{
    enum { PAGES = 4, PAGE_ELEMENTS = 4096 / sizeof(float) };
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element, block = BLOCK_UNITS * in->unit;
    const char *source = job->sources[0];
    char *target = job->targets[0];
    for (; job->count - at >= PAGES * PAGE_ELEMENTS; at += PAGES * PAGE_ELEMENTS) {
        for (size_t in_page = 0; in_page < PAGE_ELEMENTS; in_page += block) {
            for (size_t page = 0; page < PAGES; page++) {
                size_t element = at + page * PAGE_ELEMENTS + in_page;
                const char *from = source + element * in->element;
                for (size_t line = 0; line < BLOCK_UNITS * step; line += 64)
                    __builtin_prefetch(from + PAGES * PAGE_ELEMENTS * in->element + line);
                store(target + element * recipe->out->element, in->load(from),
                      in->load(from + step), in->load(from + 2 * step), in->load(from + 3 * step));
            }
        }
    }
    return convert_blocks(job, recipe, store, at);
}

/* Less than a unit. */
LANES_INLINE void reduce_some(const cohi_kernel_job *job, const struct recipe *recipe, size_t at,
                              size_t elements)
{
    const struct codec *in = recipe->in, *out = recipe->out;
    const size_t from = at * in->element, bytes = elements * in->element;
    lanes a = in->load_some((const char *)job->sources[0] + from, bytes);
    for (int s = 1; s < job->source_count; s++)
        a = recipe->combine(a, in->load_some((const char *)job->sources[s] + from, bytes));
    a = recipe->finish(a, job->ranks);
    for (int t = 0; t < job->target_count; t++)
        out->store_some((char *)job->targets[t] + at * out->element, a, elements * out->element);
}

/* Elements [at, end), one unit at a time. */
LANES_INLINE void reduce_units(const cohi_kernel_job *job, const struct recipe *recipe, size_t at,
                               size_t end)
{
    const struct codec *in = recipe->in, *out = recipe->out;
    for (; end - at >= in->unit; at += in->unit) {
        lanes a = in->load((const char *)job->sources[0] + at * in->element);
        for (int s = 1; s < job->source_count; s++)
            a = recipe->combine(a, in->load((const char *)job->sources[s] + at * in->element));
        a = recipe->finish(a, job->ranks);
        for (int t = 0; t < job->target_count; t++)
            out->store((char *)job->targets[t] + at * out->element, a);
    }
    if (at < end)
        reduce_some(job, recipe, at, end - at);
}

/* ---- scans ---- */

/*
 * Whole blocks, as reduce_blocks; but target t gets the result of the sources up to t, which stays
 * in registers from one to the next. A source is loaded before the target ahead of it is stored,
 * so that these may be the same memory.
 */
LANES_INLINE size_t scan_blocks(const cohi_kernel_job *job, const struct recipe *recipe,
                                store_form *store, size_t at)
{
    const struct codec *in = recipe->in;
    const size_t step = in->unit * in->element;
    const int source_count = job->source_count;
    for (; job->count - at >= BLOCK_UNITS * in->unit; at += BLOCK_UNITS * in->unit) {
        const size_t byte = at * in->element;
        const char *from = (const char *)job->sources[0] + byte;
        lanes a = in->load(from), b = in->load(from + step);
        lanes c = in->load(from + 2 * step), d = in->load(from + 3 * step);
        for (int s = 1; s < source_count; s++) {
            from = (const char *)job->sources[s] + byte;
            lanes e = in->load(from), f = in->load(from + step);
            lanes g = in->load(from + 2 * step), h = in->load(from + 3 * step);
            store((char *)job->targets[s - 1] + byte, a, b, c, d);
            a = recipe->combine(a, e);
            b = recipe->combine(b, f);
            c = recipe->combine(c, g);
            d = recipe->combine(d, h);
        }
        store((char *)job->targets[source_count - 1] + byte, a, b, c, d);
    }
    return at;
}

/* Elements [at, end), a unit or less at a time. */
LANES_INLINE void scan_units(const cohi_kernel_job *job, const struct recipe *recipe, size_t at,
                             size_t end)
{
    const struct codec *in = recipe->in;
    for (size_t elements; at < end; at += elements) {
        elements = end - at < in->unit ? end - at : in->unit;
        const size_t byte = at * in->element, bytes = elements * in->element;
        lanes a = in->load_some((const char *)job->sources[0] + byte, bytes);
        for (int s = 1; s < job->source_count; s++) {
            lanes next = in->load_some((const char *)job->sources[s] + byte, bytes);
            in->store_some((char *)job->targets[s - 1] + byte, a, bytes);
            a = recipe->combine(a, next);
        }
        in->store_some((char *)job->targets[job->source_count - 1] + byte, a, bytes);
    }
}

/* ---- whole runs ---- */

typedef void units_form(const cohi_kernel_job *job, size_t at, size_t end);
typedef size_t blocks_form(const cohi_kernel_job *job, const struct recipe *recipe,
                           store_form *store, size_t at);

#ifdef LANES_STREAM

enum { STREAM_ALIGNMENT = 64 };

/* Elements up to the first one at an aligned address of all targets; SIZE_MAX: there is none. */
static inline size_t stream_head(const cohi_kernel_job *job, size_t element)
{
    size_t bytes = -(uintptr_t)job->targets[0] % STREAM_ALIGNMENT;
    for (int t = 1; t < job->target_count; t++) {
        if (-(uintptr_t)job->targets[t] % STREAM_ALIGNMENT != bytes)
            return SIZE_MAX;
    }
    return bytes % element == 0 ? bytes / element : SIZE_MAX;
}

/* Where it stopped; 0: nothing was done. */
LANES_INLINE size_t stream_blocks(const cohi_kernel_job *job, const struct recipe *recipe,
                                  blocks_form *blocks, units_form *units)
{
    size_t head = stream_head(job, recipe->out->element);
    if (head >= job->count)
        return 0;
    units(job, 0, head);
    head = blocks(job, recipe, recipe->out->stream_block, head);
    stream_end(); /* streamed stores obey no order, not even a release's */
    return head;
}

#else

LANES_INLINE size_t stream_blocks(const cohi_kernel_job *job, const struct recipe *recipe,
                                  blocks_form *blocks, units_form *units)
{
    (void)job, (void)recipe, (void)blocks, (void)units;
    return 0;
}

#endif

/* With the copy in the same pass, where it is two sources into one target. */
LANES_INLINE size_t reduce_streamed(const cohi_kernel_job *job, const struct recipe *recipe,
                                    store_form *store, size_t at)
{
    if (job->copy && job->source_count == 2 && job->target_count == 1)
        at = stream_pairs_and_copy(job, recipe, store, at);
    return reduce_blocks(job, recipe, store, at);
}

/* A whole reduction; `units` is reduce_units for this recipe, out of line. */
LANES_INLINE void reduce_all(const cohi_kernel_job *job, const struct recipe *recipe,
                             units_form *units)
{
    size_t at = job->stream ? stream_blocks(job, recipe, reduce_streamed, units) : 0;
    if (job->source_count == 2 && job->target_count == 1)
        at = reduce_pairs(job, recipe, at);
    else
        at = reduce_blocks(job, recipe, recipe->out->store_block, at);
    if (at < job->count)
        units(job, at, job->count);
}

/* A whole scan; `units` is scan_units for this recipe, out of line. */
LANES_INLINE void scan_all(const cohi_kernel_job *job, const struct recipe *recipe,
                           units_form *units)
{
    size_t at = job->stream ? stream_blocks(job, recipe, scan_blocks, units) : 0;
    at = scan_blocks(job, recipe, recipe->out->store_block, at);
    if (at < job->count)
        units(job, at, job->count);
}

/* A whole conversion; `units` is that of its recipe, out of line. */
LANES_INLINE void convert_all(const cohi_kernel_job *job, const struct recipe *recipe,
                              units_form *units)
{
    size_t at = !job->stream      ? 0
                : job->pages == 4 ? stream_blocks(job, recipe, convert_pages, units)
                                  : stream_blocks(job, recipe, convert_blocks, units);
    at = convert_blocks(job, recipe, recipe->out->store_block, at);
    if (at < job->count)
        units(job, at, job->count);
}

#endif
