/*
 * bench/collective.c - collectives, against loops over the same mapped memory.
 *
 * Where all ranks wait for each other anyway, and the buffers stay in the caches, a round is so
 * many calls one after the other. Otherwise (rooted collectives, in which the root could run ahead,
 * and cold buffers) the ranks meet before each call, it is timed by itself, and the round's time is
 * the median. Either way the time is that of the rank that took longest.
 */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <string.h>

/* Loops past the caches are tried from the first on: where the buffers are cold they win early. */
enum { STREAM_FROM = 64 << 10, CHECKED_BYTES = 4 << 20 };

/* One loop: how the work is shared, and what moves the bytes. */
struct loop {
    cohi_limit_shape shape;
    cohi_limit_wait wait;
    cohi_limit_kernel kernel;
};

struct context {
    cohi_bench_rank *self;
    const cohi_bench_collective *collective;
    const cohi_limit_collective *limit;
    int apart; /* each call is timed by itself */
    cohi_bench_call call;
    cohi_bench_call as_f32; /* as many elements */
    char *heap_source, *heap_target, *private_source, *private_target;
    size_t source_room, target_room;
    cohi_limit_party party;
    cohi_limit_line *lines[COHI_LIMIT_PARTIES];
    cohi_limit_slot *slots[COHI_LIMIT_PARTIES];
    char *sources[COHI_LIMIT_PARTIES], *targets[COHI_LIMIT_PARTIES];
    struct loop loops[COHI_BENCH_CONTENDERS];
};

/* ---- timing ---- */

typedef coh_status once_function(struct context *c, const void *form);

static coh_status call_cohort(struct context *c, const void *form)
{
    return c->collective->run(form);
}

static coh_status call_loop(struct context *c, const void *form)
{
    const struct loop *loop = form;
    c->party.wait = loop->wait;
    cohi_limit_collective_run(c->limit, loop->shape, &loop->kernel, &c->party);
    return COH_OK;
}

static void meet(const struct context *c)
{
    cohi_limit_meet(&c->party.meeting, c->self->crowded ? COHI_LIMIT_YIELD : COHI_LIMIT_SPIN);
}

static const cohi_bench_board *board_of(const struct context *c, int rank)
{
    return (const void *)((const char *)c->lines[rank] - offsetof(cohi_bench_board, meeting));
}

/* Of each call the longest of all ranks' times, and of these the median: one rank that was not
 * running for a while spoils one call. What a rank wrote is read before it writes again. */
static double longest(const struct context *c, uint64_t calls)
{
    double most[COHI_BENCH_APART] = {0};
    cohi_bench_figure spread;
    meet(c);
    for (int rank = 0; rank < c->self->size; rank++) {
        const double *times = board_of(c, rank)->times;
        for (uint64_t i = 0; i < calls; i++)
            most[i] = times[i] > most[i] ? times[i] : most[i];
    }
    meet(c);
    cohi_bench_spread(most, calls, &spread);
    return spread.median;
}

/* The caches are as this contender leaves them, not as the one before did: a loop that stores past
 * them leaves targets in none, and one call does not bring back all of what the next goes by. */
static coh_status warm_up(struct context *c, once_function *once, const void *form)
{
    enum { CALLS = 4, CACHED_BYTES = 64 << 20 };
    bool cached = c->call.source_bytes + c->call.target_bytes <= CACHED_BYTES;
    coh_status status = COH_OK;
    for (int i = 0; i < (cached ? CALLS : 1) && status == COH_OK; i++)
        status = once(c, form);
    return status;
}

static double time_together(struct context *c, once_function *once, const void *form,
                            uint64_t repeats)
{
    coh_status status = warm_up(c, once, form);
    meet(c);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = once(c, form);
    c->self->board->times[0] = cohi_bench_each(status, start, repeats);
    return status == COH_OK ? longest(c, 1) : -1;
}

