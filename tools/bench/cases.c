/* bench/cases.c - the benchmarks: one row each. */
#include "bench/bench.h"

static const char copies[] = "the fastest copy between the same mappings";
static const char lines[] = "each writes its cache line and reads the others'";

static const char sums[] = "the fastest loop over mapped memory that reads and writes the same";
static const char bytes_moved[] = "the fastest loop that reads and writes as many bytes";
static const char moves[] = "the fastest copies between the same mappings, by all ranks";

#define CONVERSIONS(type)                                                                         \
    {"to_" #type,                                                                                 \
     "rank 0 converts so many bytes of f32 to " #type,                                            \
     bytes_moved,                                                                                 \
     1,                                                                                           \
     1,                                                                                           \
     0,                                                                                           \
     2,                                                                                           \
     0,                                                                                           \
     cohi_bench_to_##type},                                                                       \
    {                                                                                             \
        "from_" #type, "rank 0 converts " #type " to so many bytes of f32", bytes_moved, 1, 1, 0, \
            2, 0, cohi_bench_from_##type                                                          \
    }

static const cohi_bench_case cases[] = {
    {"barrier", "all ranks meet, and what they put is everywhere", lines, 2, 0, 1, 1, 0,
     cohi_bench_barrier},
    {"sync", "all ranks meet", lines, 2, 0, 0, 1, 0, cohi_bench_sync},
    {"put", "rank 0 puts to rank 1", copies, 1, 1, 0, 1, 0, cohi_bench_put},
    {"get", "rank 0 gets from rank 1", copies, 1, 1, 0, 1, 0, cohi_bench_get},
    {"quiet", "rank 0 puts to rank 1, then quiet", copies, 1, 1, 0, 1, 0, cohi_bench_quiet},
    {"deliver", "rank 0 puts to rank 1, which reads all of it",
     "the copy after which it is read the soonest", 2, 1, 0, 1, 0, cohi_bench_deliver},
    {"strided", "rank 0 puts words of 8 bytes to every other word of rank 1",
     "a loop over the same words", 1, 1, 0, 2, 0, cohi_bench_strided},
    {"fetch_add", "rank 0 adds to a word of rank 1", "an atomic add to the same word", 1, 0, 0, 1,
     0, cohi_bench_fetch_add},
    {"compare_swap", "rank 0 swaps a word of rank 1", "a compare-and-swap of the same word", 1, 0,
     0, 1, 0, cohi_bench_compare_swap},
    {"signal", "rank 0 puts 8 bytes with a signal that rank 1 waits for; one way",
     "a cache line that goes there and back", 2, 0, 0, 1, 0, cohi_bench_signal},
    {"message", "rank 0 sends from its heap to rank 1; one way",
     "one of them copies from mapped memory to mapped memory; for 8 bytes, a cache line", 2, 1, 0,
     1, 0, cohi_bench_message},
    {"private_message", "the same from memory that is not symmetric",
     "one of them copies through the kernel, or both copy through shared memory", 2, 1, 0, 1, 0,
     cohi_bench_private_message},
    {"rate", "rank 0 sends 64 messages of 8 bytes, which rank 1 answers with one; each",
     "64 cache lines, written and read in order", 2, 0, 0, 1, 0, cohi_bench_rate},
    {"thread_puts", "a thread for each core puts 8 bytes by a context of its own; each",
     "the threads copy the same bytes", 1, 0, 0, 1, 0, cohi_bench_thread_puts},
    {"thread_adds",
     "a thread for each core adds to a word of rank 1, by a context of its own; each",
     "the threads add to the same words", 1, 0, 0, 1, 0, cohi_bench_thread_adds},
    {"all_reduce", "all ranks get the sum of all", sums, 2, 1, 0, 0, 1, cohi_bench_all_reduce},
    {"reduce", "rank 0 gets the sum of all", sums, 2, 1, 0, 0, 1, cohi_bench_reduce},
    {"reduce_scatter", "each rank gets its block of the sum", sums, 2, 1, 0, 0, 1,
     cohi_bench_reduce_scatter},
    {"all_gather", "all ranks get what each has", moves, 2, 1, 0, 0, 1, cohi_bench_all_gather},
    {"gather", "rank 0 gets what each has", moves, 2, 1, 0, 0, 1, cohi_bench_gather},
    {"scatter", "each rank gets its block of what rank 0 has", moves, 2, 1, 0, 0, 1,
     cohi_bench_scatter},
    {"broadcast", "all ranks get what rank 0 has, which has it in place", moves, 2, 1, 0, 0, 1,
     cohi_bench_broadcast},
    {"all_to_all", "each rank gets its block of each", moves, 2, 1, 0, 0, 1, cohi_bench_all_to_all},
    {"scan", "each rank gets the sum of those up to it", sums, 2, 1, 0, 0, 1, cohi_bench_scan},
    CONVERSIONS(bf16),
    CONVERSIONS(f16),
    CONVERSIONS(f8e4m3),
    CONVERSIONS(f8e5m2),
};

_Static_assert(sizeof cases / sizeof *cases <= 32, "they are the bits of an unsigned");

const cohi_bench_case *cohi_bench_case_at(size_t index)
{
    return index < sizeof cases / sizeof *cases ? &cases[index] : NULL;
}

unsigned cohi_bench_collective_cases(void)
{
    unsigned mask = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        mask |= cases[i].collective ? 1u << i : 0;
    return mask;
}
