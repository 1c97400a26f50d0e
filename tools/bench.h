/*
 * bench.h - the parts of `cohort bench`.
 *
 *   bench.c          the command line
 *   bench_job.c      starts the ranks and reads what they found
 *   bench_worker.c   is the ranks
 *   bench_cases.c    the benchmarks, as rows of a table
 *   bench_copy.c     put, get, quiet, deliver
 *   bench_meet.c     barrier, sync
 *   bench_measure.c  rounds and medians
 *   bench_report.c   results as JSON and as tables
 *
 * A benchmark has contenders: Cohort's call, always the first, and the loops of bench/limit/ on the
 * same memory. All take turns, round by round, so that whatever else the machine does meets all of
 * them.
 */
#ifndef COHI_TOOLS_BENCH_H
#define COHI_TOOLS_BENCH_H

#include <cohort.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { COHI_BENCH_SIZES = 32, COHI_BENCH_CONTENDERS = 12, COHI_BENCH_RANKS = 1024 };

/* ---- options (bench.c) ---- */

typedef struct cohi_bench_options {
    unsigned chosen;    /* one bit for each benchmark, by index; 0: all */
    uint64_t ranks;     /* 0: two, and for the barrier more than there are cores as well */
    const char *engine; /* "shm" or "threads" */
    uint64_t sizes[COHI_BENCH_SIZES];
    size_t size_count;     /* 0: those of a full, or a quick, run */
    const char *size_text; /* as they were given, or NULL */
    uint64_t rounds;       /* 0: as many as a full, or a quick, run takes */
    int json;
    int quick;
    int crowded; /* more ranks than cores; the ranks cannot tell once they are bound to one each */
} cohi_bench_options;

/* ---- measuring (bench_measure.c) ---- */

typedef struct cohi_bench_contender {
    const char *name;
    const void *form; /* handed to `run` */
    /* Does it `repeats` times; nanoseconds for one, or less than 0 when a call failed. */
    double (*run)(void *context, const void *form, uint64_t repeats);
} cohi_bench_contender;

typedef struct cohi_bench_figure {
    const char *name;
    double median; /* ns */
    double low;    /* the quartiles */
    double high;
    double
        fraction; /* of it that Cohort reaches: the median of its time / Cohort's, round by round */
} cohi_bench_figure;

typedef struct cohi_bench_result {
    const char *benchmark;
    int ranks;
    uint64_t bytes;
    size_t count;
    size_t best; /* the limit: the fastest of figures 1 to count - 1 */
    cohi_bench_figure figures[COHI_BENCH_CONTENDERS]; /* the first is Cohort's */
} cohi_bench_result;

typedef struct cohi_bench_plan {
    cohi_bench_contender contenders[COHI_BENCH_CONTENDERS];
    size_t count;
    uint64_t rounds;
    uint64_t repeats; /* of each contender in a round */
    void *context;
} cohi_bench_plan;

void cohi_bench_add(cohi_bench_plan *plan, const char *name, const void *form,
                    double (*run)(void *context, const void *form, uint64_t repeats));

/* So many repeats of the first contender that a round takes about `nanoseconds`; 0: it failed. */
uint64_t cohi_bench_repeats(const cohi_bench_plan *plan, double nanoseconds);

/* Runs the rounds and fills count, best and figures. */
coh_status cohi_bench_measure(const cohi_bench_plan *plan, cohi_bench_result *result);

/* ---- benchmarks (bench_cases.c, bench_copy.c, bench_meet.c) ---- */

/* One rank of the job that measures. */
typedef struct cohi_bench_rank {
    coh_world *world;
    int rank;
    int size;
    int crowded;
    uint64_t rounds;
    char *shared;  /* symmetric, room for the largest size */
    char *private; /* of this rank alone, as large */
    /* Symmetric cache lines, zero at first: the count of raw meetings, and of deliveries. */
    struct cohi_limit_line *meeting;
    struct cohi_limit_line *turns;
} cohi_bench_rank;

/* Collective over the ranks; fills figures on rank 0 alone. */
typedef coh_status cohi_bench_run(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result);

cohi_bench_run cohi_bench_put, cohi_bench_get, cohi_bench_quiet, cohi_bench_deliver;
cohi_bench_run cohi_bench_barrier, cohi_bench_sync;

typedef struct cohi_bench_case {
    const char *name;
    const char *what;
    const char *limit;
    int least_ranks;
    int sized;   /* measured for each size */
    int crowded; /* measured with more ranks than cores too */
    cohi_bench_run *run;
} cohi_bench_case;

/* By index from 0; NULL past the last. */
const cohi_bench_case *cohi_bench_case_at(size_t index);

/* ---- ranks and jobs ---- */

/* Is one rank (shm) or all of them (threads), and writes a line of JSON for each step and result to
 * standard output. The exit status. */
int cohi_bench_worker(const cohi_bench_options *options);

/* Runs the chosen benchmarks on that many ranks in a job of their own, and adds its results to the
 * array. The exit status of the job. */
int cohi_bench_job(const cohi_bench_options *options, json_t *results);

/* ---- report (bench_report.c) ---- */

json_t *cohi_bench_result_json(const cohi_bench_result *result);

/* Prints all results to standard output. 0, or -1 when it could not. */
int cohi_bench_report(const cohi_bench_options *options, json_t *results);

/* "64 KiB", "1.5 MiB". */
void cohi_bench_size_text(uint64_t bytes, char *text, size_t room);

#endif
