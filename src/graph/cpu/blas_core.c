/* blas_core.c - the core types of OpenBLAS, by the instructions that their f32 kernels have. */
#include "graph/cpu/blas_library.h"

#if defined(__x86_64__)

#include <string.h>

enum level { BELOW_AVX2, AVX2, AVX512 };

/* Those that are not here are of other architectures, or as good as any. */
static const struct core {
    const char *name;
    enum level level;
} cores[] = {
    {"Unknown", BELOW_AVX2},     {"Katmai", BELOW_AVX2},
    {"Coppermine", BELOW_AVX2},  {"Northwood", BELOW_AVX2},
    {"Prescott", BELOW_AVX2},    {"Banias", BELOW_AVX2},
    {"Atom", BELOW_AVX2},        {"Core2", BELOW_AVX2},
    {"Penryn", BELOW_AVX2},      {"Dunnington", BELOW_AVX2},
    {"Nehalem", BELOW_AVX2},     {"Athlon", BELOW_AVX2},
    {"Opteron", BELOW_AVX2},     {"Opteron_SSE3", BELOW_AVX2},
    {"Barcelona", BELOW_AVX2},   {"Nano", BELOW_AVX2},
    {"Sandybridge", BELOW_AVX2}, {"Bobcat", BELOW_AVX2},
    {"Bulldozer", BELOW_AVX2},   {"Piledriver", BELOW_AVX2},
    {"Steamroller", BELOW_AVX2}, {"Excavator", AVX2},
    {"Haswell", AVX2},           {"Zen", AVX2},
};

static enum level level_of_core(const char *core)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
        if (strcmp(cores[i].name, core) == 0)
            return cores[i].level;
    }
    return AVX512;
}

static enum level level_of_cpu(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl"))
        return AVX512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? AVX2 : BELOW_AVX2;
}

/* For f32 Cooperlake and SapphireRapids have the kernels of SkylakeX; they add bf16. CPUs without
 * AVX2 are old enough to be known. */
const char *cohi_blas_better_core(const char *core)
{
    enum level level = level_of_cpu();
    if (level <= level_of_core(core))
        return NULL;
    if (level == AVX512)
        return "SkylakeX";
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
}

#else

const char *cohi_blas_better_core(const char *core)
{
    (void)core;
    return NULL;
}

#endif
