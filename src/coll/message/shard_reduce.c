/*
 * shard_reduce.c - reductions in which each member gets all parts of its shard directly, and reduces
 * them in the order of the members with one rounding.
 *
 * It goes in rounds, a piece of every shard in each, so that the memory needed does not grow with
 * the data. A round ends before the next begins: where source and target are the same, what is
 * overwritten has been sent.
 */
#include "coll/message/messages.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

/* Of one member's part in a round; those of all members stay in the cache together. */
enum { PART_BYTES = 64 << 10 };

struct work {
    cohi_call *call;
    int size, index;
    size_t piece; /* elements of a shard in a round */
    size_t rounds;
    coh_request *requests; /* [2 * size] */
    const void **sources;  /* [size] */
    char *parts;           /* [size] pieces: the others' parts of this member's shard */
    char *result;          /* a piece: of members whose target is not to be touched */
};

static size_t piece_of(const cohi_call *call, size_t longest)
{
    size_t piece = PART_BYTES / call->element;
    return longest < piece ? longest : piece;
}

size_t cohi_pairwise_workspace(const cohi_call *call)
{
    size_t size = (size_t)call->team->size;
    size_t piece = piece_of(call, cohi_shard_longest(call)) * call->element;
    return cohi_part_bytes(2 * size * sizeof(coh_request)) + cohi_part_bytes(size * sizeof(void *))
           + (size + 1) * cohi_part_bytes(piece);
}

static struct work lay_out(cohi_call *call)
{
    size_t size = (size_t)call->team->size, longest = cohi_shard_longest(call);
    char *at = call->workspace;
    struct work work = {.call = call,
                        .size = call->team->size,
                        .index = call->team->index,
                        .piece = piece_of(call, longest)};
    work.rounds = longest == 0 ? 0 : cohi_pieces_of(longest, work.piece);
    work.requests = (coh_request *)cohi_part_take(&at, 2 * size * sizeof(coh_request));
    work.sources = (const void **)cohi_part_take(&at, size * sizeof(void *));
    work.result = cohi_part_take(&at, work.piece * call->element);
    work.parts = at;
    return work;
}

static cohi_span piece(const struct work *work, int member, size_t round)
{
    return cohi_span_piece(cohi_shard(work->call, member), round, work->piece);
}

static size_t bytes_of(const struct work *work, cohi_span span)
{
    return span.count * work->call->element;
}

/* All are waited for, also when one fails; each is a beat. */
static coh_status finish(const struct work *work, int count)
{
    coh_status status = COH_OK;
    for (int i = 0; i < count; i++) {
        coh_status ended = cohi_exchange_finish(work->call, &work->requests[i], 1);
        status = status == COH_OK ? ended : status;
    }
    return status;
}

static coh_status collect(const struct work *work, size_t round)
{
    cohi_call *call = work->call;
    cohi_span own = piece(work, work->index, round);
    size_t apart = cohi_part_bytes(work->piece * call->element);
    int count = 0;
    work->sources[work->index] = call->source + own.first * call->element;
    for (int k = 1; k < work->size; k++) {
        int from = (work->index + work->size - k) % work->size;
        char *part = work->parts + (size_t)from * apart;
        work->sources[from] = part;
        cohi_exchange_receive(call, &work->requests[count++], from, part, bytes_of(work, own));
    }
    for (int k = 1; k < work->size; k++) {
        int to = (work->index + k) % work->size;
        cohi_span go = piece(work, to, round);
        cohi_exchange_send(call, &work->requests[count++], to,
                           call->source + go.first * call->element, bytes_of(work, go));
    }
    return finish(work, count);
}

/* One round of the exchange; the reduced piece is in `target`. */
static coh_status reduce_piece(const struct work *work, size_t round, char *target)
{
    coh_status status = collect(work, round);
    if (status == COH_OK)
        cohi_partial_reduce(work->call, target, work->sources, work->size,
                            piece(work, work->index, round).count);
    return status;
}

/* ---- what becomes of the reduced pieces ---- */

static char *target_at(const struct work *work, cohi_span span)
{
    return work->call->target + span.first * work->call->element;
}

static coh_status spread(const struct work *work, size_t round)
{
    cohi_span own = piece(work, work->index, round);
    int count = 0;
    for (int k = 1; k < work->size; k++) {
        int from = (work->index + work->size - k) % work->size;
        cohi_span come = piece(work, from, round);
        cohi_exchange_receive(work->call, &work->requests[count++], from, target_at(work, come),
                              bytes_of(work, come));
    }
    for (int k = 1; k < work->size; k++)
        cohi_exchange_send(work->call, &work->requests[count++], (work->index + k) % work->size,
                           target_at(work, own), bytes_of(work, own));
    return finish(work, count);
}

coh_status cohi_pairwise_all_reduce(cohi_call *call)
{
    const struct work work = lay_out(call);
    coh_status status = COH_OK;
    for (size_t round = 0; round < work.rounds && status == COH_OK; round++) {
        char *target = target_at(&work, piece(&work, work.index, round));
        status = reduce_piece(&work, round, target);
        if (status == COH_OK)
            status = spread(&work, round);
    }
    return status;
}

static coh_status receive_all(const struct work *work, size_t round)
{
    int count = 0;
    for (int from = 0; from < work->size; from++) {
        cohi_span come = piece(work, from, round);
        if (from != work->index)
            cohi_exchange_receive(work->call, &work->requests[count++], from, target_at(work, come),
                                  bytes_of(work, come));
    }
    return finish(work, count);
}

coh_status cohi_pairwise_reduce(cohi_call *call)
{
    const struct work work = lay_out(call);
    bool root = work.index == call->root;
    coh_status status = COH_OK;
    for (size_t round = 0; round < work.rounds && status == COH_OK; round++) {
        cohi_span own = piece(&work, work.index, round);
        status = reduce_piece(&work, round, root ? target_at(&work, own) : work.result);
        if (status != COH_OK)
            return status;
        status = root ? receive_all(&work, round)
                      : cohi_pieces_send(call, call->root, work.result, bytes_of(&work, own));
    }
    return status;
}

coh_status cohi_pairwise_reduce_scatter(cohi_call *call)
{
    const struct work work = lay_out(call);
    coh_status status = COH_OK;
    for (size_t round = 0; round < work.rounds && status == COH_OK; round++)
        status = reduce_piece(&work, round, call->target + round * work.piece * call->element);
    return status;
}
