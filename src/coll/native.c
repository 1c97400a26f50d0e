#include "coll/native.h"

#include "coll/call/assemble.h"
#include "coll/call/blocks.h"
#include "coll/call/gear.h"
#include "core/health/wait.h"
#include "core/team/apart.h"
#include "core/team/standing.h"

#include <limits.h>
#include <string.h>

/* What goes at a time of calls that can be cut, which is the memory that they take. Each piece is a call of
 * the library's. */
enum { PIECE_BYTES = 2 << 20 };

void cohi_native_heed(const cohi_engine *engine, cohi_endpoint *endpoint,
                      unsigned char bytes[COHI_TUNING_BYTES])
{
    cohi_native_offer offer = {.size = sizeof offer};
    cohi_tuning tuning;
    if (!engine->collective)
        return;
    engine->collective->offer(endpoint, &offer);
    memcpy(&tuning, bytes, sizeof tuning);
    tuning.model.native_call = offer.call;
    tuning.model.native_byte = offer.byte;
    tuning.native = (cohi_tuned_native){.kinds = (uint16_t)offer.kinds,
                                        .types = (uint16_t)offer.types,
                                        .integer_ops = (uint8_t)offer.integer_ops,
                                        .float_ops = (uint8_t)offer.float_ops,
                                        .same_bits = (uint8_t)(offer.same_bits != 0)};
    memcpy(bytes, &tuning, sizeof tuning);
}

/* ---- what it does ---- */

static bool is_float(coh_dtype dtype)
{
    return dtype == COH_F16 || dtype == COH_BF16 || dtype == COH_F32 || dtype == COH_F64
           || dtype == COH_F8E4M3 || dtype == COH_F8E5M2;
}

bool cohi_native_reduces(const cohi_call *call)
{
    const cohi_tuned_native *native = &cohi_tuning_of(call->team->world)->native;
    if (!cohi_kind_rows[call->kind].reduces)
        return true;
    bool floats = is_float(call->dtype);
    unsigned ops = floats ? native->float_ops : native->integer_ops;
    return native->types >> call->dtype & 1 && ops >> call->reduce & 1
           && (native->same_bits || !floats);
}

/* All blocks of the longer buffer. */
static size_t whole_bytes(const cohi_call *call)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    size_t blocks = row->source_blocks || row->target_blocks ? (size_t)call->team->size : 1;
    return blocks * call->bytes;
}

static bool applies(const cohi_call *call)
{
    const coh_world *world = call->team->world;
    const cohi_tuned_native *native = &cohi_tuning_of(world)->native;
    bool plain = !call->variable && !call->own.function && !call->exclusive
                 && call->from.stride <= 1 && call->to.stride <= 1;
    return plain && native->kinds >> call->kind & 1 && !call->team->mapped
           && whole_bytes(call) <= INT_MAX && cohi_native_reduces(call) && world->engine->collective
           && world->engine->collective->serves(world->endpoint, call->team->ranks,
                                                call->team->size);
}

/* ---- memory that the library may keep ---- */

/* Those whose elements are all on their own can be cut anywhere. */
static bool can_be_cut(const cohi_call *call)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    return !row->source_blocks && !row->target_blocks;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t piece_count(const cohi_call *call)
{
    return can_be_cut(call) ? smaller(call->count, PIECE_BYTES / call->element) : call->count;
}

static size_t workspace(const cohi_call *call)
{
    if (can_be_cut(call))
        return cohi_part_bytes(piece_count(call) * call->element);
    return cohi_part_bytes(call->source_bytes) + cohi_part_bytes(call->target_bytes);
}

/* ---- failures ---- */

coh_status cohi_native_check(const cohi_call *call)
{
    const coh_world *world = call->team->world;
    if (!cohi_team_gear(call->team)->native_failed)
        return COH_OK;
    return cohi_world_fail(
        world, call->name, COH_TRANSPORT,
        "a collective of engine %s has failed in this team before, and members may be at "
        "different ones since (COHORT_DETERMINISTIC=1 takes none of them)",
        world->engine->name);
}

/* After an op that failed or was given up the library may still use the memory, and the team as it knows it is at
 * an end. */
static void give_up(cohi_call *call)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    gear->workspace = NULL;
    gear->workspace_bytes = 0;
    gear->native_failed = true;
}

/* The library's own failure, whose error is set, may be how a lost member shows first. */
static coh_status fail(cohi_call *call, coh_status failed)
{
    cohi_error kept;
    cohi_error_keep(&kept);
    give_up(call);
    coh_status status = cohi_team_await_standing(call->team, call->name);
    if (status != COH_OK)
        return status;
    (void)cohi_fail_again(&kept);
    return cohi_world_fail(call->team->world, call->name, failed,
                           "the collective of engine %s failed: %s",
                           call->team->world->engine->name, coh_last_error());
}

/* ---- running ---- */

/* As cohi_wait_op, but for all members: what stands against the team ends it, and what another was refused in. */
static coh_status wait_for(cohi_call *call, cohi_op *op)
{
    coh_team *team = call->team;
    coh_world *world = team->world;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, call->name, call->entry.op, &team->party, -1);
    while (status == COH_OK && !atomic_load_explicit(&op->done, memory_order_acquire)) {
        wait.rank = atomic_load_explicit(&op->waits_for, memory_order_relaxed);
        status = cohi_wait_step(&wait);
        if (status == COH_OK && wait.asleep)
            status = cohi_apart_look(team, call->name);
    }
    cohi_wait_end(&wait);
    if (!atomic_load_explicit(&op->done, memory_order_acquire)) {
        world->engine->lifecycle->cancel(world->endpoint, op);
        give_up(call);
        return status;
    }
    if (op->status == COH_OK)
        return COH_OK;
    return fail(call, cohi_fail(op->status, "%s", coh_status_text(op->status)));
}

