/*
 * heaps - heaps on a card, by the calls of the host.
 *
 *     heaps processes|threads|hosts RANKS
 *
 * With hosts, ranks are processes that pretend to be on two of them, over tcp.
 *
 * Needs no launcher and no header of CUDA. Exits 77 where there is no card; prints the first thing that is
 * wrong, by rank and line.
 */
#include <cohort-cuda.h>
#include <cohort.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, MOST_RANKS = 8, WORDS = 1 << 16 };

#define MIB ((size_t)1 << 20)

static int ranks;
static bool on_hosts; /* two are pretended */

struct rank {
    coh_world *world;
    int rank, next, before; /* neighbours on a ring */
    coh_heap *heap;
    const char *step;
};

static void give_up(const struct rank *self, int line, const char *what)
{
    fprintf(stderr, "rank %d, %s, line %d: %s: %s\n", self->rank, self->step, line, what,
            coh_last_error());
    _exit(1);
}

#define CHECK(condition)                         \
    do {                                         \
        if (!(condition))                        \
            give_up(self, __LINE__, #condition); \
    } while (0)
#define OK(call) CHECK((call) == COH_OK)

/* The call fails so, with these words. */
#define REFUSED(call, status, words)                                          \
    do {                                                                      \
        CHECK((call) == (status));                                            \
        if (!strstr(coh_last_error(), words))                                 \
            give_up(self, __LINE__, "the message does not have '" words "'"); \
    } while (0)

static uint64_t value_of(int rank, size_t index)
{
    return (uint64_t)(rank + 1) << 40 | index;
}

static void *take(struct rank *self, size_t bytes)
{
    void *pointer = NULL;
    OK(coh_heap_calloc(self->heap, bytes, 1, &pointer));
    return pointer;
}

/* This rank's copy, by way of the host. */
static uint64_t *read_back(struct rank *self, const void *from, size_t bytes)
{
    uint64_t *words = malloc(bytes);
    CHECK(words != NULL);
    OK(coh_get(self->world, words, from, bytes, self->rank));
    return words;
}

/* ---- the steps ---- */

static void make(struct rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_cuda_card card = {.size = sizeof card};
    coh_cuda_sharing sharing;
    int device, cards;
    OK(coh_cuda_device(self->world, &device, NULL));
    CHECK(device == -1);
    OK(coh_cuda_count(&cards));
    options.kind = COH_HEAP_CUDA;
    options.device = -7;
    REFUSED(coh_heap_create(self->world, &options, &self->heap), COH_INVALID_ARGUMENT, "-7");
    REFUSED(coh_cuda_query(cards, &card), COH_INVALID_ARGUMENT, "there is no card");
    options.kind = COH_HEAP_CUDA;
    options.device = 99;
    REFUSED(coh_heap_create(self->world, &options, &self->heap), COH_INVALID_ARGUMENT,
            "there is no card 99");
    options.device = 0;
    OK(coh_heap_create(self->world, &options, &self->heap));
    options.device = 1;
    coh_heap *other;
    REFUSED(coh_heap_create(self->world, &options, &other), COH_INVALID_ARGUMENT, "a rank has one");
    OK(coh_cuda_query(0, &card));
    OK(coh_cuda_device(self->world, &device, &sharing));
    CHECK(device == 0);
    if (self->rank == 0)
        printf("%s, %d.%d, %llu bytes, driver %d, mps %d, sharing %d\n", card.name, card.major,
               card.minor, (unsigned long long)card.memory, card.driver, card.mps, (int)sharing);
}

static void puts_and_gets(struct rank *self)
{
    size_t bytes = WORDS * sizeof(uint64_t);
    uint64_t *there = take(self, bytes), *other = take(self, bytes), *host;
    uint64_t *mine = malloc(bytes);
    CHECK(mine != NULL);
    for (size_t i = 0; i < WORDS; i++)
        mine[i] = value_of(self->rank, i);
    OK(coh_put(self->world, there, mine, bytes, self->next)); /* host to card */
    OK(coh_barrier(self->world));
    uint64_t *got = read_back(self, there, bytes);
    for (size_t i = 0; i < WORDS; i++)
        CHECK(got[i] == value_of(self->before, i));
    OK(coh_put_nbi(self->world, other, there, bytes, self->next)); /* card to card */
    OK(coh_quiet(self->world));
    OK(coh_barrier(self->world));
    OK(coh_get(self->world, got, other, bytes, self->next)); /* another's card to host */
    for (size_t i = 0; i < WORDS; i++)
        CHECK(got[i] == value_of(self->before, i));
    OK(coh_malloc(self->world, bytes, (void **)&host));
    OK(coh_put(self->world, host, other, bytes, self->next)); /* card to a heap of the host */
    OK(coh_barrier(self->world));
    for (size_t i = 0; i < WORDS; i++)
        CHECK(host[i] == value_of((self->rank + 3 * ranks - 3) % ranks, i));
    OK(coh_barrier(self->world));
    OK(coh_get(self->world, there, host, bytes, self->next)); /* a heap of the host to the card */
    OK(coh_barrier(self->world));
    free(got);
    got = read_back(self, there, bytes);
    for (size_t i = 0; i < WORDS; i++)
        CHECK(got[i] == value_of((self->rank + 3 * ranks - 2) % ranks, i));
    OK(coh_barrier(self->world));
    OK(coh_put_strided(self->world, other, 64, mine, 8, 8, 100, self->next));
    OK(coh_barrier(self->world));
    OK(coh_get_strided(self->world, got, 8, other, 64, 8, 100, self->rank));
    for (size_t i = 0; i < 100; i++)
        CHECK(got[i] == value_of(self->before, i));
    REFUSED(coh_put(self->world, there, mine, (size_t)1 << 44, self->next), COH_OUT_OF_BOUNDS,
            "out of bounds");
    OK(coh_free(self->world, host));
    OK(coh_free(self->world, there));
    OK(coh_free(self->world, other));
    free(got);
    free(mine);
}

static void signals(struct rank *self)
{
    uint64_t *word = take(self, 64), *data = take(self, 4096), sent[512], value, one = 1, *host;
    OK(coh_calloc(self->world, 1, 64, (void **)&host));
    for (int round = 1; round <= 50; round++) {
        for (size_t i = 0; i < 512; i++)
            sent[i] = value_of(self->rank, i + (size_t)round);
        uint64_t expected = (uint64_t)round;
        OK(coh_put_signal(self->world, data, sent, sizeof sent, word, 1, COH_SIGNAL_ADD,
                          self->next));
        OK(coh_wait_until(self->world, COH_U64, word, COH_GE, &expected, self->before));
        uint64_t *got = read_back(self, data, 4096);
        for (size_t i = 0; i < 512; i++)
            CHECK(got[i] == value_of(self->before, i + (size_t)round));
        free(got);
        OK(coh_barrier(self->world));
    }
    OK(coh_signal_fetch(self->world, word, &value));
    CHECK(value == 50);
    OK(coh_barrier(self->world));
    /* data on the card, its signal in memory of the host, and the reverse */
    OK(coh_put_signal_nbi(self->world, data, sent, sizeof sent, host, 7, COH_SIGNAL_SET,
                          self->next));
    value = 7;
    OK(coh_wait_until(self->world, COH_U64, host, COH_EQ, &value, self->before));
    uint64_t *got = read_back(self, data, 4096);
    CHECK(got[511] == value_of(self->before, 561));
    free(got);
    OK(coh_signal(self->world, word + 1, 9, COH_SIGNAL_SET, self->next));
    value = 9;
    OK(coh_wait_until(self->world, COH_U64, word + 1, COH_EQ, &value, COH_ANY_RANK));
    coh_watch watch = COH_WATCH_INIT;
    size_t index = 99;
    watch.dtype = COH_U64;
    watch.words = word;
    watch.count = 8;
    watch.compare = COH_EQ;
    watch.values = &one;
    OK(coh_test_any(self->world, &watch, &index));
    CHECK(index == 8);
    watch.values = word; /* memory of the card */
    REFUSED(coh_test_any(self->world, &watch, &index), COH_INVALID_ARGUMENT, "memory of a card");
    OK(coh_barrier(self->world));
    OK(coh_free(self->world, host));
    OK(coh_free(self->world, data));
    OK(coh_free(self->world, word));
}

static void atomics(struct rank *self)
{
    enum { TIMES = 40 };
    uint64_t *word = take(self, 64), old = 0, one = 1, zero = 0, mine = (uint64_t)self->rank + 1;
    uint32_t *half = (uint32_t *)(word + 2), half_one = 1, half_old = 0;
    uint64_t olds[100];
    for (int i = 0; i < TIMES; i++) {
        OK(coh_atomic(self->world, COH_ATOMIC_ADD, COH_U64, word, &one, 0));
        OK(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U32, half, &half_one, &half_old, 0));
    }
    OK(coh_atomic_compare_swap(self->world, COH_U64, word + 1, &zero, &mine, &old, 0));
    OK(coh_barrier(self->world));
    OK(coh_atomic_fetch(self->world, COH_ATOMIC_FETCH, COH_U64, word, NULL, &old, 0));
    CHECK(old == (uint64_t)(TIMES * ranks));
    OK(coh_atomic_fetch(self->world, COH_ATOMIC_FETCH, COH_U32, half, NULL, &half_old, 0));
    CHECK(half_old == (uint32_t)(TIMES * ranks));
    OK(coh_atomic_fetch(self->world, COH_ATOMIC_FETCH, COH_U64, word + 1, NULL, &old, 0));
    CHECK(old >= 1 && old <= (uint64_t)ranks);
    OK(coh_barrier(self->world));
    for (int i = 0; i < 100; i++) /* more than can be under way at once */
        OK(coh_atomic_fetch_nbi(self->world, COH_ATOMIC_ADD, COH_U64, word + 4, &one, &olds[i],
                                self->next));
    OK(coh_quiet(self->world));
    for (int i = 0; i < 100; i++)
        CHECK(olds[i] == (uint64_t)i);
    uint64_t bits = 0xf0, more = 0xff;
    OK(coh_atomic(self->world, COH_ATOMIC_SET, COH_U64, word + 5, &bits, self->next));
    OK(coh_atomic(self->world, COH_ATOMIC_XOR, COH_U64, word + 5, &more, self->next));
    OK(coh_atomic(self->world, COH_ATOMIC_OR, COH_U64, word + 5, &bits, self->next));
    OK(coh_atomic_fetch(self->world, COH_ATOMIC_AND, COH_U64, word + 5, &bits, &old, self->next));
    CHECK(old == 0xff);
    REFUSED(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U64, word, &one, word + 6, 0),
            COH_INVALID_ARGUMENT, "memory of a card");
    OK(coh_barrier(self->world));
    OK(coh_free(self->world, word));
}

