#include "page.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct engine_row {
    const char *name;
    unsigned mask;
} engines[] = {
    {"threads", ON_THREADS},     {"shm", ON_SHM}, {"tcp", ON_TCP},         {"sim", ON_SIM},
    {"sim:channel", ON_CHANNEL}, {"ucx", ON_TCP}, {"mpi:openmpi", ON_TCP}, {"mpi:mpich", ON_TCP},
    {"nvshmem", ON_SHM}, /* heaps on a card */
    {"mlx:ring", ON_MLX},
};

enum { ENGINES = sizeof engines / sizeof *engines, SIZE_MOST = 16 };

struct choice {
    const char *program;
    const char *engine; /* NULL: all */
    const char *name;
    const char *check; /* COHORT_CHECK of rows that do not say; NULL: none */
    int ranks;         /* 0: every size of the row */
    int repeat;
    bool list;
    const char *bed; /* the test bed, or NULL */
};

/* One test of the group: a row on an engine at a size. */
struct plan {
    const test_case *row;
    const char *engine;
    const char *program;
    int size;
    char title[128];
};

struct plans {
    struct plan *plan;
    size_t count, room;
};

static uint64_t choose_seed(void)
{
    const char *given = getenv("COHORT_TEST_SEED");
    if (given && *given)
        return strtoull(given, NULL, 0);
    uint64_t state = (uint64_t)(test_now() * 1e9) ^ (uint64_t)getpid();
    return test_random(&state) % 1000000000;
}

static int cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int rank_count(const struct plan *plan)
{
    if (!plan->row->per_core)
        return plan->size;
    int wanted = plan->row->per_core * cores();
    return wanted < TEST_RANKS_MAX ? wanted : TEST_RANKS_MAX;
}

static void print_findings(const struct plan *plan, uint64_t seed)
{
    const test_page *page = test_page_get();
    int count = page->failures;
    for (int i = 0; i < count && i < TEST_MESSAGES; i++)
        print_error("  %s\n", page->messages[i]);
    if (count > TEST_MESSAGES)
        print_error("  and %d more\n", count - TEST_MESSAGES);
    print_error("  replay: COHORT_TEST_SEED=%llu %s --engine %s --ranks %d --case %s%s%s\n",
                (unsigned long long)seed, plan->program, plan->engine, plan->size, plan->row->name,
                test_bed ? " --testbed " : "", test_bed ? test_bed : "");
}

static void run_plan(void **state)
{
    const struct plan *plan = *state;
    static test_job job;
    int hosts = test_hosts;
    if (test_uses_card() && !(plan->row->engines & ON_CARD)) {
        print_message("  skipped: its body does not keep to calls, which a heap on a card takes\n");
        skip();
    }
    test_use_engine(plan->engine);
    job = (test_job){
        .row = plan->row, .engine = plan->engine, .ranks = rank_count(plan), .seed = choose_seed()};
    test_run(&job);
    test_hosts = hosts;
    if (test_failed()) {
        print_findings(plan, job.seed);
        fail_msg("%s failed", plan->title);
    }
    if (atomic_load(&test_page_get()->skipped)) {
        print_message("  skipped: %s\n", test_page_get()->skip_reason);
        skip();
    }
}

static void add_plan(struct plans *plans, const struct plan *plan)
{
    if (plans->count == plans->room) {
        plans->room = plans->room ? 2 * plans->room : 64;
        plans->plan = realloc(plans->plan, plans->room * sizeof *plans->plan);
    }
    plans->plan[plans->count++] = *plan;
}

/* Engines whose library may be missing; the others are always there. */
static bool has_library(const char *engine)
{
    return strcmp(engine, "ucx") == 0 || strcmp(engine, "nvshmem") == 0
           || strcmp(engine, "mlx:ring") == 0 || test_needs_places(engine);
}

