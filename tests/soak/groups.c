#include "soak.h"

#include <stdlib.h>
#include <string.h>

enum { TEAMS = 6, MESSAGES = 4, SHORT = 200, LONG = 60000 };

/* A team that may be alive, known to all ranks whether they are in it or not. */
struct entry {
    bool alive;
    int ranks[SOAK_RANKS];
    int count;
    coh_team *team; /* NULL on ranks that are not in it */
};

struct soak_groups {
    struct entry world;
    struct entry entries[TEAMS];
    unsigned char *in, *out[MESSAGES];
    soak_collectives *collectives;
};

static void *allocate(const soak_run *run, size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        soak_fail(run, "out of memory");
    return memory;
}

soak_groups *soak_groups_open(soak_run *run)
{
    soak_groups *groups = allocate(run, sizeof *groups);
    groups->world =
        (struct entry){.alive = true, .count = run->size, .team = coh_team_world(run->world)};
    for (int rank = 0; rank < run->size; rank++)
        groups->world.ranks[rank] = rank;
    groups->in = allocate(run, LONG);
    for (int i = 0; i < MESSAGES; i++)
        groups->out[i] = allocate(run, LONG);
    groups->collectives = soak_collectives_open(run);
    return groups;
}

void soak_groups_close(soak_run *run, soak_groups *groups)
{
    for (int i = 0; i < TEAMS; i += 2) /* the others are left to finalize */
        if (groups->entries[i].alive)
            soak_must(run, coh_team_destroy(groups->entries[i].team), "team_destroy");
    for (int i = 0; i < MESSAGES; i++)
        free(groups->out[i]);
    soak_collectives_close(run, groups->collectives);
    free(groups->in);
    free(groups);
}

/* ---- teams ---- */

static int place_in(const struct entry *entry, int rank)
{
    for (int i = 0; i < entry->count; i++)
        if (entry->ranks[i] == rank)
            return i;
    return -1;
}

static void check_entry(const soak_run *run, const struct entry *entry)
{
    int place = place_in(entry, run->rank);
    bool good = (entry->team != NULL) == (place >= 0);
    if (good && entry->team) {
        good = coh_team_size(entry->team) == entry->count && coh_team_index(entry->team) == place;
        for (int i = 0; good && i < entry->count; i++)
            good = coh_team_rank(entry->team, i) == entry->ranks[i];
    }
    if (!good)
        soak_fail(run, "a team of %d has other members than it should", entry->count);
}

static void split_strided(soak_run *run, const struct entry *parent, uint64_t *random,
                          struct entry *made)
{
    int size = 1 + (int)(test_random(random) % (unsigned)parent->count);
    int most = size > 1 ? (parent->count - 1) / (size - 1) : 1;
    int stride = 1 + (int)(test_random(random) % (unsigned)most), span = (size - 1) * stride;
    int start = (int)(test_random(random) % (unsigned)(parent->count - span));
    if (test_random(random) % 2) {
        start += span;
        stride = -stride;
    }
    for (made->count = 0; made->count < size; made->count++)
        made->ranks[made->count] = parent->ranks[start + stride * made->count];
    if (parent->team)
        soak_must(run, coh_team_split_strided(parent->team, start, stride, size, &made->team),
                  "team_split_strided");
}

static void from_list(soak_run *run, const struct entry *parent, uint64_t *random,
                      struct entry *made)
{
    int list[SOAK_RANKS], count = 1 + (int)(test_random(random) % (unsigned)parent->count);
    for (int i = 0; i < parent->count; i++)
        list[i] = i;
    for (int i = parent->count - 1; i > 0; i--) {
        int other = (int)(test_random(random) % (unsigned)(i + 1)), kept = list[i];
        list[i] = list[other];
        list[other] = kept;
    }
    for (made->count = 0; made->count < count; made->count++)
        made->ranks[made->count] = parent->ranks[list[made->count]];
    if (parent->team)
        soak_must(run, coh_team_from_list(parent->team, list, count, &made->team),
                  "team_from_list");
}

/* One colour takes part, the rest joins none; keys are the place, or its opposite. */
static void split_color(soak_run *run, const struct entry *parent, uint64_t *random,
                        struct entry *made)
{
    uint64_t mask = test_random(random);
    bool reversed = test_random(random) % 2;
    for (int i = 0; i < parent->count; i++) {
        int place = reversed ? parent->count - 1 - i : i;
        if (mask >> place & 1)
            made->ranks[made->count++] = parent->ranks[place];
    }
    if (!parent->team)
        return;
    int mine = coh_team_index(parent->team);
    soak_must(run,
              coh_team_split_color(parent->team, (mask >> mine & 1) ? 3 : -1,
                                   reversed ? -mine : mine, &made->team),
              "team_split_color");
}

/* Makes a team in a free place, or ends one that is in it. */
static void change_teams(soak_run *run, soak_groups *groups, uint64_t *random)
{
    static void (*const ways[])(soak_run *, const struct entry *, uint64_t *,
                                struct entry *) = {split_strided, from_list, split_color};
    struct entry *entry = &groups->entries[test_random(random) % TEAMS];
    const struct entry *parent = &groups->entries[test_random(random) % TEAMS];
    if (entry->alive) {
        if (entry->team)
            soak_must(run, coh_team_destroy(entry->team), "team_destroy");
        entry->alive = false;
        return;
    }
    if (!parent->alive || test_random(random) % 2)
        parent = &groups->world;
    *entry = (struct entry){.alive = true};
    ways[test_random(random) % 3](run, parent, random, entry);
    entry->alive = entry->count > 0;
    check_entry(run, entry);
}