/* Each growth is a part of its own, which the others must reach. */
static void growth(struct rank *self)
{
    enum { BLOCKS = 6 };
    uint64_t *blocks[BLOCKS], mark, got;
    coh_heap_stats stats = {.size = sizeof stats};
    size_t bytes = 100 * MIB, last = bytes / 8 - 1;
    for (int i = 0; i < BLOCKS; i++) {
        OK(coh_heap_calloc(self->heap, bytes, 1, (void **)&blocks[i]));
        mark = value_of(self->rank, (size_t)i);
        OK(coh_put(self->world, blocks[i] + last, &mark, sizeof mark, self->next));
    }
    OK(coh_barrier(self->world));
    for (int i = 0; i < BLOCKS; i++) {
        OK(coh_get(self->world, &got, blocks[i] + last, sizeof got, self->rank));
        CHECK(got == value_of(self->before, (size_t)i));
    }
    OK(coh_heap_usage(self->heap, &stats));
    CHECK(stats.used >= BLOCKS * bytes && stats.committed >= stats.used);
    OK(coh_realloc(self->world, blocks[0], 2 * bytes, (void **)&blocks[0]));
    OK(coh_get(self->world, &got, blocks[0] + last, sizeof got, self->next));
    CHECK(got == value_of(self->rank, 0));
    void *none = NULL;
    REFUSED(coh_heap_malloc(self->heap, (size_t)1 << 40, &none), COH_NO_MEMORY, "");
    for (int i = 0; i < BLOCKS; i++)
        OK(coh_free(self->world, blocks[i]));
}

