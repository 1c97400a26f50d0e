/*
 * tcp.c - ranks that are processes of several hosts. Those of one host map each other's memory; the
 * others reach each other over connections, which a thread of each endpoint serves.
 */
#include "engine/tcp/tcp.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* A link on which nothing is sent gets a keepalive this often, or four times in the time after which
 * its silence would be a loss. */
#define KEEPALIVE_NS COHI_NS_PER_S

/* ---- lifecycle ---- */

static coh_status tcp_probe(const cohi_need *need)
{
    if (!need->in_process || need->size == 1)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE, "tcp: it connects processes; these ranks are threads of "
                                        "one process");
}

static uint64_t tick_of(uint64_t link_timeout_ns)
{
    uint64_t keepalive_ns = KEEPALIVE_NS;
    if (link_timeout_ns > 0 && link_timeout_ns / 4 < keepalive_ns)
        keepalive_ns = link_timeout_ns / 4;
    return keepalive_ns / 2;
}

static void tell_traffic(const cohi_tcp_link *link)
{
    const cohi_traffic *traffic = link->traffic;
    cohi_log(
        COH_LOG_INFO,
        "tcp: rank %d and rank %d: %llu operations, %llu bytes sent, %llu received, %llu waits "
        "for the network",
        link->endpoint->rank, link->rank, (unsigned long long)atomic_load(&traffic->operations),
        (unsigned long long)atomic_load(&traffic->sent),
        (unsigned long long)atomic_load(&traffic->received),
        (unsigned long long)atomic_load(&traffic->waits));
}

static void tcp_close(cohi_endpoint *endpoint)
{
    cohi_tcp_thread_stop(endpoint);
    cohi_tcp_fork_remove(endpoint);
    int count = atomic_load(&endpoint->made_count);
    for (int i = 0; i < count; i++) {
        tell_traffic(endpoint->made[i]);
        cohi_tcp_link_free(endpoint->made[i]);
    }
    cohi_tcp_callers_close(endpoint);
    cohi_tcp_listen_no_more(endpoint);
    cohi_os_close(endpoint->epoll);
    cohi_tcp_poll_close(endpoint);
    cohi_os_close(endpoint->wake);
    cohi_tcp_memory_close(endpoint);
    pthread_mutex_destroy(&endpoint->segments_lock);
    pthread_mutex_destroy(&endpoint->links_lock);
    pthread_mutex_destroy(&endpoint->ops_lock);
    free(endpoint->addresses);
    free(endpoint->host_of);
    free(endpoint->fates);
    free(endpoint->links);
    free(endpoint->made);
    explicit_bzero(&endpoint->self, sizeof endpoint->self);
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
    made->upcalls = args->upcalls;
    made->world = args->world;
    made->traffic = args->traffic;
    made->link_timeout_ns = args->config->link_timeout;
    made->tick_ns = tick_of(made->link_timeout_ns);
    made->limits = cohi_seal_limits_usual;
    made->segments.mapped =
        (cohi_mapped){.engine = "tcp", .rank = args->rank, .size = args->need.size};
    made->epoll = made->links_epoll = made->wake = made->poll.timer = -1;
    pthread_mutex_init(&made->poll.lock, NULL);
    for (int i = 0; i < COHI_TCP_PLACES; i++)
        made->listeners[i] = (cohi_tcp_listener){.source = COHI_TCP_SOURCE_LISTENER, .fd = -1};
    for (int i = 0; i < COHI_TCP_CALLERS; i++)
        made->callers[i].fd = -1;
    pthread_mutex_init(&made->segments_lock, NULL);
    pthread_mutex_init(&made->links_lock, NULL);
    pthread_mutex_init(&made->ops_lock, NULL);
    if (allocate_tables(made))
        return made;
    tcp_close(made);
    return NULL;
}

static coh_status tcp_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = new_endpoint(args);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "tcp: out of memory for rank %d", args->rank);
    coh_status status = cohi_tcp_fork_add(made);
    if (status == COH_OK && made->size > 1)
        status = cohi_tcp_listen(made, args);
    if (status != COH_OK) {
        tcp_close(made);
        return status;
    }
    *endpoint = made;
    return COH_OK;
}

static coh_status tcp_address(cohi_endpoint *endpoint, unsigned char *address)
{
    memcpy(address, &endpoint->own, sizeof endpoint->own);
    return COH_OK;
}

