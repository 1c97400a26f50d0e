/*
 * operations.c - what the common operations of OpenSHMEM take, for any implementation of 1.4.
 *
 * Prints a line for each: its name and the nanoseconds of one, the median of its rounds. `compare`
 * builds it with two implementations and runs them in turns. Two PEs or more; the first measures,
 * and where all take part, so do all.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, LARGEST = 16 << 20, WORDS = LARGEST / 8 };

static double *source, *target; /* LARGEST bytes each */
static double *work;            /* of reductions */
static long *word, *flag, *lock;
static long *sync_area, *sync_areas[2];
static int me, pes;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* ---- what is measured: `times` of it, `bytes` each where that means something ---- */

typedef void operation(int times, size_t bytes);

static void put(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_putmem(target, source, bytes, 1);
}

static void get(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_getmem(target, source, bytes, 1);
}

static void put_quiet(int times, size_t bytes)
{
    for (int i = 0; i < times; i++) {
        shmem_putmem(target, source, bytes, 1);
        shmem_quiet();
    }
}

static void put_nbi(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_putmem_nbi(target, source, bytes, 1);
    shmem_quiet();
}

static void strided_put(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_double_iput(target, source, 2, 1, bytes / 16, 1);
}

static void put_one(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_long_p(word, i, 1);
}

static void get_one(int times, size_t bytes)
{
    (void)bytes;
    volatile long sum = 0;
    for (int i = 0; i < times; i++)
        sum = sum + shmem_long_g(word, 1);
}

static void fetch_add(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_long_atomic_fetch_add(word, 1, 1);
}

static void add(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_long_atomic_add(word, 1, 1);
}

static void swap(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_long_atomic_swap(word, i, 1);
}

static void compare_swap(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_long_atomic_compare_swap(word, i, i + 1, 1);
}

static void fence(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++) {
        shmem_long_p(word, i, 1);
        shmem_fence();
    }
}

static void take_lock(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++) {
        shmem_set_lock(lock);
        shmem_clear_lock(lock);
    }
}

static void ping_pong(int times, size_t bytes)
{
    (void)bytes;
    static long turn;
    if (me > 1)
        return;
    for (int i = 0; i < times; i++) {
        turn++;
        if (me == 0)
            shmem_long_p(flag, turn, 1);
        shmem_long_wait_until(flag, SHMEM_CMP_GE, turn);
        if (me == 1)
            shmem_long_p(flag, turn, 0);
    }
}

static void barrier(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_barrier_all();
}

static void synchronize(int times, size_t bytes)
{
    (void)bytes;
    for (int i = 0; i < times; i++)
        shmem_sync_all();
}

/* The areas in turns, as the standard wants it of calls that follow one another. */
static long *next_area(void)
{
    static int turn;
    return sync_areas[turn++ & 1];
}

static void sum(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_double_sum_to_all(target, source, (int)(bytes / 8), 0, 0, pes, work, next_area());
}

static void float_max(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_float_max_to_all((float *)target, (float *)source, (int)(bytes / 4), 0, 0, pes,
                               (float *)work, next_area());
}

static void broadcast(int times, size_t bytes)
{
    for (int i = 0; i < times; i++) {
        shmem_broadcast64(target, source, bytes / 8, 0, 0, 0, pes, next_area());
        shmem_sync_all(); /* or the root would run ahead */
    }
}

static void collect(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_fcollect64(target, source, bytes / 8 / (size_t)pes, 0, 0, pes, next_area());
}

static void all_to_all(int times, size_t bytes)
{
    for (int i = 0; i < times; i++)
        shmem_alltoall64(target, source, bytes / 8 / (size_t)pes, 0, 0, pes, next_area());
}

