#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* How long the other side has to read why a link ended. */
#define LINGER_NS COHI_NS_PER_S

/* ---- making and finding ---- */

cohi_tcp_link *cohi_tcp_link_find(cohi_endpoint *endpoint, int rank)
{
    return atomic_load_explicit(&endpoint->links[rank], memory_order_acquire);
}

void cohi_tcp_link_free(cohi_tcp_link *link)
{
    if (!link)
        return;
    if (link->fd >= 0)
        cohi_os_close(link->fd);
    cohi_tls_end(link->tls);
    cohi_tcp_out_free(&link->out);
    pthread_mutex_destroy(&link->landing);
    pthread_mutex_destroy(&link->lock);
    free(link->counts);
    free(link->in.bytes);
    free(link->in.message);
    free(link);
}

static cohi_tcp_link *new_link(cohi_endpoint *endpoint, int rank)
{
    cohi_tcp_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->source = COHI_TCP_SOURCE_LINK;
    link->endpoint = endpoint;
    link->rank = rank;
    link->fd = -1;
    pthread_mutex_init(&link->landing, NULL);
    pthread_mutex_init(&link->lock, NULL);
    link->counts = calloc(COHI_CONTEXTS_MAX, sizeof *link->counts);
    link->in.bytes = malloc(COHI_TCP_IN_BYTES);
    if (link->counts && link->in.bytes)
        return link;
    cohi_tcp_link_free(link);
    return NULL;
}

static cohi_tcp_link *make_link(cohi_endpoint *endpoint, int rank)
{
    pthread_mutex_lock(&endpoint->links_lock);
    cohi_tcp_link *link = cohi_tcp_link_find(endpoint, rank);
    if (!link && (link = new_link(endpoint, rank))) {
        int count = atomic_load_explicit(&endpoint->made_count, memory_order_relaxed);
        endpoint->made[count] = link;
        atomic_store_explicit(&endpoint->made_count, count + 1, memory_order_release);
        atomic_store_explicit(&endpoint->links[rank], link, memory_order_release);
    }
    pthread_mutex_unlock(&endpoint->links_lock);
    return link;
}

static coh_status refuse_gone(const cohi_endpoint *endpoint, int rank)
{
    bool left = atomic_load(&endpoint->fates[rank]) == COHI_TCP_LEFT;
    return cohi_fail(COH_PEER_LOST, "tcp: rank %d %s", rank, left ? "has left" : "is lost");
}

coh_status cohi_tcp_link_to(cohi_endpoint *endpoint, int rank, cohi_tcp_link **link)
{
    if (atomic_load_explicit(&endpoint->fates[rank], memory_order_relaxed) != COHI_TCP_ALIVE)
        return refuse_gone(endpoint, rank);
    *link = cohi_tcp_link_find(endpoint, rank);
    if (!*link)
        *link = make_link(endpoint, rank);
    return *link ? COH_OK
                 : cohi_fail(COH_NO_MEMORY, "tcp: out of memory for the link to rank %d", rank);
}

/* ---- the thread's set ---- */

static uint32_t wanted_events(const cohi_tcp_link *link)
{
    if (link->fd < 0)
        return 0;
    switch (link->state) {
    case COHI_TCP_CALLING:
        return EPOLLOUT;
    case COHI_TCP_SECURING:
        return link->turn == COHI_TLS_WRITES ? EPOLLOUT : EPOLLIN;
    case COHI_TCP_OPEN:
        return link->out.armed ? EPOLLIN | EPOLLOUT : EPOLLIN;
    case COHI_TCP_IDLE:
    case COHI_TCP_GREETING:
    case COHI_TCP_ENDED:
        break;
    }
    return EPOLLIN;
}

void cohi_tcp_link_poll(cohi_tcp_link *link)
{
    uint32_t wanted = wanted_events(link);
    if (wanted == link->interest)
        return;
    struct epoll_event event = {.events = wanted, .data.ptr = link};
    (void)epoll_ctl(link->endpoint->epoll, link->interest ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, link->fd,
                    &event);
    link->interest = wanted;
}

