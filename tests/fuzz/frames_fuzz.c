/* What comes on an engine's channel from a peer that is faulty or hostile:
 * docs/faults.md F15 and F19. */
#include "start/init.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One world for each frame: a frame that is refused makes its sender a lost rank. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { RANKS = 2 };
    coh_world *worlds[RANKS];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim:channel";
    options.driven = 1;
    setenv("COHORT_SIM", "seed=1,patience=1", 0);
    if (coh_init_threads(RANKS, &options, worlds) != COH_OK)
        abort();
    cohi_core_upcalls.deliver(worlds[0], 1, data, size);
    for (int rank = 0; rank < RANKS; rank++)
        (void)coh_finalize(worlds[rank]);
    return 0;
}
