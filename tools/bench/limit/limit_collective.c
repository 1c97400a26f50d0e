#include "bench/limit/limit.h"

#include "base/atomics.h"

#include <sched.h>
#include <string.h>

/* ---- waiting ---- */

static void await(const uint64_t *word, uint64_t count, cohi_limit_wait wait)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < count) {
        if (wait == COHI_LIMIT_YIELD)
            sched_yield();
        else if (wait != COHI_LIMIT_SPIN)
            cohi_cpu_relax();
    }
}

/* An early look takes the other's line away while it is about to be written. */
static void hold_back(cohi_limit_wait wait)
{
    if (wait == COHI_LIMIT_LATE)
        cohi_cpu_relax();
}

void cohi_limit_meet(const cohi_limit_meeting *meeting, cohi_limit_wait wait)
{
    uint64_t *mine = &meeting->lines[meeting->mine][0].count;
    uint64_t turn = *mine + 1;
    __atomic_store_n(mine, turn, __ATOMIC_RELEASE);
    hold_back(wait);
    for (int i = 0; i < meeting->count; i++)
        await(&meeting->lines[i][0].count, turn, wait);
}

/* ---- shares of the work ---- */

struct work {
    const cohi_limit_party *party;
    const cohi_limit_kernel *kernel;
    char *const *sources; /* the ranks' own, or what they published; byte 0 of each is theirs */
    size_t from, to;      /* of what each contributes */
};

static int me(const struct work *work)
{
    return work->party->meeting.mine;
}

static int count_of(const struct work *work)
{
    return work->party->meeting.count;
}

static void copy(const struct work *work, char *target, const char *source, size_t bytes)
{
    if (target != source && bytes)
        work->kernel->copy->copy(target, source, bytes);
}

/* This rank's share of the range, in whole units. */
static void share(const struct work *work, size_t *from, size_t *to)
{
    size_t count = (size_t)count_of(work), rank = (size_t)me(work);
    size_t units = (work->to - work->from + COHI_LIMIT_UNIT - 1) / COHI_LIMIT_UNIT;
    *from = work->from + units * rank / count * COHI_LIMIT_UNIT;
    *to = rank + 1 == count ? work->to : work->from + units * (rank + 1) / count * COHI_LIMIT_UNIT;
    if (*to > work->to)
        *to = work->to;
    if (*from > *to)
        *from = *to;
}

static void sum(const struct work *work, char *const *targets, int target_count, int source_count,
                size_t from, size_t to)
{
    if (from < to)
        work->kernel->reduce->sum[work->party->type](targets, target_count, work->sources,
                                                     source_count, from, to);
}

/* ---- each collective: for one's own target, and one's share of all ---- */

static void pull_all_reduce(const struct work *work)
{
    sum(work, &work->party->targets[me(work)], 1, count_of(work), work->from, work->to);
}

static void share_all_reduce(const struct work *work)
{
    size_t from, to;
    share(work, &from, &to);
    sum(work, work->party->targets, count_of(work), count_of(work), from, to);
}

static void pull_reduce(const struct work *work)
{
    if (me(work) == work->party->root)
        pull_all_reduce(work);
}

static void share_reduce(const struct work *work)
{
    size_t from, to;
    share(work, &from, &to);
    sum(work, &work->party->targets[work->party->root], 1, count_of(work), from, to);
}

static void pull_reduce_scatter(const struct work *work)
{
    char *blocks[COHI_LIMIT_PARTIES];
    size_t block = work->party->block;
    for (int i = 0; i < count_of(work); i++)
        blocks[i] = work->sources[i] + (size_t)me(work) * block;
    struct work moved = *work;
    moved.sources = blocks;
    sum(&moved, &work->party->targets[me(work)], 1, count_of(work), 0, block);
}

static void pull_gather_to(const struct work *work, char *target)
{
    for (int i = 0; i < count_of(work); i++)
        copy(work, target + (size_t)i * work->party->bytes + work->from,
             work->sources[i] + work->from, work->to - work->from);
}

