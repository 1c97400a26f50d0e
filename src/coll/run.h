/*
 * Room: coll.
 *
 * Collectives on data as the user calls them: descriptions, checks, the choice of an algorithm,
 * calls that are started and finished later.
 * Uses base, memory, the core rooms, and the three rooms below it.
 * Hides which algorithm runs.
 */
/* run.h - carrying out a call. */
#ifndef COHI_COLL_RUN_H
#define COHI_COLL_RUN_H

#include "coll/call/call.h"

/* Checks, chooses, brings the members together and runs, after what was started on the team. */
coh_status cohi_run(cohi_call *call);

/* cohi_run for a team that has passed the gate: what the team's worker calls. */
coh_status cohi_run_now(cohi_call *call);

/* cohi_run for all parts of a grouped call. */
coh_status cohi_run_parts(cohi_call *call);

/* Takes the call's place in the team's sequence with a refusal, whose error message is set. The
 * status is the refusal's, or a worse one. */
coh_status cohi_run_refused(cohi_call *call, coh_status refused);

/* Carries out a call that is found good, or has been refused, in a team whose members are not all
 * mapped: between enter and leave of the team. */
coh_status cohi_run_apart(cohi_call *call, coh_status refused);

/* Carries out a call of the team's gear, which holds the turn and has been found good before. */
coh_status cohi_run_repeated(cohi_call *call);

/* Leaves it to the team's worker. The arrays of counts and offsets, and the parts, are
 * copied. */
coh_status cohi_start(const cohi_call *call, coh_request **request);

#endif
