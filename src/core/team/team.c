#include "core/team/team.h"

#include "core/health/control.h"
#include "core/world/fault.h"
#include "core/health/order.h"
#include "core/team/terms.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"
#include "core/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

void cohi_team_free_gear(coh_team *team)
{
    cohi_gear *gear = atomic_exchange(&team->gear, NULL);
    if (gear)
        gear->free(gear);
}

/* All that it has; the handle stays. */
static void empty_team(coh_team *team)
{
    cohi_team_free_gear(team);
    free(team->ranks);
    free(team->indices);
    free(team->meets);
    free(team->slots);
    team->ranks = team->indices = NULL;
    team->meets = NULL;
    team->slots = NULL;
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
    empty_team(team);
    free(team);
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
    else
        team->mapped = false;
}

/* What an earlier team of the same number left there; its epochs are all before `start`. */
static void clear_area(coh_team *team)
{
    team->mine = cohi_slot_meet(team->world->slot, team->world->size, team->number);
    atomic_store(&team->mine->mismatch, 0);
    atomic_store(&team->mine->ready.value, 0);
    atomic_store(&team->mine->done.value, 0);
    for (uint32_t post = 0; post < COHI_POSTS; post++)
        atomic_store(&team->mine->posts[post].mark, cohi_mark(team->start, COHI_OP_NONE));
}

/* ---- what a wait asks of a team ---- */

static coh_team *team_of(const cohi_party *party)
{
    return (coh_team *)party; /* its first member */
}

static int first_absent(const cohi_party *party)
{
    return cohi_team_first_absent(team_of(party));
}

static coh_status standing(cohi_party *party, const char *call)
{
    return cohi_team_standing(team_of(party), call);
}

static coh_status unreachable(cohi_party *party, const char *call, int rank)
{
    return cohi_team_unreachable_error(team_of(party), call, rank);
}

coh_status cohi_team_open(coh_world *world, int number, const int *ranks, int size, uint32_t start,
                          coh_team **team)
{
    coh_team *made = allocate_team(size, world->size);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "out of memory for a team of %d ranks", size);
    made->party = (cohi_party){first_absent, standing, unreachable};
    made->world = world;
    made->number = number;
    made->size = size;
    made->start = made->epoch = made->settled = start;
    made->mapped = true;
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
    for (coh_team *team = world->teams; team; team = team->next) {
        team->open = false;
        empty_team(team);
    }
}

