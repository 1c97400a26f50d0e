/*
 * collective.cuh - one collective, as the kernels of all members carry it out together.
 *
 * What a kind does with the members' blocks is in three places: packets.cuh for what is short, `staged` for what goes
 * by the scratch, and `direct` for what is symmetric. Work is divided so that each member moves about as much as any other.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_COLLECTIVE_CUH
#define COHI_ENGINE_CUDA_KERNELS_COLLECTIVE_CUH

#include "call.cuh"
#include "early.cuh"
#include "meeting.cuh"
#include "packets.cuh"
#include "ranges.cuh"

namespace
{

/* ---- by the scratch ---- */

/* Where this block's part of the scratch is in a control segment. */
__device__ inline uint64_t scratch_inside(const cohi_cuda_call &call, uint32_t tick)
{
    uint64_t half = static_cast<uint64_t>(call.layout.blocks) * call.scratch_each;
    return call.scratch + (tick & 1) * half + static_cast<uint64_t>(blockIdx.x) * call.scratch_each;
}

__device__ inline char *scratch_of(const cohi_cuda_call &call, int member, uint32_t tick)
{
    return reinterpret_cast<char *>(call.members[member].control + scratch_inside(call, tick));
}

/* Bytes from one piece to the next in a block's part of the scratch. */
__device__ inline uint64_t piece_bytes(const cohi_cuda_call &call)
{
    return (call.piece * call.element + 15) & ~15ull;
}

template <class type>
__device__ inline void show(const cohi_cuda_call &call, uint64_t step, uint32_t tick)
{
    uint64_t first = step_first(call, step);
    const char *source = reinterpret_cast<const char *>(call.source);
    char *scratch = scratch_of(call, call.index, tick);
    int pieces = shown_pieces(call);
    for (int piece = 0; piece < pieces; piece++) {
        uint64_t begins = (is_blocked_source(call.kind) ? call.members[piece].first : 0) + first;
        uint64_t count = clip(piece_count(call, piece), first, call.piece);
        char *target = scratch + piece * piece_bytes(call);
        const char *from = source + begins * call.element;
        if (is_reduction<type>::yes && call.scale != 1.0)
            scaler<type>::run(call.scale, target, from, count, block_crowd());
        else
            copy_range(target, from, count * call.element, block_crowd());
    }
}

/* Copies a block of each member's to this one's target. */
__device__ inline void take_all(const cohi_cuda_call &call, uint64_t first, uint32_t tick)
{
    char *target = reinterpret_cast<char *>(call.target);
    int piece = call.kind == ALL_TO_ALL ? call.index : 0;
    for (int i = 0; i < call.size; i++) {
        int member = (call.index + i) % call.size;
        uint64_t count = clip(call.members[member].count, first, call.piece);
        const char *from = scratch_of(call, member, tick) + piece * piece_bytes(call);
        copy_range(target + (call.members[member].first + first) * call.element, from,
                   count * call.element, block_crowd());
    }
}

__device__ inline void take_root(const cohi_cuda_call &call, uint64_t first, uint32_t tick)
{
    bool scatter = call.kind == SCATTER;
    uint64_t whole = scatter ? call.members[call.index].count : call.count;
    uint64_t count = clip(whole, first, call.piece);
    const char *from =
        scratch_of(call, call.root, tick) + (scatter ? call.index : 0) * piece_bytes(call);
    copy_range(reinterpret_cast<char *>(call.target) + first * call.element, from,
               count * call.element, block_crowd());
}

