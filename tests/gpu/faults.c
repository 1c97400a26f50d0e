/* Ranks that die while streams wait, and cards that fail: docs/faults.md F5, F28, F41, F42. */
#include "gpu.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM_RANK = 1, COUNT = 20000, WARM = 3 };

static const double LOSS_S = 2; /* until streams have ended and the loss is known */
static const double PATIENCE_S = 20;
static const double STALL_S = 1; /* as the rows' environment says */

struct stamps {
    _Atomic uint64_t died; /* ns */
    _Atomic uint64_t ready, told, gone;
};

static uint64_t now_ns(void)
{
    return (uint64_t)(test_now() * 1e9);
}

static coh_collective_kind kind_of(const char *name)
{
    coh_collective_kind found = COH_COLLECTIVE_BARRIER;
    for (int kind = 0; coh_collective_name((coh_collective_kind)kind); kind++) {
        const char *text = coh_collective_name((coh_collective_kind)kind);
        size_t tail = strlen(text), length = strlen(name);
        if (length >= tail && strcmp(name + length - tail, text) == 0
            && (name[length - tail - 1] == '_' || tail == length))
            if (strlen(coh_collective_name(found)) < tail || found == COH_COLLECTIVE_BARRIER)
                found = (coh_collective_kind)kind;
    }
    return found;
}

static coh_status enqueue(test_rank *self, gpu_rank *gpu, coh_collective_kind kind, float *memory)
{
    coh_team *team = coh_team_world(self->world);
    coh_collective call = COH_COLLECTIVE_INIT;
    if (kind == COH_COLLECTIVE_BARRIER)
        return coh_cuda_barrier(team, gpu->stream);
    call.kind = kind;
    call.team = team;
    call.source = memory;
    call.target = memory + COUNT * self->size;
    call.count = COUNT;
    call.root = VICTIM_RANK; /* what others wait for most */
    return coh_cuda_collective(&call, gpu->stream);
}

static void die(const test_rank *self, struct stamps *stamps)
{
    atomic_store(&stamps->died, now_ns());
    if (test_has_processes(self->engine))
        raise(SIGKILL);
}

static bool prepare(test_rank *self, gpu_rank *gpu, coh_collective_kind kind, float **memory)
{
    size_t bytes = 2 * (size_t)self->size * COUNT * sizeof **memory;
    if (!CHECK_OK(coh_calloc(self->world, bytes, 1, (void **)memory)) || !gpu_open(self, gpu))
        return false;
    for (int i = 0; i < WARM; i++)
        if (!CHECK_OK(enqueue(self, gpu, kind, *memory)))
            return false;
    return gpu_finish(self, gpu) && CHECK_OK(coh_barrier(self->world));
}

/* Of a kind that not all wait in (the root of a scatter goes on), the barrier behind it is what hears. */
static void survive(test_rank *self, gpu_rank *gpu, coh_status enqueued, struct stamps *stamps)
{
    CHECK(enqueued == COH_OK || enqueued == COH_PEER_LOST);
    if (enqueued == COH_OK)
        enqueued = coh_cuda_barrier(coh_team_world(self->world), gpu->stream);
    CHECK(enqueued == COH_OK || enqueued == COH_PEER_LOST);
    CHECK(gpu_ends_within(gpu, PATIENCE_S));
    coh_status status = COH_OK;
    double until = test_now() + PATIENCE_S;
    while ((status = coh_cuda_status(self->world)) == COH_OK && test_now() < until)
        usleep(1000);
    CHECK_REFUSED(status, COH_PEER_LOST, "rank 1");
    double took = test_now() - (double)atomic_load(&stamps->died) * 1e-9;
    if (took > LOSS_S)
        test_fail("the streams had ended after %.2f s, the limit is %.0f", took, LOSS_S);
    CHECK_STATUS(coh_cuda_barrier(coh_team_world(self->world), gpu->stream), COH_PEER_LOST);
    /* Nobody leaves before all have heard: to leave is to be lost too. */
    atomic_fetch_add(&stamps->told, 1);
    CHECK(test_await(&stamps->told, (uint64_t)self->size - 1, PATIENCE_S));
    (void)coh_finalize(self->world);
    self->world = NULL;
}

