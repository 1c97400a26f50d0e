/*
 * kernels.c - every kernel of the cuda engine against the CPU's collectives, and how long some of them take.
 *
 *     kernels --threads 4 [--time|--brief]            the ranks are threads of this process
 *     cohort run -n 4 -- kernels [--time|--brief]     or processes
 *
 * The CPU's results are those of the same collective on memory of the host with COHORT_DETERMINISTIC=1, which is
 * set here. Exits with 77 where there is no card.
 */
#include <cohort-cuda.h>

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the driver ---- */

static struct {
    int (*init)(unsigned);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*stream_create)(coh_cuda_stream *, unsigned);
    int (*stream_sync)(coh_cuda_stream);
    int (*copy)(uint64_t, uint64_t, size_t, coh_cuda_stream);
    int (*alloc)(uint64_t *, size_t);
    int (*alloc_host)(void **, size_t);
    int (*event_create)(void **, unsigned);
    int (*event_record)(void *, coh_cuda_stream);
    int (*event_sync)(void *);
    int (*event_elapsed)(float *, void *, void *);
    int (*begin_capture)(coh_cuda_stream, int);
    int (*end_capture)(coh_cuda_stream, void **);
    int (*instantiate)(void **, void *, unsigned long long);
    int (*launch)(void *, coh_cuda_stream);
} cuda;

static bool open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    const struct {
        const char *name;
        void *place;
    } rows[] = {{"cuInit", &cuda.init},
                {"cuDevicePrimaryCtxRetain", &cuda.retain},
                {"cuCtxSetCurrent", &cuda.set_current},
                {"cuStreamCreate", &cuda.stream_create},
                {"cuStreamSynchronize", &cuda.stream_sync},
                {"cuMemcpyAsync", &cuda.copy},
                {"cuMemAlloc_v2", &cuda.alloc},
                {"cuMemAllocHost_v2", &cuda.alloc_host},
                {"cuEventCreate", &cuda.event_create},
                {"cuEventRecord", &cuda.event_record},
                {"cuEventSynchronize", &cuda.event_sync},
                {"cuEventElapsedTime", &cuda.event_elapsed},
                {"cuStreamBeginCapture_v2", &cuda.begin_capture},
                {"cuStreamEndCapture", &cuda.end_capture},
                {"cuGraphInstantiateWithFlags", &cuda.instantiate},
                {"cuGraphLaunch", &cuda.launch}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *found = library ? dlsym(library, rows[i].name) : NULL;
        if (!found)
            return false;
        memcpy(rows[i].place, &found, sizeof found);
    }
    return cuda.init(0) == 0;
}

/* ---- a rank ---- */

enum { MOST = 300001 };

typedef struct rank {
    coh_world *world;
    coh_team *team;
    int index, size;
    coh_cuda_stream stream;
    coh_cuda_sharing sharing;
    coh_heap *heap;
    char *shared[2], *private[2]; /* source and target on the card */
    char *host[3];                /* pinned: source, the CPU's target, the card's */
    size_t room;
    uint64_t dice;
    long checks, failures;
} rank;