/* Straight from the members' scratch, without lists: what is short is over before a list is made. */
template <class type, int OP> struct taker {
    __device__ static void run(const cohi_cuda_call &call, uint64_t inside, int members,
                               char *target, uint64_t count)
    {
        typedef typename type::raw raw;
        typedef vector_of<type> vector;
        constexpr uint64_t LANES = vector::LANES;
        const int op = OP == ANY ? call.op : OP;
        uint64_t vectors = reinterpret_cast<uint64_t>(target) % 16 == 0 ? count / LANES : 0;
        for (uint64_t at = threadIdx.x; at < vectors; at += blockDim.x) {
            typename vector::result result = vector::widen(
                load<uint4>(reinterpret_cast<const char *>(call.members[0].control + inside), at));
#pragma unroll 4
            for (int m = 1; m < members; m++)
                vector::template combine<OP>(
                    op, result,
                    load<uint4>(reinterpret_cast<const char *>(call.members[m].control + inside),
                                at));
            store<uint4>(target, at, vector::finish(op, result, call.size));
        }
        for (uint64_t at = vectors * LANES + threadIdx.x; at < count; at += blockDim.x) {
            const char *first = reinterpret_cast<const char *>(call.members[0].control + inside);
            typename type::wide result = type::widen(load<raw>(first, at));
            for (int m = 1; m < members; m++) {
                const char *next = reinterpret_cast<const char *>(call.members[m].control + inside);
                result = type::combine(op, result, type::widen(load<raw>(next, at)));
            }
            store<raw>(target, at, type::narrow(type::finish(op, result, call.size)));
        }
    }
};
template <int OP> struct taker<bytes_only, OP> {
    __device__ static void run(const cohi_cuda_call &, uint64_t, int, char *, uint64_t)
    {
    }
};

template <class type, int OP>
__device__ inline void take_reduced(const cohi_cuda_call &call, uint64_t first, uint32_t tick)
{
    bool scatter = call.kind == REDUCE_SCATTER;
    uint64_t count = clip(scatter ? call.members[call.index].count : call.count, first, call.piece);
    char *target = reinterpret_cast<char *>(call.target) + first * call.element;
    int members = scanned(call);
    if (members == 0) {
        fill_neutral(call, target, count, block_crowd());
        return;
    }
    uint64_t inside = scratch_inside(call, tick) + (scatter ? call.index : 0) * piece_bytes(call);
    taker<type, OP>::run(call, inside, members, target, count);
}

template <class type, int OP>
__device__ inline void take(const cohi_cuda_call &call, uint64_t step, uint32_t tick)
{
    uint64_t first = step_first(call, step);
    if (call.kind == BARRIER)
        return;
    if (is_reduction<type>::yes) {
        if (call.kind != REDUCE || call.index == call.root)
            take_reduced<type, OP>(call, first, tick);
    } else if (call.kind == SCATTER || call.kind == BROADCAST) {
        take_root(call, first, tick);
    } else if (call.kind != GATHER || call.index == call.root) {
        take_all(call, first, tick);
    }
}

/* All pieces from this one on. False: this rank gives up. */
template <class type, int OP>
__device__ inline bool staged(const cohi_cuda_call &call, uint32_t &tick)
{
    for (uint64_t step = 0; step < call.steps; step++) {
        show<type>(call, step, tick + 1);
        if (!meet(call, tick + 1))
            return false;
        let_next_start();
        tick++;
        take<type, OP>(call, step, tick);
    }
    return true;
}

/* ---- all_reduce by the scratch, in slices ---- */

/* Elements of each member's slice of a piece; of 16 bytes at least, so that slices are aligned. */
__device__ inline uint64_t slice_count(const cohi_cuda_call &call, uint64_t count)
{
    uint64_t lanes = 16 / call.element;
    uint64_t each =
        (count + static_cast<uint64_t>(call.size) - 1) / static_cast<uint64_t>(call.size);
    return (each + lanes - 1) / lanes * lanes;
}

template <class type, int OP>
__device__ inline void reduce_slice(const cohi_cuda_call &call, lists &lists, uint64_t count,
                                    uint32_t tick)
{
    uint64_t slice = slice_count(call, count), first = slice * static_cast<uint64_t>(call.index);
    int member = static_cast<int>(threadIdx.x);
    if (member < call.size)
        lists.sources[member] = scratch_of(call, member, tick) + first * call.element;
    if (member == 0)
        lists.targets[0] = scratch_of(call, call.index, tick + 1);
    __syncthreads();
    reducer<type, OP>::run(recipe_of(call, nullptr), lists.targets, 1, lists.sources, call.size,
                           clip(count, first, slice), call.element, block_crowd());
}

