/*
 * far.h - ranks of other hosts: what this host's board was told of them (bootstrap/elsewhere.h), and
 * why one of them does not answer.
 *
 * An engine sees that a connection broke; why, the rank's own host knows, and its agent tells. So a
 * broken connection counts as a loss only once that was told, or some time has passed in vain: the
 * rank may also have left for a reason that is still on its way.
 */
#ifndef COHI_CORE_HEALTH_FAR_H
#define COHI_CORE_HEALTH_FAR_H

#include "bootstrap/elsewhere.h"
#include "core/world/world.h"

static inline bool cohi_far(const coh_world *world, int rank)
{
    return cohi_board_index(world->board, rank) < 0;
}

/* " on host b" where the job has several and the name is known, else "". */
enum { COHI_FAR_TEXT = COHI_HOST_NAME_BYTES + 16 };
const char *cohi_far_text(const coh_world *world, int rank, char text[COHI_FAR_TEXT]);

/* The engine has lost a rank of another host. False: that is all that will be known, and the caller
 * notes it. True: the watcher notes it, with what is told in time. */
bool cohi_far_doubts(coh_world *world, int rank, unsigned loss);

/* Whether a rank of another host was seen to be gone just now: others may not know of it yet, and wait
 * for those who do. */
bool cohi_far_settles(const coh_world *world);

/* The verdict by which a rank of another host that the engine has lost is to be explained: waits a
 * moment for what its host tells. `verdict` where nothing was. */
uint64_t cohi_far_explain(coh_world *world, int rank, uint64_t verdict);

/* What there is to note now of ranks of other hosts, by the watcher: the next of them from *from on,
 * which is 0 at first and the callee's then, and the verdict on it. False: no more. */
bool cohi_far_next(coh_world *world, int *from, int *rank, uint64_t *verdict);

#endif
