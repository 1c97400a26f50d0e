/*
 * fork.c - a forked child gives up the descriptors of its parent's endpoints.
 *
 * A connection lives until its last descriptor is closed. If a child kept one, the others would not
 * notice the end of the rank before its silence has lasted too long.
 */
#include "engine/tcp/tcp.h"

#include "base/error.h"
#include "base/os.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cohi_endpoint *endpoints;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void drop(int *fd)
{
    cohi_os_close(*fd);
    *fd = -1;
}

/* Threads that held the links' locks are not here any more, so none is taken. */
static void drop_descriptors(cohi_endpoint *endpoint)
{
    int count = atomic_load(&endpoint->made_count);
    for (int i = 0; i < count; i++)
        drop(&endpoint->made[i]->fd);
    for (int i = 0; i < COHI_TCP_CALLERS; i++)
        drop(&endpoint->callers[i].fd);
    for (int i = 0; i < COHI_TCP_PLACES; i++)
        drop(&endpoint->listeners[i].fd);
    drop(&endpoint->epoll);
    drop(&endpoint->links_epoll);
    drop(&endpoint->poll.timer);
    drop(&endpoint->wake);
}

static void after_fork_in_child(void)
{
    for (cohi_endpoint *endpoint = endpoints; endpoint; endpoint = endpoint->next)
        drop_descriptors(endpoint);
    endpoints = NULL; /* they are the parent's */
    pthread_mutex_unlock(&lock);
}

coh_status cohi_tcp_fork_add(cohi_endpoint *endpoint)
{
    static bool watched;
    int error = 0;
    pthread_mutex_lock(&lock);
    if (!watched)
        error = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    if (!error) {
        watched = true;
        endpoint->next = endpoints;
        endpoints = endpoint;
    }
    pthread_mutex_unlock(&lock);
    return error ? cohi_fail_os(error, "tcp: forks of this process cannot be noticed") : COH_OK;
}

void cohi_tcp_fork_remove(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&lock);
    cohi_endpoint **at = &endpoints;
    while (*at && *at != endpoint)
        at = &(*at)->next;
    if (*at)
        *at = endpoint->next;
    pthread_mutex_unlock(&lock);
}
