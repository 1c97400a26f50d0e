/* heap.c - the suite on a heap that is not the world's own (--heap). */
#include "page.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int further; /* heaps that each world gets beside its own */
static bool on_card;

/* The heap that a world's allocations come from; each is set by the rank's own thread. */
static struct chosen {
    _Atomic(coh_world *) world;
    coh_heap *heap;
} chosen[TEST_RANKS_MAX];

void test_heaps_choose(int count)
{
    further = count;
}

void test_heaps_choose_card(void)
{
    further = 1;
    on_card = true;
}

bool test_uses_further_heap(void)
{
    return further > 0;
}

bool test_uses_card(void)
{
    return on_card;
}

static bool opens_card(void)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_options joining = COH_OPTIONS_INIT;
    coh_world *world;
    coh_heap *heap;
    joining.engine = "threads";
    options.kind = COH_HEAP_CUDA;
    bool opened = coh_init_threads(1, &joining, &world) == COH_OK
                  && coh_heap_create(world, &options, &heap) == COH_OK;
    if (!opened)
        fprintf(stderr, "skipped: no heap on a card: %s\n", coh_last_error());
    return opened && coh_finalize(world) == COH_OK;
}

/* In a process of its own: a driver that was opened does not survive the forks of the cases. */
bool test_card_is_missing(void)
{
    int end = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(opens_card() ? 0 : 1);
    return child < 0 || waitpid(child, &end, 0) != child || end != 0;
}

bool test_store(test_rank *self, void *symmetric, const void *bytes, size_t count)
{
    return CHECK_OK(coh_put(self->world, symmetric, bytes, count, coh_rank(self->world)))
           && CHECK_OK(coh_quiet(self->world));
}

bool test_load(test_rank *self, void *bytes, const void *symmetric, size_t count)
{
    return CHECK_OK(coh_get(self->world, bytes, symmetric, count, coh_rank(self->world)));
}

bool test_is_zero(test_rank *self, const void *symmetric, size_t count)
{
    unsigned char *bytes = malloc(count);
    bool good = CHECK(bytes != NULL) && test_load(self, bytes, symmetric, count);
    for (size_t i = 0; good && i < count; i++)
        good = CHECK_EQ(bytes[i], 0);
    free(bytes);
    return good;
}

void test_heaps_make(test_rank *self)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    struct chosen *mine = &chosen[self->rank];
    options.bytes = self->row->heap;
    options.kind = on_card ? COH_HEAP_CUDA : COH_HEAP_HOST;
    for (int i = 0; i < further; i++)
        if (!CHECK_OK(coh_heap_create(self->world, &options, &mine->heap)))
            return;
    if (further > 0)
        mine->world = self->world;
}

static coh_heap *heap_of(const coh_world *world)
{
    for (int rank = 0; world && rank < TEST_RANKS_MAX; rank++)
        if (chosen[rank].world == world)
            return chosen[rank].heap;
    return NULL;
}

coh_status test_malloc(coh_world *world, size_t bytes, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_malloc(heap, bytes, pointer) : (coh_malloc)(world, bytes, pointer);
}

coh_status test_calloc(coh_world *world, size_t count, size_t size, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_calloc(heap, count, size, pointer)
                : (coh_calloc)(world, count, size, pointer);
}

coh_status test_align(coh_world *world, size_t alignment, size_t bytes, void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_align(heap, alignment, bytes, pointer)
                : (coh_align)(world, alignment, bytes, pointer);
}

coh_status test_realloc(coh_world *world, void *pointer, size_t bytes, void **resized)
{
    coh_heap *heap = heap_of(world);
    return heap && !pointer ? coh_heap_malloc(heap, bytes, resized)
                            : (coh_realloc)(world, pointer, bytes, resized);
}

coh_status test_array_malloc(coh_world *world, coh_dtype dtype, size_t count, coh_array *array,
                             void **pointer)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_array_malloc(heap, dtype, count, array, pointer)
                : (coh_array_malloc)(world, dtype, count, array, pointer);
}

coh_status test_heap_query(coh_world *world, coh_heap_stats *stats)
{
    coh_heap *heap = heap_of(world);
    return heap ? coh_heap_usage(heap, stats) : (coh_heap_query)(world, stats);
}
