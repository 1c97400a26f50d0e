#include "coll/card.h"

#include "coll/call/algorithm.h"
#include "coll/call/blocks.h"
#include "coll/call/tuned.h"
#include "coll/check.h"
#include "coll/describe.h"
#include "core/health/wait.h"
#include "core/stream/stream.h"

#include <stdlib.h>

/* ---- where buffers are ---- */

/* Whether this member's own block has elements, where the other side has a block for each member. The counts are
 * not checked yet. */
static bool has_block(const cohi_call *call, const cohi_call_blocks *others)
{
    return !call->variable || !others->counts || others->counts[call->team->index] > 0;
}

/* Buffers that are not used may be anything. */
static bool has_source(const cohi_call *call)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    if (row->root == COHI_ROOT_GIVES && call->team->index != call->root)
        return false;
    bool own_block = row->target_blocks && !row->source_blocks;
    return call->source && (!own_block || has_block(call, &call->to));
}

static bool has_target(const cohi_call *call)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    if (row->root == COHI_ROOT_GETS && call->team->index != call->root)
        return false;
    bool own_block = row->source_blocks && !row->target_blocks;
    return call->target && (!own_block || has_block(call, &call->from));
}

static bool has_device(const cohi_call *call)
{
    return COHI_UNLIKELY(cohi_world_device(call->team->world) != NULL) && !call->grouped;
}

bool cohi_card_has(const cohi_call *call)
{
    const coh_world *world = call->team->world;
    return has_device(call)
           && ((has_source(call) && cohi_world_is_on_card(world, call->source))
               || (has_target(call) && cohi_world_is_on_card(world, call->target)));
}

bool cohi_card_has_parts(const cohi_call *call)
{
    const coh_world *world = call->team->world;
    bool has = false;
    if (COHI_LIKELY(cohi_world_device(world) == NULL))
        return false;
    for (size_t i = 0; i < call->part_count && !has; i++)
        has = call->parts[i].count > 0
              && (cohi_world_is_on_card(world, call->parts[i].source)
                  || cohi_world_is_on_card(world, call->parts[i].target));
    return has;
}

bool cohi_card_takes(const cohi_call *call)
{
    const coh_world *world = call->team->world;
    return has_device(call)
           && ((call->source_bytes > 0 && cohi_world_is_on_card(world, call->source))
               || (call->target_bytes > 0 && cohi_world_is_on_card(world, call->target)));
}

/* A member without elements does not see where the others' are. */
static bool leaves_a_member_out(const cohi_call *call)
{
    const size_t *counts = call->from.counts ? call->from.counts : call->to.counts;
    bool rooted = cohi_kind_rows[call->kind].root != COHI_NO_ROOT;
    bool out = false;
    for (int i = 0; call->variable && rooted && counts && i < call->team->size; i++)
        out |= counts[i] == 0;
    return out;
}

static bool is_elsewhere(const cohi_call *call, const void *pointer)
{
    cohi_server server = cohi_world_device(call->team->world)->server;
    return server.engine->memory->place_of(server.endpoint, pointer) != COHI_PLACE_CARD;
}

/* Memory of the host, or of another card than this rank's: its kernels cannot use it, and those of the others
 * would wait for them. */
static bool has_other_memory(const cohi_call *call)
{
    return (has_source(call) && is_elsewhere(call, call->source))
           || (has_target(call) && is_elsewhere(call, call->target));
}

static const char *find_unserved(const cohi_call *call)
{
    if (call->own.function)
        return "a reduction by a function of the program";
    if (call->apart)
        return "an all_to_all of parts or strides";
    return NULL;
}

bool cohi_card_serves(const cohi_call *call)
{
    const coh_team *team = call->team;
    const cohi_device *device = cohi_world_device(team->world);
    bool near = true;
    for (int i = 0; i < team->size; i++)
        near &= team->world->host_of[team->ranks[i]] == team->world->host_of[team->world->rank];
    return near && device->server.engine->stream && team->size <= COHI_CARD_MEMBERS
           && !find_unserved(call) && !leaves_a_member_out(call) && !has_other_memory(call);
}

/* ---- how the engine is told ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_counts(const size_t *counts, int size)
{
    uint64_t hash = 1;
    for (int i = 0; i < size; i++)
        hash = mix(hash, counts[i] + 1);
    return hash;
}

/* Which sides are private is compared where all members can tell: not with a root, whose side the others do not
 * see, and not where a member may have no elements. */
static uint64_t print_of(const cohi_call *call, const cohi_stream_call *told)
{
    bool told_of = cohi_kind_rows[call->kind].root == COHI_NO_ROOT && !told->counts;
    bool source = told->source.local && told->source.segment < 0;
    bool target = told->target.local && told->target.segment < 0;
    cohi_stream_terms terms = {.kind = told->kind,
                               .dtype = call->dtype,
                               .op = call->reduce,
                               .root = call->root,
                               .variable = told->counts != NULL,
                               .private_source = source && told_of,
                               .private_target = target && told_of,
                               .count = told->counts ? hash_counts(told->counts, call->team->size)
                                                     : call->count};
    return cohi_stream_fingerprint(&terms);
}

