#include "engine/mpi/mpi.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

/* Steps before others get the lock. */
enum { STEPS_AT_ONCE = 64 };

/*
 * MPI wakes nobody, so the thread looks. After something has come it looks on for a while, as an answer is
 * often followed by the next question, then it rests for ever longer. A rank that is looking itself
 * (many visits between two looks of the thread) is left to that; one that sleeps is not.
 */
#define LOOK_NS  (200 * COHI_NS_PER_US)
#define SHORT_NS (50 * COHI_NS_PER_US)
#define LONG_NS  COHI_NS_PER_MS
#define SLACK_NS 1000ul /* by which the kernel may be late; by itself 50 us */

enum { VISITS = 8 };

/* The longest that the time between two ticks counts, in ticks: more means that this process itself
 * was not running, and what the others did meanwhile has not been read. */
enum { TICK_COUNTS = 2 };

static void tick(cohi_endpoint *endpoint, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - endpoint->last_tick_ns, most_ns = TICK_COUNTS * endpoint->tick_ns;
    endpoint->last_tick_ns = now_ns;
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_mpi_link_tick(endpoint->made[i], passed_ns < most_ns ? passed_ns : most_ns);
}

/* Whether anything happened. What has come is read before silence is judged. */
static bool work(cohi_endpoint *endpoint)
{
    int steps = 0;
    cohi_mpi_lock(endpoint);
    while (steps < STEPS_AT_ONCE && cohi_mpi_may_call(endpoint) && cohi_mpi_step(endpoint))
        steps++;
    uint64_t now_ns = cohi_now_ns();
    if (steps < STEPS_AT_ONCE && now_ns - endpoint->last_tick_ns >= endpoint->tick_ns)
        tick(endpoint, now_ns);
    cohi_mpi_unlock(endpoint);
    return steps > 0;
}

/* Whether it is to go on. */
static bool rest(cohi_endpoint *endpoint, uint64_t rest_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t at_ns = (uint64_t)until.tv_nsec + rest_ns;
    until.tv_sec += (time_t)(at_ns / COHI_NS_PER_S);
    until.tv_nsec = (long)(at_ns % COHI_NS_PER_S);
    pthread_mutex_lock(&endpoint->sleep);
    if (!endpoint->stopping && rest_ns > 0)
        pthread_cond_timedwait(&endpoint->wake, &endpoint->sleep, &until);
    bool stopping = endpoint->stopping;
    pthread_mutex_unlock(&endpoint->sleep);
    return !stopping;
}

/* How long to rest, by what the last look found. */
static uint64_t next_rest(uint64_t rest_ns, uint64_t idle_ns, bool is_visited)
{
    if (is_visited) /* it may fall asleep any time */
        return 2 * SHORT_NS;
    if (idle_ns < LOOK_NS)
        return 0;
    if (rest_ns == 0)
        return SHORT_NS;
    return 2 * rest_ns < LONG_NS ? 2 * rest_ns : LONG_NS;
}

static void *serve(void *arg)
{
    cohi_endpoint *endpoint = arg;
    uint64_t rest_ns = SHORT_NS, worked_ns = cohi_now_ns();
    unsigned visits = 0;
    cohi_os_thread_serves(true);
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    do {
        unsigned now = atomic_load_explicit(&endpoint->visits, memory_order_relaxed);
        bool is_visited = now - visits > VISITS;
        visits = now;
        if (work(endpoint))
            worked_ns = cohi_now_ns();
        cohi_events_tell(&endpoint->events);
        cohi_events_attend(&endpoint->events);
        rest_ns = next_rest(rest_ns, cohi_now_ns() - worked_ns, is_visited);
        if (rest_ns == 0)
            sched_yield();
    } while (rest(endpoint, rest_ns));
    cohi_os_thread_serves(false);
    return NULL;
}

coh_status cohi_mpi_thread_start(cohi_endpoint *endpoint)
{
    endpoint->last_tick_ns = cohi_now_ns();
    int error = cohi_os_thread_start("cohort-mpi", serve, endpoint, &endpoint->thread);
    if (error)
        return cohi_fail_os(error, "mpi: rank %d cannot start its thread", endpoint->rank);
    endpoint->started = true;
    return COH_OK;
}

void cohi_mpi_thread_stop(cohi_endpoint *endpoint)
{
    if (!endpoint->started)
        return;
    pthread_mutex_lock(&endpoint->sleep);
    endpoint->stopping = true;
    pthread_cond_signal(&endpoint->wake);
    pthread_mutex_unlock(&endpoint->sleep);
    pthread_join(endpoint->thread, NULL);
    endpoint->started = false;
}
