#include "engine/ucx/ucx.h"

#include "base/clock.h"

/* How long a segment that is to go waits for the transfers of others. */
#define REMOVE_NS COHI_NS_PER_S

char *cohi_ucx_locate(const cohi_endpoint *endpoint, const cohi_ucx_frame *frame, uint64_t offset,
                      uint64_t bytes, const char **wrong)
{
    cohi_remote at = {.segment = frame->segment, .offset = offset};
    return cohi_segments_locate(&endpoint->segments, &at, frame->generation, bytes, wrong);
}

static coh_status ucx_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    coh_status status = cohi_segments_add(&endpoint->segments, spec, base);
    if (status != COH_OK)
        return status;
    cohi_ucx_lock(endpoint);
    cohi_segments_note(&endpoint->segments, spec, *base);
    cohi_ucx_unlock(endpoint);
    return COH_OK;
}

static coh_status ucx_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return cohi_segments_commit(&endpoint->segments, id, from, to);
}

static void ucx_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_segments_decommit(&endpoint->segments, id, from, to);
}

static bool is_idle(cohi_endpoint *endpoint, const void *segment)
{
    (void)endpoint;
    return ((const cohi_segment *)segment)->busy == 0;
}

/* UCX may be moving bytes from or to it, for a rank that is stuck. That link ends: the memory goes. */
static void make_idle(cohi_endpoint *endpoint, const cohi_segment *segment)
{
    if (is_idle(endpoint, segment) || !endpoint->worker
        || cohi_ucx_step_until(endpoint, is_idle, segment, REMOVE_NS))
        return;
    for (int i = 0; i < endpoint->made_count; i++)
        if (endpoint->made[i]->landings > 0 || endpoint->made[i]->requests.first)
            cohi_ucx_link_end(endpoint->made[i], COHI_LOSS_LINK);
    (void)cohi_ucx_step_until(endpoint, is_idle, segment, REMOVE_NS);
}

static void ucx_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_ucx_lock(endpoint);
    endpoint->segments.rows[id].base = NULL;
    make_idle(endpoint, &endpoint->segments.rows[id]);
    cohi_segments_forget(&endpoint->segments, id);
    cohi_ucx_unlock(endpoint);
    cohi_segments_remove(&endpoint->segments, id);
}

void cohi_ucx_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        ucx_segment_remove(endpoint, id);
}

static coh_status ucx_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    return cohi_segments_export(&endpoint->segments, id, key);
}

static coh_status ucx_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    return cohi_segments_attach(&endpoint->segments, id, rank, bytes, key);
}

static void *ucx_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_segments_pointer(&endpoint->segments, id, rank);
}

const cohi_engine_memory cohi_ucx_memory = {
    .size = sizeof cohi_ucx_memory,
    .segment_add = ucx_segment_add,
    .segment_commit = ucx_segment_commit,
    .segment_decommit = ucx_segment_decommit,
    .segment_remove = ucx_segment_remove,
    .region_export = ucx_region_export,
    .region_attach = ucx_region_attach,
    .peer_pointer = ucx_peer_pointer,
};
