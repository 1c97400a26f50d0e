#include "core/team.h"

#include "core/control.h"
#include "core/fault.h"
#include "core/verdict.h"
#include "core/wait.h"
#include "core/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- marks ---- */

static uint64_t mark_of(uint32_t epoch, cohi_opcode op)
{
    return (uint64_t)epoch << 32 | (uint32_t)op;
}

static uint32_t epoch_of(uint64_t mark)
{
    return (uint32_t)(mark >> 32);
}

static cohi_opcode op_of(uint64_t mark)
{
    return (cohi_opcode)(mark & UINT32_MAX);
}

/* ---- making ---- */

coh_status cohi_team_open(coh_world *world, cohi_team *team)
{
    size_t size = (size_t)world->size;
    team->world = world;
    team->size = world->size;
    team->index = world->rank;
    team->epoch = COHI_EPOCH_START;
    team->mine = &world->slot->meet;
    team->meets = calloc(size, sizeof *team->meets);
    team->slots = calloc(size, sizeof *team->slots);
    if (!team->meets || !team->slots)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for a team of %zu ranks", size);
    for (size_t i = 0; i < size; i++) {
        team->slots[i] = world->peers[i].slot;
        team->meets[i] = team->slots[i] ? &team->slots[i]->meet : NULL;
    }
    return COH_OK;
}

void cohi_team_close(cohi_team *team)
{
    free(team->meets);
    free(team->slots);
    team->meets = NULL;
    team->slots = NULL;
}

/* ---- what stands against it ---- */

/*
 * Who called what, in one word, so that it arrives whole however many ranks report at once: a bit
 * that says so, the low bits of the epoch, two operations, two ranks.
 */
enum { EPOCH_AT = 48, EPOCH_BITS = 15, THEIR_OP_AT = 40, OUR_OP_AT = 32, OUR_RANK_AT = 16 };

_Static_assert(COHI_RANKS_MAX <= 1 << 16, "two ranks and two operations fit in 48 bits");

static uint64_t pack_mismatch(uint32_t epoch, cohi_opcode ours, int our_rank, cohi_opcode theirs,
                              int their_rank)
{
    uint64_t low_bits = epoch & ((1u << EPOCH_BITS) - 1);
    return UINT64_C(1) << 63 | low_bits << EPOCH_AT | (uint64_t)theirs << THEIR_OP_AT
           | (uint64_t)ours << OUR_OP_AT | (uint64_t)our_rank << OUR_RANK_AT | (uint64_t)their_rank;
}

/* Whether the meeting that broke is the present one, or an earlier one. A member that is still
 * in the one before can finish it: all have come to that. */
static bool has_broken(uint64_t word, uint32_t now)
{
    uint32_t ahead = (uint32_t)(word >> EPOCH_AT) - now;
    return word != 0 && (ahead & ((1u << EPOCH_BITS) - 1)) != 1;
}

static coh_status report_mismatch(const cohi_team *team, const char *call, uint64_t word)
{
    enum { RANK = 0xffff, OP = 0xff };
    atomic_store(&team->world->slot->alarm, 1); /* the report may be ahead of its alarm */
    return cohi_world_fail(team->world, call, COH_MISMATCH,
                           "rank %d called %s where rank %d called %s; all ranks must make the "
                           "same collective calls in the same order",
                           (int)(word & RANK), cohi_opcode_name(word >> THEIR_OP_AT & OP),
                           (int)(word >> OUR_RANK_AT & RANK),
                           cohi_opcode_name(word >> OUR_OP_AT & OP));
}

