#include "core/health/survey.h"

#include "base/clock.h"
#include "core/world/doing.h"
#include "core/health/control.h"
#include "core/health/far.h"
#include "core/health/peer.h"
#include "core/health/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks. */
#define SURVEY_NS (200 * COHI_NS_PER_MS)
/* How long ranks are held for certain before it is told; two looks at least. */
#define CERTAIN_NS (2 * SURVEY_NS)
/* A rank that waits asks this often, or more often (EXAMINE_LATE_NS in wait.c). */
#define ASKED_NS (250 * COHI_NS_PER_MS)
/* How many of those that the wait leads to it asks at a time. */
enum { AT_ONCE = 4 };
/* The most that the time between two looks counts: after a pause of the job nothing is known. */
#define COUNTS_NS (3 * SURVEY_NS / 2)

/* What one rank was seen to be at. */
enum state {
    GOES = 0, /* it can go on, or nothing is known of it */
    HELD,     /* each of its threads waits, or sleeps */
    INSIDE,   /* a thread is in a call, and in no wait that it shows */
    STOPPED,  /* or it does not answer, though its host does */
    GONE      /* lost, or finalized: it can go on, but will not help anybody */
};

struct past {
    uint64_t fingerprint; /* of what it does */
    uint64_t seen_ns;     /* when it was last looked at */
    uint64_t same_ns;     /* for how long it has looked the same */
    uint64_t since_ns;    /* up to when the next is counted */
    uint64_t held_ns;     /* for how long it has also found nothing */
    unsigned number;      /* of the survey that last saw it */
};

struct cohi_survey {
    uint64_t last_ns;
    unsigned number;
    bool *
        wanted; /* [size]: the last look came to them: this rank waits for them, or one that it waits
                   * for */
    int asked[2];      /* who is next, of those that are not mapped: not wanted, wanted */
    cohi_slot *images; /* [size] of those; the part that a rank publishes of itself */
    struct past pasts[];
};

/* One look. Sets of ranks are arrays of the world's size. */
struct look {
    coh_world *world;
    struct cohi_survey *survey;
    uint64_t now_ns;
    int count;
    int *order; /* [count], of those seen, this rank first */
    uint64_t *verdicts;
    unsigned char *states;
    bool *seen, *certain, *stuck, *core, *gone;
};

/* ---- memory ---- */

static struct cohi_survey *survey_of(coh_world *world)
{
    if (world->survey)
        return world->survey;
    size_t bytes = sizeof *world->survey + (size_t)world->size * sizeof(struct past);
    struct cohi_survey *made = calloc(1, bytes);
    if (made)
        made->wanted = calloc((size_t)world->size, sizeof *made->wanted);
    if (made && world->remote)
        made->images = calloc((size_t)world->size, sizeof *made->images);
    world->survey = made;
    if (made && (!made->wanted || (world->remote && !made->images)))
        cohi_survey_close(world);
    return world->survey;
}

void cohi_survey_close(coh_world *world)
{
    if (world->survey) {
        free(world->survey->images);
        free(world->survey->wanted);
    }
    free(world->survey);
    world->survey = NULL;
}

static void free_look(struct look *look)
{
    free(look->order);
    free(look->verdicts);
    free(look->states);
    free(look->seen);
}

/* False: there is no memory for it. */
static bool make_look(coh_world *world, struct cohi_survey *survey, struct look *look)
{
    enum { SETS = 5 };
    size_t size = (size_t)world->size;
    *look = (struct look){.world = world,
                          .survey = survey,
                          .now_ns = cohi_now_ns(),
                          .order = calloc(size, sizeof *look->order),
                          .verdicts = calloc(size, sizeof *look->verdicts),
                          .states = calloc(size, sizeof *look->states),
                          .seen = calloc(SETS * size, sizeof *look->seen)};
    if (!look->order || !look->verdicts || !look->states || !look->seen) {
        free_look(look);
        return false;
    }
    look->certain = look->seen + size;
    look->stuck = look->certain + size;
    look->core = look->stuck + size;
    look->gone = look->core + size;
    return true;
}

/* ---- one rank ---- */

static cohi_slot *mapped_slot(const coh_world *world, int rank)
{
    return rank == world->rank ? world->slot : world->peers[rank].slot;
}

