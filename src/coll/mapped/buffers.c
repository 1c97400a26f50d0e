#include "coll/mapped/buffers.h"

#include "core/onesided/rma.h"
#include "core/team/posts.h"

static uint64_t place_of(const cohi_call *call, const void *buffer, size_t bytes)
{
    coh_world *world = call->team->world;
    if (bytes == 0)
        return 0;
    if (world->crew)
        return (uint64_t)(uintptr_t)buffer;
    return cohi_heap_offset_of(world, buffer, bytes);
}

_Static_assert(COHI_NO_WINDOW == COHI_NO_PLACE, "what lies in no window has no place");

/* An all_to_all in place overwrites what others have yet to read: it goes by the staging area. */
static bool is_shared(const cohi_call *call)
{
    return call->kind != COH_COLLECTIVE_ALL_TO_ALL || call->source != call->target;
}

bool cohi_place_own(const cohi_call *call, cohi_side side)
{
    const void *buffer = side == COHI_SOURCE ? call->source : (const void *)call->target;
    size_t bytes = side == COHI_SOURCE ? call->source_bytes : call->target_bytes;
    return !buffer
           || (is_shared(call) && place_of(call, buffer, bytes ? bytes : 1) != COHI_NO_PLACE);
}

coh_status cohi_place_enter(cohi_call *call, uint64_t most)
{
    cohi_place *mine =
        (void *)cohi_given_at(call, call->team->index, call->team->epoch + 1, sizeof *mine);
    *mine = (cohi_place){
        .source =
            is_shared(call) ? place_of(call, call->source, call->source_bytes) : COHI_NO_PLACE,
        .target =
            is_shared(call) ? place_of(call, call->target, call->target_bytes) : COHI_NO_PLACE,
        .most = most,
        .fetching = cohi_team_gear(call->team)->fetching,
        .source_at = (uintptr_t)call->source,
        .target_at = (uintptr_t)call->target,
        .self_at = (uintptr_t)mine,
    };
    cohi_post_enter(call);
    return cohi_team_await_all(&call->entry);
}

static uint64_t word_of(const cohi_call *call, cohi_side side, int index)
{
    const cohi_place *place = cohi_post_data(call, index);
    return side == COHI_SOURCE ? place->source : place->target;
}

bool cohi_place_has(const cohi_call *call, cohi_side side, int index)
{
    return word_of(call, side, index) != COHI_NO_PLACE;
}

char *cohi_place_at(const cohi_call *call, cohi_side side, int index)
{
    coh_world *world = call->team->world;
    uint64_t word = word_of(call, side, index);
    return world->crew ? (char *)(uintptr_t)word
                       : world->peers[call->team->ranks[index]].heap + word;
}

int cohi_place_lacking(const cohi_call *call, cohi_side side)
{
    for (int i = 0; i < call->team->size; i++)
        if (!cohi_place_has(call, side, i))
            return i;
    return -1;
}

uint64_t cohi_place_most(const cohi_call *call)
{
    uint64_t most = 0;
    for (int i = 0; i < call->team->size; i++) {
        const cohi_place *place = cohi_post_data(call, i);
        most = place->most > most ? place->most : most;
    }
    return most;
}

coh_status cohi_place_refuse(const cohi_call *call, cohi_side side, int index)
{
    return cohi_world_fail(call->team->world, call->name, COH_UNSUPPORTED,
                           "algorithm %s works in place on the symmetric heap, and the %s of rank "
                           "%d is not in it (or, of an all_to_all, is its target)",
                           call->algorithm->name, side == COHI_SOURCE ? "source" : "target",
                           call->team->ranks[index]);
}
