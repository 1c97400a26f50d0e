#include "bench/gpu.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a copy on the card would have to move: bytes read and written, half of each ---- */

static double copy_once(double bytes, double size)
{
    (void)size;
    return bytes;
}

/* Each rank reads all sources' share, and writes to all targets. */
static double copy_each(double bytes, double size)
{
    return bytes * size;
}

/* All of the sources is read, and one source's bytes are written. */
static double copy_to_one(double bytes, double size)
{
    return bytes * (size + 1) / 2;
}

/* ---- Cohort's calls ---- */

static size_t count_of(const cohi_gpu_rank *self)
{
    return (size_t)self->bytes / coh_dtype_size(self->dtype);
}

static size_t block_of(const cohi_gpu_rank *self)
{
    return count_of(self) / (size_t)self->size;
}

static coh_status put(cohi_gpu_rank *self)
{
    return self->rank > 0 ? COH_OK
                          : coh_cuda_put(self->world, self->target, self->source, self->bytes, 1,
                                         self->stream);
}

static coh_status get(cohi_gpu_rank *self)
{
    return self->rank > 0 ? COH_OK
                          : coh_cuda_get(self->world, self->target, self->source, self->bytes, 1,
                                         self->stream);
}

/* There and back, each with a value of its own: it can be enqueued many times, though not captured. */
static coh_status signal_turn(cohi_gpu_rank *self)
{
    if (self->rank > 1)
        return COH_OK;
    uint64_t value = ++self->signals;
    int other = 1 - self->rank;
    coh_status status = COH_OK;
    if (self->rank == 0)
        status = coh_cuda_signal(self->world, self->signal, value, COH_SIGNAL_SET, 1, self->stream);
    if (status == COH_OK)
        status = coh_cuda_wait_until(self->world, self->signal, COH_GE, value, other, self->stream);
    if (status == COH_OK && self->rank == 1)
        status = coh_cuda_signal(self->world, self->signal, value, COH_SIGNAL_SET, 0, self->stream);
    return status;
}

static coh_status barrier(cohi_gpu_rank *self)
{
    return coh_cuda_barrier(self->team, self->stream);
}

static coh_collective describe(cohi_gpu_rank *self, coh_collective_kind kind, size_t count)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = kind;
    call.team = self->team;
    call.dtype = self->dtype;
    call.source = self->source;
    call.target = self->target;
    call.count = count;
    return call;
}

/* By a stream, and by a call of the host. */
#define COLLECTIVE(name, kind, count)                            \
    static coh_status name(cohi_gpu_rank *self)                  \
    {                                                            \
        coh_collective call = describe(self, kind, count(self)); \
        return coh_cuda_collective(&call, self->stream);         \
    }                                                            \
    static coh_status host_##name(cohi_gpu_rank *self)           \
    {                                                            \
        coh_collective call = describe(self, kind, count(self)); \
        return coh_collective_run(&call);                        \
    }
COLLECTIVE(all_reduce, COH_COLLECTIVE_ALL_REDUCE, count_of)
COLLECTIVE(reduce, COH_COLLECTIVE_REDUCE, count_of)
COLLECTIVE(reduce_scatter, COH_COLLECTIVE_REDUCE_SCATTER, block_of)
COLLECTIVE(all_gather, COH_COLLECTIVE_ALL_GATHER, block_of)
COLLECTIVE(gather, COH_COLLECTIVE_GATHER, block_of)
COLLECTIVE(scatter, COH_COLLECTIVE_SCATTER, block_of)
COLLECTIVE(broadcast, COH_COLLECTIVE_BROADCAST, count_of)
COLLECTIVE(all_to_all, COH_COLLECTIVE_ALL_TO_ALL, block_of)
COLLECTIVE(scan, COH_COLLECTIVE_SCAN, count_of)

static coh_status host_put(cohi_gpu_rank *self)
{
    if (self->rank > 0)
        return COH_OK;
    coh_status status = coh_put(self->world, self->target, self->source, self->bytes, 1);
    return status == COH_OK ? coh_quiet(self->world) : status;
}

