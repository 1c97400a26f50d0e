#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/mlx/mlx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between rounds of ranks on several hosts, of which nobody has anything to send. */
#define KEEPALIVE_NS COHI_NS_PER_S

/* Where there are no connections to look at: how long the next round is waited with, doubled from one that
 * nobody needed to the next. */
#define PAUSE_LEAST_NS (50 * COHI_NS_PER_US)
#define PAUSE_MOST_NS  COHI_NS_PER_MS

/* Who was lost is known best by core, which sees processes end. It has so long to say so. */
#define GRACE_NS (600 * COHI_NS_PER_MS)

/* How long a rank that saw the rounds break keeps its connections, so that the others get all frames that there are. */
#define SEVER_NS (200 * COHI_NS_PER_MS)

/* How much later than the one that was lost the others are given up. */
#define OTHERS_NS COHI_NS_PER_S

enum { HELLO_MAGIC = 0x4d4c5843, HELLO_VERSION = 1 };

/* ---- the end of rounds ---- */

/* Frames arrive in the order of the ring, so the first that is missing is the one that holds up all. */
int cohi_mlx_missing(const cohi_endpoint *endpoint)
{
    for (int i = 1; i < endpoint->size && endpoint->all; i++) {
        int rank = (endpoint->rank + i) % endpoint->size;
        cohi_mlx_frame head;
        memcpy(&head, endpoint->all + (size_t)rank * endpoint->frame_bytes, sizeof head);
        if (head.round != endpoint->round)
            return rank;
    }
    return -1;
}

/* A neighbour that is gone is seen at once. The others see that later, by the end of connections to neighbours that
 * saw it, when all frames but that one have come. */
static int find_suspect(const cohi_endpoint *endpoint, uint64_t took_ns)
{
    int hung_up = cohi_mlx_sockets_hung_up(cohi_mlx_connections());
    int missing = cohi_mlx_missing(endpoint);
    return missing >= 0 && (hung_up < 0 || took_ns >= SEVER_NS / 2) ? missing : hung_up;
}

/* No round will come any more. Lock held. */
static void break_off(cohi_endpoint *endpoint, int suspect, const char *why)
{
    if (endpoint->state != COHI_MLX_RUNNING)
        return;
    endpoint->state = COHI_MLX_BROKEN;
    endpoint->suspect = suspect;
    snprintf(endpoint->why, sizeof endpoint->why, "%s", why);
    cohi_log(COH_LOG_INFO, "%s: rank %d: the rounds end: %s", cohi_mlx_name, endpoint->rank, why);
    pthread_cond_broadcast(&endpoint->change);
}

static void end_all(cohi_endpoint *endpoint, int rank)
{
    for (cohi_mlx_request *request; (request = endpoint->first);) {
        endpoint->first = request->next;
        if (request->op)
            cohi_mlx_end_op(endpoint, request->op, COH_PEER_LOST, rank);
        free(request);
    }
    endpoint->last = NULL;
    endpoint->left = 0;
    if (endpoint->leave)
        cohi_mlx_end_op(endpoint, endpoint->leave, COH_OK, -1);
    endpoint->leave = NULL;
}

void cohi_mlx_blame(cohi_endpoint *endpoint, int rank)
{
    if (endpoint->state == COHI_MLX_ENDED || endpoint->state == COHI_MLX_APART)
        return;
    break_off(endpoint, rank, "a rank was lost");
    cohi_mlx_sockets_sever(cohi_mlx_connections()); /* MLX may be waiting for it */
    endpoint->state = COHI_MLX_ENDED;
    endpoint->culprit = rank;
    end_all(endpoint, rank);
    pthread_cond_broadcast(&endpoint->change);
    cohi_mlx_ring(endpoint);
}

/* Until the state is another, the endpoint closes, or the time is over. Lock held. */
static void await_other(cohi_endpoint *endpoint, cohi_mlx_state state, uint64_t longest_ns)
{
    uint64_t until_ns = cohi_now_ns() + longest_ns;
    struct timespec until = {.tv_sec = (time_t)(until_ns / COHI_NS_PER_S),
                             .tv_nsec = (long)(until_ns % COHI_NS_PER_S)};
    int error = 0;
    while (endpoint->state == state && !endpoint->closing && !error)
        error = pthread_cond_timedwait(&endpoint->change, &endpoint->lock, &until);
}

static void tell_lost(cohi_endpoint *endpoint, int rank)
{
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_LOST, rank, 0);
    if (event)
        event->loss = COHI_LOSS_LINK;
    cohi_events_add(&endpoint->events, event);
}