static void flush_both(const struct context *c, const char *source, const char *target)
{
    cohi_limit_flush(source, c->source_room);
    cohi_limit_flush(target, c->target_room);
}

static void flush(const struct context *c)
{
    if (c->heap_source)
        flush_both(c, c->heap_source, c->heap_target);
    if (c->private_source)
        flush_both(c, c->private_source, c->private_target);
}

static double time_apart(struct context *c, once_function *once, const void *form, uint64_t repeats)
{
    coh_status status = c->call.variant.cold ? COH_OK : warm_up(c, once, form);
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++) {
        if (c->call.variant.cold)
            flush(c);
        meet(c);
        uint64_t start = cohi_now_ns();
        status = once(c, form);
        c->self->board->times[i] = (double)(cohi_now_ns() - start);
    }
    return status == COH_OK ? longest(c, repeats) : -1;
}

static double run_timed(struct context *c, once_function *once, const void *form, uint64_t repeats)
{
    return c->apart ? time_apart(c, once, form, repeats) : time_together(c, once, form, repeats);
}

static double run_cohort(void *context, const void *form, uint64_t repeats)
{
    return run_timed(context, call_cohort, form, repeats);
}

static double run_loop(void *context, const void *form, uint64_t repeats)
{
    return run_timed(context, call_loop, form, repeats);
}

/* All ranks must agree, so it follows from the size alone. */
static uint64_t repeats_of(const struct context *c, uint64_t bytes)
{
    enum { ROUND_BYTES = 8 << 20, MOST = 1000, CROWDED_MOST = 40 };
    uint64_t most = c->self->crowded ? CROWDED_MOST : c->apart ? COHI_BENCH_APART : MOST;
    uint64_t repeats = ROUND_BYTES / (bytes * (uint64_t)c->self->size);
    return repeats > most ? most : repeats < 1 ? 1 : repeats;
}

/* Long calls need few rounds; beside peers the turns add to them. More than one: in the first, the
 * contender that begins finds memory that was just made. */
static uint64_t rounds_of(const struct context *c, uint64_t bytes)
{
    enum { LONG_BYTES = 32 << 20, FULL = 21, FEW = 5, LEAST = 3 };
    uint64_t rounds = c->self->rounds;
    if (bytes < LONG_BYTES)
        return rounds;
    return rounds >= FULL ? FEW : rounds < LEAST ? rounds : LEAST;
}

/* ---- buffers ---- */

/* What is given where, for so many bytes from each rank. */
static void size_call(struct context *c, uint64_t bytes)
{
    size_t element = coh_dtype_size(c->call.variant.dtype), size = (size_t)c->self->size;
    size_t total = bytes / element ? bytes / element : 1;
    size_t block = total / size ? total / size : 1;
    cohi_bench_call *call = &c->call;
    call->count = c->collective->blocks ? block : total;
    call->source_bytes = (c->collective->blocks ? block * size : total) * element;
    call->target_bytes = (c->collective->gathers     ? total * size
                          : c->collective->takes_own ? block
                          : c->collective->blocks    ? block * size
                                                     : total)
                         * element;
    size_t widest = element < 4 ? 4 / element : 1; /* for as many floats */
    c->source_room = call->source_bytes * widest;
    c->target_room = call->target_bytes * widest;
}

static coh_status make_heap(struct context *c)
{
    coh_world *world = c->self->world;
    coh_status status = coh_align(world, 4096, c->source_room, (void **)&c->heap_source);
    if (status == COH_OK)
        status = coh_align(world, 4096, c->target_room, (void **)&c->heap_target);
    if (status != COH_OK)
        return status;
    memset(c->heap_source, COHI_BENCH_BYTE, c->source_room);
    memset(c->heap_target, COHI_BENCH_BYTE, c->target_room);
    return COH_OK;
}