/* A forked child may have the descriptor too, so that closing it does not take it out of the set. */
static void close_socket(cohi_tcp_link *link)
{
    cohi_tls_end(link->tls);
    link->tls = NULL;
    if (link->fd < 0)
        return;
    if (link->interest)
        (void)epoll_ctl(link->endpoint->epoll, EPOLL_CTL_DEL, link->fd, NULL);
    cohi_os_close(link->fd);
    link->fd = -1;
    link->interest = 0;
}

/* ---- calling ---- */

/* This process, or its host, is short of something; that says nothing of the other rank. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS
           || error == EADDRNOTAVAIL || cohi_os_refused(error);
}

static int call(cohi_tcp_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    int error = cohi_tcp_socket_call(&endpoint->addresses[link->rank].place,
                                     endpoint->link_timeout_ns, &link->fd);
    if (error)
        return error;
    link->state = COHI_TCP_CALLING;
    cohi_tcp_link_poll(link);
    return 0;
}

coh_status cohi_tcp_link_use(cohi_tcp_link *link)
{
    if (link->state == COHI_TCP_ENDED || link->peer_left)
        return refuse_gone(link->endpoint, link->rank);
    if (link->state != COHI_TCP_IDLE)
        return COH_OK;
    int error = call(link);
    if (is_shortage(error))
        return cohi_fail_os(error, "tcp: rank %d cannot be called", link->rank);
    if (error) { /* an upcall follows, which is not to be made from here */
        link->state = COHI_TCP_CALLING;
        link->call_error = error;
        atomic_store(&link->endpoint->sweep, 1);
        cohi_tcp_thread_wake(link->endpoint);
    }
    return COH_OK;
}

static int send_whole(int fd, const void *bytes, size_t count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    size_t moved;
    int error = cohi_tcp_socket_write(fd, &part, 1, &moved);
    return error ? error : moved == count ? 0 : EIO; /* a new socket takes that much */
}

/* Once for a link: a caller that was one of too many is hung up on, and calls again. */
static void complain(cohi_tcp_link *link, const char *wrong)
{
    char where[COHI_TCP_PLACE_TEXT];
    if (link->complained)
        return;
    link->complained = true;
    cohi_tcp_place_text(&link->endpoint->addresses[link->rank].place, where);
    cohi_log(COH_LOG_WARN, "tcp: rank %d: a call to rank %d at %s failed: %s", link->endpoint->rank,
             link->rank, where, wrong);
}

static int begin_handshake(cohi_tcp_link *link)
{
    link->state = COHI_TCP_SECURING;
    link->turn = COHI_TLS_WRITES;
    return cohi_tls_call(&link->endpoint->self, link->fd, link->rank, &link->tls) == COH_OK
               ? 0
               : ENOMEM;
}

static int greet(cohi_tcp_link *link)
{
    const cohi_endpoint *endpoint = link->endpoint;
    cohi_tcp_hello hello = {.version = COHI_TCP_VERSION,
                            .order_mark = COHI_TCP_ORDER_MARK,
                            .from = endpoint->rank,
                            .to = link->rank,
                            .size = endpoint->size};
    memcpy(hello.magic, cohi_tcp_magic, sizeof hello.magic);
    if (!endpoint->secured) {
        memcpy(hello.to_key, endpoint->addresses[link->rank].first_key, sizeof hello.to_key);
        memcpy(hello.from_key, endpoint->own.second_key, sizeof hello.from_key);
    }
    link->state = COHI_TCP_GREETING;
    return send_whole(link->fd, &hello, sizeof hello);
}

/* 0 when the hello is sent; EAGAIN: the handshake goes on. */
static int secure(cohi_tcp_link *link)
{
    link->turn = cohi_tls_step(link->tls);
    if (link->turn == COHI_TLS_READS || link->turn == COHI_TLS_WRITES)
        return EAGAIN;
    bool proved = link->turn == COHI_TLS_DONE;
    if (!proved)
        complain(link, cohi_tls_reason(link->tls));
    cohi_tls_end(link->tls);
    link->tls = NULL;
    return proved ? greet(link) : EPROTO;
}

/* The call has been taken, or not. */
static int take_up(cohi_tcp_link *link)
{
    int error = cohi_tcp_socket_error(link->fd);
    if (error || !link->endpoint->secured)
        return error ? error : greet(link);
    error = begin_handshake(link);
    return error ? error : secure(link);
}

