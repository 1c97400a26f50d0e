#include "engine/mlx/mlx.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long the end of an endpoint waits for MLX to come back. */
#define CLOSE_NS (2 * COHI_NS_PER_S)

/* MLX looks for the ring that its launcher describes by these. */
static bool has_variables(void)
{
    return getenv("MLX_RANK") && getenv("MLX_HOSTFILE");
}

static bool makes_rings(void)
{
    return strcmp(cohi_mlx_backend, "ring") == 0;
}

/* ---- ops ---- */

void cohi_mlx_lock(cohi_endpoint *endpoint)
{
    int held = cohi_cancel_hold();
    pthread_mutex_lock(&endpoint->lock);
    endpoint->held = held;
}

void cohi_mlx_unlock(cohi_endpoint *endpoint)
{
    int held = endpoint->held;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cancel_release(held);
}

void cohi_mlx_end_op(cohi_endpoint *endpoint, cohi_op *op, coh_status status, int rank)
{
    op->status = status;
    op->rank = rank;
    atomic_store_explicit(&op->done, 1, memory_order_release);
    atomic_store_explicit(&endpoint->events.rings, 1, memory_order_relaxed);
}

void cohi_mlx_ring(cohi_endpoint *endpoint)
{
    static const uint64_t one = 1;
    (void)!write(endpoint->bell, &one, sizeof one);
}

static void end_call(cohi_endpoint *endpoint)
{
    cohi_mlx_unlock(endpoint);
    cohi_events_ring(&endpoint->events);
}

/* ---- opening and closing ---- */

/* That the library is missing is the first thing to know, whoever asks. */
static coh_status mlx_probe(const cohi_need *need)
{
    coh_status status = cohi_mlx_library_look(NULL, 0);
    if (status != COH_OK || !need->in_process || need->size == 1)
        return status;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "%s: it connects processes; these ranks are threads of one process",
                     cohi_mlx_name);
}

static void free_endpoint(cohi_endpoint *endpoint)
{
    cohi_events_close(&endpoint->events);
    pthread_mutex_destroy(&endpoint->lock);
    pthread_cond_destroy(&endpoint->change);
    for (cohi_mlx_request *request; (request = endpoint->first);) {
        endpoint->first = request->next;
        free(request);
    }
    cohi_os_close(endpoint->port_fd);
    cohi_os_close(endpoint->bell);
    free(endpoint->gone);
    free(endpoint);
}

/* Ends the rounds, and waits until nothing uses the endpoint any more. False: it does not come to that. */
static bool stop_rounds(cohi_endpoint *endpoint, bool *broken)
{
    cohi_mlx_lock(endpoint);
    *broken = endpoint->state != COHI_MLX_ENDED || endpoint->culprit >= 0;
    endpoint->closing = true;
    cohi_mlx_blame(endpoint, endpoint->rank);
    pthread_cond_broadcast(&endpoint->change);
    cohi_mlx_ring(endpoint);
    cohi_mlx_unlock(endpoint);
    cohi_mlx_watch_stop(endpoint);
    return !endpoint->started || cohi_mlx_await(cohi_now_ns() + CLOSE_NS);
}

static void stop_at_exit(void *endpoint)
{
    bool broken;
    (void)stop_rounds(endpoint, &broken);
}

/* What a call of MLX's that does not come back still uses is left to it. */
static void mlx_close(cohi_endpoint *endpoint)
{
    bool broken;
    (void)cohi_mlx_at_exit(NULL, NULL);
    bool over = stop_rounds(endpoint, &broken);
    if (!over) {
        cohi_log(COH_LOG_WARN, "%s: rank %d: MLX does not come back from its last call",
                 cohi_mlx_name, endpoint->rank);
        return;
    }
    if (endpoint->started)
        cohi_mlx_part(broken);
    free_endpoint(endpoint);
}

static void open_locks(cohi_endpoint *endpoint)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&endpoint->change, &by_clock);
    pthread_condattr_destroy(&by_clock);
    pthread_mutex_init(&endpoint->lock, NULL);
}

static coh_status describe_self(cohi_endpoint *endpoint)
{
    cohi_mlx_address *own = &endpoint->own;
    int rank, size;
    int error = cohi_os_random(&own->key, sizeof own->key);
    if (error)
        return cohi_fail_os(error, "%s: rank %d cannot draw a number", cohi_mlx_name,
                            endpoint->rank);
    own->joined = cohi_mlx_is_joined(&rank, &size);
    own->rank = rank;
    own->size = size;
    own->named = has_variables();
    if (endpoint->size == 1 || !makes_rings() || own->joined || own->named)
        return COH_OK;
    return cohi_mlx_port_take(&endpoint->port_fd, &own->port);
}

