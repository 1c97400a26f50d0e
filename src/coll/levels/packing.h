/*
 * packing.h - blocks of all members, put one behind the other by host: those of a host side by side,
 * whichever members it has.
 */
#ifndef COHI_COLL_LEVELS_PACKING_H
#define COHI_COLL_LEVELS_PACKING_H

#include "coll/levels/part.h"

typedef struct cohi_packing {
    const cohi_call *call;
    const cohi_call_blocks *blocks;      /* where they are in the call's buffer */
    size_t total;                        /* elements of all */
    size_t first, here;                  /* where those of this host begin, and how many they are */
    size_t *host_counts, *host_firsts;   /* [hosts] */
    size_t *local_counts, *local_firsts; /* [members here], from the first of this host on */
} cohi_packing;

/* In the scratch of the team's levels. */
cohi_packing cohi_packing_of(const cohi_call *call, const cohi_call_blocks *blocks);

/* The blocks of a part between hosts, or inside this one: uniform where all are as long. */
void cohi_packing_cut_hosts(const cohi_packing *packing, cohi_call *part);
void cohi_packing_cut_local(const cohi_packing *packing, cohi_call *part);

/* From the call's buffer, in elements of its own type; and to it. */
void cohi_packing_pack(const cohi_packing *packing, char *packed, const char *buffer);
void cohi_packing_unpack(const cohi_packing *packing, const char *packed, char *buffer);

/* The member whose block is in place `at` of those that are packed, and its first element there. */
size_t cohi_packing_next(const cohi_packing *packing, int at, size_t packed_first, int *member);

#endif
