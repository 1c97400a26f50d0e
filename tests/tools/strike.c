/* strike.c OPERATION FILE - ranks that do an operation together over and over, until COHORT_FAULT strikes the last of
 * them in it. The others say what they were told, and how many milliseconds after the blow. FILE holds its time, and
 * is on all hosts: they are hosts of a test bed, or played. */
#include <cohort.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 400, COUNT = 300, TAG = 7, RANKS = 64 };

struct words {
    uint64_t count, signal, data;
    coh_lock lock;
};

struct run {
    coh_world *world;
    coh_team *team;
    struct words *words;
    int rank, size, partner; /* of another host, where there are as many on each */
    uint64_t round;
    float from[RANKS * COUNT], to[RANKS * COUNT];
};

static struct run run;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- one-sided ---- */

static coh_status put(void)
{
    return coh_put(run.world, &run.words->data, &run.round, sizeof run.round, run.partner);
}

static coh_status get(void)
{
    uint64_t value;
    return coh_get(run.world, &value, &run.words->data, sizeof value, run.partner);
}

static coh_status fence(void)
{
    coh_status status = put();
    return status == COH_OK ? coh_fence(run.world) : status;
}

static coh_status quiet(void)
{
    coh_status status = put();
    return status == COH_OK ? coh_quiet(run.world) : status;
}

static coh_status atomic(void)
{
    uint64_t one = 1, before;
    return coh_atomic_fetch(run.world, COH_ATOMIC_ADD, COH_U64, &run.words->count, &one, &before,
                            run.partner);
}

static coh_status signal_partner(void)
{
    return coh_put_signal(run.world, &run.words->data, &run.round, sizeof run.round,
                          &run.words->signal, run.round, COH_SIGNAL_SET, run.partner);
}

static coh_status wait_for_partner(void)
{
    coh_status status = signal_partner();
    return status == COH_OK ? coh_wait_until(run.world, COH_U64, &run.words->signal, COH_GE,
                                             &run.round, run.partner)
                            : status;
}

static coh_status lock(void)
{
    coh_status status = coh_lock_set(run.world, &run.words->lock);
    return status == COH_OK ? coh_lock_clear(run.world, &run.words->lock) : status;
}

/* ---- messages ---- */

static coh_status exchange(void)
{
    uint64_t data = run.round;
    coh_status status = coh_send(run.team, run.partner, TAG, &data, sizeof data);
    return status == COH_OK ? coh_receive(run.team, run.partner, TAG, &data, sizeof data, NULL)
                            : status;
}

/* ---- collective ---- */

static coh_status sync_all(void)
{
    return coh_sync(run.world);
}

static coh_status barrier(void)
{
    return coh_barrier(run.world);
}

static coh_status allocate(void)
{
    void *memory = NULL;
    coh_status status = coh_malloc(run.world, 1000, &memory);
    if (status == COH_OK)
        status = coh_realloc(run.world, memory, 5000, &memory);
    return status == COH_OK ? coh_free(run.world, memory) : status;
}

static coh_status use_heap(void)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    options.bytes = 1 << 16;
    coh_status status = coh_heap_create(run.world, &options, &heap);
    return status == COH_OK ? coh_heap_destroy(heap) : status;
}

static coh_status use_team(void)
{
    coh_team *team;
    coh_status status = coh_team_split_color(run.team, 0, -run.rank, &team);
    if (status == COH_OK)
        status = coh_team_sync(team);
    if (status == COH_OK)
        status = coh_team_barrier(team);
    return status == COH_OK ? coh_team_destroy(team) : status;
}

static coh_status all_reduce(void)
{
    return coh_all_reduce(run.team, COH_F32, COH_SUM, run.from, run.to, COUNT);
}

static coh_status reduce(void)
{
    return coh_reduce(run.team, COH_F32, COH_SUM, run.from, run.to, COUNT, 0);
}

