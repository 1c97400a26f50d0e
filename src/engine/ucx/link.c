#include "engine/ucx/ucx.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <sched.h>
#include <stdlib.h>

/* ---- the lock ---- */

static void note_held(cohi_endpoint *endpoint, int held)
{
    endpoint->held = held;
}

void cohi_ucx_lock(cohi_endpoint *endpoint)
{
    int held = cohi_cancel_hold();
    pthread_mutex_lock(&endpoint->lock);
    note_held(endpoint, held);
}

bool cohi_ucx_trylock(cohi_endpoint *endpoint)
{
    int held = cohi_cancel_hold();
    bool locked = pthread_mutex_trylock(&endpoint->lock) == 0;
    if (locked)
        note_held(endpoint, held);
    else
        cohi_cancel_release(held);
    return locked;
}

void cohi_ucx_unlock(cohi_endpoint *endpoint)
{
    int held = endpoint->held;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cancel_release(held);
}

void cohi_ucx_end_call(cohi_endpoint *endpoint)
{
    cohi_ucx_unlock(endpoint);
    cohi_events_ring(&endpoint->events);
}

/* ---- making ---- */

/* UCX found that the other side is gone. */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    cohi_ucx_link *link = arg;
    const cohi_endpoint *endpoint = link->endpoint;
    (void)ep;
    link->broken = true;
    if (!link->ended && !link->peer_left)
        cohi_log(COH_LOG_INFO, "ucx: rank %d: the link to rank %d broke: %s", endpoint->rank,
                 link->rank, endpoint->ucx->ucs_status_string(status));
    cohi_ucx_link_end(link, link->heard ? COHI_LOSS_LINK : COHI_LOSS_ABSENT);
}

static ucs_status_t open_ep(cohi_ucx_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    const cohi_ucx_address *address = &endpoint->addresses[link->rank];
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                      | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)address->worker,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = link},
    };
    link->called_ns = cohi_now_ns();
    return endpoint->ucx->ucp_ep_create(endpoint->worker, &params, &link->ep);
}

static cohi_ucx_link *make_link(cohi_endpoint *endpoint, int rank)
{
    cohi_ucx_link *link = calloc(1, sizeof *link);
    if (!link)
        return NULL;
    link->endpoint = endpoint;
    link->rank = rank;
    endpoint->links[rank] = link;
    endpoint->made[endpoint->made_count++] = link;
    return link;
}

void cohi_ucx_link_free(cohi_ucx_link *link)
{
    free(link);
}

static coh_status refuse_gone(const cohi_endpoint *endpoint, int rank)
{
    bool left = atomic_load(&endpoint->fates[rank]) == COHI_UCX_LEFT;
    return cohi_fail(COH_PEER_LOST, "ucx: rank %d %s", rank, left ? "has left" : "is lost");
}

/* A refusal comes at once. What took a second is the kernel's word that the host does not answer. */
static void end_unreachable(cohi_ucx_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    uint64_t took_ns = cohi_now_ns() - link->called_ns, most_ns = endpoint->link_timeout_ns;
    if (took_ns < COHI_NS_PER_S || most_ns == 0) {
        cohi_ucx_link_end(link, COHI_LOSS_ABSENT);
        return;
    }
    cohi_ucx_link_end(link, (cohi_loss)0);
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_SILENT, link->rank, 0);
    if (event)
        event->silent_ns = took_ns > most_ns ? took_ns : most_ns;
    cohi_events_add(&endpoint->events, event);
}

/* The endpoint is made when it is first needed. UCX connects it by and by. */
static coh_status use(cohi_ucx_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (link->ended || link->peer_left)
        return refuse_gone(endpoint, link->rank);
    if (link->ep)
        return COH_OK;
    ucs_status_t status = open_ep(link);
    if (status == UCS_OK)
        return COH_OK;
    link->ep = NULL;
    if (status != UCS_ERR_UNREACHABLE)
        return cohi_fail(COH_TRANSPORT, "ucx: rank %d cannot be reached: %s", link->rank,
                         endpoint->ucx->ucs_status_string(status));
    end_unreachable(link);
    return refuse_gone(endpoint, link->rank);
}

coh_status cohi_ucx_link_to(cohi_endpoint *endpoint, int rank, cohi_ucx_link **link)
{
    if (atomic_load_explicit(&endpoint->fates[rank], memory_order_relaxed) != COHI_UCX_ALIVE)
        return refuse_gone(endpoint, rank);
    *link = endpoint->links[rank];
    if (!*link)
        *link = make_link(endpoint, rank);
    return *link ? use(*link)
                 : cohi_fail(COH_NO_MEMORY, "ucx: out of memory for the link to rank %d", rank);
}

/* Both sides keep a link alive, so the one that was called calls too; UCX joins the two. */
cohi_ucx_link *cohi_ucx_link_from(cohi_endpoint *endpoint, int rank)
{
    cohi_ucx_link *link = endpoint->links[rank];
    if (!link)
        link = make_link(endpoint, rank);
    if (link && !link->ep && !link->ended && open_ep(link) != UCS_OK)
        link->ep = NULL;
    return link;
}

