#include "core/world/doing.h"

#include "base/clock.h"
#include "base/os.h"
#include "core/world/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets ---- */

bool cohi_spans_have(const cohi_spans *spans, int rank)
{
    for (int i = 0; i < COHI_SPANS; i++)
        if (rank >= spans->span[i].first && rank < spans->span[i].end)
            return true;
    return false;
}

/* How far a span is from reaching the rank. */
static int distance(const struct cohi_rank_span *span, int rank)
{
    return rank < span->first ? span->first - rank : rank - span->end + 1;
}

/* The next free span, where the rank touches none; else the one that it is nearest to. */
static struct cohi_rank_span *span_for(cohi_spans *spans, int rank)
{
    struct cohi_rank_span *nearest = &spans->span[0];
    for (int i = 0; i < COHI_SPANS; i++) {
        struct cohi_rank_span *span = &spans->span[i];
        if (span->end == 0)
            return i > 0 && distance(nearest, rank) == 1 ? nearest : span;
        if (distance(span, rank) < distance(nearest, rank))
            nearest = span;
    }
    return nearest;
}

void cohi_spans_add(cohi_spans *spans, int rank)
{
    if (cohi_spans_have(spans, rank))
        return;
    struct cohi_rank_span *span = span_for(spans, rank);
    if (span->end == 0)
        *span = (struct cohi_rank_span){rank, rank + 1};
    span->first = rank < span->first ? rank : span->first;
    span->end = rank >= span->end ? rank + 1 : span->end;
}

/* The first rank of the set from `from` on; -1: there is none. */
static int next_in(const cohi_spans *spans, int from)
{
    int next = -1;
    for (int i = 0; i < COHI_SPANS; i++) {
        const struct cohi_rank_span *span = &spans->span[i];
        int first = span->first > from ? span->first : from;
        if (first < span->end && (next < 0 || first < next))
            next = first;
    }
    return next;
}

/* ---- showing ---- */

static cohi_doing *claim(cohi_slot *slot)
{
    for (int i = 0; i < COHI_DOINGS; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&slot->doings[i].thread, &none, cohi_os_thread_id()))
            return &slot->doings[i];
    }
    return NULL;
}

/* The value that the word has now is no part of what is waited for. */
static bool is_same_word(const cohi_awaited_word *a, const cohi_awaited_word *b)
{
    return a->shown == b->shown
           && (!a->shown
               || (a->others == b->others && a->dtype == b->dtype && a->compare == b->compare
                   && a->wanted == b->wanted && a->spot == b->spot));
}

static bool is_same(const cohi_awaited *a, const cohi_awaited *b)
{
    return is_same_word(&a->word, &b->word) && a->op == b->op && a->sequence == b->sequence
           && a->tag == b->tag && a->rank == b->rank && a->ends == b->ends
           && (a->rank >= 0 || memcmp(&a->ranks, &b->ranks, sizeof a->ranks) == 0);
}

static unsigned word_bits(const cohi_awaited_word *word)
{
    if (!word->shown)
        return 0;
    return COHI_WORD_SHOWN | (word->others ? COHI_WORD_OTHERS : 0u) | (unsigned)word->dtype
           | (unsigned)word->compare << COHI_WORD_COMPARE_SHIFT;
}

/* A reader that finds the same turn before and after has read one and the same wait. */
static void write_doing(cohi_doing *doing, const cohi_awaited *awaited)
{
    unsigned how =
        (awaited->rank < 0 ? COHI_DOING_ANY : 0u) | (awaited->ends ? COHI_DOING_ENDS : 0u);
    atomic_store(&doing->turn, 0);
    atomic_store(&doing->op, awaited->op);
    atomic_store(&doing->how, how);
    atomic_store(&doing->rank, awaited->rank);
    atomic_store(&doing->tag, awaited->tag);
    atomic_store(&doing->word, word_bits(&awaited->word));
    atomic_store(&doing->wanted, awaited->word.wanted);
    atomic_store(&doing->spot, awaited->word.spot);
    atomic_store(&doing->sequence, awaited->sequence);
    for (int i = 0; awaited->rank < 0 && i < COHI_SPANS; i++) {
        const struct cohi_rank_span *span = &awaited->ranks.span[i];
        atomic_store(&doing->set[i], (uint64_t)(uint32_t)span->first << 32 | (uint32_t)span->end);
    }
    unsigned turn = atomic_load(&doing->last_turn) + 1;
    turn += turn == 0;
    atomic_store(&doing->last_turn, turn);
    atomic_store(&doing->turn, turn);
}