void cohi_team_forget_all(coh_world *world)
{
    while (world->teams) {
        coh_team *next = world->teams->next;
        free(world->teams);
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

#define COHI_OP_FITS(constant, value, name) \
    _Static_assert((value) < 1 << (31 - COHI_PRINT_OP_AT), "an operation fits a fingerprint");
COHI_OPCODE_TABLE(COHI_OP_FITS)
#undef COHI_OP_FITS

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

/* Whether what broke is the present call, or an earlier one. A member that is still behind it can
 * go on until it comes there: all have come to what is before. */
static bool has_broken(uint64_t word, uint32_t now)
{
    uint32_t ahead = (uint32_t)(word >> EPOCH_AT) - now;
    ahead &= (1u << EPOCH_BITS) - 1;
    return word != 0 && (ahead == 0 || ahead >= COHI_POSTS);
}

/* What a rank called, with its arguments where its post can be read. */
static void describe_call(const coh_team *team, int rank, uint32_t epoch, unsigned op, char *text,
                          size_t room)
{
    int index = rank < team->world->size ? team->indices[rank] : -1;
    cohi_meet *meet = index >= 0 ? team->meets[index] : NULL;
    uint64_t mark = meet ? atomic_load(&cohi_meet_post(meet, epoch)->mark) : 0;
    uint32_t differs = (cohi_mark_epoch(mark) ^ epoch) & ((1u << EPOCH_BITS) - 1);
    if (meet && !differs && cohi_mark_print(mark) & COHI_PRINT_DATA)
        cohi_terms_describe(cohi_meet_terms(meet, epoch)->op,
                            cohi_meet_terms(meet, epoch)->argument, text, room);
    else
        snprintf(text, room, "%s", cohi_opcode_name(op));
}

static coh_status report_mismatch(coh_team *team, const char *call, uint64_t word)
{
    enum { RANK = 0xffff, OP = 0xff };
    int ours = (int)(word >> OUR_RANK_AT & RANK), theirs = (int)(word & RANK);
    uint32_t epoch = (uint32_t)(word >> EPOCH_AT);
    char our_call[128], their_call[128];
    describe_call(team, ours, epoch, word >> OUR_OP_AT & OP, our_call, sizeof our_call);
    describe_call(team, theirs, epoch, word >> THEIR_OP_AT & OP, their_call, sizeof their_call);
    atomic_store(&team->world->slot->alarm, 1); /* the report may be ahead of its alarm */
    team->told = true;
    (void)cohi_world_fail(team->world, call, COH_MISMATCH,
                          "rank %d called %s where rank %d called %s; all %s must make the same "
                          "collective calls in the same order",
                          theirs, their_call, ours, our_call,
                          team->number == COHI_TEAM_WORLD ? "ranks" : "members of a team");
    return cohi_fail_peer(COH_MISMATCH, theirs == team->world->rank ? ours : theirs);
}

/* A rank is in several teams: the error message says which one has lost it. */
static coh_status name_team(const coh_team *team, int rank, coh_status status)
{
    if (team->number < COHI_TEAM_FIRST_FREE)
        return status;
    return cohi_fail_reworded(status, "%s; rank %d is a member of team %d", coh_last_error(), rank,
                              team->number);
}

coh_status cohi_team_standing(coh_team *team, const char *call)
{
    uint64_t mismatch = atomic_load_explicit(&team->mine->mismatch, memory_order_acquire);
    if (has_broken(mismatch, team->now))
        return report_mismatch(team, call, mismatch);
    for (int i = 0; i < team->size; i++) {
        int rank = team->ranks[i];
        if (!cohi_verdict_on(team->world, rank))
            continue;
        int origin = cohi_verdict_origin(team->world, rank);
        rank = team->indices[origin] >= 0 ? origin : rank;
        return name_team(team, rank, cohi_verdict_check(team->world, call, rank));
    }
    return COH_OK;
}

coh_status cohi_team_unreachable_error(coh_team *team, const char *call, int rank)
{
    coh_status status = cohi_team_standing(team, call);
    if (status != COH_OK)
        return status;
    return name_team(team, rank, cohi_verdict_presume(team->world, call, rank, COHI_LOSS_LEFT));
}

static void tell_broken(coh_team *team, uint64_t word)
{
    coh_world *world = team->world;
    static const uint32_t set = 1;
    size_t place = cohi_slot_meet_offset(world->size, team->number) + offsetof(cohi_meet, mismatch);
    for (int i = 0; i < team->size; i++) {
        int to = team->ranks[i];
        (void)cohi_control_put(world, to, place, &word, sizeof word);
        (void)cohi_control_fence(world);
        (void)cohi_control_put(world, to, offsetof(cohi_slot, alarm), &set, sizeof set);
    }
}

coh_status cohi_team_break(coh_team *team, const char *call, cohi_opcode ours, int index,
                           uint64_t mark)
{
    uint64_t word = pack_mismatch(cohi_mark_epoch(mark), ours, team->world->rank,
                                  cohi_mark_op(mark), team->ranks[index]);
    tell_broken(team, word);
    coh_status status = cohi_team_standing(team, call);
    return status != COH_OK ? status : report_mismatch(team, call, word); /* told of a later one */
}

coh_status cohi_team_compare(coh_team *team, const char *call, cohi_opcode op)
{
    uint32_t epoch = team->epoch;
    uint64_t mine =
        atomic_load_explicit(&cohi_meet_post(team->mine, epoch)->mark, memory_order_relaxed);
    for (int i = 0; i < team->size; i++) {
        if (!team->meets[i])
            continue;
        uint64_t mark = atomic_load_explicit(&cohi_meet_post(team->meets[i], epoch)->mark,
                                             memory_order_acquire);
        bool here = cohi_mark_epoch(mark) == epoch && cohi_mark_print(mark) != COHI_OP_NONE;
        if (here && mark != mine && cohi_mark_op(mark) != op)
            return cohi_team_break(team, call, op, i, mark);
    }
    return COH_OK;
}

/* The epoch of the last collective that the member was seen to enter. */
static uint32_t arrived(cohi_meet *meet)
{
    uint32_t last = 0;
    for (uint32_t post = 0; post < COHI_POSTS; post++) {
        uint64_t mark = atomic_load_explicit(&meet->posts[post].mark, memory_order_acquire);
        if (post == 0 || (int32_t)(cohi_mark_epoch(mark) - last) > 0)
            last = cohi_mark_epoch(mark);
    }
    return last;
}

int cohi_team_first_absent(const coh_team *team)
{
    for (int i = 0; i < team->size; i++) {
        if (i == team->index || !team->meets[i])
            continue;
        if ((int32_t)(arrived(team->meets[i]) - team->epoch) < 0)
            return team->ranks[i];
    }
    return -1;
}

/*
 * A member whose call needed nothing from the others has left it before they entered. How far it
 * may run ahead is limited: flags and records are used again after two, posts after COHI_POSTS.
 */
static coh_status await_entry(coh_team *team, const char *call, cohi_opcode op, int index)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call, op, &team->party, team->ranks[index]);
    while (status == COH_OK && (int32_t)(arrived(team->meets[index]) - team->epoch) < 0)
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

/* Whether the member was in the same call as this rank in `epoch`, which both have entered; or the
 * call of one of them was refused. */
static bool agrees(const coh_team *team, int index, uint32_t epoch)
{
    uint64_t ours =
        atomic_load_explicit(&cohi_meet_post(team->mine, epoch)->mark, memory_order_relaxed);
    uint64_t theirs = atomic_load_explicit(&cohi_meet_post(team->meets[index], epoch)->mark,
                                           memory_order_relaxed);
    bool refused = cohi_mark_refused(ours) || cohi_mark_refused(theirs);
    bool gone = cohi_mark_epoch(theirs) != epoch; /* it is far ahead, and has compared itself */
    return gone || theirs == ours || (refused && cohi_mark_op(theirs) == cohi_mark_op(ours));
}

static coh_status compare_with(coh_team *team, const char *call, int index)
{
    coh_status status = COH_OK;
    for (uint32_t epoch = team->settled + 1; epoch != team->epoch + 1 && status == COH_OK;
         epoch++) {
        uint64_t theirs = atomic_load_explicit(&cohi_meet_post(team->meets[index], epoch)->mark,
                                               memory_order_relaxed);
        uint64_t ours =
            atomic_load_explicit(&cohi_meet_post(team->mine, epoch)->mark, memory_order_relaxed);
        if (!agrees(team, index, epoch))
            status = cohi_team_break(team, call, cohi_mark_op(ours), index, theirs);
    }
    return status;
}

coh_status cohi_team_compare_past(coh_team *team, const char *call)
{
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++)
        status = team->meets[i] ? compare_with(team, call, i) : COH_OK;
    if (status == COH_OK)
        team->settled = team->epoch;
    return status;
}

