#include "memory/calibrate_line.h"

#include "base/clock.h"
#include "base/os.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Two threads write one word in turns. */
struct pair {
    _Alignas(128) atomic_int turn;
    _Alignas(128) int cores[2];
    uint64_t deadline_ns;
    double line_ns; /* 0: not found */
};

enum { WARM_TURNS = 200, TURNS = 1000, ALL_TURNS = WARM_TURNS + TURNS };

static void bind_to(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    sched_setaffinity(0, sizeof set, &set); /* unbound, the figure may be of one core */
}

static bool await(struct pair *pair, int turn)
{
    enum { LOOKS_A_CLOCK = 1024 };
    for (unsigned looks = 1; atomic_load_explicit(&pair->turn, memory_order_acquire) < turn;
         looks++)
        if (looks % LOOKS_A_CLOCK == 0 && cohi_now_ns() > pair->deadline_ns)
            return false;
    return true;
}

static void take(struct pair *pair, int turn)
{
    atomic_store_explicit(&pair->turn, turn, memory_order_release);
}

static void *answer(void *arg)
{
    struct pair *pair = arg;
    bind_to(pair->cores[1]);
    for (int turn = 1; turn < ALL_TURNS && await(pair, turn); turn += 2)
        take(pair, turn + 1);
    return NULL;
}

static void *ask(void *arg)
{
    struct pair *pair = arg;
    uint64_t start = 0;
    bool answered = true;
    bind_to(pair->cores[0]);
    for (int turn = 0; turn < ALL_TURNS && answered; turn += 2) {
        if (turn == WARM_TURNS)
            start = cohi_now_ns();
        take(pair, turn + 1);
        answered = await(pair, turn + 2);
    }
    if (answered)
        pair->line_ns = (double)(cohi_now_ns() - start) / TURNS;
    return NULL;
}

/* On threads of their own: the caller's cores are its user's to choose. */
static void play(struct pair *pair)
{
    pthread_t asking, answering;
    if (cohi_os_thread_start("cohort-line", answer, pair, &answering) != 0)
        return;
    bool both = cohi_os_thread_start("cohort-line", ask, pair, &asking) == 0;
    if (both)
        pthread_join(asking, NULL);
    else
        take(pair, ALL_TURNS);
    pthread_join(answering, NULL);
}

static bool find_cores(struct pair *pair)
{
    cpu_set_t set;
    int found = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int core = 0; core < CPU_SETSIZE && found < 2; core++)
        if (CPU_ISSET((size_t)core, &set))
            pair->cores[found++] = core;
    return found == 2;
}

double cohi_calibrate_line(uint64_t deadline_ns)
{
    struct pair pair = {.turn = 0, .deadline_ns = deadline_ns};
    if (find_cores(&pair))
        play(&pair);
    return pair.line_ns;
}
