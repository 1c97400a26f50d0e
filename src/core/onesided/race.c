#include "core/onesided/race.h"

#include "base/clock.h"
#include "base/log.h"
#include "core/health/control.h"
#include "core/health/order.h"
#include "core/onesided/race_log.h"
#include "core/team/team.h"
#include "memory/host_atomic.h"
#include "memory/host_copy.h"

#include <stdio.h>
#include <stdlib.h>

/* For how long a put that nothing orders is left, once a call could have brought it. */
#define DELAY_LEAST_NS (20 * COHI_NS_PER_MS)
#define DELAY_MOST_NS  (50 * COHI_NS_PER_MS)

/* A wait that takes longer than this also brings what nothing orders, and sends on what is under way
 * from this rank: somebody may look for it without calling Cohort. */
#define LONG_WAIT_NS (200 * COHI_NS_PER_MS)

/* A non-blocking put whose source must not change, or a get that is still to be done. */
struct started {
    cohi_transfer transfer;
    uint64_t fingerprint; /* of a put's source */
    uint64_t number;      /* of its entry */
};

enum { STARTED_MOST = 1 << 16 };

struct cohi_race {
    _Atomic uint64_t fences[COHI_CONTEXTS_MAX];
    _Atomic uint64_t random;
    _Atomic uint64_t sent_ns; /* when a long wait last sent on what is under way */
    _Atomic uint32_t met;     /* the epoch of the world's team that this rank has left */
    uint64_t late_count; /* puts to this rank that only lateness brought; its log's lock, as next */
    cohi_race_entry late; /* the first of them */
    pthread_mutex_t lock; /* of the next; taken before any log */
    struct started *started;
    size_t started_count, started_room;
    atomic_bool
        dirty[]; /* [size]: this rank has something in that rank's log; set under its lock */
};

static cohi_race_log *log_of(coh_world *world, int rank)
{
    cohi_slot *slot = rank == world->rank ? world->slot : world->peers[rank].slot;
    return (cohi_race_log *)((char *)slot + cohi_slot_log_offset(world->size));
}

static cohi_race_view view_of(coh_world *world, int rank)
{
    return (cohi_race_view){.world = world, .rank = rank, .entered = world->team->epoch};
}

/* ---- logs ---- */

/* A rank that has a log for this long is stopped. */
static uint64_t patience(const coh_world *world)
{
    return world->stall_ns;
}

static coh_status take(coh_world *world, const char *call, int rank)
{
    cohi_race_log *log = log_of(world, rank);
    if (cohi_race_log_take(log, world->rank, patience(world)))
        return COH_OK;
    return cohi_world_fail(world, call, COH_STALLED,
                           "the log of puts to rank %d is held by rank %d, which makes no progress",
                           rank, atomic_load(&log->holder));
}

static void give(coh_world *world, int rank)
{
    cohi_race_log_give(log_of(world, rank));
}

/* ---- lateness ---- */

static uint64_t draw(struct cohi_race *race)
{
    uint64_t word = atomic_load_explicit(&race->random, memory_order_relaxed);
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    atomic_store_explicit(&race->random, word, memory_order_relaxed);
    return word;
}

/* Whether it has been left for long enough. */
static bool is_late(coh_world *world, cohi_race_entry *entry, uint64_t now)
{
    if (entry->seen_ns == 0) {
        entry->seen_ns = now;
        entry->delay_ns = DELAY_LEAST_NS + draw(world->race) % (DELAY_MOST_NS - DELAY_LEAST_NS);
    }
    return now - entry->seen_ns >= entry->delay_ns;
}

static void count_late(struct cohi_race *race, const cohi_race_entry *entry)
{
    if (race->late_count++ == 0)
        race->late = *entry;
}

/* To this rank; the last first. */
static void bring_late(coh_world *world)
{
    cohi_race_log *log = log_of(world, world->rank);
    cohi_race_view view = view_of(world, world->rank);
    uint64_t now = cohi_now_ns();
    for (unsigned i = atomic_load(&log->count); i-- > 0;) {
        cohi_race_entry *entry = &log->entries[i];
        if (entry->gone || entry->written || !is_late(world, entry, now))
            continue;
        count_late(world->race, entry);
        cohi_race_log_bring(log, &view, entry, false);
    }
}

