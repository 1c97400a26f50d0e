/*
 * peer.h - what the programs share that measure other libraries for `cohort bench --against`.
 *
 * PROGRAM BENCHMARKS SIZES, such as `osh_onesided quiet,get 8,65536`. Rank 0 prints a line
 *
 *     cohort-peer version TEXT
 *     cohort-peer BENCHMARK BYTES NANOSECONDS
 *
 * for the library and for each median over the rounds. Benchmarks are named and timed as Cohort's
 * are: an untimed repeat first, then about a millisecond a round; where two ranks take part, a
 * number of repeats that follows from the size. They know nothing of Cohort, and need nothing of it
 * to build.
 */
#ifndef COHORT_PEER_H
#define COHORT_PEER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PEER_ROUNDS = 5, PEER_SIZES = 32 };

/* Does it `repeats` times; nanoseconds for one. */
typedef double peer_run(void *arg, uint64_t repeats);

struct peer_options {
    const char *benchmarks;
    size_t sizes[PEER_SIZES];
    size_t count;
    size_t largest;
};

static inline uint64_t peer_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline double peer_each(uint64_t start_ns, uint64_t repeats)
{
    return (double)(peer_now_ns() - start_ns) / (double)repeats;
}

/* 0, or -1 for a wrong command line. */
static inline int peer_parse(int argc, char **argv, struct peer_options *options)
{
    if (argc != 3)
        return -1;
    *options = (struct peer_options){.benchmarks = argv[1], .largest = 64};
    for (char *at = argv[2]; *at && options->count < PEER_SIZES; at += *at == ',') {
        size_t bytes = strtoull(at, &at, 10);
        if (bytes == 0 || (*at && *at != ','))
            return -1;
        options->sizes[options->count++] = bytes;
        options->largest = bytes > options->largest ? bytes : options->largest;
    }
    return 0;
}

static inline int peer_wants(const struct peer_options *options, const char *benchmark)
{
    size_t length = strlen(benchmark);
    for (const char *at = options->benchmarks; (at = strstr(at, benchmark)); at += length) {
        int begins = at == options->benchmarks || at[-1] == ',';
        if (begins && (at[length] == ',' || at[length] == '\0'))
            return 1;
    }
    return 0;
}

/* The first line of it. */
static inline void peer_tell_version(const char *text)
{
    fputs("cohort-peer version ", stdout);
    for (; *text && *text != '\n'; text++)
        putchar(*text == '\t' ? ' ' : *text);
    putchar('\n');
}

static inline int peer_compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Every rank that takes part calls it; the median. */
static inline double peer_measure(peer_run *run, void *arg, uint64_t repeats)
{
    double rounds[PEER_ROUNDS];
    run(arg, 1);
    for (int i = 0; i < PEER_ROUNDS; i++)
        rounds[i] = run(arg, repeats);
    qsort(rounds, PEER_ROUNDS, sizeof *rounds, peer_compare);
    return rounds[PEER_ROUNDS / 2];
}

static inline void peer_tell(const char *benchmark, size_t bytes, double nanoseconds)
{
    printf("cohort-peer %s %zu %.3f\n", benchmark, bytes, nanoseconds);
    fflush(stdout);
}

/* For one that measures alone: so many repeats that a round takes a millisecond. */
static inline uint64_t peer_repeats(peer_run *run, void *arg)
{
    uint64_t repeats = 1;
    while (run(arg, repeats) * (double)repeats < 1e6)
        repeats *= 2;
    return repeats;
}

/* For ranks that must agree: fewer where they take turns on the cores, and each is some switches of
 * the processor. */
static inline uint64_t peer_agreed_repeats(size_t bytes, int ranks)
{
    enum { ROUND_BYTES = 16 << 20, MOST = 2000, CROWDED_MOST = 100, LEAST = 2 };
    uint64_t most = ranks > sysconf(_SC_NPROCESSORS_ONLN) ? CROWDED_MOST : MOST;
    uint64_t repeats = ROUND_BYTES / (bytes ? bytes : 1);
    return repeats > most ? most : repeats < LEAST ? LEAST : repeats;
}

/* Takes the range out of all caches, as Cohort's benchmark does. */
static inline void peer_flush(const void *memory, size_t bytes)
{
    enum { LINE_BYTES = 64 };
    const char *at = memory;
    for (size_t i = 0; i < bytes; i += LINE_BYTES) {
#if defined(__x86_64__)
        __asm__ volatile("clflush %0" : : "m"(at[i]) : "memory");
#elif defined(__aarch64__)
        __asm__ volatile("dc civac, %0" : : "r"(at + i) : "memory");
#endif
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Memory on pages of its own, all of them touched; NULL when there is none. */
static inline void *peer_memory(size_t bytes)
{
    void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (memory)
        memset(memory, 1, bytes);
    return memory;
}

#endif
