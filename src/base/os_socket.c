#include "base/os.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PENDING_CONNECTIONS = 1024 };

/* An abstract name starts with a NUL and is as long as the address says. */
static socklen_t abstract_address(const char *name, struct sockaddr_un *address)
{
    size_t length = strnlen(name, sizeof address->sun_path - 1);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int local_socket(int *fd)
{
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return errno;
    int error = cohi_os_fd_above_stdio(&made);
    if (error) {
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_local_listen(const char *name, int *fd)
{
    struct sockaddr_un address;
    socklen_t length = abstract_address(name, &address);
    int made = -1, error = local_socket(&made);
    if (error)
        return error;
    if (bind(made, (struct sockaddr *)&address, length) != 0
        || listen(made, PENDING_CONNECTIONS) != 0) {
        error = errno;
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_local_connect(const char *name, int *fd)
{
    struct sockaddr_un address;
    socklen_t length = abstract_address(name, &address);
    int made = -1, error = local_socket(&made);
    if (error)
        return error;
    if (connect(made, (struct sockaddr *)&address, length) != 0) {
        error = errno;
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

int cohi_os_peer_credentials(int fd, uid_t *uid, pid_t *pid)
{
    struct ucred who;
    socklen_t length = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0)
        return errno;
    *uid = who.uid;
    *pid = who.pid;
    return 0;
}

/* poll until `events`, by the monotonic clock, however often a signal interrupts. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        uint64_t now = cohi_now_ns();
        if (now >= deadline_ns)
            return ETIMEDOUT;
        uint64_t left_ms = (deadline_ns - now) / COHI_NS_PER_MS + 1;
        struct pollfd look = {.fd = fd, .events = events};
        int ready = cohi_os_poll(&look, 1, left_ms > 60000 ? 60000 : (int)left_ms);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
    }
}

union fd_room {
    char bytes[CMSG_SPACE(sizeof(int) * COHI_OS_FDS_MAX)];
    struct cmsghdr align;
};

static void attach_fds(struct msghdr *message, union fd_room *room, const int *fds, int count)
{
    if (count == 0)
        return;
    memset(room, 0, sizeof *room);
    message->msg_control = room->bytes;
    message->msg_controllen = (socklen_t)CMSG_SPACE(sizeof(int) * (size_t)count);
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)count);
}

/* Room in the socket, or, where the user has too many descriptors under way in all sockets, a
 * moment: nothing tells when a receiver took some. */
static int wait_to_send(int fd, int why, uint64_t deadline_ns)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    if (why == EAGAIN)
        return wait_for(fd, POLLOUT, deadline_ns);
    if (cohi_now_ns() >= deadline_ns)
        return ETIMEDOUT;
    nanosleep(&moment, NULL);
    return 0;
}

int cohi_os_send(int fd, const void *data, size_t bytes, const int *fds, int fd_count,
                 uint64_t deadline_ns)
{
    const char *at = data;
    while (bytes > 0) {
        struct iovec part = {.iov_base = (void *)(uintptr_t)at, .iov_len = bytes};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        union fd_room room;
        attach_fds(&message, &room, fds, fd_count);
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            bytes -= (size_t)sent;
            fd_count = 0;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != ETOOMANYREFS)
            return errno == EPIPE ? ECONNRESET : errno;
        int error = wait_to_send(fd, errno, deadline_ns);
        if (error)
            return error;
    }
    return 0;
}

static void take_fds(struct msghdr *message, int *fds, int room, int *count)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (*count < room && cohi_os_fd_above_stdio(&fd) == 0)
                fds[(*count)++] = fd;
            else
                cohi_os_close(fd);
        }
    }
}

int cohi_os_receive(int fd, void *data, size_t bytes, int *fds, int fd_room, int *fd_count,
                    uint64_t deadline_ns)
{
    char *at = data;
    int count = 0, error = 0;
    while (bytes > 0 && !error) {
        struct iovec part = {.iov_base = at, .iov_len = bytes};
        union fd_room room;
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = room.bytes,
                                 .msg_controllen = sizeof room.bytes};
        ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
        if (got > 0) {
            take_fds(&message, fds, fd_room, &count);
            at += got;
            bytes -= (size_t)got;
        } else if (got == 0) {
            error = ECONNRESET;
        } else if (errno == EAGAIN) {
            error = wait_for(fd, POLLIN, deadline_ns);
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    if (error) {
        while (count > 0)
            cohi_os_close(fds[--count]);
        return error;
    }
    if (fd_count)
        *fd_count = count;
    return 0;
}

int cohi_os_receive_now(int fd, void *data, size_t bytes, size_t *got)
{
    ssize_t came = recv(fd, data, bytes, MSG_DONTWAIT);
    if (came < 0)
        return errno == EINTR ? EAGAIN : errno;
    *got = (size_t)came;
    return came == 0 ? ECONNRESET : 0;
}
