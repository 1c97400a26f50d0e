/*
 * entry.h - one collective call of a team, as this member enters it. Barriers, agreements and
 * collectives on data are all made of the same steps, and each step takes the entry:
 *
 *     enter.h     the member's turn in the team, and the end of it
 *     posts.h     shows its mark, and waits for the others' marks
 *     rounds.h    all wait for all
 *     past.h      the calls before, in which nobody may have waited
 *     standing.h  what stands against the team
 *
 * The arguments are compared by fingerprint. In full they are where members that differ find them:
 * those of a collective on data beside its post (cohi_terms), those of an agreement in its record.
 */
#ifndef COHI_CORE_TEAM_ENTRY_H
#define COHI_CORE_TEAM_ENTRY_H

#include "core/team/team.h"

typedef struct cohi_entry {
    coh_team *team;
    const char *call; /* the public function, for error messages */
    cohi_opcode op;   /* what this rank is seen to be doing */
    uint32_t print;   /* the call's fingerprint, which must be the same on all members */
} cohi_entry;

/* Of a call that is compared by its operation alone. */
static inline cohi_entry cohi_entry_of(coh_team *team, const char *call, cohi_opcode op)
{
    return (cohi_entry){team, call, op, op};
}

#endif
