/*
 * team.h - an ordered set of ranks that meet.
 *
 * A meeting is a dissemination barrier: in round k each member tells the one 2^k further on that
 * it and all it heard of have come. The mark that is passed holds the epoch, which counts the
 * team's collectives, and a fingerprint of the call; two members with the same epoch and
 * different fingerprints are in different calls, and the team is broken for good: COH_MISMATCH to
 * all.
 *
 * Each team has a number, which is that of the area in its members' slots where it meets. Teams
 * without a common member may have the same number.
 */
#ifndef COHI_CORE_TEAM_H
#define COHI_CORE_TEAM_H

#include "bootstrap/board.h"

#include <stdbool.h>

struct coh_team {
    coh_world *world;
    int number; /* COHI_TEAM_WORLD, COHI_TEAM_HOST, or one that was free on all members */
    int size;
    int index;       /* this rank's */
    int *ranks;      /* [size]: the members' ranks in the world */
    int *indices;    /* [world's size]: a rank's index here, or -1 */
    bool open;       /* false: destroyed, kept as a tombstone */
    uint32_t epoch;  /* of the last meeting; touched only by who holds `busy` */
    uint32_t now;    /* of the meeting that the present call is in, or about to be in */
    uint32_t start;  /* the epoch before the first */
    atomic_int busy; /* a thread is in a collective of this team */
    cohi_meet *mine;
    cohi_meet **meets; /* [size], NULL where the member is not mapped */
    cohi_slot **slots; /* [size], likewise */
    coh_team *next;    /* of the world's teams, tombstones too */
};

enum { COHI_TEAM_WORLD = 0, COHI_TEAM_HOST = 1, COHI_TEAM_FIRST_FREE = 2 };

/*
 * Epochs start shortly before they wrap, so that every program that runs for a moment has crossed
 * the wrap, and no code can come to depend on their order.
 */
#define COHI_EPOCH_START (UINT32_MAX - 15)

/* The number a user sees: 1 for the first collective. */
static inline uint64_t cohi_team_sequence(const coh_team *team, uint32_t epoch)
{
    return (uint32_t)(epoch - team->start);
}

/* Makes the team of the world's ranks `ranks` (copied), this one among them, and adds it to
 * the world. */
coh_status cohi_team_open(coh_world *world, int number, const int *ranks, int size, uint32_t start,
                          coh_team **team);

/* Frees all teams of a world that is being dissolved. */
void cohi_team_close_all(coh_world *world);

/* The gate of every call on a team: NULL and destroyed ones are refused, then the world's gate. */
coh_status cohi_team_gate(const coh_team *team, const char *call);

/*
 * Around each collective. Enter: COH_BUSY when another thread is in one; what broke the team;
 * publishes the operation; fires faults armed for it. Assemble: the same for one that must wait,
 * which is COH_UNSUPPORTED for ranks that a single thread drives. Leave: passes `status` through.
 */
coh_status cohi_team_enter(coh_team *team, const char *call, cohi_opcode op);
coh_status cohi_team_assemble(coh_team *team, const char *call, cohi_opcode op);
coh_status cohi_team_leave(coh_team *team, coh_status status);

/* Waits until all members are in this same call. Between enter and leave. */
coh_status cohi_team_meet(coh_team *team, const char *call, cohi_opcode op);

/* The error that stands against the team, if one does: a lost or stalled member, a mismatch. */
coh_status cohi_team_standing(coh_team *team, const char *call);

/* The rank of a member that has not come to the present meeting, as far as can be seen, or -1. */
int cohi_team_missing(const coh_team *team);

#endif
