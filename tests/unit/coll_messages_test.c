/*
 * Every algorithm that is made of messages, row by row, against sums made one element at a time.
 *
 * The ranks are threads of this process. Each runs the same list of cases and computes by itself
 * what it must get, from what it knows that the others bring. Workspace and target are exactly as
 * long as they need to be, with guards around them.
 */
#include "unit.h"

#include "coll/message/messages.h"
#include "core/message/mailbox.h"
#include "memory/convert.h"
#include "memory/reduce.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MOST = 7, GUARD = 64, GUARD_BYTE = 0xa5, WORDS_MOST = 200, LONG = 70000 };

/* How source and target lie: apart, the same on all members, the same on every other one. */
typedef enum placing { APART, SAME, MIXED, PLACINGS } placing;
typedef enum cut { UNIFORM, VARIABLE, STRIDED } cut;

struct rank {
    coh_world *world;
    int size, index;
    char failure[WORDS_MOST];
    uint64_t *digests; /* [RANKS_MOST], of all members' results */
};

struct one {
    const cohi_algorithm *row;
    coh_dtype dtype;
    coh_reduce_op op;
    size_t count;
    int root;
    placing placing;
    cut cut;
    bool exclusive;
    bool rough; /* values whose sums are rounded */
};

/* ---- values ---- */

