#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* How long a caller may take to say who it is. */
#define HELLO_NS (5 * COHI_NS_PER_S)
/* Strangers are told of this often, and counted in between. */
#define COMPLAIN_NS (10 * COHI_NS_PER_S)

static void hang_up(cohi_endpoint *endpoint, cohi_tcp_caller *caller)
{
    cohi_tls_end(caller->tls);
    caller->tls = NULL;
    cohi_seals_end(&caller->seals);
    (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_DEL, caller->fd, NULL);
    cohi_os_close(caller->fd);
    caller->fd = -1;
}

static void complain(cohi_endpoint *endpoint, const cohi_tcp_caller *caller, const char *wrong)
{
    uint64_t now_ns = cohi_now_ns();
    char from[COHI_TCP_PLACE_TEXT];
    endpoint->refused++;
    if (endpoint->refused_ns && now_ns - endpoint->refused_ns < COMPLAIN_NS)
        return;
    cohi_tcp_socket_peer(caller->fd, from);
    cohi_log(COH_LOG_WARN,
             "tcp: rank %d refused %u connection%s of strangers; the last, from %s: %s",
             endpoint->rank, endpoint->refused, endpoint->refused > 1 ? "s" : "", from, wrong);
    endpoint->refused_ns = now_ns;
    endpoint->refused = 0;
}

static void refuse(cohi_endpoint *endpoint, cohi_tcp_caller *caller, const char *wrong)
{
    complain(endpoint, caller, wrong);
    hang_up(endpoint, caller);
}

/* However much of them is equal, so that the time tells nothing. */
static bool keys_differ(const unsigned char *a, const unsigned char *b)
{
    unsigned differ = 0;
    for (int i = 0; i < COHI_TCP_KEY_BYTES; i++)
        differ |= a[i] ^ b[i];
    return differ != 0;
}

static const char *check(const cohi_endpoint *endpoint, int proved, const cohi_tcp_hello *hello)
{
    const char *wrong = cohi_tcp_check_hello(hello, endpoint->rank, endpoint->size);
    if (wrong)
        return wrong;
    if (endpoint->secured)
        return hello->from == proved ? NULL : "it gives itself out for another rank";
    if (keys_differ(hello->to_key, endpoint->own.first_key)
        || keys_differ(hello->from_key, endpoint->addresses[hello->from].second_key))
        return "it does not know the key";
    return NULL;
}

static void heed(cohi_endpoint *endpoint, cohi_tcp_caller *caller)
{
    cohi_tcp_hello hello;
    const char *wrong = NULL;
    if (!caller->seals.in)
        memcpy(&hello, caller->bytes, sizeof hello);
    else if (!cohi_seal_open(caller->seals.in, caller->bytes, sizeof caller->bytes,
                             (unsigned char *)&hello))
        wrong = "its hello was changed on the way";
    if (!wrong)
        wrong = check(endpoint, caller->rank, &hello);
    if (wrong) {
        refuse(endpoint, caller, wrong);
        return;
    }
    (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_DEL, caller->fd, NULL);
    int fd = caller->fd;
    caller->fd = -1;
    cohi_tcp_link_adopt(endpoint, hello.from, fd, &caller->seals);
}

static void await(cohi_endpoint *endpoint, cohi_tcp_caller *caller, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = caller};
    (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_MOD, caller->fd, &event);
}

/* Goes on with the handshake; whether it is through. It begins when the caller has said something: one
 * that is silent costs a place and no more. */
static bool secure(cohi_endpoint *endpoint, cohi_tcp_caller *caller)
{
    if (caller->rank >= 0)
        return true;
    if (!caller->tls && cohi_tls_answer(&endpoint->self, caller->fd, &caller->tls) != COH_OK) {
        refuse(endpoint, caller, "there is no memory for its handshake");
        return false;
    }
    cohi_tls_turn turn = cohi_tls_step(caller->tls);
    if (turn == COHI_TLS_FAILED) {
        if (!cohi_tls_was_closed(caller->tls))
            complain(endpoint, caller, cohi_tls_reason(caller->tls));
        hang_up(endpoint, caller);
        return false;
    }
    await(endpoint, caller, turn == COHI_TLS_WRITES ? EPOLLOUT : EPOLLIN);
    if (turn != COHI_TLS_DONE)
        return false;
    caller->rank = cohi_tls_peer(caller->tls);
    if (endpoint->seals && !cohi_tls_seals(caller->tls, &endpoint->limits, &caller->seals)) {
        refuse(endpoint, caller, "there is no memory for its seals");
        return false;
    }
    cohi_tls_end(caller->tls);
    caller->tls = NULL;
    return true;
}

