#include "hosts/hosts.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cohi_hosts_free(cohi_hosts *hosts)
{
    free(hosts->list);
    *hosts = (cohi_hosts){NULL, 0};
}

coh_status cohi_hosts_refuse(const cohi_place *place, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (place->line == 0)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %s", place->what, text);
    return cohi_fail(COH_INVALID_ARGUMENT, "%s:%d:%d: %s", place->what, place->line, place->column,
                     text);
}

/* ---- names ---- */

/* What a message shows of a word: its beginning, with '?' for what a terminal might obey. */
static const char *shown(const char *word, size_t length, char text[64])
{
    size_t count = length < 60 ? length : 60;
    for (size_t i = 0; i < count; i++)
        text[i] = isprint((unsigned char)word[i]) ? word[i] : '?';
    strcpy(text + count, length > count ? "..." : "");
    return text;
}

static int is_name_character(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._-@:%", c));
}

/* A name is an argument of ssh, and a part of one after '@': neither may be taken for an option. `what` it is: "the name",
 * "the address". */
static coh_status check_name(const cohi_place *place, const char *what, const char *name,
                             size_t length)
{
    char text[64];
    if (length == 0)
        return cohi_hosts_refuse(place, "%s of a host is empty", what);
    if (length >= COHI_HOST_BYTES)
        return cohi_hosts_refuse(place, "%s '%s' has %zu characters; %d are the most", what,
                                 shown(name, length, text), length, COHI_HOST_BYTES - 1);
    const char *at = memchr(name, '@', length);
    size_t host = at ? (size_t)(at - name) + 1 : 0;
    if (name[0] == '-' || name[0] == '@' || host == length || name[host] == '-')
        return cohi_hosts_refuse(place, "'%s' cannot be %s of a host", shown(name, length, text),
                                 what);
    for (size_t i = 0; i < length; i++) {
        if (!is_name_character(name[i]))
            return cohi_hosts_refuse(place,
                                     "%s '%s' has a character that is no letter, digit or one "
                                     "of . _ - @ : %%",
                                     what, shown(name, length, text));
    }
    return COH_OK;
}

cohi_host_entry *cohi_hosts_find(const cohi_hosts *hosts, const char *name, size_t length)
{
    for (int i = 0; i < hosts->count; i++) {
        if (strlen(hosts->list[i].name) == length && memcmp(hosts->list[i].name, name, length) == 0)
            return &hosts->list[i];
    }
    return NULL;
}

static coh_status make_room(cohi_hosts *hosts, const cohi_place *place)
{
    if (hosts->count == COHI_HOSTS_MAX)
        return cohi_hosts_refuse(place, "there are more than %d hosts", COHI_HOSTS_MAX);
    if (hosts->count & (hosts->count - 1)) /* the room is a power of two */
        return COH_OK;
    size_t room = hosts->count ? 2 * (size_t)hosts->count : 1;
    cohi_host_entry *list = realloc(hosts->list, room * sizeof *list);
    if (!list)
        return cohi_fail(COH_NO_MEMORY, "%s: no memory for %zu hosts", place->what, room);
    hosts->list = list;
    return COH_OK;
}

coh_status cohi_hosts_add(cohi_hosts *hosts, const cohi_place *place, const char *name,
                          size_t length, int slots)
{
    char text[64];
    coh_status status = check_name(place, "the name", name, length);
    if (status == COH_OK && cohi_hosts_find(hosts, name, length))
        status =
            cohi_hosts_refuse(place, "host '%s' is there twice; give it once, with all its slots",
                              shown(name, length, text));
    if (status == COH_OK)
        status = make_room(hosts, place);
    if (status != COH_OK)
        return status;
    cohi_host_entry *host = &hosts->list[hosts->count++];
    *host = (cohi_host_entry){.slots = slots};
    memcpy(host->name, name, length);
    return COH_OK;
}

