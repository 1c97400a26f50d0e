/*
 * posts.h - the mark that a member shows in its own slot when it enters a call, and what the others
 * see there.
 *
 * Every call is posted. Members that are mapped read each other's posts, so that entering is one
 * store, and each waits only for those that it needs. Members that are not mapped tell each other
 * in rounds (rounds.h); their posts serve those who sleep and look around.
 */
#ifndef COHI_CORE_TEAM_POSTS_H
#define COHI_CORE_TEAM_POSTS_H

#include "core/health/control.h"
#include "core/team/entry.h"
#include "core/team/mark.h"

/* The mark that the owner of `meet` shows for `epoch`; it may be of another. */
static inline uint64_t cohi_meet_mark(cohi_meet *meet, uint32_t epoch)
{
    return atomic_load_explicit(&cohi_meet_post(meet, epoch)->mark, memory_order_acquire);
}

/* This rank's own. */
static inline uint64_t cohi_team_own_mark(const coh_team *team, uint32_t epoch)
{
    return atomic_load_explicit(&cohi_meet_post(team->mine, epoch)->mark, memory_order_relaxed);
}

/* Enters the team's next epoch: posts the mark, which is returned. Whoever sees it sees all that
 * this rank has stored before. */
static inline uint64_t cohi_team_post(const cohi_entry *entry)
{
    coh_team *team = entry->team;
    uint32_t epoch = ++team->epoch;
    uint64_t mark = cohi_mark(epoch, entry->print);
    team->now = epoch;
    atomic_store_explicit(&cohi_meet_post(team->mine, epoch)->mark, mark, memory_order_release);
    return mark;
}

/* Wakes the members that sleep, all of which are mapped: they may wait for what was just stored. */
static inline void cohi_team_wake(const coh_team *team)
{
    cohi_slot **end = team->slots + team->size;
    for (cohi_slot **slot = team->slots; slot < end; slot++)
        cohi_control_wake(team->world, *slot);
}

/*
 * After cohi_team_post, where all members are mapped: waits until member `index`, or until all, have
 * posted the same mark. When a member was refused in this call, the error is the one that it was
 * refused with; when one is in another call, the team is broken. Once all have come, the calls
 * before are settled too (past.h).
 */
coh_status cohi_team_await(const cohi_entry *entry, int index);
coh_status cohi_team_await_all(const cohi_entry *entry);

/* A meeting of mapped members: posts, and waits for all. */
coh_status cohi_team_look_around(const cohi_entry *entry);

/* Whether a member was seen in another call than this rank, which breaks the team: for waits that
 * take long. COH_OK when not. */
coh_status cohi_team_compare(const cohi_entry *entry);

/* The epoch of the last collective that its owner was seen to enter. */
uint32_t cohi_meet_arrived(cohi_meet *meet);

/* The rank of a member that has not come to the present meeting, as far as can be seen, or -1. */
int cohi_team_first_absent(const coh_team *team);

#endif