static const struct row {
    const char *name;
    operation *run;
    int together; /* all PEs do it; else the first alone */
    size_t bytes; /* 0: it has no size */
    size_t up_to; /* sizes from `bytes`, eight times as much each time */
} rows[] = {
    {"put", put, 0, 8, LARGEST},
    {"get", get, 0, 8, LARGEST},
    {"put+quiet", put_quiet, 0, 8, LARGEST},
    {"put_nbi", put_nbi, 0, 8, LARGEST},
    {"iput", strided_put, 0, 1 << 10, 1 << 20},
    {"p", put_one, 0, 0, 0},
    {"g", get_one, 0, 0, 0},
    {"p+fence", fence, 0, 0, 0},
    {"atomic_fetch_add", fetch_add, 0, 0, 0},
    {"atomic_add", add, 0, 0, 0},
    {"atomic_swap", swap, 0, 0, 0},
    {"atomic_compare_swap", compare_swap, 0, 0, 0},
    {"set_lock+clear_lock", take_lock, 0, 0, 0},
    {"p+wait_until", ping_pong, 1, 0, 0},
    {"barrier_all", barrier, 1, 0, 0},
    {"sync_all", synchronize, 1, 0, 0},
    {"double_sum_to_all", sum, 1, 8, 8},
    {"double_sum_to_all", sum, 1, 16 << 10, LARGEST},
    {"double_sum_to_all", sum, 1, LARGEST, LARGEST},
    {"float_max_to_all", float_max, 1, 16 << 10, LARGEST},
    {"broadcast64", broadcast, 1, 8, LARGEST},
    {"fcollect64", collect, 1, 64, LARGEST},
    {"alltoall64", all_to_all, 1, 64, LARGEST},
};

/* ---- measuring ---- */

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* About a millisecond a round; all PEs come to the same. */
static int times_of(size_t bytes)
{
    size_t times = (4u << 20) / (bytes + 2048);
    return times < 1 ? 1 : (int)times;
}

static void measure(const struct row *row, size_t bytes)
{
    double each[ROUNDS];
    int times = times_of(bytes);
    for (int round = -1; round < ROUNDS; round++) {
        shmem_barrier_all();
        double start = now();
        if (row->together || me == 0)
            row->run(times, bytes);
        if (round >= 0)
            each[round] = (now() - start) / times;
    }
    shmem_barrier_all();
    if (me != 0)
        return;
    qsort(each, ROUNDS, sizeof *each, by_value);
    printf("%s/%zu %.2f\n", row->name, bytes, each[ROUNDS / 2]);
    fflush(stdout);
}

static void allocate(void)
{
    size_t most = SHMEM_REDUCE_MIN_WRKDATA_SIZE;
    most = WORDS / 2 + 1 > most ? WORDS / 2 + 1 : most;
    source = shmem_malloc(LARGEST);
    target = shmem_malloc(LARGEST);
    work = shmem_malloc(most * sizeof *work);
    word = shmem_calloc(1, sizeof *word);
    flag = shmem_calloc(1, sizeof *flag);
    lock = shmem_calloc(1, sizeof *lock);
    size_t areas = SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE + SHMEM_BCAST_SYNC_SIZE
                   + SHMEM_COLLECT_SYNC_SIZE;
    sync_area = shmem_malloc(2 * areas * sizeof *sync_area);
    if (!source || !target || !work || !word || !flag || !lock || !sync_area)
        shmem_global_exit(1);
    for (size_t i = 0; i < 2 * areas; i++)
        sync_area[i] = SHMEM_SYNC_VALUE;
    sync_areas[0] = sync_area;
    sync_areas[1] = sync_area + areas;
    memset(source, 0, LARGEST);
    memset(target, 0, LARGEST);
    memset(work, 0, most * sizeof *work);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    if (pes < 2) {
        fprintf(stderr, "operations: two PEs or more\n");
        shmem_global_exit(2);
    }
    allocate();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        size_t bytes = row->bytes;
        do {
            measure(row, bytes);
            bytes *= 8;
        } while (bytes > 0 && bytes <= row->up_to);
    }
    shmem_finalize();
    return 0;
}
