/* card.h - collectives whose buffers are memory of a card: on a stream of the caller's, or waited for. */
#ifndef COHI_COLL_CARD_H
#define COHI_COLL_CARD_H

#include "coll/call/call.h"

/* Whether a buffer that this member has in the call is memory of a card. */
bool cohi_card_has(const cohi_call *call);

/* The same of one of the parts of a grouped call. */
bool cohi_card_has_parts(const cohi_call *call);

/* Whether the card carries it out: a call of ranks of one host, of a form that kernels have, in which every
 * member can see that it is the card's. Else the members' buffers are copied to the host and back. */
bool cohi_card_serves(const cohi_call *call);

/* Of a call that has come as far as its choice, with the lengths of its buffers: whether that is the card. All
 * members come to the same: they compare what was chosen. */
bool cohi_card_takes(const cohi_call *call);

/* The row of a call that the card carries out, and its number. */
extern const struct cohi_algorithm cohi_card_algorithm;
enum { COHI_CARD_ALGORITHM = 255 };

/* Members of a team that can meet on a card. */
enum { COHI_CARD_MEMBERS = 64 };

/* Carries out a call with buffers on a card in memory of the host; `on_host` is what does it there. */
coh_status cohi_card_by_host(cohi_call *call, coh_status (*on_host)(cohi_call *call));

#endif
