#include "rendezvous/bounded.h"

#include "base/clock.h"
#include "base/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct call {
    void (*work)(void *);
    void (*discard)(void *);
    void *arg;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, abandoned;
};

static void free_call(struct call *call)
{
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

static void *run(void *arg)
{
    struct call *call = arg;
    cohi_os_thread_serves(true);
    call->work(call->arg);
    pthread_mutex_lock(&call->lock);
    bool abandoned = call->abandoned;
    call->done = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
    if (abandoned) {
        call->discard(call->arg);
        free_call(call);
    }
    cohi_os_thread_serves(false);
    return NULL;
}

static struct call *make_call(void)
{
    struct call *call = calloc(1, sizeof *call);
    pthread_condattr_t monotonic;
    if (!call)
        return NULL;
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&call->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return call;
}

/* Whether it was done in time. */
static bool await(struct call *call, uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / COHI_NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % COHI_NS_PER_S)};
    pthread_mutex_lock(&call->lock);
    int error = 0;
    while (!call->done && error != ETIMEDOUT)
        error = pthread_cond_timedwait(&call->changed, &call->lock, &until);
    bool done = call->done;
    call->abandoned = !done;
    pthread_mutex_unlock(&call->lock);
    return done;
}

int cohi_bounded_call(void (*work)(void *), void *arg, void (*discard)(void *),
                      uint64_t deadline_ns)
{
    pthread_t thread;
    struct call *call = make_call();
    if (!call)
        return ENOMEM;
    call->work = work;
    call->discard = discard;
    call->arg = arg;
    int error = cohi_os_thread_start("cohort-ask", run, call, &thread);
    if (error) {
        free_call(call);
        return error;
    }
    if (!await(call, deadline_ns)) {
        pthread_detach(thread);
        return ETIMEDOUT;
    }
    pthread_join(thread, NULL);
    free_call(call);
    return 0;
}
