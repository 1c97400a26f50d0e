/*
 * pieces.h - long messages between members, cut into pieces so that peers keep seeing progress.
 *
 * Both sides cut alike: a message goes as pieces of COHI_PIECE_BYTES and a rest, or, where it is
 * combined with what the receiver has or is short, as chunks that stay in the cache. Where two members exchange them,
 * they are as long as the engine takes (cohi_chunk_length); down a chain each waits for the first chunk, and it is of
 * COHI_CHUNK_BYTES (cohi_piece_length).
 */
#ifndef COHI_COLL_MESSAGE_PIECES_H
#define COHI_COLL_MESSAGE_PIECES_H

#include "coll/call/blocks.h"
#include "coll/message/exchange.h"

#include <string.h>

enum {
    COHI_PIECE_BYTES = 1 << 20, /* a wait for one is far shorter than any COHORT_STALL */
    COHI_CHUNK_BYTES =
        63 << 10, /* it goes unasked, as one segment of TCP on the loopback or of a card */
    COHI_PAIR_BYTES =
        2 * COHI_CHUNK_BYTES /* where two members exchange parts, if a frame has room */
};

/*
 * Elements of `size` bytes in a chunk, of `count` to exchange: as many as a frame of the engine's holds. Where two of
 * COHI_CHUNK_BYTES are enough it is those, so that one is combined while the other comes. All_reduce of 256 KiB, 1, 2
 * and 16 MiB by two ranks over TCP on the loopback, us: with frames of 128 KiB 66, 248, 480, 5150; of 256 KiB 55, 210, 390,
 * 5160; of 512 KiB 46, 168, 355, 4790; of 1 MiB 46, 164, 328, 4720 (Zen 5, links that are not paced).
 */
size_t cohi_chunk_length(const cohi_call *call, size_t count, size_t size);

/* Whether all members are two whose frames have room for parts of COHI_PAIR_BYTES. */
static inline bool cohi_is_pair(int members, double frame_bytes)
{
    return members == 2 && frame_bytes >= COHI_PAIR_BYTES;
}

/* What member `index` reduces, or brings, alone: its block in reduce_scatter and all_gather, its
 * share of the elements in the others. */
cohi_span cohi_shard(const cohi_call *call, int index);
size_t cohi_shard_longest(const cohi_call *call);

/* The largest power of two in a positive number. */
static inline int cohi_power_below(int number)
{
    int power = 1;
    while (power <= number / 2)
        power *= 2;
    return power;
}

static inline char *cohi_part_take(char **workspace, size_t bytes)
{
    char *part = *workspace;
    *workspace += cohi_part_bytes(bytes);
    return part;
}

/*
 * cohi_exchange_both for messages of any length; zero bytes: nothing on that side. What a member sends by the first of
 * them is received by the first; a send is received by a receive, or in pieces of COHI_PIECE_BYTES by itself.
 */
coh_status cohi_pieces_both(cohi_call *call, int to, const char *out, size_t out_bytes, int from,
                            char *in, size_t in_bytes);
coh_status cohi_pieces_send(cohi_call *call, int to, const char *out, size_t bytes);
coh_status cohi_pieces_receive(cohi_call *call, int from, char *in, size_t bytes);

/*
 * Sends elements of the partial type (accumulate.h) to one member, and puts those that come from
 * another, combined with this member's `own`, into `into`; the next chunks are on their way while one is
 * combined. `out`, `own` and `into` may be the same: what is sent is what was there before. A member with
 * nothing to send or receive has a count of 0.
 */
typedef struct cohi_flow {
    int to;
    const char *out;
    size_t out_count;
    int from;
    const char *own;
    char *into;
    size_t in_count;
    bool in_first; /* what comes is the left operand */
} cohi_flow;

/* `buffers` has cohi_flow_bytes of the longest in_count. */
size_t cohi_flow_bytes(const cohi_call *call, size_t in_count);
coh_status cohi_flow_run(cohi_call *call, const cohi_flow *flow, char *buffers);

#endif
