/*
 * harness.h - runs one case with n ranks on one engine, and notices everything that goes wrong.
 *
 * A case is a row: a body that each rank runs, the engines and sizes that it is for, its time
 * limit. The ranks run in processes that the harness forks: n of them on `shm` and `tcp`, one with
 * n threads on the engines that live in one process. Every run has its own time limit; when it
 * passes, the stacks of all threads of the run are printed and the run is killed. After each run
 * the harness looks for what was left behind: processes, descriptors, sockets, names in /dev/shm.
 *
 * A body reports by the checks of check.h, which only record and tell; it decides itself whether
 * to go on. A body that returns with a failed check leaves its world open, so that its peers
 * learn of it.
 */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include <cohort.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "check.h"

enum {
    TEST_RANKS_MAX = 64,
    TEST_IDS = 4,              /* unique ids made before the ranks start */
    TEST_SCRATCH_BYTES = 65536 /* zeroed memory that all ranks of a run share */
};

/* Engines a case is for, as a mask. */
enum {
    ON_THREADS = 1,
    ON_SHM = 2,
    ON_SIM = 4,
    ON_CHANNEL = 8, /* sim:channel, which has no one-sided memory */
    ON_TCP =
        16, /* and ucx, mpi: processes that play several hosts, mapped inside of one, links between */
    ON_MLX = 64,  /* mlx:ring: processes that have messages alone */
    ON_CARD = 32, /* with --heap cuda too: the body reaches symmetric memory by calls alone */
    ON_MAPPED = ON_THREADS | ON_SHM,
    ON_PROCESSES = ON_SHM | ON_TCP,
    ON_MEMORY = ON_MAPPED | ON_SIM | ON_TCP,
    ON_CREW = ON_THREADS | ON_SIM | ON_CHANNEL, /* ranks inside one process */
    ON_ALL = ON_MEMORY | ON_CHANNEL | ON_MLX
};

/* Sizes a case is for, as a mask of 1 << n. */
#define SIZE(n)      (1u << (n))
#define ANY_SIZE     (SIZE(1) | SIZE(2) | SIZE(3) | SIZE(4) | SIZE(5) | SIZE(6) | SIZE(7))
#define FROM_TWO     (ANY_SIZE & ~SIZE(1))
#define FROM_THREE   (FROM_TWO & ~SIZE(2))
#define VICTIM(rank) (UINT64_C(1) << (rank))

typedef enum test_mode {
    TEST_JOINED = 0, /* the harness joins the world before the body and finalizes it after */
    TEST_UNJOINED,   /* the body calls test_join itself, or not */
    TEST_ALONE       /* one process, no world: the body makes what it needs */
} test_mode;

/* Hosts that the ranks of a run play; 0: what the engine does by itself. Set by --hosts. */
extern int test_hosts;

/* Whether the engine's ranks are processes. */
bool test_has_processes(const char *engine);

/* Whether it has one-sided memory, or messages alone. */
bool test_has_memory(const char *engine);

/* Whether it joins hosts by links, inside of which ranks are mapped. */
bool test_has_links(const char *engine);

/* Lets modules be found, and ranks of engines between hosts play two unless it was said how many. */
void test_use_engine(const char *engine);

/* The test bed whose hosts the ranks are on; NULL: they only play hosts. Set by --testbed. */
extern const char *test_bed;

/* Takes the test bed of that name, and puts this process on its first host. false with errno when it
 * has not as many hosts as --hosts says, or this process may not enter them. */
bool test_bed_choose(const char *name);

/* Puts this process on a host of the test bed. */
bool test_bed_enter(int host);

/* Puts a rank's process on its host, or sets COHORT_HOST where hosts are only played. */
void test_play_host(int rank, int ranks);

/* The host that a rank plays: blocks of ranks, the first ones longer where they differ. */
int test_host_of(int rank, int ranks);

/* What one rank's body gets. */
typedef struct test_rank {
    const struct test_case *row;
    const char *engine;
    int rank;
    int size;
    uint64_t seed;
    coh_world *world;         /* after joining; a body that finalizes it sets NULL */
    coh_status joined;        /* of coh_init_threads, which one thread calls for all */
    const coh_unique_id *ids; /* TEST_IDS of them, the same on all ranks */
    void *shared;             /* TEST_SCRATCH_BYTES, zero at first, the same on all ranks */
} test_rank;

/* Whether the rank and another play hosts, and play the same one. */
static inline bool test_same_host(const test_rank *self, int rank)
{
    return test_hosts > 0 && test_host_of(self->rank, self->size) == test_host_of(rank, self->size);
}

/* What the parent knows of a run, for a row's `director`. */
typedef struct test_job {
    const struct test_case *row;
    const char *engine;
    int ranks;
    uint64_t seed;
    int processes;
    pid_t pids[TEST_RANKS_MAX];
    int ends[TEST_RANKS_MAX]; /* waitpid(2) statuses */
    bool reaped[TEST_RANKS_MAX];
    void *shared;
} test_job;

