#include "engine/engine.h"

#include "base/error.h"
#include "engine/module.h"
#include "engine/which_mpi.h"

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
    bool for_cards; /* it serves heaps on a card; another is beside it for the host's memory */
} rows[] = {
    {"shm", "ranks are processes of one host, over memory that they map from each other",
     &cohi_engine_shm, true, false},
    {"threads", "ranks are threads of one process, over its own memory", &cohi_engine_threads, true,
     false},
    {"tcp", "ranks are processes of several hosts; those of one map each other's memory", NULL,
     true, false},
    {"ucx", "as tcp, but over UCX (InfiniBand and others), unsealed: for networks that are trusted",
     NULL, false, false},
    {"mpi:openmpi", "as tcp, but over Open MPI, below its mpirun, unsealed", NULL, false, false},
    {"mpi:mpich", "as tcp, but over MPICH and its kin, below its mpiexec, unsealed", NULL, false,
     false},
    {"mlx:ring", "messages alone, over MLX's ring of TCP, unsealed; below mlx.launch too", NULL,
     false, false},
    {"mlx:mpi", "messages alone, over MLX's group of Open MPI, below its mpirun", NULL, false,
     false},
    {"mlx:jaccl", "messages alone, over MLX's group of RDMA over Thunderbolt", NULL, false, false},
    {"mlx:nccl", "messages alone, over MLX's group of NCCL", NULL, false, false},
    {"nvshmem",
     "heaps on a card are NVSHMEM's; memory of the host as with any (tcp+nvshmem: tcp's)", NULL,
     false, true},
    {"sim",
     "ranks of one process over a simulated network: delays, reorders, splits, kills and stalls by "
     "a seed (COHORT_SIM)",
     &cohi_engine_sim, false, false},
    {"sim:channel", "the simulator with messages alone, as an engine without one-sided memory",
     &cohi_engine_sim_channel, false, false},
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

/* "mpi" is the module that fits the process, or where nothing tells, the first that there is. */
static const char *resolve(const char *name)
{
    cohi_error before;
    const cohi_engine *engine;
    if (strcmp(name, "mpi") != 0)
        return name;
    const char *fitting = cohi_which_mpi();
    if (fitting)
        return fitting;
    cohi_error_keep(&before);
    bool first = cohi_module_open("mpi:openmpi", &engine) == COH_OK
                 && engine->lifecycle->probe(&(cohi_need){.size = 2}) == COH_OK;
    (void)cohi_fail_again(&before);
    return first ? "mpi:openmpi" : "mpi:mpich";
}

static coh_status find_engine(const char *name, const cohi_engine **engine)
{
    name = resolve(name);
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return open_row(&rows[i], engine);
    char known[256];
    list_names(known, sizeof known);
    return cohi_fail(COH_INVALID_ARGUMENT, "there is no engine '%s'; there are any, %s, mpi", name,
                     known);
}

/* ---- engines for cards ---- */

static bool is_for_cards(const char *name)
{
    bool found = false;
    for (int i = 0; i < ROWS; i++)
        found |= rows[i].for_cards && strcmp(rows[i].name, name) == 0;
    return found;
}

/* What is behind the plus of "tcp+nvshmem", or all of "nvshmem"; NULL: none is named. */
static const char *cards_part(const char *name)
{
    const char *plus = name ? strrchr(name, '+') : NULL;
    const char *part = plus ? plus + 1 : name;
    return part && is_for_cards(part) ? part : NULL;
}

/* What is before the plus; "any" of the name of an engine for cards alone. */
static const char *host_part(const char *name, char *room, size_t bytes)
{
    const char *cards = cards_part(name);
    if (!cards)
        return name;
    snprintf(room, bytes, "%.*s", cards > name ? (int)(cards - 1 - name) : 3,
             cards > name ? name : "any");
    return room;
}

const cohi_engine *cohi_engine_with_running_job(void)
{
    return cohi_mpi_is_running() ? cohi_engine_with_job("mpi") : NULL;
}

bool cohi_engine_is_any(const char *name)
{
    return !name || !*name || strcmp(name, "any") == 0;
}

const cohi_engine *cohi_engine_with_fabric(const cohi_need *need)
{
    cohi_error before;
    const cohi_engine *found = NULL;
    cohi_error_keep(&before);
    bool has = cohi_module_open("ucx", &found) == COH_OK && found->has_fabric && found->has_fabric()
               && found->lifecycle->probe(need) == COH_OK;
    (void)cohi_fail_again(&before);
    return has ? found : NULL;
}

const cohi_engine *cohi_engine_with_job(const char *name)
{
    cohi_error before;
    char host[32];
    const cohi_engine *found = NULL;
    name = host_part(name, host, sizeof host);
    if (cohi_engine_is_any(name))
        return NULL;
    cohi_error_keep(&before);
    bool brings = find_engine(name, &found) == COH_OK && found->job;
    (void)cohi_fail_again(&before);
    return brings ? found : NULL;
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

/* ---- both ---- */

const char *cohi_engine_cards_of(const char *name)
{
    const char *part = cards_part(name);
    for (int i = 0; part && i < ROWS; i++)
        if (strcmp(rows[i].name, part) == 0)
            return rows[i].name;
    return "cuda";
}

/* Both: the engine for cards is only looked at, and opened with the first heap on one. */
static coh_status select_both(const char *name, const char *cards, const cohi_need *need,
                              const cohi_engine **engine)
{
    char host[32];
    const cohi_engine *found;
    coh_status status = cohi_engine_for_cards(cards, &found);
    if (status == COH_OK)
        status = found->lifecycle->probe(need);
    return status == COH_OK ? cohi_engine_select(host_part(name, host, sizeof host), need, engine)
                            : status;
}

coh_status cohi_engine_select(const char *name, const cohi_need *need, const cohi_engine **engine)
{
    if (cohi_engine_is_any(name))
        return select_any(need, engine);
    const char *cards = cards_part(name);
    if (cards)
        return select_both(name, cards, need, engine);
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
    if (cards_part(name) && strchr(name, '+'))
        return cohi_engine_select(name, &(cohi_need){.size = 2}, &engine);
    coh_status status = find_engine(name, &engine);
    if (status != COH_OK)
        return status;
    if (engine->lifecycle->probe(&(cohi_need){.size = 2, .in_process = 0}) == COH_OK)
        return COH_OK;
    return engine->lifecycle->probe(&(cohi_need){.size = 2, .in_process = 1});
}

coh_status cohi_engine_for_cards(const char *name, const cohi_engine **engine)
{
    return cohi_module_open(name, engine);
}

/* ---- worlds at once ---- */

static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;

static struct use {
    int open;
    bool closed_for_good;
} uses[ROWS
       + 1]; /* the last is of all that have no row: the engine that cards have by themselves */

static struct use *use_of(const cohi_engine *engine)
{
    int i = 0;
    while (i < ROWS && strcmp(rows[i].name, engine->name) != 0)
        i++;
    return &uses[i];
}

static coh_status check_use(const cohi_engine *engine, const struct use *use)
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
    return COH_OK;
}

coh_status cohi_engine_allows(const cohi_engine *engine)
{
    pthread_mutex_lock(&uses_lock);
    coh_status status = check_use(engine, use_of(engine));
    pthread_mutex_unlock(&uses_lock);
    return status;
}

coh_status cohi_engine_admit(const cohi_engine *engine)
{
    pthread_mutex_lock(&uses_lock);
    struct use *use = use_of(engine);
    coh_status status = check_use(engine, use);
    use->open += status == COH_OK;
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

/* ---- networks ---- */

const char *cohi_network_text(unsigned network)
{
    static const char *const texts[COHI_NETWORKS] = {
        [COHI_NETWORK_NONE] = "",
        [COHI_NETWORK_SEALED] = "sealed (AES-256-GCM)",
        [COHI_NETWORK_CLEAR] = "in the clear (COHORT_NET=clear)",
        [COHI_NETWORK_LOOPBACK] = "in the clear, on the loopback alone (no OpenSSL)",
    };
    return network < COHI_NETWORKS ? texts[network] : "";
}
