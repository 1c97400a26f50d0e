/*
 * Room: tools/bench.
 *
 * `cohort bench`: the benchmarks, their limits and peers, and reports.
 * Uses the public interface, and of libcohort's rooms what tells which loops and algorithms
 * there are.
 * Hides how runs are repeated, interleaved and judged.
 */
/*
 * bench.h - the parts of `cohort bench`.
 *
 *   bench.c        the command line
 *   plan.c         the jobs and runs that the options ask for
 *   points.c       what is measured: benchmarks, sizes and variants, as a list
 *   load.c         busy processes beside all of it (bench/load.h)
 *   child.c        runs a program, reads its lines, and ends it when a signal says so
 *   job.c          starts the ranks and reads what they found
 *   worker.c       is the ranks
 *   cases.c        the benchmarks, as rows of a table
 *   copy.c         put, get, quiet, deliver
 *   meet.c         barrier, sync
 *   word.c         fetch_add, compare_swap, strided
 *   turns.c        signal
 *   message.c      message, private_message, rate
 *   threads.c      thread_puts, thread_adds
 *   collective.c, calls.c
 *                  all_reduce to scan
 *   convert.c      to_bf16 to from_f8e5m2
 *   measure.c      rounds and medians
 *   core.c         which core a thread is on
 *   peers.c        builds and runs the programs of tools/bench/peers/
 *   against.c      Cohort and its peers in turns
 *   runs.c         several runs: the worst beside the median
 *   check.c, floor.c, check_report.c
 *                  a short set of all, held to floors
 *   progress.c     a bar on a terminal
 *   folder.c       a temporary folder, removed however the tool ends
 *   pipeline.c, loop.c, product.c
 *                  `cohort bench pipeline` (bench/pipeline.h)
 *   links.c        `cohort bench links` (bench/links.h)
 *   gpu.c, gpu_worker.c, gpu_cases.c, gpu_rounds.c, gpu_nvshmem.c
 *                  `cohort bench gpu` (bench/gpu.h)
 *   findings.c     all that is known of a run, as one JSON object
 *   report.c       results as JSON and as tables
 *   settle.c       fractions that follow from the times beside them; reports of before
 *   csv.c          and as comma-separated values
 *   html.c         and as a page with charts, which tools/bench/report/page.html is the frame of
 *
 * A benchmark has contenders: Cohort's call, always the first, and the loops of limit/ on the same
 * memory. All take turns, round by round, so that whatever else the machine does meets all of
 * them. Peers are programs of their own; with --against whole jobs take turns.
 */
#ifndef COHI_TOOLS_BENCH_H
#define COHI_TOOLS_BENCH_H

#include "bench/limit/limit.h"

#include <cohort.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* What buffers are filled with: a small number in every float type. Zeros would not do: Zen 4
 * streams them at twice the speed of data. */
enum { COHI_BENCH_BYTE = 0x3c };

enum {
    COHI_BENCH_SIZES = 32,
    COHI_BENCH_CONTENDERS = 20, /* Cohort and 16 loops of a long all_gather, some to spare */
    COHI_BENCH_RANKS = 1024,
    COHI_BENCH_THREADS = 16,
    COHI_BENCH_TURNS = 1000,
    COHI_BENCH_APART = 200, /* calls of a round that are timed one by one */
    COHI_BENCH_LISTED = 8,  /* rank counts, types */
};

/* How a collective is measured, apart from the size. */
typedef struct cohi_bench_variant {
    coh_dtype dtype;
    int private; /* buffers of the ranks' own instead of the heap's */
    int cold;    /* taken out of the caches before each call */
    int in_place;
} cohi_bench_variant;

/* ---- options (bench.c) ---- */

