/* signal.c - puts that tell of their arrival. */
#include "core/onesided/atomic.h"
#include "core/onesided/context.h"
#include "core/health/control.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/heap/device.h"
#include "core/onesided/race.h"
#include "core/onesided/relay.h"
#include "core/onesided/rma.h"
#include "core/onesided/strided.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "memory/host_copy.h"

/* One put with its signal. */
struct signalled {
    cohi_transfer data; /* its op and offset are the slow path's */
    void *target;       /* of the data, symmetric */
    uint64_t *signal;
    cohi_spot signal_spot; /* the slow path's */
    uint64_t value;
    coh_signal_op op;
};

/* ---- checks ---- */

static coh_status check_signal(coh_world *world, struct signalled *put)
{
    const char *call = put->data.call;
    if (put->op != COH_SIGNAL_SET && put->op != COH_SIGNAL_ADD)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%d is not a coh_signal_op",
                               (int)put->op);
    coh_status status = cohi_world_check_rank(world, call, put->data.rank);
    if (status == COH_OK)
        status = cohi_heap_locate(world, call, put->signal, &put->signal_spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, put->data.rank, put->signal_spot,
                                       sizeof *put->signal);
    if (status == COH_OK && (uintptr_t)put->signal % sizeof *put->signal != 0)
        status =
            cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                            "the signal at %p is not aligned to its 8 bytes", (void *)put->signal);
    return status;
}

/* ---- signalling ---- */

static void raise_here(uint64_t *word, uint64_t value, coh_signal_op op)
{
    if (op == COH_SIGNAL_SET)
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
}

static coh_status raise_by_atomic(coh_world *world, const struct signalled *put)
{
    return cohi_atomic_apply(
        world, &(cohi_amo){.call = put->data.call,
                           .doing = COHI_OP_SIGNAL,
                           .context = put->data.context,
                           .op = put->op == COH_SIGNAL_SET ? COH_ATOMIC_SET : COH_ATOMIC_ADD,
                           .dtype = COH_U64,
                           .rank = put->data.rank,
                           .spot = put->signal_spot,
                           .operand = &put->value});
}

static coh_status tell(const struct signalled *put, coh_status status)
{
    if (COHI_LIKELY(status == COH_OK))
        return status;
    return cohi_fail_add(status, "it was to put %zu bytes at %s of rank %d, with a signal at %s",
                         put->data.bytes, cohi_spot_describe(put->data.spot).text, put->data.rank,
                         cohi_spot_describe(put->signal_spot).text);
}

static coh_status put_by_engine(coh_world *world, const struct signalled *put)
{
    const cohi_transfer *data = &put->data;
    cohi_op op = COHI_NEW_OP;
    cohi_world_show_op(world, COHI_OP_SIGNAL);
    cohi_remote to = {data->context, data->rank, cohi_spot_segment(put->signal_spot),
                      cohi_spot_offset(data->spot)};
    cohi_remote_signal signal = {cohi_spot_offset(put->signal_spot), put->value,
                                 put->op == COH_SIGNAL_ADD};
    cohi_server server = cohi_device_server(world, put->signal_spot);
    coh_status status = server.engine->rma->put_signal(
        server.endpoint, to, data->source, data->bytes, &signal, data->blocking ? &op : NULL);
    if (status == COH_PEER_LOST)
        status = cohi_verdict_presume(world, data->call, data->rank, COHI_LOSS_LINK);
    if (status == COH_OK && data->blocking)
        status = cohi_wait_op_of(world, server, data->call, COHI_OP_SIGNAL, data->rank, &op);
    cohi_world_show_op(world, COHI_OP_NONE);
    return tell(put, status);
}

/* All that can be wrong with the signal, so that a call which is refused for it has put nothing. */
static coh_status prepare_signal(coh_world *world, struct signalled *put)
{
    coh_status status = check_signal(world, put);
    if (status == COH_OK)
        status = cohi_fault_strike(world->fault, COHI_OP_SIGNAL);
    return status == COH_OK ? tell(put, cohi_verdict_check(world, put->data.call, put->data.rank))
                            : status;
}

/* Of ranks that are not mapped, where the engine has the two in one, which it has within one segment. */
static bool is_one_operation(const coh_world *world, const struct signalled *put)
{
    const cohi_transfer *data = &put->data;
    bool same_heap =
        data->bytes == 0 || cohi_spot_heap(data->spot) == cohi_spot_heap(put->signal_spot);
    const cohi_engine_rma *rma = cohi_device_server(world, put->signal_spot).engine->rma;
    bool staged =
        !cohi_device_serves(world, put->signal_spot) && cohi_world_is_on_card(world, data->source);
    return !cohi_heap_reach(world, data->rank, put->signal_spot) && rma && rma->put_signal
           && same_heap && !staged && !cohi_relay_serves(world, data->rank, put->signal_spot);
}

