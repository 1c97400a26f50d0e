/*
 * socket.h - stream sockets between hosts: never blocking, close-on-exec, no signals.
 *
 * Functions return 0 or an errno value.
 */
#ifndef COHI_ENGINE_TCP_SOCKET_H
#define COHI_ENGINE_TCP_SOCKET_H

#include "engine/tcp/congestion.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* An address and a port, as they travel. */
typedef struct cohi_tcp_place {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t prefix; /* bits of its subnet */
    uint16_t port;  /* it and the host in network order */
    unsigned char host[16];
} cohi_tcp_place;

/* Listens at the place; where its port is 0 the kernel chooses one, which is then in it. */
int cohi_tcp_socket_listen(cohi_tcp_place *place, const cohi_tcp_congestion *congestion, int *fd);

/* "10.0.0.1 port 4711": a place, or the other end of a connection. */
enum { COHI_TCP_PLACE_TEXT = 64 };
void cohi_tcp_place_text(const cohi_tcp_place *place, char text[COHI_TCP_PLACE_TEXT]);
void cohi_tcp_socket_peer(int fd, char text[COHI_TCP_PLACE_TEXT]);

/* Begins to connect: EINPROGRESS is no error, the socket can be written once it is connected. */
int cohi_tcp_socket_call(const cohi_tcp_place *place, const cohi_tcp_congestion *congestion,
                         uint64_t timeout_ns, int *fd);

/* How that ended. */
int cohi_tcp_socket_error(int fd);

/* The shortest that was seen between a segment and its acknowledgement; 0: not known. */
uint32_t cohi_tcp_socket_round_trip_us(int fd);

/* Whether the other host has acknowledged all that this one has sent or asked, its keepalives too, or
 * has acknowledged something not longer ago than that. Its process may be stopped all the same. */
bool cohi_tcp_socket_is_acknowledged(int fd, uint64_t recent_ns, uint64_t *acknowledged);

/* How long what is sent may wait for its acknowledgement, or for room in the other host's buffer,
 * until the connection breaks; 0: for ever. */
void cohi_tcp_socket_limit(int fd, uint64_t timeout_ns);

/* Takes a connection if one is waiting; EAGAIN when none is. */
int cohi_tcp_socket_accept(int listener, uint64_t timeout_ns, int *fd);

/* Moves what can be moved at once; EAGAIN: nothing. Of a read, *moved of 0 is the end. */
int cohi_tcp_socket_write(int fd, const struct iovec *parts, int count, size_t *moved);
int cohi_tcp_socket_read(int fd, const struct iovec *parts, int count, size_t *moved);

/* All of it, which is so little that a new socket takes it at once; else EIO. */
int cohi_tcp_socket_write_whole(int fd, const void *bytes, size_t count);

/* No more is sent, or neither sent nor received. */
void cohi_tcp_socket_end_output(int fd);
void cohi_tcp_socket_end(int fd);

#endif
