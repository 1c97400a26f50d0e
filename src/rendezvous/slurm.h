/* slurm.h - Slurm's way to write lists of hosts. */
#ifndef COHI_RENDEZVOUS_SLURM_H
#define COHI_RENDEZVOUS_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/* The first host of a list such as "n[01-03,7],m1". False where it is not one, or does not fit. */
bool cohi_slurm_first_node(const char *list, char *name, size_t room);

#endif
