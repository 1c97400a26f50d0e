#include "soak.h"

#include "base/os.h"
#include "bootstrap/root.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What to run; `phases` counts instead of the clock when it is not 0. */
struct order {
    const char *engine;
    int ranks;
    double seconds;
    uint64_t seed, phases;
};

/* Where the time goes when no engine is named: a share of each. */
static const struct order mixture[] = {
    {.engine = "threads", .ranks = 3},     {.engine = "shm", .ranks = 2},
    {.engine = "shm", .ranks = 5},         {.engine = "sim", .ranks = 3},
    {.engine = "sim:channel", .ranks = 4}, {.engine = "tcp", .ranks = 5},
};

enum { MIXTURE = sizeof mixture / sizeof *mixture };

static const double HANG_S = 120; /* beyond a run's time, before it counts as hung */

/* ---- findings ---- */

void soak_fail(const soak_run *run, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    fprintf(stderr,
            "soak: rank %d, phase %llu: %s\n"
            "soak: replay with --engine %s --ranks %d --seed %llu --phases %llu\n",
            run->rank, (unsigned long long)run->phase, what, run->engine, run->size,
            (unsigned long long)run->seed, (unsigned long long)run->phase + 1);
    fflush(NULL);
    _exit(1);
}

void soak_must(const soak_run *run, coh_status status, const char *what)
{
    if (status != COH_OK)
        soak_fail(run, "%s is %s: %s", what, coh_status_name(status), coh_last_error());
}

/* ---- one rank ---- */

static void open_memory(soak_run *run)
{
    run->model = calloc((size_t)run->size, sizeof *run->model);
    if (!run->model)
        soak_fail(run, "out of memory");
    if (!test_has_memory(run->engine))
        return;
    soak_must(run, coh_calloc(run->world, 1, sizeof *run->heap, (void **)&run->heap), "calloc");
    soak_must(run, coh_calloc(run->world, 1, sizeof *run->lock, (void **)&run->lock), "calloc");
    for (int lane = 1; lane < SOAK_LANES; lane++)
        soak_must(run, coh_context_create(run->world, &run->contexts[lane]), "context_create");
}

/* After a barrier and before the next: nobody writes. */
static void compare_memory(soak_run *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        soak_op ops[SOAK_CHUNKS];
        soak_plan(run, rank, ops);
        for (size_t i = 0; i < SOAK_CHUNKS; i++)
            soak_apply(run->model, run, rank, &ops[i]);
    }
    const unsigned char *have = (const unsigned char *)run->heap;
    const unsigned char *want = (const unsigned char *)&run->model[run->rank];
    for (size_t i = 0; i < sizeof *run->heap; i++)
        if (have[i] != want[i])
            soak_fail(run, "byte %zu of the heap is %#x, expected %#x", i, have[i], want[i]);
}

/* Rank 0 looks at the clock for all. */
static bool is_over(soak_run *run, const struct order *order, double until)
{
    unsigned char over = order->phases ? run->phase + 1 >= order->phases : test_now() >= until;
    soak_must(run, coh_broadcast(coh_team_world(run->world), COH_U8, &over, &over, 1, 0),
              "broadcast");
    return over;
}

static void run_phases(soak_run *run, const struct order *order)
{
    soak_groups *groups = soak_groups_open(run);
    double until = test_now() + order->seconds;
    for (bool over = false; !over; run->phase++) {
        if (run->heap)
            soak_perform(run);
        soak_groups_phase(run, groups);
        soak_must(run, coh_barrier(run->world), "barrier");
        if (run->heap)
            compare_memory(run);
        over = is_over(run, order, until);
        soak_must(run, coh_sync(run->world), "sync");
    }
    soak_groups_close(run, groups);
}

static void run_rank(const struct order *order, int rank, coh_world *world)
{
    soak_run run = {.engine = order->engine,
                    .rank = rank,
                    .size = order->ranks,
                    .seed = order->seed,
                    .world = world};
    open_memory(&run);
    run_phases(&run, order);
    free(run.model);
    soak_must(&run, coh_finalize(world), "finalize");
    if (rank == 0)
        printf("soak: %s x%d, seed %llu: %llu phases, %llu operations a rank, all as expected\n",
               order->engine, order->ranks, (unsigned long long)order->seed,
               (unsigned long long)run.phase, (unsigned long long)run.operations);
    fflush(stdout);
}

/* ---- all ranks ---- */

static int complain(const char *what)
{
    fprintf(stderr, "soak: %s: %s\n", what, coh_last_error());
    return 1;
}

static int run_process(const struct order *order, const coh_unique_id *id, int rank)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *world;
    options.engine = order->engine;
    test_use_engine(order->engine);
    test_play_host(rank, order->ranks);
    if (rank > 0) { /* rank 0's, on a test bed */
        cohi_listeners listeners = cohi_root_claim(id);
        cohi_listeners_close(&listeners);
    }
    alarm((unsigned)(order->seconds + HANG_S));
    if (coh_init_unique_id(id, rank, order->ranks, &options, &world) != COH_OK)
        return complain("coh_init_unique_id");
    run_rank(order, rank, world);
    return 0;
}

