/*
 * parcel.h - what an engine has of a rank's messages: a parcel is one operation in flight.
 *
 * Each peer has a fixed number of them, so a peer that takes nothing holds up nobody else's
 * messages. Of a long message a parcel is part of the caller's own memory; short messages that an engine does not
 * take at once are copied, so that their sends are done at once. Memory is allocated when a peer's parcel is first
 * used, and kept.
 */
#ifndef COHI_CORE_MESSAGE_PARCEL_H
#define COHI_CORE_MESSAGE_PARCEL_H

#include "core/message/mailbox.h"

/*
 * Parcels in flight to and from one peer, and how many of them may be of long messages: the rest is
 * for short ones, which would else wait behind every long one.
 */
enum { COHI_PARCELS = 16, COHI_PARCELS_LONG = 12 };

/* The most bytes of a short message, which is copied. */
enum { COHI_PARCEL_COPY = COHI_SHORT_BYTES };

typedef struct cohi_parcel {
    cohi_link link; /* in the mailbox's flying */
    cohi_op op;
    int peer;
    bool recalled;        /* a thread is about to cancel it, and ends it */
    coh_request *request; /* whose memory the engine works on; NULL: on `copy` */
    int64_t cost;         /* credit that was spent for it, and comes back where it does not go */
    uint64_t returned;    /* that it gives back to the peer, which is owed again then */
    char *copy;           /* room for COHI_PARCEL_COPY bytes, made at first use */
} cohi_parcel;

/* Takes a parcel for the engine's next operation with `peer`, for `request`, or (NULL) for a short
 * message. COH_OK and NULL: as many are in flight as may be. Lock held. */
coh_status cohi_parcel_take(cohi_mailbox *box, int peer, coh_request *request,
                            cohi_parcel **parcel);

/* Gives it back: the engine has refused it. Lock held. */
void cohi_parcel_give(cohi_mailbox *box, cohi_parcel *parcel);

/* The engine has it. Lock held. */
void cohi_parcel_launch(cohi_mailbox *box, cohi_parcel *parcel);

/* Ends the parcels that the engine is done with, and notes it in their requests. Lock held. */
void cohi_parcel_reap(cohi_mailbox *box);

/* Takes all parcels of a request back from the engine, which then no longer touches its memory. For a
 * request that nobody moves any more; the lock is not held. */
void cohi_parcel_recall(cohi_mailbox *box, const coh_request *request);

/* Frees the parcels; the engine is closed. */
void cohi_parcel_close(cohi_mailbox *box);

#endif
