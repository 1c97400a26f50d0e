/* Making teams: docs/semantics.md S33 to S35. */
#include "conform.h"

#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum { MEMBERS = 16, TEAMS = 256 };

/* Who should be in a team, in order, as ranks of the world. */
struct roster {
    int ranks[MEMBERS];
    int count;
};

static int place_in(const struct roster *roster, int rank)
{
    for (int i = 0; i < roster->count; i++)
        if (roster->ranks[i] == rank)
            return i;
    return -1;
}

/* Checks all that can be asked of a team. It is NULL exactly where this rank is not in it. */
static bool check_team(test_rank *self, const coh_team *team, const struct roster *roster)
{
    const coh_team *world = coh_team_world(self->world);
    int index = place_in(roster, self->rank);
    if (index < 0)
        return CHECK(team == NULL);
    bool good = CHECK(team != NULL) && CHECK_EQ(coh_team_size(team), roster->count)
                && CHECK_EQ(coh_team_index(team), index);
    for (int i = 0; i < roster->count && good; i++)
        good = CHECK_EQ(coh_team_rank(team, i), roster->ranks[i])
               && CHECK_EQ(coh_team_translate(team, i, world), roster->ranks[i]);
    for (int rank = 0; rank < self->size && good; rank++)
        good = CHECK_EQ(coh_team_translate(world, rank, team), place_in(roster, rank));
    return good && CHECK_EQ(coh_team_rank(team, roster->count), -1)
           && CHECK_EQ(coh_team_rank(team, -1), -1)
           && CHECK_EQ(coh_team_translate(team, roster->count, world), -1)
           && CHECK_EQ(coh_team_translate(team, INT_MIN, world), -1);
}

/* Checks it, meets in it, and destroys it. */
static bool use_team(test_rank *self, coh_team *team, const struct roster *roster)
{
    if (!check_team(self, team, roster))
        return false;
    return !team || (CHECK_OK(coh_team_sync(team)) && CHECK_OK(coh_team_destroy(team)));
}

/* A place that a refused call must not write to. */
static char nowhere;

static coh_team *marked(void)
{
    return (coh_team *)(void *)&nowhere;
}

/* ---- by stride ---- */

static bool stride_fits(int start, int stride, int size, int parent)
{
    int64_t last = start + (int64_t)stride * ((int64_t)size - 1);
    return size >= 1 && size <= parent && (stride != 0 || size == 1) && start >= 0 && start < parent
           && last >= 0 && last < parent;
}

/* What the call gives is known to every rank alike, since every rank checks it against the
 * same rule. */
static bool split_by_stride(test_rank *self, int start, int stride, int size)
{
    coh_team *team = marked();
    struct roster roster = {.count = 0};
    coh_status status =
        coh_team_split_strided(coh_team_world(self->world), start, stride, size, &team);
    bool good;
    if (!stride_fits(start, stride, size, self->size)) {
        good = CHECK_REFUSED(status, COH_INVALID_ARGUMENT, "coh_team_split_strided")
               && CHECK(team == marked());
    } else {
        for (; roster.count < size; roster.count++)
            roster.ranks[roster.count] = start + stride * roster.count;
        good = CHECK_OK(status) && use_team(self, team, &roster);
    }
    if (!good)
        test_fail("that was start %d, stride %d, size %d of %d", start, stride, size, self->size);
    return good;
}

static void strides_of_all_kinds(test_rank *self)
{
    int n = self->size, starts = n + 2, strides = 2 * n + 1, sizes = n + 2;
    int all = starts * strides * sizes, wanted = test_scaled(self, 500);
    int step = wanted < all ? all / wanted : 1;
    for (int i = (int)(self->seed % (unsigned)step); i < all; i += step)
        if (!split_by_stride(self, i % starts - 1, i / starts % strides - n, i / starts / strides))
            return;
}

