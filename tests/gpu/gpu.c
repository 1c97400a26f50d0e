#include "gpu.h"

#include "harness/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lives as long as the process: a driver that was opened is not opened again. */
bool gpu_open(test_rank *self, gpu_rank *gpu)
{
    *gpu = (gpu_rank){.dice = self->seed * 31 + (uint64_t)self->rank + 1};
    gpu->driver = cohi_card_open();
    return CHECK(gpu->driver != NULL)
           && CHECK_OK(coh_cuda_device(self->world, &gpu->device, &gpu->sharing))
           && CHECK(gpu->device >= 0) && CHECK_OK(cohi_card_use(gpu->device))
           && CHECK_EQ(gpu->driver->stream_create(&gpu->stream, 1), 0);
}

void gpu_close(gpu_rank *gpu)
{
    CHECK_EQ(gpu->driver->stream_destroy(gpu->stream), 0);
    CHECK_EQ(gpu->driver->release(gpu->device), 0);
}

bool gpu_finish(test_rank *self, gpu_rank *gpu)
{
    int error = gpu->driver->synchronize(gpu->stream);
    return CHECK_OK(cohi_card_status(error, "cuStreamSynchronize"))
           && CHECK_OK(coh_cuda_status(self->world));
}

bool gpu_ends_within(gpu_rank *gpu, double seconds)
{
    enum { NOT_READY = 600 };
    double until = test_now() + seconds;
    while (gpu->driver->query(gpu->stream) == NOT_READY) {
        if (test_now() > until)
            return false;
        usleep(200);
    }
    return true;
}

static void pause_here(void *microseconds)
{
    usleep((useconds_t)(uintptr_t)microseconds);
}

void gpu_delay(gpu_rank *gpu)
{
    const char *most = getenv("COHORT_TEST_DELAY");
    if (!most || atoi(most) <= 0)
        return;
    uintptr_t pause = (uintptr_t)(test_random(&gpu->dice) % (uint64_t)atoi(most));
    CHECK_EQ(gpu->driver->host_function(gpu->stream, pause_here, (void *)pause), 0);
}

void *gpu_private(gpu_rank *gpu, size_t bytes)
{
    void *memory = NULL;
    CHECK_EQ(gpu->driver->allocate(&memory, bytes), 0);
    return memory;
}

void *gpu_pinned(gpu_rank *gpu, size_t bytes)
{
    void *memory = NULL;
    CHECK_EQ(gpu->driver->allocate_pinned(&memory, bytes, 0), 0);
    return memory;
}

bool gpu_captures(const test_rank *self, const gpu_rank *gpu)
{
    bool several_hosts = test_has_links(self->engine) && test_hosts > 1 && self->size > 1;
    return gpu->sharing != COH_CUDA_TURNS && !several_hosts;
}

int main(int argc, char **argv)
{
#define ROWS(name)  gpu_##name,
#define COUNT(name) gpu_##name##_count,
    const test_case *const tables[] = {GPU_TABLES(ROWS)};
    const size_t counts[] = {GPU_TABLES(COUNT)};
#undef ROWS
#undef COUNT
    test_heaps_choose_card();
    return test_suite(argc, argv, tables, counts, sizeof tables / sizeof *tables);
}
