/*
 * Room: core/team.
 *
 * Teams: splits, grids, the meeting of members, agreement, the terms that members compare.
 * Uses base, bootstrap, core/world and core/health. Moves no user data.
 * Hides the layout of the areas in slots where members meet, and what stands against a team.
 */
/*
 * team.h - an ordered set of ranks that meet.
 *
 * The epoch counts the team's collectives. What a member does in one of them is made of the steps
 * that entry.h lists; here is the team itself, and the gate of every call on it.
 *
 * Each team has a number, which is that of the area in its members' slots where it meets. Teams
 * without a common member may have the same number.
 */
#ifndef COHI_CORE_TEAM_TEAM_H
#define COHI_CORE_TEAM_TEAM_H

#include "bootstrap/board.h"
#include "core/health/party.h"

#include <stdbool.h>

struct coh_team {
    cohi_party party; /* what a wait for its members asks; the first member */
    coh_world *world;
    int number; /* COHI_TEAM_WORLD, COHI_TEAM_HOST, or one that was free on all members */
    int size;
    int index;         /* this rank's */
    int *ranks;        /* [size]: the members' ranks in the world */
    int *indices;      /* [world's size]: a rank's index here, or -1 */
    bool open;         /* false: destroyed, or the world is; kept as a tombstone */
    uint32_t epoch;    /* of the last meeting; touched only by the holder of `busy` */
    uint32_t now;      /* of the meeting that the present call is in, or about to be in */
    uint32_t start;    /* the epoch before the first */
    uint32_t settled;  /* all members are known to have made the same calls up to this epoch */
    bool told;         /* it is broken, and a call of this rank has said so; as `epoch` */
    bool refused;      /* a member was, once: chunks of such a call may still come; as `epoch` */
    uint32_t heard;    /* the last epoch in which this rank heard that another was refused */
    uint32_t hinted;   /* the last in which it told its call to the next leader (apart.h) */
    atomic_int busy;   /* a thread is in a collective of this team */
    atomic_int queued; /* started collectives that are not done; they come before later calls */
    cohi_meet *mine;
    cohi_meet **meets;          /* [size], NULL where the member is not mapped */
    cohi_slot **slots;          /* [size], likewise */
    bool mapped;                /* all members are */
    struct cohi_levels *levels; /* not all are: who is on which host; else NULL (levels.h) */
    coh_team
        *whole; /* of a level: the team that it is a level of, whose calls it serves; or NULL */
    _Atomic(struct cohi_gear *) gear; /* what collectives on data keep here; see coll/call/gear.h */
    coh_team *next;                   /* of the world's teams, tombstones too */
};

/* What follows is freed when the team is destroyed: whatever it is, its first member says how. */
typedef struct cohi_gear {
    void (*free)(struct cohi_gear *gear);
} cohi_gear;

/* No thread of this rank is in a collective of the team, nor will be. */
void cohi_team_free_gear(coh_team *team);

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

/* A team object of `size` members with nothing in it; NULL: out of memory. And frees all that it has;
 * the handle stays. For this room. */
coh_team *cohi_team_allocate(int size, int world_size);
void cohi_team_release(coh_team *team);

/* Frees what the teams of a world have that is being dissolved; their handles stay as tombstones,
 * which are freed with the world's own. */
void cohi_team_close_all(coh_world *world);
void cohi_team_forget_all(coh_world *world);

/* The gate of every call on a team: NULL and destroyed ones are refused, then the world's gate. */
coh_status cohi_team_gate(const coh_team *team, const char *call);

#endif
