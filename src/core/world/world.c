#include "core/world/world.h"

#include "core/world/crew.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local coh_world *cohi_bound_world __attribute__((tls_model("initial-exec")));

/* That the calling thread is a rank of a crew; it may be one of several crews. The world itself may
 * be gone: another thread may have finalized it. */
typedef struct binding {
    coh_world *world;
    uint64_t crew;
    int rank;
    struct binding *next;
} binding;

/* Tombstones kept, so that a stale handle is recognised; the oldest beyond that are freed. */
enum { TOMBSTONES = 4 * COHI_RANKS_MAX };

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static coh_world *open_worlds;
static coh_world *tombstones;    /* newest first */
static pthread_key_t thread_key; /* set in threads that were bound; its destructor tells the end */
static void (*rank_ended)(coh_world *world); /* told of a rank whose thread has ended */
static _Thread_local binding *thread_bindings __attribute__((tls_model("initial-exec")));

/* ---- errors ---- */

coh_status cohi_world_fail(const coh_world *world, const char *call, coh_status status,
                           const char *format, ...)
{
    char what[COHI_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!(cohi_world_state_but(world, 0) & (COHI_WORLD_CLOSED | COHI_WORLD_FORKED)))
        cohi_slot_publish_error(world->slot, status, call, what);
    return cohi_fail(status, "rank %d: %s: %s", world->rank, call, what);
}

coh_status cohi_world_check_rank(const coh_world *world, const char *call, int rank)
{
    if (rank >= 0 && rank < world->size)
        return COH_OK;
    (void)cohi_world_fail(world, call, COH_UNKNOWN_RANK,
                          "there is no rank %d; this world has %d (0 to %d)", rank, world->size,
                          world->size - 1);
    cohi_fail_range(COH_UNKNOWN_RANK, COH_NO_FACT, COH_NO_FACT, (uint64_t)world->size);
    return cohi_fail_peer(COH_UNKNOWN_RANK, rank);
}

void cohi_world_show_op(coh_world *world, cohi_opcode op)
{
    atomic_store_explicit(&world->slot->sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&world->slot->op, op, memory_order_relaxed);
}

/* ---- engines ---- */

static void progress(cohi_server server)
{
    if (server.engine->lifecycle->progress)
        server.engine->lifecycle->progress(server.endpoint);
}

void cohi_world_progress_device(coh_world *world)
{
    const cohi_device *device = cohi_world_device(world);
    if (COHI_UNLIKELY(device != NULL))
        progress(device->server);
}

void cohi_world_progress(coh_world *world)
{
    progress(cohi_world_server(world));
    cohi_world_progress_device(world);
}

bool cohi_world_is_on_card(const coh_world *world, const void *pointer)
{
    const cohi_device *device = cohi_world_device(world);
    if (COHI_LIKELY(!device) || !pointer)
        return false;
    cohi_server server = device->server;
    return server.engine->memory->place_of(server.endpoint, pointer) >= COHI_PLACE_CARD;
}

/* ---- the gate ---- */

/* A thread with a binding always has a bound world: without one it would pass for a helper. */
static void set_bindings(binding *bindings)
{
    cohi_bound_world = bindings ? bindings->world : NULL;
    thread_bindings = bindings;
}

/* The bindings of the list that are to be kept; the others are freed. */
static binding *sift(binding *bindings, bool (*keep)(const binding *bound, const void *arg),
                     const void *arg)
{
    for (binding **at = &bindings; *at;) {
        binding *bound = *at;
        if (keep(bound, arg)) {
            at = &bound->next;
        } else {
            *at = bound->next;
            free(bound);
        }
    }
    return bindings;
}

static bool keep_none(const binding *bound, const void *arg)
{
    (void)bound;
    (void)arg;
    return false;
}

static coh_status refuse_state(const coh_world *world, const char *call, unsigned state)
{
    if (state & COHI_WORLD_FORKED)
        return cohi_world_fail(world, call, COH_FORKED,
                               "the world belongs to the parent of this process (pid %d); a "
                               "forked child must exec or leave it alone",
                               (int)getppid());
    return cohi_world_fail(world, call, COH_FINALIZED, "the world is finalized");
}