/* No error: what is late may be read after a barrier that is still to come. */
static void warn_of_late(const coh_world *world)
{
    const struct cohi_race *race = world->race;
    if (race->late_count == 0)
        return;
    cohi_log(
        COH_LOG_WARN,
        "rank %d: %llu puts and signals came late, since no call of this rank waited for them: "
        "the first was %s of rank %d, %llu bytes at %s; if this rank reads them, a wait or a "
        "barrier may "
        "be missing before that",
        world->rank, (unsigned long long)race->late_count, race->late.call, race->late.source,
        (unsigned long long)race->late.bytes, cohi_spot_describe(race->late.spot).text);
}

static void acquire(coh_world *world, uint32_t entered, bool late)
{
    cohi_race_log *log = log_of(world, world->rank);
    cohi_race_view view = {.world = world, .rank = world->rank, .entered = entered};
    if (cohi_race_log_is_empty(log)
        || !cohi_race_log_take(log, world->rank, patience(world))) /* another call will tell */
        return;
    cohi_race_log_bring_complete(log, &view);
    if (late)
        bring_late(world);
    cohi_race_log_give(log);
}

void cohi_race_acquire(coh_world *world)
{
    acquire(world, world->team->epoch, true);
}

static void met(coh_team *team)
{
    coh_world *world = team->world;
    if (team == world->team)
        atomic_store(&world->race->met, team->epoch);
    cohi_race_acquire(world);
}

static void send_on(coh_world *world, int rank)
{
    cohi_race_log *log = log_of(world, rank);
    if (!world->race->dirty[rank] || !cohi_race_log_take(log, world->rank, patience(world)))
        return;
    cohi_race_view view = view_of(world, rank);
    for (unsigned i = atomic_load(&log->count); i-- > 0;) {
        cohi_race_entry *entry = &log->entries[i];
        if (entry->source == world->rank && !entry->gone && !entry->written)
            cohi_race_log_bring(log, &view, entry, false);
    }
    cohi_race_log_give(log);
}

/* A barrier that is waited for may not have begun for others: their accesses are still to be
 * compared with what it completes. */
static void idle(coh_world *world, uint64_t waited_ns)
{
    bool is_long = waited_ns >= LONG_WAIT_NS;
    acquire(world, atomic_load(&world->race->met), is_long);
    uint64_t now = is_long ? cohi_now_ns() : 0;
    if (!is_long || now - atomic_load(&world->race->sent_ns) < LONG_WAIT_NS)
        return;
    atomic_store(&world->race->sent_ns, now);
    for (int rank = 0; rank < world->size; rank++)
        send_on(world, rank);
}

/* ---- naming ---- */

/* The first is kept for the launcher, since the program may not look at what its calls return. */
static coh_status keep(coh_world *world, coh_status status)
{
    cohi_board_head *head = world->board->head;
    unsigned none = 0;
    if (atomic_compare_exchange_strong(&head->race_state, &none, 1)) {
        snprintf(head->race, sizeof head->race, "%s", coh_last_error());
        atomic_store(&head->race_state, 2);
    }
    if (head->launcher == 0)
        cohi_log(COH_LOG_ERROR, "%s", coh_last_error());
    return status;
}

/* One access of this rank, for the message. */
struct access {
    const char *call;
    const char *verb;
    int rank;
    cohi_spot spot;
    uint64_t bytes;
};

static coh_status name_race(coh_world *world, const struct access *access,
                            const cohi_race_entry *entry)
{
    char whose[48] = "this rank itself", context[32] = "",
         what[128] = "a quiet belongs between them";
    if (entry->source != world->rank) {
        snprintf(whose, sizeof whose, "rank %d", (int)entry->source);
        snprintf(
            what, sizeof what,
            "between them belongs a barrier, or a quiet, or fence and signal, of rank %d and a "
            "wait for it here",
            (int)entry->source);
    }
    if (entry->context != COHI_CONTEXT_DEFAULT)
        snprintf(context, sizeof context, ", on context %u", entry->context);
    return keep(world,
                cohi_world_fail(world, access->call, COH_RACE,
                                "it %s %llu bytes at %s of rank %d while %s of %s (%llu bytes at "
                                "%s%s) is under way to them: nothing orders the two; %s",
                                access->verb, (unsigned long long)access->bytes,
                                cohi_spot_describe(access->spot).text, access->rank, entry->call,
                                whose, (unsigned long long)entry->bytes,
                                cohi_spot_describe(entry->spot).text, context, what));
}

