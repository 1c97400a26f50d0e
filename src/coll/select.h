/* select.h - which algorithm does a call. */
#ifndef COHI_COLL_SELECT_H
#define COHI_COLL_SELECT_H

#include "coll/call/gear.h"
#include "coll/tuning.h"

/* The constants that hold for this team's members: where they share cores, meetings take longer. */
cohi_model cohi_select_model(const coh_team *team);

/*
 * Sets call->algorithm and call->forced: the row that was forced by name, else the one of those
 * that apply which should be fastest. All members of a team choose the same row, since the choice
 * depends only on what is equal on all of them. COH_UNSUPPORTED, with the reason, when the forced
 * one cannot do this call.
 */
coh_status cohi_select(cohi_call *call);

/* Chooses as cohi_select, but neither uses nor keeps earlier choices; the team need not have its
 * gear. */
coh_status cohi_select_anew(cohi_call *call);

#endif