coh_status cohi_team_standing(cohi_team *team, const char *call)
{
    uint64_t mismatch = atomic_load_explicit(&team->mine->mismatch, memory_order_acquire);
    if (has_broken(mismatch, team->now))
        return report_mismatch(team, call, mismatch);
    for (int i = 0; i < team->size; i++) {
        coh_status status = cohi_verdict_check(team->world, call, i);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

void cohi_team_break(cohi_team *team, cohi_opcode ours, int rank, cohi_opcode theirs)
{
    coh_world *world = team->world;
    static const uint32_t set = 1;
    uint64_t word = pack_mismatch(team->epoch, ours, world->rank, theirs, rank);
    for (int to = 0; to < team->size; to++) {
        (void)cohi_control_put(world, to, offsetof(cohi_slot, meet.mismatch), &word, sizeof word);
        (void)cohi_control_fence(world);
        (void)cohi_control_put(world, to, offsetof(cohi_slot, alarm), &set, sizeof set);
    }
}

int cohi_team_missing(const cohi_team *team)
{
    for (int i = 0; i < team->size; i++) {
        if (i == team->index || !team->meets[i])
            continue;
        uint32_t there =
            epoch_of(atomic_load_explicit(&team->meets[i]->arrived, memory_order_relaxed));
        if ((int32_t)(there - team->epoch) < 0)
            return i;
    }
    return -1;
}

/* ---- entering and leaving ---- */

static void publish(cohi_slot *slot, cohi_opcode op, uint64_t sequence)
{
    atomic_store_explicit(&slot->sequence, sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->op, op, memory_order_relaxed);
}

static coh_status refuse_busy(cohi_team *team, const char *call)
{
    return cohi_world_fail(team->world, call, COH_BUSY,
                           "another thread of this rank is in a collective (%s) of the same team",
                           cohi_opcode_name(atomic_load(&team->world->slot->op)));
}

coh_status cohi_team_enter(cohi_team *team, const char *call, cohi_opcode op)
{
    coh_world *world = team->world;
    if (COHI_UNLIKELY(atomic_exchange_explicit(&team->busy, 1, memory_order_acquire)))
        return refuse_busy(team, call);
    team->now = team->epoch + 1;
    publish(world->slot, op, cohi_team_sequence(team->epoch + 1));
    if (cohi_world_plain(world))
        return COH_OK;
    coh_status status = cohi_fault_strike(world->fault, op);
    if (status == COH_OK)
        status = cohi_team_standing(team, call);
    return status == COH_OK ? status : cohi_team_leave(team, status);
}

coh_status cohi_team_leave(cohi_team *team, coh_status status)
{
    atomic_store_explicit(&team->world->slot->op, COHI_OP_NONE, memory_order_relaxed);
    atomic_store_explicit(&team->busy, 0, memory_order_release);
    return status;
}

/* ---- meeting ---- */

static coh_status tell(cohi_team *team, int index, size_t parity, size_t round, uint64_t mark)
{
    cohi_meet *meet = team->meets[index];
    if (COHI_LIKELY(meet != NULL)) {
        atomic_store_explicit(&meet->flags[parity][round].mark, mark, memory_order_release);
        cohi_control_wake(team->slots[index]);
        return COH_OK;
    }
    size_t offset =
        offsetof(cohi_slot, meet.flags) + (parity * COHI_ROUNDS + round) * sizeof(cohi_flag);
    return cohi_control_put(team->world, index, offset, &mark, sizeof mark);
}

static bool has_come(const cohi_flag *flag, uint32_t epoch)
{
    return epoch_of(atomic_load_explicit(&((cohi_flag *)flag)->mark, memory_order_acquire))
           == epoch;
}

static coh_status wait_for_flag(cohi_team *team, const char *call, cohi_opcode op, int from,
                                const cohi_flag *flag)
{
    coh_world *world = team->world;
    for (unsigned looks = 0; looks < world->spins; looks++) {
        if (has_come(flag, team->epoch))
            return COH_OK;
        cohi_cpu_relax(); /* measured faster than a bare loop, also where two cores share silicon */
    }
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, call, op, team, from);
    while (!has_come(flag, team->epoch) && status == COH_OK)
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

coh_status cohi_team_meet(cohi_team *team, const char *call, cohi_opcode op)
{
    uint32_t epoch = ++team->epoch;
    team->now = epoch;
    size_t parity = epoch & 1, round = 0;
    uint64_t mark = mark_of(epoch, op);
    atomic_store_explicit(&team->mine->arrived, mark, memory_order_relaxed);
    for (int distance = 1; distance < team->size; distance *= 2, round++) {
        int to = (team->index + distance) % team->size;
        int from = (team->index - distance + team->size) % team->size;
        cohi_flag *flag = &team->mine->flags[parity][round];
        coh_status status = tell(team, to, parity, round, mark);
        if (COHI_UNLIKELY(status == COH_PEER_LOST))
            return cohi_team_standing(team, call);
        if (status == COH_OK)
            status = wait_for_flag(team, call, op, from, flag);
        if (COHI_UNLIKELY(status != COH_OK))
            return status;
        uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
        if (COHI_UNLIKELY(came != mark)) {
            cohi_team_break(team, op, from, op_of(came));
            return cohi_team_standing(team, call);
        }
    }
    return COH_OK;
}
