#include "bootstrap/listeners.h"

#include <errno.h>
#include <string.h>

/* How often a port that is free at the first address is looked for until it is at all. */
enum { FREE_PORT_TRIES = 32 };

void cohi_listeners_close(cohi_listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++)
        cohi_os_close(listeners->fds[i]);
    listeners->count = 0;
}

/* With port 0 the first address decides. */
static int open_once(cohi_os_address *addresses, int *count, uint16_t *port,
                     cohi_listeners *listeners)
{
    int error = 0;
    cohi_os_address kept[COHI_LISTENERS];
    listeners->count = 0;
    for (int i = 0; i < *count && (!error || error == EADDRNOTAVAIL); i++) {
        int at = listeners->count;
        error = cohi_os_net_listen(&addresses[i], port, &listeners->fds[at]);
        if (error)
            continue;
        kept[at] = addresses[i];
        listeners->count++;
    }
    if (error && (error != EADDRNOTAVAIL || listeners->count == 0)) {
        cohi_listeners_close(listeners);
        return error;
    }
    *count = listeners->count;
    memcpy(addresses, kept, (size_t)*count * sizeof *kept);
    return 0;
}

int cohi_listeners_open(cohi_os_address *addresses, int *count, uint16_t *port,
                        cohi_listeners *listeners)
{
    uint16_t asked = *port;
    int error = EADDRINUSE;
    *count = *count < COHI_LISTENERS ? *count : COHI_LISTENERS;
    for (int tries = 0; error == EADDRINUSE && tries < (asked ? 1 : FREE_PORT_TRIES); tries++) {
        *port = asked;
        error = open_once(addresses, count, port, listeners);
    }
    return error;
}

int cohi_listeners_copy(const cohi_listeners *listeners, cohi_listeners *copy)
{
    copy->count = 0;
    for (int i = 0; i < listeners->count; i++) {
        int error = cohi_os_fd_copy(listeners->fds[i], &copy->fds[i]);
        if (error) {
            cohi_listeners_close(copy);
            return error;
        }
        copy->count++;
    }
    return 0;
}
