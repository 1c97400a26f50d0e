/* Every bad argument of every public function: refused with its value and the limit.
 * docs/faults.md F17. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

/* ---- calls without a world ---- */

static void no_world(test_rank *self)
{
    void *memory = NULL;
    char byte = 0;
    coh_view view = {.length = 1};
    coh_array array = {.dtype = COH_I8, .count = 1};
    coh_heap_stats stats = {.size = sizeof stats};
    coh_peer_state state;
    (void)self;
    CHECK_EQ(coh_rank(NULL), -1);
    CHECK_EQ(coh_size(NULL), -1);
    CHECK_EQ(coh_local_rank(NULL), -1);
    CHECK_EQ(coh_local_size(NULL), -1);
    CHECK(coh_engine(NULL) == NULL);
    CHECK_REFUSED(coh_malloc(NULL, 1, &memory), COH_INVALID_ARGUMENT, "malloc|world|NULL");
    CHECK_REFUSED(coh_calloc(NULL, 1, 1, &memory), COH_INVALID_ARGUMENT, "calloc|world|NULL");
    CHECK_REFUSED(coh_align(NULL, 64, 1, &memory), COH_INVALID_ARGUMENT, "align|world|NULL");
    CHECK_REFUSED(coh_realloc(NULL, NULL, 1, &memory), COH_INVALID_ARGUMENT, "realloc|world|NULL");
    CHECK_REFUSED(coh_free(NULL, &byte), COH_INVALID_ARGUMENT, "free|world|NULL");
    CHECK_REFUSED(coh_heap_query(NULL, &stats), COH_INVALID_ARGUMENT, "heap_query|world|NULL");
    CHECK_REFUSED(coh_put(NULL, &byte, &byte, 1, 0), COH_INVALID_ARGUMENT, "put|world|NULL");
    CHECK_REFUSED(coh_get(NULL, &byte, &byte, 1, 0), COH_INVALID_ARGUMENT, "get|world|NULL");
    CHECK_REFUSED(coh_put_nbi(NULL, &byte, &byte, 1, 0), COH_INVALID_ARGUMENT, "put|world|NULL");
    CHECK_REFUSED(coh_get_nbi(NULL, &byte, &byte, 1, 0), COH_INVALID_ARGUMENT, "get|world|NULL");
    CHECK_REFUSED(coh_ptr(NULL, &byte, 0, &memory), COH_INVALID_ARGUMENT, "ptr|world|NULL");
    CHECK_REFUSED(coh_view_of(NULL, &byte, 1, 0, &view), COH_INVALID_ARGUMENT, "view|world|NULL");
    CHECK_REFUSED(coh_put_view(NULL, view, &byte, 1), COH_INVALID_ARGUMENT, "view|world|NULL");
    CHECK_REFUSED(coh_get_view(NULL, &byte, 1, view), COH_INVALID_ARGUMENT, "view|world|NULL");
    CHECK_REFUSED(coh_array_malloc(NULL, COH_I8, 1, &array, &memory), COH_INVALID_ARGUMENT,
                  "array|world|NULL");
    CHECK_REFUSED(coh_array_free(NULL, array), COH_INVALID_ARGUMENT, "array|world|NULL");
    CHECK_REFUSED(coh_put_array(NULL, array, 0, COH_I8, &byte, 1), COH_INVALID_ARGUMENT,
                  "array|world|NULL");
    CHECK_REFUSED(coh_get_array(NULL, COH_I8, &byte, 1, array, 0), COH_INVALID_ARGUMENT,
                  "array|world|NULL");
    CHECK_REFUSED(coh_fence(NULL), COH_INVALID_ARGUMENT, "fence|world|NULL");
    CHECK_REFUSED(coh_quiet(NULL), COH_INVALID_ARGUMENT, "quiet|world|NULL");
    CHECK_REFUSED(coh_sync(NULL), COH_INVALID_ARGUMENT, "sync|world|NULL");
    CHECK_REFUSED(coh_barrier(NULL), COH_INVALID_ARGUMENT, "barrier|world|NULL");
    CHECK_REFUSED(coh_peer_query(NULL, 0, &state, NULL, 0), COH_INVALID_ARGUMENT,
                  "peer_query|world|NULL");
    CHECK_REFUSED(coh_global_exit(NULL, 0), COH_INVALID_ARGUMENT, "global_exit|world|NULL");
    CHECK_OK(coh_finalize(NULL));
    CHECK(memory == NULL);
}

/* ---- joining ---- */

