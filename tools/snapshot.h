/*
 * snapshot.h - what the ranks were doing when the job began to fail.
 *
 * The others notice a dead rank within milliseconds and leave the call they were in, so it is the
 * supervisor of the first rank to fail that looks, before it tells anybody. Supervisors and
 * launcher share this memory. It has a row for each rank of the world; those of ranks on other hosts
 * come from their agents.
 */
#ifndef COHI_TOOLS_SNAPSHOT_H
#define COHI_TOOLS_SNAPSHOT_H

#include "bootstrap/board.h"

typedef struct cohi_snapshot_row {
    char state[16];
    char operation[64];
    char awaits[192];    /* what its waits were for; "": it had not waited long */
    uint64_t waiting_ns; /* how long it had been waiting; 0: it was not */
    int32_t waits_for;   /* the rank that it waited for; -1: for none in particular */
    int32_t unused;
} cohi_snapshot_row;

typedef struct cohi_snapshot {
    atomic_int taken;
    cohi_snapshot_row rows[];
} cohi_snapshot;

/* Memory that a forked child shares. NULL when there is none. */
cohi_snapshot *cohi_snapshot_make(int size);
void cohi_snapshot_free(cohi_snapshot *snapshot, int size);

/* Takes it of the board's ranks, unless it was taken before and `again` is 0. */
void cohi_snapshot_take(cohi_snapshot *snapshot, const cohi_board *board, int again);

/* Ends the texts of a row that came from elsewhere. */
void cohi_snapshot_check(cohi_snapshot_row *row);

#endif