static void add_row(struct plans *plans, const struct choice *choice, const test_case *row,
                    const struct engine_row *engine)
{
    if (!(row->engines & engine->mask) || (choice->name && strcmp(choice->name, row->name) != 0)
        || (choice->engine ? strcmp(choice->engine, engine->name) != 0
                           : has_library(engine->name)) /* by name alone */
        || (test_uses_further_heap() && row->mode != TEST_JOINED)
        || (test_uses_card() && !(engine->mask & (ON_MAPPED | ON_TCP))))
        return;
    for (int size = 1; size <= SIZE_MOST; size++) {
        if (!(row->sizes >> size & 1) || (choice->ranks && choice->ranks != size))
            continue;
        struct plan plan = {
            .row = row, .engine = engine->name, .program = choice->program, .size = size};
        snprintf(plan.title, sizeof plan.title, "%s [%s] %s x%d", row->name, row->rows,
                 engine->name, rank_count(&plan));
        for (int i = 0; i < choice->repeat; i++)
            add_plan(plans, &plan);
    }
}

static int usage(const char *program, const char *complaint, const char *value)
{
    fprintf(
        stderr,
        "%s: %s '%s'\n"
        "usage: %s [--engine threads|shm|tcp|ucx|mpi:openmpi|mpi:mpich|mlx:ring|nvshmem|sim|"
        "sim:channel]\n"
        "       [--ranks 1..%d] [--case NAME]\n"
        "       [--check on|order] [--hosts K] [--testbed NAME] [--heap 1..62|cuda] [--repeat N] "
        "[--list]\n",
        program, complaint, value, program, SIZE_MOST);
    return 2;
}

static bool known_engine(const char *name)
{
    for (int i = 0; i < ENGINES; i++)
        if (strcmp(engines[i].name, name) == 0)
            return true;
    return false;
}

static int parse(int argc, char **argv, struct choice *choice)
{
    static const struct option names[] = {
        {"engine", required_argument, NULL, 'e'}, {"ranks", required_argument, NULL, 'n'},
        {"case", required_argument, NULL, 'c'},   {"repeat", required_argument, NULL, 'r'},
        {"list", no_argument, NULL, 'l'},         {"check", required_argument, NULL, 'k'},
        {"hosts", required_argument, NULL, 'h'},  {"testbed", required_argument, NULL, 't'},
        {"heap", required_argument, NULL, 'p'},   {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case 'e':
            choice->engine = optarg;
            break;
        case 'n':
            choice->ranks = atoi(optarg);
            if (choice->ranks < 1 || choice->ranks > SIZE_MOST)
                return usage(argv[0], "not a number of ranks:", optarg);
            break;
        case 'c':
            choice->name = optarg;
            break;
        case 'r':
            choice->repeat = atoi(optarg);
            if (choice->repeat < 1)
                return usage(argv[0], "not a count:", optarg);
            break;
        case 'k':
            choice->check = optarg;
            break;
        case 'h':
            test_hosts = atoi(optarg);
            if (test_hosts < 1)
                return usage(argv[0], "not a number of hosts:", optarg);
            break;
        case 't':
            choice->bed = optarg;
            break;
        case 'p':
            if (strcmp(optarg, "cuda") == 0)
                test_heaps_choose_card();
            else
                test_heaps_choose(atoi(optarg));
            if (!test_uses_further_heap())
                return usage(argv[0], "not the number of a further heap:", optarg);
            break;
        case 'l':
            choice->list = true;
            break;
        default:
            return usage(argv[0], "bad option in", argv[optind - 1]);
        }
    }
    if (choice->engine && !known_engine(choice->engine))
        return usage(argv[0], "there is no engine", choice->engine);
    if (choice->bed && !test_bed_choose(choice->bed))
        return usage(argv[0], strerror(errno), choice->bed);
    return 0;
}

