/*
 * door.h - where a leader lets the ranks of its host in, and the root the leaders of the others.
 *
 * Any process of the host can connect to a name, and any machine to a port. Let in are processes of
 * the same user that send a whole hello with the job's secret, and over the network those that have
 * proved before that they know it. All connections are read at the same time, so a silent one
 * delays nobody; it is dropped after a second, or sooner when its place is needed. It may be a rank
 * that has no core to speak on: a process of the same user is told to call again. Refusals are
 * logged by one line at once, and from then on counted, with a line a second at most.
 */
#ifndef COHI_BOOTSTRAP_DOOR_H
#define COHI_BOOTSTRAP_DOOR_H

#include "bootstrap/link.h"
#include "bootstrap/listeners.h"

struct pollfd;
typedef struct cohi_door cohi_door;

/* A door for the `size` ranks of the job, that nobody can reach yet. It is rank 0's where it listens
 * for ranks of other hosts. */
coh_status cohi_door_open(const cohi_id_layout *id, int size, cohi_door **door);

/* Listens at an abstract name of this host too. 0, or an errno: EADDRINUSE when it is taken. */
int cohi_door_listen(cohi_door *door, const char *name);

/* Listens for ranks of other hosts too, behind the names, at sockets that stay the caller's. */
void cohi_door_listen_far(cohi_door *door, const cohi_listeners *listeners);

/*
 * Waits for a hello of this job, or until one of the `count` descriptors of `others` shows something
 * (see poll(2)), at most until `until_ns` (of cohi_now_ns). *link is the connection, which is the
 * caller's then, or none when nobody came. COH_LIMIT when no descriptor is left to let anybody in.
 */
coh_status cohi_door_await(cohi_door *door, uint64_t until_ns, struct pollfd *others, int count,
                           cohi_hello *hello, cohi_connection *link);

/* NULL is allowed. */
void cohi_door_close(cohi_door *door);

#endif