typedef struct cohi_bench_options {
    unsigned chosen; /* one bit for each benchmark, by index; 0: all */
    uint64_t ranks;  /* of the job at hand */
    uint64_t rank_list[COHI_BENCH_LISTED];
    size_t rank_count;  /* 0: two, and for the barrier more than there are cores as well */
    const char *engine; /* "shm" or "threads" */
    uint64_t sizes[COHI_BENCH_SIZES];
    size_t size_count;     /* 0: those of a full, or a quick, run */
    const char *size_text; /* as they were given, or NULL */
    uint64_t rounds;       /* 0: as many as a full, or a quick, run takes; of turns, with peers */
    coh_dtype dtypes[COHI_BENCH_LISTED]; /* of collectives */
    size_t dtype_count; /* 0: f32, and for all_reduce of two ranks both 16-bit floats too */
    const char *dtype_text;
    int heap, private; /* neither: the heap, and for all_reduce of two ranks both */
    int warm, cold;    /* neither: both for two ranks, else warm */
    int in_place;
    uint64_t runs; /* 0: one */
    int json, csv;
    const char *html; /* the page's file, or NULL */
    const char *from; /* a file with a report of before, or NULL */
    int quick;
    int crowded; /* more ranks than cores; the ranks cannot tell once they are bound to one each */
    unsigned against; /* one bit for each peer, by index */
    const char *against_text;
    uint64_t load; /* busy processes beside; rounds are longer then */
    int load_pinned;
    int check; /* a set of sizes of its own, two ranks, and floors */
} cohi_bench_options;

typedef struct cohi_bench_case cohi_bench_case;
typedef struct cohi_bench_rank cohi_bench_rank;

/* ---- what is measured (bench/points.c) ---- */

/* One measurement of a benchmark. */
typedef struct cohi_bench_point {
    const cohi_bench_case *row;
    uint64_t bytes; /* 0 where it has no size */
    cohi_bench_variant variant;
} cohi_bench_point;

typedef struct cohi_bench_points {
    cohi_bench_point *at;
    size_t count;
} cohi_bench_points;

/* All that the options choose, for options->ranks ranks, in order; free(points.at). */
cohi_bench_points cohi_bench_points_of(const cohi_bench_options *options);

/* How long it takes, roughly, beside others. */
double cohi_bench_weight(const cohi_bench_point *point);

/* What tells it from others of its ranks and size, and what peers call it: "put",
 * "all_reduce/f32/warm", "/in-place" behind it. Peers have no heap, so that is not in it. */
void cohi_bench_point_key(const cohi_bench_point *point, char *key, size_t room);

/* ---- measuring (bench/measure.c) ---- */

typedef struct cohi_bench_contender {
    const char *name;
    int aside;        /* measured for itself: no limit */
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
    int aside;
} cohi_bench_figure;

typedef struct cohi_bench_result {
    const char *benchmark;
    int ranks;
    uint64_t bytes;
    int collective; /* has a variant */
    cohi_bench_variant variant;
    size_t count;
    size_t best; /* the limit: the fastest of figures 1 to count - 1 that is not aside */
    cohi_bench_figure figures[COHI_BENCH_CONTENDERS]; /* the first is Cohort's */
} cohi_bench_result;

typedef struct cohi_bench_plan {
    cohi_bench_contender contenders[COHI_BENCH_CONTENDERS];
    size_t count;
    uint64_t rounds;
    uint64_t repeats; /* of each contender in a round, on cores that nobody else wants */
    uint64_t most;    /* repeats that there is room for; 0: any number */
    cohi_bench_rank *self;
    void *context;
} cohi_bench_plan;

void cohi_bench_add(cohi_bench_plan *plan, const char *name, const void *form,
                    double (*run)(void *context, const void *form, uint64_t repeats));

/* The same for one that is shown beside the others and is no limit; not the first two. */
void cohi_bench_add_aside(cohi_bench_plan *plan, const char *name, const void *form,
                          double (*run)(void *context, const void *form, uint64_t repeats));

/* So many repeats of the first contender that a round takes about `nanoseconds`; 0: it failed. */
uint64_t cohi_bench_repeats(const cohi_bench_plan *plan, double nanoseconds);

/*
 * Runs the rounds and fills count, best and figures. Beside busy processes each contender runs as
 * often as makes a round long enough to hold many time slices of the kernel's: rank 0 decides, and
 * all ranks that take part in the plan, which must include it, go by that.
 */
coh_status cohi_bench_measure(const cohi_bench_plan *plan, cohi_bench_result *result);

/* Sorts the samples (at least one) and fills median, low and high. */
void cohi_bench_spread(double *samples, size_t count, cohi_bench_figure *figure);

/* Sets `best` from the medians. */
void cohi_bench_find_best(cohi_bench_result *result);

/* Nanoseconds for one of `repeats` that began at `start_ns` and end now; -1 when one failed. */
double cohi_bench_each(coh_status status, uint64_t start_ns, uint64_t repeats);

/* ---- benchmarks (bench/cases.c and the files of the benchmarks) ---- */

