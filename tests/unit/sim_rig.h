/* sim_rig.h - a fabric of a few endpoints and a core that only counts, for tests of the simulator.
 */
#ifndef TESTS_SIM_RIG_H
#define TESTS_SIM_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_RANKS_MAX = 8, RIG_MESSAGES_MAX = 512, RIG_BYTES = 1 << 16, RIG_SEGMENT = 1 };

/* With this, nothing arrives but in an engine call: a test may look at memory meanwhile. */
#define RIG_STEADY "patience=60000"

struct rig;

struct rig_message {
    int from;
    uint32_t number;
    size_t count;
};

/* What the fake core of one rank has been told. */
struct rig_world {
    struct rig *rig;
    int rank;
    atomic_int lost_rank; /* the last one; -1 */
    atomic_int lost_detail;
    atomic_int lost_count;
    atomic_int left_count;
    atomic_int arrivals;
    atomic_int messages;
    struct rig_message message[RIG_MESSAGES_MAX];
    void (*on_message)(struct rig_world *world, int from, const void *bytes, size_t count);
};

struct rig {
    const cohi_engine *engine;
    int size;
    cohi_crew_space crew;
    cohi_endpoint *endpoint[RIG_RANKS_MAX];
    char *memory[RIG_RANKS_MAX];
    struct rig_world world[RIG_RANKS_MAX];
};

static inline void rig_lost(void *world, int rank, cohi_loss loss, int detail)
{
    struct rig_world *told = world;
    if (loss == COHI_LOSS_KILLED)
        atomic_fetch_add(&told->lost_count, 1);
    atomic_store(&told->lost_detail, detail);
    atomic_store(&told->lost_rank, rank);
}

static inline void rig_arrived(void *world)
{
    atomic_fetch_add(&((struct rig_world *)world)->arrivals, 1);
}

static inline void rig_deliver(void *world, int from, const void *bytes, size_t count)
{
    struct rig_world *told = world;
    int index = atomic_load(&told->messages);
    if (index < RIG_MESSAGES_MAX) {
        struct rig_message *message = &told->message[index];
        *message = (struct rig_message){.from = from, .count = count};
        memcpy(&message->number, bytes, count < 4 ? count : 4);
    }
    atomic_store(&told->messages, index + 1);
    if (told->on_message)
        told->on_message(told, from, bytes, count);
}

static inline void rig_left(void *world, int rank)
{
    (void)rank;
    atomic_fetch_add(&((struct rig_world *)world)->left_count, 1);
}

static const cohi_upcalls rig_upcalls = {
    .lost = rig_lost, .left = rig_left, .arrived = rig_arrived, .deliver = rig_deliver};

static inline coh_status rig_open_rank(struct rig *rig, const char *script, int rank)
{
    cohi_config config = {.sim = script};
    cohi_engine_args args = {.rank = rank,
                             .need = {.size = rig->size, .in_process = 1},
                             .config = &config,
                             .crew = &rig->crew,
                             .upcalls = &rig_upcalls,
                             .world = &rig->world[rank]};
    rig->world[rank].rig = rig;
    rig->world[rank].rank = rank;
    atomic_store(&rig->world[rank].lost_rank, -1);
    return rig->engine->lifecycle->open(&args, &rig->endpoint[rank]);
}

static inline void rig_attach_all(struct rig *rig)
{
    const cohi_engine_memory *memory = rig->engine->memory;
    for (int owner = 0; owner < rig->size; owner++) {
        cohi_region_key key;
        assert_int_equal(memory->region_export(rig->endpoint[owner], RIG_SEGMENT, &key), COH_OK);
        for (int rank = 0; rank < rig->size; rank++)
            assert_int_equal(
                memory->region_attach(rig->endpoint[rank], RIG_SEGMENT, owner, RIG_BYTES, &key),
                COH_OK);
    }
}

/* Opens `size` ranks with a segment of RIG_BYTES each, where the engine has memory. */
static inline struct rig *rig_open(const cohi_engine *engine, int size, const char *script)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    rig->engine = engine;
    rig->size = size;
    for (int rank = 0; rank < size; rank++)
        assert_int_equal(rig_open_rank(rig, script, rank), COH_OK);
    if (!engine->memory)
        return rig;
    cohi_segment_spec spec = {.id = RIG_SEGMENT, .bytes = RIG_BYTES};
    for (int rank = 0; rank < size; rank++) {
        void *base;
        assert_int_equal(engine->memory->segment_add(rig->endpoint[rank], &spec, &base), COH_OK);
        assert_int_equal(
            engine->memory->segment_commit(rig->endpoint[rank], RIG_SEGMENT, 0, RIG_BYTES), COH_OK);
        rig->memory[rank] = base;
    }
    rig_attach_all(rig);
    return rig;
}

