/*
 * bruck.c - all_gather and all_to_all of short blocks, in as few messages as there are doublings:
 * in step k each member speaks with those 2^k away, and sends many blocks at once.
 *
 * Blocks are kept in an order of each member's own, in which every member does the same, and put in
 * their places at the end.
 */
#include "coll/message/messages.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

static bool is_plain(const cohi_blocks *blocks)
{
    return !blocks->counts && !blocks->firsts && blocks->stride == 1;
}

bool cohi_bruck_applies(const cohi_call *call)
{
    return is_plain(&call->to)
           && (call->kind == COH_COLLECTIVE_ALL_GATHER || is_plain(&call->from));
}

static int wrap(const cohi_call *call, int index)
{
    return (index + call->team->size) % call->team->size;
}

/* ---- all_gather: place b holds the block of the member b further on ---- */

size_t cohi_bruck_gather_workspace(const cohi_call *call)
{
    return (size_t)call->team->size * call->to.count * call->element;
}

coh_status cohi_bruck_all_gather(cohi_call *call)
{
    int size = call->team->size, index = call->team->index;
    size_t bytes = call->to.count * call->element;
    char *held = call->workspace;
    coh_status status = COH_OK;
    cohi_bring(held, call->source, bytes);
    for (int have = 1; have < size && status == COH_OK; have *= 2) {
        size_t length = (size_t)(have < size - have ? have : size - have) * bytes;
        status = cohi_pieces_both(call, wrap(call, index - have), held, length,
                                  wrap(call, index + have), held + (size_t)have * bytes, length);
    }
    size_t before = (size_t)index * bytes, rest = (size_t)(size - index) * bytes;
    if (status != COH_OK)
        return status;
    cohi_bring(call->target + before, held, rest);
    cohi_bring(call->target, held + rest, before);
    return COH_OK;
}

/*
 * ---- all_to_all ----
 *
 * Place b holds what has yet to go b members on. In the step of a bit all places with that bit go
 * that far; what comes for them takes their places.
 */

struct places {
    cohi_call *call;
    size_t bytes; /* of a block */
    char *held;   /* [size] */
    char *out, *in;
};

size_t cohi_bruck_exchange_workspace(const cohi_call *call)
{
    size_t block = call->to.count * call->element, size = (size_t)call->team->size;
    return cohi_part_bytes(size * block) + 2 * cohi_part_bytes((size + 1) / 2 * block);
}

static struct places lay_out(cohi_call *call)
{
    char *at = call->workspace;
    struct places places = {.call = call, .bytes = call->to.count * call->element};
    size_t size = (size_t)call->team->size, half = (size + 1) / 2 * places.bytes;
    places.held = cohi_part_take(&at, size * places.bytes);
    places.out = cohi_part_take(&at, half);
    places.in = cohi_part_take(&at, half);
    return places;
}

static char *place(const struct places *places, int index)
{
    return places->held + (size_t)index * places->bytes;
}

static coh_status move_bit(const struct places *places, int bit)
{
    cohi_call *call = places->call;
    size_t length = 0;
    for (int b = 0; b < call->team->size; b++) {
        if (!(b & bit))
            continue;
        cohi_bring(places->out + length, place(places, b), places->bytes);
        length += places->bytes;
    }
    int index = call->team->index;
    coh_status status = cohi_pieces_both(call, wrap(call, index + bit), places->out, length,
                                         wrap(call, index - bit), places->in, length);
    length = 0;
    for (int b = 0; b < call->team->size; b++) {
        if (!(b & bit))
            continue;
        cohi_bring(place(places, b), places->in + length, places->bytes);
        length += places->bytes;
    }
    return status;
}

/* What ends at place b was sent by the member b before this one. */
coh_status cohi_bruck_all_to_all(cohi_call *call)
{
    const struct places places = lay_out(call);
    int size = call->team->size, index = call->team->index;
    size_t before = (size_t)index * places.bytes, rest = (size_t)(size - index) * places.bytes;
    coh_status status = COH_OK;
    cohi_bring(places.held, call->source + before, rest);
    cohi_bring(places.held + rest, call->source, before);
    for (int bit = 1; bit < size && status == COH_OK; bit *= 2)
        status = move_bit(&places, bit);
    for (int b = 0; b < size && status == COH_OK; b++)
        cohi_bring(call->target + (size_t)wrap(call, index - b) * places.bytes, place(&places, b),
                   places.bytes);
    return status;
}
