#include "rendezvous/plain.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/listeners.h"
#include "bootstrap/root.h"
#include "rendezvous/bounded.h"
#include "rendezvous/publish.h"
#include "rendezvous/secret.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RETRY_NS   (5 * COHI_NS_PER_MS)
#define RESOLVE_NS (200 * COHI_NS_PER_MS) /* between two tries */

static void sleep_ns(uint64_t nanoseconds)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)nanoseconds};
    nanosleep(&pause, NULL);
}

/* ---- where rank 0 is ---- */

struct question {
    char name[256];
    cohi_os_address addresses[COHI_ROOT_ADDRESSES];
    int count, code;
};

static void resolve(void *arg)
{
    struct question *question = arg;
    question->code =
        cohi_os_resolve(question->name, question->addresses, COHI_ROOT_ADDRESSES, &question->count);
}

/* One try. 0 and *root; or a code for cohi_os_resolve_text; -1: no answer came. */
static int find_root(const cohi_plain *plain, uint64_t deadline_ns, cohi_root *root)
{
    struct question *question = calloc(1, sizeof *question);
    if (!question)
        return -1;
    snprintf(question->name, sizeof question->name, "%s", plain->address);
    int error = cohi_bounded_call(resolve, question, free, deadline_ns);
    if (error == ETIMEDOUT)
        return -1;
    int code = error ? -1 : question->code;
    root->count = code ? 0 : question->count;
    memcpy(root->addresses, question->addresses, sizeof root->addresses);
    free(question);
    return code;
}

/* A name may be known only when rank 0's host is up, as in a cluster that is still starting. */
static coh_status await_root(const cohi_plain *plain, uint64_t deadline_ns, cohi_root *root)
{
    int code = find_root(plain, deadline_ns, root);
    while (code && cohi_now_ns() + RESOLVE_NS < deadline_ns) {
        sleep_ns(RESOLVE_NS);
        code = find_root(plain, deadline_ns, root);
    }
    if (!code)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "coh_init: rank %d of %d cannot find the host of rank 0: %s is '%s', and no "
                     "address is known for that (%s)",
                     plain->rank, plain->size, plain->address_from, plain->address,
                     code == -1 ? "no answer" : cohi_os_resolve_text(code));
}

/* ---- with a secret ---- */

static coh_status choose_port(const cohi_plain *plain, const cohi_config *config, unsigned *port)
{
    uint64_t chosen = plain->port;
    coh_status status = COH_OK;
    if (*config->port)
        status = cohi_parse_count("COHORT_PORT", config->port, 1, UINT16_MAX, &chosen);
    else if (chosen < 1 || chosen > UINT16_MAX)
        status = cohi_variables_refuse(plain->variables, plain->size,
                                       "there is no port after MASTER_PORT for rank 0 to listen "
                                       "at; set COHORT_PORT on all ranks");
    *port = (unsigned)chosen;
    return status;
}

static bool is_loopback(const cohi_os_address *address)
{
    static const unsigned char v6[16] = {[15] = 1};
    return address->family == 4 ? address->bytes[0] == 127
                                : memcmp(address->bytes, v6, sizeof v6) == 0;
}

/* Many hosts give their own name an address of the loopback, where others find them by another one. A number, or
 * the name of the loopback itself, means what it says. Returns how many there are then. */
static int add_outer(const cohi_plain *plain, cohi_os_address *addresses, int count)
{
    bool number = strchr(plain->address, ':') || isdigit((unsigned char)plain->address[0]);
    bool inner = count > 0 && !number && strcmp(plain->address, "localhost") != 0;
    for (int i = 0; i < count && inner; i++)
        inner = is_loopback(&addresses[i]);
    int more = inner ? cohi_os_addresses("", addresses + count, COHI_LISTENERS - count) : 0;
    return count + (more > 0 ? more : 0);
}

/* Where the others look for it; a name that rank 0's own host does not know is no obstacle. */
static coh_status listen_as_named(const cohi_plain *plain, const cohi_config *config, unsigned port,
                                  uint64_t deadline_ns, cohi_launch *launch)
{
    cohi_root root = {.count = 0};
    cohi_os_address addresses[COHI_LISTENERS];
    if (!*config->net_interface && find_root(plain, deadline_ns, &root) != 0)
        root.count = 0;
    memcpy(addresses, root.addresses, (size_t)root.count * sizeof *addresses);
    int count = add_outer(plain, addresses, root.count);
    return cohi_root_listen_at(config, addresses, count, port, &launch->listeners);
}

