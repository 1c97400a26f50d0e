/*
 * handshake.c - a whole handshake, for callers that may wait.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "secure/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { WHERE_BYTES = 96 };

/* "rank 3 at 10.0.0.1 port 4711"; the rank where this side has called it. */
static void describe(int fd, int server, char where[WHERE_BYTES])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.any.sa_family = AF_UNSPEC};
    socklen_t length = sizeof address;
    char host[INET6_ADDRSTRLEN] = "a local socket", rank[24] = "a caller";
    unsigned port = 0;
    if (getpeername(fd, &address.any, &length) != 0)
        snprintf(host, sizeof host, "an address unknown");
    else if (address.any.sa_family == AF_INET)
        inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host), port = address.v4.sin_port;
    else if (address.any.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host), port = address.v6.sin6_port;
    if (server != COHI_TLS_ANSWERS)
        snprintf(rank, sizeof rank, "rank %d", server);
    int used = snprintf(where, WHERE_BYTES, "%s at %s", rank, host);
    if (port)
        snprintf(where + used, WHERE_BYTES - (size_t)used, " port %u", ntohs((uint16_t)port));
}

/* Until the socket is ready or the time is over. */
static void await(int fd, cohi_tls_turn turn, uint64_t deadline_ns)
{
    struct pollfd set = {.fd = fd, .events = turn == COHI_TLS_READS ? POLLIN : POLLOUT};
    uint64_t now_ns = cohi_now_ns();
    uint64_t left_ms = now_ns < deadline_ns ? (deadline_ns - now_ns) / COHI_NS_PER_MS + 1 : 0;
    (void)cohi_os_poll(&set, 1, left_ms < 1000 ? (int)left_ms : 1000);
}

static cohi_tls_turn complete(cohi_tls *tls, int fd, uint64_t deadline_ns)
{
    cohi_tls_turn turn = cohi_tls_step(tls);
    while ((turn == COHI_TLS_READS || turn == COHI_TLS_WRITES) && cohi_now_ns() < deadline_ns) {
        await(fd, turn, deadline_ns);
        turn = cohi_tls_step(tls);
    }
    return turn;
}

coh_status cohi_tls_handshake(const char *call, const cohi_tls_self *self, int fd, int server,
                              uint64_t deadline_ns, int *peer)
{
    cohi_tls *tls;
    char where[WHERE_BYTES];
    coh_status status = server == COHI_TLS_ANSWERS ? cohi_tls_answer(self, fd, &tls)
                                                   : cohi_tls_call(self, fd, server, &tls);
    if (status != COH_OK)
        return status;
    describe(fd, server, where); /* before the other side may be gone */
    cohi_tls_turn turn = complete(tls, fd, deadline_ns);
    if (turn == COHI_TLS_DONE)
        *peer = cohi_tls_peer(tls);
    else if (turn == COHI_TLS_FAILED)
        status = cohi_fail(COH_TRANSPORT, "%s: no handshake with %s: %s", call, where,
                           cohi_tls_reason(tls));
    else
        status =
            cohi_fail(COH_TIMED_OUT, "%s: no handshake with %s: it does not answer", call, where);
    cohi_tls_end(tls);
    return status;
}
