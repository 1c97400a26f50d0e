/*
 * staged.c - exchanges, and the reductions that one member makes alone, of private memory.
 *
 * In each turn a member brings the next part of what it gives into its `in`, counts READY up, waits
 * for those that it takes from, and takes. A member counts up for a turn only after it has taken
 * what it wanted of the turn before, so a buffer is free again once all have counted the turn after
 * its own. All members make the same number of turns, those with nothing to give too.
 *
 * A part is about half of a second-level cache: what is read from it has then left the writer's
 * cache for the shared one, from which it comes faster. Zen 4, 1 MiB of second-level cache a core,
 * two ranks, private memory, us in parts of 128 KiB (512): all_reduce of 16 MiB 3200 (2100), not by
 * way of the kernel 1 MiB 163 (64) and 4 MiB 791 (355); all_gather of 1 MiB 167 (82), all_to_all
 * 120 (75), broadcast 125 (63), reduce 130 (70). 1 and 2 MiB are no better than 512 KiB.
 */
#include "coll/mapped/staged.h"

#include "coll/call/blocks.h"
#include "coll/mapped/sent.h"
#include "coll/mapped/buffers.h"
#include "core/team/team.h"

#include <string.h>

/* A copy in and one out, of all that each takes. */
double cohi_staged_cost(const cohi_model *model, int ranks, double bytes)
{
    double turns = 1 + bytes / model->stage_part;
    return model->call + model->line * (1 + ranks / 8.0) * (1 + turns)
           + 2 * cohi_model_copy(model, bytes * ranks);
}

/* A turn, as the functions below see it: elements first .. first + most - 1 of each block. */
struct turn {
    size_t first;
    size_t most;
    int buffer;
};

/* What of a block of `count` elements goes in this turn. */
static size_t in_turn(const struct turn *turn, size_t count)
{
    if (turn->first >= count)
        return 0;
    return count - turn->first < turn->most ? count - turn->first : turn->most;
}

static char *my_in(const cohi_call *call, const struct turn *turn)
{
    return (char *)cohi_call_staging(call, call->team->index)->in[turn->buffer];
}

static const char *in_of(const cohi_call *call, const struct turn *turn, int index)
{
    return (const char *)cohi_call_staging(call, index)->in[turn->buffer];
}

/* How a kind takes turns. */
struct turns {
    size_t most;  /* elements of a block in one turn */
    size_t total; /* of the longest block */
    void (*bring)(cohi_call *call, const struct turn *turn);
    bool (*needs)(const cohi_call *call, int index); /* whether it takes from that member */
    void (*take)(cohi_call *call, const struct turn *turn);
};

static coh_status await_needed(cohi_call *call, const struct turns *turns)
{
    coh_status status = COH_OK;
    for (int i = 0; i < call->team->size && status == COH_OK; i++)
        if (turns->needs(call, i))
            status = cohi_count_await(call, COHI_READY, i, 0);
    return status;
}

static coh_status take_turns(cohi_call *call, const struct turns *turns)
{
    coh_status status = COH_OK;
    for (size_t first = 0; first < turns->total && status == COH_OK; first += turns->most) {
        struct turn turn = {.first = first,
                            .most = turns->most,
                            .buffer = (int)(cohi_team_gear(call->team)->counts[COHI_READY] & 1)};
        status = cohi_count_await_all(call, COHI_READY, 0);
        if (status != COH_OK)
            break;
        turns->bring(call, &turn);
        cohi_count_up(call, COHI_READY);
        status = await_needed(call, turns);
        if (status == COH_OK)
            turns->take(call, &turn);
        cohi_call_beat(call);
    }
    return status;
}

static bool needs_all(const cohi_call *call, int index)
{
    (void)call;
    (void)index;
    return true;
}

static bool root_needs_all(const cohi_call *call, int index)
{
    (void)index;
    return call->team->index == call->root;
}

static bool needs_root(const cohi_call *call, int index)
{
    return index == call->root;
}

static size_t longest(const cohi_call *call, const cohi_blocks *blocks)
{
    size_t most = blocks->count;
    for (int i = 0; blocks->counts && i < call->team->size; i++)
        most = i == 0 || blocks->counts[i] > most ? blocks->counts[i] : most;
    return most;
}

/* ---- one array from each: all_gather, gather, broadcast, scan ---- */

