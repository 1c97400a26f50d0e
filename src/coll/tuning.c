#include "coll/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(cohi_tuning) <= COHI_TUNING_BYTES, "the tuning fits the card");

/* ---- the model ---- */

static const struct constant {
    const char *name;
    size_t offset;
    double otherwise;
} constants[] = {
#define ROW(field, otherwise, unit, what) {#field, offsetof(cohi_model, field), otherwise},
    COHI_MODEL_TABLE(ROW)
#undef ROW
};

enum { CONSTANTS = sizeof constants / sizeof *constants };

static double *field_of(cohi_model *model, const struct constant *constant)
{
    return (double *)(void *)((char *)model + constant->offset);
}

cohi_model cohi_model_default(void)
{
    cohi_model model;
    for (size_t i = 0; i < CONSTANTS; i++)
        *field_of(&model, &constants[i]) = constants[i].otherwise;
    return model;
}

/* One line: a name and a number in bounds; empty, or a comment. */
static bool read_line(const char *line, cohi_model *model)
{
    char name[32];
    double value;
    if (line[strspn(line, " \t\n")] == '\0' || line[0] == '#')
        return true;
    if (sscanf(line, "%31s %lf", name, &value) != 2 || !cohi_model_could_be(value))
        return false;
    for (size_t i = 0; i < CONSTANTS; i++)
        if (strcmp(constants[i].name, name) == 0) {
            *field_of(model, &constants[i]) = value;
            return true;
        }
    return false;
}

coh_status cohi_model_load(const char *path, cohi_model *model)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return cohi_fail_os(errno, "cannot read the tuning file %s", path);
    char line[256];
    int number = 0;
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        number++;
        good = read_line(line, model);
    }
    fclose(file);
    if (good)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "line %d of the tuning file %s is not the name of a constant and a number "
                     "above 0 and at most %g; make the file anew with cohort tune",
                     number, path, COHI_MODEL_MOST);
}

void cohi_model_path(const char *knob, char *path, size_t room)
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    path[0] = '\0';
    if (strcmp(knob, "off") == 0)
        return;
    if (*knob)
        snprintf(path, room, "%s", knob);
    else if (folder && *folder)
        snprintf(path, room, "%s/cohort/tuning", folder);
    else if (home && *home)
        snprintf(path, room, "%s/.config/cohort/tuning", home);
}

/* A file that was named must be there; the usual one may be. */
static coh_status load_model(const char *knob, cohi_model *model)
{
    char path[4096];
    *model = cohi_model_default();
    cohi_model_path(knob, path, sizeof path);
    FILE *there = path[0] ? fopen(path, "re") : NULL;
    if (there)
        fclose(there);
    return there || (*knob && path[0]) ? cohi_model_load(path, model) : COH_OK;
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

coh_status cohi_tuning_load(const cohi_config *config, unsigned char bytes[COHI_TUNING_BYTES])
{
    const char *const names[COHI_KINDS] = {
#define ROW(constant, name, op, reduces, rooted) [constant] = config->name,
        COHI_KIND_TABLE(ROW)
#undef ROW
    };
    cohi_tuning tuning = {.deterministic = (uint16_t)config->deterministic};
    coh_status status = load_model(config->tuning, &tuning.model);
    for (cohi_kind kind = 0; kind < COHI_KINDS && status == COH_OK; kind++)
        status = find_forced(kind, names[kind], &tuning.forced[kind]);
    memcpy(bytes, &tuning, sizeof tuning);
    return status;
}
