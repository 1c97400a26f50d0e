#include "core/onesided/rma.h"

#include "core/onesided/context.h"
#include "core/health/control.h"
#include "core/world/fault.h"
#include "core/heap/device.h"
#include "core/heap/heap.h"
#include "core/onesided/race.h"
#include "core/onesided/relay.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "memory/host_copy.h"

#include <stdlib.h>

/* What is staged at a time: far longer than a copy to a card takes to start. */
enum { STAGED_BYTES = 4 << 20 };

/* ---- checks ---- */

static coh_status note_transfer(coh_status status, const cohi_transfer *transfer, uint64_t limit)
{
    return cohi_heap_note_range(status, transfer->rank, transfer->spot, transfer->bytes, limit);
}

/* COHORT_CHECK: the range must lie in one live allocation. */
static coh_status check_allocation(coh_world *world, const cohi_transfer *transfer)
{
    cohi_spot start = 0;
    uint64_t length = 0;
    if (!cohi_heap_find(world, transfer->spot, &start, &length))
        return note_transfer(
            cohi_world_fail(world, transfer->call, COH_OUT_OF_BOUNDS,
                            "rank %d, %s, length %zu: there is no live allocation", transfer->rank,
                            cohi_spot_describe(transfer->spot).text, transfer->bytes),
            transfer, 0);
    uint64_t inside = transfer->spot - start;
    if (inside <= length && transfer->bytes <= length - inside)
        return COH_OK;
    return note_transfer(
        cohi_world_fail(world, transfer->call, COH_OUT_OF_BOUNDS,
                        "rank %d, %s, length %zu: past the end of the allocation at offset %llu, "
                        "which has %llu bytes",
                        transfer->rank, cohi_spot_describe(transfer->spot).text, transfer->bytes,
                        (unsigned long long)cohi_spot_offset(start), (unsigned long long)length),
        transfer, cohi_spot_offset(start) + length);
}

static coh_status check_alive(coh_world *world, const cohi_transfer *transfer)
{
    coh_status status = cohi_verdict_check(world, transfer->call, transfer->rank);
    if (COHI_LIKELY(status == COH_OK))
        return COH_OK;
    return note_transfer(cohi_fail_add(status, "it was for %s, length %zu",
                                       cohi_spot_describe(transfer->spot).text, transfer->bytes),
                         transfer, COH_NO_FACT);
}

coh_status cohi_rma_check(coh_world *world, const cohi_transfer *transfer)
{
    coh_status status = cohi_world_check_rank(world, transfer->call, transfer->rank);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, transfer->call, transfer->rank, transfer->spot,
                                       transfer->bytes);
    if (status != COH_OK)
        return status;
    const void *local = transfer->op == COHI_OP_PUT ? transfer->source : transfer->target;
    if (!local)
        return cohi_world_fail(world, transfer->call, COH_INVALID_ARGUMENT,
                               "the %s is NULL, for %zu bytes",
                               transfer->op == COHI_OP_PUT ? "source" : "target", transfer->bytes);
    if (atomic_load_explicit(&world->state, memory_order_relaxed) & COHI_WORLD_CAREFUL) {
        status = cohi_fault_strike(world->fault, transfer->op);
        if (status == COH_OK && world->checks_bounds)
            status = check_allocation(world, transfer);
    }
    if (status == COH_OK)
        status = cohi_verdict_check(world, transfer->call, world->rank);
    return status == COH_OK ? check_alive(world, transfer) : status;
}

/* ---- moving ---- */

static coh_status issue(cohi_server server, const cohi_transfer *transfer, cohi_op *op)
{
    const cohi_engine_rma *rma = server.engine->rma;
    cohi_remote there = {transfer->context, transfer->rank, cohi_spot_segment(transfer->spot),
                         cohi_spot_offset(transfer->spot)};
    if (transfer->op == COHI_OP_PUT)
        return rma->put(server.endpoint, there, transfer->source, transfer->bytes, op);
    return rma->get(server.endpoint, there, transfer->target, transfer->bytes, op);
}