static int send_welcome(const cohi_endpoint *endpoint, int fd, cohi_tcp_reply reply)
{
    cohi_tcp_welcome welcome = {.reply = reply, .rank = endpoint->rank};
    memcpy(welcome.magic, cohi_tcp_magic, sizeof welcome.magic);
    if (!endpoint->secured)
        memcpy(welcome.key, endpoint->own.second_key, sizeof welcome.key);
    return send_whole(fd, &welcome, sizeof welcome);
}

static void open_link(cohi_tcp_link *link)
{
    link->state = COHI_TCP_OPEN;
    link->in.from = link->in.to = 0;
    cohi_tcp_flush(link, NULL);
    cohi_tcp_link_poll(link);
}

/* Reads the answer to the hello: EAGAIN while it is not here whole; EPROTO: it is none. */
static int read_welcome(cohi_tcp_link *link, cohi_tcp_welcome *welcome)
{
    cohi_tcp_in *in = &link->in;
    struct iovec part = {.iov_base = in->bytes + in->to, .iov_len = sizeof *welcome - in->to};
    size_t moved;
    int error = cohi_tcp_socket_read(link->fd, &part, 1, &moved);
    if (error || moved == 0)
        return error ? error : ECONNRESET;
    in->to += moved;
    if (in->to < sizeof *welcome)
        return EAGAIN;
    memcpy(welcome, in->bytes, sizeof *welcome);
    in->to = 0;
    const cohi_tcp_address *address = &link->endpoint->addresses[link->rank];
    bool known = link->endpoint->secured
                 || memcmp(welcome->key, address->second_key, sizeof welcome->key) == 0;
    return known && !cohi_tcp_check_welcome(welcome, link->rank) ? 0 : EPROTO;
}

/* The call came to nothing, but nobody refused it: the caller was one of too many, or the rank is
 * ending. The next call, at the next tick, tells; core knows how long to bear it. */
static void give_up_call(cohi_tcp_link *link)
{
    close_socket(link);
    link->in.to = 0;
    link->state = COHI_TCP_CALLING;
}

/* What became of a step of the call. Lock held; returns what the link ends with, if it does. */
static cohi_tcp_end conclude_step(cohi_tcp_link *link, int error)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    if (error == EAGAIN)
        return end;
    if (error == ECONNRESET || error == EPIPE || error == EPROTO || is_shortage(error)) {
        give_up_call(link);
    } else if (error == ETIMEDOUT) {
        end.loss = COHI_LOSS_SILENT;
        end.detail = (int)(link->endpoint->link_timeout_ns / COHI_NS_PER_S);
    } else if (error) {
        end.loss = error == ECONNREFUSED ? COHI_LOSS_ABSENT : COHI_LOSS_LINK;
    }
    return end;
}

/* The called rank's answer, or none. */
static cohi_tcp_end heed_welcome(cohi_tcp_link *link)
{
    cohi_tcp_welcome welcome;
    int error = read_welcome(link, &welcome);
    if (error)
        return conclude_step(link, error);
    link->silent_ns = 0;
    if (welcome.reply == COHI_TCP_REPLY_OPEN)
        open_link(link);
    else if (welcome.reply == COHI_TCP_REPLY_CROSSED)
        give_up_call(link);
    link->peer_left = welcome.reply == COHI_TCP_REPLY_LEFT;
    bool gone = link->peer_left || welcome.reply == COHI_TCP_REPLY_LOST;
    return (cohi_tcp_end){.loss = gone ? COHI_LOSS_LINK : (cohi_loss)0};
}

void cohi_tcp_link_advance(cohi_tcp_link *link)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    pthread_mutex_lock(&link->lock);
    if (link->state == COHI_TCP_CALLING && link->fd >= 0)
        end = conclude_step(link, take_up(link));
    else if (link->state == COHI_TCP_SECURING)
        end = conclude_step(link, secure(link));
    else if (link->state == COHI_TCP_GREETING)
        end = heed_welcome(link);
    bool left = link->peer_left;
    cohi_tcp_link_poll(link);
    pthread_mutex_unlock(&link->lock);
    if (left)
        link->endpoint->upcalls->left(link->endpoint->world, link->rank);
    if (end.loss)
        cohi_tcp_link_end(link, end);
}

