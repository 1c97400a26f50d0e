/*
 * reach.h - how the leader of a host reaches rank 0: by its local name where that is here, else by the
 * addresses in the id, where both prove that they know the job's secret (secure/tls.h).
 */
#ifndef COHI_BOOTSTRAP_REACH_H
#define COHI_BOOTSTRAP_REACH_H

#include "bootstrap/link.h"
#include "bootstrap/root.h"
#include "secure/tls.h"

typedef struct cohi_reach {
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_root root;
    bool is_far;        /* rank 0 can be reached, and not at an address of this host */
    cohi_tls_self self; /* as which this rank proves itself */
    cohi_tls *tls;      /* under way on `fd`, or NULL */
    int fd;             /* or -1 */
    int next;           /* the address to try next */
    int error;          /* why the last one did not answer, or 0 */
    int failed;         /* and which that was */
} cohi_reach;

void cohi_reach_begin(cohi_reach *reach, const cohi_id_layout *id, int rank, int size);

/*
 * Goes on: waits only as long as a connection over the network takes, up to a quarter of a second.
 * *link is the connection, which is the caller's then, or none while rank 0 does not answer. On one
 * over the network both sides have proved themselves.
 */
coh_status cohi_reach_try(cohi_reach *reach, cohi_connection *link);

/* " (10.1.2.3 port 4000: Connection refused)", or "" where there is nothing to say. */
enum { COHI_REACH_TEXT = 192 };
const char *cohi_reach_describe(const cohi_reach *reach, char text[COHI_REACH_TEXT]);

void cohi_reach_end(cohi_reach *reach);

#endif