/* The victim never makes the call that the others' streams wait in. */
static void killed_before_its_kernel(test_rank *self)
{
    struct stamps *stamps = self->shared;
    gpu_rank gpu;
    float *memory;
    coh_collective_kind kind = kind_of(self->row->name);
    if (!prepare(self, &gpu, kind, &memory))
        return;
    if (self->rank == VICTIM_RANK) {
        CHECK(test_await(&stamps->ready, (uint64_t)self->size - 1, PATIENCE_S));
        test_sleep(0.02); /* the others' kernels wait by now */
        self->world = test_has_processes(self->engine) ? self->world : NULL;
        die(self, stamps);
        return; /* a thread ends without finalize */
    }
    coh_status status = enqueue(self, &gpu, kind, memory);
    atomic_fetch_add(&stamps->ready, 1);
    survive(self, &gpu, status, stamps);
}

static void pause_of_the_stream(void *arg)
{
    (void)arg;
    usleep(300000);
}

/* What happens to one client of MPS on the card may happen to all clients of its server, other tests among them. */
static bool may_break_the_server(const gpu_rank *gpu)
{
    if (gpu->sharing != COH_CUDA_MPS || getenv("COHORT_TEST_BREAK_MPS"))
        return true;
    test_skip("under MPS with COHORT_TEST_BREAK_MPS=1, on a server of its own");
    return false;
}

/* Its own kernel waits for the others, whose streams are held back, when it is killed. Under MPS the other
 * clients of the server may be hurt by that: what comes then is the driver's error, not a hang. */
static void killed_in_its_kernel(test_rank *self)
{
    struct stamps *stamps = self->shared;
    gpu_rank gpu;
    float *memory;
    if (!prepare(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, &memory))
        return;
    if (!may_break_the_server(&gpu))
        return;
    if (self->rank != VICTIM_RANK)
        CHECK_EQ(gpu.driver->host_function(gpu.stream, pause_of_the_stream, NULL), 0);
    coh_status status = enqueue(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, memory);
    atomic_fetch_add(&stamps->ready, 1);
    if (self->rank == VICTIM_RANK) {
        CHECK(test_await(&stamps->ready, (uint64_t)self->size, PATIENCE_S));
        test_sleep(0.05);
        die(self, stamps);
    }
    CHECK(status == COH_OK || status == COH_PEER_LOST);
    CHECK(gpu_ends_within(&gpu, PATIENCE_S));
    double until = test_now() + PATIENCE_S;
    while ((status = coh_cuda_status(self->world)) == COH_OK && test_now() < until)
        usleep(1000);
    double took = test_now() - (double)atomic_load(&stamps->died) * 1e-9;
    CHECK(status == COH_PEER_LOST || status == COH_TRANSPORT);
    fprintf(stderr, "  killed in its kernel: rank %d heard %s after %.2f s: %s\n", self->rank,
            coh_status_name(status), took, coh_last_error());
    atomic_fetch_add(&stamps->told, 1);
    CHECK(test_await(&stamps->told, (uint64_t)self->size - 1, PATIENCE_S));
    (void)coh_finalize(self->world);
    self->world = NULL;
}

/* A wait for a signal that a lost rank would have sent. */
static void killed_before_its_signal(test_rank *self)
{
    struct stamps *stamps = self->shared;
    gpu_rank gpu;
    uint64_t *word;
    if (!CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)) || !gpu_open(self, &gpu)
        || !CHECK_OK(coh_barrier(self->world)))
        return;
    if (self->rank == VICTIM_RANK) {
        CHECK(test_await(&stamps->ready, (uint64_t)self->size - 1, PATIENCE_S));
        self->world = test_has_processes(self->engine) ? self->world : NULL;
        die(self, stamps);
        return;
    }
    coh_status status = coh_cuda_wait_until(self->world, word, COH_EQ, 1, VICTIM_RANK, gpu.stream);
    atomic_fetch_add(&stamps->ready, 1);
    survive(self, &gpu, status, stamps);
}

/* It is there, but stopped: streams end as calls of the host do. Where processes take turns nobody sees what a
 * stream waits for. */
static void stopped_before_its_kernel(test_rank *self)
{
    struct stamps *stamps = self->shared;
    gpu_rank gpu;
    float *memory;
    if (!prepare(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, &memory) || gpu.sharing == COH_CUDA_TURNS)
        return;
    if (self->rank == VICTIM_RANK) {
        CHECK(test_await(&stamps->ready, (uint64_t)self->size - 1, PATIENCE_S));
        atomic_store(&stamps->died, now_ns());
        raise(SIGSTOP);
        return;
    }
    CHECK_OK(enqueue(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, memory));
    atomic_fetch_add(&stamps->ready, 1);
    CHECK(gpu_ends_within(&gpu, PATIENCE_S));
    double took = test_now() - (double)atomic_load(&stamps->died) * 1e-9;
    if (took < STALL_S)
        test_fail("the stream ended after %.2f s; COHORT_STALL is %.1f s", took, STALL_S);
    CHECK_REFUSED(coh_cuda_status(self->world), COH_STALLED, "rank 1");
    atomic_fetch_add(&stamps->told, 1);
    CHECK(test_await(&stamps->told, (uint64_t)self->size - 1, PATIENCE_S));
    (void)coh_finalize(self->world);
    self->world = NULL;
}