/* Nothing is sent behind a hello before it is answered, so no more than that is read. */
static void read_hello(cohi_endpoint *endpoint, cohi_tcp_caller *caller)
{
    size_t all = sizeof(cohi_tcp_hello) + (caller->seals.in ? COHI_SEAL_EXTRA_BYTES : 0), moved;
    struct iovec part = {.iov_base = caller->bytes + caller->got, .iov_len = all - caller->got};
    int error = cohi_tcp_socket_read(caller->fd, &part, 1, &moved);
    if (error == EAGAIN)
        return;
    if (error || moved == 0) { /* a rank whose call crossed this one's takes it back like that */
        if (caller->got > 0)
            complain(endpoint, caller, "it did not say who it is");
        hang_up(endpoint, caller);
        return;
    }
    caller->got += moved;
    if (caller->got == all)
        heed(endpoint, caller);
}

void cohi_tcp_caller_read(cohi_endpoint *endpoint, cohi_tcp_caller *caller)
{
    if (caller->fd >= 0 && (!endpoint->secured || secure(endpoint, caller)))
        read_hello(endpoint, caller);
}

/* A free place, or that of the caller who has been silent longest. */
static cohi_tcp_caller *make_place(cohi_endpoint *endpoint)
{
    cohi_tcp_caller *oldest = &endpoint->callers[0];
    for (int i = 0; i < COHI_TCP_CALLERS; i++) {
        cohi_tcp_caller *caller = &endpoint->callers[i];
        if (caller->fd < 0)
            return caller;
        if (caller->since_ns < oldest->since_ns)
            oldest = caller;
    }
    refuse(endpoint, oldest, "its place was needed");
    return oldest;
}

static void listen_again(cohi_endpoint *endpoint, bool listens)
{
    endpoint->deaf = !listens;
    for (int i = 0; i < COHI_TCP_PLACES; i++) {
        cohi_tcp_listener *listener = &endpoint->listeners[i];
        struct epoll_event event = {.events = listens ? EPOLLIN : 0, .data.ptr = listener};
        if (listener->fd >= 0)
            (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_MOD, listener->fd, &event);
    }
}

static int accept_one(cohi_endpoint *endpoint, const cohi_tcp_listener *listener)
{
    int fd, error = cohi_tcp_socket_accept(listener->fd, endpoint->link_timeout_ns, &fd);
    if (error)
        return error;
    cohi_tcp_caller *caller = make_place(endpoint);
    *caller = (cohi_tcp_caller){
        .source = COHI_TCP_SOURCE_CALLER, .fd = fd, .rank = -1, .since_ns = cohi_now_ns()};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = caller};
    (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, fd, &event);
    return 0;
}

/* Where no connection can be taken, for want of descriptors, that is tried again at the next tick. */
void cohi_tcp_callers_accept(cohi_endpoint *endpoint, cohi_tcp_listener *listener)
{
    int error = 0;
    for (int i = 0; i < COHI_TCP_CALLERS && !error; i++)
        error = accept_one(endpoint, listener);
    if (error && error != EAGAIN) {
        cohi_log(COH_LOG_WARN, "tcp: rank %d cannot take connections at the moment: %s",
                 endpoint->rank, cohi_os_error_text(error));
        listen_again(endpoint, false);
    }
}

void cohi_tcp_callers_tick(cohi_endpoint *endpoint, uint64_t now_ns)
{
    if (endpoint->deaf)
        listen_again(endpoint, true);
    for (int i = 0; i < COHI_TCP_CALLERS; i++) {
        cohi_tcp_caller *caller = &endpoint->callers[i];
        if (caller->fd >= 0 && now_ns - caller->since_ns > HELLO_NS)
            refuse(endpoint, caller, "it said nothing");
    }
}

void cohi_tcp_callers_close(cohi_endpoint *endpoint)
{
    for (int i = 0; i < COHI_TCP_CALLERS; i++) {
        cohi_tls_end(endpoint->callers[i].tls);
        cohi_seals_end(&endpoint->callers[i].seals);
        if (endpoint->callers[i].fd >= 0)
            cohi_os_close(endpoint->callers[i].fd);
    }
}
