#include "core/onesided/relay.h"

#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "core/heap/device.h"

#include <stdlib.h>
#include <string.h>

/* Longest piece. Below what channels carry at once, and long enough that the way there and back is not all
 * of the time. */
enum { PIECE_BYTES = 56 << 10 };

enum verb { PUT = 1, GET = 2, ATOMIC = 3 };

/* What a frame begins with: a request, or its answer, whose bytes follow. */
typedef struct relay_head {
    uint32_t kind;
    uint32_t verb;
    uint64_t ticket; /* of the request, to its sender */
    cohi_spot spot;
    uint64_t bytes; /* of the data: that follow in a put and in the answer to a get */
    int32_t status; /* of an answer */
    uint32_t op, dtype;
    uint64_t operand, compare; /* of an atomic; in its answer the operand is the result */
} relay_head;

_Static_assert(sizeof(relay_head) <= COHI_HEAD_BYTES, "it is a head");

/* A frame that came and is still to be served, or that goes and is still the engine's. */
struct piece {
    struct piece *next;
    int rank; /* it came from */
    cohi_op op;
    relay_head head;
    unsigned char body[];
};

/* A request of this rank's, in the frame of the call that waits for it. */
struct asked {
    struct asked *next;
    uint64_t ticket;
    relay_head answer;
    void *target; /* of the answer's bytes, or NULL */
    atomic_bool answered;
};

struct cohi_relay {
    pthread_mutex_t lock;
    uint64_t tickets;
    struct asked *asked;
    struct piece *requests, **last_request;
    atomic_int waiting; /* requests, looked at without the lock */
    struct piece *going;
};

/* ---- opening and closing ---- */

coh_status cohi_relay_open(coh_world *world)
{
    if (world->hosts < 2 || !world->engine->channel)
        return COH_OK;
    struct cohi_relay *relay = calloc(1, sizeof *relay);
    if (!relay)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", world->size);
    pthread_mutex_init(&relay->lock, NULL);
    relay->last_request = &relay->requests;
    world->relay = relay;
    return COH_OK;
}

static void free_pieces(struct piece *pieces)
{
    while (pieces) {
        struct piece *next = pieces->next;
        free(pieces);
        pieces = next;
    }
}

/* After the endpoint: nothing comes or goes any more. */
void cohi_relay_close(coh_world *world)
{
    struct cohi_relay *relay = world->relay;
    if (!relay)
        return;
    free_pieces(relay->requests);
    free_pieces(relay->going);
    pthread_mutex_destroy(&relay->lock);
    free(relay);
    world->relay = NULL;
}

bool cohi_relay_serves(const coh_world *world, int rank, cohi_spot spot)
{
    return cohi_device_serves(world, spot) && !cohi_heap_reach_card(world, rank, spot);
}

/* ---- asking ---- */

static struct piece *new_piece(size_t bytes)
{
    struct piece *piece = calloc(1, sizeof *piece + bytes);
    if (piece)
        piece->op = (cohi_op)COHI_NEW_OP;
    return piece;
}

static void begin(struct cohi_relay *relay, struct asked *asked)
{
    pthread_mutex_lock(&relay->lock);
    asked->ticket = ++relay->tickets;
    asked->next = relay->asked;
    relay->asked = asked;
    pthread_mutex_unlock(&relay->lock);
}

static void end(struct cohi_relay *relay, struct asked *asked)
{
    pthread_mutex_lock(&relay->lock);
    for (struct asked **at = &relay->asked; *at; at = &(*at)->next) {
        if (*at == asked) {
            *at = asked->next;
            break;
        }
    }
    pthread_mutex_unlock(&relay->lock);
}

static coh_status send(const coh_world *world, int rank, struct piece *piece, size_t bytes)
{
    return world->engine->channel->send(world->endpoint, rank, &piece->head, sizeof piece->head,
                                        bytes > 0 ? piece->body : NULL, bytes,
                                        bytes > 0 ? &piece->op : NULL);
}

