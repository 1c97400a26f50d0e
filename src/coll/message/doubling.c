/*
 * doubling.c - all_reduce between members whose distance doubles.
 *
 * Where the members are no power of two, neighbours pair up at first until the pairs and the others
 * are one: the second of a pair gives what it has to the first and gets the result at the end. So
 * the combined members always lie side by side.
 */
#include "coll/message/messages.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

/* The members that take part in the doubling, as this one sees them. */
struct fold {
    int group;  /* how many: a power of two */
    int excess; /* pairs */
    int index;  /* of this member among them, or -1: the second of a pair */
    int paired; /* the other of this member's pair, or -1 */
};

static struct fold fold_of(const coh_team *team)
{
    int group = cohi_power_below(team->size), excess = team->size - group, at = team->index;
    if (at >= 2 * excess)
        return (struct fold){group, excess, at - excess, -1};
    return (struct fold){group, excess, at % 2 == 0 ? at / 2 : -1, at ^ 1};
}

static int member_of(const struct fold *fold, int index)
{
    return index < fold->excess ? 2 * index : index + fold->excess;
}

/*
 * The sum on its way. Where its elements are those of the call, the first step takes them from the source and the last
 * stores them in the target: what comes in it has something of every member, so none is in another call.
 */
struct work {
    const char *own; /* what this member has: its source, or from its first step on `partial` */
    char *partial;
    char *buffers;
};

static struct work lay_out(const cohi_call *call)
{
    char *at = call->workspace;
    struct work work = {.partial = call->target};
    if (!cohi_partial_in_target(call))
        work.partial = cohi_part_take(&at, call->count * cohi_partial_size(call));
    work.buffers = at;
    work.own = cohi_partial_is_source(call) ? call->source : work.partial;
    if (work.own == work.partial)
        cohi_partial_load(call, work.partial, call->source, call->count);
    return work;
}

size_t cohi_doubling_workspace(const cohi_call *call)
{
    size_t bytes = cohi_flow_bytes(call, call->count);
    if (!cohi_partial_in_target(call))
        bytes += cohi_part_bytes(call->count * cohi_partial_size(call));
    return bytes;
}

static coh_status fold_in(cohi_call *call, const struct fold *fold, struct work *work)
{
    if (fold->paired < 0)
        return COH_OK;
    bool first = fold->index >= 0;
    const cohi_flow flow = {.to = fold->paired,
                            .out = work->own,
                            .out_count = first ? 0 : call->count,
                            .from = fold->paired,
                            .own = work->own,
                            .into = work->partial,
                            .in_count = first ? call->count : 0};
    work->own = work->partial;
    return cohi_flow_run(call, &flow, work->buffers);
}

static coh_status fold_out(cohi_call *call, const struct fold *fold)
{
    size_t bytes = call->count * call->element;
    if (fold->paired < 0)
        return COH_OK;
    return fold->index >= 0 ? cohi_pieces_send(call, fold->paired, call->target, bytes)
                            : cohi_pieces_receive(call, fold->paired, call->target, bytes);
}

/* Where the last step puts the result. */
static char *result_at(const cohi_call *call, const struct work *work)
{
    return cohi_partial_same(call) ? call->target : work->partial;
}

/* What `inner` does among the members of the fold, with the rest brought in and told. */
static coh_status reduce_folded(cohi_call *call,
                                coh_status (*inner)(cohi_call *call, const struct fold *fold,
                                                    struct work *work))
{
    if (call->team->size == 1)
        return cohi_partial_alone(call);
    const struct fold fold = fold_of(call->team);
    struct work work = lay_out(call);
    coh_status status = fold_in(call, &fold, &work);
    if (status == COH_OK && fold.index >= 0)
        status = inner(call, &fold, &work);
    return status == COH_OK ? fold_out(call, &fold) : status;
}

/* ---- recursive doubling ---- */

static coh_status double_whole(cohi_call *call, const struct fold *fold, struct work *work)
{
    char *result = result_at(call, work);
    coh_status status = COH_OK;
    for (int mask = 1; mask < fold->group && status == COH_OK; mask *= 2) {
        bool last = 2 * mask == fold->group;
        int partner = member_of(fold, fold->index ^ mask);
        const cohi_flow flow = {.to = partner,
                                .out = work->own,
                                .out_count = call->count,
                                .from = partner,
                                .own = work->own,
                                .into = last ? result : work->partial,
                                .in_count = call->count,
                                .in_first = partner < call->team->index};
        work->own = work->partial;
        status = cohi_flow_run(call, &flow, work->buffers);
    }
    if (status == COH_OK)
        cohi_partial_store(call, call->target, result, call->count);
    return status;
}

coh_status cohi_doubling_all_reduce(cohi_call *call)
{
    return reduce_folded(call, double_whole);
}

/* ---- halving, then doubling ---- */

/* Each step leaves this member half of the shares that it had; at the end its own. */
static coh_status halve(cohi_call *call, const struct fold *fold, struct work *work)
{
    size_t size = cohi_partial_size(call);
    int from = 0;
    char *result = result_at(call, work);
    coh_status status = COH_OK;
    for (int mask = fold->group / 2; mask > 0 && status == COH_OK; mask /= 2) {
        bool upper = fold->index & mask;
        int partner = member_of(fold, fold->index ^ mask);
        cohi_span low = cohi_slices(call->count, fold->group, from, from + mask);
        cohi_span high = cohi_slices(call->count, fold->group, from + mask, from + 2 * mask);
        cohi_span kept = upper ? high : low, given = upper ? low : high;
        const cohi_flow flow = {.to = partner,
                                .out = work->own + given.first * size,
                                .out_count = given.count,
                                .from = partner,
                                .own = work->own + kept.first * size,
                                .into = (mask == 1 ? result : work->partial) + kept.first * size,
                                .in_count = kept.count,
                                .in_first = upper};
        work->own = work->partial;
        status = cohi_flow_run(call, &flow, work->buffers);
        from += upper ? mask : 0;
    }
    return status;
}

static coh_status gather_doubling(cohi_call *call, const struct fold *fold)
{
    coh_status status = COH_OK;
    for (int mask = 1; mask < fold->group && status == COH_OK; mask *= 2) {
        int partner = member_of(fold, fold->index ^ mask);
        int from = fold->index & ~(mask - 1), other = from ^ mask;
        cohi_span mine = cohi_slices(call->count, fold->group, from, from + mask);
        cohi_span theirs = cohi_slices(call->count, fold->group, other, other + mask);
        status = cohi_pieces_both(
            call, partner, call->target + mine.first * call->element, mine.count * call->element,
            partner, call->target + theirs.first * call->element, theirs.count * call->element);
    }
    return status;
}

static coh_status halve_then_double(cohi_call *call, const struct fold *fold, struct work *work)
{
    coh_status status = halve(call, fold, work);
    if (status != COH_OK)
        return status;
    cohi_span own = cohi_slice(call->count, fold->group, fold->index);
    cohi_partial_store(call, call->target + own.first * call->element,
                       result_at(call, work) + own.first * cohi_partial_size(call), own.count);
    return gather_doubling(call, fold);
}

coh_status cohi_halving_all_reduce(cohi_call *call)
{
    return reduce_folded(call, halve_then_double);
}
