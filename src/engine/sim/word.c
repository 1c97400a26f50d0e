#include "engine/sim/fabric.h"

#include "base/error.h"

#include <string.h>

int cohi_word_whole(const void *address, size_t bytes)
{
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        return 0;
    return ((uintptr_t)address & (bytes - 1)) == 0;
}

/* X(width in bytes, its type) */
#define WIDTHS(X)  \
    X(1, uint8_t)  \
    X(2, uint16_t) \
    X(4, uint32_t) \
    X(8, uint64_t)

void cohi_word_store(void *address, const void *plain, size_t bytes)
{
    switch (bytes) {
#define STORE(width, type)                                          \
    case width: {                                                   \
        type value;                                                 \
        memcpy(&value, plain, width);                               \
        __atomic_store_n((type *)address, value, __ATOMIC_RELEASE); \
        break;                                                      \
    }
        WIDTHS(STORE)
#undef STORE
    }
}

void cohi_word_load(const void *address, void *plain, size_t bytes)
{
    switch (bytes) {
#define LOAD(width, type)                                                      \
    case width: {                                                              \
        type value = __atomic_load_n((const type *)address, __ATOMIC_ACQUIRE); \
        memcpy(plain, &value, width);                                          \
        break;                                                                 \
    }
        WIDTHS(LOAD)
#undef LOAD
    }
}

void cohi_word_read(void *plain, const void *shared, size_t bytes)
{
    char *to = plain;
    const char *from = shared;
    while (bytes > 0) {
        size_t width = bytes >= sizeof(uint64_t) && cohi_word_whole(from, sizeof(uint64_t))
                           ? sizeof(uint64_t)
                           : 1;
        cohi_word_load(from, to, width);
        to += width;
        from += width;
        bytes -= width;
    }
}

static int is_float(coh_dtype dtype)
{
    return dtype == COH_F32 || dtype == COH_F64;
}

static int is_bitwise(coh_atomic_op kind)
{
    return kind == COH_ATOMIC_AND || kind == COH_ATOMIC_OR || kind == COH_ATOMIC_XOR;
}

coh_status cohi_word_check(coh_atomic_op kind, coh_dtype dtype)
{
    static const coh_dtype known[] = {COH_I32, COH_U32, COH_I64, COH_U64, COH_F32, COH_F64};
    size_t i = 0;
    while (i < sizeof known / sizeof *known && known[i] != dtype)
        i++;
    if (i == sizeof known / sizeof *known)
        return cohi_fail(COH_UNSUPPORTED,
                         "the simulator has no atomics on type %s (%d); it has i32, u32, i64, "
                         "u64, f32, f64",
                         coh_dtype_name(dtype) ? coh_dtype_name(dtype) : "unknown", (int)dtype);
    if (kind < COH_ATOMIC_SET || kind > COH_ATOMIC_COMPARE_SWAP)
        return cohi_fail(COH_UNSUPPORTED, "the simulator has no atomic operation %d", (int)kind);
    if (is_float(dtype) && is_bitwise(kind))
        return cohi_fail(COH_UNSUPPORTED, "there is no bitwise atomic on type %s",
                         coh_dtype_name(dtype));
    return COH_OK;
}

static uint64_t add_f32(uint64_t old, uint64_t operand)
{
    float a, b;
    uint32_t bits = (uint32_t)old, added = (uint32_t)operand;
    memcpy(&a, &bits, sizeof a);
    memcpy(&b, &added, sizeof b);
    a += b;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

static uint64_t add_f64(uint64_t old, uint64_t operand)
{
    double a, b;
    memcpy(&a, &old, sizeof a);
    memcpy(&b, &operand, sizeof b);
    a += b;
    memcpy(&old, &a, sizeof old);
    return old;
}

/* Signed numbers wrap as unsigned ones do; only the low bytes of the result are stored. */
static uint64_t combine(const cohi_word_call *call)
{
    switch (call->kind) {
    case COH_ATOMIC_SET:
        return call->operand;
    case COH_ATOMIC_ADD:
        if (call->dtype == COH_F32)
            return add_f32(call->old, call->operand);
        if (call->dtype == COH_F64)
            return add_f64(call->old, call->operand);
        return call->old + call->operand;
    case COH_ATOMIC_AND:
        return call->old & call->operand;
    case COH_ATOMIC_OR:
        return call->old | call->operand;
    case COH_ATOMIC_XOR:
        return call->old ^ call->operand;
    case COH_ATOMIC_COMPARE_SWAP:
        return call->old == call->compare ? call->operand : call->old;
    case COH_ATOMIC_FETCH:
        break;
    }
    return call->old;
}

/* By the narrow type, so that the value is in the low bytes on every machine. */
static uint64_t load_word(const void *address, size_t bytes)
{
    if (bytes == sizeof(uint32_t))
        return __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
}

static void store_word(void *address, uint64_t value, size_t bytes)
{
    if (bytes == sizeof(uint32_t))
        __atomic_store_n((uint32_t *)address, (uint32_t)value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)address, value, __ATOMIC_RELEASE);
}

void cohi_word_apply(void *address, cohi_word_call *call)
{
    size_t bytes = coh_dtype_size(call->dtype);
    call->old = load_word(address, bytes);
    uint64_t changed = combine(call);
    if (changed != call->old)
        store_word(address, changed, bytes);
}