#define EXPECT(rank, what)                                                         \
    do {                                                                           \
        coh_status expected_ = (what);                                             \
        if (expected_ != COH_OK) {                                                 \
            fprintf(stderr, "rank %d: line %d: %s: %s\n", (rank)->index, __LINE__, \
                    coh_status_name(expected_), coh_last_error());                 \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

static uint64_t draw(rank *self)
{
    uint64_t x = self->dice;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return self->dice = x;
}

static void finish(rank *self)
{
    int error = cuda.stream_sync(self->stream);
    if (error != 0) {
        fprintf(stderr, "rank %d: the stream failed: %d\n", self->index, error);
        exit(1);
    }
    EXPECT(self, coh_cuda_status(self->world));
}

static void move(rank *self, void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        cuda.copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, self->stream);
}

/* ---- elements ---- */

static bool is_nan(coh_dtype dtype, const char *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, coh_dtype_size(dtype));
    switch (dtype) {
    case COH_F16:
        return (bits & 0x7fff) > 0x7c00;
    case COH_BF16:
        return (bits & 0x7fff) > 0x7f80;
    case COH_F32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case COH_F64:
        return (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
    case COH_F8E4M3:
        return (bits & 0x7f) == 0x7f;
    case COH_F8E5M2:
        return (bits & 0x7f) > 0x7c;
    default:
        return false;
    }
}

/* Any bits, or numbers of a moderate size, so that sums are not all NaN. */
static void fill(rank *self, coh_dtype dtype, char *to, size_t count)
{
    size_t element = coh_dtype_size(dtype);
    bool moderate = draw(self) % 2;
    for (size_t i = 0; i < count * element; i++)
        to[i] = (char)(draw(self) >> 20);
    if (!moderate || dtype < COH_F16 || dtype == COH_BOOL)
        return;
    for (size_t i = 0; i < count; i++) {
        float number = (float)((int64_t)(draw(self) >> 40) % 2001 - 1000) / 64.0f;
        double wide = number;
        if (dtype == COH_F64)
            memcpy(to + i * element, &wide, element);
        else
            (void)coh_convert(to + i * element, dtype, &number, COH_F32, 1);
    }
}

static void compare(rank *self, const coh_collective *call, size_t bytes, const char *note)
{
    size_t element = coh_dtype_size(call->dtype);
    self->checks++;
    for (size_t at = 0; at < bytes; at += element) {
        const char *wanted = self->host[1] + at, *found = self->host[2] + at;
        if (memcmp(wanted, found, element) == 0
            || (is_nan(call->dtype, wanted) && is_nan(call->dtype, found)))
            continue;
        uint64_t one = 0, two = 0;
        memcpy(&one, wanted, element);
        memcpy(&two, found, element);
        if (self->failures++ < 8)
            fprintf(stderr, "rank %d of %d: %s of %zu %s (%s), %s: element %zu is %llx, not %llx\n",
                    self->index, self->size, coh_collective_name(call->kind), call->count,
                    coh_dtype_name(call->dtype), coh_reduce_op_name(call->op), note, at / element,
                    (unsigned long long)two, (unsigned long long)one);
        return;
    }
}

/* ---- collectives against the CPU's ---- */

static size_t blocks_of(const coh_collective *call, int size, bool source)
{
    bool cut =
        source ? call->kind == COH_COLLECTIVE_REDUCE_SCATTER || call->kind == COH_COLLECTIVE_SCATTER
                     || call->kind == COH_COLLECTIVE_ALL_TO_ALL
               : call->kind == COH_COLLECTIVE_ALL_GATHER || call->kind == COH_COLLECTIVE_GATHER
                     || call->kind == COH_COLLECTIVE_ALL_TO_ALL;
    return cut ? (size_t)size : 1;
}

static size_t elements_of(const rank *self, const coh_collective *call, bool source)
{
    size_t all = 0;
    if (!call->counts)
        return call->count * blocks_of(call, self->size, source);
    if (blocks_of(call, self->size, source) == 1)
        return call->counts[self->index];
    for (int i = 0; i < self->size; i++)
        all += call->counts[i];
    return all;
}

static bool gets(const rank *self, const coh_collective *call)
{
    bool rooted = call->kind == COH_COLLECTIVE_REDUCE || call->kind == COH_COLLECTIVE_GATHER;
    return !rooted || call->root == self->index;
}

enum form { SHARED, PRIVATE, SHIFTED, IN_PLACE, WITHOUT_STREAM, FORMS };
static const char *const form_names[] = {"shared", "private", "shifted", "in place",
                                         "without a stream"};

/* In place, where source and target have the same length. */
static bool has_form(const coh_collective *call, enum form form)
{
    return form != IN_PLACE || call->kind == COH_COLLECTIVE_ALL_REDUCE
           || call->kind == COH_COLLECTIVE_SCAN || call->kind == COH_COLLECTIVE_SCAN_EXCLUSIVE
           || (call->kind == COH_COLLECTIVE_ALL_TO_ALL);
}

static void try_form(rank *self, coh_collective call, size_t in, size_t out, enum form form)
{
    size_t element = coh_dtype_size(call.dtype);
    size_t shift = form == SHIFTED ? element : 0;
    char *const *buffers = form == PRIVATE ? self->private : self->shared;
    char *source = buffers[0] + shift, *target = (form == IN_PLACE ? source : buffers[1] + shift);
    call.source = source;
    call.target = target;
    move(self, source, self->host[0], in);
    if (form == WITHOUT_STREAM) {
        finish(self);
        EXPECT(self, coh_collective_run(&call));
    } else {
        EXPECT(self, coh_cuda_collective(&call, self->stream));
    }
    if (gets(self, &call))
        move(self, self->host[2], target, out);
    finish(self);
    if (gets(self, &call))
        compare(self, &call, out, form_names[form]);
}

static void try_call(rank *self, coh_collective call)
{
    size_t element = coh_dtype_size(call.dtype);
    size_t in = elements_of(self, &call, true) * element;
    size_t out = elements_of(self, &call, false) * element;
    fill(self, call.dtype, self->host[0], in / element);
    call.team = self->team;
    call.source = self->host[0];
    call.target = self->host[1];
    coh_status status = coh_collective_run(&call);
    if (status == COH_INVALID_ARGUMENT) /* there is no such operation of the type */
        return;
    EXPECT(self, status);
    for (int form = 0; form < FORMS; form++)
        if (has_form(&call, (enum form)form))
            try_form(self, call, in, out, (enum form)form);
}

static const coh_dtype types[] = {
#define TYPE(constant, value, name, bytes) constant,
    COH_DTYPE_TABLE(TYPE)
#undef TYPE
};
enum { TYPES = sizeof types / sizeof *types };

static bool reduces(coh_collective_kind kind)
{
    return kind <= COH_COLLECTIVE_REDUCE_SCATTER || kind >= COH_COLLECTIVE_SCAN;
}

static void try_kind(rank *self, coh_collective_kind kind, size_t count, int type_step)
{
    for (int type = 0; type < TYPES; type += type_step) {
        for (int op = COH_SUM; op <= (reduces(kind) ? COH_XOR : COH_SUM); op++) {
            coh_collective call = COH_COLLECTIVE_INIT;
            call.kind = kind;
            call.dtype = types[type];
            call.op = (coh_reduce_op)op;
            call.count = count;
            call.root = (int)(count % (size_t)self->size);
            try_call(self, call);
        }
    }
}

static void try_collectives(rank *self)
{
    static const size_t counts[] = {0, 1, 7, 1000, 4099};
    for (int kind = COH_COLLECTIVE_ALL_REDUCE; kind <= COH_COLLECTIVE_SCAN_EXCLUSIVE; kind++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            try_kind(self, (coh_collective_kind)kind, counts[i], 1);
        try_kind(self, (coh_collective_kind)kind, MOST, 3);
    }
}

/* Counts of their own, and scales of their own. */
static void try_variable(rank *self)
{
    static const coh_collective_kind kinds[] = {COH_COLLECTIVE_REDUCE_SCATTER,
                                                COH_COLLECTIVE_ALL_GATHER, COH_COLLECTIVE_GATHER,
                                                COH_COLLECTIVE_SCATTER};
    size_t counts[64];
    for (size_t most = 10; most <= 100000; most *= 100) {
        for (int i = 0; i < self->size; i++)
            counts[i] = (most * (size_t)(i + 1) / (size_t)self->size + 3) * (i != 1);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            coh_collective call = COH_COLLECTIVE_INIT;
            call.kind = kinds[i];
            call.dtype = i % 2 ? COH_BF16 : COH_F32;
            call.counts = counts;
            call.root = self->size - 1;
            try_call(self, call);
        }
    }
    for (size_t count = 100; count <= 100000; count *= 1000) {
        coh_reduction how = COH_REDUCTION_INIT;
        how.dtype = count > 100 ? COH_F32 : COH_BF16;
        how.scale = 1.0 + self->index * 0.3;
        coh_collective call = COH_COLLECTIVE_INIT;
        call.kind = COH_COLLECTIVE_ALL_REDUCE;
        call.count = count;
        call.dtype = how.dtype;
        call.how = &how;
        try_call(self, call);
    }
}

