/* strided.h - coh_put_strided for calls that do more than that. */
#ifndef COHI_CORE_ONESIDED_STRIDED_H
#define COHI_CORE_ONESIDED_STRIDED_H

#include "core/world/world.h"

/* coh_put_strided, in the name of `call`. */
coh_status cohi_strided_put(coh_world *world, const char *call, void *target, size_t target_stride,
                            const void *source, size_t source_stride, size_t block, size_t count,
                            int rank);

#endif
