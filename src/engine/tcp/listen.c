#include "engine/tcp/tcp.h"

#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/unique_id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* ---- listening ---- */

void cohi_tcp_listen_no_more(cohi_endpoint *endpoint)
{
    for (int i = 0; i < COHI_TCP_PLACES; i++) {
        cohi_os_close(endpoint->listeners[i].fd);
        endpoint->listeners[i].fd = -1;
    }
}

_Static_assert((int)COHI_TLS_SECRET_BYTES == (int)COHI_SECRET_BYTES, "it is the id's secret");

/* By what this rank proves itself. */
static void introduce(cohi_endpoint *endpoint, const coh_unique_id *id)
{
    cohi_id_layout layout;
    if (!id || cohi_tls_available() != COH_OK)
        return;
    memcpy(&layout, id->bytes, sizeof layout);
    endpoint->own.secures = 1;
    endpoint->self =
        (cohi_tls_self){.purpose = COHI_TLS_LINK, .rank = endpoint->rank, .size = endpoint->size};
    memcpy(endpoint->self.secret, layout.secret, sizeof endpoint->self.secret);
    memcpy(endpoint->self.job, layout.name, sizeof endpoint->self.job);
    explicit_bzero(&layout, sizeof layout);
}

/* Where no handshake can be made, the keys let a member of the job in and keep strangers, and other
 * jobs, out. */
static coh_status make_keys(cohi_endpoint *endpoint)
{
    int error = cohi_os_random(endpoint->own.first_key, sizeof endpoint->own.first_key);
    if (!error)
        error = cohi_os_random(endpoint->own.second_key, sizeof endpoint->own.second_key);
    return error ? cohi_fail_os(error, "tcp: no random number can be had") : COH_OK;
}

/* At a free port of those that are allowed. Ranks begin at different ones. */
static int listen_at(const cohi_endpoint *endpoint, const cohi_tcp_ports *ports,
                     cohi_tcp_place *place, int *fd)
{
    unsigned count = ports->last - ports->first + 1;
    int error = EADDRINUSE;
    for (unsigned i = 0; i < count && error == EADDRINUSE; i++) {
        unsigned port = ports->first + (i + (unsigned)endpoint->rank) % count;
        place->port = htons((uint16_t)port);
        error = cohi_tcp_socket_listen(place, &endpoint->congestion, fd);
    }
    return error;
}

static coh_status refuse_listening(const cohi_endpoint *endpoint, const cohi_tcp_ports *ports,
                                   const cohi_tcp_place *place, int error)
{
    char where[COHI_TCP_PLACE_TEXT];
    cohi_tcp_place_text(place, where);
    if (error == EADDRINUSE && ports->first)
        return cohi_fail(
            COH_LIMIT,
            "tcp: rank %d: all ports of COHORT_PORTS=%u-%u are taken at %.*s; each rank "
            "of a host needs one, rank 0's host one more to start, and other jobs theirs",
            endpoint->rank, ports->first, ports->last, (int)strcspn(where, " "), where);
    return cohi_fail_os(error, "tcp: rank %d cannot listen at %s", endpoint->rank, where);
}

/* An address that went away meanwhile is left out. */
static coh_status listen_at_all(cohi_endpoint *endpoint, const cohi_tcp_ports *ports)
{
    cohi_tcp_address *own = &endpoint->own;
    coh_status status = COH_OK;
    uint32_t chosen = own->count;
    own->count = 0;
    for (uint32_t i = 0; i < chosen && status == COH_OK; i++) {
        cohi_tcp_place place = own->places[i];
        int error = listen_at(endpoint, ports, &place, &endpoint->listeners[own->count].fd);
        if (!error)
            own->places[own->count++] = place;
        else if (error != EADDRNOTAVAIL)
            status = refuse_listening(endpoint, ports, &place, error);
    }
    return status;
}