__device__ inline void take_slices(const cohi_cuda_call &call, uint64_t first, uint64_t count,
                                   uint32_t tick)
{
    uint64_t slice = slice_count(call, count);
    for (int i = 0; i < call.size; i++) {
        int member = (call.index + i) % call.size;
        uint64_t begins = slice * static_cast<uint64_t>(member);
        char *target = reinterpret_cast<char *>(call.target) + (first + begins) * call.element;
        copy_range(target, scratch_of(call, member, tick),
                   clip(count, begins, slice) * call.element, block_crowd());
    }
}

template <class type, int OP>
__device__ inline bool sliced(const cohi_cuda_call &call, lists &lists, uint32_t &tick)
{
    for (uint64_t step = 0; step < call.steps; step++) {
        uint64_t first = step_first(call, step), count = clip(call.count, first, call.piece);
        show<type>(call, step, tick + 1);
        if (!meet(call, tick + 1))
            return false;
        let_next_start();
        tick++;
        reduce_slice<type, OP>(call, lists, count, tick);
        if (!meet(call, tick + 1))
            return false;
        tick++;
        take_slices(call, first, count, tick);
    }
    return true;
}

/* ---- symmetric memory ---- */

/* `own` and `base`: this member's place, and where the other one has that segment. */
__device__ inline char *place_of(const cohi_cuda_call &call, int member, uint64_t place,
                                 uint64_t own, uint64_t base)
{
    uint64_t segment = COHI_CUDA_PLACE_SEGMENT(place);
    if (segment != COHI_CUDA_PLACE_SEGMENT(own) || base == 0) {
        const uint64_t *table =
            reinterpret_cast<const uint64_t *>(own_control(call) + call.layout.bases);
        base = table[segment * call.layout.ranks + call.members[member].rank];
    }
    return reinterpret_cast<char *>(base + COHI_CUDA_PLACE_OFFSET(place));
}

/* Where a member's buffers are, from its post, which has arrived. */
__device__ inline void read_post(const cohi_cuda_call &call, lists &lists, int member,
                                 const cohi_cuda_post &post)
{
    const cohi_cuda_member &they = call.members[member];
    if (member == call.index) {
        lists.source_of[member] = reinterpret_cast<const char *>(call.source);
        lists.target_of[member] = reinterpret_cast<char *>(call.target);
        lists.scales[member] = call.scale;
        lists.buffers_of[member] = call.buffers;
    } else {
        lists.source_of[member] =
            place_of(call, member, post.source.data, call.source_place, they.source_base);
        lists.target_of[member] =
            place_of(call, member, post.target.data, call.target_place, they.target_base);
        lists.scales[member] = __longlong_as_double(static_cast<long long>(post.scale.data));
        lists.buffers_of[member] = COHI_CUDA_PLACE_BUFFERS(post.source.data);
    }
    if (lists.scales[member] != 1.0)
        lists.scaled = 1;
}

__device__ inline bool is_reduction_kind(int kind)
{
    return kind == ALL_REDUCE || kind == REDUCE || kind == REDUCE_SCATTER || kind == SCAN
           || kind == SCAN_EXCLUSIVE;
}

/* A range that this member moves or reduces: sources and targets of consecutive members. */
struct part {
    int from, sources;
    uint64_t source_first;
    int to, targets;
    uint64_t target_first, count;
};

/* Whether the members of an all_gather store their blocks to all targets. So each block is read once; but they move as
 * much as each other only where the blocks are of one length. The same on all members. */
__device__ inline bool is_pushed(const cohi_cuda_call &call, const lists &lists)
{
    unsigned all = ~0u;
    bool even = true;
    for (int member = 0; member < call.size; member++) {
        all &= lists.buffers_of[member];
        even &= call.members[member].count == call.members[0].count;
    }
    return all & COHI_CUDA_TARGET_SHARED && (even || !(all & COHI_CUDA_SOURCE_SHARED));
}

