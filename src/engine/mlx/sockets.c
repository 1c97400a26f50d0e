#include "engine/mlx/mlx.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- finding them ---- */

static bool is_tcp(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int type = 0;
    socklen_t type_length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) == 0 && type == SOCK_STREAM
           && getsockname(fd, (struct sockaddr *)&address, &length) == 0
           && address.ss_family == AF_INET;
}

/* The next in the folder of descriptors that a child inherits; -1: there is none any more. */
static int next_socket(DIR *folder)
{
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(folder) && !(fcntl(fd, F_GETFD) & FD_CLOEXEC)
            && is_tcp(fd))
            return fd;
    }
    return -1;
}

static bool add_fd(cohi_mlx_fds *listed, int fd)
{
    enum { ROOM_FIRST = 64 };
    if (listed->count == listed->room) {
        int room = listed->room > 0 ? 2 * listed->room : ROOM_FIRST;
        int *fds = realloc(listed->fds, (size_t)room * sizeof *fds);
        if (!fds)
            return false;
        listed->fds = fds;
        listed->room = room;
    }
    listed->fds[listed->count++] = fd;
    return true;
}

bool cohi_mlx_fds_list(cohi_mlx_fds *listed)
{
    DIR *folder = opendir("/proc/self/fd");
    bool fits = true;
    *listed = (cohi_mlx_fds){.count = 0};
    for (int fd; fits && (fd = next_socket(folder)) >= 0;)
        fits = add_fd(listed, fd);
    if (folder)
        closedir(folder);
    return fits;
}

void cohi_mlx_fds_free(cohi_mlx_fds *listed)
{
    free(listed->fds);
    *listed = (cohi_mlx_fds){.count = 0};
}

static bool is_in(const cohi_mlx_fds *listed, int fd)
{
    for (int i = 0; i < listed->count; i++)
        if (listed->fds[i] == fd)
            return true;
    return false;
}

void cohi_mlx_sockets_find(const cohi_mlx_fds *before, cohi_mlx_sockets *found)
{
    DIR *folder = opendir("/proc/self/fd");
    *found = (cohi_mlx_sockets){.count = 0};
    for (int fd; found->count < COHI_MLX_SOCKETS_MOST && (fd = next_socket(folder)) >= 0;) {
        if (is_in(before, fd))
            continue;
        found->peers[found->count] = -1;
        found->fds[found->count++] = fd;
    }
    if (folder)
        closedir(folder);
}

static bool is_connected(int fd)
{
    struct sockaddr_in there;
    socklen_t length = sizeof there;
    return getpeername(fd, (struct sockaddr *)&there, &length) == 0;
}

void cohi_mlx_sockets_keep(cohi_mlx_sockets *sockets)
{
    int kept = 0;
    for (int i = 0; i < sockets->count; i++) {
        (void)fcntl(sockets->fds[i], F_SETFD, FD_CLOEXEC);
        if (is_connected(sockets->fds[i]))
            sockets->fds[kept++] = sockets->fds[i];
    }
    sockets->count = kept;
}

/* ---- who is at the other end ---- */

void cohi_mlx_sockets_describe(const cohi_mlx_sockets *sockets, cohi_mlx_ends *ends)
{
    *ends = (cohi_mlx_ends){.count = 0};
    for (int i = 0; i < sockets->count; i++) {
        struct sockaddr_in here, there;
        socklen_t here_length = sizeof here, there_length = sizeof there;
        if (getsockname(sockets->fds[i], (struct sockaddr *)&here, &here_length) != 0
            || getpeername(sockets->fds[i], (struct sockaddr *)&there, &there_length) != 0)
            continue;
        int at = ends->count++;
        ends->ends[at].address[0] = here.sin_addr.s_addr;
        ends->ends[at].address[1] = there.sin_addr.s_addr;
        ends->ends[at].port[0] = here.sin_port;
        ends->ends[at].port[1] = there.sin_port;
    }
}

