#include "bench/limit/limit.h"

#include "base/clock.h"

#include <string.h>

/* Nothing uses the old value: on x86 this is an add with a lock prefix. */
static void add(uint64_t *word, uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats; i++)
        __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
}

static void fetch_add(uint64_t *word, uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats; i++) {
        uint64_t old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
        __asm__ volatile("" : : "r"(old));
    }
}

static void compare_swap(uint64_t *word, uint64_t repeats)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < repeats; i++) {
        uint64_t expected = old;
        __atomic_compare_exchange_n(word, &expected, old + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        old = expected + 1;
    }
}

static const cohi_limit_word_form adds[] = {{"add", add}, {"fetch-add", fetch_add}};
static const cohi_limit_word_form swaps[] = {{"compare-swap", compare_swap}};

const cohi_limit_word_form *cohi_limit_add_form_at(size_t index)
{
    return index < sizeof adds / sizeof *adds ? &adds[index] : NULL;
}

const cohi_limit_word_form *cohi_limit_swap_form_at(size_t index)
{
    return index < sizeof swaps / sizeof *swaps ? &swaps[index] : NULL;
}

double cohi_limit_word(const cohi_limit_word_form *form, uint64_t *word, uint64_t repeats)
{
    form->apply(word, 1);
    uint64_t start = cohi_now_ns();
    form->apply(word, repeats);
    return (double)(cohi_now_ns() - start) / (double)repeats;
}

static void copy_words(char *target, size_t target_stride, const char *source, size_t source_stride,
                       size_t count)
{
    for (size_t i = 0; i < count; i++, target += target_stride, source += source_stride)
        memcpy(target, source, sizeof(uint64_t));
    __asm__ volatile("" : : : "memory"); /* a repeat is not the last one's */
}

double cohi_limit_strided(void *target, size_t target_stride, const void *source,
                          size_t source_stride, size_t count, uint64_t repeats)
{
    copy_words(target, target_stride, source, source_stride, count);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        copy_words(target, target_stride, source, source_stride, count);
    return (double)(cohi_now_ns() - start) / (double)repeats;
}