/* How an access goes together with a put to the same place that nothing orders. */
typedef enum verdict { FINE, POLLS, RACES } verdict;

typedef verdict judge(const coh_world *world, const struct access *access,
                      const cohi_race_entry *entry);

static bool is_word_put(const cohi_race_entry *entry)
{
    return cohi_race_is_word(entry->spot, entry->bytes);
}

/* Words may be polled, and signals are atomic. */
static verdict judge_read(const coh_world *world, const struct access *access,
                          const cohi_race_entry *entry)
{
    (void)world;
    bool polls = is_word_put(entry) && cohi_race_is_word(access->spot, access->bytes);
    return cohi_race_is_signal(entry) || polls ? POLLS : RACES;
}

static verdict judge_change(const coh_world *world, const struct access *access,
                            const cohi_race_entry *entry)
{
    (void)world;
    (void)access;
    return cohi_race_is_signal(entry) ? FINE : RACES;
}

/* A rank's own puts are kept apart by fences, or come in any order. Several ranks may set a flag. */
static verdict judge_put(const coh_world *world, const struct access *access,
                         const cohi_race_entry *entry)
{
    bool flags = is_word_put(entry) && cohi_race_is_word(access->spot, access->bytes);
    return entry->source == world->rank || cohi_race_is_signal(entry) || flags ? FINE : RACES;
}

/* The log of access->rank is taken. What is polled comes when it is late. */
static coh_status confront(coh_world *world, const struct access *access, judge *rule)
{
    cohi_race_log *log = log_of(world, access->rank);
    cohi_race_view view = view_of(world, access->rank);
    cohi_race_log_bring_complete(log, &view);
    cohi_race_entry *entry = NULL;
    while ((entry = cohi_race_log_next(log, entry, access->spot, access->bytes))) {
        verdict found = rule(world, access, entry);
        if (found == RACES)
            return name_race(world, access, entry);
        if (found == POLLS && is_late(world, entry, cohi_now_ns()))
            cohi_race_log_bring(log, &view, entry, false);
    }
    return COH_OK;
}

coh_status cohi_race_verdict(coh_world *world, const char *call)
{
    cohi_board_head *head = world->board->head;
    if (!world->race)
        return COH_OK;
    warn_of_late(world);
    if (atomic_load(&head->race_state) != 2)
        return COH_OK;
    return cohi_world_fail(world, call, COH_RACE, "a race was found in this job: %s", head->race);
}

/* ---- non-blocking transfers ---- */

static uint64_t fingerprint_of(const void *source, size_t bytes)
{
    uint64_t fingerprint = bytes, word = 0;
    const unsigned char *at = source;
    for (; bytes > 0; at += sizeof word) {
        size_t part = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, at, part);
        fingerprint = (fingerprint ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        fingerprint ^= fingerprint >> 29;
        bytes -= part;
    }
    return fingerprint;
}

/* False: there is no memory for it. */
static bool remember(coh_world *world, const struct started *started)
{
    struct cohi_race *race = world->race;
    pthread_mutex_lock(&race->lock);
    if (race->started_count == race->started_room && race->started_room < STARTED_MOST) {
        size_t room = race->started_room ? 2 * race->started_room : 64;
        struct started *grown = realloc(race->started, room * sizeof *grown);
        if (grown) {
            race->started = grown;
            race->started_room = room;
        }
    }
    bool fits = race->started_count < race->started_room;
    if (fits)
        race->started[race->started_count++] = *started;
    pthread_mutex_unlock(&race->lock);
    return fits;
}

static coh_status read_range(coh_world *world, const cohi_transfer *get)
{
    coh_status status = take(world, get->call, get->rank);
    if (status != COH_OK)
        return status;
    cohi_race_view view = view_of(world, get->rank);
    cohi_race_log_bring_complete(log_of(world, get->rank), &view);
    const char *there = cohi_heap_reach(world, get->rank, get->spot);
    if (there) /* its heap may be destroyed by now */
        cohi_host_copy(get->target, there, get->bytes);
    give(world, get->rank);
    return COH_OK;
}

