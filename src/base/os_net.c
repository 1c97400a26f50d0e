#include "base/os.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PENDING_CONNECTIONS = 128, TEXT_BYTES = 64 };

static size_t bytes_of(const cohi_os_address *address)
{
    return address->family == 4 ? 4 : 16;
}

void cohi_os_address_text(const cohi_os_address *address, char text[COHI_OS_ADDRESS_TEXT])
{
    int family = address->family == 4 ? AF_INET : AF_INET6;
    if (!address->family || !inet_ntop(family, address->bytes, text, COHI_OS_ADDRESS_TEXT))
        snprintf(text, COHI_OS_ADDRESS_TEXT, "no address");
}

/* ---- the host's own addresses ---- */

struct subnet {
    cohi_os_address address;
    unsigned bits;
};

static bool parse_subnet(const char *text, struct subnet *subnet)
{
    char address[TEXT_BYTES], *slash, *end;
    if (snprintf(address, sizeof address, "%s", text) >= (int)sizeof address
        || !(slash = strchr(address, '/')))
        return false;
    *slash = '\0';
    subnet->address.family = strchr(address, ':') ? 6 : 4;
    unsigned long bits = strtoul(slash + 1, &end, 10);
    subnet->bits = (unsigned)bits;
    return slash[1] && !*end && bits <= 8 * bytes_of(&subnet->address)
           && inet_pton(subnet->address.family == 4 ? AF_INET : AF_INET6, address,
                        subnet->address.bytes)
                  == 1;
}

static bool is_inside(const cohi_os_address *address, const struct subnet *subnet)
{
    if (address->family != subnet->address.family)
        return false;
    for (unsigned bit = 0; bit < subnet->bits; bit++) {
        unsigned differ = address->bytes[bit / 8] ^ subnet->address.bytes[bit / 8];
        if (differ & 0x80u >> bit % 8)
            return false;
    }
    return true;
}

/* False for what is no address, and for those of IPv6 that hold on one link only. */
static bool read_address(const struct sockaddr *from, cohi_os_address *address)
{
    *address = (cohi_os_address){.family = 0};
    if (from && from->sa_family == AF_INET) {
        address->family = 4;
        memcpy(address->bytes, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    } else if (from && from->sa_family == AF_INET6) {
        const struct in6_addr *bytes =
            &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(bytes))
            return false;
        address->family = 6;
        memcpy(address->bytes, bytes, 16);
    }
    return address->family != 0;
}

static bool is_chosen(const struct ifaddrs *at, const char *choice, const struct subnet *subnet,
                      const cohi_os_address *address)
{
    if (!(at->ifa_flags & IFF_UP))
        return false;
    if (subnet)
        return is_inside(address, subnet);
    return *choice ? strcmp(at->ifa_name, choice) == 0 : !(at->ifa_flags & IFF_LOOPBACK);
}

int cohi_os_addresses(const char *choice, cohi_os_address *addresses, int room)
{
    struct ifaddrs *all;
    struct subnet subnet;
    bool by_subnet = strchr(choice, '/') != NULL;
    int count = 0;
    if (by_subnet && !parse_subnet(choice, &subnet))
        return -1;
    if (getifaddrs(&all) != 0)
        return 0;
    for (int family = 4; family <= 6; family += 2)
        for (struct ifaddrs *at = all; at && count < room; at = at->ifa_next)
            if (read_address(at->ifa_addr, &addresses[count]) && addresses[count].family == family
                && is_chosen(at, choice, by_subnet ? &subnet : NULL, &addresses[count]))
                count++;
    freeifaddrs(all);
    return count;
}

/* ---- names ---- */

int cohi_os_resolve(const char *name, cohi_os_address *addresses, int room, int *count)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *all;
    int code = getaddrinfo(name, NULL, &hints, &all);
    *count = 0;
    if (code)
        return code;
    for (int family = 4; family <= 6; family += 2)
        for (struct addrinfo *at = all; at && *count < room; at = at->ai_next)
            if (read_address(at->ai_addr, &addresses[*count]) && addresses[*count].family == family)
                ++*count;
    freeaddrinfo(all);
    return *count > 0 ? 0 : EAI_NONAME;
}

const char *cohi_os_resolve_text(int code)
{
    return gai_strerror(code);
}

/* ---- connections ---- */

union net_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static socklen_t write_address(const cohi_os_address *address, uint16_t port,
                               union net_address *net)
{
    memset(net, 0, sizeof *net);
    if (address->family == 4) {
        net->four.sin_family = AF_INET;
        net->four.sin_port = htons(port);
        memcpy(&net->four.sin_addr, address->bytes, 4);
        return sizeof net->four;
    }
    net->six.sin6_family = AF_INET6;
    net->six.sin6_port = htons(port);
    memcpy(&net->six.sin6_addr, address->bytes, 16);
    return sizeof net->six;
}

static int net_socket(int family, int *fd)
{
    int made =
        socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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

static int port_of(int fd, uint16_t *port)
{
    union net_address net;
    socklen_t length = sizeof net;
    if (getsockname(fd, &net.any, &length) != 0)
        return errno;
    *port = ntohs(net.any.sa_family == AF_INET ? net.four.sin_port : net.six.sin6_port);
    return 0;
}

int cohi_os_net_listen(const cohi_os_address *address, uint16_t *port, int *fd)
{
    static const int on = 1;
    union net_address net;
    socklen_t length = write_address(address, *port, &net);
    int made = -1, error = net_socket(address->family, &made);
    if (error)
        return error;
    (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->family == 6)
        (void)setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(made, &net.any, length) != 0 || listen(made, PENDING_CONNECTIONS) != 0)
        error = errno;
    if (!error)
        error = port_of(made, port);
    if (error) {
        cohi_os_close(made);
        return error;
    }
    *fd = made;
    return 0;
}

void cohi_os_net_hurry(int fd)
{
    static const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Whether the connection that was begun is there. */
static int await_connection(int fd, uint64_t deadline_ns)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t length = sizeof error;
    for (uint64_t now = cohi_now_ns(); now < deadline_ns; now = cohi_now_ns()) {
        uint64_t left_ms = (deadline_ns - now) / COHI_NS_PER_MS + 1;
        int ready = cohi_os_poll(&look, 1, left_ms > 1000 ? 1000 : (int)left_ms);
        if (ready < 0 && errno != EINTR)
            return errno;
        if (ready > 0)
            return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
    }
    return ETIMEDOUT;
}

int cohi_os_net_connect(const cohi_os_address *address, uint16_t port, uint64_t deadline_ns,
                        int *fd)
{
    union net_address net;
    socklen_t length = write_address(address, port, &net);
    int made = -1, error = net_socket(address->family, &made);
    if (error)
        return error;
    if (connect(made, &net.any, length) != 0)
        error = errno == EINPROGRESS ? await_connection(made, deadline_ns) : errno;
    if (error) {
        cohi_os_close(made);
        return error;
    }
    cohi_os_net_hurry(made);
    *fd = made;
    return 0;
}
