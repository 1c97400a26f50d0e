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

static void list_names(coh_collective_kind kind, char *text, size_t room)
{
    const cohi_algorithm *row;
    size_t used = (size_t)snprintf(text, room, "auto");
    for (unsigned i = 0; (row = cohi_algorithm_at(i)) && used < room; i++)
        if (row->kind == kind)
            used += (size_t)snprintf(text + used, room - used, ", %s", row->name);
}

static coh_status find_forced(coh_collective_kind kind, const char *variable, const char *name,
                              uint16_t *forced)
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
    char names[256];
    list_names(kind, names, sizeof names);
    return cohi_fail(COH_INVALID_ARGUMENT, "%s is %s, which is no algorithm of %s; there are %s",
                     variable, name, coh_collective_name(kind), names);
}

/* Each knob of an algorithm has the name of a collective. */
static coh_collective_kind kind_named(const char *name)
{
    coh_collective_kind kind = COHI_KIND_FIRST;
    while (strcmp(coh_collective_name(kind), name) != 0)
        kind++;
    return kind;
}

coh_status cohi_tuning_load(const cohi_config *config, const cohi_profile *profile,
                            unsigned char bytes[COHI_TUNING_BYTES])
{
    const struct {
        const char *collective, *variable, *algorithm;
    } knobs[] = {
#define ROW(field, type, variable, otherwise, help) {#field, variable, config->field},
        COHI_ALGORITHM_KNOBS(ROW)
#undef ROW
    };
    cohi_tuning tuning = {
        .model = steady_model(profile),
        .deterministic = (uint16_t)config->deterministic,
        .card = {.packets_to = (uint32_t)profile->value[COHI_ROW_card_packets_to],
                 .direct_from = (uint32_t)profile->value[COHI_ROW_card_direct_from]}};
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs && status == COH_OK; i++) {
        coh_collective_kind kind = kind_named(knobs[i].collective);
        status = find_forced(kind, knobs[i].variable, knobs[i].algorithm, &tuning.forced[kind]);
    }
    memcpy(bytes, &tuning, sizeof tuning);
    return status;
}

void cohi_tuning_set_card(coh_world *world, cohi_card_tuning card)
{
    ((cohi_tuning *)(void *)world->tuning)->card = card;
}