static coh_status reduce_scatter(void)
{
    return coh_reduce_scatter(run.team, COH_F32, COH_SUM, run.from, run.to, COUNT);
}

static coh_status all_gather(void)
{
    return coh_all_gather(run.team, COH_F32, run.from, run.to, COUNT);
}

static coh_status gather(void)
{
    return coh_gather(run.team, COH_F32, run.from, run.to, COUNT, 0);
}

static coh_status scatter(void)
{
    return coh_scatter(run.team, COH_F32, run.from, run.to, COUNT, 0);
}

static coh_status broadcast(void)
{
    return coh_broadcast(run.team, COH_F32, run.from, run.to, COUNT, 0);
}

static coh_status all_to_all(void)
{
    return coh_all_to_all(run.team, COH_F32, run.from, run.to, COUNT);
}

static coh_status scan(void)
{
    return coh_scan(run.team, COH_F32, COH_SUM, run.from, run.to, COUNT);
}

static coh_status scan_exclusive(void)
{
    return coh_scan_exclusive(run.team, COH_F32, COH_SUM, run.from, run.to, COUNT);
}

/* By the names that COHORT_FAULT has. */
static const struct operation {
    const char *name;
    coh_status (*perform)(void);
} operations[] = {
    {"put", put},
    {"get", get},
    {"fence", fence},
    {"quiet", quiet},
    {"atomic", atomic},
    {"signal", signal_partner},
    {"wait", wait_for_partner},
    {"lock", lock},
    {"send", exchange},
    {"receive", exchange},
    {"sync", sync_all},
    {"barrier", barrier},
    {"malloc", allocate},
    {"realloc", allocate},
    {"free", allocate},
    {"heap_create", use_heap},
    {"heap_destroy", use_heap},
    {"team_split_color", use_team},
    {"team_sync", use_team},
    {"team_barrier", use_team},
    {"team_destroy", use_team},
    {"all_reduce", all_reduce},
    {"reduce", reduce},
    {"reduce_scatter", reduce_scatter},
    {"all_gather", all_gather},
    {"gather", gather},
    {"scatter", scatter},
    {"broadcast", broadcast},
    {"all_to_all", all_to_all},
    {"scan", scan},
    {"scan_exclusive", scan_exclusive},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

static const struct operation *find(const char *name)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

static int list(void)
{
    for (int i = 0; i < OPERATIONS; i++)
        puts(operations[i].name);
    return 0;
}

/* The time of the last call that the last rank began. */
static _Atomic uint64_t *map_stamp(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0)
        return NULL;
    void *memory = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The barrier makes all depend on the last rank, also where the operation is of two alone. */
static coh_status repeat(const struct operation *operation, _Atomic uint64_t *stamp)
{
    coh_status status = COH_OK;
    while (status == COH_OK && run.round++ < ROUNDS) {
        if (run.rank == run.size - 1)
            atomic_store(stamp, now_ns());
        status = operation->perform();
        if (status == COH_OK)
            status = coh_barrier(run.world);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0)
        return list();
    const struct operation *operation = argc == 3 ? find(argv[1]) : NULL;
    _Atomic uint64_t *stamp = operation ? map_stamp(argv[2]) : NULL;
    if (!stamp)
        return 2;
    if (coh_init(NULL, &run.world) != COH_OK)
        return 3;
    run.rank = coh_rank(run.world);
    run.size = coh_size(run.world);
    run.team = coh_team_world(run.world);
    run.partner = (run.rank + run.size / 2) % run.size;
    coh_status status = coh_calloc(run.world, 1, sizeof *run.words, (void **)&run.words);
    if (status == COH_OK)
        status = repeat(operation, stamp);
    if (status == COH_OK)
        return coh_finalize(run.world) == COH_OK ? 0 : 4;
    printf("told %d %.0f %s\n", run.rank, (double)(now_ns() - atomic_load(stamp)) * 1e-6,
           coh_last_error());
    fflush(stdout);
    return 9;
}
