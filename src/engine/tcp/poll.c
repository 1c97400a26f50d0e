/*
 * poll.c - a rank that waits reads its links itself: no thread has to be woken, and none takes its core.
 *
 * Links are in a set of their own, which is in the thread's. The first look of a rank takes it out; a
 * timer then lets the thread see whether ranks still look (engine/modules/aside.h). It puts the set back when
 * none did since it rang last, and so does a rank that is about to sleep. So what arrives for a rank that has
 * just ended its wait, and computes, is late by two periods at most. The timer goes on until nobody has looked for two
 * periods: to set it takes a rank up to 11 us in a virtual machine, which one that sleeps often would pay each time.
 */
#include "engine/tcp/tcp.h"
#include "engine/modules/aside.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/os.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Up to so many links are read without asking which. An empty read takes about as long as the question. */
enum { ASKED_ALL = 4, EVENTS = 16 };

/* ---- taking and giving back ---- */

static void heed_links(cohi_endpoint *endpoint, bool heeds)
{
    struct epoll_event event = {.events = heeds ? EPOLLIN : 0,
                                .data.ptr = &endpoint->poll.links_source};
    (void)epoll_ctl(endpoint->epoll, EPOLL_CTL_MOD, endpoint->links_epoll, &event);
}

/* 0: it rings no more. poll->lock held. */
static void set_timer(cohi_endpoint *endpoint, uint64_t period_ns)
{
    if (period_ns == endpoint->poll.period_ns)
        return;
    endpoint->poll.period_ns = period_ns;
    struct timespec period = {.tv_nsec = (long)period_ns};
    struct itimerspec setting = {.it_value = period, .it_interval = period};
    (void)timerfd_settime(endpoint->poll.timer, 0, &setting, NULL);
}

/*
 * While few links are read unasked the kernel need not tell of what comes, which takes it 0.2 us at each arrival. A link that
 * opens meanwhile either sees the new state (link.c) or is counted here. poll->lock held.
 */
static void read_unasked(cohi_endpoint *endpoint, bool unasked)
{
    if (atomic_exchange(&endpoint->poll.unasked, unasked) == unasked)
        return;
    int count = atomic_load(&endpoint->made_count);
    for (int i = 0; i < count; i++) {
        cohi_tcp_link *link = endpoint->made[i];
        pthread_mutex_lock(&link->lock);
        cohi_tcp_link_poll(link);
        pthread_mutex_unlock(&link->lock);
    }
}

/* The thread hears of what has come as soon as the set does. */
static void change_hands(cohi_endpoint *endpoint, bool taken)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    pthread_mutex_lock(&poll->lock);
    if (atomic_load(&poll->taken) != taken) {
        if (taken && poll->period_ns == 0)
            set_timer(endpoint, COHI_ASIDE_FIRST_NS);
        heed_links(endpoint, !taken);
        read_unasked(endpoint, taken && atomic_load(&endpoint->made_count) <= ASKED_ALL);
        atomic_store(&poll->served, 0);
        atomic_store(&poll->taken, taken);
    }
    pthread_mutex_unlock(&poll->lock);
}

static void ring_again(cohi_endpoint *endpoint, unsigned looks)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    pthread_mutex_lock(&poll->lock);
    bool taken = atomic_load(&poll->taken);
    set_timer(endpoint, taken || looks > 0 ? cohi_aside_next(poll->period_ns, looks) : 0);
    pthread_mutex_unlock(&poll->lock);
}

void cohi_tcp_poll_look(cohi_endpoint *endpoint)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    uint64_t ignored;
    unsigned calls = atomic_load_explicit(&poll->calls, memory_order_relaxed);
    if (read(poll->timer, &ignored, sizeof ignored) < 0)
        return;
    if (calls == poll->seen && atomic_load(&poll->taken))
        change_hands(endpoint, false);
    else
        ring_again(endpoint, calls - poll->seen);
    poll->seen = calls;
}

/* ---- looking ---- */

/* What is being called is the thread's. */
static bool is_called(cohi_tcp_state state)
{
    return state > COHI_TCP_IDLE && state < COHI_TCP_OPEN;
}

static cohi_tcp_state write_more(cohi_tcp_link *link)
{
    cohi_tcp_state state = atomic_load_explicit(&link->state, memory_order_acquire);
    if (!atomic_load_explicit(&link->out.armed, memory_order_relaxed))
        return state;
    pthread_mutex_lock(&link->lock);
    if (link->state == COHI_TCP_OPEN && link->out.armed)
        cohi_tcp_flush(link, NULL);
    pthread_mutex_unlock(&link->lock);
    return state;
}

/* Whether the link needs nobody else. */
static bool look_at(cohi_tcp_link *link)
{
    if (pthread_mutex_trylock(&link->reading) != 0)
        return true;
    cohi_tcp_state state = write_more(link);
    if (state == COHI_TCP_OPEN)
        cohi_tcp_receive(link, true);
    pthread_mutex_unlock(&link->reading);
    return !is_called(state);
}