void cohi_doing_show(coh_world *world, const cohi_awaited *awaited, uint64_t looked_ns,
                     cohi_doing **shown)
{
    cohi_awaited before;
    if (!*shown)
        *shown = claim(world->slot);
    cohi_doing *doing = *shown;
    if (!doing)
        return;
    if (!cohi_doing_read(doing, &before) || !is_same(&before, awaited))
        write_doing(doing, awaited);
    atomic_store(&doing->found, awaited->word.found);
    atomic_store(&doing->looked_ns, looked_ns);
}

void cohi_doing_hide(cohi_doing **shown)
{
    if (!*shown)
        return;
    atomic_store(&(*shown)->turn, 0);
    atomic_store(&(*shown)->thread, 0);
    *shown = NULL;
}

bool cohi_doing_has_others(const coh_world *world, const cohi_doing *than)
{
    for (int i = 0; i < COHI_DOINGS; i++)
        if (&world->slot->doings[i] != than && atomic_load(&world->slot->doings[i].turn) != 0)
            return true;
    return false;
}

static cohi_awaited_word read_word(cohi_doing *doing)
{
    unsigned bits = atomic_load(&doing->word), byte = (1u << COHI_WORD_COMPARE_SHIFT) - 1;
    return (cohi_awaited_word){
        .shown = bits & COHI_WORD_SHOWN,
        .others = bits & COHI_WORD_OTHERS,
        .dtype = (coh_dtype)(bits & byte),
        .compare = (coh_compare)(bits >> COHI_WORD_COMPARE_SHIFT & byte),
        .wanted = atomic_load(&doing->wanted),
        .found = atomic_load(&doing->found),
        .spot = atomic_load(&doing->spot),
    };
}

bool cohi_doing_read(const cohi_doing *read_only, cohi_awaited *awaited)
{
    cohi_doing *doing = (cohi_doing *)read_only; /* atomic_load takes no const in C11 */
    unsigned turn = atomic_load(&doing->turn);
    if (turn == 0)
        return false;
    awaited->op = (cohi_opcode)atomic_load(&doing->op);
    awaited->sequence = atomic_load(&doing->sequence);
    awaited->tag = atomic_load(&doing->tag);
    awaited->rank = atomic_load(&doing->rank);
    awaited->ends = atomic_load(&doing->how) & COHI_DOING_ENDS;
    for (int i = 0; i < COHI_SPANS; i++) {
        uint64_t word = awaited->rank < 0 ? atomic_load(&doing->set[i]) : 0;
        awaited->ranks.span[i] = (struct cohi_rank_span){(int32_t)(word >> 32), (int32_t)word};
    }
    awaited->word = read_word(doing);
    return atomic_load(&doing->turn) == turn;
}

/* ---- the other threads ---- */

static bool waits_in(cohi_slot *slot, int thread)
{
    for (int i = 0; i < COHI_DOINGS; i++)
        if (atomic_load_explicit(&slot->doings[i].thread, memory_order_relaxed) == thread)
            return true;
    return false;
}

/* It is in a wait of this rank. */
static bool is_waiting(int thread, void *arg)
{
    const coh_world *world = arg;
    return waits_in(world->slot, thread);
}

/* Without /proc nobody can say; then the waits are all that is known of the rank. */
static cohi_rest rest_of(bool told, const cohi_os_threads *seen)
{
    if (!told)
        return COHI_REST_ASLEEP;
    if (seen->busy)
        return COHI_REST_BUSY;
    return seen->others > 0 ? COHI_REST_ASLEEP : COHI_REST_NONE;
}

/* ---- the same, of ranks of one process ---- */

/* The kernel's ids of threads. */
struct crowd {
    int *ids; /* in ascending order */
    size_t count;
};

static int compare_ids(const void *a, const void *b)
{
    int first = *(const int *)a, second = *(const int *)b;
    return (first > second) - (first < second);
}

static void gather_of(cohi_slot *slot, struct crowd *crowd)
{
    int bound = atomic_load(&slot->thread);
    if (bound != 0)
        crowd->ids[crowd->count++] = bound;
    for (int i = 0; i < COHI_DOINGS; i++) {
        int thread = atomic_load_explicit(&slot->doings[i].thread, memory_order_relaxed);
        if (thread != 0 && thread != bound)
            crowd->ids[crowd->count++] = thread;
    }
}