/* The open world of a binding, or NULL: any thread may have finalized it. Under the lock. */
static coh_world *find_bound(const binding *bound)
{
    coh_world *world = open_worlds;
    while (world && (world != bound->world || !world->crew || world->crew->serial != bound->crew))
        world = world->next;
    return world;
}

static bool holds(const binding *bound, const void *arg)
{
    (void)arg;
    return find_bound(bound) != NULL;
}

/* Forgets the calling thread's bindings to worlds that were finalized; returns the others. */
static binding *bindings_that_hold(void)
{
    pthread_mutex_lock(&registry_lock);
    binding *bindings = sift(thread_bindings, holds, NULL);
    pthread_mutex_unlock(&registry_lock);
    set_bindings(bindings);
    return bindings;
}

static coh_status check_thread(coh_world *world, const char *call)
{
    const binding *bound = bindings_that_hold();
    while (bound && bound->crew != world->crew->serial)
        bound = bound->next;
    if (bound && bound->rank != world->rank)
        return cohi_world_fail(world, call, COH_WRONG_THREAD,
                               "the calling thread is bound to rank %d of the same job; ranks of "
                               "one process need a thread each, or options.driven",
                               bound->rank);
    if (bound)
        cohi_bound_world = world; /* the one that it is likely to call next */
    else if (atomic_load(&world->slot->thread) == 0)
        cohi_world_bind(world);
    return COH_OK;
}

coh_status cohi_world_enter(coh_world *world, const char *call)
{
    if (!world)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the world is NULL", call);
    unsigned state = atomic_load(&world->state);
    if (state & (COHI_WORLD_CLOSED | COHI_WORLD_FORKED))
        return refuse_state(world, call, state);
    return state & COHI_WORLD_BOUND ? check_thread(world, call) : COH_OK;
}

/* ---- thread-ranks ---- */

/* A thread that is a rank ends. Its worlds may be closed, or their tombstones already gone; under
 * the lock they stay as they are found. */
static bool tell_ended(const binding *bound, const void *arg)
{
    (void)arg;
    coh_world *world = find_bound(bound);
    if (world)
        rank_ended(world);
    return false;
}

static void thread_ended(void *key_value)
{
    (void)key_value;
    pthread_mutex_lock(&registry_lock);
    set_bindings(sift(thread_bindings, tell_ended, NULL));
    pthread_mutex_unlock(&registry_lock);
}

int cohi_world_watch_threads(void (*ended)(coh_world *world))
{
    rank_ended = ended;
    return pthread_key_create(&thread_key, thread_ended);
}

/* Without memory for it, or for the key that tells of its end, the thread stays a helper until its
 * next call. */
void cohi_world_bind(coh_world *world)
{
    int free_slot = 0;
    binding *bound = malloc(sizeof *bound);
    if (!bound)
        return;
    if (pthread_setspecific(thread_key, &thread_key) != 0
        || !atomic_compare_exchange_strong(&world->slot->thread, &free_slot,
                                           (int)syscall(SYS_gettid))) {
        free(bound);
        return;
    }
    *bound = (binding){world, world->crew->serial, world->rank, thread_bindings};
    set_bindings(bound);
}

static bool is_of_another(const binding *bound, const void *world)
{
    return bound->world != world;
}

void cohi_world_unbind(coh_world *world)
{
    set_bindings(sift(thread_bindings, is_of_another, world));
}

/* ---- the process's worlds ---- */

void cohi_world_each(void (*visit)(coh_world *world, void *arg), void *arg)
{
    pthread_mutex_lock(&registry_lock);
    for (coh_world *world = open_worlds; world; world = world->next)
        visit(world, arg);
    pthread_mutex_unlock(&registry_lock);
}

void cohi_world_hold(void)
{
    pthread_mutex_lock(&registry_lock);
}

void cohi_world_release(void)
{
    pthread_mutex_unlock(&registry_lock);
}

void cohi_world_each_held(void (*visit)(coh_world *world))
{
    for (coh_world *world = open_worlds; world; world = world->next)
        visit(world);
}

void cohi_world_disown_held(void)
{
    for (coh_world *world = open_worlds; world; world = world->next)
        atomic_fetch_or(&world->state, COHI_WORLD_FORKED);
    set_bindings(sift(thread_bindings, keep_none, NULL));
    open_worlds = NULL;
}

