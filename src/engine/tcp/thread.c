#include "engine/tcp/tcp.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS = 64 };

/* The longest that the time between two ticks counts, in ticks: more means that this process itself
 * was not running, and what the others did meanwhile is still in the sockets. */
enum { TICK_COUNTS = 2 };

/*
 * Behind what came for a rank that sleeps the thread looks on for a while: the rank has left its core, and of the next frame,
 * which often comes within some microseconds, the thread would learn by being woken. Puts of 8 bytes, each completed, between
 * two network namespaces: 40 us each, 25 with a look of 30 us. Where nothing follows in that time, most looks are
 * skipped.
 */
#define LOOK_ON_NS (30 * COHI_NS_PER_US)
enum { SKIPS = 16 };

void cohi_tcp_thread_wake(cohi_endpoint *endpoint)
{
    uint64_t one = 1;
    int held = cohi_cancel_hold();
    if (endpoint->wake >= 0 && write(endpoint->wake, &one, sizeof one) < 0)
        errno = 0; /* the counter is full: the thread is awake as it is */
    cohi_cancel_release(held);
}

/* ---- events ---- */

static void on_wake(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    uint64_t ignored;
    (void)source;
    (void)events;
    if (read(endpoint->wake, &ignored, sizeof ignored) < 0)
        return;
}

static void on_listener(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    (void)events;
    cohi_tcp_callers_accept(endpoint, source);
}

static void on_caller(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    (void)events;
    cohi_tcp_caller_read(endpoint, source);
}

static void write_more(cohi_tcp_link *link)
{
    pthread_mutex_lock(&link->lock);
    cohi_tcp_flush(link, NULL);
    pthread_mutex_unlock(&link->lock);
    cohi_tcp_tell(link->endpoint);
}

static cohi_tcp_state state_of(cohi_tcp_link *link)
{
    pthread_mutex_lock(&link->lock);
    cohi_tcp_state state = link->fd >= 0 ? link->state : COHI_TCP_IDLE;
    pthread_mutex_unlock(&link->lock);
    return state;
}

static void serve_link(cohi_tcp_link *link, uint32_t events)
{
    switch (state_of(link)) {
    case COHI_TCP_CALLING:
    case COHI_TCP_SECURING:
    case COHI_TCP_GREETING:
        cohi_tcp_link_advance(link);
        break;
    case COHI_TCP_OPEN:
        if (events & EPOLLOUT)
            write_more(link);
        if (events & ~(uint32_t)EPOLLOUT)
            cohi_tcp_receive(link, false);
        break;
    case COHI_TCP_ENDED:
        cohi_tcp_link_drain(link);
        break;
    case COHI_TCP_IDLE: /* the event is older than the state */
        break;
    }
}

static void on_link(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    cohi_tcp_link *link = source;
    (void)endpoint;
    pthread_mutex_lock(&link->reading);
    serve_link(link, events);
    pthread_mutex_unlock(&link->reading);
}

static void on_links(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    struct epoll_event of_links[EVENTS];
    (void)source;
    (void)events;
    int count = epoll_wait(endpoint->links_epoll, of_links, EVENTS, 0);
    for (int i = 0; i < count; i++)
        on_link(endpoint, of_links[i].data.ptr, of_links[i].events);
}

static void on_timer(cohi_endpoint *endpoint, void *source, uint32_t events)
{
    (void)source;
    (void)events;
    cohi_tcp_poll_look(endpoint);
}

typedef void on_event(cohi_endpoint *endpoint, void *source, uint32_t events);

static on_event *const by_source[COHI_TCP_SOURCES] = {
    [COHI_TCP_SOURCE_WAKE] = on_wake,     [COHI_TCP_SOURCE_LISTENER] = on_listener,
    [COHI_TCP_SOURCE_CALLER] = on_caller, [COHI_TCP_SOURCE_LINK] = on_link,
    [COHI_TCP_SOURCE_LINKS] = on_links,   [COHI_TCP_SOURCE_TIMER] = on_timer,
};

/* ---- time ---- */

static void tick(cohi_endpoint *endpoint, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - endpoint->last_tick_ns, most_ns = TICK_COUNTS * endpoint->tick_ns;
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    endpoint->last_tick_ns = now_ns;
    cohi_tcp_callers_tick(endpoint, now_ns);
    for (int i = 0; i < count; i++)
        cohi_tcp_link_tick(endpoint->made[i], passed_ns < most_ns ? passed_ns : most_ns);
    atomic_store(&endpoint->sweep, 1);
}

static void call_again(cohi_endpoint *endpoint, uint64_t now_ns)
{
    int count = atomic_load_explicit(&endpoint->made_count, memory_order_acquire);
    if (!endpoint->again_ns || now_ns < endpoint->again_ns)
        return;
    endpoint->again_ns = 0;
    for (int i = 0; i < count; i++)
        cohi_tcp_link_call_again(endpoint->made[i]);
}

