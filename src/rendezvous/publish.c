#include "rendezvous/publish.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HANDING_NS (COHI_NS_PER_S) /* for 128 bytes to a process of this host */

struct cohi_publisher {
    int listener;
    int stop[2]; /* a pair of sockets: closing the second ends the thread */
    coh_unique_id id;
    pthread_t thread;
};

static bool same_user(int fd)
{
    uid_t user;
    pid_t process;
    return cohi_os_peer_credentials(fd, &user, &process) == 0 && user == geteuid();
}

/* A new connection takes so little at once, whether the other end reads or not. */
static void hand_out(const cohi_publisher *self)
{
    int fd;
    while (cohi_os_accept(self->listener, &fd) == 0) {
        if (same_user(fd))
            (void)cohi_os_send(fd, self->id.bytes, sizeof self->id.bytes, NULL, 0,
                               cohi_now_ns() + HANDING_NS);
        cohi_os_close(fd);
    }
}

static void *serve(void *arg)
{
    enum { LOOK_AGAIN_MS = 1000 };
    const cohi_publisher *self = arg;
    struct pollfd set[2] = {{.fd = self->listener, .events = POLLIN},
                            {.fd = self->stop[0], .events = POLLIN}};
    cohi_os_thread_serves(true);
    while (set[1].revents == 0) {
        if (cohi_os_poll(set, 2, LOOK_AGAIN_MS) > 0 && set[0].revents)
            hand_out(self);
    }
    cohi_os_thread_serves(false);
    return NULL;
}

static void close_all(cohi_publisher *self)
{
    cohi_os_close(self->stop[0]);
    cohi_os_close(self->stop[1]);
    cohi_os_close(self->listener);
    free(self);
}

coh_status cohi_publish(const char *name, const coh_unique_id *id, cohi_publisher **publisher)
{
    cohi_publisher *made = malloc(sizeof *made);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the id of the job");
    *made = (cohi_publisher){.listener = -1, .stop = {-1, -1}, .id = *id};
    int error = cohi_os_local_listen(name, &made->listener);
    bool taken = error == EADDRINUSE;
    if (!error && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made->stop) != 0)
        error = errno;
    if (!error)
        error = cohi_os_thread_start("cohort-publish", serve, made, &made->thread);
    if (error) {
        close_all(made);
        return taken ? cohi_fail(COH_NOT_AVAILABLE,
                                 "coh_init: another process of this host is rank 0 of a job that "
                                 "its launcher describes by the same variables")
                     : cohi_fail_os(error, "coh_init: rank 0 cannot give the id to the others");
    }
    *publisher = made;
    return COH_OK;
}

void cohi_publish_end(void *publisher)
{
    cohi_publisher *self = publisher;
    cohi_os_close(self->stop[1]);
    self->stop[1] = -1;
    pthread_join(self->thread, NULL);
    close_all(self);
}

coh_status cohi_publish_fetch(const char *name, coh_unique_id *id, int *fetched)
{
    int fd, count, error = cohi_os_local_connect(name, &fd);
    *fetched = 0;
    if (error == ECONNREFUSED || error == EAGAIN)
        return COH_OK;
    if (error)
        return cohi_fail_os(error, "coh_init: cannot ask rank 0 for the id of the job");
    coh_status status = COH_OK;
    if (!same_user(fd))
        status = cohi_fail(COH_TRANSPORT, "coh_init: the process that listens as rank 0 on this "
                                          "host belongs to another user");
    else /* one that closes instead has ended, and may come again */
        *fetched = cohi_os_receive(fd, id->bytes, sizeof id->bytes, NULL, 0, &count,
                                   cohi_now_ns() + HANDING_NS)
                   == 0;
    cohi_os_close(fd);
    return status;
}
