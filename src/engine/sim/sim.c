#include "engine/engine.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "memory/host_region.h"
#include "engine/sim/fabric.h"

#include <stdlib.h>
#include <string.h>

/* A sleeper looks again at least this often, whatever it was told: not all that core waits for
 * comes through the fabric. */
#define IDLE_NS COHI_NS_PER_MS

static void note_target(cohi_op *op, int rank)
{
    if (op)
        atomic_store_explicit(&op->waits_for, rank, memory_order_relaxed);
}

/* ---- lifecycle ---- */

static coh_status sim_probe(const cohi_need *need)
{
    if (need->in_process || need->size == 1)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "the simulator connects ranks of one process; these %d are processes of their "
                     "own (coh_init_threads makes ranks in one process)",
                     need->size);
}

static void sim_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    *facts = (cohi_engine_facts){.size = sizeof *facts, .detects_loss = 1};
    if (endpoint)
        facts->commits_whole = endpoint->fabric->script.commits_whole;
    if (endpoint && endpoint->fabric->script.hosts > 0)
        facts->pretended_host = cohi_fabric_host(endpoint->fabric, endpoint->rank) + 1;
}

static void sim_progress(cohi_endpoint *endpoint)
{
    cohi_turn_poll(endpoint, 0);
    cohi_turn_end(endpoint);
}

static void sim_idle(cohi_endpoint *endpoint, uint64_t timeout_ns)
{
    cohi_turn_poll(endpoint, cohi_now_ns() + (timeout_ns < IDLE_NS ? timeout_ns : IDLE_NS));
    cohi_turn_end(endpoint);
}

static coh_status sim_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_leave(endpoint, op);
    cohi_turn_end(endpoint);
    return status;
}

static void sim_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    pthread_mutex_lock(&endpoint->fabric->lock);
    cohi_flight_cancel(endpoint, op);
    cohi_fabric_tell(endpoint->fabric);
    pthread_mutex_unlock(&endpoint->fabric->lock);
}

static const cohi_engine_lifecycle lifecycle = {
    .size = sizeof lifecycle,
    .probe = sim_probe,
    .open = cohi_fabric_join,
    .leave = sim_leave,
    .close = cohi_fabric_leave,
    .query = sim_query,
    .cancel = sim_cancel,
    .progress = sim_progress,
    .idle = sim_idle,
};

/* ---- memory: not scheduled, since the thread that sets up a crew is none of its ranks ---- */

static coh_status sim_segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec,
                                  void **base)
{
    if (spec->kind != COHI_MEMORY_HOST)
        return cohi_fail(COH_UNSUPPORTED, "the simulator has host memory only, not kind %d",
                         (int)spec->kind);
    void *memory = spec->existing;
    if (!memory) {
        int error = cohi_os_map_private(spec->bytes, COHI_REGION_ALIGNMENT, &memory);
        if (error)
            return cohi_fail_os(error, "rank %d: cannot reserve %llu bytes for segment %d",
                                endpoint->rank, (unsigned long long)spec->bytes, spec->id);
        if (spec->huge_pages)
            cohi_os_advise_huge(memory, spec->bytes);
        if (endpoint->fabric->script.commits_whole)
            error = cohi_os_commit_private(memory, 0, spec->bytes);
        if (error) {
            cohi_os_unmap(memory, spec->bytes);
            return cohi_fail_os(error, "rank %d: cannot back %llu bytes of segment %d",
                                endpoint->rank, (unsigned long long)spec->bytes, spec->id);
        }
    }
    cohi_sim_segment *segment = &endpoint->segments[spec->id];
    pthread_mutex_lock(&endpoint->fabric->lock);
    segment->base = memory;
    segment->bytes = spec->bytes;
    segment->owned = !spec->existing;
    pthread_mutex_unlock(&endpoint->fabric->lock);
    *base = memory;
    return COH_OK;
}

static coh_status sim_segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    const cohi_sim_segment *segment = &endpoint->segments[id];
    if (endpoint->fabric->script.commits_whole)
        return cohi_fail(COH_TRANSPORT,
                         "rank %d: a part of segment %d is committed, which is backed",
                         endpoint->rank, id);
    int error = segment->owned ? cohi_os_commit_private(segment->base, from, to) : 0;
    if (!error)
        return COH_OK;
    return cohi_fail_os(error, "rank %d: cannot commit %llu bytes at %llu of segment %d",
                        endpoint->rank, (unsigned long long)(to - from), (unsigned long long)from,
                        id);
}

