/*
 * The relay: receive the next micro-batch and send the last one while this one is computed.
 *
 * Buffers are used in turn, so micro-batch i lies in buffer i mod 2 on both sides. A stage that
 * fails still takes what it is sent and passes on empty messages, so that nobody waits for it.
 */
#include "base/clock.h"

#include <cohort-graph.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BUFFERS = 2, TAG = 0x3e1a };

struct coh_relay {
    coh_team *team;
    uint64_t bytes;
    char *in[BUFFERS], *out[BUFFERS];
    coh_request *receives[BUFFERS], *sends[BUFFERS];
    uint64_t waited_ns;
};

/* One run. */
typedef struct lap {
    coh_relay *relay;
    int before, after; /* members, or -1 */
    int count;
    uint64_t bytes;
    coh_relay_stage *stage;
    void *arg;
    coh_status status; /* the first failure */
} lap;

static bool make_buffers(char *buffers[BUFFERS], uint64_t bytes)
{
    enum { ALIGNMENT = 64 };
    uint64_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
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

void coh_relay_destroy(coh_relay *relay)
{
    if (!relay)
        return;
    for (int i = 0; i < BUFFERS; i++) {
        free(relay->in[i]);
        free(relay->out[i]);
    }
    free(relay);
}

uint64_t coh_relay_waited(const coh_relay *relay)
{
    return relay ? relay->waited_ns : 0;
}

static void note(lap *run, coh_status status)
{
    if (run->status == COH_OK)
        run->status = status;
}

static void start_receive(lap *run, int index)
{
    coh_relay *relay = run->relay;
    if (run->before < 0 || index >= run->count)
        return;
    note(run, coh_receive_start(relay->team, run->before, TAG, relay->in[index % BUFFERS],
                                run->bytes, &relay->receives[index % BUFFERS]));
}

/* An empty message is the failure of a stage before. */
static void finish_receive(lap *run, int index)
{
    coh_request **request = &run->relay->receives[index % BUFFERS];
    coh_message got = {0, 0, run->bytes};
    if (!*request)
        return;
    note(run, coh_request_wait(request, &got));
    if (run->status == COH_OK && got.bytes != run->bytes)
        note(run, got.bytes == 0 ? coh_fail(COH_PEER_LOST,
                                            "coh_relay_run: micro-batch %d failed at a stage "
                                            "before",
                                            index)
                                 : coh_fail(COH_LENGTH_MISMATCH,
                                            "coh_relay_run: micro-batch %d has %zu bytes, not %llu",
                                            index, got.bytes, (unsigned long long)run->bytes));
}

static void finish_send(lap *run, int index)
{
    coh_request **request = index < 0 ? NULL : &run->relay->sends[index % BUFFERS];
    if (request && *request)
        note(run, coh_request_wait(request, NULL));
}

static void start_send(lap *run, int index)
{
    coh_relay *relay = run->relay;
    if (run->after < 0)
        return;
    coh_status status =
        coh_send_start(relay->team, run->after, TAG, relay->out[index % BUFFERS],
                       run->status == COH_OK ? run->bytes : 0, &relay->sends[index % BUFFERS]);
    note(run, status);
}

static void compute(lap *run, int index)
{
    coh_relay *relay = run->relay;
    if (run->status == COH_OK)
        note(run, run->stage(run->arg, index, run->before < 0 ? NULL : relay->in[index % BUFFERS],
                             run->after < 0 ? NULL : relay->out[index % BUFFERS]));
}

static coh_status check_run(const coh_relay *relay, int count, uint64_t bytes,
                            coh_relay_stage *stage)
{
    if (!relay || !stage || count < 0 || bytes == 0)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "coh_relay_run: a relay, a stage, micro-batches and their length are "
                        "needed");
    if (bytes > relay->bytes)
        return coh_fail(COH_LENGTH_MISMATCH,
                        "coh_relay_run: %llu bytes are more than the %llu that it was made for",
                        (unsigned long long)bytes, (unsigned long long)relay->bytes);
    return COH_OK;
}

coh_status coh_relay_run(coh_relay *relay, int count, uint64_t bytes, coh_relay_stage *stage,
                         void *arg)
{
    coh_status status = check_run(relay, count, bytes, stage);
    if (status != COH_OK)
        return status;
    int index = coh_team_index(relay->team), last = coh_team_size(relay->team) - 1;
    lap run = {relay, index - 1, index < last ? index + 1 : -1, count, bytes, stage, arg, COH_OK};
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
    return run.status;
}
