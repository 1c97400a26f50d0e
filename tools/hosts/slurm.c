/* slurm.c - the hosts of a Slurm allocation, as its variables write them. */
#include "hosts/hosts.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const cohi_place nodes_place = {.what = "SLURM_JOB_NODELIST"};
static const cohi_place tasks_place = {.what = "SLURM_TASKS_PER_NODE"};

static coh_status refuse_nodes(const char *why)
{
    return cohi_hosts_refuse(&nodes_place, "%s", why);
}

/* A number of at most nine digits. */
static const char *read_number(const char *at, const char *end, int *value, int *width)
{
    const char *start = at;
    *value = 0;
    while (at < end && isdigit((unsigned char)*at) && at - start < 9)
        *value = 10 * *value + (*at++ - '0');
    *width = (int)(at - start);
    return at;
}

/* A part of a name that was expanded. */
struct stem {
    char text[COHI_HOST_BYTES];
    size_t length;
};

static coh_status append(struct stem *stem, const char *text, size_t length)
{
    if (length >= sizeof stem->text - stem->length)
        return refuse_nodes("a name is longer than a host's can be");
    memcpy(stem->text + stem->length, text, length);
    stem->length += length;
    return COH_OK;
}

static coh_status expand(cohi_hosts *hosts, struct stem stem, const char *rest, const char *end);

/* "1-3" or "07" of a bracket: each of them, and then the rest of the name after the bracket. */
static coh_status expand_range(cohi_hosts *hosts, const struct stem *stem, const char **at,
                               const char *close, const char *end)
{
    int first, last, width, other;
    const char *next = read_number(*at, close, &first, &width);
    last = first;
    if (width > 0 && next < close && *next == '-') {
        next = read_number(next + 1, close, &last, &other);
        width = other == 0 ? 0 : width;
    }
    if (width == 0 || last < first || (next < close && *next != ','))
        return refuse_nodes("a bracket holds no numbers such as [1-3,7]");
    *at = next < close ? next + 1 : close;
    coh_status status = COH_OK;
    for (int number = first; number <= last && status == COH_OK; number++) {
        char digits[16];
        int count = snprintf(digits, sizeof digits, "%0*d", width, number);
        struct stem longer = *stem;
        status = append(&longer, digits, (size_t)count);
        if (status == COH_OK)
            status = expand(hosts, longer, close + 1, end);
    }
    return status;
}

/* The stem and what follows it, in which there may be brackets. */
static coh_status expand(cohi_hosts *hosts, struct stem stem, const char *rest, const char *end)
{
    const char *open = memchr(rest, '[', (size_t)(end - rest));
    coh_status status = append(&stem, rest, (size_t)((open ? open : end) - rest));
    if (status != COH_OK || !open)
        return status != COH_OK ? status
                                : cohi_hosts_add(hosts, &nodes_place, stem.text, stem.length, 1);
    const char *close = memchr(open, ']', (size_t)(end - open)), *at = open + 1;
    if (!close || close == at)
        return refuse_nodes("a bracket has no end, or nothing in it");
    while (at < close && status == COH_OK)
        status = expand_range(hosts, &stem, &at, close, end);
    return status;
}

/* The end of a name: the first comma that is in no bracket. */
static const char *end_of_name(const char *text)
{
    int inside = 0;
    while (*text && (inside || *text != ',')) {
        inside = *text == '[' ? 1 : *text == ']' ? 0 : inside;
        text++;
    }
    return text;
}

static coh_status take_nodes(cohi_hosts *hosts, const char *nodes)
{
    coh_status status = COH_OK;
    for (const char *name = nodes; name && status == COH_OK;) {
        const char *end = end_of_name(name);
        status = expand(hosts, (struct stem){.length = 0}, name, end);
        name = *end ? end + 1 : NULL;
    }
    return status;
}

/* One group, "4" or "4(x3)"; *at moves behind it. */
static coh_status read_group(const char **at, int *slots, int *times)
{
    const char *end = *at + strcspn(*at, ",");
    size_t digits = strspn(*at, "0123456789");
    int width = 1;
    coh_status status = cohi_hosts_parse_slots(&tasks_place, *at, digits, slots);
    const char *next = *at + digits;
    *times = 1;
    if (status == COH_OK && end - next > 3 && next[0] == '(' && next[1] == 'x') {
        next = read_number(next + 2, end, times, &width);
        next = next + 1 == end && *next == ')' ? end : *at;
    }
    if (status == COH_OK && (next != end || width == 0))
        status = cohi_hosts_refuse(&tasks_place, "it is not written as 4(x3),2");
    *at = *end ? end + 1 : end;
    return status;
}

static coh_status take_tasks(cohi_hosts *hosts, const char *tasks)
{
    coh_status status = COH_OK;
    int host = 0, slots, times;
    while (*tasks && status == COH_OK) {
        status = read_group(&tasks, &slots, &times);
        for (; status == COH_OK && times > 0 && host < hosts->count; times--)
            hosts->list[host++].slots = slots;
    }
    if (status == COH_OK && host < hosts->count)
        status = cohi_hosts_refuse(&tasks_place, "it speaks of %d hosts, the allocation has %d",
                                   host, hosts->count);
    return status;
}

coh_status cohi_hosts_parse_slurm(const char *nodes, const char *tasks, cohi_hosts *hosts)
{
    *hosts = (cohi_hosts){NULL, 0};
    coh_status status = take_nodes(hosts, nodes);
    if (status == COH_OK && tasks && *tasks)
        status = take_tasks(hosts, tasks);
    if (status != COH_OK)
        cohi_hosts_free(hosts);
    return status;
}
