/*
 * shard_reduce.c - reductions in which each member gets all parts of its shard directly, and reduces
 * them in the order of the members with one rounding.
 *
 * It goes in rounds, a piece of every shard in each, so that the memory needed does not grow with
 * the data. A round has two steps: the members collect each other's parts of a piece, and what came of
 * it is handed on. Several rounds are under way: while one is reduced, parts of the next come and
 * results of those before go. Every member sends and receives in the same order, so that messages
 * need no number.
 *
 * Where source and target are the same, what is overwritten has been sent: a result of a round comes
 * from a member that has this member's part of it, and rounds do not overlap.
 */
#include "coll/message/messages.h"

#include "base/error.h"
#include "coll/message/accumulate.h"
#include "coll/message/pieces.h"
#include "core/team/team.h"

/*
 * A member's part in a round goes between hosts as one frame, unasked. Parts that are under way stay in the cache
 * together: few members have four rounds of them, a pair two of twice the length. All_reduce of 16 MiB by a pair over TCP on
 * the loopback, ms while its cores are near each other, and while they are not: four rounds of 63 KiB 4.0 and 5.2, of 126 KiB 3.6
 * and 6.8; two of 126 KiB 3.7 and 5.0, of 252 KiB 3.8 and 6.6; a ring 5.2 and 6.2 (Zen 5).
 */
enum { PARTS_UNDER_WAY = 16, ROUNDS_UNDER_WAY = 4 };

static size_t part_bytes(const cohi_call *call)
{
    const coh_team *team = call->team;
    bool pair = cohi_is_pair(team->size, (double)team->world->mailbox->piece);
    return pair ? COHI_PAIR_BYTES : COHI_CHUNK_BYTES;
}

/* Messages of one step of a round that were started. */
struct step {
    coh_request *requests; /* [2 * size] */
    int count;
};

struct work;

/* Starts to hand on the reduced piece of a round. */
typedef void hand_on(struct work *work, size_t round);

struct work {
    cohi_call *call;
    int size, index;
    size_t piece; /* elements of a shard in a round */
    size_t apart; /* bytes from one part to the next */
    size_t rounds;
    size_t ahead; /* rounds that are under way */
    hand_on *hand_on;
    struct step collects[ROUNDS_UNDER_WAY], hands[ROUNDS_UNDER_WAY];
    const void **sources; /* [size] */
    char *parts;          /* [ahead][size] the others' parts of this member's shard */
    char *results;        /* [ahead] pieces: of members whose target is not to be touched */
};

static size_t piece_of(const cohi_call *call, size_t longest)
{
    size_t piece = part_bytes(call) / call->element;
    return longest < piece ? longest : piece;
}

static size_t rounds_ahead(const cohi_call *call)
{
    size_t ahead = PARTS_UNDER_WAY / (size_t)call->team->size;
    size_t most = ROUNDS_UNDER_WAY * COHI_CHUNK_BYTES / part_bytes(call);
    return ahead < 1 ? 1 : ahead > most ? most : ahead;
}

static size_t step_bytes(const cohi_call *call)
{
    return cohi_part_bytes(2 * (size_t)call->team->size * sizeof(coh_request));
}

size_t cohi_pairwise_workspace(const cohi_call *call)
{
    size_t size = (size_t)call->team->size, ahead = rounds_ahead(call);
    size_t piece = piece_of(call, cohi_shard_longest(call)) * call->element;
    return 2 * ahead * step_bytes(call) + cohi_part_bytes(size * sizeof(void *))
           + ahead * (size + 1) * cohi_part_bytes(piece);
}

