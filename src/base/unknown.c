#include "base/unknown.h"

#include "base/config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LONGEST_NAME = 63, /* longer names are not typing errors */
    FARTHEST = 3       /* edits; a name that needs more is not a misspelt one */
};

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static size_t least(size_t a, size_t b, size_t c)
{
    size_t less = a < b ? a : b;
    return less < c ? less : c;
}

/* How many characters must be put in, taken out or replaced to make one name of the other. `row`
 * holds the distances of what was read of `a` to each beginning of `b`. */
static size_t edits(const char *a, const char *b)
{
    size_t row[LONGEST_NAME + 1], length = strlen(b);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

/* The knob of the fewest edits, which is `name` itself where that is one; NULL where all are far. */
static const char *nearest_knob(const char *name)
{
    const char *nearest = NULL;
    const cohi_knob *knob;
    size_t fewest = FARTHEST + 1;
    for (size_t i = 0; (knob = cohi_knob_at(i)); i++) {
        size_t count = edits(knob->variable, name);
        if (count < fewest) {
            fewest = count;
            nearest = knob->variable;
        }
    }
    return nearest;
}

/* Copies the name of an entry "NAME=VALUE" that claims to be a knob. */
static bool take_name(const char *entry, char *name)
{
    size_t length = strcspn(entry, "=");
    if (!begins(entry, "COHORT_") || begins(entry, "COHORT_TEST_") || length > LONGEST_NAME)
        return false;
    memcpy(name, entry, length);
    name[length] = '\0';
    return true;
}

int cohi_unknown_next(size_t *at, char *text, size_t bytes)
{
    char name[LONGEST_NAME + 1];
    while (environ && environ[*at]) {
        if (!take_name(environ[(*at)++], name))
            continue;
        const char *nearest = nearest_knob(name);
        if (nearest && strcmp(nearest, name) == 0)
            continue;
        snprintf(text, bytes, "%s is set, but nothing reads it; %s%s", name,
                 nearest ? "did you mean " : "cohort info lists what there is",
                 nearest ? nearest : "");
        return 1;
    }
    return 0;
}
