#include "engine/sim/fabric.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <stdlib.h>

/* A poller goes on after so many steps though nothing arrived: what it waits for may come another
 * way. */
enum { POLL_STEPS = 64 };

/* ---- the clock's next look ---- */

static void tick_by(cohi_fabric *fabric, uint64_t when_ns)
{
    if (when_ns >= fabric->tick_ns)
        return;
    fabric->tick_ns = when_ns;
    pthread_cond_signal(&fabric->tick);
}

/* ---- threads ---- */

static void insert_thread(cohi_fabric *fabric, cohi_sim_thread *thread)
{
    cohi_sim_thread **link = &fabric->threads;
    while (*link && (*link)->rank <= thread->rank)
        link = &(*link)->next;
    thread->next = *link;
    *link = thread;
}

static cohi_sim_thread *take_thread(cohi_fabric *fabric, const void *token)
{
    for (cohi_sim_thread **link = &fabric->threads; *link; link = &(*link)->next) {
        cohi_sim_thread *thread = *link;
        if (thread->token != token)
            continue;
        *link = thread->next;
        return thread;
    }
    return NULL;
}

static cohi_sim_thread *find_thread(const cohi_fabric *fabric, const void *token)
{
    cohi_sim_thread *thread = fabric->threads;
    while (thread && thread->token != token)
        thread = thread->next;
    return thread;
}

/* The calling thread, among those of the endpoint's rank. NULL when there is no memory: it then
 * takes no turns. */
static cohi_sim_thread *thread_at(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    cohi_sim_thread *thread = find_thread(fabric, cohi_thread_token());
    if (thread && thread->rank == endpoint->rank)
        return thread;
    thread = take_thread(fabric, cohi_thread_token());
    if (!thread) {
        thread = calloc(1, sizeof *thread);
        if (!thread)
            return NULL;
        thread->token = cohi_thread_token();
        pthread_cond_init(&thread->turn, NULL);
        fabric->thread_count++;
    }
    thread->rank = endpoint->rank;
    thread->seen = thread->seen_idle = 0;
    insert_thread(fabric, thread);
    return thread;
}

static int waits(const cohi_sim_thread *thread)
{
    return thread->state == COHI_TURN_CALLS || thread->state == COHI_TURN_POLLS
           || thread->state == COHI_TURN_IDLES;
}

/* Whether it matters that a thread stays away: others wait, or something is on its way. */
static int wanted(const cohi_fabric *fabric)
{
    if (fabric->events)
        return 1;
    for (const cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next)
        if (waits(thread))
            return 1;
    return 0;
}

/* ---- who goes on ---- */

static int has_newcomers(const cohi_fabric *fabric)
{
    if (fabric->gave_up || !fabric->first_call_ns)
        return 0;
    for (int rank = 0; rank < fabric->size; rank++)
        if (fabric->endpoints[rank] && !fabric->endpoints[rank]->called)
            return 1;
    return 0;
}

/* Until when the fabric waits for a thread that runs or is yet to come; 0: for nobody. */
static uint64_t busy_until(const cohi_fabric *fabric)
{
    uint64_t patience = fabric->script.patience_ns;
    for (const cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next)
        if (thread->state == COHI_TURN_RUNS)
            return (thread->granted ? cohi_now_ns() : thread->since_ns) + patience;
    if (fabric->teller && !fabric->teller_late) {
        uint64_t since = fabric->teller_since_ns;
        return (since ? since : cohi_now_ns()) + patience;
    }
    return has_newcomers(fabric) ? fabric->first_call_ns + patience : 0;
}

static void grant(cohi_fabric *fabric, cohi_sim_thread *thread)
{
    thread->state = COHI_TURN_RUNS;
    thread->granted = 1;
    pthread_cond_signal(&thread->turn);
    tick_by(fabric, cohi_now_ns() + fabric->script.patience_ns);
}

static int is_ready(const cohi_fabric *fabric, const cohi_sim_thread *thread)
{
    if (!waits(thread))
        return 0;
    if (thread->state == COHI_TURN_CALLS)
        return 1;
    const cohi_endpoint *endpoint = fabric->endpoints[thread->rank];
    uint64_t seen = thread->state == COHI_TURN_IDLES ? thread->seen_idle : thread->seen;
    return !endpoint || endpoint->arrivals != seen
           || fabric->step - thread->parked_step >= POLL_STEPS;
}

/* Lets the seed pick one of those that can go on. Returns whether there was one. */
static int grant_ready(cohi_fabric *fabric)
{
    uint64_t count = 0;
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next)
        count += (uint64_t)is_ready(fabric, thread);
    if (count == 0)
        return 0;
    uint64_t skip = count > 1 ? cohi_dice_below(&fabric->dice, count) : 0;
    cohi_sim_thread *thread = fabric->threads;
    for (;; thread = thread->next)
        if (is_ready(fabric, thread) && skip-- == 0)
            break;
    fabric->step++;
    grant(fabric, thread);
    return 1;
}

