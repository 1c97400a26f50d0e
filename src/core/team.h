/*
 * team.h - an ordered set of ranks that meet.
 *
 * A meeting is a dissemination barrier: in round k each member tells the one 2^k further on that it
 * and all it heard of have come. The mark that is passed holds the epoch, which counts the team's
 * collectives, and a fingerprint of the call; two members with the same epoch and different
 * fingerprints are in different calls, and the team is broken for good: COH_MISMATCH to all.
 */
#ifndef COHI_CORE_TEAM_H
#define COHI_CORE_TEAM_H

#include "bootstrap/board.h"

#include <stdbool.h>

typedef struct cohi_team {
    coh_world *world;
    int size;
    int index;       /* this rank's */
    uint32_t epoch;  /* of the last meeting; touched only by who holds `busy` */
    uint32_t now;    /* of the meeting that the present call is in, or about to be in */
    atomic_int busy; /* a thread is in a collective of this team */
    cohi_meet *mine;
    cohi_meet **meets; /* [size], NULL where the member is not mapped */
    cohi_slot **slots; /* [size], likewise */
} cohi_team;

/*
 * Epochs start shortly before they wrap, so that every program that runs for a moment has crossed
 * the wrap, and no code can come to depend on their order.
 */
#define COHI_EPOCH_START (UINT32_MAX - 15)

/* The number a user sees: 1 for the first collective. */
static inline uint64_t cohi_team_sequence(uint32_t epoch)
{
    return (uint32_t)(epoch - COHI_EPOCH_START);
}

/* Sets up the team of all ranks; the peers' slots are known. */
coh_status cohi_team_open(coh_world *world, cohi_team *team);
void cohi_team_close(cohi_team *team);

/*
 * Around each collective. Enter: COH_BUSY when another thread is in one; what broke the team;
 * publishes the operation; fires faults armed for it. Leave: passes `status` through.
 */
coh_status cohi_team_enter(cohi_team *team, const char *call, cohi_opcode op);
coh_status cohi_team_leave(cohi_team *team, coh_status status);

/* Waits until all members are in this same call. Between enter and leave. */
coh_status cohi_team_meet(cohi_team *team, const char *call, cohi_opcode op);

/* The error that stands against the team, if one does: a lost or stalled member, a mismatch. */
coh_status cohi_team_standing(cohi_team *team, const char *call);

/* A member that has not come to the present meeting, as far as this rank can see, or -1. */
int cohi_team_missing(const cohi_team *team);

/* Tells all members that the team is broken: `rank` is in `theirs` where this rank is in `ours`. */
void cohi_team_break(cohi_team *team, cohi_opcode ours, int rank, cohi_opcode theirs);

#endif
