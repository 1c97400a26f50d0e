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
 * A meeting is a dissemination barrier: in round k each member tells the one 2^k further on that
 * it and all it heard of have come. (In barriers and syncs the members of mapped teams that are
 * not too many look at each other's posts instead.) The mark that is passed holds the epoch, which counts the
 * team's collectives, and a fingerprint of the call; two members with the same epoch and
 * different fingerprints are in different calls, and the team is broken for good: COH_MISMATCH to
 * all.
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
    atomic_int busy;   /* a thread is in a collective of this team */
    atomic_int queued; /* started collectives that are not done; they come before later calls */
    cohi_meet *mine;
    cohi_meet **meets;                /* [size], NULL where the member is not mapped */
    cohi_slot **slots;                /* [size], likewise */
    bool mapped;                      /* all members are */
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

/*
 * A mark is what a member posts: the epoch, and a fingerprint of the call. The fingerprint of a
 * collective on data has the high bit, the operation, and a hash of the arguments; of others it is
 * the operation. So a mark tells the operation by itself: the terms beside it may already be those
 * of a later call, since they are stored before its mark.
 */
#define COHI_PRINT_DATA  UINT32_C(0x80000000)
#define COHI_PRINT_HASH  UINT32_C(0x01ffffff) /* all ones: the call was refused; its terms say why */
#define COHI_PRINT_OP_AT 25                   /* six bits */

static inline uint32_t cohi_print(uint32_t op, uint32_t hash)
{
    return COHI_PRINT_DATA | op << COHI_PRINT_OP_AT | hash;
}

static inline uint64_t cohi_mark(uint32_t epoch, uint32_t print)
{
    return (uint64_t)epoch << 32 | print;
}

static inline uint32_t cohi_mark_epoch(uint64_t mark)
{
    return (uint32_t)(mark >> 32);
}

static inline uint32_t cohi_mark_print(uint64_t mark)
{
    return (uint32_t)mark;
}

static inline bool cohi_mark_refused(uint64_t mark)
{
    uint32_t refused = COHI_PRINT_DATA | COHI_PRINT_HASH;
    return (cohi_mark_print(mark) & refused) == refused;
}

/* The operation that a member posted with `mark`. */
static inline cohi_opcode cohi_mark_op(uint64_t mark)
{
    uint32_t print = cohi_mark_print(mark);
    return (cohi_opcode)(print & COHI_PRINT_DATA ? (print & ~COHI_PRINT_DATA) >> COHI_PRINT_OP_AT
                                                 : print);
}

/* The number a user sees: 1 for the first collective. */
static inline uint64_t cohi_team_sequence(const coh_team *team, uint32_t epoch)
{
    return (uint32_t)(epoch - team->start);
}

/* Makes the team of the world's ranks `ranks` (copied), this one among them, and adds it to
 * the world. */
coh_status cohi_team_open(coh_world *world, int number, const int *ranks, int size, uint32_t start,
                          coh_team **team);

/* Frees what the teams of a world have that is being dissolved; their handles stay as tombstones,
 * which are freed with the world's own. */
void cohi_team_close_all(coh_world *world);
void cohi_team_forget_all(coh_world *world);

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

/* Set in the threads that carry out started collectives; they do not wait for what is queued. */
extern _Thread_local bool cohi_team_worker;

/* Waits until the collectives that were started on the team, or on any team, are done. */
coh_status cohi_team_drain(coh_team *team, const char *call, cohi_opcode op);
coh_status cohi_team_drain_all(coh_world *world, const char *call, cohi_opcode op);

/* The error for ranks that a single thread drives. */
coh_status cohi_team_refuse_driven(const coh_world *world, const char *call);

/* Waits until all members are in this same call. Between enter and leave. */
coh_status cohi_team_meet(coh_team *team, const char *call, cohi_opcode op);

/* A meeting that is faster where members are mapped. A member that is through may leave while
 * others still look at its post: not for a call after which posts may be cleared, as when a team or
 * a world ends. */
coh_status cohi_team_line_up(coh_team *team, const char *call, cohi_opcode op);

/* Tells all members that the team is broken: member `index`, whose mark is given, is in another
 * call than this rank, which is in `ours`. The error to return. */
coh_status cohi_team_break(coh_team *team, const char *call, cohi_opcode ours, int index,
                           uint64_t mark);

/* Whether a member was seen in another call than this rank, which breaks the team: for waits that
 * take long. COH_OK when not. */
coh_status cohi_team_compare(coh_team *team, const char *call, cohi_opcode op);

/* The same for all calls since the last that is settled, once all members have entered this rank's
 * last one, which is then settled. */
coh_status cohi_team_compare_past(coh_team *team, const char *call);

/* For a member that leaves its call without having waited: settles the calls before it when all
 * others can be seen to have made them. It waits for nobody; what it does not see is settled when
 * that can no longer be put off. */
void cohi_team_look_back(coh_team *team);

/* For the end of the world, when all ranks have made their last calls: whether the members of each
 * open team made the same ones. What a call of this rank has told before is not told again. It
 * waits for nobody. */
coh_status cohi_team_conclude_all(coh_world *world, const char *call);

/* The error that stands against the team, if one does: a lost or stalled member, a mismatch. */
coh_status cohi_team_standing(coh_team *team, const char *call);

/* The error when a member cannot be reached: what stands against the team, or what made the member
 * leave. */
coh_status cohi_team_unreachable_error(coh_team *team, const char *call, int rank);

/* The rank of a member that has not come to the present meeting, as far as can be seen, or -1. */
int cohi_team_first_absent(const coh_team *team);

#endif
