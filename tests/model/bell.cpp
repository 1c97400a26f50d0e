/*
 * bell.cpp - how a rank sleeps and is woken (core/health/wait.c, core/health/control.h, bootstrap/board.c), and
 * the latch (base/latch.c).
 *
 * A sleeper announces itself, looks once more, and sleeps on the bell; a writer stores, looks
 * whether somebody announced itself, and rings. The writer's look may be early, so that it does not
 * ring; the sleeper then sleeps until its time is over (docs/architecture.md, "Waiting").
 *
 * bell: a sleeper whose writer rang goes on without waiting for its time to be over, also when the
 * writer rang for an earlier wait.
 *
 * fenced: with a full fence on both sides, which the library leaves out, no ring is missed at all. So
 * the early look is the only way to miss one; and each fence is needed for that.
 *
 * latch: one thread at a time holds it and sees what those before it stored; a thread that sleeps for it gets it.
 */
#include "model.hpp"

/* ---- the kernel's futex ---- */

enum { THREADS = 8 };

static bool timed; /* whether a sleep may end by itself */

/* The kernel compares under a lock that who wakes takes too: it sees the last store. */
static bool asleep[THREADS]; /* by thread */

static void cohi_os_futex_wait(word<unsigned> *word, unsigned expected, uint64_t)
{
    if (word->debug_value() != expected)
        return;
    asleep[rl::thread_index()] = true;
    word->wait(rl::ctx(), timed, false, $);
    asleep[rl::thread_index()] = false;
}

static void cohi_os_futex_wake(word<unsigned> *word)
{
    enum { ALL = 16 };
    rl::ctx().sched();
    word->wake(rl::ctx(), ALL, $);
}

/* ---- what stands around the library's text ---- */

enum cohi_opcode { COHI_OP_BARRIER, COHI_OP_WAIT, COHI_OP_LOCK };
enum { COHI_NS_PER_MS = 1, SLEEP_NS = 1, FIRST_SLEEP_NS = 1 };
#define pthread_setcancelstate(state, old) ((void)0)

struct cohi_slot {
    word<unsigned> bell, sleepers, watchers;
    word<int> waits_for;
    word<uint64_t> since_ns;
};

struct cohi_lifecycle {
    void (*idle)(void *endpoint, uint64_t ns);
    bool (*rest)(void *endpoint);
};

struct cohi_engine {
    const cohi_lifecycle *lifecycle;
};

struct coh_world;

struct cohi_delays {
    void (*idle)(coh_world *world, uint64_t waited_ns);
};

struct coh_world {
    cohi_slot *slot;
    const cohi_engine *engine;
    void *endpoint;
    int company;
    const cohi_delays *delays;
};

struct cohi_wait {
    coh_world *world;
    cohi_opcode op;
    bool asleep, relieved, slept;
    unsigned bell;
    uint64_t last_ns, waited_ns, examine_at_ns;
    void *doing;
    int cancel_state;
};

static uint64_t cohi_now_ns()
{
    return 0;
}

static void cohi_doing_hide(void **)
{
}

static void count_time(cohi_wait *)
{
}

static bool is_together(const cohi_wait *)
{
    return false;
}

static void cohi_company_placed(int *, uint64_t)
{
}

static void cohi_company_show(cohi_slot *)
{
}

static coh_status examine(cohi_wait *)
{
    return COH_OK;
}

/* The fences that the library leaves out. */
static bool fenced;

static void fence(const char *without)
{
    if (fenced && !model::is(without))
        rl::atomic_thread_fence(rl::mo_seq_cst, $);
}

#undef atomic_signal_fence
#define atomic_signal_fence(order) fence("no fence of the writer")

static bool rung[THREADS]; /* by thread */

// pick board.c cohi_slot_ring
// but s/^(.*)(atomic_fetch_add\(&slot->bell, 1\);)/    rung[rl::thread_index()] = true;\n    if (!model::is("rings without counting"))\n    \2/
// pick control.c cohi_control_ring cohi_control_ring_watcher
// pick control.h cohi_control_wake cohi_control_wake_watcher cohi_control_end
// pick wait.c watches cohi_wait_end
// pick wait.c relieve
// pick wait.c announce
// but s/wait->bell = .*/&\n    fence("no fence of the sleeper");/
// pick wait.c sleep_once
// but s/slot->bell, wait->bell,/slot->bell, model::is("the bell is read after the look") ? world->slot->bell.debug_value() : wait->bell,/
// but s/^        return COH_OK;/        if (!model::is("sleeps without another look")) return COH_OK;/

