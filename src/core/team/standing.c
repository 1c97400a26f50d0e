#include "core/team/standing.h"

#include "base/clock.h"
#include "core/team/agree.h"
#include "core/team/apart.h"
#include "core/health/control.h"
#include "core/health/far.h"
#include "core/health/peer.h"
#include "core/health/verdict.h"
#include "core/team/levels.h"
#include "core/team/mark.h"
#include "core/team/terms.h"
#include "core/world/world.h"

#include <stdio.h>
#include <time.h>

#define COHI_OP_FITS(constant, value, name) \
    _Static_assert((value) < 1 << (31 - COHI_PRINT_OP_AT), "an operation fits a fingerprint");
COHI_OPCODE_TABLE(COHI_OP_FITS)
#undef COHI_OP_FITS

/* How long after a member has left, or an operation failed, there may be an explanation. */
#define REASON_NS (400 * COHI_NS_PER_MS)

/*
 * Who called what, in one word, so that it arrives whole however many ranks report at once: a bit
 * that says so, the low bits of the epoch, two operations, two ranks.
 */
enum { EPOCH_AT = 50, EPOCH_BITS = 13, THEIR_OP_AT = 42, OUR_OP_AT = 34, OUR_RANK_AT = 17 };

_Static_assert(COHI_WORLD_MAX < 1 << OUR_RANK_AT, "two ranks and two operations fit in 50 bits");

static uint64_t pack_mismatch(uint32_t epoch, cohi_opcode our_op, int ours, cohi_opcode their_op,
                              int theirs)
{
    uint64_t low_bits = epoch & ((1u << EPOCH_BITS) - 1);
    return UINT64_C(1) << 63 | low_bits << EPOCH_AT | (uint64_t)their_op << THEIR_OP_AT
           | (uint64_t)our_op << OUR_OP_AT | (uint64_t)ours << OUR_RANK_AT | (uint64_t)theirs;
}

static int our_rank(uint64_t word)
{
    return (int)(word >> OUR_RANK_AT & ((1u << OUR_RANK_AT) - 1));
}

static int their_rank(uint64_t word)
{
    return (int)(word & ((1u << OUR_RANK_AT) - 1));
}

/* Whether what broke is the present call, or an earlier one. A member that is still behind it can
 * go on until it comes there: all have come to what is before. */
static bool has_broken(uint64_t word, uint32_t now)
{
    uint32_t ahead = (uint32_t)(word >> EPOCH_AT) - now;
    ahead &= (1u << EPOCH_BITS) - 1;
    return word != 0 && (ahead == 0 || ahead >= COHI_POSTS);
}

/* What a member that is not mapped was told to have called, which may be known by the low bits of its
 * epoch alone; or NULL. */
static const cohi_record *told_record(const coh_team *team, int index, uint32_t epoch, unsigned op)
{
    coh_world *world = team->world;
    const cohi_record *record =
        cohi_slot_record(world->slot, world->size, team->number, epoch, index);
    uint32_t differs = (record->epoch ^ epoch) & ((1u << EPOCH_BITS) - 1);
    return !differs && record->op == op && cohi_terms_on_data(op) ? record : NULL;
}

/* The index of a rank that a peer's word names; -1: of none. */
static int index_of(const coh_team *team, int rank)
{
    return rank < team->world->size ? team->indices[rank] : -1;
}

void cohi_team_describe_call(const coh_team *team, int rank, uint32_t epoch, unsigned op,
                             char *text, size_t room)
{
    int index = index_of(team, rank);
    cohi_meet *meet = index >= 0 ? team->meets[index] : NULL;
    const cohi_record *record = index >= 0 && !meet ? told_record(team, index, epoch, op) : NULL;
    uint64_t mark = meet ? atomic_load(&cohi_meet_post(meet, epoch)->mark) : 0;
    uint32_t differs = (cohi_mark_epoch(mark) ^ epoch) & ((1u << EPOCH_BITS) - 1);
    if (meet && !differs && cohi_mark_print(mark) & COHI_PRINT_DATA)
        cohi_terms_describe(cohi_meet_terms(meet, epoch)->op,
                            cohi_meet_terms(meet, epoch)->argument, text, room);
    else if (record)
        cohi_terms_describe(op, record->argument, text, room);
    else
        snprintf(text, room, "%s", cohi_opcode_name(op));
}

static void tell_broken_to(coh_team *team, int index, uint64_t word)
{
    coh_world *world = team->world;
    static const uint32_t set = 1;
    int to = team->ranks[index];
    size_t place = cohi_slot_meet_offset(world->size, team->number) + offsetof(cohi_meet, mismatch);
    (void)cohi_control_put(world, to, place, &word, sizeof word);
    (void)cohi_control_fence(world);
    (void)cohi_control_put(world, to, offsetof(cohi_slot, alarm), &set, sizeof set);
}