/* One request, from its first byte to the last of its answer. */
static coh_status ask(coh_world *world, const char *call, cohi_opcode op, int rank,
                      struct piece *piece, size_t bytes, struct asked *asked)
{
    cohi_wait wait;
    begin(world->relay, asked);
    piece->head.kind = COHI_FRAME_RELAY;
    piece->head.ticket = asked->ticket;
    coh_status status = send(world, rank, piece, bytes);
    bool sent = status == COH_OK;
    if (status == COH_PEER_LOST)
        status = cohi_verdict_presume(world, call, rank, COHI_LOSS_LINK);
    cohi_wait_begin(&wait, world, call, op, NULL, rank);
    while (status == COH_OK && !atomic_load_explicit(&asked->answered, memory_order_acquire))
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    end(world->relay, asked);
    if (sent && bytes > 0 && !atomic_load_explicit(&piece->op.done, memory_order_acquire)) {
        if (status == COH_OK) /* it was answered, so the engine has only to notice */
            status = cohi_wait_op(world, call, op, rank, &piece->op);
        else
            world->engine->lifecycle->cancel(world->endpoint, &piece->op);
    }
    if (status != COH_OK || asked->answer.status == COH_OK)
        return status;
    return cohi_world_fail(world, call, (coh_status)asked->answer.status,
                           "rank %d, on another host, could not do it for its card: %s", rank,
                           coh_status_text((coh_status)asked->answer.status));
}

static coh_status check_way(const coh_world *world, const char *call, int rank)
{
    if (world->relay)
        return COH_OK;
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "the card of rank %d is out of reach, and engine %s has no messages by "
                           "which to ask that rank",
                           rank, world->engine->name);
}

static coh_status copy_here(coh_world *world, const cohi_transfer *transfer, void *target,
                            const void *source, size_t bytes)
{
    if (cohi_world_is_on_card(world, transfer->op == COHI_OP_PUT ? source : target))
        return cohi_device_copy(world, transfer->call, transfer->op, target, source, bytes);
    memcpy(target, source, bytes);
    return COH_OK;
}

static coh_status move_piece(coh_world *world, const cohi_transfer *transfer, struct piece *piece,
                             size_t done, size_t bytes)
{
    bool puts = transfer->op == COHI_OP_PUT;
    struct asked asked = {.target = puts ? NULL : piece->body};
    coh_status status = COH_OK;
    piece->op = (cohi_op)COHI_NEW_OP;
    piece->head =
        (relay_head){.verb = puts ? PUT : GET, .spot = transfer->spot + done, .bytes = bytes};
    if (puts)
        status =
            copy_here(world, transfer, piece->body, (const char *)transfer->source + done, bytes);
    if (status == COH_OK)
        status = ask(world, transfer->call, transfer->op, transfer->rank, piece, puts ? bytes : 0,
                     &asked);
    if (status == COH_OK && !puts)
        status = copy_here(world, transfer, (char *)transfer->target + done, piece->body, bytes);
    return status;
}

coh_status cohi_relay_transfer(coh_world *world, const cohi_transfer *transfer)
{
    coh_status status = check_way(world, transfer->call, transfer->rank);
    if (status != COH_OK)
        return status;
    size_t most = transfer->bytes < PIECE_BYTES ? transfer->bytes : PIECE_BYTES;
    struct piece *piece = new_piece(most);
    if (!piece)
        return cohi_world_fail(world, transfer->call, COH_NO_MEMORY,
                               "out of memory to stage %zu bytes of a card", transfer->bytes);
    cohi_world_show_op(world, transfer->op);
    for (size_t done = 0; done < transfer->bytes && status == COH_OK; done += most) {
        size_t left = transfer->bytes - done;
        status = move_piece(world, transfer, piece, done, left < most ? left : most);
    }
    cohi_world_show_op(world, COHI_OP_NONE);
    free(piece);
    return status;
}

