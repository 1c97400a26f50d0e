#include "engine/tcp/tcp.h"

char *cohi_tcp_locate(const cohi_endpoint *endpoint, const cohi_tcp_head *head, uint64_t offset,
                      uint64_t bytes, const char **wrong)
{
    cohi_remote at = {.segment = head->segment, .offset = offset};
    return cohi_segments_locate(&endpoint->segments, &at, head->generation, bytes, wrong);
}

static coh_status tcp_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    coh_status status = cohi_segments_add(&endpoint->segments, spec, base);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&endpoint->segments_lock);
    cohi_segments_note(&endpoint->segments, spec, *base);
    pthread_mutex_unlock(&endpoint->segments_lock);
    return COH_OK;
}

static coh_status tcp_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    return cohi_segments_commit(&endpoint->segments, id, from, to);
}

static void tcp_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_segments_decommit(&endpoint->segments, id, from, to);
}

static void tcp_segment_remove(cohi_endpoint *endpoint, int id)
{
    pthread_mutex_lock(&endpoint->segments_lock);
    cohi_segments_forget(&endpoint->segments, id);
    pthread_mutex_unlock(&endpoint->segments_lock);
    cohi_segments_remove(&endpoint->segments, id);
}

void cohi_tcp_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        tcp_segment_remove(endpoint, id);
}

static coh_status tcp_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    return cohi_segments_export(&endpoint->segments, id, key);
}

static coh_status tcp_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    return cohi_segments_attach(&endpoint->segments, id, rank, bytes, key);
}

static void *tcp_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    return cohi_segments_pointer(&endpoint->segments, id, rank);
}

const cohi_engine_memory cohi_tcp_memory = {
    .size = sizeof cohi_tcp_memory,
    .segment_add = tcp_segment_add,
    .segment_commit = tcp_segment_commit,
    .segment_decommit = tcp_segment_decommit,
    .segment_remove = tcp_segment_remove,
    .region_export = tcp_region_export,
    .region_attach = tcp_region_attach,
    .peer_pointer = tcp_peer_pointer,
};
