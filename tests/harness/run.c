#include "page.h"

#include "base/pretend.h"
#include "bootstrap/root.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int test_hosts;

static const double DEFAULT_LIMIT_S = 30;
static const double SANITIZED_STRETCH = 3;

bool test_has_processes(const char *engine)
{
    return strcmp(engine, "shm") == 0 || strcmp(engine, "nvshmem") == 0
           || strcmp(engine, "mlx:ring") == 0 || test_has_links(engine);
}

bool test_has_memory(const char *engine)
{
    return strcmp(engine, "sim:channel") != 0 && strcmp(engine, "mlx:ring") != 0;
}

bool test_has_links(const char *engine)
{
    return strcmp(engine, "tcp") == 0 || strcmp(engine, "ucx") == 0 || test_needs_places(engine);
}

static bool has_processes(const test_job *job)
{
    return test_has_processes(job->engine) && job->row->mode != TEST_ALONE;
}

static bool needs_places(const test_job *job)
{
    return has_processes(job) && test_needs_places(job->engine);
}

static void set_variable(char *assignment)
{
    char *equals = strchr(assignment, '=');
    if (!equals)
        return;
    *equals = '\0';
    setenv(assignment, equals + 1, 1);
}

int test_host_of(int rank, int ranks)
{
    int hosts = test_hosts == 0 ? 1 : test_hosts < ranks ? test_hosts : ranks;
    return cohi_pretended_host(rank, ranks, hosts);
}

void test_play_host(int rank, int ranks)
{
    char name[16];
    if (test_hosts == 0)
        return;
    if (test_bed) {
        if (!test_bed_enter(test_host_of(rank, ranks)))
            test_fail("rank %d cannot enter its host of the test bed: %s", rank, strerror(errno));
        return;
    }
    snprintf(name, sizeof name, "h%d", test_host_of(rank, ranks));
    setenv("COHORT_HOST", name, 1);
}

/* The same for MPI: TCP alone. More ranks than cores are ordinary here, and root may be. The launcher is on the first
 * host of a test bed, and listens there where ranks on the others reach it. */
static void set_mpi_environment(const char *device)
{
    const char *const variables[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_pml", "ob1"},
        {"OMPI_MCA_btl", "tcp,self"},
        {"OMPI_MCA_btl_tcp_if_include", device},
        {"OMPI_MCA_oob_tcp_if_include", device},
        {"PMIX_MCA_ptl_tcp_if_include", device},
        {"OMPI_MCA_osc", "^ucx"},
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"MPIR_CVAR_NOLOCAL", "1"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        setenv(variables[i][0], variables[i][1], 0);
}

void test_use_engine(const char *engine)
{
    if (test_has_links(engine) && test_hosts == 0)
        test_hosts = 2;
    setenv("COHORT_MODULES", TEST_MODULES, 0);
    /* Streams of ranks that are threads share the queues of one context: one for each, so that none stands behind
     * one that waits for it. */
    if (test_uses_card() && !test_has_processes(engine))
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    else if (test_uses_card())
        unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    setenv("UCX_TLS", "tcp,self", 0); /* hosts that are played could reach each other's memory */
    const char *device = test_bed ? "eth0" : "lo";
    setenv("UCX_NET_DEVICES", device, 0);
    if (test_needs_places(engine))
        set_mpi_environment(device);
}

static void set_environment(const test_job *job)
{
    char text[512];
    /* Threads that sleep outside the engine are not waited for as long as by default: the worker of
     * started collectives is one, and the cases are many. */
    int used = snprintf(text, sizeof text, "seed=%llu,patience=3", (unsigned long long)job->seed);
    if (test_hosts > 0)
        snprintf(text + used, sizeof text - (size_t)used, ",hosts=%d", test_hosts);
    if (strncmp(job->engine, "sim", 3) == 0)
        setenv("COHORT_SIM", text, 1);
    snprintf(text, sizeof text, "%s", job->row->environment ? job->row->environment : "");
    for (char *next, *word = strtok_r(text, " ", &next); word; word = strtok_r(NULL, " ", &next))
        set_variable(word);
}

/* cmocka catches fatal signals in its own process; a rank is to die of them. The address
 * sanitizer's handlers, which say where, stay. */
static void prepare_child(const test_job *job)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; !TEST_ASAN && i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    test_stacks_prepare();
    set_environment(job);
}

static test_rank rank_of(const test_job *job, int rank)
{
    test_page *page = test_page_get();
    return (test_rank){.row = job->row,
                       .engine = job->engine,
                       .rank = rank,
                       .size = job->ranks,
                       .seed = job->seed,
                       .ids = page->ids,
                       .shared = page->scratch};
}

/* On a test bed this process keeps a socket for rank 0 of each id, which must end with rank 0. */
static void drop_sockets(void)
{
    for (int i = 0; i < TEST_IDS; i++) {
        cohi_listeners listeners = cohi_root_claim(&test_page_get()->ids[i]);
        cohi_listeners_close(&listeners);
    }
}