/* ---- one-sided operations ---- */

static void check(rank *self, bool holds, const char *what)
{
    self->checks++;
    if (!holds && self->failures++ < 8)
        fprintf(stderr, "rank %d of %d: %s\n", self->index, self->size, what);
}

static void try_onesided(rank *self)
{
    int right = (self->index + 1) % self->size, left = (self->index + self->size - 1) % self->size;
    uint64_t *word = NULL;
    coh_world *world = self->world;
    EXPECT(self, coh_heap_calloc(self->heap, 4, sizeof *word, (void **)&word));
    EXPECT(self, coh_barrier(world));
    for (size_t bytes = 8, round = 1; bytes <= 1000000; bytes = bytes * 5 + 3, round++) {
        memset(self->host[0], (int)round + self->index, bytes);
        move(self, self->private[0], self -> host[0], bytes);
        EXPECT(self, coh_cuda_put_signal(world, self->shared[1], self->private[0], bytes, word,
                                         round, COH_SIGNAL_SET, right, self -> stream));
        EXPECT(self, coh_cuda_wait_until(world, word, COH_GE, round, left, self->stream));
        move(self, self->host[2], self->shared[1], bytes);
        finish(self);
        memset(self->host[1], (int)round + left, bytes);
        check(self, memcmp(self->host[1], self->host[2], bytes) == 0, "put with signal");
        EXPECT(self, coh_cuda_barrier(self->team, self->stream));
        EXPECT(self, coh_cuda_get(world, self->private[1], self -> shared[1], bytes, right,
                                  self -> stream));
        move(self, self->host[2], self->private[1], bytes);
        EXPECT(self, coh_cuda_barrier(self->team, self->stream));
        finish(self);
        memset(self->host[1], (int)round + self->index, bytes);
        check(self, memcmp(self->host[1], self->host[2], bytes) == 0, "get");
    }
    uint64_t one = 1, found = 0;
    EXPECT(self, coh_cuda_atomic(world, COH_ATOMIC_ADD, COH_U64, word + 1, &one, NULL,
                                 self->private[1], 0, self -> stream));
    EXPECT(self, coh_cuda_barrier(self->team, self->stream));
    EXPECT(self, coh_cuda_get(world, self->private[0], word + 1, 8, 0, self->stream));
    move(self, self->host[2], self->private[0], 8);
    finish(self);
    memcpy(&found, self->host[2], 8);
    check(self, found == (uint64_t)self->size, "atomic");
    for (int i = 0; i < 1024; i++)
        self->host[0][i] = (char)(i + self->index);
    move(self, self->private[0], self -> host[0], 1024);
    EXPECT(self, coh_cuda_put_strided(world, self->shared[1], 32, self->private[0], 24, 13, 40,
                                      right, self -> stream));
    EXPECT(self, coh_cuda_barrier(self->team, self->stream));
    move(self, self->host[2], self->shared[1], 2048);
    finish(self);
    bool same = true;
    for (int i = 0; i < 40 * 13; i++)
        same &= self->host[2][i / 13 * 32 + i % 13] == (char)(i / 13 * 24 + i % 13 + left);
    check(self, same, "put_strided");
    EXPECT(self, coh_cuda_barrier(self->team, self->stream));
    finish(self);
}

