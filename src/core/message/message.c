#include "core/message/message.h"

#include "core/world/fault.h"
#include "core/message/match.h"
#include "core/health/order.h"
#include "core/health/peer.h"
#include "core/team/team.h"
#include "core/health/verdict.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- arguments ---- */

/* One call, as it was made. */
struct call {
    const char *name;
    cohi_opcode op;
    int index;
    int tag;
    const void *data;
    size_t bytes;
};

static coh_status check_index(const coh_team *team, const struct call *call)
{
    bool any = call->op == COHI_OP_RECEIVE && call->index == COH_ANY_RANK;
    if (any || (call->index >= 0 && call->index < team->size))
        return COH_OK;
    (void)cohi_world_fail(team->world, call->name, COH_UNKNOWN_RANK,
                          "there is no member %d; this team has %d (0 to %d)", call->index,
                          team->size, team->size - 1);
    return cohi_fail_range(COH_UNKNOWN_RANK, COH_NO_FACT, COH_NO_FACT, (uint64_t)team->size);
}

static coh_status check_tag(const coh_team *team, const struct call *call)
{
    bool any = call->op == COHI_OP_RECEIVE && call->tag == COH_ANY_TAG;
    if (any || (call->tag >= 0 && call->tag <= COH_TAG_MAX))
        return COH_OK;
    return cohi_world_fail(team->world, call->name, COH_INVALID_ARGUMENT,
                           "tag %d is out of range; tags are 0 to %d%s", call->tag, COH_TAG_MAX,
                           call->op == COHI_OP_RECEIVE ? ", or COH_ANY_TAG" : "");
}

static coh_status check_data(const coh_team *team, const struct call *call)
{
    if (!call->data && call->bytes > 0)
        return cohi_world_fail(team->world, call->name, COH_INVALID_ARGUMENT,
                               "data is NULL, for %zu bytes", call->bytes);
    if (call->bytes > 0 && cohi_world_is_on_card(team->world, call->data))
        return cohi_world_fail(
            team->world, call->name, COH_UNSUPPORTED,
            "data (%p) is memory of a card, which messages do not carry; put and "
            "get do",
            call->data);
    return COH_OK;
}

/* What a receive could still get from a lost rank is found out by looking. */
static coh_status check_peers(const coh_team *team, const struct call *call)
{
    coh_world *world = team->world;
    coh_status status = cohi_verdict_check(world, call->name, world->rank);
    if (status == COH_OK && call->op == COHI_OP_SEND)
        status = cohi_verdict_check(world, call->name, team->ranks[call->index]);
    return status;
}

static coh_status tell(coh_status status, cohi_opcode op, int peer, int tag, size_t bytes)
{
    char whom[32] = "any rank", mark[32] = "any tag";
    if (status == COH_OK)
        return status;
    if (peer != COH_ANY_RANK)
        snprintf(whom, sizeof whom, "rank %d", peer);
    if (tag != COH_ANY_TAG)
        snprintf(mark, sizeof mark, "tag %d", tag);
    return op == COHI_OP_SEND
               ? cohi_fail_add(status, "it was to send %zu bytes to %s with %s", bytes, whom, mark)
               : cohi_fail_add(status, "it was to receive up to %zu bytes from %s with %s", bytes,
                               whom, mark);
}

static coh_status check(const coh_team *team, const struct call *call)
{
    coh_status status = cohi_team_gate(team, call->name);
    if (status == COH_OK)
        status = check_index(team, call);
    if (status == COH_OK)
        status = check_tag(team, call);
    if (status == COH_OK)
        status = check_data(team, call);
    if (status == COH_OK)
        status = cohi_fault_strike(team->world->fault, call->op);
    if (status != COH_OK)
        return status;
    int peer = call->index == COH_ANY_RANK ? COH_ANY_RANK : team->ranks[call->index];
    return tell(check_peers(team, call), call->op, peer, call->tag, call->bytes);
}

static coh_status check_output(const coh_team *team, const char *call, const void *output,
                               const char *name)
{
    coh_status status = cohi_team_gate(team, call);
    if (status == COH_OK && !output)
        status = cohi_world_fail(team->world, call, COH_INVALID_ARGUMENT, "%s is NULL", name);
    return status;
}

/* ---- requests ---- */

void cohi_message_prepare(coh_request *request, coh_team *team, cohi_opcode op, int index,
                          uint32_t tag, void *data, size_t bytes)
{
    *request = (coh_request){.world = team->world,
                             .team = team,
                             .op = op,
                             .doing = op,
                             .key = cohi_message_key(team),
                             .tag = tag,
                             .data = data,
                             .bytes = bytes};
    int peer = index == COH_ANY_RANK ? COH_ANY_RANK : team->ranks[index];
    atomic_store_explicit(&request->peer, peer, memory_order_relaxed);
    if (op == COHI_OP_SEND)
        request->got = (coh_message){
            .source = team->world->rank, .tag = (int)(tag & ~COHI_TAG_INTERNAL), .bytes = bytes};
}