static coh_status tell(cohi_call *call, cohi_stream_call *told)
{
    coh_world *world = call->team->world;
    const cohi_card_tuning *tuned = &cohi_tuning_of(world)->card;
    *told = (cohi_stream_call){
        .kind = call->exclusive ? COH_COLLECTIVE_SCAN_EXCLUSIVE : call->kind,
        .dtype = call->dtype,
        .op = call->reduce,
        .count = call->count,
        .counts = call->variable ? (call->from.counts ? call->from.counts : call->to.counts) : NULL,
        .scale = call->scaled ? call->scale : 1,
        .identity = cohi_identity_of(call),
        .root = call->root,
        .packets_to = tuned->packets_to,
        .direct_from = tuned->direct_from};
    coh_status status = cohi_stream_buffer_of(world, call->name, "source", call->source,
                                              call->source_bytes, &told->source);
    if (status == COH_OK)
        status = cohi_stream_buffer_of(world, call->name, "target", call->target,
                                       call->target_bytes, &told->target);
    told->fingerprint = print_of(call, told);
    return status;
}

/* ---- on a stream of the caller's ---- */

/* All that can be seen to be wrong with it; the lengths of its buffers are set. */
static coh_status check(cohi_call *call)
{
    size_t firsts[2][COHI_CARD_MEMBERS];
    const char *unserved = find_unserved(call);
    if (!call->wrong && unserved)
        return cohi_world_fail(call->team->world, call->name, COH_UNSUPPORTED,
                               "%s has no kernel; the call without a stream does it", unserved);
    if (call->team->size > COHI_CARD_MEMBERS)
        return cohi_world_fail(call->team->world, call->name, COH_UNSUPPORTED,
                               "a team of %d; up to %d members can meet on streams",
                               call->team->size, (int)COHI_CARD_MEMBERS);
    coh_status status = cohi_check_form(call, (size_t *const[2]){firsts[0], firsts[1]});
    if (status == COH_OK)
        status = cohi_check_buffers(call);
    return status;
}

static coh_status enqueue(cohi_call *call, coh_cuda_stream stream)
{
    cohi_stream_server server;
    cohi_stream_call told;
    coh_status status = cohi_stream_enter_team(call->team, call->name, &server);
    if (status == COH_OK)
        status = check(call);
    if (status == COH_OK)
        status = tell(call, &told);
    if (status != COH_OK)
        return status;
    cohi_stream_team team = cohi_stream_team_of(call->team);
    return cohi_stream_pass(call->team->world, call->name,
                            server.stream->collective(server.endpoint, stream, &team, &told));
}

/* "coh_cuda_collective(all_reduce)". */
static const char *const names[] = {
#define NAME(constant, value, name, reduces, root, source, target) \
    [constant] = "coh_cuda_collective(" name ")",
    COH_COLLECTIVE_TABLE(NAME)
#undef NAME
};

coh_status coh_cuda_collective(const coh_collective *collective, coh_cuda_stream stream)
{
    coh_status status = cohi_describe_check("coh_cuda_collective", collective);
    if (status != COH_OK)
        return status;
    if (collective->kind == COH_COLLECTIVE_BARRIER)
        return coh_cuda_barrier(collective->team, stream);
    cohi_call call = cohi_describe(names[collective->kind], collective);
    return enqueue(&call, stream);
}

static coh_status run(const char *name, coh_collective described, coh_cuda_stream stream)
{
    described.size = sizeof described;
    described.source_stride = described.target_stride = 1;
    cohi_call call = cohi_describe(name, &described);
    return enqueue(&call, stream);
}

coh_status coh_cuda_all_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                               const void *source, void *target, size_t count,
                               coh_cuda_stream stream)
{
    return run("coh_cuda_all_reduce",
               (coh_collective){.kind = COH_COLLECTIVE_ALL_REDUCE,
                                .team = team,
                                .dtype = dtype,
                                .op = op,
                                .source = source,
                                .target = target,
                                .count = count},
               stream);
}

coh_status coh_cuda_reduce_scatter(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                   const void *source, void *target, size_t count,
                                   coh_cuda_stream stream)
{
    return run("coh_cuda_reduce_scatter",
               (coh_collective){.kind = COH_COLLECTIVE_REDUCE_SCATTER,
                                .team = team,
                                .dtype = dtype,
                                .op = op,
                                .source = source,
                                .target = target,
                                .count = count},
               stream);
}

coh_status coh_cuda_all_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               size_t count, coh_cuda_stream stream)
{
    return run("coh_cuda_all_gather",
               (coh_collective){.kind = COH_COLLECTIVE_ALL_GATHER,
                                .team = team,
                                .dtype = dtype,
                                .source = source,
                                .target = target,
                                .count = count},
               stream);
}

coh_status coh_cuda_broadcast(coh_team *team, coh_dtype dtype, const void *source, void *target,
                              size_t count, int root, coh_cuda_stream stream)
{
    return run("coh_cuda_broadcast",
               (coh_collective){.kind = COH_COLLECTIVE_BROADCAST,
                                .team = team,
                                .dtype = dtype,
                                .root = root,
                                .source = source,
                                .target = target,
                                .count = count},
               stream);
}

