#include "coll/mapped/fetch.h"

#include "base/os.h"
#include "coll/call/blocks.h"
#include "coll/mapped/buffers.h"
#include "core/team/team.h"
#include "core/health/verdict.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(cohi_posted_place) <= COHI_POST_BYTES, "a place fits a post");
_Static_assert(sizeof(cohi_posted_place) <= COHI_OS_TOKEN_MAX, "a place can be looked for");

/* ---- whether it can be done ---- */

static pid_t pid_of(const cohi_call *call, int index)
{
    return call->team->world->peers[call->team->ranks[index]].pid;
}

static cohi_fetching look(const cohi_call *call)
{
    if (call->team->world->crew)
        return COHI_FETCH_CANNOT;
    for (int i = 0; i < call->team->size; i++) {
        const cohi_posted_place *theirs = cohi_post_data(call, i);
        if (i != call->team->index
            && !cohi_os_process_holds(pid_of(call, i), theirs->self_at, theirs, sizeof *theirs))
            return COHI_FETCH_CANNOT;
    }
    return COHI_FETCH_CAN;
}

bool cohi_fetch_agreed(cohi_call *call)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    bool agreed = true;
    for (int i = 0; i < call->team->size; i++) {
        const cohi_posted_place *place = cohi_post_data(call, i);
        agreed = agreed && place->fetching == COHI_FETCH_CAN;
    }
    if (gear->fetching == COHI_FETCH_UNKNOWN)
        gear->fetching = look(call);
    return agreed;
}

/* ---- reading and writing ---- */

/* What became of a copy. A process whose memory is gone has ended; the rest is memory that its
 * program cannot use either. */
static coh_status outcome(cohi_call *call, int index, uint64_t there, size_t bytes, int error)
{
    const coh_team *team = call->team;
    int rank = team->ranks[index];
    if (error == 0)
        return COH_OK;
    if (error == ESRCH)
        return cohi_verdict_presume(team->world, call->name, rank, COHI_LOSS_ENDED);
    cohi_post_break(call, index);
    return cohi_world_fail(team->world, call->name, COH_INVALID_ARGUMENT,
                           "%zu bytes at %#llx of rank %d cannot be reached: %s", bytes,
                           (unsigned long long)there, rank, strerror(error));
}

static coh_status fetch(cohi_call *call, int from, void *here, uint64_t there, size_t bytes)
{
    return outcome(call, from, there, bytes,
                   cohi_os_process_read(pid_of(call, from), here, there, bytes));
}

static coh_status hand(cohi_call *call, int to, const void *here, uint64_t there, size_t bytes)
{
    return outcome(call, to, there, bytes,
                   cohi_os_process_write(pid_of(call, to), here, there, bytes));
}

/* ---- all_reduce ---- */

/*
 * Bytes that are reduced at a time. What others have of them is read to this member's staging
 * area, one after the other. 2 ranks, us for 256 KiB and 4 MiB: 32 KiB at a time 40 and 955, 64
 * KiB 24 and 711, 128 KiB 20 and 661, 256 KiB 19 and 573.
 */
enum { ROOM = sizeof((cohi_staging *)0)->in + sizeof((cohi_staging *)0)->out };

static size_t chunk_most(const cohi_call *call)
{
    size_t most = ROOM / (size_t)call->team->size / COHI_CACHE_LINE * COHI_CACHE_LINE;
    size_t chunk = cohi_call_bytes(call, COHI_ROW_fetch_chunk);
    return (most < chunk ? most : chunk) / call->element;
}

/* The chunk as all members have it, in gear->sources. */
static coh_status fetch_chunk(cohi_call *call, size_t at, size_t bytes)
{
    coh_team *team = call->team;
    const void **sources = cohi_team_gear(team)->sources;
    char *room = (char *)cohi_call_staging(call, team->index)->in[0];
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++) {
        const cohi_posted_place *place = cohi_post_data(call, i);
        char *here = room + (size_t)i * chunk_most(call) * call->element;
        sources[i] = i == team->index ? call->source + at : here;
        if (i != team->index)
            status = fetch(call, i, here, place->source_at + at, bytes);
    }
    return status;
}

static coh_status hand_to_all(cohi_call *call, size_t at, size_t bytes)
{
    coh_team *team = call->team;
    coh_status status = COH_OK;
    for (int step = 1; step < team->size && status == COH_OK; step++) {
        int to = (team->index + step) % team->size;
        const cohi_posted_place *place = cohi_post_data(call, to);
        status = hand(call, to, call->target + at, place->target_at + at, bytes);
    }
    return status;
}

static coh_status reduce_chunk(cohi_call *call, cohi_span chunk)
{
    cohi_coll_gear *gear = cohi_team_gear(call->team);
    size_t at = chunk.first * call->element, bytes = chunk.count * call->element;
    coh_status status = fetch_chunk(call, at, bytes);
    if (status != COH_OK)
        return status;
    cohi_reduction how = cohi_call_reduction(call);
    gear->targets[0] = call->target + at;
    cohi_reduce(&how, gear->targets, 1, gear->sources, call->team->size, chunk.count);
    return hand_to_all(call, at, bytes);
}

/* Each member reduces its share for all. In place too: what it overwrites nobody else needs. */
coh_status cohi_fetch_all_reduce(cohi_call *call)
{
    cohi_span share = cohi_share(call, call->count, call->team->index);
    size_t most = chunk_most(call), end = share.first + share.count;
    coh_status status = COH_OK;
    for (size_t first = share.first; first < end && status == COH_OK; first += most) {
        status = reduce_chunk(call, (cohi_span){first, end - first < most ? end - first : most});
        cohi_call_beat(call);
    }
    return status == COH_OK ? cohi_count_leave(call) : status;
}
