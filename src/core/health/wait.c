/*
 * A waiting rank can look on, yield its core, or sleep until its bell rings. Which one is right
 * depends on what else wants the core (core/world/company.h decides, by the rules below).
 *
 * Nobody, or strangers: processes that have nothing to do with the job. The rank looks for half a
 * millisecond, then sleeps. It does not yield. The kernel puts a rank that yields behind the
 * stranger, for a time slice of some milliseconds, and the next meeting is that late; the others
 * yield meanwhile, and the ranks never run at the same time. Nor does it look for ever: a rank that
 * looks while its peer is off its core wastes its own slice, and is off when the peer comes back. A
 * sleeper spends nothing and has a claim to the core: when the peer is back and rings, the kernel
 * lets it run at once, and from then on both run together until one has used up its share. Two
 * ranks bound to two cores, a stranger on each, 20 us of work between collectives, us for each
 * collective: yielding 190, looking for ever 99, looking and sleeping 43. 50 us of work: 3600, 139,
 * 106. No more than twice the work can be hoped for, as the strangers have half of the time.
 *
 * The rank that is waited for, where each could have a core: the kernel may start both on one, and
 * takes 10 to 100 ms to part them. Then every look is wasted. Ranks show on the board which core
 * they are on. A rank that finds the awaited one on its own core first sleeps, since a sleeper is
 * woken on an idle core if there is one. If there is none, it yields instead: a barrier takes 2 us
 * that way, and 7 by sleeping.
 *
 * Ranks of this job, where they outnumber the cores: it yields at once. Each yield gives the core
 * to a rank that may be the awaited one.
 *
 * Strangers among those: yields that take a time slice tell. If they are close together it sleeps
 * instead of yielding, and tries again after a while. Barriers of 4 ranks on two cores with two
 * strangers: 1950 us yielding, 130 us sleeping. A lone stranger gets a slice now and then, which
 * costs less than sleeping each time.
 */
#include "core/health/far.h"
#include "core/health/wait.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/health/order.h"
#include "core/health/peer.h"
#include "core/health/survey.h"
#include "core/health/verdict.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* The longest that one step may count for: more means that this rank itself was not running. */
#define STEP_COUNTS_NS (20 * COHI_NS_PER_MS)
/* A sleeper looks again at least this often: a plain store from a mapped peer wakes nobody. */
#define SLEEP_NS COHI_NS_PER_MS
/* The first sleep is shorter: a ring can be missed (see cohi_control_wake) only by a sleeper that
 * has just announced itself. */
#define FIRST_SLEEP_NS (100 * COHI_NS_PER_US)
/* How often a sleeper asks who keeps it waiting; less often when that has taken long. */
#define EXAMINE_NS      (50 * COHI_NS_PER_MS)
#define EXAMINE_LATE_NS (250 * COHI_NS_PER_MS)
#define LATE_NS         (2 * COHI_NS_PER_S)

void cohi_wait_begin(cohi_wait *wait, coh_world *world, const char *call, cohi_opcode op,
                     cohi_party *party, int rank)
{
    *wait = (cohi_wait){.world = world,
                        .call = call,
                        .op = op,
                        .party = party,
                        .rank = rank,
                        .tag = -1,
                        .examine_at_ns = EXAMINE_NS,
                        .warn_at_ns = world->warn_ns,
                        .left = -1};
}

/* Whether a put or an atomic of a peer may be what it waits for. */
static bool watches(const cohi_wait *wait)
{
    return wait->op == COHI_OP_WAIT || wait->op == COHI_OP_LOCK;
}

void cohi_wait_end(cohi_wait *wait)
{
    if (!wait->asleep)
        return;
    cohi_slot *slot = wait->world->slot;
    cohi_doing_hide(&wait->doing);
    if (watches(wait))
        atomic_fetch_sub(&slot->watchers, 1);
    atomic_fetch_sub(&slot->sleepers, 1);
    atomic_store_explicit(&slot->waits_for, -1, memory_order_relaxed);
    atomic_store_explicit(&slot->since_ns, 0, memory_order_relaxed);
    pthread_setcancelstate(wait->cancel_state, NULL);
}

/* ---- who keeps us waiting ---- */

static int first_suspect(const cohi_wait *wait)
{
    int absent = wait->party ? wait->party->first_absent(wait->party) : -1;
    return absent >= 0 ? absent : wait->rank;
}

/* What others are to know of the wait. */
static cohi_awaited awaited_by(const cohi_wait *wait)
{
    const coh_world *world = wait->world;
    cohi_awaited awaited = {.op = wait->op,
                            .sequence = wait->party ? atomic_load(&world->slot->sequence) : 0,
                            .tag = wait->tag,
                            .rank = wait->list ? -1 : first_suspect(wait),
                            .ends = wait->ends};
    if (wait->list)
        wait->list(wait->waiting, &awaited.ranks);
    if (wait->word)
        wait->word(wait->waiting, &awaited.word);
    for (int rank = 0; !wait->list && awaited.rank < 0 && rank < world->size; rank++)
        cohi_spans_add(&awaited.ranks, rank);
    return awaited;
}