/* This member's part of a reduction, or the `round`-th of a copy. */
__device__ inline part part_of(const cohi_cuda_call &call, int round, bool pushed)
{
    uint64_t slice = slice_count(call, call.count);
    uint64_t first = slice * static_cast<uint64_t>(call.index),
             count = clip(call.count, first, slice);
    int me = call.index, all = call.size, member = (me + round) % all;
    switch (call.kind) {
    case ALL_REDUCE:
        return {0, all, first, 0, all, first, count};
    case REDUCE:
        return {0, all, first, call.root, 1, first, count};
    case REDUCE_SCATTER:
        return {0, all, call.members[me].first, me, 1, 0, call.members[me].count};
    case BROADCAST:
        return {call.root, 1, first, 0, all, first, count};
    case SCATTER:
        return {call.root, 1, call.members[me].first, me, 1, 0, call.members[me].count};
    case GATHER:
        return {me, 1, 0, call.root, 1, call.members[me].first, call.members[me].count};
    case ALL_GATHER:
        if (pushed)
            return {me, 1, 0, 0, all, call.members[me].first, call.members[me].count};
        return {member, 1, 0, me, 1, call.members[member].first, call.members[member].count};
    case ALL_TO_ALL:
        return {member,
                1,
                call.members[me].first,
                me,
                1,
                call.members[member].first,
                call.members[member].count};
    default: /* scans */
        return {0, all, first, 0, all, first, count};
    }
}

__device__ inline bool is_scan(int kind)
{
    return kind == SCAN || kind == SCAN_EXCLUSIVE;
}

template <class type, int OP> struct scanner {
    __device__ static void run(const cohi_cuda_call &call, const lists &lists, const double *scales,
                               uint64_t count)
    {
        bool exclusive = call.kind == SCAN_EXCLUSIVE;
        if (exclusive)
            fill_neutral(call, lists.targets[0], count, grid_crowd());
        scan_range<type, OP>(recipe_of(call, scales), lists.targets, lists.sources, call.size,
                             exclusive, count, grid_crowd());
    }
};
template <int OP> struct scanner<bytes_only, OP> {
    __device__ static void run(const cohi_cuda_call &, const lists &, const double *, uint64_t)
    {
    }
};

/* What needs no other member, while they come: an all_to_all's own block is copied, and of what is reduced the
 * beginning of this member's part of its own source is brought near. */
__device__ inline void alone(const cohi_cuda_call &call)
{
    const char *source = reinterpret_cast<const char *>(call.source);
    const cohi_cuda_member &me = call.members[call.index];
    if (call.kind == ALL_TO_ALL) {
        copy_range(reinterpret_cast<char *>(call.target) + me.first * call.element,
                   source + me.first * call.element, me.count * call.element, grid_crowd());
    } else if (is_reduction_kind(call.kind)) {
        part part = part_of(call, 0, false);
        bring_near(source + part.source_first * call.element, part.count * call.element,
                   grid_crowd());
    }
}

template <class type, int OP>
__device__ inline void direct_work(const cohi_cuda_call &call, lists &lists)
{
    bool pushed = call.kind == ALL_GATHER && is_pushed(call, lists);
    int first = call.kind == ALL_TO_ALL; /* behind alone */
    int rounds = call.kind == ALL_TO_ALL || (call.kind == ALL_GATHER && !pushed) ? call.size : 1;
    int i = static_cast<int>(threadIdx.x);
    for (int round = first; round < rounds; round++) {
        part part = part_of(call, round, pushed);
        if (round > first)
            __syncthreads();
        if (i < part.sources)
            lists.sources[i] = lists.source_of[part.from + i] + part.source_first * call.element;
        if (i < part.targets)
            lists.targets[i] = lists.target_of[part.to + i] + part.target_first * call.element;
        __syncthreads();
        const double *scales = lists.scaled ? lists.scales + part.from : nullptr;
        if (is_scan(call.kind)) {
            scanner<type, OP>::run(call, lists, scales, part.count);
            return;
        }
        reducer<type, OP>::run(recipe_of(call, scales), lists.targets, part.targets, lists.sources,
                               part.sources, part.count, call.element, grid_crowd());
    }
}

