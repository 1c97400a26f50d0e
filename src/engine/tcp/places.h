/*
 * places.h - the addresses of this host at which a rank listens, and in which order to call those of
 * another.
 */
#ifndef COHI_ENGINE_TCP_PLACES_H
#define COHI_ENGINE_TCP_PLACES_H

#include "base/config.h"
#include "engine/engine.h"
#include "engine/tcp/socket.h"
#include "engine/tcp/wire.h"

#include <stdbool.h>

enum { COHI_TCP_PLACES = 8 };

/* What a rank tells the others: where it listens; without a handshake, what it wants to be shown and
 * what it shows. */
typedef struct cohi_tcp_address {
    uint64_t network; /* cohi_os_network_id: whose loopback address is the same */
    uint16_t secures; /* it can make handshakes */
    uint16_t clear;   /* what follows them is not to be sealed */
    uint32_t count;   /* of the places */
    cohi_tcp_place places[COHI_TCP_PLACES];
    unsigned char first_key[COHI_TCP_KEY_BYTES];
    unsigned char second_key[COHI_TCP_KEY_BYTES];
} cohi_tcp_address;

_Static_assert(sizeof(cohi_tcp_address) <= COHI_ADDRESS_BYTES, "it fits a card");

/*
 * Chooses places, without ports, of `address`, of which `secures` and `network` are set: those of
 * COHORT_NET_INTERFACE, else all that are up. The loopback's count where it is named, or where
 * COHORT_HOST says that this machine plays several hosts; without handshakes no others count.
 * COH_INVALID_ARGUMENT where what is named is not there, with what is. There may be none.
 */
coh_status cohi_tcp_places_choose(const cohi_config *config, cohi_tcp_address *address);

/* The ports of COHORT_PORTS; 0 and 0: any. */
typedef struct cohi_tcp_ports {
    unsigned first, last;
} cohi_tcp_ports;

coh_status cohi_tcp_ports_parse(const char *text, cohi_tcp_ports *ports);

bool cohi_tcp_place_is_loopback(const cohi_tcp_place *place);

/* Of a rank's places, as it says: a damaged count is none. */
int cohi_tcp_places_count(const cohi_tcp_address *address);

/*
 * Indices of the places of `peer`, on another host, that a rank with the address `own` may reach, the best
 * first: the loopback's where it is the same network; then a common subnet; then the rest, as the
 * peer lists them. Returns how many.
 */
int cohi_tcp_places_order(const cohi_tcp_address *own, const cohi_tcp_address *peer,
                          unsigned char order[COHI_TCP_PLACES]);

/* "10.0.0.1 port 4711, fd00::1 port 4712"; "no address" for none. */
enum { COHI_TCP_PLACES_TEXT = 512 };
void cohi_tcp_places_text(const cohi_tcp_address *address, char text[COHI_TCP_PLACES_TEXT]);

#endif
