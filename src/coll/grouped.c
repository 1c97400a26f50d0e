/*
 * grouped.c - many all_reduces in one call.
 *
 * Short arrays of one type and operation are laid side by side and reduced by one all_reduce, so
 * that the members meet once for all of them and not once for each. Long ones, where a meeting is
 * little compared with the copies, are reduced where they are. Which is which follows from the list alone,
 * of which every meeting's fingerprint has a hash: all members come to the same meetings.
 */
#include "coll/card.h"
#include "coll/check.h"
#include "coll/run.h"
#include "core/team/team.h"
#include "memory/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_BYTES = 64 << 10, /* arrays up to this are laid together */
    PACK_BYTES = 1 << 20,   /* as much at once; at least one short array */
    ALIGNMENT = 64          /* of an array in the pack */
};

/* ---- the list ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Never 0, which is a call without parts. */
static uint64_t hash_parts(const coh_group_part *parts, size_t count)
{
    uint64_t hash = mix(1, count);
    for (size_t i = 0; i < count; i++)
        hash =
            mix(mix(hash, (uint64_t)parts[i].dtype << 32 | (uint64_t)parts[i].op), parts[i].count);
    return hash | 1;
}

/* The all_reduce of one part. */
static cohi_call call_of(const cohi_call *all, const coh_group_part *part)
{
    cohi_call call = *all;
    call.dtype = part->dtype;
    call.reduce = part->op;
    call.source = part->source;
    call.target = part->target;
    call.count = call.from.count = call.to.count = part->count;
    return call;
}

/* Before the first meeting, so that a call that is refused has written nothing. */
static coh_status check_parts(const cohi_call *all)
{
    if (all->wrong)
        return cohi_world_fail(all->team->world, all->name, COH_INVALID_ARGUMENT, "%s", all->wrong);
    for (size_t i = 0; i < all->part_count; i++) {
        cohi_call call = call_of(all, &all->parts[i]);
        coh_status status = cohi_check(&call);
        if (status != COH_OK)
            return cohi_fail_reworded(status, "%s (part %zu)", coh_last_error(), i);
    }
    return COH_OK;
}

/* ---- short arrays ---- */

static size_t bytes_of(const coh_group_part *part)
{
    return part->count * coh_dtype_size(part->dtype);
}

