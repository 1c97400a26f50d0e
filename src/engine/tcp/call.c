#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <errno.h>
#include <string.h>

/* How long one of several places may take to answer before the next is tried: for the connection,
 * which the other host's kernel makes, and for the handshake, which a busy rank makes late. */
#define CONNECT_NS COHI_NS_PER_S
#define PROVE_NS   (5 * COHI_NS_PER_S)

/* A rank at whose port nobody listens is called again for so long before that is told. Why it has
 * ended may be on its way, by another rank, and says more than that it has. */
#define ABSENT_NS (100 * COHI_NS_PER_MS)
#define AGAIN_NS  (20 * COHI_NS_PER_MS)

/* ---- calling ---- */

/* This process, or its host, is short of something; that says nothing of the other rank. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS
           || error == EADDRNOTAVAIL || cohi_os_refused(error);
}

/* Of what came of several places, what says most: that its host refuses; that it may still come. */
static int graver(int one, int other)
{
    static const int order[] = {ECONNREFUSED, ETIMEDOUT, ETIME, ECONNRESET, EPROTO};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (one == order[i] || other == order[i])
            return order[i];
    return other ? other : one;
}

static const cohi_tcp_place *place_of(const cohi_tcp_link *link)
{
    return &link->endpoint->addresses[link->rank].places[link->order[link->at]];
}

/* Calls the first place from `at` on that can be. */
static int call_from(cohi_tcp_link *link, int at)
{
    cohi_endpoint *endpoint = link->endpoint;
    for (link->at = at; link->at < link->places; link->at++) {
        int error = cohi_tcp_socket_call(place_of(link), &endpoint->congestion,
                                         endpoint->link_timeout_ns, &link->fd);
        if (!error) {
            link->state = COHI_TCP_CALLING;
            link->called_ns = cohi_now_ns();
            cohi_tcp_link_poll(link);
            return 0;
        }
        link->failed = graver(link->failed, error);
    }
    return link->failed;
}

static int call(cohi_tcp_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    link->failed = 0;
    link->places =
        cohi_tcp_places_order(&endpoint->own, &endpoint->addresses[link->rank], link->order);
    return link->places > 0 ? call_from(link, 0) : EHOSTUNREACH;
}

