/* What there is, and heaps on it: docs/semantics.md S53 to S55, docs/faults.md F42 and F43. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

static void cards_are_told(test_rank *self)
{
    int count = 0, device = -2;
    coh_cuda_sharing sharing;
    coh_cuda_card card = {.size = sizeof card};
    CHECK_OK(coh_cuda_count(&count));
    CHECK(count >= 1);
    CHECK_OK(coh_cuda_query(0, &card));
    CHECK(card.name[0] != '\0' && card.major >= 8 && card.multiprocessors > 0);
    CHECK(card.memory > 0 && card.driver >= 12000);
    CHECK_STATUS(coh_cuda_query(count, &card), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_query(-1, &card), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_cuda_query(0, NULL), COH_INVALID_ARGUMENT);
    card.size = 3;
    CHECK_REFUSED(coh_cuda_query(0, &card), COH_INVALID_ARGUMENT, "size|3");
    CHECK_OK(coh_cuda_device(self->world, &device, &sharing));
    CHECK(device >= 0 && device < count);
    CHECK_STATUS(coh_cuda_device(NULL, &device, &sharing), COH_INVALID_ARGUMENT);
}

/* The mode is what the ranks are, and what the runner of the suite says that it made. */
static void sharing_is_found(test_rank *self)
{
    static const char *const names[] = {"alone", "threads", "mps", "turns"};
    const char *wanted = getenv("COHORT_TEST_SHARING");
    int device, count = 0;
    coh_cuda_sharing sharing;
    CHECK_OK(coh_cuda_count(&count));
    CHECK_OK(coh_cuda_device(self->world, &device, &sharing));
    if (self->size == 1)
        CHECK_EQ(sharing, COH_CUDA_ALONE);
    else if (!test_has_processes(self->engine) && count == 1)
        CHECK_EQ(sharing, COH_CUDA_THREADS);
    else if (count == 1 && !test_has_links(self->engine))
        CHECK(sharing == COH_CUDA_MPS || sharing == COH_CUDA_TURNS);
    if (wanted && self->size > 1 && count == 1 && strcmp(self->engine, "shm") == 0)
        CHECK(strcmp(names[sharing], wanted) == 0);
}

static coh_heap *make_heap(test_rank *self, uint64_t bytes)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    options.kind = COH_HEAP_CUDA;
    options.bytes = bytes;
    CHECK_OK(coh_heap_create(self->world, &options, &heap));
    return heap;
}

/* A card that is not there, and another than the rank has. */
static void cards_that_are_not_there(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap = NULL;
    int count = 0;
    CHECK_OK(coh_cuda_count(&count));
    options.kind = COH_HEAP_CUDA;
    options.device = count;
    CHECK_STATUS(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT);
    options.device = -7;
    CHECK_STATUS(coh_heap_create(self->world, &options, &heap), COH_INVALID_ARGUMENT);
    CHECK(heap == NULL);
    CHECK_OK(coh_barrier(self->world));
}

static void heaps_come_and_go(test_rank *self)
{
    uint64_t *word, value = 5, found = 0;
    for (int round = 0; round < 5 && !test_failed(); round++) {
        coh_heap *heap = make_heap(self, 256 * 1024 * 1024);
        CHECK_OK(coh_heap_malloc(heap, 64 * 1024 * 1024, (void **)&word));
        CHECK_OK(coh_put(self->world, word, &value, sizeof value, gpu_right(self)));
        CHECK_OK(coh_barrier(self->world));
        CHECK_OK(coh_get(self->world, &found, word, sizeof found, self->rank));
        CHECK_EQ(found, value);
        CHECK_OK(coh_heap_destroy(heap));
        CHECK_STATUS(coh_put(self->world, word, &value, sizeof value, self->rank),
                     COH_NOT_SYMMETRIC);
        value++;
    }
}

/* The address that kernels of this rank reach a peer's memory by, where they can. */
static void addresses_for_kernels(test_rank *self)
{
    gpu_rank gpu;
    uint64_t *words, *theirs, value = 100 + (uint64_t)self->rank, found = 0;
    CHECK_OK(coh_calloc(self->world, 2, sizeof *words, (void **)&words));
    if (!gpu_open(self, &gpu))
        return;
    if (test_has_links(self->engine) && !test_same_host(self, gpu_right(self))) {
        CHECK_STATUS(coh_ptr(self->world, words, gpu_right(self), (void **)&theirs),
                     COH_UNSUPPORTED);
    } else {
        CHECK_OK(coh_ptr(self->world, words, gpu_right(self), (void **)&theirs));
        CHECK(gpu_right(self) != self->rank || theirs == words);
        CHECK_EQ(gpu.driver->copy(theirs, &value, sizeof value), 0);
        CHECK_EQ(gpu.driver->synchronize(NULL), 0);
    }
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(gpu.driver->copy(&found, words, sizeof found), 0);
    bool reached = !test_has_links(self->engine) || test_same_host(self, gpu_left(self));
    CHECK_EQ(found, reached ? 100 + (uint64_t)gpu_left(self) : 0);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_free(self->world, words));
    gpu_close(&gpu);
}

/* Beyond the card: no memory, in words that do not speak of a lost rank; and it goes on. */
static void more_than_the_card_has(test_rank *self)
{
    coh_cuda_card card = {.size = sizeof card};
    void *memory = NULL;
    int device;
    coh_cuda_sharing sharing;
    CHECK_OK(coh_cuda_device(self->world, &device, &sharing));
    CHECK_OK(coh_cuda_query(device, &card));
    if (strcmp(self->engine, "nvshmem") == 0) { /* it takes all of a heap when that is made */
        coh_heap_options options = COH_HEAP_OPTIONS_INIT;
        coh_heap *none = NULL;
        options.kind = COH_HEAP_CUDA;
        options.bytes = 2 * card.memory;
        CHECK_REFUSED(coh_heap_create(self->world, &options, &none), COH_NO_MEMORY,
                      "card|bytes|free");
        CHECK(none == NULL);
        CHECK_OK(coh_cuda_status(self->world));
        return;
    }
    coh_heap *heap = make_heap(self, 4 * card.memory);
    CHECK_REFUSED(coh_heap_malloc(heap, 2 * card.memory, &memory), COH_NO_MEMORY,
                  "card|bytes|free");
    CHECK(memory == NULL);
    CHECK_OK(coh_heap_malloc(heap, 1000, &memory));
    CHECK_OK(coh_heap_destroy(heap));
    CHECK_OK(coh_cuda_status(self->world));
}

const test_case gpu_cards[] = {
    CASE(cards_are_told, "S53", ON_GPU, GPU_SIZES),
    CASE(sharing_is_found, "F43", ON_GPU, GPU_SIZES),
    CASE(cards_that_are_not_there, "F17 S55", ON_GPU, GPU_SIZES),
    CASE(heaps_come_and_go, "S53 S55", ON_GPU, GPU_SIZES),
    CASE(addresses_for_kernels, "S24", ON_GPU, GPU_SIZES),
    CASE(more_than_the_card_has, "F42", ON_GPU, SIZE(1) | SIZE(2)),
};
GPU_COUNT(cards);
