/*
 * frame.h - messages as frames on the engine's channel, for peers that are not mapped.
 *
 * Short messages travel whole, under credit: the sender knows how many bytes the receiver still
 * takes unasked. Long ones are announced; how they move then is in core/message/far.h. An upcall must
 * not send: what is to be answered is noted, and sent by the next call that makes progress.
 */
#ifndef COHI_CORE_MESSAGE_FRAME_H
#define COHI_CORE_MESSAGE_FRAME_H

#include "core/message/mailbox.h"

/* Kinds of frames, and the fields that they use. COHI_FRAME_CONTROL (core/health/control.h) is none of them. */
enum cohi_frame_kind {
    COHI_FRAME_MESSAGE = 2, /* other: credit that is given back; data */
    COHI_FRAME_OFFER = 3,   /* serial: the send's; place: where it can be got, or none */
    /* serial: the send's; other: the receive's; place: where it is to be put, or none; tag: the
     * landing */
    COHI_FRAME_ACCEPT = 4,
    COHI_FRAME_DATA = 5,   /* serial: the receive's; other: the offset; data */
    COHI_FRAME_CREDIT = 6, /* bytes: how many */
    COHI_FRAME_FETCHED = 7 /* serial: the send's */
};

/* What a frame begins with; its data, if any, follows. */
typedef struct cohi_frame_head {
    uint32_t kind;
    uint32_t tag;
    uint64_t team;
    uint64_t bytes;
    uint64_t serial;
    uint64_t other;
    uint64_t place; /* an offset in the heap of the frame's sender, or COHI_NO_OFFSET */
} cohi_frame_head;

_Static_assert(sizeof(cohi_frame_head) <= COHI_HEAD_BYTES, "frames without data need no op");

/* Sends a frame without data. No lock is held that an upcall needs, here and where a frame is sent at
 * all. */
coh_status cohi_frame_send(const coh_world *world, int to, const cohi_frame_head *head);

/* Sends or announces; out_lock is held, lock is not. False: no credit, or as much is in flight to
 * the peer as may be. Otherwise the request is complete, moving, or has failed. */
bool cohi_frame_issue(cohi_mailbox *box, coh_request *send, int to);

/* An arrival that came by frame is no longer held; lock held. */
void cohi_frame_consumed(cohi_mailbox *box, int from, uint64_t cost);

/* Credit that the partner gives back. False: more than there is. */
bool cohi_frame_take_credit(cohi_mailbox *box, int from, uint64_t bytes);

/* Sends what upcalls have noted, and ends the parcels that the engine is done with. */
void cohi_frame_flush(cohi_mailbox *box);

/* Takes what came by channel; any kind but COHI_FRAME_CONTROL. */
void cohi_frame_deliver(coh_world *world, int from, const void *bytes, size_t count);

#endif