static void pull_all_gather(const struct work *work)
{
    pull_gather_to(work, work->party->targets[me(work)]);
}

static void push_to(const struct work *work, int rank)
{
    copy(work, work->party->targets[rank] + (size_t)me(work) * work->party->bytes + work->from,
         work->sources[me(work)] + work->from, work->to - work->from);
}

static void push_all_gather(const struct work *work)
{
    for (int i = 0; i < count_of(work); i++)
        push_to(work, (me(work) + i) % count_of(work));
}

static void pull_gather(const struct work *work)
{
    if (me(work) == work->party->root)
        pull_gather_to(work, work->party->targets[me(work)]);
}

static void push_gather(const struct work *work)
{
    push_to(work, work->party->root);
}

static void pull_scatter(const struct work *work)
{
    size_t block = work->party->block;
    copy(work, work->party->targets[me(work)],
         work->sources[work->party->root] + (size_t)me(work) * block, block);
}

/* The root's target may be its source, which is then there already. */
static int has_it_already(const struct work *work, int rank)
{
    return rank == work->party->root && work->party->targets[rank] == work->party->sources[rank];
}

static void pull_broadcast(const struct work *work)
{
    if (!has_it_already(work, me(work)))
        copy(work, work->party->targets[me(work)] + work->from,
             work->sources[work->party->root] + work->from, work->to - work->from);
}

static void share_broadcast(const struct work *work)
{
    size_t from, to;
    share(work, &from, &to);
    for (int i = 0; i < count_of(work); i++) {
        if (!has_it_already(work, i))
            copy(work, work->party->targets[i] + from, work->sources[work->party->root] + from,
                 to - from);
    }
}

static void pull_all_to_all(const struct work *work)
{
    size_t block = work->party->block;
    for (int i = 0; i < count_of(work); i++)
        copy(work, work->party->targets[me(work)] + (size_t)i * block,
             work->sources[i] + (size_t)me(work) * block, block);
}

static void push_all_to_all(const struct work *work)
{
    size_t block = work->party->block;
    for (int i = 0; i < count_of(work); i++)
        copy(work, work->party->targets[i] + (size_t)me(work) * block,
             work->sources[me(work)] + (size_t)i * block, block);
}

static void pull_scan(const struct work *work)
{
    sum(work, &work->party->targets[me(work)], 1, me(work) + 1, work->from, work->to);
}

static void share_scan(const struct work *work)
{
    size_t from, to;
    share(work, &from, &to);
    if (from < to)
        work->kernel->reduce->prefix[work->party->type](work->party->targets, work->sources,
                                                        count_of(work), from, to);
}

/* Whose data a rank needs. */
enum needs { ALL, ALL_AT_ROOT, THE_ROOTS, THOSE_BEFORE };

struct cohi_limit_collective {
    const char *name;
    enum needs needs;
    int reduces;
    int pieces; /* can be done for a part of what is contributed after the other */
    void (*pull)(const struct work *work);
    void (*shared)(const struct work *work); /* NULL: pulling is shared already */
};

static const cohi_limit_collective collectives[] = {
    {"all_reduce", ALL, 1, 1, pull_all_reduce, share_all_reduce},
    {"reduce", ALL_AT_ROOT, 1, 1, pull_reduce, share_reduce},
    {"reduce_scatter", ALL, 1, 0, pull_reduce_scatter, NULL},
    {"all_gather", ALL, 0, 1, pull_all_gather, push_all_gather},
    {"gather", ALL_AT_ROOT, 0, 1, pull_gather, push_gather},
    {"scatter", THE_ROOTS, 0, 0, pull_scatter, NULL},
    {"broadcast", THE_ROOTS, 0, 1, pull_broadcast, share_broadcast},
    {"all_to_all", ALL, 0, 0, pull_all_to_all, push_all_to_all},
    {"scan", THOSE_BEFORE, 1, 1, pull_scan, share_scan},
};

const cohi_limit_collective *cohi_limit_collective_of(const char *name)
{
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        if (strcmp(collectives[i].name, name) == 0)
            return &collectives[i];
    }
    return NULL;
}