static bool made_alike(const coh_team *team, int index, uint32_t last)
{
    bool alike = true;
    for (uint32_t epoch = team->settled + 1; epoch != last + 1; epoch++)
        alike &=
            atomic_load_explicit(&cohi_meet_post(team->meets[index], epoch)->mark,
                                 memory_order_acquire)
            == atomic_load_explicit(&cohi_meet_post(team->mine, epoch)->mark, memory_order_relaxed);
    return alike;
}

/* Every second time, so that the lines of two calls come at once. */
void cohi_team_look_back(coh_team *team)
{
    uint32_t last = team->epoch - 1;
    bool alike = last - team->settled >= COHI_POSTS - 2;
    for (int i = 0; i < team->size && alike; i++)
        alike = made_alike(team, i, last);
    if (alike)
        team->settled = last;
}

/* Compares with each as it comes: a member in another call may keep the next from coming. */
static coh_status settle(coh_team *team, const char *call, cohi_opcode op)
{
    coh_status status = COH_OK;
    for (int i = 0; i < team->size && status == COH_OK; i++) {
        if (!team->meets[i]) /* its marks come in the rounds of a meeting, and are compared there */
            continue;
        status = await_entry(team, call, op, i);
        if (status == COH_OK)
            status = compare_with(team, call, i);
    }
    if (status == COH_OK)
        team->settled = team->epoch;
    return status;
}