static void strides_that_overflow(test_rank *self)
{
    static const int extremes[][3] = {
        {INT_MAX, 1, 1},
        {INT_MIN, 1, 1},
        {0, INT_MAX, 2},
        {0, INT_MIN, 2},
        {0, 1, INT_MAX},
        {0, 1, INT_MIN},
        {1, INT_MAX, INT_MAX},
        {0, 0, 0},
        {INT_MAX, INT_MIN, 2},
        {0, 0, -1},
        {-1, 1, 1},
        {0, 0, 2},
    };
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++)
        if (!split_by_stride(self, extremes[i][0], extremes[i][1], extremes[i][2]))
            return;
    CHECK(split_by_stride(self, self->size - 1, INT_MAX, 1)); /* one member has no next */
    CHECK(split_by_stride(self, 0, 0, 1));
    CHECK_STATUS(coh_team_split_strided(coh_team_world(self->world), 0, 1, 1, NULL),
                 COH_INVALID_ARGUMENT);
    CHECK_OK(coh_barrier(self->world));
}

/* ---- by colour and key ---- */

struct choice {
    int color, key;
};

/* Members of `parent` with one colour, by key, then by index in the parent. */
static struct roster pick_color(const struct roster *parent, const struct choice *choices,
                                int color)
{
    struct roster roster = {.count = 0};
    int keys[MEMBERS];
    for (int i = 0; i < parent->count; i++) {
        if (choices[i].color != color)
            continue;
        int at = roster.count++;
        for (; at > 0 && keys[at - 1] > choices[i].key; at--) {
            keys[at] = keys[at - 1];
            roster.ranks[at] = roster.ranks[at - 1];
        }
        keys[at] = choices[i].key;
        roster.ranks[at] = parent->ranks[i];
    }
    return roster;
}

static bool split_by_color(test_rank *self, coh_team *parent, const struct roster *members,
                           uint64_t *random)
{
    static const int colors[] = {0, 1, 2, -1, INT_MAX, 1, INT_MIN, 7};
    static const int keys[] = {0, 0, 5, -5, INT_MAX, INT_MIN, 1, 0};
    struct choice choices[MEMBERS];
    for (int i = 0; i < members->count; i++) {
        choices[i].color = colors[test_random(random) % 8];
        choices[i].key = keys[test_random(random) % 8];
    }
    if (!parent)
        return true;
    struct choice mine = choices[coh_team_index(parent)];
    struct roster roster = pick_color(members, choices, mine.color);
    if (mine.color < 0)
        roster.count = 0;
    coh_team *team = marked();
    return CHECK_OK(coh_team_split_color(parent, mine.color, mine.key, &team))
           && use_team(self, team, &roster);
}

static struct roster everyone(const test_rank *self, bool reversed)
{
    struct roster roster = {.count = self->size};
    for (int i = 0; i < self->size; i++)
        roster.ranks[i] = reversed ? self->size - 1 - i : i;
    return roster;
}

static void colors_and_keys(test_rank *self)
{
    struct roster straight = everyone(self, false), turned = everyone(self, true);
    coh_team *world = coh_team_world(self->world), *reversed;
    uint64_t random = self->seed + 1; /* the same on all ranks */
    if (!CHECK_OK(coh_team_split_strided(world, self->size - 1, -1, self->size, &reversed))
        || !check_team(self, reversed, &turned))
        return;
    int rounds = test_scaled(self, 100);
    for (int i = 0; i < rounds; i++)
        if (!split_by_color(self, world, &straight, &random)
            || !split_by_color(self, reversed, &turned, &random))
            return;
    CHECK_OK(coh_team_destroy(reversed));
}

/* ---- in two dimensions ---- */

