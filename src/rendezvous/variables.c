#include "rendezvous/variables.h"

#include "base/config.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_BYTES = 320, SHOWN = 48 /* characters of a value */ };

const char *cohi_variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

long cohi_variable_number(const char *name)
{
    const char *value = cohi_variable(name);
    size_t digits = value ? strspn(value, "0123456789") : 0;
    return digits > 0 && digits < 10 && !value[digits] ? strtol(value, NULL, 10) : -1;
}

coh_status cohi_variable_count(const char *name, uint64_t least, uint64_t most, int *value)
{
    uint64_t count = 0;
    const char *text = cohi_variable(name);
    coh_status status = cohi_parse_count(name, text ? text : "", least, most, &count);
    *value = (int)count;
    return status;
}

/* Adds to a list; cut where it is full. */
static void add(char *list, const char *name, const char *value)
{
    size_t used = strlen(list);
    if (used < LIST_BYTES)
        snprintf(list + used, LIST_BYTES - used, "%s%s%s%.*s", used ? ", " : "", name,
                 value ? "=" : "", SHOWN, value ? value : "");
}

struct lists {
    char set[LIST_BYTES], missing[LIST_BYTES];
    int missing_count;
};

static struct lists list_all(const cohi_variables *variables)
{
    struct lists lists = {.missing_count = 0};
    for (const char *const *name = variables->names; *name; name++) {
        const char *value = cohi_variable(*name);
        add(value ? lists.set : lists.missing, *name, value);
        lists.missing_count += value == NULL;
    }
    return lists;
}

void cohi_variables_tell(const cohi_variables *variables, char *text, size_t room)
{
    struct lists lists = list_all(variables);
    if (*lists.set)
        snprintf(text, room, "%s", lists.set);
    else
        snprintf(text, room, "%s: not set", lists.missing);
}

coh_status cohi_variables_refuse(const cohi_variables *variables, long ranks, const char *why)
{
    struct lists lists = list_all(variables);
    char count[32] = "";
    if (ranks > 1)
        snprintf(count, sizeof count, " -n %ld", ranks);
    return cohi_fail(
        COH_NOT_AVAILABLE,
        "coh_init: %s started this process with others (%s), and their job cannot be "
        "joined: %s. Each would be a world of one: put that right, start the program by "
        "cohort run%s, or set fall_back in coh_options if a world of one is meant",
        variables->launcher, lists.set, why, count);
}

coh_status cohi_variables_check(const cohi_variables *variables)
{
    struct lists lists = list_all(variables);
    char why[LIST_BYTES + 64];
    if (lists.missing_count == 0)
        return COH_OK;
    snprintf(why, sizeof why, "%s %s not set", lists.missing,
             lists.missing_count == 1 ? "is" : "are");
    return cohi_variables_refuse(variables, 0, why);
}