/* Whether a member's buffer that others need is private, or is written while others read it as its
 * source. The same on all members. */
__device__ inline bool must_stage(const cohi_cuda_call &call, const lists &lists)
{
    unsigned all = ~0u, any = 0;
    for (int member = 0; member < call.size; member++) {
        all &= lists.buffers_of[member];
        any |= lists.buffers_of[member];
    }
    bool sources = all & COHI_CUDA_SOURCE_SHARED, targets = all & COHI_CUDA_TARGET_SHARED;
    unsigned root = lists.buffers_of[call.root];
    switch (call.kind) {
    case ALL_REDUCE:
        return !sources || !targets;
    case REDUCE:
        return !sources || !(root & COHI_CUDA_TARGET_SHARED);
    case GATHER:
        return !(root & COHI_CUDA_TARGET_SHARED);
    case SCATTER:
        return !(root & COHI_CUDA_SOURCE_SHARED);
    case BROADCAST:
        return !targets || !(root & COHI_CUDA_SOURCE_SHARED);
    case ALL_GATHER:
        return !sources && !targets;
    case REDUCE_SCATTER:
        return !sources;
    case SCAN:
        return !sources || !targets;
    case SCAN_EXCLUSIVE: /* the first target is not stored behind the loads of its source */
        return !sources || !targets || any & COHI_CUDA_IN_PLACE;
    default:
        return !sources || any & COHI_CUDA_IN_PLACE;
    }
}

/* Whether members store to each other's targets; else each reads the others' sources and stores to its own. */
__device__ inline bool stores_elsewhere(const cohi_cuda_call &call, const lists &lists)
{
    switch (call.kind) {
    case REDUCE_SCATTER:
    case SCATTER:
    case ALL_TO_ALL:
        return false;
    case ALL_GATHER:
        return is_pushed(call, lists);
    default:
        return true;
    }
}

/* Of buffers that turn out to be private. Not inlined: it would take registers of what is common. */
template <class type, int OP>
__device__ __noinline__ bool by_scratch(const cohi_cuda_call &call, lists &lists, uint32_t &tick)
{
    return is_reduction<type>::yes && call.kind == ALL_REDUCE && call.size > 2
               ? sliced<type, OP>(call, lists, tick)
               : staged<type, OP>(call, tick);
}

template <class type, int OP>
__device__ inline bool direct(const cohi_cuda_call &call, lists &lists, uint32_t &tick)
{
    if (threadIdx.x == 0)
        lists.scaled = 0;
    __syncthreads();
    auto read = [&](int member, const cohi_cuda_post &post) {
        read_post(call, lists, member, post);
    };
    if (!meet_first(
            call, tick + 1, [&]() { alone(call); }, read))
        return false;
    let_next_start();
    tick++;
    if (must_stage(call, lists))
        return by_scratch<type, OP>(call, lists, tick);
    direct_work<type, OP>(call, lists);
    if (!meet(call, tick + 1, stores_elsewhere(call, lists)))
        return false;
    tick++;
    return true;
}

/* ---- the whole ---- */

template <class type, int OP> __device__ inline void run_packed(const cohi_cuda_call &call)
{
    uint32_t tick;
    if (find_tick(call, tick) && packed<type, OP>(call, tick))
        keep_tick(call, tick);
}

template <class type, int OP>
__device__ inline void run_direct(const cohi_cuda_call &call, lists &lists)
{
    uint32_t tick;
    if (find_tick(call, tick) && direct<type, OP>(call, lists, tick))
        keep_tick(call, tick);
}

template <class type, int OP>
__device__ inline void run_by_scratch(const cohi_cuda_call &call, lists &lists)
{
    uint32_t tick;
    if (!find_tick(call, tick))
        return;
    bool good = call.way == COHI_CUDA_STAGED ? staged<type, OP>(call, tick)
                                             : sliced<type, OP>(call, lists, tick);
    if (good)
        keep_tick(call, tick);
}

