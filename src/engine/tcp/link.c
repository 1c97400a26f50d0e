#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <ctype.h>
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
    cohi_tcp_stream_free(&link->stream);
    cohi_tcp_out_free(&link->out);
    pthread_mutex_destroy(&link->reading);
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
    link->traffic = endpoint->traffic ? &endpoint->traffic[rank] : &link->uncounted;
    link->fd = -1;
    pthread_mutex_init(&link->reading, NULL);
    pthread_mutex_init(&link->landing, NULL);
    pthread_mutex_init(&link->lock, NULL);
    link->counts = calloc(COHI_CONTEXTS_MAX, sizeof *link->counts);
    link->in.bytes = malloc(COHI_TCP_IN_BYTES);
    if (link->counts && link->in.bytes && cohi_tcp_stream_make(&link->stream, endpoint->seals))
        return link;
    cohi_tcp_link_free(link);
    return NULL;
}

cohi_tcp_link *cohi_tcp_link_make(cohi_endpoint *endpoint, int rank)
{
    pthread_mutex_lock(&endpoint->links_lock);
    cohi_tcp_link *link = cohi_tcp_link_find(endpoint, rank);
    if (!link && (link = new_link(endpoint, rank))) {
        int count = atomic_load_explicit(&endpoint->made_count, memory_order_relaxed);
        endpoint->made[count] = link;
        atomic_store(&endpoint->made_count, count + 1); /* before is_read_unasked: see poll.c */
        atomic_store_explicit(&endpoint->links[rank], link, memory_order_release);
    }
    pthread_mutex_unlock(&endpoint->links_lock);
    return link;
}

coh_status cohi_tcp_refuse_gone(const cohi_endpoint *endpoint, int rank)
{
    bool left = atomic_load(&endpoint->fates[rank]) == COHI_TCP_LEFT;
    return cohi_fail(COH_PEER_LOST, "tcp: rank %d %s", rank, left ? "has left" : "is lost");
}

coh_status cohi_tcp_link_to(cohi_endpoint *endpoint, int rank, cohi_tcp_link **link)
{
    if (atomic_load_explicit(&endpoint->fates[rank], memory_order_relaxed) != COHI_TCP_ALIVE)
        return cohi_tcp_refuse_gone(endpoint, rank);
    *link = cohi_tcp_link_find(endpoint, rank);
    if (!*link)
        *link = cohi_tcp_link_make(endpoint, rank);
    return *link ? COH_OK
                 : cohi_fail(COH_NO_MEMORY, "tcp: out of memory for the link to rank %d", rank);
}

/* ---- the thread's set ---- */

/* What the kernel tells of in any case: a descriptor of which nothing else is wanted stays in the set. */
enum { ALWAYS_TOLD = EPOLLERR | EPOLLHUP };

/* A link that ranks read without asking: telling the set of each arrival would cost those that send. */
static bool is_read_unasked(const cohi_tcp_link *link)
{
    return atomic_load(&link->endpoint->poll.unasked) && link->state == COHI_TCP_OPEN
           && !link->out.armed;
}