/* Endpoints of a crew are closed one at a time. */
static inline void rig_close_rank(struct rig *rig, int rank)
{
    static pthread_mutex_t closing = PTHREAD_MUTEX_INITIALIZER;
    if (!rig->endpoint[rank])
        return;
    pthread_mutex_lock(&closing);
    rig->engine->lifecycle->close(rig->endpoint[rank]);
    pthread_mutex_unlock(&closing);
    rig->endpoint[rank] = NULL;
}

static inline void rig_close(struct rig *rig)
{
    for (int rank = 0; rank < rig->size; rank++)
        rig_close_rank(rig, rank);
    assert_int_equal(rig->crew.open, 0);
    assert_null(rig->crew.fabric);
    free(rig);
}

static inline int rig_done(cohi_op *op)
{
    return atomic_load_explicit(&op->done, memory_order_acquire);
}

/* Waits as core does. */
static inline coh_status rig_wait(struct rig *rig, int rank, cohi_op *op)
{
    while (!rig_done(op)) {
        rig->engine->lifecycle->progress(rig->endpoint[rank]);
        if (!rig_done(op))
            rig->engine->lifecycle->idle(rig->endpoint[rank], 1000000);
    }
    return op->status;
}

static inline coh_status rig_put(struct rig *rig, int rank, int to, uint64_t offset,
                                 const void *source, size_t bytes, cohi_op *op)
{
    return rig->engine->rma->put(rig->endpoint[rank],
                                 (cohi_remote){COHI_CONTEXT_DEFAULT, to, RIG_SEGMENT, offset},
                                 source, bytes, op);
}

static inline coh_status rig_get(struct rig *rig, int rank, int from, uint64_t offset, void *target,
                                 size_t bytes, cohi_op *op)
{
    return rig->engine->rma->get(rig->endpoint[rank],
                                 (cohi_remote){COHI_CONTEXT_DEFAULT, from, RIG_SEGMENT, offset},
                                 target, bytes, op);
}

static inline coh_status rig_quiet(struct rig *rig, int rank)
{
    cohi_op op = {0};
    coh_status status = rig->engine->rma->quiet(rig->endpoint[rank], COHI_CONTEXT_DEFAULT, &op);
    return status == COH_OK ? rig_wait(rig, rank, &op) : status;
}

static inline coh_status rig_fence(struct rig *rig, int rank)
{
    return rig->engine->rma->fence(rig->endpoint[rank], COHI_CONTEXT_DEFAULT);
}

/* One step of simulated time in which the rank does nothing of note. */
static inline void rig_pass(struct rig *rig, int rank)
{
    assert_int_equal(rig->engine->rma->fence(rig->endpoint[rank], COHI_CONTEXTS_MAX - 1), COH_OK);
}

static inline uint64_t rig_word(struct rig *rig, int rank, uint64_t offset)
{
    return __atomic_load_n((uint64_t *)(rig->memory[rank] + offset), __ATOMIC_ACQUIRE);
}

struct rig_thread {
    struct rig *rig;
    int rank;
    void (*body)(struct rig *rig, int rank);
    pthread_t thread;
};

static inline void *rig_thread_entry(void *arg)
{
    struct rig_thread *thread = arg;
    thread->body(thread->rig, thread->rank);
    return NULL;
}

/* Runs body as each rank, in a thread of its own. */
static inline void rig_run(struct rig *rig, void (*body)(struct rig *rig, int rank))
{
    struct rig_thread threads[RIG_RANKS_MAX];
    for (int rank = 0; rank < rig->size; rank++) {
        threads[rank] = (struct rig_thread){.rig = rig, .rank = rank, .body = body};
        assert_int_equal(
            pthread_create(&threads[rank].thread, NULL, rig_thread_entry, &threads[rank]), 0);
    }
    for (int rank = 0; rank < rig->size; rank++)
        pthread_join(threads[rank].thread, NULL);
}

#endif