static cohi_slot *slot_of(const struct look *look, int rank)
{
    cohi_slot *slot = mapped_slot(look->world, rank);
    return slot ? slot : &look->survey->images[rank];
}

/* Of one that does not answer nothing is known, whatever it was seen to wait for before: its own host
 * can tell. */
static void ask(coh_world *world, struct cohi_survey *survey, int rank)
{
    bool answers = !cohi_peer_is_stopped(world, rank);
    if (answers && !cohi_peer_inspect(world, rank, &survey->images[rank]))
        atomic_store(&survey->images[rank].phase, COHI_PHASE_ABSENT);
}

/*
 * Asks those that are not mapped; an answer comes later. Some at a time of those that the wait leads
 * to, and of the others one, so that the end of a rank that nobody else could tell of is noticed:
 * not more, since a question is the first use of many a link, and all ranks of a large job may be
 * waiting. None of the others where a launcher tells of ends: 64 ranks on 4 hosts would have made all
 * of 1,536 links in a start that a busy machine makes long.
 */
static void ask_next(coh_world *world, struct cohi_survey *survey)
{
    int left[2] = {world->board->head->launcher ? 0 : 1, AT_ONCE};
    for (int i = 0; world->remote && i < 2 * world->size; i++) {
        int matters = i < world->size, *next = &survey->asked[matters], rank = *next;
        if (left[matters] == 0)
            continue;
        *next = (rank + 1) % world->size;
        if (mapped_slot(world, rank) || survey->wanted[rank] != matters)
            continue;
        ask(world, survey, rank);
        left[matters]--;
    }
}

static bool has_waits(cohi_slot *slot)
{
    for (int i = 0; i < COHI_DOINGS; i++)
        if (atomic_load(&slot->doings[i].thread) != 0)
            return true;
    return false;
}

/* A wait that ends by itself, or other threads that may do anything, are a way on. */
static bool shows_a_way(cohi_slot *slot)
{
    unsigned rest = atomic_load(&slot->rest);
    for (int i = 0; i < COHI_DOINGS; i++) {
        cohi_doing *doing = &slot->doings[i];
        if (atomic_load(&doing->thread) != 0
            && (atomic_load(&doing->turn) == 0 || atomic_load(&doing->how) & COHI_DOING_ENDS))
            return true;
    }
    return rest != COHI_REST_NONE && rest != COHI_REST_ASLEEP;
}

static uint64_t fingerprint_of(cohi_slot *slot, enum state state)
{
    enum { PRIME = 1099511628211 };
    uint64_t fingerprint = (uint64_t)state * PRIME + atomic_load(&slot->rest_turn);
    for (int i = 0; state == HELD && i < COHI_DOINGS; i++)
        fingerprint = fingerprint * PRIME + atomic_load(&slot->doings[i].turn);
    for (int i = 0; state == GOES && i < COHI_DOINGS; i++)
        fingerprint = fingerprint * PRIME + atomic_load(&slot->doings[i].looked_ns);
    if (state != INSIDE)
        return fingerprint;
    fingerprint = fingerprint * PRIME + atomic_load(&slot->op);
    fingerprint = fingerprint * PRIME + atomic_load(&slot->beat);
    return fingerprint * PRIME + atomic_load(&slot->sequence);
}

/* Whether since then each of its threads has looked and found nothing, and what the others do was
 * seen. */
static bool has_looked_since(cohi_slot *slot, uint64_t since_ns)
{
    for (int i = 0; i < COHI_DOINGS; i++)
        if (atomic_load(&slot->doings[i].turn) != 0
            && atomic_load(&slot->doings[i].looked_ns) < since_ns)
            return false;
    return atomic_load(&slot->rest_ns) >= since_ns;
}

/* A thread that waits for a started collective waits for the rank's own worker. */
static bool is_for_worker(const cohi_awaited *awaited, int rank)
{
    bool by_peers = awaited->op == COHI_OP_RECEIVE || awaited->op == COHI_OP_SEND
                    || awaited->op == COHI_OP_WAIT || awaited->op == COHI_OP_LOCK;
    return awaited->rank == rank && !by_peers;
}

/* Whether all of its waits are for its worker. Then that is in a call, and in no wait that it
 * shows. */
