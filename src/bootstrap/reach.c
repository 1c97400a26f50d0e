#include "bootstrap/reach.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_NS (250 * COHI_NS_PER_MS) /* for one address; it is tried again */

void cohi_reach_begin(cohi_reach *reach, const cohi_id_layout *id, int rank, int size)
{
    *reach = (cohi_reach){.fd = -1,
                          .self = {.purpose = COHI_TLS_RENDEZVOUS, .rank = rank, .size = size}};
    cohi_unique_id_socket(id, reach->name);
    memcpy(reach->self.secret, id->secret, sizeof reach->self.secret);
    memcpy(reach->self.job, id->name, sizeof reach->self.job);
    cohi_root_read(id, &reach->root);
    reach->is_far =
        reach->root.count > 0 && !cohi_root_is_own(reach->root.addresses, reach->root.count);
}

const char *cohi_reach_describe(const cohi_reach *reach, char text[COHI_REACH_TEXT])
{
    char address[COHI_OS_ADDRESS_TEXT];
    *text = '\0';
    if (!reach->is_far)
        return text;
    cohi_os_address_text(&reach->root.addresses[reach->failed], address);
    snprintf(text, COHI_REACH_TEXT, " (%s port %u: %s)", address, reach->root.port,
             reach->error ? cohi_os_error_text(reach->error) : "it does not answer");
    return text;
}

static void hang_up(cohi_reach *reach)
{
    cohi_tls_end(reach->tls);
    reach->tls = NULL;
    cohi_os_close(reach->fd);
    reach->fd = -1;
}

/* One address a time; the next is tried the next time. */
static coh_status call_next(cohi_reach *reach)
{
    int index = reach->next;
    reach->next = (index + 1) % reach->root.count;
    reach->failed = index;
    reach->error = cohi_os_net_connect(&reach->root.addresses[index], reach->root.port,
                                       cohi_now_ns() + CONNECT_NS, &reach->fd);
    if (reach->error)
        return COH_OK;
    return cohi_tls_call(&reach->self, reach->fd, 0, &reach->tls);
}

static coh_status prove(cohi_reach *reach, cohi_connection *link)
{
    cohi_tls_turn turn = cohi_tls_step(reach->tls);
    if (turn == COHI_TLS_FAILED) {
        char where[COHI_OS_ADDRESS_TEXT];
        cohi_os_address_text(&reach->root.addresses[reach->failed], where);
        coh_status status =
            cohi_fail(COH_TRANSPORT, "coh_init: rank %d cannot join by rank 0 at %s port %u: %s",
                      reach->self.rank, where, reach->root.port, cohi_tls_reason(reach->tls));
        hang_up(reach);
        return status;
    }
    if (turn != COHI_TLS_DONE)
        return COH_OK;
    if (!cohi_link_seal(reach->tls, reach->fd, link))
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the link to rank 0");
    reach->fd = -1;
    cohi_tls_end(reach->tls);
    reach->tls = NULL;
    return COH_OK;
}

coh_status cohi_reach_try(cohi_reach *reach, cohi_connection *link)
{
    *link = COHI_NO_LINK;
    if (reach->fd < 0) {
        int error = cohi_os_local_connect(reach->name, &link->fd);
        if (error && error != ECONNREFUSED && error != EAGAIN)
            return cohi_fail_os(error, "coh_init: rank %d cannot connect to rank 0",
                                reach->self.rank);
        if (!error || !reach->is_far)
            return COH_OK;
    }
    coh_status status = reach->fd < 0 ? call_next(reach) : COH_OK;
    return status == COH_OK && reach->tls ? prove(reach, link) : status;
}

void cohi_reach_end(cohi_reach *reach)
{
    hang_up(reach);
}
