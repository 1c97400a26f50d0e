/* bench/threads.c - several threads of one rank, each with a context and a word of its own. */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <unistd.h>

#define ROUND_NS (1.0 * (double)COHI_NS_PER_MS)

struct worker;
typedef double work(const struct worker *worker, const void *form, uint64_t repeats);

struct worker {
    pthread_t thread;
    int core;
    coh_context *context;
    int peer;
    uint64_t *word;   /* of this thread; this rank's copy */
    uint64_t *direct; /* the peer's */
    pthread_barrier_t *gate;
    work *work;
    const void *form;
    uint64_t repeats;
    double each;      /* what it found */
    cohi_error error; /* of its thread, when `each` is less than 0 */
};

struct context {
    struct worker workers[COHI_BENCH_THREADS];
    size_t count;
    pthread_barrier_t gate;
};

/* ---- what a thread does ---- */

static double put_words(const struct worker *w, const void *form, uint64_t repeats)
{
    (void)form;
    uint64_t value = 1;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_context_put(w->context, w->word, &value, sizeof value, w->peer);
    return cohi_bench_each(status, start, repeats);
}

static double copy_words(const struct worker *w, const void *form, uint64_t repeats)
{
    (void)form;
    uint64_t value = 1;
    return cohi_limit_call(w->direct, &value, repeats);
}

static double add_to_word(const struct worker *w, const void *form, uint64_t repeats)
{
    (void)form;
    uint64_t one = 1, old;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = coh_context_atomic_fetch(w->context, COH_ATOMIC_ADD, COH_U64, w->word, &one, &old,
                                          w->peer);
    return cohi_bench_each(status, start, repeats);
}

static double add_raw(const struct worker *w, const void *form, uint64_t repeats)
{
    return cohi_limit_word(form, w->direct, repeats);
}

/* ---- all of them at once ---- */

/* The rank may be bound to one core, and its threads with it; where another is refused they share
 * one, and the figures say so. */
static void move_to_core(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    move_to_core(worker->core);
    pthread_barrier_wait(worker->gate);
    worker->each = worker->work(worker, worker->form, worker->repeats);
    cohi_error_keep(&worker->error);
    return NULL;
}

/* What is started first waits at the gate for the others, so all or none can be. */
static double run_all(struct context *c, work *what, const void *form, uint64_t repeats)
{
    double sum = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct worker *worker = &c->workers[i];
        worker->work = what;
        worker->form = form;
        worker->repeats = repeats;
        if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
            fprintf(stderr, "cohort bench: thread %zu of %zu could not be started\n", i, c->count);
            _exit(EXIT_FAILURE);
        }
    }
    for (size_t i = 0; i < c->count; i++)
        pthread_join(c->workers[i].thread, NULL);
    for (size_t i = 0; i < c->count; i++) {
        if (c->workers[i].each < 0) {
            cohi_fail(COH_TRANSPORT, "a thread: %s", c->workers[i].error.text);
            return -1;
        }
        sum += c->workers[i].each;
    }
    return sum / (double)c->count;
}

static double run_puts(void *context, const void *form, uint64_t repeats)
{
    return run_all(context, put_words, form, repeats);
}

static double run_copies(void *context, const void *form, uint64_t repeats)
{
    return run_all(context, copy_words, form, repeats);
}

static double run_adds(void *context, const void *form, uint64_t repeats)
{
    return run_all(context, add_to_word, form, repeats);
}

static double run_raw_adds(void *context, const void *form, uint64_t repeats)
{
    return run_all(context, add_raw, form, repeats);
}

/* ---- the benchmarks ---- */

static size_t thread_count(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 2 ? 2 : (size_t)cores;
    return count < COHI_BENCH_THREADS ? count : COHI_BENCH_THREADS;
}

static coh_status make_worker(cohi_bench_rank *self, struct context *c, size_t index)
{
    struct worker *worker = &c->workers[index];
    *worker = (struct worker){.core = (int)index % (int)sysconf(_SC_NPROCESSORS_ONLN),
                              .peer = (self->rank + 1) % self->size,
                              .word = &self->board->of_thread[index].count,
                              .gate = &c->gate};
    coh_status status = coh_ptr(self->world, worker->word, worker->peer, (void **)&worker->direct);
    return status == COH_OK ? coh_context_create(self->world, &worker->context) : status;
}

static coh_status destroy_contexts(struct context *c)
{
    coh_status status = COH_OK;
    for (size_t i = 0; i < c->count; i++) {
        coh_status one = coh_context_destroy(c->workers[i].context);
        status = status == COH_OK ? one : status;
    }
    return status;
}

static coh_status measure(cohi_bench_rank *self, struct context *c, cohi_bench_plan *plan,
                          cohi_bench_result *result)
{
    coh_status status = COH_OK;
    c->count = thread_count();
    for (size_t i = 0; i < c->count && status == COH_OK; i++)
        status = make_worker(self, c, i);
    if (status != COH_OK)
        return status;
    pthread_barrier_init(&c->gate, NULL, (unsigned)c->count);
    plan->rounds = self->rounds;
    plan->self = self;
    plan->context = c;
    plan->repeats = cohi_bench_repeats(plan, ROUND_NS);
    status = plan->repeats ? cohi_bench_measure(plan, result) : COH_TRANSPORT;
    pthread_barrier_destroy(&c->gate);
    coh_status left = destroy_contexts(c);
    return status == COH_OK ? left : status;
}

coh_status cohi_bench_thread_puts(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    struct context context = {.count = 0};
    cohi_bench_plan plan = {.count = 0};
    (void)bytes;
    if (self->rank != 0)
        return COH_OK;
    cohi_bench_add(&plan, "coh_context_put", NULL, run_puts);
    cohi_bench_add(&plan, "memcpy", NULL, run_copies);
    return measure(self, &context, &plan, result);
}

coh_status cohi_bench_thread_adds(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    struct context context = {.count = 0};
    cohi_bench_plan plan = {.count = 0};
    (void)bytes;
    if (self->rank != 0)
        return COH_OK;
    cohi_bench_add(&plan, "coh_context_atomic_fetch", NULL, run_adds);
    const cohi_limit_word_form *form;
    for (size_t i = 0; (form = cohi_limit_add_form_at(i)); i++)
        cohi_bench_add(&plan, form->name, form, run_raw_adds);
    return measure(self, &context, &plan, result);
}