static bool is_other_end(int fd, const cohi_mlx_ends *ends, int at)
{
    cohi_mlx_ends own;
    cohi_mlx_sockets one = {.count = 1, .fds = {fd}};
    cohi_mlx_sockets_describe(&one, &own);
    return own.count == 1 && own.ends[0].address[0] == ends->ends[at].address[1]
           && own.ends[0].port[0] == ends->ends[at].port[1]
           && own.ends[0].address[1] == ends->ends[at].address[0]
           && own.ends[0].port[1] == ends->ends[at].port[0];
}

void cohi_mlx_sockets_match(cohi_mlx_sockets *sockets, int rank, const cohi_mlx_ends *ends)
{
    for (int i = 0; i < sockets->count; i++)
        for (int at = 0; at < ends->count && at < COHI_MLX_SOCKETS_MOST; at++)
            if (is_other_end(sockets->fds[i], ends, at))
                sockets->peers[i] = rank;
}

/* ---- looking at them ---- */

void cohi_mlx_sockets_sever(const cohi_mlx_sockets *sockets)
{
    for (int i = 0; i < sockets->count; i++)
        (void)shutdown(sockets->fds[i], SHUT_RDWR);
}

void cohi_mlx_sockets_calm(const cohi_mlx_sockets *sockets, bool calm)
{
    enum { LONGEST_US = 5000 };
    struct timeval longest = {.tv_usec = calm ? LONGEST_US : 0};
    for (int i = 0; i < sockets->count; i++) {
        int fd = sockets->fds[i], flags = fcntl(fd, F_GETFL);
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
        (void)fcntl(fd, F_SETFL, calm ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
    }
}

static int fill_set(const cohi_mlx_sockets *sockets, short events, struct pollfd *set)
{
    for (int i = 0; i < sockets->count; i++)
        set[i] = (struct pollfd){.fd = sockets->fds[i], .events = events};
    return sockets->count;
}

int cohi_mlx_sockets_hung_up(const cohi_mlx_sockets *sockets)
{
    struct pollfd set[COHI_MLX_SOCKETS_MOST];
    int count = fill_set(sockets, POLLRDHUP, set);
    if (poll(set, (nfds_t)count, 0) <= 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (set[i].revents)
            return sockets->peers[i];
    return -1;
}

bool cohi_mlx_sockets_await(const cohi_mlx_sockets *sockets, int bell, uint64_t timeout_ns)
{
    struct pollfd set[COHI_MLX_SOCKETS_MOST + 1];
    int count = fill_set(sockets, POLLIN | POLLRDHUP, set);
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / COHI_NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % COHI_NS_PER_S)};
    uint64_t rings;
    set[count++] = (struct pollfd){.fd = bell, .events = POLLIN};
    int ready = ppoll(set, (nfds_t)count, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL);
    bool rung = ready > 0 && set[count - 1].revents;
    if (rung)
        (void)!read(bell, &rings, sizeof rings);
    return !rung || ready > 1;
}

/* ---- ports of a ring of the world's own ---- */

/* Two sockets may be bound to one port if both say so, as MLX's do: nobody else takes it meanwhile. */
coh_status cohi_mlx_port_take(int *fd, uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int one = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0
        || setsockopt(made, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0
        || bind(made, (struct sockaddr *)&address, sizeof address) != 0
        || getsockname(made, (struct sockaddr *)&address, &length) != 0) {
        int error = errno;
        cohi_os_close(made);
        return cohi_fail_os(error, "%s: cannot take a port of 127.0.0.1", cohi_mlx_name);
    }
    *fd = made;
    *port = ntohs(address.sin_port);
    return COH_OK;
}

static bool is_listening(uint16_t port)
{
    enum { LISTENING = 0x0a };
    char line[256];
    unsigned at = 0, state = 0;
    bool found = false;
    FILE *file = fopen("/proc/net/tcp", "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%*d: %*x:%x %*x:%*x %x", &at, &state) == 2 && at == port
                && state == LISTENING;
    if (file)
        fclose(file);
    return found;
}

void cohi_mlx_port_await(uint16_t port, uint64_t until_ns)
{
    static const struct timespec moment = {.tv_nsec = COHI_NS_PER_MS};
    while (!is_listening(port) && cohi_now_ns() < until_ns)
        nanosleep(&moment, NULL);
}
