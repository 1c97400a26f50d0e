#include "memory/host_copy.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "memory/profile.h"

/* ---- where the source is ---- */

enum { PAGE_BYTES = 4096, LINE_BYTES = 64, LINES = 8, LINE_STEP = 7 };

static char look_at(const char *page, int line)
{
    return *(const volatile char *)(page + (size_t)line * LINE_BYTES);
}

/* Keeps the loads between the two readings of the clock. */
static void finish_loads(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#else
    cohi_full_fence();
#endif
}

/* Lines apart from each other, since the neighbour is prefetched with it. */
uint64_t cohi_host_look_ns(const void *memory, size_t bytes)
{
    const char *first = (const char *)memory + bytes / 4 / PAGE_BYTES * PAGE_BYTES;
    const char *second = (const char *)memory + bytes / 2 / PAGE_BYTES * PAGE_BYTES;
    look_at(first, 0); /* brings the translations of both pages */
    look_at(second, 0);
    finish_loads();
    uint64_t start = cohi_now_ns();
    finish_loads();
    for (int i = 1; i <= LINES; i++) {
        look_at(first, i * LINE_STEP);
        look_at(second, i * LINE_STEP);
    }
    finish_loads();
    return cohi_now_ns() - start;
}

/* Whether memory is in no cache, as far as that is worth finding out. Wrong now and then, as clocks
 * are. */
static bool is_far(const void *memory, size_t bytes)
{
    return bytes >= (size_t)cohi_profile_now(COHI_ROW_far_from)
           && (double)cohi_host_look_ns(memory, bytes) >= cohi_profile_now(COHI_ROW_far_ns);
}

/* ---- how to copy ---- */

/* The row of copies of so many bytes: the power of two that is nearest, so that 1.3 MiB are copied
 * as 1 MiB and 1.4 as 2 MiB. */
static cohi_row row_of(size_t bytes)
{
    int log = 63 - __builtin_clzll(bytes + bytes / 2);
    if (log > COHI_COPY_MOST_LOG)
        return COHI_ROW_copy_64M;
    return COHI_ROW_copy_256K + (cohi_row)(log - COHI_COPY_LEAST_LOG);
}

_Static_assert(COHI_ROW_copy_16M - COHI_ROW_copy_256K == COHI_COPY_MOST_LOG - COHI_COPY_LEAST_LOG,
               "a row for each power of two");
_Static_assert(COHI_HOST_PLAIN_BYTES * 3 / 2 >= 1 << COHI_COPY_LEAST_LOG, "each has a row");

/* Whether what all ranks touch is more than their last-level cache holds. */
static bool overflows(size_t all, int ranks)
{
    double sharers = cohi_profile_now(COHI_ROW_copy_sharers);
    double most = ranks < sharers ? ranks : sharers;
    return (double)all * most >= cohi_profile_now(COHI_ROW_copy_shared);
}

cohi_copy_form cohi_host_copy_form(const void *source, size_t bytes, size_t all, int ranks)
{
    if (all < COHI_HOST_PLAIN_BYTES)
        return COHI_COPY_LIBC;
    cohi_row row = ranks > 1 && overflows(all, ranks) ? COHI_ROW_copy_64M : row_of(all);
    cohi_copy_form form = (cohi_copy_form)cohi_profile_now(row);
    if (!cohi_copy_form_streams(form) && is_far(source, bytes))
        return (cohi_copy_form)cohi_profile_now(COHI_ROW_copy_far);
    return form;
}

void cohi_host_copy_large(void *target, const void *source, size_t bytes)
{
    cohi_copy_by(cohi_host_copy_form(source, bytes, bytes, 1), target, source, bytes);
}

bool cohi_host_should_stream(const void *source, size_t bytes, size_t all, int ranks, size_t from)
{
    enum { LEAST = 16 << 10, IF_FAR_FROM = 512 << 10 };
    if (bytes < LEAST || all < IF_FAR_FROM)
        return false;
    return all >= from || overflows(all, ranks) || is_far(source, bytes);
}
