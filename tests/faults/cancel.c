/* Threads that are cancelled inside a call: it goes on to its end, and the thread ends at the next
 * cancellation point of the program's own. */
#include "faults.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- no call is a cancellation point ---- */

struct errand {
    test_rank *self;
    void (*run)(test_rank *self);
    atomic_bool done;
};

/* What is asked for of the thread itself is carried out at the first cancellation point. */
static void *run_doomed(void *arg)
{
    struct errand *errand = arg;
    int state;
    test_this_is_rank(errand->self->rank);
    pthread_cancel(pthread_self());
    errand->run(errand->self);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    atomic_store(&errand->done, state == PTHREAD_CANCEL_ENABLE);
    pthread_testcancel();
    return NULL;
}

static void check_doomed(test_rank *self, void (*run)(test_rank *self))
{
    struct errand errand = {.self = self, .run = run};
    pthread_t thread;
    void *end = NULL;
    CHECK(pthread_create(&thread, NULL, run_doomed, &errand) == 0);
    pthread_join(thread, &end);
    CHECK(atomic_load(&errand.done));
    CHECK(end == PTHREAD_CANCELED);
}

/* A hook may have any number of them. */
static void test_in_hook(void *arg, coh_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    (void)message;
    pthread_testcancel();
}

/* Below a launcher of MPI's coh_init would join its job, by PMIx or PMI, which a process can do once: MPI_Init could not
 * do it after. */
static void join_and_leave_alone(const test_rank *self)
{
    coh_unique_id id;
    coh_world *world = NULL;
    CHECK_OK(coh_unique_id_create(&id));
    CHECK_OK(coh_engine_available("shm"));
    if (strncmp(self->engine, "mpi:", 4) != 0 && CHECK_OK(coh_init(NULL, &world)))
        CHECK_OK(coh_finalize(world));
    if (CHECK_OK(coh_init_threads(1, NULL, &world)))
        CHECK_OK(coh_finalize(world));
}

static void register_and_grow(test_rank *self)
{
    enum { BYTES_MORE = 64 << 20 };
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *memory,
        *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (CHECK_OK(coh_malloc(self->world, BYTES_MORE, &memory)))
        CHECK_OK(coh_free(self->world, memory));
    if (strcmp(self->engine, "shm") == 0 && CHECK_OK(coh_register(self->world, pages, bytes)))
        CHECK_OK(coh_unregister(self->world, pages));
    munmap(pages, bytes);
}

static void call_everything(test_rank *self)
{
    _Atomic uint64_t *stamps = self->shared;
    coh_log_to(test_in_hook, NULL, COH_LOG_DEBUG);
    join_and_leave_alone(self);
    if (!CHECK_OK(test_join(self)))
        return;
    bool memory = test_has_memory(self->engine);
    if (memory)
        CHECK_OK(fault_program(self, stamps, 2));
    if (memory)
        CHECK_OK(fault_vocabulary(self, stamps, 2));
    if (memory)
        register_and_grow(self);
    CHECK_OK(fault_collectives_program(self, stamps, 1));
    CHECK_OK(coh_finalize(self->world));
}

static void calls_of_all_kinds(test_rank *self)
{
    check_doomed(self, call_everything);
}

/* So long that the others are looked for, and warned of. */
static void wait_long(test_rank *self)
{
    _Atomic uint64_t *now = self->shared;
    coh_peer_state state;
    coh_log_to(test_in_hook, NULL, COH_LOG_DEBUG);
    if (!CHECK_OK(test_join(self)))
        return;
    CHECK_OK(coh_peer_query(self->world, self->size - 1, &state, NULL, 0));
    if (self->rank == self->size - 1)
        CHECK(test_await(now, 1, 20));
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
}

static void *come_late(void *now)
{
    test_sleep(0.3);
    atomic_store((_Atomic uint64_t *)now, 1);
    return NULL;
}

static void waits_that_sleep(test_rank *self)
{
    pthread_t timer;
    CHECK(pthread_create(&timer, NULL, come_late, self->shared) == 0);
    check_doomed(self, wait_long);
    pthread_join(timer, NULL);
}

/* ---- cancelled in the midst of one ---- */

enum { SENT = 4711, TAG = 3, BYTES = 100000 };

/* Rank 0's helper waits; rank 1 does what it waits for once the helper has been cancelled. */
struct scene {
    test_rank *self;
    uint64_t *word;
    unsigned char *data;
    coh_request *request;
    coh_status (*wait)(struct scene *scene);
    coh_status (*help)(struct scene *scene);
    _Atomic uint64_t entered;
    coh_status status; /* of the wait */
};

static coh_status wait_in_receive(struct scene *scene)
{
    return coh_receive(coh_team_world(scene->self->world), 1, TAG, scene->data, BYTES, NULL);
}

static coh_status wait_for_request(struct scene *scene)
{
    return coh_request_wait(&scene->request, NULL);
}

