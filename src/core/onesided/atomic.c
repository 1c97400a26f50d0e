#include "core/onesided/atomic.h"

#include "core/onesided/context.h"
#include "core/health/control.h"
#include "core/world/fault.h"
#include "core/heap/device.h"
#include "core/onesided/race.h"
#include "core/onesided/relay.h"
#include "core/onesided/rma.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "memory/host_atomic.h"

#include <string.h>

static const char *const op_names[] = {
#define ROW(constant, value, name) [value] = name,
    COH_ATOMIC_TABLE(ROW)
#undef ROW
};

/* ---- applying ---- */

static coh_status apply_here(coh_world *world, const cohi_amo *amo, char *there)
{
    uint64_t unwanted;
    cohi_host_atomic_find(amo->op, amo->dtype)(there, amo->operand, amo->compare,
                                               amo->result ? amo->result : &unwanted);
    cohi_slot *slot = world->peers[amo->rank].slot;
    if (slot)
        cohi_control_wake_watcher(slot);
    return COH_OK;
}

static coh_status apply_by_engine(coh_world *world, const cohi_amo *amo)
{
    cohi_server server = cohi_device_server(world, amo->spot);
    const cohi_engine_atomic *engine = server.engine->atomic;
    if (!engine)
        return cohi_world_fail(world, amo->call, COH_UNSUPPORTED, "engine %s has no atomics",
                               server.engine->name);
    cohi_op op = COHI_NEW_OP;
    bool waits = amo->result && amo->blocking;
    cohi_remote at = {amo->context, amo->rank, cohi_spot_segment(amo->spot),
                      cohi_spot_offset(amo->spot)};
    cohi_remote_atomic what = {amo->op, amo->dtype, amo->operand, amo->compare};
    cohi_world_show_op(world, amo->doing);
    coh_status status =
        amo->result ? engine->fetch(server.endpoint, at, &what, amo->result, waits ? &op : NULL)
                    : engine->post(server.endpoint, at, &what);
    if (status == COH_PEER_LOST)
        status = cohi_verdict_presume(world, amo->call, amo->rank, COHI_LOSS_LINK);
    if (status == COH_OK && waits)
        status = cohi_wait_op_of(world, server, amo->call, amo->doing, amo->rank, &op);
    cohi_world_show_op(world, COHI_OP_NONE);
    return status;
}

static coh_status tell(const cohi_amo *amo, coh_status status)
{
    if (COHI_LIKELY(status == COH_OK) || amo->doing != COHI_OP_ATOMIC)
        return status;
    return cohi_fail_add(status, "it was an atomic %s of %s at %s of rank %d", op_names[amo->op],
                         coh_dtype_name(amo->dtype), cohi_spot_describe(amo->spot).text, amo->rank);
}

coh_status cohi_atomic_apply(coh_world *world, const cohi_amo *amo)
{
    coh_status status = cohi_verdict_check(world, amo->call, amo->rank);
    if (COHI_UNLIKELY(status != COH_OK))
        return tell(amo, status);
    if (world->race && amo->doing == COHI_OP_ATOMIC)
        return cohi_race_atomic(world, amo);
    /* One domain of atomicity: where the engine's atomics are not the CPU's, all go by engine. */
    if (COHI_UNLIKELY(cohi_relay_serves(world, amo->rank, amo->spot)))
        return tell(amo, cohi_relay_atomic(world, amo));
    char *there =
        cohi_world_atomics_by_engine(world) ? NULL : cohi_heap_reach(world, amo->rank, amo->spot);
    return there ? apply_here(world, amo, there) : tell(amo, apply_by_engine(world, amo));
}

/* ---- checking ---- */

static coh_status check_kind(const coh_world *world, const cohi_amo *amo)
{
    if ((unsigned)amo->op >= sizeof op_names / sizeof *op_names)
        return cohi_world_fail(world, amo->call, COH_INVALID_ARGUMENT, "%d is not a coh_atomic_op",
                               (int)amo->op);
    if (!coh_dtype_name(amo->dtype))
        return cohi_world_fail(world, amo->call, COH_INVALID_ARGUMENT, "%d is not a coh_dtype",
                               (int)amo->dtype);
    if (!cohi_host_atomic_find(amo->op, amo->dtype))
        return cohi_world_fail(world, amo->call, COH_INVALID_ARGUMENT,
                               "there is no atomic %s of %s", op_names[amo->op],
                               coh_dtype_name(amo->dtype));
    return COH_OK;
}

