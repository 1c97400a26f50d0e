/* What comes on an engine's channel from a peer that is faulty or hostile:
 * docs/faults.md F15 and F19. The input is frames, each led by a byte with its length. */
#include "start/init.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 2, HEAP_BYTES = 2 << 20, LONG_BYTES = 20000, REQUESTS = 4 };

/* What frames can meet at rank 0: announced sends and posted receives, of memory of the heap and of
 * its own. All of the heap, the smallest there is, has memory: the simulator does what a frame says
 * without a target that would refuse it. */
struct scene {
    coh_world *worlds[RANKS];
    coh_request *requests[REQUESTS];
    char own[2 * LONG_BYTES];
};

static void open_scene(struct scene *scene)
{
    coh_options options = COH_OPTIONS_INIT;
    void *heap = NULL, *other;
    options.engine = "sim";
    options.driven = 1;
    setenv("COHORT_SIM", "seed=1,patience=1", 0);
    setenv("COHORT_HEAP", "2M", 0);
    if (coh_init_threads(RANKS, &options, scene->worlds) != COH_OK
        || coh_malloc(scene->worlds[0], HEAP_BYTES, &heap) != COH_OK
        || coh_malloc(scene->worlds[1], HEAP_BYTES, &other) != COH_OK)
        abort();
    coh_team *team = coh_team_world(scene->worlds[0]);
    char *own = scene->own;
    if (coh_send_start(team, 1, 1, heap, LONG_BYTES, &scene->requests[0]) != COH_OK
        || coh_send_start(team, 1, 2, own, LONG_BYTES, &scene->requests[1]) != COH_OK
        || coh_receive_start(team, 1, 3, (char *)heap + LONG_BYTES, LONG_BYTES, &scene->requests[2])
               != COH_OK
        || coh_receive_start(team, 1, 4, own + LONG_BYTES, LONG_BYTES, &scene->requests[3])
               != COH_OK)
        abort();
}

/* Does what follows from the frame. */
static void go_on(struct scene *scene)
{
    for (int i = 0; i < REQUESTS; i++) {
        int done;
        if (scene->requests[i])
            (void)coh_request_test(&scene->requests[i], &done, NULL);
    }
}

/* One world for each input: a frame that is refused makes its sender a lost rank. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scene scene = {.own = {0}};
    open_scene(&scene);
    while (size > 0) {
        size_t bytes = data[0] < size - 1 ? data[0] : size - 1;
        cohi_core_upcalls.deliver(scene.worlds[0], 1, data + 1, bytes);
        go_on(&scene);
        data += 1 + bytes;
        size -= 1 + bytes;
    }
    for (int rank = 0; rank < RANKS; rank++)
        (void)coh_finalize(scene.worlds[rank]);
    return 0;
}