static coh_status move_by_engine(coh_world *world, const cohi_transfer *transfer)
{
    cohi_op op = COHI_NEW_OP;
    cohi_server server = cohi_device_server(world, transfer->spot);
    cohi_world_show_op(world, transfer->op);
    coh_status status = issue(server, transfer, transfer->blocking ? &op : NULL);
    if (status == COH_PEER_LOST)
        status = cohi_verdict_presume(world, transfer->call, transfer->rank, COHI_LOSS_LINK);
    if (status == COH_OK && transfer->blocking)
        status = cohi_wait_op_of(world, server, transfer->call, transfer->op, transfer->rank, &op);
    cohi_world_show_op(world, COHI_OP_NONE);
    return COHI_LIKELY(status == COH_OK)
               ? status
               : cohi_fail_add(status, "it was a %s of %zu bytes at %s of rank %d",
                               cohi_opcode_name(transfer->op), transfer->bytes,
                               cohi_spot_describe(transfer->spot).text, transfer->rank);
}

static void move_by_copy(char *there, const cohi_transfer *transfer)
{
    if (transfer->op == COHI_OP_PUT)
        cohi_host_copy(there, transfer->source, transfer->bytes);
    else
        cohi_host_copy(transfer->target, there, transfer->bytes);
}

/* A put of up to 8 bytes wakes a sleeper; a missed wake is seen at its next look, within a
 * millisecond. */
static inline void wake_for_word(coh_world *world, size_t bytes, int rank)
{
    if (bytes <= sizeof(uint64_t))
        cohi_control_wake_watcher(world->peers[rank].slot);
}

/* Memory of the host there, and memory of a card here: its engine copies. */
static coh_status move_by_card(coh_world *world, const cohi_transfer *transfer, char *there)
{
    coh_status status;
    if (transfer->op == COHI_OP_GET)
        return cohi_device_copy(world, transfer->call, transfer->op, transfer->target, there,
                                transfer->bytes);
    status = cohi_device_copy(world, transfer->call, transfer->op, there, transfer->source,
                              transfer->bytes);
    wake_for_word(world, transfer->bytes, transfer->rank);
    return status;
}

/* The same where the rank is reached by the engine: through memory of the host. */
static coh_status move_staged(coh_world *world, const cohi_transfer *transfer)
{
    cohi_transfer part = *transfer;
    size_t most = transfer->bytes < STAGED_BYTES ? transfer->bytes : STAGED_BYTES;
    char *stage = malloc(most);
    coh_status status =
        stage ? COH_OK
              : cohi_world_fail(world, transfer->call, COH_NO_MEMORY,
                                "out of memory to stage %zu bytes of a card", transfer->bytes);
    part.blocking = true;
    for (size_t done = 0; done < transfer->bytes && status == COH_OK; done += part.bytes) {
        part.bytes = transfer->bytes - done < most ? transfer->bytes - done : most;
        part.spot = transfer->spot + done;
        part.source = part.target = stage;
        if (transfer->op == COHI_OP_PUT)
            status = cohi_device_copy(world, transfer->call, transfer->op, stage,
                                      (const char *)transfer->source + done, part.bytes);
        if (status == COH_OK)
            status = move_by_engine(world, &part);
        if (status == COH_OK && transfer->op == COHI_OP_GET)
            status = cohi_device_copy(world, transfer->call, transfer->op,
                                      (char *)transfer->target + done, stage, part.bytes);
    }
    free(stage);
    return status;
}

static coh_status move_mapped(coh_world *world, const cohi_transfer *transfer, char *there)
{
    move_by_copy(there, transfer);
    if (transfer->op == COHI_OP_PUT)
        wake_for_word(world, transfer->bytes, transfer->rank);
    return COH_OK;
}

/* Whether the heap is of the host, and what is here is memory of a card. */
static bool is_card_to_host(const coh_world *world, const cohi_transfer *transfer)
{
    const void *here = transfer->op == COHI_OP_PUT ? transfer->source : transfer->target;
    return cohi_world_device(world) && !cohi_device_serves(world, transfer->spot)
           && cohi_world_is_on_card(world, here);
}

/* Whether the engine for cards reaches a rank whose card is not mapped: both sides are in its segments. */
static bool is_carried_far(coh_world *world, const cohi_transfer *transfer)
{
    const void *here = transfer->op == COHI_OP_PUT ? transfer->source : transfer->target;
    if (!cohi_world_device(world)->facts.reaches_far)
        return false;
    cohi_spot spot = cohi_heap_spot_of(world, here, transfer->bytes);
    return spot != COHI_NO_SPOT && cohi_device_serves(world, spot);
}

