/*
 * Room: core/message.
 *
 * Tagged messages: the lanes and frames that carry them, matching, requests.
 * Uses base, memory, bootstrap and the other core rooms.
 * Hides the carriers: matching and requests are the same for both.
 */
/*
 * mailbox.h - what a rank knows of its messages: receives that wait, messages that came before
 * they were asked for, sends that could not go yet, and large messages on their way.
 *
 * Two carriers bring messages: lanes for mapped peers (core/message/lane.h) and frames on the engine's
 * channel for the others (core/message/frame.h). Matching is one code above both (core/message/match.h).
 *
 * Progress is made inside calls: each wait, and each call on messages, looks at what has come and
 * moves what can be moved. An engine with threads of its own has it made while the rank computes
 * (cohi_mailbox_attend). Any number of threads may be at it at the same time. Two sorts of lock: a partner's `out_lock` orders what is sent to it;
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

/*
 * Data bytes of one frame, where the engine takes any: many, so that its head and system calls are little beside it;
 * few, so that a short message does not wait long behind it. Three fit the half of the credit that long messages may
 * take.
 */
enum { COHI_FRAME_DATA_BYTES = 512 << 10 };

typedef struct cohi_mailbox cohi_mailbox;
struct cohi_parcel;

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

/* Where the data of an announced message is. By lane all but `serial` is set, by frame only that and
 * `spot`. */
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
    COHI_REQUEST_MOVING,  /* announced or accepted: in mailbox->moving, or accepting */
    COHI_REQUEST_TAKING   /* a receive of an arrival that is being absorbed */
} cohi_request_stage;

/* How this rank reaches the other's buffer. */
typedef enum cohi_reach {
    COHI_REACH_UNKNOWN = 0,
    COHI_REACH_NONE,
    COHI_REACH_COPY,  /* it is mapped, at move.there */
    COHI_REACH_KERNEL /* the kernel copies between the processes */
} cohi_reach;

/* How a long message moves between ranks that are not mapped. */
typedef enum cohi_way {
    COHI_WAY_PIECES = 0, /* in frames of the channel */
    COHI_WAY_PUT,        /* the sender puts it into the receiver's heap */
    COHI_WAY_GET         /* the receiver gets it from the sender's heap */
} cohi_way;

/* A large message on its way. */
typedef struct cohi_move {
    cohi_ticket *ticket; /* NULL: by frames */
    uint32_t number;     /* of the ticket */
    cohi_reach reach;
    char *there;
    uint64_t chunks;
    uint64_t claimed; /* of them, when the request was given up */
    size_t gone;      /* bytes streamed or given to the engine so far; for a receive, come */

    /* By frames. */
    bool accepted;    /* the receiver has a buffer */
    uint64_t partner; /* the other side's serial */
    cohi_way way;     /* once it is accepted */
    uint64_t place;   /* of a put or get: its offset in the other's heap; of a buffer that the other
                        * may reach: its offset in this rank's heap, or COHI_NO_SPOT */
    uint32_t landing; /* of a put: the number of its landing at the receiver */
    bool told;        /* the other side has been told that all of it is on its way, or has come */
    int flying;       /* parcels that the engine has of it */
    coh_status status; /* of the first of them that failed */
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

    /* What the engine has of messages to it, and from it; the mailbox's lock. */
    struct cohi_parcel *parcels; /* [COHI_PARCELS], or NULL: none was needed yet */
    uint32_t busy_parcels;       /* a bit each */

    /* Receiving; the mailbox's lock. */
    cohi_lane_in in;
    cohi_queue arrivals;
    cohi_queue posted;
    uint64_t held; /* bytes of the arrivals, with their cost */
    uint64_t owed; /* frames: credit not yet given back */
    cohi_link crediting;
    bool is_crediting;       /* it is in the mailbox's queue of those that get credit */
    cohi_landings *landings; /* or NULL: none was needed yet */
    uint64_t busy_landings;  /* a bit each */

    atomic_int kernel; /* whether the kernel copies to and from it: 0 unknown, 1 yes, -1 no */
} cohi_partner;

struct cohi_mailbox {
    coh_world *world;
    cohi_latch lock;
    cohi_partner *partners; /* [size] */
    cohi_queue posted_any;
    cohi_queue moving;
    cohi_queue accepting;   /* receives whose sender is to be told; upcalls must not send */
    cohi_queue crediting;   /* partners that get credit back, for the same reason */
    cohi_queue flying;      /* parcels that the engine has */
    coh_request *owned;     /* all that coh_*_start made and nobody has waited for */
    uint64_t serial;        /* of the last request, and of the last arrival */
    uint64_t token;         /* proves to a peer that it reads this process */
    size_t piece;           /* data bytes of a frame */
    uint64_t reach;         /* bytes of a heap that the engine puts to and gets from; 0: none */
    atomic_int offers;      /* arrivals on offer that nobody has accepted */
    atomic_int work;        /* requests moving or pending, credit to give, parcels flying */
    atomic_int pendings;    /* requests pending */
    atomic_int attending;   /* threads of the engine that are in cohi_mailbox_attend */
    atomic_bool shut;       /* none may enter it any more */
    _Atomic uint64_t waits; /* counts what was waited for, so that others see that it goes on */
    _Atomic uint64_t come;  /* counts pieces that came of long messages */

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

/*
 * The same as an engine's upcall, from a thread of the engine, at any time between the endpoint's open
 * and its close, whatever the rank's own threads are doing. It does as much as there is to do, up to
 * a number of steps, so that the engine's thread comes back to its network. The engine calls it after
 * `deliver` or a completed op, when its thread would else sleep.
 *
 * What it takes: the caller holds no lock of the engine's, since slots are called from within (send,
 * put, get, fence), and these must not wait for the calling thread. `world` is the upcalls' first
 * argument. Before the mailbox is open and after cohi_mailbox_shut it does nothing.
 */
void cohi_mailbox_attend(void *world);

/* From now on cohi_mailbox_attend does nothing, and no thread is in it. Before anything is taken
 * apart that moving a message looks at. */
void cohi_mailbox_shut(coh_world *world);

/* Takes what has come, and waits until what a receiver has accepted is through: the other side may
 * be copying into, or from, what the program frees next. */
coh_status cohi_mailbox_finish(coh_world *world, const char *call);

/* Waits until the engine has let go of all frames of this rank, as far as it can be waited for. */
void cohi_mailbox_settle(coh_world *world, const char *call);

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

/* What messages within the present collective of the team go under, in the place of its key. Epochs of
 * a number go on from one team to the next. */
static inline uint64_t cohi_message_call_key(const coh_team *team)
{
    return (uint64_t)team->number << 32 | team->epoch;
}

/* A piece of a long message has come; lock held. */
static inline void cohi_mailbox_note_piece(cohi_mailbox *box)
{
    uint64_t before = atomic_load_explicit(&box->come, memory_order_relaxed);
    atomic_store_explicit(&box->come, before + 1, memory_order_relaxed);
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
