/*
 * mark.h - what a member shows of the call that it is in: the epoch, and a fingerprint of the call.
 *
 * The fingerprint of a collective on data has the high bit, the operation, and a hash of the
 * arguments; of others it is the operation. So a mark tells the operation by itself: the terms
 * beside it may already be those of a later call, since they are stored before its mark.
 */
#ifndef COHI_CORE_TEAM_MARK_H
#define COHI_CORE_TEAM_MARK_H

#include "base/opcode.h"

#include <stdbool.h>
#include <stdint.h>

#define COHI_PRINT_DATA  UINT32_C(0x80000000)
#define COHI_PRINT_HASH  UINT32_C(0x01ffffff) /* all ones: the call was refused; its terms say why */
#define COHI_PRINT_OP_AT 25                   /* six bits */

static inline uint32_t cohi_print(uint32_t op, uint32_t hash)
{
    return COHI_PRINT_DATA | op << COHI_PRINT_OP_AT | hash;
}

static inline uint64_t cohi_mark(uint32_t epoch, uint32_t print)
{
    return (uint64_t)epoch << 32 | print;
}

static inline uint32_t cohi_mark_epoch(uint64_t mark)
{
    return (uint32_t)(mark >> 32);
}

static inline uint32_t cohi_mark_print(uint64_t mark)
{
    return (uint32_t)mark;
}

/* A mark that was never written looks like epoch 0, but has no operation. */
static inline bool cohi_mark_is_of(uint64_t mark, uint32_t epoch)
{
    return cohi_mark_epoch(mark) == epoch && cohi_mark_print(mark) != COHI_OP_NONE;
}

static inline bool cohi_mark_refused(uint64_t mark)
{
    uint32_t refused = COHI_PRINT_DATA | COHI_PRINT_HASH;
    return (cohi_mark_print(mark) & refused) == refused;
}

/* The operation that a member posted with `mark`. */
static inline cohi_opcode cohi_mark_op(uint64_t mark)
{
    uint32_t print = cohi_mark_print(mark);
    return (cohi_opcode)(print & COHI_PRINT_DATA ? (print & ~COHI_PRINT_DATA) >> COHI_PRINT_OP_AT
                                                 : print);
}

#endif