static struct work lay_out(cohi_call *call, hand_on *hands)
{
    size_t size = (size_t)call->team->size, longest = cohi_shard_longest(call);
    char *at = call->workspace;
    struct work work = {.call = call,
                        .size = call->team->size,
                        .index = call->team->index,
                        .piece = piece_of(call, longest),
                        .ahead = rounds_ahead(call),
                        .hand_on = hands};
    work.rounds = longest == 0 ? 0 : cohi_pieces_of(longest, work.piece);
    work.apart = cohi_part_bytes(work.piece * call->element);
    for (size_t i = 0; i < work.ahead; i++) {
        work.collects[i].requests = (coh_request *)cohi_part_take(&at, step_bytes(call));
        work.hands[i].requests = (coh_request *)cohi_part_take(&at, step_bytes(call));
    }
    work.sources = (const void **)cohi_part_take(&at, size * sizeof(void *));
    work.results = at;
    work.parts = at + work.ahead * work.apart;
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

static char *target_at(const struct work *work, cohi_span span)
{
    return work->call->target + span.first * work->call->element;
}

static char *part_from(const struct work *work, int member, size_t round)
{
    size_t slot = round % work->ahead;
    return work->parts + (slot * (size_t)work->size + (size_t)member) * work->apart;
}

static char *result_of(const struct work *work, size_t round)
{
    return work->results + round % work->ahead * work->apart;
}

/* ---- steps ---- */

static void receive(struct work *work, struct step *step, int from, char *data, cohi_span span)
{
    cohi_exchange_receive(work->call, &step->requests[step->count++], from, data,
                          bytes_of(work, span));
}

static void send(struct work *work, struct step *step, int to, const char *data, cohi_span span)
{
    cohi_exchange_send(work->call, &step->requests[step->count++], to, data, bytes_of(work, span));
}

static int before(const struct work *work, int distance)
{
    return (work->index + work->size - distance) % work->size;
}

static int behind(const struct work *work, int distance)
{
    return (work->index + distance) % work->size;
}

static coh_status finish(const struct work *work, struct step *step)
{
    coh_status status = cohi_exchange_finish_each(work->call, step->requests, step->count);
    step->count = 0;
    return status;
}

static void collect(struct work *work, size_t round)
{
    const cohi_call *call = work->call;
    struct step *step = &work->collects[round % work->ahead];
    cohi_span own = piece(work, work->index, round);
    for (int k = 1; k < work->size; k++)
        receive(work, step, before(work, k), part_from(work, before(work, k), round), own);
    for (int k = 1; k < work->size; k++) {
        cohi_span go = piece(work, behind(work, k), round);
        send(work, step, behind(work, k), call->source + go.first * call->element, go);
    }
}

static void reduce(struct work *work, size_t round, char *target)
{
    const cohi_call *call = work->call;
    cohi_span own = piece(work, work->index, round);
    for (int i = 0; i < work->size; i++)
        work->sources[i] = part_from(work, i, round);
    work->sources[work->index] = call->source + own.first * call->element;
    cohi_partial_reduce(call, target, work->sources, work->size, own.count);
}

/* ---- what becomes of the reduced pieces ---- */

static void spread(struct work *work, size_t round)
{
    struct step *step = &work->hands[round % work->ahead];
    cohi_span own = piece(work, work->index, round);
    reduce(work, round, target_at(work, own));
    for (int k = 1; k < work->size; k++) {
        cohi_span come = piece(work, before(work, k), round);
        receive(work, step, before(work, k), target_at(work, come), come);
    }
    for (int k = 1; k < work->size; k++)
        send(work, step, behind(work, k), target_at(work, own), own);
}

static void send_to_root(struct work *work, size_t round)
{
    struct step *step = &work->hands[round % work->ahead];
    cohi_span own = piece(work, work->index, round);
    int root = work->call->root;
    bool roots = work->index == root;
    char *target = roots ? target_at(work, own) : result_of(work, round);
    reduce(work, round, target);
    if (!roots)
        send(work, step, root, target, own);
    for (int from = 0; from < work->size && roots; from++) {
        cohi_span come = piece(work, from, round);
        if (from != root)
            receive(work, step, from, target_at(work, come), come);
    }
}

static void keep(struct work *work, size_t round)
{
    const cohi_call *call = work->call;
    reduce(work, round, call->target + round * work->piece * call->element);
}

/* ---- the rounds ---- */

/* What is under way is waited for, or taken back, also when something has failed. */
static coh_status drain(struct work *work, coh_status status)
{
    cohi_error first;
    status = cohi_error_first(COH_OK, status, &first);
    for (size_t i = 0; i < work->ahead; i++) {
        status = cohi_error_first(status, finish(work, &work->collects[i]), &first);
        status = cohi_error_first(status, finish(work, &work->hands[i]), &first);
    }
    return status == COH_OK ? COH_OK : cohi_fail_again(&first);
}

static coh_status run(cohi_call *call, hand_on *hands)
{
    struct work work = lay_out(call, hands);
    coh_status status = COH_OK;
    for (size_t round = 0; round < work.ahead && round < work.rounds; round++)
        collect(&work, round);
    for (size_t round = 0; round < work.rounds && status == COH_OK; round++) {
        status = finish(&work, &work.collects[round % work.ahead]);
        if (status == COH_OK)
            status = finish(&work, &work.hands[round % work.ahead]);
        if (status != COH_OK)
            break;
        work.hand_on(&work, round);
        if (round + work.ahead < work.rounds)
            collect(&work, round + work.ahead);
    }
    return drain(&work, status);
}

coh_status cohi_pairwise_all_reduce(cohi_call *call)
{
    return run(call, spread);
}

coh_status cohi_pairwise_reduce(cohi_call *call)
{
    return run(call, send_to_root);
}

coh_status cohi_pairwise_reduce_scatter(cohi_call *call)
{
    return run(call, keep);
}
