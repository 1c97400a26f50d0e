#include "coll/tuning.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(cohi_tuning) <= COHI_TUNING_BYTES, "the tuning fits the card");

/* See model.h. */
static cohi_model steady_model(const cohi_profile *profile)
{
    cohi_profile steady = *profile;
    for (unsigned row = 0; row < COHI_ROWS; row++)
        if (cohi_row_at(row)->way == COHI_ROW_CALIBRATED)
            steady.value[row] = profile->described[row];
    return cohi_model_of(&steady);
}

/* ---- forced algorithms ---- */

static const char *const kind_names[] = {
#define ROW(constant, name, op, reduces, rooted) [constant] = #name,
    COHI_KIND_TABLE(ROW)
#undef ROW
};

const char *cohi_kind_name(cohi_kind kind)
{
    return kind_names[kind];
}

static void list_names(cohi_kind kind, char *text, size_t room)
{
    const cohi_algorithm *row;
    size_t used = (size_t)snprintf(text, room, "auto");
    for (unsigned i = 0; (row = cohi_algorithm_at(i)) && used < room; i++)
        if (row->kind == kind)
            used += (size_t)snprintf(text + used, room - used, ", %s", row->name);
}

static coh_status find_forced(cohi_kind kind, const char *name, uint16_t *forced)
{
    const cohi_algorithm *row;
    *forced = 0;
    if (strcmp(name, "auto") == 0)
        return COH_OK;
    for (unsigned i = 0; (row = cohi_algorithm_at(i)); i++)
        if (row->kind == kind && strcmp(row->name, name) == 0) {
            *forced = (uint16_t)(i + 1);
            return COH_OK;
        }
    char names[256], knob[32];
    size_t length = strlen(kind_names[kind]);
    for (size_t i = 0; i <= length; i++)
        knob[i] =
            (char)(kind_names[kind][i] >= 'a' ? kind_names[kind][i] - 32 : kind_names[kind][i]);
    list_names(kind, names, sizeof names);
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "COHORT_%s is %s, which is no algorithm of %s; there are %s", knob, name,
                     kind_names[kind], names);
}

coh_status cohi_tuning_load(const cohi_config *config, const cohi_profile *profile,
                            unsigned char bytes[COHI_TUNING_BYTES])
{
    const char *const names[COHI_KINDS] = {
#define ROW(constant, name, op, reduces, rooted) [constant] = config->name,
        COHI_KIND_TABLE(ROW)
#undef ROW
    };
    cohi_tuning tuning = {.model = steady_model(profile),
                          .deterministic = (uint16_t)config->deterministic};
    coh_status status = COH_OK;
    for (cohi_kind kind = 0; kind < COHI_KINDS && status == COH_OK; kind++)
        status = find_forced(kind, names[kind], &tuning.forced[kind]);
    memcpy(bytes, &tuning, sizeof tuning);
    return status;
}
