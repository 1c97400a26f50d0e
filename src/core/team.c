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

static void free_team(coh_team *team)
{
    free(team->ranks);
    free(team->indices);
    free(team->meets);
    free(team->slots);
    free(team);
}

static coh_team *allocate_team(int size, int world_size)
{
    coh_team *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->ranks = calloc((size_t)size, sizeof *team->ranks);
    team->indices = calloc((size_t)world_size, sizeof *team->indices);
    team->meets = calloc((size_t)size, sizeof *team->meets);
    team->slots = calloc((size_t)size, sizeof *team->slots);
    if (team->ranks && team->indices && team->meets && team->slots)
        return team;
    free_team(team);
    return NULL;
}

static void enrol(coh_team *team, int index, int rank)
{
    coh_world *world = team->world;
    team->ranks[index] = rank;
    team->indices[rank] = index;
    team->slots[index] = world->peers[rank].slot;
    if (team->slots[index])
        team->meets[index] = cohi_slot_meet(team->slots[index], world->size, team->number);
}

/* What an earlier team of the same number left there; its epochs are all before `start`. */
static void clear_area(coh_team *team)
{
    team->mine = cohi_slot_meet(team->world->slot, team->world->size, team->number);
    atomic_store(&team->mine->mismatch, 0);
    atomic_store(&team->mine->arrived, mark_of(team->start, COHI_OP_NONE));
}

coh_status cohi_team_open(coh_world *world, int number, const int *ranks, int size, uint32_t start,
                          coh_team **team)
{
    coh_team *made = allocate_team(size, world->size);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "out of memory for a team of %d ranks", size);
    made->world = world;
    made->number = number;
    made->size = size;
    made->start = made->epoch = start;
    for (int rank = 0; rank < world->size; rank++)
        made->indices[rank] = -1;
    for (int i = 0; i < size; i++)
        enrol(made, i, ranks[i]);
    made->index = made->indices[world->rank];
    clear_area(made);
    made->open = true;
    pthread_mutex_lock(&world->team_lock);
    made->next = world->teams;
    world->teams = made;
    pthread_mutex_unlock(&world->team_lock);
    *team = made;
    return COH_OK;
}

void cohi_team_close_all(coh_world *world)
{
    while (world->teams) {
        coh_team *next = world->teams->next;
        free_team(world->teams);
        world->teams = next;
    }
}