/* ---- ending ---- */

void cohi_ucx_link_end(cohi_ucx_link *link, cohi_loss loss)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (link->ended)
        return;
    link->ended = true;
    atomic_store(&endpoint->fates[link->rank], link->peer_left ? COHI_UCX_LEFT : COHI_UCX_LOST);
    cohi_ucx_requests_drop(link);
    cohi_ucx_arrivals_drop(link);
    endpoint->sweep = true;
    if (loss && !link->peer_left) {
        cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_LOST, link->rank, 0);
        if (event)
            event->loss = loss;
        cohi_events_add(&endpoint->events, event);
    }
    cohi_ucx_thread_wake(endpoint);
}

void cohi_ucx_link_refuse(cohi_ucx_link *link, unsigned verb, const char *wrong)
{
    if (link->ended)
        return;
    cohi_log(COH_LOG_ERROR, "ucx: rank %d ends the link to rank %d: frame %u is wrong: %s",
             link->endpoint->rank, link->rank, verb, wrong);
    cohi_ucx_link_end(link, COHI_LOSS_LINK);
}

static void on_closed(void *ucx_request, ucs_status_t status, void *arg)
{
    cohi_endpoint *endpoint = arg;
    (void)status;
    endpoint->ucx->ucp_request_free(ucx_request);
    endpoint->closing--;
}

/*
 * UCX (1.13) ends the process of a rank that is just answering a call when the caller closes its side. So that waits
 * until the answer has come, or would have: unless UCX has memory of the program's, which only closing
 * gives back.
 */
#define ANSWER_NS COHI_NS_PER_S

static bool holds_memory(const cohi_ucx_link *link)
{
    for (const cohi_ucx_request *request = link->requests.first; request; request = request->next)
        if (request->landing || (request->sending && request->source))
            return true;
    return link->landings > 0;
}

static bool may_close(const cohi_ucx_link *link)
{
    return link->heard || link->broken || holds_memory(link)
           || cohi_now_ns() - link->called_ns >= ANSWER_NS;
}

/* By force: UCX ends what it has of the other side at once, and asks nobody. */
static void close_ep(cohi_ucx_link *link)
{
    cohi_endpoint *endpoint = link->endpoint;
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
        .cb.send = on_closed,
        .user_data = endpoint,
    };
    ucp_ep_h ep = link->ep;
    link->ep = NULL;
    if (UCS_PTR_IS_PTR(endpoint->ucx->ucp_ep_close_nbx(ep, &param)))
        endpoint->closing++;
}

void cohi_ucx_sweep(cohi_endpoint *endpoint)
{
    if (!endpoint->sweep)
        return;
    endpoint->sweep = false;
    for (int i = 0; i < endpoint->made_count; i++) {
        cohi_ucx_link *link = endpoint->made[i];
        if (!link->ended || !link->ep)
            continue;
        if (may_close(link))
            close_ep(link);
        else
            endpoint->sweep = true;
    }
}

/* ---- progress ---- */

bool cohi_ucx_step(cohi_endpoint *endpoint)
{
    unsigned moved = endpoint->ucx->ucp_worker_progress(endpoint->worker);
    cohi_ucx_sweep(endpoint);
    return moved > 0;
}

bool cohi_ucx_step_until(cohi_endpoint *endpoint, bool (*is_over)(cohi_endpoint *, const void *),
                         const void *what, uint64_t most_ns)
{
    uint64_t until_ns = cohi_now_ns() + most_ns;
    cohi_ucx_sweep(endpoint);
    while (!is_over(endpoint, what) && cohi_now_ns() < until_ns)
        if (!cohi_ucx_step(endpoint))
            sched_yield();
    return is_over(endpoint, what);
}

/* ---- now and then ---- */

static bool is_stuck(const cohi_ucx_link *link)
{
    const cohi_ucx_request *last = link->requests.last;
    return last && last->frame.verb == COHI_UCX_KEEPALIVE;
}

static void keep_alive(cohi_ucx_link *link)
{
    cohi_ucx_request *request =
        link->spoke || is_stuck(link) ? NULL : cohi_ucx_request_new(link, COHI_UCX_KEEPALIVE);
    if (request)
        cohi_ucx_request_submit(request, NULL, NULL);
    link->spoke = false;
}

void cohi_ucx_link_tick(cohi_ucx_link *link, uint64_t passed_ns)
{
    cohi_endpoint *endpoint = link->endpoint;
    if (link->ended || !link->ep)
        return;
    keep_alive(link);
    link->silent_ns += passed_ns;
    if (link->silent_ns < 4 * endpoint->tick_ns || link->peer_left)
        return;
    cohi_event *event = cohi_event_new(&endpoint->events, COHI_EVENT_SILENT, link->rank, 0);
    if (event)
        event->silent_ns = link->silent_ns;
    cohi_events_add(&endpoint->events, event);
}
