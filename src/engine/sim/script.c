#include "engine/sim/script.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/board.h"

#include <stdio.h>
#include <string.h>

enum {
    WORD_BYTES = 96,
    DELAY_STEPS = 16, /* enough that eight ranks' barriers overlap */
    SPLIT_PIECES = 4,
    PATIENCE_MS = 20
};

#define ACCEPTED                                                                    \
    "seed=N, delay=STEPS, split=PIECES, order=keep|shuffle, hosts=K, patience=MS, " \
    "commit=whole|parts, kill=RANK@STEP, stall=RANK@STEP[:SECONDS], fail=RANK@STEP"

/* One word of the script and where it stands, for its error. */
struct word {
    char text[WORD_BYTES];
    char what[WORD_BYTES + 64]; /* "COHORT_SIM: word 2, 'kill=9@1'" */
    char *value;                /* behind the '=' */
    int size;                   /* of the world */
};

static coh_status parse_seed(struct word *word, cohi_script *script)
{
    script->seeded = 1;
    return cohi_parse_count(word->what, word->value, 0, UINT64_MAX, &script->seed);
}

static coh_status parse_bounded(struct word *word, uint64_t least, uint64_t most, unsigned *value)
{
    uint64_t count = 0;
    coh_status status = cohi_parse_count(word->what, word->value, least, most, &count);
    if (status == COH_OK)
        *value = (unsigned)count;
    return status;
}

static coh_status parse_delay(struct word *word, cohi_script *script)
{
    return parse_bounded(word, 0, COHI_SCRIPT_DELAY_MOST, &script->delay);
}

static coh_status parse_split(struct word *word, cohi_script *script)
{
    return parse_bounded(word, 1, COHI_SCRIPT_SPLIT_MOST, &script->split);
}

/* As many as there are ranks at most, so that each has one. */
static coh_status parse_hosts(struct word *word, cohi_script *script)
{
    unsigned hosts = 0;
    coh_status status = parse_bounded(word, 1, COHI_WORLD_MAX, &hosts);
    script->hosts = (int)hosts < word->size ? (int)hosts : word->size;
    return status;
}

static coh_status parse_patience(struct word *word, cohi_script *script)
{
    unsigned milliseconds;
    coh_status status = parse_bounded(word, 1, COHI_SCRIPT_PATIENCE_MOST, &milliseconds);
    if (status == COH_OK)
        script->patience_ns = milliseconds * COHI_NS_PER_MS;
    return status;
}

static coh_status parse_order(struct word *word, cohi_script *script)
{
    script->keep_order = strcmp(word->value, "keep") == 0;
    if (script->keep_order || strcmp(word->value, "shuffle") == 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not keep or shuffle", word->what,
                     word->value);
}

static coh_status parse_commit(struct word *word, cohi_script *script)
{
    script->commits_whole = strcmp(word->value, "whole") == 0;
    if (script->commits_whole || strcmp(word->value, "parts") == 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not whole or parts", word->what,
                     word->value);
}

/* RANK@STEP; cuts the '@' out of the word. */
static coh_status parse_strike(struct word *word, cohi_script *script, cohi_strike *strike)
{
    if (script->strike_count == COHI_SCRIPT_STRIKES)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: more than %d kills, stalls and failures",
                         word->what, COHI_SCRIPT_STRIKES);
    char *at = strchr(word->value, '@');
    if (!at)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' has no '@'; it is RANK@STEP, such as 1@20",
                         word->what, word->value);
    *at = '\0';
    uint64_t rank = 0;
    coh_status status =
        cohi_parse_count(word->what, word->value, 0, (uint64_t)word->size - 1, &rank);
    if (status == COH_OK)
        status = cohi_parse_count(word->what, at + 1, 1, UINT64_MAX, &strike->step);
    strike->rank = (int)rank;
    return status;
}

static coh_status parse_kill(struct word *word, cohi_script *script)
{
    cohi_strike strike = {.blow = COHI_BLOW_KILL};
    coh_status status = parse_strike(word, script, &strike);
    if (status == COH_OK)
        script->strikes[script->strike_count++] = strike;
    return status;
}

static coh_status parse_fail(struct word *word, cohi_script *script)
{
    cohi_strike strike = {.blow = COHI_BLOW_FAIL};
    coh_status status = parse_strike(word, script, &strike);
    if (status == COH_OK)
        script->strikes[script->strike_count++] = strike;
    return status;
}

static coh_status parse_stall(struct word *word, cohi_script *script)
{
    cohi_strike strike = {.blow = COHI_BLOW_STALL};
    char *colon = strchr(word->value, ':');
    if (colon) {
        *colon = '\0';
        coh_status status = cohi_parse_seconds(word->what, colon + 1, &strike.for_ns);
        if (status != COH_OK)
            return status;
    }
    coh_status status = parse_strike(word, script, &strike);
    if (status == COH_OK)
        script->strikes[script->strike_count++] = strike;
    return status;
}

static const struct {
    const char *name;
    coh_status (*parse)(struct word *word, cohi_script *script);
} words[] = {
    {"seed", parse_seed},     {"delay", parse_delay},       {"split", parse_split},
    {"order", parse_order},   {"patience", parse_patience}, {"kill", parse_kill},
    {"stall", parse_stall},   {"hosts", parse_hosts},       {"fail", parse_fail},
    {"commit", parse_commit},
};

static coh_status parse_word(struct word *word, cohi_script *script)
{
    word->value = strchr(word->text, '=');
    size_t length = word->value ? (size_t)(word->value - word->text) : 0;
    for (size_t i = 0; word->value && i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) != length || strncmp(words[i].name, word->text, length) != 0)
            continue;
        word->value++;
        return words[i].parse(word, script);
    }
    return cohi_fail(COH_INVALID_ARGUMENT, "%s is not a word of the simulator; it takes %s",
                     word->what, ACCEPTED);
}

static coh_status parse_words(const char *text, int size, cohi_script *script)
{
    for (int position = 1; *text; position++) {
        size_t length = strcspn(text, ",");
        struct word word = {.size = size};
        if (length >= sizeof word.text)
            return cohi_fail(COH_INVALID_ARGUMENT,
                             "COHORT_SIM: word %d has %zu characters, more than %d; it takes %s",
                             position, length, WORD_BYTES - 1, ACCEPTED);
        memcpy(word.text, text, length);
        snprintf(word.what, sizeof word.what, "COHORT_SIM: word %d, '%s'", position, word.text);
        coh_status status = parse_word(&word, script);
        if (status != COH_OK)
            return status;
        text += length;
        if (*text == ',' && *++text == '\0')
            return cohi_fail(COH_INVALID_ARGUMENT, "COHORT_SIM: nothing behind the last comma");
    }
    return COH_OK;
}

coh_status cohi_script_parse(const char *text, int size, cohi_script *script)
{
    cohi_script made = {
        .delay = DELAY_STEPS, .split = SPLIT_PIECES, .patience_ns = PATIENCE_MS * COHI_NS_PER_MS};
    coh_status status = parse_words(text, size, &made);
    if (status != COH_OK)
        return status;
    if (!made.seeded) {
        uint32_t drawn; /* short enough to be typed */
        int error = cohi_os_random(&drawn, sizeof drawn);
        if (error)
            return cohi_fail_os(error, "the simulator cannot draw a seed; give COHORT_SIM=seed=N");
        made.seed = drawn;
    }
    *script = made;
    return COH_OK;
}
