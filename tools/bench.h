/*
 * bench.h - the parts of `cohort bench`.
 *
 *   bench.c          the command line
 *   bench_child.c    runs a program, reads its lines, and ends it when a signal says so
 *   bench_job.c      starts the ranks and reads what they found
 *   bench_worker.c   is the ranks
 *   bench_cases.c    the benchmarks, as rows of a table
 *   bench_copy.c     put, get, quiet, deliver
 *   bench_meet.c     barrier, sync
 *   bench_word.c     fetch_add, compare_swap, strided
 *   bench_turns.c    signal
 *   bench_message.c  message, private_message, rate
 *   bench_threads.c  thread_puts, thread_adds
 *   bench_measure.c  rounds and medians
 *   bench_peers.c    builds and runs the programs of bench/peers/
 *   bench_against.c  Cohort and its peers in turns
 *   bench_report.c   results as JSON and as tables
 *
 * A benchmark has contenders: Cohort's call, always the first, and the loops of bench/limit/ on the
 * same memory. All take turns, round by round, so that whatever else the machine does meets all of
 * them. Peers are programs of their own; with --against whole jobs take turns.
 */
#ifndef COHI_TOOLS_BENCH_H
#define COHI_TOOLS_BENCH_H

#include "limit.h"

#include <cohort.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COHI_BENCH_SIZES = 32,
    COHI_BENCH_CONTENDERS = 12,
    COHI_BENCH_RANKS = 1024,
    COHI_BENCH_THREADS = 16,
    COHI_BENCH_TURNS = 1000,
};

/* ---- options (bench.c) ---- */

typedef struct cohi_bench_options {
    unsigned chosen;    /* one bit for each benchmark, by index; 0: all */
    uint64_t ranks;     /* 0: two, and for the barrier more than there are cores as well */
    const char *engine; /* "shm" or "threads" */
    uint64_t sizes[COHI_BENCH_SIZES];
    size_t size_count;     /* 0: those of a full, or a quick, run */
    const char *size_text; /* as they were given, or NULL */
    uint64_t rounds;       /* 0: as many as a full, or a quick, run takes; of turns, with peers */
    int json;
    int quick;
    int crowded; /* more ranks than cores; the ranks cannot tell once they are bound to one each */
    unsigned against; /* one bit for each peer, by index */
} cohi_bench_options;

/* The sizes that the options mean. */
typedef struct cohi_bench_sizes {
    const uint64_t *at;
    size_t count;
} cohi_bench_sizes;

cohi_bench_sizes cohi_bench_chosen_sizes(const cohi_bench_options *options);

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

/* Sorts the samples (at least one) and fills median, low and high. */
void cohi_bench_spread(double *samples, size_t count, cohi_bench_figure *figure);

/* Sets `best` from the medians. */
void cohi_bench_find_best(cohi_bench_result *result);

/* Nanoseconds for one of `repeats` that began at `start_ns` and end now; -1 when one failed. */
double cohi_bench_each(coh_status status, uint64_t start_ns, uint64_t repeats);

/* ---- benchmarks (bench_cases.c and the files of the benchmarks) ---- */

/* What all ranks have, each in lines of its own: symmetric, zero at first. */
typedef struct cohi_bench_board {
    cohi_limit_line meeting[2]; /* the count of raw meetings */
    cohi_limit_line delivered;  /* and of deliveries */
    cohi_limit_line turn;       /* and of raw turns; a peer writes it */
    cohi_limit_line word;       /* for atomics */
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
} cohi_bench_board;

/* One rank of the job that measures. */
typedef struct cohi_bench_rank {
    coh_world *world;
    int rank;
    int size;
    int crowded;
    uint64_t rounds;
    char *shared;  /* symmetric, room for the largest size times the most that a row wants */
    char *private; /* of this rank alone, as large */
    cohi_bench_board *board;
} cohi_bench_rank;

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

typedef struct cohi_bench_case {
    const char *name;
    const char *what;
    const char *limit;
    int least_ranks;
    int sized;   /* measured for each size */
    int crowded; /* measured with more ranks than cores too */
    int room;    /* how many times its size it needs of both memories */
    cohi_bench_run *run;
} cohi_bench_case;

/* By index from 0; NULL past the last. */
const cohi_bench_case *cohi_bench_case_at(size_t index);

/* ---- programs (bench_child.c) ---- */

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
 * array. The exit status of the job. */
int cohi_bench_job(const cohi_bench_options *options, json_t *results);

/* ---- peers (bench_peers.c) ---- */

/* The files of bench/peers/, which the build puts into the tool; a NULL name ends them. */
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

/* Runs one of them; its times as {"get 8": 42.1, ...}, or NULL when it is, or has become, not
 * available. */
json_t *cohi_bench_peer_run(cohi_bench_peers *peers, size_t index,
                            const cohi_bench_options *options);

/* {"name": ..., "version": ..., "command": ...}, or {"name": ..., "why": ...} for one that is not
 * available; NULL for one that was not chosen. */
json_t *cohi_bench_peer_json(const cohi_bench_peers *peers, size_t index);

/* Removes the folder. */
void cohi_bench_peers_close(cohi_bench_peers *peers);

/* ---- against peers (bench_against.c) ---- */

/* Cohort's job and the chosen peers in turns. Fills both arrays; each result gets "peers", an
 * object of figures by name. The exit status. */
int cohi_bench_against(const cohi_bench_options *options, json_t *results, json_t *peers);

/* ---- report (bench_report.c) ---- */

json_t *cohi_bench_result_json(const cohi_bench_result *result);

/* Prints all results to standard output; `peers` is empty without --against. 0, or -1 when it could
 * not. */
int cohi_bench_report(const cohi_bench_options *options, json_t *results, json_t *peers);

/* "64 KiB", "1.5 MiB". */
void cohi_bench_size_text(uint64_t bytes, char *text, size_t room);

#endif
