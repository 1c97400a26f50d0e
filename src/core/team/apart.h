/*
 * apart.h - calls of a team whose members are not all mapped.
 *
 * Members of one host see each other's posts, and wait for those first: so a host is in one call. Its
 * first member, the leader, speaks for it to the other hosts. Nobody compares the calls of all hosts
 * beforehand. Messages go under the fingerprint of their call, so that nothing of another call is
 * ever received; and no leader leaves before all hosts are known to be in the same call, either since
 * it has what only all of them together can give, or by a meeting of the leaders. So where calls
 * differ all leaders come to wait, and a leader that sleeps tells the next one what it called. The
 * record is put where those of an agreement are.
 *
 * A member whose call was refused tells all others so. They end with its refusal, and the leaders
 * meet; the team goes on.
 */
#ifndef COHI_CORE_TEAM_APART_H
#define COHI_CORE_TEAM_APART_H

#include "core/team/entry.h"

/* After cohi_team_post: waits until all members of this host are in this same call, or were refused
 * in it; or have been, where the leader has let all go meanwhile. *refused: one of the others was. */
coh_status cohi_apart_gather(const cohi_entry *entry, bool *refused);

/* The meeting of the leaders; others have nothing to do. *refused goes in as what this host knows, and
 * comes out as what all know. */
coh_status cohi_apart_meet(const cohi_entry *entry, bool *refused);

/* Lets the members of this host go, and waits until its leader does so. *refused goes in as what the leader
 * knows, and comes out as that on all of them. */
coh_status cohi_apart_release(const cohi_entry *entry, bool *refused);

/* Tells the members of other hosts that this rank's present call was refused; its terms are posted. */
coh_status cohi_apart_tell_refusal(const cohi_entry *entry);

/* The error for another member's refusal, which is known to be told: waits for it. */
coh_status cohi_apart_explain_refusal(const cohi_entry *entry);

/* Breaks the team over leader `index` of another host, which has shown its mark in their meeting: each
 * tells the other what it called first, for the error message. */
coh_status cohi_apart_break(const cohi_entry *entry, int index, uint64_t mark);

/* What a member that sleeps in a call of the team, or of a level of it, does: tells its call to the
 * next leader, and compares it with what others have shown or told. COH_OK for a team that is mapped.
 * An error that is another member's refusal sets team->heard. */
coh_status cohi_apart_look(coh_team *team, const char *call);

/* The same without refusals. */
coh_status cohi_apart_compare(const cohi_entry *entry);

/* Whether member `index` has put a record here for `epoch`, which is copied. */
bool cohi_apart_read(const coh_team *team, int index, uint32_t epoch, cohi_record *copy);

/* Tells what two members called in `epoch`, as far as this rank knows, to those who cannot see it,
 * before they hear that the team is broken. */
void cohi_apart_tell_calls(coh_team *team, int first, int second, uint32_t epoch);

#endif