static void bad_options(test_rank *self)
{
    coh_world *world = NULL, *worlds[2] = {NULL, NULL};
    coh_options options = COH_OPTIONS_INIT;
    (void)self;
    options.size = 0;
    CHECK_REFUSED(coh_init(&options, &world), COH_INVALID_ARGUMENT, "init|size|0");
    options.size = 7;
    CHECK_REFUSED(coh_init(&options, &world), COH_INVALID_ARGUMENT, "init|size|7");
    CHECK_REFUSED(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT, "size|7");
    options.size = sizeof options;
    options.engine = "warp";
    CHECK_REFUSED(coh_init(&options, &world), COH_INVALID_ARGUMENT, "warp|threads|shm|sim");
    CHECK_REFUSED(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT,
                  "warp|threads|shm|sim");
    CHECK_REFUSED(coh_init(NULL, NULL), COH_INVALID_ARGUMENT, "init|NULL");
    CHECK(world == NULL && worlds[0] == NULL && worlds[1] == NULL);
}

static void bad_thread_counts(test_rank *self)
{
    coh_world *worlds[2] = {NULL, NULL};
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    CHECK_REFUSED(coh_init_threads(0, &options, worlds), COH_INVALID_ARGUMENT,
                  "init_threads|0|1|1024");
    CHECK_REFUSED(coh_init_threads(-5, &options, worlds), COH_INVALID_ARGUMENT, "-5|1|1024");
    CHECK_REFUSED(coh_init_threads(1025, &options, worlds), COH_INVALID_ARGUMENT, "1025|1024");
    CHECK_REFUSED(coh_init_threads(2, &options, NULL), COH_INVALID_ARGUMENT, "NULL");
    CHECK(worlds[0] == NULL);
}

static void bad_unique_ids(test_rank *self)
{
    coh_world *world = NULL;
    coh_unique_id zero = {{0}};
    const coh_unique_id *id = &self->ids[0];
    CHECK_REFUSED(coh_unique_id_create(NULL), COH_INVALID_ARGUMENT, "unique_id|NULL");
    CHECK_REFUSED(coh_init_unique_id(NULL, 0, 1, NULL, &world), COH_INVALID_ARGUMENT, "id|NULL");
    CHECK_REFUSED(coh_init_unique_id(id, 0, 1, NULL, NULL), COH_INVALID_ARGUMENT, "NULL");
    CHECK_REFUSED(coh_init_unique_id(id, -1, 2, NULL, &world), COH_UNKNOWN_RANK, "-1|2");
    CHECK_REFUSED(coh_init_unique_id(id, 2, 2, NULL, &world), COH_UNKNOWN_RANK, "2");
    CHECK_REFUSED(coh_init_unique_id(id, 0, 0, NULL, &world), COH_INVALID_ARGUMENT, "0|1|131071");
    CHECK_REFUSED(coh_init_unique_id(id, 0, 170000, NULL, &world), COH_INVALID_ARGUMENT,
                  "170000|131071");
    CHECK_REFUSED(coh_init_unique_id(&zero, 0, 1, NULL, &world), COH_INVALID_ARGUMENT, "id");
    CHECK(world == NULL);
}

/* A knob that makes no sense fails init, naming variable, value and what it may be. */
static void bad_knobs(test_rank *self)
{
    static const struct {
        const char *variable, *value;
    } rows[] = {
        {"COHORT_HEAP", "lots"},
        {"COHORT_HEAP", "-1"},
        {"COHORT_STALL", "soon"},
        {"COHORT_TIMEOUT", "-3"},
        {"COHORT_CHECK", "maybe"},
        {"COHORT_LOG", "loud"},
        {"COHORT_KERNELS", "mmx"},
        {"COHORT_ENGINE", "warp"},
        {"COHORT_SPIN", "many"},
        {"COHORT_FAULT", "explode"},
        {"COHORT_FAULT", "kill@tea"},
        {"COHORT_FAULT", "kill@put:0"},
        {"COHORT_FAULT", "kill@put,rank=x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        coh_world *worlds[2] = {NULL, NULL};
        setenv(rows[i].variable, rows[i].value, 1);
        coh_status status = coh_init_threads(2, NULL, worlds);
        if (!CHECK_STATUS(status, COH_INVALID_ARGUMENT) || !CHECK_SAYS(rows[i].value))
            test_fail("with %s=%s", rows[i].variable, rows[i].value);
        CHECK(worlds[0] == NULL);
        unsetenv(rows[i].variable);
    }
    (void)self;
}

static void bad_scripts(test_rank *self)
{
    static const char *const scripts[] = {"seed=x",   "kill=1",   "kill=@3",
                                          "stall=1@", "nonsense", "seed"};
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        coh_world *worlds[2] = {NULL, NULL};
        setenv("COHORT_SIM", scripts[i], 1);
        if (!CHECK_REFUSED(coh_init_threads(2, &options, worlds), COH_INVALID_ARGUMENT,
                           "COHORT_SIM"))
            test_fail("with COHORT_SIM=%s", scripts[i]);
    }
}

