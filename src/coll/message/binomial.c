/*
 * binomial.c - gather, scatter and reduce along a binomial tree, and broadcast by such a scatter.
 *
 * Members are numbered from the root on. A member's parent is the one without its lowest bit; below
 * it are the numbers from its own up to, not including, its own plus that bit: a run of blocks that
 * lie side by side.
 */
#include "coll/message/messages.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

struct node {
    int at;   /* this member's number, 0 is the root */
    int size; /* of the team */
    int low;  /* its lowest bit; of the root the power of two that covers all */
    int span; /* numbers below it, its own among them */
};

static struct node node_at(const cohi_call *call, int at)
{
    struct node node = {at, call->team->size, 1, 0};
    while (node.low < node.size && !(at & node.low))
        node.low *= 2;
    node.span = at + node.low < node.size ? node.low : node.size - at;
    return node;
}

static struct node node_of(const cohi_call *call)
{
    int size = call->team->size;
    return node_at(call, (call->team->index - call->root + size) % size);
}

static int member_at(const cohi_call *call, int at)
{
    return (at + call->root) % call->team->size;
}

/* How many numbers are below the child with that bit; 0: there is none. */
static int below_child(const struct node *node, int bit)
{
    int child = node->at + bit;
    if (child >= node->size)
        return 0;
    return child + bit <= node->size ? bit : node->size - child;
}

/* ---- gather and scatter ---- */

static const cohi_call_blocks *rooted_blocks(const cohi_call *call)
{
    return call->kind == COH_COLLECTIVE_GATHER ? &call->to : &call->from;
}

bool cohi_binomial_applies(const cohi_call *call)
{
    return rooted_blocks(call)->counts == NULL;
}

static size_t block_bytes(const cohi_call *call)
{
    return rooted_blocks(call)->count * call->element;
}

/* A leaf's run is its own buffer, and the whole run of member 0 is in the order of the members. */
static bool runs_in_place(const cohi_call *call, const struct node *node)
{
    return node->span == 1 || (node->at == 0 && call->root == 0);
}

size_t cohi_binomial_workspace(const cohi_call *call)
{
    const struct node node = node_of(call);
    return runs_in_place(call, &node) ? 0 : (size_t)node.span * block_bytes(call);
}

/* Between the root's buffer and the run, which begins with the root's block. */
static void rotate(const cohi_call *call, char *run, char *buffer, bool out)
{
    size_t bytes = block_bytes(call), before = (size_t)call->root * bytes;
    size_t from_root = (size_t)call->team->size * bytes - before;
    cohi_bring(out ? buffer + before : run, out ? run : buffer + before, from_root);
    cohi_bring(out ? buffer : run + from_root, out ? run + from_root : buffer, before);
}

coh_status cohi_binomial_gather(cohi_call *call)
{
    const struct node node = node_of(call);
    size_t bytes = block_bytes(call);
    char *run = call->workspace;
    if (runs_in_place(call, &node))
        run = node.at == 0 ? call->target : (char *)call->source;
    coh_status status = COH_OK;
    for (int bit = 1; bit < node.low && status == COH_OK; bit *= 2)
        status =
            cohi_pieces_receive(call, member_at(call, (node.at + bit) % node.size),
                                run + (size_t)bit * bytes, (size_t)below_child(&node, bit) * bytes);
    if (status == COH_OK)
        cohi_bring(run, call->source, bytes);
    if (status == COH_OK && node.at != 0)
        return cohi_pieces_send(call, member_at(call, node.at - node.low), run,
                                (size_t)node.span * bytes);
    if (status == COH_OK && run != call->target)
        rotate(call, run, call->target, true);
    return status;
}

static char *scatter_run(const cohi_call *call, const struct node *node)
{
    if (!runs_in_place(call, node)) {
        if (node->at == 0)
            rotate(call, call->workspace, (char *)call->source, false);
        return call->workspace;
    }
    return node->at == 0 ? (char *)call->source : call->target;
}

coh_status cohi_binomial_scatter(cohi_call *call)
{
    const struct node node = node_of(call);
    size_t bytes = block_bytes(call);
    char *run = scatter_run(call, &node);
    coh_status status = COH_OK;
    if (node.at != 0)
        status = cohi_pieces_receive(call, member_at(call, node.at - node.low), run,
                                     (size_t)node.span * bytes);
    for (int bit = node.low / 2; bit > 0 && status == COH_OK; bit /= 2)
        status =
            cohi_pieces_send(call, member_at(call, (node.at + bit) % node.size),
                             run + (size_t)bit * bytes, (size_t)below_child(&node, bit) * bytes);
    const char *own =
        node.at == 0 ? call->source + cohi_block_at(call, &call->from, call->root) : run;
    if (status == COH_OK)
        cohi_bring(call->target, own, bytes);
    return status;
}