static coh_status check_pointers(const coh_world *world, const cohi_amo *amo, bool fetching)
{
    const char *missing = NULL;
    if (amo->op != COH_ATOMIC_FETCH && !amo->operand)
        missing = amo->op == COH_ATOMIC_COMPARE_SWAP ? "desired" : "operand";
    else if (amo->op == COH_ATOMIC_COMPARE_SWAP && !amo->compare)
        missing = "expected";
    else if (fetching && !amo->result)
        missing = "result";
    if (missing)
        return cohi_world_fail(world, amo->call, COH_INVALID_ARGUMENT, "%s is NULL", missing);
    coh_status status = cohi_device_refuse(world, amo->call, "the operand", amo->operand);
    if (status == COH_OK)
        status = cohi_device_refuse(world, amo->call, "expected", amo->compare);
    return status == COH_OK ? cohi_device_refuse(world, amo->call, "the result", amo->result)
                            : status;
}

static coh_status check_place(coh_world *world, cohi_amo *amo, const void *target)
{
    size_t bytes = coh_dtype_size(amo->dtype);
    coh_status status = cohi_world_check_rank(world, amo->call, amo->rank);
    if (status == COH_OK)
        status = cohi_heap_locate(world, amo->call, target, &amo->spot);
    if (status == COH_OK)
        status = cohi_heap_check_range(world, amo->call, amo->rank, amo->spot, bytes);
    if (status == COH_OK && (uintptr_t)target % bytes != 0)
        status = cohi_world_fail(world, amo->call, COH_BAD_ALIGNMENT,
                                 "address %p is not aligned to the %zu bytes of %s", target, bytes,
                                 coh_dtype_name(amo->dtype));
    return status;
}

/* The slow path. */
static coh_status apply_checked(coh_world *world, cohi_amo *amo, const void *target, bool fetching)
{
    coh_status status = cohi_world_enter(world, amo->call);
    if (status == COH_OK)
        status = check_kind(world, amo);
    if (status == COH_OK)
        status = check_pointers(world, amo, fetching);
    if (status == COH_OK)
        status = check_place(world, amo, target);
    if (status == COH_OK)
        status = cohi_fault_strike(world->fault, COHI_OP_ATOMIC);
    return status == COH_OK ? cohi_atomic_apply(world, amo) : status;
}

/*
 * The fast path: a mapped word, all arguments in order. Any of them out of order is for the slow
 * path to say; so is a NULL pointer among those the kernel would read.
 */
static inline __attribute__((always_inline)) bool apply_fast(coh_world *world, void *target,
                                                             const cohi_amo *amo, void *result)
{
    cohi_host_atomic *kernel = cohi_host_atomic_find(amo->op, amo->dtype);
    size_t bytes = amo->dtype == COH_I32 || amo->dtype == COH_U32 || amo->dtype == COH_F32 ? 4 : 8;
    char *there = cohi_rma_direct(world, target, bytes, amo->rank);
    if (COHI_UNLIKELY(!there))
        there = cohi_heap_further_direct(world, target, bytes, amo->rank);
    if (!there || !kernel || ((uintptr_t)there & (bytes - 1)) != 0
        || cohi_world_atomics_by_engine(world) || (!amo->operand && amo->op != COH_ATOMIC_FETCH)
        || (!amo->compare && amo->op == COH_ATOMIC_COMPARE_SWAP))
        return false;
    kernel(there, amo->operand, amo->compare, result);
    cohi_control_wake_watcher(world->peers[amo->rank].slot);
    return true;
}

/* For the slow path; see cohi_transfer_fields. */
static inline __attribute__((always_inline)) cohi_amo fields_of(const cohi_amo *amo)
{
    return (cohi_amo){.call = amo->call,
                      .doing = COHI_OP_ATOMIC,
                      .context = amo->context,
                      .op = amo->op,
                      .dtype = amo->dtype,
                      .rank = amo->rank,
                      .operand = amo->operand,
                      .compare = amo->compare,
                      .result = amo->result,
                      .blocking = amo->blocking};
}

/* Without a result. */
static inline coh_status atomic(coh_world *world, void *target, cohi_amo amo)
{
    uint64_t unwanted;
    if (apply_fast(world, target, &amo, &unwanted))
        return COH_OK;
    cohi_amo checked = fields_of(&amo);
    return apply_checked(world, &checked, target, false);
}

