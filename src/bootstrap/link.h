/*
 * link.h - one local connection of a group, and the one message that travels on it.
 *
 * Every message has the same size, so nothing is allocated by what a peer says.
 */
#ifndef COHI_BOOTSTRAP_LINK_H
#define COHI_BOOTSTRAP_LINK_H

#include "bootstrap/group.h"
#include "bootstrap/unique_id.h"

typedef enum cohi_link_kind {
    COHI_LINK_HELLO = 1,   /* to the root: who I am */
    COHI_LINK_WELCOME = 2, /* from the root: all are here; with the board's descriptor */
    COHI_LINK_CARD = 3,    /* to the root, and from it once for each rank */
    COHI_LINK_FAILED = 4,  /* either way: it is over, and why */
    COHI_LINK_WAIT = 5,    /* from the root: it still waits; `text`, if any, says for whom */
    COHI_LINK_GO = 6,      /* from the root: all have met */
} cohi_link_kind;

typedef struct cohi_link_message {
    uint32_t magic;
    uint32_t kind;
    int32_t rank; /* whose message this is */
    int32_t size;
    int32_t status;  /* of FAILED */
    uint32_t fd_set; /* of CARD: bit i: fds[i] comes with it */
    char version[16];
    union {
        unsigned char secret[COHI_SECRET_BYTES];
        cohi_card card;
        char text[512];
    };
} cohi_link_message;

/* A message of that kind from `rank` of `size`, the rest zero. */
cohi_link_message cohi_link_make(cohi_link_kind kind, int rank, int size);

/* EPROTO unless a message that was received is one of this protocol; its texts end. */
int cohi_link_check(cohi_link_message *message);

/* COH_LIMIT: `what` went wrong for want of descriptors. */
coh_status cohi_link_fail_descriptors(const char *what);

/* 0 or an errno. A message that is not one of this protocol is EPROTO. */
int cohi_link_send(int link, const cohi_link_message *message, const int *fds, int fd_count,
                   uint64_t deadline_ns);
int cohi_link_receive(int link, cohi_link_message *message, int *fds, int fd_room, int *fd_count,
                      uint64_t deadline_ns);

/* A card with its descriptors. Receiving sets card.fds to this process's own copies. EMFILE when
 * the kernel could not give them all: the descriptor limit is reached. */
int cohi_link_send_card(int link, const cohi_card *card, uint64_t deadline_ns);
int cohi_link_take_card(cohi_link_message *message, const int *fds, int fd_count);

#endif