static coh_status mlx_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = calloc(1, sizeof *made);
    bool *gone = calloc((size_t)args->need.size, sizeof *gone);
    if (!made || !gone) {
        free(made);
        free(gone);
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         args->need.size);
    }
    *made = (cohi_endpoint){.rank = args->rank,
                            .size = args->need.size,
                            .deadline_ns = args->deadline_ns,
                            .link_timeout_ns = args->config->link_timeout,
                            .port_fd = -1,
                            .suspect = -1,
                            .culprit = -1,
                            .gone = gone,
                            .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    cohi_events_open(&made->events, args->upcalls, args->world);
    open_locks(made);
    coh_status status = made->bell < 0 ? cohi_fail(COH_LIMIT, "%s: rank %d gets no eventfd",
                                                   cohi_mlx_name, args->rank)
                                       : describe_self(made);
    if (status == COH_OK)
        *endpoint = made;
    else
        free_endpoint(made);
    return status;
}

static coh_status mlx_address(cohi_endpoint *endpoint, unsigned char *address)
{
    memcpy(address, &endpoint->own, sizeof endpoint->own);
    return COH_OK;
}

/* ---- coming together ---- */

static coh_status check_alike(const cohi_endpoint *endpoint, const cohi_mlx_address *all)
{
    for (int rank = 0; rank < endpoint->size; rank++)
        if (all[rank].joined != all[0].joined || all[rank].named != all[0].named)
            return cohi_fail(
                COH_MISMATCH,
                "%s: rank %d is %sin a group of MLX's (MLX_RANK, MLX_HOSTFILE), rank 0 "
                "is %s",
                cohi_mlx_name, rank, all[rank].joined || all[rank].named ? "" : "not ",
                all[0].joined || all[0].named ? "in one" : "not");
    return COH_OK;
}

/* The last rank connects before it listens, and MLX waits a second where nobody listens. */
static coh_status make_ring(cohi_endpoint *endpoint, const cohi_mlx_address *all)
{
    uint16_t *ports = calloc((size_t)endpoint->size, sizeof *ports);
    if (!ports)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         endpoint->size);
    for (int rank = 0; rank < endpoint->size; rank++)
        ports[rank] = all[rank].port;
    if (endpoint->rank == endpoint->size - 1)
        cohi_mlx_port_await(ports[0], endpoint->deadline_ns);
    coh_status status = cohi_mlx_join(ports, endpoint->rank, endpoint->size, endpoint->deadline_ns);
    free(ports);
    return status;
}

static coh_status join_group(cohi_endpoint *endpoint, const cohi_mlx_address *all)
{
    if (all[0].joined || all[0].named || !makes_rings())
        return cohi_mlx_join(NULL, endpoint->rank, endpoint->size, endpoint->deadline_ns);
    if (!endpoint->several_hosts)
        return make_ring(endpoint, all);
    return cohi_fail(
        COH_UNSUPPORTED,
        "%s: the ranks are on several hosts, and MLX has no hostfile: mlx.launch starts "
        "such jobs, or MLX_RANK and MLX_HOSTFILE describe them",
        cohi_mlx_name);
}

static coh_status check_place(const cohi_endpoint *endpoint)
{
    int rank, size;
    (void)cohi_mlx_is_joined(&rank, &size);
    if (rank == endpoint->rank && size == endpoint->size)
        return COH_OK;
    return cohi_fail(
        COH_MISMATCH,
        "%s: this is rank %d of %d, and rank %d of %d in MLX's group: they must be the "
        "same",
        cohi_mlx_name, endpoint->rank, endpoint->size, rank, size);
}

static coh_status meet(cohi_endpoint *endpoint, const cohi_mlx_address *all)
{
    endpoint->key = all[0].key;
    coh_status status = check_alike(endpoint, all);
    if (status == COH_OK)
        status = join_group(endpoint, all);
    cohi_os_close(endpoint->port_fd);
    endpoint->port_fd = -1;
    if (status != COH_OK)
        return status;
    status = check_place(endpoint);
    if (status == COH_OK)
        status = cohi_mlx_rounds_begin(endpoint);
    if (status == COH_OK)
        status = cohi_mlx_at_exit(stop_at_exit, endpoint);
    else
        cohi_mlx_part(true);
    return status;
}

static coh_status mlx_connect(cohi_endpoint *endpoint,
                              const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                              const int *host_of)
{
    if (endpoint->size == 1)
        return COH_OK;
    cohi_mlx_address *all = calloc((size_t)endpoint->size, sizeof *all);
    if (!all)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for %d ranks", cohi_mlx_name,
                         endpoint->size);
    for (int rank = 0; rank < endpoint->size; rank++) {
        memcpy(&all[rank], addresses[rank], sizeof all[rank]);
        endpoint->several_hosts = endpoint->several_hosts || host_of[rank] != host_of[0];
    }
    coh_status status = meet(endpoint, all);
    free(all);
    return status;
}

/* ---- the rest of the lifecycle ---- */

static void mlx_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    (void)endpoint;
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .worlds_at_once = 1,
                                 .detects_loss = makes_rings(),
                                 .cpu_coherent_atomics = 1,
                                 .message_bytes = COHI_MLX_MESSAGE_BYTES};
}

