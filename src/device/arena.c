#include "device/options.h"
#include "device/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct coh_arena {
    const coh_plan *plan;
    coh_buffer *buffer; /* NULL when the plan has no slots */
};

/* ---- life ---- */

static coh_status make_buffer(coh_device *device, const coh_plan_info *plan, coh_world *world,
                              coh_buffer **buffer)
{
    coh_buffer_options options = COH_BUFFER_OPTIONS_INIT;
    coh_device_info facts = {.size = sizeof facts};
    coh_status status = coh_device_query(device, &facts);
    if (status != COH_OK || plan->total == 0)
        return status;
    options.alignment = plan->alignment > facts.alignment ? plan->alignment : facts.alignment;
    options.world = world;
    return coh_buffer_create(device, plan->total, &options, buffer);
}

coh_status coh_arena_create(coh_device *device, const coh_plan *plan,
                            const coh_arena_options *options, coh_arena **arena)
{
    const char *call = "coh_arena_create";
    coh_arena_options chosen = COH_ARENA_OPTIONS_INIT;
    coh_plan_info info = {.size = sizeof info};
    coh_status status = cohi_options_take(call, options, &chosen, sizeof chosen);
    if (status == COH_OK)
        status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = cohi_not_null(call, "arena", arena);
    if (status == COH_OK)
        status = coh_plan_query(plan, &info);
    if (status != COH_OK)
        return status;
    coh_arena *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    made->plan = plan;
    status = make_buffer(device, &info, chosen.world, &made->buffer);
    if (status != COH_OK) {
        free(made);
        return status;
    }
    *arena = made;
    return COH_OK;
}

coh_status coh_arena_destroy(coh_arena *arena)
{
    if (!arena)
        return COH_OK;
    coh_status status = coh_buffer_destroy(arena->buffer);
    free(arena);
    return status;
}

/* ---- facts ---- */

coh_buffer *coh_arena_buffer(const coh_arena *arena)
{
    return arena ? arena->buffer : NULL;
}

const coh_plan *coh_arena_plan(const coh_arena *arena)
{
    return arena ? arena->plan : NULL;
}

coh_status coh_arena_pointer(const coh_arena *arena, int node, void **pointer, uint64_t *bytes)
{
    uint64_t offset, size;
    coh_status status = cohi_not_null("coh_arena_pointer", "arena", arena);
    if (status == COH_OK)
        status = coh_plan_slot(arena->plan, node, &offset, &size);
    if (status != COH_OK)
        return status;
    if (pointer)
        *pointer = cohi_buffer_at(arena->buffer, offset);
    if (bytes)
        *bytes = size;
    return COH_OK;
}

/* ---- typed transfer ---- */

static coh_status check_transfer(const char *call, const coh_arena *arena, int node,
                                 coh_dtype dtype, const float *host, size_t count, uint64_t *offset)
{
    uint64_t room, bytes;
    char what[48];
    coh_status status = cohi_not_null(call, "arena", arena);
    if (status == COH_OK)
        status = coh_plan_slot(arena->plan, node, offset, &room);
    if (status != COH_OK)
        return status;
    snprintf(what, sizeof what, "the slot of node %d", node);
    status = cohi_transfer_check(call, what, dtype, count, room, COH_LENGTH_MISMATCH, &bytes);
    if (status == COH_OK && count > 0)
        status = cohi_not_null(call, "the host's memory", host);
    return status;
}

coh_status coh_arena_write(coh_arena *arena, int node, coh_dtype dtype, const float *source,
                           size_t count)
{
    uint64_t offset;
    coh_status status =
        check_transfer("coh_arena_write", arena, node, dtype, source, count, &offset);
    if (status != COH_OK)
        return status;
    return cohi_transfer_store(arena->buffer, offset, dtype, source, count);
}

coh_status coh_arena_read(const coh_arena *arena, int node, coh_dtype dtype, float *target,
                          size_t count)
{
    uint64_t offset;
    coh_status status =
        check_transfer("coh_arena_read", arena, node, dtype, target, count, &offset);
    if (status != COH_OK)
        return status;
    return cohi_transfer_load(arena->buffer, offset, dtype, target, count);
}