static bool waits_for_worker(cohi_slot *slot, int rank)
{
    cohi_awaited awaited;
    for (int i = 0; i < COHI_DOINGS; i++)
        if (cohi_doing_read(&slot->doings[i], &awaited) && !is_for_worker(&awaited, rank))
            return false;
    return true;
}

/* What it shows, if its process runs. A thread whose worker is done already is on its way out of its wait, or
 * stuck in it. */
static enum state shown_by(cohi_slot *slot, int rank)
{
    if (!has_waits(slot))
        return atomic_load(&slot->op) != COHI_OP_NONE ? INSIDE : GOES;
    if (shows_a_way(slot))
        return GOES;
    return waits_for_worker(slot, rank) ? INSIDE : HELD;
}

static enum state state_of(const struct look *look, int rank)
{
    coh_world *world = look->world;
    cohi_slot *slot = slot_of(look, rank);
    uint64_t verdict = cohi_verdict_on(world, rank);
    unsigned phase = atomic_load(&slot->phase);
    if (cohi_verdict_status(verdict) == COH_PEER_LOST || phase == COHI_PHASE_LEFT
        || (rank != world->rank && cohi_peer_has_left(world, rank)))
        return GONE;
    unsigned op;
    if (!verdict && cohi_far(world, rank)
        && (cohi_peer_is_stopped(world, rank) || cohi_peer_is_mute(world, rank, &op)))
        return STOPPED; /* it may never have answered */
    if (verdict || phase != COHI_PHASE_RUNNING)
        return GOES;
    enum state state = shown_by(slot, rank);
    bool awake = state == HELD && has_looked_since(slot, look->survey->pasts[rank].since_ns);
    return !awake && cohi_peer_is_stopped(world, rank) ? STOPPED : state;
}

/* How much of the time since the last look counts. */
static uint64_t counted(uint64_t passed_ns)
{
    return passed_ns < COUNTS_NS ? passed_ns : COUNTS_NS;
}

/* It has not looked again, or does not wait at all, but wants to run: on a busy host it may be
 * seconds before it gets a core, and then goes on. */
static bool is_starved(const struct look *look, int rank, enum state state)
{
    cohi_slot *slot = slot_of(look, rank);
    if (state != INSIDE && !(state == GOES && has_waits(slot))
        && (state != HELD || has_looked_since(slot, look->survey->pasts[rank].since_ns)))
        return false;
    return cohi_peer_wants_core(look->world, rank, slot);
}

/* Counts how long it has been the same. */
static void count_time(const struct look *look, int rank, enum state state)
{
    struct past *past = &look->survey->pasts[rank];
    cohi_slot *slot = slot_of(look, rank);
    uint64_t fingerprint = fingerprint_of(slot, state), passed = look->now_ns - past->seen_ns;
    bool same = past->fingerprint == fingerprint && past->number + 1 == look->survey->number;
    bool starved = is_starved(look, rank, state);
    past->number = look->survey->number;
    past->fingerprint = fingerprint;
    past->seen_ns = look->now_ns;
    past->same_ns = same ? past->same_ns + (starved ? 0 : counted(passed)) : 0;
    if (same && !has_looked_since(slot, past->since_ns))
        return;
    past->held_ns = same ? past->held_ns + counted(look->now_ns - past->since_ns) : 0;
    past->since_ns = look->now_ns;
}

/* Whether what is known of the rank is renewed well within COHORT_STALL: of those that are not mapped some are asked at
 * a time. */
static bool is_seen_often(const struct look *look, int rank)
{
    const coh_world *world = look->world;
    uint64_t turns = ((uint64_t)world->size + AT_ONCE - 1) / AT_ONCE;
    return mapped_slot(world, rank) || turns * ASKED_NS * 2 <= world->stall_ns;
}

/* A thread that waits shows again and again that it does. One that has stopped showing it is stuck on its way, and what
 * it last said of the rank's other threads says nothing any more. */
static bool has_fallen_silent(const struct look *look, int rank, enum state state)
{
    cohi_slot *slot = slot_of(look, rank);
    return state == GOES && is_seen_often(look, rank) && has_waits(slot)
           && atomic_load(&slot->phase) == COHI_PHASE_RUNNING && !cohi_verdict_on(look->world, rank)
           && look->survey->pasts[rank].same_ns >= look->world->stall_ns;
}