/* An engine that has the two in one is asked for that; otherwise the order is made by a fence. */
static coh_status signal_long(coh_world *world, struct signalled *put)
{
    coh_status status = prepare_signal(world, put);
    if (status != COH_OK)
        return status;
    if (world->race) {
        status = put->data.bytes > 0 ? cohi_rma_check(world, &put->data) : COH_OK;
        return status == COH_OK
                   ? cohi_race_signal(world, &put->data, put->signal_spot, put->value, put->op)
                   : status;
    }
    if (is_one_operation(world, put)) {
        if (put->data.bytes > 0)
            status = cohi_rma_check(world, &put->data);
        return status == COH_OK ? put_by_engine(world, put) : status;
    }
    status = cohi_rma_transfer(world, &put->data);
    if (status == COH_OK)
        status = cohi_order_fence_context(world, put->data.context);
    return status == COH_OK ? raise_by_atomic(world, put) : status;
}

static coh_status locate_and_signal(coh_world *world, struct signalled *put)
{
    put->data.op = COHI_OP_PUT;
    coh_status status = cohi_world_enter(world, put->data.call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, put->data.call, put->data.rank);
    if (status == COH_OK && put->data.bytes > 0)
        status = cohi_heap_locate(world, put->data.call, put->target, &put->data.spot);
    return status == COH_OK ? signal_long(world, put) : status;
}

/* As cohi_rma_direct, in any heap. */
static char *find(coh_world *world, const void *pointer, size_t bytes, int rank)
{
    char *there = cohi_rma_direct(world, pointer, bytes, rank);
    return there ? there : cohi_heap_further_direct(world, pointer, bytes, rank);
}

/* By value, as put_signal, so that its caller need not have the struct in memory. */
static __attribute__((noinline)) coh_status put_signal_any(coh_world *world, struct signalled put)
{
    int rank = put.data.rank;
    size_t bytes = put.data.bytes;
    char *word = find(world, put.signal, sizeof *put.signal, rank);
    char *there = bytes > 0 ? find(world, put.target, bytes, rank) : word;
    if (COHI_LIKELY(word && there && (put.data.source || bytes == 0) && (uintptr_t)word % 8 == 0
                    && (unsigned)put.op <= COH_SIGNAL_ADD
                    && !cohi_world_atomics_by_engine(world))) {
        if (bytes > 0)
            cohi_host_copy(there, put.data.source, bytes);
        raise_here((uint64_t *)(void *)word, put.value, put.op);
        cohi_control_wake_watcher(world->peers[rank].slot);
        return COH_OK;
    }
    return locate_and_signal(world, &put);
}

/* The fast path for a signal in the heap, which is checked first: of the data only the range is
 * left. */
static inline __attribute__((always_inline)) coh_status put_signal(coh_world *world,
                                                                   struct signalled put)
{
    int rank = put.data.rank;
    size_t bytes = put.data.bytes;
    char *word = cohi_rma_word(world, put.signal, sizeof *put.signal, rank, 0);
    uint64_t offset = word && bytes > 0 ? cohi_heap_offset_of(world, put.target, bytes) : 0;
    if (COHI_UNLIKELY(!word || offset == COHI_NO_WINDOW || (!put.data.source && bytes > 0)
                      || (unsigned)put.op > COH_SIGNAL_ADD))
        return put_signal_any(world, (struct signalled){.data = cohi_transfer_fields(&put.data),
                                                        .target = put.target,
                                                        .signal = put.signal,
                                                        .value = put.value,
                                                        .op = put.op});
    if (bytes > 0)
        cohi_host_copy(world->peers[rank].heap + offset, put.data.source, bytes);
    raise_here((uint64_t *)(void *)word, put.value, put.op);
    return cohi_control_end(world->peers[rank].slot);
}

/* ---- the public forms ---- */

coh_status coh_put_signal(coh_world *world, void *target, const void *source, size_t bytes,
                          uint64_t *signal, uint64_t value, coh_signal_op op, int rank)
{
    return put_signal(world, (struct signalled){.data = {.call = "coh_put_signal",
                                                         .rank = rank,
                                                         .source = source,
                                                         .bytes = bytes,
                                                         .blocking = true},
                                                .target = target,
                                                .signal = signal,
                                                .value = value,
                                                .op = op});
}

