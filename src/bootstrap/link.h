/*
 * link.h - one connection of a group, and the frames that travel on it.
 *
 * Inside a host a link is a local socket, on which a frame may carry descriptors; between hosts it
 * is a TCP connection whose other end has proved that it knows the job's secret, and all on it is in
 * sealed records (secure/seal.h), whatever COHORT_NET says: it is little. A frame is a head
 * of fixed size and as many bytes as that says, up to a limit that the receiver gives: nothing is
 * allocated by what a peer says. Both ends have the same byte order.
 */
#ifndef COHI_BOOTSTRAP_LINK_H
#define COHI_BOOTSTRAP_LINK_H

#include "bootstrap/board.h"
#include "bootstrap/unique_id.h"
#include "secure/tls.h"

typedef enum cohi_link_kind {
    COHI_LINK_HELLO = 1,   /* up: who I am; a cohi_hello */
    COHI_LINK_HERE = 2,    /* leader to root: `rank` has come to my host */
    COHI_LINK_WELCOME = 3, /* down: all are here; the hosts, and to members the board */
    COHI_LINK_CARD = 4,    /* up: cards, one of a member or all of a host */
    COHI_LINK_TABLE = 5,   /* down: all cards */
    COHI_LINK_GIVE = 6,    /* leader to member: the descriptors of `rank` */
    COHI_LINK_GO = 7,      /* down: all have met */
    COHI_LINK_WAIT = 8,    /* down: `rank` still waits; the text, if any, says for whom */
    COHI_LINK_FAILED = 9,  /* it is over, and why; down with a rank: for that one alone */
    COHI_LINK_LATER = 10,  /* down: the hello did not come in time; call again */
    COHI_LINK_KINDS
} cohi_link_kind;

typedef struct cohi_frame {
    uint32_t magic;
    uint32_t kind;
    int32_t rank;    /* whose frame this is, or of whom it speaks; -1: of all */
    int32_t status;  /* of FAILED: a coh_status */
    uint32_t fd_set; /* bit i: the descriptor i of a card comes with it */
    uint32_t bytes;  /* behind this head */
} cohi_frame;

/* The first frame of a connection, of fixed size. */
typedef struct cohi_hello {
    cohi_frame frame;
    char version[16];
    int32_t size;                            /* of the world, as the caller has it */
    uint32_t leads;                          /* it speaks for a host */
    unsigned char secret[COHI_SECRET_BYTES]; /* zeros where it was proved before */
    char host[COHI_HOST_NAME_BYTES];
} cohi_hello;

/* A frame that was received. `payload` grows as needed and is used again. */
typedef struct cohi_incoming {
    cohi_frame frame;
    unsigned char *payload; /* [frame.bytes], and a zero behind it */
    size_t room;
} cohi_incoming;

enum { COHI_LINK_TEXT_BYTES = 512 };

/* What a link between hosts has besides its socket. */
typedef struct cohi_link_far {
    cohi_seals seals;
    size_t from, to;                              /* of the last record, what is not taken */
    unsigned char record[COHI_SEAL_RECORD_BYTES]; /* that came, or is to be sent */
} cohi_link_far;

/* Closed by cohi_link_close. Of two copies one is used. */
typedef struct cohi_connection {
    int fd;             /* -1: there is none */
    cohi_link_far *far; /* NULL: it stays on this host */
} cohi_connection;

#define COHI_NO_LINK ((cohi_connection){.fd = -1})

/* A link over `fd`, whose handshake is through. False: no memory; the descriptor stays the caller's. */
bool cohi_link_seal(const cohi_tls *tls, int fd, cohi_connection *link);

/* Twice does no harm. */
void cohi_link_close(cohi_connection *link);

cohi_frame cohi_link_frame(cohi_link_kind kind, int rank);

cohi_hello cohi_link_hello(int rank, int size, const char *host);

/* EPROTO unless what was received is the hello of this protocol. Its texts end then. */
int cohi_link_check_hello(cohi_hello *hello);

/* COH_LIMIT: `what` went wrong for want of descriptors. */
coh_status cohi_link_fail_descriptors(const char *what);

/* The first frame. 0 or an errno. */
int cohi_link_send_hello(const cohi_connection *link, const cohi_hello *hello,
                         uint64_t deadline_ns);

/* 0 or an errno. `frame` says how many bytes of payload there are. */
int cohi_link_send(const cohi_connection *link, const cohi_frame *frame, const void *payload,
                   const int *fds, int fd_count, uint64_t deadline_ns);

/* A text of at most COHI_LINK_TEXT_BYTES as payload. */
int cohi_link_send_text(const cohi_connection *link, cohi_frame frame, const char *text,
                        uint64_t deadline_ns);

/* EPROTO for what is not of this protocol, or has more than `limit` bytes behind its head; ENOMEM;
 * EBADMSG for what was changed between two hosts.
 * Descriptors that come are the caller's: *fd_count of them. */
int cohi_link_receive(const cohi_connection *link, size_t limit, cohi_incoming *incoming, int *fds,
                      int fd_room, int *fd_count, uint64_t deadline_ns);

#endif
