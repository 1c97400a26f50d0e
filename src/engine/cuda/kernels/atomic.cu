/*
 * atomic.cu - one read-modify-write on a word of device memory, of this card or of one that it reaches.
 *
 * Integers of four and eight bytes; floats for what only moves bits. The order is that of the CPU's
 * atomics: all that this thread's stream wrote before is seen before it, by the host and other cards too.
 */
#include <cstdint>

enum { SET, ADD, AND, OR, XOR, FETCH, COMPARE_SWAP }; /* as coh_atomic_op */

template <typename word>
__device__ static word apply(int op, word *target, word operand, word compare)
{
    switch (op) {
    case SET:
        return atomicExch_system(target, operand);
    case ADD:
        return atomicAdd_system(target, operand);
    case AND:
        return atomicAnd_system(target, operand);
    case OR:
        return atomicOr_system(target, operand);
    case XOR:
        return atomicXor_system(target, operand);
    case FETCH:
        return atomicOr_system(target, static_cast<word>(0));
    default:
        return atomicCAS_system(target, compare, operand);
    }
}

/* The word as it was goes to `result`, unless that is NULL: memory of the card, or pinned memory. */
extern "C" __global__ void cohi_cuda_atomic(int op, int bytes, void *target, std::uint64_t operand,
                                            std::uint64_t compare, void *result)
{
    __threadfence_system();
    std::uint64_t old;
    if (bytes == 8)
        old = apply(op, static_cast<unsigned long long *>(target),
                    static_cast<unsigned long long>(operand),
                    static_cast<unsigned long long>(compare));
    else
        old = apply(op, static_cast<unsigned *>(target), static_cast<unsigned>(operand),
                    static_cast<unsigned>(compare));
    __threadfence_system();
    if (result && bytes == 8)
        *static_cast<std::uint64_t *>(result) = old;
    else if (result)
        *static_cast<std::uint32_t *>(result) = static_cast<std::uint32_t>(old);
}