static coh_status make_private(struct context *c)
{
    size_t bytes = c->source_room + c->target_room + 4096, page = cohi_os_page_bytes();
    char *memory;
    if (cohi_os_map_private(bytes, page, (void **)&memory) != 0)
        return cohi_fail(COH_NO_MEMORY, "bench: no memory for %zu bytes", bytes);
    c->private_source = memory;
    if (cohi_os_commit_private(memory, 0, bytes) != 0)
        return cohi_fail(COH_NO_MEMORY, "bench: no memory for %zu bytes", bytes);
    c->private_target = memory + (c->source_room + 4095) / 4096 * 4096;
    memset(memory, COHI_BENCH_BYTE, bytes);
    return COH_OK;
}

/* Where `rank` has source and target for a call in place; in broadcast the root always is. */
static void place_in(const struct context *c, int rank, char **source, char **target)
{
    const cohi_bench_collective *kind = c->collective;
    int broadcast = strcmp(kind->name, "broadcast") == 0;
    int at_root_alone = kind->rooted && strcmp(kind->name, "scan") != 0;
    if ((!c->call.variant.in_place && !broadcast) || (at_root_alone && rank != 0))
        return;
    if (kind->gathers)
        *source = *target + (size_t)rank * c->call.source_bytes;
    else if (kind->takes_own)
        *target = *source + (size_t)rank * c->call.target_bytes;
    else
        *target = *source;
}

static coh_status map_all(struct context *c, char *source, char *target)
{
    coh_world *world = c->self->world;
    coh_status status = COH_OK;
    for (int rank = 0; rank < c->self->size && status == COH_OK; rank++) {
        status = coh_ptr(world, c->self->board->meeting, rank, (void **)&c->lines[rank]);
        if (status == COH_OK)
            status = coh_ptr(world, c->self->board->slots, rank, (void **)&c->slots[rank]);
        if (status == COH_OK && c->heap_source)
            status = coh_ptr(world, source, rank, (void **)&c->sources[rank]);
        if (status == COH_OK && c->heap_source)
            status = coh_ptr(world, target, rank, (void **)&c->targets[rank]);
    }
    return status;
}

static cohi_limit_type limit_type(coh_dtype dtype)
{
    return dtype == COH_F32    ? COHI_LIMIT_F32
           : dtype == COH_BF16 ? COHI_LIMIT_BF16
           : dtype == COH_F16  ? COHI_LIMIT_F16
                               : COHI_LIMIT_WORDS;
}

/* Loops in pieces read one's own private memory; others' cannot be reached but by what they
 * publish. */
static void make_party(struct context *c)
{
    int in_pieces = c->call.variant.private && !c->heap_source;
    if (in_pieces) {
        c->sources[c->self->rank] = c->call.source;
        c->targets[c->self->rank] = c->call.target;
    }
    c->party = (cohi_limit_party){.meeting = {c->lines, c->self->size, c->self->rank},
                                  .slots = c->slots,
                                  .sources = c->sources,
                                  .targets = c->targets,
                                  .bytes = c->call.source_bytes,
                                  .block = c->call.count * coh_dtype_size(c->call.variant.dtype),
                                  .type = limit_type(c->call.variant.dtype)};
}

static coh_status make_buffers(struct context *c)
{
    int private = c->call.variant.private;
    cohi_limit_party any = {.bytes = SIZE_MAX};
    int mapped_loops = !private || !cohi_limit_has_shape(c->limit, &any, COHI_LIMIT_STAGED);
    coh_status status = mapped_loops ? make_heap(c) : COH_OK;
    if (status == COH_OK && private)
        status = make_private(c);
    if (status == COH_OK)
        status = map_all(c, c->heap_source, c->heap_target);
    if (status != COH_OK)
        return status;
    c->call.source = private ? c->private_source : c->heap_source;
    c->call.target = private ? c->private_target : c->heap_target;
    place_in(c, c->self->rank, &c->call.source, &c->call.target);
    for (int rank = 0; rank < c->self->size && c->heap_source; rank++)
        place_in(c, rank, &c->sources[rank], &c->targets[rank]);
    make_party(c);
    return COH_OK;
}