static void sim_segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    /* Core has no business here then; what it meant to give back it finds overwritten. */
    if (endpoint->fabric->script.commits_whole)
        memset(endpoint->segments[id].base + from, 0xdb, to - from);
    else if (endpoint->segments[id].owned)
        cohi_os_decommit_private(endpoint->segments[id].base, from, to);
}

static void sim_segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_sim_segment *segment = &endpoint->segments[id];
    pthread_mutex_lock(&endpoint->fabric->lock);
    cohi_sim_segment removed = *segment;
    *segment = (cohi_sim_segment){0};
    pthread_mutex_unlock(&endpoint->fabric->lock);
    free(removed.attached);
    if (removed.owned)
        cohi_os_unmap(removed.base, removed.bytes);
}

/* All that a key says; the memory itself is known to the fabric. */
struct identity {
    char engine[4];
    int32_t rank;
    int32_t segment;
};

static struct identity identify(int rank, int id)
{
    return (struct identity){.engine = "sim", .rank = rank, .segment = id};
}

static coh_status sim_region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    struct identity identity = identify(endpoint->rank, id);
    *key = (cohi_region_key){.fd = -1};
    memcpy(key->bytes, &identity, sizeof identity);
    return COH_OK;
}

static coh_status sim_region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                    cohi_region_key *key)
{
    struct identity identity = identify(rank, id);
    if (memcmp(key->bytes, &identity, sizeof identity) != 0)
        return cohi_fail(COH_TRANSPORT,
                         "rank %d: the key given for segment %d of rank %d is not its key",
                         endpoint->rank, id, rank);
    cohi_fabric *fabric = endpoint->fabric;
    cohi_sim_segment *segment = &endpoint->segments[id];
    coh_status status = COH_OK;
    pthread_mutex_lock(&fabric->lock);
    if (!segment->attached)
        segment->attached = calloc((size_t)fabric->size, sizeof *segment->attached);
    if (segment->attached)
        segment->attached[rank] = bytes;
    else
        status = cohi_fail(COH_NO_MEMORY, "rank %d: no memory to attach segment %d of %d ranks",
                           endpoint->rank, id, fabric->size);
    pthread_mutex_unlock(&fabric->lock);
    return status;
}

static void *sim_peer_pointer(cohi_endpoint *endpoint, int id, int rank)
{
    const cohi_fabric *fabric = endpoint->fabric;
    if (fabric->script.hosts == 0 || !cohi_fabric_neighbors(fabric, endpoint->rank, rank))
        return NULL;
    return fabric->endpoints[rank] ? fabric->endpoints[rank]->segments[id].base : NULL;
}

static const cohi_engine_memory memory_group = {
    .size = sizeof memory_group,
    .segment_add = sim_segment_add,
    .segment_commit = sim_segment_commit,
    .segment_decommit = sim_segment_decommit,
    .segment_remove = sim_segment_remove,
    .region_export = sim_region_export,
    .region_attach = sim_region_attach,
    .peer_pointer = sim_peer_pointer,
};

/* ---- rma ---- */

static coh_status sim_context_open(cohi_endpoint *endpoint, unsigned context)
{
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_open(endpoint, context);
    cohi_turn_end(endpoint);
    return status;
}

static void sim_context_close(cohi_endpoint *endpoint, unsigned context)
{
    if (cohi_turn_call(endpoint) == COH_OK)
        cohi_flight_close(endpoint, context);
    cohi_turn_end(endpoint);
}

static coh_status sim_put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                          cohi_op *op)
{
    note_target(op, to.rank);
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_put(endpoint, to, source, bytes, 0, NULL, op);
    cohi_turn_end(endpoint);
    return status;
}

static coh_status sim_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                          cohi_op *op)
{
    note_target(op, from.rank);
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_get(endpoint, from, target, bytes, op);
    cohi_turn_end(endpoint);
    return status;
}

