#include "page.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

double test_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* 0 where the kernel does not tell. */
static double waited_for_core(const char *thread)
{
    char path[64];
    unsigned long long waited_ns = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/schedstat", thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*u %llu", &waited_ns) != 1)
        waited_ns = 0;
    fclose(file);
    return (double)waited_ns * 1e-9;
}

double test_fair_now(void)
{
    double waited = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *one; threads && (one = readdir(threads));)
        if (one->d_name[0] != '.')
            waited += waited_for_core(one->d_name);
    if (threads)
        closedir(threads);
    return test_now() - waited;
}

void test_sleep(double seconds)
{
    double until = test_now() + seconds;
    for (double left = seconds; left > 0; left = until - test_now()) {
        struct timespec part = {.tv_sec = (time_t)left,
                                .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&part, NULL);
    }
}

bool test_await(const _Atomic uint64_t *word, uint64_t value, double seconds)
{
    return test_await_word((const uint64_t *)word, value, seconds);
}

bool test_await_word(const uint64_t *word, uint64_t value, double seconds)
{
    double until = test_now() + seconds;
    for (unsigned looks = 1;; looks++) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) >= value)
            return true;
        if (looks % 64 != 0)
            continue;
        if (test_now() > until)
            return false;
        sched_yield();
    }
}

uint64_t test_random(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

bool test_looks_for_races(void)
{
    const char *check = getenv("COHORT_CHECK");
    return check && strcmp(check, "order") == 0;
}

int test_scaled(const test_rank *self, int iterations)
{
    int scaled = TEST_SANITIZED ? iterations / 10 : iterations;
    if (strncmp(self->engine, "sim", 3) == 0 || strncmp(self->engine, "mlx", 3) == 0)
        scaled /= 10;
    return scaled > 1 ? scaled : 1;
}

void test_fill(void *memory, size_t bytes, uint64_t seed)
{
    unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)((i * 131 + (i >> 8) + seed * 29 + 1) & 0xff);
}

size_t test_differs(const void *memory, size_t bytes, uint64_t seed)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)((i * 131 + (i >> 8) + seed * 29 + 1) & 0xff))
            return i;
    return bytes;
}

static coh_options options_of(const test_rank *self)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    options.heap = self->row->heap;
    return options;
}

/* Different maps on each rank, so that equal addresses would be an accident. Where a limit
 * forbids the hole, there is none. */
static void shift_maps(int rank)
{
    size_t bytes = (size_t)(rank + 1) * 3 * 1024 * 1024;
    (void)mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

coh_status test_join(test_rank *self)
{
    if (!test_has_processes(self->engine))
        return self->joined;
    coh_options options = options_of(self);
    shift_maps(self->rank);
    return coh_init_unique_id(&self->ids[0], self->rank, self->size, &options, &self->world);
}

static void finalize_unless_failed(test_rank *self)
{
    if (self->world && !test_failed())
        CHECK_OK(coh_finalize(self->world));
}

void test_rank_run(test_rank *self)
{
    test_this_is_rank(self->rank);
    if (self->row->mode != TEST_JOINED) {
        self->row->body(self);
    } else if (CHECK_OK(test_join(self))) {
        test_heaps_make(self);
        self->row->body(self);
        finalize_unless_failed(self);
    }
    atomic_store(&test_page_get()->bodies_ended[self->rank], 1);
}

struct member {
    test_rank self;
    void (*body)(test_rank *self);
    pthread_t thread;
};

static void *member_main(void *arg)
{
    struct member *member = arg;
    test_this_is_rank(member->self.rank);
    member->body(&member->self);
    return NULL;
}

void test_crew(const test_rank *like, int ranks, void (*body)(test_rank *self))
{
    coh_options options = options_of(like);
    coh_world *worlds[TEST_RANKS_MAX] = {NULL};
    coh_status joined = coh_init_threads(ranks, &options, worlds);
    if (like->row->mode == TEST_ALONE && !CHECK_OK(joined))
        return;
    struct member *members = calloc((size_t)ranks, sizeof *members);
    for (int rank = 0; rank < ranks; rank++) {
        members[rank] = (struct member){.self = *like, .body = body};
        members[rank].self.rank = rank;
        members[rank].self.size = ranks;
        members[rank].self.joined = joined;
        members[rank].self.world = worlds[rank];
        CHECK(pthread_create(&members[rank].thread, NULL, member_main, &members[rank]) == 0);
    }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(members[rank].thread, NULL);
    free(members);
}
