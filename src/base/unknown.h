/* unknown.h - variables of the environment that look like knobs, but that nothing reads. */
#ifndef COHI_BASE_UNKNOWN_H
#define COHI_BASE_UNKNOWN_H

#include <stddef.h>

/*
 * Finds the next variable COHORT_* that is no knob, from index *at of the environment on, moves *at
 * past it, and writes a message that names it and the nearest knob. Returns 0 when there is none.
 * COHORT_TEST_* belongs to the tests.
 */
int cohi_unknown_next(size_t *at, char *text, size_t bytes);

#endif