/* The mark that a member posted in `epoch`; finalize's where it made fewer calls. */
static uint64_t last_mark(cohi_meet *meet, uint32_t epoch)
{
    uint64_t mark = atomic_load_explicit(&cohi_meet_post(meet, epoch)->mark, memory_order_relaxed);
    return cohi_mark_epoch(mark) == epoch ? mark : cohi_mark(epoch, COHI_OP_FINALIZE);
}

static coh_status conclude_with(coh_team *team, const char *call, int index)
{
    coh_status status = compare_with(team, call, index);
    int32_t ahead = (int32_t)(arrived(team->meets[index]) - team->epoch);
    if (status != COH_OK || ahead == 0)
        return status;
    uint32_t epoch = team->epoch + 1 + (uint32_t)(ahead < 0 ? ahead : 0); /* one of them made it */
    cohi_opcode ours = cohi_mark_op(last_mark(team->mine, epoch));
    return cohi_team_break(team, call, ours, index, last_mark(team->meets[index], epoch));
}

static coh_status conclude(coh_team *team, const char *call)
{
    team->now = team->epoch + 1;
    coh_status status = cohi_team_standing(team, call);
    for (int i = 0; i < team->size && status == COH_OK; i++)
        if (i != team->index && team->meets[i])
            status = conclude_with(team, call, i);
    return status;
}

coh_status cohi_team_conclude_all(coh_world *world, const char *call)
{
    coh_status status = COH_OK;
    for (coh_team *team = world->teams; team && status == COH_OK; team = team->next)
        if (team->open && !team->told && team != world->team)
            status = conclude(team, call);
    return status;
}

/* A meeting comes after all have entered what was before; a post only after all have left the one
 * whose place it takes. */
static bool is_settled(const coh_team *team, cohi_opcode op)
{
    uint32_t ahead = team->epoch - team->settled;
    return ahead == 0 || (ahead <= COHI_POSTS - 2 && team->mapped && cohi_terms_on_data(op));
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

coh_status cohi_team_refuse_driven(const coh_world *world, const char *call)
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

_Thread_local bool cohi_team_worker;

static bool is_drained(const coh_team *team)
{
    return atomic_load_explicit(&((coh_team *)team)->queued, memory_order_acquire) == 0;
}

coh_status cohi_team_drain(coh_team *team, const char *call, cohi_opcode op)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call, op, NULL, team->world->rank);
    while (!is_drained(team) && status == COH_OK)
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

coh_status cohi_team_drain_all(coh_world *world, const char *call, cohi_opcode op)
{
    coh_status status = COH_OK;
    for (coh_team *team = world->teams; team; team = team->next) {
        coh_status drained = cohi_team_drain(team, call, op);
        status = status == COH_OK ? drained : status;
    }
    return status;
}

static inline bool take_turn(coh_team *team)
{
    return !atomic_exchange_explicit(&team->busy, 1, memory_order_acquire);
}

/* A started call that comes while another thread is in one is the next after it. */
static coh_status await_turn(coh_team *team, const char *call, cohi_opcode op)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call, op, NULL, team->world->rank);
    while (status == COH_OK && !take_turn(team))
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

/* A meeting of members that are not mapped compares by itself. It did not come to that: a word to
 * one of them could not be sent, and what it waits for will not come. */
static coh_status refuse_out_of_step(const coh_team *team, const char *call)
{
    return cohi_world_fail(team->world, call, COH_TRANSPORT,
                           "collective #%llu of this team failed on this rank, which is out of "
                           "step with the others since",
                           (unsigned long long)cohi_team_sequence(team, team->epoch));
}

/* The turn is held. */
static __attribute__((noinline)) coh_status enter_checked(coh_team *team, const char *call,
                                                          cohi_opcode op)
{
    coh_status status = cohi_fault_strike(team->world->fault, op);
    if (status == COH_OK)
        status = cohi_team_standing(team, call);
    if (status == COH_OK && !is_settled(team, op))
        status = team->mapped ? settle(team, call, op) : refuse_out_of_step(team, call);
    return status == COH_OK ? status : cohi_team_leave(team, status);
}