/* ---- graphs ---- */

static void try_graph(rank *self)
{
    enum { CALLS = 20, REPLAYS = 1000, COUNT = 1024 };
    void *graph = NULL, *made = NULL, *from, *to;
    float *numbers = (float *)(void *)self->host[0], all = 0, milliseconds = 0;
    if (self->sharing == COH_CUDA_TURNS)
        return;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(self->index + 1) * 0x1p-20f;
    move(self, self->shared[0], self->host[0], sizeof(float) * COUNT);
    finish(self);
    cuda.begin_capture(self->stream, 2);
    for (int i = 0; i < CALLS; i++)
        EXPECT(self, coh_cuda_all_reduce(self->team, COH_F32, i % 2 ? COH_MAX : COH_MEAN,
                                         self->shared[i % 2], self->shared[(i + 1) % 2], COUNT,
                                         self->stream));
    if (cuda.end_capture(self->stream, &graph) || cuda.instantiate(&made, graph, 0)) {
        check(self, false, "capture");
        return;
    }
    EXPECT(self, coh_barrier(self->world));
    cuda.event_create(&from, 0);
    cuda.event_create(&to, 0);
    cuda.event_record(from, self->stream);
    for (int i = 0; i < REPLAYS; i++)
        cuda.launch(made, self->stream);
    cuda.event_record(to, self->stream);
    move(self, self->host[2], self->shared[0], sizeof(float) * COUNT);
    finish(self);
    cuda.event_elapsed(&milliseconds, from, to);
    for (int i = 0; i < self->size; i++)
        all += (float)(i + 1) * 0x1p-20f;
    bool right = true;
    for (int i = 0; i < COUNT; i++)
        right &= ((float *)(void *)self->host[2])[i] == all / (float)self->size;
    check(self, right, "1,000 replays of 20 all_reduces");
    if (self->index == 0)
        printf("graph of 20 all_reduces of 4 KB, %d ranks: %.2f us each\n", self->size,
               (double)milliseconds * 1000 / REPLAYS / CALLS);
}

