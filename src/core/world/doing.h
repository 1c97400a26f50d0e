/*
 * doing.h - what a rank's threads are doing, as others may read it: each wait that takes long, and
 * whether the threads that wait for nothing can still come to something (bootstrap/board.h).
 */
#ifndef COHI_CORE_WORLD_DOING_H
#define COHI_CORE_WORLD_DOING_H

#include "core/world/world.h"

/*
 * A set of ranks that a wait is for, as spans of neighbouring ones. Where the spans do not suffice the
 * set has ranks in between as well: whoever judges the wait then takes it for one that more ranks
 * could end, and condemns nobody for that.
 */
typedef struct cohi_spans {
    struct cohi_rank_span {
        int32_t first, end; /* the one behind the last; 0: none */
    } span[COHI_SPANS];
} cohi_spans;

void cohi_spans_add(cohi_spans *spans, int rank);
bool cohi_spans_have(const cohi_spans *spans, int rank);

/* A word that a wait is for. */
typedef struct cohi_awaited_word {
    bool shown;  /* the rest means something */
    bool others; /* it is one of several */
    coh_dtype dtype;
    coh_compare compare;
    uint64_t wanted, found; /* to what it is compared, and what it is now */
    cohi_spot spot;         /* where it is */
} cohi_awaited_word;

/* What a wait is for. */
typedef struct cohi_awaited {
    cohi_opcode op;
    uint64_t sequence;
    int tag;          /* -1: none */
    int rank;         /* -1: any of `ranks` */
    cohi_spans ranks; /* when rank is -1 */
    bool ends;        /* by itself, at a time that the caller gave */
    cohi_awaited_word word;
} cohi_awaited;

/* Shows the wait, or that it goes on: the calling thread has found nothing since `looked_ns`.
 * `*shown` is NULL the first time. Where too many threads of the rank wait already it stays NULL:
 * such a thread counts as a busy one. */
void cohi_doing_show(coh_world *world, const cohi_awaited *awaited, uint64_t looked_ns,
                     cohi_doing **shown);

void cohi_doing_hide(cohi_doing **shown);

/* Whether another thread of this rank shows a wait. */
bool cohi_doing_has_others(const coh_world *world, const cohi_doing *than);

/* Reads a wait of a slot that may change meanwhile. False: there is none, or it just changed. */
bool cohi_doing_read(const cohi_doing *doing, cohi_awaited *awaited);

/* "rank 2, tag 7", "any of 0, 2 and 3: u64 >= 3, is 2, offset 128": what the threads of the rank wait
 * for, one after the other; "" where none has waited long. */
void cohi_doing_list(const cohi_slot *slot, char *text, size_t room);

/* "u64 >= 3 at offset 128, which is 2" */
void cohi_doing_describe_word(const cohi_awaited_word *word, char *text, size_t room);

/* Looks at the threads of this rank that wait for nothing and shows what they do, unless another
 * thread is at it. */
void cohi_doing_look_around(coh_world *world);

/* "receives from 1 (tag 7)", "waits for a word from any of 0, 2 and 3", "is in barrier #88 for
 * 2"; `like` is the wait described before it in the same text, whose words are not repeated. */
void cohi_doing_describe(const cohi_awaited *awaited, const cohi_awaited *like, char *text,
                         size_t room);

#endif
