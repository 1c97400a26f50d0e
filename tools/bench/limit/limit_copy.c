#include "bench/limit/limit.h"

#include "base/clock.h"

#include <string.h>

static int always(void)
{
    return 1;
}

static void copy_memcpy(void *target, const void *source, size_t bytes)
{
    memcpy(target, source, bytes);
}

#if defined(__x86_64__)
#include <immintrin.h>

/*
 * The vector loops move whole turns in aligned stores: what comes before the first aligned address
 * and after the last whole turn goes to memcpy, as does a range too short for one turn.
 */
enum { LINE_BYTES = 64, AVX2_TURN_BYTES = 128, AVX512_TURN_BYTES = 256, PAGE_BYTES = 4096 };

struct span {
    char *target;
    const char *source;
    size_t turns;
};

/* Copies the ragged ends and returns the middle. */
static struct span copy_ends(void *target, const void *source, size_t bytes, size_t turn_bytes)
{
    struct span middle = {target, source, 0};
    size_t head = -(uintptr_t)target % LINE_BYTES;
    if (bytes < head + turn_bytes) {
        memcpy(target, source, bytes);
        return middle;
    }
    memcpy(target, source, head);
    middle.target += head;
    middle.source += head;
    middle.turns = (bytes - head) / turn_bytes;
    size_t done = middle.turns * turn_bytes;
    memcpy(middle.target + done, middle.source + done, bytes - head - done);
    return middle;
}

static int have_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

static int have_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

__attribute__((target("avx2"))) static void copy_avx2(void *target, const void *source,
                                                      size_t bytes)
{
    struct span middle = copy_ends(target, source, bytes, AVX2_TURN_BYTES);
    const __m256i *from = (const __m256i *)middle.source;
    __m256i *to = (__m256i *)middle.target;
    for (; middle.turns; middle.turns--, from += 4, to += 4) {
        __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
        __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);
        _mm256_store_si256(to, a);
        _mm256_store_si256(to + 1, b);
        _mm256_store_si256(to + 2, c);
        _mm256_store_si256(to + 3, d);
    }
}

__attribute__((target("avx2"))) static void copy_avx2_nt(void *target, const void *source,
                                                         size_t bytes)
{
    struct span middle = copy_ends(target, source, bytes, AVX2_TURN_BYTES);
    const __m256i *from = (const __m256i *)middle.source;
    __m256i *to = (__m256i *)middle.target;
    for (; middle.turns; middle.turns--, from += 4, to += 4) {
        __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
        __m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        _mm256_stream_si256(to + 2, c);
        _mm256_stream_si256(to + 3, d);
    }
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_avx512(void *target, const void *source,
                                                           size_t bytes)
{
    struct span middle = copy_ends(target, source, bytes, AVX512_TURN_BYTES);
    const __m512i *from = (const __m512i *)middle.source;
    __m512i *to = (__m512i *)middle.target;
    for (; middle.turns; middle.turns--, from += 4, to += 4) {
        __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 1);
        __m512i c = _mm512_loadu_si512(from + 2), d = _mm512_loadu_si512(from + 3);
        _mm512_store_si512(to, a);
        _mm512_store_si512(to + 1, b);
        _mm512_store_si512(to + 2, c);
        _mm512_store_si512(to + 3, d);
    }
}

__attribute__((target("avx512f"))) static void copy_avx512_nt(void *target, const void *source,
                                                              size_t bytes)
{
    struct span middle = copy_ends(target, source, bytes, AVX512_TURN_BYTES);
    const __m512i *from = (const __m512i *)middle.source;
    __m512i *to = (__m512i *)middle.target;
    for (; middle.turns; middle.turns--, from += 4, to += 4) {
        __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 1);
        __m512i c = _mm512_loadu_si512(from + 2), d = _mm512_loadu_si512(from + 3);
        _mm512_stream_si512(to, a);
        _mm512_stream_si512(to + 1, b);
        _mm512_stream_si512(to + 2, c);
        _mm512_stream_si512(to + 3, d);
    }
    _mm_sfence();
}

