/*
 * The relay: receive the next micro-batch and send the last one while this one is computed.
 *
 * Buffers are used in turn, so micro-batch i lies in buffer i mod 2 on both sides. A trailer goes
 * behind it. A stage that fails still takes what it is sent, and passes on the trailer alone, which
 * says who failed; so nobody waits for it, and the length of a message says what it is.
 */
#include "base/clock.h"
#include "device/failure.h"

#include <cohort-graph.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 2, TAGS = COH_TAG_MAX - COH_RELAY_TAG + 1 };

/* Where a run failed first: a member of the team, at a micro-batch. */
typedef struct trailer {
    int32_t stage;
    int32_t index;
    int32_t status; /* COH_OK: nowhere */
} trailer;

struct coh_relay {
    coh_team *team;
    uint64_t bytes;
    char *in[BUFFERS], *out[BUFFERS];
    coh_request *receives[BUFFERS], *sends[BUFFERS];
    unsigned runs; /* so far: each has a tag of its own, so that none takes what another left */
    uint64_t waited_ns;
};

/* One run. */
typedef struct lap {
    coh_relay *relay;
    int own, before, after; /* members; the others may be -1 */
    int tag;
    int count;
    uint64_t bytes;
    coh_relay_stage *stage;
    void *arg;
    trailer failure;   /* the first that this stage had or was told of */
    cohi_failure kept; /* and its error message */
} lap;

static bool make_buffers(char *buffers[BUFFERS], uint64_t bytes)
{
    enum { ALIGNMENT = 64 };
    uint64_t rounded = (bytes + sizeof(trailer) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    bool all = true;
    for (int i = 0; i < BUFFERS; i++) {
        buffers[i] = aligned_alloc(ALIGNMENT, rounded);
        all = all && buffers[i];
    }
    return all;
}

coh_status coh_relay_create(coh_team *team, uint64_t bytes, coh_relay **relay)
{
    if (!relay || coh_team_size(team) < 1 || bytes == 0 || bytes > (uint64_t)INT64_MAX / 2)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_relay_create: a team, a length and a place for the relay are needed");
    coh_relay *made = calloc(1, sizeof *made);
    if (!made || !make_buffers(made->in, bytes) || !make_buffers(made->out, bytes)) {
        coh_relay_destroy(made);
        return coh_fail(COH_NO_MEMORY, "coh_relay_create: no memory for 4 buffers of %llu bytes",
                        (unsigned long long)bytes);
    }
    made->team = team;
    made->bytes = bytes;
    *relay = made;
    return COH_OK;
}

/* A wait that is refused leaves its request alive; the buffer is the message's until that ends. */
static bool is_under_way(coh_request **request)
{
    int done;
    if (*request)
        (void)coh_request_test(request, &done, NULL);
    return *request != NULL;
}

/* What a message may still be written to, or read from, is not freed: nobody could tell when. */
void coh_relay_destroy(coh_relay *relay)
{
    if (!relay)
        return;
    for (int i = 0; i < BUFFERS; i++) {
        if (!is_under_way(&relay->receives[i]))
            free(relay->in[i]);
        if (!is_under_way(&relay->sends[i]))
            free(relay->out[i]);
    }
    free(relay);
}

uint64_t coh_relay_waited(const coh_relay *relay)
{
    return relay ? relay->waited_ns : 0;
}

/* ---- failures ---- */

/* A failure of this stage: the calling thread's last error. */
static void note(lap *run, int index, coh_status status)
{
    if (status == COH_OK || run->failure.status != COH_OK)
        return;
    run->failure = (trailer){run->own, index, (int32_t)status};
    cohi_failure_keep(&run->kept, status);
}

/* A failure of a stage before. */
static void learn(lap *run, const trailer *told)
{
    if (run->failure.status != COH_OK)
        return;
    run->failure = *told;
    run->kept.status = (coh_status)told->status;
    snprintf(run->kept.text, sizeof run->kept.text,
             "coh_relay_run: stage %d, rank %d, failed at micro-batch %d: %s", told->stage,
             coh_team_rank(run->relay->team, told->stage), told->index,
             coh_status_text((coh_status)told->status));
}

/* ---- messages ---- */

static void start_receive(lap *run, int index)
{
    coh_relay *relay = run->relay;
    coh_request **request = &relay->receives[index % BUFFERS];
    if (run->before < 0 || index >= run->count || *request)
        return;
    note(run, index,
         coh_receive_start(relay->team, run->before, run->tag, relay->in[index % BUFFERS],
                           relay->bytes + sizeof(trailer), request));
}

/* What came is the micro-batch with a trailer, or a trailer that tells of a failure. */
static void judge(lap *run, int index, size_t bytes)
{
    trailer told;
    if (bytes == run->bytes + sizeof told)
        return;
    memcpy(&told, run->relay->in[index % BUFFERS], sizeof told);
    if (bytes == sizeof told && told.status != COH_OK)
        learn(run, &told);
    else
        note(run, index,
             coh_fail(COH_LENGTH_MISMATCH,
                      "coh_relay_run: micro-batch %d comes in a message of %zu bytes, not %llu",
                      index, bytes, (unsigned long long)(run->bytes + sizeof told)));
}

static void finish_receive(lap *run, int index)
{
    coh_request **request = &run->relay->receives[index % BUFFERS];
    coh_message got;
    if (!*request)
        return;
    coh_status status = coh_request_wait(request, &got);
    if (status == COH_OK)
        judge(run, index, got.bytes);
    else
        note(run, index, status);
}

static void finish_send(lap *run, int index)
{
    coh_request **request = index < 0 ? NULL : &run->relay->sends[index % BUFFERS];
    if (request && *request)
        note(run, index, coh_request_wait(request, NULL));
}

static void start_send(lap *run, int index)
{
    coh_relay *relay = run->relay;
    char *out = relay->out[index % BUFFERS];
    coh_request **request = &relay->sends[index % BUFFERS];
    if (run->after < 0 || *request)
        return;
    uint64_t bytes = run->failure.status == COH_OK ? run->bytes : 0;
    memcpy(out + bytes, &run->failure, sizeof run->failure);
    note(run, index,
         coh_send_start(relay->team, run->after, run->tag, out, bytes + sizeof run->failure,
                        request));
}

/* ---- runs ---- */

static void compute(lap *run, int index)
{
    coh_relay *relay = run->relay;
    if (run->failure.status != COH_OK)
        return;
    coh_fail(COH_OK, "%s", ""); /* a stage that gives no reason is not told with an older one */
    note(run, index,
         run->stage(run->arg, index, run->before < 0 ? NULL : relay->in[index % BUFFERS],
                    run->after < 0 ? NULL : relay->out[index % BUFFERS]));
}

static coh_status check_run(coh_relay *relay, int count, uint64_t bytes, coh_relay_stage *stage)
{
    if (!relay || !stage || count < 0 || bytes == 0)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_relay_run: a relay, a stage, micro-batches and their length are "
                        "needed");
    if (bytes > relay->bytes)
        return coh_fail(COH_LENGTH_MISMATCH,
                        "coh_relay_run: %llu bytes are more than the %llu that it was made for",
                        (unsigned long long)bytes, (unsigned long long)relay->bytes);
    for (int i = 0; i < BUFFERS; i++)
        if (is_under_way(&relay->receives[i]) || is_under_way(&relay->sends[i]))
            return coh_fail(COH_BUSY,
                            "coh_relay_run: a message of a run that failed is still under way");
    return COH_OK;
}

