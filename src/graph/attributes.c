#include "graph/attributes.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool parse_integer(const char *text, const char **end, int64_t *value)
{
    char *after;
    errno = 0;
    *value = strtoll(text, &after, 10);
    *end = after;
    return after != text && errno == 0;
}

static bool parse_list(const char *text, coh_attribute *value)
{
    for (value->count = 0; value->count < COH_DIMS_MAX;) {
        if (!parse_integer(text, &text, &value->list[value->count++]))
            return false;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
    return false;
}

static bool parse_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static bool parse_value(const char *text, coh_attribute *value)
{
    const char *end;
    switch (value->kind) {
    case COH_ATTRIBUTE_INTEGER:
        return parse_integer(text, &end, &value->integer) && *end == '\0';
    case COH_ATTRIBUTE_REAL:
        return parse_real(text, &value->real);
    case COH_ATTRIBUTE_TEXT:
        value->text = text;
        return *text != '\0';
    case COH_ATTRIBUTE_LIST:
        return parse_list(text, value);
    }
    return false;
}

static coh_status set_value(const coh_attribute_rule *rule, const char *text, coh_attribute *value)
{
    static const char *const kinds[] = {"an integer", "a number", "a text", "a list of integers"};
    value->kind = rule->kind;
    if (!parse_value(text, value))
        return coh_fail(COH_INVALID_ARGUMENT, "%s=%.64s: it takes %s", rule->name, text,
                        kinds[rule->kind]);
    return COH_OK;
}

static int find_rule(const coh_op *op, const char *name)
{
    int index = 0;
    while (index < op->rule_count && strcmp(op->rules[index].name, name) != 0)
        index++;
    return index;
}

/* The next word, cut off, with its name and value apart; NULL at the end. */
static char *cut_word(char **text, char **value)
{
    char *word = *text;
    if (*word == '\0')
        return NULL;
    *text = word + strcspn(word, " ");
    if (**text)
        *(*text)++ = '\0';
    *value = strchr(word, '=');
    if (*value)
        *(*value)++ = '\0';
    return word;
}

/* Values that were set have a kind; others get their fallback. */
static coh_status fill_rest(const coh_op *op, const bool *given, coh_attribute *values)
{
    coh_status status = COH_OK;
    for (int i = 0; i < op->rule_count && status == COH_OK; i++) {
        const coh_attribute_rule *rule = &op->rules[i];
        if (!given[i])
            status = rule->fallback ? set_value(rule, rule->fallback, &values[i])
                                    : coh_fail(COH_INVALID_ARGUMENT, "%s= is missing", rule->name);
    }
    return status;
}

coh_status cohi_attributes_parse(const coh_op *op, char *text, coh_attribute *values)
{
    bool *given = calloc((size_t)op->rule_count + 1, sizeof *given);
    if (!given)
        return coh_fail(COH_NO_MEMORY, "no memory for %d attributes", op->rule_count);
    coh_status status = COH_OK;
    for (char *value, *word; status == COH_OK && (word = cut_word(&text, &value)) != NULL;) {
        int index = find_rule(op, word);
        if (index == op->rule_count)
            status = coh_fail(COH_INVALID_ARGUMENT, "%s has no attribute '%.64s'", op->name, word);
        else if (given[index] || !value)
            status = coh_fail(COH_INVALID_ARGUMENT, "%s= is given twice, or has no value", word);
        else
            status = set_value(&op->rules[index], value, &values[index]);
        if (status == COH_OK)
            given[index] = true;
    }
    if (status == COH_OK)
        status = fill_rest(op, given, values);
    free(given);
    return status;
}