/* The ranks' own threads, and all that wait for one of them. False: there is no memory for that. */
static bool gather(const cohi_crew *crew, struct crowd *crowd)
{
    crowd->count = 0;
    crowd->ids = malloc((size_t)crew->size * (1 + COHI_DOINGS) * sizeof *crowd->ids);
    if (!crowd->ids)
        return false;
    for (int rank = 0; rank < crew->size; rank++)
        gather_of(cohi_board_slot(&crew->board, rank), crowd);
    qsort(crowd->ids, crowd->count, sizeof *crowd->ids, compare_ids);
    return true;
}

static bool is_in_crowd(int thread, void *arg)
{
    const struct crowd *crowd = arg;
    return bsearch(&thread, crowd->ids, crowd->count, sizeof thread, compare_ids) != NULL;
}

/*
 * One look serves all ranks of the process for a while, since each would see the same: with a
 * thousand of them a look lists a thousand threads. All looks together may take a twentieth of a
 * core.
 */
static void look_for_all(cohi_crew *crew, uint64_t now_ns)
{
    enum { SHARE = 20 };
    struct crowd crowd;
    cohi_crew_look *look = &crew->look;
    uint64_t lasts_ns = SHARE * look->took_ns;
    if ((look->began_ns && now_ns < look->began_ns + lasts_ns) || !gather(crew, &crowd))
        return;
    look->told = cohi_os_threads_look(is_in_crowd, &crowd, &look->seen);
    look->began_ns = now_ns;
    look->took_ns = cohi_now_ns() - now_ns;
    free(crowd.ids);
}

/* What is left to the rank itself is its own thread, where another one waits. */
static bool look_as_member(coh_world *world, uint64_t *began_ns, cohi_os_threads *seen)
{
    cohi_crew *crew = world->crew;
    int bound = atomic_load(&world->slot->thread);
    pthread_mutex_lock(&crew->look.lock);
    look_for_all(crew, *began_ns);
    bool told = crew->look.told;
    *began_ns = crew->look.began_ns;
    *seen = crew->look.seen;
    pthread_mutex_unlock(&crew->look.lock);
    if (told && bound != 0 && bound != cohi_os_thread_id() && !waits_in(world->slot, bound))
        cohi_os_thread_look(bound, seen);
    return told;
}

/* ---- what is shown ---- */

void cohi_doing_look_around(coh_world *world)
{
    cohi_slot *slot = world->slot;
    cohi_os_threads seen;
    uint64_t began_ns = cohi_now_ns();
    if (pthread_mutex_trylock(&world->rest_lock) != 0)
        return;
    bool told = world->crew ? look_as_member(world, &began_ns, &seen)
                            : cohi_os_threads_look(is_waiting, world, &seen);
    cohi_rest rest = rest_of(told, &seen);
    if (rest != atomic_load(&slot->rest) || seen.runs != world->rest_runs)
        atomic_fetch_add(&slot->rest_turn, 1);
    world->rest_runs = seen.runs;
    atomic_store(&slot->rest, rest);
    atomic_store(&slot->rest_ns, began_ns);
    pthread_mutex_unlock(&world->rest_lock);
}

/* ---- words ---- */

/* Adds to a text that is cut at its end. */
static void add(char *text, size_t room, const char *words)
{
    size_t length = strlen(text);
    snprintf(text + length, room - length, "%s", words);
}

/* "2", "any of 0, 2 and 3", "any of 12 ranks" */
static void name_ranks(const cohi_awaited *awaited, char *text, size_t room)
{
    enum { NAMED = 6 };
    char number[16];
    int count = 0, told = 0;
    if (awaited->rank >= 0) {
        snprintf(text, room, "%d", awaited->rank);
        return;
    }
    for (int rank = next_in(&awaited->ranks, 0); rank >= 0;
         rank = next_in(&awaited->ranks, rank + 1))
        count++;
    if (count > NAMED) {
        snprintf(text, room, "any of %d ranks", count);
        return;
    }
    snprintf(text, room, count > 1 ? "any of " : "");
    for (int rank = next_in(&awaited->ranks, 0); rank >= 0;
         rank = next_in(&awaited->ranks, rank + 1)) {
        add(text, room, told == 0 ? "" : told == count - 1 ? " and " : ", ");
        snprintf(number, sizeof number, "%d", rank);
        add(text, room, number);
        told++;
    }
}