static void meet(soak_run *run, const struct entry *entry, uint64_t *random)
{
    bool completes = test_random(random) % 2;
    if (entry->alive && entry->team)
        soak_must(run, completes ? coh_team_barrier(entry->team) : coh_team_sync(entry->team),
                  "team meeting");
}

/* ---- messages ---- */

struct message {
    int to; /* index in the team */
    int tag;
    size_t bytes;
    uint64_t pattern;
};

static void plan_messages(const soak_run *run, const struct entry *entry, int sender,
                          struct message messages[MESSAGES])
{
    uint64_t random = soak_stream(run, "messages", entry->ranks[sender]);
    for (int i = 0; i < MESSAGES; i++) {
        size_t most = test_random(&random) % 8 ? SHORT : LONG;
        messages[i].to = (int)(test_random(&random) % (unsigned)entry->count);
        messages[i].tag = (int)(test_random(&random) % 2);
        messages[i].bytes = test_random(&random) % (most + 1);
        messages[i].pattern = test_random(&random);
    }
}

static void take(soak_run *run, soak_groups *groups, const struct entry *entry, int sender,
                 const struct message *message)
{
    coh_message got = {.source = -9};
    soak_must(run, coh_receive(entry->team, sender, message->tag, groups->in, LONG, &got),
              "receive");
    if (got.source != sender || got.tag != message->tag || got.bytes != message->bytes
        || test_differs(groups->in, got.bytes, message->pattern) != got.bytes)
        soak_fail(run, "a message of rank %d with tag %d and %zu bytes came as another",
                  entry->ranks[sender], message->tag, message->bytes);
}

/* All send first; then each takes what is for it, one tag after the other. */
static void exchange(soak_run *run, soak_groups *groups, const struct entry *entry)
{
    struct message messages[MESSAGES];
    coh_request *requests[MESSAGES];
    int mine = coh_team_index(entry->team);
    plan_messages(run, entry, mine, messages);
    for (int i = 0; i < MESSAGES; i++) {
        test_fill(groups->out[i], messages[i].bytes, messages[i].pattern);
        soak_must(run,
                  coh_send_start(entry->team, messages[i].to, messages[i].tag, groups->out[i],
                                 messages[i].bytes, &requests[i]),
                  "send_start");
    }
    for (int tag = 1; tag >= 0; tag--)
        for (int sender = 0; sender < entry->count; sender++) {
            struct message theirs[MESSAGES];
            plan_messages(run, entry, sender, theirs);
            for (int i = 0; i < MESSAGES; i++)
                if (theirs[i].to == mine && theirs[i].tag == tag)
                    take(run, groups, entry, sender, &theirs[i]);
        }
    for (int i = 0; i < MESSAGES; i++)
        soak_must(run, coh_request_wait(&requests[i], NULL), "request_wait");
    run->operations += MESSAGES;
}

static void broadcast(soak_run *run, soak_groups *groups, const struct entry *entry,
                      uint64_t *random)
{
    int root = (int)(test_random(random) % (unsigned)entry->count);
    size_t bytes = test_random(random) % (test_random(random) % 4 ? SHORT : LONG);
    uint64_t pattern = test_random(random);
    if (!entry->team)
        return;
    memset(groups->in, 0, bytes);
    if (coh_team_index(entry->team) == root)
        test_fill(groups->in, bytes, pattern);
    soak_must(run, coh_broadcast(entry->team, COH_U8, groups->in, groups->in, bytes, root),
              "broadcast");
    if (test_differs(groups->in, bytes, pattern) != bytes)
        soak_fail(run, "a broadcast of %zu bytes brought others", bytes);
}

/* ---- the lock ---- */

static bool counts_in(const soak_run *run, int rank)
{
    uint64_t random = soak_stream(run, "lock", rank);
    return test_random(&random) % 4 == 0;
}

/* Rank 0 keeps a count that only the lock protects. */
static void count_locked(soak_run *run)
{
    uint64_t count;
    if (counts_in(run, run->rank)) {
        soak_must(run, coh_lock_set(run->world, run->lock), "lock_set");
        soak_must(run, coh_get(run->world, &count, &run->heap->counted, sizeof count, 0), "get");
        count++;
        soak_must(run, coh_put(run->world, &run->heap->counted, &count, sizeof count, 0), "put");
        soak_must(run, coh_lock_clear(run->world, run->lock), "lock_clear");
    }
    for (int rank = 0; rank < run->size; rank++)
        run->model[0].counted += counts_in(run, rank);
}

void soak_groups_phase(soak_run *run, soak_groups *groups)
{
    uint64_t random = soak_stream(run, "groups", -1);
    if (run->heap)
        count_locked(run);
    change_teams(run, groups, &random);
    meet(run, &groups->entries[test_random(&random) % TEAMS], &random);
    const struct entry *where = &groups->entries[test_random(&random) % TEAMS];
    if (!where->alive)
        where = &groups->world;
    if (test_random(&random) % 2 == 0 && where->team)
        exchange(run, groups, where);
    if (test_random(&random) % 2 == 0)
        broadcast(run, groups, where, &random);
    soak_collectives_phase(run, groups->collectives, where->team, where->count);
}
