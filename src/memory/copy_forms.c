#include "memory/copy_forms.h"

#include "base/atomics.h"

#include <stdint.h>
#include <string.h>

/* The sanitizers see what memmove touches, but not what these loops do. */
#if defined(__x86_64__) && !defined(COHI_TSAN) && !defined(COHI_ASAN)
#define HAS_LOOPS 1
#else
#define HAS_LOOPS 0
#endif

static const struct form {
    const char *name;
    int bits;
    bool streams;
    int pages;
} forms[] = {
#define ROW(form, name, bits, streams, pages) {name, bits, streams, pages},
    COHI_COPY_FORM_TABLE(ROW)
#undef ROW
};

const char *cohi_copy_form_name(unsigned form)
{
    return form < COHI_COPY_FORMS ? forms[form].name : NULL;
}

bool cohi_copy_form_streams(unsigned form)
{
    return form < COHI_COPY_FORMS && forms[form].streams;
}

#if HAS_LOOPS

#include <immintrin.h>

bool cohi_copy_form_available(unsigned form)
{
    if (form >= COHI_COPY_FORMS)
        return false;
    return forms[form].bits == 0
           || (forms[form].bits == 512 ? __builtin_cpu_supports("avx512f")
                                       : __builtin_cpu_supports("avx2"));
}

/* 512 bits are 1.06 times as fast on Sapphire Rapids, 256 bits 1.03 times on Zen 4, which splits
 * the wider ones. */
cohi_copy_form cohi_copy_form_streamed(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_is("intel"))
        return COHI_COPY_STREAM_512;
    return __builtin_cpu_supports("avx2") ? COHI_COPY_STREAM_256 : COHI_COPY_LIBC;
}

enum { PAGE_BYTES = 4096, LINE_BYTES = 64, STEP_BYTES = 2 * LINE_BYTES };

/* Copies two lines; the target is aligned to a line. */
#define STEP_512(store)                                           \
    do {                                                          \
        __m512i a = _mm512_loadu_si512(source + at);              \
        __m512i b = _mm512_loadu_si512(source + at + LINE_BYTES); \
        store((__m512i *)(void *)(target + at), a);               \
        store((__m512i *)(void *)(target + at + LINE_BYTES), b);  \
    } while (0)

#define STEP_256(store)                                                             \
    do {                                                                            \
        const __m256i *from = (const __m256i *)(const void *)(source + at);         \
        __m256i *to = (__m256i *)(void *)(target + at);                             \
        __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);     \
        __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3); \
        store(to, a);                                                               \
        store(to + 1, b);                                                           \
        store(to + 2, c);                                                           \
        store(to + 3, d);                                                           \
    } while (0)

/* Whole turns of `pages` pages each, two lines of each page in turn. With one page it is one line
 * of addresses from the first byte to the last. */
#define LOOP(name, set, step, store)                                                              \
    __attribute__((target(set))) static void name(char *target, const char *source, size_t turns, \
                                                  size_t pages)                                   \
    {                                                                                             \
        for (size_t turn = 0; turn < turns; turn++) {                                             \
            for (size_t line = 0; line < PAGE_BYTES; line += STEP_BYTES)                          \
                for (size_t at = line; at < pages * PAGE_BYTES; at += PAGE_BYTES)                 \
                    step(store);                                                                  \
            target += pages * PAGE_BYTES;                                                         \
            source += pages * PAGE_BYTES;                                                         \
        }                                                                                         \
    }

LOOP(plain_256, "avx2", STEP_256, _mm256_store_si256)
LOOP(plain_512, "avx512f", STEP_512, _mm512_store_si512)
LOOP(stream_256, "avx2", STEP_256, _mm256_stream_si256)
LOOP(stream_512, "avx512f", STEP_512, _mm512_stream_si512)

typedef void loop(char *target, const char *source, size_t turns, size_t pages);

static loop *loop_of(const struct form *form)
{
    if (form->bits == 512)
        return form->streams ? stream_512 : plain_512;
    return form->streams ? stream_256 : plain_256;
}

static bool overlap(const char *target, const char *source, size_t bytes)
{
    uintptr_t a = (uintptr_t)target, b = (uintptr_t)source;
    return a < b ? b - a < bytes : a - b < bytes;
}

static void copy_by_loop(const struct form *form, char *target, const char *source, size_t bytes)
{
    size_t pages = form->pages > 0 ? (size_t)form->pages : 1, turn = pages * PAGE_BYTES;
    size_t head = -(uintptr_t)target % LINE_BYTES;
    memcpy(target, source, head);
    size_t turns = (bytes - head) / turn;
    loop_of(form)(target + head, source + head, turns, pages);
    head += turns * turn;
    memcpy(target + head, source + head, bytes - head);
    if (form->streams)
        _mm_sfence(); /* streamed stores obey no order, not even a release's */
}

void cohi_copy_by(cohi_copy_form form, void *target, const void *source, size_t bytes)
{
    enum { LEAST = 4 * PAGE_BYTES + LINE_BYTES };
    if (form == COHI_COPY_LIBC || bytes < LEAST || overlap(target, source, bytes))
        memmove(target, source, bytes);
    else if (form == COHI_COPY_REP_MOVSB)
        __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
    else
        copy_by_loop(&forms[form], target, source, bytes);
}

#else

bool cohi_copy_form_available(unsigned form)
{
    return form == COHI_COPY_LIBC;
}

cohi_copy_form cohi_copy_form_streamed(void)
{
    return COHI_COPY_LIBC;
}

void cohi_copy_by(cohi_copy_form form, void *target, const void *source, size_t bytes)
{
    (void)form;
    memmove(target, source, bytes);
}

#endif