void cohi_doing_describe(const cohi_awaited *awaited, const cohi_awaited *like, char *text,
                         size_t room)
{
    char whom[96], number[32] = "", tag[32] = "";
    bool again = like && like->op == awaited->op && like->tag == awaited->tag
                 && like->sequence == awaited->sequence;
    name_ranks(awaited, whom, sizeof whom);
    if (awaited->sequence > 0)
        snprintf(number, sizeof number, " #%llu", (unsigned long long)awaited->sequence);
    if (awaited->tag >= 0 && !again)
        snprintf(tag, sizeof tag, " (tag %d)", awaited->tag);
    switch (awaited->op) {
    case COHI_OP_RECEIVE:
        snprintf(text, room, "%sfrom %s%s", again ? "" : "receives ", whom, tag);
        return;
    case COHI_OP_SEND:
        snprintf(text, room, "%sto %s%s", again ? "" : "sends ", whom, tag);
        return;
    case COHI_OP_WAIT:
        snprintf(text, room, "%sfrom %s", again ? "" : "waits for a word ", whom);
        return;
    default:
        if (again)
            snprintf(text, room, "for %s", whom);
        else
            snprintf(text, room, "waits in %s%s for %s", cohi_opcode_name(awaited->op), number,
                     whom);
        return;
    }
}

/* ---- words of memory ---- */

static const char *sign_of(coh_compare compare)
{
    static const char *const signs[] = {[COH_EQ] = "==", [COH_NE] = "!=", [COH_GT] = ">",
                                        [COH_GE] = ">=", [COH_LT] = "<",  [COH_LE] = "<="};
    return (unsigned)compare < sizeof signs / sizeof *signs ? signs[compare] : "?";
}

static void number_text(coh_dtype dtype, uint64_t value, char text[24])
{
    if (dtype == COH_I32)
        snprintf(text, 24, "%d", (int32_t)(uint32_t)value);
    else if (dtype == COH_I64)
        snprintf(text, 24, "%lld", (long long)value);
    else
        snprintf(text, 24, "%llu", (unsigned long long)value);
}

/* A word's condition, its value and its place, as texts. */
struct word_texts {
    char condition[64];
    char found[24];
    const char *others;
};

static struct word_texts word_texts(const cohi_awaited_word *word)
{
    struct word_texts texts = {.others = word->others ? ", among others" : ""};
    char wanted[24];
    const char *type = coh_dtype_name(word->dtype);
    number_text(word->dtype, word->wanted, wanted);
    number_text(word->dtype, word->found, texts.found);
    snprintf(texts.condition, sizeof texts.condition, "%s %s %s", type ? type : "?",
             sign_of(word->compare), wanted);
    return texts;
}

void cohi_doing_describe_word(const cohi_awaited_word *word, char *text, size_t room)
{
    struct word_texts texts = word_texts(word);
    snprintf(text, room, "%s at %s, which is %s%s", texts.condition,
             cohi_spot_describe(word->spot).text, texts.found, texts.others);
}

static void list_one(const cohi_awaited *awaited, char *text, size_t room)
{
    char whom[96], more[160] = "";
    name_ranks(awaited, whom, sizeof whom);
    if (awaited->tag >= 0)
        snprintf(more, sizeof more, ", tag %d", awaited->tag);
    if (awaited->word.shown) {
        struct word_texts texts = word_texts(&awaited->word);
        snprintf(more, sizeof more, ": %s, is %s, %s%s", texts.condition, texts.found,
                 cohi_spot_describe(awaited->word.spot).text, texts.others);
    }
    snprintf(text, room, "%s%s%s", awaited->rank >= 0 ? "rank " : "", whom, more);
}

void cohi_doing_list(const cohi_slot *slot, char *text, size_t room)
{
    *text = '\0';
    for (int i = 0; i < COHI_DOINGS; i++) {
        char one[288];
        cohi_awaited awaited;
        if (!cohi_doing_read(&slot->doings[i], &awaited))
            continue;
        list_one(&awaited, one, sizeof one);
        add(text, room, *text ? "; " : "");
        add(text, room, one);
    }
}
