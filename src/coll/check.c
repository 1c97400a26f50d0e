#include "coll/check.h"

#include "core/onesided/race.h"
#include "core/team/team.h"
#include "memory/reduce.h"
#include "memory/scale.h"

#include <stdarg.h>
#include <stdio.h>

static __attribute__((format(printf, 2, 3))) coh_status refuse(const cohi_call *call,
                                                               const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return cohi_world_fail(call->team->world, call->name, COH_INVALID_ARGUMENT, "%s", text);
}

/* ---- type, operation, root ---- */

static coh_status check_own(cohi_call *call)
{
    call->element = call->own.element;
    if (call->element == 0 || call->element > COH_OWN_ELEMENT_MAX)
        return refuse(call, "an element of %zu bytes; 1 to %d can be reduced by a function",
                      call->element, COH_OWN_ELEMENT_MAX);
    if (call->scaled)
        return refuse(call, "what a function reduces cannot be scaled; the scale is %g",
                      call->scale);
    return COH_OK;
}

static coh_status check_type(cohi_call *call)
{
    if (call->wrong)
        return refuse(call, "%s", call->wrong);
    if (call->own.function)
        return check_own(call);
    call->element = coh_dtype_size(call->dtype);
    if (call->element == 0)
        return refuse(call, "%d is not an element type", (int)call->dtype);
    if (!cohi_kind_rows[call->kind].reduces)
        return COH_OK;
    const char *op = coh_reduce_op_name(call->reduce);
    if (!op)
        return refuse(call, "%d is not a reduction", (int)call->reduce);
    if (!cohi_reduce_has(call->dtype, call->reduce))
        return refuse(call, "there is no %s of %s", op, coh_dtype_name(call->dtype));
    if (call->kind == COH_COLLECTIVE_SCAN && call->reduce == COH_MEAN)
        return refuse(call, "scans have no mean");
    if (call->scaled && !cohi_scale_has(call->dtype))
        return refuse(call, "%s cannot be scaled, only floats can; the scale is %g",
                      coh_dtype_name(call->dtype), call->scale);
    return COH_OK;
}

static coh_status check_root(const cohi_call *call)
{
    int size = call->team->size;
    if (!cohi_kind_rows[call->kind].root || (call->root >= 0 && call->root < size))
        return COH_OK;
    return cohi_world_fail(call->team->world, call->name, COH_UNKNOWN_RANK,
                           "there is no member %d to be the root; this team has %d (0 to %d)",
                           call->root, size, size - 1);
}

/* ---- how buffers are cut ---- */

static coh_status refuse_length(const cohi_call *call, size_t count)
{
    return refuse(call,
                  "%zu elements of %zu bytes for each of %d members are more bytes than there are",
                  count, call->element, call->team->size);
}

/* The elements from the first to the last of any block. */
static coh_status span_of(cohi_call *call, cohi_call_blocks *blocks, size_t *firsts, size_t *span)
{
    size_t next = 0, end = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t count = blocks->counts[i];
        size_t first = blocks->firsts ? blocks->firsts[i] : next;
        if (__builtin_add_overflow(first, count, &next) || next > PTRDIFF_MAX / call->element)
            return refuse_length(call, count);
        if (!blocks->firsts)
            firsts[i] = first;
        if (count > 0 && next > end)
            end = next;
    }
    if (!blocks->firsts)
        blocks->firsts = firsts;
    *span = end;
    return COH_OK;
}

static coh_status variable_span(cohi_call *call, cohi_call_blocks *blocks, const char *what,
                                size_t *firsts, size_t *span)
{
    if (!blocks->counts)
        return refuse(call, "the counts of the %s are NULL", what);
    return span_of(call, blocks, firsts, span);
}

static coh_status uniform_span(const cohi_call *call, const cohi_call_blocks *blocks,
                               const char *what, size_t *span)
{
    size_t elements;
    if (blocks->stride == 0)
        return refuse(call, "the stride of the %s is 0", what);
    if (__builtin_mul_overflow(call->count, (size_t)call->team->size, &elements)
        || __builtin_mul_overflow(elements, blocks->stride, span))
        return refuse_length(call, call->count);
    if (elements > 0)
        *span -= blocks->stride - 1;
    return COH_OK;
}

static coh_status check_span(cohi_call *call, cohi_call_blocks *blocks, const char *what,
                             size_t *firsts, size_t *span)
{
    return call->variable ? variable_span(call, blocks, what, firsts, span)
                          : uniform_span(call, blocks, what, span);
}

/* What the buffers hold, as elements: `from` and `to` are the spans of all blocks. Where one side has
 * a block for each member, the other has this member's own. */
static void spans(const cohi_call *call, size_t from, size_t to, size_t *source, size_t *target)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    int index = call->team->index;
    *source = row->source_blocks   ? from
              : row->target_blocks ? cohi_block_count(&call->to, index)
                                   : call->count;
    *target = row->target_blocks   ? to
              : row->source_blocks ? cohi_block_count(&call->from, index)
                                   : call->count;
    if (index != call->root && row->root == COHI_ROOT_GIVES)
        *source = 0;
    if (index != call->root && row->root == COHI_ROOT_GETS)
        *target = 0;
}