static coh_status free_buffers(struct context *c)
{
    if (c->private_source)
        cohi_os_unmap(c->private_source, c->source_room + c->target_room + 4096);
    coh_status status = coh_free(c->self->world, c->heap_target);
    coh_status other = coh_free(c->self->world, c->heap_source);
    return status == COH_OK ? other : status;
}

/* ---- checking ---- */

/* A loop that does less than the call would be no limit, and a wrong call no result: each contender
 * runs once on known values. */
static coh_status check_one(struct context *c, const cohi_bench_contender *contender)
{
    int ours = contender->run == run_cohort;
    char *source = ours ? c->call.source : c->sources[c->self->rank];
    char *target = ours ? c->call.target : c->targets[c->self->rank];
    if (target != source)
        memset(target, 0, c->call.target_bytes);
    cohi_bench_fill(&c->call, source);
    meet(c);
    coh_status status = ours ? call_cohort(c, contender->form) : call_loop(c, contender->form);
    meet(c);
    return status == COH_OK ? cohi_bench_compare(c->collective, &c->call, target, contender->name)
                            : status;
}

static coh_status check(struct context *c, const cohi_bench_plan *plan)
{
    coh_status status = COH_OK;
    if (c->call.variant.dtype != COH_F32 || c->call.variant.in_place
        || c->call.target_bytes > CHECKED_BYTES || c->call.source_bytes > CHECKED_BYTES)
        return COH_OK;
    for (size_t i = 0; i < plan->count && status == COH_OK; i++)
        status = check_one(c, &plan->contenders[i]);
    return status;
}

/* ---- contenders ---- */

static const char *kernel_name(const cohi_limit_kernel *kernel)
{
    return kernel->reduce ? kernel->reduce->name : kernel->copy->name;
}

static void add_loop(struct context *c, cohi_bench_plan *plan, struct loop loop)
{
    static const char *const shapes[] = {"own", "shared", "staged"};
    static const char *const waits[] = {"", ", pause", ", late", ", yield"};
    size_t at = plan->count;
    if (at >= COHI_BENCH_CONTENDERS - 1 || !cohi_limit_has_shape(c->limit, &c->party, loop.shape))
        return;
    loop.wait = c->self->crowded ? COHI_LIMIT_YIELD : loop.wait;
    c->loops[at] = loop;
    snprintf(c->self->names[at], sizeof c->self->names[at], "%s, %s%s", shapes[loop.shape],
             kernel_name(&loop.kernel), waits[loop.wait]);
    cohi_bench_add(plan, c->self->names[at], &c->loops[at], run_loop);
}

/* The kernel's stores go past the caches, which pays for much data alone. */
static int streams(const cohi_limit_kernel *kernel)
{
    return kernel->reduce ? kernel->reduce->streams : strstr(kernel->copy->name, "nt") != NULL;
}

static cohi_limit_kernel kernel_at(const struct context *c, size_t index)
{
    if (cohi_limit_reduces(c->limit))
        return (cohi_limit_kernel){NULL, cohi_limit_reduce_form_at(index)};
    return (cohi_limit_kernel){cohi_limit_copy_form_at(index), NULL};
}

/* How one waits for a line decides what a short one takes, and which way is best changes with where
 * the cores are. */
static void add_staged(struct context *c, cohi_bench_plan *plan)
{
    int most = c->self->crowded  ? COHI_LIMIT_SPIN
               : c->self->loaded ? COHI_LIMIT_YIELD
                                 : COHI_LIMIT_LATE;
    for (int wait = COHI_LIMIT_SPIN; wait <= most; wait++)
        add_loop(c, plan, (struct loop){COHI_LIMIT_STAGED, (cohi_limit_wait)wait, kernel_at(c, 0)});
}

/* Of copies the cached vector loops are left out, which are what memcpy is, but not rep movsb, which
 * some CPUs copy a few megabytes fastest with; of others the plain one where there are better. */
