#include "core/exit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Time for stdio to be flushed; then the process ends without. */
enum { FLUSH_MS = 500 };

/* A thread of the program may hold a stream's lock for ever; the kernel ends the process then. */
static void arm_kill(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec when = {.it_value = {.tv_nsec = FLUSH_MS * 1000000L}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &when, NULL);
}

void cohi_exit_if_asked(coh_world *world)
{
    uint64_t asked = atomic_load(&world->board->head->global_exit);
    if (!(asked & COHI_ENDED))
        return;
    arm_kill();
    fflush(NULL);
    _exit((int)(asked & 0xff));
}

coh_status coh_global_exit(coh_world *world, int code)
{
    static const char call[] = "coh_global_exit";
    coh_status status = cohi_world_enter(world, call);
    if (status != COH_OK)
        return status;
    if (code < 0 || code > 255)
        return cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                               "%d is not an exit code; a process can have 0 to 255", code);
    uint64_t none = 0;
    atomic_compare_exchange_strong(&world->board->head->global_exit, &none,
                                   COHI_ENDED | (uint64_t)code);
    exit(code);
}