/*
 * All wait for what only time or somebody outside can bring. Pollers look again, and sleepers do
 * when their time is up. This draws no number and counts no step, since the seed does not decide
 * how often it happens.
 */
static void grant_stuck(cohi_fabric *fabric)
{
    cohi_sim_thread *longest = NULL;
    uint64_t now = cohi_now_ns(), wake = UINT64_MAX;
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next) {
        if (thread->state != COHI_TURN_POLLS && thread->state != COHI_TURN_IDLES)
            continue;
        if (thread->until_ns > now) {
            wake = thread->until_ns < wake ? thread->until_ns : wake;
            continue;
        }
        if (!longest || thread->parked < longest->parked)
            longest = thread;
    }
    if (longest)
        grant(fabric, longest);
    else
        tick_by(fabric, wake);
}

void cohi_turn_next(cohi_fabric *fabric)
{
    for (;;) {
        if ((fabric->upcalls || fabric->rings > 0) && !fabric->teller) {
            cohi_fabric_tell(fabric);
            continue;
        }
        uint64_t limit = busy_until(fabric);
        if (limit) {
            if (wanted(fabric))
                tick_by(fabric, limit);
            return;
        }
        if (cohi_flight_deliver(fabric, fabric->step))
            continue;
        if (grant_ready(fabric))
            return;
        if (!fabric->events) {
            grant_stuck(fabric);
            return;
        }
        fabric->step = fabric->events->due;
    }
}

/* Waits in that state until it has the baton. */
static void park(cohi_fabric *fabric, cohi_sim_thread *thread, cohi_turn_state state,
                 uint64_t until_ns)
{
    thread->state = state;
    thread->until_ns = until_ns;
    thread->parked_step = fabric->step;
    thread->parked = ++fabric->parks;
    if (state == COHI_TURN_STALLS)
        cohi_turn_unstall(fabric);
    cohi_turn_next(fabric);
    int held = cohi_cancel_hold();
    while (!thread->granted)
        pthread_cond_wait(&thread->turn, &fabric->lock);
    cohi_cancel_release(held);
    thread->granted = 0;
    thread->since_ns = cohi_now_ns();
}

/* ---- stalls and kills ---- */

static int stalls_for_good(const cohi_fabric *fabric, int rank)
{
    for (const cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next)
        if (thread->rank == rank && thread->state == COHI_TURN_STALLS
            && thread->until_ns == UINT64_MAX)
            return 1;
    return 0;
}

void cohi_turn_unstall(cohi_fabric *fabric)
{
    for (int rank = 0; rank < fabric->size; rank++)
        if (cohi_fabric_alive(fabric, rank) && !stalls_for_good(fabric, rank))
            return;
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next) {
        if (thread->state != COHI_TURN_STALLS || thread->until_ns != UINT64_MAX)
            continue;
        thread->state = COHI_TURN_CALLS;
        tick_by(fabric, 0); /* nobody else may call any more */
    }
}

static cohi_strike *find_strike(cohi_endpoint *endpoint, cohi_blow blow)
{
    cohi_script *script = &endpoint->fabric->script;
    for (int i = 0; i < script->strike_count; i++) {
        cohi_strike *strike = &script->strikes[i];
        if (strike->rank == endpoint->rank && strike->blow == blow && !strike->struck
            && endpoint->calls >= strike->step)
            return strike;
    }
    return NULL;
}

static void stall(cohi_endpoint *endpoint, cohi_sim_thread *thread)
{
    cohi_strike *strike = find_strike(endpoint, COHI_BLOW_STALL);
    if (!strike || endpoint->killed_at)
        return;
    strike->struck = 1;
    uint64_t until = strike->for_ns ? cohi_now_ns() + strike->for_ns : UINT64_MAX;
    tick_by(endpoint->fabric, until);
    park(endpoint->fabric, thread, COHI_TURN_STALLS, until);
}

static coh_status kill_if_due(cohi_endpoint *endpoint)
{
    cohi_strike *strike = find_strike(endpoint, COHI_BLOW_KILL);
    if (strike && !endpoint->killed_at) {
        coh_status status = cohi_fabric_kill(endpoint);
        if (status != COH_OK)
            return status;
        strike->struck = 1;
        cohi_fabric_tell(endpoint->fabric);
    }
    if (!endpoint->killed_at)
        return COH_OK;
    return cohi_fail(COH_PEER_LOST, "rank %d was killed by the simulator at step %llu",
                     endpoint->rank, (unsigned long long)endpoint->killed_at);
}

static coh_status fail_if_due(cohi_endpoint *endpoint)
{
    cohi_strike *strike = find_strike(endpoint, COHI_BLOW_FAIL);
    if (!strike)
        return COH_OK;
    strike->struck = 1;
    return cohi_fail(COH_TRANSPORT, "rank %d: the simulator fails engine call %llu", endpoint->rank,
                     (unsigned long long)endpoint->calls);
}

/* ---- calls ---- */

