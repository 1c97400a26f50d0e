/*
 * party.h - ranks that are waited for together, as a wait sees them (core/health/wait.h): a team, which
 * knows who of them has not come.
 */
#ifndef COHI_CORE_HEALTH_PARTY_H
#define COHI_CORE_HEALTH_PARTY_H

#include <cohort.h>

typedef struct cohi_party {
    /* The rank of one that has not come, as far as can be seen, or -1. */
    int (*first_absent)(const struct cohi_party *party);
    /* The error that stands against them, if one does: a lost or stalled member, a mismatch. */
    coh_status (*standing)(struct cohi_party *party, const char *call);
    /* The error when member `rank` cannot be reached. */
    coh_status (*unreachable)(struct cohi_party *party, const char *call, int rank);
} cohi_party;

#endif
