/* Waiting for a message without taking it, and for all of several requests. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT = 40, LONG = 100000 };

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

/* The length is learnt first, then there is room for exactly that. */
static bool take_probed(coh_team *team, const coh_message *next, uint64_t seed)
{
    coh_message got;
    unsigned char *data = malloc(next->bytes + 1);
    bool good = CHECK_OK(coh_receive(team, next->source, next->tag, data, next->bytes, &got))
                && CHECK_EQ(got.bytes, next->bytes)
                && CHECK_EQ(test_differs(data, got.bytes, seed), got.bytes);
    free(data);
    return good;
}

static void probe_waits_for_a_message(test_rank *self)
{
    static const size_t lengths[] = {SHORT, 0, LONG};
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < 6 && !test_failed(); i++) {
        size_t bytes = lengths[i % 3];
        unsigned char *data = malloc(bytes + 1);
        coh_message next = {-5, -5, 5};
        coh_request *request;
        bool any = i >= 3;
        test_fill(data, bytes, (uint64_t)(self->rank * 10 + i));
        if (self->rank % 2 == 1)
            test_sleep(0.02); /* its neighbour waits */
        if (CHECK_OK(coh_send_start(team, right_of(self), i, data, bytes, &request))
            && CHECK_OK(coh_probe_wait(team, any ? COH_ANY_RANK : left_of(self),
                                       any ? COH_ANY_TAG : i, &next))
            && CHECK_EQ(next.source, left_of(self)) && CHECK_EQ(next.tag, i)
            && CHECK_EQ(next.bytes, bytes)
            && take_probed(team, &next, (uint64_t)(left_of(self) * 10 + i)))
            CHECK_OK(coh_request_wait(&request, NULL));
        free(data);
        CHECK_OK(coh_sync(self->world)); /* any tag is this round's */
    }
}

static void probe_wait_arguments(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_message next;
    CHECK_REFUSED(coh_probe_wait(team, 0, 0, NULL), COH_INVALID_ARGUMENT, "message is NULL");
    CHECK_REFUSED(coh_probe_wait(team, self->size, 0, &next), COH_UNKNOWN_RANK, "coh_probe_wait");
    CHECK_REFUSED(coh_probe_wait(team, 0, -7, &next), COH_INVALID_ARGUMENT, "-7");
    CHECK_STATUS(coh_probe_wait(NULL, 0, 0, &next), COH_INVALID_ARGUMENT);
}

/* Nobody can send it: as for a receive, the wait ends. */
static void probe_for_what_cannot_come(test_rank *self)
{
    coh_message next;
    CHECK_REFUSED(coh_probe_wait(coh_team_world(self->world), self->rank, 3, &next), COH_STALLED,
                  "coh_probe_wait");
}

/* The message that does not fit tells its length, and can then be taken. */
static void length_of_what_does_not_fit(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < 2; i++) {
        size_t bytes = i ? LONG : SHORT;
        unsigned char *data = malloc(bytes), small[4];
        coh_message got = {-5, -5, 5};
        coh_request *request, *early;
        test_fill(data, bytes, 77);
        CHECK_OK(coh_receive_start(team, left_of(self), 8, small, sizeof small, &early));
        CHECK_OK(coh_send_start(team, right_of(self), 8, data, bytes, &request));
        CHECK_STATUS(coh_request_wait(&early, &got), COH_LENGTH_MISMATCH);
        CHECK(got.source == left_of(self) && got.tag == 8 && got.bytes == bytes);
        got = (coh_message){-5, -5, 5};
        CHECK_STATUS(coh_receive(team, left_of(self), 8, small, sizeof small, &got),
                     COH_LENGTH_MISMATCH);
        if (CHECK(got.source == left_of(self) && got.tag == 8 && got.bytes == bytes))
            take_probed(team, &got, 77);
        CHECK_OK(coh_request_wait(&request, NULL));
        free(data);
    }
}

/* ---- all of several requests ---- */

static void all_requests(test_rank *self)
{
    enum { MESSAGES = 5, ALL = 2 * MESSAGES + 2 };
    coh_team *team = coh_team_world(self->world);
    int64_t out[MESSAGES], in[MESSAGES] = {0}, one = 1, sum = 0;
    coh_request *requests[ALL] = {NULL};
    coh_message got[ALL];
    for (int i = 0; i < MESSAGES; i++) {
        out[i] = self->rank * 100 + i;
        CHECK_OK(coh_receive_start(team, left_of(self), i, &in[i], sizeof in[i], &requests[i]));
    }
    CHECK_OK(coh_all_reduce_start(team, COH_I64, COH_SUM, &one, &sum, 1, &requests[MESSAGES]));
    for (int i = 0; i < MESSAGES; i++)
        CHECK_OK(coh_send_start(team, right_of(self), i, &out[i], sizeof out[i],
                                &requests[MESSAGES + 1 + i]));
    CHECK_OK(coh_request_wait_all(requests, ALL, got));
    for (int i = 0; i < ALL; i++)
        CHECK(requests[i] == NULL);
    for (int i = 0; i < MESSAGES; i++)
        CHECK(in[i] == left_of(self) * 100 + i && got[i].tag == i && got[i].bytes == sizeof in[i]);
    CHECK_EQ(sum, self->size);
}

/* One fails: the others are done all the same, and the error is the first's. */
static void all_requests_but_two(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int64_t out = self->rank, in[4] = {-1, -1, -1, -1};
    size_t room[4] = {sizeof out, 3, sizeof out, 5};
    coh_request *requests[4];
    coh_error facts = {.size = sizeof facts};
    for (int i = 0; i < 4; i++)
        CHECK_OK(coh_receive_start(team, left_of(self), i, &in[i], room[i], &requests[i]));
    CHECK_OK(coh_barrier(self->world));
    for (int i = 0; i < 4; i++)
        CHECK_OK(coh_send(team, right_of(self), i, &out, sizeof out));
    CHECK_REFUSED(coh_request_wait_all(requests, 4, NULL), COH_LENGTH_MISMATCH,
                  "coh_request_wait_all|tag 1|8 bytes|room is 3");
    CHECK_OK(coh_last_error_facts(&facts));
    CHECK(facts.status == COH_LENGTH_MISMATCH && facts.length == 8 && facts.limit == 3);
    CHECK(in[0] == left_of(self) && in[2] == left_of(self));
    for (int i = 0; i < 4; i++)
        CHECK(requests[i] == NULL);
}

const test_case conform_probes[] = {
    CASE(probe_waits_for_a_message, "S43", ON_ALL, ANY_SIZE),
    CASE(probe_wait_arguments, "F17", ON_ALL, SIZE(1) | SIZE(3)),
    CASE(probe_for_what_cannot_come, "F17", ON_MAPPED | ON_TCP, SIZE(1) | SIZE(3),
         .environment = "COHORT_STALL=1"),
    CASE(length_of_what_does_not_fit, "S44", ON_ALL, ANY_SIZE),
    CASE(all_requests, "S43", ON_ALL, ANY_SIZE),
    CASE(all_requests_but_two, "S44", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(probes);