/* What other ways have for that rank is not ordered with it, so it is over when the call returns. */
static coh_status move_far(coh_world *world, const cohi_transfer *transfer)
{
    cohi_transfer whole = *transfer;
    whole.blocking = true;
    return is_carried_far(world, transfer) ? move_by_engine(world, &whole)
                                           : cohi_relay_transfer(world, transfer);
}

coh_status cohi_rma_transfer(coh_world *world, const cohi_transfer *transfer)
{
    if (transfer->bytes == 0)
        return cohi_world_check_rank(world, transfer->call, transfer->rank);
    coh_status status = cohi_rma_check(world, transfer);
    if (status != COH_OK)
        return status;
    if (world->race)
        return cohi_race_transfer(world, transfer);
    if (COHI_UNLIKELY(cohi_relay_serves(world, transfer->rank, transfer->spot)))
        return move_far(world, transfer);
    char *there = cohi_heap_reach(world, transfer->rank, transfer->spot);
    if (COHI_UNLIKELY(is_card_to_host(world, transfer)))
        return there ? move_by_card(world, transfer, there) : move_staged(world, transfer);
    if (!there)
        return move_by_engine(world, transfer);
    return move_mapped(world, transfer, there);
}

/* ---- by symmetric pointer ---- */

/* The slow path: everything is checked, and says what is wrong. In between, for memory of a further heap
 * where nothing is. */
static __attribute__((noinline)) coh_status
transfer_pointer(coh_world *world, const void *symmetric, cohi_transfer transfer)
{
    char *there = cohi_heap_further_direct(world, symmetric, transfer.bytes, transfer.rank);
    if (there && (transfer.source || transfer.target))
        return move_mapped(world, &transfer, there);
    coh_status status = cohi_world_enter(world, transfer.call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, transfer.call, transfer.rank);
    if (status == COH_OK && transfer.bytes > 0)
        status = cohi_heap_locate(world, transfer.call, symmetric, &transfer.spot);
    return status == COH_OK ? cohi_rma_transfer(world, &transfer) : status;
}

/* Inlined into each caller: next to one store, a call and its arguments would take most of the
 * time. Only the slow path has the transfer in memory. */
static inline __attribute__((always_inline)) coh_status put(coh_world *world, void *target,
                                                            cohi_transfer transfer)
{
    char *there = cohi_rma_direct(world, target, transfer.bytes, transfer.rank);
    if (COHI_UNLIKELY(!there || !transfer.source))
        return transfer_pointer(world, target, cohi_transfer_fields(&transfer));
    cohi_host_copy(there, transfer.source, transfer.bytes);
    wake_for_word(world, transfer.bytes, transfer.rank);
    return COH_OK;
}

static inline __attribute__((always_inline)) coh_status get(coh_world *world, const void *source,
                                                            cohi_transfer transfer)
{
    char *there = cohi_rma_direct(world, source, transfer.bytes, transfer.rank);
    if (COHI_UNLIKELY(!there || !transfer.target))
        return transfer_pointer(world, source, cohi_transfer_fields(&transfer));
    cohi_host_copy(transfer.target, there, transfer.bytes);
    return COH_OK;
}

static __attribute__((noinline)) coh_status put_any(coh_world *world, void *target,
                                                    const void *source, size_t bytes, int rank)
{
    return put(world, target,
               (cohi_transfer){.call = "coh_put",
                               .op = COHI_OP_PUT,
                               .rank = rank,
                               .source = source,
                               .bytes = bytes,
                               .blocking = true});
}

static __attribute__((noinline)) coh_status get_any(coh_world *world, void *target,
                                                    const void *source, size_t bytes, int rank)
{
    return get(world, source,
               (cohi_transfer){.call = "coh_get",
                               .op = COHI_OP_GET,
                               .rank = rank,
                               .target = target,
                               .bytes = bytes,
                               .blocking = true});
}

/*
 * Words of 8 and 4 bytes, which programs put and get one at a time, are moved in the public function
 * itself, which then saves no registers.
 */
static inline __attribute__((always_inline)) char *
find_word(const coh_world *world, const void *pointer, size_t bytes, int rank)
{
    return cohi_rma_word(world, pointer, bytes, rank, COHI_WORLD_ENGINE_ATOMICS);
}

