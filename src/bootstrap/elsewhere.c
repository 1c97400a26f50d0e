#include "bootstrap/elsewhere.h"

#include <stdio.h>
#include <string.h>

/* The word on a rank: the wait status, COHI_ENDED, that it is stopped and in what, and the number of
 * its host plus one. */
#define STOPPED (UINT64_C(1) << 33)
enum { OP_SHIFT = 34, OP_BITS = 13, HOST_SHIFT = 47 };
#define OP_MASK  ((UINT64_C(1) << OP_BITS) - 1)
#define END_MASK (COHI_ENDED | UINT64_C(0xffffffff))

_Static_assert(COHI_WORLD_MAX < 1 << (64 - HOST_SHIFT), "the number of a host and one fits");

/* Replaces the bits of `mask`, unless one of `stands` is set. */
static void write_bits(_Atomic uint64_t *word, uint64_t mask, uint64_t bits, uint64_t stands)
{
    uint64_t before = atomic_load(word);
    while (!(before & stands)
           && !atomic_compare_exchange_weak(word, &before, (before & ~mask) | bits))
        continue;
}

void cohi_board_tell_end(const cohi_board *board, int rank, int wait_status)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    uint64_t end = COHI_ENDED | (uint32_t)wait_status, none = 0;
    if (slot)
        atomic_compare_exchange_strong(&slot->end, &none, end);
    else
        write_bits(cohi_board_told(board, rank), END_MASK, end, COHI_ENDED);
    cohi_board_ring(board);
}

void cohi_board_tell_stopped(const cohi_board *board, int rank, bool stopped, unsigned op)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    uint64_t bits = stopped ? STOPPED | (uint64_t)op << OP_SHIFT : 0;
    if (slot)
        atomic_store(&slot->stopped, stopped);
    else
        write_bits(cohi_board_told(board, rank), STOPPED | OP_MASK << OP_SHIFT, bits, 0);
}

void cohi_board_tell_verdict(const cohi_board *board, int rank, uint64_t verdict)
{
    for (uint32_t i = 0; i < board->head->locals; i++) {
        cohi_slot *slot = cohi_board_slot(board, cohi_board_ranks(board)[i]);
        uint64_t none = 0;
        atomic_compare_exchange_strong(cohi_slot_verdict(slot, rank), &none, verdict);
        atomic_store(&slot->alarm, 1);
    }
    cohi_board_ring(board);
}

void cohi_board_tell_exit(const cohi_board *board, int code)
{
    uint64_t none = 0;
    atomic_compare_exchange_strong(&board->head->global_exit, &none,
                                   COHI_ENDED | (uint64_t)(code & 0xff));
    cohi_board_ring(board);
}

/* ---- hosts ---- */

/* Whether the host's number is that of `name`; a number that nobody has is taken for it. One that is
 * being written is not: then the name may be there twice, which does no harm. */
static bool is_named(const cohi_board *board, int host, const char *name)
{
    cohi_host_name *place = cohi_board_host_name(board, host);
    unsigned none = 0;
    if (atomic_load(&place->state) == 0
        && atomic_compare_exchange_strong(&place->state, &none, 1)) {
        snprintf(place->text, sizeof place->text, "%s", name);
        atomic_store(&place->state, 2);
        return true;
    }
    return atomic_load(&place->state) == 2
           && strncmp(place->text, name, sizeof place->text - 1) == 0;
}

void cohi_board_tell_host(const cohi_board *board, int rank, const char *name)
{
    int size = (int)board->head->size, host = 0;
    while (host < size && !is_named(board, host, name))
        host++;
    if (host < size)
        write_bits(cohi_board_told(board, rank), UINT64_MAX << HOST_SHIFT,
                   (uint64_t)(host + 1) << HOST_SHIFT, 0);
}

const char *cohi_board_host_of(const cohi_board *board, int rank)
{
    int host = (int)(atomic_load(cohi_board_told(board, rank)) >> HOST_SHIFT) - 1;
    if (host < 0 && cohi_board_index(board, rank) >= 0)
        return board->head->host;
    if (host < 0 || host >= (int)board->head->size)
        return "";
    cohi_host_name *place = cohi_board_host_name(board, host);
    return atomic_load(&place->state) == 2 ? place->text : "";
}

/* ---- reading ---- */

cohi_told cohi_board_read(const cohi_board *board, int rank)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    uint64_t word = slot ? atomic_load(&slot->end) : atomic_load(cohi_board_told(board, rank));
    return (cohi_told){
        .ended = (word & COHI_ENDED) != 0,
        .wait_status = (int)(uint32_t)word,
        .stopped = slot ? atomic_load(&slot->stopped) != 0 : (word & STOPPED) != 0,
        .op = slot ? atomic_load(&slot->op) : (unsigned)(word >> OP_SHIFT & OP_MASK),
    };
}
