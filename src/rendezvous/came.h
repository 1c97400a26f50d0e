/*
 * came.h - which ranks of this host have come, where a launcher does not tell.
 *
 * While a rank waits it has a local name bound, of the job and its rank; the others look whether it is
 * there. It is for error messages alone.
 */
#ifndef COHI_RENDEZVOUS_CAME_H
#define COHI_RENDEZVOUS_CAME_H

#include <stddef.h>

typedef struct cohi_came cohi_came;

/* `job` is what the ranks of the job have in common. *came is NULL where it cannot be made, which all
 * calls below take. */
void cohi_came_begin(const char *job, int rank, int size, cohi_came **came);

/* Looks for those that were not seen before; most calls return at once, since it does so a few times
 * a second. */
void cohi_came_look(cohi_came *came);

/* Looks once more. ": ranks 2 and 5 were not seen on this host", or "" where nothing is known. */
void cohi_came_describe(cohi_came *came, char *text, size_t room);

void cohi_came_end(cohi_came *came);

#endif
