/*
 * plain.h - jobs whose launcher tells each process its rank, the size and where rank 0 is, and nothing
 * that is secret.
 *
 * Where the user gave a secret, all ranks make the same id of it, and rank 0 listens for other hosts. Else
 * rank 0 makes an id and hands it to processes of the same user on its own host, and ranks of other hosts
 * cannot join.
 */
#ifndef COHI_RENDEZVOUS_PLAIN_H
#define COHI_RENDEZVOUS_PLAIN_H

#include "base/config.h"
#include "bootstrap/launch.h"
#include "rendezvous/variables.h"

typedef enum cohi_plain_fact { COHI_PLAIN_NO, COHI_PLAIN_YES, COHI_PLAIN_UNKNOWN } cohi_plain_fact;

typedef struct cohi_plain {
    const cohi_variables *variables;
    int rank, size;
    char job[256];            /* tells it apart from other jobs at the same time */
    char address[256];        /* of rank 0's host, a name or a number */
    const char *address_from; /* the variable that says so */
    unsigned port; /* at which rank 0 listens for other hosts, unless COHORT_PORT says so */
    cohi_plain_fact one_host;  /* all ranks are on one */
    cohi_plain_fact near_root; /* this rank is on rank 0's */
} cohi_plain;

/* Does what cohi_provider's ask promises. */
coh_status cohi_plain_ask(const cohi_plain *plain, const cohi_config *config, cohi_launch *launch);

#endif