static size_t whole_stage(const cohi_call *call)
{
    return cohi_call_bytes(call, COHI_ROW_stage_part) / call->element;
}

static void bring_array(cohi_call *call, const struct turn *turn, size_t count)
{
    size_t part = in_turn(turn, count);
    if (part > 0)
        memcpy(my_in(call, turn), call->source + turn->first * call->element, part * call->element);
}

static void bring_block(cohi_call *call, const struct turn *turn)
{
    bring_array(call, turn, cohi_block_count(&call->to, call->team->index));
}

static void take_block(cohi_call *call, const struct turn *turn, int from)
{
    size_t part = in_turn(turn, cohi_block_count(&call->to, from));
    size_t at = turn->first * call->element;
    char *place = call->target + cohi_block_at(call, &call->to, from) + at;
    const char *data = from == call->team->index ? call->source + at : in_of(call, turn, from);
    if (part > 0 && place != data)
        memcpy(place, data, part * call->element);
}

static void take_blocks(cohi_call *call, const struct turn *turn)
{
    int size = call->team->size;
    for (int step = 0; step < size; step++)
        take_block(call, turn, (call->team->index + step) % size);
}

static coh_status stage_all_gather(cohi_call *call)
{
    struct turns turns = {.most = whole_stage(call),
                          .total = longest(call, &call->to),
                          .bring = bring_block,
                          .needs = needs_all,
                          .take = take_blocks};
    return take_turns(call, &turns);
}

static void bring_unless_root(cohi_call *call, const struct turn *turn)
{
    if (call->team->index != call->root)
        bring_block(call, turn);
}

static void root_takes_blocks(cohi_call *call, const struct turn *turn)
{
    if (call->team->index == call->root)
        take_blocks(call, turn);
}

static coh_status stage_gather(cohi_call *call)
{
    struct turns turns = {.most = whole_stage(call),
                          .total = longest(call, &call->to),
                          .bring = bring_unless_root,
                          .needs = root_needs_all,
                          .take = root_takes_blocks};
    return take_turns(call, &turns);
}

static void bring_if_root(cohi_call *call, const struct turn *turn)
{
    if (call->team->index == call->root)
        bring_array(call, turn, call->count);
}

static void take_from_root(cohi_call *call, const struct turn *turn)
{
    size_t part = in_turn(turn, call->count), at = turn->first * call->element;
    const char *data =
        call->team->index == call->root ? call->source + at : in_of(call, turn, call->root);
    if (part > 0 && call->target + at != data)
        memcpy(call->target + at, data, part * call->element);
}

static coh_status stage_broadcast(cohi_call *call)
{
    struct turns turns = {.most = whole_stage(call),
                          .total = call->count,
                          .bring = bring_if_root,
                          .needs = needs_root,
                          .take = take_from_root};
    return take_turns(call, &turns);
}

static void bring_all(cohi_call *call, const struct turn *turn)
{
    bring_array(call, turn, call->count);
}

static int scanned(const cohi_call *call)
{
    return call->team->index + (call->exclusive ? 0 : 1);
}

static bool scan_needs(const cohi_call *call, int index)
{
    return index < scanned(call);
}

static void take_scan(cohi_call *call, const struct turn *turn)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    int members = scanned(call);
    size_t part = in_turn(turn, call->count), at = turn->first * call->element;
    void *target = call->target + at;
    for (int i = 0; i < members; i++)
        gear->sources[i] = i == call->team->index ? call->source + at : in_of(call, turn, i);
    cohi_reduction how = cohi_call_reduction(call);
    if (members == 0)
        cohi_fill_identity(call, target, part);
    else
        cohi_reduce(&how, &target, 1, gear->sources, members, part);
}

static coh_status stage_scan(cohi_call *call)
{
    struct turns turns = {.most = whole_stage(call),
                          .total = call->count,
                          .bring = bring_all,
                          .needs = scan_needs,
                          .take = take_scan};
    return take_turns(call, &turns);
}

/* ---- a block for each: reduce_scatter, scatter, all_to_all ---- */

_Static_assert(COHI_RANKS_MAX *COH_OWN_ELEMENT_MAX <= sizeof((cohi_staging *)0)->in[0],
               "an element for each member fits");

/* The stage is divided evenly; whole lines for each, so that no two takers share one. */
static size_t divided_stage(const cohi_call *call)
{
    size_t bytes = cohi_call_bytes(call, COHI_ROW_stage_part) / (size_t)call->team->size;
    size_t lines = bytes / COHI_CACHE_LINE * COHI_CACHE_LINE;
    size_t count = (lines ? lines : bytes) / call->element;
    return count > 0 ? count : 1;
}