static void engines_by_name(test_rank *self)
{
    int index = 0;
    bool seen = false;
    for (const char *name; (name = coh_engine_name(index)); index++)
        seen = seen || strcmp(name, self->engine) == 0;
    CHECK(seen);
    CHECK(coh_engine_name(-1) == NULL);
    CHECK(coh_engine_name(index + 1) == NULL);
    CHECK_OK(coh_engine_available(self->engine));
    CHECK_REFUSED(coh_engine_available("warp"), COH_INVALID_ARGUMENT, "warp|threads|shm|sim");
    CHECK_REFUSED(coh_engine_available(NULL), COH_INVALID_ARGUMENT, "NULL");
}

/* ---- with a world ---- */

static void missing_outputs(test_rank *self)
{
    void *memory;
    coh_view view;
    coh_array array;
    coh_heap_stats stats = {.size = sizeof stats};
    if (!CHECK_OK(coh_malloc(self->world, 100, &memory))
        || !CHECK_OK(coh_view_of(self->world, memory, 100, 0, &view)))
        return;
    CHECK_REFUSED(coh_malloc(self->world, 1, NULL), COH_INVALID_ARGUMENT, "malloc|NULL");
    CHECK_REFUSED(coh_calloc(self->world, 1, 1, NULL), COH_INVALID_ARGUMENT, "calloc|NULL");
    CHECK_REFUSED(coh_align(self->world, 64, 1, NULL), COH_INVALID_ARGUMENT, "align|NULL");
    CHECK_REFUSED(coh_realloc(self->world, NULL, 1, NULL), COH_INVALID_ARGUMENT, "realloc|NULL");
    CHECK_REFUSED(coh_ptr(self->world, memory, 0, NULL), COH_INVALID_ARGUMENT, "ptr|NULL");
    CHECK_REFUSED(coh_view_of(self->world, memory, 1, 0, NULL), COH_INVALID_ARGUMENT, "view|NULL");
    CHECK_REFUSED(coh_view_part(view, 0, 1, NULL), COH_INVALID_ARGUMENT, "part|NULL");
    CHECK_REFUSED(coh_array_malloc(self->world, COH_I8, 1, NULL, NULL), COH_INVALID_ARGUMENT,
                  "array|NULL");
    array = (coh_array){COH_I8, view.offset, 1, view.heap};
    CHECK_REFUSED(coh_array_part(array, 0, 1, NULL), COH_INVALID_ARGUMENT, "part|NULL");
    CHECK_REFUSED(coh_heap_query(self->world, NULL), COH_INVALID_ARGUMENT, "heap_query|NULL");
    stats.size = 3;
    CHECK_REFUSED(coh_heap_query(self->world, &stats), COH_INVALID_ARGUMENT, "size|3");
    CHECK_OK(coh_free(self->world, memory));
}

static void missing_buffers(test_rank *self)
{
    void *memory;
    coh_view view;
    if (!CHECK_OK(coh_malloc(self->world, 100, &memory))
        || !CHECK_OK(coh_view_of(self->world, memory, 100, 0, &view)))
        return;
    coh_array array = {COH_I8, view.offset, 1, view.heap};
    CHECK_REFUSED(coh_put(self->world, memory, NULL, 1, 0), COH_INVALID_ARGUMENT, "put|NULL");
    CHECK_REFUSED(coh_get(self->world, NULL, memory, 1, 0), COH_INVALID_ARGUMENT, "get|NULL");
    CHECK_REFUSED(coh_put_nbi(self->world, memory, NULL, 1, 0), COH_INVALID_ARGUMENT, "put|NULL");
    CHECK_REFUSED(coh_get_nbi(self->world, NULL, memory, 1, 0), COH_INVALID_ARGUMENT, "get|NULL");
    CHECK_REFUSED(coh_put_view(self->world, view, NULL, 100), COH_INVALID_ARGUMENT, "view|NULL");
    CHECK_REFUSED(coh_get_view(self->world, NULL, 100, view), COH_INVALID_ARGUMENT, "view|NULL");
    CHECK_REFUSED(coh_put_array(self->world, array, 0, COH_I8, NULL, 1), COH_INVALID_ARGUMENT,
                  "array|NULL");
    CHECK_REFUSED(coh_get_array(self->world, COH_I8, NULL, 1, array, 0), COH_INVALID_ARGUMENT,
                  "array|NULL");
    CHECK_OK(coh_put(self->world, memory, NULL, 0, 0)); /* no bytes need no buffer */
    CHECK_OK(coh_get(self->world, NULL, memory, 0, 0));
    CHECK_OK(coh_free(self->world, memory));
}

