/*
 * scale.h - what a job of some size costs, counted from the structures as they are: a change that makes
 * one of these grow by the square of the ranks is seen (`cohort info --scale`).
 */
#ifndef COHI_START_SCALE_H
#define COHI_START_SCALE_H

#include <stdint.h>

typedef struct cohi_scale {
    int locals;              /* ranks on a host, where there are most */
    uint64_t board_bytes;    /* of its board, backed with memory from the start */
    uint64_t reserved_bytes; /* of its board, with the address space for what may come */
    uint64_t peers_bytes;    /* that a rank needs for the others, until it talks to them */
    uint64_t joining_bytes;  /* that it needs besides while it joins */
    uint64_t root_bytes;     /* through rank 0 while all join, at most */
    int root_sockets;        /* that stay open for exchanges: of rank 0, */
    int leader_sockets;      /* of another leader, */
    int member_sockets;      /* of all other ranks */
    int barrier_messages;    /* between hosts, of one barrier */
    int all_reduce_messages; /* and of one all_reduce of 8 bytes, at most; as many where the hosts are
                              * a power of two */
    int hint_messages;       /* besides, in either, of leaders that have waited long, at most */
} cohi_scale;

/* The ranks are spread evenly over the hosts, at least one on each, with engine tcp between them. */
cohi_scale cohi_scale_of(int ranks, int hosts);

#endif