/* ---- time ---- */

typedef void enqueue_form(rank *self, size_t bytes);

static void time_all_reduce(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_reduce(self->team, COH_F32, COH_SUM, self->shared[0], self->shared[1],
                                     bytes / 4, self->stream));
}
static void time_all_reduce_bf16(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_reduce(self->team, COH_BF16, COH_SUM, self->shared[0],
                                     self->shared[1], bytes / 2, self->stream));
}
static void time_max(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_reduce(self->team, COH_F32, COH_MAX, self->shared[0], self->shared[1],
                                     bytes / 4, self->stream));
}
static void time_private(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_reduce(self->team, COH_F32, COH_SUM, self->private[0],
                                     self -> private[1], bytes / 4, self->stream));
}
static void time_all_gather(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_gather(self->team, COH_F32, self->shared[0], self->shared[1],
                                     bytes / 4 / (size_t)self->size, self->stream));
}
static void time_reduce_scatter(rank *self, size_t bytes)
{
    EXPECT(self,
           coh_cuda_reduce_scatter(self->team, COH_F32, COH_SUM, self->shared[0], self->shared[1],
                                   bytes / 4 / (size_t)self->size, self->stream));
}
static void time_all_to_all(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_all_to_all(self->team, COH_F32, self->shared[0], self->shared[1],
                                     bytes / 4 / (size_t)self->size, self->stream));
}
static void time_broadcast(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_broadcast(self->team, COH_F32, self->shared[0], self->shared[1],
                                    bytes / 4, 0, self->stream));
}
static void time_barrier(rank *self, size_t bytes)
{
    (void)bytes;
    EXPECT(self, coh_cuda_barrier(self->team, self->stream));
}
static void time_put(rank *self, size_t bytes)
{
    EXPECT(self, coh_cuda_put(self->world, self->shared[1], self->shared[0], bytes,
                              (self->index + 1) % self->size, self->stream));
}
static void time_copy(rank *self, size_t bytes)
{
    move(self, self->shared[1], self->shared[0], bytes);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Microseconds each, the median of several rounds. `alone`: rank 0 does it, while the others wait. */
static double measure(rank *self, enqueue_form *enqueue, size_t bytes, bool alone)
{
    enum { ROUNDS = 7 };
    float rounds[ROUNDS];
    int each = bytes <= 1 << 20 ? 200 : bytes <= 1 << 26 ? 20 : 4;
    void *from, *to;
    if (self->sharing == COH_CUDA_TURNS)
        each = 10;
    cuda.event_create(&from, 0);
    cuda.event_create(&to, 0);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT(self, coh_barrier(self->world));
        if (alone && self->index != 0) {
            EXPECT(self, coh_barrier(self->world));
            continue;
        }
        enqueue(self, bytes);
        cuda.event_record(from, self->stream);
        for (int k = 0; k < each; k++)
            enqueue(self, bytes);
        cuda.event_record(to, self->stream);
        finish(self);
        cuda.event_elapsed(&rounds[i], from, to);
        if (alone)
            EXPECT(self, coh_barrier(self->world));
    }
    if (alone && self->index != 0)
        return 0;
    qsort(rounds, ROUNDS, sizeof *rounds, by_value);
    return (double)rounds[ROUNDS / 2] * 1000 / each;
}

/* `moved`: bytes read and written in all, for each byte of the call's size. */
static void time_sizes(rank *self, const char *name, enqueue_form *enqueue, bool alone,
                       double moved, const size_t *sizes)
{
    for (; *sizes; sizes++) {
        double us = measure(self, enqueue, *sizes, alone);
        if (self->index == 0)
            printf("%-16s %d ranks %10zu B %9.2f us %7.0f GB/s\n", name, self->size, *sizes, us,
                   moved * (double)*sizes / us / 1000);
    }
    fflush(stdout);
}