/* With a result, which must not be NULL. */
static inline coh_status fetch(coh_world *world, void *target, cohi_amo amo)
{
    if (amo.result && apply_fast(world, target, &amo, amo.result))
        return COH_OK;
    cohi_amo checked = fields_of(&amo);
    return apply_checked(world, &checked, target, true);
}

/* ---- 64-bit integers of mapped peers ---- */

/* A 64-bit integer of a mapped peer, and what its owner may sleep on. */
struct word64 {
    uint64_t *at; /* NULL: for the slow path */
    cohi_slot *slot;
};

/*
 * A lock-prefixed instruction waits for all stores before it, so each register that a call saves
 * costs a nanosecond: the operations that programs count and elect by are done in the public
 * function itself, without a call.
 */
static inline __attribute__((always_inline)) struct word64
find_word64(coh_world *world, coh_dtype dtype, void *target, const void *operand,
            const void *result, int rank)
{
    const struct word64 none = {0};
    /* What is NULL is found in between other tests: side by side compilers merge them into more
     * instructions, each of which the locked one waits for. */
    if (dtype != COH_U64 && dtype != COH_I64)
        return none;
    if (!cohi_world_plain_atomics(world) || !operand || (unsigned)rank >= (unsigned)world->size)
        return none;
    /* The heap begins and ends at a page: an aligned word that begins in it ends in it. Looking
     * through registered memory here would cost the saved registers: apply_fast does. */
    uint64_t offset = (uint64_t)((uintptr_t)target - (uintptr_t)world->heap_base);
    if (offset >= atomic_load_explicit(&world->heap_limit, memory_order_relaxed) || !result
        || (uintptr_t)target % sizeof(uint64_t) != 0)
        return none;
    const cohi_peer *peer = &world->peers[(unsigned)rank];
    return peer->heap ? (struct word64){(uint64_t *)(void *)(peer->heap + offset), peer->slot}
                      : none;
}

static inline __attribute__((always_inline)) coh_status
add_word64(struct word64 word, const void *operand, void *result)
{
    uint64_t value;
    memcpy(&value, operand, sizeof value);
    value = __atomic_fetch_add(word.at, value, __ATOMIC_SEQ_CST);
    memcpy(result, &value, sizeof value);
    return cohi_control_end(word.slot);
}

