/*
 * mailbox.h - what a rank knows of its messages: receives that wait, messages that came before
 * they were asked for, sends that could not go yet, and large messages on their way.
 *
 * Two carriers bring messages: lanes for mapped peers (core/message/lane.h) and frames on the engine's
 * channel for the others (core/message/frame.h). Matching is one code above both (core/message/match.h).
 *
 * Progress is made inside calls: each wait, and each call on messages, looks at what has come and
 * moves what can be moved. Two sorts of lock: a partner's `out_lock` orders what is sent to it;
 * the mailbox's `lock` guards everything else, and is let go of while large data is copied. A
 * thread that needs both takes out_lock first. Upcalls take `lock` alone.
 */
#ifndef COHI_CORE_MESSAGE_MAILBOX_H
#define COHI_CORE_MESSAGE_MAILBOX_H

#include "base/latch.h"
#include "core/message/lane.h"
#include "core/message/queue.h"
#include "core/team/team.h"
#include "core/world/world.h"

typedef struct cohi_mailbox cohi_mailbox;

/* Tags of core's own messages have this bit; COH_ANY_TAG does not match them. */
#define COHI_TAG_INTERNAL UINT32_C(0x40000000)

/*
 * Bytes from one peer that may lie here unasked for; the peer is held back beyond. Each message
 * counts for COHI_ARRIVAL_COST more than its data.
 */
enum { COHI_UNEXPECTED_BYTES = 4 << 20, COHI_ARRIVAL_COST = 128 };

/* What is matched. Teams that were destroyed differ from those that have their number later. */
typedef struct cohi_envelope {
    uint64_t team;
    uint32_t tag;
    int from; /* rank */
    uint64_t bytes;
} cohi_envelope;

/* Where the data of an announced message is. By lane all but `serial` is set, by frame only
 * that. */
typedef struct cohi_offer {
    uint64_t address; /* at the sender */
    cohi_spot spot;   /* in the sender's heaps, or COHI_NO_SPOT */
    uint64_t token_at, token;
    uint32_t ticket;
    uint32_t unused;
    uint64_t serial; /* the sender's, of the request */
} cohi_offer;

/* A message that came before it was asked for. Its data follows it, unless it is on offer. */
typedef struct cohi_arrival {
    cohi_link link;
    cohi_envelope envelope;
    uint64_t order;  /* of coming */
    uint64_t charge; /* credit that its sender spent on it (frames) */
    bool offered;
    cohi_offer offer;
    coh_request *absorber; /* what brings the data here, see cohi_match_absorb */
    coh_request *taker;    /* the receive that waits for it */
    char *data;
} cohi_arrival;

typedef enum cohi_request_stage {
    COHI_REQUEST_NEW = 0,
    COHI_REQUEST_PENDING, /* a send that the carrier had no room for: in partner->pending */
    COHI_REQUEST_POSTED,  /* a receive that nothing matched yet */
    COHI_REQUEST_MOVING,  /* announced or accepted: in mailbox->moving */
    COHI_REQUEST_TAKING   /* a receive of an arrival that is being absorbed */
} cohi_request_stage;

/* How this rank reaches the other's buffer. */
typedef enum cohi_reach {
    COHI_REACH_UNKNOWN = 0,
    COHI_REACH_NONE,
    COHI_REACH_COPY,  /* it is mapped, at move.there */
    COHI_REACH_KERNEL /* the kernel copies between the processes */
} cohi_reach;

/* A large message on its way. */
typedef struct cohi_move {
    cohi_ticket *ticket; /* NULL: by frames */
    uint32_t number;     /* of the ticket */
    cohi_reach reach;
    char *there;
    uint64_t chunks;
    uint64_t claimed; /* of them, when the request was given up */
    size_t gone;      /* bytes streamed or sent in frames so far; for a receive, come */
    bool accepted;    /* the receiver has a buffer (frames) */
    uint64_t partner; /* the other side's serial (frames) */
} cohi_move;

struct coh_request {
    cohi_link link; /* in the queue of its stage */
    coh_world *world;
    coh_team *team;
    cohi_opcode op;    /* COHI_OP_SEND or COHI_OP_RECEIVE */
    cohi_opcode doing; /* what is published while it is waited for */
    bool collective;   /* part of one, which has published itself */
    cohi_error *error; /* a started collective's: what its worker says of a failure; else NULL */
    atomic_int peer;   /* rank, or COH_ANY_RANK until it is matched */
    uint64_t key;      /* of the team */
    uint32_t tag;
    bool any_tag;
    char *data;
    size_t bytes; /* to send; the room to receive */
    uint64_t serial;
    cohi_request_stage stage;
    int users; /* threads that copy for it with the lock let go */
    cohi_move move;
    cohi_arrival *arrival; /* absorbed into this, or taken by it */

