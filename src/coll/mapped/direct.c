#include "coll/mapped/direct.h"

#include "coll/mapped/sent.h"
#include "coll/mapped/buffers.h"
#include "coll/mapped/staged.h"
#include "coll/mapped/two_shot.h"
#include "core/team/team.h"
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

/*
 * The loop for a call in which this member copies `all` bytes, `bytes` of them from `source`. The
 * sizes from which on it stores past the caches are the profile's; Sapphire Rapids, us cached
 * (streamed), 2, 4, 8 and 16 ranks: all_gather of 64 KiB 4.5, 9, 18 (37), 79 (137), of 1 MiB 135
 * (121), 328 (246), 1130 (565), 4360 (2050); Zen 4, 2 ranks: of 1 MiB 45 (78), of 16 MiB 2900 (1220).
 */
static cohi_copy_form form_for(const cohi_call *call, const char *source, size_t bytes, size_t all)
{
    return cohi_host_copy_form(source, bytes, all, call->team->size);
}

static void copy(cohi_call *call, char *target, const char *source, size_t bytes,
                 cohi_copy_form form)
{
    while (bytes > 0 && target != source) {
        size_t part = bytes < 2 * BEAT_BYTES ? bytes : BEAT_BYTES;
        cohi_copy_by(form, target, source, part);
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
    return cohi_count_leave(call);
}

/* ---- all_gather ---- */

/* All in the same order, so that what one of them reads from memory the others find in a cache: two
 * ranks with 4 MiB each 802 us, each from its own block on 916. */
static void pull_blocks(cohi_call *call)
{
    size_t all = call->bytes * (size_t)call->team->size;
    cohi_copy_form form = form_for(call, call->source, call->source_bytes, all);
    for (int from = 0; from < call->team->size; from++) {
        const char *source =
            from == call->team->index ? call->source : cohi_place_at(call, COHI_SOURCE, from);
        copy(call, call->target + cohi_block_at(call, &call->to, from), source,
             cohi_block_bytes(call, &call->to, from), form);
    }
}

/* Its own block, to so many members from `first` on. */
static void push_block(cohi_call *call, int first, int members)
{
    int index = call->team->index, size = call->team->size;
    size_t at = cohi_block_at(call, &call->to, index);
    size_t bytes = cohi_block_bytes(call, &call->to, index);
    cohi_copy_form form = form_for(call, call->source, bytes, bytes * (size_t)members);
    for (int i = 0; i < members; i++) {
        int to = (first + i) % size;
        char *target = to == index ? call->target : cohi_place_at(call, COHI_TARGET, to);
        copy(call, target + at, call->source, bytes, form);
    }
}

/*
 * Whether the members pull rather than push. What a member pushes it has in its own cache, as long
 * as it fits: two ranks with 16 KiB each 1.24 us (1.55 pulled), with 1 MiB 113 (181), with 16 MiB
 * the same. Of what is in no cache one pull brings it for all: two ranks with 64 KiB 26 (17), and
 * else, with up to eight ranks, 64 KiB makes no difference: two 4.7 (4.7), four 8.9 (8.8), eight 30
 * (28), but sixteen 79 (119); of 256 KiB four 42 (66). That is Sapphire Rapids; on Zen 4 two ranks
 * push what is longer faster too: 4 MiB 191 to 221 us (244 to 264), 16 MiB 1.22 ms (1.6).
 */
static bool should_pull(const cohi_call *call)
{
    enum { ALIKE_FROM = 64 << 10, ALIKE_TO = 128 << 10, SOME = 8 };
    bool alike = call->bytes >= ALIKE_FROM && call->bytes <= ALIKE_TO && call->team->size <= SOME;
    return alike || call->bytes >= cohi_call_bytes(call, COHI_ROW_gather_pull_from);
}

coh_status cohi_direct_all_gather(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    bool pulls = all_placed(call, COHI_SOURCE), pushes = all_placed(call, COHI_TARGET);
    if (pushes && !(pulls && should_pull(call)))
        push_block(call, call->team->index, call->team->size);
    else if (pulls)
        pull_blocks(call);
    else
        return give_up(call);
    return cohi_count_leave(call);
}

/* ---- gather, scatter ---- */

coh_status cohi_direct_gather(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (cohi_place_has(call, COHI_TARGET, call->root))
        push_block(call, call->root, 1);
    else if (!all_placed(call, COHI_SOURCE))
        return give_up(call);
    else if (call->team->index == call->root)
        pull_blocks(call);
    return cohi_count_leave(call);
}

static const char *roots_source(const cohi_call *call)
{
    return call->team->index == call->root ? call->source
                                           : cohi_place_at(call, COHI_SOURCE, call->root);
}

static void push_blocks(cohi_call *call)
{
    cohi_copy_form form = form_for(call, call->source, call->source_bytes, call->source_bytes);
    for (int step = 0; step < call->team->size; step++) {
        int to = other(call, step);
        char *target = step == 0 ? call->target : cohi_place_at(call, COHI_TARGET, to);
        copy(call, target, call->source + cohi_block_at(call, &call->from, to),
             cohi_block_bytes(call, &call->from, to), form);
    }
}

static void pull_own(cohi_call *call)
{
    int index = call->team->index;
    size_t bytes = cohi_block_bytes(call, &call->from, index);
    const char *source = roots_source(call) + cohi_block_at(call, &call->from, index);
    copy(call, call->target, source, bytes, form_for(call, source, bytes, bytes));
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
    return cohi_count_leave(call);
}

/* ---- broadcast ---- */

static void pull_all(cohi_call *call)
{
    const char *source = roots_source(call);
    copy(call, call->target, source, call->bytes, form_for(call, source, call->bytes, call->bytes));
}

/* This member's share of what the root has, to all: a chunk at a time, so that it is read once. */
static void spread_share(cohi_call *call)
{
    const size_t chunk = cohi_call_bytes(call, COHI_ROW_broadcast_chunk);
    int size = call->team->size;
    cohi_span share = cohi_share(call, call->count, call->team->index);
    const char *source = roots_source(call);
    size_t at = share.first * call->element, end = at + share.count * call->element;
    cohi_copy_form form = form_for(call, source + at, end - at, (end - at) * (size_t)(size - 1));
    for (; at < end; at += chunk) {
        size_t part = end - at < chunk ? end - at : chunk;
        for (int i = 0; i < size; i++) {
            char *target = cohi_place_at(call, COHI_TARGET, i);
            copy(call, target + at, source + at, part, form);
        }
    }
}

/*
 * From so many bytes on each member hands a share to all, where it can reach them, so that all
 * read the root's memory once. Pulled by each (shared), 4, 8 and 16 ranks: 16 KiB 1.2 us (1.2), 2.0
 * (2.2), 2.4 (4.2); 64 KiB 2.9 (2.2), 4.1 (3.3), 4.9 (4.6); 1 MiB 61 (29), 115 (50), 162 (91). Two
 * members share always.
 */
static bool shares_broadcast(const cohi_call *call)
{
    size_t from = cohi_call_bytes(call, COHI_ROW_broadcast_share_from);
    return (call->team->size == 2 || call->bytes >= from) && all_placed(call, COHI_TARGET);
}

coh_status cohi_direct_broadcast(cohi_call *call)
{
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (!cohi_place_has(call, COHI_SOURCE, call->root))
        return give_up(call);
    if (shares_broadcast(call))
        spread_share(call);
    else
        pull_all(call);
    return cohi_count_leave(call);
}

/* ---- all_to_all ---- */

static void pull_slice(cohi_call *call, int from, cohi_copy_form form)
{
    const char *source =
        cohi_place_at(call, COHI_SOURCE, from) + cohi_parts_first(call, from) * call->element;
    char *target = call->target + cohi_block_at(call, &call->to, from);
    if (call->from.stride == 1 && call->to.stride == 1)
        copy(call, target, source, cohi_block_bytes(call, &call->to, from), form);
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
    cohi_copy_form form = form_for(call, call->source, call->source_bytes, call->target_bytes);
    for (int step = 0; step < call->team->size; step++)
        pull_slice(call, other(call, step), form);
    return cohi_count_leave(call);
}

/* ---- scan ---- */

/* Each member works out its share of the elements for all. */
coh_status cohi_direct_scan(cohi_call *call)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    coh_status status = cohi_place_enter(call, 0);
    if (status != COH_OK)
        return status;
    if (!all_placed(call, COHI_SOURCE) || !all_placed(call, COHI_TARGET))
        return give_up(call);
    for (int i = 0; i < call->team->size; i++) {
        gear->sources[i] = cohi_place_at(call, COHI_SOURCE, i);
        gear->targets[i] = cohi_place_at(call, COHI_TARGET, i);
    }
    cohi_reduce_range(call, call->team->size, cohi_share(call, call->count, call->team->index));
    return cohi_count_leave(call);
}
