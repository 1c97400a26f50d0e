/* An engine without one-sided memory: what it lacks is refused with a reason, the rest works. */
#include "conform.h"

static void memory_is_unsupported(test_rank *self)
{
    char mark;
    void *memory = &mark;
    coh_array array = {COH_I8, 5, 6, 0};
    CHECK_REFUSED(coh_malloc(self->world, 100, &memory), COH_UNSUPPORTED, "malloc|sim:channel");
    CHECK_REFUSED(coh_calloc(self->world, 10, 10, &memory), COH_UNSUPPORTED, "calloc|sim:channel");
    CHECK_REFUSED(coh_align(self->world, 64, 10, &memory), COH_UNSUPPORTED, "align|sim:channel");
    CHECK_REFUSED(coh_realloc(self->world, NULL, 10, &memory), COH_UNSUPPORTED,
                  "realloc|sim:channel");
    CHECK_STATUS(coh_array_malloc(self->world, COH_I8, 10, &array, &memory), COH_UNSUPPORTED);
    CHECK(memory == &mark);
    CHECK_EQ(array.count, 6);
    CHECK_OK(coh_barrier(self->world));
}

static void transfers_are_unsupported(test_rank *self)
{
    char byte = 1;
    void *direct;
    coh_view view = {.length = 1};
    coh_heap_stats stats = {.size = sizeof stats};
    CHECK_STATUS(coh_put(self->world, &byte, &byte, 1, 0), COH_UNSUPPORTED);
    CHECK_STATUS(coh_get(self->world, &byte, &byte, 1, 0), COH_UNSUPPORTED);
    CHECK_STATUS(coh_put_view(self->world, view, &byte, 1), COH_UNSUPPORTED);
    CHECK_STATUS(coh_get_view(self->world, &byte, 1, view), COH_UNSUPPORTED);
    CHECK_STATUS(coh_ptr(self->world, &byte, 0, &direct), COH_UNSUPPORTED);
    CHECK_STATUS(coh_heap_query(self->world, &stats), COH_UNSUPPORTED);
    CHECK_OK(coh_barrier(self->world));
}

/* Nothing was issued, so there is nothing to order or complete. */
static void meetings_work(test_rank *self)
{
    for (int i = 0; i < 20; i++) {
        CHECK_OK(coh_fence(self->world));
        CHECK_OK(coh_quiet(self->world));
        CHECK_OK(coh_sync(self->world));
        if (!CHECK_OK(coh_barrier(self->world)))
            return;
    }
}

const test_case conform_channel[] = {
    CASE(memory_is_unsupported, "S19", ON_CHANNEL, ANY_SIZE),
    CASE(transfers_are_unsupported, "S19", ON_CHANNEL, ANY_SIZE),
    CASE(meetings_work, "S15", ON_CHANNEL, ANY_SIZE),
};
CONFORM_COUNT(channel);
