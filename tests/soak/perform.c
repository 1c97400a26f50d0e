#include "soak.h"

#include <stdlib.h>
#include <string.h>

/* One phase of this rank: where each operation's bytes come from or go to until all is complete. */
struct phase {
    soak_run *run;
    soak_op ops[SOAK_CHUNKS];
    unsigned char buffers[SOAK_CHUNKS][SOAK_CHUNK];
    uint64_t fetched[SOAK_CHUNKS];
    uint64_t owned[SOAK_RANKS]; /* by rank: what this one's word is there by now */
};

/* ---- by the world, or by a context ---- */

static coh_status put(soak_run *run, int lane, void *target, const void *source, size_t bytes,
                      int to)
{
    return lane ? coh_context_put(run->contexts[lane], target, source, bytes, to)
                : coh_put(run->world, target, source, bytes, to);
}

static coh_status put_nbi(soak_run *run, int lane, void *target, const void *source, size_t bytes,
                          int to)
{
    return lane ? coh_context_put_nbi(run->contexts[lane], target, source, bytes, to)
                : coh_put_nbi(run->world, target, source, bytes, to);
}

static coh_status get(soak_run *run, int lane, void *target, const void *source, size_t bytes,
                      int to)
{
    return lane ? coh_context_get(run->contexts[lane], target, source, bytes, to)
                : coh_get(run->world, target, source, bytes, to);
}

static coh_status get_nbi(soak_run *run, int lane, void *target, const void *source, size_t bytes,
                          int to)
{
    return lane ? coh_context_get_nbi(run->contexts[lane], target, source, bytes, to)
                : coh_get_nbi(run->world, target, source, bytes, to);
}

static coh_status change(soak_run *run, int lane, coh_atomic_op op, coh_dtype dtype, void *word,
                         const void *operand, int to)
{
    return lane ? coh_context_atomic(run->contexts[lane], op, dtype, word, operand, to)
                : coh_atomic(run->world, op, dtype, word, operand, to);
}

static coh_status fetch(soak_run *run, int lane, coh_atomic_op op, void *word, const void *operand,
                        void *result, int to)
{
    return lane ? coh_context_atomic_fetch(run->contexts[lane], op, COH_U64, word, operand, result,
                                           to)
                : coh_atomic_fetch(run->world, op, COH_U64, word, operand, result, to);
}

static coh_status quiet(soak_run *run, int lane)
{
    return lane ? coh_context_quiet(run->contexts[lane]) : coh_quiet(run->world);
}

/* ---- the kinds ---- */

static coh_status put_with_signal(struct phase *phase, const soak_op *op,
                                  const unsigned char *bytes, unsigned char *chunk)
{
    soak_run *run = phase->run;
    uint64_t *signal = &run->heap->signals[run->rank][op->chunk];
    uint64_t step = 1 + op->value % 5;
    uint64_t now = run->model[op->to].signals[run->rank][op->chunk];
    uint64_t value = op->adds ? step : now + step;
    coh_signal_op how = op->adds ? COH_SIGNAL_ADD : COH_SIGNAL_SET;
    if (op->kind == SOAK_SIGNAL_NBI)
        return coh_put_signal_nbi(run->world, chunk + op->at, bytes, op->bytes, signal, value, how,
                                  op->to);
    return op->lane ? coh_context_put_signal(run->contexts[op->lane], chunk + op->at, bytes,
                                             op->bytes, signal, value, how, op->to)
                    : coh_put_signal(run->world, chunk + op->at, bytes, op->bytes, signal, value,
                                     how, op->to);
}

/* Puts of one phase go to chunks of their own, so they need no order. */
static coh_status perform_put(struct phase *phase, const soak_op *op, unsigned char *bytes)
{
    soak_run *run = phase->run;
    unsigned char *chunk = run->heap->data[run->phase % 2][run->rank][op->chunk];
    soak_fill(op, bytes);
    switch (op->kind) {
    case SOAK_PUT:
        return put(run, op->lane, chunk + op->at, bytes, op->bytes, op->to);
    case SOAK_PUT_NBI:
        return put_nbi(run, op->lane, chunk + op->at, bytes, op->bytes, op->to);
    case SOAK_PUT_STRIDED:
        return coh_put_strided(run->world, chunk, op->stride, bytes, op->other_stride, op->block,
                               op->count, op->to);
    default:
        return put_with_signal(phase, op, bytes, chunk);
    }
}

/* Gets read what the phase before left. */
static coh_status perform_get(struct phase *phase, const soak_op *op, unsigned char *bytes)
{
    soak_run *run = phase->run;
    const unsigned char *chunk = run->heap->data[1 - run->phase % 2][op->source][op->chunk];
    memset(bytes, 0xdd, SOAK_CHUNK);
    if (op->kind == SOAK_GET)
        return get(run, op->lane, bytes, chunk + op->at, op->bytes, op->to);
    if (op->kind == SOAK_GET_NBI)
        return get_nbi(run, op->lane, bytes, chunk + op->at, op->bytes, op->to);
    return coh_get_strided(run->world, bytes, op->other_stride, chunk, op->stride, op->block,
                           op->count, op->to);
}

static coh_status perform_shared(struct phase *phase, const soak_op *op, uint64_t *result)
{
    soak_run *run = phase->run;
    coh_atomic_op how = soak_change(run, op->word);
    uint32_t half = (uint32_t)op->value;
    if (op->kind == SOAK_CHANGE)
        return change(run, op->lane, how, COH_U64, &run->heap->words[op->word], &op->value, op->to);
    if (op->kind == SOAK_CHANGE_HALF)
        return change(run, op->lane, how, COH_I32, &run->heap->halves[op->word], &half, op->to);
    if (op->adds)
        return coh_atomic_fetch_nbi(run->world, how, COH_I64, &run->heap->words[op->word],
                                    &op->value, result, op->to);
    return fetch(run, op->lane, how, &run->heap->words[op->word], &op->value, result, op->to);
}

