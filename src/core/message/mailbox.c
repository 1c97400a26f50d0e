#include "core/message/mailbox.h"

#include "base/clock.h"
#include "base/os.h"
#include "core/health/control.h"
#include "core/heap/heap.h"
#include "core/message/far.h"
#include "core/message/frame.h"
#include "core/message/large.h"
#include "core/message/match.h"
#include "core/message/parcel.h"
#include "core/onesided/relay.h"
#include "core/health/wait.h"

#include <sched.h>
#include <stdlib.h>

/* ---- making and ending ---- */

static void open_partner(cohi_partner *partner)
{
    cohi_queue_init(&partner->pending);
    cohi_queue_init(&partner->arrivals);
    cohi_queue_init(&partner->posted);
    atomic_store(&partner->idle_tickets, UINT64_MAX);
    atomic_store(&partner->credit, COHI_UNEXPECTED_BYTES);
}

static cohi_mailbox *allocate(coh_world *world)
{
    cohi_mailbox *box = calloc(1, sizeof *box);
    cohi_partner *partners = calloc((size_t)world->size, sizeof *partners);
    int *active = calloc((size_t)world->size, sizeof *active);
    if (!box || !partners || !active) {
        free(box);
        free(partners);
        free(active);
        return NULL;
    }
    box->world = world;
    box->partners = partners;
    box->active = active;
    for (int rank = 0; rank < world->size; rank++)
        open_partner(&partners[rank]);
    cohi_queue_init(&box->posted_any);
    cohi_queue_init(&box->moving);
    cohi_queue_init(&box->accepting);
    cohi_queue_init(&box->crediting);
    cohi_queue_init(&box->flying);
    return box;
}

static size_t piece_bytes(coh_world *world)
{
    cohi_engine_facts facts = {.size = sizeof facts};
    world->engine->lifecycle->query(world->endpoint, &facts);
    if (facts.message_bytes == 0
        || facts.message_bytes >= COHI_FRAME_DATA_BYTES + sizeof(cohi_frame_head))
        return COHI_FRAME_DATA_BYTES;
    return (size_t)facts.message_bytes - sizeof(cohi_frame_head);
}

static uint64_t reach_of(coh_world *world)
{
    return world->engine->rma && cohi_heap_numbered(world, 0) ? cohi_heap_reserved(world) : 0;
}

static void progress(coh_world *world)
{
    cohi_relay_serve(world);
    cohi_mailbox_progress(world->mailbox);
}

static coh_status fill(cohi_mailbox *box, coh_world *world)
{
    box->piece = piece_bytes(world);
    box->reach = reach_of(world);
    int error = cohi_os_random(&box->token, sizeof box->token);
    if (error)
        return cohi_fail_os(error, "coh_init: no random number could be drawn");
    return cohi_lane_doors(world, &box->doors);
}

static void dispose(cohi_mailbox *box)
{
    free(box->partners);
    free(box->active);
    free(box);
}

/* A thread of the engine may look for it meanwhile: it is shown when it is complete. */
coh_status cohi_mailbox_open(coh_world *world)
{
    cohi_mailbox *box = allocate(world);
    if (!box)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the messages of %d ranks",
                         world->size);
    coh_status status = fill(box, world);
    if (status != COH_OK) {
        dispose(box);
        return status;
    }
    world->progress = progress;
    __atomic_store_n(&world->mailbox, box, __ATOMIC_RELEASE);
    return COH_OK;
}

/* The program may still ask for them. */
static void give_up_owned(cohi_mailbox *box)
{
    for (coh_request *request = box->owned; request; request = request->next_owned)
        if (request->op == COHI_OP_RECEIVE)
            cohi_match_withdraw(box, request);
    box->world->requests = box->owned;
}

void cohi_mailbox_close(coh_world *world)
{
    cohi_mailbox *box = world->mailbox;
    if (!box)
        return;
    give_up_owned(box);
    cohi_match_close(box);
    cohi_parcel_close(box);
    dispose(box);
    world->mailbox = NULL;
    world->progress = NULL;
}

void cohi_mailbox_forget(coh_world *world)
{
    while (world->requests) {
        coh_request *next = world->requests->next_owned;
        free(world->requests);
        world->requests = next;
    }
}

/* ---- what comes by lane ---- */

