#include "coll/describe.h"

#include "base/error.h"

/* ---- forms that a kind may not have ---- */

static const char *wrong_reduction(const coh_reduction *how)
{
    return how->size == sizeof *how ? NULL
                                    : "the reduction's size is not one that this library knows; "
                                      "start from COH_REDUCTION_INIT";
}

static const char *find_wrong(const coh_collective *collective, const cohi_kind_row *row)
{
    bool exchange = row->source_blocks && row->target_blocks;
    bool parts = collective->source_parts || collective->target_parts;
    bool strided = collective->source_stride != 1 || collective->target_stride != 1;
    if (collective->counts && (exchange || !(row->source_blocks || row->target_blocks)))
        return "counts are for reduce_scatter, all_gather, gather and scatter";
    if (parts && !exchange)
        return "parts are for all_to_all";
    if (strided && !exchange)
        return "strides other than 1 are for all_to_all";
    if (strided && parts)
        return "strides other than 1 cannot be had with parts";
    if (collective->how && !row->reduces)
        return "it is no reduction, and says how to reduce";
    return collective->how ? wrong_reduction(collective->how) : NULL;
}

/* ---- forms ---- */

/* The counts of one side; the other has a block, or none. */
static void take_counts(cohi_call *call, const size_t *counts)
{
    call->variable = true;
    call->count = 0;
    call->from.counts = call->to.counts = counts;
}

static void take_side(cohi_blocks *blocks, const coh_parts *parts)
{
    if (!parts)
        return;
    blocks->counts = parts->counts;
    blocks->firsts = parts->offsets;
}

static void take_parts(cohi_call *call, const coh_collective *collective)
{
    call->variable = call->apart = true;
    call->count = 0;
    take_side(&call->from, collective->source_parts);
    take_side(&call->to, collective->target_parts);
}

/* Where a function reduces, there is neither type nor operation. */
static void take_reduction(cohi_call *call, const coh_reduction *how)
{
    call->dtype = how->function ? (coh_dtype)0 : how->dtype;
    call->reduce = how->function ? (coh_reduce_op)0 : how->op;
    if (how->function)
        call->own = (cohi_own){how->function, how->element, how->user};
    call->scaled = how->scale != 1;
    call->scale = how->scale;
}

cohi_call cohi_describe(const char *name, const coh_collective *collective)
{
    const coh_collective *c = collective;
    const cohi_kind_row *row = &cohi_kind_rows[c->kind];
    bool exclusive = c->kind == COH_COLLECTIVE_SCAN_EXCLUSIVE;
    cohi_call call = {.team = c->team,
                      .name = name,
                      .kind = exclusive ? COH_COLLECTIVE_SCAN : c->kind,
                      .exclusive = exclusive,
                      .dtype = c->dtype,
                      .reduce = row->reduces ? c->op : (coh_reduce_op)0,
                      .root = row->root ? c->root : 0,
                      .source = c->source,
                      .target = c->target,
                      .count = c->count,
                      .from = {.count = c->count, .stride = 1},
                      .to = {.count = c->count, .stride = 1},
                      .wrong = find_wrong(c, row)};
    if (call.wrong)
        return call;
    call.from.stride = c->source_stride;
    call.to.stride = c->target_stride;
    call.apart = c->source_stride != 1 || c->target_stride != 1;
    if (c->counts)
        take_counts(&call, c->counts);
    if (c->source_parts || c->target_parts)
        take_parts(&call, c);
    if (c->how)
        take_reduction(&call, c->how);
    return call;
}

coh_status cohi_describe_check(const char *name, const coh_collective *collective)
{
    if (!collective)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the collective is NULL", name);
    if (collective->size != sizeof *collective)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: the collective's size is %zu where this library knows %zu; start "
                         "from COH_COLLECTIVE_INIT",
                         name, collective->size, sizeof *collective);
    if (!cohi_kind_row_of(collective->kind))
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %d is not a collective", name,
                         (int)collective->kind);
    return COH_OK;
}
