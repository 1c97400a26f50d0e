/* again.h - joining more than once. */
#ifndef COHI_RENDEZVOUS_AGAIN_H
#define COHI_RENDEZVOUS_AGAIN_H

#include "rendezvous/provider.h"

/*
 * Asks the provider the first time. What this process was told it keeps, for joining again after it
 * finalized, or for joining a second time: each time by an id derived from the first, as all ranks do.
 */
coh_status cohi_ask_again(const cohi_provider *provider, const cohi_config *config,
                          cohi_launch *launch);

#endif
