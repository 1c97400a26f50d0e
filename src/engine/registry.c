#include "engine/engine.h"

#include "base/error.h"
#include "engine/module.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* In order of preference for "any"; those behind are chosen by name alone. A row without an engine
 * is a module, which is opened when somebody asks for it. */
static const struct row {
    const char *name;
    const char *summary;
    const cohi_engine *engine;
    bool preferred;
} rows[] = {
    {"shm", "ranks are processes of one host, over memory that they map from each other",
     &cohi_engine_shm, true},
    {"threads", "ranks are threads of one process, over its own memory", &cohi_engine_threads,
     true},
    {"tcp", "ranks are processes of several hosts; those of one map each other's memory", NULL,
     true},
    {"ucx", "as tcp, but over UCX (InfiniBand and others), unsealed: for networks that are trusted",
     NULL, false},
    {"sim",
     "ranks of one process over a simulated network: delays, reorders, splits, kills and stalls by "
     "a seed (COHORT_SIM)",
     &cohi_engine_sim, false},
    {"sim:channel", "the simulator with messages alone, as an engine without one-sided memory",
     &cohi_engine_sim_channel, false},
};

enum { ROWS = sizeof rows / sizeof *rows };

const char *coh_engine_name(int index)
{
    return index >= 0 && index < ROWS ? rows[index].name : NULL;
}

const char *cohi_engine_summary(int index)
{
    return rows[index].summary;
}

static coh_status open_row(const struct row *row, const cohi_engine **engine)
{
    *engine = row->engine;
    return row->engine ? COH_OK : cohi_module_open(row->name, engine);
}

bool cohi_engine_library(int index, char *text, size_t room)
{
    const cohi_engine *engine;
    return open_row(&rows[index], &engine) == COH_OK && engine->library
           && engine->library(text, room);
}

static void list_names(char *text, size_t room)
{
    size_t used = 0;
    for (int i = 0; i < ROWS && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", rows[i].name);
}

static coh_status find_engine(const char *name, const cohi_engine **engine)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return open_row(&rows[i], engine);
    char known[256];
    list_names(known, sizeof known);
    return cohi_fail(COH_INVALID_ARGUMENT, "there is no engine '%s'; there are any, %s", name,
                     known);
}

static coh_status probe_row(const struct row *row, const cohi_need *need,
                            const cohi_engine **engine)
{
    coh_status status = open_row(row, engine);
    return status == COH_OK ? (*engine)->lifecycle->probe(need) : status;
}

/* Probes that failed on the way to one that did not are not the caller's failures. */
static coh_status select_any(const cohi_need *need, const cohi_engine **engine)
{
    cohi_error before;
    cohi_error_keep(&before);
    char reasons[512] = "";
    size_t used = 0;
    for (int i = 0; i < ROWS; i++) {
        const cohi_engine *found;
        if (!rows[i].preferred)
            continue;
        if (probe_row(&rows[i], need, &found) == COH_OK) {
            *engine = found;
            (void)cohi_fail_again(&before);
            return COH_OK;
        }
        if (used < sizeof reasons)
            used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s",
                                     used ? "; " : "", coh_last_error());
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

coh_status cohi_engine_for_cards(const cohi_engine **engine)
{
    return cohi_module_open("cuda", engine);
}

/* ---- worlds at once ---- */

static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;

static struct use {
    int open;
    bool closed_for_good;
} uses[ROWS];

static struct use *use_of(const cohi_engine *engine)
{
    int i = 0;
    while (strcmp(rows[i].name, engine->name) != 0)
        i++;
    return &uses[i];
}

static coh_status admit(const cohi_engine *engine, struct use *use)
{
    cohi_engine_facts facts = {.size = sizeof facts};
    engine->lifecycle->query(NULL, &facts);
    if (use->closed_for_good)
        return cohi_fail(COH_UNSUPPORTED,
                         "coh_init: engine %s cannot be opened again in a process that has closed "
                         "it",
                         engine->name);
    if (facts.worlds_at_once > 0 && use->open >= facts.worlds_at_once)
        return cohi_fail(COH_LIMIT, "coh_init: engine %s allows %d world%s at once in a process",
                         engine->name, facts.worlds_at_once, facts.worlds_at_once > 1 ? "s" : "");
    use->open++;
    return COH_OK;
}

coh_status cohi_engine_admit(const cohi_engine *engine)
{
    pthread_mutex_lock(&uses_lock);
    coh_status status = admit(engine, use_of(engine));
    pthread_mutex_unlock(&uses_lock);
    return status;
}

void cohi_engine_dismiss(const cohi_engine *engine)
{
    cohi_engine_facts facts = {.size = sizeof facts};
    engine->lifecycle->query(NULL, &facts);
    pthread_mutex_lock(&uses_lock);
    struct use *use = use_of(engine);
    use->open--;
    use->closed_for_good = facts.closes_for_good != 0;
    pthread_mutex_unlock(&uses_lock);
}
