/*
 * staged_reduce.c - all_reduce and reduce of private memory.
 *
 * A part is cut into a share for each member. Each brings in the shares of the others, reduces its
 * own from what they brought in, and takes the reduced shares from them:
 *
 *     bring in part 0
 *     for each part: wait until all have brought it in; bring in the next;
 *                    reduce my share, into my target and my `out`; say so;
 *                    wait until all have; take theirs
 *
 * `in` of a part is free again when all have reduced that part, `out` when all have brought in the
 * next but one: both are waited for on the way. So nobody need wait at the end.
 *
 * Two members that store past the caches bring in whole parts, and each reduces all of them. As
 * much passes from core to core, but there is one wait for each part, and one pass over memory:
 *
 *     bring in part 0; say so
 *     for each part: wait until the other has brought it in;
 *                    reduce it into my target, and bring in the next beside; say so
 *
 * A member that says so of a part has reduced the part before, whose buffer the next one takes.
 * The last part is read when nobody waits any more: the next call that uses the stage begins when
 * all have entered it.
 *
 * An all_reduce of middling size goes through the kernel instead (fetch.h), where that can be.
 */
#include "coll/call/blocks.h"
#include "coll/mapped/buffers.h"
#include "coll/mapped/staged.h"
#include "core/team/team.h"
#include "memory/host_copy.h"

#include <string.h>

/* A copy in, a reduction and a copy out, of which one passes the cache; of two members the last is
 * part of the reduction. */
double cohi_staged_all_reduce_cost(const cohi_model *model, int ranks, double bytes)
{
    double parts = 1 + bytes / model->stage_part;
    return model->call + model->line * (1 + ranks / 8.0) * (1 + 2 * parts)
           + cohi_model_reduce(model, bytes) + 2 * cohi_model_copy(model, bytes);
}

/* The part under way. */
struct part {
    size_t first; /* element of the buffers */
    size_t count;
    int buffer;
};

static size_t part_most(const cohi_call *call)
{
    return cohi_call_bytes(call, COHI_ROW_stage_part) / call->element;
}

static void bring_in(cohi_call *call, const struct part *part)
{
    cohi_span own = cohi_share(call, part->count, call->team->index);
    char *in = (char *)cohi_call_staging(call, call->team->index)->in[part->buffer];
    const char *from = call->source + part->first * call->element;
    size_t before = own.first * call->element, end = (own.first + own.count) * call->element;
    cohi_bring(in, from, before);
    cohi_bring(in + end, from + end, part->count * call->element - end);
    cohi_count_up(call, COHI_READY);
}

static bool takes(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_ALL_REDUCE || call->team->index == call->root;
}

/* Whether the target is stored past the caches; one's own share, too, is then taken from the
 * stage. 2 ranks, in shares, ms cached (streamed): 16 MiB 3.9 (3.35), 64 MiB 22 (18). */
static bool streams(const cohi_call *call)
{
    return call->bytes >= cohi_call_bytes(call, COHI_ROW_private_stream_from);
}

static void reduce_own(cohi_call *call, const struct part *part)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team);
    cohi_span own = cohi_share(call, part->count, team->index);
    size_t at = own.first * call->element;
    for (int i = 0; i < team->size; i++)
        gear->sources[i] = cohi_call_staging(call, i)->in[part->buffer] + at;
    gear->sources[team->index] = call->source + part->first * call->element + at;
    gear->targets[0] = cohi_call_staging(call, team->index)->out[part->buffer] + at;
    gear->targets[1] = call->target + part->first * call->element + at;
    cohi_reduction how = cohi_call_reduction(call);
    cohi_reduce(&how, gear->targets, takes(call) && !streams(call) ? 2 : 1, gear->sources,
                team->size, own.count);
    cohi_count_up(call, COHI_DONE);
}

static void take_reduced(cohi_call *call, const struct part *part)
{
    coh_team *team = call->team;
    for (int step = streams(call) ? 0 : 1; step < team->size; step++) {
        int from = (team->index + step) % team->size;
        cohi_span share = cohi_share(call, part->count, from);
        size_t at = share.first * call->element;
        char *target = call->target + part->first * call->element + at;
        const void *out = cohi_call_staging(call, from)->out[part->buffer] + at;
        if (streams(call))
            cohi_host_copy_large(target, out, share.count * call->element);
        else
            cohi_bring(target, out, share.count * call->element);
    }
}

