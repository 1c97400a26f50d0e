/* Limits of the process and the system: docs/faults.md F11, F12 and F14. */
#include "faults.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

static const size_t MIB = 1024 * 1024;

static bool set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit limit = {value, value};
    return CHECK(setrlimit(resource, &limit) == 0);
}

static rlim_t address_space_in_use(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        test_fail("cannot read /proc/self/statm");
    if (file)
        fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void work_a_little(test_rank *self, size_t bytes)
{
    unsigned char *memory;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    if (!CHECK_OK(coh_malloc(self->world, 2 * bytes, (void **)&memory)))
        return;
    test_fill(memory, bytes, (uint64_t)self->rank);
    CHECK_OK(coh_put(self->world, memory + bytes, memory, bytes, right));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(test_differs(memory + bytes, bytes, (uint64_t)left), bytes);
    CHECK_OK(coh_free(self->world, memory));
}

/* Little address space on every rank: the heap is smaller, and running out is an error on all. */
static void little_address_space(test_rank *self)
{
    void *memory = NULL;
    if (TEST_SANITIZED) {
        test_skip("a sanitizer needs the address space itself");
        return;
    }
    if (!set_limit(RLIMIT_AS, address_space_in_use() + 1024 * MIB) || !CHECK_OK(test_join(self)))
        return;
    work_a_little(self, MIB);
    CHECK_STATUS(coh_malloc(self->world, 2048 * MIB, &memory), COH_NO_MEMORY);
    CHECK(memory == NULL);
    work_a_little(self, MIB);
    CHECK_OK(coh_finalize(self->world));
}

/* On one rank only: all get the heap that the poorest can offer. */
static void one_with_little_address_space(test_rank *self)
{
    coh_heap_stats stats = {.size = sizeof stats};
    if (TEST_SANITIZED) {
        test_skip("a sanitizer needs the address space itself");
        return;
    }
    if (self->rank == 1 && !set_limit(RLIMIT_AS, address_space_in_use() + 1024 * MIB))
        return;
    if (!CHECK_OK(test_join(self)) || !CHECK_OK(coh_heap_query(self->world, &stats)))
        return;
    CHECK(stats.reserved <= 1024 * MIB);
    work_a_little(self, MIB);
    CHECK_OK(coh_finalize(self->world));
}

/* So little that no heap fits: init fails on this rank, and on the others with it. */
static void no_address_space(test_rank *self)
{
    double began = test_now();
    if (strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip(
            "MPI_Init waits for all processes of the job, the one that cannot come to it too");
        return;
    }
    if (TEST_SANITIZED) {
        test_skip("a sanitizer needs the address space itself");
        return;
    }
    if (self->rank == 1 && !set_limit(RLIMIT_AS, address_space_in_use() + MIB / 4))
        return;
    coh_status status = test_join(self);
    CHECK(status != COH_OK);
    CHECK(strlen(coh_last_error()) > 0);
    CHECK(test_now() - began < 8);
}

/* Works, or every rank is told, the limited ones of their limit. */
static void joins_or_names_the_limit(test_rank *self, const char *limit)
{
    double began = test_now();
    coh_status status = test_join(self);
    /* Connections to other hosts are made when they are first used. One that meets the limit then is
     * an error of that call, and the others lose the rank. */
    if (status == COH_OK && coh_local_size(self->world) < self->size) {
        if (coh_barrier(self->world) == COH_LIMIT)
            CHECK_SAYS(limit);
        (void)coh_finalize(self->world);
        CHECK(test_now() - began < 20);
        return;
    }
    if (status == COH_OK) {
        work_a_little(self, 1000);
        CHECK_OK(coh_finalize(self->world));
        return;
    }
    CHECK(strlen(coh_last_error()) > 0);
    if (status == COH_LIMIT)
        CHECK_SAYS(limit);
    else if (status == COH_NOT_AVAILABLE) /* an engine in a file, which cannot be opened */
        CHECK_SAYS("cannot be opened|Too many open files");
    else if (!CHECK(status == COH_PEER_LOST || status == COH_TIMED_OUT || status == COH_TRANSPORT))
        test_fail("init was %s: %s", coh_status_name(status), coh_last_error());
    CHECK(test_now() - began < 8);
}

static void few_descriptors(test_rank *self)
{
    if (set_limit(RLIMIT_NOFILE, 16))
        joins_or_names_the_limit(self, "16|descriptor");
}

static void very_few_descriptors(test_rank *self)
{
    if (strncmp(self->engine, "mpi:", 4) == 0) {
        test_skip(
            "MPI_Init waits for all processes of the job, the one that cannot come to it too");
        return;
    }
    if (self->rank == 1 && !set_limit(RLIMIT_NOFILE, 6))
        return;
    joins_or_names_the_limit(self, "6|descriptor");
}

/* ---- further heaps ---- */

static coh_status make_heap(test_rank *self, uint64_t bytes)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    options.bytes = bytes;
    coh_status status = coh_heap_create(self->world, &options, &heap);
    CHECK((status == COH_OK) == (heap != NULL));
    return status == COH_OK ? coh_heap_destroy(heap) : status;
}

