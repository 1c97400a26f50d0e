#include "bench/limit/limit_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static struct sockaddr_in at_loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* The fastest there is at so short a distance: where the system's congestion control paces, all that is long takes up to
 * twice as long. */
static int unpaced_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return fd;
}

int cohi_limit_link_listen(int *listener, uint16_t *port)
{
    struct sockaddr_in address = at_loopback(0);
    socklen_t length = sizeof address;
    *listener = unpaced_socket();
    if (*listener < 0 || bind(*listener, (struct sockaddr *)&address, length) != 0
        || listen(*listener, 1) != 0
        || getsockname(*listener, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *port = ntohs(address.sin_port);
    return 0;
}

static int reach(int leads, int listener, uint16_t port)
{
    struct sockaddr_in address = at_loopback(port);
    if (leads)
        return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int fd = unpaced_socket();
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The keys are no secret: it is the work that is measured. */
static int make_seals(cohi_limit_link *link)
{
    static const unsigned char secrets[2][COHI_SEAL_SECRET_BYTES] = {{1}, {2}};
    link->seals.out = cohi_seal_new(secrets[link->leads], COHI_SEAL_SEALS, &cohi_seal_limits_usual);
    link->seals.in =
        cohi_seal_new(secrets[1 - link->leads], COHI_SEAL_OPENS, &cohi_seal_limits_usual);
    link->record = malloc(COHI_SEAL_RECORD_BYTES);
    link->plain = malloc(COHI_SEAL_RECORD_BYTES);
    return link->seals.out && link->seals.in && link->record && link->plain ? 0 : -1;
}

int cohi_limit_link_open(cohi_limit_link *link, int leads, int listener, uint16_t port, int sealed)
{
    int on = 1;
    *link = (cohi_limit_link){.fd = reach(leads, listener, port), .leads = leads};
    if (link->fd < 0 || setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0
        || fcntl(link->fd, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    return sealed ? make_seals(link) : 0;
}

void cohi_limit_link_close(cohi_limit_link *link)
{
    cohi_seals_end(&link->seals);
    free(link->record);
    free(link->plain);
    close(link->fd);
}

/* ---- bytes ---- */

/* Nothing could be moved. */
static void rest(const cohi_limit_link *link)
{
    if (link->yields)
        sched_yield();
}

static int send_all(const cohi_limit_link *link, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t sent = send(link->fd, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        if (sent < 0)
            rest(link);
        at += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

static int receive_all(const cohi_limit_link *link, void *bytes, size_t count)
{
    char *at = bytes;
    while (count > 0) {
        ssize_t got = recv(link->fd, at, count, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return -1;
        if (got < 0)
            rest(link);
        at += got > 0 ? got : 0;
        count -= got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int send_sealed(cohi_limit_link *link, const char *bytes, size_t count)
{
    struct iovec part = {.iov_base = (char *)(uintptr_t)bytes, .iov_len = count};
    size_t all = cohi_seal_close(link->seals.out, COHI_SEAL_DATA, &part, 1, link->record);
    return all > 0 ? send_all(link, link->record, all) : -1;
}

static int receive_sealed(cohi_limit_link *link, char *bytes, size_t count)
{
    size_t all = count + COHI_SEAL_EXTRA_BYTES;
    if (receive_all(link, link->record, all) != 0
        || !cohi_seal_open(link->seals.in, link->record, all, link->plain))
        return -1;
    memcpy(bytes, link->plain, count);
    return 0;
}

static int give(cohi_limit_link *link, const char *bytes, size_t count)
{
    return link->seals.out ? send_sealed(link, bytes, count) : send_all(link, bytes, count);
}

static int take(cohi_limit_link *link, char *bytes, size_t count)
{
    return link->seals.in ? receive_sealed(link, bytes, count) : receive_all(link, bytes, count);
}

/* ---- the loops ---- */

int cohi_limit_link_turns(cohi_limit_link *link, uint64_t bytes, uint64_t repeats)
{
    char word[64] = "";
    int failed = 0;
    for (uint64_t i = 0; i < repeats && !failed; i++) {
        if (link->leads)
            failed = give(link, word, bytes) || take(link, word, bytes);
        else
            failed = take(link, word, bytes) || give(link, word, bytes);
    }
    return failed ? -1 : 0;
}

int cohi_limit_link_move(cohi_limit_link *link, char *memory, uint64_t bytes)
{
    size_t most = link->seals.out ? COHI_SEAL_PLAIN_BYTES : PIECE;
    char done = 1;
    int failed = 0;
    for (uint64_t at = 0; at < bytes && !failed;) {
        size_t now = bytes - at < most ? (size_t)(bytes - at) : most;
        failed = link->leads ? give(link, memory + at, now) : take(link, memory + at, now);
        at += now;
    }
    if (!failed)
        failed = link->leads ? take(link, &done, 1) : give(link, &done, 1);
    return failed ? -1 : 0;
}

/* ---- both ways at once ---- */

static int exchange_clear(const cohi_limit_link *link, const char *out, uint64_t out_bytes,
                          char *in, uint64_t in_bytes)
{
    uint64_t sent = 0, got = 0;
    while (sent < out_bytes || got < in_bytes) {
        ssize_t gone =
            sent < out_bytes ? send(link->fd, out + sent, out_bytes - sent, MSG_NOSIGNAL) : 0;
        if (gone < 0 && errno != EAGAIN && errno != EINTR)
            return -1;
        sent += gone > 0 ? (uint64_t)gone : 0;
        ssize_t come = got < in_bytes ? recv(link->fd, in + got, in_bytes - got, 0) : 1;
        if (come == 0 || (come < 0 && errno != EAGAIN && errno != EINTR))
            return -1;
        got += got < in_bytes && come > 0 ? (uint64_t)come : 0;
        if (gone <= 0 && come < 0)
            rest(link);
    }
    return 0;
}

/* A record each way at a time: the sockets have room for one. */
static int exchange_sealed(cohi_limit_link *link, const char *out, uint64_t out_bytes, char *in,
                           uint64_t in_bytes)
{
    int failed = 0;
    for (uint64_t at = 0; (at < out_bytes || at < in_bytes) && !failed;
         at += COHI_SEAL_PLAIN_BYTES) {
        uint64_t go = at < out_bytes ? out_bytes - at : 0, come = at < in_bytes ? in_bytes - at : 0;
        go = go < COHI_SEAL_PLAIN_BYTES ? go : COHI_SEAL_PLAIN_BYTES;
        come = come < COHI_SEAL_PLAIN_BYTES ? come : COHI_SEAL_PLAIN_BYTES;
        failed = (go && send_sealed(link, out + at, go))
                 || (come && receive_sealed(link, in + at, come));
    }
    return failed ? -1 : 0;
}

static int exchange(cohi_limit_link *link, const char *out, uint64_t out_bytes, char *in,
                    uint64_t in_bytes)
{
    return link->seals.out ? exchange_sealed(link, out, out_bytes, in, in_bytes)
                           : exchange_clear(link, out, out_bytes, in, in_bytes);
}

/* Sixteen at a time, which compilers turn into vectors. */
static void add(float *restrict target, const float *restrict left, const float *restrict right,
                uint64_t count)
{
    uint64_t i = 0;
    for (; i + 16 <= count; i += 16)
        for (int k = 0; k < 16; k++)
            target[i + (uint64_t)k] = left[i + (uint64_t)k] + right[i + (uint64_t)k];
    for (; i < count; i++)
        target[i] = left[i] + right[i];
}

int cohi_limit_link_reduce(cohi_limit_link *link, const char *source, char *target, char *scratch,
                           uint64_t bytes)
{
    uint64_t low = bytes / 2 / sizeof(float) * sizeof(float), high = bytes - low;
    uint64_t mine = link->leads ? 0 : low, theirs = link->leads ? low : 0;
    uint64_t own = link->leads ? low : high, other = link->leads ? high : low;
    if (exchange(link, source + theirs, other, scratch, own) != 0)
        return -1;
    add((float *)(target + mine), (const float *)(source + mine), (const float *)scratch,
        own / sizeof(float));
    return exchange(link, target + mine, own, target + theirs, other);
}
