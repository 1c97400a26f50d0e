/* An engine without one-sided memory: what it lacks is refused with a reason, the rest works. */
#include "conform.h"

#include <stdio.h>

/* What a refusal of the call must name. */
static const char *names(const test_rank *self, const char *call, char text[64])
{
    snprintf(text, 64, "%s|%s", call, self->engine);
    return text;
}

static void memory_is_unsupported(test_rank *self)
{
    char mark, text[64];
    void *memory = &mark;
    coh_array array = {COH_I8, 5, 6, 0};
    CHECK_REFUSED(coh_malloc(self->world, 100, &memory), COH_UNSUPPORTED,
                  names(self, "malloc", text));
    CHECK_REFUSED(coh_calloc(self->world, 10, 10, &memory), COH_UNSUPPORTED,
                  names(self, "calloc", text));
    CHECK_REFUSED(coh_align(self->world, 64, 10, &memory), COH_UNSUPPORTED,
                  names(self, "align", text));
    CHECK_REFUSED(coh_realloc(self->world, NULL, 10, &memory), COH_UNSUPPORTED,
                  names(self, "realloc", text));
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
    CASE(memory_is_unsupported, "S19", ON_CHANNEL | ON_MLX, ANY_SIZE),
    CASE(transfers_are_unsupported, "S19", ON_CHANNEL | ON_MLX, ANY_SIZE),
    CASE(meetings_work, "S15", ON_CHANNEL | ON_MLX, ANY_SIZE),
};
CONFORM_COUNT(channel);