static bool has_come(cohi_mailbox *box)
{
    uint32_t opened = atomic_load_explicit(&box->doors->opened, memory_order_relaxed);
    if (opened != atomic_load_explicit(&box->opened_seen, memory_order_relaxed))
        return true;
    int count = atomic_load_explicit(&box->active_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (cohi_lane_peek(&box->partners[box->active[i]].in))
            return true;
    return false;
}

static void activate(cohi_mailbox *box, int from)
{
    if (from < 0)
        return;
    cohi_partner *partner = &box->partners[from];
    if (partner->in.lane || !cohi_mailbox_by_lane(box->world, from))
        return;
    partner->in.lane = cohi_lane_from(box->world, from);
    int count = atomic_load_explicit(&box->active_count, memory_order_relaxed);
    box->active[count] = from;
    atomic_store_explicit(&box->active_count, count + 1, memory_order_release);
}

/* A bit of the doors is a rank of the host, by its number on the board. */
static int rank_behind(const coh_world *world, int index)
{
    const cohi_board *board = world->board;
    int rank = index < (int)board->head->locals ? cohi_board_ranks(board)[index] : -1;
    return rank < world->size ? rank : -1; /* whoever has damaged the board, it stays in bounds */
}

static void see_doors(cohi_mailbox *box)
{
    uint32_t opened = atomic_load(&box->doors->opened);
    if (opened == atomic_load_explicit(&box->opened_seen, memory_order_relaxed))
        return;
    for (int base = 0; base < COHI_RANKS_MAX; base += 64)
        for (uint64_t bits = atomic_load(&box->doors->from[base / 64]); bits; bits &= bits - 1)
            activate(box, rank_behind(box->world, base + __builtin_ctzll(bits)));
    atomic_store_explicit(&box->opened_seen, opened, memory_order_relaxed);
}

static bool take_cell(cohi_mailbox *box, cohi_lane_in *in, const cohi_cell *cell, int from)
{
    cohi_envelope envelope = {.team = cell->team,
                              .tag = cell->tag & ~COHI_CELL_ANNOUNCES,
                              .from = from,
                              .bytes = cell->bytes};
    bool taken;
    if (cell->tag & COHI_CELL_ANNOUNCES) {
        cohi_offer offer = cohi_large_offer(cell);
        taken = cohi_match_deliver(box, &envelope, NULL, &offer, true);
    } else {
        taken = cohi_match_deliver(box, &envelope, cohi_lane_data(in, cell), NULL, true);
    }
    if (taken)
        cohi_lane_next(in, cell);
    return taken;
}

static bool drain(cohi_mailbox *box)
{
    bool any = false;
    see_doors(box);
    int count = atomic_load_explicit(&box->active_count, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        cohi_lane_in *in = &box->partners[box->active[i]].in;
        const cohi_cell *cell;
        while ((cell = cohi_lane_peek(in)) && take_cell(box, in, cell, box->active[i]))
            any = true;
    }
    return any;
}

/* ---- receiving, the fast path ---- */

/* Whether the next message of the lane is the first that a receive from this peer may get, and no
 * other receive may get it. */
static bool is_first(const cohi_mailbox *box, const cohi_partner *partner)
{
    return partner->in.lane && !cohi_queue_first(&partner->arrivals)
           && !cohi_queue_first(&partner->posted) && !cohi_queue_first(&box->posted_any);
}

/* The lock is held. True when it is settled: the message was taken, or is for the slow path. */
static bool take_head(cohi_lane_in *in, uint64_t team, uint32_t tag, void *data, size_t room,
                      size_t *bytes, bool *taken)
{
    const cohi_cell *cell = cohi_lane_peek(in);
    if (!cell)
        return false;
    *taken = cell->team == team && cell->tag == tag && cell->bytes <= room;
    if (!*taken)
        return true;
    *bytes = (size_t)cell->bytes;
    cohi_lane_take(in, cell, data);
    return true;
}

bool cohi_mailbox_read(coh_world *world, int from, uint64_t team, uint32_t tag, void *data,
                       size_t room, size_t *bytes)
{
    cohi_mailbox *box = world->mailbox;
    cohi_lane_in *in = &box->partners[from].in;
    bool taken = false;
    for (unsigned looks = 0, most = cohi_world_spins(world); looks <= most;) {
        if (atomic_load_explicit(&box->work, memory_order_relaxed) > 0)
            return false;
        cohi_latch_take(&box->lock);
        bool first = is_first(box, &box->partners[from]);
        bool settled = first && take_head(in, team, tag, data, room, bytes, &taken);
        cohi_latch_give(&box->lock);
        if (!first || settled)
            return taken;
        for (; looks <= most && !cohi_lane_peek(in); looks++)
            cohi_cpu_relax();
    }
    return false;
}

/* ---- sending ---- */

bool cohi_mailbox_write(coh_world *world, int to, uint64_t team, uint32_t tag, const void *data,
                        size_t bytes)
{
    cohi_partner *partner = &world->mailbox->partners[to];
    if (bytes > COHI_LANE_EAGER)
        return false;
    cohi_latch_take(&partner->out_lock);
    bool written = partner->out.lane
                   && atomic_load_explicit(&partner->pending_count, memory_order_relaxed) == 0
                   && cohi_lane_write(&partner->out, team, tag, data, bytes);
    cohi_latch_give(&partner->out_lock);
    if (written)
        cohi_control_wake(world, world->peers[to].slot);
    return written;
}

static void complete(cohi_mailbox *box, coh_request *request, coh_status status)
{
    cohi_latch_take(&box->lock);
    cohi_request_complete(request, status);
    cohi_latch_give(&box->lock);
}

/* To oneself: into the receive, or kept here, whatever its length. */
static bool issue_to_self(cohi_mailbox *box, coh_request *send, int self)
{
    cohi_envelope envelope = {
        .team = send->key, .tag = send->tag, .from = self, .bytes = send->bytes};
    cohi_latch_take(&box->lock);
    bool taken = cohi_match_deliver(box, &envelope, send->data, NULL, true);
    bool no_memory = !taken && box->partners[self].held < COHI_UNEXPECTED_BYTES;
    if (taken || no_memory)
        cohi_request_complete(send, taken ? COH_OK : COH_NO_MEMORY);
    cohi_latch_give(&box->lock);
    return taken || no_memory;
}

static bool issue_by_lane(cohi_mailbox *box, coh_request *send, int to)
{
    coh_world *world = box->world;
    cohi_partner *partner = &box->partners[to];
    coh_status status = partner->out.lane ? COH_OK : cohi_lane_open(world, to, &partner->out);
    if (status != COH_OK) {
        complete(box, send, status);
        return true;
    }
    bool small = send->bytes <= COHI_LANE_EAGER;
    bool gone = small
                    ? cohi_lane_write(&partner->out, send->key, send->tag, send->data, send->bytes)
                    : cohi_large_announce(box, send, to);
    if (!gone)
        return false;
    cohi_control_wake(world, world->peers[to].slot);
    if (small)
        complete(box, send, COH_OK);
    return true;
}

/* False when the carrier has no room; otherwise the request may be gone when this returns. */
static bool carry(cohi_mailbox *box, coh_request *send)
{
    int to = atomic_load_explicit(&send->peer, memory_order_relaxed);
    if (to == box->world->rank)
        return issue_to_self(box, send, to);
    return cohi_mailbox_by_lane(box->world, to) ? issue_by_lane(box, send, to)
                                                : cohi_frame_issue(box, send, to);
}

void cohi_mailbox_issue(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    cohi_partner *partner = &box->partners[atomic_load(&request->peer)];
    cohi_latch_take(&partner->out_lock);
    bool first = atomic_load_explicit(&partner->pending_count, memory_order_relaxed) == 0;
    if (!first || !carry(box, request)) {
        request->stage = COHI_REQUEST_PENDING;
        cohi_queue_append(&partner->pending, &request->link);
        atomic_fetch_add(&partner->pending_count, 1);
        atomic_fetch_add(&box->pendings, 1);
        atomic_fetch_add(&box->work, 1);
    }
    cohi_latch_give(&partner->out_lock);
}

/* In order; the first that finds no room holds up those behind it. */
static void retry_to(cohi_mailbox *box, cohi_partner *partner)
{
    cohi_link *first;
    while ((first = cohi_queue_first(&partner->pending))) {
        coh_request *request = (coh_request *)first;
        cohi_queue_remove(first);
        request->stage = COHI_REQUEST_NEW;
        if (!carry(box, request)) {
            request->stage = COHI_REQUEST_PENDING;
            cohi_queue_prepend(&partner->pending, first);
            return;
        }
        atomic_fetch_sub(&partner->pending_count, 1);
        atomic_fetch_sub(&box->pendings, 1);
        atomic_fetch_sub(&box->work, 1);
    }
}

static void retry(cohi_mailbox *box)
{
    for (int rank = 0; rank < box->world->size; rank++) {
        cohi_partner *partner = &box->partners[rank];
        if (atomic_load_explicit(&partner->pending_count, memory_order_relaxed) == 0
            || !cohi_latch_try(&partner->out_lock))
            continue;
        retry_to(box, partner);
        cohi_latch_give(&partner->out_lock);
    }
}

/* ---- progress ---- */

/* One step, of the first that can make one: who called wants to look at its own request again. */
static bool move(cohi_mailbox *box)
{
    if (!cohi_latch_try(&box->lock))
        return false;
    bool moved = false;
    cohi_link *next, *at = cohi_queue_first(&box->moving);
    for (; at && !moved; at = next) {
        coh_request *request = (coh_request *)at;
        next = cohi_queue_next(&box->moving, at);
        moved = request->move.ticket ? cohi_large_step(box, request) : cohi_far_step(box, request);
    }
    cohi_latch_give(&box->lock);
    return moved;
}

bool cohi_mailbox_progress(cohi_mailbox *box)
{
    bool any = false;
    if (has_come(box) && cohi_latch_try(&box->lock)) {
        any = drain(box);
        cohi_latch_give(&box->lock);
    }
    if (COHI_LIKELY(atomic_load_explicit(&box->work, memory_order_relaxed) == 0))
        return any;
    if (box->world->remote)
        cohi_frame_flush(box);
    if (atomic_load_explicit(&box->pendings, memory_order_relaxed) > 0)
        retry(box);
    return move(box) || any;
}

/* Entered before it is known that it may be, so that who shuts it waits for this thread. */
void cohi_mailbox_attend(void *world)
{
    enum { STEPS = 32 };
    cohi_mailbox *box = __atomic_load_n(&((coh_world *)world)->mailbox, __ATOMIC_ACQUIRE);
    if (!box)
        return;
    atomic_fetch_add(&box->attending, 1);
    if (!atomic_load(&box->shut))
        cohi_relay_serve(world);
    for (int i = 0; i < STEPS && !atomic_load(&box->shut) && cohi_mailbox_progress(box); i++)
        continue;
    atomic_fetch_sub(&box->attending, 1);
}

void cohi_mailbox_shut(coh_world *world)
{
    if (!world->mailbox)
        return;
    atomic_store(&world->mailbox->shut, true);
    while (atomic_load(&world->mailbox->attending) > 0)
        sched_yield();
}

static bool settled(cohi_mailbox *box)
{
    cohi_latch_take(&box->lock);
    bool all = !cohi_queue_first(&box->accepting) && !cohi_queue_first(&box->crediting)
               && !cohi_queue_first(&box->flying);
    cohi_latch_give(&box->lock);
    return all;
}

static bool is_moving(cohi_mailbox *box)
{
    bool any = false;
    cohi_latch_take(&box->lock);
    for (cohi_link *at = cohi_queue_first(&box->moving); at && !any;
         at = cohi_queue_next(&box->moving, at)) {
        const coh_request *request = (const coh_request *)at;
        any = request->move.ticket && cohi_large_is_accepted(request);
    }
    cohi_latch_give(&box->lock);
    return any;
}

coh_status cohi_mailbox_finish(coh_world *world, const char *call)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    if (!world->mailbox)
        return COH_OK;
    while (cohi_mailbox_progress(world->mailbox))
        continue;
    cohi_wait_begin(&wait, world, call, COHI_OP_FINALIZE, NULL, -1);
    while (status == COH_OK && is_moving(world->mailbox))
        status = cohi_wait_step(&wait);
    cohi_wait_end(&wait);
    return status;
}

void cohi_mailbox_settle(coh_world *world, const char *call)
{
    cohi_mailbox *box = world->mailbox;
    if (!world->remote || !box)
        return;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_frame_flush(box);
    cohi_wait_begin(&wait, world, call, COHI_OP_FINALIZE, NULL, -1);
    while (status == COH_OK && !settled(box) && wait.waited_ns < COHI_NS_PER_S) {
        status = cohi_wait_step(&wait);
        cohi_frame_flush(box);
    }
    cohi_wait_end(&wait);
}
