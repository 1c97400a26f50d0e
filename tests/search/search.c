#include "search.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOAD_MAX = 64 };

struct order {
    const char *engine; /* NULL: as the seed says, and so with ranks */
    int ranks;
    int right, faulty; /* programs of each kind */
    int jobs;          /* at a time */
    int load;          /* busy processes beside them */
    bool show;         /* print the programs, and what their ranks got */
    uint64_t seed;
};

/* ---- one program, in a process of its own ---- */

/* Programs of both kinds alternate, so that either is met early. */
static search_program program_of(const struct order *order, int number)
{
    int pairs = order->right < order->faulty ? order->right : order->faulty;
    bool in_pairs = number < 2 * pairs;
    search_program program = {.size = order->ranks, .show = order->show};
    program.faulty = in_pairs ? number % 2 : order->faulty > order->right;
    program.seed = order->seed + (uint64_t)(in_pairs ? number / 2 : number - pairs);
    if (order->engine)
        snprintf(program.engine, sizeof program.engine, "%s", order->engine);
    search_draw_place(&program);
    search_draw(&program);
    return program;
}

static pid_t start_program(const struct order *order, int number)
{
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* what one program says stays together */
    search_program program = program_of(order, number);
    if (order->show)
        search_print(&program);
    exit(search_run(&program) > 0);
}

/* ---- load ---- */

static void start_load(int count, pid_t *busy)
{
    for (int i = 0; i < count; i++) {
        busy[i] = fork();
        if (busy[i] != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t work = 0;; work++)
            ;
    }
}

static void end_load(int count, const pid_t *busy)
{
    for (int i = 0; i < count; i++)
        if (busy[i] > 0) {
            kill(busy[i], SIGKILL);
            waitpid(busy[i], NULL, 0);
        }
}

/* ---- all of them ---- */

static int reap_one(const pid_t *busy, int load, bool *failed)
{
    int end;
    pid_t child = wait(&end);
    for (int i = 0; i < load; i++)
        if (child == busy[i])
            return 0;
    *failed = !WIFEXITED(end) || WEXITSTATUS(end) != 0;
    return child > 0;
}

static int search(const struct order *order)
{
    pid_t busy[LOAD_MAX];
    int all = order->right + order->faulty, running = 0, wrong = 0;
    start_load(order->load, busy);
    for (int next = 0; next < all || running > 0;) {
        if (next < all && running < order->jobs) {
            running += start_program(order, next++) > 0;
            continue;
        }
        bool failed = false;
        running -= reap_one(busy, order->load, &failed);
        wrong += failed;
    }
    end_load(order->load, busy);
    printf("search: %d right and %d faulty programs from seed %llu%s%s: %d judged wrong\n",
           order->right, order->faulty, (unsigned long long)order->seed,
           order->engine ? " on " : "", order->engine ? order->engine : "", wrong);
    return wrong > 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: search [--right N] [--faulty N] [--engine threads|shm|sim] [--ranks 2..%d]\n"
            "              [--seed S] [--kind right|faulty] [--jobs J] [--load L] [--show]\n"
            "--kind is one program of that kind; --load starts busy processes beside; --show\n"
            "prints the programs and what their ranks got.\n",
            SEARCH_RANKS);
    return 2;
}

static bool is_sound(const struct order *order)
{
    return order->right >= 0 && order->faulty >= 0 && order->jobs > 0 && order->load >= 0
           && order->load <= LOAD_MAX
           && (order->ranks == 0 || (order->ranks >= 2 && order->ranks <= SEARCH_RANKS));
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"right", required_argument, NULL, 'r'},  {"faulty", required_argument, NULL, 'f'},
        {"engine", required_argument, NULL, 'e'}, {"ranks", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},   {"kind", required_argument, NULL, 'k'},
        {"jobs", required_argument, NULL, 'j'},   {"load", required_argument, NULL, 'l'},
        {"show", no_argument, NULL, 'v'},         {NULL, 0, NULL, 0},
    };
    uint64_t state = (uint64_t)(test_now() * 1e9);
    struct order order = {.jobs = 4, .seed = test_random(&state) % 1000000000};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'r')
            order.right = atoi(optarg);
        else if (option == 'f')
            order.faulty = atoi(optarg);
        else if (option == 'e')
            order.engine = optarg;
        else if (option == 'n')
            order.ranks = atoi(optarg);
        else if (option == 's')
            order.seed = strtoull(optarg, NULL, 0);
        else if (option == 'k')
            *(strcmp(optarg, "right") == 0 ? &order.right : &order.faulty) = 1;
        else if (option == 'j')
            order.jobs = atoi(optarg);
        else if (option == 'l')
            order.load = atoi(optarg);
        else if (option == 'v')
            order.show = true;
        else
            return usage();
    }
    return is_sound(&order) && optind == argc ? search(&order) : usage();
}
