/*
 * call.cuh - what a call is, as all ways of carrying it out see it: kinds, pieces, who takes what.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_CALL_CUH
#define COHI_ENGINE_CUDA_KERNELS_CALL_CUH

#include "ranges.cuh"
#include "shared.h"

namespace
{

/* As coh_collective_kind. */
enum kind {
    BARRIER = 0,
    ALL_REDUCE = 1,
    REDUCE = 2,
    REDUCE_SCATTER = 3,
    ALL_GATHER = 4,
    GATHER = 5,
    SCATTER = 6,
    BROADCAST = 7,
    ALL_TO_ALL = 8,
    SCAN = 9,
    SCAN_EXCLUSIVE = 10
};

/* Of a block of threads: lists of addresses, and the members' posts. */
struct lists {
    const char *sources[COHI_CUDA_MEMBERS];
    char *targets[COHI_CUDA_MEMBERS];
    double scales[COHI_CUDA_MEMBERS];
    const char *source_of[COHI_CUDA_MEMBERS];
    char *target_of[COHI_CUDA_MEMBERS];
    int scaled;
    unsigned buffers_of[COHI_CUDA_MEMBERS];
};

/* The type of calls that move elements as they are. */
struct bytes_only {
};

template <class type, int OP> struct reducer {
    __device__ static void run(recipe recipe, char *const *targets, int target_count,
                               const char *const *sources, int source_count, uint64_t count,
                               uint32_t, crowd crowd)
    {
        reduce_range<type, OP>(recipe, targets, target_count, sources, source_count, count, crowd);
    }
};

/* A copy to several targets. */
template <int OP> struct reducer<bytes_only, OP> {
    __device__ static void run(recipe, char *const *targets, int target_count,
                               const char *const *sources, int, uint64_t count, uint32_t element,
                               crowd crowd)
    {
        if (target_count == 1)
            copy_range(targets[0], sources[0], count * element, crowd);
        else
            copy_to_many(targets, target_count, sources[0], count * element, crowd);
    }
};

template <class type> struct scaler {
    __device__ static void run(double scale, char *target, const char *source, uint64_t count,
                               crowd crowd)
    {
        scale_range<type>(scale, target, source, count, crowd);
    }
};
template <> struct scaler<bytes_only> {
    __device__ static void run(double, char *, const char *, uint64_t, crowd)
    {
    }
};

template <class type> struct is_reduction {
    static constexpr bool yes = true;
};
template <> struct is_reduction<bytes_only> {
    static constexpr bool yes = false;
};

/* ---- what a call has ---- */

__device__ inline bool is_blocked_source(int kind)
{
    return kind == REDUCE_SCATTER || kind == SCATTER || kind == ALL_TO_ALL;
}

/* Blocks of the source that this member shows to others. */
__device__ inline int shown_pieces(const cohi_cuda_call &call)
{
    bool root_gives = call.kind == SCATTER || call.kind == BROADCAST;
    if (root_gives && call.index != call.root)
        return 0;
    return call.kind == BARRIER ? 0 : is_blocked_source(call.kind) ? call.size : 1;
}

/* Elements of piece `piece` of this member's source. */
__device__ inline uint64_t piece_count(const cohi_cuda_call &call, int piece)
{
    if (is_blocked_source(call.kind))
        return call.members[piece].count;
    if (call.kind == ALL_GATHER || call.kind == GATHER)
        return call.members[call.index].count;
    return call.count;
}

__device__ inline uint64_t clip(uint64_t count, uint64_t from, uint64_t most)
{
    return from >= count ? 0 : min(count - from, most);
}

__device__ inline recipe recipe_of(const cohi_cuda_call &call, const double *scales)
{
    recipe recipe = {call.op, call.size, scales};
    return recipe;
}

/* Members whose sources a scan takes. */
__device__ inline int scanned(const cohi_cuda_call &call)
{
    return call.kind == SCAN             ? call.index + 1
           : call.kind == SCAN_EXCLUSIVE ? call.index
                                         : call.size;
}

/* What the first member of an exclusive scan gets. */
__device__ inline void fill_neutral(const cohi_cuda_call &call, char *target, uint64_t count,
                                    crowd crowd)
{
    uint64_t bytes = count * call.element;
    for (uint64_t at = crowd.worker; at < bytes; at += crowd.workers)
        target[at] = static_cast<char>(call.neutral >> at % call.element * 8);
}

/* ---- who does what ---- */

__device__ inline uint64_t step_first(const cohi_cuda_call &call, uint64_t step)
{
    return (step * gridDim.x + blockIdx.x) * call.piece;
}

__device__ inline crowd block_crowd()
{
    crowd crowd = {threadIdx.x, blockDim.x};
    return crowd;
}

__device__ inline crowd grid_crowd()
{
    uint32_t warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    crowd crowd = {warp * 32 + threadIdx.x % 32, gridDim.x * blockDim.x};
    return crowd;
}

} /* namespace */

#endif
