#include "memory/kernels/kernels.h"

#include "base/error.h"
#include "memory/kernels/kernel_sets.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* By hand: not every compiler's __builtin_cpu_supports knows its name. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
           && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
           && __builtin_cpu_supports("bmi2") && has_f16c();
}

/* With VBMI2, which turns words. All CPUs with BF16 have it but the first, Cooper Lake. */
static bool has_avx512bf16(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16")
           && __builtin_cpu_supports("avx512vbmi2");
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && has_f16c();
}

#endif

static bool always(void)
{
    return true;
}

/* A set of another architecture has no kernels here, only its name. */
static const struct set {
    const char *name;
    const cohi_kernels *kernels;
    bool (*usable)(void);
} sets[] = {
#if defined(__x86_64__)
    {"avx512bf16", &cohi_kernels_avx512bf16, has_avx512bf16},
    {"avx512", &cohi_kernels_avx512, has_avx512},
    {"avx2", &cohi_kernels_avx2, has_avx2},
#else
    {"avx512bf16", NULL, NULL},
    {"avx512", NULL, NULL},
    {"avx2", NULL, NULL},
#endif
#if defined(__aarch64__)
    {"neon", &cohi_kernels_neon, always},
#else
    {"neon", NULL, NULL},
#endif
    {"portable", &cohi_kernels_portable, always},
};

enum { SETS = sizeof sets / sizeof *sets };

static bool is_usable(const struct set *set)
{
    return set->kernels && set->usable();
}

const cohi_kernels *cohi_kernels_at(int index)
{
    for (int i = 0; i < SETS; i++) {
        if (is_usable(&sets[i]) && index-- == 0)
            return sets[i].kernels;
    }
    return NULL;
}

static const cohi_kernels *_Atomic chosen;

/* Threads that come here first all find the same. */
const cohi_kernels *cohi_kernels_now(void)
{
    const cohi_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (kernels)
        return kernels;
    kernels = cohi_kernels_at(0);
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    return kernels;
}

static const struct set *find_set(const char *name)
{
    for (int i = 0; i < SETS; i++) {
        if (strcmp(sets[i].name, name) == 0)
            return &sets[i];
    }
    return NULL;
}

coh_status cohi_kernels_choose(const char *name)
{
    if (strcmp(name, "auto") == 0) {
        atomic_store_explicit(&chosen, cohi_kernels_at(0), memory_order_relaxed);
        return COH_OK;
    }
    const struct set *set = find_set(name);
    if (!set)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_KERNELS: '%s' is not one of auto, avx512bf16, avx512, avx2, neon, "
                         "portable",
                         name);
    if (!is_usable(set))
        return cohi_fail(COH_UNSUPPORTED,
                         "COHORT_KERNELS: this CPU does not have all that %s needs; "
                         "it has %s",
                         name, cohi_kernels_at(0)->name);
    atomic_store_explicit(&chosen, set->kernels, memory_order_relaxed);
    return COH_OK;
}

const char *cohi_kernels_name(void)
{
    return cohi_kernels_now()->name;
}
