#include "coll/message/exchange.h"

#include "base/error.h"
#include "coll/call/assemble.h"
#include "core/message/message.h"
#include "core/team/mark.h"

/* The fingerprint, so that what is sent in a call with other arguments is not received. */
static uint32_t tag_of(const cohi_call *call)
{
    return COHI_TAG_INTERNAL | (call->entry.print & COHI_PRINT_HASH);
}

static void start(cohi_call *call, coh_request *request, cohi_opcode op, int index, void *data,
                  size_t bytes)
{
    cohi_message_prepare(request, call->team, op, index, tag_of(call), data, bytes);
    request->key = cohi_message_call_key(call->team);
    request->doing = cohi_kind_op(call);
    request->collective = true;
    if (bytes == 0)
        atomic_store_explicit(&request->done, 1, memory_order_relaxed);
    else
        cohi_message_start(request);
}

void cohi_exchange_send(cohi_call *call, coh_request *request, int to, const void *data,
                        size_t bytes)
{
    start(call, request, COHI_OP_SEND, to, (void *)data, bytes);
}

void cohi_exchange_receive(cohi_call *call, coh_request *request, int from, void *data,
                           size_t bytes)
{
    start(call, request, COHI_OP_RECEIVE, from, data, bytes);
}

static coh_status finish(cohi_call *call, coh_request *requests, int count, bool each_beats)
{
    coh_status status = COH_OK;
    cohi_error kept;
    for (int i = 0; i < count; i++) {
        coh_status ended = cohi_request_finish(&requests[i], call->name);
        if (each_beats)
            cohi_call_beat(call);
        status = cohi_error_first(status, ended, &kept);
    }
    return status == COH_OK ? COH_OK : cohi_fail_again(&kept);
}

coh_status cohi_exchange_finish(cohi_call *call, coh_request *requests, int count)
{
    coh_status status = finish(call, requests, count, false);
    cohi_call_beat(call);
    return status;
}

coh_status cohi_exchange_finish_each(cohi_call *call, coh_request *requests, int count)
{
    return finish(call, requests, count, true);
}

coh_status cohi_exchange_both(cohi_call *call, int to, const void *out, size_t out_bytes, int from,
                              void *in, size_t in_bytes)
{
    coh_request requests[2];
    cohi_exchange_receive(call, &requests[0], from, in, in_bytes);
    cohi_exchange_send(call, &requests[1], to, out, out_bytes);
    return cohi_exchange_finish(call, requests, 2);
}
