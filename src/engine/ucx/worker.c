/* worker.c - UCX's context and worker of an endpoint. */
#include "engine/ucx/ucx.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* How long the end of an endpoint waits for UCX: for bytes on their way out, and to let go. */
#define IDLE_NS   (50 * COHI_NS_PER_MS)
#define LINGER_NS (COHI_NS_PER_S / 2)
#define DRAIN_NS  (COHI_NS_PER_S / 5)
#define CLOSE_NS  (2 * COHI_NS_PER_S)

static coh_status refuse(const cohi_endpoint *endpoint, const char *what, ucs_status_t status)
{
    return cohi_fail(COH_TRANSPORT, "ucx: rank %d: %s: %s", endpoint->rank, what,
                     endpoint->ucx->ucs_status_string(status));
}

/* ---- opening ---- */

/* UCX ends the process when it gets no descriptor for its thread. So it is not begun with too few. */
static coh_status check_descriptors(const cohi_endpoint *endpoint)
{
    enum { NEEDED = 32 };
    struct rlimit limit;
    int used = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        used++;
    if (folder)
        closedir(folder);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
        || limit.rlim_cur >= (rlim_t)used + NEEDED)
        return COH_OK;
    return cohi_fail(COH_LIMIT,
                     "ucx: rank %d may open %llu descriptors (ulimit -n) and has %d; UCX needs %d",
                     endpoint->rank, (unsigned long long)limit.rlim_cur, used, NEEDED);
}

/* Over TCP UCX connects by a call that blocks, with the endpoint's lock held. Where nobody answers, the kernel asks again
 * after 1, 3, 7, ... seconds, for two minutes: longer than a host may be silent. What the user has set stands. */
static void bound_connecting(const cohi_endpoint *endpoint, ucp_config_t *config)
{
    enum { LEAST = 1, MOST = 6 };
    uint64_t takes_ns = 3 * COHI_NS_PER_S;
    char text[16];
    int repeats = LEAST;
    while (repeats < MOST && 2 * takes_ns + COHI_NS_PER_S <= endpoint->link_timeout_ns) {
        takes_ns = 2 * takes_ns + COHI_NS_PER_S;
        repeats++;
    }
    snprintf(text, sizeof text, "%d", repeats);
    if (!getenv("UCX_TCP_SYN_CNT"))
        (void)endpoint->ucx->ucp_config_modify(config, "TCP_SYN_CNT", text);
}

static coh_status open_context(cohi_endpoint *endpoint)
{
    const cohi_ucx_library *ucx = endpoint->ucx;
    ucp_config_t *config;
    ucp_params_t params = {.field_mask =
                               UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                           .estimated_num_eps = (size_t)endpoint->size};
    ucs_status_t status = ucx->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return refuse(endpoint, "UCX's settings cannot be read", status);
    bound_connecting(endpoint, config);
    status =
        ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &endpoint->context);
    ucx->ucp_config_release(config);
    if (status == UCS_OK)
        return COH_OK;
    endpoint->context = NULL;
    return refuse(endpoint, "UCX finds no transport that it may use (UCX_TLS, UCX_NET_DEVICES)",
                  status);
}

static coh_status open_worker(cohi_endpoint *endpoint)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status =
        endpoint->ucx->ucp_worker_create(endpoint->context, &params, &endpoint->worker);
    if (status == UCS_OK)
        return COH_OK;
    endpoint->worker = NULL;
    return refuse(endpoint, "UCX cannot make a worker", status);
}

static coh_status set_handler(cohi_endpoint *endpoint)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS
                      | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = COHI_UCX_FRAME_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = cohi_ucx_receive,
        .arg = endpoint,
    };
    ucs_status_t status = endpoint->ucx->ucp_worker_set_am_recv_handler(endpoint->worker, &param);
    return status == UCS_OK ? COH_OK : refuse(endpoint, "UCX takes no active messages", status);
}

static coh_status check_limits(cohi_endpoint *endpoint, const ucp_worker_attr_t *attributes)
{
    size_t header = sizeof(cohi_ucx_frame) + COHI_HEAD_BYTES;
    if (attributes->max_am_header < header)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "ucx: a header of UCX's has at most %zu bytes; %zu are needed",
                         attributes->max_am_header, header);
    if (attributes->address_length > sizeof endpoint->own.worker)
        return cohi_fail(COH_LIMIT,
                         "ucx: UCX's address of rank %d has %zu bytes; at most %zu fit. "
                         "UCX_NET_DEVICES with fewer devices makes it shorter",
                         endpoint->rank, attributes->address_length, sizeof endpoint->own.worker);
    return COH_OK;
}

