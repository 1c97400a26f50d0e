#include "core/health/control.h"

#include "core/health/verdict.h"
#include "memory/host_copy.h"

#include <string.h>

/* A control write as it travels on a channel. */
struct control_frame {
    uint32_t kind; /* COHI_FRAME_CONTROL */
    uint32_t count;
    uint64_t offset;
    unsigned char bytes[COHI_INLINE_BYTES];
};

_Static_assert(sizeof(struct control_frame) <= COHI_HEAD_BYTES, "a control write is a head alone");

enum { WORD = 8 };

/* The first word last: a reader that sees it sees the rest. */
static void apply(cohi_slot *slot, size_t offset, const void *bytes, size_t count)
{
    char *target = (char *)slot + offset;
    if (count > WORD) {
        memcpy(target + WORD, (const char *)bytes + WORD, count - WORD);
        count = WORD;
    }
    cohi_host_copy(target, bytes, count);
}

static coh_status send_frame(coh_world *world, int rank, size_t offset, const void *bytes,
                             size_t count)
{
    struct control_frame frame = {
        .kind = COHI_FRAME_CONTROL, .count = (uint32_t)count, .offset = offset};
    memcpy(frame.bytes, bytes, count);
    return world->engine->channel->send(world->endpoint, rank, &frame,
                                        offsetof(struct control_frame, bytes) + count, NULL, 0,
                                        NULL);
}

coh_status cohi_control_put(coh_world *world, int rank, size_t offset, const void *bytes,
                            size_t count)
{
    cohi_slot *slot = rank == world->rank ? world->slot : world->peers[rank].slot;
    if (slot) {
        apply(slot, offset, bytes, count);
        cohi_control_wake(world, slot);
        return COH_OK;
    }
    coh_status status = world->engine->rma ? world->engine->rma->put(
                            world->endpoint,
                            (cohi_remote){COHI_CONTEXT_CONTROL, rank, COHI_SEGMENT_CONTROL, offset},
                            bytes, count, NULL)
                                           : send_frame(world, rank, offset, bytes, count);
    /* From the last meeting others leave as soon as they can: a hint may come too late for them. One
     * that died there is told by the engine. */
    if (status == COH_PEER_LOST && !atomic_load(&world->parting))
        cohi_verdict_presume(world, "a control write", rank, COHI_LOSS_LINK);
    return status;
}

void cohi_control_ring(const coh_world *world, cohi_slot *slot)
{
    cohi_company_show(world->slot);
    cohi_slot_ring(slot);
}

coh_status cohi_control_ring_watcher(cohi_slot *slot)
{
    cohi_slot_ring(slot);
    return COH_OK;
}

coh_status cohi_control_fence(coh_world *world)
{
    if (world->remote && world->engine->rma)
        return world->engine->rma->fence(world->endpoint, COHI_CONTEXT_CONTROL);
    return COH_OK; /* stores are released in order; channels are ordered */
}

static bool frame_fits(const coh_world *world, const struct control_frame *frame, size_t count)
{
    size_t room = cohi_slot_control_bytes(world->size);
    return count >= offsetof(struct control_frame, bytes) && frame->kind == COHI_FRAME_CONTROL
           && frame->count <= sizeof frame->bytes
           && count == offsetof(struct control_frame, bytes) + frame->count && frame->offset <= room
           && frame->count <= room - frame->offset;
}

/* A frame that does not fit was not written by this library: the sender is as good as gone. */
void cohi_control_deliver(coh_world *world, int from, const void *bytes, size_t count)
{
    struct control_frame frame = {.kind = 0};
    memcpy(&frame, bytes, count < sizeof frame ? count : sizeof frame);
    if (!frame_fits(world, &frame, count)) {
        cohi_verdict_lost(world, from, COHI_LOSS_LINK, 0);
        return;
    }
    apply(world->slot, frame.offset, frame.bytes, frame.count);
    cohi_slot_ring(world->slot);
}