static int first_to_stay(const cohi_endpoint *endpoint)
{
    for (int rank = 0; rank < endpoint->size; rank++)
        if (rank != endpoint->rank && !endpoint->gone[rank])
            return rank;
    return -1;
}

/* A ring needs all its ranks, so each stays until all leave. */
static coh_status mlx_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_mlx_lock(endpoint);
    endpoint->leaving = true;
    if (endpoint->state == COHI_MLX_RUNNING || endpoint->state == COHI_MLX_BROKEN) {
        atomic_store_explicit(&op->waits_for, first_to_stay(endpoint), memory_order_relaxed);
        endpoint->leave = op;
        cohi_mlx_ring(endpoint);
    } else {
        cohi_mlx_end_op(endpoint, op, COH_OK, -1);
    }
    end_call(endpoint);
    return COH_OK;
}

static void mlx_lose(cohi_endpoint *endpoint, int rank)
{
    cohi_mlx_lock(endpoint);
    cohi_mlx_blame(endpoint, rank);
    end_call(endpoint);
}

/* The request that an op is for; NULL: it is in a frame already, or another. */
static cohi_mlx_request *withdraw(cohi_endpoint *endpoint, const cohi_op *op)
{
    cohi_mlx_request *before = NULL, *request = endpoint->first;
    while (request && request->op != op) {
        before = request;
        request = request->next;
    }
    if (!request)
        return NULL;
    if (before)
        before->next = request->next;
    else
        endpoint->first = request->next;
    if (endpoint->last == request)
        endpoint->last = before;
    endpoint->left -= cohi_mlx_item_bytes(request);
    return request;
}

static void mlx_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_mlx_lock(endpoint);
    free(withdraw(endpoint, op));
    if (endpoint->leave == op)
        endpoint->leave = NULL;
    if (!atomic_load(&op->done))
        cohi_mlx_end_op(endpoint, op, COH_TRANSPORT, -1);
    end_call(endpoint);
}

static const cohi_engine_lifecycle mlx_lifecycle = {
    .size = sizeof mlx_lifecycle,
    .probe = mlx_probe,
    .open = mlx_open,
    .address = mlx_address,
    .connect = mlx_connect,
    .leave = mlx_leave,
    .close = mlx_close,
    .query = mlx_query,
    .lose = mlx_lose,
    .cancel = mlx_cancel,
};

/* ---- channel ---- */

static coh_status fail_ended(const cohi_endpoint *endpoint, int rank)
{
    if (endpoint->culprit < 0)
        return cohi_fail(COH_PEER_LOST, "%s: rank %d: rank %d has left", cohi_mlx_name,
                         endpoint->rank, rank);
    return cohi_fail(COH_PEER_LOST,
                     "%s: rank %d: rank %d is out of reach, since rank %d is lost, and MLX's group "
                     "needs all its ranks",
                     cohi_mlx_name, endpoint->rank, rank, endpoint->culprit);
}

static void append(cohi_endpoint *endpoint, cohi_mlx_request *request)
{
    if (endpoint->last)
        endpoint->last->next = request;
    else
        endpoint->first = request;
    endpoint->last = request;
    endpoint->left += cohi_mlx_item_bytes(request);
    if (request->op)
        atomic_store_explicit(&request->op->waits_for, request->to, memory_order_relaxed);
    if (endpoint->first == request)
        cohi_mlx_ring(endpoint);
}

static coh_status mlx_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                           const void *body, size_t body_bytes, cohi_op *op)
{
    cohi_mlx_request *request = malloc(sizeof *request);
    if (!request)
        return cohi_fail(COH_NO_MEMORY, "%s: out of memory for a message to rank %d", cohi_mlx_name,
                         rank);
    *request = (cohi_mlx_request){.op = op,
                                  .to = rank,
                                  .head_bytes = (uint32_t)head_bytes,
                                  .body_bytes = (uint32_t)body_bytes,
                                  .body = body};
    memcpy(request->head, head, head_bytes);
    cohi_mlx_lock(endpoint);
    bool ended = endpoint->state == COHI_MLX_ENDED || endpoint->state == COHI_MLX_APART;
    if (!ended)
        append(endpoint, request);
    coh_status status = ended ? fail_ended(endpoint, rank) : COH_OK;
    cohi_mlx_unlock(endpoint);
    if (ended)
        free(request);
    return status;
}

static const cohi_engine_channel mlx_channel = {
    .size = sizeof mlx_channel,
    .send = mlx_send,
};

/* ---- the descriptor ---- */

static bool mlx_library(char *text, size_t room)
{
    return cohi_mlx_library_look(text, room) == COH_OK;
}

const cohi_engine cohi_engine_mlx = {
    .size = sizeof cohi_engine_mlx,
    .contract = COHI_CONTRACT,
    .name = cohi_mlx_name,
    .lifecycle = &mlx_lifecycle,
    .channel = &mlx_channel,
    .job = &cohi_mlx_job,
    .library = mlx_library,
};