static bool split_in_rows(test_rank *self, int width)
{
    coh_team *row = marked(), *column = marked();
    struct roster in_row = {.count = 0}, in_column = {.count = 0};
    coh_status status = coh_team_split_2d(coh_team_world(self->world), width, &row, &column);
    if (width < 1)
        return CHECK_REFUSED(status, COH_INVALID_ARGUMENT, "coh_team_split_2d")
               && CHECK(row == marked() && column == marked());
    for (int rank = 0; rank < self->size; rank++) {
        if (rank / width == self->rank / width)
            in_row.ranks[in_row.count++] = rank;
        if (rank % width == self->rank % width)
            in_column.ranks[in_column.count++] = rank;
    }
    return CHECK_OK(status) && check_team(self, column, &in_column) && use_team(self, row, &in_row)
           && use_team(self, column, &in_column);
}

static void two_dimensions(test_rank *self)
{
    for (int width = -1; width <= self->size; width++)
        if (!split_in_rows(self, width))
            test_fail("that was a width of %d of %d", width, self->size);
}

/* ---- from a list ---- */

static bool team_from(test_rank *self, const int *list, int count, bool valid)
{
    coh_team *team = marked();
    struct roster roster = {.count = count};
    coh_status status = coh_team_from_list(coh_team_world(self->world), list, count, &team);
    if (!valid)
        return CHECK_REFUSED(status, COH_INVALID_ARGUMENT, "coh_team_from_list")
               && CHECK(team == marked());
    memcpy(roster.ranks, list, (size_t)count * sizeof *list);
    return CHECK_OK(status) && use_team(self, team, &roster);
}

static void lists_keep_their_order(test_rank *self)
{
    uint64_t random = self->seed + 9; /* the same on all ranks */
    int rounds = test_scaled(self, 100);
    for (int round = 0; round < rounds; round++) {
        struct roster all = everyone(self, false);
        for (int i = self->size - 1; i > 0; i--) {
            int other = (int)(test_random(&random) % (unsigned)(i + 1)), rank = all.ranks[i];
            all.ranks[i] = all.ranks[other];
            all.ranks[other] = rank;
        }
        if (!team_from(self, all.ranks, 1 + (int)(test_random(&random) % (unsigned)self->size),
                       true))
            return;
    }
}

static void bad_lists_refused(test_rank *self)
{
    int n = self->size, list[MEMBERS] = {0};
    CHECK(team_from(self, list, 2, false)); /* 0 twice */
    CHECK(team_from(self, list, 0, false));
    CHECK(team_from(self, list, -3, false));
    CHECK(team_from(self, list, INT_MAX, false));
    CHECK(team_from(self, NULL, 1, false));
    list[0] = n;
    CHECK(team_from(self, list, 1, false));
    list[0] = -1;
    CHECK(team_from(self, list, 1, false));
    for (int i = 0; i < n; i++)
        list[i] = i;
    list[n] = n - 1;
    CHECK(team_from(self, list, n + 1, false));
    CHECK(team_from(self, list, n, true)); /* the parent is as before */
}

/* ---- nested ---- */

/* world, reversed; every second of those; their last two; translated between any two. */
static void teams_of_teams(test_rank *self)
{
    enum { LEVELS = 4 };
    coh_team *teams[LEVELS] = {coh_team_world(self->world)};
    struct roster rosters[LEVELS] = {everyone(self, false)};
    for (int level = 1; level < LEVELS; level++) {
        struct roster *above = &rosters[level - 1], *here = &rosters[level];
        int start = level == 2 ? 0 : above->count - 1, stride = level == 2 ? 2 : -1;
        int size = level == 1 ? above->count : (above->count + 1) / 2;
        for (here->count = 0; here->count < size; here->count++)
            here->ranks[here->count] = above->ranks[start + stride * here->count];
        if (teams[level - 1]
            && !CHECK_OK(
                coh_team_split_strided(teams[level - 1], start, stride, size, &teams[level])))
            return;
        if (!check_team(self, teams[level], here))
            return;
    }
    for (int from = 0; from < LEVELS; from++)
        for (int to = 0; to < LEVELS; to++)
            for (int i = 0; teams[from] && teams[to] && i < rosters[from].count; i++)
                CHECK_EQ(coh_team_translate(teams[from], i, teams[to]),
                         place_in(&rosters[to], rosters[from].ranks[i]));
    for (int level = 1; level < LEVELS; level++) /* the parent goes before the child */
        if (teams[level])
            CHECK_OK(coh_team_destroy(teams[level]));
    CHECK_OK(coh_barrier(self->world));
}