/* Where all ranks are on this host nobody will call. */
static coh_status tcp_connect(cohi_endpoint *endpoint,
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
        return cohi_tcp_go_online(endpoint);
    cohi_tcp_listen_no_more(endpoint);
    return COH_OK;
}

/* Links there are where the thread was started. */
static cohi_network network_of(const cohi_endpoint *endpoint)
{
    if (!endpoint || !endpoint->started)
        return COHI_NETWORK_NONE;
    return endpoint->seals     ? COHI_NETWORK_SEALED
           : endpoint->secured ? COHI_NETWORK_CLEAR
                               : COHI_NETWORK_LOOPBACK;
}

static void tcp_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .detects_loss = 1,
                                 .cpu_coherent_atomics = 1,
                                 .message_bytes = COHI_TCP_MESSAGE_BYTES,
                                 .takes_prepared = 1,
                                 .network = network_of(endpoint)};
}

/* ---- operations on several links ---- */

/* Holds an op while its requests are issued: the first may be done before the last is there. */
struct issue {
    cohi_endpoint *endpoint;
    cohi_op *op;
    cohi_part hold;
    coh_status status;
};

static struct issue *begin_issue(struct issue *issue, cohi_endpoint *endpoint, cohi_op *op)
{
    *issue = (struct issue){.endpoint = endpoint, .op = op, .status = COH_OK};
    cohi_tcp_part_join(endpoint, &issue->hold, op, -1);
    return issue;
}

/* What failed is told by the op, of which parts may be under way. */
static coh_status end_issue(struct issue *issue)
{
    (void)cohi_tcp_part_end(issue->endpoint, &issue->hold, issue->status);
    cohi_tcp_tell(issue->endpoint);
    return COH_OK;
}

static void fail_part(struct issue *issue, int rank, coh_status status)
{
    cohi_part part;
    cohi_tcp_part_join(issue->endpoint, &part, issue->op, rank);
    (void)cohi_tcp_part_end(issue->endpoint, &part, status);
}

typedef void on_each_link(struct issue *issue, cohi_tcp_link *link, unsigned context);

static coh_status issue_to_all(cohi_endpoint *endpoint, cohi_op *op, unsigned context,
                               on_each_link *each)
{
    struct issue issue;
    int count = atomic_load(&endpoint->made_count);
    begin_issue(&issue, endpoint, op);
    for (int i = 0; i < count; i++) {
        cohi_tcp_link *link = endpoint->made[i];
        pthread_mutex_lock(&link->lock);
        each(&issue, link, context);
        pthread_mutex_unlock(&link->lock);
    }
    return end_issue(&issue);
}

/* What a rank that is gone has not got is told once. */
static void ask_quiet(struct issue *issue, cohi_tcp_link *link, unsigned context)
{
    cohi_tcp_count *count = &link->counts[context];
    if (count->complete == count->issued)
        return;
    if (link->state == COHI_TCP_ENDED) {
        count->complete = count->issued;
        fail_part(issue, link->rank, COH_PEER_LOST);
        return;
    }
    cohi_tcp_request *request = cohi_tcp_request_new(link, COHI_TCP_QUIET);
    if (!request) {
        fail_part(issue, link->rank, COH_NO_MEMORY);
        return;
    }
    request->context = context;
    request->mark = count->issued;
    cohi_tcp_request_submit(link, request, issue->op);
}

static void ask_leave(struct issue *issue, cohi_tcp_link *link, unsigned context)
{
    (void)context;
    cohi_tcp_request *request = NULL;
    if (link->state != COHI_TCP_IDLE && link->state != COHI_TCP_ENDED)
        request = cohi_tcp_request_new(link, COHI_TCP_LEAVE);
    if (request)
        cohi_tcp_request_submit(link, request, issue->op);
    if (link->peer_left)
        cohi_tcp_excuse_leave(link);
}

/* Ranks that were never called need not know: a call that comes from now on is told. */
static coh_status tcp_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    atomic_store(&endpoint->leaving, 1);
    return issue_to_all(endpoint, op, 0, ask_leave);
}

static cohi_tcp_link *link_of(cohi_endpoint *endpoint, const cohi_op *op)
{
    pthread_mutex_lock(&endpoint->ops_lock);
    const cohi_part *part = op->internal;
    int rank = part ? part->rank : -1;
    pthread_mutex_unlock(&endpoint->ops_lock);
    return rank >= 0 ? cohi_tcp_link_find(endpoint, rank) : NULL;
}

