/*
 * joining.h - a rank on its way into a group: private to gather.c, which has leaders and the root let
 * others in, and seek.c, in which the other ranks find them.
 */
#ifndef COHI_BOOTSTRAP_JOINING_H
#define COHI_BOOTSTRAP_JOINING_H

#include "bootstrap/door.h"
#include "bootstrap/reach.h"
#include "bootstrap/tree.h"

/* What a rank knows while it joins. */
typedef struct cohi_joining {
    cohi_group *group;
    const cohi_group_spec *spec;
    cohi_id_layout id;
    char host[COHI_HOST_NAME_BYTES];          /* its name, for people */
    char host_socket[COHI_SOCKET_NAME_BYTES]; /* where its leader listens */
    bool launched;                            /* by a launcher, which gave a board */
    bool sent_away;     /* the one above was there, and told this one to call again */
    cohi_reach reach;   /* of the root, by other leaders */
    pid_t root_process; /* at the other end of the link to it; 0: it is on another host */
    cohi_door *door;    /* of a leader */
    cohi_vigil vigil;
} cohi_joining;

/* ---- gather.c ---- */

/* Marks a rank as here. False where it cannot be. */
bool cohi_joining_note(cohi_group *group, int rank, int host);

/* Tells the root, where there is a link to it, that a rank of this host is here. */
coh_status cohi_joining_tell(const cohi_group *group, int rank);

/* One turn of a leader: lets in who comes, hears who is in. */
coh_status cohi_joining_attend(cohi_joining *self, uint64_t for_ns);

/* All are here: the host's board, with the names of the hosts, and the welcome to those below. */
coh_status cohi_joining_complete(cohi_joining *self);

/* ---- seek.c ---- */

/* Joins as any rank but the root. */
coh_status cohi_joining_seek(cohi_joining *self);

#endif
