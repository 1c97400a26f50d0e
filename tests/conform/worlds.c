#include "worlds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PATIENCE_S = 20;

_Static_assert(sizeof(conform_worlds) <= TEST_SCRATCH_BYTES, "the scratch has room");

void *worlds_scratch(const test_rank *self)
{
    conform_worlds *worlds = self->shared;
    return worlds->scratch;
}

static void set_knobs(const char *knobs, bool set)
{
    char text[512];
    snprintf(text, sizeof text, "%s", knobs);
    for (char *next, *word = strtok_r(text, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        if (set)
            setenv(word, equals + 1, 1);
        else
            unsetenv(word);
    }
}

/* The `number`-th world of this process, by the id that rank 0 made for it. */
static bool join_next(test_rank *self, uint64_t number, coh_world **world)
{
    conform_worlds *worlds = self->shared;
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    if (!CHECK(number < WORLDS_MOST))
        return false;
    if (self->rank == 0) {
        CHECK_OK(coh_unique_id_create(&worlds->ids[number]));
        atomic_store(&worlds->made, number + 1);
    }
    return CHECK(test_await(&worlds->made, number + 1, PATIENCE_S))
           && CHECK_OK(
               coh_init_unique_id(&worlds->ids[number], self->rank, self->size, &options, world));
}

static void (*body_of_all)(test_rank *self);

static void run_and_leave(test_rank *self)
{
    body_of_all(self);
    if (!test_failed())
        CHECK_OK(coh_finalize(self->world));
}

void worlds_run(test_rank *self, const char *knobs, void (*body)(test_rank *self))
{
    static uint64_t number;
    test_rank here = *self;
    body_of_all = body;
    set_knobs(knobs, true);
    if (!test_has_processes(self->engine))
        test_crew(self, self->size, run_and_leave);
    else if (join_next(self, number++, &here.world))
        run_and_leave(&here);
    set_knobs(knobs, false);
}
