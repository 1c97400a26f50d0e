#include "device/fork.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint forks;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void start_counting(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

unsigned cohi_fork_count(void)
{
    pthread_once(&once, start_counting);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

coh_status cohi_fork_check(const char *call, const char *what, unsigned made)
{
    if (atomic_load_explicit(&forks, memory_order_relaxed) == made)
        return COH_OK;
    return coh_fail(COH_FORKED, "%s: the %s belongs to the parent of this process", call, what);
}
