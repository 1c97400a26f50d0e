#include "engine/ucx/ucx.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- frames that must wait ---- */

/* A frame is begun when all before it were, and where it must come after them, when they are over. */
static bool can_begin(const cohi_ucx_link *link, const cohi_ucx_frame *frame)
{
    return frame->number == link->begun + 1 && (!frame->after || link->landings == 0);
}

static void release(cohi_ucx_link *link, cohi_ucx_arrival *arrival)
{
    const cohi_endpoint *endpoint = link->endpoint;
    if (arrival->fetched || arrival->held)
        endpoint->ucx->ucp_am_data_release(endpoint->worker, arrival->data);
    else
        free(arrival->data);
}

void cohi_ucx_arrivals_drop(cohi_ucx_link *link)
{
    while (link->waiting) {
        cohi_ucx_arrival *next = link->waiting->next;
        release(link, link->waiting);
        free(link->waiting);
        link->waiting = next;
    }
}

/* Puts it among those that wait. False: no memory. */
static bool put_aside(cohi_ucx_link *link, const cohi_ucx_arrival *arrival)
{
    cohi_ucx_arrival *kept = malloc(sizeof *kept);
    void *copy = NULL;
    if (!arrival->fetched && !arrival->held && arrival->bytes > 0) {
        copy = malloc(arrival->bytes);
        if (copy)
            memcpy(copy, arrival->data, arrival->bytes);
    }
    if (!kept || (!copy && !arrival->fetched && !arrival->held && arrival->bytes > 0)) {
        free(kept);
        free(copy);
        return false;
    }
    *kept = *arrival;
    if (!arrival->fetched && !arrival->held)
        kept->data = copy;
    cohi_ucx_arrival **place = &link->waiting;
    while (*place && (*place)->frame.number < kept->frame.number)
        place = &(*place)->next;
    kept->next = *place;
    *place = kept;
    return true;
}

/* ---- frames that begin ---- */

static bool begin(cohi_ucx_link *link, const cohi_ucx_arrival *arrival)
{
    bool taken = false;
    link->begun++;
    const char *wrong = cohi_ucx_serve(link, arrival, &taken);
    if (wrong)
        cohi_ucx_link_refuse(link, arrival->frame.verb, wrong);
    return taken;
}

void cohi_ucx_receive_more(cohi_ucx_link *link)
{
    while (link->waiting && can_begin(link, &link->waiting->frame)) {
        cohi_ucx_arrival *first = link->waiting;
        link->waiting = first->next;
        if (!begin(link, first))
            release(link, first);
        free(first);
    }
}

/* UCX's answer: whether it is to keep the data. */
static ucs_status_t handle(cohi_ucx_link *link, const cohi_ucx_arrival *arrival)
{
    bool lasts = arrival->fetched || arrival->held;
    if (!can_begin(link, &arrival->frame)) {
        if (put_aside(link, arrival))
            return lasts ? UCS_INPROGRESS : UCS_OK;
        cohi_ucx_link_refuse(link, arrival->frame.verb, "there is no memory to keep it");
        return UCS_OK;
    }
    bool taken = begin(link, arrival);
    cohi_ucx_receive_more(link);
    return taken ? UCS_INPROGRESS : UCS_OK;
}

/* ---- what comes ---- */

/* Checked by what the frame says alone. A stranger's is dropped: it is not known who sent it. */
static bool is_ours(const cohi_endpoint *endpoint, const cohi_ucx_frame *frame, size_t header_bytes)
{
    return frame->version == COHI_UCX_VERSION && frame->key == endpoint->own.key && frame->from >= 0
           && frame->from < endpoint->size && frame->from != endpoint->rank
           && header_bytes == sizeof *frame + frame->head_bytes
           && frame->head_bytes <= COHI_HEAD_BYTES;
}

/* Whoever calls a rank that has left is told so. */
static void say_gone(cohi_ucx_link *link)
{
    cohi_ucx_request *request = link->ep ? cohi_ucx_request_new(link, COHI_UCX_GONE) : NULL;
    if (request)
        cohi_ucx_request_submit(request, NULL, NULL);
}

ucs_status_t cohi_ucx_receive(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t bytes, const ucp_am_recv_param_t *param)
{
    cohi_endpoint *endpoint = arg;
    cohi_ucx_arrival arrival = {.data = data, .bytes = bytes};
    arrival.fetched = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    arrival.held = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA;
    if (header_bytes < sizeof arrival.frame
        || header_bytes > sizeof arrival.frame + COHI_HEAD_BYTES)
        return UCS_OK;
    memcpy(&arrival.frame, header, sizeof arrival.frame);
    if (!is_ours(endpoint, &arrival.frame, header_bytes)) {
        cohi_log(COH_LOG_WARN, "ucx: rank %d dropped a frame of a stranger", endpoint->rank);
        return UCS_OK;
    }
    memcpy(arrival.head, (const char *)header + sizeof arrival.frame, arrival.frame.head_bytes);
    bool known = endpoint->links[arrival.frame.from] != NULL;
    cohi_ucx_link *link = cohi_ucx_link_from(endpoint, arrival.frame.from);
    if (link)
        link->heard = true;
    if (!link || link->ended)
        return UCS_OK;
    link->silent_ns = 0;
    if (!known && endpoint->leaving)
        say_gone(link);
    return handle(link, &arrival);
}