int cohi_limit_reduces(const cohi_limit_collective *collective)
{
    return collective->reduces;
}

int cohi_limit_has_shape(const cohi_limit_collective *collective, const cohi_limit_party *party,
                         cohi_limit_shape shape)
{
    if (shape == COHI_LIMIT_STAGED)
        return collective->pieces || party->bytes <= COHI_LIMIT_SLOT_BYTES;
    return shape == COHI_LIMIT_PULL || collective->shared;
}

/* ---- by slots ---- */

static char *slot_data(cohi_limit_slot *slot, size_t bytes)
{
    return bytes <= COHI_LIMIT_INLINE_BYTES ? slot->line : slot->data;
}

/* A word in one load and one store. */
static void copy_short(char *target, const char *source, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(target, source, sizeof(uint64_t));
    else
        memcpy(target, source, bytes);
}

/*
 * A rank that has published turn - 1 has read all of turn - 2, so the slot may be written again.
 * Every rank publishes every turn, even with nothing to give: that is how it says that it has read.
 */
static void publish(const cohi_limit_collective *collective, const struct work *work, uint64_t turn)
{
    const cohi_limit_party *party = work->party;
    cohi_limit_slot *slot = &party->slots[me(work)][turn & 1];
    for (int i = 0; i < count_of(work); i++)
        await(&party->slots[i][(turn - 1) & 1].count, turn - 1, party->wait);
    if (collective->needs != THE_ROOTS || me(work) == party->root)
        copy_short(slot_data(slot, work->to - work->from), party->sources[me(work)] + work->from,
                   work->to - work->from);
    __atomic_store_n(&slot->count, turn, __ATOMIC_RELEASE);
}

static int needs(const cohi_limit_collective *collective, const struct work *work, int rank)
{
    int root = work->party->root;
    switch (collective->needs) {
    case ALL_AT_ROOT:
        return me(work) == root;
    case THE_ROOTS:
        return rank == root;
    case THOSE_BEFORE:
        return rank <= me(work);
    case ALL:
        break;
    }
    return 1;
}

/* The slots are found as if each were the whole source. */
static void run_piece(const cohi_limit_collective *collective, struct work *work)
{
    char *published[COHI_LIMIT_PARTIES];
    const cohi_limit_party *party = work->party;
    const cohi_limit_slot *mine = party->slots[me(work)];
    uint64_t turn = (mine[0].count > mine[1].count ? mine[0].count : mine[1].count) + 1;
    publish(collective, work, turn);
    hold_back(party->wait);
    for (int i = 0; i < count_of(work); i++) {
        cohi_limit_slot *slot = &party->slots[i][turn & 1];
        if (needs(collective, work, i))
            await(&slot->count, turn, party->wait);
        published[i] = slot_data(slot, work->to - work->from) - work->from;
    }
    published[me(work)] = party->sources[me(work)];
    work->sources = published;
    collective->pull(work);
}

static void run_staged(const cohi_limit_collective *collective, struct work *work)
{
    size_t bytes = work->party->bytes;
    for (size_t at = 0; at < bytes; at += COHI_LIMIT_SLOT_BYTES) {
        work->from = at;
        work->to = bytes - at < COHI_LIMIT_SLOT_BYTES ? bytes : at + COHI_LIMIT_SLOT_BYTES;
        run_piece(collective, work);
    }
}

void cohi_limit_collective_run(const cohi_limit_collective *collective, cohi_limit_shape shape,
                               const cohi_limit_kernel *kernel, const cohi_limit_party *party)
{
    struct work work = {party, kernel, party->sources, 0, party->bytes};
    if (shape == COHI_LIMIT_STAGED) {
        run_staged(collective, &work);
        return;
    }
    cohi_limit_meet(&party->meeting, party->wait);
    if (shape == COHI_LIMIT_PULL)
        collective->pull(&work);
    else
        collective->shared(&work);
    cohi_limit_meet(&party->meeting, party->wait);
}
