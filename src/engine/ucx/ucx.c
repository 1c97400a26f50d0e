/*
 * ucx.c - ranks that are processes of several hosts. Those of one host map each other's memory; the
 * others reach each other by UCX.
 */
#include "engine/ucx/ucx.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A link on which nothing is sent gets a keepalive this often, or four times in the time after which
 * its silence would be a loss. */
#define KEEPALIVE_NS COHI_NS_PER_S

/* How long an operation that is given up may go on. Where the other side lives that is seldom more than it takes to
 * connect. */
#define GO_ON_NS COHI_NS_PER_S

/* How long UCX may take to let go of an operation's memory once its link is closed by force. */
#define CANCEL_NS (5 * COHI_NS_PER_S)

/* ---- lifecycle ---- */

/* That the library is missing is the first thing to know, whoever asks. */
static coh_status ucx_probe(const cohi_need *need)
{
    const cohi_ucx_library *library;
    coh_status status = cohi_ucx_library_open(&library);
    if (status != COH_OK || !need->in_process || need->size == 1)
        return status;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "ucx: it connects processes; these ranks are threads of one process");
}

static uint64_t tick_of(uint64_t link_timeout_ns)
{
    uint64_t keepalive_ns = KEEPALIVE_NS;
    if (link_timeout_ns > 0 && link_timeout_ns / 4 < keepalive_ns)
        keepalive_ns = link_timeout_ns / 4;
    return keepalive_ns / 2;
}

static void ucx_close(cohi_endpoint *endpoint)
{
    cohi_ucx_thread_stop(endpoint);
    cohi_ucx_worker_close(endpoint);
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_ucx_link_free(endpoint->made[i]);
    cohi_events_close(&endpoint->events);
    cohi_ucx_requests_free(endpoint);
    cohi_os_close(endpoint->wake);
    cohi_ucx_memory_close(endpoint);
    pthread_mutex_destroy(&endpoint->lock);
    free(endpoint->addresses);
    free(endpoint->host_of);
    free(endpoint->fates);
    free(endpoint->links);
    free(endpoint->made);
    free(endpoint);
}

static bool allocate_tables(cohi_endpoint *endpoint)
{
    size_t size = (size_t)endpoint->size;
    endpoint->addresses = calloc(size, sizeof *endpoint->addresses);
    endpoint->host_of = calloc(size, sizeof *endpoint->host_of);
    endpoint->segments.host_of = endpoint->host_of;
    endpoint->fates = calloc(size, sizeof *endpoint->fates);
    endpoint->links = calloc(size, sizeof *endpoint->links);
    endpoint->made = calloc(size, sizeof *endpoint->made);
    return endpoint->addresses && endpoint->host_of && endpoint->fates && endpoint->links
           && endpoint->made;
}

static cohi_endpoint *new_endpoint(const cohi_engine_args *args)
{
    cohi_endpoint *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->rank = args->rank;
    made->size = args->need.size;
    cohi_events_open(&made->events, args->upcalls, args->world);
    made->link_timeout_ns = args->config->link_timeout;
    made->tick_ns = tick_of(made->link_timeout_ns);
    made->segments.mapped =
        (cohi_mapped){.engine = "ucx", .rank = args->rank, .size = args->need.size};
    made->wake = -1;
    pthread_mutex_init(&made->lock, NULL);
    if (allocate_tables(made))
        return made;
    ucx_close(made);
    return NULL;
}

static coh_status open_ucx(cohi_endpoint *endpoint)
{
    coh_status status = cohi_ucx_library_open(&endpoint->ucx);
    if (status != COH_OK || endpoint->size == 1)
        return status;
    int error = cohi_os_random(&endpoint->own.key, sizeof endpoint->own.key);
    if (error)
        return cohi_fail_os(error, "ucx: no random number can be had");
    return cohi_ucx_worker_open(endpoint);
}

static coh_status ucx_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = new_endpoint(args);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "ucx: out of memory for rank %d", args->rank);
    coh_status status = open_ucx(made);
    if (status != COH_OK) {
        ucx_close(made);
        return status;
    }
    *endpoint = made;
    return COH_OK;
}

static coh_status ucx_address(cohi_endpoint *endpoint, unsigned char *address)
{
    memcpy(address, &endpoint->own, sizeof endpoint->own);
    return COH_OK;
}

/* Where all ranks are on this host UCX has nothing to do. */
static coh_status ucx_connect(cohi_endpoint *endpoint,
                              const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                              const int *host_of)
{
    bool remote = false;
    memcpy(endpoint->host_of, host_of, (size_t)endpoint->size * sizeof *host_of);
    for (int rank = 0; rank < endpoint->size; rank++) {
        memcpy(&endpoint->addresses[rank], addresses[rank], sizeof endpoint->addresses[rank]);
        remote = remote || !cohi_segments_is_near(&endpoint->segments, rank);
    }
    if (remote)
        return cohi_ucx_thread_start(endpoint);
    cohi_ucx_worker_close(endpoint);
    return COH_OK;
}

static void ucx_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    (void)endpoint;
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .detects_loss = 1,
                                 .cpu_coherent_atomics = 1,
                                 .message_bytes = COHI_UCX_MESSAGE_BYTES,
                                 .moves_by_messages = !cohi_ucx_has_fabric(),
                                 .takes_prepared = 1};
}

static void ucx_progress(cohi_endpoint *endpoint)
{
    enum { STEPS_AT_ONCE = 16 };
    if (!endpoint->started)
        return;
    if (cohi_ucx_trylock(endpoint)) {
        bool more = true;
        for (int i = 0; i < STEPS_AT_ONCE && more && !cohi_events_are_there(&endpoint->events); i++)
            more = cohi_ucx_step(endpoint);
        atomic_fetch_add_explicit(&endpoint->looks, 1, memory_order_relaxed);
        cohi_ucx_unlock(endpoint);
    }
    cohi_events_tell(&endpoint->events);
}

