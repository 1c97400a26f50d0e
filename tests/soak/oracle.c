#include "soak.h"

#include <string.h>

void soak_copy(unsigned char *to, size_t to_stride, const unsigned char *from, size_t from_stride,
               size_t block, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * to_stride, from + i * from_stride, block);
}

static uint64_t changed(coh_atomic_op op, uint64_t word, uint64_t operand)
{
    switch (op) {
    case COH_ATOMIC_ADD:
        return word + operand;
    case COH_ATOMIC_AND:
        return word & operand;
    case COH_ATOMIC_OR:
        return word | operand;
    default:
        return word ^ operand;
    }
}

static void put(unsigned char *chunk, const soak_op *op)
{
    unsigned char bytes[SOAK_CHUNK];
    soak_fill(op, bytes);
    if (op->kind == SOAK_PUT_STRIDED)
        soak_copy(chunk, op->stride, bytes, op->other_stride, op->block, op->count);
    else
        memcpy(chunk + op->at, bytes, op->bytes);
}

void soak_apply(struct soak_heap *model, const soak_run *run, int rank, const soak_op *op)
{
    struct soak_heap *there = &model[op->to];
    coh_atomic_op change = soak_change(run, op->word);
    switch (op->kind) {
    case SOAK_SIGNAL:
    case SOAK_SIGNAL_NBI:
        there->signals[rank][op->chunk] += 1 + op->value % 5;
        put(there->data[run->phase % 2][rank][op->chunk], op);
        break;
    case SOAK_PUT:
    case SOAK_PUT_NBI:
    case SOAK_PUT_STRIDED:
        put(there->data[run->phase % 2][rank][op->chunk], op);
        break;
    case SOAK_CHANGE:
    case SOAK_FETCH:
        there->words[op->word] = changed(change, there->words[op->word], op->value);
        break;
    case SOAK_CHANGE_HALF:
        there->halves[op->word] =
            (uint32_t)changed(change, there->halves[op->word], (uint32_t)op->value);
        break;
    case SOAK_COMPARE_OWN:
        there->owned[rank] = op->adds ? op->value : there->owned[rank];
        break;
    case SOAK_SET_OWN:
    case SOAK_SWAP_OWN:
        there->owned[rank] = op->value;
        break;
    case SOAK_GET:
    case SOAK_GET_NBI:
    case SOAK_GET_STRIDED:
        break;
    }
}