/* From the rank that we wait for to the one that it waits for, and so on: the last one is to blame.
 * A circle ends where it began, or at this rank's own neighbour. */
static int follow_chain(coh_world *world, int rank, cohi_sight *sight)
{
    *sight = cohi_peer_look(world, rank);
    for (int hops = 0; hops < world->size; hops++) {
        int next = sight->waits_for;
        bool onward = sight->known && !sight->stopped && !sight->busy && sight->op != COHI_OP_NONE
                      && next >= 0 && next < world->size && next != world->rank && next != rank;
        cohi_sight further = onward ? cohi_peer_look(world, next) : *sight;
        if (!onward || further.phase == COHI_PHASE_LEFT) /* the rank that waits for it will tell */
            break;
        rank = next;
        *sight = further;
    }
    return rank;
}

/* The first rank whose wait comes to this length warns for all: hundreds of them wait for the same
 * one. */
static bool is_first_to_warn(coh_world *world, uint64_t length_ns)
{
    uint64_t told = atomic_load(&world->board->head->warned_ns);
    while (told < length_ns)
        if (atomic_compare_exchange_weak(&world->board->head->warned_ns, &told, length_ns))
            return true;
    return false;
}

/* Whether this rank is to warn now, for all. */
static bool is_to_warn(cohi_wait *wait)
{
    if (wait->warn_at_ns == 0 || wait->waited_ns < wait->warn_at_ns)
        return false;
    uint64_t length_ns = wait->warn_at_ns;
    wait->warn_at_ns *= 2;
    return is_first_to_warn(wait->world, length_ns);
}

static void warn_of(cohi_wait *wait, int rank, const cohi_sight *sight)
{
    char text[128], where[COHI_FAR_TEXT];
    if (!is_to_warn(wait))
        return;
    cohi_sight_describe(sight, text, sizeof text);
    cohi_log(COH_LOG_WARN, "rank %d has waited %.1f s in %s for rank %d%s, which is %s",
             wait->world->rank, (double)wait->waited_ns / 1e9, cohi_opcode_name(wait->op), rank,
             cohi_far_text(wait->world, rank, where), text);
}

/* With what each rank that could end the wait is doing. */
static void warn_of_any(cohi_wait *wait, const cohi_awaited *awaited)
{
    enum { TOLD = 4 };
    char text[512] = "";
    size_t length = 0;
    int told = 0, more = 0;
    if (!is_to_warn(wait))
        return;
    for (int rank = 0; rank < wait->world->size; rank++) {
        if (rank == wait->world->rank || !cohi_spans_have(&awaited->ranks, rank))
            continue;
        more += told == TOLD;
        if (told == TOLD)
            continue;
        char one[96];
        cohi_sight sight = cohi_peer_look(wait->world, rank);
        cohi_sight_describe(&sight, one, sizeof one);
        length += (size_t)snprintf(text + length, sizeof text - length, "%srank %d is %s",
                                   told++ ? ", " : ": ", rank, one);
    }
    if (more > 0)
        snprintf(text + length, sizeof text - length, ", and %d more", more);
    cohi_log(COH_LOG_WARN, "rank %d has waited %.1f s in %s for %s%s", wait->world->rank,
             (double)wait->waited_ns / 1e9, cohi_opcode_name(wait->op), told ? "anybody" : "itself",
             text);
}

static coh_status heed_alarm(const cohi_wait *wait)
{
    coh_world *world = wait->world;
    coh_status status = cohi_verdict_check(world, wait->call, world->rank);
    if (status == COH_OK && wait->party)
        status = wait->party->standing(wait->party, wait->call);
    if (status == COH_OK && wait->rank >= 0)
        status = cohi_verdict_check(world, wait->call, wait->rank);
    return status;
}

/*
 * A rank that left before its time had a reason: the verdicts that it knew of, which it told those
 * who cannot look. One on a member ends the wait by itself. One on a rank outside does not, but the
 * rank that left because of it will not come.
 */
static coh_status judge_left(const cohi_wait *wait, int rank)
{
    coh_world *world = wait->world;
    cohi_verdict_learn(world, rank);
    coh_status status = heed_alarm(wait);
    if (status != COH_OK)
        return status;
    return wait->party ? wait->party->unreachable(wait->party, wait->call, rank)
                       : cohi_verdict_presume(world, wait->call, rank, COHI_LOSS_LEFT);
}