/* Who has seen the data at the target, and told so, has ordered the change behind it. */
static bool is_under_way(coh_world *world, const struct started *started)
{
    int rank = started->transfer.rank;
    if (!cohi_race_log_take(log_of(world, rank), world->rank, patience(world)))
        return false;
    bool found = cohi_race_log_find(log_of(world, rank), started->number) != NULL;
    give(world, rank);
    return found;
}

static coh_status check_source(coh_world *world, const char *call, const struct started *started)
{
    const cohi_transfer *put = &started->transfer;
    if (!is_under_way(world, started)
        || fingerprint_of(put->source, put->bytes) == started->fingerprint)
        return COH_OK;
    return keep(world, cohi_world_fail(world, call, COH_RACE,
                                       "the source of %s (%zu bytes at %p, to %s of rank "
                                       "%d) has changed before this call, which completes it",
                                       put->call, put->bytes, put->source,
                                       cohi_spot_describe(put->spot).text, put->rank));
}

static coh_status finish(coh_world *world, const char *call, const struct started *started)
{
    return started->transfer.op == COHI_OP_PUT ? check_source(world, call, started)
                                               : read_range(world, &started->transfer);
}

/* Puts or gets, those of `context`, or all for -1. */
static coh_status finish_started(coh_world *world, const char *call, cohi_opcode op, int context)
{
    struct cohi_race *race = world->race;
    coh_status status = COH_OK;
    size_t kept = 0;
    pthread_mutex_lock(&race->lock);
    for (size_t i = 0; i < race->started_count; i++) {
        struct started started = race->started[i];
        if (started.transfer.op != op
            || (context >= 0 && started.transfer.context != (unsigned)context)) {
            race->started[kept++] = started;
            continue;
        }
        coh_status finished = finish(world, call, &started);
        status = status == COH_OK ? finished : status;
    }
    race->started_count = kept;
    pthread_mutex_unlock(&race->lock);
    return status;
}

/* ---- put and get ---- */

static cohi_race_entry entry_of(coh_world *world, const cohi_transfer *transfer)
{
    cohi_race_entry entry = {.spot = transfer->spot,
                             .bytes = transfer->bytes,
                             .source = world->rank,
                             .context = transfer->context,
                             .epoch = atomic_load(&world->race->fences[transfer->context])};
    snprintf(entry.call, sizeof entry.call, "%s", transfer->call);
    return entry;
}

/* The log is taken. *number is the entry's. */
static coh_status add_put(coh_world *world, const cohi_transfer *put, uint64_t *number)
{
    struct access access = {put->call, "writes", put->rank, put->spot, put->bytes};
    coh_status status = confront(world, &access, judge_put);
    if (status != COH_OK)
        return status;
    cohi_race_view view = view_of(world, put->rank);
    cohi_race_entry entry = entry_of(world, put);
    *number = cohi_race_log_add(log_of(world, put->rank), &view, &entry, put->source);
    world->race->dirty[put->rank] = true;
    return COH_OK;
}

static void wake(coh_world *world, int rank)
{
    cohi_control_wake_watcher(world->peers[rank].slot);
}

/* The source must not change from now on. */
static void note_source(coh_world *world, const cohi_transfer *put, uint64_t number)
{
    if (!put->blocking)
        (void)remember(world,
                       &(struct started){.transfer = *put,
                                         .fingerprint = fingerprint_of(put->source, put->bytes),
                                         .number = number});
}

static coh_status race_put(coh_world *world, const cohi_transfer *put)
{
    uint64_t number;
    coh_status status = take(world, put->call, put->rank);
    if (status != COH_OK)
        return status;
    status = add_put(world, put, &number);
    give(world, put->rank);
    if (status == COH_OK) {
        note_source(world, put, number);
        wake(world, put->rank);
    }
    return status;
}

/* Undefined until quiet, and so that it shows; but the source may be the same memory. */
static bool put_off(coh_world *world, const cohi_transfer *get)
{
    enum { NOTHING_YET = 0xa5 };
    if (!remember(world, &(struct started){.transfer = *get}))
        return false;
    if (get->rank != world->rank)
        memset(get->target, NOTHING_YET, get->bytes);
    return true;
}