    coh_message got; /* its source is a rank */
    coh_status status;
    atomic_int done;
    coh_request *next_owned, **owned_at; /* among all that coh_*_start made */
};

typedef struct cohi_partner {
    /* Sending. */
    cohi_latch out_lock;
    cohi_lane_out out;
    cohi_queue pending;
    atomic_int pending_count;
    _Atomic uint64_t idle_tickets; /* a bit each: no request of this rank uses it */
    _Atomic int64_t credit;        /* frames: bytes that the peer still takes unasked */

    /* Receiving; the mailbox's lock. */
    cohi_lane_in in;
    cohi_queue arrivals;
    cohi_queue posted;
    uint64_t held; /* bytes of the arrivals, with their cost */
    uint64_t owed; /* frames: credit not yet given back */

    atomic_int kernel; /* whether the kernel copies to and from it: 0 unknown, 1 yes, -1 no */
} cohi_partner;

struct cohi_mailbox {
    coh_world *world;
    cohi_latch lock;
    cohi_partner *partners; /* [size] */
    cohi_queue posted_any;
    cohi_queue moving;
    cohi_queue outbox;      /* short frames to be sent; upcalls must not send */
    cohi_queue flying;      /* frames that the engine has */
    int flying_count;       /* of those with data */
    coh_request *owned;     /* all that coh_*_start made and nobody has waited for */
    uint64_t serial;        /* of the last request, and of the last arrival */
    uint64_t token;         /* proves to a peer that it reads this process */
    size_t piece;           /* data bytes of a frame */
    atomic_int offers;      /* arrivals on offer that nobody has accepted */
    atomic_int work;        /* requests moving or pending, frames in the outbox or flying */
    atomic_int pendings;    /* requests pending */
    _Atomic uint64_t waits; /* counts what was waited for, so that others see that it goes on */

    uint64_t free_teams_seen; /* when arrivals of destroyed teams were last looked for */
    uint32_t team_epoch_seen;

    cohi_doors *doors;
    _Atomic uint32_t opened_seen;
    atomic_int active_count;
    int *active; /* [size]: ranks whose lanes are in use */
};

/* Makes and frees a world's mailbox. Closing comes after the endpoint's close, so that the engine
 * has let go of all frames. Requests that nobody has waited for stay as tombstones, which are freed
 * with the world's own. */
coh_status cohi_mailbox_open(coh_world *world);
void cohi_mailbox_close(coh_world *world);
void cohi_mailbox_forget(coh_world *world);

/* Looks at what has come, and moves what can be moved; whether there was anything. Never sleeps. */
bool cohi_mailbox_progress(cohi_mailbox *box);

/* Takes what has come, and waits until what a receiver has accepted is through: the other side may
 * be copying into, or from, what the program frees next. */
coh_status cohi_mailbox_finish(coh_world *world, const char *call);

/* Waits until the engine has let go of all frames of this rank, as far as it can be waited for. */
void cohi_mailbox_settle(coh_world *world, const char *call);

/* Tells peers that cannot see it that this rank leaves though others may still need it. */
void cohi_mailbox_leave(coh_world *world);

/* Gives a send to its carrier, or queues it. */
void cohi_mailbox_issue(coh_request *request);

/* The fast path for what fits into an open lane with nothing queued before it; false: take the
 * slow path. */
bool cohi_mailbox_write(coh_world *world, int to, uint64_t team, uint32_t tag, const void *data,
                        size_t bytes);

/*
 * The fast path for a receive from one rank under one tag: takes the message at the head of its
 * lane, for which it looks as often as a wait does before it yields. False when that is another
 * message, is announced, has not come or does not fit, or something has to be looked at before it:
 * then nothing has changed, and the slow path finds out.
 */
bool cohi_mailbox_read(coh_world *world, int from, uint64_t team, uint32_t tag, void *data,
                       size_t room, size_t *bytes);

/* Whether the peer's messages come by lane. */
static inline bool cohi_mailbox_by_lane(const coh_world *world, int rank)
{
    return world->peers[rank].slot != NULL;
}

static inline uint64_t cohi_message_key(const coh_team *team)
{
    return (uint64_t)team->number << 32 | team->start;
}

/* ---- requests (request.c) ---- */

/* Ends it; the lock is held. */
void cohi_request_complete(coh_request *request, coh_status status);

/* Makes `request`, the first member of what malloc gave, that of a collective which the team's
 * worker carries out, and ends with cohi_request_complete. coh_request_wait frees it. */
void cohi_request_own_started(coh_request *request, coh_team *team, cohi_opcode op,
                              cohi_error *error);

/* Waits until a message that `wanted`, a receive that is not started, would take is here; then
 * wanted->got is that message. */
coh_status cohi_request_probe(coh_request *wanted, const char *call);

/* Waits for it and returns how it ended, with the error message. Withdraws it when the wait
 * fails. */
coh_status cohi_request_finish(coh_request *request, const char *call);

#endif
