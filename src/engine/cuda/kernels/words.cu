/* words.cu - waits for a word, signals and small puts, strided blocks. */
#include "collective.cuh"

namespace
{

/* As coh_compare. */
enum compare { EQ = 1, NE = 2, GT = 3, GE = 4, LT = 5, LE = 6 };

__device__ inline bool holds(int compare, uint64_t word, uint64_t value)
{
    switch (compare) {
    case EQ:
        return word == value;
    case NE:
        return word != value;
    case GT:
        return word > value;
    case GE:
        return word >= value;
    case LT:
        return word < value;
    default:
        return word <= value;
    }
}

/* The rank that is lost and because of which the word may never come; -1: none. */
__device__ inline int lost_writer(const cohi_cuda_word &word)
{
    if (word.rank >= 0)
        return is_lost(word.status, word.rank) ? word.rank : -1;
    for (int rank = 0; rank < word.ranks; rank++) {
        if (is_lost(word.status, rank))
            return rank;
    }
    return -1;
}

} /* namespace */

extern "C" __global__ void cohi_cuda_wait_kernel(const __grid_constant__ cohi_cuda_word word)
{
    await_what_is_before();
    const uint64_t *at = reinterpret_cast<const uint64_t *>(word.word);
    const uint32_t team = COHI_CUDA_TEAMS;
    patience patience = {0, 0};
    for (unsigned looks = 1; !holds(word.compare, load_acquire(at), word.value); looks++) {
        if (looks % 32 != 0 || !runs_out(patience))
            continue;
        int lost = lost_writer(word);
        if (lost >= 0) {
            cohi_cuda_report report = {word.value, load_acquire(at), 0, lost, 0, COHI_CUDA_LOST};
            write_report(&status_page(word.status)->reports[team], report);
            break;
        }
        tell_long_wait(patience, word.status, team, static_cast<uint32_t>(word.value), word.rank);
    }
    if (patience.tell_ns != 0)
        tell_waiting(word.status, team, 0, -1);
}

/* One block: the signal is stored when all of its threads have stored their part. */
extern "C" __global__ void __launch_bounds__(COHI_CUDA_BLOCK_THREADS)
    cohi_cuda_push_kernel(const __grid_constant__ cohi_cuda_push push)
{
    await_what_is_before();
    let_next_start();
    copy_range(reinterpret_cast<char *>(push.target), reinterpret_cast<const char *>(push.source),
               push.bytes, block_crowd());
    if (!push.signal)
        return;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    __threadfence_system();
    uint64_t *signal = reinterpret_cast<uint64_t *>(push.signal);
    if (push.add)
        atomicAdd_system(reinterpret_cast<unsigned long long *>(signal),
                         static_cast<unsigned long long>(push.value));
    else
        store_release(signal, push.value);
}

/* Blocks of threads take blocks of data in turn. */
extern "C" __global__ void __launch_bounds__(COHI_CUDA_BLOCK_THREADS)
    cohi_cuda_strided_kernel(const __grid_constant__ cohi_cuda_blocks blocks)
{
    await_what_is_before();
    let_next_start();
    for (uint64_t i = blockIdx.x; i < blocks.count; i += gridDim.x)
        copy_range(reinterpret_cast<char *>(blocks.target + i * blocks.target_by),
                   reinterpret_cast<const char *>(blocks.source + i * blocks.source_by),
                   blocks.block, block_crowd());
}