coh_status coh_put_signal_nbi(coh_world *world, void *target, const void *source, size_t bytes,
                              uint64_t *signal, uint64_t value, coh_signal_op op, int rank)
{
    return put_signal(
        world,
        (struct signalled){
            .data = {.call = "coh_put_signal_nbi", .rank = rank, .source = source, .bytes = bytes},
            .target = target,
            .signal = signal,
            .value = value,
            .op = op});
}

coh_status coh_context_put_signal(coh_context *context, void *target, const void *source,
                                  size_t bytes, uint64_t *signal, uint64_t value, coh_signal_op op,
                                  int rank)
{
    static const char call[] = "coh_context_put_signal";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK
               ? put_signal(context->world, (struct signalled){.data = {.call = call,
                                                                        .context = context->number,
                                                                        .rank = rank,
                                                                        .source = source,
                                                                        .bytes = bytes,
                                                                        .blocking = true},
                                                               .target = target,
                                                               .signal = signal,
                                                               .value = value,
                                                               .op = op})
               : status;
}

/* The blocks go one by one, with the fence behind the last of them. */
static __attribute__((noinline)) coh_status
put_strided_signal_checked(coh_world *world, cohi_strided blocks, struct signalled put)
{
    coh_status status = cohi_world_enter(world, put.data.call);
    if (status == COH_OK)
        status = prepare_signal(world, &put);
    if (status == COH_OK)
        status = cohi_strided_put(world, blocks);
    if (status == COH_OK)
        status = cohi_order_fence_context(world, COHI_CONTEXT_DEFAULT);
    if (status == COH_OK && world->race)
        return cohi_race_signal(world, &put.data, put.signal_spot, put.value, put.op);
    return status == COH_OK ? raise_by_atomic(world, &put) : status;
}

coh_status coh_put_strided_signal(coh_world *world, void *target, size_t target_stride,
                                  const void *source, size_t source_stride, size_t block,
                                  size_t count, uint64_t *signal, uint64_t value, coh_signal_op op,
                                  int rank)
{
    static const char call[] = "coh_put_strided_signal";
    cohi_strided blocks = {.block = {.call = call,
                                     .op = COHI_OP_PUT,
                                     .rank = rank,
                                     .source = source,
                                     .bytes = block,
                                     .blocking = true},
                           .there = target,
                           .there_stride = target_stride,
                           .here_stride = source_stride,
                           .count = count};
    char *word = cohi_rma_word(world, signal, sizeof *signal, rank, 0);
    if (COHI_UNLIKELY(!word || (unsigned)op > COH_SIGNAL_ADD))
        return put_strided_signal_checked(
            world, cohi_strided_fields(&blocks),
            (struct signalled){.data = {.call = call, .op = COHI_OP_PUT, .rank = rank},
                               .signal = signal,
                               .value = value,
                               .op = op});
    coh_status status = cohi_strided_put(world, blocks);
    if (status != COH_OK)
        return status;
    raise_here((uint64_t *)(void *)word, value, op);
    return cohi_control_end(world->peers[rank].slot);
}

coh_status coh_signal(coh_world *world, uint64_t *signal, uint64_t value, coh_signal_op op,
                      int rank)
{
    return put_signal(
        world, (struct signalled){.data = {.call = "coh_signal", .rank = rank, .blocking = true},
                                  .signal = signal,
                                  .value = value,
                                  .op = op});
}

coh_status coh_signal_fetch(coh_world *world, const uint64_t *signal, uint64_t *value)
{
    static const char call[] = "coh_signal_fetch";
    cohi_spot spot;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !value)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "value is NULL");
    if (status == COH_OK)
        status = cohi_heap_locate(world, call, signal, &spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, world->rank, spot, sizeof *signal);
    if (status == COH_OK && (uintptr_t)signal % sizeof *signal != 0)
        status =
            cohi_world_fail(world, call, COH_BAD_ALIGNMENT,
                            "the signal at %p is not aligned to its 8 bytes", (const void *)signal);
    if (status != COH_OK)
        return status;
    status = cohi_device_refuse(world, call, "the place for the value", value);
    if (status != COH_OK || cohi_device_serves(world, spot))
        return status == COH_OK ? cohi_device_read(world, call, signal, sizeof *signal, value)
                                : status;
    while (world->race && cohi_race_bring(world, signal, sizeof *signal))
        ;
    *value = __atomic_load_n(signal, __ATOMIC_ACQUIRE);
    cohi_order_acquire(world);
    return COH_OK;
}
