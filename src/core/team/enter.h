/*
 * enter.h - a member's turn in its team: one collective at a time, those that were started first.
 */
#ifndef COHI_CORE_TEAM_ENTER_H
#define COHI_CORE_TEAM_ENTER_H

#include "core/team/entry.h"

/*
 * Around each collective. Enter: takes the turn, COH_BUSY when another thread has it; publishes the
 * operation; fires faults armed for it; tells what stands against the team; settles the calls
 * before where that can no longer be put off. Enter_waiting: the same for a call that must wait for
 * others, which is COH_UNSUPPORTED for ranks that a single thread drives. Leave: gives the turn
 * back, and passes `status` through.
 */
coh_status cohi_team_enter(const cohi_entry *entry);
coh_status cohi_team_enter_waiting(const cohi_entry *entry);
coh_status cohi_team_leave(coh_team *team, coh_status status);

/* Set in the threads that carry out started collectives; they do not wait for what is queued. */
extern _Thread_local bool cohi_team_worker;

/* Waits until the collectives that were started on any team of the world are done. */
coh_status cohi_team_drain_all(coh_world *world, const char *call, cohi_opcode op);

/* The error for ranks that a single thread drives. */
coh_status cohi_team_refuse_driven(const coh_world *world, const char *call);

#endif
