/* Which of the compiled loops this cpu runs. */
#include "graph/cpu/vector.h"

extern const cohi_vector cohi_vector_plain;
#if defined(__x86_64__)
extern const cohi_vector cohi_vector_avx2;
extern const cohi_vector cohi_vector_avx512;
#endif

#if defined(__x86_64__)
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
           && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

static int always(void)
{
    return 1;
}

/* The best first. */
static const struct row {
    int (*runs_here)(void);
    const cohi_vector *table;
} rows[] = {
#if defined(__x86_64__)
    {has_avx512, &cohi_vector_avx512},
    {has_avx2, &cohi_vector_avx2},
#endif
    {always, &cohi_vector_plain},
};

const cohi_vector *cohi_vector_at(size_t index)
{
    return index < sizeof rows / sizeof *rows && rows[index].runs_here() ? rows[index].table : NULL;
}

const cohi_vector *cohi_vector_best(void)
{
    size_t index = 0;
    while (!rows[index].runs_here())
        index++;
    return rows[index].table;
}
