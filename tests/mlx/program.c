/* program.c - a program for an engine that has messages alone, started by launch_test.sh in all ways that there are. With
 * "die R", rank R kills itself while the others wait for it, and they say what they are told. With "twice" there is a
 * world before the one that is told of. */
#include <cohort.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int complain(const char *what)
{
    fprintf(stderr, "program: %s: %s\n", what, coh_last_error());
    return 1;
}

static int check_sum(coh_team *team, int expected)
{
    int value = coh_team_rank(team, coh_team_index(team)), sum = 0;
    if (coh_all_reduce(team, COH_I32, COH_SUM, &value, &sum, 1) != COH_OK)
        return complain("all_reduce");
    if (sum != expected)
        fprintf(stderr, "program: the sum is %d, not %d\n", sum, expected);
    return sum != expected;
}

/* To the rank across, which no ring has as a neighbour, more than a frame has room for. */
static int check_messages(coh_world *world)
{
    enum { COUNT = 1 << 20 };
    int size = coh_size(world), rank = coh_rank(world), across = (rank + size / 2) % size;
    coh_team *all = coh_team_world(world);
    int *out = calloc(COUNT, sizeof *out), *in = calloc(COUNT, sizeof *in), wrong = 0;
    coh_request *request = NULL;
    coh_message got;
    for (int i = 0; i < COUNT; i++)
        out[i] = i * (rank + 1);
    int from = (rank - size / 2 + size) % size;
    if (coh_send_start(all, across, 7, out, COUNT * sizeof *out, &request) != COH_OK
        || coh_receive(all, from, 7, in, COUNT * sizeof *in, &got) != COH_OK
        || coh_request_wait(&request, NULL) != COH_OK)
        wrong = complain("messages");
    for (int i = 0; i < COUNT && !wrong; i++)
        wrong = in[i] != i * (from + 1);
    free(out);
    free(in);
    return wrong;
}

static int check_all(coh_world *world)
{
    int size = coh_size(world), rank = coh_rank(world), half = 0;
    coh_team *team;
    for (int i = rank % 2; i < size; i += 2)
        half += i;
    if (check_sum(coh_team_world(world), size * (size - 1) / 2) || check_messages(world))
        return 1;
    if (coh_team_split_color(coh_team_world(world), rank % 2, rank, &team) != COH_OK)
        return complain("split");
    return check_sum(team, half) || coh_team_destroy(team) != COH_OK;
}

/* How long the others took to learn of it is theirs to say. */
static int see_death(coh_world *world, int victim)
{
    static const struct timespec moment = {.tv_nsec = 300000000};
    struct timespec began, now;
    if (coh_barrier(world) != COH_OK)
        return complain("barrier");
    if (coh_rank(world) == victim) {
        nanosleep(&moment, NULL); /* the others are out of the barrier, and in the next */
        raise(SIGKILL);
    }
    clock_gettime(CLOCK_MONOTONIC, &began);
    coh_status status = coh_barrier(world);
    clock_gettime(CLOCK_MONOTONIC, &now);
    double took =
        (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) * 1e-9;
    printf("rank %d: %s after %.2f s: %s\n", coh_rank(world), coh_status_name(status), took,
           coh_last_error());
    fflush(stdout);
    return status != COH_PEER_LOST || took > 2;
}

static int have_world(void)
{
    coh_world *world;
    if (coh_init(NULL, &world) != COH_OK)
        return complain("init");
    return check_all(world) || coh_finalize(world) != COH_OK;
}

int main(int argc, char **argv)
{
    coh_world *world;
    if (argc == 2 && strcmp(argv[1], "twice") == 0 && have_world())
        return 1;
    if (coh_init(NULL, &world) != COH_OK)
        return complain("init");
    if (check_all(world))
        return 1;
    if (argc == 3 && strcmp(argv[1], "die") == 0)
        return see_death(world, atoi(argv[2]));
    printf("rank %d of %d: all is well on %s\n", coh_rank(world), coh_size(world),
           coh_engine(world));
    return coh_finalize(world) != COH_OK;
}