/* What all ranks have, each in lines of its own: symmetric, zero at first. */
typedef struct cohi_bench_board {
    cohi_limit_line meeting[2]; /* the count of raw meetings */
    cohi_limit_line delivered;  /* and of deliveries */
    cohi_limit_line turn;       /* and of raw turns; a peer writes it */
    cohi_limit_line word;       /* for atomics */
    cohi_limit_line enough;     /* rank 0's: whether so many repeats make a round */
    struct {
        _Alignas(64) uint64_t signal;
        uint64_t data;
    } signalled;
    struct {
        _Alignas(64) int64_t process;
        uint64_t address; /* of the memory of `process` that a message is sent from */
    } card;
    cohi_limit_line window[COHI_LIMIT_WINDOW];
    cohi_limit_line of_thread[COHI_BENCH_THREADS];
    cohi_limit_relay relay;
    _Alignas(64) double times[COHI_BENCH_APART]; /* what the last calls took here, one by one */
    cohi_limit_slot slots[2];
} cohi_bench_board;

/* One rank of the job that measures. */
struct cohi_bench_rank {
    coh_world *world;
    int rank;
    int size;
    int crowded;
    int loaded; /* there are busy processes beside */
    uint64_t rounds;
    cohi_bench_variant variant;            /* of a collective */
    char names[COHI_BENCH_CONTENDERS][48]; /* of its loops, until the result is told */
    char *shared;  /* symmetric, room for the largest size times the most that a row wants */
    char *private; /* of this rank alone, as large */
    cohi_bench_board *board;
};

/* Whether loops that give up their core between looks, or those that do not, are tried: both where
 * busy processes want the cores now and then. */
int cohi_bench_tries(const cohi_bench_rank *self, int yields);

/* The peer's board as it is mapped here, and the lines in which the two take turns. */
coh_status cohi_bench_pair(cohi_bench_rank *self, int peer, cohi_bench_board **theirs,
                           cohi_limit_pair *pair);

/* How often two ranks do something with so many bytes in one round; both must agree, so it follows
 * from the size alone. */
uint64_t cohi_bench_agreed_repeats(uint64_t bytes);

/* Collective over the ranks; fills figures on rank 0 alone. */
typedef coh_status cohi_bench_run(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result);

cohi_bench_run cohi_bench_put, cohi_bench_get, cohi_bench_quiet, cohi_bench_deliver;
cohi_bench_run cohi_bench_barrier, cohi_bench_sync;
cohi_bench_run cohi_bench_fetch_add, cohi_bench_compare_swap, cohi_bench_strided;
cohi_bench_run cohi_bench_signal;
cohi_bench_run cohi_bench_message, cohi_bench_private_message, cohi_bench_rate;
cohi_bench_run cohi_bench_thread_puts, cohi_bench_thread_adds;
cohi_bench_run cohi_bench_all_reduce, cohi_bench_reduce, cohi_bench_reduce_scatter;
cohi_bench_run cohi_bench_all_gather, cohi_bench_gather, cohi_bench_scatter, cohi_bench_broadcast;
cohi_bench_run cohi_bench_all_to_all, cohi_bench_scan;
cohi_bench_run cohi_bench_to_bf16, cohi_bench_from_bf16, cohi_bench_to_f16, cohi_bench_from_f16;
cohi_bench_run cohi_bench_to_f8e4m3, cohi_bench_from_f8e4m3;
cohi_bench_run cohi_bench_to_f8e5m2, cohi_bench_from_f8e5m2;

struct cohi_bench_case {
    const char *name;
    const char *what;
    const char *limit;
    int least_ranks;
    int sized;   /* measured for each size */
    int crowded; /* measured with more ranks than cores too */
    int room;    /* how many times its size it needs of both memories; collectives make their own */
    int collective;
    cohi_bench_run *run;
};

/* By index from 0; NULL past the last. */
const cohi_bench_case *cohi_bench_case_at(size_t index);

/* One bit for each benchmark of collectives. */
unsigned cohi_bench_collective_cases(void);

/* ---- calls (bench/calls.c) ---- */

/* One rank's part in a collective: Cohort's call with everything it needs. */
typedef struct cohi_bench_call {
    coh_team *team;
    int rank, size;
    cohi_bench_variant variant;
    char *source, *target;
    size_t count; /* elements: of all that is contributed, or of a block */
    size_t source_bytes, target_bytes;
} cohi_bench_call;

