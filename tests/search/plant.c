#include "search.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_process(const search_rank *self)
{
    return strcmp(self->program->engine, "shm") == 0;
}

struct strike {
    double delay;
    int signal;
};

static void *strike_later(void *arg)
{
    const struct strike *strike = arg;
    test_sleep(strike->delay);
    kill(getpid(), strike->signal);
    return NULL;
}

/* At once, or while the rank is inside some call; true: the rank goes on until then. */
static bool strike_by_signal(search_rank *self, int signal)
{
    static struct strike strike; /* a process has one victim at most */
    pthread_t thread;
    if (!is_process(self))
        return false;
    if (self->program->fault_delay == 0)
        return kill(getpid(), signal) == 0;
    strike = (struct strike){.delay = self->program->fault_delay, .signal = signal};
    return pthread_create(&thread, NULL, strike_later, &strike) == 0;
}

/* The process ends without finalize; a thread does when the victim's part is over. */
static bool leave_without_a_word(const search_rank *self)
{
    if (is_process(self) && self->program->seed % 2)
        exit(3);
    if (is_process(self))
        _exit(0);
    return false;
}

static bool leave_early(search_rank *self)
{
    search_join_all(self);
    (void)coh_finalize(self->world);
    return false;
}

void search_await_strike(const search_rank *self)
{
    const search_program *program = self->program;
    bool by_signal = program->fault == FAULT_KILLED || program->fault == FAULT_STOPPED;
    if (by_signal && program->victim == self->rank && is_process(self))
        test_sleep(program->fault_delay + 10);
}

bool search_strike(search_rank *self, int step)
{
    const search_program *program = self->program;
    if (program->victim != self->rank || program->fault_step != step)
        return true;
    bool goes_on = true;
    if (program->fault == FAULT_KILLED)
        goes_on = strike_by_signal(self, SIGKILL);
    else if (program->fault == FAULT_STOPPED)
        goes_on = strike_by_signal(self, SIGSTOP);
    else if (program->fault == FAULT_EXITED)
        goes_on = leave_without_a_word(self);
    else if (program->fault == FAULT_LEFT)
        goes_on = leave_early(self);
    self->gone = !goes_on;
    return goes_on;
}
