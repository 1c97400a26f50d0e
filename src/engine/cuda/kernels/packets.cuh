/*
 * packets.cuh - a short collective by packets: 16 bytes that are stored at once, half of them data, the other half
 * a tag by which the reader knows that they have come.
 *
 * Each member stores what another needs into that one's memory, and each reads its own. So a call is a store and a
 * load in each direction: no fence, no flag behind the data, no thread that waits for another of its block. The
 * flags are stored as in every meeting; a member waits for those of all others, from whom it may get no packet, and
 * sees there who is lost or in another call.
 *
 * A thread has the same packets of all of the members' blocks, to store and to take, and stores all before it takes
 * one: so source and target may be the same.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_PACKETS_CUH
#define COHI_ENGINE_CUDA_KERNELS_PACKETS_CUH

#include "call.cuh"
#include "early.cuh"
#include "meeting.cuh"

namespace
{

constexpr uint32_t PACKET_BYTES = 8; /* of data */

/* Of what `writer` stores for `reader`, in this block and at that tick. */
__device__ inline cohi_cuda_packet *packets_of(const cohi_cuda_call &call, int reader, int writer,
                                               uint32_t tick)
{
    uint64_t half = static_cast<uint64_t>(tick & 1) * call.layout.blocks + blockIdx.x;
    uint64_t inside = call.packets + half * call.packets_each;
    return reinterpret_cast<cohi_cuda_packet *>(call.members[reader].control + inside)
           + static_cast<uint64_t>(writer) * call.room;
}

/* Up to 8 bytes, of any address. */
__device__ inline uint64_t load_bytes(const char *from, uint32_t bytes)
{
    uint64_t address = reinterpret_cast<uint64_t>(from);
    if (bytes == PACKET_BYTES && address % 8 == 0)
        return load<uint64_t>(from, 0);
    if (bytes == PACKET_BYTES && address % 4 == 0)
        return load<uint32_t>(from, 0) | static_cast<uint64_t>(load<uint32_t>(from, 1)) << 32;
    uint64_t data = 0;
    for (uint32_t i = 0; i < bytes; i++)
        data |= static_cast<uint64_t>(load<uint8_t>(from, i)) << i * 8;
    return data;
}

__device__ inline void store_bytes(char *to, uint64_t data, uint32_t bytes)
{
    uint64_t address = reinterpret_cast<uint64_t>(to);
    if (bytes == PACKET_BYTES && address % 8 == 0) {
        store<uint64_t>(to, 0, data);
    } else if (bytes == PACKET_BYTES && address % 4 == 0) {
        store<uint32_t>(to, 0, static_cast<uint32_t>(data));
        store<uint32_t>(to, 1, static_cast<uint32_t>(data >> 32));
    } else {
        for (uint32_t i = 0; i < bytes; i++)
            store<uint8_t>(to, i, static_cast<uint8_t>(data >> i * 8));
    }
}

/* An element as often as it fits a packet. */
__device__ inline uint64_t repeated(uint64_t element, uint32_t bytes)
{
    uint64_t data = bytes < PACKET_BYTES ? element & ((1ull << bytes * 8) - 1) : element;
    for (; bytes < PACKET_BYTES; bytes *= 2)
        data |= data << bytes * 8;
    return data;
}

/* A source as others are to see it. */
template <class type> struct sender {
    __device__ static uint64_t scaled(uint64_t data, double scale)
    {
        return scale == 1.0 ? data : vector_of<type, uint64_t>::scaled(data, scale);
    }
};
template <> struct sender<bytes_only> {
    __device__ static uint64_t scaled(uint64_t data, double)
    {
        return data;
    }
};

template <class type>
__device__ inline void send_piece(const cohi_cuda_call &call, int piece, uint32_t tick)
{
    bool blocked = is_blocked_source(call.kind);
    bool to_root = call.kind == REDUCE || call.kind == GATHER;
    int from = blocked ? piece : to_root ? call.root : 0;
    int to = blocked || to_root ? from + 1 : call.size;
    uint64_t first = step_first(call, 0), tag = packet_tag(call, tick);
    uint64_t bytes = clip(piece_count(call, piece), first, call.piece) * call.element;
    const char *source = reinterpret_cast<const char *>(call.source)
                         + ((blocked ? call.members[piece].first : 0) + first) * call.element;
    for (uint64_t at = threadIdx.x; at * PACKET_BYTES < bytes; at += blockDim.x) {
        uint32_t here = static_cast<uint32_t>(clip(bytes, at * PACKET_BYTES, PACKET_BYTES));
        uint64_t data =
            sender<type>::scaled(load_bytes(source + at * PACKET_BYTES, here), call.scale);
        for (int reader = from; reader < to; reader++)
            store_packet(packets_of(call, reader, call.index, tick) + at, data, tag);
    }
}

