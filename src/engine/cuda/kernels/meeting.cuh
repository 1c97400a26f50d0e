/*
 * meeting.cuh - how the same block of all members' kernels meets: flags, posts, waiting, giving up.
 *
 * Whoever waits reads its own card's memory. After 20 us it also looks at the status page, where the host has
 * the ranks that are lost, and tells the host whom it waits for. The first block that gives up marks the team
 * as broken on this rank, which ends all waits of its other blocks and every later kernel of the team.
 */
#ifndef COHI_ENGINE_CUDA_KERNELS_MEETING_CUH
#define COHI_ENGINE_CUDA_KERNELS_MEETING_CUH

#include "shared.h"

namespace
{

/* Nanoseconds until a wait looks at memory of the host for the first time, and from then on. */
constexpr uint64_t PATIENCE_NS = 20000;
constexpr uint64_t GLANCE_NS = 10000;
constexpr uint64_t PACKET_GLANCE_NS = 1000000;
constexpr uint64_t TELL_NS =
    1000000; /* from one time that the host is told of a wait to the next */

/* ---- words that others write ---- */

__device__ inline cohi_cuda_flag load_flag(const cohi_cuda_flag *from)
{
    uint64_t low, high;
    asm volatile("{\n\t.reg .b128 word;\n\t"
                 "ld.acquire.sys.global.b128 word, [%2];\n\t"
                 "mov.b128 {%0, %1}, word;\n\t}"
                 : "=l"(low), "=l"(high)
                 : "l"(from)
                 : "memory");
    cohi_cuda_flag flag;
    flag.tick = static_cast<uint32_t>(low);
    flag.life = static_cast<uint32_t>(low >> 32);
    flag.fingerprint = high;
    return flag;
}

/* What the block has stored before is there first. */
__device__ inline void store_flag(cohi_cuda_flag *to, uint32_t tick, uint32_t life,
                                  uint64_t fingerprint)
{
    uint64_t low = static_cast<uint64_t>(life) << 32 | tick;
    asm volatile("{\n\t.reg .b128 word;\n\t"
                 "mov.b128 word, {%1, %2};\n\t"
                 "st.release.sys.global.b128 [%0], word;\n\t}"
                 :
                 : "l"(to), "l"(low), "l"(fingerprint)
                 : "memory");
}

/* 16 bytes at once, in no order with anything else. */
__device__ inline void store_both(void *to, uint64_t low, uint64_t high)
{
    asm volatile("{\n\t.reg .b128 word;\n\t"
                 "mov.b128 word, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], word;\n\t}"
                 :
                 : "l"(to), "l"(low), "l"(high)
                 : "memory");
}

__device__ inline void store_packet(cohi_cuda_packet *to, uint64_t data, uint64_t tag)
{
    store_both(to, data, tag);
}

__device__ inline cohi_cuda_packet load_packet(const cohi_cuda_packet *from)
{
    cohi_cuda_packet packet;
    asm volatile("{\n\t.reg .b128 word;\n\t"
                 "ld.relaxed.sys.global.b128 word, [%2];\n\t"
                 "mov.b128 {%0, %1}, word;\n\t}"
                 : "=l"(packet.data), "=l"(packet.tag)
                 : "l"(from)
                 : "memory");
    return packet;
}

__device__ inline uint64_t load_acquire(const uint64_t *from)
{
    uint64_t word;
    asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

__device__ inline uint64_t load_relaxed(const uint64_t *from)
{
    uint64_t word;
    asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}

__device__ inline void store_relaxed(uint64_t *to, uint64_t word)
{
    asm volatile("st.relaxed.sys.global.b64 [%0], %1;" : : "l"(to), "l"(word) : "memory");
}

__device__ inline void store_release(uint64_t *to, uint64_t word)
{
    asm volatile("st.release.sys.global.b64 [%0], %1;" : : "l"(to), "l"(word) : "memory");
}

__device__ inline void store_release(uint32_t *to, uint32_t word)
{
    asm volatile("st.release.sys.global.b32 [%0], %1;" : : "l"(to), "r"(word) : "memory");
}

__device__ inline uint64_t now_ns()
{
    uint64_t time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

/* For tests: holds this thread up, now and then, for up to 8 us. */
__device__ inline void hold_up(uint32_t seed)
{
    if (seed == 0)
        return;
    uint32_t hash = seed ^ static_cast<uint32_t>(now_ns()) ^ (blockIdx.x * 512 + threadIdx.x);
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash ^= hash >> 13;
    if ((hash & 3) == 0)
        __nanosleep(hash >> 8 & 0x1fff);
}

/* ---- where things are ---- */

__device__ inline char *own_control(const cohi_cuda_call &call)
{
    return reinterpret_cast<char *>(call.members[call.index].control);
}

__device__ inline cohi_cuda_mark *own_mark(const cohi_cuda_call &call)
{
    cohi_cuda_mark *marks =
        reinterpret_cast<cohi_cuda_mark *>(own_control(call) + call.layout.marks);
    return marks + call.team * call.layout.blocks + blockIdx.x;
}

__device__ inline uint64_t *own_broken(const cohi_cuda_call &call)
{
    return reinterpret_cast<uint64_t *>(own_control(call) + call.layout.broken) + call.team;
}

/* What `writer`, a member, tells `reader`, in the block of that number. */
__device__ inline cohi_cuda_post *post_of(const cohi_cuda_call &call, int reader, int writer,
                                          uint32_t block)
{
    cohi_cuda_post *posts =
        reinterpret_cast<cohi_cuda_post *>(call.members[reader].control + call.layout.posts);
    return posts + (call.team * call.layout.blocks + block) * call.layout.ranks
           + call.members[writer].rank;
}

__device__ inline cohi_cuda_status *status_page(uint64_t status)
{
    return reinterpret_cast<cohi_cuda_status *>(status);
}

/* ---- giving up ---- */

__device__ inline uint64_t broken_mark(const cohi_cuda_call &call)
{
    return static_cast<uint64_t>(COHI_CUDA_GIVEN_UP) << 32 | call.life;
}

/* Whether the word says that the team of the mark's life is given up. */
__device__ inline bool is_given_up(uint64_t word, uint64_t mark)
{
    return word >> 32 != 0 && static_cast<uint32_t>(word) == static_cast<uint32_t>(mark);
}

__device__ inline void write_report(cohi_cuda_report *report, const cohi_cuda_report &what)
{
    volatile cohi_cuda_report *there = report;
    there->mine = what.mine;
    there->theirs = what.theirs;
    there->tick = what.tick;
    there->rank = what.rank;
    there->life = what.life;
    store_release(&report->trouble, what.trouble);
}

/* A member has written that it will not come: all that see it report the same. */
__device__ __noinline__ void report_refusal(uint64_t word, uint64_t status, uint32_t team,
                                            uint32_t tick)
{
    if (word >> 32 < COHI_CUDA_REFUSED_BY)
        return;
    int rank = static_cast<int>((word >> 32) - COHI_CUDA_REFUSED_BY);
    cohi_cuda_report report = {0, 0, tick, rank, static_cast<uint32_t>(word), COHI_CUDA_REFUSED};
    write_report(&status_page(status)->reports[team], report);
}

__device__ inline bool is_broken(const cohi_cuda_call &call)
{
    uint64_t word = load_relaxed(own_broken(call));
    if (!is_given_up(word, broken_mark(call)))
        return false;
    report_refusal(word, call.status, call.team, call.tick);
    return true;
}

/* Marks the team as broken on this rank; the first to do so reports why. */
__device__ __noinline__ void give_up(uint64_t *broken_word, uint64_t mark, uint64_t status,
                                     uint32_t team, uint64_t mine, uint64_t theirs, uint32_t tick,
                                     int rank, uint32_t trouble)
{
    unsigned long long *broken = reinterpret_cast<unsigned long long *>(broken_word);
    unsigned long long before = load_relaxed(broken_word);
    while (!is_given_up(before, mark)) {
        unsigned long long found = atomicCAS(broken, before, mark);
        if (found == before) {
            cohi_cuda_report report = {mine,   theirs, tick, rank, static_cast<uint32_t>(mark),
                                       trouble};
            write_report(&status_page(status)->reports[team], report);
            return;
        }
        before = found;
    }
}

__device__ inline bool is_lost(uint64_t status, int rank)
{
    return load_relaxed(&status_page(status)->lost[rank / 64]) >> (rank % 64) & 1;
}

/* Of one wait: when the host is looked at, and when it is told of it; 0: it has not been. */
struct patience {
    uint64_t next_ns, tell_ns;
};

__device__ inline void tell_waiting(uint64_t status, uint32_t team, uint32_t tick, int rank)
{
    uint64_t word = static_cast<uint64_t>(static_cast<uint32_t>(rank)) << 32 | tick;
    store_relaxed(reinterpret_cast<uint64_t *>(&status_page(status)->waiting[team]), word);
}

/* Again and again: several threads wait for different ranks, and each that goes on takes the word back. */
__device__ inline void tell_long_wait(patience &patience, uint64_t status, uint32_t team,
                                      uint32_t tick, int rank)
{
    if (patience.next_ns < patience.tell_ns)
        return;
    patience.tell_ns = patience.next_ns + TELL_NS;
    tell_waiting(status, team, tick, rank);
}

/* Whether it is time to look at memory of the host. */
__device__ inline bool runs_out(patience &patience)
{
    uint64_t now = now_ns();
    if (patience.next_ns == 0)
        patience.next_ns = now + PATIENCE_NS;
    if (now < patience.next_ns)
        return false;
    patience.next_ns = now + GLANCE_NS;
    return true;
}

/* ---- meeting ---- */

/* Whether the flag says that its writer has come to `tick`; *differs: it is in another call. */
__device__ inline bool has_come(const cohi_cuda_flag &flag, uint32_t life, uint32_t tick,
                                uint64_t fingerprint, bool *differs)
{
    int32_t ahead = static_cast<int32_t>(flag.tick - tick);
    if (flag.life != life || ahead < 0)
        return false;
    /* One that is ahead has found that this member's call is its own. */
    *differs = ahead == 0 && flag.fingerprint != fingerprint;
    return true;
}

/* Takes what it needs of the call by value, in registers: what is not inlined reads a call that it gets by
 * reference from memory. */
__device__ __noinline__ bool wait_long(const cohi_cuda_flag *flag, uint64_t *broken, uint64_t mark,
                                       uint64_t status, uint32_t team, uint64_t fingerprint,
                                       uint32_t tick, int rank)
{
    patience patience = {0, 0};
    bool differs = false, good = true;
    for (unsigned looks = 1;; looks++) {
        cohi_cuda_flag found = load_flag(flag);
        if (has_come(found, static_cast<uint32_t>(mark), tick, fingerprint, &differs)) {
            if (differs)
                give_up(broken, mark, status, team, fingerprint, found.fingerprint, tick, rank,
                        COHI_CUDA_MISMATCH);
            good = !differs;
            break;
        }
        if (looks % 32 != 0)
            continue;
        uint64_t word = load_relaxed(broken);
        if (is_given_up(word, mark)) {
            report_refusal(word, status, team, tick);
            good = false;
            break;
        }
        if (!runs_out(patience))
            continue;
        if (is_lost(status, rank)) {
            give_up(broken, mark, status, team, fingerprint, 0, tick, rank, COHI_CUDA_LOST);
            good = false;
            break;
        }
        tell_long_wait(patience, status, team, tick, rank);
    }
    if (patience.tell_ns != 0)
        tell_waiting(status, team, tick, -1);
    return good;
}

__device__ inline bool wait_for_member(const cohi_cuda_call &call, int member, uint32_t tick)
{
    return wait_long(&post_of(call, call.index, member, blockIdx.x)->flag, own_broken(call),
                     broken_mark(call), call.status, call.team, call.fingerprint, tick,
                     static_cast<int>(call.members[member].rank));
}

__device__ inline uint64_t packet_tag(const cohi_cuda_call &call, uint32_t tick)
{
    return static_cast<uint64_t>(call.tag) << 32 | tick;
}

/* What other members need to know of this one's buffers. */
__device__ inline void write_post(const cohi_cuda_call &call, cohi_cuda_post *post, uint32_t tick)
{
    uint64_t tag = packet_tag(call, tick);
    store_packet(&post->source, COHI_CUDA_WITH_BUFFERS(call.source_place, call.buffers), tag);
    store_packet(&post->target, call.target_place, tag);
    store_packet(&post->scale, static_cast<uint64_t>(__double_as_longlong(call.scale)), tag);
    store_both(&post->flag, static_cast<uint64_t>(call.life) << 32 | tick, call.fingerprint);
}

/* A packet that was not there at first. Whether the writer is late is seen at its flag, by other threads: here the
 * host is looked at once in a millisecond, by one thread of a warp. False: this rank gives the team up. */
__device__ __noinline__ bool wait_packet(const cohi_cuda_packet *at, uint64_t tag, uint64_t *broken,
                                         uint64_t mark, uint64_t status, uint32_t team,
                                         uint64_t fingerprint, int rank)
{
    uint64_t next_ns = 0;
    for (unsigned looks = 1;; looks++) {
        if (load_packet(at).tag == tag)
            return true;
        if (looks % 32 != 0)
            continue;
        uint64_t word = load_relaxed(broken);
        if (is_given_up(word, mark)) {
            report_refusal(word, status, team, static_cast<uint32_t>(tag));
            return false;
        }
        uint64_t now = now_ns();
        bool due = next_ns != 0 && now >= next_ns;
        if (due || next_ns == 0)
            next_ns = now + PACKET_GLANCE_NS;
        bool first = (threadIdx.x & 31)
                     == static_cast<unsigned>(__ffs(static_cast<int>(__activemask())) - 1);
        if (due && first && is_lost(status, rank)) {
            give_up(broken, mark, status, team, fingerprint, 0, static_cast<uint32_t>(tag), rank,
                    COHI_CUDA_LOST);
            return false;
        }
    }
}

/* A member's packet, of which `found` was there at first. */
__device__ inline bool take_packet(const cohi_cuda_call &call, const cohi_cuda_packet *at,
                                   uint64_t tag, int member, cohi_cuda_packet &found)
{
    if (found.tag == tag)
        return true;
    bool good = wait_packet(at, tag, own_broken(call), broken_mark(call), call.status, call.team,
                            call.fingerprint, static_cast<int>(call.members[member].rank));
    found = load_packet(at);
    return good;
}

/* A member's post. All of it is asked for at once; what is not there yet is waited for. */
__device__ inline bool take_post(const cohi_cuda_call &call, int member, uint32_t tick,
                                 cohi_cuda_post &found)
{
    const cohi_cuda_post *post = post_of(call, call.index, member, blockIdx.x);
    uint64_t tag = packet_tag(call, tick);
    bool differs = false;
    found.source = load_packet(&post->source);
    found.target = load_packet(&post->target);
    found.scale = load_packet(&post->scale);
    found.flag = load_flag(&post->flag);
    bool came = has_come(found.flag, call.life, tick, call.fingerprint, &differs) && !differs;
    return (came || wait_for_member(call, member, tick))
           && take_packet(call, &post->source, tag, member, found.source)
           && take_packet(call, &post->target, tag, member, found.target)
           && take_packet(call, &post->scale, tag, member, found.scale);
}

/*
 * All threads of the block call it. What they stored before is seen by the members' same block afterwards; or, where
 * `stored` is false, nothing is: then the members learn only that this block has read what it needs of theirs, and
 * nobody waits for its stores. They are in flight, so that all loads have returned whose values they store. False: this rank
 * gives the team up.
 */
__device__ inline bool meet(const cohi_cuda_call &call, uint32_t tick, bool stored = true)
{
    hold_up(call.delay);
    __syncthreads();
    bool good = true;
    int member = static_cast<int>(threadIdx.x);
    if (member < call.size) {
        cohi_cuda_post *post = post_of(call, member, call.index, blockIdx.x);
        if (stored)
            store_flag(&post->flag, tick, call.life, call.fingerprint);
        else
            store_both(&post->flag, static_cast<uint64_t>(call.life) << 32 | tick,
                       call.fingerprint);
        if (member != call.index)
            good = wait_for_member(call, member, tick);
    }
    good = __syncthreads_and(good);
    hold_up(call.delay);
    return good;
}

/*
 * The same at the beginning of a kernel, which has stored nothing: what was on the stream before is there for all
 * to see, so that no fence is needed. All threads call `meanwhile` while the posts are on their way: what needs no
 * other member. Each member's post is told to `read` by the thread that has waited for it.
 */
template <class worker, class reader>
__device__ inline bool meet_first(const cohi_cuda_call &call, uint32_t tick, worker meanwhile,
                                  reader read)
{
    hold_up(call.delay);
    bool good = true;
    int member = static_cast<int>(threadIdx.x);
    if (member < call.size)
        write_post(call, post_of(call, member, call.index, blockIdx.x), tick);
    meanwhile();
    if (member < call.size) {
        cohi_cuda_post post;
        good = member == call.index || take_post(call, member, tick, post);
        if (good)
            read(member, post);
    }
    good = __syncthreads_and(good);
    hold_up(call.delay);
    return good;
}

/* The tick that this block of the team was at last. False: this rank has given the team up. Both words are asked
 * for at once. */
__device__ inline bool find_tick(const cohi_cuda_call &call, uint32_t &tick)
{
    uint64_t mark, broken;
    asm volatile("ld.relaxed.sys.global.b64 %0, [%2];\n\t"
                 "ld.relaxed.sys.global.b64 %1, [%3];"
                 : "=l"(mark), "=l"(broken)
                 : "l"(own_mark(call)), "l"(own_broken(call))
                 : "memory");
    tick = static_cast<uint32_t>(mark >> 32) == call.life ? static_cast<uint32_t>(mark) : 0;
    if (!is_given_up(broken, broken_mark(call)))
        return true;
    report_refusal(broken, call.status, call.team, tick);
    return false;
}

__device__ inline void keep_tick(const cohi_cuda_call &call, uint32_t tick)
{
    if (threadIdx.x == 0)
        store_relaxed(reinterpret_cast<uint64_t *>(own_mark(call)),
                      static_cast<uint64_t>(call.life) << 32 | tick);
}

/* ---- ranks that take turns: nothing here waits ---- */

/* Tells all members, by one thread each. */
__device__ inline void post_to_all(const cohi_cuda_call &call)
{
    int member = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (member >= call.size)
        return;
    write_post(call, post_of(call, member, call.index, 0), call.tick);
}

/* All threads of the block call it, when the members' posts have arrived, or will not. */
__device__ inline bool compare_posts(const cohi_cuda_call &call)
{
    bool good = true;
    int member = static_cast<int>(threadIdx.x);
    if (member < call.size && member != call.index) {
        cohi_cuda_flag found = load_flag(&post_of(call, call.index, member, 0)->flag);
        bool differs = false;
        uint32_t begun = call.tick - static_cast<uint32_t>(call.step);
        bool came = has_come(found, call.life, begun, call.fingerprint, &differs);
        bool lost = is_lost(call.status, static_cast<int>(call.members[member].rank));
        good = came && !differs && !lost;
        if (!good)
            give_up(own_broken(call), broken_mark(call), call.status, call.team, call.fingerprint,
                    found.fingerprint, call.tick, static_cast<int>(call.members[member].rank),
                    lost || !came ? COHI_CUDA_LOST : COHI_CUDA_MISMATCH);
    }
    return __syncthreads_and(good);
}

} /* namespace */

#endif
