/*
 * agree.h - collectives that must have the same arguments, and the same outcome, on all ranks.
 */
#ifndef COHI_CORE_TEAM_AGREE_H
#define COHI_CORE_TEAM_AGREE_H

#include "core/team/entry.h"

/*
 * Brings `mine` (status and arguments; the rest is set here) to all members and compares. Between
 * cohi_team_enter and leave. It is a meeting as well, so the entry's fingerprint must be that of the
 * operation alone: members that meet with different ones break the team.
 *
 * The outcome is the same on all members: COH_MISMATCH, with both sides' values, when the arguments
 * differ; the status of the lowest rank that failed, with its name; COH_OK when all agree. What
 * kept the ranks from meeting comes before all that.
 */
coh_status cohi_agree(const cohi_entry *entry, cohi_record *mine);

/* Waits until what this rank has put into slots of members is there: before it goes on to a call that
 * others put to the same places for. */
coh_status cohi_agree_quiet(const cohi_entry *entry);

/* After cohi_agree: what member `index` had brought. Valid until the team's next collective
 * but one. */
const cohi_record *cohi_agree_record(const coh_team *team, const cohi_record *mine, int index);

#endif
