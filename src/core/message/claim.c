#include "core/message/claim.h"

#include "core/message/far.h"
#include "core/message/frame.h"
#include "core/message/match.h"

#include <string.h>

static cohi_mailbox *box_of(void *world)
{
    return __atomic_load_n(&((coh_world *)world)->mailbox, __ATOMIC_ACQUIRE);
}

/* The receive that was posted for a message which comes unasked, if it has room. */
static coh_request *claim_posted(cohi_mailbox *box, int from, const cohi_frame_head *head)
{
    cohi_envelope envelope = {
        .team = head->team, .tag = head->tag, .from = from, .bytes = head->bytes};
    if (head->other > COHI_UNEXPECTED_BYTES)
        return NULL;
    coh_request *receive = cohi_match_claim(box, &envelope);
    if (receive) {
        (void)cohi_frame_take_credit(box, from, head->other);
        cohi_far_claim(box, receive);
    }
    return receive;
}

/* The receive that has accepted the message, if this is its next piece. */
static coh_request *claim_accepted(cohi_mailbox *box, int from, const cohi_frame_head *head)
{
    coh_request *receive = cohi_far_find(box, COHI_OP_RECEIVE, from, head->serial);
    bool next = receive && receive->move.way == COHI_WAY_PIECES && head->other == receive->move.gone
                && head->bytes <= receive->bytes - receive->move.gone;
    return next ? receive : NULL;
}

static coh_request *find(cohi_mailbox *box, int from, const cohi_frame_head *head)
{
    if (head->kind == COHI_FRAME_MESSAGE)
        return claim_posted(box, from, head);
    return head->kind == COHI_FRAME_DATA ? claim_accepted(box, from, head) : NULL;
}

/* What cannot be claimed is delivered whole, and judged there. */
uint64_t cohi_claim_begin(void *world, int from, const cohi_arriving *message, size_t *head)
{
    cohi_mailbox *box = box_of(world);
    cohi_frame_head told;
    if (!box || message->here < sizeof told)
        return 0;
    memcpy(&told, message->bytes, sizeof told);
    if (told.bytes == 0 || told.bytes != message->count - sizeof told)
        return 0;
    cohi_latch_take(&box->lock);
    const coh_request *receive = find(box, from, &told);
    uint64_t claim = receive ? receive->serial : 0;
    cohi_latch_give(&box->lock);
    *head = sizeof told;
    return claim;
}

void *cohi_claim_borrow(void *world, int from, uint64_t claim, size_t bytes)
{
    cohi_mailbox *box = box_of(world);
    char *place = NULL;
    cohi_latch_take(&box->lock);
    coh_request *receive = cohi_far_find(box, COHI_OP_RECEIVE, from, claim);
    if (receive && bytes <= receive->bytes - receive->move.gone) {
        receive->users++;
        place = receive->data + receive->move.gone;
    }
    cohi_latch_give(&box->lock);
    return place;
}

/* It is there: nobody gives up a request that has users. */
void cohi_claim_return(void *world, int from, uint64_t claim, size_t come)
{
    cohi_mailbox *box = box_of(world);
    cohi_latch_take(&box->lock);
    coh_request *receive = cohi_far_find(box, COHI_OP_RECEIVE, from, claim);
    receive->users--;
    receive->move.gone += come;
    if (come > 0) /* the engine may have looked in vain */
        cohi_mailbox_note_piece(box);
    if (receive->move.gone == receive->bytes)
        cohi_far_end(box, receive, COH_OK);
    cohi_latch_give(&box->lock);
}
