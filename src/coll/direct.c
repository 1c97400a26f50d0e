#include "coll/direct.h"

#include "coll/parts.h"
#include "coll/place.h"
#include "coll/staged.h"
#include "coll/two_shot.h"
#include "memory/host_copy.h"

/* Bytes that are copied between two signs of life; more than what is streamed (host_copy.h). */
enum { BEAT_BYTES = 4 << 20 };

/* Two meetings and one copy of what each contributes. */
double cohi_direct_cost(const cohi_model *model, int ranks, double bytes)
{
    return model->call + 2 * model->line * (1 + ranks / 8.0) + cohi_model_copy(model, bytes);
}

double cohi_direct_all_gather_cost(const cohi_model *model, int ranks, double bytes)
{
    return cohi_direct_cost(model, ranks, bytes * ranks);
}

double cohi_direct_reduce_scatter_cost(const cohi_model *model, int ranks, double bytes)
{
    return model->call + 2 * model->line * (1 + ranks / 8.0) + cohi_model_reduce(model, bytes);
}

/* Each target from all sources before it, in a cache that holds them all. */
double cohi_direct_scan_cost(const cohi_model *model, int ranks, double bytes)
{
    return cohi_two_shot_cost(model, ranks, bytes) + bytes * model->reduce * ranks / 2;
}

static void copy(cohi_call *call, char *target, const char *source, size_t bytes)
{
    while (bytes > 0 && target != source) {
        size_t part = bytes < 2 * BEAT_BYTES ? bytes : BEAT_BYTES;
        cohi_host_copy(target, source, part);
        cohi_call_beat(call);
        target += part;
        source += part;
        bytes -= part;
    }
}

static bool all_placed(const cohi_call *call, cohi_side side)
{
    return cohi_place_lacking(call, side) < 0;
}

/* Neither sources nor targets can all be reached. */
static coh_status give_up(cohi_call *call)
{
    if (!call->forced)
        return cohi_stage(call);
    int lacking = cohi_place_lacking(call, COHI_SOURCE);
    return lacking >= 0
               ? cohi_place_refuse(call, COHI_SOURCE, lacking)
               : cohi_place_refuse(call, COHI_TARGET, cohi_place_lacking(call, COHI_TARGET));
}

/* The members one after the other, each member beginning with another one. */
static int other(const cohi_call *call, int step)
{
    return (call->team->index + step) % call->team->size;
}

/* ---- reduce_scatter ---- */

coh_status cohi_direct_reduce_scatter(cohi_call *call)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team);
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (!all_placed(call, COHI_SOURCE))
        return give_up(call);
    size_t at = cohi_block_at(call, &call->from, team->index);
    for (int i = 0; i < team->size; i++)
        gear->sources[i] = cohi_place_at(call, COHI_SOURCE, i) + at;
    gear->targets[0] = call->target;
    cohi_reduce_range(call, 1, (cohi_span){0, cohi_block_count(&call->from, team->index)});
    return cohi_count_part(call);
}

/* ---- all_gather ---- */

static void pull_blocks(cohi_call *call)
{
    for (int step = 0; step < call->team->size; step++) {
        int from = other(call, step);
        const char *source = step == 0 ? call->source : cohi_place_at(call, COHI_SOURCE, from);
        copy(call, call->target + cohi_block_at(call, &call->to, from), source,
             cohi_block_bytes(call, &call->to, from));
    }
}

static void push_block(cohi_call *call, int to)
{
    int index = call->team->index;
    char *target = to == index ? call->target : cohi_place_at(call, COHI_TARGET, to);
    copy(call, target + cohi_block_at(call, &call->to, index), call->source,
         cohi_block_bytes(call, &call->to, index));
}

/*
 * From so many bytes on the members pull. What a member pushes it has in its own cache, as long as
 * it fits: two ranks with 16 KiB each 1.24 us (1.55 pulled), with 1 MiB 113 us (181), with 16 MiB
 * the same.
 */
enum { PULLED_FROM = 2 << 20 };

static void push_blocks_to_all(cohi_call *call)
{
    for (int step = 0; step < call->team->size; step++)
        push_block(call, other(call, step));
}

coh_status cohi_direct_all_gather(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    bool pulls = all_placed(call, COHI_SOURCE), pushes = all_placed(call, COHI_TARGET);
    if (pushes && (!pulls || call->bytes < PULLED_FROM))
        push_blocks_to_all(call);
    else if (pulls)
        pull_blocks(call);
    else
        return give_up(call);
    return cohi_count_part(call);
}

/* ---- gather, scatter ---- */