/* Locks; NULL when the call comes from within an upcall, which has the baton already. */
static cohi_sim_thread *enter(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    pthread_mutex_lock(&fabric->lock);
    endpoint->called = 1;
    if (!fabric->first_call_ns)
        fabric->first_call_ns = cohi_now_ns();
    return fabric->teller == cohi_thread_token() ? NULL : thread_at(endpoint);
}

coh_status cohi_turn_call(cohi_endpoint *endpoint)
{
    cohi_sim_thread *thread = enter(endpoint);
    if (thread)
        park(endpoint->fabric, thread, COHI_TURN_CALLS, 0);
    endpoint->calls++;
    if (thread)
        stall(endpoint, thread);
    coh_status status = kill_if_due(endpoint);
    return status == COH_OK ? fail_if_due(endpoint) : status;
}

void cohi_turn_poll(cohi_endpoint *endpoint, uint64_t until_ns)
{
    cohi_sim_thread *thread = enter(endpoint);
    if (!thread)
        return;
    park(endpoint->fabric, thread, until_ns ? COHI_TURN_IDLES : COHI_TURN_POLLS, until_ns);
    if (until_ns)
        thread->seen_idle = endpoint->arrivals;
}

void cohi_turn_end(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    const void *token = cohi_thread_token();
    cohi_flight_deliver(fabric, fabric->step);
    cohi_fabric_tell(fabric);
    cohi_sim_thread *thread = fabric->teller == token ? NULL : find_thread(fabric, token);
    if (thread)
        thread->seen = endpoint->arrivals;
    if (fabric->events)
        tick_by(fabric, cohi_now_ns() + fabric->script.patience_ns);
    pthread_mutex_unlock(&fabric->lock);
}

void cohi_turn_forget(cohi_fabric *fabric, int rank)
{
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next)
        if (thread->rank == rank && thread->state == COHI_TURN_RUNS)
            thread->state = COHI_TURN_AWAY;
    cohi_turn_unstall(fabric);
}

/* ---- the clock ---- */

static void mark_late(cohi_fabric *fabric, uint64_t now)
{
    uint64_t patience = fabric->script.patience_ns;
    int matters = wanted(fabric);
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next) {
        int runs = thread->state == COHI_TURN_RUNS && !thread->granted;
        if (!runs || !matters || now < thread->since_ns + patience)
            continue;
        thread->state = COHI_TURN_AWAY;
        fabric->left_alone++;
    }
    if (fabric->teller && !fabric->teller_since_ns)
        fabric->teller_since_ns = now;
    if (fabric->teller && now >= fabric->teller_since_ns + patience)
        fabric->teller_late = 1;
    if (has_newcomers(fabric) && now >= fabric->first_call_ns + patience) {
        fabric->gave_up = 1;
        fabric->left_alone++;
    }
}

static void end_stalls(cohi_fabric *fabric, uint64_t now)
{
    for (cohi_sim_thread *thread = fabric->threads; thread; thread = thread->next) {
        if (thread->state != COHI_TURN_STALLS)
            continue;
        if (thread->until_ns <= now)
            thread->state = COHI_TURN_CALLS;
        else
            tick_by(fabric, thread->until_ns);
    }
}

static void wait_tick(cohi_fabric *fabric)
{
    if (fabric->tick_ns == UINT64_MAX) {
        pthread_cond_wait(&fabric->tick, &fabric->lock);
        return;
    }
    struct timespec when = {.tv_sec = (time_t)(fabric->tick_ns / COHI_NS_PER_S),
                            .tv_nsec = (long)(fabric->tick_ns % COHI_NS_PER_S)};
    pthread_cond_timedwait(&fabric->tick, &fabric->lock, &when);
}

static void *run_clock(void *arg)
{
    cohi_fabric *fabric = arg;
    cohi_os_thread_serves(true);
    pthread_mutex_lock(&fabric->lock);
    while (!fabric->closing) {
        uint64_t now = cohi_now_ns();
        fabric->tick_ns = UINT64_MAX;
        mark_late(fabric, now);
        end_stalls(fabric, now);
        cohi_turn_next(fabric);
        if (!fabric->closing)
            wait_tick(fabric);
    }
    pthread_mutex_unlock(&fabric->lock);
    cohi_os_thread_serves(false);
    return NULL;
}

coh_status cohi_turn_start(cohi_fabric *fabric)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fabric->tick, &monotonic);
    pthread_condattr_destroy(&monotonic);
    fabric->tick_ns = UINT64_MAX;
    int error = cohi_os_thread_start("cohort-sim", run_clock, fabric, &fabric->clock);
    if (!error)
        return COH_OK;
    pthread_cond_destroy(&fabric->tick);
    return cohi_fail_os(error, "the simulator cannot start its clock thread");
}

void cohi_turn_stop(cohi_fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    fabric->closing = 1;
    pthread_cond_signal(&fabric->tick);
    pthread_mutex_unlock(&fabric->lock);
    pthread_join(fabric->clock, NULL);
    pthread_cond_destroy(&fabric->tick);
    while (fabric->threads) {
        cohi_sim_thread *thread = fabric->threads;
        fabric->threads = thread->next;
        pthread_cond_destroy(&thread->turn);
        free(thread);
    }
}
