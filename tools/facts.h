/*
 * facts.h - what the launcher judges a rank by, as the board of the rank's host has it.
 *
 * The launcher reads them itself where the rank is on its own host, else an agent sends them, when
 * the rank has ended and whenever they have changed.
 */
#ifndef COHI_TOOLS_FACTS_H
#define COHI_TOOLS_FACTS_H

#include "bootstrap/board.h"
#include "core/world/doing.h"
#include "ranks.h"

typedef struct cohi_facts {
    int32_t pid;          /* as the rank has written it; 0: it has not joined */
    uint32_t phase;       /* cohi_phase */
    uint32_t in_call;     /* it is in a call of Cohort */
    int32_t error_status; /* coh_status of its last call that failed */
    uint64_t error_ns;    /* when, by the clock of whoever holds this; 0: none failed */
    char error[COHI_ERROR_BYTES];
    cohi_ranks lost; /* the ranks that it holds for lost */
} cohi_facts;

/* Reads the rank's facts from its host's board. */
void cohi_facts_read(const cohi_board *board, int rank, cohi_facts *facts);

/* For the way to another host: its time as an age, and back. What comes from another host may be
 * anything; the second makes it sound. */
void cohi_facts_pack(cohi_facts *facts, uint64_t now);
void cohi_facts_unpack(cohi_facts *facts, uint64_t now);

/* Whether a rank that ended with status 0 has neither finalized nor gone without joining. */
static inline int cohi_facts_unfinished(const cohi_facts *facts)
{
    return facts->phase == COHI_PHASE_RUNNING || facts->phase == COHI_PHASE_EXITING;
}

#endif
