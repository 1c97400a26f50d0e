#include "engine/ucx/ucx.h"
#include "engine/modules/aside.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* For how long the thread looks on after something has come: the next question often follows an answer, and to be
 * woken takes longer than to look for it. */
#define LOOK_NS (50 * COHI_NS_PER_US)

/* Steps before others get the lock. */
enum { STEPS_AT_ONCE = 64 };

/* The longest that the time between two ticks counts, in ticks: more means that this process itself
 * was not running, and what the others did meanwhile has not been read. */
enum { TICK_COUNTS = 2 };

void cohi_ucx_thread_wake(cohi_endpoint *endpoint)
{
    uint64_t one = 1;
    int held = cohi_cancel_hold();
    if (endpoint->wake >= 0 && write(endpoint->wake, &one, sizeof one) < 0)
        errno = 0; /* the counter is full: the thread is awake as it is */
    cohi_cancel_release(held);
}

/*
 * A rank that waits takes what comes itself, and a thread that UCX woke for each of it would only take its core and
 * the lock. So while ranks look the thread stands aside (engine/modules/aside.h). One that is about to sleep wakes it.
 */
#define SLACK_NS 1000ul /* by which the kernel may be late; by itself 50 us */

void cohi_ucx_thread_resume(cohi_endpoint *endpoint)
{
    if (atomic_load(&endpoint->has_way))
        cohi_ucx_thread_wake(endpoint);
}

/* How often ranks have looked since it was last asked. */
static unsigned looks_since(cohi_endpoint *endpoint, unsigned *seen)
{
    unsigned looks = atomic_load_explicit(&endpoint->looks, memory_order_relaxed);
    unsigned more = looks - *seen;
    *seen = looks;
    return more;
}

static void read_wake(cohi_endpoint *endpoint)
{
    uint64_t ignored;
    if (read(endpoint->wake, &ignored, sizeof ignored) < 0)
        errno = 0; /* another wake will come */
}

static void tick(cohi_endpoint *endpoint, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - endpoint->last_tick_ns, most_ns = TICK_COUNTS * endpoint->tick_ns;
    endpoint->last_tick_ns = now_ns;
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_ucx_link_tick(endpoint->made[i], passed_ns < most_ns ? passed_ns : most_ns);
}

static int time_left_ms(const cohi_endpoint *endpoint)
{
    uint64_t now_ns = cohi_now_ns(), due_ns = endpoint->last_tick_ns + endpoint->tick_ns;
    return now_ns >= due_ns ? 0 : (int)((due_ns - now_ns) / COHI_NS_PER_MS + 1);
}

/* Whether UCX has nothing to do at the moment, and will say when it has. What has come is read before
 * silence is judged. */
static bool work(cohi_endpoint *endpoint, uint64_t *worked_ns)
{
    int steps = 0;
    cohi_ucx_lock(endpoint);
    cohi_ucx_sweep(endpoint);
    while (steps < STEPS_AT_ONCE && cohi_ucx_step(endpoint))
        steps++;
    uint64_t now_ns = cohi_now_ns();
    if (steps < STEPS_AT_ONCE && now_ns - endpoint->last_tick_ns >= endpoint->tick_ns)
        tick(endpoint, now_ns);
    cohi_ucx_sweep(endpoint);
    if (steps > 0)
        *worked_ns = now_ns;
    bool armed =
        now_ns - *worked_ns >= LOOK_NS && endpoint->ucx->ucp_worker_arm(endpoint->worker) == UCS_OK;
    cohi_ucx_unlock(endpoint);
    return armed;
}

static void sleep_until_event(cohi_endpoint *endpoint)
{
    struct pollfd sources[2] = {{.fd = endpoint->worker_fd, .events = POLLIN},
                                {.fd = endpoint->wake, .events = POLLIN}};
    if (poll(sources, 2, time_left_ms(endpoint)) > 0 && sources[1].revents)
        read_wake(endpoint);
}

/* Until the ranks do not look any more. A rank that looks sees what came before it slept; so it is asked after
 * the way was given. */
static void stand_aside(cohi_endpoint *endpoint, unsigned *seen)
{
    struct timespec period = {.tv_nsec = COHI_ASIDE_FIRST_NS};
    struct pollfd source = {.fd = endpoint->wake, .events = POLLIN};
    bool woken = false;
    atomic_store(&endpoint->has_way, true);
    unsigned looks;
    do {
        woken = ppoll(&source, 1, &period, NULL) > 0;
        looks = looks_since(endpoint, seen);
        period.tv_nsec = (long)cohi_aside_next((uint64_t)period.tv_nsec, looks);
    } while (!woken && looks > 0 && time_left_ms(endpoint) > 0);
    atomic_store(&endpoint->has_way, false);
    if (woken)
        read_wake(endpoint);
    (void)looks_since(endpoint, seen);
}

static void *serve(void *arg)
{
    cohi_endpoint *endpoint = arg;
    unsigned seen = 0;
    uint64_t worked_ns = 0;
    cohi_os_thread_serves(true);
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    while (!atomic_load_explicit(&endpoint->stopping, memory_order_acquire)) {
        bool idle = work(endpoint, &worked_ns);
        cohi_events_tell(&endpoint->events);
        cohi_events_attend(&endpoint->events); /* the rank may be computing */
        if (looks_since(endpoint, &seen) > 0)
            stand_aside(endpoint, &seen);
        else if (idle)
            sleep_until_event(endpoint);
        else
            sched_yield();
    }
    cohi_os_thread_serves(false);
    return NULL;
}

coh_status cohi_ucx_thread_start(cohi_endpoint *endpoint)
{
    ucs_status_t status = endpoint->ucx->ucp_worker_get_efd(endpoint->worker, &endpoint->worker_fd);
    if (status != UCS_OK)
        return cohi_fail(COH_NOT_AVAILABLE, "ucx: rank %d: UCX cannot wake a thread: %s",
                         endpoint->rank, endpoint->ucx->ucs_status_string(status));
    endpoint->last_tick_ns = cohi_now_ns();
    endpoint->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = endpoint->wake < 0 ? errno : cohi_os_fd_above_stdio(&endpoint->wake);
    if (!error)
        error = cohi_os_thread_start("cohort-ucx", serve, endpoint, &endpoint->thread);
    if (error)
        return cohi_fail_os(error, "ucx: rank %d cannot start its thread", endpoint->rank);
    endpoint->started = true;
    return COH_OK;
}

void cohi_ucx_thread_stop(cohi_endpoint *endpoint)
{
    if (!endpoint->started)
        return;
    atomic_store_explicit(&endpoint->stopping, 1, memory_order_release);
    cohi_ucx_thread_wake(endpoint);
    pthread_join(endpoint->thread, NULL);
    endpoint->started = false;
}