/* ---- predefined, destroyed, and none ---- */

static void predefined_teams(test_rank *self)
{
    coh_team *world = coh_team_world(self->world), *host = coh_team_host(self->world);
    struct roster all = everyone(self, false);
    CHECK(check_team(self, world, &all));
    struct roster here = {.count = 0};
    for (int rank = 0; rank < self->size; rank++)
        if (test_hosts == 0 || test_same_host(self, rank))
            here.ranks[here.count++] = rank;
    CHECK(check_team(self, host, &here));
    CHECK_EQ(coh_team_size(host), coh_local_size(self->world));
    CHECK_EQ(coh_team_index(host), coh_local_rank(self->world));
    CHECK_REFUSED(coh_team_destroy(world), COH_INVALID_ARGUMENT, "coh_team_destroy|predefined");
    CHECK_REFUSED(coh_team_destroy(host), COH_INVALID_ARGUMENT, "coh_team_destroy|predefined");
    CHECK_OK(coh_team_sync(host));
    CHECK_OK(coh_team_barrier(world));
    CHECK(coh_team_world(NULL) == NULL);
    CHECK(coh_team_host(NULL) == NULL);
}

static void refuse_all(coh_team *team, const coh_team *world)
{
    coh_team *made = marked(), *other = marked();
    const coh_status wrong = COH_INVALID_ARGUMENT;
    int list[] = {0};
    CHECK_EQ(coh_team_index(team), -1);
    CHECK_EQ(coh_team_size(team), -1);
    CHECK_EQ(coh_team_rank(team, 0), -1);
    CHECK_EQ(coh_team_translate(team, 0, world), -1);
    CHECK_EQ(coh_team_translate(world, 0, team), -1);
    CHECK_REFUSED(coh_team_sync(team), wrong, "coh_team_sync");
    CHECK_REFUSED(coh_team_barrier(team), wrong, "coh_team_barrier");
    CHECK_REFUSED(coh_team_split_strided(team, 0, 1, 1, &made), wrong, "coh_team_split_strided");
    CHECK_REFUSED(coh_team_split_color(team, 0, 0, &made), wrong, "coh_team_split_color");
    CHECK_REFUSED(coh_team_split_2d(team, 1, &made, &other), wrong, "coh_team_split_2d");
    CHECK_REFUSED(coh_team_from_list(team, list, 1, &made), wrong, "coh_team_from_list");
    CHECK(made == marked() && other == marked());
}

static void destroyed_teams_refused(test_rank *self)
{
    coh_team *world = coh_team_world(self->world), *team;
    if (!CHECK_OK(coh_team_split_strided(world, 0, 1, self->size, &team))
        || !CHECK_OK(coh_team_destroy(team)))
        return;
    refuse_all(team, world);
    CHECK_REFUSED(coh_team_destroy(team), COH_INVALID_ARGUMENT, "coh_team_destroy");
    refuse_all(NULL, world);
    CHECK_OK(coh_team_destroy(NULL));
    CHECK_OK(coh_barrier(self->world));
}

/* ---- how many ---- */

static void numbers_are_reused(test_rank *self)
{
    coh_team *world = coh_team_world(self->world), *kept[4] = {NULL};
    int rounds = test_scaled(self, 600);
    for (int i = 0; i < rounds; i++) {
        struct roster all = everyone(self, i % 3 == 0);
        int start = i % 3 == 0 ? self->size - 1 : 0, stride = i % 3 == 0 ? -1 : 1;
        if (!CHECK_OK(coh_team_destroy(kept[i % 4]))
            || !CHECK_OK(coh_team_split_strided(world, start, stride, self->size, &kept[i % 4]))
            || !check_team(self, kept[i % 4], &all) || !CHECK_OK(coh_team_sync(kept[i % 4])))
            return;
    }
}