struct member {
    const struct order *order;
    coh_world *world;
    int rank;
    pthread_t thread;
};

static void *member_main(void *arg)
{
    const struct member *member = arg;
    run_rank(member->order, member->rank, member->world);
    return NULL;
}

static int run_crew(const struct order *order)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *worlds[SOAK_RANKS];
    struct member members[SOAK_RANKS];
    char script[64];
    options.engine = order->engine;
    snprintf(script, sizeof script, "seed=%llu", (unsigned long long)order->seed);
    if (!getenv("COHORT_SIM"))
        setenv("COHORT_SIM", script, 1);
    alarm((unsigned)(order->seconds + HANG_S));
    if (coh_init_threads(order->ranks, &options, worlds) != COH_OK)
        return complain("coh_init_threads");
    for (int rank = 0; rank < order->ranks; rank++) {
        members[rank] = (struct member){.order = order, .world = worlds[rank], .rank = rank};
        if (pthread_create(&members[rank].thread, NULL, member_main, &members[rank]) != 0)
            return complain("pthread_create");
    }
    for (int rank = 0; rank < order->ranks; rank++)
        pthread_join(members[rank].thread, NULL);
    return 0;
}

/* One child for a crew, or one for each rank. */
static int start(const struct order *order)
{
    coh_unique_id id;
    bool crew = !test_has_processes(order->engine);
    int children = crew ? 1 : order->ranks, failed = 0;
    printf("soak: %s x%d, seed %llu\n", order->engine, order->ranks,
           (unsigned long long)order->seed);
    fflush(NULL);
    if (coh_unique_id_create(&id) != COH_OK)
        return complain("coh_unique_id_create");
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        if (child == 0)
            exit(crew ? run_crew(order) : run_process(order, &id, i));
        failed |= child < 0;
    }
    for (int end; wait(&end) > 0 || errno == EINTR;)
        if (!WIFEXITED(end) || WEXITSTATUS(end) != 0) {
            if (WIFSIGNALED(end))
                fprintf(stderr, "soak: %s x%d, seed %llu: killed by signal %d%s\n", order->engine,
                        order->ranks, (unsigned long long)order->seed, WTERMSIG(end),
                        WTERMSIG(end) == SIGALRM ? ", hung" : "");
            failed = 1;
        }
    return failed;
}

static int start_mixture(const struct order *like)
{
    int failed = 0;
    for (int i = 0; i < MIXTURE && !failed; i++) {
        struct order order = *like;
        order.engine = mixture[i].engine;
        order.ranks = like->ranks ? like->ranks : mixture[i].ranks;
        order.seconds = like->seconds / MIXTURE;
        failed = start(&order);
    }
    return failed;
}

/* In a process of its own, so that the ranks start without what the library does when it is loaded. */
static bool is_missing(const char *engine)
{
    int end = 0;
    test_use_engine(engine);
    pid_t child = fork();
    if (child == 0) {
        bool here = coh_engine_available(engine) != COH_NOT_AVAILABLE;
        if (!here)
            fprintf(stderr, "skipped: %s\n", coh_last_error());
        _exit(here ? 0 : 1);
    }
    return child > 0 && waitpid(child, &end, 0) == child && end != 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: soak [--engine threads|shm|tcp|mlx:ring|sim|sim:channel] [--ranks 1..%d] "
            "[--seconds S]\n"
            "            [--seed N] [--phases N] [--hosts K] [--testbed NAME]\n"
            "Without an engine, some of each share the time.\n",
            SOAK_RANKS);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"engine", required_argument, NULL, 'e'},  {"ranks", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'S'},
        {"phases", required_argument, NULL, 'p'},  {"hosts", required_argument, NULL, 'h'},
        {"testbed", required_argument, NULL, 't'}, {NULL, 0, NULL, 0},
    };
    enum { SKIPPED = 77 };
    const char *bed = NULL;
    uint64_t state = (uint64_t)(test_now() * 1e9);
    struct order order = {.seconds = 60, .seed = test_random(&state) % 1000000000};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'e')
            order.engine = optarg;
        else if (option == 'n')
            order.ranks = atoi(optarg);
        else if (option == 's')
            order.seconds = atof(optarg);
        else if (option == 'S')
            order.seed = strtoull(optarg, NULL, 0);
        else if (option == 'p')
            order.phases = strtoull(optarg, NULL, 0);
        else if (option == 'h')
            test_hosts = atoi(optarg);
        else if (option == 't')
            bed = optarg;
        else
            return usage();
    }
    if (order.ranks < 0 || order.ranks > SOAK_RANKS || order.seconds <= 0 || test_hosts < 0
        || optind < argc)
        return usage();
    if (bed && !test_bed_choose(bed)) {
        fprintf(stderr, "soak: the test bed '%s': %s\n", bed, strerror(errno));
        return 1;
    }
    if (!order.engine)
        return start_mixture(&order);
    if (order.ranks == 0)
        order.ranks = 4;
    return is_missing(order.engine) ? SKIPPED : start(&order);
}
