#include "core/peer.h"

#include "base/os.h"
#include "core/mailbox.h"
#include "core/verdict.h"

#include <stdio.h>
#include <unistd.h>

static cohi_sight read_slot(cohi_slot *slot)
{
    return (cohi_sight){
        .known = true,
        .phase = atomic_load(&slot->phase),
        .op = atomic_load(&slot->op),
        .beat = atomic_load(&slot->beat),
        .waits_for = atomic_load(&slot->waits_for),
        .sequence = atomic_load(&slot->sequence),
    };
}

/* The two lines of a slot that say who the rank is and what it does. */
_Static_assert(offsetof(cohi_slot, alarm) == 2 * COHI_CACHE_LINE,
               "an inspection reads what a rank publishes of itself and nothing else");

/* Reads an unmapped peer's slot by a get that is started now and looked at the next time. */
static cohi_sight inspect(coh_world *world, int rank)
{
    cohi_sight sight = {.known = false};
    cohi_inspection *look = &world->inspection;
    if (!world->engine->rma || pthread_mutex_trylock(&world->inspect_lock) != 0)
        return sight;
    bool under_way = look->rank >= 0 && !atomic_load_explicit(&look->op.done, memory_order_acquire);
    if (look->rank == rank && !under_way && look->op.status == COH_OK)
        sight = read_slot((cohi_slot *)(void *)look->seen);
    if (!under_way) {
        look->rank = rank;
        look->op = (cohi_op){.status = COH_OK};
        if (world->engine->rma->get(world->endpoint, COHI_CONTEXT_CONTROL, rank,
                                    COHI_SEGMENT_CONTROL, 0, look->seen, sizeof look->seen,
                                    &look->op)
            != COH_OK)
            look->rank = -1;
    }
    pthread_mutex_unlock(&world->inspect_lock);
    return sight;
}

static bool is_stopped(const coh_world *world, int rank)
{
    pid_t pid = world->peers[rank].pid;
    if (pid <= 0 || pid == getpid())
        return false;
    return cohi_slot_is_stopped(cohi_board_slot(world->board, rank), pid);
}

bool cohi_peer_has_left(coh_world *world, int rank)
{
    cohi_slot *slot = world->peers[rank].slot;
    if (slot)
        return atomic_load_explicit(&slot->phase, memory_order_acquire) == COHI_PHASE_LEFT;
    const cohi_mailbox *box = world->mailbox;
    return box && atomic_load_explicit(&box->partners[rank].left, memory_order_acquire);
}

static cohi_sight look_at_unmapped(coh_world *world, int rank)
{
    if (cohi_peer_has_left(world, rank))
        return (cohi_sight){.known = true, .phase = COHI_PHASE_LEFT, .waits_for = -1};
    return inspect(world, rank);
}

cohi_sight cohi_peer_look(coh_world *world, int rank)
{
    cohi_slot *slot = rank == world->rank ? world->slot : world->peers[rank].slot;
    if (!slot)
        return look_at_unmapped(world, rank);
    cohi_sight sight = read_slot(slot);
    sight.stopped = is_stopped(world, rank);
    return sight;
}

void cohi_sight_describe(const cohi_sight *sight, char *text, size_t room)
{
    const char *name = cohi_opcode_name(sight->op);
    const char *stopped = sight->stopped ? "stopped " : "";
    const char *whom = sight->waits_for == COHI_WAITS_FOR_ANYBODY ? ", for anybody" : "";
    if (!sight->known)
        snprintf(text, room, "out of sight");
    else if (sight->phase == COHI_PHASE_LEFT)
        snprintf(text, room, "finalized");
    else if (sight->op == COHI_OP_NONE)
        snprintf(text, room, "%s%s", stopped, name);
    else if (sight->sequence == 0)
        snprintf(text, room, "%sin %s%s", stopped, name, whom);
    else
        snprintf(text, room, "%sin %s #%llu%s", stopped, name, (unsigned long long)sight->sequence,
                 whom);
}

static coh_peer_state state_of(uint64_t verdict, const cohi_sight *sight)
{
    coh_status status = cohi_verdict_status(verdict);
    if (status == COH_PEER_LOST)
        return COH_PEER_GONE;
    if (status != COH_OK)
        return COH_PEER_STUCK;
    return sight->known && sight->phase == COHI_PHASE_LEFT ? COH_PEER_LEFT : COH_PEER_ALIVE;
}

coh_status coh_peer_query(coh_world *world, int rank, coh_peer_state *state, char *text,
                          size_t bytes)
{
    static const char call[] = "coh_peer_query";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK)
        status = cohi_world_check_rank(world, call, rank);
    if (status != COH_OK)
        return status;
    if (!state || (bytes > 0 && !text))
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT, "%s is NULL",
                               state ? "text" : "state");
    uint64_t verdict = cohi_verdict_on(world, rank);
    cohi_sight sight = cohi_peer_look(world, rank);
    *state = state_of(verdict, &sight);
    if (bytes > 0 && verdict)
        cohi_verdict_describe(verdict, text, bytes);
    else if (bytes > 0)
        cohi_sight_describe(&sight, text, bytes);
    return COH_OK;
}
