/* bench_cases.c - the benchmarks: one row each. */
#include "bench.h"

static const cohi_bench_case cases[] = {
    {"barrier", "all ranks meet, and what they put is everywhere",
     "each writes its cache line and reads the others'", 2, 0, 1, cohi_bench_barrier},
    {"sync", "all ranks meet", "each writes its cache line and reads the others'", 2, 0, 0,
     cohi_bench_sync},
    {"put", "rank 0 puts to rank 1", "the fastest copy between the same mappings", 1, 1, 0,
     cohi_bench_put},
    {"get", "rank 0 gets from rank 1", "the fastest copy between the same mappings", 1, 1, 0,
     cohi_bench_get},
    {"quiet", "rank 0 puts to rank 1, then quiet", "the fastest copy between the same mappings", 1,
     1, 0, cohi_bench_quiet},
    {"deliver", "rank 0 puts to rank 1, which reads all of it",
     "the copy after which it is read the soonest", 2, 1, 0, cohi_bench_deliver},
};

const cohi_bench_case *cohi_bench_case_at(size_t index)
{
    return index < sizeof cases / sizeof *cases ? &cases[index] : NULL;
}
