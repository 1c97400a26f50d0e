/*
 * publish.h - an id that rank 0 hands to the ranks of its host: at a local name that all can work out, to
 * processes of the same user.
 */
#ifndef COHI_RENDEZVOUS_PUBLISH_H
#define COHI_RENDEZVOUS_PUBLISH_H

#include <cohort.h>
#include <stdint.h>

typedef struct cohi_publisher cohi_publisher;

/* Hands the id out, by a thread, until the end. COH_NOT_AVAILABLE: another process has the name. */
coh_status cohi_publish(const char *name, const coh_unique_id *id, cohi_publisher **publisher);

void cohi_publish_end(void *publisher);

/* Asks for it. *fetched is 0 where nobody has the name yet. COH_TRANSPORT: somebody else has it. */
coh_status cohi_publish_fetch(const char *name, coh_unique_id *id, int *fetched);

#endif