/* ---- being called ---- */

/* Whether the caller's connection is to be the link, and what it is told. Lock held. */
static bool accepts(const cohi_tcp_link *link, cohi_tcp_reply *reply)
{
    bool calling = link->fd >= 0 && link->state > COHI_TCP_IDLE && link->state < COHI_TCP_OPEN;
    *reply = COHI_TCP_REPLY_OPEN;
    if (atomic_load(&link->endpoint->leaving) && link->state == COHI_TCP_IDLE) {
        *reply = COHI_TCP_REPLY_LEFT;
        return false;
    }
    if (atomic_load(&link->endpoint->fates[link->rank]) != COHI_TCP_ALIVE)
        *reply = COHI_TCP_REPLY_LOST;
    else if (link->state == COHI_TCP_OPEN || (calling && link->endpoint->rank < link->rank))
        *reply = COHI_TCP_REPLY_CROSSED;
    return *reply == COHI_TCP_REPLY_OPEN;
}

void cohi_tcp_link_adopt(cohi_endpoint *endpoint, int rank, int fd)
{
    cohi_tcp_link *link = make_link(endpoint, rank);
    cohi_tcp_reply reply;
    if (!link) {
        cohi_os_close(fd);
        return;
    }
    pthread_mutex_lock(&link->lock);
    bool accepted = accepts(link, &reply);
    bool sent = send_welcome(endpoint, fd, reply) == 0;
    if (accepted && sent) {
        close_socket(link);
        link->fd = fd;
        link->silent_ns = 0;
        open_link(link);
    } else {
        cohi_os_close(fd);
    }
    pthread_mutex_unlock(&link->lock);
}

/* ---- ending ---- */

/* At the end of a frame only: inside one it could not be told from its bytes. Lock held. */
static void say_goodbye(cohi_tcp_link *link, const char *reason)
{
    unsigned char bytes[sizeof(cohi_tcp_head) + COHI_TCP_REASON_BYTES];
    size_t length = strnlen(reason, COHI_TCP_REASON_BYTES);
    cohi_tcp_frame frame = {.head = {.verb = COHI_TCP_GOODBYE, .bytes = length}};
    if (link->state != COHI_TCP_OPEN || link->out.written > 0 || link->out.broken)
        return;
    size_t head = cohi_tcp_encode(&frame, bytes);
    memcpy(bytes + head, reason, length);
    (void)send_whole(link->fd, bytes, head + length);
    cohi_tcp_socket_end_output(link->fd);
    link->linger_ns = cohi_now_ns() + LINGER_NS;
}

void cohi_tcp_link_end(cohi_tcp_link *link, cohi_tcp_end end)
{
    cohi_endpoint *endpoint = link->endpoint;
    pthread_mutex_lock(&link->landing);
    pthread_mutex_lock(&link->lock);
    bool ended = link->state == COHI_TCP_ENDED, left = link->peer_left;
    if (!ended) {
        if (end.goodbye)
            say_goodbye(link, end.goodbye);
        if (link->fd >= 0 && !link->linger_ns)
            cohi_tcp_socket_end(link->fd);
        link->state = COHI_TCP_ENDED;
        atomic_store(&endpoint->fates[link->rank], left ? COHI_TCP_LEFT : COHI_TCP_LOST);
        cohi_tcp_drop_all(link);
        cohi_tcp_link_poll(link);
    }
    pthread_mutex_unlock(&link->lock);
    pthread_mutex_unlock(&link->landing);
    if (ended)
        return;
    atomic_store(&endpoint->sweep, 1);
    cohi_tcp_thread_wake(endpoint);
    if (end.loss && !left)
        endpoint->upcalls->lost(endpoint->world, link->rank, end.loss, end.detail);
    cohi_tcp_tell(endpoint);
}

void cohi_tcp_link_broke(cohi_tcp_link *link, int error)
{
    uint64_t limit_s = link->endpoint->link_timeout_ns / COHI_NS_PER_S;
    cohi_tcp_end end = {.loss = COHI_LOSS_LINK};
    if (error == ETIMEDOUT)
        end = (cohi_tcp_end){.loss = COHI_LOSS_SILENT, .detail = (int)limit_s};
    if (error && !link->peer_left)
        cohi_log(COH_LOG_INFO, "tcp: rank %d: the link to rank %d broke: %s", link->endpoint->rank,
                 link->rank, cohi_os_error_text(error));
    cohi_tcp_link_end(link, end);
}

