/*
 * Room: coll/levels.
 *
 * Algorithms for teams that span hosts: mapped rows inside a host, message rows between hosts.
 * Uses coll/call, coll/mapped, coll/message, base, memory, and the core rooms world and team.
 * Hides how a call is cut into parts on the levels, and which row does each.
 */
/*
 * part.h - one collective on one level of the team, as a part of a call.
 *
 * A part is a call of its own, made with buffers that are known to be good, and carried out by the
 * row that should be fastest there. It is posted and sent under the whole call's fingerprint, and
 * whoever looks sees the whole call: its name, operation and terms.
 */
#ifndef COHI_COLL_LEVELS_PART_H
#define COHI_COLL_LEVELS_PART_H

#include "coll/call/algorithm.h"
#include "core/team/levels.h"

/* A part of `kind` on a level of call->team, with the call's type and reduction; no buffers yet. */
cohi_call cohi_part_of(cohi_call *call, coh_team *level, coh_collective_kind kind);

/* The same, of results on their way (coll/message/accumulate.h): means are sums. */
cohi_call cohi_part_of_partials(cohi_call *call, coh_team *level, coh_collective_kind kind);

/* Who of this host speaks for it in a rooted call, by the local level: the root on its own host, of
 * others the leader. */
int cohi_part_lead(const cohi_call *call);

/* Sets `count` elements of an array, or of each block. */
void cohi_part_count(cohi_call *part, size_t count);

/* Sets blocks of lengths of their own. */
void cohi_part_blocks(cohi_call *part, const size_t *counts, const size_t *firsts);

/* What its row will need of a workspace; the part has its counts. */
size_t cohi_part_workspace(cohi_call *part);

/* Carries it out. `workspace` has cohi_part_workspace bytes. */
coh_status cohi_part_run(cohi_call *part, char *workspace);

#endif