static uint64_t scramble(uint64_t word)
{
    word = (word ^ word >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

/* What member `from` has at element `at`. Rough ones have all the digits of an f32. */
static double value_of(const struct one *one, int from, size_t at)
{
    uint64_t word = scramble((uint64_t)from * 1000003 + at * 17 + 5);
    if (one->rough)
        return 1 + (double)(word >> 40) / (double)(1 << 24);
    if (one->op == COH_PRODUCT)
        return 1 + (double)(word % 3);
    return (double)(word % 40) - (one->dtype == COH_U8 ? 0 : 12);
}

static bool is_small(coh_dtype dtype)
{
    return cohi_reduce_partial(dtype) != dtype;
}

static void put(coh_dtype dtype, char *array, size_t at, double value)
{
    char *place = array + at * coh_dtype_size(dtype);
    float single = (float)value;
    if (is_small(dtype))
        cohi_convert(place, dtype, &single, COH_F32, 1);
    else if (dtype == COH_F32)
        memcpy(place, &single, sizeof single);
    else if (dtype == COH_F64)
        memcpy(place, &value, sizeof value);
    else if (dtype == COH_I32)
        memcpy(place, &(int32_t){(int32_t)value}, sizeof(int32_t));
    else
        *place = (char)(uint8_t)value;
}

static double get(coh_dtype dtype, const char *array, size_t at)
{
    const char *place = array + at * coh_dtype_size(dtype);
    float single;
    double whole;
    int32_t integer;
    if (is_small(dtype)) {
        cohi_convert(&single, COH_F32, place, dtype, 1);
        return (double)single;
    }
    if (dtype == COH_F32)
        return (double)(memcpy(&single, place, sizeof single), single);
    if (dtype == COH_F64)
        return memcpy(&whole, place, sizeof whole), whole;
    if (dtype == COH_I32)
        return (double)(memcpy(&integer, place, sizeof integer), integer);
    return (double)*(const unsigned char *)place;
}

/* As the buffers hold it. */
static double held(const struct one *one, int from, size_t at)
{
    char element[8];
    put(one->dtype, element, 0, value_of(one, from, at));
    return get(one->dtype, element, 0);
}

static double apply(coh_reduce_op op, double left, double right)
{
    switch (op) {
    case COH_PRODUCT:
        return left * right;
    case COH_MIN:
        return left < right ? left : right;
    case COH_MAX:
        return left > right ? left : right;
    case COH_XOR:
        return (double)((int32_t)left ^ (int32_t)right);
    default:
        return left + right;
    }
}

/* Of members `first` to `last`, without a mean's division. */
static double folded(const struct one *one, int first, int last, size_t at)
{
    double sum = held(one, first, at);
    for (int i = first + 1; i <= last; i++)
        sum = apply(one->op, sum, held(one, i, at));
    return sum;
}

static double divided(const struct one *one, double sum, int ranks)
{
    if (one->op != COH_MEAN)
        return sum;
    if (one->dtype == COH_I32)
        return (double)((int32_t)sum / ranks);
    return one->dtype == COH_F64 ? sum / ranks : (double)((float)sum / (float)ranks);
}

/* ---- buffers ---- */

/* Memory with guards; 64-byte aligned. */
struct guarded {
    char *base;
    char *data;
    size_t bytes;
};

static struct guarded guarded_new(size_t bytes)
{
    size_t whole = (bytes + 2 * GUARD + 63) / 64 * 64;
    struct guarded made = {.base = aligned_alloc(64, whole), .bytes = bytes};
    if (!made.base)
        abort();
    made.data = made.base + GUARD;
    memset(made.base, GUARD_BYTE, whole);
    return made;
}

static bool guarded_free(struct guarded *memory)
{
    bool whole = true;
    for (int i = 0; i < GUARD; i++)
        whole = whole && (unsigned char)memory->base[i] == GUARD_BYTE
                && (unsigned char)memory->data[memory->bytes + (size_t)i] == GUARD_BYTE;
    free(memory->base);
    return whole;
}

/* ---- one case ---- */

struct run {
    struct rank *rank;
    const struct one *one;
    cohi_call call;
    struct guarded source, target, workspace;
    size_t counts[RANKS_MOST], firsts[RANKS_MOST];       /* of the source, or of both */
    size_t to_counts[RANKS_MOST], to_firsts[RANKS_MOST]; /* of the target */
    size_t source_elements, target_elements;
};

static void fail_case(struct run *run, const char *what, size_t at)
{
    const struct one *one = run->one;
    if (run->rank->failure[0])
        return;
    snprintf(run->rank->failure, WORDS_MOST,
             "%s of kind %d, %d ranks: %s; member %d, element %zu of %zu, type %s, op %d, root %d, "
             "placing %d, cut %d%s",
             one->row->name, one->row->kind, run->rank->size, what, run->rank->index, at,
             one->count, coh_dtype_name(one->dtype), one->op, one->root, one->placing, one->cut,
             one->exclusive ? ", exclusive" : "");
}

/* Variable blocks: some are empty. What i sends to j in all_to_all. */
static size_t variable_count(const struct one *one, int from, int to)
{
    size_t some = (size_t)((from * 3 + to * 5) % 4);
    return some == 0 ? 0 : one->count / some + (size_t)to % 2;
}

static size_t lay_firsts(const size_t *counts, size_t *firsts, int size)
{
    size_t at = 0;
    for (int i = 0; i < size; i++) {
        firsts[i] = at;
        at += counts[i];
    }
    return at;
}

static void cut_blocks(struct run *run)
{
    const struct one *one = run->one;
    cohi_call *call = &run->call;
    int size = run->rank->size, index = run->rank->index;
    bool exchange = one->row->kind == COH_COLLECTIVE_ALL_TO_ALL;
    call->from = call->to = (cohi_blocks){.count = one->count, .stride = 1};
    run->source_elements = run->target_elements = one->count * (size_t)size;
    if (one->cut == STRIDED) {
        call->from.stride = 3;
        call->to.stride = 2;
        run->source_elements *= 3;
        run->target_elements *= 2;
    }
    if (one->cut != VARIABLE)
        return;
    for (int i = 0; i < size; i++) {
        run->counts[i] = variable_count(one, exchange ? index : 0, i);
        run->to_counts[i] = variable_count(one, exchange ? i : 0, exchange ? index : i);
    }
    run->source_elements = lay_firsts(run->counts, run->firsts, size);
    run->target_elements = lay_firsts(run->to_counts, run->to_firsts, size);
    call->from = (cohi_blocks){.counts = run->counts, .firsts = run->firsts, .stride = 1};
    call->to = (cohi_blocks){.counts = run->to_counts, .firsts = run->to_firsts, .stride = 1};
}

/* Where what this member has, or gets, lies in the larger buffer when they are the same memory. */
static bool size_buffers(struct run *run, size_t *inner)
{
    const struct one *one = run->one;
    int index = run->rank->index;
    bool root = index == one->root;
    *inner = 0;
    switch (one->row->kind) {
    case COH_COLLECTIVE_REDUCE_SCATTER:
        run->target_elements = cohi_block_count(&run->call.from, index);
        *inner = cohi_block_first(&run->call.from, index);
        return true;
    case COH_COLLECTIVE_ALL_GATHER:
        run->source_elements = cohi_block_count(&run->call.to, index);
        *inner = cohi_block_first(&run->call.to, index);
        return true;
    case COH_COLLECTIVE_GATHER:
        run->source_elements = one->count;
        run->target_elements = root ? run->target_elements : 0;
        *inner = one->count * (size_t)index;
        return root;
    case COH_COLLECTIVE_SCATTER:
        run->source_elements = root ? run->source_elements : 0;
        run->target_elements = one->count;
        *inner = one->count * (size_t)index;
        return root;
    case COH_COLLECTIVE_ALL_TO_ALL:
        return one->cut == UNIFORM;
    default:
        run->source_elements = run->target_elements = one->count;
        return one->row->kind == COH_COLLECTIVE_ALL_REDUCE || one->row->kind == COH_COLLECTIVE_SCAN
               || root;
    }
}

static void place_buffers(struct run *run)
{
    const struct one *one = run->one;
    cohi_call *call = &run->call;
    size_t element = call->element, inner;
    bool may = size_buffers(run, &inner);
    bool same = may && (one->placing == SAME || (one->placing == MIXED && run->rank->index % 2));
    run->source = guarded_new(run->source_elements * element);
    run->target = guarded_new(run->target_elements * element);
    call->source = run->source.data;
    call->target = run->target.data;
    if (same && run->source.bytes > run->target.bytes)
        call->target = run->source.data + inner * element;
    else if (same)
        call->source = run->target.data + inner * element;
}

static void fill_source(struct run *run)
{
    const struct one *one = run->one;
    for (size_t i = 0; i < run->source_elements; i++)
        put(one->dtype, (char *)run->call.source, i, value_of(one, run->rank->index, i));
}

/* The next element that is looked at: all of short arrays, of long ones every few and the last. */
static size_t next_of(size_t at, size_t count)
{
    size_t step = count < LONG / RANKS_MOST ? 1 : 23;
    return at + step < count || at + 1 == count ? at + step : count - 1;
}

/* ---- what must be in the target ---- */

static void check_untouched(struct run *run)
{
    for (size_t i = 0; i < run->target.bytes; i++)
        if ((unsigned char)run->target.data[i] != GUARD_BYTE)
            fail_case(run, "the target was touched", i);
}

static bool reduces(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_ALL_REDUCE || kind == COH_COLLECTIVE_REDUCE
           || kind == COH_COLLECTIVE_REDUCE_SCATTER || kind == COH_COLLECTIVE_SCAN;
}

/* Rounded once: within half a unit of the last place, and what is lost in an f32 on the way. Rows
 * in rank order have the bits of one reduction of all. */
static void check_rough(struct run *run, int first, int last, size_t at, size_t target_at)
{
    const struct one *one = run->one;
    double exact = folded(one, first, last, at);
    if (one->op == COH_MEAN)
        exact /= run->rank->size;
    double found = get(one->dtype, run->call.target, target_at);
    double unit = one->dtype == COH_BF16 ? 0x1p-9 : one->dtype == COH_F16 ? 0x1p-12 : 0x1p-24;
    if (fabs(found - exact) > exact * (2 * unit + 8 * 0x1p-24))
        fail_case(run, "rounded more than once", at);
    if (!(one->row->traits & COHI_RANK_ORDER))
        return;
    char elements[RANKS_MOST][8], whole[8];
    const void *sources[RANKS_MOST];
    for (int i = first; i <= last; i++) {
        put(one->dtype, elements[i], 0, value_of(one, i, at));
        sources[i - first] = elements[i];
    }
    const cohi_reduction how = {.dtype = one->dtype, .op = one->op, .ranks = run->rank->size};
    cohi_reduce(&how, (void *const[]){whole}, 1, sources, last - first + 1, 1);
    if (memcmp(whole, run->call.target + target_at * run->call.element, run->call.element) != 0)
        fail_case(run, "not in rank order", at);
}

static void check_element(struct run *run, int first, int last, size_t at, size_t target_at)
{
    const struct one *one = run->one;
    if (one->rough) {
        check_rough(run, first, last, at, target_at);
        return;
    }
    char expected[8];
    put(one->dtype, expected, 0, divided(one, folded(one, first, last, at), run->rank->size));
    if (memcmp(expected, run->call.target + target_at * run->call.element, run->call.element) != 0)
        fail_case(run, "a wrong result", at);
}

static double identity_of(const struct one *one)
{
    bool integer = one->dtype == COH_I32;
    switch (one->op) {
    case COH_PRODUCT:
        return 1;
    case COH_MIN:
        return integer ? INT32_MAX : one->dtype == COH_U8 ? 255 : (double)INFINITY;
    case COH_MAX:
        return integer ? INT32_MIN : one->dtype == COH_U8 ? 0 : -(double)INFINITY;
    default:
        return 0;
    }
}

static void check_reduced(struct run *run)
{
    const struct one *one = run->one;
    int index = run->rank->index, last = run->rank->size - 1;
    size_t first = 0;
    if (one->row->kind == COH_COLLECTIVE_REDUCE && index != one->root) {
        check_untouched(run);
        return;
    }
    if (one->row->kind == COH_COLLECTIVE_REDUCE_SCATTER)
        first = cohi_block_first(&run->call.from, index);
    if (one->row->kind == COH_COLLECTIVE_SCAN)
        last = one->exclusive ? index - 1 : index;
    for (size_t i = 0; i < run->target_elements && !run->rank->failure[0];
         i = next_of(i, run->target_elements)) {
        if (last >= 0)
            check_element(run, 0, last, first + i, i);
        else if (get(one->dtype, run->call.target, i) != identity_of(one))
            fail_case(run, "not the identity", i);
    }
}

/* Element `k` of the target's block that came from `from`, at `at` in that member's source. */
static void check_moved(struct run *run, int from, size_t k, size_t at)
{
    const cohi_call *call = &run->call;
    size_t target_at = k;
    if (call->kind == COH_COLLECTIVE_ALL_GATHER || call->kind == COH_COLLECTIVE_GATHER
        || call->kind == COH_COLLECTIVE_ALL_TO_ALL)
        target_at = cohi_block_first(&call->to, from) + k * call->to.stride;
    if (get(call->dtype, call->target, target_at) != held(run->one, from, at))
        fail_case(run, "a wrong element", k);
}

/* Where the sender's block for this member begins in its source. */
static size_t source_first(const struct run *run, int from)
{
    const struct one *one = run->one;
    int index = run->rank->index;
    if (one->row->kind != COH_COLLECTIVE_ALL_TO_ALL && one->row->kind != COH_COLLECTIVE_SCATTER)
        return 0;
    if (one->cut != VARIABLE)
        return cohi_block_first(&run->call.from, index);
    size_t first = 0;
    for (int i = 0; i < index; i++)
        first += variable_count(one, from, i);
    return first;
}

static void check_blocks(struct run *run)
{
    const struct one *one = run->one;
    coh_collective_kind kind = one->row->kind;
    bool rooted = kind == COH_COLLECTIVE_BROADCAST || kind == COH_COLLECTIVE_SCATTER;
    if (kind == COH_COLLECTIVE_GATHER && run->rank->index != one->root)
        return;
    for (int from = rooted ? one->root : 0; from < (rooted ? one->root + 1 : run->rank->size);
         from++) {
        size_t count = rooted ? one->count : cohi_block_count(&run->call.to, from);
        size_t stride = kind == COH_COLLECTIVE_ALL_TO_ALL ? run->call.from.stride : 1;
        for (size_t k = 0; k < count && !run->rank->failure[0]; k = next_of(k, count))
            check_moved(run, from, k, source_first(run, from) + k * stride);
    }
}

/* All members of an all_reduce have the same bits. */
static void check_equal(struct run *run)
{
    struct rank *rank = run->rank;
    uint64_t digest = 1;
    for (size_t i = 0; i < run->target_elements; i++) {
        uint64_t bits = 0;
        memcpy(&bits, run->call.target + i * run->call.element, run->call.element);
        digest = scramble(digest + bits);
    }
    (void)coh_barrier(rank->world);
    rank->digests[rank->index] = digest;
    (void)coh_barrier(rank->world);
    for (int i = 0; i < rank->size; i++)
        if (rank->digests[i] != digest)
            fail_case(run, "members differ", 0);
}

static void check_source(struct run *run)
{
    const cohi_call *call = &run->call;
    const struct one *one = run->one;
    if (call->source != run->source.data || call->target != run->target.data)
        return;
    for (size_t i = 0; i < run->source_elements; i = next_of(i, run->source_elements))
        if (get(one->dtype, call->source, i) != held(one, run->rank->index, i))
            fail_case(run, "the source was changed", i);
}

/* ---- running it ---- */

static void run_case(struct rank *rank, const struct one *one)
{
    struct run run = {.rank = rank, .one = one};
    coh_team *team = coh_team_world(rank->world);
    run.call = (cohi_call){.team = team,
                           .name = "coll_messages_test",
                           .kind = one->row->kind,
                           .exclusive = one->exclusive,
                           .dtype = one->dtype,
                           .element = coh_dtype_size(one->dtype),
                           .reduce = one->op,
                           .root = one->root,
                           .count = one->count,
                           .algorithm = one->row};
    cut_blocks(&run);
    if (rank->failure[0] || (one->row->applies && !one->row->applies(&run.call)))
        return;
    place_buffers(&run);
    fill_source(&run);
    run.workspace = guarded_new(one->row->workspace ? one->row->workspace(&run.call) : 0);
    run.call.workspace = run.workspace.data;
    if (one->row->run(&run.call) != COH_OK)
        fail_case(&run, coh_last_error(), 0);
    else if (reduces(one->row->kind))
        check_reduced(&run);
    else
        check_blocks(&run);
    check_source(&run);
    if (one->rough && one->row->kind == COH_COLLECTIVE_ALL_REDUCE)
        check_equal(&run);
    int damaged = !guarded_free(&run.source);
    damaged += !guarded_free(&run.target);
    damaged += !guarded_free(&run.workspace);
    if (damaged)
        fail_case(&run, "a guard was overwritten", 0);
}

/* ---- the cases ---- */

static const size_t counts[] = {0, 1, 3, 17, 1000, LONG};
enum { COUNTS = sizeof counts / sizeof *counts };

static const struct pairing {
    coh_dtype dtype;
    coh_reduce_op op;
    bool rough, long_too;
} pairings[] = {
    {COH_I32, COH_SUM, false, true},      {COH_I32, COH_MEAN, false, false},
    {COH_I32, COH_XOR, false, false},     {COH_I32, COH_PRODUCT, false, false},
    {COH_U8, COH_MAX, false, false},      {COH_F32, COH_MIN, false, false},
    {COH_F32, COH_SUM, true, true},       {COH_F64, COH_MEAN, false, true},
    {COH_F64, COH_MAX, false, false},     {COH_F16, COH_SUM, true, true},
    {COH_F16, COH_MEAN, true, false},     {COH_F16, COH_MAX, false, false},
    {COH_F16, COH_PRODUCT, false, false}, {COH_BF16, COH_SUM, true, false},
    {COH_BF16, COH_MEAN, false, true},    {COH_BF16, COH_MIN, false, false},
};

static const coh_dtype moved_types[] = {COH_U8, COH_I32, COH_F64};

static bool is_rooted(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_REDUCE || kind == COH_COLLECTIVE_BROADCAST
           || kind == COH_COLLECTIVE_GATHER || kind == COH_COLLECTIVE_SCATTER;
}

static bool is_variable(coh_collective_kind kind)
{
    return kind == COH_COLLECTIVE_REDUCE_SCATTER || kind == COH_COLLECTIVE_ALL_GATHER
           || kind == COH_COLLECTIVE_ALL_TO_ALL;
}

/* Every root, cut and placing that the kind has; of long arrays, which take long, one root. */
static void run_forms(struct rank *rank, struct one one)
{
    coh_collective_kind kind = one.row->kind;
    const int roots[] = {rank->size / 2, 0, rank->size - 1};
    bool is_long = one.count == LONG;
    if (is_long && rank->size != 3 && rank->size != 4)
        return;
    for (int i = 0; i < (is_rooted(kind) && !is_long ? 3 : 1); i++) {
        one.root = roots[i];
        one.cut = UNIFORM;
        for (int way = is_long ? MIXED : APART; way < PLACINGS; way++) {
            one.placing = (placing)way;
            run_case(rank, &one);
        }
        one.placing = APART;
        one.cut = VARIABLE;
        if (is_variable(kind))
            run_case(rank, &one);
        one.cut = STRIDED;
        if (kind == COH_COLLECTIVE_ALL_TO_ALL)
            run_case(rank, &one);
    }
}

static void run_reductions(struct rank *rank, const cohi_algorithm *row)
{
    for (size_t i = 0; i < sizeof pairings / sizeof *pairings; i++)
        for (int c = 0; c < COUNTS; c++) {
            bool mean = pairings[i].op == COH_MEAN;
            struct one one = {.row = row,
                              .dtype = pairings[i].dtype,
                              .op = pairings[i].op,
                              .count = counts[c],
                              .rough = pairings[i].rough};
            if ((counts[c] == LONG && !pairings[i].long_too)
                || (row->kind == COH_COLLECTIVE_SCAN && mean))
                continue;
            run_forms(rank, one);
            one.exclusive = true;
            if (row->kind == COH_COLLECTIVE_SCAN)
                run_forms(rank, one);
        }
}

static void run_moves(struct rank *rank, const cohi_algorithm *row)
{
    for (size_t i = 0; i < sizeof moved_types / sizeof *moved_types; i++)
        for (int c = 0; c < COUNTS; c++)
            run_forms(rank, (struct one){.row = row, .dtype = moved_types[i], .count = counts[c]});
}

static void *run_rank(void *arg)
{
    struct rank *rank = arg;
    for (const cohi_algorithm *row = cohi_message_algorithms; row->name; row++)
        if (reduces(row->kind))
            run_reductions(rank, row);
        else
            run_moves(rank, row);
    (void)coh_finalize(rank->world);
    return NULL;
}

static void run_all(const char *engine, int size)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = engine;
    coh_world *worlds[RANKS_MOST];
    uint64_t digests[RANKS_MOST];
    struct rank ranks[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    assert_int_equal(coh_init_threads(size, &options, worlds), COH_OK);
    for (int i = 0; i < size; i++) {
        ranks[i] = (struct rank){.world = worlds[i], .size = size, .index = i, .digests = digests};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++)
        if (ranks[i].failure[0])
            fail_msg("%s: %s", engine, ranks[i].failure);
}

static const int sizes[] = {1, 2, 3, 4, 5, 7};

static void run_sizes(const char *engine)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        run_all(engine, sizes[i]);
}

static void over_lanes(void **state)
{
    (void)state;
    run_sizes("threads");
}

static void over_frames(void **state)
{
    (void)state;
    run_sizes("sim");
}

static void over_a_channel(void **state)
{
    (void)state;
    run_all("sim:channel", 3);
    run_all("sim:channel", 4);
}

static void costs_grow(void **state)
{
    (void)state;
    const cohi_profile described = cohi_profile_describe(cohi_host());
    const cohi_model model = cohi_model_of(&described);
    for (const cohi_algorithm *row = cohi_message_algorithms; row->name; row++)
        for (int ranks = 2; ranks < 64; ranks++) {
            double few = row->cost(&model, ranks, 8), many = row->cost(&model, ranks, 8 << 20);
            assert_true(few >= model.message && few < ranks * 4 * model.message);
            assert_true(many > (8 << 20) / ranks * model.message_byte && many > few);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_grow),
        cmocka_unit_test(over_lanes),
        cmocka_unit_test(over_frames),
        cmocka_unit_test(over_a_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