/* Waits for what core finds; a guess is better than nothing after that. */
static void find_culprit(cohi_endpoint *endpoint)
{
    await_other(endpoint, COHI_MLX_BROKEN, SEVER_NS);
    cohi_mlx_sockets_sever(cohi_mlx_connections());
    await_other(endpoint, COHI_MLX_BROKEN, GRACE_NS - SEVER_NS);
    if (endpoint->state != COHI_MLX_BROKEN || endpoint->closing)
        return;
    int rank = endpoint->suspect >= 0 ? endpoint->suspect : endpoint->rank;
    tell_lost(endpoint, rank);
    cohi_mlx_blame(endpoint, rank);
}

/* A group has all its ranks or none, so the others are out of reach too. That is told later, as who waits for all
 * is to learn first who was lost. */
static void give_up_others(cohi_endpoint *endpoint)
{
    await_other(endpoint, COHI_MLX_ENDED, OTHERS_NS);
    for (int rank = 0; rank < endpoint->size && !endpoint->closing; rank++)
        if (rank != endpoint->rank && rank != endpoint->culprit && !endpoint->gone[rank])
            tell_lost(endpoint, rank);
}

static void tell_unless_closing(cohi_endpoint *endpoint)
{
    cohi_mlx_lock(endpoint);
    bool closing = endpoint->closing;
    cohi_mlx_unlock(endpoint);
    if (closing)
        return;
    cohi_events_tell(&endpoint->events);
    cohi_events_attend(&endpoint->events);
}

static void settle(cohi_endpoint *endpoint)
{
    cohi_mlx_lock(endpoint);
    if (endpoint->state == COHI_MLX_BROKEN)
        find_culprit(endpoint);
    bool lost = endpoint->state == COHI_MLX_ENDED && endpoint->culprit >= 0;
    cohi_mlx_unlock(endpoint);
    tell_unless_closing(endpoint);
    if (!lost)
        return;
    cohi_mlx_lock(endpoint);
    give_up_others(endpoint);
    cohi_mlx_unlock(endpoint);
    tell_unless_closing(endpoint);
}

/* ---- when a round is due ---- */

static bool is_due(const cohi_endpoint *endpoint)
{
    return endpoint->first || endpoint->again || (endpoint->leaving && !endpoint->told);
}

static uint64_t patience(cohi_endpoint *endpoint, const cohi_mlx_sockets *sockets)
{
    if (sockets->count == 0)
        return endpoint->pause_ns;
    return endpoint->several_hosts ? KEEPALIVE_NS : UINT64_MAX;
}

/* Sleeps until this rank has something to send, another has begun a round, or it is time. False: no round
 * comes. */
static bool await_round(cohi_endpoint *endpoint)
{
    const cohi_mlx_sockets *sockets = cohi_mlx_connections();
    for (bool begun = false;;) {
        cohi_mlx_lock(endpoint);
        bool running = endpoint->state == COHI_MLX_RUNNING;
        bool due = begun || is_due(endpoint);
        cohi_mlx_unlock(endpoint);
        if (!running || due)
            return running;
        begun = cohi_mlx_sockets_await(sockets, endpoint->bell, patience(endpoint, sockets));
    }
}

static void note_pause(cohi_endpoint *endpoint, bool was_needed)
{
    uint64_t longer_ns = 2 * endpoint->pause_ns;
    if (was_needed)
        endpoint->pause_ns = PAUSE_LEAST_NS;
    else
        endpoint->pause_ns = longer_ns < PAUSE_MOST_NS ? longer_ns : PAUSE_MOST_NS;
}

/* ---- a round ---- */

/* All ranks have heard the same, so all come to the same length. */
static size_t next_length(uint64_t left)
{
    size_t bytes = COHI_MLX_FRAME_LEAST;
    while (bytes < COHI_MLX_FRAME_MOST && bytes - sizeof(cohi_mlx_frame) < left)
        bytes *= 2;
    return bytes;
}

struct frames {
    size_t bytes;
    void *mine, *all;
};

static bool prepare(cohi_endpoint *endpoint, size_t bytes, struct frames *frames)
{
    char error[COHI_MLX_ERROR_BYTES];
    frames->bytes = bytes;
    bool prepared =
        cohi_mlx_inside()->prepare(bytes, &frames->mine, &frames->all, error, sizeof error);
    cohi_mlx_lock(endpoint);
    if (!prepared)
        break_off(endpoint, endpoint->rank, error);
    cohi_mlx_unlock(endpoint);
    return prepared;
}

