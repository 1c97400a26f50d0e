#include "coll/mapped/one_shot.h"

#include "coll/call/assemble.h"
#include "coll/call/blocks.h"
#include "core/team/past.h"
#include "core/team/posts.h"

#include <string.h>

/* The most that a member gives. Of variable blocks as if all had the length of the longest, so that
 * it goes by call->bytes alone, as the choice does. */
static size_t given(const cohi_call *call)
{
    size_t all;
    if (call->kind != COH_COLLECTIVE_SCATTER)
        return call->bytes;
    return __builtin_mul_overflow(call->bytes, (size_t)call->team->size, &all) ? SIZE_MAX : all;
}

bool cohi_one_shot_applies(const cohi_call *call)
{
    bool known = call->kind != COH_COLLECTIVE_ALL_TO_ALL || !call->from.counts;
    return call->team->mapped && known && given(call) <= COHI_SCRATCH_BYTES;
}

/* Entering, and putting a copy of what is given where the others find it. */
static double giving(const cohi_model *model, int ranks, double bytes)
{
    return model->call + model->line * (1 + ranks / 8.0) + bytes * model->copy;
}

/*
 * A byte that another has given. The lines of a post come with that of its mark, so that they take
 * half of what lines of their own do. Two ranks, Zen 4, ns for 8 B, 1 KiB: all_reduce 105, 217;
 * all_gather 75, 186.
 */
static double taking(const cohi_model *model, double bytes)
{
    return bytes <= COHI_POST_WIDE ? model->take / 2 : model->take;
}

/* Each takes all that each other gives. */
double cohi_one_shot_cost(const cohi_model *model, int ranks, double bytes)
{
    return giving(model, ranks, bytes) + (ranks - 1) * bytes * taking(model, bytes);
}

/* One takes all that each other gives. Here the lines behind the mark were measured to take as long
 * as others: two ranks, Zen 4, 1 KiB reduced 290 ns, by two-shot 250; gathered 241, directly 205. */
double cohi_one_shot_to_root_cost(const cohi_model *model, int ranks, double bytes)
{
    return giving(model, ranks, bytes) + (ranks - 1) * bytes * model->take;
}

/* Each takes its share of what each other gives. */
double cohi_one_shot_share_cost(const cohi_model *model, int ranks, double bytes)
{
    return giving(model, ranks, bytes) + bytes * taking(model, bytes) * (ranks - 1) / ranks;
}

/* Each takes all that one gives. */
double cohi_one_shot_root_cost(const cohi_model *model, int ranks, double bytes)
{
    return giving(model, ranks, bytes) + bytes * taking(model, bytes);
}

/* ---- giving and taking ---- */

/* A short contribution in a few loads and stores, where a call would take longer. */
static inline void copy_given(char *target, const char *source, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(target, source, sizeof(uint64_t));
    else if (bytes > 0)
        memcpy(target, source, bytes);
}

/* Enters with this member's contribution, which the others find by taken_from. */
static inline void give(cohi_call *call, const char *data, size_t bytes)
{
    const coh_team *team = call->team;
    copy_given(cohi_given_at(call, team->index, team->epoch + 1, bytes), data, bytes);
    cohi_post_enter(call);
}

/* What member `index` gave, `bytes` in all. */
static inline const char *taken_from(const cohi_call *call, int index, size_t bytes)
{
    return cohi_given_at(call, index, call->team->epoch, bytes);
}

/* The last that a member does which waits for nobody. */
static inline coh_status leave_ahead(const cohi_call *call)
{
    cohi_team_look_back(call->team);
    return COH_OK;
}

/* ---- reductions ---- */

/* Reduces what the first `members` gave, from `at` on; this member's own is at `own`. */
static void reduce_members(cohi_call *call, int members, size_t given, size_t at, const char *own,
                           size_t count)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    for (int i = 0; i < members; i++)
        gear->sources[i] = i == call->team->index ? own : taken_from(call, i, given) + at;
    void *target = call->target;
    cohi_reduction how = cohi_call_reduction(call);
    cohi_reduce(&how, &target, 1, gear->sources, members, count);
}

coh_status cohi_one_shot_all_reduce(cohi_call *call)
{
    give(call, call->source, call->bytes);
    coh_status status = cohi_team_await_all(&call->entry);
    if (status == COH_OK)
        reduce_members(call, call->team->size, call->bytes, 0, call->source, call->count);
    return status;
}