static coh_status check_lengths(cohi_call *call, size_t *const firsts[2])
{
    size_t from = 0, to = 0, source, target;
    coh_status status = check_span(call, &call->from, "source", firsts[0], &from);
    if (status == COH_OK)
        status = check_span(call, &call->to, "target", firsts[1], &to);
    if (status != COH_OK)
        return status;
    spans(call, from, to, &source, &target);
    if (__builtin_mul_overflow(source, call->element, &call->source_bytes)
        || __builtin_mul_overflow(target, call->element, &call->target_bytes)
        || call->source_bytes > PTRDIFF_MAX || call->target_bytes > PTRDIFF_MAX)
        return refuse_length(call, call->count);
    return COH_OK;
}

/* ---- buffers ---- */

static coh_status check_pointers(const cohi_call *call)
{
    if (!call->source && call->source_bytes > 0)
        return refuse(call, "source is NULL, for %zu bytes", call->source_bytes);
    if (!call->target && call->target_bytes > 0)
        return refuse(call, "target is NULL, for %zu bytes", call->target_bytes);
    return COH_OK;
}

/* Whether source and target are where a call in place has them. */
static bool in_place(const cohi_call *call)
{
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    int index = call->team->index;
    if (row->source_blocks == row->target_blocks)
        return call->target == call->source && !call->apart;
    return row->source_blocks
               ? call->target == call->source + cohi_block_at(call, &call->from, index)
               : call->source == call->target + cohi_block_at(call, &call->to, index);
}

static bool may_overlap(const cohi_call *call)
{
    uintptr_t source = (uintptr_t)call->source, target = (uintptr_t)call->target;
    bool apart = call->source_bytes == 0 || call->target_bytes == 0
                 || (source < target ? target - source >= call->source_bytes
                                     : source - target >= call->target_bytes);
    return apart || in_place(call);
}

static coh_status check_overlap(const cohi_call *call)
{
    if (may_overlap(call))
        return COH_OK;
    return refuse(
        call,
        "source (%zu bytes at %p) and target (%zu bytes at %p) overlap in part; they must "
        "be apart, or as a call in place has them",
        call->source_bytes, (const void *)call->source, call->target_bytes, (void *)call->target);
}

/* ---- races ---- */

/* Bytes between blocks are not the call's, nor are those between the elements of strided ones, which
 * are not looked at. */
static coh_status touch(const cohi_call *call, const cohi_call_blocks *blocks, const char *base,
                        size_t bytes, bool target)
{
    coh_world *world = call->team->world;
    const cohi_kind_row *row = &cohi_kind_rows[call->kind];
    bool cut = target ? row->target_blocks : row->source_blocks;
    coh_status status = COH_OK;
    if (!cut || (!call->variable && blocks->stride == 1))
        return cohi_race_touch(world, call->name, base, bytes, target);
    for (int i = 0; bytes > 0 && blocks->stride == 1 && i < call->team->size && status == COH_OK;
         i++)
        status = cohi_race_touch(world, call->name, base + cohi_block_at(call, blocks, i),
                                 cohi_block_count(blocks, i) * call->element, target);
    return status;
}

static coh_status check_races(const cohi_call *call)
{
    if (!call->team->world->race)
        return COH_OK;
    coh_status status = touch(call, &call->from, call->source, call->source_bytes, false);
    return status == COH_OK ? touch(call, &call->to, call->target, call->target_bytes, true)
                            : status;
}

/* ---- what the choice goes by ---- */

static size_t longest_count(const cohi_call *call, const cohi_call_blocks *blocks)
{
    size_t most = 0;
    for (int i = 0; i < call->team->size; i++) {
        size_t count = cohi_block_count(blocks, i);
        most = count > most ? count : most;
    }
    return most;
}

/* The counts of a variable all_to_all are each member's own, so that nothing can go by them. */
static size_t contributed(const cohi_call *call)
{
    enum { UNKNOWN = 1 << 20 };
    switch (call->kind) {
    case COH_COLLECTIVE_ALL_GATHER:
    case COH_COLLECTIVE_GATHER:
    case COH_COLLECTIVE_SCATTER:
        return (call->variable ? longest_count(call, &call->to) : call->count) * call->element;
    case COH_COLLECTIVE_REDUCE_SCATTER:
        return call->source_bytes;
    case COH_COLLECTIVE_ALL_TO_ALL:
        return call->variable ? UNKNOWN : call->count * call->element * (size_t)call->team->size;
    default:
        return call->count * call->element;
    }
}

bool cohi_check_exchange(cohi_call *call, const char *source, char *target)
{
    bool there = (source || call->source_bytes == 0) && (target || call->target_bytes == 0);
    call->source = source;
    call->target = target;
    if (there && may_overlap(call))
        return true;
    call->team = NULL;
    return false;
}

coh_status cohi_check_form(cohi_call *call, size_t *const firsts[2])
{
    coh_status status = check_type(call);
    if (status == COH_OK)
        status = check_root(call);
    if (status == COH_OK)
        status = check_lengths(call, firsts);
    if (status == COH_OK)
        call->bytes = contributed(call);
    return status;
}

coh_status cohi_check_buffers(cohi_call *call)
{
    coh_status status = check_pointers(call);
    if (status == COH_OK)
        status = check_overlap(call);
    if (status == COH_OK)
        status = check_races(call);
    return status;
}

coh_status cohi_check(cohi_call *call)
{
    coh_status status = cohi_check_form(call, cohi_team_gear(call->team)->firsts);
    return status == COH_OK ? cohi_check_buffers(call) : status;
}