coh_status cohi_hosts_set_address(cohi_hosts *hosts, const cohi_place *place, const char *address,
                                  size_t length)
{
    coh_status status = check_name(place, "the address", address, length);
    if (status != COH_OK)
        return status;
    cohi_host_entry *host = &hosts->list[hosts->count - 1];
    memcpy(host->address, address, length);
    host->address[length] = '\0';
    return COH_OK;
}

const char *cohi_host_label(const cohi_host_entry *host)
{
    const char *at = strchr(host->name, '@');
    return at ? at + 1 : host->name;
}

/* ---- words ---- */

coh_status cohi_hosts_parse_slots(const cohi_place *place, const char *text, size_t length,
                                  int *slots)
{
    char word[64];
    int value = 0;
    size_t at = 0;
    while (at < length && isdigit((unsigned char)text[at]) && value <= COHI_RANKS_MAX)
        value = 10 * value + (text[at++] - '0');
    if (length == 0 || at < length || value > COHI_RANKS_MAX)
        return cohi_hosts_refuse(place, "'%s' is no number of slots from 1 to %d",
                                 shown(text, length, word), COHI_RANKS_MAX);
    if (value == 0)
        return cohi_hosts_refuse(place, "a host with 0 slots takes no rank; leave it out");
    *slots = value;
    return COH_OK;
}

coh_status cohi_hosts_parse_word(cohi_hosts *hosts, const cohi_place *place, const char *text,
                                 size_t length)
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    int slots = 1;
    cohi_place number = *place;
    number.column += (int)name + 1;
    coh_status status = COH_OK;
    if (colon)
        status = cohi_hosts_parse_slots(&number, colon + 1, length - name - 1, &slots);
    return status == COH_OK ? cohi_hosts_add(hosts, place, text, name, slots) : status;
}

coh_status cohi_hosts_parse_list(const char *what, const char *text, cohi_hosts *hosts)
{
    cohi_place place = {.what = what};
    coh_status status = COH_OK;
    *hosts = (cohi_hosts){NULL, 0};
    for (const char *word = text; word && status == COH_OK;) {
        size_t length = strcspn(word, ",");
        status = cohi_hosts_parse_word(hosts, &place, word, length);
        word = word[length] ? word + length + 1 : NULL;
    }
    if (status != COH_OK)
        cohi_hosts_free(hosts);
    return status;
}

/* ---- ranks on hosts ---- */

int cohi_hosts_slots(const cohi_hosts *hosts)
{
    int slots = 0;
    for (int i = 0; i < hosts->count; i++)
        slots += hosts->list[i].slots;
    return slots;
}

/* The first rank that is not on the hosts before, which have `slots` of `all` together. */
static int first_after(int slots, int all, int ranks)
{
    if (ranks <= all)
        return slots < ranks ? slots : ranks;
    return (int)((int64_t)ranks * slots / all);
}

static void drop_idle(cohi_hosts *hosts)
{
    int used = 0;
    for (int i = 0; i < hosts->count; i++) {
        if (hosts->list[i].ranks > 0)
            hosts->list[used++] = hosts->list[i];
    }
    hosts->count = used;
}

coh_status cohi_hosts_place(cohi_hosts *hosts, int ranks, int oversubscribe)
{
    int all = cohi_hosts_slots(hosts), before = 0;
    if (ranks > all && !oversubscribe)
        return cohi_fail(
            COH_INVALID_ARGUMENT,
            "%d ranks do not fit into %d slot%s of %d host%s; give hosts more slots, or "
            "--oversubscribe",
            ranks, all, all == 1 ? "" : "s", hosts->count, hosts->count == 1 ? "" : "s");
    for (int i = 0; i < hosts->count; i++) {
        cohi_host_entry *host = &hosts->list[i];
        host->first = first_after(before, all, ranks);
        before += host->slots;
        host->ranks = first_after(before, all, ranks) - host->first;
    }
    drop_idle(hosts);
    return COH_OK;
}
