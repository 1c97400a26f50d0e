/* atomics.h - what C11's atomics leave to the machine. */
#ifndef COHI_BASE_ATOMICS_H
#define COHI_BASE_ATOMICS_H

#include <stdatomic.h>

#define COHI_CACHE_LINE 64

#define COHI_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define COHI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Tells the core that it is in a spin loop. */
static inline void cohi_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#if defined(__SANITIZE_THREAD__)
#define COHI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COHI_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define COHI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COHI_ASAN 1
#endif
#endif

/*
 * A full fence. ThreadSanitizer does not model fences; a read-modify-write of one shared word is a
 * stronger order that it does.
 */
static inline void cohi_full_fence(void)
{
#ifdef COHI_TSAN
    extern atomic_int cohi_tsan_fence_word;
    atomic_fetch_add(&cohi_tsan_fence_word, 0);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
