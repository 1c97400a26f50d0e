/* bench/load.h - busy processes beside what is measured, for `cohort bench --load`. */
#ifndef COHI_TOOLS_BENCH_LOAD_H
#define COHI_TOOLS_BENCH_LOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most so many; and how long a round takes beside them. A time slice is 3 to 4 ms, and a rank
 * that shares its core is without it for as long: a round must hold many of them, or it tells when
 * it happened to run. */
enum { COHI_BENCH_LOAD = 64, COHI_BENCH_LOADED_MS = 40 };

typedef struct cohi_bench_load {
    pid_t pids[COHI_BENCH_LOAD];
    size_t count;
} cohi_bench_load;

/* Starts so many, on a core each in turn if pinned. 0, or -1 with the reason on standard error and
 * none left. */
int cohi_bench_load_start(cohi_bench_load *load, uint64_t count, int pinned);

/* Ends all of them; they are gone when this returns. -1, with a message on standard error, when
 * one was gone before. */
int cohi_bench_load_stop(cohi_bench_load *load);

#endif
