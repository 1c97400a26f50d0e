/* rows.h - what scripts/bench-hosts measures, the same for Cohort, MPI and bare sockets: two ranks, one on each host.
 *
 * A program gives one function a kind of row; it is called `count` times between two clocks. Rank 0 prints a line "ROW BYTES
 * NANOSECONDS" for each, the time of one: a message one way, a put until it is complete, an all_reduce. */
#ifndef BENCH_HOSTS_ROWS_H
#define BENCH_HOSTS_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { ROWS_BYTES_MAX = 64 << 20 };

/* Does it once; both ranks call it. A message goes there and back. */
typedef void rows_once(size_t bytes);

static const struct rows_size {
    size_t bytes;
    int count;
} rows_sizes[] = {{8, 2000},     {1024, 1000},  {65536, 300},
                  {1 << 20, 40}, {16 << 20, 4}, {ROWS_BYTES_MAX, 2}};

static double rows_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Both ranks call it; `ways` is how many times one call does what is asked for. */
static void rows_measure(const char *name, rows_once *once, int ways, int rank)
{
    for (size_t i = 0; i < sizeof rows_sizes / sizeof *rows_sizes; i++) {
        size_t bytes = rows_sizes[i].bytes;
        int count = rows_sizes[i].count;
        for (int k = 0; k < count / 10 + 1; k++)
            once(bytes);
        double began = rows_now_ns();
        for (int k = 0; k < count; k++)
            once(bytes);
        double took = rows_now_ns() - began;
        if (rank == 0)
            printf("%s %zu %.0f\n", name, bytes, took / count / ways);
    }
}

#endif
