#include "bench/limit/limit.h"

enum { LINE_BYTES = 64 };

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

static int have_clflushopt(void)
{
    enum { EXTENDED_FEATURES = 7, CLFLUSHOPT = 1 << 23 };
    unsigned a, b, c, d;
    return __get_cpuid_count(EXTENDED_FEATURES, 0, &a, &b, &c, &d) && b & CLFLUSHOPT;
}

/* Many at a time, where clflush waits for each. */
__attribute__((target("clflushopt"))) static void flush_lines(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += LINE_BYTES)
        _mm_clflushopt((void *)(uintptr_t)(at + i));
}

int cohi_limit_flush(const void *memory, size_t bytes)
{
    const char *at = memory;
    int many = have_clflushopt();
    if (many)
        flush_lines(at, bytes);
    for (size_t i = 0; i < bytes && !many; i += LINE_BYTES)
        _mm_clflush(at + i);
    _mm_mfence();
    return 0;
}
#elif defined(__aarch64__)
int cohi_limit_flush(const void *memory, size_t bytes)
{
    const char *at = memory;
    for (size_t i = 0; i < bytes; i += LINE_BYTES)
        __asm__ volatile("dc civac, %0" : : "r"(at + i) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
    return 0;
}
#else
int cohi_limit_flush(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return -1;
}
#endif
