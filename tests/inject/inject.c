#include "inject.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char inject_folder[] = "/tmp/inject.XXXXXX";
const char *inject_tool, *inject_ring, *inject_self, *inject_object;

static const struct scenario scenarios[] = {
    {.name = "shm.root", .module = "libcohort.so", .engine = "shm", .body = job_processes},
    {.name = "shm", .module = "libcohort.so", .engine = "shm", .body = job_processes, .victim = 1},
    {.name = "threads", .module = "libcohort.so", .engine = "threads", .body = job_threads},
    {.name = "sim", .module = "libcohort.so", .engine = "sim", .body = job_threads, .blind = true},
    {.name = "sim:channel",
     .module = "libcohort.so",
     .engine = "sim:channel",
     .body = job_threads,
     .blind = true},
    {.name = "profile",
     .module = "libcohort.so",
     .engine = "threads",
     .body = job_threads,
     .init_only = true},
    {.name = "launched", .module = "libcohort.so", .body = job_launched},
    {.name = "run", .module = "cohort", .body = job_tool, .tool = true},
};

/* A rank that waits for what cannot come is told after COHORT_STALL or COHORT_INIT_TIMEOUT; several
 * such times may follow each other. */
#define LIMIT_S    12.0
#define LEFT_S     2.0 /* for what is left of a job that has ended */
#define FULL_CAP   24  /* calls of one site that fail in turn */
#define OUTPUT_MAX 4000
#define FULL_TRIES 10 /* seconds to wait for memory of the host */

struct sweep {
    const char *only; /* a scenario's name; NULL: all */
    int stride;       /* every so many calls fail in turn */
    int cap;
    bool lasting;
    bool verbose;
    long only_site; /* offset; -1: all */
};

struct outcome {
    double seconds;
    int status; /* of waitpid */
    bool timed_out;
    bool processes_left;
    char output[OUTPUT_MAX];
};

static run_page *page;
static char page_path[64], profile_path[64];

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- one run ---- */