typedef struct test_case {
    const char *name;
    const char *rows; /* cases of docs/semantics.md (S) and docs/faults.md (F): "S47 F26" */
    void (*body)(test_rank *self);
    unsigned engines;
    unsigned sizes;
    test_mode mode;
    double limit_s;                  /* 0: DEFAULT_LIMIT_S; stretched under sanitizers */
    const char *environment;         /* "COHORT_STALL=1 COHORT_WARN=0.3" */
    uint64_t heap;                   /* of the options */
    int per_core;                    /* not 0: this many ranks for each core, whatever the size */
    uint64_t victims;                /* ranks that may end in any way, or not at all */
    int exit_code;                   /* of every process that is not a victim's */
    void (*director)(test_job *job); /* called in the parent once all ranks are started */
} test_case;

/* A row named after its body: CASE(body, rows, engines, sizes, other fields by name...). */
#define CASE(function, row_names, on_engines, on_sizes, ...)                           \
    {                                                                                  \
        .name = #function, .rows = row_names, .body = function, .engines = on_engines, \
        .sizes = on_sizes, __VA_ARGS__                                                 \
    }

/* ---- for bodies ---- */

/* Joins the rank's world, by the first id or as one of the crew; sets self->world on COH_OK. */
coh_status test_join(test_rank *self);

/* Makes `ranks` worlds in this process and runs `body` on a thread for each. `shared` is
 * passed on. */
void test_crew(const test_rank *like, int ranks, void (*body)(test_rank *self));

/* Marks the run as skipped; the body should return. */
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds of the monotonic clock. */
double test_now(void);

/* The same less what threads of this process have waited for a core: for limits that a busy machine is not to break. */
double test_fair_now(void);
void test_sleep(double seconds);

/* When the process of a rank had ended, which it may have waited for a core to do; 0 where it has none, or goes on. */
double test_end_of(int rank);

/* Waits until *word >= value, without calling Cohort, for at most `seconds`. Yields. */
bool test_await(const _Atomic uint64_t *word, uint64_t value, double seconds);

/* The same for a word in symmetric memory, which peers write: an acquire load. */
bool test_await_word(const uint64_t *word, uint64_t value, double seconds);

/* A small deterministic generator; never 0 state. */
uint64_t test_random(uint64_t *state);

/* Whether the suite runs with COHORT_CHECK=order, in which peers' memory has no address here. */
bool test_looks_for_races(void);

/*
 * With --heap these allocate from a further heap of the world, so that the whole suite runs on it: in rows of
 * mode TEST_JOINED. In parentheses, (coh_malloc)(...) is the world's own all the same.
 */
coh_status test_malloc(coh_world *world, size_t bytes, void **pointer);
coh_status test_calloc(coh_world *world, size_t count, size_t size, void **pointer);
coh_status test_align(coh_world *world, size_t alignment, size_t bytes, void **pointer);
coh_status test_realloc(coh_world *world, void *pointer, size_t bytes, void **resized);
coh_status test_array_malloc(coh_world *world, coh_dtype dtype, size_t count, coh_array *array,
                             void **pointer);
coh_status test_heap_query(coh_world *world, coh_heap_stats *stats);
#define coh_malloc(world, bytes, pointer)           test_malloc(world, bytes, pointer)
#define coh_calloc(world, count, size, pointer)     test_calloc(world, count, size, pointer)
#define coh_align(world, alignment, bytes, pointer) test_align(world, alignment, bytes, pointer)
#define coh_realloc(world, pointer, bytes, resized) test_realloc(world, pointer, bytes, resized)
#define coh_array_malloc(world, dtype, count, array, pointer) \
    test_array_malloc(world, dtype, count, array, pointer)
#define coh_heap_query(world, stats) test_heap_query(world, stats)

/* Whether the suite runs on a further heap, and whether that is one of a card (--heap cuda), which the CPU can
 * neither load from nor store to. */
bool test_uses_further_heap(void);
bool test_uses_card(void);

/* Writes to, and reads from, this rank's own copy of symmetric memory of any heap, through Cohort. */
bool test_store(test_rank *self, void *symmetric, const void *bytes, size_t count);
bool test_load(test_rank *self, void *bytes, const void *symmetric, size_t count);

/* Checks that this rank's own copy is all zeros. */
bool test_is_zero(test_rank *self, const void *symmetric, size_t count);

/* Iterations, divided where every step is slow: under sanitizers, and on the simulator. */
int test_scaled(const test_rank *self, int iterations);

/* ---- for suites ---- */

/* Fills `bytes` with a pattern of `seed`; tells where the first other byte is, or `bytes`. */
void test_fill(void *memory, size_t bytes, uint64_t seed);
size_t test_differs(const void *memory, size_t bytes, uint64_t seed);

/* The main function of a suite: parses --engine, --ranks, --case, --check, --heap, --list, --repeat, and runs
 * the rows as one cmocka group. */
int test_suite(int argc, char **argv, const test_case *const *tables, const size_t *counts,
               size_t table_count);

#endif