coh_status cohi_tcp_link_use(cohi_tcp_link *link)
{
    if (link->state == COHI_TCP_ENDED || link->peer_left)
        return cohi_tcp_refuse_gone(link->endpoint, link->rank);
    if (link->state != COHI_TCP_IDLE)
        return COH_OK;
    if (atomic_load(
            &link->endpoint->leaving)) /* it would not be told, and take the end for a loss */
        return cohi_fail(COH_TRANSPORT, "tcp: rank %d leaves, and does not call rank %d any more",
                         link->endpoint->rank, link->rank);
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

/* Once for a link, which may be called many times. */
static void complain(cohi_tcp_link *link, const char *wrong)
{
    char where[COHI_TCP_PLACE_TEXT];
    if (link->complained)
        return;
    link->complained = true;
    cohi_tcp_place_text(place_of(link), where);
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
    return cohi_tcp_stream_say(link->fd, link->stream.seals.out, &hello, sizeof hello);
}

/* 0 when the hello is sent; EAGAIN: the handshake goes on. */
static int secure(cohi_tcp_link *link)
{
    link->turn = cohi_tls_step(link->tls);
    if (link->turn == COHI_TLS_READS || link->turn == COHI_TLS_WRITES)
        return EAGAIN;
    bool proved = link->turn == COHI_TLS_DONE;
    bool sealed = proved && link->endpoint->seals;
    int error = !proved ? EPROTO
                : sealed && !cohi_tls_seals(link->tls, &link->endpoint->limits, &link->stream.seals)
                    ? ENOMEM
                    : 0;
    if (!proved && !cohi_tls_was_closed(link->tls))
        complain(link, cohi_tls_reason(link->tls));
    cohi_tls_end(link->tls);
    link->tls = NULL;
    return error ? error : greet(link);
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

static int send_welcome(const cohi_endpoint *endpoint, int fd, cohi_seal *seal,
                        cohi_tcp_reply reply)
{
    cohi_tcp_welcome welcome = {.reply = reply, .rank = endpoint->rank};
    memcpy(welcome.magic, cohi_tcp_magic, sizeof welcome.magic);
    if (!endpoint->secured)
        memcpy(welcome.key, endpoint->own.second_key, sizeof welcome.key);
    return cohi_tcp_stream_say(fd, seal, &welcome, sizeof welcome);
}

static void open_link(cohi_tcp_link *link)
{
    link->in.from = link->in.to = 0;
    link->in.patient = link->in.put_off = false;
    link->state = COHI_TCP_OPEN; /* last: a rank may look at it from now on */
    cohi_tcp_congestion_settle(&link->endpoint->congestion, link->fd,
                               cohi_tcp_socket_round_trip_us(link->fd));
    cohi_tcp_flush(link, NULL);
    cohi_tcp_link_poll(link);
}

/* Reads the answer to the hello: EAGAIN while it is not here whole; EPROTO: it is none. */
static int read_welcome(cohi_tcp_link *link, cohi_tcp_welcome *welcome)
{
    cohi_tcp_in *in = &link->in;
    cohi_seal *seal = link->stream.seals.in;
    size_t extra = seal ? COHI_SEAL_EXTRA_BYTES : 0, all = sizeof *welcome + extra, moved;
    struct iovec part = {.iov_base = in->bytes + in->to, .iov_len = all - in->to};
    int error = cohi_tcp_socket_read(link->fd, &part, 1, &moved);
    if (error || moved == 0)
        return error ? error : ECONNRESET;
    in->to += moved;
    if (in->to < all)
        return EAGAIN;
    in->to = 0;
    if (!seal)
        memcpy(welcome, in->bytes, sizeof *welcome);
    else if (!cohi_seal_open(seal, in->bytes, all, (unsigned char *)welcome))
        return EPROTO;
    const cohi_tcp_address *address = &link->endpoint->addresses[link->rank];
    bool known = link->endpoint->secured
                 || memcmp(welcome->key, address->second_key, sizeof welcome->key) == 0;
    return known && !cohi_tcp_check_welcome(welcome, link->rank) ? 0 : EPROTO;
}

/* The call came to nothing, but nobody refused it: the caller was one of too many, or the rank is
 * ending. The next call, at the next tick, tells; core knows how long to bear it. */
static void give_up_call(cohi_tcp_link *link)
{
    cohi_tcp_link_hang_up(link);
    link->in.to = 0;
    link->state = COHI_TCP_CALLING;
}

/* None of what waits here was sent, so nothing of it can be there twice. A call from here tells whether
 * the other side gave its own up, or is lost, or takes this rank for lost. */
bool cohi_tcp_link_forget(cohi_tcp_link *link)
{
    pthread_mutex_lock(&link->lock);
    bool forgets = link->state == COHI_TCP_OPEN && link->unconfirmed && !link->peer_left;
    if (forgets) {
        give_up_call(link);
        link->in.from = 0;
        link->unconfirmed = false;
        if (atomic_load(&link->endpoint->leaving) && !link->out.requests.first)
            link->state = COHI_TCP_IDLE;
    }
    pthread_mutex_unlock(&link->lock);
    return forgets;
}

/* Whether there is another place at which the rank may be, and it is being called. */
static bool call_next(cohi_tcp_link *link)
{
    if (link->fd < 0 || link->at + 1 >= link->places)
        return false;
    cohi_tcp_link_hang_up(link);
    link->in.to = 0;
    return call_from(link, link->at + 1) == 0;
}

/* Whether it is too early to say that nobody listens there. */
static bool bears_refusal(cohi_tcp_link *link)
{
    uint64_t now_ns = cohi_now_ns();
    if (!link->refused_ns)
        link->refused_ns = now_ns;
    if (now_ns - link->refused_ns >= ABSENT_NS)
        return false;
    link->endpoint->again_ns = now_ns + AGAIN_NS;
    return true;
}

cohi_tcp_end cohi_tcp_call_conclude(cohi_tcp_link *link, int error)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    if (error == EAGAIN || error == 0)
        return end;
    link->failed = graver(link->failed, error);
    if (call_next(link))
        return end;
    error = link->failed;
    if (error == ECONNRESET || error == EPIPE || error == EPROTO || error == ETIME
        || is_shortage(error) || (error == ECONNREFUSED && bears_refusal(link))) {
        give_up_call(link);
    } else if (error == ETIMEDOUT) {
        end.loss = COHI_LOSS_SILENT;
        end.detail = (int)(link->endpoint->link_timeout_ns / COHI_NS_PER_S);
    } else {
        end.loss = error == ECONNREFUSED ? COHI_LOSS_ABSENT : COHI_LOSS_LINK;
    }
    return end;
}

cohi_tcp_end cohi_tcp_call_tick(cohi_tcp_link *link)
{
    bool calling = link->state > COHI_TCP_IDLE && link->state < COHI_TCP_OPEN;
    uint64_t limit_ns = link->state == COHI_TCP_CALLING ? CONNECT_NS : PROVE_NS;
    int error = 0;
    if (link->state == COHI_TCP_CALLING && link->fd < 0)
        error = call(link);
    else if (calling && link->at + 1 < link->places && cohi_now_ns() - link->called_ns > limit_ns)
        error = ETIME;
    return cohi_tcp_call_conclude(link, error);
}

/* The called rank's answer, or none. */
static cohi_tcp_end heed_welcome(cohi_tcp_link *link)
{
    cohi_tcp_welcome welcome;
    int error = read_welcome(link, &welcome);
    if (error)
        return cohi_tcp_call_conclude(link, error);
    link->silent_ns = 0;
    link->unconfirmed = false;
    if (welcome.reply == COHI_TCP_REPLY_OPEN)
        open_link(link);
    else if (welcome.reply == COHI_TCP_REPLY_CROSSED)
        give_up_call(link);
    link->peer_left = welcome.reply == COHI_TCP_REPLY_LEFT;
    if (link->peer_left)
        cohi_tcp_excuse_leave(link);
    bool gone = link->peer_left || welcome.reply == COHI_TCP_REPLY_LOST;
    return (cohi_tcp_end){.loss = gone ? COHI_LOSS_LINK : (cohi_loss)0};
}

void cohi_tcp_link_advance(cohi_tcp_link *link)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    pthread_mutex_lock(&link->lock);
    if (link->state == COHI_TCP_CALLING && link->fd >= 0)
        end = cohi_tcp_call_conclude(link, take_up(link));
    else if (link->state == COHI_TCP_SECURING)
        end = cohi_tcp_call_conclude(link, secure(link));
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
    else if ((link->state == COHI_TCP_OPEN && !link->unconfirmed)
             || (calling && link->endpoint->rank < link->rank))
        *reply = COHI_TCP_REPLY_CROSSED;
    return *reply == COHI_TCP_REPLY_OPEN;
}

void cohi_tcp_link_adopt(cohi_endpoint *endpoint, int rank, int fd, cohi_seals *seals)
{
    cohi_tcp_link *link = cohi_tcp_link_make(endpoint, rank);
    cohi_tcp_reply reply;
    if (!link) {
        cohi_seals_end(seals);
        cohi_os_close(fd);
        return;
    }
    pthread_mutex_lock(&link->reading); /* nobody reads from the connection that is replaced */
    pthread_mutex_lock(&link->lock);
    bool accepted = accepts(link, &reply);
    bool sent = send_welcome(endpoint, fd, seals->out, reply) == 0;
    if (accepted && sent) {
        cohi_tcp_link_hang_up(link);
        link->stream.seals = *seals;
        *seals = (cohi_seals){.out = NULL};
        link->fd = fd;
        link->silent_ns = 0;
        link->unconfirmed = true;
        open_link(link);
    } else {
        cohi_os_close(fd);
    }
    cohi_seals_end(seals);
    pthread_mutex_unlock(&link->lock);
    pthread_mutex_unlock(&link->reading);
}
