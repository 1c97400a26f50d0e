/* meet.c - a rank for the tests of the tool: meets the others in barriers, and then does what it is
 * told to. */
#include <cohort.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEETINGS = 50 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, coh_last_error());
    return 9;
}

static int meet(coh_world *world, int times)
{
    for (int i = 0; i < times; i++) {
        if (coh_barrier(world) != COH_OK)
            return fail("barrier");
    }
    return 0;
}

static int stop_meeting(coh_world *world, const char *how)
{
    if (strcmp(how, "global-exit") == 0)
        return coh_global_exit(world, 17) == COH_OK;
    if (strcmp(how, "global-exit-0") == 0)
        return coh_global_exit(world, 0) == COH_OK;
    if (strcmp(how, "mistake") == 0 && coh_put(world, NULL, how, 1, 99) != COH_OK)
        return 9;
    if (strcmp(how, "crash") == 0)
        abort();
    if (strcmp(how, "hang") == 0)
        pause();
    if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    return 0; /* "return": without finalize */
}

static int allocate(coh_world *world, const char *bytes)
{
    void *memory;
    if (coh_malloc(world, strtoull(bytes, NULL, 10), &memory) != COH_OK)
        return fail("allocate");
    return coh_free(world, memory) == COH_OK ? 0 : fail("free");
}

/* Rank 1 waits for a word that nobody writes, the others for the end of the job. */
static int await(coh_world *world)
{
    const uint64_t wanted = 3;
    uint64_t *word;
    if (coh_malloc(world, 2 * sizeof *word, (void **)&word) != COH_OK)
        return fail("allocate");
    word[1] = 2;
    if (coh_barrier(world) != COH_OK)
        return fail("barrier");
    if (coh_rank(world) != 1)
        return pause();
    return coh_wait_until(world, COH_U64, &word[1], COH_GE, &wanted, 0) == COH_OK ? 0
                                                                                  : fail("wait");
}

static void quit(void *arg, coh_log_level level, const char *message)
{
    (void)arg;
    fprintf(stderr, "quits at once: %s\n", message);
    if (level == COH_LOG_ERROR)
        _exit(9);
}

/* meet: all ranks, then finalize. meet HOW: rank 1 does that instead, while the others wait for it; meet HOW hasty:
 * and the last rank ends as soon as it knows, before it tells the others.
 * meet allocate BYTES: all ranks allocate that much between two meetings. meet await: see above.
 */
int main(int argc, char **argv)
{
    coh_world *world;
    if (coh_init(NULL, &world) != COH_OK)
        return fail("init");
    if (argc > 2 && strcmp(argv[2], "hasty") == 0 && coh_rank(world) == coh_size(world) - 1)
        coh_log_to(quit, NULL, COH_LOG_ERROR);
    int status = meet(world, MEETINGS);
    if (status == 0 && argc > 2 && strcmp(argv[1], "allocate") == 0)
        status = allocate(world, argv[2]);
    else if (status == 0 && argc > 1 && strcmp(argv[1], "await") == 0)
        return await(world);
    else if (status == 0 && argc > 1 && coh_rank(world) == 1)
        return stop_meeting(world, argv[1]);
    if (status == 0)
        status = meet(world, MEETINGS);
    if (status != 0)
        return status;
    return coh_finalize(world) == COH_OK ? 0 : fail("finalize");
}