static void time_all(rank *self)
{
    static const size_t wide[] = {4096,     65536,     262144,  1 << 20, 16 << 20,
                                  64 << 20, 256 << 20, 1 << 30, 0};
    static const size_t few[] = {4096, 1 << 20, 64 << 20, 256 << 20, 0};
    static const size_t large[] = {16 << 20, 64 << 20, 256 << 20, 0};
    static const size_t puts[] = {8, 4096, 65536, 16 << 20, 0};
    static const size_t one[] = {8, 0};
    double size = self->size;
    bool turns = self->sharing == COH_CUDA_TURNS;
    if (!turns)
        time_sizes(self, "copy, alone", time_copy, true, 2, large);
    time_sizes(self, "all_reduce f32", time_all_reduce, false, 2 * size, turns ? few : wide);
    if (turns)
        return;
    time_sizes(self, "all_reduce bf16", time_all_reduce_bf16, false, 2 * size, few);
    time_sizes(self, "max f32", time_max, false, 2 * size, few);
    time_sizes(self, "private f32", time_private, false, 2 * size, few);
    time_sizes(self, "all_gather", time_all_gather, false, 2 * size, large);
    time_sizes(self, "reduce_scatter", time_reduce_scatter, false, size + 1, large);
    time_sizes(self, "all_to_all", time_all_to_all, false, 2 * size, large);
    time_sizes(self, "broadcast", time_broadcast, false, size + 1, large);
    time_sizes(self, "barrier", time_barrier, false, 0, one);
    time_sizes(self, "put, alone", time_put, true, 2, puts);
}

/* ---- the whole ---- */

static bool timing, brief;

static void *run_rank(void *argument)
{
    rank self = {.world = argument};
    void *context;
    int device = 0;
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    self.team = coh_team_world(self.world);
    self.index = coh_rank(self.world);
    self.size = coh_size(self.world);
    self.dice = 88172645463325252ull + (uint64_t)self.index * 7919;
    options.kind = COH_HEAP_CUDA;
    EXPECT(&self, coh_heap_create(self.world, &options, &self.heap));
    EXPECT(&self, coh_cuda_device(self.world, &device, &self.sharing));
    cuda.retain(&context, device);
    cuda.set_current(context);
    cuda.stream_create(&self.stream, 1);
    self.room = timing ? (size_t)1 << 30 : (size_t)MOST * 8 * (size_t)self.size + 64;
    for (int i = 0; i < 2; i++) {
        uint64_t private = 0;
        EXPECT(&self, coh_heap_malloc(self.heap, self.room + 64, (void **)&self.shared[i]));
        cuda.alloc(&private, timing ? 256 << 20 : self.room + 64);
        self.private[i] = (char *)(uintptr_t) private;
    }
    for (int i = 0; i < 3; i++) {
        void *memory = NULL;
        cuda.alloc_host(&memory, (size_t)MOST * 8 * (size_t)self.size + 64);
        self.host[i] = memory;
    }
    if (timing) {
        try_graph(&self);
        time_all(&self);
    } else {
        try_onesided(&self);
        for (int kind = COH_COLLECTIVE_ALL_REDUCE; brief && kind <= COH_COLLECTIVE_SCAN_EXCLUSIVE;
             kind++)
            try_kind(&self, (coh_collective_kind)kind, 40001, 10);
        if (!brief)
            try_collectives(&self);
        try_variable(&self);
        try_graph(&self);
    }
    if (!timing || self.failures)
        printf("rank %d of %d, sharing %d: %ld checks, %ld failed\n", self.index, self.size,
               (int)self.sharing, self.checks, self.failures);
    long failures = self.failures;
    EXPECT(&self, coh_barrier(self.world));
    EXPECT(&self, coh_finalize(self.world));
    return (void *)failures;
}

static long run_threads(int ranks)
{
    coh_world *worlds[64];
    pthread_t threads[64];
    long failures = 0;
    rank none = {0};
    EXPECT(&none, coh_init_threads(ranks, NULL, worlds));
    for (int i = 0; i < ranks; i++)
        pthread_create(&threads[i], NULL, run_rank, worlds[i]);
    for (int i = 0; i < ranks; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        failures += (long)failed;
    }
    return failures;
}

int main(int argc, char **argv)
{
    int threads = 0;
    coh_world *world;
    rank none = {0};
    for (int i = 1; i < argc; i++) {
        timing |= strcmp(argv[i], "--time") == 0;
        brief |= strcmp(argv[i], "--brief") == 0;
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = atoi(argv[++i]);
    }
    setenv("COHORT_DETERMINISTIC", "1", 1);
    if (threads
        > 0) /* a queue for each stream; of processes under MPS, four times 32 are too many */
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (!open_driver()) {
        puts("there is no card");
        return 77;
    }
    if (threads > 0)
        return run_threads(threads) != 0;
    EXPECT(&none, coh_init(NULL, &world));
    return run_rank(world) != NULL;
}
