#include "engine/engine.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* In order of preference for "any". The simulator is chosen by name alone. */
static const cohi_engine *const engines[] = {
    &cohi_engine_shm,
    &cohi_engine_threads,
    &cohi_engine_sim,
    &cohi_engine_sim_channel,
};

enum { ENGINES = sizeof engines / sizeof *engines, PREFERRED = 2 };

const cohi_engine *cohi_engine_at(int index)
{
    return index >= 0 && index < ENGINES ? engines[index] : NULL;
}

const char *coh_engine_name(int index)
{
    const cohi_engine *engine = cohi_engine_at(index);
    return engine ? engine->name : NULL;
}

static void list_names(char *text, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < ENGINES && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", engines[i]->name);
}

static coh_status find_engine(const char *name, const cohi_engine **engine)
{
    for (int i = 0; i < ENGINES; i++) {
        if (strcmp(engines[i]->name, name) == 0) {
            *engine = engines[i];
            return COH_OK;
        }
    }
    char known[256];
    list_names(known, sizeof known);
    return cohi_fail(COH_INVALID_ARGUMENT, "there is no engine '%s'; there are any, %s", name,
                     known);
}

/* Probes that failed on the way to one that did not are not the caller's failures. */
static coh_status select_any(const cohi_need *need, const cohi_engine **engine)
{
    cohi_error before;
    cohi_error_keep(&before);
    char reasons[512] = "";
    size_t used = 0;
    for (int i = 0; i < PREFERRED; i++) {
        if (engines[i]->lifecycle->probe(need) == COH_OK) {
            *engine = engines[i];
            (void)cohi_fail_again(&before);
            return COH_OK;
        }
        if (used < sizeof reasons)
            used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s", i ? "; " : "",
                                     coh_last_error());
    }
    return cohi_fail(COH_NOT_AVAILABLE, "no engine can connect %d ranks here: %s", need->size,
                     reasons);
}

coh_status cohi_engine_select(const char *name, const cohi_need *need, const cohi_engine **engine)
{
    if (!name || !*name || strcmp(name, "any") == 0)
        return select_any(need, engine);
    const cohi_engine *found;
    coh_status status = find_engine(name, &found);
    if (status == COH_OK)
        status = found->lifecycle->probe(need);
    if (status == COH_OK)
        *engine = found;
    return status;
}

/* Asked without a job at hand: could it connect two ranks of the kind it is for? */
coh_status coh_engine_available(const char *name)
{
    const cohi_engine *engine;
    if (!name)
        return cohi_fail(COH_INVALID_ARGUMENT, "coh_engine_available: the name is NULL");
    coh_status status = find_engine(name, &engine);
    if (status != COH_OK)
        return status;
    if (engine->lifecycle->probe(&(cohi_need){.size = 2, .in_process = 0}) == COH_OK)
        return COH_OK;
    return engine->lifecycle->probe(&(cohi_need){.size = 2, .in_process = 1});
}