static void visit(struct look *look, int rank)
{
    if (rank < 0 || rank >= look->world->size || look->seen[rank])
        return;
    look->seen[rank] = true;
    look->order[look->count++] = rank;
}

static void visit_awaited(struct look *look, int rank)
{
    cohi_awaited awaited;
    cohi_slot *slot = slot_of(look, rank);
    for (int i = 0; i < COHI_DOINGS; i++) {
        if (!cohi_doing_read(&slot->doings[i], &awaited))
            continue;
        visit(look, awaited.rank);
        for (int of = 0; awaited.rank < 0 && of < look->world->size; of++)
            if (cohi_spans_have(&awaited.ranks, of))
                visit(look, of);
    }
}

/* This rank, those it waits for, those they wait for, and so on. */
static void look_at_all(struct look *look)
{
    visit(look, look->world->rank);
    for (int i = 0; i < look->count; i++) {
        int rank = look->order[i];
        cohi_slot *slot = slot_of(look, rank);
        enum state state = state_of(look, rank);
        count_time(look, rank, state);
        if (has_fallen_silent(look, rank, state))
            state = INSIDE;
        look->states[rank] = (unsigned char)state;
        look->certain[rank] = state == HELD && mapped_slot(look->world, rank)
                              && atomic_load(&slot->rest) == COHI_REST_NONE;
        if (state == HELD)
            visit_awaited(look, rank);
    }
}

/* ---- the graph ---- */

static int count_of(const struct look *look, const bool *ranks)
{
    int count = 0;
    for (int i = 0; i < look->count; i++)
        count += ranks[look->order[i]];
    return count;
}

static bool can_end(const cohi_awaited *awaited, const bool *stuck, int size)
{
    if (awaited->rank >= 0)
        return awaited->rank >= size || !stuck[awaited->rank];
    for (int rank = 0; rank < size; rank++)
        if (!stuck[rank] && cohi_spans_have(&awaited->ranks, rank))
            return true;
    return false;
}

/* Whether one of its threads may go on while those of `stuck` do not. One that changes meanwhile
 * does. */
static bool can_go(const struct look *look, int rank, const bool *stuck)
{
    cohi_awaited awaited;
    cohi_slot *slot = slot_of(look, rank);
    for (int i = 0; i < COHI_DOINGS; i++) {
        if (atomic_load(&slot->doings[i].thread) == 0)
            continue;
        if (!cohi_doing_read(&slot->doings[i], &awaited)
            || can_end(&awaited, stuck, look->world->size))
            return true;
    }
    return false;
}

static bool is_candidate(const struct look *look, int rank, bool certain)
{
    const struct past *past = &look->survey->pasts[rank];
    enum state state = (enum state)look->states[rank];
    if (state == GONE)
        return true;
    if (certain)
        return look->certain[rank] && past->held_ns >= CERTAIN_NS;
    return state != GOES && past->same_ns >= look->world->stall_ns;
}

/* The ranks that remain when all that can go on are removed. */
static void take_away(const struct look *look, bool certain, bool *stuck)
{
    for (int i = 0; i < look->count; i++)
        stuck[look->order[i]] = is_candidate(look, look->order[i], certain);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < look->count; i++) {
            int rank = look->order[i];
            if (look->states[rank] == HELD && stuck[rank] && can_go(look, rank, stuck)) {
                stuck[rank] = false;
                changed = true;
            }
        }
    }
}

static bool awaits(const struct look *look, int rank, int other)
{
    cohi_awaited awaited;
    cohi_slot *slot = slot_of(look, rank);
    for (int i = 0; i < COHI_DOINGS; i++)
        if (cohi_doing_read(&slot->doings[i], &awaited)
            && (awaited.rank < 0 ? cohi_spans_have(&awaited.ranks, other) : awaited.rank == other))
            return true;
    return false;
}

static bool is_awaited(const struct look *look, int rank, const bool *by)
{
    for (int i = 0; i < look->count; i++)
        if (by[look->order[i]] && look->states[look->order[i]] == HELD
            && awaits(look, look->order[i], rank))
            return true;
    return false;
}