static struct part part_at(const cohi_call *call, size_t first)
{
    size_t left = call->count - first, most = part_most(call);
    return (struct part){.first = first,
                         .count = left < most ? left : most,
                         .buffer = (int)(cohi_team_gear(call->team)->counts[COHI_READY] & 1)};
}

static coh_status finish_part(cohi_call *call, const struct part *part)
{
    reduce_own(call, part);
    coh_status status = cohi_count_await_all(call, COHI_DONE, 0);
    if (status == COH_OK && takes(call))
        take_reduced(call, part);
    cohi_call_beat(call);
    return status;
}

static coh_status reduce_by_parts(cohi_call *call)
{
    coh_status status = cohi_count_await_all(call, COHI_READY, 0);
    if (status != COH_OK)
        return status;
    struct part part = part_at(call, 0);
    bring_in(call, &part);
    while (status == COH_OK && part.count > 0) {
        status = cohi_count_await_all(call, COHI_READY, 0);
        struct part next = part_at(call, part.first + part.count);
        if (status == COH_OK && next.count > 0)
            bring_in(call, &next);
        if (status == COH_OK)
            status = finish_part(call, &part);
        part = next;
    }
    return status;
}

/* ---- two members ---- */

static uint64_t target_in_line(const cohi_call *call, int index)
{
    const cohi_place *place = cohi_post_data(call, index);
    return place->target_at % COHI_CACHE_LINE;
}

/* With targets that are aligned alike, so that both go the same way through the loops: which of two
 * NaNs comes out depends on it. 16 MiB in shares 2.85 ms, in whole parts 2.53, brought in beside
 * 2.3; 64 MiB 12.2, 11.2, 10.3. */
static bool exchanges_parts(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_ALL_REDUCE && call->team->size == 2 && streams(call)
           && target_in_line(call, 0) == target_in_line(call, 1);
}

static void reduce_part(cohi_call *call, const struct part *part, const struct part *next)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team);
    size_t at = part->first * call->element, beside = next->first * call->element;
    gear->sources[!team->index] = cohi_call_staging(call, !team->index)->in[part->buffer];
    gear->sources[team->index] = call->source + at;
    cohi_reduction how = cohi_call_reduction(call);
    how.stream = true;
    cohi_reduce_beside(&how, call->target + at, gear->sources, part->count,
                       cohi_call_staging(call, team->index)->in[next->buffer],
                       call->source + beside, next->count * call->element);
}

static coh_status exchange_parts(cohi_call *call)
{
    coh_status status = cohi_count_await_all(call, COHI_READY, 0);
    if (status != COH_OK)
        return status;
    struct part part = part_at(call, 0);
    memcpy(cohi_call_staging(call, call->team->index)->in[part.buffer], call->source,
           part.count * call->element);
    cohi_count_up(call, COHI_READY);
    while (part.count > 0) {
        status = cohi_count_await_all(call, COHI_READY, 0);
        if (status != COH_OK)
            return status;
        struct part next = part_at(call, part.first + part.count);
        reduce_part(call, &part, &next);
        if (next.count > 0)
            cohi_count_up(call, COHI_READY);
        cohi_call_beat(call);
        part = next;
    }
    return COH_OK;
}

/*
 * Between these an all_reduce goes through the kernel, where it may. 2 ranks, private memory, us
 * staged (fetched), Sapphire Rapids in parts of 128 KiB: 32 KiB 8.7 (4.2), 64 KiB 13 (6.8), 256 KiB
 * 51 (19), 1 MiB 190 (103); in whole parts 4 MiB 735 (580), 8 MiB 1420 (1340), 16 MiB 2700 (3950).
 * Zen 4 in parts of 512 KiB: 64 KiB 13 (10), 256 KiB 29 (29), 1 MiB 64 (112), 4 MiB 355 (602).
 */
static bool fetches(cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_ALL_REDUCE
           && call->bytes >= cohi_call_bytes(call, COHI_ROW_private_fetch_from)
           && call->bytes < cohi_call_bytes(call, COHI_ROW_private_stage_from)
           && cohi_fetch_agreed(call);
}

coh_status cohi_stage_reduction(cohi_call *call)
{
    if (fetches(call))
        return cohi_fetch_all_reduce(call);
    return exchanges_parts(call) ? exchange_parts(call) : reduce_by_parts(call);
}
