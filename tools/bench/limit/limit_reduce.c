/*
 * limit_reduce.c - the ways to reduce that this CPU has, and one in plain C for those without.
 *
 * The plain one is left to the compiler, which vectorises it for the baseline of the architecture.
 */
#include "bench/limit/limit_forms.h"

#include <string.h>

typedef struct unit {
    float part[32];
} unit;

static inline unit load_f32(const char *from)
{
    unit loaded = {{0}};
    memcpy(loaded.part, from, COHI_LIMIT_UNIT);
    return loaded;
}

static inline unit add_f32(unit left, unit right)
{
    for (int i = 0; i < 16; i++)
        left.part[i] += right.part[i];
    return left;
}

static inline void store_f32(char *to, unit sum)
{
    memcpy(to, sum.part, COHI_LIMIT_UNIT);
}

static inline unit load_words(const char *from)
{
    return load_f32(from);
}

static inline unit add_words(unit left, unit right)
{
    uint32_t a[16], b[16];
    memcpy(a, left.part, sizeof a);
    memcpy(b, right.part, sizeof b);
    for (int i = 0; i < 16; i++)
        a[i] += b[i];
    memcpy(left.part, a, sizeof a);
    return left;
}

static inline void store_words(char *to, unit sum)
{
    store_f32(to, sum);
}

static inline unit add_bf16(unit left, unit right)
{
    for (int i = 0; i < 32; i++)
        left.part[i] += right.part[i];
    return left;
}

/* A bf16 is the upper half of an f32. */
static inline unit load_bf16(const char *from)
{
    uint16_t half[32];
    uint32_t bits[32];
    unit loaded = {{0}};
    memcpy(half, from, sizeof half);
    for (int i = 0; i < 32; i++)
        bits[i] = (uint32_t)half[i] << 16;
    memcpy(loaded.part, bits, sizeof bits);
    return loaded;
}

/* To the nearest, ties to even. */
static inline void store_bf16(char *to, unit sum)
{
    uint16_t half[32];
    uint32_t bits[32];
    memcpy(bits, sum.part, sizeof bits);
    for (int i = 0; i < 32; i++)
        half[i] = (uint16_t)((bits[i] + 0x7fff + (bits[i] >> 16 & 1)) >> 16);
    memcpy(to, half, sizeof half);
}

/* An f16 needs instructions of its own to be fast; without them the limit is that of bf16, which
 * moves as many bytes. */
static inline unit load_f16(const char *from)
{
    return load_bf16(from);
}

static inline unit add_f16(unit left, unit right)
{
    return add_bf16(left, right);
}

static inline void store_f16(char *to, unit sum)
{
    store_bf16(to, sum);
}

/* Plain C has no way past the caches. */
#define CACHED_ONLY
#include "bench/limit/limit_reduce_loops.h"

static int always(void)
{
    return 1;
}

static const cohi_limit_reduce_form plain = {
    .name = "plain", .available = always, .streams = 0, CACHED_LOOPS};

static const cohi_limit_reduce_form *const forms[] = {
#if defined(__x86_64__)
    &cohi_limit_avx512,
    &cohi_limit_avx512_nt,
    &cohi_limit_avx2,
    &cohi_limit_avx2_nt,
#endif
    &plain,
};

const cohi_limit_reduce_form *cohi_limit_reduce_form_at(size_t index)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i]->available() && index-- == 0)
            return forms[i];
    }
    return NULL;
}