/* A link whose peer would wait for the rest of a frame cannot go on. */
static void tcp_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_tcp_link *link;
    while ((link = link_of(endpoint, op))) {
        pthread_mutex_lock(&link->landing);
        pthread_mutex_lock(&link->lock);
        bool intact = cohi_tcp_withdraw(link, op);
        pthread_mutex_unlock(&link->lock);
        pthread_mutex_unlock(&link->landing);
        if (!intact)
            cohi_tcp_link_end(link, (cohi_tcp_end){.loss = COHI_LOSS_LINK});
    }
    cohi_tcp_tell(endpoint);
}

static const cohi_engine_lifecycle tcp_lifecycle = {
    .size = sizeof tcp_lifecycle,
    .probe = tcp_probe,
    .open = tcp_open,
    .address = tcp_address,
    .connect = tcp_connect,
    .leave = tcp_leave,
    .close = tcp_close,
    .query = tcp_query,
    .lose = cohi_tcp_link_lose,
    .cancel = tcp_cancel,
    .progress = cohi_tcp_progress,
    .rest = cohi_tcp_rest,
};

/* ---- one request to one rank ---- */

/* Locks the link and makes a request on it; end_request unlocks. */
static coh_status begin_request(cohi_endpoint *endpoint, int rank, cohi_tcp_verb verb,
                                cohi_tcp_link **link, cohi_tcp_request **request)
{
    coh_status status = cohi_tcp_link_to(endpoint, rank, link);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&(*link)->lock);
    status = cohi_tcp_link_use(*link);
    *request = status == COH_OK ? cohi_tcp_request_new(*link, verb) : NULL;
    if (status == COH_OK && !*request)
        status = cohi_fail(COH_NO_MEMORY, "tcp: out of memory for a request to rank %d", rank);
    if (status != COH_OK)
        pthread_mutex_unlock(&(*link)->lock);
    return status;
}

static coh_status end_request(cohi_tcp_link *link, cohi_tcp_request *request, cohi_op *op)
{
    cohi_tcp_request_submit(link, request, op);
    pthread_mutex_unlock(&link->lock);
    cohi_tcp_tell(link->endpoint);
    return COH_OK;
}

/* The next quiet of the context is for it too, unless its op tells that it is complete. */
static void count(cohi_tcp_link *link, cohi_tcp_request *request, unsigned context, bool by_quiet)
{
    request->context = context;
    link->counts[context].issued += by_quiet;
}

static void aim(cohi_tcp_link *link, cohi_tcp_request *request, cohi_remote at)
{
    cohi_tcp_head *head = &request->frame.head;
    head->segment = (uint16_t)at.segment;
    head->generation = link->endpoint->segments.rows[at.segment].peers[link->rank];
    head->offset = at.offset;
}

/* ---- rma ---- */

static coh_status tcp_put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                          cohi_op *op)
{
    cohi_tcp_link *link;
    cohi_tcp_request *request;
    coh_status status = begin_request(endpoint, to.rank, COHI_TCP_PUT, &link, &request);
    if (status != COH_OK)
        return status;
    count(link, request, to.context, true);
    aim(link, request, to);
    request->source = source;
    request->left = bytes;
    return end_request(link, request, op);
}

static coh_status tcp_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                          cohi_op *op)
{
    cohi_tcp_link *link;
    cohi_tcp_request *request;
    coh_status status = begin_request(endpoint, from.rank, COHI_TCP_GET, &link, &request);
    if (status != COH_OK)
        return status;
    count(link, request, from.context, !op);
    aim(link, request, from);
    request->frame.head.bytes = bytes;
    request->target = target;
    request->expected = bytes;
    return end_request(link, request, op);
}

static coh_status tcp_put_signal(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                                 size_t bytes, const cohi_remote_signal *signal, cohi_op *op)
{
    cohi_tcp_link *link;
    cohi_tcp_request *request;
    coh_status status = begin_request(endpoint, to.rank, COHI_TCP_PUT_SIGNAL, &link, &request);
    if (status != COH_OK)
        return status;
    count(link, request, to.context, true);
    aim(link, request, to);
    request->signals = true;
    request->source = source;
    request->left = bytes;
    request->frame.head.add = signal->add;
    request->frame.extension.signal =
        (cohi_tcp_signal){.offset = signal->offset, .value = signal->value};
    return end_request(link, request, op);
}

/* A link is ordered, and applied in order. */
static coh_status tcp_fence(cohi_endpoint *endpoint, unsigned context)
{
    (void)endpoint;
    (void)context;
    return COH_OK;
}

