/* sabotage.h - collective calls made wrong, one argument at a time, and why each is refused. */
#ifndef TEST_CONFORM_SABOTAGE_H
#define TEST_CONFORM_SABOTAGE_H

#include "collectives/calls.h"

typedef struct sabotage {
    const char *name;

    /* Makes a prepared call wrong on this member. False: this collective, or this member of it, has
     * no such argument. */
    bool (*spoil)(call_rig *rig, test_call *call, coh_team *team);

    unsigned statuses; /* that it may be refused with, a mask of 1 << coh_status */
    const char *words; /* that the error message holds */
} sabotage;

/* All of them; NULL name past the last. */
extern const sabotage sabotages[];

/* The call that is to be spoiled: good, on private memory, out of place. */
test_call sabotage_call(call_kind kind, uint64_t seed);

/* How a call ended, started or not. */
coh_status sabotage_outcome(call_rig *rig, coh_team *team, const test_call *call);

/* Whether it ended as it must. */
bool sabotage_check(const sabotage *row, const test_call *call, coh_status status);

#endif
