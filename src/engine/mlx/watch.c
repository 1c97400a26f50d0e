#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "engine/mlx/mlx.h"

/* How often it looks at most. */
#define TICK_NS COHI_NS_PER_S

static uint64_t tick_of(const cohi_endpoint *endpoint)
{
    uint64_t quarter_ns = endpoint->link_timeout_ns / 4;
    return quarter_ns > 0 && quarter_ns < TICK_NS ? quarter_ns : TICK_NS;
}

/* Until the next look; false: the endpoint closes. */
static bool rest(cohi_endpoint *endpoint)
{
    uint64_t until_ns = cohi_now_ns() + tick_of(endpoint);
    struct timespec until = {.tv_sec = (time_t)(until_ns / COHI_NS_PER_S),
                             .tv_nsec = (long)(until_ns % COHI_NS_PER_S)};
    int error = 0;
    cohi_mlx_lock(endpoint);
    while (!endpoint->closing && !error)
        error = pthread_cond_timedwait(&endpoint->change, &endpoint->lock, &until);
    bool going = !endpoint->closing;
    cohi_mlx_unlock(endpoint);
    return going;
}

/* How long the round under way has taken. */
struct silence {
    uint64_t since_ns; /* when it began; 0: none is under way */
    uint64_t looked_ns;
    uint64_t ns;
};

/* A job that was stopped as a whole was not silent meanwhile, so a look counts for two ticks at most. */
static void add_time(struct silence *silence, uint64_t since_ns, uint64_t tick_ns)
{
    if (silence->since_ns != since_ns)
        *silence = (struct silence){.since_ns = since_ns, .looked_ns = since_ns};
    uint64_t now_ns = cohi_now_ns(), passed_ns = now_ns - silence->looked_ns;
    silence->looked_ns = now_ns;
    silence->ns += passed_ns < 2 * tick_ns ? passed_ns : 2 * tick_ns;
}

/* A round that takes long waits for the rank whose frame is missing. */
static void look(cohi_endpoint *endpoint, struct silence *silence)
{
    uint64_t since_ns = atomic_load(&endpoint->since_ns), tick_ns = tick_of(endpoint);
    add_time(silence, since_ns, tick_ns);
    if (since_ns == 0 || silence->ns < tick_ns)
        return;
    cohi_mlx_lock(endpoint);
    int rank = endpoint->state == COHI_MLX_RUNNING ? cohi_mlx_missing(endpoint) : -1;
    cohi_mlx_unlock(endpoint);
    cohi_event *event =
        rank >= 0 ? cohi_event_new(&endpoint->events, COHI_EVENT_SILENT, rank, 0) : NULL;
    if (event)
        event->silent_ns = silence->ns;
    cohi_events_add(&endpoint->events, event);
    cohi_events_tell(&endpoint->events);
}

static void *watch(void *arg)
{
    cohi_endpoint *endpoint = arg;
    struct silence silence = {.since_ns = 0};
    cohi_os_thread_serves(true);
    while (rest(endpoint))
        look(endpoint, &silence);
    cohi_os_thread_serves(false);
    return NULL;
}

coh_status cohi_mlx_watch_start(cohi_endpoint *endpoint)
{
    int error = cohi_os_thread_start("cohort-watch", watch, endpoint, &endpoint->watcher);
    if (error)
        return cohi_fail_os(error, "%s: rank %d cannot start the thread that watches MLX",
                            cohi_mlx_name, endpoint->rank);
    endpoint->watched = true;
    return COH_OK;
}

void cohi_mlx_watch_stop(cohi_endpoint *endpoint)
{
    if (endpoint->watched)
        pthread_join(endpoint->watcher, NULL);
    endpoint->watched = false;
}
