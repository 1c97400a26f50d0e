#include "run/fold.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* How long after the first line that was left out the others may come. */
#define GATHER_NS (300 * COHI_NS_PER_MS)

void cohi_fold_open(cohi_fold *fold)
{
    fold->count = 0;
    fold->tell_at_ns = UINT64_MAX;
}

/* What the library's log says after the rank that says it, or NULL. */
static const char *said_by(int rank, const char *line, size_t length, size_t *said)
{
    char prefix[48];
    size_t skip = (size_t)snprintf(prefix, sizeof prefix, "cohort: error: rank %d: ", rank);
    if (length <= skip + 1 || memcmp(line, prefix, skip) != 0 || line[length - 1] != '\n')
        return NULL;
    *said = length - skip - 1;
    return line + skip;
}

static cohi_folded *find(cohi_fold *fold, const char *text, size_t length)
{
    for (int i = 0; i < fold->count; i++) {
        cohi_folded *line = &fold->lines[i];
        if (strlen(line->text) == length && memcmp(line->text, text, length) == 0)
            return line;
    }
    return NULL;
}

/* The oldest that is not waited for makes room. */
static void remember(cohi_fold *fold, const char *text, size_t length)
{
    if (fold->count == COHI_FOLD_LINES && fold->lines[0].count > 0)
        return;
    if (fold->count == COHI_FOLD_LINES)
        memmove(fold->lines, fold->lines + 1, (size_t)--fold->count * sizeof *fold->lines);
    cohi_folded *line = &fold->lines[fold->count++];
    *line = (cohi_folded){.count = 0};
    memcpy(line->text, text, length);
}

int cohi_fold_takes(cohi_fold *fold, int rank, const char *line, size_t length, uint64_t now)
{
    size_t said;
    const char *text = said_by(rank, line, length, &said);
    if (!text || said >= COHI_FOLD_BYTES)
        return 0;
    cohi_folded *known = find(fold, text, said);
    if (!known) {
        remember(fold, text, said);
        return 0;
    }
    cohi_ranks_add(&known->ranks, rank);
    known->count++;
    if (fold->tell_at_ns == UINT64_MAX)
        fold->tell_at_ns = now + GATHER_NS;
    return 1;
}

int cohi_fold_tell(cohi_fold *fold, char *text, size_t room)
{
    for (int i = 0; i < fold->count; i++) {
        cohi_folded *line = &fold->lines[i];
        if (line->count == 0)
            continue;
        char ranks[160];
        cohi_ranks_text(&line->ranks, COHI_RANKS_MAX, ranks, sizeof ranks);
        snprintf(text, room, "cohort: error: %s: %s%s\n", ranks,
                 line->count > 1 ? "the same, " : "", line->text);
        line->ranks = (cohi_ranks){{0}};
        line->count = 0;
        return 1;
    }
    fold->tell_at_ns = UINT64_MAX;
    return 0;
}

/* ---- ranks as text ---- */

/* The last of those that follow `first` without a gap. */
static int end_of_run(const cohi_ranks *ranks, int first, int size)
{
    int last = first;
    while (last + 1 < size && cohi_ranks_has(ranks, last + 1))
        last++;
    return last;
}

static int next_of(const cohi_ranks *ranks, int from, int size)
{
    while (from < size && !cohi_ranks_has(ranks, from))
        from++;
    return from;
}

void cohi_ranks_text(const cohi_ranks *ranks, int size, char *text, size_t room)
{
    int first = next_of(ranks, 0, size), last;
    if (first == size) {
        snprintf(text, room, "no rank");
        return;
    }
    last = end_of_run(ranks, first, size);
    int more = next_of(ranks, last + 1, size);
    size_t used = (size_t)snprintf(text, room, last > first || more < size ? "ranks " : "rank ");
    const char *before = "";
    while (first < size && used < room) {
        last = end_of_run(ranks, first, size);
        more = next_of(ranks, last + 1, size);
        used += (size_t)snprintf(text + used, room - used, last > first ? "%s%d-%d" : "%s%d",
                                 before, first, last);
        first = more;
        if (first < size)
            before =
                next_of(ranks, end_of_run(ranks, first, size) + 1, size) < size ? ", " : " and ";
    }
}
