#include "search.h"

#include <sched.h>
#include <stdlib.h>

static uint64_t pattern(int step, int from)
{
    return (uint64_t)step * 8 + (uint64_t)from;
}

static int team_of(const search_step *step)
{
    return step->kind == SEARCH_MESSAGE && step->how == MESSAGE_ANY_TAG ? SEARCH_TAGS
                                                                        : SEARCH_WORLD;
}

/* The victim of FAULT_WRONG_TAG asks for one that nobody sends. */
static int tag_to_receive(const search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step);
    if (search_is_fault(self, index, FAULT_WRONG_TAG))
        return search_tag(index) + 1000;
    return team_of(step) == SEARCH_TAGS ? COH_ANY_TAG : search_tag(index);
}

static bool check_message(search_rank *self, const search_step *step, const void *data,
                          const coh_message *got)
{
    uint64_t seed = pattern(search_index_of(self, step), got->source);
    return search_must_be(self, got->bytes == step->amount, "the length of a message")
           && search_must_be(self, test_differs(data, step->amount, seed) == step->amount,
                             "the data of a message");
}

bool search_receive_one(search_rank *self, const search_step *step, int from)
{
    coh_message got;
    unsigned char *data = malloc(step->amount);
    coh_team *team = self->teams[team_of(step)];
    bool good =
        search_must(self,
                    coh_receive(team, from, tag_to_receive(self, step), data, step->amount, &got),
                    "receive")
        && check_message(self, step, data, &got);
    free(data);
    return good;
}

static bool send_to(search_rank *self, const search_step *step, int to)
{
    int index = search_index_of(self, step);
    if (search_is_fault(self, index, FAULT_NOT_SENT))
        return true;
    unsigned char *data = malloc(step->amount);
    test_fill(data, step->amount, pattern(index, self->rank));
    bool good = search_must(
        self, coh_send(self->teams[team_of(step)], to, search_tag(index), data, step->amount),
        "send");
    free(data);
    return good;
}

bool search_send_one(search_rank *self, const search_step *step)
{
    return send_to(self, step, step->to);
}

/* Started, since the neighbour may be sending as well. */
static bool shift_in_a_ring(search_rank *self, const search_step *step)
{
    int size = self->program->size, index = search_index_of(self, step);
    int left = (self->rank + size - 1) % size, right = (self->rank + 1) % size;
    coh_request *request = NULL;
    unsigned char *data = malloc(step->amount);
    test_fill(data, step->amount, pattern(index, self->rank));
    bool good = search_is_fault(self, index, FAULT_NOT_SENT)
                || search_must(self,
                               coh_send_start(self->teams[SEARCH_WORLD], right, search_tag(index),
                                              data, step->amount, &request),
                               "send_start");
    good = good && search_receive_one(self, step, step->any ? COH_ANY_RANK : left);
    coh_status status = request ? coh_request_wait(&request, NULL) : COH_OK;
    if (good)
        good = search_must(self, status, "wait for a send");
    free(data);
    return good;
}

static bool receive_from_all(search_rank *self, const search_step *step)
{
    for (int i = 0; i < self->program->size - 1; i++)
        if (!search_receive_one(self, step, COH_ANY_RANK))
            return false;
    return true;
}

/* Receives of all others at once, taken as they come. */
struct several {
    coh_request *requests[SEARCH_RANKS];
    unsigned char *data[SEARCH_RANKS];
    size_t count;
};

static bool start_several(search_rank *self, const search_step *step, struct several *several)
{
    for (int from = 0; from < self->program->size; from++) {
        if (from == self->rank)
            continue;
        size_t at = several->count++;
        several->data[at] = malloc(step->amount);
        if (!search_must(self,
                         coh_receive_start(self->teams[SEARCH_WORLD], from,
                                           tag_to_receive(self, step), several->data[at],
                                           step->amount, &several->requests[at]),
                         "receive_start"))
            return false;
    }
    return true;
}

static bool take_several(search_rank *self, const search_step *step, struct several *several)
{
    for (size_t i = 0; i < several->count; i++) {
        size_t index = several->count;
        coh_message got;
        if (!search_must(self,
                         coh_request_wait_any(several->requests, several->count, &index, &got),
                         "request_wait_any")
            || !check_message(self, step, several->data[index], &got))
            return false;
    }
    return true;
}

static bool receive_several(search_rank *self, const search_step *step)
{
    struct several several = {.count = 0};
    bool good = start_several(self, step, &several) && take_several(self, step, &several);
    for (size_t i = 0; i < several.count; i++) {
        if (several.requests[i])
            (void)coh_request_wait(&several.requests[i], NULL);
        free(several.data[i]);
    }
    return good;
}

bool search_message(search_rank *self, const search_step *step)
{
    bool receives = self->rank == step->to, sends = self->rank == step->from;
    switch (step->how) {
    case MESSAGE_RING:
        return shift_in_a_ring(self, step);
    case MESSAGE_ANY_RANK:
        return receives ? receive_from_all(self, step) : search_send_one(self, step);
    case MESSAGE_SEVERAL:
        return receives ? receive_several(self, step) : search_send_one(self, step);
    default:
        return (!sends || search_send_one(self, step))
               && (!receives
                   || search_receive_one(self, step, step->any ? COH_ANY_RANK : step->from))
               && (step->how != MESSAGE_ANY_TAG
                   || search_must(self, coh_team_sync(self->teams[SEARCH_TAGS]), "team_sync"));
    }
}

/* Looks again and again, computing between looks: busy as far as anybody can tell. */
bool search_poll(search_rank *self, const search_step *step)
{
    if (self->rank == step->from) {
        search_spend(step->any ? 1.5 * SEARCH_STALL_S : 0.1, false);
        return search_send_one(self, step);
    }
    coh_message message;
    for (int there = 0; self->rank == step->to && !there; sched_yield()) {
        if (!step->spins)
            test_sleep(0.001);
        if (!search_must(self,
                         coh_probe(self->teams[SEARCH_WORLD], step->from,
                                   search_tag(search_index_of(self, step)), &there, &message),
                         "probe"))
            return false;
    }
    return self->rank != step->to || search_receive_one(self, step, step->from);
}

/* All ranks, or the two of the step, receive before anybody sends. */
bool search_circle(search_rank *self, const search_step *step)
{
    int size = self->program->size, next = (self->rank + 1) % size;
    unsigned char byte;
    if (step->any && self->rank != step->to && self->rank != step->from)
        return true;
    if (step->any)
        next = self->rank == step->to ? step->from : step->to;
    return search_must(self,
                       coh_receive(self->teams[SEARCH_WORLD], next,
                                   search_tag(search_index_of(self, step)), &byte, 1, NULL),
                       "receive in a circle")
           && search_must_be(self, false, "a message came that nobody sent");
}
