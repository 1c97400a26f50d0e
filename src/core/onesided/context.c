#include "core/onesided/context.h"

#include "core/health/order.h"

#include <stdlib.h>

coh_status cohi_context_refuse(const coh_context *context, const char *call)
{
    if (!context)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the context is NULL", call);
    coh_status status = cohi_world_enter(context->world, call);
    if (status != COH_OK)
        return status;
    return cohi_world_fail(context->world, call, COH_INVALID_ARGUMENT, "the context is destroyed");
}

static coh_status fail_limit(const coh_world *world, const char *call)
{
    return cohi_world_fail(world, call, COH_LIMIT, "a world can have %d contexts at once",
                           COHI_CONTEXT_MESSAGES - COHI_CONTEXT_FIRST_FREE);
}

/* A destroyed context is used again before a new one is made, so they do not add up. */
static coh_context *take_context(coh_world *world)
{
    coh_context *context = world->contexts;
    while (context && context->open)
        context = context->next;
    if (context)
        return context;
    context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->next = world->contexts;
    world->contexts = context;
    return context;
}

static coh_status open_at_engine(coh_world *world, const char *call, unsigned number)
{
    const cohi_engine_rma *rma = world->engine->rma;
    if (!rma || !rma->context_open)
        return COH_OK;
    coh_status status = rma->context_open(world->endpoint, number);
    return status == COH_OK ? status : cohi_world_fail(world, call, status, "%s", coh_last_error());
}

static void close_at(cohi_server server, unsigned number)
{
    const cohi_engine_rma *rma = server.engine->rma;
    if (rma && rma->context_close)
        rma->context_close(server.endpoint, number);
}

/* An engine for heaps on a card, which may come later than a context, opens it at its first use. */
static void close_at_engine(coh_world *world, unsigned number)
{
    const cohi_device *device = cohi_world_device(world);
    close_at(cohi_world_server(world), number);
    if (device)
        close_at(device->server, number);
}

static coh_status make_context(coh_world *world, const char *call, coh_context **context)
{
    if (!world->free_contexts)
        return fail_limit(world, call);
    coh_context *made = take_context(world);
    if (!made)
        return cohi_world_fail(world, call, COH_NO_MEMORY, "out of memory for a context");
    made->world = world;
    made->number = (unsigned)__builtin_ctzll(world->free_contexts);
    coh_status status = open_at_engine(world, call, made->number);
    if (status != COH_OK)
        return status;
    made->open = true;
    world->free_contexts &= world->free_contexts - 1;
    *context = made;
    return COH_OK;
}

coh_status coh_context_create(coh_world *world, coh_context **context)
{
    static const char call[] = "coh_context_create";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !context)
        status =
            cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "the place for the context is NULL");
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&world->context_lock);
    status = make_context(world, call, context);
    pthread_mutex_unlock(&world->context_lock);
    return status;
}

coh_status coh_context_destroy(coh_context *context)
{
    static const char call[] = "coh_context_destroy";
    if (!context)
        return COH_OK;
    coh_status status = cohi_context_gate(context, call);
    if (status == COH_OK)
        status = cohi_world_enter(context->world, call);
    if (status != COH_OK)
        return status;
    coh_world *world = context->world;
    status = cohi_order_quiet_context(world, call, COHI_OP_QUIET, context->number);
    pthread_mutex_lock(&world->context_lock);
    context->open = false;
    close_at_engine(world, context->number);
    world->free_contexts |= UINT64_C(1) << context->number;
    pthread_mutex_unlock(&world->context_lock);
    return status;
}

void cohi_context_close_all(coh_world *world)
{
    for (coh_context *context = world->contexts; context; context = context->next)
        context->open = false;
}

void cohi_context_forget_all(coh_world *world)
{
    while (world->contexts) {
        coh_context *next = world->contexts->next;
        free(world->contexts);
        world->contexts = next;
    }
}
