/*
 * standing.h - what stands against a team: a lost or stalled member, or members in different calls.
 *
 * Two members with the same epoch and different fingerprints are in different calls. From then on
 * nobody knows which call is which, so the team is broken for good: COH_MISMATCH to all.
 */
#ifndef COHI_CORE_TEAM_STANDING_H
#define COHI_CORE_TEAM_STANDING_H

#include "core/team/entry.h"

/* The error that stands against the team, if one does. */
coh_status cohi_team_standing(coh_team *team, const char *call);

/* The same, where something has failed just now and the reason may still be on its way: waits for it for a moment. */
coh_status cohi_team_await_standing(coh_team *team, const char *call);

/* The error when a member cannot be reached: what stands against the team, or what made the member
 * leave. */
coh_status cohi_team_unreachable_error(coh_team *team, const char *call, int rank);

/* Tells all members that the team is broken: member `index`, whose mark is given, is in another
 * call than this rank. The error to return. */
coh_status cohi_team_break(const cohi_entry *entry, int index, uint64_t mark) __attribute__((cold));

/* What `rank` called in `epoch`, with its arguments where its post can be read. */
void cohi_team_describe_call(const coh_team *team, int rank, uint32_t epoch, unsigned op,
                             char *text, size_t room);

#endif