static uint32_t wanted_events(const cohi_tcp_link *link)
{
    if (link->fd < 0)
        return 0;
    if (is_read_unasked(link))
        return ALWAYS_TOLD;
    const cohi_tcp_state state = link->state; /* clang 14 does not switch by an atomic one */
    switch (state) {
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
    (void)epoll_ctl(link->endpoint->links_epoll, link->interest ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                    link->fd, &event);
    link->interest = wanted;
}

/* A forked child may have the descriptor too, so that closing it does not take it out of the set. */
void cohi_tcp_link_hang_up(cohi_tcp_link *link)
{
    cohi_tls_end(link->tls);
    link->tls = NULL;
    cohi_tcp_stream_reset(&link->stream);
    if (link->fd < 0)
        return;
    if (link->interest)
        (void)epoll_ctl(link->endpoint->links_epoll, EPOLL_CTL_DEL, link->fd, NULL);
    cohi_os_close(link->fd);
    link->fd = -1;
    link->interest = 0;
}

/* ---- ending ---- */

/* In the clear, at the end of a frame only: inside one it could not be told from its bytes. A record
 * of its own can. Lock held. */
static void say_goodbye(cohi_tcp_link *link, const char *reason)
{
    unsigned char bytes[sizeof(cohi_tcp_head) + COHI_TCP_REASON_BYTES];
    size_t length = strnlen(reason, COHI_TCP_REASON_BYTES);
    cohi_tcp_frame frame = {.head = {.verb = COHI_TCP_GOODBYE, .bytes = length}};
    bool sealed = link->stream.seals.out != NULL;
    if (link->state != COHI_TCP_OPEN || link->out.broken || (!sealed && link->out.written > 0))
        return;
    if (sealed) {
        cohi_tcp_stream_goodbye(link, reason, length);
    } else {
        size_t head = cohi_tcp_encode(&frame, bytes);
        memcpy(bytes + head, reason, length);
        (void)cohi_tcp_socket_write_whole(link->fd, bytes, head + length);
    }
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
    if (cohi_tcp_link_forget(link))
        return;
    uint64_t limit_s = link->endpoint->link_timeout_ns / COHI_NS_PER_S;
    cohi_tcp_end end = {.loss = COHI_LOSS_LINK};
    if (error == ETIMEDOUT)
        end = (cohi_tcp_end){.loss = COHI_LOSS_SILENT, .detail = (int)limit_s};
    if (!link->peer_left)
        cohi_log(COH_LOG_INFO, "tcp: rank %d: the link to rank %d broke: %s", link->endpoint->rank,
                 link->rank, error ? cohi_os_error_text(error) : "its end came without a farewell");
    cohi_tcp_link_end(link, end);
}

static void refuse(cohi_tcp_link *link, const char *reason)
{
    char where[COHI_TCP_PLACE_TEXT];
    pthread_mutex_lock(&link->lock);
    bool ended = link->state == COHI_TCP_ENDED;
    pthread_mutex_unlock(&link->lock);
    if (ended) /* by core: what comes after that has no meaning any more */
        return;
    cohi_tcp_socket_peer(link->fd, where); /* not closed while this thread reads */
    cohi_log(COH_LOG_ERROR, "tcp: rank %d ends the link to rank %d at %s: %s", link->endpoint->rank,
             link->rank, where, reason);
    cohi_tcp_link_end(link, (cohi_tcp_end){.loss = COHI_LOSS_LINK, .goodbye = reason});
}

void cohi_tcp_link_refuse(cohi_tcp_link *link, unsigned verb, const char *wrong)
{
    char reason[COHI_TCP_REASON_BYTES];
    snprintf(reason, sizeof reason, "a frame (%s) is wrong: %s", cohi_tcp_verb_name(verb), wrong);
    refuse(link, reason);
}

void cohi_tcp_link_refuse_record(cohi_tcp_link *link, const char *wrong)
{
    char reason[COHI_TCP_REASON_BYTES];
    snprintf(reason, sizeof reason, "sealed record %llu does not verify: %s",
             (unsigned long long)cohi_seal_count(link->stream.seals.in), wrong);
    refuse(link, reason);
}

void cohi_tcp_link_hear_goodbye(cohi_tcp_link *link, const unsigned char *text, size_t count)
{
    char reason[COHI_TCP_REASON_BYTES + 1], where[COHI_TCP_PLACE_TEXT];
    count = count < COHI_TCP_REASON_BYTES ? count : COHI_TCP_REASON_BYTES;
    for (size_t i = 0; i < count; i++)
        reason[i] = isprint(text[i]) ? (char)text[i] : '?';
    reason[count] = '\0';
    cohi_tcp_socket_peer(link->fd, where);
    cohi_log(COH_LOG_ERROR, "tcp: rank %d at %s ended the link to rank %d: %s", link->rank, where,
             link->endpoint->rank, reason);
    cohi_tcp_link_end(link, (cohi_tcp_end){.loss = COHI_LOSS_LINK});
}

void cohi_tcp_link_sweep(cohi_endpoint *endpoint)
{
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    uint64_t now_ns = cohi_now_ns();
    for (int i = 0; i < count; i++) {
        cohi_tcp_link *link = endpoint->made[i];
        cohi_tcp_end end = {.loss = (cohi_loss)0};
        bool alone = pthread_mutex_trylock(&link->reading) == 0; /* no rank reads from it */
        pthread_mutex_lock(&link->lock);
        if (link->state == COHI_TCP_ENDED && link->linger_ns <= now_ns && alone)
            cohi_tcp_link_hang_up(link);
        else if (link->state == COHI_TCP_CALLING && link->call_error)
            end = cohi_tcp_call_conclude(link, link->call_error);
        link->call_error = 0;
        pthread_mutex_unlock(&link->lock);
        if (alone)
            pthread_mutex_unlock(&link->reading);
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
            cohi_tcp_link_hang_up(link);
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

/* After how many ticks without a word core is told: two keepalives did not come. */
enum { SILENT_TICKS = 4 };

static void keep_alive(cohi_tcp_link *link)
{
    cohi_tcp_request *request = link->out.spoke || link->out.armed || link->unconfirmed
                                    ? NULL
                                    : cohi_tcp_request_new(link, COHI_TCP_KEEPALIVE);
    if (request)
        cohi_tcp_request_submit(link, request, NULL);
    link->out.spoke = false;
}

void cohi_tcp_link_call_again(cohi_tcp_link *link)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    pthread_mutex_lock(&link->lock);
    if (link->state == COHI_TCP_CALLING)
        end = cohi_tcp_call_tick(link);
    pthread_mutex_unlock(&link->lock);
    if (end.loss)
        cohi_tcp_link_end(link, end);
}

/* A process that is stopped does not read: what its host takes for it must not run into the limit,
 * by which a link breaks whose host does not answer. Lock held. */
static void judge_silence(cohi_tcp_link *link, uint64_t passed_ns)
{
    cohi_endpoint *endpoint = link->endpoint;
    bool acknowledged =
        link->fd >= 0
        && cohi_tcp_socket_is_acknowledged(link->fd, 2 * endpoint->tick_ns, &link->acknowledged);
    link->silent_ns += passed_ns;
    link->host_silent_ns = acknowledged ? 0 : link->host_silent_ns + passed_ns;
    bool mute = acknowledged && link->silent_ns >= SILENT_TICKS * endpoint->tick_ns;
    if ((mute || link->mute) && link->fd >= 0)
        cohi_tcp_socket_limit(link->fd, mute ? 0 : endpoint->link_timeout_ns);
    link->mute = mute;
}

static void tell_silence(cohi_tcp_link *link, bool mute, uint64_t silent_ns)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (mute)
        endpoint->upcalls->mute(endpoint->world, link->rank);
    else if (silent_ns >= SILENT_TICKS * endpoint->tick_ns)
        endpoint->upcalls->silent(endpoint->world, link->rank, silent_ns);
}

void cohi_tcp_link_tick(cohi_tcp_link *link, uint64_t passed_ns)
{
    cohi_tcp_end end = {.loss = (cohi_loss)0};
    pthread_mutex_lock(&link->lock);
    bool watched = link->state != COHI_TCP_IDLE && link->state != COHI_TCP_ENDED;
    if (link->state == COHI_TCP_OPEN)
        keep_alive(link);
    else
        end = cohi_tcp_call_tick(link);
    if (watched)
        judge_silence(link, passed_ns);
    bool mute = link->mute;
    uint64_t silent_ns = link->silent_ns, host_ns = link->host_silent_ns;
    pthread_mutex_unlock(&link->lock);
    if (end.loss)
        cohi_tcp_link_end(link, end);
    else if (watched && !link->peer_left)
        tell_silence(link, mute, silent_ns < host_ns ? silent_ns : host_ns);
}