/* Makes teams of `size` members from 0 on until it is refused; returns how many. */
static int fill_up(test_rank *self, int size, coh_team **teams)
{
    for (int count = 0; count < TEAMS; count++) {
        teams[count] = NULL;
        coh_status status =
            coh_team_split_strided(coh_team_world(self->world), 0, 1, size, &teams[count]);
        if (status == COH_OK)
            continue;
        CHECK_REFUSED(status, COH_LIMIT, "coh_team_split_strided");
        CHECK(teams[count] == NULL);
        return count;
    }
    test_fail("%d teams at once and no limit", TEAMS);
    return 0;
}

/* All are refused together, and one that is freed is there again. */
static void teams_are_limited(test_rank *self)
{
    _Atomic uint64_t *counts = self->shared;
    coh_team *teams[TEAMS] = {NULL}, *more = NULL;
    int count = fill_up(self, self->size, teams);
    atomic_store(&counts[self->rank], (uint64_t)count);
    if (!CHECK(count > 3) || !CHECK_OK(coh_barrier(self->world)))
        return;
    for (int rank = 0; rank < self->size; rank++)
        CHECK_EQ(atomic_load(&counts[rank]), count);
    for (int i = 0; i < count; i++)
        CHECK_OK(coh_team_sync(teams[i]));
    CHECK_OK(coh_team_destroy(teams[1]));
    CHECK_OK(coh_team_split_strided(coh_team_world(self->world), 0, 1, self->size, &more));
    CHECK_OK(coh_team_sync(more));
    for (int i = 0; i < count; i++)
        if (i != 1)
            CHECK_OK(coh_team_destroy(teams[i]));
    CHECK_OK(coh_team_destroy(more)); /* the next world's teams start from none */
}

/* One member is full: all of the parent are told, and teams without it can still be made. */
static void one_full_member(test_rank *self)
{
    coh_team *teams[TEAMS] = {NULL}, *more = marked();
    coh_team *world = coh_team_world(self->world);
    int count = fill_up(self, 1, teams);
    if (!CHECK(count > 3))
        return;
    CHECK_STATUS(coh_team_split_strided(world, self->size - 1, -1, self->size, &more), COH_LIMIT);
    CHECK(more == marked());
    struct roster rest = {.count = self->size - 1};
    for (int i = 0; i < rest.count; i++)
        rest.ranks[i] = i + 1;
    CHECK_OK(coh_team_split_strided(world, 1, 1, rest.count, &more));
    CHECK(use_team(self, more, &rest));
    CHECK_OK(coh_team_destroy(teams[0]));
    CHECK_OK(coh_team_split_strided(world, 0, 1, self->size, &more));
    CHECK_OK(coh_team_sync(more));
}

const test_case conform_splits[] = {
    CASE(strides_of_all_kinds, "S33 S34", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(strides_that_overflow, "S33", ON_ALL, ANY_SIZE),
    CASE(colors_and_keys, "S34", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(two_dimensions, "S35", ON_ALL, ANY_SIZE),
    CASE(lists_keep_their_order, "S34", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(bad_lists_refused, "S33", ON_ALL, ANY_SIZE),
    CASE(teams_of_teams, "S35", ON_ALL, ANY_SIZE),
    CASE(predefined_teams, "S35", ON_ALL, ANY_SIZE),
    CASE(destroyed_teams_refused, "S35 F17", ON_ALL, ANY_SIZE),
    CASE(numbers_are_reused, "S35", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(teams_are_limited, "S35", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(one_full_member, "S33 S35", ON_ALL, FROM_TWO, .limit_s = 60),
};
CONFORM_COUNT(splits);
