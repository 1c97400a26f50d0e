#include "core/health/peer.h"

#include "base/clock.h"
#include "base/os.h"
#include "core/health/far.h"
#include "core/health/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a rank with others on its host is mute until that is believed, where COHORT_LINK_TIMEOUT is
 * not set. */
#define MUTE_NS (10 * COHI_NS_PER_S)

/* A thread of it is in a wait that takes long: then it is known what the others do. */
static bool waits(cohi_slot *slot)
{
    for (int i = 0; i < COHI_DOINGS; i++)
        if (atomic_load(&slot->doings[i].turn) != 0)
            return true;
    return false;
}

static cohi_sight read_slot(cohi_slot *slot)
{
    return (cohi_sight){
        .known = true,
        .phase = atomic_load(&slot->phase),
        .busy = atomic_load(&slot->rest) == COHI_REST_BUSY && waits(slot),
        .op = atomic_load(&slot->op),
        .waits_for = atomic_load(&slot->waits_for),
        .sequence = atomic_load(&slot->sequence),
    };
}

/* ---- reading a slot that is not mapped ---- */

/* A get that is started now and looked at the next time. It brings what a rank publishes of itself,
 * which comes first in a slot. */
struct cohi_inspection {
    cohi_op op;
    bool begun;    /* `op` is under way, or done */
    bool answered; /* once at least */
    uint64_t begun_ns;
    unsigned char seen[offsetof(cohi_slot, alarm)];
    _Alignas(COHI_CACHE_LINE) unsigned char incoming[offsetof(cohi_slot, alarm)];
};

static struct cohi_inspection *inspection_of(cohi_peer *peer)
{
    if (peer->inspection)
        return peer->inspection;
    struct cohi_inspection *made = aligned_alloc(COHI_CACHE_LINE, sizeof *made);
    if (made)
        made->begun = made->answered = false;
    peer->inspection = made;
    return made;
}

static void begin_inspection(coh_world *world, int rank, struct cohi_inspection *look)
{
    look->op = (cohi_op)COHI_NEW_OP;
    look->begun_ns = cohi_now_ns();
    look->begun =
        world->engine->rma->get(world->endpoint,
                                (cohi_remote){COHI_CONTEXT_CONTROL, rank, COHI_SEGMENT_CONTROL, 0},
                                look->incoming, sizeof look->incoming, &look->op)
        == COH_OK;
}

/* Takes the answer if it is here, and asks again. */
static void renew(coh_world *world, int rank, struct cohi_inspection *look)
{
    if (look->begun && !atomic_load_explicit(&look->op.done, memory_order_acquire))
        return;
    if (look->begun && look->op.status == COH_OK) {
        memcpy(look->seen, look->incoming, sizeof look->seen);
        look->answered = true;
        if (world->mute)
            atomic_store(&world->mute[rank], 0);
    }
    begin_inspection(world, rank, look);
}

/* Whether it has left a question without an answer for so long that its last answer says nothing. */
static bool is_silent(const struct cohi_inspection *look)
{
    const uint64_t patience_ns = 500 * COHI_NS_PER_MS;
    return look->begun && !atomic_load_explicit(&look->op.done, memory_order_acquire)
           && cohi_now_ns() - look->begun_ns > patience_ns;
}

bool cohi_peer_inspect(coh_world *world, int rank, cohi_slot *image)
{
    bool answered = false;
    if (!world->engine->rma || pthread_mutex_trylock(&world->inspect_lock) != 0)
        return false;
    struct cohi_inspection *look = inspection_of(&world->peers[rank]);
    if (look) {
        renew(world, rank, look);
        answered = look->answered && !is_silent(look);
        if (answered)
            memcpy((void *)image, look->seen, sizeof look->seen);
    }
    pthread_mutex_unlock(&world->inspect_lock);
    return answered;
}

/*
 * What is known of a mute rank is two times in one word: since when it has been, and when that was last told. An engine
 * tells of it as long as it lasts, so what is older is over.
 */
#define MUTE_LASTS_MS 5000

static uint32_t milliseconds(void)
{
    return (uint32_t)(cohi_now_ns() / COHI_NS_PER_MS);
}

/* For how long the rank has been mute by now; 0: it is not. */
static uint32_t mute_for_ms(const coh_world *world, int rank)
{
    uint64_t told = atomic_load(&world->mute[rank]);
    uint32_t now = milliseconds();
    if (told == 0 || now - (uint32_t)told > MUTE_LASTS_MS)
        return 0;
    uint32_t since = now - (uint32_t)(told >> 32);
    return since > 0 ? since : 1;
}

void cohi_peer_mute(void *world, int rank)
{
    const coh_world *told = world;
    if (!told->mute)
        return;
    uint32_t now = milliseconds(), since = now - mute_for_ms(told, rank);
    atomic_store(&told->mute[rank], (uint64_t)since << 32 | now);
}

/* Whether nobody on the rank's host, who could see that it is not stopped, is known to answer. */
static bool is_host_mute(coh_world *world, int rank)
{
    for (int of = 0; of < world->size; of++)
        if (world->host_of[of] == world->host_of[rank] && mute_for_ms(world, of) == 0
            && !cohi_peer_has_left(world, of)
            && cohi_verdict_status(cohi_verdict_on(world, of)) != COH_PEER_LOST)
            return false;
    return true;
}

/* The ranks of its host tell of one that is stopped, and know better whether it is only busy; but they
 * may be computing. */