/* Peers of this host are mapped, so that an address need not have the ways to them. */
static coh_status note_address(cohi_endpoint *endpoint)
{
    ucp_worker_attr_t attributes = {
        .field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER | UCP_WORKER_ATTR_FIELD_ADDRESS
                      | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
        .address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY,
    };
    ucs_status_t queried = endpoint->ucx->ucp_worker_query(endpoint->worker, &attributes);
    if (queried != UCS_OK)
        return refuse(endpoint, "UCX does not tell its address", queried);
    coh_status status = check_limits(endpoint, &attributes);
    if (status == COH_OK) {
        endpoint->own.bytes = (uint32_t)attributes.address_length;
        memcpy(endpoint->own.worker, attributes.address, attributes.address_length);
    }
    endpoint->ucx->ucp_worker_release_address(endpoint->worker, attributes.address);
    return status;
}

coh_status cohi_ucx_worker_open(cohi_endpoint *endpoint)
{
    const char *named = getenv("UCX_TLS");
    cohi_ucx_threads before;
    cohi_ucx_async_find(&before);
    coh_status status = check_descriptors(endpoint);
    if (status == COH_OK)
        status = open_context(endpoint);
    if (status == COH_OK)
        status = open_worker(endpoint);
    endpoint->noted = endpoint->worker != NULL;
    if (endpoint->noted)
        cohi_ucx_async_begin(&before);
    if (status == COH_OK)
        status = set_handler(endpoint);
    if (status == COH_OK)
        status = note_address(endpoint);
    if (status == COH_OK)
        cohi_log(COH_LOG_INFO, "ucx: rank %d: UCX %s, transports %s", endpoint->rank,
                 endpoint->ucx->ucp_get_version_string(), named ? named : "of UCX's choice");
    return status;
}

/* ---- closing ---- */

static bool is_drained(cohi_endpoint *endpoint, const void *unused)
{
    (void)unused;
    for (int i = 0; i < endpoint->made_count; i++)
        for (const cohi_ucx_request *request = endpoint->made[i]->requests.first; request;
             request = request->next)
            if (request->sending)
                return false;
    return true;
}

static bool is_closed(cohi_endpoint *endpoint, const void *unused)
{
    if (endpoint->closing > 0)
        return false;
    for (int i = 0; i < endpoint->made_count; i++)
        if (endpoint->made[i]->requests.first || endpoint->made[i]->landings > 0
            || endpoint->made[i]->ep)
            return false;
    (void)unused;
    return true;
}

/* Whether no rank of another host may be calling this one for the first time. */
static bool is_known_to_all(const cohi_endpoint *endpoint)
{
    for (int rank = 0; rank < endpoint->size; rank++) {
        const cohi_ucx_link *link = endpoint->links[rank];
        if (!cohi_segments_is_near(&endpoint->segments, rank)
            && !(link && (link->ended || link->heard)))
            return false;
    }
    return true;
}

/*
 * UCX takes several messages to connect. A rank that is just calling for the first time is told that this
 * one has left, rather than find that nobody listens. And UCX (1.13) ends the process if a worker is
 * destroyed while its part of such a call waits to be sent. So this goes on until nothing has
 * happened for a while.
 */
static void linger(cohi_endpoint *endpoint)
{
    uint64_t now_ns = cohi_now_ns(), until_ns = now_ns + IDLE_NS, last_ns = now_ns + LINGER_NS;
    while (!is_known_to_all(endpoint) && now_ns < until_ns && now_ns < last_ns) {
        bool moved = cohi_ucx_step(endpoint);
        if (!moved)
            sched_yield();
        now_ns = cohi_now_ns();
        until_ns = moved ? now_ns + IDLE_NS : until_ns;
    }
}

static void end_links(cohi_endpoint *endpoint)
{
    cohi_ucx_lock(endpoint);
    if (endpoint->leaving) {
        linger(endpoint);
        (void)cohi_ucx_step_until(endpoint, is_drained, NULL, DRAIN_NS);
    }
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_ucx_link_end(endpoint->made[i], (cohi_loss)0);
    (void)cohi_ucx_step_until(endpoint, is_closed, NULL, CLOSE_NS);
    cohi_ucx_unlock(endpoint);
}

void cohi_ucx_worker_close(cohi_endpoint *endpoint)
{
    if (endpoint->worker) {
        end_links(endpoint);
        endpoint->ucx->ucp_worker_destroy(endpoint->worker);
    }
    if (endpoint->noted)
        cohi_ucx_async_end();
    endpoint->noted = false;
    if (endpoint->context)
        endpoint->ucx->ucp_cleanup(endpoint->context);
    endpoint->worker = NULL;
    endpoint->context = NULL;
}
