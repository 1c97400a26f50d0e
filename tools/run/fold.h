/*
 * run/fold.h - error lines of the library that many ranks write alike.
 *
 * When a rank is lost, each of the others logs "cohort: error: rank 2: rank 1 is lost: ...". The
 * launcher passes the first of these on. It notes the ranks that say the same, and tells of them in one
 * line a moment later; a single one is given its own words. Nothing else is touched: the lines of the program are its own.
 */
#ifndef COHI_TOOLS_RUN_FOLD_H
#define COHI_TOOLS_RUN_FOLD_H

#include "ranks.h"

#include <stddef.h>
#include <stdint.h>

enum { COHI_FOLD_LINES = 8, COHI_FOLD_BYTES = 256 };

typedef struct cohi_folded {
    char text[COHI_FOLD_BYTES]; /* what is said, after the rank that says it */
    cohi_ranks ranks;           /* whose lines were left out */
    int count;                  /* of them */
} cohi_folded;

typedef struct cohi_fold {
    cohi_folded lines[COHI_FOLD_LINES];
    int count;
    uint64_t tell_at_ns; /* UINT64_MAX: nothing was left out */
} cohi_fold;

void cohi_fold_open(cohi_fold *fold);

/* Whether a line of the rank's standard error is to be left out. `length` has the line feed in it. */
int cohi_fold_takes(cohi_fold *fold, int rank, const char *line, size_t length, uint64_t now);

/* The next line about those that were left out, which are then forgotten; 0: there is none. */
int cohi_fold_tell(cohi_fold *fold, char *text, size_t room);

/* "rank 3", "ranks 0, 2-5 and 9": cut at the end of `text` where they are many. */
void cohi_ranks_text(const cohi_ranks *ranks, int size, char *text, size_t room);

#endif