static coh_status send_it(struct scene *scene)
{
    return coh_send(coh_team_world(scene->self->world), 0, TAG, scene->data, BYTES);
}

static coh_status wait_in_barrier(struct scene *scene)
{
    return coh_barrier(scene->self->world);
}

static coh_status wait_for_word(struct scene *scene)
{
    uint64_t value = SENT;
    return coh_wait_until(scene->self->world, COH_U64, scene->word, COH_EQ, &value, 1);
}

static coh_status write_word(struct scene *scene)
{
    uint64_t value = SENT;
    return coh_put(scene->self->world, scene->word, &value, sizeof value, 0);
}

static void *enter_and_end(void *arg)
{
    struct scene *scene = arg;
    test_this_is_rank(scene->self->rank);
    atomic_store(&scene->entered, 1);
    scene->status = scene->wait(scene);
    pthread_testcancel();
    return NULL;
}

static void cancel_helper(struct scene *scene)
{
    _Atomic uint64_t *cancelled = scene->self->shared;
    pthread_t helper;
    void *end = NULL;
    scene->status = COH_TIMED_OUT;
    CHECK(pthread_create(&helper, NULL, enter_and_end, scene) == 0);
    CHECK(test_await(&scene->entered, 1, 20));
    test_sleep(0.1);
    CHECK(pthread_cancel(helper) == 0);
    test_sleep(0.15); /* it examines for whom it waits meanwhile */
    atomic_fetch_add(cancelled, 1);
    pthread_join(helper, &end);
    CHECK(end == PTHREAD_CANCELED);
    CHECK_OK(scene->status);
}

/* The next message, the next meeting. */
static void go_on(struct scene *scene)
{
    coh_team *team = coh_team_world(scene->self->world);
    int next = 0, value = SENT;
    CHECK_OK(coh_barrier(scene->self->world));
    if (scene->self->rank == 1)
        CHECK_OK(coh_send(team, 0, TAG, &value, sizeof value));
    if (scene->self->rank == 0 && CHECK_OK(coh_receive(team, 1, TAG, &next, sizeof next, NULL)))
        CHECK_EQ(next, SENT);
    CHECK_OK(coh_barrier(scene->self->world));
}

static bool set_scene(test_rank *self, struct scene *scene, unsigned char *data)
{
    scene->self = self;
    scene->data = data;
    test_fill(data, BYTES, self->rank == 1 ? 5 : 6);
    bool memory = test_has_memory(self->engine);
    return CHECK_OK(coh_barrier(self->world)) /* binds a crew */
           && (!memory || CHECK_OK(coh_calloc(self->world, 1, 8, (void **)&scene->word)));
}

static void play(test_rank *self, struct scene *scene)
{
    const _Atomic uint64_t *cancelled = self->shared;
    if (self->rank == 0)
        cancel_helper(scene);
    else if (CHECK(test_await(cancelled, 1, 20)))
        CHECK_OK(scene->help(scene));
    if (scene->help == send_it)
        CHECK_EQ(test_differs(scene->data, BYTES, 5), BYTES);
    go_on(scene);
}

static unsigned char messages[2][BYTES];

static void cancelled_in_receive(test_rank *self)
{
    struct scene scene = {.wait = wait_in_receive, .help = send_it};
    if (set_scene(self, &scene, messages[self->rank]))
        play(self, &scene);
}

static void cancelled_in_request_wait(test_rank *self)
{
    struct scene scene = {.wait = wait_for_request, .help = send_it};
    if (set_scene(self, &scene, messages[self->rank])
        && (self->rank == 1
            || CHECK_OK(coh_receive_start(coh_team_world(self->world), 1, TAG, scene.data, BYTES,
                                          &scene.request))))
        play(self, &scene);
}

static void cancelled_in_barrier(test_rank *self)
{
    struct scene scene = {.wait = wait_in_barrier, .help = wait_in_barrier};
    if (set_scene(self, &scene, messages[self->rank]))
        play(self, &scene);
}

static void cancelled_in_wait_until(test_rank *self)
{
    struct scene scene = {.wait = wait_for_word, .help = write_word};
    if (set_scene(self, &scene, messages[self->rank]))
        play(self, &scene);
}

const test_case fault_cancel[] = {
    CASE(calls_of_all_kinds, "F17", ON_ALL, SIZE(2) | SIZE(3), .mode = TEST_UNJOINED),
    CASE(waits_that_sleep, "F17", ON_ALL, SIZE(2) | SIZE(3), .mode = TEST_UNJOINED,
         .environment = "COHORT_WARN=0.1"),
    CASE(cancelled_in_receive, "F17", ON_ALL, SIZE(2)),
    CASE(cancelled_in_request_wait, "F17", ON_ALL, SIZE(2)),
    CASE(cancelled_in_barrier, "F17", ON_ALL, SIZE(2)),
    CASE(cancelled_in_wait_until, "F17", ON_MEMORY, SIZE(2)),
};
FAULT_COUNT(cancel);
