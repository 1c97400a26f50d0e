#include "core/stream/stream.h"

#include "core/health/verdict.h"
#include "core/heap/locate.h"
#include "core/team/terms.h"

#include <stdio.h>

/* ---- gates ---- */

static coh_status find_server(coh_world *world, const char *call, cohi_stream_server *server)
{
    const cohi_device *device = cohi_world_device(world);
    if (!device)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "no heap of this world is on a card; make one by coh_heap_create "
                               "with the kind COH_HEAP_CUDA");
    if (!device->server.engine->stream)
        return cohi_world_fail(world, call, COH_UNSUPPORTED, "engine %s has no streams",
                               device->server.engine->name);
    *server = (cohi_stream_server){device->server.engine->stream, device->server.endpoint};
    return COH_OK;
}

coh_status cohi_stream_enter(coh_world *world, const char *call, cohi_stream_server *server)
{
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = find_server(world, call, server);
    return status == COH_OK ? cohi_verdict_check(world, call, world->rank) : status;
}

/* A member that is lost or stuck would be waited for in vain. */
static coh_status check_members(const coh_team *team, const char *call)
{
    coh_world *world = team->world;
    if (COHI_LIKELY(atomic_load_explicit(&world->slot->alarm, memory_order_acquire) == 0))
        return COH_OK;
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++)
        status = cohi_verdict_check(world, call, team->ranks[i]);
    return status;
}

coh_status cohi_stream_enter_team(const coh_team *team, const char *call,
                                  cohi_stream_server *server)
{
    coh_status status = cohi_team_gate(team, call);
    if (status == COH_OK)
        status = find_server(team->world, call, server);
    return status == COH_OK ? check_members(team, call) : status;
}

/* ---- how the engine is told ---- */

/* A team's first epoch is later than those of all teams that had its number. */
cohi_stream_team cohi_stream_team_of(const coh_team *team)
{
    return (cohi_stream_team){.number = (unsigned)team->number,
                              .life = team->start - COHI_EPOCH_START + 1,
                              .index = team->index,
                              .size = team->size,
                              .ranks = team->ranks};
}

coh_status cohi_stream_buffer_of(coh_world *world, const char *call, const char *what,
                                 const void *pointer, size_t bytes, cohi_stream_buffer *buffer)
{
    *buffer = (cohi_stream_buffer){.local = bytes > 0 ? (void *)pointer : NULL, .segment = -1};
    if (bytes == 0)
        return COH_OK;
    cohi_spot spot = cohi_heap_spot_of(world, pointer, bytes);
    if (spot == COHI_NO_SPOT)
        return COH_OK; /* private: whether the card has it the engine finds out */
    if (!cohi_device_serves(world, spot))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "the %s (%p) is in a heap in memory of the host; a call with a "
                               "stream takes memory of the card",
                               what, pointer);
    buffer->segment = cohi_spot_segment(spot);
    buffer->offset = cohi_spot_offset(spot);
    return COH_OK;
}

/* ---- what members compare ---- */

/* From bit 0 on: dtype, op, kind, root, private source, private target, variable, count. */
enum { OP_AT = 4, KIND_AT = 8, ROOT_AT = 12, PRIVATE_AT = 18, VARIABLE_AT = 20, COUNT_AT = 21 };

uint64_t cohi_stream_fingerprint(const cohi_stream_terms *terms)
{
    return (uint64_t)terms->dtype | (uint64_t)terms->op << OP_AT | (uint64_t)terms->kind << KIND_AT
           | ((uint64_t)terms->root & 63) << ROOT_AT | (uint64_t)terms->private_source << PRIVATE_AT
           | (uint64_t)terms->private_target << (PRIVATE_AT + 1)
           | (uint64_t)terms->variable << VARIABLE_AT | terms->count << COUNT_AT;
}

static void describe_print(uint64_t print, char *text, size_t room)
{
    unsigned op = COHI_OP_COLLECTIVE + (unsigned)(print >> KIND_AT & 15);
    bool variable = print >> VARIABLE_AT & 1;
    cohi_data_terms data = {.dtype = (coh_dtype)(print & 15),
                            .reduce = (coh_reduce_op)(print >> OP_AT & 15),
                            .root = (int)(print >> ROOT_AT & 63),
                            .count = variable ? 0 : print >> COUNT_AT,
                            .cut = variable ? cohi_cut_of_hash(print >> COUNT_AT) : 0};
    uint64_t argument[4];
    if (op == COHI_OP_COLLECTIVE) {
        snprintf(text, room, "a barrier");
        return;
    }
    cohi_terms_pack(&data, argument);
    cohi_terms_describe(op, argument, text, room);
    size_t used = 0;
    while (text[used])
        used++;
    unsigned hidden = (unsigned)(print >> PRIVATE_AT & 3);
    if (hidden && used < room)
        snprintf(text + used, room - used, " with a private %s",
                 hidden == 3   ? "source and target"
                 : hidden == 1 ? "source"
                               : "target");
}

/* ---- failures ---- */

coh_status cohi_stream_pass(const coh_world *world, const char *call, coh_status status)
{
    char reason[COHI_ERROR_TEXT_BYTES];
    if (COHI_LIKELY(status == COH_OK))
        return COH_OK;
    snprintf(reason, sizeof reason, "%s", coh_last_error());
    return cohi_world_fail(world, call, status, "%s", reason);
}

static coh_status tell_mismatch(coh_world *world, const char *call,
                                const cohi_stream_failure *failure)
{
    char mine[192], theirs[192];
    describe_print(failure->mine, mine, sizeof mine);
    describe_print(failure->theirs, theirs, sizeof theirs);
    return cohi_world_fail(world, call, COH_MISMATCH,
                           "on a stream, this rank's call was %s, where rank %d's was %s", mine,
                           failure->rank, theirs);
}

coh_status cohi_stream_tell(coh_world *world, const char *call, const cohi_stream_failure *failure)
{
    coh_status status = COH_OK;
    switch (failure->status) {
    case COH_OK:
        return COH_OK;
    case COH_MISMATCH:
        return tell_mismatch(world, call, failure);
    case COH_PEER_LOST:
        status = failure->rank >= 0 ? cohi_verdict_check(world, call, failure->rank) : COH_OK;
        return status != COH_OK
                   ? status
                   : cohi_world_fail(world, call, COH_PEER_LOST,
                                     "rank %d, which a stream waited for, is lost", failure->rank);
    default:
        if (failure->rank >= 0)
            return cohi_world_fail(world, call, failure->status,
                                   "rank %d could not enqueue its part of a call of the team on "
                                   "its card; its own call says why",
                                   failure->rank);
        return cohi_world_fail(world, call, failure->status, "the card says: %s", failure->text);
    }
}

coh_status coh_cuda_status(coh_world *world)
{
    static const char call[] = "coh_cuda_status";
    cohi_stream_server server = {0};
    cohi_stream_failure failure;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = find_server(world, call, &server);
    if (status != COH_OK)
        return status;
    cohi_verdict_let_go(world);
    server.stream->failure(server.endpoint, NULL, &failure);
    return cohi_stream_tell(world, call, &failure);
}
