#include "engine/mlx/mlx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 7) & ~UINT64_C(7);
}

uint64_t cohi_mlx_item_bytes(const cohi_mlx_request *request)
{
    return sizeof(cohi_mlx_item) + rounded((uint64_t)request->head_bytes + request->body_bytes);
}

/* ---- packing ---- */

static void write_item(unsigned char *at, const cohi_mlx_request *request)
{
    cohi_mlx_item item = {.to = (uint32_t)request->to,
                          .bytes = request->head_bytes + request->body_bytes};
    memcpy(at, &item, sizeof item);
    memcpy(at + sizeof item, request->head, request->head_bytes);
    if (request->body_bytes > 0)
        memcpy(at + sizeof item + request->head_bytes, request->body, request->body_bytes);
}

static void drop_first(cohi_endpoint *endpoint)
{
    cohi_mlx_request *request = endpoint->first;
    endpoint->first = request->next;
    if (!endpoint->first)
        endpoint->last = NULL;
    endpoint->left -= cohi_mlx_item_bytes(request);
    if (request->op)
        cohi_mlx_end_op(endpoint, request->op, COH_OK, -1);
    free(request);
}

void cohi_mlx_pack(cohi_endpoint *endpoint, void *frame, size_t bytes)
{
    cohi_mlx_frame head = {.key = endpoint->key, .round = ++endpoint->round};
    unsigned char *items = (unsigned char *)frame + sizeof head;
    while (endpoint->first
           && head.used + cohi_mlx_item_bytes(endpoint->first) <= bytes - sizeof head) {
        write_item(items + head.used, endpoint->first);
        head.used += (uint32_t)cohi_mlx_item_bytes(endpoint->first);
        drop_first(endpoint);
    }
    head.left = endpoint->left;
    head.leaving = endpoint->leaving && !endpoint->first; /* what it sent is before it */
    memcpy(frame, &head, sizeof head);
}

/* ---- unpacking ---- */

/* False, for who calls it to return. */
static bool refuse(cohi_mlx_round *round, int rank, const char *why)
{
    round->wrong = rank;
    snprintf(round->why, sizeof round->why, "a frame of rank %d is wrong: %s", rank, why);
    return false;
}

/* A message that is dropped would be waited for without end. */
static bool deliver(cohi_endpoint *endpoint, int from, const unsigned char *message, size_t bytes,
                    cohi_mlx_round *round)
{
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_DELIVERED, from, bytes);
    if (!event) {
        round->wrong = endpoint->rank;
        snprintf(round->why, sizeof round->why, "there is no memory for a message here");
        return false;
    }
    memcpy(cohi_event_bytes(event), message, bytes);
    cohi_events_add(&endpoint->events, event);
    return true;
}

/* False: the round says why. */
static bool take_items(cohi_endpoint *endpoint, int from, const unsigned char *items, uint32_t used,
                       cohi_mlx_round *round)
{
    for (uint32_t at = 0; at < used;) {
        cohi_mlx_item item;
        if (used - at < sizeof item)
            return refuse(round, from, "an item is cut");
        memcpy(&item, items + at, sizeof item);
        at += (uint32_t)sizeof item;
        if (item.to >= (uint32_t)endpoint->size || item.bytes > COHI_MLX_MESSAGE_BYTES
            || rounded(item.bytes) > used - at)
            return refuse(round, from, "an item is longer than what is left, or for no rank");
        if ((int)item.to == endpoint->rank
            && !deliver(endpoint, from, items + at, item.bytes, round))
            return false;
        at += (uint32_t)rounded(item.bytes);
    }
    return true;
}

static const char *check_head(const cohi_endpoint *endpoint, const cohi_mlx_frame *head,
                              size_t bytes)
{
    if (head->key != endpoint->key)
        return "it is of another world";
    if (head->round != endpoint->round)
        return "it is of another round";
    if (head->used > bytes - sizeof *head || head->used % 8 != 0)
        return "its items are longer than it is";
    return NULL;
}

static void note_leaving(cohi_endpoint *endpoint, int rank)
{
    if (endpoint->gone[rank])
        return;
    endpoint->gone[rank] = true;
    if (rank != endpoint->rank)
        cohi_events_add(&endpoint->events,
                        cohi_event_new(&endpoint->events, COHI_EVENT_LEFT, rank, 0));
}

cohi_mlx_round cohi_mlx_unpack(cohi_endpoint *endpoint, const void *frames, size_t bytes)
{
    cohi_mlx_round round = {.all_leave = true, .wrong = -1};
    for (int rank = 0; rank < endpoint->size; rank++) {
        const unsigned char *frame = (const unsigned char *)frames + (size_t)rank * bytes;
        cohi_mlx_frame head;
        memcpy(&head, frame, sizeof head);
        const char *wrong = check_head(endpoint, &head, bytes);
        bool right =
            wrong ? refuse(&round, rank, wrong)
                  : rank == endpoint->rank
                        || take_items(endpoint, rank, frame + sizeof head, head.used, &round);
        if (!right)
            return round;
        if (head.left > round.left)
            round.left = head.left;
        if (head.leaving)
            note_leaving(endpoint, rank);
        round.all_leave = round.all_leave && head.leaving;
    }
    return round;
}