static int is_worth_it(const struct context *c, const cohi_limit_kernel *kernel, size_t index)
{
    if (index == 0)
        return 1;
    size_t longer =
        c->call.source_bytes > c->call.target_bytes ? c->call.source_bytes : c->call.target_bytes;
    if (longer < STREAM_FROM || strcmp(kernel_name(kernel), "plain") == 0)
        return 0;
    return kernel->reduce || streams(kernel) || strcmp(kernel->copy->name, "rep movsb") == 0;
}

static void add_loops(struct context *c, cohi_bench_plan *plan)
{
    int in_pieces = c->call.variant.private && !c->heap_source;
    int shareable = cohi_limit_has_shape(c->limit, &c->party, COHI_LIMIT_SHARED);
    int is_short = c->call.source_bytes <= COHI_LIMIT_SLOT_BYTES;
    if (in_pieces || is_short)
        add_staged(c, plan);
    for (size_t i = 0; !in_pieces; i++) {
        cohi_limit_kernel kernel = kernel_at(c, i);
        if (!kernel.copy && !kernel.reduce)
            return;
        if (!is_worth_it(c, &kernel, i))
            continue;
        add_loop(c, plan, (struct loop){COHI_LIMIT_SHARED, COHI_LIMIT_SPIN, kernel});
        if (is_short || !shareable || kernel.copy)
            add_loop(c, plan, (struct loop){COHI_LIMIT_PULL, COHI_LIMIT_SPIN, kernel});
    }
}

/* Sixteen bits are to take little more than half of what as many floats take. */
static void add_f32(struct context *c, cohi_bench_plan *plan)
{
    if (coh_dtype_size(c->call.variant.dtype) >= sizeof(float) || !cohi_limit_reduces(c->limit))
        return;
    c->as_f32 = c->call;
    c->as_f32.variant.dtype = COH_F32;
    cohi_bench_add_aside(plan, "f32, same count", &c->as_f32, run_cohort);
}

static coh_status measure(struct context *c, uint64_t bytes, cohi_bench_result *result)
{
    cohi_bench_plan plan = {.rounds = rounds_of(c, bytes),
                            .repeats = repeats_of(c, bytes),
                            .most = c->apart ? COHI_BENCH_APART : 0,
                            .self = c->self,
                            .context = c};
    cohi_bench_add(&plan, c->collective->name, &c->call, run_cohort);
    add_loops(c, &plan);
    coh_status status = check(c, &plan);
    if (status != COH_OK)
        return status;
    add_f32(c, &plan);
    return cohi_bench_measure(&plan, result);
}

static coh_status run(cohi_bench_rank *self, const char *name, uint64_t bytes,
                      cohi_bench_result *result)
{
    struct context c = {.self = self,
                        .collective = cohi_bench_collective_named(name),
                        .limit = cohi_limit_collective_of(name),
                        .call = {.team = coh_team_world(self->world),
                                 .rank = self->rank,
                                 .size = self->size,
                                 .variant = self->variant}};
    c.apart = c.collective->rooted || self->variant.cold;
    size_call(&c, bytes);
    coh_status status = make_buffers(&c);
    if (status == COH_OK)
        status = coh_barrier(self->world);
    if (status == COH_OK)
        status = measure(&c, bytes, result);
    coh_status freed = free_buffers(&c);
    return status == COH_OK ? freed : status;
}

#define COLLECTIVE(name)                                                                           \
    coh_status cohi_bench_##name(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result) \
    {                                                                                              \
        return run(self, #name, bytes, result);                                                    \
    }
COLLECTIVE(all_reduce)
COLLECTIVE(reduce)
COLLECTIVE(reduce_scatter)
COLLECTIVE(all_gather)
COLLECTIVE(gather)
COLLECTIVE(scatter)
COLLECTIVE(broadcast)
COLLECTIVE(all_to_all)
COLLECTIVE(scan)