static void bad_alignments(test_rank *self)
{
    char mark;
    void *memory = &mark;
    CHECK_REFUSED(coh_align(self->world, 3, 100, &memory), COH_BAD_ALIGNMENT, "align|3|power");
    CHECK_REFUSED(coh_align(self->world, 0, 100, &memory), COH_BAD_ALIGNMENT, "align|0|power");
    CHECK_REFUSED(coh_align(self->world, (size_t)1 << 25, 100, &memory), COH_BAD_ALIGNMENT,
                  "33554432|16777216");
    CHECK_STATUS(coh_align(self->world, (size_t)1 << 63, 100, &memory), COH_BAD_ALIGNMENT);
    CHECK_STATUS(coh_align(self->world, SIZE_MAX, 100, &memory), COH_BAD_ALIGNMENT);
    CHECK(memory == &mark);
}

/* Frees that are refused on this rank alone, before anybody is met. */
static void bad_frees(test_rank *self)
{
    unsigned char *memory, other;
    void *resized = NULL;
    if (!CHECK_OK(coh_malloc(self->world, 1000, (void **)&memory)))
        return;
    CHECK_STATUS(coh_free(self->world, memory + 1), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_free(self->world, memory + 64), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_free(self->world, &other), COH_NOT_SYMMETRIC);
    CHECK_STATUS(coh_realloc(self->world, memory + 64, 10, &resized), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_realloc(self->world, &other, 10, &resized), COH_NOT_SYMMETRIC);
    coh_view view = {0};
    CHECK_OK(coh_view_of(self->world, memory, 1, self->rank, &view));
    coh_array inside = {COH_I8, view.offset + 8, 10, view.heap};
    CHECK_STATUS(coh_array_free(self->world, inside), COH_INVALID_ARGUMENT);
    CHECK(resized == NULL);
    CHECK_OK(coh_free(self->world, memory));
    CHECK_STATUS(coh_free(self->world, memory), COH_INVALID_ARGUMENT); /* twice */
    CHECK_SAYS("free");
    CHECK_OK(coh_barrier(self->world));
}

static void peers_are_alive(test_rank *self)
{
    char text[128] = "x", tiny[4] = "xyz";
    for (int rank = 0; rank < self->size; rank++) {
        coh_peer_state state = COH_PEER_GONE;
        CHECK_OK(coh_peer_query(self->world, rank, &state, text, sizeof text));
        CHECK_EQ(state, COH_PEER_ALIVE);
        CHECK(strlen(text) > 0);
        CHECK_OK(coh_peer_query(self->world, rank, &state, NULL, 0));
        CHECK_OK(coh_peer_query(self->world, rank, &state, tiny, sizeof tiny));
        CHECK(memchr(tiny, 0, sizeof tiny) != NULL); /* cut, and still a string */
    }
    CHECK_OK(coh_barrier(self->world));
}

static void peer_query_without_room(test_rank *self)
{
    char text[128];
    coh_peer_state state;
    CHECK_REFUSED(coh_peer_query(self->world, 0, NULL, text, sizeof text), COH_INVALID_ARGUMENT,
                  "peer_query|NULL");
    CHECK_REFUSED(coh_peer_query(self->world, 0, &state, NULL, 10), COH_INVALID_ARGUMENT,
                  "peer_query|NULL");
}

const test_case conform_arguments[] = {
    CASE(no_world, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(bad_options, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(bad_thread_counts, "F17", ON_CREW, SIZE(1), .mode = TEST_ALONE),
    CASE(bad_unique_ids, "F17", ON_SHM, SIZE(1), .mode = TEST_ALONE,
         .environment = "COHORT_INIT_TIMEOUT=1"),
    CASE(bad_knobs, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(bad_scripts, "F17", ON_SIM | ON_CHANNEL, SIZE(1), .mode = TEST_ALONE),
    CASE(engines_by_name, "F17", ON_ALL, SIZE(1), .mode = TEST_ALONE),
    CASE(missing_outputs, "F17", ON_MEMORY, SIZE(1) | SIZE(2)),
    CASE(missing_buffers, "F17", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(bad_alignments, "F17", ON_MEMORY | ON_CARD, SIZE(1) | SIZE(2)),
    CASE(bad_frees, "F17", ON_MEMORY | ON_CARD, ANY_SIZE),
    CASE(peers_are_alive, "F17", ON_ALL, ANY_SIZE),
    CASE(peer_query_without_room, "F17", ON_ALL, SIZE(1)),
};
CONFORM_COUNT(arguments);
