/*
 * omissions.h - small programs that forget one ordering call each, and the same programs without
 * that mistake. What each forgets is between braces in its comment.
 */
#ifndef TEST_RACE_OMISSIONS_H
#define TEST_RACE_OMISSIONS_H

#include <cohort.h>
#include <stdbool.h>

/* How a rank's part ended; also what its process exits with. */
enum { PART_RIGHT = 0, PART_WRONG_DATA = 10, PART_RACE = 11, PART_FAILED = 12 };

typedef struct omission {
    const char *name;
    int found; /* PART_WRONG_DATA: the program reads old data; PART_RACE: the library names it */
    /* `mended`: with what is forgotten otherwise. COH_OK, and *right, or the status of what
     * failed. */
    coh_status (*body)(coh_world *world, bool mended, bool *right);
} omission;

/* Ended by one without a name. */
extern const omission omissions[];

#endif
