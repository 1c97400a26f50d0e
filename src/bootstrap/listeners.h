/*
 * listeners.h - the sockets at which rank 0 listens for ranks of other hosts, one for each address that
 * was chosen. Never one for all addresses of the host: nobody asked to be reached at the others.
 */
#ifndef COHI_BOOTSTRAP_LISTENERS_H
#define COHI_BOOTSTRAP_LISTENERS_H

#include "base/os.h"

enum { COHI_LISTENERS = 4 };

/* Zeros are none. */
typedef struct cohi_listeners {
    int count;
    int fds[COHI_LISTENERS];
} cohi_listeners;

/*
 * Listens at the addresses, COHI_LISTENERS of them at most, and at the same port of each: *port, or
 * where that is 0 one that is free, which is then in it. An address that went away meanwhile is left
 * out, and *count addresses remain. 0 or an errno, and then there are no listeners: EADDRINUSE when
 * the port is taken at one of them.
 */
int cohi_listeners_open(cohi_os_address *addresses, int *count, uint16_t *port,
                        cohi_listeners *listeners);

/* Copies of the sockets. 0 or an errno, and then there are none. */
int cohi_listeners_copy(const cohi_listeners *listeners, cohi_listeners *copy);

/* Closes them; then there are none. */
void cohi_listeners_close(cohi_listeners *listeners);

#endif
