/* guard.c - NVSHMEM waits for the other ranks without end, so such calls are made by a thread that can be left. */
#include "base/clock.h"
#include "base/error.h"
#include "engine/nvshmem/nvshmem.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One call under way. It belongs to both threads, and the last frees it. */
struct call {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, left; /* by the thread; by who waits */
    const cohi_cuda_library *driver;
    CUcontext context;
    const cohi_nvshmem_library *library;
    cohi_nvshmem_work *work;
    _Alignas(16) unsigned char arg[];
};

/* Names the call that has not come back, from then on; under the lock. */
static pthread_mutex_t stuck_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *stuck_in;

static void free_call(struct call *call)
{
    pthread_cond_destroy(&call->ended);
    pthread_mutex_destroy(&call->lock);
    free(call);
}

static void *run(void *given)
{
    struct call *call = given;
    CUcontext before;
    (void)call->driver->cuCtxPushCurrent(call->context);
    call->work(call->library, call->arg);
    (void)call->driver->cuCtxPopCurrent(&before);
    pthread_mutex_lock(&call->lock);
    call->done = true;
    bool left = call->left;
    pthread_cond_signal(&call->ended);
    pthread_mutex_unlock(&call->lock);
    if (left)
        free_call(call);
    return NULL;
}

static struct call *new_call(const cohi_endpoint *endpoint, cohi_nvshmem_work *work,
                             const void *arg, size_t bytes)
{
    pthread_condattr_t clock;
    struct call *call = malloc(sizeof *call + bytes);
    if (!call)
        return NULL;
    *call = (struct call){.driver = endpoint->library,
                          .context = endpoint->context,
                          .library = cohi_nvshmem_of(endpoint)->library,
                          .work = work};
    memcpy(call->arg, arg, bytes);
    pthread_mutex_init(&call->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&call->ended, &clock);
    pthread_condattr_destroy(&clock);
    return call;
}

static coh_status check_stuck(const char *what)
{
    pthread_mutex_lock(&stuck_lock);
    const char *earlier = stuck_in;
    pthread_mutex_unlock(&stuck_lock);
    return earlier ? cohi_fail(COH_TRANSPORT,
                               "nvshmem: %s is not called: %s was called by this process and has "
                               "not come back",
                               what, earlier)
                   : COH_OK;
}

/* Whether it came back in time; if not, it is the thread's. */
static bool await(struct call *call, const char *what, uint64_t limit_ns)
{
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(limit_ns / COHI_NS_PER_S);
    pthread_mutex_lock(&call->lock);
    while (!call->done && error == 0)
        error = pthread_cond_timedwait(&call->ended, &call->lock, &until);
    bool done = call->done;
    call->left = !done;
    pthread_mutex_unlock(&call->lock);
    if (!done) {
        pthread_mutex_lock(&stuck_lock);
        stuck_in = what;
        pthread_mutex_unlock(&stuck_lock);
    }
    return done;
}

coh_status cohi_nvshmem_guard(const cohi_endpoint *endpoint, const char *what,
                              cohi_nvshmem_work *work, void *arg, size_t bytes, uint64_t limit_ns)
{
    pthread_t thread;
    coh_status status = check_stuck(what);
    if (status != COH_OK)
        return status;
    struct call *call = new_call(endpoint, work, arg, bytes);
    if (!call)
        return cohi_fail(COH_NO_MEMORY, "nvshmem: out of memory for a call of %s", what);
    int error = pthread_create(&thread, NULL, run, call);
    if (error != 0) {
        free_call(call);
        return cohi_fail_os(error, "nvshmem: a thread for %s cannot be started", what);
    }
    (void)pthread_detach(thread);
    if (!await(call, what, limit_ns))
        return cohi_fail(COH_TIMED_OUT,
                         "nvshmem: %s has not come back after %llu s: it waits for a rank that "
                         "does not come, and cannot be ended; this process can use NVSHMEM no more",
                         what, (unsigned long long)(limit_ns / COHI_NS_PER_S));
    memcpy(arg, call->arg, bytes);
    free_call(call);
    return COH_OK;
}
