/*
 * gpu.h - operations in the order of a stream, on heaps of a card: what include/cohort-cuda.h promises.
 *
 * The suite needs a card; without one it says why and exits 77. coh_malloc and the like of a body allocate on
 * the card (harness.h). COHORT_TEST_DELAY=MICROSECONDS puts a delay of up to that much, by chance, before
 * operations on the streams; COHORT_TEST_SHARING=MODE names what coh_cuda_device must say.
 *
 * Ranks that are threads have one context. So bodies never wait for all of it, in which another rank's kernel may be
 * waiting for this one: copies are waited for by synchronize(NULL), which knows of no stream that is made here.
 */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include "harness/harness.h"
#include "tools/card.h"

#include <cohort-cuda.h>

/* X(name of the table) */
#define GPU_TABLES(X) \
    X(cards)          \
    X(streams)        \
    X(words)          \
    X(collectives)    \
    X(bits)           \
    X(graphs)         \
    X(refused)        \
    X(host_forms)     \
    X(by_calls)       \
    X(faults)

#define GPU_DECLARE(name)                \
    extern const test_case gpu_##name[]; \
    extern const size_t gpu_##name##_count;
GPU_TABLES(GPU_DECLARE)
#undef GPU_DECLARE

#define GPU_COUNT(name) const size_t gpu_##name##_count = sizeof gpu_##name / sizeof *gpu_##name

#define ON_GPU      (ON_THREADS | ON_SHM | ON_TCP | ON_CARD)
#define ONE_HOST    (ON_THREADS | ON_SHM | ON_CARD)
#define GPU_SIZES   (SIZE(1) | SIZE(2) | SIZE(4) | SIZE(8))
#define GPU_SEVERAL (SIZE(2) | SIZE(4) | SIZE(8))

/* A rank's stream, and what goes with it. */
typedef struct gpu_rank {
    const cohi_card_driver *driver;
    coh_cuda_stream stream;
    int device;
    coh_cuda_sharing sharing;
    uint64_t dice;
} gpu_rank;

/* Opens the driver for the calling thread, and makes a stream on the card that the world's heaps are on. */
bool gpu_open(test_rank *self, gpu_rank *gpu);
void gpu_close(gpu_rank *gpu);

/* Waits for the stream, and checks that nothing failed on it. */
bool gpu_finish(test_rank *self, gpu_rank *gpu);

/* The same within `seconds`, without a look at what became of it; false: the stream goes on. */
bool gpu_ends_within(gpu_rank *gpu, double seconds);

/* With COHORT_TEST_DELAY a pause of random length on the stream. */
void gpu_delay(gpu_rank *gpu);

/* Memory of the card that is not symmetric, and pinned memory of the host. */
void *gpu_private(gpu_rank *gpu, size_t bytes);
void *gpu_pinned(gpu_rank *gpu, size_t bytes);

/* Whether operations can be captured here; if not, checks that trying says so. */
bool gpu_captures(const test_rank *self, const gpu_rank *gpu);

static inline int gpu_right(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static inline int gpu_left(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

#endif
