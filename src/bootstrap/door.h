/*
 * door.h - where rank 0 lets the others in.
 *
 * Any process of the host can connect. Rank 0 lets in processes of its own user that send a
 * whole hello with the job's secret. All connections are read at the same time, so a silent one
 * delays nobody; it is dropped after a second, or sooner when its place is needed. Refusals are
 * logged by one line at once, and from then on counted, with a line a second at most.
 */
#ifndef COHI_BOOTSTRAP_DOOR_H
#define COHI_BOOTSTRAP_DOOR_H

#include "bootstrap/link.h"

typedef struct cohi_door cohi_door;

/* Listens for the `size` ranks of the job. */
coh_status cohi_door_open(const cohi_id_layout *id, int size, cohi_door **door);

/*
 * Waits for a hello of this job, at most until `until_ns` (of cohi_now_ns). *link is the
 * connection, which is the caller's then, or -1 when none came. COH_LIMIT when no descriptor is
 * left to let anybody in.
 */
coh_status cohi_door_await(cohi_door *door, uint64_t until_ns, cohi_link_message *hello, int *link);

void cohi_door_close(cohi_door *door);

#endif