/* Where a rank crashed goes to the output. */
static void show_stack(int number)
{
    void *frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

static _Noreturn void begin_job(const struct scenario *scenario, int output)
{
    signal(SIGSEGV, show_stack);
    signal(SIGABRT, show_stack);
    setenv("INJECT_STATE", page_path, 1);
    if (scenario->blind)
        setenv("COHORT_TIMEOUT", "2", 1);
    if (scenario->init_only)
        setenv("COHORT_PROFILE", profile_path, 1);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
    scenario->body(scenario, page);
    _exit(1);
}

/* Until `job` has ended (0: until no child is left, with what a job leaves behind and this process
 * adopts). False when the time is over. */
static bool await_children(pid_t job, double limit_s, int *status)
{
    double until = now_s() + limit_s;
    int ended;
    for (;;) {
        pid_t pid = waitpid(-1, &ended, WNOHANG);
        if (pid == job)
            *status = ended;
        if (pid < 0)
            return true;
        if (pid == job && job > 0)
            return true;
        if (now_s() >= until)
            return false;
        if (pid == 0)
            usleep(1000);
    }
}

static void kill_children(void)
{
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *list = fopen(path, "re");
    while (list && fscanf(list, "%d", &pid) == 1)
        kill(pid, SIGKILL);
    if (list)
        fclose(list);
}

static void read_output(int fd, char *text)
{
    ssize_t got = pread(fd, text, OUTPUT_MAX - 1, 0);
    text[got > 0 ? got : 0] = '\0';
}

static void run_once(const struct scenario *scenario, struct outcome *outcome)
{
    int output = memfd_create("output", MFD_CLOEXEC);
    double began = now_s();
    *outcome = (struct outcome){.status = -1};
    memset(page->reports, 0, sizeof page->reports);
    unlink(profile_path);
    pid_t job = fork();
    if (job == 0)
        begin_job(scenario, output);
    outcome->timed_out = !await_children(job, LIMIT_S, &outcome->status);
    outcome->seconds = now_s() - began;
    int ignored;
    outcome->processes_left = !await_children(0, outcome->timed_out ? 0 : LEFT_S, &ignored);
    while (!await_children(0, 0.05, &ignored))
        kill_children();
    read_output(output, outcome->output);
    close(output);
}

/* ---- what must hold ---- */

static bool finds(const char *what)
{
    printf("  %s\n", what);
    return false;
}

static bool judge_ranks(bool clean)
{
    bool good = true;
    for (int i = 0; i < RANKS; i++) {
        const rank_report *report = &page->reports[i];
        if (!report->ended)
            good = finds("a rank did not come to its end");
        if (*report->finding)
            good = finds(report->finding);
        if (clean && report->status != COH_OK)
            good = finds("a call failed in a run without failure");
    }
    return good;
}

/* It says why it failed, or all ranks have done their work. */
static bool judge_tool(const struct outcome *outcome)
{
    int told = 0;
    for (const char *at = outcome->output; (at = strstr(at, " was sent ")); at++)
        told++;
    if (outcome->status == 0)
        return told == RANKS || finds("status 0, but not every rank has done its work");
    return strstr(outcome->output, "cohort") || finds("it failed without a word");
}

static bool judge(const struct scenario *scenario, const struct outcome *outcome, bool clean)
{
    bool good = scenario->tool ? judge_tool(outcome) : judge_ranks(clean);
    if (outcome->timed_out)
        good = finds("hangs");
    else if (WIFSIGNALED(outcome->status))
        good = finds("crashed");
    else if (outcome->status != 0 && (clean || scenario->body == job_processes))
        good = finds(clean ? "it failed in a run without failure" : "a rank crashed");
    if (outcome->processes_left)
        good = finds("a process is left");
    return good;
}

static void describe(const struct scenario *scenario, const struct outcome *outcome)
{
    const inject_state *state = &page->state;
    if (state->target.site >= 0) {
        const inject_site *site = &state->sites[state->target.site];
        printf("%s: %s at %#lx, call %d, fails%s: %s; %.2f s%s\n", scenario->name, site->function,
               (unsigned long)site->offset, state->target.nth,
               state->lasting ? " from then on" : "",
               state->struck ? strerror(state->error) : "not reached", outcome->seconds,
               outcome->status ? "" : ", status 0");
    }
    for (int i = 0; i < RANKS && !scenario->tool; i++)
        if (page->reports[i].status != COH_OK)
            printf("  rank %d: %s: %s: %s\n", i, page->reports[i].call,
                   coh_status_name(page->reports[i].status), page->reports[i].sentence);
    if (*outcome->output)
        printf("  output:\n%s\n", outcome->output);
}

/* ---- the sweep ---- */

static void reset(inject_call target, int variant, bool lasting)
{
    inject_state *state = &page->state;
    atomic_flag_clear(&state->lock);
    state->target = target;
    state->variant = variant;
    state->lasting = lasting;
    state->struck = false;
    for (int i = 0; i < state->site_count; i++)
        state->sites[i].calls = 0;
}

/* Other programs of the host may have its memory for a while. */
static bool host_is_full(const struct outcome *outcome)
{
    static const char words[] = "kept back for other programs";
    bool full = strstr(outcome->output, words) != NULL;
    for (int i = 0; i < RANKS; i++)
        full = full || strstr(page->reports[i].sentence, words)
               || strstr(page->reports[i].finding, words);
    return full;
}

static bool run_and_judge(const struct scenario *scenario, bool clean, bool verbose)
{
    struct outcome outcome;
    run_once(scenario, &outcome);
    for (int i = 0; i < FULL_TRIES && host_is_full(&outcome); i++) {
        sleep(1);
        reset(page->state.target, page->state.variant, page->state.lasting);
        run_once(scenario, &outcome);
    }
    bool good = judge(scenario, &outcome, clean);
    if (!good || verbose)
        describe(scenario, &outcome);
    fflush(stdout);
    return good;
}

/* Twice: blocks that a thread or a cache keeps differ a little between runs. */
static bool count_calls(const struct scenario *scenario, const struct sweep *sweep)
{
    inject_state *state = &page->state;
    memset(page, 0, sizeof *page);
    snprintf(state->module, sizeof state->module, "%s", scenario->module);
    state->cap = sweep->cap;
    inject_begin(state);
    reset((inject_call){-1, 0}, 0, false);
    if (!run_and_judge(scenario, true, sweep->verbose))
        return false;
    state->logging = true;
    reset((inject_call){-1, 0}, 0, false);
    bool good = run_and_judge(scenario, true, false);
    state->logging = false;
    return good;
}

static int fail_each(const struct scenario *scenario, const struct sweep *sweep)
{
    const inject_state *state = &page->state;
    int bad = 0, runs = 0;
    double began = now_s();
    for (int i = 0; i < state->call_count; i += sweep->stride) {
        inject_call call = state->calls[i];
        if (sweep->only_site >= 0 && state->sites[call.site].offset != (uintptr_t)sweep->only_site)
            continue;
        for (int variant = 0; variant < state->sites[call.site].variants; variant++) {
            reset(call, variant, sweep->lasting);
            bad += !run_and_judge(scenario, false, sweep->verbose);
            runs++;
        }
    }
    printf("%s: %d calls, %d runs with one that fails, %.0f s: %d wrong\n", scenario->name,
           state->call_count, runs, now_s() - began, bad);
    return bad;
}

static int sweep_scenario(const struct scenario *scenario, const struct sweep *sweep)
{
    return count_calls(scenario, sweep) ? fail_each(scenario, sweep) : 1;
}

/* ---- setting up ---- */

static int make_page(void)
{
    int fd = memfd_create("inject", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof *page) != 0)
        return -1;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    snprintf(page_path, sizeof page_path, "/proc/%d/fd/%d", (int)getpid(), fd);
    return page == MAP_FAILED ? -1 : 0;
}