static void beyond_the_card(struct rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    void *none = NULL;
    options.kind = COH_HEAP_CUDA;
    options.bytes = (uint64_t)1 << 42;
    OK(coh_heap_create(self->world, &options, &heap));
    REFUSED(coh_heap_malloc(heap, (size_t)1 << 41, &none), COH_NO_MEMORY, "free");
    OK(coh_heap_malloc(heap, MIB, &none)); /* nothing was lost by it */
    OK(coh_heap_destroy(heap));
    REFUSED(coh_heap_malloc(heap, MIB, &none), COH_INVALID_ARGUMENT, "destroyed");
}

static void others(struct rank *self)
{
    uint64_t *word = take(self, 4096), value = 5;
    coh_context *context;
    coh_view view;
    void *direct = NULL;
    if (on_hosts && self->next % 2 != self->rank % 2)
        REFUSED(coh_ptr(self->world, word, self->next, &direct), COH_UNSUPPORTED, "cuda");
    else
        OK(coh_ptr(self->world, word, self->next, &direct));
    CHECK((direct != NULL) == !(on_hosts && self->next % 2 != self->rank % 2));
    OK(coh_context_create(self->world, &context));
    OK(coh_context_put_nbi(context, word, &value, sizeof value, self->next));
    OK(coh_context_fence(context));
    OK(coh_context_quiet(context));
    OK(coh_context_destroy(context));
    OK(coh_barrier(self->world));
    OK(coh_view_of(self->world, word, 8, self->rank, &view));
    CHECK(view.heap == coh_heap_number(self->heap));
    value = 0;
    OK(coh_get(self->world, &value, word, sizeof value, self->rank));
    CHECK(value == 5);
    REFUSED(coh_lock_set(self->world, (coh_lock *)word), COH_UNSUPPORTED, "heap on a card");
    REFUSED(coh_send(coh_team_world(self->world), self->next, 1, word, 8), COH_UNSUPPORTED,
            "memory of a card");
    OK(coh_barrier(self->world));
    OK(coh_free(self->world, word));
}