static inline coh_status begin_call(coh_team *team, const char *call, cohi_opcode op)
{
    team->now = team->epoch + 1;
    publish(team, op);
    if (COHI_LIKELY(cohi_world_plain(team->world) && is_settled(team, op)))
        return COH_OK;
    return enter_checked(team, call, op);
}

/* Started calls come first, and another thread may be in one. */
static __attribute__((noinline)) coh_status enter_in_turn(coh_team *team, const char *call,
                                                          cohi_opcode op)
{
    coh_status status =
        is_drained(team) || cohi_team_worker ? COH_OK : cohi_team_drain(team, call, op);
    if (status != COH_OK)
        return status;
    if (!take_turn(team)) {
        status = cohi_team_worker ? await_turn(team, call, op) : refuse_busy(team, call);
        if (status != COH_OK)
            return status;
    }
    return begin_call(team, call, op);
}

coh_status cohi_team_enter(coh_team *team, const char *call, cohi_opcode op)
{
    if (COHI_UNLIKELY(!is_drained(team) || !take_turn(team)))
        return enter_in_turn(team, call, op);
    return begin_call(team, call, op);
}

coh_status cohi_team_assemble(coh_team *team, const char *call, cohi_opcode op)
{
    if (COHI_UNLIKELY(team->world->driven && team->size > 1))
        return cohi_team_refuse_driven(team->world, call);
    return cohi_team_enter(team, call, op);
}

/* Which call it was. */
static __attribute__((noinline)) coh_status tell_call(const coh_team *team, coh_status status)
{
    const coh_world *world = team->world;
    char text[128];
    describe_call(team, world->rank, team->now, atomic_load(&world->slot->op), text, sizeof text);
    return cohi_fail_add(status, "it was call #%llu of %s, %s",
                         (unsigned long long)atomic_load(&world->slot->sequence),
                         team->number == COHI_TEAM_WORLD ? "the world" : "its team", text);
}

coh_status cohi_team_leave(coh_team *team, coh_status status)
{
    if (COHI_UNLIKELY(status != COH_OK))
        status = tell_call(team, status);
    cohi_order_met(team->world, team);
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
        cohi_control_wake(team->world, team->slots[index]);
        return COH_OK;
    }
    size_t offset = cohi_slot_meet_offset(team->world->size, team->number)
                    + offsetof(cohi_meet, flags)
                    + (parity * COHI_ROUNDS + round) * sizeof(cohi_flag);
    return cohi_control_put(team->world, team->ranks[index], offset, &mark, sizeof mark);
}

/* A mark that was never written looks like epoch 0, but has no operation. */
static bool is_of(uint64_t mark, uint32_t epoch)
{
    return cohi_mark_epoch(mark) == epoch && cohi_mark_print(mark) != COHI_OP_NONE;
}

static bool has_come(cohi_flag *flag, uint32_t epoch)
{
    return is_of(atomic_load_explicit(&flag->mark, memory_order_acquire), epoch);
}

static coh_status wait_for_flag(coh_team *team, const char *call, cohi_opcode op, int from,
                                cohi_flag *flag)
{
    coh_world *world = team->world;
    for (unsigned pauses = cohi_world_spins(world);; pauses--) {
        if (has_come(flag, team->epoch))
            return COH_OK;
        if (pauses == 0)
            break;
        cohi_cpu_relax(); /* measured faster than a bare loop, also where two cores share silicon */
    }
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, call, op, &team->party, from);
    while (!has_come(flag, team->epoch) && status == COH_OK) {
        status = cohi_wait_step(&wait);
        if (status == COH_OK && wait.asleep)
            status = cohi_team_compare(team, call, op);
    }
    cohi_wait_end(&wait);
    return status;
}

/* Enters the team's next meeting, and posts the mark that all are to have. */
static uint64_t begin_meeting(coh_team *team, cohi_opcode op)
{
    uint32_t epoch = ++team->epoch;
    uint64_t mark = cohi_mark(epoch, op);
    team->now = epoch;
    atomic_store_explicit(&cohi_meet_post(team->mine, epoch)->mark, mark, memory_order_release);
    return mark;
}