/* What is known of a collective before there are buffers. */
typedef struct cohi_bench_collective {
    const char *name;
    int rooted;    /* ranks do not wait for each other by nature */
    int to_root;   /* rank 0 alone gets something */
    int blocks;    /* count is that of a block, bytes / size */
    int gathers;   /* the target is as large as all contributions */
    int takes_own; /* the target is as large as a block */
    coh_status (*run)(const cohi_bench_call *call);
    /* Element `index` of this rank's target when all sources were filled. */
    float (*expected)(const cohi_bench_call *call, size_t index);
} cohi_bench_collective;

/* Fills a source of f32 with values that tell ranks and places apart. */
void cohi_bench_fill(const cohi_bench_call *call, char *source);

/* Looks at some elements of the target; `who` is named when one is wrong. */
coh_status cohi_bench_compare(const cohi_bench_collective *collective, const cohi_bench_call *call,
                              const char *target, const char *who);

const cohi_bench_collective *cohi_bench_collective_named(const char *name);

/* ---- cores (bench/core.c) ---- */

/* Binds the calling thread to the index-th of the cores that the process might use at the first
 * call, counted around. Where that is refused the figures are only less steady. */
void cohi_bench_move_to_core(int index);

/* ---- programs (bench/child.c) ---- */

typedef struct cohi_bench_child {
    char *const *arguments; /* the first is looked for in PATH */
    const char *temporary;  /* TMPDIR for it, or NULL */
    int errors_too;         /* its standard error is read like its output; else it is ours */
    uint64_t limit_ns;      /* it is ended after this long; 0: never */
    void (*take)(void *arg, const char *line);
    void *arg;
} cohi_bench_child;

enum { COHI_BENCH_OVERTIME = 1000 };

/* From now on SIGINT, SIGTERM and SIGHUP end the child that runs, and are then remembered. */
void cohi_bench_catch_signals(void);

/* The signal that asked for the end; 0 when none did. */
int cohi_bench_stopped(void);

/*
 * Runs it in a process group of its own and hands on its lines. When it is time to end, it is asked
 * to, and killed with its group five seconds later. Its exit status; 128 and the signal that
 * ended it; COHI_BENCH_OVERTIME past its limit; -1 when it could not be started (errno).
 */
int cohi_bench_child_run(const cohi_bench_child *child);

/* ---- ranks and jobs ---- */

/* Is one rank (shm) or all of them (threads), and writes a line of JSON for each step and result to
 * standard output. The exit status. */
int cohi_bench_worker(const cohi_bench_options *options);

/* Runs the chosen benchmarks on that many ranks in a job of their own, and adds its results to the
 * array; what it was like on the machine to `probes`. The exit status of the job. */
int cohi_bench_job(const cohi_bench_options *options, json_t *results, json_t *probes);

/* ---- a folder (bench/folder.c) ---- */

enum { COHI_BENCH_PATH = 256 };

/* Temporary. It is removed with all that is in it when the tool ends, however it does. */
typedef struct cohi_bench_folder {
    char path[COHI_BENCH_PATH]; /* empty: there is none */
    int held;
    pid_t keeper;
} cohi_bench_folder;

/* 0, or -1 with errno. */
int cohi_bench_folder_make(cohi_bench_folder *folder);

/* Removes it now; it has been when this returns. */
void cohi_bench_folder_remove(cohi_bench_folder *folder);

/* ---- peers (bench/peers.c) ---- */

/* The files of tools/bench/peers/, which the build puts into the tool; a NULL name ends them. */
typedef struct cohi_bench_source {
    const char *name;
    const unsigned char *bytes;
    size_t count;
} cohi_bench_source;

extern const cohi_bench_source cohi_bench_sources[];

/* All of them, and the folder that they are built in. */
typedef struct cohi_bench_peers cohi_bench_peers;

/* By index from 0; NULL past the last. */
const char *cohi_bench_peer_name(size_t index);

/* One bit for each benchmark that one of these peers has too. */
unsigned cohi_bench_peer_cases(unsigned peers);

/* Finds and builds the chosen ones in a temporary folder. NULL, and the reason on standard error,
 * when there can be none. */
cohi_bench_peers *cohi_bench_peers_open(const cohi_bench_options *options);

/* Runs one of them for these points; its times as {"get 8": 42.1, ...}, empty where it has none of
 * them, or NULL when it is, or has become, not available. */
json_t *cohi_bench_peer_run(cohi_bench_peers *peers, size_t index,
                            const cohi_bench_options *options, const cohi_bench_points *points);