/* On one rank only: all are told, and a smaller one can be made. */
static void no_address_space_for_a_heap(test_rank *self)
{
    if (TEST_SANITIZED) {
        test_skip("a sanitizer needs the address space itself");
        return;
    }
    if (!CHECK_OK(test_join(self)))
        return;
    if (self->rank == 1 && !set_limit(RLIMIT_AS, address_space_in_use() + 1024 * MIB))
        return;
    CHECK_REFUSED(make_heap(self, 8192 * MIB), COH_LIMIT, "heap_create|rank 1");
    CHECK_OK(make_heap(self, 16 * MIB));
    work_a_little(self, MIB);
    CHECK_OK(coh_finalize(self->world));
}

enum { DESCRIPTORS_MOST = 64 };

static void take_descriptors(int *taken, int *count)
{
    while (*count < DESCRIPTORS_MOST && (taken[*count] = dup(0)) >= 0)
        ++*count;
}

/* None for the heap itself on rank 1, then one: but none for the others' heaps, so that cards are lost on the
 * way. */
static void no_descriptors_for_a_heap(test_rank *self)
{
    int taken[DESCRIPTORS_MOST], count = 0;
    if (!CHECK_OK(test_join(self)))
        return;
    if (self->rank == 1) {
        set_limit(RLIMIT_NOFILE, DESCRIPTORS_MOST);
        take_descriptors(taken, &count);
    }
    CHECK_OK(coh_barrier(self->world));
    if (self->rank == 1) { /* also those that the watcher had for a moment */
        usleep(10000);
        take_descriptors(taken, &count);
    }
    CHECK_REFUSED(make_heap(self, 16 * MIB), COH_LIMIT, "heap_create|rank 1");
    for (int open = 2; self->rank == 1 && open > 0; open--)
        close(taken[--count]);
    CHECK_OK(coh_barrier(self->world));
    coh_status status = make_heap(self, 16 * MIB);
    CHECK_STATUS(status, COH_LIMIT);
    while (count > 0)
        close(taken[--count]);
    CHECK_OK(coh_barrier(self->world));
    CHECK_STATUS(make_heap(self, 16 * MIB), COH_TRANSPORT);
    work_a_little(self, MIB);
    CHECK_OK(coh_finalize(self->world));
}

static void no_locked_memory(test_rank *self)
{
    if (set_limit(RLIMIT_MEMLOCK, 0) && CHECK_OK(test_join(self))) {
        work_a_little(self, MIB);
        CHECK_OK(coh_finalize(self->world));
    }
}

/* ---- /dev/shm ---- */

/* A mount namespace of this rank's own with `options` mounted over `place`. */
static bool cover(const char *place, const char *options)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || mount("tmpfs", place, "tmpfs", 0, options) != 0) {
        test_skip("cannot mount over %s in a namespace: %s", place, strerror(errno));
        return false;
    }
    return true;
}

static void join_and_work(test_rank *self)
{
    if (CHECK_OK(test_join(self))) {
        work_a_little(self, 8 * MIB);
        CHECK_OK(coh_finalize(self->world));
    }
}

static void tiny_dev_shm(test_rank *self)
{
    if (cover("/dev/shm", "size=1m"))
        join_and_work(self);
}

static void no_dev_shm(test_rank *self)
{
    if (!cover("/dev", "size=64k"))
        return;
    CHECK(access("/dev/shm", F_OK) != 0);
    join_and_work(self);
}

const test_case fault_limits[] = {
    CASE(little_address_space, "F11", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(one_with_little_address_space, "F11", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(no_address_space, "F11", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(few_descriptors, "F14", ON_PROCESSES, SIZE(2) | SIZE(4) | SIZE(8), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(very_few_descriptors, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_INIT_TIMEOUT=2"),
    CASE(no_address_space_for_a_heap, "F11", ON_SHM, SIZE(3), .mode = TEST_UNJOINED),
    CASE(no_descriptors_for_a_heap, "F14", ON_SHM, SIZE(3), .mode = TEST_UNJOINED),
    CASE(no_locked_memory, "F14", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(tiny_dev_shm, "F12", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
    CASE(no_dev_shm, "F12", ON_PROCESSES, SIZE(3), .mode = TEST_UNJOINED),
};
FAULT_COUNT(limits);