static void child_main(const test_job *job, int index)
{
    prepare_child(job);
    if (index > 0)
        drop_sockets();
    if (has_processes(job))
        test_play_host(index, job->ranks);
    if (needs_places(job))
        test_places_take(index);
    test_rank self = rank_of(job, index);
    if (has_processes(job) || job->row->mode == TEST_ALONE)
        test_rank_run(&self);
    else
        test_crew(&self, job->ranks, test_rank_run);
    fflush(NULL);
    exit(0);
}

static bool start_children(test_job *job)
{
    job->processes = has_processes(job) ? job->ranks : 1;
    fflush(NULL);
    if (needs_places(job) && !test_places_open(job->engine, job->ranks)) {
        job->processes = 0;
        return false;
    }
    for (int i = 0; i < job->processes; i++) {
        job->pids[i] = fork();
        if (job->pids[i] == 0)
            child_main(job, i);
        if (job->pids[i] < 0) {
            test_fail("fork of rank %d failed", i);
            job->processes = i;
            return false;
        }
    }
    return true;
}

static bool is_victim(const test_job *job, int index)
{
    return has_processes(job) && (job->row->victims >> index & 1);
}

static void reap(test_job *job, int index)
{
    job->reaped[index] = waitpid(job->pids[index], &job->ends[index], WNOHANG) == job->pids[index];
    if (job->reaped[index])
        atomic_store(&test_page_get()->processes_ended[index], (uint64_t)(test_now() * 1e9));
}

double test_end_of(int rank)
{
    return (double)atomic_load(&test_page_get()->processes_ended[rank]) * 1e-9;
}

/* Reaps what has ended; whether all that must end have. */
static bool all_ended(test_job *job)
{
    bool all = true;
    for (int i = 0; i < job->processes; i++) {
        if (!job->reaped[i])
            reap(job, i);
        if (!job->reaped[i] && !is_victim(job, i))
            all = false;
    }
    return all;
}

static bool await_children(test_job *job, double limit_s)
{
    double until = test_now() + limit_s;
    while (!all_ended(job)) {
        if (test_now() > until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return true;
}

static void print_stacks(const test_job *job, double limit_s)
{
    fprintf(stderr, "*** time limit of %.0f s passed; the stacks of all threads:\n", limit_s);
    for (int i = 0; i < job->processes; i++)
        if (!job->reaped[i])
            test_stacks_print(job->pids[i]);
}

static void end_children(test_job *job)
{
    for (int i = 0; i < job->processes; i++)
        if (!job->reaped[i])
            kill(job->pids[i], SIGKILL);
    for (int i = 0; i < job->processes; i++)
        if (!job->reaped[i])
            job->reaped[i] = waitpid(job->pids[i], &job->ends[i], 0) == job->pids[i];
}

static void check_end(const test_job *job, int index)
{
    int end = job->ends[index];
    const char *who = has_processes(job) ? "rank" : "process";
    if (WIFSIGNALED(end))
        test_fail("%s %d was killed by signal %d (%s)", who, index, WTERMSIG(end),
                  strsignal(WTERMSIG(end)));
    else if (WEXITSTATUS(end) != job->row->exit_code)
        test_fail("%s %d exited with status %d, expected %d", who, index, WEXITSTATUS(end),
                  job->row->exit_code);
}

static void check_bodies(const test_job *job)
{
    int bodies = job->row->mode == TEST_ALONE ? 1 : job->ranks;
    for (int rank = 0; rank < bodies && job->row->exit_code == 0; rank++)
        if (!(job->row->victims >> rank & 1) && !atomic_load(&test_page_get()->bodies_ended[rank]))
            test_fail("the body of rank %d did not come to its end", rank);
}

static void make_ids(void)
{
    for (int i = 0; i < TEST_IDS; i++)
        CHECK_OK(coh_unique_id_create(&test_page_get()->ids[i]));
}

void test_run(test_job *job)
{
    test_leftovers before;
    test_page_reset();
    test_leftovers_note(&before);
    make_ids();
    job->shared = test_page_get()->scratch;
    double limit_s = job->row->limit_s > 0 ? job->row->limit_s : DEFAULT_LIMIT_S;
    if (TEST_SANITIZED)
        limit_s *= SANITIZED_STRETCH;

    bool started = start_children(job);
    drop_sockets();
    if (started && job->row->director)
        job->row->director(job);
    bool in_time = started && await_children(job, limit_s);
    if (started && !in_time) {
        print_stacks(job, limit_s);
        test_fail("the time limit of %.0f s passed", limit_s);
    }
    end_children(job);
    if (needs_places(job))
        test_places_close();
    for (int i = 0; i < job->processes && in_time; i++)
        if (!is_victim(job, i))
            check_end(job, i);
    if (in_time)
        check_bodies(job);
    test_leftovers_check(&before);
}