static size_t room_of(const coh_group_part *part)
{
    return (bytes_of(part) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool is_short(const coh_group_part *part)
{
    return bytes_of(part) <= SHORT_BYTES;
}

static bool joins(const coh_group_part *part, const coh_group_part *first)
{
    return part->dtype == first->dtype && part->op == first->op && is_short(part);
}

/* To the pack, with zeros in the gaps, and back; of parts `from` up to, but not, `to`. */
static void copy_in(const cohi_call *all, char *pack, size_t from, size_t to)
{
    const coh_group_part *first = &all->parts[from];
    for (const coh_group_part *part = first; part < &all->parts[to]; part++) {
        size_t bytes = bytes_of(part);
        if (!joins(part, first) || bytes == 0)
            continue;
        memcpy(pack, part->source, bytes);
        memset(pack + bytes, 0, room_of(part) - bytes);
        pack += room_of(part);
    }
}

static void copy_out(const cohi_call *all, const char *pack, size_t from, size_t to)
{
    const coh_group_part *first = &all->parts[from];
    for (const coh_group_part *part = first; part < &all->parts[to]; part++) {
        size_t bytes = bytes_of(part);
        if (!joins(part, first) || bytes == 0)
            continue;
        memcpy(part->target, pack, bytes);
        pack += room_of(part);
    }
}

/* Where the pack that begins with part `from` ends, and its bytes. */
static size_t end_of_pack(const cohi_call *all, size_t from, size_t *bytes)
{
    size_t i = from;
    *bytes = 0;
    for (; i < all->part_count; i++) {
        size_t room = joins(&all->parts[i], &all->parts[from]) ? room_of(&all->parts[i]) : 0;
        if (*bytes > 0 && *bytes + room > PACK_BYTES)
            break;
        *bytes += room;
    }
    return i;
}

/* The memory is this call's own: another thread that calls on the team is refused later, and must
 * not have harmed it by then. */
static coh_status reduce_pack(const cohi_call *all, size_t from, size_t to, size_t bytes)
{
    cohi_call call = call_of(all, &all->parts[from]);
    char *pack = aligned_alloc(ALIGNMENT, bytes > 0 ? bytes : ALIGNMENT);
    if (!pack)
        return cohi_run_refused(&call, cohi_world_fail(all->team->world, all->name, COH_NO_MEMORY,
                                                       "out of memory for %zu bytes", bytes));
    copy_in(all, pack, from, to);
    call.source = call.target = pack;
    call.count = call.from.count = call.to.count = bytes / coh_dtype_size(call.dtype);
    coh_status status = cohi_run_now(&call);
    if (status == COH_OK)
        copy_out(all, pack, from, to);
    free(pack);
    return status;
}

/* All short arrays of the type and operation of part `first`, which is the first of them. */
static coh_status reduce_alike(const cohi_call *all, size_t first)
{
    coh_status status = COH_OK;
    for (size_t from = first, to; from < all->part_count && status == COH_OK; from = to) {
        size_t bytes;
        while (from < all->part_count && !joins(&all->parts[from], &all->parts[first]))
            from++;
        if (from == all->part_count)
            break;
        to = end_of_pack(all, from, &bytes);
        status = reduce_pack(all, from, to, bytes);
    }
    return status;
}

/* ---- all ---- */

static coh_status reduce_parts(const cohi_call *all)
{
    uint32_t begun[COHI_DTYPES] = {0}; /* for each type a bit for each operation: its short ones */
    coh_status status = COH_OK;
    for (size_t i = 0; i < all->part_count && status == COH_OK; i++) {
        const coh_group_part *part = &all->parts[i];
        uint32_t bit = UINT32_C(1) << part->op;
        if (!is_short(part)) {
            cohi_call call = call_of(all, part);
            status = cohi_run_now(&call);
        } else if (!(begun[part->dtype] & bit)) {
            begun[part->dtype] |= bit;
            status = reduce_alike(all, i);
        }
    }
    return status;
}

/* With memory of a card among them: one after the other, each where it is. */
static coh_status reduce_one_by_one(const cohi_call *all)
{
    coh_status status = COH_OK;
    for (size_t i = 0; i < all->part_count && status == COH_OK; i++) {
        cohi_call call = call_of(all, &all->parts[i]);
        call.grouped = false;
        status = cohi_run_now(&call);
    }
    return status;
}

/* No parts are a meeting all the same, as no elements are. */
coh_status cohi_run_parts(cohi_call *all)
{
    static const coh_group_part nothing = {.dtype = COH_U8, .op = COH_SUM};
    cohi_coll_gear *gear;
    if (all->part_count == 0) {
        all->parts = &nothing;
        all->part_count = 1;
    }
    coh_status status = cohi_gear_of(all->team, all->name, &gear);
    if (status == COH_OK)
        status = check_parts(all);
    if (status != COH_OK)
        return cohi_run_refused(all, status);
    return COHI_UNLIKELY(cohi_card_has_parts(all)) ? reduce_one_by_one(all) : reduce_parts(all);
}

static cohi_call describe(const char *name, coh_team *team, const coh_group_part *parts,
                          size_t count)
{
    bool there = parts || count == 0;
    return (cohi_call){.team = team,
                       .name = name,
                       .kind = COH_COLLECTIVE_ALL_REDUCE,
                       .dtype = COH_U8,
                       .from = {.stride = 1},
                       .to = {.stride = 1},
                       .wrong = there ? NULL : "parts is NULL",
                       .grouped = true,
                       .parts = there ? parts : NULL,
                       .part_count = there ? count : 0,
                       .group = there ? hash_parts(parts, count) : 1};
}

coh_status coh_all_reduce_group(coh_team *team, const coh_group_part *parts, size_t count)
{
    cohi_call call = describe("coh_all_reduce_group", team, parts, count);
    coh_status status = cohi_team_gate(team, call.name);
    return status == COH_OK ? cohi_run_parts(&call) : status;
}

coh_status coh_all_reduce_group_start(coh_team *team, const coh_group_part *parts, size_t count,
                                      coh_request **request)
{
    cohi_call call = describe("coh_all_reduce_group_start", team, parts, count);
    return cohi_start(&call, request);
}