coh_status cohi_direct_gather(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (cohi_place_has(call, COHI_TARGET, call->root))
        push_block(call, call->root);
    else if (!all_placed(call, COHI_SOURCE))
        return give_up(call);
    else if (call->team->index == call->root)
        pull_blocks(call);
    return cohi_count_part(call);
}

static void push_blocks(cohi_call *call)
{
    for (int step = 0; step < call->team->size; step++) {
        int to = other(call, step);
        char *target = step == 0 ? call->target : cohi_place_at(call, COHI_TARGET, to);
        copy(call, target, call->source + cohi_block_at(call, &call->from, to),
             cohi_block_bytes(call, &call->from, to));
    }
}

static void pull_own(cohi_call *call)
{
    int index = call->team->index;
    const char *source =
        index == call->root ? call->source : cohi_place_at(call, COHI_SOURCE, call->root);
    copy(call, call->target, source + cohi_block_at(call, &call->from, index),
         cohi_block_bytes(call, &call->from, index));
}

coh_status cohi_direct_scatter(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (cohi_place_has(call, COHI_SOURCE, call->root))
        pull_own(call);
    else if (!all_placed(call, COHI_TARGET))
        return give_up(call);
    else if (call->team->index == call->root)
        push_blocks(call);
    return cohi_count_part(call);
}

/* ---- broadcast ---- */

/* Of two members both copy, a half each, where both reach the other's buffer. */
static size_t pulled_by_each(const cohi_call *call)
{
    bool halves = call->team->size == 2 && cohi_place_has(call, COHI_TARGET, 1 - call->root);
    return halves ? call->bytes / 2 / COHI_CACHE_LINE * COHI_CACHE_LINE : call->bytes;
}

static void spread_from_root(cohi_call *call)
{
    size_t pulled = pulled_by_each(call);
    if (pulled < call->bytes)
        copy(call, cohi_place_at(call, COHI_TARGET, 1 - call->root) + pulled, call->source + pulled,
             call->bytes - pulled);
    copy(call, call->target, call->source, call->bytes);
}

coh_status cohi_direct_broadcast(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (!cohi_place_has(call, COHI_SOURCE, call->root))
        return give_up(call);
    if (call->team->index == call->root)
        spread_from_root(call);
    else
        copy(call, call->target, cohi_place_at(call, COHI_SOURCE, call->root),
             pulled_by_each(call));
    return cohi_count_part(call);
}

/* ---- all_to_all ---- */

static void pull_slice(cohi_call *call, int from)
{
    const char *source =
        cohi_place_at(call, COHI_SOURCE, from) + cohi_parts_first(call, from) * call->element;
    char *target = call->target + cohi_block_at(call, &call->to, from);
    if (call->from.stride == 1 && call->to.stride == 1)
        copy(call, target, source, cohi_block_bytes(call, &call->to, from));
    else
        cohi_copy_strided(target, call->to.stride, source, call->from.stride, call->element,
                          call->count);
}

coh_status cohi_direct_all_to_all(cohi_call *call)
{
    coh_status status = cohi_parts_enter(call);
    if (status != COH_OK)
        return status;
    if (!all_placed(call, COHI_SOURCE))
        return give_up(call);
    for (int step = 0; step < call->team->size; step++)
        pull_slice(call, other(call, step));
    return cohi_count_part(call);
}

/* ---- scan ---- */

/* From the last member to the first, so that a source which is a target too is read before it is
 * overwritten. */
static void scan_range(cohi_call *call, size_t first, size_t count)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    cohi_reduction how = cohi_call_reduction(call);
    size_t at = first * call->element;
    for (int i = 0; i < call->team->size; i++)
        gear->sources[i] = cohi_place_at(call, COHI_SOURCE, i) + at;
    for (int i = call->team->size - 1; i >= 0; i--) {
        int members = i + (call->exclusive ? 0 : 1);
        void *target = cohi_place_at(call, COHI_TARGET, i) + at;
        if (members == 0)
            cohi_fill_identity(call, target, count);
        else
            cohi_reduce(&how, &target, 1, gear->sources, members, count);
    }
}

/* Each member works out its share of the elements for all. */
coh_status cohi_direct_scan(cohi_call *call)
{
    enum { CHUNK_BYTES = 8 << 10 };
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (!all_placed(call, COHI_SOURCE) || !all_placed(call, COHI_TARGET))
        return give_up(call);
    cohi_span share = cohi_share(call, call->count, call->team->index);
    size_t most = CHUNK_BYTES / call->element, end = share.first + share.count;
    for (size_t first = share.first; first < end; first += most) {
        scan_range(call, first, end - first < most ? end - first : most);
        cohi_call_beat(call);
    }
    return cohi_count_part(call);
}
