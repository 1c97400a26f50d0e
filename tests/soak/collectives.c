#include "soak.h"

#include "collectives/calls.h"

#include <stdlib.h>

enum { MOST = 3000, SHORT = 60 };

/* One blocking call of a phase, and one that was started in this phase or the one before. */
struct soak_collectives {
    call_rig rig, pending;
    test_call started; /* what is under way in `pending`, while its request is not NULL */
};

static size_t room_of(int members)
{
    test_call largest = {.kind = CALL_ALL_TO_ALL_V, .dtype = COH_F64, .count = MOST};
    return call_bytes(&largest, members);
}

soak_collectives *soak_collectives_open(soak_run *run)
{
    soak_collectives *collectives = calloc(1, sizeof *collectives);
    if (!collectives || !call_rig_open(&collectives->rig, run->world, room_of(run->size))
        || !call_rig_open(&collectives->pending, run->world, room_of(run->size)))
        soak_fail(run, "no memory for collectives: %s", coh_last_error());
    return collectives;
}

static void check(const soak_run *run, const call_rig *rig, const test_call *call)
{
    char text[256];
    if (!call_check(rig, call))
        soak_fail(run, "%s brought other bytes", call_text(call, text));
}

static void finish(soak_run *run, soak_collectives *collectives)
{
    if (!collectives->pending.request)
        return;
    soak_must(run, coh_request_wait(&collectives->pending.request, NULL), "request_wait");
    check(run, &collectives->pending, &collectives->started);
}

void soak_collectives_close(soak_run *run, soak_collectives *collectives)
{
    finish(run, collectives);
    call_rig_close(&collectives->pending);
    call_rig_close(&collectives->rig);
    free(collectives);
}

static test_call draw_call(uint64_t *random, int members)
{
    static const coh_dtype dtypes[] = {COH_F32, COH_F64,  COH_I32,  COH_U64, COH_U8,
                                       COH_F16, COH_BF16, COH_BOOL, COH_I16, COH_F8E4M3};
    static const coh_reduce_op ops[] = {COH_SUM, COH_PRODUCT, COH_MIN, COH_MAX};
    uint64_t draw = test_random(random);
    test_call call = {.kind = (call_kind)(draw % CALL_KIND_COUNT),
                      .dtype = dtypes[(draw >> 8) % 10],
                      .op = ops[(draw >> 16) % 4],
                      .root = (int)((draw >> 20) % (uint64_t)members),
                      .parts = (call_parts)((draw >> 28) % PARTS_COUNT),
                      .place = (call_place)((draw >> 32) % PLACE_COUNT),
                      .in_place = draw >> 36 & 1,
                      .shifted = draw >> 37 & 1,
                      .seed = test_random(random)};
    call.count = (size_t)(draw >> 40) % ((draw >> 38) % 4 ? SHORT : MOST);
    return call;
}

static void perform(soak_run *run, call_rig *rig, coh_team *team, const test_call *call)
{
    call_prepare(rig, team, call);
    soak_must(run, call_make(rig, team, call), call_table[call->kind].name);
    if (!call->started)
        check(run, rig, call);
    run->operations++;
}

/* All draw the same, whether they are in the team or not. A request may outlive its team. */
void soak_collectives_phase(soak_run *run, soak_collectives *collectives, coh_team *team,
                            int members)
{
    uint64_t random = soak_stream(run, "collectives", -1);
    test_call call = draw_call(&random, members), started = draw_call(&random, members);
    bool starts = test_random(&random) % 2;
    started.started = true;
    finish(run, collectives);
    if (!team)
        return;
    if (starts) {
        collectives->started = started;
        perform(run, &collectives->pending, team, &started);
    }
    perform(run, &collectives->rig, team, &call);
}