static bool ucx_rest(cohi_endpoint *endpoint)
{
    if (endpoint->started)
        cohi_ucx_thread_resume(endpoint);
    return endpoint->started;
}

/* ---- operations on several links ---- */

static void fail_part(cohi_ucx_link *link, cohi_op *op, coh_status status)
{
    cohi_part part;
    cohi_part_join(&part, op, link->rank);
    cohi_ucx_part_end(link->endpoint, &part, status);
}

typedef void on_each_link(cohi_ucx_link *link, cohi_op *op, unsigned context);

/* The op is held while its requests are issued: the first may be done before the last is there. */
static coh_status issue_to_all(cohi_endpoint *endpoint, cohi_op *op, unsigned context,
                               on_each_link *each)
{
    cohi_part hold;
    cohi_ucx_lock(endpoint);
    cohi_part_join(&hold, op, -1);
    for (int i = 0; i < endpoint->made_count; i++)
        each(endpoint->made[i], op, context);
    cohi_ucx_part_end(endpoint, &hold, COH_OK);
    cohi_ucx_end_call(endpoint);
    return COH_OK;
}

static void ask(cohi_ucx_link *link, cohi_ucx_verb verb, unsigned context, cohi_op *op)
{
    cohi_ucx_request *request = cohi_ucx_request_new(link, verb);
    if (!request) {
        fail_part(link, op, COH_NO_MEMORY);
        return;
    }
    request->context = context;
    request->mark = link->counts[context].issued;
    cohi_ucx_request_submit(request, NULL, op);
}

/* What a rank that is gone has not got is told once. */
static void ask_quiet(cohi_ucx_link *link, cohi_op *op, unsigned context)
{
    cohi_ucx_count *count = &link->counts[context];
    if (count->issued == count->complete)
        return;
    if (link->ended) {
        count->complete = count->issued;
        fail_part(link, op, COH_PEER_LOST);
        return;
    }
    ask(link, COHI_UCX_QUIET, context, op);
}

coh_status cohi_ucx_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    return issue_to_all(endpoint, op, context, ask_quiet);
}

static void ask_leave(cohi_ucx_link *link, cohi_op *op, unsigned context)
{
    if (link->ep && !link->ended)
        ask(link, COHI_UCX_LEAVE, context, op);
}

/* Ranks that were never called need not know: a frame that comes from now on is answered so. */
static coh_status ucx_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    endpoint->leaving = true;
    return issue_to_all(endpoint, op, 0, ask_leave);
}

/* ---- giving up ---- */

static void ucx_lose(cohi_endpoint *endpoint, int rank)
{
    unsigned char alive = COHI_UCX_ALIVE;
    (void)atomic_compare_exchange_strong(&endpoint->fates[rank], &alive, COHI_UCX_LOST);
    cohi_ucx_lock(endpoint);
    if (endpoint->links[rank])
        cohi_ucx_link_end(endpoint->links[rank], (cohi_loss)0);
    cohi_ucx_sweep(endpoint);
    cohi_ucx_end_call(endpoint);
}

static bool is_done(cohi_endpoint *endpoint, const void *op)
{
    (void)endpoint;
    return !((const cohi_op *)op)->internal;
}

static bool is_without_memory(cohi_endpoint *endpoint, const void *op)
{
    for (int i = 0; i < endpoint->made_count; i++)
        if (cohi_ucx_requests_hold_memory(endpoint->made[i], op))
            return false;
    return true;
}

/* UCX lets go of a caller's memory only with the whole link. So what it has may end by itself, as it does where the call
 * was refused on another rank, and the two are needed to each other. */
static void ucx_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_ucx_lock(endpoint);
    (void)cohi_ucx_step_until(endpoint, is_without_memory, op, GO_ON_NS);
    for (int i = 0; i < endpoint->made_count; i++)
        if (!cohi_ucx_requests_withdraw(endpoint->made[i], op))
            cohi_ucx_link_end(endpoint->made[i], COHI_LOSS_LINK);
    (void)cohi_ucx_step_until(endpoint, is_done, op, CANCEL_NS);
    cohi_ucx_end_call(endpoint);
}

static const cohi_engine_lifecycle ucx_lifecycle = {
    .size = sizeof ucx_lifecycle,
    .probe = ucx_probe,
    .open = ucx_open,
    .address = ucx_address,
    .connect = ucx_connect,
    .leave = ucx_leave,
    .close = ucx_close,
    .query = ucx_query,
    .lose = ucx_lose,
    .cancel = ucx_cancel,
    .progress = ucx_progress,
    .rest = ucx_rest,
};

/* ---- the descriptor ---- */

static bool ucx_library(char *text, size_t room)
{
    const cohi_ucx_library *library;
    const char *named = getenv("UCX_TLS");
    if (cohi_ucx_library_open(&library) != COH_OK)
        return false;
    snprintf(text, room, "UCX %s, transports: %s", library->ucp_get_version_string(),
             named && *named ? named : "UCX chooses (UCX_TLS)");
    return true;
}

const cohi_engine cohi_engine_ucx = {
    .size = sizeof cohi_engine_ucx,
    .contract = COHI_CONTRACT,
    .name = "ucx",
    .lifecycle = &ucx_lifecycle,
    .memory = &cohi_ucx_memory,
    .rma = &cohi_ucx_rma,
    .atomic = &cohi_ucx_atomic,
    .channel = &cohi_ucx_channel,
    .library = ucx_library,
    .has_fabric = cohi_ucx_has_fabric,
};