static uint64_t read_value(const void *value, size_t bytes)
{
    uint64_t word = 0;
    if (value)
        memcpy(&word, value, bytes);
    return word;
}

coh_status cohi_relay_atomic(coh_world *world, const cohi_amo *amo)
{
    coh_status status = check_way(world, amo->call, amo->rank);
    size_t bytes = coh_dtype_size(amo->dtype);
    struct asked asked = {.target = NULL};
    struct piece piece = {.op = COHI_NEW_OP};
    if (status != COH_OK)
        return status;
    piece.head = (relay_head){.verb = ATOMIC,
                              .spot = amo->spot,
                              .bytes = bytes,
                              .op = (uint32_t)amo->op,
                              .dtype = (uint32_t)amo->dtype,
                              .operand = read_value(amo->operand, bytes),
                              .compare = read_value(amo->compare, bytes)};
    cohi_world_show_op(world, amo->doing);
    status = ask(world, amo->call, amo->doing, amo->rank, &piece, 0, &asked);
    cohi_world_show_op(world, COHI_OP_NONE);
    if (status == COH_OK && amo->result)
        memcpy(amo->result, &asked.answer.operand, bytes);
    return status;
}

/* ---- what comes ---- */

static void take_request(struct cohi_relay *relay, struct piece *piece)
{
    pthread_mutex_lock(&relay->lock);
    *relay->last_request = piece;
    relay->last_request = &piece->next;
    atomic_fetch_add(&relay->waiting, 1);
    pthread_mutex_unlock(&relay->lock);
}

/* The bytes are the caller's until it is answered. A ticket that is gone was given up. */
static void take_answer(struct cohi_relay *relay, const relay_head *head, const void *data)
{
    pthread_mutex_lock(&relay->lock);
    struct asked *asked = relay->asked;
    while (asked && asked->ticket != head->ticket)
        asked = asked->next;
    if (asked) {
        asked->answer = *head;
        if (asked->target && head->bytes > 0)
            memcpy(asked->target, data, head->bytes);
        atomic_store_explicit(&asked->answered, true, memory_order_release);
    }
    pthread_mutex_unlock(&relay->lock);
}

static bool fits(const relay_head *head, size_t count)
{
    bool follows = head->kind == COHI_FRAME_RELAY ? head->verb == PUT : head->verb == GET;
    bool asks = head->verb == PUT || head->verb == GET || head->verb == ATOMIC;
    uint64_t room = count - sizeof *head;
    return asks && head->bytes <= PIECE_BYTES
           && room == (follows && head->status == COH_OK ? head->bytes : 0);
}

/* What does not fit was not written by this library: the sender is as good as gone. */
void cohi_relay_deliver(coh_world *world, int from, const void *bytes, size_t count)
{
    relay_head head = {.kind = 0};
    struct cohi_relay *relay = world->relay;
    if (count >= sizeof head)
        memcpy(&head, bytes, sizeof head);
    if (!relay || count < sizeof head || !fits(&head, count)) {
        cohi_verdict_lost(world, from, COHI_LOSS_LINK, 0);
        return;
    }
    const char *data = (const char *)bytes + sizeof head;
    if (head.kind == COHI_FRAME_RELAYED) {
        take_answer(relay, &head, data);
    } else {
        struct piece *piece = new_piece(head.verb == ATOMIC ? 0 : head.bytes);
        if (!piece) {
            cohi_verdict_lost(world, from, COHI_LOSS_LINK, 0);
            return;
        }
        piece->rank = from;
        piece->head = head;
        memcpy(piece->body, data, count - sizeof head);
        take_request(relay, piece);
    }
    cohi_slot_ring(world->slot);
}

/* ---- serving ---- */

/* Whether the range is one that this rank has memory for: a growth that others have heard of may not have
 * ended here. */