/*
 * Two lines of each of several pages in turn: more banks of the memory are open at a time. How many
 * pages are best depends on the memory controller, so the forms below try two and four.
 */
#define INLINE_FOR(isa) static inline __attribute__((always_inline, target(isa)))

INLINE_FOR("avx512f") void stream_lines_avx512(char *to, const char *from)
{
    __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + LINE_BYTES);
    _mm512_stream_si512((__m512i *)to, a);
    _mm512_stream_si512((__m512i *)(to + LINE_BYTES), b);
}

INLINE_FOR("avx2") void stream_lines_avx2(char *to, const char *from)
{
    const __m256i *source = (const __m256i *)from;
    __m256i *target = (__m256i *)to;
    __m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
    __m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);
    _mm256_stream_si256(target, a);
    _mm256_stream_si256(target + 1, b);
    _mm256_stream_si256(target + 2, c);
    _mm256_stream_si256(target + 3, d);
}

#define COPY_PAGES(name, isa, stream_lines, pages)                                                \
    __attribute__((target(isa))) static void name(void *target, const void *source, size_t bytes) \
    {                                                                                             \
        struct span middle = copy_ends(target, source, bytes, (pages) * (size_t)PAGE_BYTES);      \
        for (; middle.turns; middle.turns--) {                                                    \
            for (size_t at = 0; at < PAGE_BYTES; at += 2 * LINE_BYTES) {                          \
                for (size_t page = 0; page < (pages); page++)                                     \
                    stream_lines(middle.target + page * PAGE_BYTES + at,                          \
                                 middle.source + page * PAGE_BYTES + at);                         \
            }                                                                                     \
            middle.source += (pages) * (size_t)PAGE_BYTES;                                        \
            middle.target += (pages) * (size_t)PAGE_BYTES;                                        \
        }                                                                                         \
        _mm_sfence();                                                                             \
    }
COPY_PAGES(copy_avx2_nt_2_pages, "avx2", stream_lines_avx2, 2)
COPY_PAGES(copy_avx2_nt_4_pages, "avx2", stream_lines_avx2, 4)
COPY_PAGES(copy_avx512_nt_2_pages, "avx512f", stream_lines_avx512, 2)
COPY_PAGES(copy_avx512_nt_4_pages, "avx512f", stream_lines_avx512, 4)

static void copy_rep_movsb(void *target, const void *source, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
}
#endif

static const cohi_limit_copy_form forms[] = {
    {"memcpy", always, copy_memcpy},
#if defined(__x86_64__)
    {"rep movsb", always, copy_rep_movsb},
    {"avx2", have_avx2, copy_avx2},
    {"avx2 nt", have_avx2, copy_avx2_nt},
    {"avx2 nt 2 pages", have_avx2, copy_avx2_nt_2_pages},
    {"avx2 nt 4 pages", have_avx2, copy_avx2_nt_4_pages},
    {"avx512", have_avx512, copy_avx512},
    {"avx512 nt", have_avx512, copy_avx512_nt},
    {"avx512 nt 2 pages", have_avx512, copy_avx512_nt_2_pages},
    {"avx512 nt 4 pages", have_avx512, copy_avx512_nt_4_pages},
#endif
};

const cohi_limit_copy_form *cohi_limit_copy_form_at(size_t index)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].available() && index-- == 0)
            return &forms[i];
    }
    return NULL;
}

double cohi_limit_copy(const cohi_limit_copy_form *form, void *target, const void *source,
                       size_t bytes, uint64_t repeats)
{
    void (*copy)(void *, const void *, size_t) = form->copy;
    copy(target, source, bytes);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        copy(target, source, bytes);
    return (double)(cohi_now_ns() - start) / (double)repeats;
}
