/*
 * levels.h - the two levels of a team whose members are not all mapped: inside a host, where members
 * load and store each other's memory, and between hosts, where they send.
 *
 * Each level is a team object of its own, so that algorithms run on it as on any team. It has no
 * number, and no place among the world's teams: the local level meets in an area that is a part of
 * the team's own, the bridge sends under the team's own number and epoch. Waits on a level tell what
 * stands against the whole team, and a mismatch on it breaks that.
 *
 * Where an engine maps no peer at all, every member counts as a host.
 */
#ifndef COHI_CORE_TEAM_LEVELS_H
#define COHI_CORE_TEAM_LEVELS_H

#include "core/team/team.h"

typedef struct cohi_levels {
    coh_team *local;  /* the members on this host, in the order of the team */
    coh_team *bridge; /* one member of each host, by host; see cohi_levels_bridge */
    int hosts;        /* that have members, numbered in the order of their first ones */
    int host;         /* this member's */
    int *host_of;     /* [size]: by member */
    int *order;       /* [size]: the members by host */
    int *first;       /* [hosts + 1]: where in `order` those of a host begin */
    size_t *scratch;  /* [2 * (hosts + local members)]: of the call that has its turn */
} cohi_levels;

/* Sets team->levels. COH_NO_MEMORY. */
coh_status cohi_levels_make(coh_team *team);
void cohi_levels_free(coh_team *team);

/* Member `at` of those on `host`, as an index in the team. */
static inline int cohi_levels_member(const cohi_levels *levels, int host, int at)
{
    return levels->order[levels->first[host] + at];
}

static inline int cohi_levels_size(const cohi_levels *levels, int host)
{
    return levels->first[host + 1] - levels->first[host];
}

/* The first member of a host, which speaks for it, as an index in the team. */
static inline int cohi_levels_leader(const cohi_levels *levels, int host)
{
    return cohi_levels_member(levels, host, 0);
}

static inline bool cohi_levels_leads(const coh_team *team)
{
    return team->levels->local->index == 0;
}

/* The members of the smallest host. */
int cohi_levels_narrowest(const cohi_levels *levels);

/* Whether the members of each host are side by side in the team. */
bool cohi_levels_are_runs(const coh_team *team);

/* Sets both levels to the team's present call, the local one to `epoch`, which its members have agreed
 * on: whatever became of the call before, they begin with the same. */
void cohi_levels_begin(coh_team *team, uint32_t epoch);

/* Lets the bridge be member `at` of each host; on the host of `root`, if that is not -1, the root. */
void cohi_levels_bridge(coh_team *team, int at, int root);

#endif
