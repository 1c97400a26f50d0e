#include "bench/bench.h"

#include <pthread.h>
#include <sched.h>

static cpu_set_t allowed;

static void look(void)
{
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
}

void cohi_bench_move_to_core(int index)
{
    static pthread_once_t looked = PTHREAD_ONCE_INIT;
    pthread_once(&looked, look);
    if (CPU_COUNT(&allowed) == 0)
        return;
    int before = index % CPU_COUNT(&allowed);
    size_t core = 0;
    while (!CPU_ISSET(core, &allowed) || before-- > 0)
        core++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}
