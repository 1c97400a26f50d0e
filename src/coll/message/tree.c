/*
 * tree.c - broadcast down a tree, in chunks: a member passes one on while the next comes. The tree
 * is binomial, or a chain.
 */
#include "coll/message/messages.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

struct tree {
    int parent; /* -1: this is the root */
    int count;
    int children[COHI_ROUNDS];
};

/* A chunk may be under way from the parent, and two to each child. */
struct relay {
    cohi_call *call;
    const struct tree *tree;
    char *data;
    size_t bytes, chunk, chunks;
    coh_request in;
    coh_request out[2][COHI_ROUNDS];
    int receiving, sending[2]; /* requests that were started */
};

static int distance(const cohi_call *call)
{
    return (call->team->index - call->root + call->team->size) % call->team->size;
}

static int member_at(const cohi_call *call, int from_root)
{
    return (from_root + call->root) % call->team->size;
}

static cohi_span chunk(const struct relay *relay, size_t number)
{
    return cohi_span_piece((cohi_span){0, relay->bytes}, number, relay->chunk);
}

static void receive(struct relay *relay, size_t number)
{
    if (relay->tree->parent < 0 || number >= relay->chunks)
        return;
    cohi_span span = chunk(relay, number);
    cohi_exchange_receive(relay->call, &relay->in, relay->tree->parent, relay->data + span.first,
                          span.count);
    relay->receiving = 1;
}

static coh_status received(struct relay *relay)
{
    int count = relay->receiving;
    relay->receiving = 0;
    return count ? cohi_exchange_finish(relay->call, &relay->in, count) : COH_OK;
}

static void send(struct relay *relay, size_t number)
{
    cohi_span span = chunk(relay, number);
    for (int i = 0; i < relay->tree->count; i++)
        cohi_exchange_send(relay->call, &relay->out[number % 2][i], relay->tree->children[i],
                           relay->data + span.first, span.count);
    relay->sending[number % 2] = relay->tree->count;
}

static coh_status sent(struct relay *relay, size_t number)
{
    int count = relay->sending[number % 2];
    relay->sending[number % 2] = 0;
    return count ? cohi_exchange_finish(relay->call, relay->out[number % 2], count) : COH_OK;
}

static coh_status pass_on(struct relay *relay)
{
    coh_status status = COH_OK;
    receive(relay, 0);
    for (size_t i = 0; i < relay->chunks && status == COH_OK; i++) {
        status = received(relay);
        if (status != COH_OK)
            break;
        receive(relay, i + 1);
        status = sent(relay, i);
        if (status == COH_OK)
            send(relay, i);
    }
    coh_status left[3] = {received(relay), sent(relay, 0), sent(relay, 1)};
    for (int i = 0; i < 3; i++)
        status = status == COH_OK ? left[i] : status;
    return status;
}

static coh_status broadcast(cohi_call *call, const struct tree *tree)
{
    bool root = tree->parent < 0;
    size_t bytes = call->count * call->element;
    size_t chunk = cohi_piece_length(bytes, 1, COHI_CHUNK_BYTES);
    struct relay relay = {.call = call,
                          .tree = tree,
                          .data = root ? (char *)call->source : call->target,
                          .bytes = bytes,
                          .chunk = chunk,
                          .chunks = cohi_pieces_of(bytes, chunk)};
    coh_status status = pass_on(&relay);
    if (root && status == COH_OK)
        cohi_bring(call->target, call->source, call->count * call->element);
    return status;
}

/* The children of a member are those that differ from it in one bit below its lowest; the farthest,
 * which has the most to do, first. */
coh_status cohi_binomial_broadcast(cohi_call *call)
{
    int size = call->team->size, at = distance(call), bit = 1;
    struct tree tree = {.parent = at == 0 ? -1 : member_at(call, at & (at - 1))};
    while (bit < size && !(at & bit))
        bit *= 2;
    for (bit /= 2; bit > 0; bit /= 2)
        if (at + bit < size)
            tree.children[tree.count++] = member_at(call, at + bit);
    return broadcast(call, &tree);
}

coh_status cohi_chain_broadcast(cohi_call *call)
{
    int at = distance(call);
    struct tree tree = {.parent = at == 0 ? -1 : member_at(call, at - 1)};
    if (at + 1 < call->team->size)
        tree.children[tree.count++] = member_at(call, at + 1);
    return broadcast(call, &tree);
}