void cohi_tcp_link_refuse(cohi_tcp_link *link, unsigned verb, const char *wrong)
{
    char reason[COHI_TCP_REASON_BYTES];
    pthread_mutex_lock(&link->lock);
    bool ended = link->state == COHI_TCP_ENDED;
    pthread_mutex_unlock(&link->lock);
    if (ended) /* by core: what comes after that has no meaning any more */
        return;
    snprintf(reason, sizeof reason, "a frame (%s) is wrong: %s", cohi_tcp_verb_name(verb), wrong);
    cohi_log(COH_LOG_ERROR, "tcp: rank %d ends the link to rank %d: %s", link->endpoint->rank,
             link->rank, reason);
    cohi_tcp_link_end(link, (cohi_tcp_end){.loss = COHI_LOSS_LINK, .goodbye = reason});
}

void cohi_tcp_link_sweep(cohi_endpoint *endpoint)
{
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    uint64_t now_ns = cohi_now_ns();
    for (int i = 0; i < count; i++) {
        cohi_tcp_link *link = endpoint->made[i];
        cohi_tcp_end end = {.loss = (cohi_loss)0};
        pthread_mutex_lock(&link->lock);
        if (link->state == COHI_TCP_ENDED && link->linger_ns <= now_ns)
            close_socket(link);
        else if (link->state == COHI_TCP_CALLING && link->call_error)
            end = conclude_step(link, link->call_error);
        link->call_error = 0;
        pthread_mutex_unlock(&link->lock);
        if (end.loss)
            cohi_tcp_link_end(link, end);
    }
}

bool cohi_tcp_link_drain(cohi_tcp_link *link)
{
    struct iovec part = {.iov_base = link->in.bytes, .iov_len = COHI_TCP_IN_BYTES};
    size_t moved;
    pthread_mutex_lock(&link->lock);
    bool ended = link->state == COHI_TCP_ENDED;
    if (ended && link->fd >= 0) {
        int error = cohi_tcp_socket_read(link->fd, &part, 1, &moved);
        if (error ? error != EAGAIN : moved == 0)
            close_socket(link);
    }
    pthread_mutex_unlock(&link->lock);
    return ended;
}

void cohi_tcp_link_lose(cohi_endpoint *endpoint, int rank)
{
    unsigned char alive = COHI_TCP_ALIVE;
    cohi_tcp_link *link = cohi_tcp_link_find(endpoint, rank);
    (void)atomic_compare_exchange_strong(&endpoint->fates[rank], &alive, COHI_TCP_LOST);
    if (link)
        cohi_tcp_link_end(link, (cohi_tcp_end){.loss = (cohi_loss)0});
}

/* ---- now and then ---- */

static void keep_alive(cohi_tcp_link *link)
{
    cohi_tcp_request *request =
        link->out.spoke || link->out.armed ? NULL : cohi_tcp_request_new(link, COHI_TCP_KEEPALIVE);
    if (request)
        cohi_tcp_request_submit(link, request, NULL);
    link->out.spoke = false;
}

void cohi_tcp_link_tick(cohi_tcp_link *link, uint64_t passed_ns)
{
    cohi_endpoint *endpoint = link->endpoint;
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    pthread_mutex_lock(&link->lock);
    bool watched = link->state != COHI_TCP_IDLE && link->state != COHI_TCP_ENDED;
    if (link->state == COHI_TCP_CALLING && link->fd < 0)
        end = conclude_step(link, call(link));
    else if (link->state == COHI_TCP_OPEN)
        keep_alive(link);
    if (watched)
        link->silent_ns += passed_ns;
    uint64_t silent_ns = link->silent_ns;
    pthread_mutex_unlock(&link->lock);
    if (end.loss)
        cohi_tcp_link_end(link, end);
    else if (watched && silent_ns >= 4 * endpoint->tick_ns && !link->peer_left)
        endpoint->upcalls->silent(endpoint->world, link->rank, silent_ns);
}