/* A variable of the caller's would change what the rows test. */
static void clear_environment(void)
{
    static const char *const names[] = {
        "COHORT_ENGINE",       "COHORT_HEAP",           "COHORT_HUGE_PAGES",    "COHORT_CHECK",
        "COHORT_LOG",          "COHORT_WARN",           "COHORT_STALL",         "COHORT_TIMEOUT",
        "COHORT_INIT_TIMEOUT", "COHORT_SPIN",           "COHORT_SIM",           "COHORT_FAULT",
        "COHORT_KERNELS",      "COHORT_PROFILE",        "COHORT_DETERMINISTIC", "COHORT_ALL_REDUCE",
        "COHORT_REDUCE",       "COHORT_REDUCE_SCATTER", "COHORT_ALL_GATHER",    "COHORT_GATHER",
        "COHORT_SCATTER",      "COHORT_BROADCAST",      "COHORT_ALL_TO_ALL",    "COHORT_SCAN",
        "COHORT_RANK",         "COHORT_SIZE",           "COHORT_JOB_FD",        "COHORT_HOST",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

static bool is_on_path(const char *program)
{
    char command[256];
    snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* In a process of its own, so that what the library does when it is loaded is not done before the cases. */
static bool is_missing(const char *engine)
{
    int end = 0;
    if (!engine || !has_library(engine))
        return false;
    test_use_engine(engine);
    if (test_needs_places(engine) && !is_on_path(test_places_launcher(engine))) {
        fprintf(stderr, "skipped: there is no %s\n", test_places_launcher(engine));
        return true;
    }
    pid_t child = fork();
    if (child == 0) {
        bool here = coh_engine_available(engine) == COH_OK;
        if (!here)
            fprintf(stderr, "skipped: %s\n", coh_last_error());
        _exit(here ? 0 : 1);
    }
    return child > 0 && waitpid(child, &end, 0) == child && end != 0;
}

static int run_group(const char *program, const struct plans *plans)
{
    struct CMUnitTest *tests = calloc(plans->count, sizeof *tests);
    for (size_t i = 0; i < plans->count; i++)
        tests[i] = (struct CMUnitTest){
            .name = plans->plan[i].title, .test_func = run_plan, .initial_state = &plans->plan[i]};
    const char *slash = strrchr(program, '/');
    int failed =
        _cmocka_run_group_tests(slash ? slash + 1 : program, tests, plans->count, NULL, NULL);
    free(tests);
    return failed ? 1 : 0;
}

/* Cases that an engine without memory has not are not among the plans; here is why. */
static void tell_left_out(const char *engine, const test_case *const *tables, const size_t *counts,
                          size_t table_count)
{
    int needs_memory = 0, needs_threads = 0;
    if (!engine || test_has_memory(engine) || !test_has_processes(engine))
        return;
    for (size_t table = 0; table < table_count; table++)
        for (size_t i = 0; i < counts[table]; i++) {
            unsigned on = tables[table][i].engines;
            needs_memory += !(on & (ON_MLX | ON_CHANNEL));
            needs_threads += !(on & ON_MLX) && (on & ON_CHANNEL);
        }
    printf(
        "%s: left out: %d cases for engines with one-sided memory, %d for ranks of one process\n",
        engine, needs_memory, needs_threads);
}

int test_suite(int argc, char **argv, const test_case *const *tables, const size_t *counts,
               size_t table_count)
{
    struct choice choice = {.program = argv[0], .repeat = 1};
    struct plans plans = {0};
    enum { SKIPPED = 77 };
    test_places_stub();
    int wrong = parse(argc, argv, &choice);
    if (wrong)
        return wrong;
    clear_environment();
    if (is_missing(choice.engine) || (test_uses_card() && !choice.list && test_card_is_missing()))
        return SKIPPED;
    if (choice.check)
        setenv("COHORT_CHECK", choice.check, 1);
    test_stacks_open();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int engine = 0; engine < ENGINES; engine++)
        for (size_t table = 0; table < table_count; table++)
            for (size_t i = 0; i < counts[table]; i++)
                add_row(&plans, &choice, &tables[table][i], &engines[engine]);
    if (plans.count == 0)
        return usage(argv[0], "no case is for this choice, such as",
                     choice.name ? choice.name : "this size");
    for (size_t i = 0; choice.list && i < plans.count; i++)
        printf("%s\n", plans.plan[i].title);
    tell_left_out(choice.engine, tables, counts, table_count);
    int outcome = choice.list ? 0 : run_group(argv[0], &plans);
    free(plans.plan);
    return outcome;
}
