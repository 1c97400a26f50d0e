#include "base/config.h"

#include "base/clock.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const cohi_knob knobs[] = {
#define ROW(field, type, variable, default_text, help) {type, variable, default_text, help},
    COHI_KNOB_TABLE(ROW)
#undef ROW
};

enum { KNOBS = sizeof knobs / sizeof *knobs };

const cohi_knob *cohi_knob_at(size_t index)
{
    return index < KNOBS ? &knobs[index] : NULL;
}

/* A unit's suffix and what it multiplies by. */
struct unit {
    const char *suffix;
    double factor;
};

static const struct unit size_units[] = {
    {"", 1},        {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 0x1p10},
    {"M", 0x1p20},  {"MiB", 0x1p20}, {"MB", 0x1p20},  {"G", 0x1p30},   {"GiB", 0x1p30},
    {"GB", 0x1p30}, {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 0x1p40},  {NULL, 0},
};

static const struct unit time_units[] = {
    {"", 1e9},   {"s", 1e9},    {"ms", 1e6},   {"us", 1e3},
    {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}, {NULL, 0},
};

/* Digits, perhaps a point and digits. By hand, since strtod asks the locale what a point looks
 * like. */
static double parse_decimal(const char *text, const char **end)
{
    double number = 0, place = 1;
    for (; isdigit((unsigned char)*text); text++)
        number = number * 10 + (*text - '0');
    if (*text == '.' && isdigit((unsigned char)text[1]))
        for (text++; isdigit((unsigned char)*text); text++)
            number += (*text - '0') * (place /= 10);
    *end = text;
    return number;
}

static int parse_scaled(const char *text, const struct unit *units, double most, uint64_t *value)
{
    const char *suffix;
    if (!isdigit((unsigned char)*text))
        return 0;
    double number = parse_decimal(text, &suffix);
    for (; units->suffix; units++) {
        if (strcasecmp(suffix, units->suffix) != 0)
            continue;
        double scaled = number * units->factor;
        if (!(scaled <= most))
            return 0;
        *value = (uint64_t)(scaled + 0.5);
        return 1;
    }
    return 0;
}

coh_status cohi_parse_size(const char *what, const char *text, uint64_t *bytes)
{
    if (strcasecmp(text, "auto") == 0) {
        *bytes = 0;
        return COH_OK;
    }
    if (parse_scaled(text, size_units, 0x1p47, bytes) && *bytes > 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "%s: '%s' is not a size; give 1 byte to 128T, such as 64K, 512M or 2G, "
                     "or auto",
                     what, text);
}

coh_status cohi_parse_seconds(const char *what, const char *text, uint64_t *nanoseconds)
{
    if (strcasecmp(text, "off") == 0) {
        *nanoseconds = 0;
        return COH_OK;
    }
    if (parse_scaled(text, time_units, 1e18, nanoseconds) && *nanoseconds > 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "%s: '%s' is not a time; give seconds or a unit, such as 30, 0.5, 500ms or "
                     "2m, or off",
                     what, text);
}

coh_status cohi_parse_count(const char *what, const char *text, uint64_t least, uint64_t most,
                            uint64_t *count)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (isdigit((unsigned char)*text) && *end == '\0' && errno == 0 && number >= least
        && number <= most) {
        *count = number;
        return COH_OK;
    }
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not a whole number from %llu to %llu", what,
                     text, (unsigned long long)least, (unsigned long long)most);
}

static coh_status parse_word(const char *what, const char *text, const char *const *words,
                             size_t count, const char *expected, uint64_t *index)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *index = i;
            return COH_OK;
        }
    }
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not one of %s", what, text, expected);
}

/* Off and on in turn. */
#define FLAG_WORDS "0", "1", "no", "yes", "off", "on", "false", "true"
enum { FLAG_WORD_COUNT = 8 };

static coh_status parse_flag(const char *what, const char *text, uint64_t *flag)
{
    static const char *const words[] = {FLAG_WORDS};
    uint64_t index = 0;
    coh_status status =
        parse_word(what, text, words, FLAG_WORD_COUNT, "on, off, yes, no, 1, 0", &index);
    if (status == COH_OK)
        *flag = index & 1;
    return status;
}

static coh_status parse_check(const char *what, const char *text, uint64_t *level)
{
    static const char *const words[] = {FLAG_WORDS, "order"};
    uint64_t index = 0;
    coh_status status =
        parse_word(what, text, words, FLAG_WORD_COUNT + 1, "on, off, yes, no, 1, 0, order", &index);
    if (status == COH_OK)
        *level = index == FLAG_WORD_COUNT ? COHI_CHECK_ORDER : index & 1;
    return status;
}

static coh_status parse_level(const char *what, const char *text, uint64_t *level)
{
    static const char *const words[] = {"off", "error", "warn", "info", "debug"};
    return parse_word(what, text, words, sizeof words / sizeof *words,
                      "off, error, warn, info, debug", level);
}

static coh_status parse_net(const char *what, const char *text, uint64_t *net)
{
    static const char *const words[] = {"seal", "clear"};
    return parse_word(what, text, words, sizeof words / sizeof *words, "seal, clear", net);
}

static coh_status parse_knob(const cohi_knob *knob, void *field)
{
    const char *text = getenv(knob->variable);
    if (!text || !*text)
        text = knob->default_text;
    switch (knob->type) {
    case COHI_KNOB_TEXT:
    case COHI_KNOB_SECRET:
        *(const char **)field = text;
        return COH_OK;
    case COHI_KNOB_SIZE:
        return cohi_parse_size(knob->variable, text, field);
    case COHI_KNOB_SECONDS:
        return cohi_parse_seconds(knob->variable, text, field);
    case COHI_KNOB_FLAG:
        return parse_flag(knob->variable, text, field);
    case COHI_KNOB_LEVEL:
        return parse_level(knob->variable, text, field);
    case COHI_KNOB_CHECK:
        return parse_check(knob->variable, text, field);
    case COHI_KNOB_NET:
        return parse_net(knob->variable, text, field);
    }
    return COH_OK;
}

coh_status cohi_config_load(cohi_config *config)
{
    void *const fields[KNOBS] = {
#define FIELD(field, type, variable, default_text, help) &config->field,
        COHI_KNOB_TABLE(FIELD)
#undef FIELD
    };
    for (size_t i = 0; i < KNOBS; i++) {
        coh_status status = parse_knob(&knobs[i], fields[i]);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}