/* ---- reduce ---- */

/* The root's partial may be its target. */
static bool reduces_in_target(const cohi_call *call)
{
    return call->team->index == call->root && cohi_partial_in_target(call);
}

size_t cohi_binomial_reduce_workspace(const cohi_call *call)
{
    size_t partial = call->count * cohi_partial_size(call);
    return cohi_flow_bytes(call, call->count)
           + (reduces_in_target(call) ? 0 : cohi_part_bytes(partial));
}

/* *own: what this member has, from the first child on `partial`. */
static coh_status collect(cohi_call *call, const struct node *node, const char **own, char *partial,
                          char *buffers)
{
    coh_status status = COH_OK;
    for (int bit = 1; bit < node->low && status == COH_OK; bit *= 2) {
        if (node->at + bit >= node->size)
            break;
        int child = member_at(call, node->at + bit);
        const cohi_flow flow = {
            .to = child, .from = child, .own = *own, .into = partial, .in_count = call->count};
        status = cohi_flow_run(call, &flow, buffers);
        *own = partial;
    }
    return status;
}

coh_status cohi_binomial_reduce(cohi_call *call)
{
    if (call->team->size == 1)
        return cohi_partial_alone(call);
    const struct node node = node_of(call);
    char *at = call->workspace, *partial = call->target;
    if (!reduces_in_target(call))
        partial = cohi_part_take(&at, call->count * cohi_partial_size(call));
    const char *own = cohi_partial_is_source(call) ? call->source : partial;
    if (own == partial)
        cohi_partial_load(call, partial, call->source, call->count);
    coh_status status = collect(call, &node, &own, partial, at);
    if (status != COH_OK)
        return status;
    if (node.at == 0) {
        cohi_partial_store(call, call->target, partial, call->count);
        return COH_OK;
    }
    int parent = member_at(call, node.at - node.low);
    const cohi_flow up = {.to = parent, .out = own, .out_count = call->count, .from = parent};
    return cohi_flow_run(call, &up, at);
}

/* ---- broadcast: shares are scattered, then passed around the ring ---- */

static cohi_span run_of(const cohi_call *call, int at, int span)
{
    cohi_span run = cohi_slices(call->count, call->team->size, at, at + span);
    return (cohi_span){run.first * call->element, run.count * call->element};
}

static coh_status scatter_shares(cohi_call *call, const struct node *node)
{
    char *data = node->at == 0 ? (char *)call->source : call->target;
    coh_status status = COH_OK;
    if (node->at != 0) {
        cohi_span run = run_of(call, node->at, node->span);
        status = cohi_pieces_receive(call, member_at(call, node->at - node->low), data + run.first,
                                     run.count);
    }
    for (int bit = node->low / 2; bit > 0 && status == COH_OK; bit /= 2) {
        int below = below_child(node, bit);
        if (below == 0)
            continue;
        cohi_span run = run_of(call, node->at + bit, below);
        status =
            cohi_pieces_send(call, member_at(call, node->at + bit), data + run.first, run.count);
    }
    return status;
}

/* What goes over the ring to a member; nothing when the scatter has brought it there. */
static cohi_span passed_to(const cohi_call *call, const struct node *to, int share)
{
    if (share >= to->at && share < to->at + to->span)
        return (cohi_span){0, 0};
    return run_of(call, share, 1);
}

coh_status cohi_scatter_gather_broadcast(cohi_call *call)
{
    const struct node node = node_of(call), next = node_at(call, (node.at + 1) % node.size);
    int right = member_at(call, next.at), left = member_at(call, node.at + node.size - 1);
    const char *data = node.at == 0 ? call->source : call->target;
    coh_status status = scatter_shares(call, &node);
    for (int step = 0; step < node.size - 1 && status == COH_OK; step++) {
        cohi_span go = passed_to(call, &next, (node.at - step + node.size) % node.size);
        cohi_span come = passed_to(call, &node, (node.at - step - 1 + node.size) % node.size);
        status = cohi_pieces_both(call, right, data + go.first, go.count, left,
                                  call->target + come.first, come.count);
    }
    if (status == COH_OK && node.at == 0)
        cohi_bring(call->target, call->source, call->count * call->element);
    return status;
}
