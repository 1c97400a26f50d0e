#include "engine/mpi/mpi.h"
#include "engine/modules/aside.h"

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
 * often followed by the next question, then it rests for ever longer.
 *
 * A rank that waits looks itself, and a thread that looks too takes its core, the lock and what has come for it. So while
 * ranks look the thread stands aside (engine/modules/aside.h). One that is about to sleep calls it.
 */
#define LOOK_NS       (200 * COHI_NS_PER_US)
#define LONG_FRAME_NS (2 * COHI_NS_PER_MS)
#define MOVING_NS     (20 * COHI_NS_PER_MS)
#define SHORT_NS      (50 * COHI_NS_PER_US)
#define LONG_NS       COHI_NS_PER_MS
#define SLACK_NS      1000ul /* by which the kernel may be late; by itself 50 us */

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

/* Until it is called, is to stop, or the time is over. Returns whether it was called. */
static bool rest(cohi_endpoint *endpoint, uint64_t rest_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t at_ns = (uint64_t)until.tv_nsec + rest_ns;
    until.tv_sec += (time_t)(at_ns / COHI_NS_PER_S);
    until.tv_nsec = (long)(at_ns % COHI_NS_PER_S);
    int late = 0;
    pthread_mutex_lock(&endpoint->sleep);
    while (!endpoint->stopping && !endpoint->called && late == 0)
        late = pthread_cond_timedwait(&endpoint->wake, &endpoint->sleep, &until);
    bool called = endpoint->called;
    endpoint->called = false;
    pthread_mutex_unlock(&endpoint->sleep);
    return called;
}

/* How often ranks have looked since it was last asked. */
static unsigned looks_since(cohi_endpoint *endpoint, unsigned *seen)
{
    unsigned looks = atomic_load_explicit(&endpoint->looks, memory_order_relaxed);
    unsigned more = looks - *seen;
    *seen = looks;
    return more;
}

/* A rank that looks sees what came before it slept; so it is asked after the way was given. */
static void stand_aside(cohi_endpoint *endpoint, unsigned *seen)
{
    bool called;
    unsigned looks;
    uint64_t period_ns = COHI_ASIDE_FIRST_NS;
    atomic_store(&endpoint->has_way, true);
    do {
        called = rest(endpoint, period_ns);
        looks = looks_since(endpoint, seen);
        period_ns = cohi_aside_next(period_ns, looks);
    } while (!called && !endpoint->stopping && looks > 0
             && cohi_now_ns() - endpoint->last_tick_ns < endpoint->tick_ns);
    atomic_store(&endpoint->has_way, false);
    (void)looks_since(endpoint, seen);
}

/* For how long the thread looks on. MPI moves in its calls alone: what it has to send, collectives, and long frames, for
 * which it asks and answers before they come. */
static uint64_t look_ns(const cohi_endpoint *endpoint)
{
    if (atomic_load_explicit(&endpoint->moving, memory_order_relaxed))
        return MOVING_NS;
    return atomic_load_explicit(&endpoint->long_frames, memory_order_relaxed) ? LONG_FRAME_NS
                                                                              : LOOK_NS;
}

/* How long to rest, by what the last look found. */
static uint64_t next_rest(const cohi_endpoint *endpoint, uint64_t rest_ns, uint64_t idle_ns)
{
    if (idle_ns < look_ns(endpoint))
        return 0;
    if (rest_ns == 0)
        return SHORT_NS;
    return 2 * rest_ns < LONG_NS ? 2 * rest_ns : LONG_NS;
}

static void *serve(void *arg)
{
    cohi_endpoint *endpoint = arg;
    uint64_t rest_ns = SHORT_NS, worked_ns = cohi_now_ns();
    unsigned seen = 0;
    cohi_os_thread_serves(true);
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    while (!atomic_load_explicit(&endpoint->stopping, memory_order_acquire)) {
        if (work(endpoint))
            worked_ns = cohi_now_ns();
        cohi_events_tell(&endpoint->events);
        cohi_events_attend(&endpoint->events);
        if (looks_since(endpoint, &seen) > 0) {
            stand_aside(endpoint, &seen);
            worked_ns = cohi_now_ns(); /* what was looked for may come now */
            continue;
        }
        rest_ns = next_rest(endpoint, rest_ns, cohi_now_ns() - worked_ns);
        if (rest_ns == 0)
            sched_yield();
        else if (rest(endpoint, rest_ns))
            worked_ns = cohi_now_ns();
    }
    cohi_os_thread_serves(false);
    return NULL;
}

static void call(cohi_endpoint *endpoint, bool stopping)
{
    pthread_mutex_lock(&endpoint->sleep);
    endpoint->called = true;
    if (stopping)
        atomic_store(&endpoint->stopping, true);
    pthread_cond_signal(&endpoint->wake);
    pthread_mutex_unlock(&endpoint->sleep);
}

void cohi_mpi_thread_resume(cohi_endpoint *endpoint)
{
    if (atomic_load(&endpoint->has_way))
        call(endpoint, false);
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
    call(endpoint, true);
    pthread_join(endpoint->thread, NULL);
    endpoint->started = false;
}