/* {"name": ..., "ranks": ..., "version": ..., "command": ...}, or with "why" for one that is not
 * available; NULL for one that was not chosen. */
json_t *cohi_bench_peer_json(const cohi_bench_peers *peers, size_t index);

/* Removes the folder. */
void cohi_bench_peers_close(cohi_bench_peers *peers);

/* One bit for each that could be built here, by what is in PATH. */
unsigned cohi_bench_peers_installed(void);

/* ---- against peers (bench/against.c) ---- */

/* What comes of a run. */
typedef struct cohi_bench_findings {
    json_t *results, *peers, *probes; /* arrays */
} cohi_bench_findings;

/* Cohort's job and the chosen peers in turns, one benchmark after the other, so that what is
 * compared is measured close together. Each result gets "peers", an object of figures by name. The
 * exit status. */
int cohi_bench_against(const cohi_bench_options *options, const cohi_bench_findings *found);

/* The same for all that the options choose at once: a turn is all of it, so it must be of one
 * program of each peer. */
int cohi_bench_turns(cohi_bench_peers *peers, const cohi_bench_options *options,
                     const cohi_bench_findings *found);

/* Adds what the peers were run with. */
void cohi_bench_tell_peers(const cohi_bench_peers *peers, const cohi_bench_options *options,
                           const cohi_bench_findings *found);

/* The weight of all that it does, for a bar. */
double cohi_bench_against_weight(const cohi_bench_options *options);

/* ---- jobs (bench/plan.c) ---- */

/* The chosen that options->ranks are enough for, of those that crowd if they must; 0: none. */
unsigned cohi_bench_runnable(const cohi_bench_options *options, int must_crowd);

/* The options of each job, of which one may choose nothing: two ranks, where the options name none,
 * and unless there are peers or floors, for some benchmarks more than there are cores. */
size_t cohi_bench_plan_jobs(const cohi_bench_options *options,
                            cohi_bench_options jobs[COHI_BENCH_LISTED]);

/* All jobs, as often as there are to be runs. The exit status. */
int cohi_bench_runs(const cohi_bench_options *options, const cohi_bench_findings *found);

/* ---- several runs (bench/runs.c) ---- */

/* Puts the results of several runs (an array of arrays) together: of each figure the median over
 * the runs, and in "worst" Cohort's slowest time, smallest fraction and largest ratio to a peer. */
void cohi_bench_merge_runs(json_t *runs, json_t *results);

/* ---- progress (bench/progress.c) ---- */

/* Shows nothing where standard error is no terminal. `total` is the weight of all steps. */
void cohi_bench_progress_begin(double total);
void cohi_bench_progress_step(const char *text, double weight);
void cohi_bench_progress_end(void);

/* ---- report (bench/report.c) ---- */

json_t *cohi_bench_result_json(const cohi_bench_result *result);

/* Prints all results to standard output, and writes the page where one is wanted. 0, or -1 when it
 * could not. */
int cohi_bench_report(const cohi_bench_options *options, json_t *report);

/* All that is known of a run, as one object: version, engine, host, date, noise, results, peers.
 * Takes nothing over; NULL without memory. */
json_t *cohi_bench_report_json(const cohi_bench_options *options, const cohi_bench_findings *found);

/* Why a peer was not measured that has no benchmark in common with a run. */
#define COHI_BENCH_NOT_RUN "it has none of the benchmarks that were run"

/* Makes each fraction and ratio of the report the quotient of the two times that stand beside it. */
void cohi_bench_settle(json_t *report);

/* Reports what --json wrote before, from options->from; what to exit with. */
int cohi_bench_report_again(const cohi_bench_options *options);

/* The key of cohi_bench_point_key with memory and ranks: results of the same are one curve. */
void cohi_bench_curve_text(const json_t *result, char *text, size_t room);

/* Cohort's time divided by that of the faster peer; 0 without one. */
double cohi_bench_of_faster_peer(const json_t *result);

int cohi_bench_report_csv(const json_t *report, FILE *stream);

/* Writes the page: whole, or not at all. 0, or -1 with errno. */
int cohi_bench_report_html(const json_t *report, const char *path);

extern const cohi_bench_source cohi_bench_page[];

/* What a report begins with for people: the peers, the busy processes, how quiet it was. */
void cohi_bench_print_head(const json_t *report);

/* "9.21 ns", "14.0 us", "1.31 ms". */
void cohi_bench_time_text(double nanoseconds, char *text, size_t room);

#endif