static coh_status host_get(cohi_gpu_rank *self)
{
    return self->rank > 0 ? COH_OK
                          : coh_get(self->world, self->target, self->source, self->bytes, 1);
}

/* ---- NVSHMEM's ---- */

enum { WORLD = 0, SET = 9, GREATER_EQUAL = 5 }; /* its constants */

static coh_status peer_put(cohi_gpu_rank *self)
{
    if (self->rank == 0)
        self->nvshmem->put(self->peer_target, self->peer_source, self->bytes, 1, self->stream);
    return COH_OK;
}

static coh_status peer_get(cohi_gpu_rank *self)
{
    if (self->rank == 0)
        self->nvshmem->get(self->peer_target, self->peer_source, self->bytes, 1, self->stream);
    return COH_OK;
}

static coh_status peer_signal(cohi_gpu_rank *self)
{
    if (self->rank > 1)
        return COH_OK;
    uint64_t value = ++self->peer_signals;
    if (self->rank == 0)
        self->nvshmem->signal(self->peer_signal, value, SET, 1, self->stream);
    self->nvshmem->wait(self->peer_signal, GREATER_EQUAL, value, self->stream);
    if (self->rank == 1)
        self->nvshmem->signal(self->peer_signal, value, SET, 0, self->stream);
    return COH_OK;
}

static coh_status peer_barrier(cohi_gpu_rank *self)
{
    self->nvshmem->barrier(self->stream);
    return COH_OK;
}

static coh_status peer_status(int error, const char *call)
{
    return error == 0 ? COH_OK : coh_fail(COH_TRANSPORT, "NVSHMEM's %s returned %d", call, error);
}

static coh_status peer_all_reduce(cohi_gpu_rank *self)
{
    return peer_status(
        (self->dtype == COH_F32 ? self->nvshmem->sum_f32 : self->nvshmem->sum_bf16)(
            WORLD, self->peer_target, self->peer_source, count_of(self), self->stream),
        "sum_reduce_on_stream");
}

#define PEER(name, symbol, count)                                                           \
    static coh_status peer_##name(cohi_gpu_rank *self)                                      \
    {                                                                                       \
        return peer_status(self->nvshmem->name(WORLD, self->peer_target, self->peer_source, \
                                               count(self), self->stream),                  \
                           symbol);                                                         \
    }
PEER(reduce_scatter, "sum_reducescatter_on_stream", block_of)
PEER(all_gather, "fcollect_on_stream", block_of)
PEER(all_to_all, "alltoall_on_stream", block_of)

static coh_status peer_broadcast(cohi_gpu_rank *self)
{
    return peer_status(self->nvshmem->broadcast(WORLD, self->peer_target, self->peer_source,
                                                count_of(self), 0, self->stream),
                       "broadcast_on_stream");
}

/* ---- the card's copy ---- */

static uint64_t copied_at_once(const cohi_gpu_rank *self)
{
    return self->copied < COHI_GPU_COPY_MOST ? self->copied : COHI_GPU_COPY_MOST;
}

coh_status cohi_gpu_copy(cohi_gpu_rank *self)
{
    if (self->rank > 0)
        return COH_OK;
    return cohi_card_status(
        self->driver->copy_on(self->to, self->from, copied_at_once(self), self->stream),
        "cuMemcpyAsync");
}

double cohi_gpu_copy_share(const cohi_gpu_rank *self)
{
    return self->copied ? (double)self->copied / (double)copied_at_once(self) : 1;
}

/* ---- what must come of a call; sources have (rank + 1) in each element, in f32 ---- */

static coh_status expect(cohi_gpu_rank *self, size_t element, float wanted)
{
    float found = 0;
    if (self->dtype != COH_F32 || count_of(self) == 0)
        return COH_OK;
    coh_status status = coh_get(self->world, &found, self->target + element * sizeof found,
                                sizeof found, coh_rank(self->world));
    if (status == COH_OK && found != wanted)
        status =
            coh_fail(COH_TRANSPORT, "element %zu of the target of rank %d is %g, and should be %g",
                     element, self->rank, (double)found, (double)wanted);
    return status;
}

