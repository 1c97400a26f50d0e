/* json.c - hostfiles of MLX: [{"ssh": "b", "ips": ["10.0.0.2"]}, ...] or [["10.0.0.2:5000"], ...]. An entry is
 * a rank there, so a host that is listed again has a slot more. */
#include "hosts/hosts.h"

#include "base/error.h"

#include <jansson.h>
#include <string.h>

/* jansson tells no place of a value that is well-formed: entries are counted. */
struct entry {
    cohi_place place;
    const char *name;
    int index;
};

static coh_status refuse(const struct entry *entry, const char *why)
{
    return cohi_fail(COH_INVALID_ARGUMENT, "%s: entry %d: %s", entry->name, entry->index, why);
}

static coh_status add(cohi_hosts *hosts, const struct entry *entry, const char *name, size_t length)
{
    cohi_host_entry *known = cohi_hosts_find(hosts, name, length);
    if (!known)
        return cohi_hosts_add(hosts, &entry->place, name, length, 1);
    if (known->slots == COHI_RANKS_MAX)
        return refuse(entry, "the host is listed too often");
    known->slots++;
    return COH_OK;
}

/* The port is the ring's, which Cohort has no use for. */
static size_t without_port(const char *address)
{
    const char *last = strrchr(address, ':');
    return last && strchr(address, ':') == last ? (size_t)(last - address) : strlen(address);
}

static coh_status take_host(cohi_hosts *hosts, const struct entry *entry, json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "ssh"));
    json_t *ips = json_object_get(value, "ips");
    const char *address = json_string_value(json_array_get(ips, 0));
    if (!name)
        return refuse(entry, "it has no \"ssh\" that is a text");
    if (json_array_size(ips) > 0 && !address)
        return refuse(entry, "its \"ips\" are no texts");
    int before = hosts->count;
    coh_status status = add(hosts, entry, name, strlen(name));
    if (status != COH_OK || !address || hosts->count == before)
        return status;
    return cohi_hosts_set_address(hosts, &entry->place, address, without_port(address));
}

static coh_status take_addresses(cohi_hosts *hosts, const struct entry *entry, json_t *value)
{
    const char *address = json_string_value(json_array_get(value, 0));
    if (!address)
        return refuse(entry, "it is no list of addresses");
    int before = hosts->count;
    size_t length = without_port(address);
    coh_status status = add(hosts, entry, address, length);
    if (status != COH_OK || hosts->count == before)
        return status;
    return cohi_hosts_set_address(hosts, &entry->place, address, length);
}

static coh_status take_entry(cohi_hosts *hosts, const char *name, int index, json_t *value)
{
    char what[300];
    snprintf(what, sizeof what, "%.255s: entry %d", name, index);
    struct entry entry = {.place = {.what = what}, .name = name, .index = index};
    if (json_is_object(value))
        return take_host(hosts, &entry, value);
    if (json_is_array(value))
        return take_addresses(hosts, &entry, value);
    return refuse(&entry, "it is neither {\"ssh\": ...} nor a list of addresses");
}

coh_status cohi_hosts_parse_json(const char *name, const char *text, size_t length,
                                 cohi_hosts *hosts)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, 0, &error), *value;
    coh_status status = COH_OK;
    size_t index;
    if (!root) {
        cohi_place place = {name, error.line > 0 ? error.line : 1, error.column};
        return cohi_hosts_refuse(&place, "%s", error.text);
    }
    if (!json_is_array(root))
        status = cohi_fail(COH_INVALID_ARGUMENT, "%s: it is JSON, but no list of hosts", name);
    json_array_foreach(root, index, value)
    {
        status = take_entry(hosts, name, (int)index + 1, value);
        if (status != COH_OK)
            break;
    }
    json_decref(root);
    return status;
}
