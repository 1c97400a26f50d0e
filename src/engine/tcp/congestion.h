/*
 * congestion.h - how the kernel holds back what a link sends: its congestion control.
 *
 * BBR, the system's choice on some hosts, sends by a timer at the rate that it has measured. Between hosts that are near each
 * other that costs more than it saves: an all_reduce of 1 MiB in frames of 512 KiB took 200 to 280 us with it and 165
 * with reno (two ranks, loopback, Zen 5). So links begin without pacing where the system paces, and a link with a
 * long round trip gets the system's choice once it is open.
 */
#ifndef COHI_ENGINE_TCP_CONGESTION_H
#define COHI_ENGINE_TCP_CONGESTION_H

#include <cohort.h>
#include <stdint.h>

enum { COHI_TCP_CONGESTION_NAME = 16 };

/* Names of the kernel's; empty: it is left as it is. */
typedef struct cohi_tcp_congestion {
    char near[COHI_TCP_CONGESTION_NAME]; /* of a socket before it calls or listens */
    char far[COHI_TCP_CONGESTION_NAME];  /* of an open link with a long round trip */
} cohi_tcp_congestion;

/* What COHORT_CONGESTION asks for: "auto", "system", or a name. One that the kernel does not let this process have is
 * COH_INVALID_ARGUMENT. */
coh_status cohi_tcp_congestion_choose(const char *wish, cohi_tcp_congestion *chosen);

/* Before a socket calls or listens; what it accepts inherits it. */
void cohi_tcp_congestion_begin(const cohi_tcp_congestion *chosen, int fd);

/* A connection is open whose round trip takes so long. */
void cohi_tcp_congestion_settle(const cohi_tcp_congestion *chosen, int fd, uint32_t round_trip_us);

#endif