static coh_status race_get(coh_world *world, const cohi_transfer *get)
{
    struct access access = {get->call, "reads", get->rank, get->spot, get->bytes};
    coh_status status = take(world, get->call, get->rank);
    if (status != COH_OK)
        return status;
    status = confront(world, &access, judge_read);
    if (status == COH_OK && get->blocking)
        cohi_host_copy(get->target, cohi_heap_reach(world, get->rank, get->spot), get->bytes);
    give(world, get->rank);
    if (status == COH_OK && !get->blocking && !put_off(world, get))
        status = read_range(world, get);
    cohi_race_acquire(world);
    return status;
}

coh_status cohi_race_transfer(coh_world *world, const cohi_transfer *transfer)
{
    return (transfer->op == COHI_OP_PUT ? race_put : race_get)(world, transfer);
}

/* ---- signals and atomics ---- */

coh_status cohi_race_signal(coh_world *world, const cohi_transfer *data, cohi_spot spot,
                            uint64_t value, coh_signal_op op)
{
    uint64_t number = 0;
    coh_status status = take(world, data->call, data->rank);
    if (status != COH_OK)
        return status;
    if (data->bytes > 0)
        status = add_put(world, data, &number);
    if (status == COH_OK) {
        cohi_race_view view = view_of(world, data->rank);
        cohi_race_entry entry = entry_of(world, data);
        entry.kind = op == COH_SIGNAL_SET ? COHI_RACE_SIGNAL_SET : COHI_RACE_SIGNAL_ADD;
        entry.spot = spot;
        entry.bytes = sizeof value;
        entry.value = value;
        entry.data = number;
        cohi_race_log_add(log_of(world, data->rank), &view, &entry, NULL);
        world->race->dirty[data->rank] = true;
    }
    give(world, data->rank);
    if (status == COH_OK && data->bytes > 0)
        note_source(world, data, number);
    wake(world, data->rank);
    return status;
}

coh_status cohi_race_atomic(coh_world *world, const cohi_amo *amo)
{
    bool reads = amo->op == COH_ATOMIC_FETCH;
    struct access access = {amo->call, reads ? "reads" : "changes", amo->rank, amo->spot,
                            coh_dtype_size(amo->dtype)};
    coh_status status = take(world, amo->call, amo->rank);
    if (status != COH_OK)
        return status;
    cohi_race_view view = view_of(world, amo->rank);
    cohi_race_log *log = log_of(world, amo->rank);
    cohi_race_log_bring_complete(log, &view);
    cohi_race_log_bring_fenced(log, &view, world->rank, amo->context,
                               atomic_load(&world->race->fences[amo->context]));
    status = confront(world, &access, reads ? judge_read : judge_change);
    uint64_t unwanted;
    if (status == COH_OK)
        cohi_host_atomic_find(amo->op, amo->dtype)(cohi_heap_reach(world, amo->rank, amo->spot),
                                                   amo->operand, amo->compare,
                                                   amo->result ? amo->result : &unwanted);
    give(world, amo->rank);
    wake(world, amo->rank);
    if (amo->result)
        cohi_race_acquire(world);
    return status;
}

/* ---- ordering ---- */

static void fence(coh_world *world, unsigned context)
{
    atomic_fetch_add(&world->race->fences[context], 1);
}

/* All of a barrier's members bring what it completed when they leave it. What this rank put to
 * itself, and what nobody could bring since one thread drives all ranks, comes now. */
static coh_status complete(coh_world *world, const char *call, int rank, int context, bool now,
                           const uint32_t *barrier)
{
    if (!world->race->dirty[rank])
        return COH_OK;
    coh_status status = take(world, call, rank);
    if (status != COH_OK)
        return status;
    cohi_race_log *log = log_of(world, rank);
    cohi_race_view view = view_of(world, rank);
    bool here = now || rank == world->rank || world->driven;
    bool left = cohi_race_log_complete(log, world->rank, context, here ? NULL : barrier);
    if (here) {
        cohi_race_log_bring_complete(log, &view);
        left = cohi_race_log_complete(log, world->rank, context, NULL);
    }
    world->race->dirty[rank] = left;
    give(world, rank);
    wake(world, rank);
    return COH_OK;
}

