/*
 * start.c - collectives that go on without their caller: each team that has some has a thread that
 * carries them out, in order. One thread for all teams would be fewer, but could wait in one team's
 * call for a rank whose own thread waits in another's, where the two teams share members and were
 * called in different orders.
 */
#include "coll/call/assemble.h"
#include "coll/run.h"

#include "base/cancel.h"
#include "base/os.h"
#include "core/message/mailbox.h"
#include "core/team/enter.h"

#include <stdlib.h>
#include <string.h>

/* A request with room for what the worker says of a failure. */
struct started {
    coh_request request;
    cohi_error error;
};

typedef struct job {
    struct job *next;
    cohi_call call;
    coh_status (*run)(cohi_call *call);
    struct started *started;
    size_t arrays[]; /* copies of counts and offsets, then of parts */
} job;

struct cohi_worker {
    coh_team *team;
    pthread_t thread;
    pthread_mutex_t lock; /* of the next four */
    pthread_cond_t more;
    job *first, **last;
    int idle; /* the thread's id while it has nothing to do, else 0 */
    bool stop;
};

/* ---- the thread ---- */

/* While it is idle nothing will come of it. The lock is held. */
static void become_idle(struct cohi_worker *worker)
{
    if (worker->idle)
        return;
    worker->idle = cohi_os_thread_id();
    cohi_os_thread_serves_as(worker->idle, true);
}

/* Called by the thread that gives it work, before it has woken. The lock is held. */
static void become_busy(struct cohi_worker *worker)
{
    if (worker->idle)
        cohi_os_thread_serves_as(worker->idle, false);
    worker->idle = 0;
}

static job *next_job(struct cohi_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !worker->stop) {
        become_idle(worker);
        pthread_cond_wait(&worker->more, &worker->lock);
    }
    become_busy(worker);
    job *next = worker->first;
    if (next) {
        worker->first = next->next;
        if (!worker->first)
            worker->last = &worker->first;
    }
    pthread_mutex_unlock(&worker->lock);
    return next;
}

static void *work(void *arg)
{
    struct cohi_worker *worker = arg;
    cohi_team_worker = true;
    for (job *now = next_job(worker); now; now = next_job(worker)) {
        struct started *started = now->started;
        coh_status status = now->run(&now->call);
        if (status != COH_OK)
            cohi_error_keep(&started->error);
        free(now);
        atomic_fetch_sub(&worker->team->queued, 1);
        cohi_request_complete(&started->request, status);
    }
    return NULL;
}

static void stop_worker(struct cohi_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_signal(&worker->more);
    pthread_mutex_unlock(&worker->lock);
    int held = cohi_cancel_hold();
    pthread_join(worker->thread, NULL);
    cohi_cancel_release(held);
    pthread_cond_destroy(&worker->more);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

static coh_status make_worker(coh_team *team, const char *call, struct cohi_worker **made)
{
    struct cohi_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return cohi_world_fail(team->world, call, COH_NO_MEMORY, "out of memory for a thread");
    worker->team = team;
    worker->last = &worker->first;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->more, NULL);
    int error = cohi_os_thread_start("cohort-worker", work, worker, &worker->thread);
    if (error == 0) {
        *made = worker;
        return COH_OK;
    }
    pthread_cond_destroy(&worker->more);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
    return cohi_fail_os(error, "rank %d: %s: cannot start the thread that carries it out",
                        team->world->rank, call);
}

/* Started calls come from any thread. */
static coh_status worker_of(coh_team *team, const char *call, struct cohi_worker **worker)
{
    cohi_coll_gear *gear;
    coh_status status = cohi_gear_of(team, call, &gear);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&team->world->team_lock);
    if (!gear->worker) {
        gear->stop = stop_worker;
        status = make_worker(team, call, &gear->worker);
    }
    *worker = gear->worker;
    pthread_mutex_unlock(&team->world->team_lock);
    return status;
}

/* ---- starting ---- */

static const size_t *keep(const size_t *array, int size, size_t **room)
{
    if (!array)
        return NULL;
    const size_t *kept = memcpy(*room, array, (size_t)size * sizeof *array);
    *room += size;
    return kept;
}

static void keep_blocks(cohi_blocks *blocks, int size, size_t **room)
{
    blocks->counts = keep(blocks->counts, size, room);
    blocks->firsts = keep(blocks->firsts, size, room);
}

static job *make_job(const cohi_call *call, cohi_opcode op, coh_status (*run)(cohi_call *call))
{
    enum { ARRAYS = 4 };
    size_t size = (size_t)call->team->size, parts = call->part_count * sizeof *call->parts;
    job *made = malloc(sizeof *made + ARRAYS * size * sizeof(size_t) + parts);
    struct started *started = calloc(1, sizeof *started);
    if (!made || !started) {
        free(made);
        free(started);
        return NULL;
    }
    size_t *room = made->arrays;
    *made = (job){.call = *call, .run = run, .started = started};
    keep_blocks(&made->call.from, (int)size, &room);
    keep_blocks(&made->call.to, (int)size, &room);
    if (parts > 0)
        made->call.parts = memcpy(made->arrays + ARRAYS * size, call->parts, parts);
    cohi_request_own_started(&started->request, call->team, op, &started->error);
    return made;
}

static void enqueue(struct cohi_worker *worker, job *made)
{
    pthread_mutex_lock(&worker->lock);
    atomic_fetch_add(&worker->team->queued, 1);
    become_busy(worker);
    *worker->last = made;
    worker->last = &made->next;
    pthread_cond_signal(&worker->more);
    pthread_mutex_unlock(&worker->lock);
}

static coh_status start(const cohi_call *call, cohi_opcode op, coh_status (*run)(cohi_call *call),
                        coh_request **request)
{
    coh_team *team = call->team;
    coh_status status = cohi_team_gate(team, call->name);
    if (status != COH_OK)
        return status;
    if (!request)
        return cohi_world_fail(team->world, call->name, COH_INVALID_ARGUMENT, "request is NULL");
    if (team->world->driven && team->size > 1)
        return cohi_team_refuse_driven(team->world, call->name);
    struct cohi_worker *worker;
    status = worker_of(team, call->name, &worker);
    if (status != COH_OK)
        return status;
    job *made = make_job(call, op, run);
    if (!made)
        return cohi_world_fail(team->world, call->name, COH_NO_MEMORY,
                               "out of memory for a request");
    *request = &made->started->request;
    enqueue(worker, made);
    return COH_OK;
}

coh_status cohi_start(const cohi_call *call, coh_request **request)
{
    return start(call, cohi_kind_op(call), call->grouped ? cohi_run_parts : cohi_run_now, request);
}

static coh_status meet(cohi_call *call)
{
    return coh_team_barrier(call->team);
}

coh_status coh_barrier_start(coh_team *team, coh_request **request)
{
    cohi_call call = {.team = team, .name = "coh_barrier_start"};
    return start(&call, COHI_OP_TEAM_BARRIER, meet, request);
}
