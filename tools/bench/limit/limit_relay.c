#include "bench/limit/limit.h"

#include "base/atomics.h"

#include <sched.h>
#include <string.h>

static void await(const cohi_limit_line *line, uint64_t count, int yields)
{
    while (__atomic_load_n(&line->count, __ATOMIC_ACQUIRE) < count) {
        if (yields)
            sched_yield();
        else
            cohi_cpu_relax();
    }
}

static size_t piece_bytes(size_t left)
{
    return left < COHI_LIMIT_RELAY_BYTES ? left : COHI_LIMIT_RELAY_BYTES;
}

void cohi_limit_relay_in(cohi_limit_relay *relay, const void *source, size_t bytes, int yields)
{
    const char *from = source;
    uint64_t piece = relay->filled.count;
    for (size_t left = bytes, moved; left; left -= moved, from += moved) {
        moved = piece_bytes(left);
        if (piece >= COHI_LIMIT_RELAY_SLOTS)
            await(&relay->drained, piece - COHI_LIMIT_RELAY_SLOTS + 1, yields);
        memcpy(relay->slots[piece % COHI_LIMIT_RELAY_SLOTS], from, moved);
        __atomic_store_n(&relay->filled.count, ++piece, __ATOMIC_RELEASE);
    }
}

void cohi_limit_relay_out(cohi_limit_relay *relay, void *target, size_t bytes, int yields)
{
    char *to = target;
    uint64_t piece = relay->drained.count;
    for (size_t left = bytes, moved; left; left -= moved, to += moved) {
        moved = piece_bytes(left);
        await(&relay->filled, piece + 1, yields);
        memcpy(to, relay->slots[piece % COHI_LIMIT_RELAY_SLOTS], moved);
        __atomic_store_n(&relay->drained.count, ++piece, __ATOMIC_RELEASE);
    }
}
