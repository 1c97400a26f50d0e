#include "search.h"

#include "harness/page.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond this a program hangs: computations take 3 s and verdicts 2 s, on an idle machine. */
static const double HANG_S = 60;

struct run {
    const search_program *program;
    search_record *records;
    coh_unique_id id;
    search_rank ranks[SEARCH_RANKS]; /* not on a stack: threads of a victim go on */
    pid_t children[SEARCH_RANKS];
    int count;
};

static bool is_process(const search_program *program)
{
    return strcmp(program->engine, "shm") == 0;
}

/* ---- ranks ---- */

static void perform(struct run *run, int rank, coh_world *world)
{
    run->ranks[rank] = (search_rank){
        .program = run->program, .rank = rank, .world = world, .record = &run->records[rank]};
    test_this_is_rank(rank);
    search_perform(&run->ranks[rank]);
}

static int run_process(struct run *run, int rank)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *world;
    options.engine = run->program->engine;
    coh_status status = coh_init_unique_id(&run->id, rank, run->program->size, &options, &world);
    run->ranks[rank].record = &run->records[rank];
    if (!search_must(&run->ranks[rank], status, "init"))
        return 1;
    perform(run, rank, world);
    return 0;
}

struct member {
    struct run *run;
    int rank;
    coh_world *world;
    pthread_t thread;
};

static void *member_main(void *arg)
{
    const struct member *member = arg;
    perform(member->run, member->rank, member->world);
    return NULL;
}

static int run_crew(struct run *run)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *worlds[SEARCH_RANKS];
    struct member members[SEARCH_RANKS];
    options.engine = run->program->engine;
    if (coh_init_threads(run->program->size, &options, worlds) != COH_OK)
        return 1;
    for (int rank = 0; rank < run->program->size; rank++) {
        members[rank] = (struct member){.run = run, .rank = rank, .world = worlds[rank]};
        if (pthread_create(&members[rank].thread, NULL, member_main, &members[rank]) != 0)
            return 1;
    }
    for (int rank = 0; rank < run->program->size; rank++)
        pthread_join(members[rank].thread, NULL);
    fflush(NULL);
    _exit(0); /* a victim's threads may still be inside */
}

/* ---- processes ---- */

static void set_environment(const search_program *program)
{
    char script[64];
    snprintf(script, sizeof script, "seed=%llu", (unsigned long long)program->seed);
    setenv("COHORT_SIM", script, 1);
    setenv("COHORT_STALL", search_is_certain(program) ? "30" : "1", 1);
    setenv("COHORT_WARN", "0.3", 1);
    setenv("COHORT_PROFILE", "described", 1);
}

static bool start_all(struct run *run)
{
    int wanted = is_process(run->program) ? run->program->size : 1;
    fflush(NULL);
    for (; run->count < wanted; run->count++) {
        pid_t child = run->children[run->count] = fork();
        if (child < 0)
            return false;
        if (child > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        test_stacks_prepare();
        exit(is_process(run->program) ? run_process(run, run->count) : run_crew(run));
    }
    return true;
}

/* One that does not get to its end. */
static bool is_victim(const struct run *run, int child)
{
    search_fault fault = run->program->fault;
    bool ends = fault == FAULT_KILLED || fault == FAULT_STOPPED || fault == FAULT_EXITED;
    return ends && is_process(run->program) && child == run->program->victim;
}

/* The victim may end as it likes; the others by themselves. */
static int reap(struct run *run, int child, int options)
{
    int end;
    if (waitpid(run->children[child], &end, options) <= 0)
        return 0;
    run->children[child] = 0;
    bool well = WIFEXITED(end) && WEXITSTATUS(end) == 0;
    if (well || is_victim(run, child))
        return 0;
    printf("search: the process of rank %d ended with %s %d\n", child,
           WIFSIGNALED(end) ? "signal" : "status",
           WIFSIGNALED(end) ? WTERMSIG(end) : WEXITSTATUS(end));
    return 1;
}

static int count_left(const struct run *run)
{
    int left = 0;
    for (int i = 0; i < run->count; i++)
        left += run->children[i] > 0 && !is_victim(run, i);
    return left;
}

static int await_all(struct run *run, bool *hung)
{
    int findings = 0;
    double until = test_now() + HANG_S;
    while (count_left(run) > 0 && test_now() < until) {
        test_sleep(0.01);
        for (int i = 0; i < run->count; i++)
            if (run->children[i] > 0)
                findings += reap(run, i, WNOHANG);
    }
    *hung = count_left(run) > 0;
    return findings;
}

static void end_all(struct run *run, bool hung)
{
    for (int i = 0; i < run->count; i++) {
        if (run->children[i] <= 0)
            continue;
        if (hung && !is_victim(run, i))
            test_stacks_print(run->children[i]);
        kill(run->children[i], SIGKILL);
        waitpid(run->children[i], NULL, 0);
    }
}

static void print_replay(const search_program *program)
{
    printf("search: replay with --engine %s --ranks %d --seed %llu --kind %s (fault: %s)\n",
           program->engine, program->size, (unsigned long long)program->seed,
           program->faulty ? "faulty" : "right", search_fault_name(program->fault));
}

int search_run(const search_program *program)
{
    bool hung;
    struct run *run = calloc(1, sizeof *run);
    size_t bytes = SEARCH_RANKS * sizeof *run->records;
    run->program = program;
    run->records = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    set_environment(program);
    test_stacks_open();
    if (run->records == MAP_FAILED || coh_unique_id_create(&run->id) != COH_OK || !start_all(run)) {
        printf("search: cannot start a program: %s\n", coh_last_error());
        return 1;
    }
    int findings = await_all(run, &hung);
    end_all(run, hung);
    findings += search_judge(program, run->records, hung);
    if (findings)
        print_replay(program);
    fflush(stdout);
    munmap(run->records, bytes);
    free(run);
    return findings;
}