static size_t slice_at(const cohi_call *call, const struct turn *turn, int index)
{
    return (size_t)index * turn->most * call->element;
}

static void bring_slices(cohi_call *call, const struct turn *turn)
{
    for (int i = 0; i < call->team->size; i++) {
        const char *block = call->source + cohi_block_at(call, &call->from, i);
        cohi_pack(my_in(call, turn) + slice_at(call, turn, i),
                  block + turn->first * call->from.stride * call->element, call->from.stride,
                  call->element, in_turn(turn, cohi_block_count(&call->from, i)));
    }
}

static void take_reduced(cohi_call *call, const struct turn *turn)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team);
    size_t part = in_turn(turn, cohi_block_count(&call->from, team->index));
    void *target = call->target + turn->first * call->element;
    for (int i = 0; i < team->size; i++)
        gear->sources[i] = in_of(call, turn, i) + slice_at(call, turn, team->index);
    cohi_reduction how = cohi_call_reduction(call);
    cohi_reduce(&how, &target, 1, gear->sources, team->size, part);
}

static coh_status stage_reduce_scatter(cohi_call *call)
{
    struct turns turns = {.most = divided_stage(call),
                          .total = longest(call, &call->from),
                          .bring = bring_slices,
                          .needs = needs_all,
                          .take = take_reduced};
    return take_turns(call, &turns);
}

static void root_brings_slices(cohi_call *call, const struct turn *turn)
{
    if (call->team->index == call->root)
        bring_slices(call, turn);
}

static void take_slice(cohi_call *call, const struct turn *turn)
{
    size_t part = in_turn(turn, cohi_block_count(&call->from, call->team->index));
    if (part > 0)
        memcpy(call->target + turn->first * call->element,
               in_of(call, turn, call->root) + slice_at(call, turn, call->team->index),
               part * call->element);
}

static coh_status stage_scatter(cohi_call *call)
{
    struct turns turns = {.most = divided_stage(call),
                          .total = longest(call, &call->from),
                          .bring = root_brings_slices,
                          .needs = needs_root,
                          .take = take_slice};
    return take_turns(call, &turns);
}

static void take_slices(cohi_call *call, const struct turn *turn)
{
    coh_team *team = call->team;
    for (int step = 0; step < team->size; step++) {
        int from = (team->index + step) % team->size;
        char *block = call->target + cohi_block_at(call, &call->to, from);
        cohi_unpack(block + turn->first * call->to.stride * call->element, call->to.stride,
                    in_of(call, turn, from) + slice_at(call, turn, team->index), call->element,
                    in_turn(turn, cohi_block_count(&call->to, from)));
    }
}

static coh_status stage_all_to_all(cohi_call *call)
{
    struct turns turns = {.most = divided_stage(call),
                          .total = cohi_place_most(call),
                          .bring = bring_slices,
                          .needs = needs_all,
                          .take = take_slices};
    return take_turns(call, &turns);
}

/* ---- which is which ---- */

static coh_status (*const stages[COHI_KINDS])(cohi_call *call) = {
    [COH_COLLECTIVE_ALL_REDUCE] = cohi_stage_reduction,
    [COH_COLLECTIVE_REDUCE] = cohi_stage_reduction,
    [COH_COLLECTIVE_REDUCE_SCATTER] = stage_reduce_scatter,
    [COH_COLLECTIVE_ALL_GATHER] = stage_all_gather,
    [COH_COLLECTIVE_GATHER] = stage_gather,
    [COH_COLLECTIVE_SCATTER] = stage_scatter,
    [COH_COLLECTIVE_BROADCAST] = stage_broadcast,
    [COH_COLLECTIVE_ALL_TO_ALL] = stage_all_to_all,
    [COH_COLLECTIVE_SCAN] = stage_scan,
};

coh_status cohi_stage(cohi_call *call)
{
    return stages[call->kind](call);
}

coh_status cohi_staged(cohi_call *call)
{
    coh_status status = call->kind == COH_COLLECTIVE_ALL_TO_ALL ? cohi_parts_enter(call)
                                                                : cohi_place_enter(call, 0);
    return status == COH_OK ? cohi_stage(call) : status;
}