static bool is_mute_for_long(coh_world *world, int rank)
{
    uint64_t mute_ns = mute_for_ms(world, rank) * COHI_NS_PER_MS;
    uint64_t patience_ns = world->link_timeout_ns ? world->link_timeout_ns : MUTE_NS;
    return mute_ns > 0 && (mute_ns >= patience_ns || is_host_mute(world, rank));
}

/* What it was in when it last answered. */
static unsigned last_op_of(const struct cohi_inspection *look)
{
    atomic_uint op;
    memcpy((void *)&op, look->seen + offsetof(cohi_slot, op), sizeof op);
    return atomic_load(&op);
}

/* The engine may have said so before the answer to a question that came since. */
bool cohi_peer_is_mute(coh_world *world, int rank, unsigned *op)
{
    *op = COHI_OP_NONE;
    bool mute = world->mute && is_mute_for_long(world, rank);
    if (!mute)
        return false;
    pthread_mutex_lock(&world->inspect_lock);
    const struct cohi_inspection *look = world->peers[rank].inspection;
    mute = look && is_silent(look);
    if (mute && look->answered)
        *op = last_op_of(look);
    pthread_mutex_unlock(&world->inspect_lock);
    return mute;
}

void cohi_peer_close_all(coh_world *world)
{
    for (int rank = 0; rank < world->size; rank++)
        free(world->peers[rank].inspection);
}

/* ---- looking ---- */

bool cohi_peer_is_stopped(const coh_world *world, int rank)
{
    if (cohi_far(world, rank))
        return cohi_board_read(world->board, rank).stopped;
    pid_t pid = world->peers[rank].pid;
    if (pid <= 0 || pid == getpid())
        return false;
    return cohi_slot_is_stopped(cohi_board_slot(world->board, rank), pid);
}

/* Of a rank that shares its process with others only its own threads count. */
bool cohi_peer_wants_core(const coh_world *world, int rank, cohi_slot *slot)
{
    pid_t pid = rank == world->rank ? getpid() : world->peers[rank].pid;
    if (!world->crew)
        return pid > 0 && cohi_os_process_wants_core(pid);
    bool wants = cohi_os_thread_wants_core(getpid(), atomic_load(&slot->thread));
    for (int i = 0; i < COHI_DOINGS && !wants; i++) {
        int thread = atomic_load(&slot->doings[i].thread);
        wants = thread != 0 && cohi_os_thread_wants_core(getpid(), thread);
    }
    return wants;
}

bool cohi_peer_has_left(coh_world *world, int rank)
{
    cohi_slot *slot = world->peers[rank].slot;
    if (slot)
        return atomic_load_explicit(&slot->phase, memory_order_acquire) == COHI_PHASE_LEFT;
    return atomic_load_explicit(&world->left[rank], memory_order_acquire);
}

static cohi_sight look_at_unmapped(coh_world *world, int rank)
{
    if (cohi_peer_has_left(world, rank))
        return (cohi_sight){.known = true, .phase = COHI_PHASE_LEFT, .waits_for = -1};
    cohi_slot image;
    cohi_told told = cohi_board_read(world->board, rank);
    if (told.stopped) /* then it does not answer, but its host has said where it is */
        return (cohi_sight){.known = true,
                            .stopped = true,
                            .phase = COHI_PHASE_RUNNING,
                            .op = told.op,
                            .waits_for = -1};
    if (cohi_peer_inspect(world, rank, &image))
        return read_slot(&image);
    unsigned op;
    bool mute = cohi_peer_is_mute(world, rank, &op);
    return (cohi_sight){
        .known = mute, .mute = mute, .phase = COHI_PHASE_RUNNING, .op = op, .waits_for = -1};
}

cohi_sight cohi_peer_look(coh_world *world, int rank)
{
    cohi_slot *slot = rank == world->rank ? world->slot : world->peers[rank].slot;
    if (!slot)
        return look_at_unmapped(world, rank);
    cohi_sight sight = read_slot(slot);
    sight.stopped = cohi_peer_is_stopped(world, rank);
    return sight;
}

void cohi_sight_describe(const cohi_sight *sight, char *text, size_t room)
{
    const char *name = cohi_opcode_name(sight->op);
    const char *stopped = sight->stopped ? "stopped " : "";
    const char *besides = sight->busy ? "outside Cohort, and a thread of it " : "";
    const char *whom = sight->waits_for == COHI_WAITS_FOR_ANYBODY ? ", for anybody" : "";
    if (!sight->known)
        snprintf(text, room, "out of sight");
    else if (sight->mute)
        snprintf(text, room, "without an answer, though its host answers (stopped?)%s%s",
                 sight->op != COHI_OP_NONE ? "; it was last seen in " : "",
                 sight->op != COHI_OP_NONE ? name : "");
    else if (sight->phase == COHI_PHASE_LEFT)
        snprintf(text, room, "finalized");
    else if (sight->op == COHI_OP_NONE)
        snprintf(text, room, "%s%s", stopped, name);
    else if (sight->sequence == 0)
        snprintf(text, room, "%s%sin %s%s", stopped, besides, name, whom);
    else
        snprintf(text, room, "%s%sin %s #%llu%s", stopped, besides, name,
                 (unsigned long long)sight->sequence, whom);
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
    uint64_t verdict = cohi_verdict_heed(world, rank);
    cohi_sight sight = cohi_peer_look(world, rank);
    *state = state_of(verdict, &sight);
    if (bytes > 0 && verdict)
        cohi_verdict_describe(verdict, text, bytes);
    else if (bytes > 0)
        cohi_sight_describe(&sight, text, bytes);
    return COH_OK;
}