static void times(struct rank *self)
{
    enum { TIMES = 200 };
    uint64_t *word = take(self, 16 * MIB), value = 1;
    struct timespec begin, end;
    double took[3];
    for (int what = 0; what < 3; what++) {
        OK(coh_barrier(self->world));
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < TIMES && self->rank == 0; i++) {
            if (what == 0)
                OK(coh_put(self->world, word, &value, sizeof value, self->next));
            else if (what == 1)
                OK(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U64, word, &value, &value,
                                    self->next));
            else
                OK(coh_put(self->world, word, (char *)word + 8 * MIB, 8 * MIB, self->next));
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        took[what] =
            ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec))
            / TIMES / 1e3;
    }
    OK(coh_barrier(self->world));
    if (self->rank == 0)
        printf("host calls: put 8 B %.1f us, fetch-add %.1f us, put 8 MiB card to card %.1f us\n",
               took[0], took[1], took[2]);
    OK(coh_free(self->world, word));
}

static int run(coh_world *world)
{
    static const struct {
        const char *name;
        void (*run)(struct rank *self);
    } steps[] = {{"make", make},       {"puts and gets", puts_and_gets},
                 {"signals", signals}, {"atomics", atomics},
                 {"growth", growth},   {"beyond the card", beyond_the_card},
                 {"others", others},   {"times", times}};
    struct rank state = {.world = world, .rank = coh_rank(world)}, *self = &state;
    self->next = (self->rank + 1) % ranks;
    self->before = (self->rank + ranks - 1) % ranks;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        self->step = steps[i].name;
        steps[i].run(self);
        OK(coh_barrier(world));
        if (self->rank == 0 && getenv("VERBOSE"))
            printf("%s: right\n", self->step);
    }
    self->step = "end";
    OK(coh_heap_destroy(self->heap));
    OK(coh_finalize(world));
    return 0;
}

/* ---- starting ---- */

static bool has_card(void)
{
    int count;
    if (coh_cuda_count(&count) == COH_OK)
        return true;
    printf("skipped: %s\n", coh_last_error());
    return false;
}

static void *run_thread(void *world)
{
    return (void *)(intptr_t)run(world);
}

static int run_threads(void)
{
    coh_world *worlds[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    if (!has_card())
        return SKIPPED;
    if (coh_init_threads(ranks, NULL, worlds) != COH_OK) {
        fprintf(stderr, "%s\n", coh_last_error());
        return 1;
    }
    for (int i = 0; i < ranks; i++)
        pthread_create(&threads[i], NULL, run_thread, worlds[i]);
    for (int i = 0; i < ranks; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int run_process(const coh_unique_id *id, int rank)
{
    coh_world *world;
    coh_options options = COH_OPTIONS_INIT;
    if (!has_card())
        return SKIPPED;
    if (on_hosts) {
        options.engine = "tcp";
        setenv("COHORT_HOST", rank % 2 ? "second" : "first", 1);
    }
    if (coh_init_unique_id(id, rank, ranks, &options, &world) == COH_OK)
        return run(world);
    fprintf(stderr, "%s\n", coh_last_error());
    return 1;
}

/* CUDA does not work in the child of a process that uses it, so this one does not. */
static int run_processes(void)
{
    coh_unique_id id;
    int worst = 0, status;
    if (coh_unique_id_create(&id) != COH_OK) {
        fprintf(stderr, "%s\n", coh_last_error());
        return 1;
    }
    for (int rank = 0; rank < ranks; rank++) {
        pid_t child = fork();
        if (child == 0) {
            int code = run_process(&id, rank);
            fflush(stdout);
            _exit(code);
        }
        if (child < 0)
            return 1;
    }
    while (wait(&status) > 0) {
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
        worst = code == 1 || worst == 0 ? code : worst;
    }
    return worst;
}

int main(int argc, char **argv)
{
    ranks = argc > 2 ? atoi(argv[2]) : 0;
    if (ranks < 1 || ranks > MOST_RANKS) {
        fprintf(stderr, "usage: heaps processes|threads|hosts RANKS, at most %d\n", MOST_RANKS);
        return 2;
    }
    on_hosts = strcmp(argv[1], "hosts") == 0;
    return strcmp(argv[1], "threads") == 0 ? run_threads() : run_processes();
}