static coh_status tcp_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    return issue_to_all(endpoint, op, context, ask_quiet);
}

static const cohi_engine_rma tcp_rma = {
    .size = sizeof tcp_rma,
    .put = tcp_put,
    .get = tcp_get,
    .put_signal = tcp_put_signal,
    .fence = tcp_fence,
    .quiet = tcp_quiet,
};

/* ---- atomic ---- */

static coh_status issue_atomic(cohi_endpoint *endpoint, cohi_tcp_verb verb, cohi_remote at,
                               const cohi_remote_atomic *call, void *result, cohi_op *op)
{
    cohi_tcp_link *link;
    cohi_tcp_request *request;
    size_t bytes = coh_dtype_size(call->dtype);
    coh_status status = begin_request(endpoint, at.rank, verb, &link, &request);
    if (status != COH_OK)
        return status;
    count(link, request, at.context, !op);
    aim(link, request, at);
    cohi_tcp_atomic *atomic = &request->frame.extension.atomic;
    *atomic = (cohi_tcp_atomic){.kind = (uint32_t)call->kind, .dtype = (uint32_t)call->dtype};
    if (call->operand)
        memcpy(&atomic->operand, call->operand, bytes);
    if (call->compare)
        memcpy(&atomic->compare, call->compare, bytes);
    request->target = result;
    request->expected = verb == COHI_TCP_FETCH ? bytes : 0;
    return end_request(link, request, op);
}

static coh_status tcp_post(cohi_endpoint *endpoint, cohi_remote at,
                           const cohi_remote_atomic *atomic)
{
    return issue_atomic(endpoint, COHI_TCP_POST, at, atomic, NULL, NULL);
}

static coh_status tcp_fetch(cohi_endpoint *endpoint, cohi_remote at,
                            const cohi_remote_atomic *atomic, void *result, cohi_op *op)
{
    return issue_atomic(endpoint, COHI_TCP_FETCH, at, atomic, result, op);
}

static const cohi_engine_atomic tcp_atomic = {
    .size = sizeof tcp_atomic,
    .post = tcp_post,
    .fetch = tcp_fetch,
};

/* ---- channel ---- */

static void fill_message(cohi_tcp_request *request, const void *head, size_t head_bytes,
                         const void *body, size_t body_bytes)
{
    memcpy(request->head + cohi_tcp_head_bytes(COHI_TCP_MESSAGE), head, head_bytes);
    request->prefix_bytes = head_bytes;
    request->source = body;
    request->left = body_bytes;
}

static coh_status tcp_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                           const void *body, size_t body_bytes, cohi_op *op)
{
    cohi_tcp_link *link;
    cohi_tcp_request *request;
    cohi_tcp_poll_expect(endpoint);
    coh_status status = begin_request(endpoint, rank, COHI_TCP_MESSAGE, &link, &request);
    if (status != COH_OK)
        return status;
    fill_message(request, head, head_bytes, body, body_bytes);
    return end_request(link, request, op);
}

/* A request without an op: nothing has to be found, or told, when it is over. */
static bool tcp_send_now(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                         const void *body, size_t body_bytes)
{
    cohi_tcp_link *link = cohi_tcp_link_find(endpoint, rank);
    if (!link)
        return false;
    cohi_tcp_poll_expect(endpoint);
    pthread_mutex_lock(&link->lock);
    cohi_tcp_request *request =
        cohi_tcp_ready_for_short(link) ? cohi_tcp_request_new(link, COHI_TCP_MESSAGE) : NULL;
    if (request) {
        fill_message(request, head, head_bytes, body, body_bytes);
        cohi_tcp_request_submit(link, request, NULL);
        cohi_tcp_keep_rest(link);
    }
    pthread_mutex_unlock(&link->lock);
    return request != NULL;
}

static const cohi_engine_channel tcp_channel = {
    .size = sizeof tcp_channel,
    .send = tcp_send,
    .send_now = tcp_send_now,
};

/* ---- the descriptor ---- */

const cohi_engine cohi_engine_tcp = {
    .size = sizeof cohi_engine_tcp,
    .contract = COHI_CONTRACT,
    .name = "tcp",
    .lifecycle = &tcp_lifecycle,
    .memory = &cohi_tcp_memory,
    .rma = &tcp_rma,
    .atomic = &tcp_atomic,
    .channel = &tcp_channel,
};