coh_status cohi_world_new(int rank, int size, coh_world **world)
{
    coh_world *made = aligned_alloc(COHI_CACHE_LINE, sizeof *made);
    cohi_peer *peers = calloc((size_t)size, sizeof *peers);
    atomic_bool *left = calloc((size_t)size, sizeof *left);
    int *host_of = calloc((size_t)size, sizeof *host_of);
    if (!made || !peers || !left || !host_of) {
        free(host_of);
        free(made);
        free(peers);
        free(left);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", size);
    }
    *made =
        (coh_world){.rank = rank, .size = size, .peers = peers, .left = left, .host_of = host_of};
    for (int i = 0; i < size; i++)
        peers[i].pidfd = -1;
    atomic_store(&made->state, COHI_WORLD_CLOSED);
    pthread_mutex_init(&made->rest_lock, NULL);
    pthread_mutex_init(&made->survey_lock, NULL);
    pthread_mutex_init(&made->inspect_lock, NULL);
    pthread_mutex_init(&made->team_lock, NULL);
    pthread_mutex_init(&made->context_lock, NULL);
    made->free_contexts = ~UINT64_C(0) << COHI_CONTEXT_FIRST_FREE;
    *world = made;
    return COH_OK;
}

void cohi_world_publish(coh_world *world)
{
    pthread_mutex_lock(&registry_lock);
    world->next = open_worlds;
    open_worlds = world;
    atomic_fetch_and(&world->state, ~(unsigned)COHI_WORLD_CLOSED);
    pthread_mutex_unlock(&registry_lock);
}

static void unlink_open(coh_world *world)
{
    for (coh_world **at = &open_worlds; *at; at = &(*at)->next) {
        if (*at == world) {
            *at = world->next;
            return;
        }
    }
}

void cohi_world_withdraw(coh_world *world)
{
    pthread_mutex_lock(&registry_lock);
    unlink_open(world);
    atomic_fetch_or(&world->state, COHI_WORLD_CLOSED);
    pthread_mutex_unlock(&registry_lock);
    cohi_world_unbind(world);
}

void cohi_world_bury(coh_world *world, void (*forget)(coh_world *world))
{
    free(world->fault);
    free(world->peers);
    free(world->left);
    free(world->doubts);
    free(world->mute);
    free(world->host_of);
    world->peers = NULL;
    world->left = NULL;
    world->doubts = NULL;
    world->mute = NULL;
    world->host_of = NULL;
    pthread_mutex_destroy(&world->inspect_lock);
    pthread_mutex_destroy(&world->survey_lock);
    pthread_mutex_destroy(&world->rest_lock);
    pthread_mutex_destroy(&world->team_lock);
    pthread_mutex_destroy(&world->context_lock);
    pthread_mutex_lock(&registry_lock);
    world->next = tombstones;
    tombstones = world;
    coh_world *last = world;
    for (int kept = 1; last && kept < TOMBSTONES; kept++)
        last = last->next;
    coh_world *old = last ? last->next : NULL;
    if (old) {
        last->next = NULL;
        forget(old);
        free(old);
    }
    pthread_mutex_unlock(&registry_lock);
}

/* ---- queries ---- */

static bool is_open(const coh_world *world)
{
    return world && !(atomic_load(&((coh_world *)world)->state) & COHI_WORLD_CLOSED);
}

static int query(const coh_world *world, const char *call, int value)
{
    if (is_open(world))
        return value;
    cohi_fail(world ? COH_FINALIZED : COH_INVALID_ARGUMENT, "%s: the world is %s", call,
              world ? "finalized" : "NULL");
    return -1;
}

int coh_rank(const coh_world *world)
{
    return query(world, "coh_rank", world ? world->rank : 0);
}

int coh_size(const coh_world *world)
{
    return query(world, "coh_size", world ? world->size : 0);
}

int coh_local_rank(const coh_world *world)
{
    return query(world, "coh_local_rank", world ? world->local_rank : 0);
}

int coh_local_size(const coh_world *world)
{
    return query(world, "coh_local_size", world ? world->local_size : 0);
}

const char *coh_engine(const coh_world *world)
{
    return query(world, "coh_engine", 0) == 0 ? world->engine_name : NULL;
}
