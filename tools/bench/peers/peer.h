/*
 * peer.h - what the programs share that measure other libraries for `cohort bench --against`.
 *
 * PROGRAM BENCHMARKS SIZES [ROUND_MS], such as `osh_onesided quiet,get 8,65536`. Rank 0 prints a line
 *
 *     cohort-peer version TEXT
 *     cohort-peer BENCHMARK BYTES NANOSECONDS
 *
 * for the library and for each median over the rounds. Benchmarks are named and timed as Cohort's
 * are: an untimed repeat first, then about a millisecond a round; where two ranks take part, a
 * number of repeats that follows from the size. ROUND_MS is for cores that busy processes want too:
 * rounds then take at least so long, by as many repeats as rank 0 says. They know nothing of Cohort,
 * and need nothing of it to build.
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
    uint64_t round_ns; /* how long a round takes at least; 0: by the repeats alone */
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
    if (argc != 3 && argc != 4)
        return -1;
    *options = (struct peer_options){.benchmarks = argv[1], .largest = 64};
    if (argc == 4)
        options->round_ns = strtoull(argv[3], NULL, 10) * 1000000;
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

/* How rounds are long enough beside busy processes; `agree` is NULL where there are none. */
struct peer_long_rounds {
    int (*agree)(int mine); /* what rank 0 says, 0 to 3, to all that take part */
    uint64_t round_ns;
    uint64_t most; /* repeats that there is room for; 0: any number */
};

/* How many repeats make a piece of a round. It must be long twice in a row: once may be a rank that
 * was not running. */
static inline uint64_t peer_piece(const struct peer_long_rounds *rounds, peer_run *run, void *arg,
                                  uint64_t most_at_first)
{
    enum { PIECE_NS = 2000000, LEAST = 16 };
    uint64_t least = most_at_first < LEAST ? most_at_first : LEAST;
    for (uint64_t repeats = least, times_long = 0;;) {
        uint64_t start = peer_now_ns();
        run(arg, repeats);
        int room = rounds->most == 0 || repeats * 2 <= rounds->most;
        int is_long = peer_now_ns() - start >= PIECE_NS || !room;
        times_long = (uint64_t)rounds->agree(is_long ? (int)times_long + 1 : 0);
        if (times_long == 2)
            return repeats;
        repeats *= times_long ? 1 : 2;
    }
}

static inline double peer_round(const struct peer_long_rounds *rounds, peer_run *run, void *arg,
                                uint64_t repeats)
{
    uint64_t start = peer_now_ns();
    double sum = 0, pieces = 0;
    if (!rounds->agree)
        return run(arg, repeats);
    do {
        run(arg, 1);
        sum += run(arg, repeats);
        pieces++;
    } while (!rounds->agree(peer_now_ns() - start >= rounds->round_ns));
    return sum / pieces;
}

/* Every rank that takes part calls it; the median. */
static inline double peer_measure(const struct peer_long_rounds *longer, peer_run *run, void *arg,
                                  uint64_t repeats)
{
    double rounds[PEER_ROUNDS];
    run(arg, 1);
    if (longer->agree)
        repeats = peer_piece(longer, run, arg, repeats);
    for (int i = 0; i < PEER_ROUNDS; i++)
        rounds[i] = peer_round(longer, run, arg, repeats);
    qsort(rounds, PEER_ROUNDS, sizeof *rounds, peer_compare);
    return rounds[PEER_ROUNDS / 2];
}

/* Of an all_reduce over a network, in a round. */
static inline uint64_t peer_link_repeats(size_t bytes)
{
    return bytes <= 64 << 10 ? 100 : bytes <= 1 << 20 ? 10 : 2;
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
