#include "bootstrap/root.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the id: the number of addresses, the port in the order of the network, and for each address
 * its family and 16 bytes. */
enum { AT_COUNT = 0, AT_PORT = 1, AT_ADDRESSES = 3, ADDRESS_BYTES = 17 };

_Static_assert(AT_ADDRESSES + COHI_ROOT_ADDRESSES * ADDRESS_BYTES
                   <= sizeof((cohi_id_layout *)0)->root,
               "it fits the id");

static void write_root(const cohi_root *root, cohi_id_layout *id)
{
    memset(id->root, 0, sizeof id->root);
    id->root[AT_COUNT] = (unsigned char)root->count;
    id->root[AT_PORT] = (unsigned char)(root->port >> 8);
    id->root[AT_PORT + 1] = (unsigned char)root->port;
    for (int i = 0; i < root->count; i++) {
        unsigned char *at = id->root + AT_ADDRESSES + i * ADDRESS_BYTES;
        at[0] = root->addresses[i].family;
        memcpy(at + 1, root->addresses[i].bytes, sizeof root->addresses[i].bytes);
    }
}

void cohi_root_read(const cohi_id_layout *id, cohi_root *root)
{
    *root = (cohi_root){.port = (uint16_t)(id->root[AT_PORT] << 8 | id->root[AT_PORT + 1])};
    if (id->root[AT_COUNT] > COHI_ROOT_ADDRESSES || root->port == 0)
        return;
    for (int i = 0; i < id->root[AT_COUNT]; i++) {
        const unsigned char *at = id->root + AT_ADDRESSES + i * ADDRESS_BYTES;
        cohi_os_address *address = &root->addresses[root->count];
        address->family = at[0];
        memcpy(address->bytes, at + 1, sizeof address->bytes);
        root->count += address->family == 4 || address->family == 6;
    }
}

/* ---- choosing ---- */

static coh_status parse_ports(const char *text, unsigned *from, unsigned *to)
{
    char *end;
    *from = *to = 0;
    if (!*text)
        return COH_OK;
    unsigned long first = strtoul(text, &end, 10);
    unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
    if (*end || first == 0 || first > last || last > UINT16_MAX)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_PORTS is '%s'; give a port, or the first and the last of some, "
                         "such as 20000-20100, between 1 and 65535",
                         text);
    *from = (unsigned)first;
    *to = (unsigned)last;
    return COH_OK;
}

/* A host without a network has its loopback still. */
static coh_status choose_addresses(const char *choice, cohi_root *root)
{
    root->count = cohi_os_addresses(choice, root->addresses, COHI_ROOT_ADDRESSES);
    if (root->count == 0 && !*choice)
        root->count = cohi_os_addresses("lo", root->addresses, COHI_ROOT_ADDRESSES);
    if (root->count > 0)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "COHORT_NET_INTERFACE is '%s' (address= in a hostfile sets it too): that is "
                     "neither an interface of this host that is up and has an address, nor a "
                     "subnet that one is in",
                     choice);
}

static coh_status listen_in_range(unsigned from, unsigned to, cohi_root *root,
                                  cohi_listeners *listeners)
{
    int error = EADDRINUSE;
    for (unsigned port = from; port <= to && error == EADDRINUSE; port++) {
        root->port = (uint16_t)port;
        error = cohi_listeners_open(root->addresses, &root->count, &root->port, listeners);
    }
    if (!error)
        return COH_OK;
    if (error == EADDRINUSE)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "rank 0 cannot listen for other hosts: ports %u to %u (COHORT_PORTS) are "
                         "all in use",
                         from, to);
    return cohi_fail_os(error, "rank 0 cannot listen for other hosts");
}

/* Its length, with what is said behind it. */
enum { CHOICE_TEXT = COHI_LISTENERS * (COHI_OS_ADDRESS_TEXT + 2) };

static void log_choice(const cohi_os_address *addresses, int count, unsigned port)
{
    char text[CHOICE_TEXT] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        char one[COHI_OS_ADDRESS_TEXT];
        cohi_os_address_text(&addresses[i], one);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", one);
    }
    cohi_log(COH_LOG_INFO, "init: rank 0 listens for other hosts at %s, port %u", text, port);
}

/* ---- sockets that are kept for rank 0 ---- */

