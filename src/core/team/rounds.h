/*
 * rounds.h - a meeting: all members wait for all.
 *
 * It is a dissemination barrier: in round k each member tells the one 2^k further on that it and
 * all it heard of have come. On any engine.
 */
#ifndef COHI_CORE_TEAM_ROUNDS_H
#define COHI_CORE_TEAM_ROUNDS_H

#include "core/team/entry.h"

/* Waits until all members are in this same call. Between enter and leave. */
coh_status cohi_team_meet(const cohi_entry *entry);

/* A meeting that is faster where members are mapped and not too many: they look at each other's
 * posts instead. A member that is through may leave while others still look at its post: not for a
 * call after which posts may be cleared, as when a team or a world ends. */
coh_status cohi_team_line_up(const cohi_entry *entry);

#endif
