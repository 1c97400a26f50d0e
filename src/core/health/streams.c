#include "core/health/streams.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/health/far.h"
#include "core/health/peer.h"
#include "core/health/verdict.h"
#include "engine/stream.h"

/* Once for each wait: at the first look when it is due. */
static void warn(const coh_world *world, const cohi_stream_wait *wait, uint64_t before,
                 uint64_t now)
{
    uint64_t at = wait->since_ns + world->warn_ns;
    if (world->warn_ns > 0 && before < at && at <= now)
        cohi_log(COH_LOG_WARN, "rank %d: a stream has waited for rank %d for %.1f s", world->rank,
                 wait->rank, (double)world->warn_ns / (double)COHI_NS_PER_S);
}

/* How long the rank has been seen stopped while the stream waited. A look counts for no more than it is apart from the
 * last one as a rule: this process may have been stopped itself. */
static uint64_t stopped_for(coh_world *world, int rank, uint64_t step)
{
    const uint64_t most = 500 * COHI_NS_PER_MS;
    uint64_t *stopped_ns = &cohi_world_device(world)->stopped_ns[rank];
    bool stopped = cohi_peer_is_stopped(world, rank);
    *stopped_ns = stopped ? *stopped_ns + (step < most ? step : most) : 0;
    return *stopped_ns;
}

static void judge(coh_world *world, const cohi_stream_wait *wait, uint64_t before, uint64_t now)
{
    uint64_t from = before > wait->since_ns ? before : wait->since_ns;
    if (world->stall_ns == 0 || cohi_verdict_on(world, wait->rank) != COHI_VERDICT_NONE
        || stopped_for(world, wait->rank, now - from) < world->stall_ns)
        return;
    unsigned op = cohi_far(world, wait->rank)
                      ? cohi_board_read(world->board, wait->rank).op
                      : atomic_load(&cohi_board_slot(world->board, wait->rank)->op);
    cohi_verdict_pass(world, wait->rank, cohi_verdict(COHI_VERDICT_STOPPED, 0, (int)op));
    cohi_verdict_let_go(world);
}

static bool is_among(const cohi_stream_wait *waits, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (waits[i].rank == rank)
            return true;
    return false;
}

void cohi_streams_look(coh_world *world)
{
    cohi_device *device = cohi_world_device(world);
    const cohi_engine_stream *stream = device ? device->server.engine->stream : NULL;
    if (!stream || !stream->waits)
        return;
    cohi_stream_wait waits[COHI_STREAM_WAITS];
    uint64_t now = cohi_now_ns(), before = device->looked_ns;
    int count = stream->waits(device->server.endpoint, now, waits);
    for (int i = 0; i < count; i++) {
        warn(world, &waits[i], before, now);
        if (!is_among(waits, i, waits[i].rank)) /* a look counts once for each rank */
            judge(world, &waits[i], before, now);
    }
    device->looked_ns = now;
}