static coh_status sim_put_signal(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                                 size_t bytes, const cohi_remote_signal *signal, cohi_op *op)
{
    cohi_word_call word = {.kind = signal->add ? COH_ATOMIC_ADD : COH_ATOMIC_SET,
                           .dtype = COH_U64,
                           .operand = signal->value};
    note_target(op, to.rank);
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_put(endpoint, to, source, bytes, signal->offset, &word, op);
    cohi_turn_end(endpoint);
    return status;
}

static coh_status sim_fence(cohi_endpoint *endpoint, unsigned context)
{
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        cohi_flight_fence(endpoint, context);
    cohi_turn_end(endpoint);
    return status;
}

static coh_status sim_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_quiet(endpoint, context, op);
    cohi_turn_end(endpoint);
    return status;
}

static const cohi_engine_rma rma_group = {
    .size = sizeof rma_group,
    .context_open = sim_context_open,
    .context_close = sim_context_close,
    .put = sim_put,
    .get = sim_get,
    .put_signal = sim_put_signal,
    .fence = sim_fence,
    .quiet = sim_quiet,
};

/* ---- atomic ---- */

static uint64_t read_value(coh_dtype dtype, const void *value)
{
    uint32_t narrow;
    uint64_t wide = 0;
    if (!value)
        return 0;
    if (coh_dtype_size(dtype) == sizeof wide) {
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    memcpy(&narrow, value, sizeof narrow);
    return narrow;
}

static coh_status issue_atomic(cohi_endpoint *endpoint, cohi_remote at, cohi_word_call word,
                               void *result, cohi_op *op)
{
    note_target(op, at.rank);
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_atomic(endpoint, at, &word, result, op);
    cohi_turn_end(endpoint);
    return status;
}

static cohi_word_call word_call(const cohi_remote_atomic *atomic)
{
    return (cohi_word_call){.kind = atomic->kind,
                            .dtype = atomic->dtype,
                            .operand = read_value(atomic->dtype, atomic->operand),
                            .compare = read_value(atomic->dtype, atomic->compare)};
}

static coh_status sim_post(cohi_endpoint *endpoint, cohi_remote at,
                           const cohi_remote_atomic *atomic)
{
    if (atomic->kind == COH_ATOMIC_FETCH || atomic->kind == COH_ATOMIC_COMPARE_SWAP)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "atomic operation %d has a result: it must be fetched", (int)atomic->kind);
    coh_status status = cohi_word_check(atomic->kind, atomic->dtype);
    return status == COH_OK ? issue_atomic(endpoint, at, word_call(atomic), NULL, NULL) : status;
}

static coh_status sim_fetch(cohi_endpoint *endpoint, cohi_remote at,
                            const cohi_remote_atomic *atomic, void *result, cohi_op *op)
{
    coh_status status = cohi_word_check(atomic->kind, atomic->dtype);
    return status == COH_OK ? issue_atomic(endpoint, at, word_call(atomic), result, op) : status;
}

static const cohi_engine_atomic atomic_group = {
    .size = sizeof atomic_group,
    .post = sim_post,
    .fetch = sim_fetch,
};

/* ---- channel ---- */

static coh_status sim_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                           const void *body, size_t body_bytes, cohi_op *op)
{
    note_target(op, rank);
    coh_status status = cohi_turn_call(endpoint);
    if (status == COH_OK)
        status = cohi_flight_send(endpoint, rank, head, head_bytes, body, body_bytes, op);
    cohi_turn_end(endpoint);
    return status;
}

static const cohi_engine_channel channel_group = {
    .size = sizeof channel_group,
    .send = sim_send,
};

/* ---- the descriptors ---- */

const cohi_engine cohi_engine_sim = {
    .size = sizeof cohi_engine_sim,
    .contract = COHI_CONTRACT,
    .name = "sim",
    .lifecycle = &lifecycle,
    .memory = &memory_group,
    .rma = &rma_group,
    .atomic = &atomic_group,
    .channel = &channel_group,
};

const cohi_engine cohi_engine_sim_channel = {
    .size = sizeof cohi_engine_sim_channel,
    .contract = COHI_CONTRACT,
    .name = "sim:channel",
    .lifecycle = &lifecycle,
    .channel = &channel_group,
};
