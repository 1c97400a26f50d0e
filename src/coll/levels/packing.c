#include "coll/levels/packing.h"

#include "coll/call/blocks.h"

static void count_hosts(cohi_packing *packing, const cohi_levels *levels)
{
    for (int host = 0; host < levels->hosts; host++) {
        packing->host_firsts[host] = packing->total;
        packing->host_counts[host] = 0;
        for (int at = 0; at < cohi_levels_size(levels, host); at++) {
            int member = cohi_levels_member(levels, host, at);
            packing->host_counts[host] += cohi_block_count(packing->blocks, member);
        }
        packing->total += packing->host_counts[host];
    }
    packing->first = packing->host_firsts[levels->host];
    packing->here = packing->host_counts[levels->host];
}

static void count_local(cohi_packing *packing, const cohi_levels *levels)
{
    size_t first = 0;
    for (int at = 0; at < levels->local->size; at++) {
        int member = cohi_levels_member(levels, levels->host, at);
        packing->local_firsts[at] = first;
        packing->local_counts[at] = cohi_block_count(packing->blocks, member);
        first += packing->local_counts[at];
    }
}

cohi_packing cohi_packing_of(const cohi_call *call, const cohi_call_blocks *blocks)
{
    const cohi_levels *levels = call->team->levels;
    cohi_packing packing = {.call = call, .blocks = blocks, .host_counts = levels->scratch};
    packing.host_firsts = packing.host_counts + levels->hosts;
    packing.local_counts = packing.host_firsts + levels->hosts;
    packing.local_firsts = packing.local_counts + levels->local->size;
    count_hosts(&packing, levels);
    count_local(&packing, levels);
    return packing;
}

static void cut(cohi_call *part, const size_t *counts, const size_t *firsts)
{
    bool alike = true;
    for (int i = 1; i < part->team->size; i++)
        alike = alike && counts[i] == counts[0];
    if (alike)
        cohi_part_count(part, counts[0]);
    else
        cohi_part_blocks(part, counts, firsts);
}

void cohi_packing_cut_hosts(const cohi_packing *packing, cohi_call *part)
{
    cut(part, packing->host_counts, packing->host_firsts);
}

void cohi_packing_cut_local(const cohi_packing *packing, cohi_call *part)
{
    cut(part, packing->local_counts, packing->local_firsts);
}

size_t cohi_packing_next(const cohi_packing *packing, int at, size_t packed_first, int *member)
{
    *member = packing->call->team->levels->order[at];
    return packed_first + cohi_block_count(packing->blocks, *member);
}

void cohi_packing_pack(const cohi_packing *packing, char *packed, const char *buffer)
{
    const cohi_call *call = packing->call;
    size_t first = 0;
    for (int at = 0; at < call->team->size; at++) {
        int member;
        size_t next = cohi_packing_next(packing, at, first, &member);
        cohi_bring(packed + first * call->element,
                   buffer + cohi_block_at(call, packing->blocks, member),
                   (next - first) * call->element);
        first = next;
    }
}

void cohi_packing_unpack(const cohi_packing *packing, const char *packed, char *buffer)
{
    const cohi_call *call = packing->call;
    size_t first = 0;
    for (int at = 0; at < call->team->size; at++) {
        int member;
        size_t next = cohi_packing_next(packing, at, first, &member);
        cohi_bring(buffer + cohi_block_at(call, packing->blocks, member),
                   packed + first * call->element, (next - first) * call->element);
        first = next;
    }
}
