/*
 * buffers.h - where the buffers of a call are, as the other members reach them.
 *
 * A member posts where its source and target are: in its heap, or, for ranks of one process,
 * anywhere. What is in neither is private, and has no place.
 */
#ifndef COHI_COLL_MAPPED_BUFFERS_H
#define COHI_COLL_MAPPED_BUFFERS_H

#include "coll/call/assemble.h"
#include "coll/mapped/fetch.h"

/* What is posted. */
typedef struct cohi_place {
    uint64_t source, target; /* offset in the heap, or address; COHI_NO_PLACE */
    uint64_t most;           /* elements of the longest block that this member sends */
    uint64_t fetching;       /* a cohi_fetching: what the member knows of reading the others */
    uint64_t source_at, target_at, self_at; /* addresses: of the buffers, and of this post */
} cohi_place;

#define COHI_NO_PLACE UINT64_MAX

typedef enum cohi_side { COHI_SOURCE, COHI_TARGET } cohi_side;

/* Whether this member's own buffer has a place, before anybody has entered; also of one that the call
 * does not use. One that is NULL is taken for one that has. */
bool cohi_place_own(const cohi_call *call, cohi_side side);

/* Enters with the places of this member's buffers, and waits for all. */
coh_status cohi_place_enter(cohi_call *call, uint64_t most);

/* Whether member `index`'s buffer has a place. */
bool cohi_place_has(const cohi_call *call, cohi_side side, int index);

/* Member `index`'s buffer, which has a place, as this member reaches it. */
char *cohi_place_at(const cohi_call *call, cohi_side side, int index);

/* The first member whose buffer has no place, or -1. Every member comes to the same answer. */
int cohi_place_lacking(const cohi_call *call, cohi_side side);

/* The longest block that any member sends. */
uint64_t cohi_place_most(const cohi_call *call);

/* The error of an algorithm that was asked for by name and cannot do without a place. */
coh_status cohi_place_refuse(const cohi_call *call, cohi_side side, int index);

#endif
