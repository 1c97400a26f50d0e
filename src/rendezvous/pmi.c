/*
 * pmi.c - jobs whose launcher speaks PMI-1 on an inherited descriptor: MPICH's mpiexec, Flux, and
 * srun --mpi=pmi2, which answers that protocol too.
 *
 * Rank 0 puts the id into the job's key-value space, all meet in the launcher's barrier, and get it. Then
 * the connection is finished in order: a launcher takes one that ends otherwise for a crash.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/root.h"
#include "rendezvous/came.h"
#include "rendezvous/hex.h"
#include "rendezvous/pmi_wire.h"
#include "rendezvous/provider.h"
#include "rendezvous/variables.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const char *const names[] = {"PMI_FD", "PMI_RANK", "PMI_SIZE", NULL};
static const cohi_variables variables = {"a launcher of PMI-1 (MPICH's mpiexec, srun --mpi=pmi2)",
                                         names};

/* Hydra tells of itself by PMI_PORT and PMI_ID alone when it is asked to. */
cohi_presence cohi_pmi_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    if (cohi_variable_number("PMI_SIZE") == 1)
        return COHI_ALONE;
    bool port = cohi_variable("PMI_PORT") && cohi_variable("PMI_ID");
    if (port)
        snprintf(why, COHI_WHY_BYTES, "PMI_PORT=%s", cohi_variable("PMI_PORT"));
    return port || cohi_variable("PMI_FD") || cohi_variable("PMI_RANK") || cohi_variable("PMI_SIZE")
               ? COHI_PRESENT
               : COHI_ABSENT;
}

/* ---- talking ---- */

struct session {
    int fd, rank, size;
    uint64_t deadline_ns;
    double timeout_s;
    cohi_came *came; /* in the barrier */
    char space[COHI_PMI_LINE_BYTES / 4];
    size_t value_bytes; /* the longest value, with its NUL */
    cohi_pmi_reader reader;
    char line[COHI_PMI_LINE_BYTES]; /* the last answer */
};

static coh_status fail_gone(const struct session *self, int error)
{
    return cohi_fail(
        COH_TRANSPORT,
        "coh_init: rank %d: the launcher closed its connection (PMI_FD=%d): %s. It has "
        "ended, or another process or an earlier coh_init has used the connection up",
        self->rank, self->fd, cohi_os_error_text(error));
}

static coh_status fail_strange(const struct session *self)
{
    return cohi_fail(COH_TRANSPORT,
                     "coh_init: rank %d: what comes from the launcher (PMI_FD=%d) is not PMI-1: "
                     "'%.60s'",
                     self->rank, self->fd, self->line);
}

static coh_status fail_late(struct session *self)
{
    char who[160];
    cohi_came_describe(self->came, who, sizeof who);
    return cohi_fail(COH_TIMED_OUT,
                     "coh_init: rank %d of %d has waited %.1f s for the launcher "
                     "(COHORT_INIT_TIMEOUT)%s",
                     self->rank, self->size, self->timeout_s, who);
}

/* Waits for bytes a moment, and takes them. */
static coh_status receive(struct session *self)
{
    enum { MOMENT_MS = 100 };
    struct pollfd look = {.fd = self->fd, .events = POLLIN};
    size_t room, got = 0;
    char *at = cohi_pmi_room(&self->reader, &room);
    uint64_t now = cohi_now_ns();
    if (now >= self->deadline_ns)
        return fail_late(self);
    uint64_t left_ms = (self->deadline_ns - now) / COHI_NS_PER_MS + 1;
    if (cohi_os_poll(&look, 1, left_ms < MOMENT_MS ? (int)left_ms : MOMENT_MS) < 0
        && errno != EINTR)
        return cohi_fail_os(errno, "coh_init: rank %d cannot wait for the launcher", self->rank);
    cohi_came_look(self->came);
    int error = look.revents ? cohi_os_receive_now(self->fd, at, room, &got) : EAGAIN;
    if (error && error != EAGAIN)
        return fail_gone(self, error);
    self->reader.got += got;
    return COH_OK;
}

/* Asks, and waits for the answer, whose cmd must be `expected`. */
static coh_status ask(struct session *self, const char *question, const char *expected)
{
    char command[64];
    cohi_pmi_read read;
    coh_status status = COH_OK;
    int error = cohi_os_send(self->fd, question, strlen(question), NULL, 0, self->deadline_ns);
    if (error)
        return error == ETIMEDOUT ? fail_late(self) : fail_gone(self, error);
    *self->line = '\0';
    while ((read = cohi_pmi_take_line(&self->reader, self->line)) == COHI_PMI_PARTIAL
           && status == COH_OK)
        status = receive(self);
    if (status != COH_OK)
        return status;
    if (read == COHI_PMI_STRANGE || !cohi_pmi_field(self->line, "cmd", command, sizeof command)
        || strcmp(command, expected) != 0)
        return fail_strange(self);
    return COH_OK;
}

/* As ask, for answers with a result, which must be 0. */
static coh_status ask_for_result(struct session *self, const char *question, const char *expected)
{
    long result;
    coh_status status = ask(self, question, expected);
    if (status == COH_OK && (!cohi_pmi_number(self->line, "rc", &result) || result != 0))
        return cohi_fail(COH_TRANSPORT, "coh_init: rank %d: the launcher refused '%.40s': '%.80s'",
                         self->rank, question, self->line);
    return status;
}

/* ---- the steps ---- */