static coh_status judge(cohi_wait *wait, int rank, const cohi_sight *sight)
{
    coh_world *world = wait->world;
    bool left = sight->known && sight->phase == COHI_PHASE_LEFT;
    if (left && wait->left != rank) {
        wait->left = rank; /* what is waited for may have come just before: look once more first */
    } else if (left) {
        return judge_left(wait, rank);
    } else if (world->timeout_ns && wait->waited_ns >= world->timeout_ns) {
        cohi_verdict_pass(world, rank, cohi_verdict(COHI_VERDICT_TIMED_OUT, 0, (int)sight->op));
    }
    return heed_alarm(wait);
}

static coh_status blame_nobody(const cohi_wait *wait)
{
    const coh_world *world = wait->world;
    if (!world->timeout_ns || wait->waited_ns < world->timeout_ns)
        return COH_OK;
    return cohi_world_fail(world, wait->call, COH_TIMED_OUT, "waited %.1f s (COHORT_TIMEOUT)",
                           (double)wait->waited_ns / 1e9);
}

/* A verdict is on the one at the end of the chain. It ends this wait if it is on one that
 * this wait is for; else the one that is waited for learns of it, and goes on or fails itself. */
static coh_status blame(cohi_wait *wait, int rank)
{
    cohi_sight sight;
    rank = follow_chain(wait->world, rank, &sight);
    warn_of(wait, rank, &sight);
    return judge(wait, rank, &sight);
}

static coh_status examine(cohi_wait *wait)
{
    coh_world *world = wait->world;
    cohi_awaited awaited = awaited_by(wait);
    bool by_one = awaited.rank >= 0 && awaited.rank != world->rank;
    uint64_t looked_ns = wait->examined_ns;
    wait->examine_at_ns =
        wait->waited_ns + (wait->waited_ns < LATE_NS ? EXAMINE_NS : EXAMINE_LATE_NS);
    wait->examined_ns = cohi_now_ns();
    atomic_store_explicit(&world->slot->waits_for,
                          awaited.rank >= 0 ? awaited.rank : COHI_WAITS_FOR_ANYBODY,
                          memory_order_relaxed);
    /* What this rank shows is whole before it asks the engine for anything, in which it may get stuck. */
    cohi_doing_show(world, &awaited, looked_ns, &wait->doing);
    cohi_doing_look_around(world);
    if (awaited.rank < 0 || (!by_one && !cohi_doing_has_others(world, wait->doing)))
        warn_of_any(wait, &awaited);
    coh_status status = by_one ? blame(wait, awaited.rank) : blame_nobody(wait);
    if (status != COH_OK)
        return status;
    return cohi_survey_look(world, wait->call, wait->hint);
}

/* ---- the ladder ---- */

static void count_time(cohi_wait *wait)
{
    uint64_t now = cohi_now_ns(), passed = now - wait->last_ns;
    wait->waited_ns += passed < STEP_COUNTS_NS ? passed : STEP_COUNTS_NS;
    wait->last_ns = now;
}

/* From here on the engine's thread sees to what arrives, if there is one. */
static void relieve(cohi_wait *wait)
{
    coh_world *world = wait->world;
    wait->relieved =
        world->engine->lifecycle->rest && world->engine->lifecycle->rest(world->endpoint);
}

/* Announces the sleeper; the caller looks once more before the first sleep. */
static void announce(cohi_wait *wait)
{
    cohi_slot *slot = wait->world->slot;
    wait->asleep = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &wait->cancel_state);
    relieve(wait);
    wait->last_ns = cohi_now_ns();
    atomic_store_explicit(&slot->since_ns, wait->last_ns, memory_order_relaxed);
    atomic_fetch_add(&slot->sleepers, 1);
    if (watches(wait))
        atomic_fetch_add(&slot->watchers, 1);
    wait->bell = atomic_load(&slot->bell);
}

/* Whether the awaited rank is on this core. If so, looking is of no use, and calls skip it. */
static bool is_together(const cohi_wait *wait)
{
    coh_world *world = wait->world;
    const cohi_company *company = &world->company;
    if (!company->own_core)
        return false;
    bool together =
        cohi_company_together(world->slot, wait->rank >= 0 ? world->peers[wait->rank].slot : NULL);
    unsigned spins = together ? 0 : company->spins;
    if (cohi_world_spins(world) != spins)
        atomic_store_explicit(&world->spins, spins, memory_order_relaxed);
    return together;
}