/* Copies a member's packets to this one's target. */
__device__ inline bool take_copy(const cohi_cuda_call &call, int writer, uint64_t target_first,
                                 uint64_t whole, uint32_t tick)
{
    uint64_t first = step_first(call, 0), tag = packet_tag(call, tick);
    uint64_t bytes = clip(whole, first, call.piece) * call.element;
    char *target = reinterpret_cast<char *>(call.target) + (target_first + first) * call.element;
    const cohi_cuda_packet *packets = packets_of(call, call.index, writer, tick);
    for (uint64_t at = threadIdx.x; at * PACKET_BYTES < bytes; at += blockDim.x) {
        cohi_cuda_packet found = load_packet(packets + at);
        if (!take_packet(call, packets + at, tag, writer, found))
            return false;
        store_bytes(target + at * PACKET_BYTES, found.data,
                    static_cast<uint32_t>(clip(bytes, at * PACKET_BYTES, PACKET_BYTES)));
    }
    return true;
}

/* What the members' packets come to, each in its turn. */
template <class type, int OP> struct gatherer {
    typedef vector_of<type, uint64_t> vector;
    /* Packets of `COUNT` members, from `begin` on, that are asked for at once. */
    template <int COUNT>
    __device__ static bool combine(const cohi_cuda_call &call, int begin, uint64_t at,
                                   uint32_t tick, typename vector::result &result)
    {
        const int op = OP == ANY ? call.op : OP;
        const cohi_cuda_packet *own = packets_of(call, call.index, begin, tick) + at;
        cohi_cuda_packet found[COUNT];
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            found[i] = load_packet(own + static_cast<uint64_t>(i) * call.room);
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            if (!take_packet(call, own + static_cast<uint64_t>(i) * call.room,
                             packet_tag(call, tick), begin + i, found[i]))
                return false;
            if (begin + i == 0)
                result = vector::widen(found[i].data);
            else
                vector::template combine<OP>(op, result, found[i].data);
        }
        return true;
    }
    __device__ static bool combine_all(const cohi_cuda_call &call, int members, uint64_t at,
                                       uint32_t tick, typename vector::result &result)
    {
        bool good = true;
        int begin = 0;
        if (OP != ANY) { /* less code for the others, which are many */
            for (; begin + 2 <= members && good; begin += 2)
                good = combine<2>(call, begin, at, tick, result);
        }
        for (; begin < members && good; begin++)
            good = combine<1>(call, begin, at, tick, result);
        return good;
    }
    __device__ static bool run(const cohi_cuda_call &call, uint32_t tick)
    {
        const int op = OP == ANY ? call.op : OP;
        int members = scanned(call);
        uint64_t whole = call.kind == REDUCE_SCATTER ? call.members[call.index].count : call.count;
        uint64_t first = step_first(call, 0), count = clip(whole, first, call.piece);
        char *target = reinterpret_cast<char *>(call.target) + first * call.element;
        uint64_t bytes = count * call.element;
        for (uint64_t at = threadIdx.x; at * PACKET_BYTES < bytes; at += blockDim.x) {
            uint64_t data = repeated(call.neutral, call.element);
            if (members > 0) {
                typename vector::result result;
                if (!combine_all(call, members, at, tick, result))
                    return false;
                data = vector::finish(op, result, call.size);
            }
            store_bytes(target + at * PACKET_BYTES, data,
                        static_cast<uint32_t>(clip(bytes, at * PACKET_BYTES, PACKET_BYTES)));
        }
        return true;
    }
};
template <int OP> struct gatherer<bytes_only, OP> {
    __device__ static bool run(const cohi_cuda_call &, uint32_t)
    {
        return true;
    }
};

template <class type, int OP>
__device__ inline bool take_packets(const cohi_cuda_call &call, uint32_t tick)
{
    const cohi_cuda_member &me = call.members[call.index];
    bool good = true;
    if (is_reduction<type>::yes)
        return (call.kind == REDUCE && call.index != call.root)
               || gatherer<type, OP>::run(call, tick);
    switch (call.kind) {
    case BROADCAST:
        return take_copy(call, call.root, 0, call.count, tick);
    case SCATTER:
        return take_copy(call, call.root, 0, me.count, tick);
    case GATHER:
    case ALL_GATHER:
    case ALL_TO_ALL:
        for (int i = 0; i < call.size && good; i++) {
            const cohi_cuda_member &they = call.members[i];
            if (call.kind != GATHER || call.index == call.root)
                good = take_copy(call, i, they.first, they.count, tick);
        }
        return good;
    default:
        return true;
    }
}

template <class type, int OP>
__device__ inline bool packed(const cohi_cuda_call &call, uint32_t &tick)
{
    bool good = true;
    int member = static_cast<int>(threadIdx.x), pieces = shown_pieces(call);
    tick++;
    hold_up(call.delay);
    if (member < call.size)
        store_both(&post_of(call, member, call.index, blockIdx.x)->flag,
                   static_cast<uint64_t>(call.life) << 32 | tick, call.fingerprint);
    for (int piece = 0; piece < pieces; piece++)
        send_piece<type>(call, piece, tick);
    hold_up(call.delay);
    if (member < call.size && member != call.index)
        good = wait_for_member(call, member, tick);
    good = __syncthreads_and(good);
    let_next_start();
    return good && take_packets<type, OP>(call, tick);
}

} /* namespace */

#endif