coh_status cohi_team_gate(const coh_team *team, const char *call)
{
    if (!team)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the team is NULL", call);
    coh_status status = cohi_world_enter(team->world, call);
    if (status == COH_OK && !team->open)
        return cohi_world_fail(team->world, call, COH_INVALID_ARGUMENT, "the team is destroyed");
    return status;
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

static coh_status report_mismatch(const coh_team *team, const char *call, uint64_t word)
{
    enum { RANK = 0xffff, OP = 0xff };
    atomic_store(&team->world->slot->alarm, 1); /* the report may be ahead of its alarm */
    return cohi_world_fail(team->world, call, COH_MISMATCH,
                           "rank %d called %s where rank %d called %s; all %s must make the same "
                           "collective calls in the same order",
                           (int)(word & RANK), cohi_opcode_name(word >> THEIR_OP_AT & OP),
                           (int)(word >> OUR_RANK_AT & RANK),
                           cohi_opcode_name(word >> OUR_OP_AT & OP),
                           team->number == COHI_TEAM_WORLD ? "ranks" : "members of a team");
}

coh_status cohi_team_standing(coh_team *team, const char *call)
{
    uint64_t mismatch = atomic_load_explicit(&team->mine->mismatch, memory_order_acquire);
    if (has_broken(mismatch, team->now))
        return report_mismatch(team, call, mismatch);
    for (int i = 0; i < team->size; i++) {
        coh_status status = cohi_verdict_check(team->world, call, team->ranks[i]);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* Tells all members that the team is broken: `rank` is in `theirs` where this rank is in `ours`. */
static void break_team(coh_team *team, cohi_opcode ours, int rank, cohi_opcode theirs)
{
    coh_world *world = team->world;
    static const uint32_t set = 1;
    uint64_t word = pack_mismatch(team->epoch, ours, world->rank, theirs, rank);
    size_t place = cohi_slot_meet_offset(world->size, team->number) + offsetof(cohi_meet, mismatch);
    for (int i = 0; i < team->size; i++) {
        int to = team->ranks[i];
        (void)cohi_control_put(world, to, place, &word, sizeof word);
        (void)cohi_control_fence(world);
        (void)cohi_control_put(world, to, offsetof(cohi_slot, alarm), &set, sizeof set);
    }
}

int cohi_team_missing(const coh_team *team)
{
    for (int i = 0; i < team->size; i++) {
        if (i == team->index || !team->meets[i])
            continue;
        uint32_t there =
            epoch_of(atomic_load_explicit(&team->meets[i]->arrived, memory_order_relaxed));
        if ((int32_t)(there - team->epoch) < 0)
            return team->ranks[i];
    }
    return -1;
}

/* ---- entering and leaving ---- */

static void publish(const coh_team *team, cohi_opcode op)
{
    cohi_slot *slot = team->world->slot;
    atomic_store_explicit(&slot->team, team->number, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, cohi_team_sequence(team, team->epoch + 1),
                          memory_order_relaxed);
    atomic_store_explicit(&slot->op, op, memory_order_relaxed);
}

static coh_status refuse_driven(const coh_world *world, const char *call)
{
    return cohi_world_fail(world, call, COH_UNSUPPORTED,
                           "this world is driven in turn with the %d others of its process by a "
                           "single thread (options.driven), so nobody could arrive",
                           world->size - 1);
}

static coh_status refuse_busy(coh_team *team, const char *call)
{
    return cohi_world_fail(team->world, call, COH_BUSY,
                           "another thread of this rank is in a collective (%s) of the same team",
                           cohi_opcode_name(atomic_load(&team->world->slot->op)));
}

coh_status cohi_team_enter(coh_team *team, const char *call, cohi_opcode op)
{
    coh_world *world = team->world;
    if (COHI_UNLIKELY(atomic_exchange_explicit(&team->busy, 1, memory_order_acquire)))
        return refuse_busy(team, call);
    team->now = team->epoch + 1;
    publish(team, op);
    if (cohi_world_plain(world))
        return COH_OK;
    coh_status status = cohi_fault_strike(world->fault, op);
    if (status == COH_OK)
        status = cohi_team_standing(team, call);
    return status == COH_OK ? status : cohi_team_leave(team, status);
}

coh_status cohi_team_assemble(coh_team *team, const char *call, cohi_opcode op)
{
    if (COHI_UNLIKELY(team->world->driven && team->size > 1))
        return refuse_driven(team->world, call);
    return cohi_team_enter(team, call, op);
}

coh_status cohi_team_leave(coh_team *team, coh_status status)
{
    atomic_store_explicit(&team->world->slot->op, COHI_OP_NONE, memory_order_relaxed);
    atomic_store_explicit(&team->busy, 0, memory_order_release);
    return status;
}

/* ---- meeting ---- */

static coh_status tell(coh_team *team, int index, size_t parity, size_t round, uint64_t mark)
{
    cohi_meet *meet = team->meets[index];
    if (COHI_LIKELY(meet != NULL)) {
        atomic_store_explicit(&meet->flags[parity][round].mark, mark, memory_order_release);
        cohi_control_wake(team->slots[index]);
        return COH_OK;
    }
    size_t offset = cohi_slot_meet_offset(team->world->size, team->number)
                    + offsetof(cohi_meet, flags)
                    + (parity * COHI_ROUNDS + round) * sizeof(cohi_flag);
    return cohi_control_put(team->world, team->ranks[index], offset, &mark, sizeof mark);
}

/* A flag that was never written looks like epoch 0, but has no operation. */
static bool has_come(const cohi_flag *flag, uint32_t epoch)
{
    uint64_t mark = atomic_load_explicit(&((cohi_flag *)flag)->mark, memory_order_acquire);
    return epoch_of(mark) == epoch && op_of(mark) != COHI_OP_NONE;
}

static coh_status wait_for_flag(coh_team *team, const char *call, cohi_opcode op, int from,
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

coh_status cohi_team_meet(coh_team *team, const char *call, cohi_opcode op)
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
            status = wait_for_flag(team, call, op, team->ranks[from], flag);
        if (COHI_UNLIKELY(status != COH_OK))
            return status;
        uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
        if (COHI_UNLIKELY(came != mark)) {
            break_team(team, op, team->ranks[from], op_of(came));
            return cohi_team_standing(team, call);
        }
    }
    return COH_OK;
}