static bool is_backed(coh_world *world, const relay_head *head)
{
    const coh_heap *heap = cohi_heap_numbered(world, cohi_spot_heap(head->spot));
    uint64_t offset = cohi_spot_offset(head->spot);
    return heap && heap->kind == COH_HEAP_CUDA && offset <= heap->backed
           && head->bytes <= heap->backed - offset;
}

static bool is_atomic(const relay_head *head)
{
    size_t bytes = coh_dtype_size((coh_dtype)head->dtype);
    return head->op <= COH_ATOMIC_COMPARE_SWAP && (bytes == 4 || bytes == 8) && bytes == head->bytes
           && head->spot % bytes == 0;
}

static coh_status carry_out(coh_world *world, struct piece *piece)
{
    relay_head *head = &piece->head;
    cohi_op op = COHI_NEW_OP;
    coh_status status;
    if (!cohi_world_device(world) || !is_backed(world, head)
        || (head->verb == ATOMIC && !is_atomic(head)))
        return COH_OUT_OF_BOUNDS;
    cohi_server server = cohi_world_device(world)->server;
    cohi_remote at = {COHI_CONTEXT_MESSAGES, world->rank, cohi_spot_segment(head->spot),
                      cohi_spot_offset(head->spot)};
    cohi_remote_atomic what = {(coh_atomic_op)head->op, (coh_dtype)head->dtype, &head->operand,
                               &head->compare};
    uint64_t result = 0;
    if (head->verb == PUT)
        status = server.engine->rma->put(server.endpoint, at, piece->body, head->bytes, &op);
    else if (head->verb == GET)
        status = server.engine->rma->get(server.endpoint, at, piece->body, head->bytes, &op);
    else
        status = server.engine->atomic->fetch(server.endpoint, at, &what, &result, &op);
    if (status == COH_OK)
        status = cohi_device_settle(server, &op);
    head->operand = result;
    return status;
}

static struct piece *next_request(struct cohi_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    struct piece *piece = relay->requests;
    if (piece) {
        relay->requests = piece->next;
        if (!relay->requests)
            relay->last_request = &relay->requests;
        atomic_fetch_sub(&relay->waiting, 1);
    }
    pthread_mutex_unlock(&relay->lock);
    return piece;
}

/* Those that the engine has sent. */
static void reap(struct cohi_relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    for (struct piece **at = &relay->going; *at;) {
        struct piece *piece = *at;
        if (!atomic_load_explicit(&piece->op.done, memory_order_acquire)) {
            at = &piece->next;
            continue;
        }
        *at = piece->next;
        free(piece);
    }
    pthread_mutex_unlock(&relay->lock);
}

static void answer(coh_world *world, struct piece *piece)
{
    struct cohi_relay *relay = world->relay;
    relay_head *head = &piece->head;
    size_t bytes = head->verb == GET && head->status == COH_OK ? head->bytes : 0;
    head->kind = COHI_FRAME_RELAYED;
    piece->op = (cohi_op)COHI_NEW_OP;
    if (send(world, piece->rank, piece, bytes) != COH_OK || bytes == 0) {
        free(piece); /* a rank that cannot be answered is lost, which others find out */
        return;
    }
    pthread_mutex_lock(&relay->lock);
    piece->next = relay->going;
    relay->going = piece;
    pthread_mutex_unlock(&relay->lock);
}

void cohi_relay_serve(coh_world *world)
{
    struct cohi_relay *relay = world->relay;
    if (COHI_LIKELY(!relay) || atomic_load_explicit(&relay->waiting, memory_order_relaxed) == 0)
        return;
    reap(relay);
    for (struct piece *piece; (piece = next_request(relay));) {
        cohi_error kept; /* what fails here is not the caller's */
        cohi_error_keep(&kept);
        piece->head.status = (int32_t)carry_out(world, piece);
        answer(world, piece);
        (void)cohi_fail_again(&kept);
    }
}