/* Of those that will wait for ever, the ones in this state. */
static void select_in(const struct look *look, const bool *stuck, enum state state, bool *selected)
{
    for (int i = 0; i < look->count; i++)
        if (stuck[look->order[i]] && look->states[look->order[i]] == state)
            selected[look->order[i]] = true;
}

/* The circle: without those that only wait for it, since nobody waits for them. */
static void find_circle(const struct look *look, const bool *stuck, bool *circle)
{
    select_in(look, stuck, HELD, circle);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < look->count; i++) {
            int rank = look->order[i];
            if (circle[rank] && !is_awaited(look, rank, circle)) {
                circle[rank] = false;
                changed = true;
            }
        }
    }
}

/* The ranks to blame: those that do not even wait; else those that wait for each other. */
static void find_core(const struct look *look, const bool *stuck, bool *core)
{
    select_in(look, stuck, STOPPED, core);
    select_in(look, stuck, INSIDE, core);
    if (count_of(look, core) == 0)
        find_circle(look, stuck, core);
}

/* ---- words ---- */

/* What it does, or that it does nothing; *like is what was told before, and then this. */
static void describe_one(const struct look *look, int rank, cohi_awaited *like, bool *liked,
                         char *text, size_t room)
{
    cohi_awaited awaited;
    cohi_slot *slot = slot_of(look, rank);
    if (look->states[rank] != HELD) {
        cohi_sight sight = cohi_peer_look(look->world, rank);
        uint64_t verdict = cohi_verdict_on(look->world, rank);
        snprintf(text, room, "is ");
        if (verdict)
            cohi_verdict_describe(verdict, text + 3, room - 3);
        else
            cohi_sight_describe(&sight, text + 3, room - 3);
        *liked = false;
        return;
    }
    snprintf(text, room, "waits");
    for (int i = 0; i < COHI_DOINGS; i++) {
        if (!cohi_doing_read(&slot->doings[i], &awaited))
            continue;
        cohi_doing_describe(&awaited, *liked ? like : NULL, text, room);
        *like = awaited;
        *liked = true;
        return;
    }
}

/* "rank 0 receives from 1 (tag 1), 1 from 2, 2 from 0" */
static void describe_all(const struct look *look, const bool *stuck, char *text, size_t room)
{
    enum { TOLD = 8 };
    cohi_awaited like;
    bool liked = false;
    int told = 0, left = 0;
    size_t length = 0;
    text[0] = '\0';
    for (int rank = 0; rank < look->world->size; rank++) {
        char one[160];
        if (!stuck[rank])
            continue;
        if (told >= TOLD || length + sizeof one > room) {
            left++;
            continue;
        }
        bool again = liked;
        describe_one(look, rank, &like, &liked, one, sizeof one);
        length += (size_t)snprintf(text + length, room - length, "%s%s%d %s", told ? ", " : "",
                                   again && liked ? "" : "rank ", rank, one);
        told++;
    }
    if (left > 0)
        snprintf(text + length, room - length, ", and %d more", left);
}

/* For all to read, with the verdicts; the first circle that was found is the one that is told. */
static void write_circle(cohi_board_head *head, const char *text)
{
    unsigned none = 0;
    if (!atomic_compare_exchange_strong(&head->circle_state, &none, 1))
        return;
    snprintf(head->circle, sizeof head->circle, "%s", text);
    atomic_store(&head->circle_state, 2);
}

/* Ranks of other hosts get it each into their own slot, in pieces, before the verdicts. Whoever reads the
 * first piece reads all of it. */
static void send_circle(coh_world *world, const char *text)
{
    enum { PIECE = 56 };
    size_t bytes = strlen(text) + 1, last = (bytes - 1) / PIECE * PIECE;
    for (size_t at = last + PIECE; at > 0;) {
        at -= PIECE;
        if (at == 0)
            (void)cohi_control_fence(world);
        for (int to = 0; to < world->size; to++)
            if (cohi_far(world, to))
                (void)cohi_control_put(world, to, offsetof(cohi_slot, circle) + at, text + at,
                                       bytes - at < PIECE ? bytes - at : PIECE);
    }
    (void)cohi_control_fence(world);
}

/* ---- judging ---- */

