/* typed.c - allocations of objects, whose pointers are of any type. */
#include "core/world/world.h"

#include <string.h>

static coh_status check(coh_world *world, const char *call, size_t count, size_t size,
                        const void *place, size_t *bytes)
{
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !place)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "the place for it is NULL");
    if (status == COH_OK && __builtin_mul_overflow(count, size, bytes))
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                 "%zu objects of %zu bytes overflow", count, size);
    return status;
}

/* Pointers of all types have one form here, but are of different types: hence memcpy. */
static coh_status store(coh_status status, const void *pointer, void *place)
{
    if (status == COH_OK)
        memcpy(place, &pointer, sizeof pointer);
    return status;
}

coh_status coh_malloc_typed(coh_world *world, size_t count, size_t size, void *place)
{
    size_t bytes;
    void *pointer = NULL;
    coh_status status = check(world, "coh_malloc_typed", count, size, place, &bytes);
    if (status == COH_OK)
        status = coh_malloc(world, bytes, &pointer);
    return store(status, pointer, place);
}

coh_status coh_calloc_typed(coh_world *world, size_t count, size_t size, void *place)
{
    size_t bytes;
    void *pointer = NULL;
    coh_status status = check(world, "coh_calloc_typed", count, size, place, &bytes);
    if (status == COH_OK)
        status = coh_calloc(world, count, size, &pointer);
    return store(status, pointer, place);
}
