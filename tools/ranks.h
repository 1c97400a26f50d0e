/* ranks.h - sets of the ranks of a job, as `cohort run` keeps them: a bit each. */
#ifndef COHI_TOOLS_RANKS_H
#define COHI_TOOLS_RANKS_H

#include "bootstrap/board.h"

/* A job of `cohort run` has at most so many ranks, on all its hosts. */
typedef struct cohi_ranks {
    uint64_t words[COHI_RANKS_MAX / 64];
} cohi_ranks;

static inline void cohi_ranks_add(cohi_ranks *ranks, int rank)
{
    ranks->words[rank / 64] |= UINT64_C(1) << rank % 64;
}

static inline bool cohi_ranks_has(const cohi_ranks *ranks, int rank)
{
    return ranks->words[rank / 64] >> rank % 64 & 1;
}

#endif
