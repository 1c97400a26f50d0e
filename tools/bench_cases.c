/* bench_cases.c - the benchmarks: one row each. */
#include "bench.h"

static const char copies[] = "the fastest copy between the same mappings";
static const char lines[] = "each writes its cache line and reads the others'";

static const cohi_bench_case cases[] = {
    {"barrier", "all ranks meet, and what they put is everywhere", lines, 2, 0, 1, 1,
     cohi_bench_barrier},
    {"sync", "all ranks meet", lines, 2, 0, 0, 1, cohi_bench_sync},
    {"put", "rank 0 puts to rank 1", copies, 1, 1, 0, 1, cohi_bench_put},
    {"get", "rank 0 gets from rank 1", copies, 1, 1, 0, 1, cohi_bench_get},
    {"quiet", "rank 0 puts to rank 1, then quiet", copies, 1, 1, 0, 1, cohi_bench_quiet},
    {"deliver", "rank 0 puts to rank 1, which reads all of it",
     "the copy after which it is read the soonest", 2, 1, 0, 1, cohi_bench_deliver},
    {"strided", "rank 0 puts words of 8 bytes to every other word of rank 1",
     "a loop over the same words", 1, 1, 0, 2, cohi_bench_strided},
    {"fetch_add", "rank 0 adds to a word of rank 1", "an atomic add to the same word", 1, 0, 0, 1,
     cohi_bench_fetch_add},
    {"compare_swap", "rank 0 swaps a word of rank 1", "a compare-and-swap of the same word", 1, 0,
     0, 1, cohi_bench_compare_swap},
    {"signal", "rank 0 puts 8 bytes with a signal that rank 1 waits for; one way",
     "a cache line that goes there and back", 2, 0, 0, 1, cohi_bench_signal},
    {"message", "rank 0 sends from its heap to rank 1; one way",
     "rank 1 copies from the mapped memory of rank 0; for 8 bytes, a cache line", 2, 1, 0, 1,
     cohi_bench_message},
    {"private_message", "the same from memory that is not symmetric",
     "rank 1 reads the memory of rank 0 through the kernel, or both copy through shared memory", 2,
     1, 0, 1, cohi_bench_private_message},
    {"rate", "rank 0 sends 64 messages of 8 bytes, which rank 1 answers with one; each",
     "64 cache lines, written and read in order", 2, 0, 0, 1, cohi_bench_rate},
    {"thread_puts", "a thread for each core puts 8 bytes by a context of its own; each",
     "the threads copy the same bytes", 1, 0, 0, 1, cohi_bench_thread_puts},
    {"thread_adds",
     "a thread for each core adds to a word of rank 1, by a context of its own; each",
     "the threads add to the same words", 1, 0, 0, 1, cohi_bench_thread_adds},
};

const cohi_bench_case *cohi_bench_case_at(size_t index)
{
    return index < sizeof cases / sizeof *cases ? &cases[index] : NULL;
}