coh_status cohi_one_shot_reduce(cohi_call *call)
{
    bool root = call->team->index == call->root;
    give(call, call->source, root ? 0 : call->bytes);
    if (!root)
        return leave_ahead(call);
    coh_status status = cohi_team_await_all(&call->entry);
    if (status == COH_OK)
        reduce_members(call, call->team->size, call->bytes, 0, call->source, call->count);
    return status;
}

coh_status cohi_one_shot_reduce_scatter(cohi_call *call)
{
    int index = call->team->index;
    size_t at = cohi_block_at(call, &call->from, index);
    give(call, call->source, call->bytes);
    coh_status status = cohi_team_await_all(&call->entry);
    if (status == COH_OK)
        reduce_members(call, call->team->size, call->bytes, at, call->source + at,
                       cohi_block_count(&call->from, index));
    return status;
}

/* Those before this member, and for the inclusive one itself. */
coh_status cohi_one_shot_scan(cohi_call *call)
{
    int members = call->team->index + (call->exclusive ? 0 : 1);
    coh_status status = COH_OK;
    give(call, call->source, call->bytes);
    for (int i = 0; i < members && status == COH_OK; i++)
        status = cohi_team_await(&call->entry, i);
    if (status != COH_OK)
        return status;
    if (members == 0)
        cohi_fill_identity(call, call->target, call->count);
    else
        reduce_members(call, members, call->bytes, 0, call->source, call->count);
    return call->team->index == 0 ? leave_ahead(call) : COH_OK;
}

/* ---- exchanges ---- */

static void take_block(cohi_call *call, int from)
{
    size_t bytes = cohi_block_bytes(call, &call->to, from);
    char *place = call->target + cohi_block_at(call, &call->to, from);
    const char *data = from == call->team->index ? call->source : taken_from(call, from, bytes);
    if (place != data)
        copy_given(place, data, bytes);
}

static coh_status take_all_blocks(cohi_call *call)
{
    coh_status status = cohi_team_await_all(&call->entry);
    for (int i = 0; i < call->team->size && status == COH_OK; i++)
        take_block(call, i);
    return status;
}

coh_status cohi_one_shot_all_gather(cohi_call *call)
{
    give(call, call->source, cohi_block_bytes(call, &call->to, call->team->index));
    return take_all_blocks(call);
}

coh_status cohi_one_shot_gather(cohi_call *call)
{
    bool root = call->team->index == call->root;
    give(call, call->source, root ? 0 : call->source_bytes);
    return root ? take_all_blocks(call) : leave_ahead(call);
}

/* Takes `bytes` from byte `at` of what the root gave; of its own, from `own`. */
static coh_status take_from_root(cohi_call *call, const char *own, size_t at, size_t bytes)
{
    bool root = call->team->index == call->root;
    coh_status status = root ? COH_OK : cohi_team_await(&call->entry, call->root);
    if (status != COH_OK)
        return status;
    const char *data = root ? own + at : taken_from(call, call->root, given(call)) + at;
    if (data != call->target)
        copy_given(call->target, data, bytes);
    return root ? leave_ahead(call) : COH_OK;
}

coh_status cohi_one_shot_scatter(cohi_call *call)
{
    const coh_team *team = call->team;
    int index = team->index;
    if (index == call->root)
        copy_given(cohi_given_at(call, index, team->epoch + 1, given(call)), call->source,
                   call->source_bytes);
    cohi_post_enter(call);
    return take_from_root(call, call->source, cohi_block_at(call, &call->from, index),
                          cohi_block_bytes(call, &call->from, index));
}

coh_status cohi_one_shot_broadcast(cohi_call *call)
{
    give(call, call->source, call->team->index == call->root ? call->bytes : 0);
    return take_from_root(call, call->source, 0, call->bytes);
}

/* All of the source is given packed, so that strides are this member's own affair. */
static void give_packed(cohi_call *call)
{
    const coh_team *team = call->team;
    size_t elements = call->count * (size_t)team->size;
    cohi_pack(cohi_given_at(call, team->index, team->epoch + 1, call->bytes), call->source,
              call->from.stride, call->element, elements);
    cohi_post_enter(call);
}

coh_status cohi_one_shot_all_to_all(cohi_call *call)
{
    coh_team *team = call->team;
    size_t block = call->count * call->element;
    give_packed(call);
    coh_status status = cohi_team_await_all(&call->entry);
    for (int i = 0; i < team->size && status == COH_OK; i++)
        cohi_unpack(call->target + cohi_block_at(call, &call->to, i), call->to.stride,
                    taken_from(call, i, call->bytes) + (size_t)team->index * block, call->element,
                    call->count);
    return status;
}