static void begin_round(cohi_endpoint *endpoint, const struct frames *frames)
{
    cohi_mlx_lock(endpoint);
    cohi_mlx_pack(endpoint, frames->mine, frames->bytes);
    endpoint->all = frames->all;
    endpoint->frame_bytes = frames->bytes;
    for (int rank = 0; rank < endpoint->size; rank++)
        memset((unsigned char *)frames->all + (size_t)rank * frames->bytes, 0,
               sizeof(cohi_mlx_frame));
    atomic_store(&endpoint->since_ns, cohi_now_ns());
    cohi_mlx_unlock(endpoint);
    cohi_events_ring(&endpoint->events);
}

/* Lock held. */
static void take_round(cohi_endpoint *endpoint, struct frames *frames, size_t *next)
{
    bool sent = endpoint->left > 0;
    cohi_mlx_round round = cohi_mlx_unpack(endpoint, frames->all, frames->bytes);
    if (round.wrong >= 0) {
        break_off(endpoint, round.wrong, round.why);
        return;
    }
    endpoint->told = endpoint->gone[endpoint->rank];
    endpoint->again = round.left > 0;
    note_pause(endpoint, sent || endpoint->again || atomic_load(&endpoint->events.pending));
    *next = next_length(round.left);
    if (round.all_leave) {
        endpoint->state = COHI_MLX_ENDED;
        end_all(endpoint, -1);
        pthread_cond_broadcast(&endpoint->change);
    }
}

static bool make_round(cohi_endpoint *endpoint, struct frames *frames)
{
    char error[COHI_MLX_ERROR_BYTES];
    size_t next = frames->bytes;
    begin_round(endpoint, frames);
    bool came = cohi_mlx_inside()->gather(error, sizeof error);
    cohi_mlx_lock(endpoint);
    uint64_t took_ns = cohi_now_ns() - atomic_exchange(&endpoint->since_ns, 0);
    if (came)
        take_round(endpoint, frames, &next);
    else
        break_off(endpoint, find_suspect(endpoint, took_ns), error);
    bool running = endpoint->state == COHI_MLX_RUNNING;
    cohi_mlx_unlock(endpoint);
    tell_unless_closing(endpoint);
    return running && (next == frames->bytes || prepare(endpoint, next, frames));
}

static void run_rounds(void *arg)
{
    cohi_endpoint *endpoint = arg;
    struct frames frames;
    bool going = prepare(endpoint, COHI_MLX_FRAME_LEAST, &frames);
    while (going && await_round(endpoint))
        going = make_round(endpoint, &frames);
    settle(endpoint);
}

/* ---- the first words ---- */

struct hello {
    uint32_t magic, version;
    uint64_t key;
    int32_t rank, size; /* in the world */
    cohi_mlx_ends ends;
};

static coh_status check_hello(const cohi_endpoint *endpoint, int rank, const struct hello *hello)
{
    if (hello->magic == HELLO_MAGIC && hello->version == HELLO_VERSION
        && hello->key == endpoint->key && hello->rank == rank && hello->size == endpoint->size)
        return COH_OK;
    return cohi_fail(COH_MISMATCH,
                     "%s: rank %d: rank %d of MLX's group is not rank %d of this world, but %d of "
                     "%d of %s",
                     cohi_mlx_name, endpoint->rank, rank, rank, hello->rank, hello->size,
                     hello->magic == HELLO_MAGIC ? "another" : "none");
}

coh_status cohi_mlx_rounds_begin(cohi_endpoint *endpoint)
{
    cohi_mlx_sockets *sockets = cohi_mlx_connections();
    struct hello own = {.magic = HELLO_MAGIC,
                        .version = HELLO_VERSION,
                        .key = endpoint->key,
                        .rank = endpoint->rank,
                        .size = endpoint->size};
    struct hello *all = calloc((size_t)endpoint->size, sizeof *all);
    if (!all)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         endpoint->size);
    cohi_mlx_sockets_describe(sockets, &own.ends);
    coh_status status = cohi_mlx_exchange(&own, sizeof own, all, endpoint->deadline_ns);
    for (int rank = 0; rank < endpoint->size && status == COH_OK; rank++) {
        status = check_hello(endpoint, rank, &all[rank]);
        if (status == COH_OK && rank != endpoint->rank)
            cohi_mlx_sockets_match(sockets, rank, &all[rank].ends);
    }
    free(all);
    cohi_mlx_sockets_calm(sockets, status == COH_OK);
    if (status == COH_OK && endpoint->several_hosts)
        status = cohi_mlx_watch_start(endpoint);
    if (status != COH_OK)
        return status;
    endpoint->state = COHI_MLX_RUNNING;
    endpoint->pause_ns = PAUSE_LEAST_NS;
    status = cohi_mlx_begin(run_rounds, endpoint);
    endpoint->started = status == COH_OK;
    if (status != COH_OK)
        endpoint->state = COHI_MLX_APART;
    return status;
}