void cohi_message_start(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    if (request->op == COHI_OP_SEND) {
        cohi_mailbox_issue(request);
        return;
    }
    cohi_mailbox_progress(box);
    cohi_latch_take(&box->lock);
    cohi_match_receive(box, request);
    cohi_latch_give(&box->lock);
}

/* Starts it for a public call. An engine may hold the caller for long, so the others see what it is in. */
static void start_shown(coh_request *request)
{
    coh_world *world = request->world;
    int peer = atomic_load_explicit(&request->peer, memory_order_relaxed);
    bool by_engine = peer == COH_ANY_RANK || !cohi_mailbox_by_lane(world, peer);
    if (by_engine)
        cohi_world_show_op(world, request->doing);
    cohi_message_start(request);
    if (by_engine)
        cohi_world_show_op(world, COHI_OP_NONE);
}

static coh_status check_standing(coh_world *world, const char *call, int rank)
{
    coh_status status = cohi_verdict_check(world, call, rank);
    if (status != COH_OK || rank == world->rank || !cohi_peer_has_left(world, rank))
        return status;
    return cohi_verdict_presume(world, call, rank, COHI_LOSS_LEFT);
}

coh_status cohi_message_standing(const coh_request *request, const char *call)
{
    int peer = atomic_load_explicit(&((coh_request *)request)->peer, memory_order_relaxed);
    if (peer != COH_ANY_RANK)
        return check_standing(request->world, call, peer);
    for (int i = 0; i < request->team->size; i++) {
        coh_status status = check_standing(request->world, call, request->team->ranks[i]);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

coh_status cohi_message_tell(const coh_request *request, coh_status status)
{
    if (COHI_LIKELY(status == COH_OK) || request->collective)
        return status;
    return tell(status, request->op, atomic_load(&((coh_request *)request)->peer),
                request->any_tag ? COH_ANY_TAG : (int)request->tag, request->bytes);
}

void cohi_message_got(const coh_request *request, coh_message *got)
{
    if (!got)
        return;
    *got = request->got;
    got->source = request->team->indices[request->got.source];
}

/* ---- the calls ---- */

/* A single thread drives all ranks: what is not buffered would wait for nobody. */
static coh_status refuse_driven(const coh_team *team, const char *call, size_t bytes)
{
    return cohi_world_fail(
        team->world, call, COH_UNSUPPORTED,
        "a message of %zu bytes, over %d, waits for its receiver, and this world "
        "is driven by the thread that drives the others (options.driven): use "
        "coh_send_start",
        bytes, COHI_LANE_EAGER);
}

static coh_status send_long(coh_team *team, const struct call *call)
{
    coh_status status = check(team, call);
    if (status != COH_OK)
        return status;
    coh_world *world = team->world;
    int to = team->ranks[call->index];
    if (world->driven && to != world->rank && call->bytes > COHI_LANE_EAGER)
        return refuse_driven(team, call->name, call->bytes);
    coh_request request;
    cohi_message_prepare(&request, team, COHI_OP_SEND, call->index, (uint32_t)call->tag,
                         (void *)call->data, call->bytes);
    start_shown(&request);
    return cohi_request_finish(&request, call->name);
}

coh_status coh_send(coh_team *team, int to, int tag, const void *data, size_t bytes)
{
    if (COHI_LIKELY(team && team->open && cohi_world_plain(team->world)
                    && (unsigned)to < (unsigned)team->size && tag >= 0 && tag <= COH_TAG_MAX
                    && (data || bytes == 0))
        && cohi_mailbox_write(team->world, team->ranks[to], cohi_message_key(team), (uint32_t)tag,
                              data, bytes))
        return COH_OK;
    return send_long(team, &(struct call){"coh_send", COHI_OP_SEND, to, tag, data, bytes});
}

static void prepare_receive(coh_request *request, coh_team *team, int from, int tag, void *data,
                            size_t room)
{
    cohi_message_prepare(request, team, COHI_OP_RECEIVE, from, (uint32_t)tag, data, room);
    request->any_tag = tag == COH_ANY_TAG;
}

static coh_status receive_long(coh_team *team, const struct call *call, void *data,
                               coh_message *got)
{
    coh_status status = check(team, call);
    if (status != COH_OK)
        return status;
    coh_request request;
    prepare_receive(&request, team, call->index, call->tag, data, call->bytes);
    start_shown(&request);
    status = cohi_request_finish(&request, call->name);
    if (status == COH_OK || status == COH_LENGTH_MISMATCH)
        cohi_message_got(&request, got);
    return status;
}

coh_status coh_receive(coh_team *team, int from, int tag, void *data, size_t room, coh_message *got)
{
    size_t bytes;
    const struct call call = {"coh_receive", COHI_OP_RECEIVE, from, tag, data, room};
    if (!(team && team->open && cohi_world_plain(team->world) && !team->world->driven
          && (unsigned)from < (unsigned)team->size && tag >= 0 && tag <= COH_TAG_MAX
          && (data || room == 0))
        || !cohi_mailbox_read(team->world, team->ranks[from], cohi_message_key(team), (uint32_t)tag,
                              data, room, &bytes))
        return receive_long(team, &call, data, got);
    if (got)
        *got = (coh_message){.source = from, .tag = tag, .bytes = bytes};
    return COH_OK;
}

bool cohi_message_find(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    cohi_latch_take(&box->lock);
    const cohi_arrival *found = cohi_match_find(box, request);
    if (found)
        request->got = (coh_message){found->envelope.from, (int)found->envelope.tag,
                                     (size_t)found->envelope.bytes};
    cohi_latch_give(&box->lock);
    return found != NULL;
}

coh_status coh_probe(coh_team *team, int from, int tag, int *there, coh_message *message)
{
    const struct call call = {"coh_probe", COHI_OP_RECEIVE, from, tag, there, 0};
    coh_status status = check_output(team, call.name, there, "there");
    if (status == COH_OK)
        status = check(team, &call);
    if (status != COH_OK)
        return status;
    coh_request wanted;
    prepare_receive(&wanted, team, from, tag, NULL, 0);
    cohi_world_progress(team->world);
    cohi_mailbox_progress(team->world->mailbox);
    bool found = cohi_message_find(&wanted);
    if (!found) /* polling for what cannot come is waiting too */
        status = cohi_message_standing(&wanted, call.name);
    if (status != COH_OK)
        return status;
    cohi_order_acquire(team->world);
    *there = found;
    if (found)
        cohi_message_got(&wanted, message);
    return COH_OK;
}

coh_status coh_probe_wait(coh_team *team, int from, int tag, coh_message *message)
{
    const struct call call = {"coh_probe_wait", COHI_OP_RECEIVE, from, tag, message, 0};
    coh_status status = check_output(team, call.name, message, "message");
    if (status == COH_OK)
        status = check(team, &call);
    if (status != COH_OK)
        return status;
    coh_request wanted;
    prepare_receive(&wanted, team, from, tag, NULL, 0);
    status = cohi_request_probe(&wanted, call.name);
    if (status == COH_OK)
        cohi_message_got(&wanted, message);
    return status;
}

static void own(coh_request *request)
{
    cohi_mailbox *box = request->world->mailbox;
    cohi_latch_take(&box->lock);
    request->next_owned = box->owned;
    request->owned_at = &box->owned;
    if (box->owned)
        box->owned->owned_at = &request->next_owned;
    box->owned = request;
    cohi_latch_give(&box->lock);
}

void cohi_request_own_started(coh_request *request, coh_team *team, cohi_opcode op,
                              cohi_error *error)
{
    *request = (coh_request){.world = team->world,
                             .team = team,
                             .op = op,
                             .doing = op,
                             .collective = true,
                             .error = error,
                             .got = {.source = team->world->rank}};
    atomic_store_explicit(&request->peer, COH_ANY_RANK, memory_order_relaxed);
    own(request);
}

static coh_status start(coh_team *team, const struct call *call, coh_request **request)
{
    coh_status status = check_output(team, call->name, request, "request");
    if (status == COH_OK)
        status = check(team, call);
    if (status != COH_OK)
        return status;
    coh_request *made = malloc(sizeof *made);
    if (!made)
        return cohi_world_fail(team->world, call->name, COH_NO_MEMORY,
                               "out of memory for a request");
    cohi_message_prepare(made, team, call->op, call->index, (uint32_t)call->tag, (void *)call->data,
                         call->bytes);
    made->any_tag = call->tag == COH_ANY_TAG;
    own(made);
    start_shown(made);
    *request = made;
    return COH_OK;
}

coh_status coh_send_start(coh_team *team, int to, int tag, const void *data, size_t bytes,
                          coh_request **request)
{
    return start(team, &(struct call){"coh_send_start", COHI_OP_SEND, to, tag, data, bytes},
                 request);
}

coh_status coh_receive_start(coh_team *team, int from, int tag, void *data, size_t room,
                             coh_request **request)
{
    return start(team, &(struct call){"coh_receive_start", COHI_OP_RECEIVE, from, tag, data, room},
                 request);
}