static void tell_broken(coh_team *team, uint64_t word)
{
    for (int i = 0; i < team->size; i++)
        tell_broken_to(team, i, word);
}

/*
 * The leader of a host, who hears of a mismatch, tells the members of other hosts before its call
 * returns, the calls first: whoever found it has told them too, but that may still be on its way, on
 * another link, when this rank leaves and they see it gone.
 */
static void pass_on(coh_team *team, const char *call, uint64_t word)
{
    cohi_opcode op = (cohi_opcode)atomic_load(&team->world->slot->op);
    const cohi_entry entry = cohi_entry_of(team, call, op);
    uint32_t since = (team->now - (uint32_t)(word >> EPOCH_AT)) & ((1u << EPOCH_BITS) - 1);
    int ours = index_of(team, our_rank(word)), theirs = index_of(team, their_rank(word));
    if (ours >= 0 && theirs >= 0)
        cohi_apart_tell_calls(team, ours, theirs, team->now - since);
    for (int i = 0; i < team->size; i++)
        if (!team->meets[i])
            tell_broken_to(team, i, word);
    (void)cohi_agree_quiet(&entry);
}

static coh_status report_mismatch(coh_team *team, const char *call, uint64_t word)
{
    enum { OP = 0xff };
    int ours = our_rank(word), theirs = their_rank(word);
    uint32_t epoch = (uint32_t)(word >> EPOCH_AT);
    char our_call[128], their_call[128];
    cohi_team_describe_call(team, ours, epoch, word >> OUR_OP_AT & OP, our_call, sizeof our_call);
    cohi_team_describe_call(team, theirs, epoch, word >> THEIR_OP_AT & OP, their_call,
                            sizeof their_call);
    atomic_store(&team->world->slot->alarm, 1); /* the report may be ahead of its alarm */
    bool first = !team->told;
    team->told = true;
    if (first && team->levels && cohi_levels_leads(team))
        pass_on(team, call, word);
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

coh_status cohi_team_await_standing(coh_team *team, const char *call)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    coh_world *world = team->world;
    coh_status status = cohi_team_standing(team, call);
    uint64_t deadline_ns = cohi_now_ns() + REASON_NS;
    while (status == COH_OK && cohi_now_ns() < deadline_ns) {
        if (world->engine->lifecycle->progress)
            world->engine->lifecycle->progress(world->endpoint);
        nanosleep(&moment, NULL);
        status = cohi_team_standing(team, call);
    }
    return status;
}

/*
 * A member of another host that is gone may have left for a reason that is still on its way here: the
 * one that found it told all members, and this one left as soon as it had heard. Inside a host all
 * see the same memory. In the last meeting members leave as soon as they can, and have no reason.
 */
static coh_status find_reason(coh_team *team, const char *call, int rank)
{
    bool may_come = cohi_far(team->world, rank) && !atomic_load(&team->world->parting);
    return may_come ? cohi_team_await_standing(team, call) : cohi_team_standing(team, call);
}

coh_status cohi_team_unreachable_error(coh_team *team, const char *call, int rank)
{
    coh_status status = find_reason(team, call, rank);
    if (status != COH_OK)
        return status;
    return name_team(team, rank, cohi_verdict_presume(team->world, call, rank, COHI_LOSS_LEFT));
}

/* A level's epochs are its own. */
static coh_status break_whole(const cohi_entry *entry, int index, uint64_t mark)
{
    coh_team *whole = entry->team->whole;
    const cohi_entry call = {whole, entry->call, entry->op, entry->print};
    return cohi_team_break(&call, whole->indices[entry->team->ranks[index]],
                           cohi_mark(whole->epoch, cohi_mark_print(mark)));
}

coh_status cohi_team_break(const cohi_entry *entry, int index, uint64_t mark)
{
    coh_team *team = entry->team;
    if (team->whole)
        return break_whole(entry, index, mark);
    if (team->levels)
        cohi_apart_tell_calls(team, team->index, index, cohi_mark_epoch(mark));
    uint64_t word = pack_mismatch(cohi_mark_epoch(mark), entry->op, team->world->rank,
                                  cohi_mark_op(mark), team->ranks[index]);
    tell_broken(team, word);
    if (team->levels) /* it may leave next, and that must not be heard of first */
        (void)cohi_agree_quiet(entry);
    coh_status status = cohi_team_standing(team, entry->call);
    return status != COH_OK ? status
                            : report_mismatch(team, entry->call, word); /* told of a later one */
}
