#include "engine/tcp/socket.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/os.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h> /* the system's own tcp_info; the C library's is older */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BACKLOG = 1024,
    /* What is shorter is copied to go in one part: sendmsg with two takes 0.15 us more than send, and copying so much a
     * tenth of that. */
    JOINED_BYTES = 2048
};

union any_address {
    struct sockaddr plain;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static void from_kernel(const union any_address *address, cohi_tcp_place *place)
{
    bool v6 = address->plain.sa_family == AF_INET6;
    place->family = v6 ? 6 : 4;
    place->port = v6 ? address->v6.sin6_port : address->v4.sin_port;
    if (v6)
        memcpy(place->host, &address->v6.sin6_addr, sizeof address->v6.sin6_addr);
    else
        memcpy(place->host, &address->v4.sin_addr, sizeof address->v4.sin_addr);
}

static socklen_t to_kernel(const cohi_tcp_place *place, union any_address *address)
{
    memset(address, 0, sizeof *address);
    if (place->family == 6) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = place->port;
        memcpy(&address->v6.sin6_addr, place->host, sizeof address->v6.sin6_addr);
        return sizeof address->v6;
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = place->port;
    memcpy(&address->v4.sin_addr, place->host, sizeof address->v4.sin_addr);
    return sizeof address->v4;
}

void cohi_tcp_place_text(const cohi_tcp_place *place, char text[COHI_TCP_PLACE_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    (void)inet_ntop(place->family == 6 ? AF_INET6 : AF_INET, place->host, host, sizeof host);
    snprintf(text, COHI_TCP_PLACE_TEXT, "%s port %u", host, ntohs(place->port));
}

void cohi_tcp_socket_peer(int fd, char text[COHI_TCP_PLACE_TEXT])
{
    union any_address address;
    socklen_t length = sizeof address;
    cohi_tcp_place place = {.family = 4};
    if (getpeername(fd, &address.plain, &length) != 0) {
        snprintf(text, COHI_TCP_PLACE_TEXT, "an address that is gone");
        return;
    }
    from_kernel(&address, &place);
    cohi_tcp_place_text(&place, text);
}

static int new_socket(int family, int *fd)
{
    int made = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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

/* An old kernel that does not know the option leaves that to the keepalives. */
void cohi_tcp_socket_limit(int fd, uint64_t timeout_ns)
{
    unsigned timeout_ms = (unsigned)(timeout_ns / COHI_NS_PER_MS);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

/* The kernels' own keepalives. They are answered for a process that is stopped too, also while a
 * handshake waits for it, when nothing else is sent. */
static void set_keepalive(int fd)
{
    int on = 1, every_s = 1, lost = 127; /* the limit breaks the connection before */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every_s, sizeof every_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &lost, sizeof lost);
}

/* Small frames go at once. */
static void set_options(int fd, uint64_t timeout_ns)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    set_keepalive(fd);
    if (timeout_ns > 0)
        cohi_tcp_socket_limit(fd, timeout_ns);
}

static bool ask_state(int fd, struct tcp_info *info)
{
    socklen_t length = sizeof *info;
    memset(info, 0, sizeof *info); /* an older kernel has less to say */
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0;
}

uint32_t cohi_tcp_socket_round_trip_us(int fd)
{
    struct tcp_info info;
    bool known = ask_state(fd, &info) && info.tcpi_min_rtt != UINT32_MAX;
    return known ? info.tcpi_min_rtt : 0;
}

/* Either all was sent and acknowledged, or something just was; or the peer's buffer is full, and its host says so: a
 * probe of that is long in coming, so that one which was answered counts until then. A host that cannot hear
 * this one sends acknowledgements too, of nothing new. */
bool cohi_tcp_socket_is_acknowledged(int fd, uint64_t recent_ns, uint64_t *acknowledged)
{
    struct tcp_info info;
    if (!ask_state(fd, &info))
        return false;
    bool more = info.tcpi_bytes_acked != *acknowledged;
    bool recent = info.tcpi_last_ack_recv < recent_ns / COHI_NS_PER_MS;
    *acknowledged = info.tcpi_bytes_acked;
    if (info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0)
        return info.tcpi_probes == 0 || recent;
    if (info.tcpi_unacked == 0 && info.tcpi_snd_wnd == 0 && info.tcpi_probes == 0)
        return true;
    return recent && (more || info.tcpi_snd_wnd == 0);
}

/* A port that connections of an earlier job have left can be had again at once. */
static int listen_at(int fd, const union any_address *address, socklen_t length)
{
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(fd, &address->plain, length) == 0 && listen(fd, BACKLOG) == 0 ? 0 : errno;
}

int cohi_tcp_socket_listen(cohi_tcp_place *place, const cohi_tcp_congestion *congestion, int *fd)
{
    union any_address address;
    socklen_t length = to_kernel(place, &address);
    int made = -1, error = new_socket(address.plain.sa_family, &made);
    if (error)
        return error;
    cohi_tcp_congestion_begin(congestion, made);
    error = listen_at(made, &address, length);
    if (!error && getsockname(made, &address.plain, &length) != 0)
        error = errno;
    if (error) {
        cohi_os_close(made);
        return error;
    }
    from_kernel(&address, place);
    *fd = made;
    return 0;
}

int cohi_tcp_socket_call(const cohi_tcp_place *place, const cohi_tcp_congestion *congestion,
                         uint64_t timeout_ns, int *fd)
{
    union any_address address;
    socklen_t length = to_kernel(place, &address);
    int made = -1, error = new_socket(address.plain.sa_family, &made);
    if (error)
        return error;
    set_options(made, timeout_ns);
    cohi_tcp_congestion_begin(congestion, made);
    int held = cohi_cancel_hold();
    if (connect(made, &address.plain, length) != 0 && errno != EINPROGRESS && errno != EINTR)
        error = errno;
    cohi_cancel_release(held);
    if (error)
        cohi_os_close(made);
    else
        *fd = made;
    return error;
}

int cohi_tcp_socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

int cohi_tcp_socket_accept(int listener, uint64_t timeout_ns, int *fd)
{
    int error = cohi_os_accept(listener, fd);
    if (!error)
        set_options(*fd, timeout_ns);
    return error;
}

static struct msghdr message_of(const struct iovec *parts, int count)
{
    return (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)parts,
                           .msg_iovlen = (size_t)count};
}

/* Short parts put together: their bytes; 0 where they do not fit. */
static size_t join(const struct iovec *parts, int count, char joined[JOINED_BYTES])
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].iov_len > JOINED_BYTES - bytes)
            return 0;
        memcpy(joined + bytes, parts[i].iov_base, parts[i].iov_len);
        bytes += parts[i].iov_len;
    }
    return bytes;
}

