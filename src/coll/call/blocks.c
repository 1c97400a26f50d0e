#include "coll/call/blocks.h"

#include "core/team/team.h"

#include <string.h>

cohi_reduction cohi_call_reduction(const cohi_call *call)
{
    return (cohi_reduction){.dtype = call->dtype,
                            .op = call->reduce,
                            .ranks = call->team->size,
                            .own = call->own.function ? &call->own : NULL};
}

/* ---- elements that lie apart ---- */

/* X(bytes of an element): a constant length makes each copy a load and a store. */
#define ELEMENT_TABLE(X) X(1) X(2) X(4) X(8)

#define DEFINE_COPY(bytes)                                                               \
    static void copy_apart_##bytes(char *target, size_t target_step, const char *source, \
                                   size_t source_step, size_t count)                     \
    {                                                                                    \
        for (size_t i = 0; i < count; i++, target += target_step, source += source_step) \
            memcpy(target, source, bytes);                                               \
    }
ELEMENT_TABLE(DEFINE_COPY)
#undef DEFINE_COPY

typedef void copy_apart(char *target, size_t target_step, const char *source, size_t source_step,
                        size_t count);

static copy_apart *const copies_apart[] = {
#define ROW(bytes) [bytes] = copy_apart_##bytes,
    ELEMENT_TABLE(ROW)
#undef ROW
};

void cohi_copy_strided(char *target, size_t target_stride, const char *source, size_t source_stride,
                       size_t element, size_t count)
{
    if (count == 0)
        return;
    if (target_stride == 1 && source_stride == 1)
        memcpy(target, source, count * element);
    else
        copies_apart[element](target, target_stride * element, source, source_stride * element,
                              count);
}

void cohi_pack(char *packed, const char *source, size_t stride, size_t element, size_t count)
{
    cohi_copy_strided(packed, 1, source, stride, element, count);
}

void cohi_unpack(char *target, size_t stride, const char *packed, size_t element, size_t count)
{
    cohi_copy_strided(target, stride, packed, 1, element, count);
}

cohi_span cohi_share(const cohi_call *call, size_t count, int index)
{
    size_t line = call->element < COHI_CACHE_LINE ? COHI_CACHE_LINE / call->element : 1;
    size_t size = (size_t)call->team->size;
    size_t lines = (count + line - 1) / line;
    size_t first = lines / size * (size_t)index
                   + (lines % size < (size_t)index ? lines % size : (size_t)index);
    size_t share = lines / size + ((size_t)index < lines % size ? 1 : 0);
    first *= line;
    share *= line;
    if (first > count)
        first = count;
    return (cohi_span){first, share < count - first ? share : count - first};
}

/* ---- identities ---- */

/* As bits, in the type's own bytes; index: MIN, MAX, PRODUCT. Sum, or and xor are zeros; and is
 * ones. */
static const struct identity {
    uint64_t least, most, one;
} identities[] = {
    [COH_I8] = {0x80, 0x7f, 1},
    [COH_I16] = {0x8000, 0x7fff, 1},
    [COH_I32] = {0x80000000, 0x7fffffff, 1},
    [COH_I64] = {UINT64_C(1) << 63, INT64_MAX, 1},
    [COH_U8] = {0, UINT64_MAX, 1},
    [COH_U16] = {0, UINT64_MAX, 1},
    [COH_U32] = {0, UINT64_MAX, 1},
    [COH_U64] = {0, UINT64_MAX, 1},
    [COH_F16] = {0xfc00, 0x7c00, 0x3c00},
    [COH_BF16] = {0xff80, 0x7f80, 0x3f80},
    [COH_F32] = {0xff800000, 0x7f800000, 0x3f800000},
    [COH_F64] = {UINT64_C(0xfff) << 52, UINT64_C(0x7ff) << 52, UINT64_C(0x3ff) << 52},
    [COH_F8E4M3] = {0xfe, 0x7e, 0x38}, /* it has no infinity: the largest */
    [COH_F8E5M2] = {0xfc, 0x7c, 0x3c},
    [COH_BOOL] = {0, 1, 1},
};

uint64_t cohi_identity_of(const cohi_call *call)
{
    const struct identity *of = &identities[call->dtype];
    switch (call->reduce) {
    case COH_PRODUCT:
        return of->one;
    case COH_MIN:
        return of->most;
    case COH_MAX:
        return of->least;
    case COH_AND:
        return call->dtype == COH_BOOL ? 1 : UINT64_MAX;
    default:
        return 0;
    }
}

/* Once, and then what is there already again and again, up to a page, which stays in the cache. */
void cohi_fill_identity(const cohi_call *call, char *target, size_t count)
{
    enum { MOST_BYTES = 4096 };
    uint64_t bits = cohi_identity_of(call); /* little-endian: its first bytes are the value */
    size_t bytes = count * call->element, filled = call->element;
    if (count == 0)
        return;
    memcpy(target, &bits, call->element);
    while (filled < bytes) {
        size_t most = filled < MOST_BYTES ? filled : MOST_BYTES;
        size_t part = bytes - filled < most ? bytes - filled : most;
        memcpy(target + filled, target, part);
        filled += part;
    }
}
