/*
 * pmix.c - jobs whose launcher serves PMIx: Open MPI's mpirun, prterun, srun --mpi=pmix.
 *
 * Rank 0 puts the id under a key of its own, and the others get it, for which PMIx waits until it is there: no
 * fence is needed, so that a rank that does not come is missed by bootstrap, which names it. Every call may
 * block for ever, and so is made on a thread that is waited for with a deadline.
 */
#include "rendezvous/pmix.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/root.h"
#include "rendezvous/bounded.h"
#include "rendezvous/hex.h"
#include "rendezvous/provider.h"
#include "rendezvous/variables.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define GRACE_NS   (COHI_NS_PER_S)       /* by which PMIx's own time limits may be late */
#define CLOSING_NS (5 * COHI_NS_PER_S)   /* it limits itself to two seconds */
#define RETRY_NS   (20 * COHI_NS_PER_MS) /* for a key that is not there yet */

static const char library[] = "libpmix.so.2", key[] = "cohort.id";

static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_RANK", NULL};
static const cohi_variables variables = {
    "a launcher of PMIx (Open MPI's mpirun, prterun, srun --mpi=pmix)", names};

/* How many processes the launcher started, where it says so by a variable too; else -1. */
static long known_size(void)
{
    static const char of_slurm[] = "slurm.pmix.";
    const char *space = cohi_variable("PMIX_NAMESPACE");
    if (cohi_variable("OMPI_COMM_WORLD_SIZE"))
        return cohi_variable_number("OMPI_COMM_WORLD_SIZE");
    if (space && strncmp(space, of_slurm, sizeof of_slurm - 1) == 0)
        return cohi_variable_number("SLURM_STEP_NUM_TASKS");
    return -1;
}

cohi_presence cohi_pmix_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    if (!cohi_variable("PMIX_NAMESPACE") && !cohi_variable("PMIX_RANK"))
        return COHI_ABSENT;
    return known_size() == 1 ? COHI_ALONE : COHI_PRESENT;
}

bool cohi_pmix_open(cohi_pmix *pmix, char *reason, size_t room)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(reason, room, "%s", dlerror());
        return false;
    }
    static const char *const functions[] = {
#define NAME(returns, name, parameters) #name,
        COHI_PMIX_TABLE(NAME, , , )
#undef NAME
    };
    void **const places[] = {
#define PLACE(returns, name, parameters) (void **)(void *)&pmix->name,
        COHI_PMIX_TABLE(PLACE, , , )
#undef PLACE
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        *places[i] = dlsym(handle, functions[i]);
        if (!*places[i]) {
            snprintf(reason, room, "%s has no %s", library, functions[i]);
            return false;
        }
    }
    return true;
}

bool cohi_pmix_usable(char *reason, size_t room)
{
    cohi_pmix pmix;
    return cohi_pmix_open(&pmix, reason, room);
}

/* ---- what is done on the other thread ---- */

struct session {
    cohi_pmix pmix;
    cohi_pmix_rank self;
    uint32_t size, here; /* ranks of the job, of this host; 0: not known */
    char id[COHI_ID_TEXT_BYTES];
    uint64_t timeout_ns;
    int code;
    const char *step; /* that `code` is of, or that is under way */
};

static cohi_pmix_value *get_value(struct session *session, uint32_t rank, const char *name)
{
    cohi_pmix_rank whom = session->self;
    cohi_pmix_value *value = NULL;
    cohi_pmix_info limit = {
        .key = COHI_PMIX_TIMEOUT,
        .value = {.type = COHI_PMIX_INT,
                  .data.integer = (int)(session->timeout_ns / COHI_NS_PER_S) + 1}};
    whom.rank = rank;
    session->code = session->pmix.PMIx_Get(&whom, name, &limit, 1, &value);
    return session->code == COHI_PMIX_SUCCESS ? value : NULL;
}

static uint32_t get_number(struct session *session, const char *name)
{
    cohi_pmix_value *value = get_value(session, COHI_PMIX_ALL_RANKS, name);
    uint32_t number = value && value->type == COHI_PMIX_UINT32 ? value->data.uint32 : 0;
    free(value);
    return number;
}

static void open_session(void *arg)
{
    struct session *session = arg;
    session->step = "PMIx_Init";
    session->code = session->pmix.PMIx_Init(&session->self, NULL, 0);
    if (session->code != COHI_PMIX_SUCCESS)
        return;
    session->here = get_number(session, COHI_PMIX_LOCAL_SIZE);
    session->step = "PMIx_Get of the number of ranks";
    session->size = get_number(session, COHI_PMIX_JOB_SIZE);
}

static void put_id(void *arg)
{
    struct session *session = arg;
    cohi_pmix_value value = {.type = COHI_PMIX_STRING, .data.string = session->id};
    session->step = "PMIx_Put";
    session->code = session->pmix.PMIx_Put(COHI_PMIX_GLOBAL, key, &value);
    if (session->code != COHI_PMIX_SUCCESS)
        return;
    session->step = "PMIx_Commit";
    session->code = session->pmix.PMIx_Commit();
}

/* Where rank 0 has put something else before, a key that is not there yet is not waited for. */
static void get_id(void *arg)
{
    static const struct timespec pause = {.tv_nsec = RETRY_NS};
    struct session *session = arg;
    uint64_t until = cohi_now_ns() + session->timeout_ns;
    session->step = "PMIx_Get of rank 0's key";
    cohi_pmix_value *value = get_value(session, 0, key);
    while (session->code == COHI_PMIX_ERR_NOT_FOUND && cohi_now_ns() < until) {
        nanosleep(&pause, NULL);
        value = get_value(session, 0, key);
    }
    if (!value)
        return;
    if (value->type == COHI_PMIX_STRING && value->data.string)
        snprintf(session->id, sizeof session->id, "%s", value->data.string);
    if (value->type == COHI_PMIX_STRING)
        free(value->data.string);
    free(value);
}