coh_status coh_cuda_all_to_all(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               size_t count, coh_cuda_stream stream)
{
    return run("coh_cuda_all_to_all",
               (coh_collective){.kind = COH_COLLECTIVE_ALL_TO_ALL,
                                .team = team,
                                .dtype = dtype,
                                .source = source,
                                .target = target,
                                .count = count},
               stream);
}

/* ---- without a stream ---- */

/* The members have met and are in the same call. */
static coh_status run_on_card(cohi_call *call)
{
    coh_team *team = call->team;
    coh_world *world = team->world;
    cohi_server server = cohi_world_device(world)->server;
    cohi_stream_call told;
    cohi_stream_failure failure;
    cohi_op done = COHI_NEW_OP;
    coh_status status = tell(call, &told);
    if (status != COH_OK)
        return status;
    cohi_stream_team named = cohi_stream_team_of(team);
    status = cohi_stream_pass(world, call->name,
                              server.engine->stream->run(server.endpoint, &named, &told, &done));
    if (status == COH_OK)
        status = cohi_wait_op_of(world, server, call->name, call->entry.op, -1, &done);
    if (status != COH_OK)
        return status;
    server.engine->stream->failure(server.endpoint, &named, &failure);
    return cohi_stream_tell(world, call->name, &failure);
}

static double cost(const cohi_model *model, int ranks, double bytes)
{
    (void)model;
    (void)ranks;
    return bytes;
}

const cohi_algorithm cohi_card_algorithm = {.name = "card",
                                            .kind = COH_COLLECTIVE_ALL_REDUCE,
                                            .traits = COHI_RANK_ORDER,
                                            .cost = cost,
                                            .run = run_on_card};

/* ---- by way of the host ---- */

/* Copies of the buffers in memory of the host, as they lie to each other. */
struct copies {
    char *memory;
    char *source, *target;
};

static size_t distance(const char *from, const char *to)
{
    return (size_t)((uintptr_t)to - (uintptr_t)from);
}

/* A buffer that lies in the other lies there in the copy, too. */
static coh_status make_copies(const cohi_call *call, struct copies *copies)
{
    size_t source = call->source_bytes, target = call->target_bytes;
    bool in_target = source > 0 && distance(call->target, call->source) < target;
    bool in_source = target > 0 && distance(call->source, call->target) < source;
    size_t apart = (source + COHI_CACHE_LINE - 1) / COHI_CACHE_LINE * COHI_CACHE_LINE;
    size_t all = in_target || in_source ? (source > target ? source : target) : apart + target;
    copies->memory = aligned_alloc(COHI_CACHE_LINE, (all / COHI_CACHE_LINE + 1) * COHI_CACHE_LINE);
    if (!copies->memory)
        return cohi_world_fail(call->team->world, call->name, COH_NO_MEMORY,
                               "out of memory for %zu bytes, by which memory of the card goes",
                               all);
    copies->source = copies->memory + (in_target ? distance(call->target, call->source) : 0);
    copies->target = copies->memory
                     + (in_target   ? 0
                        : in_source ? distance(call->source, call->target)
                                    : apart);
    return COH_OK;
}

static coh_status copy(const cohi_call *call, void *target, const void *source, size_t bytes)
{
    return bytes == 0 ? COH_OK
                      : cohi_device_copy(call->team->world, call->name,
                                         cohi_kind_opcode(call->kind, call->exclusive), target,
                                         source, bytes);
}

/* What lies between blocks of the target stays as it is. */
static coh_status run_copied(cohi_call *call, const struct copies *copies,
                             coh_status (*on_host)(cohi_call *call))
{
    cohi_call copied = *call;
    copied.source = copies->source;
    copied.target = copies->target;
    coh_status status = copy(call, copies->target, call->target, call->target_bytes);
    if (status == COH_OK)
        status = copy(call, copies->source, call->source, call->source_bytes);
    if (status == COH_OK)
        status = on_host(&copied);
    return status == COH_OK ? copy(call, call->target, copies->target, call->target_bytes) : status;
}

/* A call that is refused does not come to its buffers. */
coh_status cohi_card_by_host(cohi_call *call, coh_status (*on_host)(cohi_call *call))
{
    struct copies copies = {0};
    cohi_call looked = *call;
    int size = call->team->size;
    size_t *firsts = calloc((size_t)size * 2, sizeof *firsts);
    if (!firsts)
        return cohi_world_fail(call->team->world, call->name, COH_NO_MEMORY,
                               "out of memory for %d members", size);
    coh_status status = cohi_check_form(&looked, (size_t *const[2]){firsts, firsts + (size_t)size});
    bool good = status == COH_OK && cohi_check_buffers(&looked) == COH_OK;
    if (good)
        status = make_copies(&looked, &copies);
    if (good && status == COH_OK) {
        call->source_bytes = looked.source_bytes;
        call->target_bytes = looked.target_bytes;
        status = run_copied(call, &copies, on_host);
        free(copies.memory);
    } else if (!good) {
        status = on_host(call);
    }
    free(firsts);
    return status;
}