static coh_status sleep_once(cohi_wait *wait)
{
    coh_world *world = wait->world;
    if (!wait->asleep) {
        announce(wait);
        return COH_OK;
    }
    if (wait->relieved) /* what this rank has sent since it slept last may have changed that */
        relieve(wait);
    if (world->engine->lifecycle->idle)
        world->engine->lifecycle->idle(world->endpoint, SLEEP_NS);
    else
        cohi_os_futex_wait(&world->slot->bell, wait->bell, wait->slept ? SLEEP_NS : FIRST_SLEEP_NS);
    wait->slept = true;
    wait->bell = atomic_load(&world->slot->bell);
    count_time(wait);
    if (world->delays)
        world->delays->idle(world, wait->waited_ns);
    if (is_together(wait))
        cohi_company_placed(&world->company, wait->last_ns);
    return wait->waited_ns >= wait->examine_at_ns ? examine(wait) : COH_OK;
}

static void yield_once(cohi_wait *wait)
{
    cohi_company *company = &wait->world->company;
    wait->yields++;
    if (!cohi_company_times(company)) {
        sched_yield();
        return;
    }
    uint64_t begin_ns = cohi_now_ns();
    sched_yield();
    cohi_company_yielded(company, begin_ns, cohi_now_ns());
}

static cohi_rung next_rung(cohi_wait *wait)
{
    cohi_company *company = &wait->world->company;
    cohi_scene scene = {.together = is_together(wait), .yields = wait->yields};
    if (cohi_company_needs_time(company)) {
        scene.now_ns = cohi_now_ns();
        wait->looked_from_ns = wait->looked_from_ns ? wait->looked_from_ns : scene.now_ns;
        scene.looked_ns = scene.now_ns - wait->looked_from_ns;
    }
    return cohi_company_rung(company, &scene);
}

static coh_status climb(cohi_wait *wait)
{
    enum { LOOKS_AT_ONCE = 32 }; /* they take less than a microsecond */
    if (wait->asleep)
        return sleep_once(wait);
    if (wait->rung != COHI_RUNG_LOOK || wait->climbed % LOOKS_AT_ONCE == 0)
        wait->rung = next_rung(wait);
    wait->climbed++;
    if (wait->rung == COHI_RUNG_SLEEP)
        return sleep_once(wait);
    if (wait->rung == COHI_RUNG_YIELD)
        yield_once(wait);
    else
        cohi_cpu_relax();
    return COH_OK;
}

static coh_status step(cohi_wait *wait)
{
    coh_world *world = wait->world;
    if (wait->relieved)
        cohi_world_progress_device(world);
    else
        cohi_world_progress(world);
    if (world->progress) /* a peer may wait for a message that this rank has begun to send */
        world->progress(world);
    if (COHI_UNLIKELY(atomic_load_explicit(&world->slot->alarm, memory_order_acquire) != 0)) {
        coh_status status = heed_alarm(wait);
        if (status != COH_OK)
            return status;
    }
    if (wait->looks++ < cohi_world_spins(world)) {
        cohi_cpu_relax();
        return COH_OK;
    }
    return climb(wait);
}

/* A rank may do what is waited for, and then end: the caller looks once more after the verdict. */
coh_status cohi_wait_step(cohi_wait *wait)
{
    coh_status status = step(wait);
    if (status == COH_OK || wait->looked_again)
        return status;
    wait->looked_again = true;
    wait->examine_at_ns = 0;
    return COH_OK;
}

coh_status cohi_wait_op_of(coh_world *world, cohi_server server, const char *call, cohi_opcode op,
                           int rank, cohi_op *engine_op)
{
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, world, call, op, NULL, rank);
    while (status == COH_OK && !atomic_load_explicit(&engine_op->done, memory_order_acquire)) {
        if (rank < 0) /* of a quiet the engine knows who is the next to answer */
            wait.rank = atomic_load_explicit(&engine_op->waits_for, memory_order_relaxed);
        status = cohi_wait_step(&wait);
    }
    cohi_wait_end(&wait);
    if (status == COH_OK && engine_op->status == COH_OK)
        return COH_OK;
    if (!atomic_load_explicit(&engine_op->done, memory_order_acquire))
        server.engine->lifecycle->cancel(server.endpoint, engine_op);
    if (status != COH_OK)
        return status;
    int failed = engine_op->rank >= 0 ? engine_op->rank : rank;
    if (engine_op->status == COH_PEER_LOST && failed >= 0)
        return cohi_verdict_presume(world, call, failed, COHI_LOSS_LINK);
    if (failed < 0)
        return cohi_world_fail(world, call, engine_op->status, "the operation failed: %s",
                               coh_status_text(engine_op->status));
    return cohi_world_fail(world, call, engine_op->status, "the operation on rank %d failed: %s",
                           failed, coh_status_text(engine_op->status));
}

coh_status cohi_wait_op(coh_world *world, const char *call, cohi_opcode op, int rank,
                        cohi_op *engine_op)
{
    return cohi_wait_op_of(world, cohi_world_server(world), call, op, rank, engine_op);
}