coh_status coh_put(coh_world *world, void *target, const void *source, size_t bytes, int rank)
{
    char *word;
    if (bytes == 8 && source && (word = find_word(world, target, 8, rank))) {
        cohi_host_copy64(word, source);
        return cohi_control_end(world->peers[rank].slot);
    }
    if (bytes == 4 && source && (word = find_word(world, target, 4, rank))) {
        cohi_host_copy32(word, source);
        return cohi_control_end(world->peers[rank].slot);
    }
    return put_any(world, target, source, bytes, rank);
}

coh_status coh_get(coh_world *world, void *target, const void *source, size_t bytes, int rank)
{
    char *word;
    if (bytes == 8 && target && (word = find_word(world, source, 8, rank))
        && cohi_host_aligned(target, 8)) {
        cohi_host_copy64(target, word);
        return COH_OK;
    }
    if (bytes == 4 && target && (word = find_word(world, source, 4, rank))
        && cohi_host_aligned(target, 4)) {
        cohi_host_copy32(target, word);
        return COH_OK;
    }
    return get_any(world, target, source, bytes, rank);
}

coh_status coh_put_nbi(coh_world *world, void *target, const void *source, size_t bytes, int rank)
{
    return put(world, target,
               (cohi_transfer){.call = "coh_put_nbi",
                               .op = COHI_OP_PUT,
                               .rank = rank,
                               .source = source,
                               .bytes = bytes});
}

coh_status coh_get_nbi(coh_world *world, void *target, const void *source, size_t bytes, int rank)
{
    return get(world, source,
               (cohi_transfer){.call = "coh_get_nbi",
                               .op = COHI_OP_GET,
                               .rank = rank,
                               .target = target,
                               .bytes = bytes});
}

/* ---- the same on a context ---- */

coh_status coh_context_put(coh_context *context, void *target, const void *source, size_t bytes,
                           int rank)
{
    static const char call[] = "coh_context_put";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? put(context->world, target,
                                  (cohi_transfer){.call = call,
                                                  .op = COHI_OP_PUT,
                                                  .context = context->number,
                                                  .rank = rank,
                                                  .source = source,
                                                  .bytes = bytes,
                                                  .blocking = true})
                            : status;
}

coh_status coh_context_get(coh_context *context, void *target, const void *source, size_t bytes,
                           int rank)
{
    static const char call[] = "coh_context_get";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? get(context->world, source,
                                  (cohi_transfer){.call = call,
                                                  .op = COHI_OP_GET,
                                                  .context = context->number,
                                                  .rank = rank,
                                                  .target = target,
                                                  .bytes = bytes,
                                                  .blocking = true})
                            : status;
}

coh_status coh_context_put_nbi(coh_context *context, void *target, const void *source, size_t bytes,
                               int rank)
{
    static const char call[] = "coh_context_put_nbi";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? put(context->world, target,
                                  (cohi_transfer){.call = call,
                                                  .op = COHI_OP_PUT,
                                                  .context = context->number,
                                                  .rank = rank,
                                                  .source = source,
                                                  .bytes = bytes})
                            : status;
}

coh_status coh_context_get_nbi(coh_context *context, void *target, const void *source, size_t bytes,
                               int rank)
{
    static const char call[] = "coh_context_get_nbi";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? get(context->world, source,
                                  (cohi_transfer){.call = call,
                                                  .op = COHI_OP_GET,
                                                  .context = context->number,
                                                  .rank = rank,
                                                  .target = target,
                                                  .bytes = bytes})
                            : status;
}

/* ---- where a peer's memory is ---- */

coh_status coh_ptr(coh_world *world, const void *pointer, int rank, void **out)
{
    static const char call[] = "coh_ptr";
    cohi_spot spot = 0;
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, call, rank);
    if (status == COH_OK && !out)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "direct is NULL");
    if (status == COH_OK)
        status = cohi_heap_locate(world, call, pointer, &spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, call, rank, spot, 1);
    if (status != COH_OK)
        return status;
    char *there = cohi_device_serves(world, spot) ? cohi_heap_reach_card(world, rank, spot)
                                                  : cohi_heap_reach(world, rank, spot);
    if (!there)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "the memory of rank %d is not mapped here (engine %s); use put and "
                               "get",
                               rank, cohi_device_server(world, spot).engine->name);
    if (world->race && rank != world->rank)
        return cohi_world_fail(world, call, COH_UNSUPPORTED,
                               "the race check (COHORT_CHECK=order) does not see loads and stores "
                               "to the memory of rank %d; use put and get",
                               rank);
    *out = there;
    return COH_OK;
}
