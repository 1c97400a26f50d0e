/*
 * order.h - completing what this rank has issued, and coming to know what others have completed. For
 * calls that begin with a quiet, or end with something learnt.
 */
#ifndef COHI_CORE_HEALTH_ORDER_H
#define COHI_CORE_HEALTH_ORDER_H

#include "core/world/world.h"

/* What holds puts back between mapped ranks, where something does (core/onesided/race.h). The calls are those
 * below, of which each is told. */
typedef struct cohi_delays {
    coh_status (*quiet)(coh_world *world, const char *call, cohi_opcode op, unsigned context);
    void (*fence)(coh_world *world, unsigned context);
    void (*met)(coh_team *team);
    void (*acquire)(coh_world *world);
    void (*idle)(coh_world *world, uint64_t waited_ns); /* a wait has taken so long */
} cohi_delays;

/* coh_quiet without the gate. */
coh_status cohi_order_quiet(coh_world *world, const char *call, cohi_opcode op);

/* coh_quiet and coh_fence without the gate, for any context. */
coh_status cohi_order_quiet_context(coh_world *world, const char *call, cohi_opcode op,
                                    unsigned context);

/* All of the user's contexts, the default one too: for calls that take memory away. */
coh_status cohi_order_quiet_all(coh_world *world, const char *call, cohi_opcode op);

coh_status cohi_order_fence_context(coh_world *world, unsigned context);

/* At the end of a collective on a team of `world`, which may have met. */
static inline void cohi_order_met(coh_world *world, coh_team *team)
{
    if (COHI_UNLIKELY(world->delayed) && world->delays)
        world->delays->met(team);
}

/* At the end of a call by which this rank may have learnt what others did: what they completed is
 * in its memory. */
static inline void cohi_order_acquire(coh_world *world)
{
    if (COHI_UNLIKELY(world->delayed) && world->delays)
        world->delays->acquire(world);
}

#endif
