/*
 * tune.h - the parts of `cohort tune`.
 *
 *   tune.c         the command line, and the file
 *   tune_worker.c  is one of the two ranks that measure on this host
 *   tune_card.c    measures what they do on a card
 *   tune_hosts.c   is one of the two that measure between hosts
 */
#ifndef COHI_TOOLS_TUNE_H
#define COHI_TOOLS_TUNE_H

#include <cohort.h>

/* Measures as a rank of a job of two; rank 0 writes a line "ROW VALUE" for each row of the profile
 * that takes two ranks to standard output. What the environment forces on collectives plays no
 * part. The exit status. */
int cohi_tune_worker(void);

/* The rows of cards, as a rank of that job. They stay described where two ranks cannot use a card at a time. */
coh_status cohi_tune_card(coh_world *world);

/* The same for the rows that take two hosts. */
int cohi_tune_hosts_worker(void);

/* What the environment forces on collectives is taken out of it. */
void cohi_tune_forget_choices(void);

#endif
