#include "coll/mapped/two_shot.h"

#include "coll/mapped/buffers.h"
#include "coll/mapped/staged.h"
#include "core/team/team.h"
#include "memory/host_copy.h"
#include "memory/profile.h"

/* Bytes that are reduced between two signs of life: the slowest of kernels, under a sanitizer, need
 * some 100 ns for an element. */
enum { BEAT_BYTES = 512 << 10 };

bool cohi_mapped_applies(const cohi_call *call)
{
    return call->team->mapped;
}

/* Two meetings; every member reads its share of all sources and writes it to all targets. */
double cohi_two_shot_cost(const cohi_model *model, int ranks, double bytes)
{
    return model->call + 2 * model->line * (1 + ranks / 8.0) + cohi_model_reduce(model, bytes)
           + cohi_model_copy(model, bytes) / 2;
}

double cohi_two_shot_reduce_cost(const cohi_model *model, int ranks, double bytes)
{
    return model->call + 2 * model->line * (1 + ranks / 8.0) + cohi_model_reduce(model, bytes);
}

static void move_pointers(cohi_coll_gear *gear, int sources, int targets, size_t bytes)
{
    for (int i = 0; i < sources; i++)
        gear->sources[i] = (const char *)gear->sources[i] + bytes;
    for (int i = 0; i < targets; i++)
        gear->targets[i] = (char *)gear->targets[i] + bytes;
}

/*
 * Whether to store past the caches: where all the buffers together no longer fit, or were in none
 * to begin with, a cached store reads the line first. Not in place, where it is there already. A
 * reduce_scatter has one target, and a small one. The sizes from which that is so are rows of the
 * profile; Sapphire Rapids, us cached (streamed): two ranks with 512 KiB each 17 (27), with 1 MiB,
 * which just fit, 54 to 80 (53 to 66), with 2 MiB 188 (137); sixteen with 256 KiB 17 (44), with 1
 * MiB 253 (187). Zen 4, two with 1 MiB 22 (75), with 16 MiB 770 (590).
 */
static bool streams(const cohi_call *call, int targets, size_t range_bytes)
{
    const cohi_coll_gear *gear = cohi_team_gear(call->team);
    int index = call->team->index;
    cohi_row from = targets == 1 ? COHI_ROW_reduce_one_stream_from : COHI_ROW_reduce_stream_from;
    bool same = false;
    for (int i = 0; i < targets; i++)
        same = same || gear->targets[i] == gear->sources[targets == 1 ? index : i];
    return !same
           && cohi_host_should_stream(gear->sources[index], range_bytes, call->bytes,
                                      call->team->size, (size_t)cohi_profile_now(from));
}

/* Without each member's own. The identity is stored last: where it goes may be a source as well. */
static void scan_before(const cohi_call *call, const cohi_reduction *how, size_t count)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    int before = call->team->size - 1;
    if (before > 0)
        cohi_scan(how, gear->targets + 1, gear->sources, before, count);
    cohi_fill_identity(call, gear->targets[0], count);
}

static void reduce_next(const cohi_call *call, const cohi_reduction *how, int targets, size_t count)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    int size = call->team->size;
    if (call->kind != COH_COLLECTIVE_SCAN)
        cohi_reduce(how, gear->targets, targets, gear->sources, size, count);
    else if (call->exclusive)
        scan_before(call, how, count);
    else
        cohi_scan(how, gear->targets, gear->sources, size, count);
}

void cohi_reduce_range(cohi_call *call, int targets, cohi_span range)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    int size = call->team->size;
    size_t most = BEAT_BYTES / call->element;
    cohi_reduction how = cohi_call_reduction(call);
    move_pointers(gear, size, targets, range.first * call->element);
    how.stream = streams(call, targets, range.count * call->element);
    while (range.count > 0) {
        size_t count = range.count < most ? range.count : most;
        reduce_next(call, &how, targets, count);
        cohi_call_beat(call);
        move_pointers(gear, size, targets, count * call->element);
        range.count -= count;
    }
}

static void gather_sources(cohi_call *call)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    for (int i = 0; i < call->team->size; i++)
        gear->sources[i] = cohi_place_at(call, COHI_SOURCE, i);
}

coh_status cohi_two_shot_all_reduce(cohi_call *call)
{
    coh_team *team = call->team;
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    int lacking = cohi_place_lacking(call, COHI_SOURCE);
    cohi_side side = lacking >= 0 ? COHI_SOURCE : COHI_TARGET;
    if (lacking < 0)
        lacking = cohi_place_lacking(call, COHI_TARGET);
    if (lacking >= 0)
        return call->forced ? cohi_place_refuse(call, side, lacking) : cohi_stage(call);
    gather_sources(call);
    for (int i = 0; i < team->size; i++)
        cohi_team_gear(team)->targets[i] = cohi_place_at(call, COHI_TARGET, i);
    cohi_reduce_range(call, team->size, cohi_share(call, call->count, team->index));
    return cohi_count_leave(call);
}

coh_status cohi_two_shot_reduce(cohi_call *call)
{
    coh_team *team = call->team;
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    int lacking = cohi_place_lacking(call, COHI_SOURCE);
    if (lacking >= 0 || !cohi_place_has(call, COHI_TARGET, call->root))
        return !call->forced  ? cohi_stage(call)
               : lacking >= 0 ? cohi_place_refuse(call, COHI_SOURCE, lacking)
                              : cohi_place_refuse(call, COHI_TARGET, call->root);
    gather_sources(call);
    cohi_team_gear(team)->targets[0] = cohi_place_at(call, COHI_TARGET, call->root);
    cohi_reduce_range(call, 1, cohi_share(call, call->count, team->index));
    return cohi_count_leave(call);
}