/* One that runs may be as late as it likes, and is waited for. */
static void late_for_its_kernel(test_rank *self)
{
    gpu_rank gpu;
    float *memory;
    if (!prepare(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, &memory))
        return;
    if (self->rank == VICTIM_RANK)
        test_sleep(3 * STALL_S);
    CHECK_OK(enqueue(self, &gpu, COH_COLLECTIVE_ALL_REDUCE, memory));
    gpu_finish(self, &gpu);
    CHECK_OK(coh_barrier(self->world));
    gpu_close(&gpu);
    CHECK_OK(coh_free(self->world, memory));
}

/* The program's own kernel stores where nothing is: told as the card's failure, in the driver's words. */
static void kernel_that_breaks_the_context(test_rank *self)
{
    static const char text[] = ".version 6.5\n.target sm_52\n.address_size 64\n"
                               ".visible .entry bad() {\n"
                               "  .reg .u64 %at; mov.u64 %at, 16; st.global.u32 [%at], 1; ret;\n"
                               "}\n";
    gpu_rank gpu;
    void *module, *function;
    float *memory;
    CHECK_OK(coh_calloc(self->world, 64, sizeof *memory, (void **)&memory));
    if (!gpu_open(self, &gpu) || !may_break_the_server(&gpu)
        || !CHECK_EQ(gpu.driver->load(&module, text), 0)
        || !CHECK_EQ(gpu.driver->function(&function, module, "bad"), 0))
        return;
    CHECK_EQ(gpu.driver->launch(function, 1, 1, 1, 1, 1, 1, 0, gpu.stream, NULL, NULL), 0);
    (void)coh_cuda_all_reduce(coh_team_world(self->world), COH_F32, COH_SUM, memory, memory, 64,
                              gpu.stream);
    CHECK(gpu_ends_within(&gpu, PATIENCE_S));
    CHECK_REFUSED(coh_cuda_status(self->world), COH_TRANSPORT, "illegal");
    CHECK_STATUS(coh_cuda_barrier(coh_team_world(self->world), gpu.stream), COH_TRANSPORT);
    (void)coh_finalize(self->world);
    self->world = NULL;
}

#define KILLED_BEFORE(operation)                                                                 \
    {                                                                                            \
        .name = "killed_before_" operation, .rows = "F28 F41", .body = killed_before_its_kernel, \
        .engines = ON_GPU, .sizes = SIZE(4), .victims = VICTIM(VICTIM_RANK), .limit_s = 60       \
    }

const test_case gpu_faults[] = {
    KILLED_BEFORE("barrier"),
    KILLED_BEFORE("all_reduce"),
    KILLED_BEFORE("reduce"),
    KILLED_BEFORE("reduce_scatter"),
    KILLED_BEFORE("all_gather"),
    KILLED_BEFORE("gather"),
    KILLED_BEFORE("scatter"),
    KILLED_BEFORE("broadcast"),
    KILLED_BEFORE("all_to_all"),
    KILLED_BEFORE("scan"),
    KILLED_BEFORE("scan_exclusive"),
    CASE(killed_before_its_signal, "F28 F41", ON_GPU, SIZE(4), .victims = VICTIM(VICTIM_RANK),
         .limit_s = 60),
    CASE(killed_in_its_kernel, "F41", ON_SHM | ON_CARD, SIZE(4), .victims = VICTIM(VICTIM_RANK),
         .limit_s = 60),
    CASE(stopped_before_its_kernel, "F5 F41", ON_SHM | ON_CARD, SIZE(4),
         .victims = VICTIM(VICTIM_RANK), .environment = "COHORT_STALL=1", .limit_s = 60),
    CASE(late_for_its_kernel, "F5", ON_GPU, SIZE(4),
         .environment = "COHORT_STALL=1 COHORT_WARN=0.3", .limit_s = 60),
    CASE(kernel_that_breaks_the_context, "F42", ON_SHM | ON_CARD, SIZE(1), .limit_s = 60),
};
GPU_COUNT(faults);
