/*
 * provider.h - how this process can have been started together with others: the rows, in the order in which
 * they are tried.
 *
 * coh_init takes the first row whose launcher is in the environment and started others too. None: a world of
 * one. cohort run goes first. Then come launchers that start processes inside of another's job, which leaves its
 * variables to them: torchrun and mlx.launch. Then those that carry the id themselves, PMIx and PMI-1; and
 * last those that need a secret of the user between hosts.
 */
#ifndef COHI_START_PROVIDER_H
#define COHI_START_PROVIDER_H

#include "rendezvous/provider.h"

/* The rows by index from 0; NULL past the last. */
const cohi_provider *cohi_provider_at(int index);

/* The one that is used; NULL: none. */
const cohi_provider *cohi_provider_find(const cohi_config *config);

#endif
