#include "coll/levels/part.h"

#include "coll/call/gear.h"
#include "coll/call/tuned.h"
#include "coll/message/accumulate.h"
#include "core/team/past.h"
#include "memory/reduce.h"

#include <float.h>

/* ---- making ---- */

cohi_call cohi_part_of(cohi_call *call, coh_team *level, coh_collective_kind kind)
{
    cohi_call *whole = call->whole ? call->whole : call;
    cohi_call part = {.team = level,
                      .name = call->name,
                      .kind = kind,
                      .dtype = call->dtype,
                      .element = call->element,
                      .reduce = call->reduce,
                      .own = call->own,
                      .from = {.stride = 1},
                      .to = {.stride = 1},
                      .whole = whole,
                      .entry = {level, call->name, call->entry.op, call->entry.print},
                      .terms = whole->terms,
                      .serial = whole->serial};
    return part;
}

cohi_call cohi_part_of_partials(cohi_call *call, coh_team *level, coh_collective_kind kind)
{
    cohi_call part = cohi_part_of(call, level, kind);
    part.dtype = cohi_reduce_partial(call->dtype);
    part.element = cohi_partial_size(call);
    part.reduce = call->reduce == COH_MEAN ? COH_SUM : call->reduce;
    return part;
}

int cohi_part_lead(const cohi_call *call)
{
    const coh_team *team = call->team;
    bool here = team->levels->host_of[call->root] == team->levels->host;
    return here ? team->levels->local->indices[team->ranks[call->root]] : 0;
}

void cohi_part_count(cohi_call *part, size_t count)
{
    part->count = part->from.count = part->to.count = count;
}

void cohi_part_blocks(cohi_call *part, const size_t *counts, const size_t *firsts)
{
    part->variable = true;
    part->from.counts = part->to.counts = counts;
    part->from.firsts = part->to.firsts = firsts;
}

/* ---- what rows go by ---- */

static size_t longest_count(const cohi_call *part)
{
    size_t most = 0;
    for (int i = 0; i < part->team->size; i++) {
        size_t count = cohi_block_count(&part->to, i);
        most = count > most ? count : most;
    }
    return most;
}

/* The elements up to the end of the last block. */
static size_t span_of(const cohi_call *part, const cohi_call_blocks *blocks)
{
    size_t end = 0;
    for (int i = 0; i < part->team->size; i++) {
        size_t count = cohi_block_count(blocks, i), first = cohi_block_first(blocks, i);
        size_t last = count > 0 ? first + (count - 1) * blocks->stride + 1 : 0;
        end = last > end ? last : end;
    }
    return end;
}

static void measure_buffers(cohi_call *part)
{
    const cohi_kind_row *row = &cohi_kind_rows[part->kind];
    int index = part->team->index;
    bool root = index == part->root;
    size_t source = row->source_blocks   ? span_of(part, &part->from)
                    : row->target_blocks ? cohi_block_count(&part->to, index)
                                         : part->count;
    size_t target = row->target_blocks   ? span_of(part, &part->to)
                    : row->source_blocks ? cohi_block_count(&part->from, index)
                                         : part->count;
    part->source_bytes = !root && row->root == COHI_ROOT_GIVES ? 0 : source * part->element;
    part->target_bytes = !root && row->root == COHI_ROOT_GETS ? 0 : target * part->element;
}

/* As check.c has it; the same on all members of the level. */
static size_t contributed(const cohi_call *part)
{
    enum { UNKNOWN = 1 << 20 };
    switch (part->kind) {
    case COH_COLLECTIVE_ALL_GATHER:
    case COH_COLLECTIVE_GATHER:
    case COH_COLLECTIVE_SCATTER:
        return longest_count(part) * part->element;
    case COH_COLLECTIVE_REDUCE_SCATTER:
        return part->source_bytes;
    case COH_COLLECTIVE_ALL_TO_ALL:
        return part->variable ? UNKNOWN : part->count * part->element * (size_t)part->team->size;
    default:
        return part->count * part->element;
    }
}

/* ---- the row ---- */

/* Inside a host its profile; between hosts what all ranks share. */
static cohi_model model_of(const coh_team *level)
{
    enum { CROWDED_LINES = 25 }; /* see select.c */
    const coh_world *world = level->world;
    cohi_model model =
        level->mapped ? cohi_model_of(&world->profile) : cohi_tuning_of(world)->model;
    if (world->crowded && level->mapped)
        model.line *= CROWDED_LINES;
    return model;
}

/* One-shot gives an all_to_all's source as a whole, of which this is only some blocks. */
static bool suits(const cohi_algorithm *row, const cohi_call *part)
{
    bool some = part->kind == COH_COLLECTIVE_ALL_TO_ALL && row->traits & COHI_SHORT_IN_POST;
    return row->kind == part->kind && !some && (!row->applies || row->applies(part));
}

static const cohi_algorithm *cheapest(const cohi_call *part)
{
    const cohi_algorithm *best = NULL;
    const cohi_algorithm *row =
        part->team->mapped ? cohi_mapped_algorithms : cohi_message_algorithms;
    cohi_model model = model_of(part->team);
    double least = DBL_MAX;
    for (; row->name; row++) {
        double cost =
            suits(row, part) ? row->cost(&model, part->team->size, (double)part->bytes) : DBL_MAX;
        if (!best ? suits(row, part) : cost < least) {
            best = row;
            least = cost;
        }
    }
    return best;
}

static void choose(cohi_call *part)
{
    measure_buffers(part);
    part->bytes = contributed(part);
    part->algorithm = cheapest(part);
}

size_t cohi_part_workspace(cohi_call *part)
{
    choose(part);
    return part->algorithm->workspace ? part->algorithm->workspace(part) : 0;
}

/* ---- running ---- */

/* As run.c has it. */
static bool needs_scratch(const cohi_call *part)
{
    unsigned traits = part->algorithm->traits;
    if (traits & COHI_SHORT_IN_POST)
        return part->source_bytes > (part->variable ? 0 : COHI_POST_WIDE);
    return traits & COHI_MAPPED && part->variable && part->kind == COH_COLLECTIVE_ALL_TO_ALL;
}

/* A post is used again after COHI_POSTS parts, by when all must have left the one it was for. */
static coh_status settle(const cohi_call *part)
{
    const coh_team *level = part->team;
    bool ahead = level->mapped && level->epoch - level->settled > COHI_POSTS - 2;
    return ahead ? cohi_team_settle(&part->entry) : COH_OK;
}

coh_status cohi_part_run(cohi_call *part, char *workspace)
{
    cohi_coll_gear *gear;
    coh_status status = cohi_gear_of(part->team, part->name, &gear);
    if (status != COH_OK)
        return status;
    choose(part);
    part->workspace = workspace;
    if (needs_scratch(part))
        status = cohi_gear_scratch(part);
    if (status == COH_OK)
        status = settle(part);
    return status == COH_OK ? part->algorithm->run(part) : status;
}
