/*
 * tune.h - the parts of `cohort tune`.
 *
 *   tune.c         the command line, and the file
 *   tune_worker.c  is one of the two ranks that measure
 */
#ifndef COHI_TOOLS_TUNE_H
#define COHI_TOOLS_TUNE_H

/* Measures as a rank of a job of two; rank 0 writes a line "ROW VALUE" for each row of the profile
 * that takes two ranks to standard output. What the environment forces on collectives plays no
 * part. The exit status. */
int cohi_tune_worker(void);

#endif