/* A list, since a program may make several ids before it uses one. */
struct kept {
    coh_unique_id id;
    cohi_listeners listeners;
    struct kept *next;
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all_kept;

static coh_status keep(const coh_unique_id *id, cohi_listeners *listeners)
{
    struct kept *made = malloc(sizeof *made);
    if (!made) {
        cohi_listeners_close(listeners);
        return cohi_fail(COH_NO_MEMORY, "coh_unique_id_create: out of memory");
    }
    pthread_mutex_lock(&kept_lock);
    *made = (struct kept){*id, *listeners, all_kept};
    all_kept = made;
    pthread_mutex_unlock(&kept_lock);
    return COH_OK;
}

cohi_listeners cohi_root_claim(const coh_unique_id *id)
{
    cohi_listeners listeners = {.count = 0};
    pthread_mutex_lock(&kept_lock);
    for (struct kept **at = &all_kept; *at; at = &(*at)->next) {
        struct kept *found = *at;
        if (memcmp(&found->id, id, sizeof *id) != 0)
            continue;
        listeners = found->listeners;
        *at = found->next;
        free(found);
        break;
    }
    pthread_mutex_unlock(&kept_lock);
    return listeners;
}

/* ---- listening ---- */

static coh_status listen_for(const cohi_config *config, coh_unique_id *id,
                             cohi_listeners *listeners)
{
    unsigned from, to;
    cohi_id_layout layout;
    cohi_root root = {.count = 0};
    coh_status status = cohi_unique_id_read(id, &layout);
    if (status == COH_OK)
        status = parse_ports(config->ports, &from, &to);
    if (status == COH_OK)
        status = choose_addresses(config->net_interface, &root);
    if (status == COH_OK)
        status = listen_in_range(from, to, &root, listeners);
    if (status != COH_OK)
        return status;
    write_root(&root, &layout);
    cohi_unique_id_write(&layout, id);
    log_choice(root.addresses, root.count, root.port);
    return COH_OK;
}

coh_status cohi_root_listen(const cohi_config *config, coh_unique_id *id, cohi_listeners *listeners)
{
    *listeners = cohi_root_claim(id);
    return listeners->count > 0 ? COH_OK : listen_for(config, id, listeners);
}

/* ---- at a port that the others know ---- */

/* Those of the addresses that are this host's. */
static int own_of(const cohi_os_address *addresses, int count, cohi_os_address *own, int room)
{
    int found = 0;
    for (int i = 0; i < count && found < room; i++)
        if (cohi_root_is_own(&addresses[i], 1))
            own[found++] = addresses[i];
    return found;
}

static coh_status choose_for_port(const cohi_config *config, const cohi_os_address *addresses,
                                  int count, cohi_os_address *chosen, int *chosen_count)
{
    cohi_root root = {.count = 0};
    coh_status status = COH_OK;
    *chosen_count = *config->net_interface ? 0 : own_of(addresses, count, chosen, COHI_LISTENERS);
    if (*chosen_count > 0)
        return COH_OK;
    if (!*config->net_interface)
        *chosen_count = cohi_os_addresses("", chosen, COHI_LISTENERS);
    if (*chosen_count > 0)
        return COH_OK;
    status = choose_addresses(config->net_interface, &root);
    memcpy(chosen, root.addresses, sizeof root.addresses);
    *chosen_count = root.count;
    return status;
}

coh_status cohi_root_listen_at(const cohi_config *config, const cohi_os_address *addresses,
                               int count, unsigned port, cohi_listeners *listeners)
{
    cohi_os_address chosen[COHI_LISTENERS];
    uint16_t at = (uint16_t)port;
    int chosen_count;
    coh_status status = choose_for_port(config, addresses, count, chosen, &chosen_count);
    if (status != COH_OK)
        return status;
    int error = cohi_listeners_open(chosen, &chosen_count, &at, listeners);
    if (error == EADDRINUSE)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "coh_init: rank 0 cannot listen for other hosts: port %u is in use; "
                         "choose another on all ranks by COHORT_PORT",
                         port);
    if (error)
        return cohi_fail_os(error, "coh_init: rank 0 cannot listen for other hosts at port %u",
                            port);
    log_choice(chosen, chosen_count, port);
    return COH_OK;
}

void cohi_root_point(const cohi_os_address *addresses, int count, unsigned port, coh_unique_id *id)
{
    cohi_id_layout layout;
    cohi_root root = {.port = (uint16_t)port,
                      .count = count < COHI_ROOT_ADDRESSES ? count : COHI_ROOT_ADDRESSES};
    memcpy(root.addresses, addresses, (size_t)root.count * sizeof *addresses);
    memcpy(&layout, id->bytes, sizeof layout);
    write_root(&root, &layout);
    cohi_unique_id_write(&layout, id);
}

bool cohi_root_is_own(const cohi_os_address *addresses, int count)
{
    enum { ROOM = 64 };
    cohi_os_address own[ROOM];
    int own_count = cohi_os_addresses("", own, ROOM);
    if (own_count < ROOM)
        own_count += cohi_os_addresses("lo", own + own_count, ROOM - own_count);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < own_count; j++)
            if (memcmp(&addresses[i], &own[j], sizeof own[j]) == 0)
                return true;
    return false;
}

static coh_status create_id(coh_unique_id *id)
{
    cohi_config config;
    coh_unique_id made;
    cohi_listeners listeners;
    if (!id)
        return cohi_fail(COH_INVALID_ARGUMENT, "coh_unique_id_create: id is NULL");
    coh_status status = cohi_unique_id_make(&made);
    if (status == COH_OK)
        status = cohi_config_load(&config);
    bool listens = status == COH_OK && (*config.net_interface || *config.ports);
    if (listens) {
        cohi_log_default((coh_log_level)config.log);
        status = listen_for(&config, &made, &listeners);
    }
    if (listens && status == COH_OK)
        status = keep(&made, &listeners);
    if (status == COH_OK)
        *id = made;
    return status;
}

coh_status coh_unique_id_create(coh_unique_id *id)
{
    int held = cohi_cancel_hold();
    coh_status status = create_id(id);
    cohi_cancel_release(held);
    return status;
}