static void set_environment(void)
{
    setenv("COHORT_PROFILE", "described", 0);
    setenv("COHORT_STALL", "2", 0);
    setenv("COHORT_INIT_TIMEOUT", "2", 0);
    setenv("COHORT_SIM", "seed=1", 0);
}

static int usage(void)
{
    fprintf(stderr, "usage: inject [--scenario NAME] [--stride N] [--cap N] [--site OFFSET] "
                    "[--lasting] [--verbose] TOOL RING OBJECT\n");
    return 2;
}

static const struct option flags[] = {
    {"scenario", required_argument, NULL, 's'}, {"stride", required_argument, NULL, 'n'},
    {"cap", required_argument, NULL, 'c'},      {"site", required_argument, NULL, 'o'},
    {"lasting", no_argument, NULL, 'l'},        {"verbose", no_argument, NULL, 'v'},
    {"member", required_argument, NULL, 'm'},   {NULL, 0, NULL, 0},
};

static int sweep_all(const struct sweep *sweep)
{
    int bad = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        if (!sweep->only || strcmp(sweep->only, scenarios[i].name) == 0)
            bad += sweep_scenario(&scenarios[i], sweep);
    return bad != 0;
}

/* How a flag changes the sweep; false for one that is not known. */
static bool take_flag(int flag, struct sweep *sweep)
{
    switch (flag) {
    case 's':
        sweep->only = optarg;
        return true;
    case 'n':
        sweep->stride = atoi(optarg);
        return sweep->stride > 0;
    case 'c':
        sweep->cap = atoi(optarg);
        return true;
    case 'o':
        sweep->only_site = strtol(optarg, NULL, 0);
        return true;
    case 'l':
        return sweep->lasting = true;
    case 'v':
        return sweep->verbose = true;
    default:
        return false;
    }
}

static int sweep_in_folder(const struct sweep *sweep)
{
    set_environment();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!mkdtemp(inject_folder) || make_page() != 0)
        return 1;
    snprintf(profile_path, sizeof profile_path, "%s/profile", inject_folder);
    int status = sweep_all(sweep);
    unlink(profile_path);
    return rmdir(inject_folder) == 0 ? status : 1;
}

int main(int argc, char **argv)
{
    struct sweep sweep = {.stride = 1, .cap = FULL_CAP, .only_site = -1};
    for (int flag; (flag = getopt_long(argc, argv, "", flags, NULL)) >= 0;) {
        if (flag == 'm')
            return job_member(atoi(optarg));
        if (!take_flag(flag, &sweep))
            return usage();
    }
    if (argc - optind != 3)
        return usage();
    inject_self = argv[0];
    inject_tool = argv[optind];
    inject_ring = argv[optind + 1];
    inject_object = argv[optind + 2];
    return sweep_in_folder(&sweep);
}
