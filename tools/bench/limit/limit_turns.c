#include "bench/limit/limit.h"

#include "base/atomics.h"
#include "base/clock.h"

#include <sched.h>

static inline void look_again(void)
{
}

static inline void yield_core(void)
{
    sched_yield();
}

static inline __attribute__((always_inline)) void await(const cohi_limit_line *line, uint64_t turn,
                                                        void (*pause_between)(void))
{
    while (__atomic_load_n(&line->count, __ATOMIC_ACQUIRE) < turn)
        pause_between();
}

static void give(cohi_limit_line *line, uint64_t turn)
{
    __atomic_store_n(&line->count, turn, __ATOMIC_RELEASE);
}

/* The compiler makes a loop of its own for each of the forms below. */
static inline __attribute__((always_inline)) void
bounce(const cohi_limit_pair *pair, uint64_t repeats, void (*pause_between)(void))
{
    uint64_t turn = pair->theirs->count + 1, last = turn + repeats;
    for (; turn != last; turn++) {
        if (pair->first)
            give(pair->theirs, turn);
        await(pair->mine, turn, pause_between);
        if (!pair->first)
            give(pair->theirs, turn);
    }
}

static void bounce_spin(const cohi_limit_pair *pair, uint64_t repeats)
{
    bounce(pair, repeats, look_again);
}

static void bounce_pause(const cohi_limit_pair *pair, uint64_t repeats)
{
    bounce(pair, repeats, cohi_cpu_relax);
}

static void bounce_yield(const cohi_limit_pair *pair, uint64_t repeats)
{
    bounce(pair, repeats, yield_core);
}

static const cohi_limit_turn_form forms[] = {
    {"line, spin", 0, bounce_spin},
    {"line, pause", 0, bounce_pause},
    {"line, yield", 1, bounce_yield},
};

const cohi_limit_turn_form *cohi_limit_turn_form_at(size_t index)
{
    return index < sizeof forms / sizeof *forms ? &forms[index] : NULL;
}

double cohi_limit_turns(const cohi_limit_turn_form *form, const cohi_limit_pair *pair,
                        uint64_t repeats)
{
    form->bounce(pair, 1);
    uint64_t start = cohi_now_ns();
    form->bounce(pair, repeats);
    return (double)(cohi_now_ns() - start) / (2 * (double)repeats);
}

static void await_politely(const cohi_limit_pair *pair, const cohi_limit_line *line, uint64_t turn)
{
    if (pair->yields)
        await(line, turn, yield_core);
    else
        await(line, turn, cohi_cpu_relax);
}

/* Returns the nanoseconds that the writing took. */
static uint64_t give_load(const cohi_limit_pair *pair, const cohi_limit_load *load, uint64_t turn)
{
    uint64_t start = cohi_now_ns();
    load->write(load->arg);
    uint64_t written = cohi_now_ns();
    if (load->pushed)
        load->copy(load->arg);
    give(pair->theirs, turn);
    return written - start;
}

static void get_load(const cohi_limit_pair *pair, const cohi_limit_load *load, uint64_t turn)
{
    await_politely(pair, pair->mine, turn);
    if (!load->pushed)
        load->copy(load->arg);
}

static uint64_t hand_over(const cohi_limit_pair *pair, const cohi_limit_load *load,
                          uint64_t repeats)
{
    uint64_t turn = pair->theirs->count + 1, last = turn + repeats, writing = 0;
    for (; turn != last; turn++) {
        if (pair->first)
            writing += give_load(pair, load, turn);
        get_load(pair, load, turn);
        if (!pair->first)
            writing += give_load(pair, load, turn);
    }
    return writing;
}

double cohi_limit_handover(const cohi_limit_pair *pair, const cohi_limit_load *load,
                           uint64_t repeats)
{
    hand_over(pair, load, 1);
    uint64_t start = cohi_now_ns();
    uint64_t writing = hand_over(pair, load, repeats);
    return cohi_limit_one_way(pair, cohi_now_ns() - start, writing, repeats);
}

/* A turn of its own. The one that does not begin may have started its clock late, if it was
 * interrupted just then; the other one's figure is what counts. */
double cohi_limit_one_way(const cohi_limit_pair *pair, uint64_t passed, uint64_t writing,
                          uint64_t repeats)
{
    uint64_t turn = pair->theirs->count + 1;
    pair->theirs->told = writing;
    give(pair->theirs, turn);
    await_politely(pair, pair->mine, turn);
    writing += pair->mine->told;
    return passed > writing ? (double)(passed - writing) / (2 * (double)repeats) : 0;
}

static void send_window(const cohi_limit_pair *pair, cohi_limit_line *window, uint64_t turn)
{
    for (size_t i = 0; i < COHI_LIMIT_WINDOW; i++)
        give(&window[i], turn);
    await_politely(pair, pair->mine, turn);
    give(pair->theirs, turn);
}

static void take_window(const cohi_limit_pair *pair, const cohi_limit_line *window, uint64_t turn)
{
    for (size_t i = 0; i < COHI_LIMIT_WINDOW; i++)
        await_politely(pair, &window[i], turn);
    give(pair->theirs, turn);
    await_politely(pair, pair->mine, turn);
}

double cohi_limit_window(const cohi_limit_pair *pair, cohi_limit_line *window, uint64_t repeats)
{
    uint64_t turn = pair->theirs->count + 1, last = turn + repeats;
    uint64_t start = cohi_now_ns();
    for (; turn != last; turn++) {
        if (pair->first)
            send_window(pair, window, turn);
        else
            take_window(pair, window, turn);
    }
    return (double)(cohi_now_ns() - start) / ((double)repeats * COHI_LIMIT_WINDOW);
}