static coh_status ask_with_secret(const cohi_plain *plain, const cohi_config *config,
                                  const unsigned char *secret, uint64_t deadline_ns,
                                  cohi_launch *launch)
{
    unsigned port;
    cohi_root root;
    cohi_unique_id_name(plain->job, secret, &launch->id);
    if (plain->one_host == COHI_PLAIN_YES)
        return COH_OK;
    coh_status status = choose_port(plain, config, &port);
    if (status != COH_OK)
        return status;
    if (plain->rank == 0)
        return listen_as_named(plain, config, port, deadline_ns, launch);
    if (plain->near_root == COHI_PLAIN_YES)
        return COH_OK;
    status = await_root(plain, deadline_ns, &root);
    if (status == COH_OK)
        cohi_root_point(root.addresses, root.count, port, &launch->id);
    return status;
}

/* ---- without ---- */

static coh_status refuse_far(const cohi_plain *plain)
{
    char why[512];
    if (plain->one_host == COHI_PLAIN_NO)
        snprintf(why, sizeof why, "it has ranks on several hosts");
    else
        snprintf(why, sizeof why, "rank 0 is on another host (%s=%.200s)", plain->address_from,
                 plain->address);
    size_t used = strlen(why);
    snprintf(why + used, sizeof why - used,
             ", and they need a secret to know each other by: set COHORT_SECRET or "
             "COHORT_SECRET_FILE, the same on all ranks");
    return cohi_variables_refuse(plain->variables, plain->size, why);
}

static coh_status publish(const cohi_plain *plain, const char *name, cohi_launch *launch)
{
    cohi_publisher *publisher;
    coh_status status = cohi_unique_id_make(&launch->id);
    if (status == COH_OK)
        status = cohi_publish(name, &launch->id, &publisher);
    if (status != COH_OK)
        return status;
    launch->kept = publisher;
    launch->let_go = cohi_publish_end;
    if (plain->one_host == COHI_PLAIN_UNKNOWN)
        cohi_log(COH_LOG_INFO, "init: COHORT_SECRET is not set: only ranks of rank 0's host and "
                               "user can join");
    return COH_OK;
}

/* Whether what the launcher says of rank 0 is that it is elsewhere. */
static bool is_far(const cohi_plain *plain, uint64_t deadline_ns)
{
    cohi_root root;
    if (plain->one_host == COHI_PLAIN_YES || plain->near_root == COHI_PLAIN_YES)
        return false;
    if (plain->near_root == COHI_PLAIN_NO)
        return true;
    return find_root(plain, deadline_ns, &root) == 0
           && !cohi_root_is_own(root.addresses, root.count);
}

static coh_status fetch(const cohi_plain *plain, const cohi_config *config, const char *name,
                        uint64_t deadline_ns, coh_unique_id *id)
{
    int fetched;
    coh_status status = cohi_publish_fetch(name, id, &fetched);
    if (status == COH_OK && !fetched && is_far(plain, deadline_ns))
        status = refuse_far(plain);
    while (status == COH_OK && !fetched && cohi_now_ns() < deadline_ns) {
        sleep_ns(RETRY_NS);
        status = cohi_publish_fetch(name, id, &fetched);
    }
    if (status != COH_OK || fetched)
        return status;
    return cohi_fail(
        COH_TIMED_OUT,
        "coh_init: rank 0 of %d did not come within %.1f s (COHORT_INIT_TIMEOUT) to the "
        "host of rank %d; ranks of several hosts need COHORT_SECRET or "
        "COHORT_SECRET_FILE",
        plain->size, (double)config->init_timeout / (double)COHI_NS_PER_S, plain->rank);
}

static coh_status ask_without(const cohi_plain *plain, const cohi_config *config,
                              uint64_t deadline_ns, cohi_launch *launch)
{
    char name[COHI_SOCKET_NAME_BYTES];
    if (plain->one_host == COHI_PLAIN_NO)
        return refuse_far(plain);
    cohi_unique_id_meeting("id", plain->job, name);
    return plain->rank == 0 ? publish(plain, name, launch)
                            : fetch(plain, config, name, deadline_ns, &launch->id);
}

coh_status cohi_plain_ask(const cohi_plain *plain, const cohi_config *config, cohi_launch *launch)
{
    unsigned char secret[COHI_SECRET_BYTES] = {0};
    bool given;
    uint64_t deadline_ns = cohi_now_ns() + config->init_timeout;
    *launch = (cohi_launch)COHI_NO_LAUNCH;
    launch->rank = plain->rank;
    launch->size = plain->size;
    coh_status status = cohi_secret_read(config, secret, &given);
    if (status != COH_OK || plain->size == 1)
        return status;
    return given ? ask_with_secret(plain, config, secret, deadline_ns, launch)
                 : ask_without(plain, config, deadline_ns, launch);
}