static coh_status open_team(cohi_call *call, cohi_coll_gear *gear)
{
    const coh_team *team = call->team;
    const coh_world *world = team->world;
    cohi_native_team native = {.number = team->number,
                               .epoch = team->epoch,
                               .size = team->size,
                               .index = team->index,
                               .ranks = team->ranks};
    cohi_op op = COHI_NEW_OP;
    void *made = NULL;
    coh_status status = world->engine->collective->open(world->endpoint, &native, &made, &op);
    status = status == COH_OK ? wait_for(call, &op) : fail(call, status);
    if (status != COH_OK)
        return status;
    gear->native = made;
    gear->close_native = world->engine->collective->close;
    gear->endpoint = world->endpoint;
    return COH_OK;
}

static coh_status run_one(cohi_call *call, const cohi_native_call *native)
{
    const coh_world *world = call->team->world;
    cohi_op op = COHI_NEW_OP;
    coh_status status = world->engine->collective->run(
        world->endpoint, cohi_team_gear(call->team)->native, native, &op);
    status = status == COH_OK ? wait_for(call, &op) : fail(call, status);
    cohi_call_beat(call);
    return status;
}

static cohi_native_call told(const cohi_call *call, size_t count)
{
    return (cohi_native_call){.kind = call->kind,
                              .dtype = call->dtype,
                              .op = call->reduce,
                              .root = call->root,
                              .count = count};
}

/* Whether this member's elements matter, and whether it gets any. */
static bool gives(const cohi_call *call)
{
    return cohi_kind_rows[call->kind].root != COHI_ROOT_GIVES || call->team->index == call->root;
}

static bool gets(const cohi_call *call)
{
    return cohi_kind_rows[call->kind].root != COHI_ROOT_GETS || call->team->index == call->root;
}

static coh_status run_in_pieces(cohi_call *call)
{
    size_t step = piece_count(call);
    coh_status status = COH_OK;
    for (size_t first = 0; first < call->count && status == COH_OK; first += step) {
        cohi_native_call native = told(call, smaller(step, call->count - first));
        size_t bytes = native.count * call->element, at = first * call->element;
        native.source = native.target = call->workspace;
        if (gives(call))
            memcpy(call->workspace, call->source + at, bytes);
        status = run_one(call, &native);
        if (status == COH_OK && gets(call))
            memcpy(call->target + at, call->workspace, bytes);
    }
    return status;
}

static coh_status run_whole(cohi_call *call)
{
    cohi_native_call native = told(call, call->count);
    char *source = call->workspace, *target = source + cohi_part_bytes(call->source_bytes);
    native.source = source;
    native.target = target;
    if (call->source_bytes > 0)
        memcpy(source, call->source, call->source_bytes);
    coh_status status = run_one(call, &native);
    if (status == COH_OK && call->target_bytes > 0)
        memcpy(call->target, target, call->target_bytes);
    return status;
}

/* The members have met, and are in the same call. */
static coh_status run(cohi_call *call)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    coh_status status = gear->native ? COH_OK : open_team(call, gear);
    if (status != COH_OK || call->count == 0)
        return status;
    return can_be_cut(call) ? run_in_pieces(call) : run_whole(call);
}

/* ---- what it should take ---- */

/* The meeting before it is a message for each doubling too. `moved` is what a member sends. The copies to and from the
 * memory that the library works in are not counted: a message of the engine's is copied as often. */
static double cost_of(const cohi_model *model, int ranks, double moved)
{
    int steps = 0;
    for (int reach = 1; reach < ranks; reach *= 2)
        steps++;
    return steps * model->message * (1 + model->native_call)
           + moved * model->message_byte * model->native_byte;
}

static double twice_cost(const cohi_model *model, int ranks, double bytes)
{
    return cost_of(model, ranks, 2 * bytes * (ranks - 1) / ranks);
}

static double once_cost(const cohi_model *model, int ranks, double bytes)
{
    return cost_of(model, ranks, bytes);
}

static double all_cost(const cohi_model *model, int ranks, double bytes)
{
    return cost_of(model, ranks, (ranks - 1) * bytes);
}

/* In no order that is known, so that none of them is deterministic. */
const cohi_algorithm cohi_native_algorithms[] = {
    {"native", COH_COLLECTIVE_ALL_REDUCE, COHI_NATIVE, applies, workspace, twice_cost, run},
    {"native", COH_COLLECTIVE_REDUCE, COHI_NATIVE, applies, workspace, once_cost, run},
    {"native", COH_COLLECTIVE_REDUCE_SCATTER, COHI_NATIVE, applies, workspace, once_cost, run},
    {"native", COH_COLLECTIVE_ALL_GATHER, COHI_NATIVE, applies, workspace, all_cost, run},
    {"native", COH_COLLECTIVE_GATHER, COHI_NATIVE, applies, workspace, all_cost, run},
    {"native", COH_COLLECTIVE_SCATTER, COHI_NATIVE, applies, workspace, all_cost, run},
    {"native", COH_COLLECTIVE_BROADCAST, COHI_NATIVE, applies, workspace, once_cost, run},
    {"native", COH_COLLECTIVE_ALL_TO_ALL, COHI_NATIVE, applies, workspace, once_cost, run},
    {0},
};