static float sum_of(const cohi_gpu_rank *self)
{
    return (float)(self->size * (self->size + 1)) / 2;
}

static coh_status check_sum(cohi_gpu_rank *self)
{
    return expect(self, count_of(self) - 1, sum_of(self));
}

static coh_status check_block_sum(cohi_gpu_rank *self)
{
    return block_of(self) ? expect(self, block_of(self) - 1, sum_of(self)) : COH_OK;
}

static coh_status check_blocks(cohi_gpu_rank *self)
{
    return block_of(self) ? expect(self, block_of(self) * (size_t)self->size - 1, (float)self->size)
                          : COH_OK;
}

static coh_status check_broadcast(cohi_gpu_rank *self)
{
    return expect(self, count_of(self) - 1, 1);
}

/* ---- the rows ---- */

static const cohi_gpu_case rows[] = {
    {"put", "rank 0 puts to rank 1", "a copy of the same bytes on the card", 2, 1, COH_F32, 1, 0,
     copy_once, put, host_put, peer_put, NULL},
    {"get", "rank 0 gets from rank 1", "a copy of the same bytes on the card", 2, 1, COH_F32, 1, 0,
     copy_once, get, host_get, peer_get, NULL},
    {"signal", "a signal from rank to rank, half of there and back", "a copy of 8 bytes", 2, 0,
     COH_F32, 1, 1, copy_once, signal_turn, NULL, peer_signal, NULL},
    {"barrier", "all ranks' streams wait for each other", "a copy of 8 bytes", 1, 0, COH_F32, 0, 0,
     copy_once, barrier, NULL, peer_barrier, NULL},
    {"all_reduce", "f32, sum; size: a rank's source",
     "a copy that reads and writes as much as all ranks must", 1, 1, COH_F32, 0, 0, copy_each,
     all_reduce, host_all_reduce, peer_all_reduce, check_sum},
    {"all_reduce_bf16", "bf16, sum; size: a rank's source", "as all_reduce's", 1, 1, COH_BF16, 0, 0,
     copy_each, all_reduce, host_all_reduce, peer_all_reduce, NULL},
    {"reduce", "f32, sum, to rank 0; size: a rank's source", "as all_reduce's", 1, 1, COH_F32, 0, 0,
     copy_to_one, reduce, host_reduce, NULL, NULL},
    {"reduce_scatter", "f32, sum; size: a rank's source", "as all_reduce's", 1, 1, COH_F32, 0, 0,
     copy_to_one, reduce_scatter, host_reduce_scatter, peer_reduce_scatter, check_block_sum},
    {"all_gather", "f32; size: a rank's target", "as all_reduce's", 1, 1, COH_F32, 0, 0, copy_each,
     all_gather, host_all_gather, peer_all_gather, check_blocks},
    {"gather", "f32, to rank 0; size: its target", "as all_reduce's", 1, 1, COH_F32, 0, 0,
     copy_once, gather, host_gather, NULL, NULL},
    {"scatter", "f32, from rank 0; size: its source", "as all_reduce's", 1, 1, COH_F32, 0, 0,
     copy_once, scatter, host_scatter, NULL, NULL},
    {"broadcast", "f32, from rank 0; size: its source", "as all_reduce's", 1, 1, COH_F32, 0, 0,
     copy_each, broadcast, host_broadcast, peer_broadcast, check_broadcast},
    {"all_to_all", "f32; size: a rank's source", "as all_reduce's", 1, 1, COH_F32, 0, 0, copy_each,
     all_to_all, host_all_to_all, peer_all_to_all, check_blocks},
    {"scan", "f32, sum; size: a rank's source", "as all_reduce's", 1, 1, COH_F32, 0, 0, copy_each,
     scan, host_scan, NULL, NULL},
};

const cohi_gpu_case *cohi_gpu_case_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}