/* Whether the operation is a call of all ranks that begins with a barrier. */
static bool meets_all(cohi_opcode op)
{
    return op != COHI_OP_QUIET && op != COHI_OP_LOCK && op != COHI_OP_TEAM_BARRIER;
}

static coh_status quiet(coh_world *world, const char *call, cohi_opcode op, unsigned context)
{
    bool all = op == COHI_OP_FINALIZE || op == COHI_OP_HEAP_DESTROY; /* nothing may come later */
    int which = all ? -1 : (int)context;
    uint32_t meeting = world->team->epoch + 1;
    coh_status status = finish_started(world, call, COHI_OP_PUT, which);
    for (int rank = 0; rank < world->size; rank++) {
        coh_status completed = complete(world, call, rank, which, op == COHI_OP_QUIET,
                                        meets_all(op) ? &meeting : NULL);
        status = status == COH_OK ? completed : status;
    }
    coh_status finished = finish_started(world, call, COHI_OP_GET, which);
    return status == COH_OK ? finished : status;
}

/* ---- what others ask ---- */

bool cohi_race_bring(coh_world *world, const void *words, uint64_t bytes)
{
    cohi_race_log *log = log_of(world, world->rank);
    cohi_race_view view = view_of(world, world->rank);
    cohi_spot spot = cohi_heap_spot_of(world, words, bytes);
    if (bytes == 0 || spot == COHI_NO_SPOT || cohi_race_log_is_empty(log)
        || !cohi_race_log_take(log, world->rank, patience(world)))
        return false;
    bool brought = cohi_race_log_bring_complete(log, &view);
    cohi_race_entry *entry = cohi_race_log_next(log, NULL, spot, bytes);
    while (entry && entry->written)
        entry = cohi_race_log_next(log, entry, spot, bytes);
    if (entry)
        cohi_race_log_bring(log, &view, entry, true);
    cohi_race_log_give(log);
    return brought || entry;
}

/* A word that somebody put and that is still under way cannot have been seen, so it races here. */
static verdict judge_collective(const coh_world *world, const struct access *access,
                                const cohi_race_entry *entry)
{
    (void)world;
    (void)access;
    return cohi_race_is_signal(entry) ? FINE : RACES;
}

coh_status cohi_race_touch(coh_world *world, const char *call, const void *pointer, size_t bytes,
                           bool writes)
{
    cohi_spot spot = bytes > 0 ? cohi_heap_spot_of(world, pointer, bytes) : COHI_NO_SPOT;
    if (spot == COHI_NO_SPOT)
        return COH_OK;
    struct access access = {call, writes ? "writes" : "reads", world->rank, spot, bytes};
    coh_status status = take(world, call, world->rank);
    if (status != COH_OK)
        return status;
    status = confront(world, &access, judge_collective);
    give(world, world->rank);
    return status;
}

/* ---- opening and closing ---- */

static const cohi_delays delays = {
    .quiet = quiet,
    .fence = fence,
    .met = met,
    .acquire = cohi_race_acquire,
    .idle = idle,
};

coh_status cohi_race_open(coh_world *world)
{
    if (!world->engine->memory || world->engine->rma)
        return cohi_fail(COH_UNSUPPORTED,
                         "COHORT_CHECK=order: the race check is for engines that map the ranks' "
                         "memory (shm, threads), not for %s, which delays puts by itself",
                         world->engine->name);
    struct cohi_race *race = calloc(1, sizeof *race + (size_t)world->size * sizeof *race->dirty);
    if (!race)
        return cohi_fail(COH_NO_MEMORY, "out of memory for the race check");
    coh_status status = cohi_board_commit_log(world->board, world->rank);
    if (status != COH_OK) {
        free(race);
        return status;
    }
    atomic_store(&race->random, cohi_now_ns() * 2 + 1);
    pthread_mutex_init(&race->lock, NULL);
    cohi_race_log_open(log_of(world, world->rank));
    world->race = race;
    world->delays = &delays;
    world->delayed = true;
    return COH_OK;
}

void cohi_race_close(coh_world *world)
{
    struct cohi_race *race = world->race;
    if (!race)
        return;
    pthread_mutex_destroy(&race->lock);
    free(race->started);
    free(race);
    world->race = NULL;
    world->delays = NULL;
}