static bool look_at_all(cohi_endpoint *endpoint, int count)
{
    bool enough = true;
    for (int i = 0; i < count; i++)
        enough = look_at(endpoint->made[i]) && enough;
    return enough;
}

static bool look_at_those_with_events(cohi_endpoint *endpoint)
{
    struct epoll_event events[EVENTS];
    bool enough = true;
    int count = epoll_wait(endpoint->links_epoll, events, EVENTS, 0);
    for (int i = 0; i < count; i++)
        enough = look_at(events[i].data.ptr) && enough;
    return enough;
}

/* Whether all links are open, or not needed. */
static bool all_settled(cohi_endpoint *endpoint, int count)
{
    bool settled = true;
    for (int i = 0; i < count && settled; i++) {
        cohi_tcp_link *link = endpoint->made[i];
        pthread_mutex_lock(&link->lock);
        settled = !is_called(link->state);
        pthread_mutex_unlock(&link->lock);
    }
    return settled;
}

/* Others may have called since the links were taken: of many, the set says which have something. */
static bool are_read_unasked(cohi_endpoint *endpoint, int count)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    bool unasked = atomic_load_explicit(&poll->unasked, memory_order_relaxed);
    if (!unasked || count <= ASKED_ALL)
        return unasked;
    pthread_mutex_lock(&poll->lock);
    read_unasked(endpoint, false);
    pthread_mutex_unlock(&poll->lock);
    return false;
}

static void look(cohi_endpoint *endpoint, int count)
{
    bool enough = are_read_unasked(endpoint, count) ? look_at_all(endpoint, count)
                                                    : look_at_those_with_events(endpoint);
    if (!enough)
        cohi_tcp_rest(endpoint);
    cohi_tcp_tell(endpoint);
}

void cohi_tcp_progress(cohi_endpoint *endpoint)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    if (count == 0 || poll->timer < 0)
        return;
    int held = cohi_cancel_hold();
    bool taken = atomic_load_explicit(&poll->taken, memory_order_relaxed);
    if (!taken && all_settled(endpoint, count)) {
        change_hands(endpoint, true);
        taken = true;
    }
    atomic_fetch_add_explicit(&poll->calls, 1, memory_order_relaxed);
    if (atomic_load_explicit(&poll->rests, memory_order_relaxed))
        atomic_store_explicit(&poll->rests, 0, memory_order_relaxed);
    if (taken)
        look(endpoint, count);
    cohi_cancel_release(held);
}

/* The thread has received a message, and what was expected last was looked for. */
static bool is_answer_near(cohi_tcp_poll *poll)
{
    unsigned calls = atomic_load_explicit(&poll->calls, memory_order_relaxed);
    return atomic_load_explicit(&poll->served, memory_order_relaxed)
           && !atomic_load_explicit(&poll->taken, memory_order_relaxed)
           && atomic_exchange_explicit(&poll->expected, calls, memory_order_relaxed) != calls;
}

/*
 * A rank that sends a message after the thread has received one for it is mostly about to wait for the next. If it did not
 * take the links before that comes, the thread would be woken, have it ready by the time the rank looks, and so stay
 * between them: the first five of a row of all_reduces of 1 KiB behind a pause took 15 us each instead of 6. A rank that
 * sends and never waits loses the links by this once.
 */
void cohi_tcp_poll_expect(cohi_endpoint *endpoint)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    if (poll->timer < 0 || pthread_equal(pthread_self(), endpoint->thread) || !is_answer_near(poll))
        return;
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    int held = cohi_cancel_hold();
    if (all_settled(endpoint, count))
        change_hands(endpoint, true);
    cohi_cancel_release(held);
}

bool cohi_tcp_rest(cohi_endpoint *endpoint)
{
    atomic_store_explicit(&endpoint->poll.rests, 1, memory_order_relaxed);
    if (atomic_load_explicit(&endpoint->poll.taken, memory_order_relaxed))
        change_hands(endpoint, false);
    return true;
}

/* ---- opening ---- */

static int add(cohi_endpoint *endpoint, int fd, void *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

int cohi_tcp_poll_open(cohi_endpoint *endpoint)
{
    cohi_tcp_poll *poll = &endpoint->poll;
    poll->links_source = COHI_TCP_SOURCE_LINKS;
    poll->timer_source = COHI_TCP_SOURCE_TIMER;
    endpoint->links_epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = endpoint->links_epoll < 0 ? errno : cohi_os_fd_above_stdio(&endpoint->links_epoll);
    if (!error)
        error = add(endpoint, endpoint->links_epoll, &poll->links_source);
    if (error)
        return error;
    poll->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    error = poll->timer < 0 ? errno : cohi_os_fd_above_stdio(&poll->timer);
    return error ? error : add(endpoint, poll->timer, &poll->timer_source);
}

void cohi_tcp_poll_close(cohi_endpoint *endpoint)
{
    cohi_os_close(endpoint->links_epoll);
    cohi_os_close(endpoint->poll.timer);
    pthread_mutex_destroy(&endpoint->poll.lock);
}
