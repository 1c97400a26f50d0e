/*
 * lane.h - how messages travel between mapped ranks: one lane for each sender in the receiver's
 * slot, written by the sender alone but for what says so.
 *
 * A message is one cell, a cache line: up to COHI_CELL_BYTES of data are in the cell itself, up to
 * COHI_LANE_EAGER in the bulk ring. So 8 bytes are one line written and one line read. A
 * longer one is announced: the cell says where its data is, and a ticket is how both sides move it
 * (core/message/large.h). Cells and bulk are taken and given back in order.
 *
 * The lane of a rank to itself carries nothing; its memory has the doors instead: which ranks have
 * opened a lane to this one, so that the receiver looks only at lanes that are in use. A sender that
 * is not mapped has no lane but landings: words that the sender puts when a message that it put
 * straight into this rank's heap is there (core/message/frame.h).
 */
#ifndef COHI_CORE_MESSAGE_LANE_H
#define COHI_CORE_MESSAGE_LANE_H

#include "core/world/world.h"

enum {
    COHI_LANE_CELLS = 128,
    COHI_CELL_BYTES = 40,
    COHI_LANE_BULK = 32768,
    COHI_LANE_EAGER = COHI_LANE_BULK / 4, /* a quarter may be consumed and not yet given back */
    COHI_LANE_TICKETS = 64,
    COHI_STREAM_SLOTS = 2,
    COHI_STREAM_BYTES = 8000
};

/* Set in a cell's tag: the data is announced, not here. */
#define COHI_CELL_ANNOUNCES UINT32_C(0x80000000)

typedef struct cohi_cell {
    _Alignas(COHI_CACHE_LINE) _Atomic uint32_t mark; /* the lap, from 1; stored last */
    uint32_t tag;
    uint64_t team;
    uint64_t bytes;
    unsigned char data[COHI_CELL_BYTES];
} cohi_cell;

typedef enum cohi_ticket_state {
    COHI_TICKET_FREE = 0,      /* set by the receiver, as the last thing it does to it */
    COHI_TICKET_OFFERED = 1,   /* by the sender; the rest by the receiver when it has a buffer */
    COHI_TICKET_MOVING = 2,    /* either side, if it can, claims chunks and copies them */
    COHI_TICKET_STREAMING = 3, /* neither reaches the other's memory: through the stream's slots */
    COHI_TICKET_FAILED = 4     /* the sender's memory could not be read */
} cohi_ticket_state;

typedef struct cohi_ticket {
    _Alignas(COHI_CACHE_LINE) _Atomic uint32_t state;
    uint32_t chunk;   /* bytes */
    uint64_t address; /* the receiver's buffer: its address there, */
    cohi_spot spot;   /* its spot in the receiver's heaps, or COHI_NO_SPOT, */
    uint64_t token_at, token;
    /* Written by both. */
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t claimed; /* chunks */
    _Atomic uint64_t done;
} cohi_ticket;

/* A piece of a streamed message. */
typedef struct cohi_stream_slot {
    _Alignas(
        COHI_CACHE_LINE) _Atomic uint32_t full; /* set by the sender, cleared by the receiver */
    uint32_t ticket;
    uint64_t offset;
    uint32_t bytes;
    unsigned char data[COHI_STREAM_BYTES];
} cohi_stream_slot;

typedef struct cohi_lane {
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t cells_consumed; /* these two by the receiver */
    _Atomic uint64_t bulk_consumed;
    cohi_cell cells[COHI_LANE_CELLS];
    cohi_ticket tickets[COHI_LANE_TICKETS];
    _Alignas(COHI_CACHE_LINE) unsigned char bulk[COHI_LANE_BULK];
    cohi_stream_slot stream[COHI_STREAM_SLOTS];
} cohi_lane;

_Static_assert(sizeof(cohi_lane) <= COHI_LANE_BYTES, "a lane fits its place in the slot");

/* `from` has a bit for each rank of the host. */
typedef struct cohi_doors {
    _Alignas(COHI_CACHE_LINE) _Atomic uint32_t opened; /* counts */
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t from[COHI_RANKS_MAX / 64];
} cohi_doors;

_Static_assert(sizeof(cohi_doors) <= COHI_LANE_BYTES, "doors fit the place of a lane");

/* The sender's end. Guarded by the partner's out_lock. */
typedef struct cohi_lane_out {
    cohi_lane *lane; /* NULL: not opened yet */
    uint64_t cells;  /* written */
    uint64_t bulk;
    uint64_t cells_consumed; /* as last seen */
    uint64_t bulk_consumed;
    unsigned stream; /* slots used */
} cohi_lane_out;

/* The receiver's end. Guarded by the mailbox's lock; `cells` may be looked at without. */
typedef struct cohi_lane_in {
    cohi_lane *lane;
    _Atomic uint64_t cells; /* consumed */
    uint64_t bulk;
    uint64_t cells_given; /* back to the sender */
    uint64_t bulk_given;
    unsigned stream;
} cohi_lane_in;

enum { COHI_LANDINGS = 64 }; /* of one sender */

typedef struct cohi_landings {
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t serials[COHI_LANDINGS]; /* of receives */
} cohi_landings;

_Static_assert(sizeof(cohi_landings) == COHI_LANDING_BYTES, "landings fit their place");

/* The landings of a sender that is not mapped, backed with memory. */
coh_status cohi_lane_landings(const coh_world *world, int from, cohi_landings **landings);

/* Where this rank puts the word of a landing, in the control segment of any peer. */
uint64_t cohi_lane_landing_offset(const coh_world *world, uint32_t number);

/* This rank's doors, backed with memory. */
coh_status cohi_lane_doors(coh_world *world, cohi_doors **doors);

/* Opens the lane to a mapped peer. */
coh_status cohi_lane_open(coh_world *world, int to, cohi_lane_out *out);

/* The lane on which a mapped peer's messages come; it may be empty memory still. */
cohi_lane *cohi_lane_from(const coh_world *world, int from);

/* Writes a message of up to COHI_LANE_EAGER bytes; false when the lane is full. */
bool cohi_lane_write(cohi_lane_out *out, uint64_t team, uint32_t tag, const void *data,
                     size_t bytes);

/* Announces a message of `bytes`; `data` tells where it is. */
bool cohi_lane_announce(cohi_lane_out *out, uint64_t team, uint32_t tag, uint64_t bytes,
                        const unsigned char data[COHI_CELL_BYTES]);

/* The next cell if it has come, else NULL. */
static inline cohi_cell *cohi_lane_peek(cohi_lane_in *in)
{
    uint64_t at = atomic_load_explicit(&in->cells, memory_order_relaxed);
    cohi_cell *cell = &in->lane->cells[at % COHI_LANE_CELLS];
    uint32_t lap = (uint32_t)(at / COHI_LANE_CELLS + 1);
    return atomic_load_explicit(&cell->mark, memory_order_acquire) == lap ? cell : NULL;
}

/* Where the data of the next cell is, which is not an announcement. */
const void *cohi_lane_data(const cohi_lane_in *in, const cohi_cell *cell);

/* Copies the data of the next cell, which is not an announcement, and consumes it. */
void cohi_lane_take(cohi_lane_in *in, const cohi_cell *cell, void *data);

/* Consumes the next cell. */
void cohi_lane_next(cohi_lane_in *in, const cohi_cell *cell);

#endif