/* ---- bell ---- */

enum { WRITERS = 2, SLEEPER = WRITERS };

template <typename derived> struct sleeping : model::suite<derived, WRITERS + 2> {
    cohi_slot slot;
    cohi_lifecycle lifecycle;
    cohi_engine engine;
    coh_world world;
    word<unsigned> flags[WRITERS], written[WRITERS], woken;
    unsigned kind; /* of wait: for a flag, for a word of the heap, the same with the call's end */

    void before()
    {
        lifecycle = {};
        engine.lifecycle = &lifecycle;
        world = {&slot, &engine, NULL, 0};
        kind = rl::rand(3);
        timed = false;
        fenced = derived::FENCED;
        for (int i = 0; i < THREADS; i++)
            asleep[i] = rung[i] = false;
    }

    void thread(unsigned index)
    {
        if (index < WRITERS)
            write(index);
        else if (index == SLEEPER)
            sleep();
        else
            pass_time();
    }

    void write(unsigned index)
    {
        flags[index].store(1, rl::mo_release, $);
        if (kind == 0)
            cohi_control_wake(&world, &slot);
        else if (kind == 1)
            cohi_control_wake_watcher(&slot);
        else
            RL_ASSERT(cohi_control_end(&slot) == COH_OK);
        written[index].store(1, rl::mo_relaxed, $);
    }

    void sleep()
    {
        for (unsigned i = 0; i < WRITERS; i++) {
            cohi_wait wait = {};
            wait.world = &world;
            wait.op = kind == 0 ? COHI_OP_BARRIER : COHI_OP_WAIT;
            wait.examine_at_ns = UINT64_MAX;
            while (!flags[i].load(rl::mo_acquire, $))
                RL_ASSERT(sleep_once(&wait) == COH_OK);
            cohi_wait_end(&wait);
            woken.store(i + 1, rl::mo_relaxed, $);
        }
        RL_ASSERT(slot.sleepers.debug_value() == 0 && slot.watchers.debug_value() == 0);
    }

    /* Ends the sleep of one whose writer is through and did not ring, as its time does; nobody
     * else's. It sees all as it is, and orders nothing. */
    void pass_time()
    {
        for (unsigned at = 0; at < WRITERS; at = woken.debug_value()) {
            if (written[at].debug_value() && !rung[at] && asleep[SLEEPER]) {
                RL_ASSERT(!fenced);
                slot.bell.wake(rl::ctx(), 1, $);
            }
            rl::yield(1, $);
        }
    }
};

struct bell_suite : sleeping<bell_suite> {
    enum { FENCED = false };
};

struct fenced_suite : sleeping<fenced_suite> {
    enum { FENCED = true };
};

/* ---- latch ---- */

enum { LOOKS = 1 };

// pick latch.h cohi_latch
static void cohi_latch_await(cohi_latch *latch);
static void cohi_latch_wake(cohi_latch *latch);
// pick latch.h cohi_latch_try cohi_latch_take cohi_latch_give
// pick latch.c cohi_latch_await cohi_latch_wake

struct latch_suite : model::suite<latch_suite, 3> {
    enum { TIMES = 2, HOLDERS = 3 };
    cohi_latch latch;
    model::plain<unsigned> count;

    void before()
    {
        fenced = false;
        timed = true;
    }

    void thread(unsigned)
    {
        for (int i = 0; i < TIMES; i++) {
            cohi_latch_take(&latch);
            count = count + 1;
            cohi_latch_give(&latch);
        }
    }

    void after()
    {
        RL_ASSERT(count == TIMES * HOLDERS);
        RL_ASSERT(latch.sleepers.debug_value() == 0);
    }
};

int main(int argc, char **argv)
{
    model::times(argc, argv);
    bool good = model::check<bell_suite>(
        {"bell",
         50000,
         {"rings without counting", "the bell is read after the look"},
         {"seq_cst in cohi_wait_end"} /* nothing is looked at after it */});
    good &= model::check<fenced_suite>(
        {"fenced",
         20000,
         {"no fence of the writer", "no fence of the sleeper", "sleeps without another look"},
         /* The fences order all that these do. */
         {"seq_cst in announce", "seq_cst in cohi_wait_end", "seq_cst in cohi_slot_ring"}});
    good &= model::check<latch_suite>(
        {"latch",
         20000,
         {},
         {"seq_cst in cohi_latch_await"} /* one that is missed looks again in time */});
    return good ? 0 : 1;
}