/* What it is in: the call that it shows, or of one without, a wait of its threads. */
static unsigned op_of(cohi_slot *slot)
{
    cohi_awaited awaited;
    unsigned op = atomic_load(&slot->op);
    for (int i = 0; op == COHI_OP_NONE && i < COHI_DOINGS; i++)
        if (cohi_doing_read(&slot->doings[i], &awaited))
            op = (unsigned)awaited.op;
    return op;
}

static uint64_t verdict_for(const struct look *look, int rank)
{
    coh_world *world = look->world;
    bool stopped = look->states[rank] == STOPPED, far = cohi_far(world, rank);
    unsigned op =
        stopped && far ? cohi_board_read(world->board, rank).op : op_of(slot_of(look, rank));
    if (stopped && far && !cohi_peer_is_stopped(world, rank)) {
        (void)cohi_peer_is_mute(world, rank, &op);
        return cohi_verdict(COHI_VERDICT_MUTE, 0, (int)op);
    }
    return cohi_verdict(stopped ? COHI_VERDICT_STOPPED : COHI_VERDICT_STUCK, 0, (int)op);
}

static void pass_verdicts(struct look *look, const bool *core)
{
    for (int i = 0; i < look->count; i++)
        if (core[look->order[i]])
            look->verdicts[look->order[i]] = verdict_for(look, look->order[i]);
    cohi_verdict_pass_all(look->world, look->verdicts);
}

/* A rank that waits for itself fails by itself, and may then go on. */
static bool is_own_affair(const struct look *look, const bool *core, int rank)
{
    return count_of(look, core) == 1 && core[rank] && look->states[rank] == HELD;
}

static bool is_affair_of_another(const struct look *look, const bool *core)
{
    for (int i = 1; i < look->count; i++)
        if (is_own_affair(look, core, look->order[i]))
            return true;
    return false;
}

/* Without a circle every chain of waits ends at ranks that are gone. Those who wait for them fail by
 * themselves, and may then go on: one may hear of a loss long after the others, where its watcher gets
 * no core. */
static bool is_left_to_another(const struct look *look, const bool *stuck)
{
    select_in(look, stuck, GONE, look->gone);
    return can_go(look, look->world->rank, look->gone);
}

static coh_status judge(struct look *look, const bool *stuck, const char *call, const char *hint)
{
    char text[COHI_CIRCLE_BYTES];
    coh_world *world = look->world;
    find_core(look, stuck, look->core);
    if (count_of(look, look->core) == 0 && is_left_to_another(look, stuck))
        return COH_OK;
    describe_all(look, stuck, text, sizeof text);
    if (count_of(look, look->core) == 0 || is_own_affair(look, look->core, world->rank))
        return cohi_world_fail(world, call, COH_STALLED,
                               "waits for something that can no longer come: %s%s%s", text,
                               hint ? "; " : "", hint ? hint : "");
    if (is_affair_of_another(look, look->core))
        return COH_OK;
    write_circle(world->board->head, text);
    send_circle(world, text);
    pass_verdicts(look, look->core);
    return COH_OK;
}

static coh_status look_once(coh_world *world, struct cohi_survey *survey, const char *call,
                            const char *hint)
{
    coh_status status = COH_OK;
    struct look now;
    if (!make_look(world, survey, &now)) /* then nothing is known this time */
        return COH_OK;
    look_at_all(&now);
    memcpy(survey->wanted, now.seen, (size_t)world->size * sizeof *now.seen);
    for (int certain = !cohi_far_settles(world); certain >= 0 && status == COH_OK; certain--) {
        take_away(&now, certain, now.stuck);
        if (now.stuck[world->rank]) {
            status = judge(&now, now.stuck, call, hint);
            break;
        }
    }
    free_look(&now);
    return status;
}

coh_status cohi_survey_look(coh_world *world, const char *call, const char *hint)
{
    coh_status status = COH_OK;
    uint64_t now_ns = cohi_now_ns();
    if (world->stall_ns == 0 || pthread_mutex_trylock(&world->survey_lock) != 0)
        return COH_OK;
    struct cohi_survey *survey = survey_of(world);
    if (survey)
        ask_next(world, survey);
    if (survey && now_ns - survey->last_ns >= SURVEY_NS) {
        survey->last_ns = now_ns;
        survey->number++;
        status = look_once(world, survey, call, hint);
    }
    pthread_mutex_unlock(&world->survey_lock);
    return status;
}
