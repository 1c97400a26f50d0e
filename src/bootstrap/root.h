/*
 * root.h - where the leaders of other hosts find rank 0: its addresses and port, in the id.
 */
#ifndef COHI_BOOTSTRAP_ROOT_H
#define COHI_BOOTSTRAP_ROOT_H

#include "base/config.h"
#include "bootstrap/listeners.h"
#include "bootstrap/unique_id.h"

enum { COHI_ROOT_ADDRESSES = 2 };

typedef struct cohi_root {
    uint16_t port;
    int count; /* 0: rank 0 can be reached on its own host only */
    cohi_os_address addresses[COHI_ROOT_ADDRESSES];
} cohi_root;

/*
 * coh_unique_id_create makes such sockets where COHORT_NET_INTERFACE or COHORT_PORTS is set, and
 * keeps them for rank 0 of that id, which is in the same process or a child that it forks.
 *
 * Listens for the leaders of other hosts, on rank 0's host, and writes into *id how to reach it;
 * where the process keeps such sockets, these are they. config->net_interface and config->ports
 * choose; what was chosen is logged. The sockets are for rank 0: cohi_launch_offer, or a process that
 * is rank 0 itself. COH_INVALID_ARGUMENT for a choice that is none of this host's, COH_NOT_AVAILABLE
 * when no port of the range is free.
 */
coh_status cohi_root_listen(const cohi_config *config, coh_unique_id *id,
                            cohi_listeners *listeners);

/* The same at one port, for ranks of other hosts that know where by another way than the id: at those
 * of the `count` addresses, which they look for rank 0 at, that are this host's own. Where none is,
 * as behind a router that translates them, at addresses of the host. */
coh_status cohi_root_listen_at(const cohi_config *config, const cohi_os_address *addresses,
                               int count, unsigned port, cohi_listeners *listeners);

/* Writes into *id where rank 0 listens; what does not fit is left out. */
void cohi_root_point(const cohi_os_address *addresses, int count, unsigned port, coh_unique_id *id);

/* Whether one of the addresses is this host's own. */
bool cohi_root_is_own(const cohi_os_address *addresses, int count);

/* The sockets that this process keeps for the id, which are the caller's then. */
cohi_listeners cohi_root_claim(const coh_unique_id *id);

/* Reads that out of an id. What does not fit counts as no address. */
void cohi_root_read(const cohi_id_layout *id, cohi_root *root);

#endif