static inline __attribute__((always_inline)) coh_status
swap_word64(struct word64 word, const void *expected, const void *desired, void *result)
{
    uint64_t value, old;
    memcpy(&value, desired, sizeof value);
    memcpy(&old, expected, sizeof old);
    __atomic_compare_exchange_n(word.at, &old, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    memcpy(result, &old, sizeof old);
    return cohi_control_end(word.slot);
}

/* ---- the public forms ---- */

coh_status coh_atomic(coh_world *world, coh_atomic_op op, coh_dtype dtype, void *target,
                      const void *operand, int rank)
{
    return atomic(
        world, target,
        (cohi_amo){
            .call = "coh_atomic", .op = op, .dtype = dtype, .rank = rank, .operand = operand});
}

static __attribute__((noinline)) coh_status fetch_any(coh_world *world, coh_atomic_op op,
                                                      coh_dtype dtype, void *target,
                                                      const void *operand, void *result, int rank)
{
    return fetch(world, target,
                 (cohi_amo){.call = "coh_atomic_fetch",
                            .op = op,
                            .dtype = dtype,
                            .rank = rank,
                            .operand = operand,
                            .result = result,
                            .blocking = true});
}

coh_status coh_atomic_fetch(coh_world *world, coh_atomic_op op, coh_dtype dtype, void *target,
                            const void *operand, void *result, int rank)
{
    if (op != COH_ATOMIC_ADD)
        return fetch_any(world, op, dtype, target, operand, result, rank);
    struct word64 word = find_word64(world, dtype, target, operand, result, rank);
    return word.at ? add_word64(word, operand, result)
                   : fetch_any(world, op, dtype, target, operand, result, rank);
}

static __attribute__((noinline)) coh_status swap_any(coh_world *world, coh_dtype dtype,
                                                     void *target, const void *expected,
                                                     const void *desired, void *result, int rank)
{
    return fetch(world, target,
                 (cohi_amo){.call = "coh_atomic_compare_swap",
                            .op = COH_ATOMIC_COMPARE_SWAP,
                            .dtype = dtype,
                            .rank = rank,
                            .operand = desired,
                            .compare = expected,
                            .result = result,
                            .blocking = true});
}

coh_status coh_atomic_compare_swap(coh_world *world, coh_dtype dtype, void *target,
                                   const void *expected, const void *desired, void *result,
                                   int rank)
{
    if (!expected)
        return swap_any(world, dtype, target, expected, desired, result, rank);
    struct word64 word = find_word64(world, dtype, target, desired, result, rank);
    return word.at ? swap_word64(word, expected, desired, result)
                   : swap_any(world, dtype, target, expected, desired, result, rank);
}

coh_status coh_atomic_fetch_nbi(coh_world *world, coh_atomic_op op, coh_dtype dtype, void *target,
                                const void *operand, void *result, int rank)
{
    return fetch(world, target,
                 (cohi_amo){.call = "coh_atomic_fetch_nbi",
                            .op = op,
                            .dtype = dtype,
                            .rank = rank,
                            .operand = operand,
                            .result = result});
}

coh_status coh_atomic_compare_swap_nbi(coh_world *world, coh_dtype dtype, void *target,
                                       const void *expected, const void *desired, void *result,
                                       int rank)
{
    return fetch(world, target,
                 (cohi_amo){.call = "coh_atomic_compare_swap_nbi",
                            .op = COH_ATOMIC_COMPARE_SWAP,
                            .dtype = dtype,
                            .rank = rank,
                            .operand = desired,
                            .compare = expected,
                            .result = result});
}

coh_status coh_context_atomic(coh_context *context, coh_atomic_op op, coh_dtype dtype, void *target,
                              const void *operand, int rank)
{
    static const char call[] = "coh_context_atomic";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? atomic(context->world, target,
                                     (cohi_amo){.call = call,
                                                .context = context->number,
                                                .op = op,
                                                .dtype = dtype,
                                                .rank = rank,
                                                .operand = operand})
                            : status;
}

static __attribute__((noinline)) coh_status context_fetch_any(const coh_context *context,
                                                              coh_atomic_op op, coh_dtype dtype,
                                                              void *target, const void *operand,
                                                              void *result, int rank)
{
    static const char call[] = "coh_context_atomic_fetch";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? fetch(context->world, target,
                                    (cohi_amo){.call = call,
                                               .context = context->number,
                                               .op = op,
                                               .dtype = dtype,
                                               .rank = rank,
                                               .operand = operand,
                                               .result = result,
                                               .blocking = true})
                            : status;
}

coh_status coh_context_atomic_fetch(coh_context *context, coh_atomic_op op, coh_dtype dtype,
                                    void *target, const void *operand, void *result, int rank)
{
    if (op != COH_ATOMIC_ADD || !context || !context->open)
        return context_fetch_any(context, op, dtype, target, operand, result, rank);
    struct word64 word = find_word64(context->world, dtype, target, operand, result, rank);
    return word.at ? add_word64(word, operand, result)
                   : context_fetch_any(context, op, dtype, target, operand, result, rank);
}

static __attribute__((noinline)) coh_status
context_swap_any(const coh_context *context, coh_dtype dtype, void *target, const void *expected,
                 const void *desired, void *result, int rank)
{
    static const char call[] = "coh_context_atomic_compare_swap";
    coh_status status = cohi_context_gate(context, call);
    return status == COH_OK ? fetch(context->world, target,
                                    (cohi_amo){.call = call,
                                               .context = context->number,
                                               .op = COH_ATOMIC_COMPARE_SWAP,
                                               .dtype = dtype,
                                               .rank = rank,
                                               .operand = desired,
                                               .compare = expected,
                                               .result = result,
                                               .blocking = true})
                            : status;
}

coh_status coh_context_atomic_compare_swap(coh_context *context, coh_dtype dtype, void *target,
                                           const void *expected, const void *desired, void *result,
                                           int rank)
{
    if (!expected || !context || !context->open)
        return context_swap_any(context, dtype, target, expected, desired, result, rank);
    struct word64 word = find_word64(context->world, dtype, target, desired, result, rank);
    return word.at ? swap_word64(word, expected, desired, result)
                   : context_swap_any(context, dtype, target, expected, desired, result, rank);
}
