/* context.h - an independent stream of one-sided operations. */
#ifndef COHI_CORE_ONESIDED_CONTEXT_H
#define COHI_CORE_ONESIDED_CONTEXT_H

#include "core/world/world.h"

struct coh_context {
    coh_world *world;
    unsigned number; /* the engine's */
    bool open;       /* false: destroyed, or the world is; kept as a tombstone */
    coh_context *next;
};

coh_status cohi_context_refuse(const coh_context *context, const char *call);

/* NULL and destroyed contexts are refused; the world's own gate comes with the operation. */
static inline coh_status cohi_context_gate(const coh_context *context, const char *call)
{
    return COHI_LIKELY(context && context->open) ? COH_OK : cohi_context_refuse(context, call);
}

/* Closes the contexts of a world that is being dissolved; their handles stay as tombstones, which
 * are freed with the world's own. */
void cohi_context_close_all(coh_world *world);
void cohi_context_forget_all(coh_world *world);

#endif
