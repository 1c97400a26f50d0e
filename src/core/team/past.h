/*
 * past.h - the calls before the present one. A member whose call needs nothing from the others
 * leaves it before they have entered, so nobody may have compared it there; how far a member runs
 * ahead is limited, since posts are used again after COHI_POSTS epochs.
 *
 * A call is settled once all members are known to have made the same calls up to it.
 */
#ifndef COHI_CORE_TEAM_PAST_H
#define COHI_CORE_TEAM_PAST_H

#include "core/team/entry.h"
#include "core/team/terms.h"

/* Whether the next call may begin. A meeting comes after all have entered what was before; a post
 * only after all have left the one whose place it takes. */
static inline bool cohi_team_is_settled(const coh_team *team, cohi_opcode op)
{
    uint32_t ahead = team->epoch - team->settled;
    return ahead == 0 || (ahead <= COHI_POSTS - 2 && team->mapped && cohi_terms_on_data(op));
}

/* Waits until all members have entered this rank's last call, and compares. The entry is the next
 * call's. Of a team whose members are mapped. */
coh_status cohi_team_settle(const cohi_entry *entry);

/* Compares the calls since the last that is settled, once all members have entered this rank's last
 * one, which is then settled. */
coh_status cohi_team_compare_past(const cohi_entry *entry);

/* For a member that leaves its call without having waited: settles the calls before it when all
 * others can be seen to have made them. It waits for nobody; what it does not see is settled when
 * that can no longer be put off. */
void cohi_team_look_back(coh_team *team);

/* For the end of the world, when all ranks have made their last calls: whether the members of each
 * open team made the same ones. What a call of this rank has told before is not told again. It
 * waits for nobody. */
coh_status cohi_team_conclude_all(coh_world *world, const char *call);

#endif