/* Nobody else writes this word, and each operation on it is complete before the next. */
static coh_status perform_own(struct phase *phase, const soak_op *op)
{
    soak_run *run = phase->run;
    uint64_t *word = &run->heap->owned[run->rank], now = phase->owned[op->to], before = now;
    uint64_t compare = op->adds ? now : ~now;
    coh_status status;
    if (op->kind == SOAK_SET_OWN) {
        status = change(run, op->lane, COH_ATOMIC_SET, COH_U64, word, &op->value, op->to);
        if (status == COH_OK)
            status = quiet(run, op->lane);
    } else if (op->kind == SOAK_SWAP_OWN) {
        status = fetch(run, op->lane, COH_ATOMIC_SET, word, &op->value, &before, op->to);
    } else {
        status = coh_atomic_compare_swap(run->world, COH_U64, word, &compare, &op->value, &before,
                                         op->to);
    }
    if (status == COH_OK && before != now)
        soak_fail(run, "rank %d's word of rank %d was %llx, expected %llx", op->to, run->rank,
                  (unsigned long long)before, (unsigned long long)now);
    if (op->kind != SOAK_COMPARE_OWN || op->adds)
        phase->owned[op->to] = op->value;
    return status;
}

static coh_status perform_one(struct phase *phase, size_t index)
{
    const soak_op *op = &phase->ops[index];
    switch (op->kind) {
    case SOAK_GET:
    case SOAK_GET_NBI:
    case SOAK_GET_STRIDED:
        return perform_get(phase, op, phase->buffers[index]);
    case SOAK_CHANGE:
    case SOAK_CHANGE_HALF:
    case SOAK_FETCH:
        return perform_shared(phase, op, &phase->fetched[index]);
    case SOAK_SET_OWN:
    case SOAK_SWAP_OWN:
    case SOAK_COMPARE_OWN:
        return perform_own(phase, op);
    default:
        return perform_put(phase, op, phase->buffers[index]);
    }
}

/* ---- checks ---- */

static void check_get(const struct phase *phase, size_t index)
{
    const soak_run *run = phase->run;
    const soak_op *op = &phase->ops[index];
    const unsigned char *chunk = run->model[op->to].data[1 - run->phase % 2][op->source][op->chunk];
    unsigned char wanted[SOAK_CHUNK];
    memset(wanted, 0xdd, sizeof wanted);
    if (op->kind == SOAK_GET_STRIDED)
        soak_copy(wanted, op->other_stride, chunk, op->stride, op->block, op->count);
    else
        memcpy(wanted, chunk + op->at, op->bytes);
    if (memcmp(wanted, phase->buffers[index], sizeof wanted) != 0)
        soak_fail(run, "operation %zu got other bytes from rank %d than were there", index, op->to);
}

/* A word that others change too was at least on its way from where the phase found it. */
static void check_fetch(const struct phase *phase, size_t index)
{
    const soak_run *run = phase->run;
    const soak_op *op = &phase->ops[index];
    uint64_t start = run->model[op->to].words[op->word], got = phase->fetched[index];
    coh_atomic_op how = soak_change(run, op->word);
    if ((how == COH_ATOMIC_OR && (got & start) != start)
        || (how == COH_ATOMIC_AND && (got & ~start) != 0))
        soak_fail(run, "operation %zu fetched %llx, which %llx cannot have become", index,
                  (unsigned long long)got, (unsigned long long)start);
}

/* Each signal that is to come, and its data, which must be there with it. */
static void await_signals_of(soak_run *run, int source)
{
    soak_op ops[SOAK_CHUNKS];
    unsigned char bytes[SOAK_CHUNK];
    soak_plan(run, source, ops);
    for (size_t i = 0; i < SOAK_CHUNKS; i++) {
        const soak_op *op = &ops[i];
        if ((op->kind != SOAK_SIGNAL && op->kind != SOAK_SIGNAL_NBI) || op->to != run->rank)
            continue;
        uint64_t wanted = run->model[run->rank].signals[source][i] + 1 + op->value % 5;
        soak_must(run,
                  coh_wait_until(run->world, COH_U64, &run->heap->signals[source][i], COH_EQ,
                                 &wanted, source),
                  "wait for a signal");
        soak_fill(op, bytes);
        if (memcmp(run->heap->data[run->phase % 2][source][i] + op->at, bytes, op->bytes) != 0)
            soak_fail(run, "signal %zu of rank %d came before its data", i, source);
    }
}

void soak_perform(soak_run *run)
{
    struct phase *phase = calloc(1, sizeof *phase);
    if (!phase)
        soak_fail(run, "out of memory");
    phase->run = run;
    soak_plan(run, run->rank, phase->ops);
    for (int rank = 0; rank < run->size; rank++)
        phase->owned[rank] = run->model[rank].owned[run->rank];
    for (size_t i = 0; i < SOAK_CHUNKS; i++)
        soak_must(run, perform_one(phase, i), "operation");
    for (int source = 0; source < run->size; source++)
        await_signals_of(run, source);
    for (int lane = 0; lane < SOAK_LANES; lane++)
        soak_must(run, quiet(run, lane), "quiet");
    for (size_t i = 0; i < SOAK_CHUNKS; i++) {
        soak_kind kind = phase->ops[i].kind;
        if (kind == SOAK_GET || kind == SOAK_GET_NBI || kind == SOAK_GET_STRIDED)
            check_get(phase, i);
        else if (kind == SOAK_FETCH)
            check_fetch(phase, i);
    }
    run->operations += SOAK_CHUNKS;
    free(phase);
}