coh_status cohi_team_meet(coh_team *team, const char *call, cohi_opcode op)
{
    uint64_t mark = begin_meeting(team, op);
    size_t parity = team->epoch & 1, round = 0;
    for (int distance = 1; distance < team->size; distance *= 2, round++) {
        int to = (team->index + distance) % team->size;
        int from = (team->index - distance + team->size) % team->size;
        cohi_flag *flag = &team->mine->flags[parity][round];
        coh_status status = tell(team, to, parity, round, mark);
        if (COHI_UNLIKELY(status == COH_PEER_LOST))
            return cohi_team_unreachable_error(team, call, team->ranks[to]);
        if (status == COH_OK)
            status = wait_for_flag(team, call, op, team->ranks[from], flag);
        if (COHI_UNLIKELY(status != COH_OK))
            return status;
        uint64_t came = atomic_load_explicit(&flag->mark, memory_order_relaxed);
        if (COHI_UNLIKELY(came != mark))
            return cohi_team_break(team, call, op, from, came);
    }
    team->settled = team->epoch;
    return COH_OK;
}

/*
 * Whether members look at the posts of all others, instead of telling one another in rounds: one
 * wait instead of one a round, but more lines to fetch, and more sleepers to wake. Barriers one
 * after the other on 16 cores, ns in rounds (looking): 3 ranks 590 (470), 4 506 (444), 8 800 (590),
 * 16 1400 (1010). More ranks than cores, us: 4 on 2 cores 2.7 (2.2), 8 on 2 12 (6), 8 on 4 6.7
 * (3.7), 16 on 8 11 (5.1), 32 on 16 13 (9), 64 on 2 194 (135), 128 on 2 605 (650). Where they come
 * up to 6 ms apart and sleep, on 2 cores: as long, and with 8, 16 and 64 ranks 0.6, 0.65 and 1.0 of
 * the CPU time.
 */
static bool looks_around(const coh_team *team)
{
    enum { MOST = 16, MOST_CROWDED = 64 };
    return team->mapped && team->size > 2
           && team->size <= (team->world->crowded ? MOST_CROWDED : MOST);
}

static uint64_t posted(const coh_team *team, int index)
{
    return atomic_load_explicit(&cohi_meet_post(team->meets[index], team->epoch)->mark,
                                memory_order_acquire);
}

static int next_member(const coh_team *team, int index)
{
    return index + 1 < team->size ? index + 1 : 0;
}

/* The first member from `index` on that did not post `mark`; this one itself: all did. */
static int first_without(const coh_team *team, uint64_t mark, int index)
{
    while (index != team->index && posted(team, index) == mark)
        index = next_member(team, index);
    return index;
}

/* One wait for all of them from `index` on, so that the patience is the call's. */
static __attribute__((noinline)) coh_status wait_for_posts(coh_team *team, const char *call,
                                                           cohi_opcode op, uint64_t mark, int index)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call, op, &team->party, team->ranks[index]);
    while (status == COH_OK && (index = first_without(team, mark, index)) != team->index) {
        uint64_t other = posted(team, index);
        wait.rank = team->ranks[index];
        if (other != mark && is_of(other, team->epoch))
            status = cohi_team_break(team, call, op, index, other);
        else
            status = cohi_wait_step(&wait);
        if (status == COH_OK && wait.asleep)
            status = cohi_team_compare(team, call, op);
    }
    cohi_wait_end(&wait);
    return status;
}

coh_status cohi_team_line_up(coh_team *team, const char *call, cohi_opcode op)
{
    if (!looks_around(team))
        return cohi_team_meet(team, call, op);
    uint64_t mark = begin_meeting(team, op);
    for (int i = 0; i < team->size; i++)
        cohi_control_wake(team->world, team->slots[i]);
    int index = first_without(team, mark, next_member(team, team->index));
    for (unsigned pauses = cohi_world_spins(team->world); index != team->index && pauses > 0;
         pauses--) {
        cohi_cpu_relax();
        index = first_without(team, mark, index);
    }
    if (COHI_UNLIKELY(index != team->index)) {
        coh_status status = wait_for_posts(team, call, op, mark, index);
        if (status != COH_OK)
            return status;
    }
    team->settled = team->epoch;
    return COH_OK;
}
