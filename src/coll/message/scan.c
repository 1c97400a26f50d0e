/*
 * scan.c - the reduction over the members up to this one.
 *
 * By doubling: what a member holds covers twice as many members before it after each step, always
 * side by side. By a chain: what was reduced so far goes from member to member in chunks, and each
 * adds its own, so the order is that of the members.
 */
#include "coll/call/blocks.h"
#include "coll/message/messages.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

/* ---- doubling ---- */

size_t cohi_doubling_scan_workspace(const cohi_call *call)
{
    size_t partial = cohi_part_bytes(call->count * cohi_partial_size(call));
    return (call->exclusive ? 2 : 1) * partial + cohi_flow_bytes(call, call->count);
}

static coh_status double_back(cohi_call *call, char *partial, char *buffers)
{
    int size = call->team->size, index = call->team->index;
    coh_status status = COH_OK;
    for (int far = 1; far < size && status == COH_OK; far *= 2) {
        bool sends = index + far < size, receives = index >= far;
        const cohi_flow flow = {.to = sends ? index + far : index,
                                .out = partial,
                                .out_count = sends ? call->count : 0,
                                .from = receives ? index - far : index,
                                .own = partial,
                                .into = partial,
                                .in_count = receives ? call->count : 0,
                                .in_first = true};
        status = cohi_flow_run(call, &flow, buffers);
    }
    return status;
}

/* What the member before this one holds at the end. */
static coh_status shift(cohi_call *call, const char *held, char *before)
{
    int size = call->team->size, index = call->team->index;
    size_t bytes = call->count * cohi_partial_size(call);
    bool last = index == size - 1, first = index == 0;
    coh_status status = cohi_pieces_both(call, last ? index : index + 1, held, last ? 0 : bytes,
                                         first ? index : index - 1, before, first ? 0 : bytes);
    if (status != COH_OK)
        return status;
    if (first)
        cohi_fill_identity(call, call->target, call->count);
    else
        cohi_partial_store(call, call->target, before, call->count);
    return COH_OK;
}

coh_status cohi_doubling_scan(cohi_call *call)
{
    size_t bytes = call->count * cohi_partial_size(call);
    char *at = call->workspace;
    char *partial = cohi_part_take(&at, bytes);
    char *before = call->exclusive ? cohi_part_take(&at, bytes) : NULL;
    cohi_partial_load(call, partial, call->source, call->count);
    coh_status status = double_back(call, partial, at);
    if (status == COH_OK && call->exclusive)
        return shift(call, partial, before);
    if (status == COH_OK)
        cohi_partial_store(call, call->target, partial, call->count);
    return status;
}

/* ---- chain ---- */

/* A chunk may be under way from the member before, and two to the next. */
struct chain {
    cohi_call *call;
    bool first, last;
    size_t size;  /* of a partial element */
    size_t chunk; /* elements */
    size_t chunks;
    char *in[2], *out[2];
    coh_request coming, going[2];
    int receiving, sending[2]; /* requests that were started */
};

static size_t chain_part(const cohi_call *call)
{
    size_t bytes = call->count * cohi_partial_size(call);
    return cohi_part_bytes(bytes < COHI_CHUNK_BYTES ? bytes : COHI_CHUNK_BYTES);
}

size_t cohi_chain_scan_workspace(const cohi_call *call)
{
    return 4 * chain_part(call);
}

static cohi_span chunk_of(const struct chain *chain, size_t number)
{
    return cohi_span_piece((cohi_span){0, chain->call->count}, number, chain->chunk);
}

static void receive(struct chain *chain, size_t number)
{
    if (chain->first || number >= chain->chunks)
        return;
    cohi_exchange_receive(chain->call, &chain->coming, chain->call->team->index - 1,
                          chain->in[number % 2], chunk_of(chain, number).count * chain->size);
    chain->receiving = 1;
}

static coh_status received(struct chain *chain)
{
    int count = chain->receiving;
    chain->receiving = 0;
    return count ? cohi_exchange_finish(chain->call, &chain->coming, count) : COH_OK;
}

static void send(struct chain *chain, size_t number)
{
    if (chain->last)
        return;
    cohi_exchange_send(chain->call, &chain->going[number % 2], chain->call->team->index + 1,
                       chain->out[number % 2], chunk_of(chain, number).count * chain->size);
    chain->sending[number % 2] = 1;
}

static coh_status sent(struct chain *chain, size_t number)
{
    int count = chain->sending[number % 2];
    chain->sending[number % 2] = 0;
    return count ? cohi_exchange_finish(chain->call, &chain->going[number % 2], count) : COH_OK;
}

/* What came, with this member's own added, goes on; this member's result is one or the other. There
 * is no mean of a scan, so that storing leaves the partial as it was. */
static void add_own(const struct chain *chain, size_t number)
{
    const cohi_call *call = chain->call;
    cohi_span span = chunk_of(chain, number);
    const char *source = call->source + span.first * call->element;
    char *target = call->target + span.first * call->element;
    char *in = chain->in[number % 2], *out = chain->out[number % 2];
    cohi_partial_load(call, out, source, span.count);
    if (!chain->first)
        cohi_partial_combine(call, out, in, out, span.count);
    if (call->exclusive && chain->first)
        cohi_fill_identity(call, target, span.count);
    else
        cohi_partial_store(call, target, call->exclusive ? in : out, span.count);
}

static coh_status run_chain(struct chain *chain)
{
    coh_status status = COH_OK;
    receive(chain, 0);
    for (size_t i = 0; i < chain->chunks && status == COH_OK; i++) {
        status = received(chain);
        if (status != COH_OK)
            break;
        receive(chain, i + 1);
        status = sent(chain, i);
        if (status != COH_OK)
            break;
        add_own(chain, i);
        send(chain, i);
    }
    coh_status left[3] = {received(chain), sent(chain, 0), sent(chain, 1)};
    for (int i = 0; i < 3; i++)
        status = status == COH_OK ? left[i] : status;
    return status;
}

coh_status cohi_chain_scan(cohi_call *call)
{
    size_t part = chain_part(call);
    struct chain chain = {.call = call,
                          .first = call->team->index == 0,
                          .last = call->team->index == call->team->size - 1,
                          .size = cohi_partial_size(call)};
    chain.chunk = cohi_piece_length(call->count, chain.size, COHI_CHUNK_BYTES / chain.size);
    chain.chunks = cohi_pieces_of(call->count, chain.chunk);
    for (int i = 0; i < 2; i++) {
        chain.in[i] = call->workspace + (size_t)i * part;
        chain.out[i] = call->workspace + (size_t)(i + 2) * part;
    }
    return run_chain(&chain);
}
