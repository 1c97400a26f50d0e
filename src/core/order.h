/* order.h - completing what was issued, for collectives that begin with a barrier. */
#ifndef COHI_CORE_ORDER_H
#define COHI_CORE_ORDER_H

#include "core/world.h"

/* coh_quiet without the gate. */
coh_status cohi_order_quiet(coh_world *world, const char *call, cohi_opcode op);

/* The same, and coh_fence, for any context. */
coh_status cohi_order_quiet_context(coh_world *world, const char *call, cohi_opcode op,
                                    unsigned context);
coh_status cohi_order_fence_context(coh_world *world, unsigned context);

#endif