static int time_left_ms(const cohi_endpoint *endpoint)
{
    uint64_t now_ns = cohi_now_ns(), due_ns = endpoint->last_tick_ns + endpoint->tick_ns;
    uint64_t again_ns = endpoint->again_ns;
    due_ns = again_ns && again_ns < due_ns ? again_ns : due_ns;
    return now_ns >= due_ns ? 0 : (int)((due_ns - now_ns) / COHI_NS_PER_MS + 1);
}

/* ---- looking on ---- */

static void begin_to_look_on(cohi_endpoint *endpoint, uint64_t now_ns)
{
    if (!atomic_load_explicit(&endpoint->poll.rests, memory_order_relaxed))
        return;
    if (endpoint->skips > 0)
        endpoint->skips--;
    else
        endpoint->looks_until_ns = now_ns + LOOK_ON_NS;
}

/* For how long the thread may sleep. A rank that has begun to look itself may need this core. */
static int sleep_ms(cohi_endpoint *endpoint)
{
    bool looks_on = endpoint->looks_until_ns > 0;
    bool alone = atomic_load_explicit(&endpoint->poll.rests, memory_order_relaxed);
    if (looks_on && alone && cohi_now_ns() < endpoint->looks_until_ns)
        return 0;
    if (looks_on && alone)
        endpoint->skips = SKIPS;
    endpoint->looks_until_ns = 0;
    return time_left_ms(endpoint);
}

/* ---- the thread ---- */

/* The rank may be computing, while others wait for its part of a message. */
static void attend(cohi_endpoint *endpoint)
{
    if (!atomic_load_explicit(&endpoint->attends, memory_order_relaxed))
        return;
    atomic_store_explicit(&endpoint->attends, 0, memory_order_relaxed);
    endpoint->upcalls->attend(endpoint->world);
}

/* What has come is read before silence is judged. */
static void turn(cohi_endpoint *endpoint)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(endpoint->epoll, events, EVENTS, sleep_ms(endpoint));
    for (int i = 0; i < count; i++) {
        cohi_tcp_source *source = events[i].data.ptr;
        by_source[*source](endpoint, source, events[i].events);
    }
    uint64_t now_ns = cohi_now_ns();
    if (count > 0)
        begin_to_look_on(endpoint, now_ns);
    if (now_ns - endpoint->last_tick_ns >= endpoint->tick_ns)
        tick(endpoint, now_ns);
    call_again(endpoint, now_ns);
    if (atomic_exchange(&endpoint->sweep, 0))
        cohi_tcp_link_sweep(endpoint);
    attend(endpoint);
    cohi_tcp_tell(endpoint);
}

static void *serve(void *arg)
{
    cohi_endpoint *endpoint = arg;
    cohi_os_thread_serves(true);
    while (!atomic_load_explicit(&endpoint->stopping, memory_order_acquire))
        turn(endpoint);
    cohi_os_thread_serves(false);
    return NULL;
}

static int add(cohi_endpoint *endpoint, int fd, void *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(endpoint->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

static int open_descriptors(cohi_endpoint *endpoint)
{
    endpoint->epoll = epoll_create1(EPOLL_CLOEXEC);
    int error = endpoint->epoll < 0 ? errno : cohi_os_fd_above_stdio(&endpoint->epoll);
    if (error)
        return error;
    endpoint->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = endpoint->wake < 0 ? errno : cohi_os_fd_above_stdio(&endpoint->wake);
    if (!error)
        error = add(endpoint, endpoint->wake, &endpoint->wake_source);
    for (int i = 0; i < COHI_TCP_PLACES && !error; i++)
        if (endpoint->listeners[i].fd >= 0)
            error = add(endpoint, endpoint->listeners[i].fd, &endpoint->listeners[i]);
    return error ? error : cohi_tcp_poll_open(endpoint);
}

coh_status cohi_tcp_thread_start(cohi_endpoint *endpoint)
{
    endpoint->wake_source = COHI_TCP_SOURCE_WAKE;
    endpoint->last_tick_ns = cohi_now_ns();
    int error = open_descriptors(endpoint);
    if (!error)
        error = cohi_os_thread_start("cohort-tcp", serve, endpoint, &endpoint->thread);
    if (error)
        return cohi_fail_os(error, "tcp: rank %d cannot start its thread", endpoint->rank);
    endpoint->started = true;
    return COH_OK;
}

void cohi_tcp_thread_stop(cohi_endpoint *endpoint)
{
    if (!endpoint->started)
        return;
    atomic_store_explicit(&endpoint->stopping, 1, memory_order_release);
    cohi_tcp_thread_wake(endpoint);
    pthread_join(endpoint->thread, NULL);
    endpoint->started = false;
}
