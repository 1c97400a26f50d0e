/* await.h - the one way to wait for members of a team, whatever it is that they are to do. */
#ifndef COHI_CORE_TEAM_AWAIT_H
#define COHI_CORE_TEAM_AWAIT_H

#include "core/team/entry.h"

/* Whether member `index` has done what is `wanted`. May set *status to an error that ends the wait;
 * where this rank sleeps between looks there is time to find one. */
typedef bool cohi_look(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                       coh_status *status);

static inline int cohi_team_next(const coh_team *team, int index)
{
    return index + 1 < team->size ? index + 1 : 0;
}

/* Waits for `count` members from `index` on, the first behind the last. It is one wait for all of
 * them, so that the patience is the call's. */
coh_status cohi_team_wait(const cohi_entry *entry, int index, int count, cohi_look *look,
                          const void *wanted);

#endif