/* For one part there is a cheaper call, which counts where a rank polls. */
int cohi_tcp_socket_write(int fd, const struct iovec *parts, int count, size_t *moved)
{
    char joined[JOINED_BYTES];
    struct iovec one = {.iov_base = joined, .iov_len = count > 1 ? join(parts, count, joined) : 0};
    if (one.iov_len > 0) {
        parts = &one;
        count = 1;
    }
    struct msghdr message = message_of(parts, count);
    ssize_t sent;
    int held = cohi_cancel_hold(); /* the caller has a lock */
    do
        sent = count == 1 ? send(fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    cohi_cancel_release(held);
    *moved = sent > 0 ? (size_t)sent : 0;
    return sent < 0 ? errno : 0;
}

int cohi_tcp_socket_read(int fd, const struct iovec *parts, int count, size_t *moved)
{
    struct msghdr message = message_of(parts, count);
    ssize_t got;
    do
        got = count == 1 ? recv(fd, parts->iov_base, parts->iov_len, MSG_DONTWAIT)
                         : recvmsg(fd, &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    *moved = got > 0 ? (size_t)got : 0;
    return got < 0 ? errno : 0;
}

int cohi_tcp_socket_write_whole(int fd, const void *bytes, size_t count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    size_t moved;
    int error = cohi_tcp_socket_write(fd, &part, 1, &moved);
    return error ? error : moved == count ? 0 : EIO;
}

void cohi_tcp_socket_end_output(int fd)
{
    (void)shutdown(fd, SHUT_WR);
}

void cohi_tcp_socket_end(int fd)
{
    (void)shutdown(fd, SHUT_RDWR);
}