static coh_status open_session(struct session *self)
{
    long most_value, most_key;
    coh_status status =
        ask_for_result(self, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");
    if (status == COH_OK)
        status = ask(self, "cmd=get_maxes\n", "maxes");
    if (status != COH_OK)
        return status;
    enum { LEAST_KEY = 24, LEAST_VALUE = 16 };
    if (!cohi_pmi_number(self->line, "vallen_max", &most_value)
        || !cohi_pmi_number(self->line, "keylen_max", &most_key) || most_value < LEAST_VALUE
        || most_key < LEAST_KEY)
        return fail_strange(self);
    self->value_bytes = most_value < COHI_ID_TEXT_BYTES ? (size_t)most_value : COHI_ID_TEXT_BYTES;
    status = ask(self, "cmd=get_my_kvsname\n", "my_kvsname");
    if (status == COH_OK && !cohi_pmi_field(self->line, "kvsname", self->space, sizeof self->space))
        status = fail_strange(self);
    return status;
}

/* The id goes in parts that fit a value: keys cohort-id-0, cohort-id-1, ... */
static coh_status put_id(struct session *self, const char *text)
{
    char question[COHI_PMI_LINE_BYTES];
    size_t part = self->value_bytes - 1, length = strlen(text);
    coh_status status = COH_OK;
    for (size_t i = 0; i * part < length && status == COH_OK; i++) {
        snprintf(question, sizeof question, "cmd=put kvsname=%s key=cohort-id-%zu value=%.*s\n",
                 self->space, i, (int)part, text + i * part);
        status = ask_for_result(self, question, "put_result");
    }
    return status;
}

static coh_status get_id(struct session *self, char text[COHI_ID_TEXT_BYTES])
{
    char question[COHI_PMI_LINE_BYTES];
    size_t used = 0;
    coh_status status = COH_OK;
    for (size_t i = 0; used + 1 < COHI_ID_TEXT_BYTES && status == COH_OK; i++) {
        snprintf(question, sizeof question, "cmd=get kvsname=%s key=cohort-id-%zu\n", self->space,
                 i);
        status = ask_for_result(self, question, "get_result");
        if (status == COH_OK
            && (!cohi_pmi_field(self->line, "value", text + used, COHI_ID_TEXT_BYTES - used)
                || !text[used]))
            status = fail_strange(self);
        if (status == COH_OK)
            used += strlen(text + used);
    }
    return status;
}

/* Who else has come is asked of the ranks of this host, since PMI-1 does not tell. */
static coh_status meet(struct session *self)
{
    cohi_came_begin(self->space, self->rank, self->size, &self->came);
    coh_status status = ask(self, "cmd=barrier_in\n", "barrier_out");
    cohi_came_end(self->came);
    self->came = NULL;
    return status;
}

/* Whether the launcher says so, which PMI-1 itself does only in a value for MPI. */
static bool on_one_host(int size)
{
    return cohi_variable_number("MPI_LOCALNRANKS") == size
           || cohi_variable_number("SLURM_STEP_NUM_NODES") == 1;
}

/* The socket for other hosts is made where there may be some. */
static coh_status make_id(const cohi_config *config, cohi_launch *launch)
{
    coh_status status = cohi_unique_id_make(&launch->id);
    if (status == COH_OK && !on_one_host(launch->size))
        status = cohi_root_listen(config, &launch->id, &launch->listeners);
    return status;
}

static coh_status exchange(struct session *self, const cohi_config *config, cohi_launch *launch)
{
    char text[COHI_ID_TEXT_BYTES];
    coh_status status = open_session(self);
    if (status == COH_OK && self->rank == 0)
        status = make_id(config, launch);
    cohi_hex_write(launch->id.bytes, sizeof launch->id.bytes, text);
    if (status == COH_OK && self->rank == 0)
        status = put_id(self, text);
    if (status == COH_OK)
        status = meet(self);
    if (status == COH_OK && self->rank != 0)
        status = get_id(self, text);
    if (status == COH_OK && !cohi_hex_read(text, launch->id.bytes, sizeof launch->id.bytes))
        status = fail_strange(self);
    if (status == COH_OK)
        status = ask(self, "cmd=finalize\n", "finalize_ack");
    return status;
}

static coh_status check_socket(int fd)
{
    int type;
    socklen_t length = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0)
        return COH_OK;
    char why[96];
    snprintf(why, sizeof why, "descriptor %d is not the launcher's socket: %s", fd,
             cohi_os_error_text(errno));
    return cohi_variables_refuse(&variables, cohi_variable_number("PMI_SIZE"), why);
}

coh_status cohi_pmi_ask(const cohi_config *config, cohi_launch *launch)
{
    int fd = -1;
    *launch = (cohi_launch)COHI_NO_LAUNCH;
    coh_status status = cohi_variables_check(&variables);
    if (status == COH_OK)
        status = cohi_variable_count("PMI_SIZE", 1, COHI_WORLD_MAX, &launch->size);
    if (status == COH_OK)
        status = cohi_variable_count("PMI_RANK", 0, (uint64_t)launch->size - 1, &launch->rank);
    if (status == COH_OK)
        status = cohi_variable_count("PMI_FD", 0, INT32_MAX, &fd);
    if (status == COH_OK)
        status = check_socket(fd);
    if (status != COH_OK)
        return status;
    struct session *self = calloc(1, sizeof *self);
    if (!self)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the launcher's answers");
    self->fd = fd;
    self->rank = launch->rank;
    self->size = launch->size;
    self->deadline_ns = cohi_now_ns() + config->init_timeout;
    self->timeout_s = (double)config->init_timeout / (double)COHI_NS_PER_S;
    status = exchange(self, config, launch);
    free(self);
    if (status != COH_OK)
        cohi_launch_end(launch);
    return status;
}