/* Ranks that take turns: the host has seen to it that the members' parts of `tick` have arrived. */
template <class type, int OP>
__device__ inline void run_turn(const cohi_cuda_call &call, lists &lists)
{
    if (is_broken(call))
        return;
    if (call.phase == COHI_CUDA_BEGIN) {
        post_to_all(call);
        if (call.way == COHI_CUDA_STAGED)
            show<type>(call, 0, call.tick);
        return;
    }
    if (!compare_posts(call))
        return;
    if (call.way == COHI_CUDA_DIRECT) {
        if (threadIdx.x == 0)
            lists.scaled = 0;
        __syncthreads();
        int member = static_cast<int>(threadIdx.x);
        if (member < call.size)
            read_post(call, lists, member, *post_of(call, call.index, member, 0));
        __syncthreads();
        alone(call);
        direct_work<type, OP>(call, lists);
        return;
    }
    take<type, OP>(call, call.step, call.tick);
    if (call.step + 1 < call.steps)
        show<type>(call, call.step + 1, call.tick + 1);
}

/* Every way, for teams of any size. */
template <class type, int OP> __device__ inline void collective(const cohi_cuda_call &call)
{
    __shared__ lists lists;
    await_what_is_before();
    if (call.phase != COHI_CUDA_WHOLE)
        run_turn<type, OP>(call, lists);
    else if (call.way == COHI_CUDA_DIRECT)
        run_direct<type, OP>(call, lists);
    else if (call.way == COHI_CUDA_PACKED)
        run_packed<type, OP>(call);
    else
        run_by_scratch<type, OP>(call, lists);
}

/* One way, for teams of up to COHI_CUDA_FEW members, who are all that the kernel gets. */
template <class type, int OP, int WAY>
__device__ inline void collective_of_few(const cohi_cuda_few_call &few)
{
    const cohi_cuda_call &call = reinterpret_cast<const cohi_cuda_call &>(few);
    await_what_is_before();
    if (WAY == COHI_CUDA_PACKED) {
        run_packed<type, OP>(call);
        return;
    }
    __shared__ lists lists;
    if (WAY == COHI_CUDA_DIRECT)
        run_direct<type, OP>(call, lists);
    else if (call.phase == COHI_CUDA_WHOLE)
        run_by_scratch<type, OP>(call, lists);
    else
        run_turn<type, OP>(call, lists);
}

} /* namespace */

/* Two blocks fit on a multiprocessor, so that two teams' kernels can run at a time. */
#ifndef COHI_CUDA_RESIDENT
#define COHI_CUDA_RESIDENT 2
#endif

#define COHI_CUDA_KERNEL(name, type, op)                                                      \
    extern "C" __global__ void __launch_bounds__(COHI_CUDA_BLOCK_THREADS, COHI_CUDA_RESIDENT) \
        cohi_cuda_##name##_kernel(const __grid_constant__ cohi_cuda_call call)                \
    {                                                                                         \
        collective<type, op>(call);                                                           \
    }

/* The most common calls have a kernel for each way: what a kernel does not have takes none of its registers, and what is
 * short is over sooner where the kernel is short, too. */
#define COHI_CUDA_WAY_KERNEL(name, type, op, way)                                             \
    extern "C" __global__ void __launch_bounds__(COHI_CUDA_BLOCK_THREADS, COHI_CUDA_RESIDENT) \
        cohi_cuda_##name##_kernel(const __grid_constant__ cohi_cuda_few_call few)             \
    {                                                                                         \
        collective_of_few<type, op, way>(few);                                                \
    }
#define COHI_CUDA_FEW_KERNELS(name, type, op)                       \
    COHI_CUDA_WAY_KERNEL(name##_packed, type, op, COHI_CUDA_PACKED) \
    COHI_CUDA_WAY_KERNEL(name##_direct, type, op, COHI_CUDA_DIRECT) \
    COHI_CUDA_WAY_KERNEL(name##_staged, type, op, COHI_CUDA_STAGED)

#endif
