/* bench/points.c - what is measured: each benchmark for each variant and size. */
#include "bench/bench.h"

#include "base/os.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t full_sizes[] = {8,       64,      1 << 10, 8 << 10,  64 << 10, 256 << 10,
                                      1 << 20, 2 << 20, 4 << 20, 16 << 20, 64 << 20};
static const uint64_t quick_sizes[] = {8, 1 << 10, 64 << 10, 1 << 20, 16 << 20};
static const uint64_t collective_sizes[] = {8,        64,       256,       1 << 10, 4 << 10,
                                            16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20,
                                            16 << 20, 64 << 20, 256 << 20};

struct sizes {
    const uint64_t *at;
    size_t count;
};

/* Of a check: what fits in a line, in the first, second and third cache, and in none. */
static const uint64_t check_sizes[] = {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20};

/* Ranks that share cores, or are many, take long: fewer sizes and variants tell enough. */
static int is_small_job(const cohi_bench_options *options)
{
    return options->ranks <= 2 && !options->crowded && !options->quick && !options->load
           && !options->check;
}

static struct sizes sizes_of(const cohi_bench_options *options, const cohi_bench_case *row)
{
    if (options->size_count)
        return (struct sizes){options->sizes, options->size_count};
    if (options->check)
        return (struct sizes){check_sizes, sizeof check_sizes / sizeof *check_sizes};
    if (row->collective && is_small_job(options))
        return (struct sizes){collective_sizes, sizeof collective_sizes / sizeof *collective_sizes};
    if (options->quick || options->load || options->against || row->collective)
        return (struct sizes){quick_sizes, sizeof quick_sizes / sizeof *quick_sizes};
    return (struct sizes){full_sizes, sizeof full_sizes / sizeof *full_sizes};
}

/* Source and target of all ranks, at most; a quarter of the memory is theirs. Total memory is the
 * same whenever it is asked for, so all ranks agree. */
static int fits(const cohi_bench_options *options, const cohi_bench_case *row, uint64_t bytes)
{
    const cohi_bench_collective *collective =
        row->collective ? cohi_bench_collective_named(row->name) : NULL;
    if (!collective)
        return 1;
    if (options->ranks > COHI_LIMIT_PARTIES)
        return 0;
    uint64_t times = collective->gathers ? 1 + options->ranks : 2;
    return bytes <= cohi_os_memory_total() / 4 / options->ranks / times;
}

struct list {
    cohi_bench_points points;
    size_t room;
};

static int add(struct list *list, const cohi_bench_point *point)
{
    if (list->points.count == list->room) {
        size_t room = list->room ? list->room * 2 : 64;
        cohi_bench_point *at = realloc(list->points.at, room * sizeof *at);
        if (!at)
            return -1;
        list->points.at = at;
        list->room = room;
    }
    list->points.at[list->points.count++] = *point;
    return 0;
}

/* The longest take so long that beside peers they are worth it once. */
static int too_long(const cohi_bench_options *options, const cohi_bench_point *point)
{
    enum { LONG_BYTES = 128 << 20 };
    int plain = strcmp(point->row->name, "all_reduce") == 0 && point->variant.dtype == COH_F32
                && !point->variant.cold;
    return options->against && !options->size_count && point->bytes >= LONG_BYTES && !plain;
}

static void add_sizes(struct list *list, const cohi_bench_options *options, cohi_bench_point point)
{
    struct sizes sizes = sizes_of(options, point.row);
    for (size_t i = 0; i < sizes.count; i++) {
        point.bytes = sizes.at[i];
        if (fits(options, point.row, point.bytes) && !too_long(options, &point))
            add(list, &point);
    }
}

static int is_all_reduce(const cohi_bench_case *row)
{
    return strcmp(row->name, "all_reduce") == 0;
}

/* Where nothing was chosen: the heap, and private memory for all_reduce. */
static int wants_memory(const cohi_bench_options *options, const cohi_bench_point *point,
                        int private)
{
    if (options->heap || options->private)
        return private ? options->private : options->heap;
    int both =
        is_all_reduce(point->row) && is_small_job(options) && point->variant.dtype == COH_F32;
    return !private || both;
}

static int wants_caches(const cohi_bench_options *options, const cohi_bench_point *point, int cold)
{
    if (options->warm || options->cold)
        return cold ? options->cold : options->warm;
    return !cold || (is_small_job(options) && point->variant.dtype == COH_F32);
}

static void add_variants(struct list *list, const cohi_bench_options *options,
                         cohi_bench_point point)
{
    point.variant.in_place = options->in_place;
    for (int private = 0; private <= 1; private ++) {
        if (!wants_memory(options, &point, private))
            continue;
        for (int cold = 0; cold <= 1; cold++) {
            point.variant.private = private;
            point.variant.cold = cold;
            if (wants_caches(options, &point, cold))
                add_sizes(list, options, point);
        }
    }
}

static void add_types(struct list *list, const cohi_bench_options *options, cohi_bench_point point)
{
    static const coh_dtype usual[] = {COH_F32, COH_BF16, COH_F16};
    int more = is_all_reduce(point.row) && is_small_job(options);
    const coh_dtype *types = options->dtype_count ? options->dtypes : usual;
    size_t count = options->dtype_count ? options->dtype_count : more ? 3 : 1;
    for (size_t i = 0; i < count; i++) {
        point.variant.dtype = types[i];
        add_variants(list, options, point);
    }
}

cohi_bench_points cohi_bench_points_of(const cohi_bench_options *options)
{
    struct list list = {{NULL, 0}, 0};
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        cohi_bench_point point = {.row = row};
        if (!(options->chosen >> i & 1) || options->ranks < (uint64_t)row->least_ranks)
            continue;
        if (row->collective)
            add_types(&list, options, point);
        else if (row->sized)
            add_sizes(&list, options, point);
        else
            add(&list, &point);
    }
    return list.points;
}

double cohi_bench_weight(const cohi_bench_point *point)
{
    enum { LIKE_A_SMALL_ONE = 2 << 20 };
    return 1 + (double)point->bytes / LIKE_A_SMALL_ONE;
}

void cohi_bench_point_key(const cohi_bench_point *point, char *key, size_t room)
{
    if (point->row->collective)
        snprintf(key, room, "%s/%s/%s%s", point->row->name, coh_dtype_name(point->variant.dtype),
                 point->variant.cold ? "cold" : "warm", point->variant.in_place ? "/in-place" : "");
    else
        snprintf(key, room, "%s", point->row->name);
}