static void close_session(void *arg)
{
    struct session *session = arg;
    session->step = "PMIx_Finalize";
    session->code = session->pmix.PMIx_Finalize(NULL, 0);
}

/* ---- what the caller does ---- */

/* The launcher learns that this process is done with PMIx; one that ended without would be a failure. */
static void end_session(void *kept)
{
    struct session *session = kept;
    int error = cohi_bounded_call(close_session, session, free, cohi_now_ns() + CLOSING_NS);
    if (error == ETIMEDOUT) {
        cohi_log(COH_LOG_WARN, "init: PMIx_Finalize has not returned within 5 s");
        return; /* the session is the thread's */
    }
    free(session);
}

static coh_status fail_late(double timeout_s, const char *what)
{
    return cohi_fail(COH_TIMED_OUT, "coh_init: PMIx has not %s within %.1f s (COHORT_INIT_TIMEOUT)",
                     what, timeout_s);
}

/* Takes a step. Where it fails *session is closed, or left to the thread, and NULL then. */
static coh_status take_step(struct session **session, void (*step)(void *), const char *what)
{
    struct session *self = *session;
    double timeout_s = (double)self->timeout_ns / (double)COHI_NS_PER_S;
    bool opened = step != open_session;
    int error = cohi_bounded_call(step, self, free, cohi_now_ns() + self->timeout_ns + GRACE_NS);
    coh_status status = COH_OK;
    if (error == ETIMEDOUT) {
        *session = NULL;
        return fail_late(timeout_s, what);
    }
    if (error)
        status = cohi_fail_os(error, "coh_init: no thread can be made to call PMIx");
    else if (self->code == COHI_PMIX_ERR_TIMEOUT || self->code == COHI_PMIX_ERR_NOT_FOUND)
        status = fail_late(timeout_s, what);
    else if (self->code != COHI_PMIX_SUCCESS)
        status = cohi_fail(COH_TRANSPORT,
                           "coh_init: %s failed: %s (PMIX_NAMESPACE=%.64s, PMIX_RANK=%.16s). The "
                           "launcher has ended, or another process is this rank",
                           self->step, self->pmix.PMIx_Error_string(self->code),
                           cohi_variable("PMIX_NAMESPACE"), cohi_variable("PMIX_RANK"));
    if (status == COH_OK)
        return COH_OK;
    if (opened)
        end_session(self);
    else
        free(self);
    *session = NULL;
    return status;
}

/* The socket for other hosts is made where there may be some. */
static coh_status make_id(const struct session *session, const cohi_config *config,
                          cohi_launch *launch)
{
    coh_status status = cohi_unique_id_make(&launch->id);
    if (status == COH_OK && session->here != session->size)
        status = cohi_root_listen(config, &launch->id, &launch->listeners);
    return status;
}

static coh_status publish(struct session **session, const cohi_config *config, cohi_launch *launch)
{
    coh_status status = make_id(*session, config, launch);
    if (status != COH_OK) {
        end_session(*session);
        *session = NULL;
        return status;
    }
    cohi_hex_write(launch->id.bytes, sizeof launch->id.bytes, (*session)->id);
    return take_step(session, put_id, "taken what rank 0 puts");
}

static coh_status fetch(struct session **session, cohi_launch *launch)
{
    coh_status status =
        take_step(session, get_id, "given what rank 0 puts: rank 0 has not come to coh_init");
    if (status == COH_OK
        && !cohi_hex_read((*session)->id, launch->id.bytes, sizeof launch->id.bytes))
        status = cohi_fail(COH_TRANSPORT, "coh_init: what rank 0 has put into PMIx is not an id");
    return status;
}

static coh_status exchange(struct session *session, const cohi_config *config, cohi_launch *launch)
{
    coh_status status = take_step(&session, open_session, "answered this process");
    if (status != COH_OK)
        return status;
    launch->kept = session;
    launch->let_go = end_session;
    if (session->size < 1 || session->size > COHI_WORLD_MAX || session->self.rank >= session->size)
        return cohi_fail(COH_LIMIT, "coh_init: PMIx says rank %u of %u; there can be %d ranks",
                         session->self.rank, session->size, COHI_WORLD_MAX);
    launch->rank = (int)session->self.rank;
    launch->size = (int)session->size;
    if (launch->size == 1)
        return COH_OK;
    status = launch->rank == 0 ? publish(&session, config, launch) : fetch(&session, launch);
    launch->kept = session;
    launch->let_go = session ? end_session : NULL;
    return status;
}

coh_status cohi_pmix_ask(const cohi_config *config, cohi_launch *launch)
{
    char reason[256], why[352];
    *launch = (cohi_launch)COHI_NO_LAUNCH;
    coh_status status = cohi_variables_check(&variables);
    if (status != COH_OK)
        return status;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for what PMIx says");
    session->timeout_ns = config->init_timeout;
    if (!cohi_pmix_open(&session->pmix, reason, sizeof reason)) {
        free(session);
        snprintf(why, sizeof why, "%s (Debian: libpmix2) cannot be used: %s", library, reason);
        return cohi_variables_refuse(&variables, known_size(), why);
    }
    status = exchange(session, config, launch);
    if (status != COH_OK)
        cohi_launch_end(launch);
    return status;
}