/* The next tag: all members count alike. */
static lap begin(coh_relay *relay, int count, uint64_t bytes, coh_relay_stage *stage, void *arg)
{
    int own = coh_team_index(relay->team), last = coh_team_size(relay->team) - 1;
    return (lap){.relay = relay,
                 .own = own,
                 .before = own - 1,
                 .after = own < last ? own + 1 : -1,
                 .tag = COH_RELAY_TAG + (int)(relay->runs++ % TAGS),
                 .count = count,
                 .bytes = bytes,
                 .stage = stage,
                 .arg = arg};
}

coh_status coh_relay_run(coh_relay *relay, int count, uint64_t bytes, coh_relay_stage *stage,
                         void *arg)
{
    coh_status status = check_run(relay, count, bytes, stage);
    if (status != COH_OK)
        return status;
    lap run = begin(relay, count, bytes, stage, arg);
    start_receive(&run, 0);
    for (int i = 0; i < count; i++) {
        uint64_t begun = cohi_now_ns();
        start_receive(&run, i + 1);
        finish_receive(&run, i);
        finish_send(&run, i - BUFFERS);
        relay->waited_ns += cohi_now_ns() - begun;
        compute(&run, i);
        start_send(&run, i);
    }
    uint64_t begun = cohi_now_ns();
    finish_send(&run, count - 2);
    finish_send(&run, count - 1);
    relay->waited_ns += cohi_now_ns() - begun;
    return cohi_failure_again(&run.kept);
}