coh_status cohi_tcp_listen(cohi_endpoint *endpoint, const cohi_engine_args *args)
{
    cohi_tcp_ports ports;
    introduce(endpoint, args->id);
    endpoint->own.clear = args->config->net == COHI_NET_CLEAR;
    endpoint->own.network = cohi_os_network_id();
    coh_status status = cohi_tcp_ports_parse(args->config->ports, &ports);
    if (status == COH_OK)
        status = cohi_tcp_congestion_choose(args->config->congestion, &endpoint->congestion);
    if (status == COH_OK)
        status = make_keys(endpoint);
    if (status == COH_OK)
        status = cohi_tcp_places_choose(args->config, &endpoint->own);
    return status == COH_OK ? listen_at_all(endpoint, &ports) : status;
}

/* ---- going online ---- */

/* Without handshakes nothing but loopback addresses is listened at (places.h): hosts that one machine plays
 * can do without OpenSSL, since what they send does not leave it. All ranks decide alike. */
static void choose_security(cohi_endpoint *endpoint)
{
    endpoint->secured = true;
    for (int rank = 0; rank < endpoint->size && endpoint->secured; rank++) {
        endpoint->secured = endpoint->addresses[rank].secures != 0;
        if (!endpoint->secured && endpoint->rank == 0)
            cohi_log(COH_LOG_WARN,
                     "tcp: the hosts that this machine plays connect without handshakes: rank %d "
                     "has no OpenSSL 3 (libssl.so.3)",
                     rank);
    }
    endpoint->seals = endpoint->secured && !endpoint->own.clear;
}

/* Nobody is talked into the clear by another: all ask for it, or none. */
static coh_status check_alike(const cohi_endpoint *endpoint, int rank)
{
    bool own = endpoint->own.clear, theirs = endpoint->addresses[rank].clear;
    return own == theirs
               ? COH_OK
               : cohi_fail(COH_MISMATCH,
                           "tcp: rank %d has COHORT_NET=%s, rank %d COHORT_NET=%s; what travels "
                           "between hosts is sealed by all ranks or by none",
                           endpoint->rank, own ? "clear" : "seal", rank, theirs ? "clear" : "seal");
}

static coh_status check_reach(const cohi_endpoint *endpoint, int rank)
{
    const cohi_tcp_address *address = &endpoint->addresses[rank];
    unsigned char order[COHI_TCP_PLACES];
    char own[COHI_TCP_PLACES_TEXT], there[COHI_TCP_PLACES_TEXT];
    if (cohi_segments_is_near(&endpoint->segments, rank)
        || cohi_tcp_places_order(&endpoint->own, address, order) > 0)
        return COH_OK;
    if (!address->secures || !endpoint->own.secures) {
        coh_status status = endpoint->own.secures ? COH_OK : cohi_tls_available();
        return status != COH_OK
                   ? status
                   : cohi_fail(COH_NOT_AVAILABLE,
                               "tcp: rank %d, which is on another host, has no OpenSSL 3 "
                               "(libssl.so.3), without which nothing is sent over a network",
                               rank);
    }
    cohi_tcp_places_text(&endpoint->own, own);
    cohi_tcp_places_text(address, there);
    return cohi_fail(COH_NOT_AVAILABLE,
                     "tcp: rank %d, on another host, listens at %s; rank %d has %s, from which it "
                     "cannot be reached (COHORT_NET_INTERFACE)",
                     rank, there, endpoint->rank, own);
}

coh_status cohi_tcp_go_online(cohi_endpoint *endpoint)
{
    char text[COHI_TCP_PLACES_TEXT];
    for (int rank = 0; rank < endpoint->size; rank++) {
        coh_status status = check_reach(endpoint, rank);
        if (status == COH_OK)
            status = check_alike(endpoint, rank);
        if (status != COH_OK)
            return status;
    }
    choose_security(endpoint);
    cohi_tcp_places_text(&endpoint->own, text);
    cohi_log(COH_LOG_INFO, "tcp: rank %d listens at %s; its links are %s", endpoint->rank, text,
             endpoint->seals ? "sealed" : "in the clear");
    return cohi_tcp_thread_start(endpoint);
}
