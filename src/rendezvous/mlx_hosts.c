#include "rendezvous/mlx_hosts.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is left of the text. A step that finds something else than it expects makes it NULL. */
struct cursor {
    const char *at;
};

static void skip_blanks(struct cursor *cursor)
{
    cursor->at += strspn(cursor->at, " \t\r\n");
}

/* Whether the next character is that one, which is then read. */
static bool take(struct cursor *cursor, char expected)
{
    if (!cursor->at)
        return false;
    skip_blanks(cursor);
    if (*cursor->at != expected)
        return false;
    cursor->at++;
    return true;
}

static void expect(struct cursor *cursor, char expected)
{
    if (!take(cursor, expected))
        cursor->at = NULL;
}

/* "address:port" in quotes. Escapes do not occur in one. */
struct entry {
    const char *address;
    size_t length;
    long port;
};

static bool take_entry(struct cursor *cursor, struct entry *entry)
{
    expect(cursor, '"');
    if (!cursor->at)
        return false;
    size_t length = strcspn(cursor->at, "\"\\\n");
    const char *start = cursor->at, *colon = NULL;
    for (size_t i = 0; i < length; i++)
        colon = start[i] == ':' ? start + i : colon;
    cursor->at = start[length] == '"' && colon && colon > start ? start + length + 1 : NULL;
    if (!cursor->at)
        return false;
    size_t digits = strspn(colon + 1, "0123456789");
    entry->address = start;
    entry->length = (size_t)(colon - start);
    entry->port = digits > 0 && digits < 6 ? strtol(colon + 1, NULL, 10) : 0;
    if (entry->port < 1 || entry->port > UINT16_MAX || colon + 1 + digits != start + length)
        cursor->at = NULL;
    return cursor->at != NULL;
}

static void note(cohi_mlx_hosts *hosts, const struct entry *entry)
{
    if (!*hosts->address && entry->length < sizeof hosts->address) {
        memcpy(hosts->address, entry->address, entry->length);
        hosts->address[entry->length] = '\0';
    }
    if (strlen(hosts->address) == entry->length
        && memcmp(hosts->address, entry->address, entry->length) == 0 && entry->port > hosts->port)
        hosts->port = (int)entry->port;
}

static void take_rank(struct cursor *cursor, cohi_mlx_hosts *hosts)
{
    struct entry entry;
    expect(cursor, '[');
    do {
        if (take_entry(cursor, &entry))
            note(hosts, &entry);
    } while (take(cursor, ','));
    expect(cursor, ']');
    hosts->ranks++;
}

bool cohi_mlx_hosts_parse(const char *text, cohi_mlx_hosts *hosts)
{
    struct cursor cursor = {text};
    *hosts = (cohi_mlx_hosts){.ranks = 0};
    expect(&cursor, '[');
    do {
        take_rank(&cursor, hosts);
    } while (take(&cursor, ',') && hosts->ranks < INT_MAX);
    expect(&cursor, ']');
    if (cursor.at)
        skip_blanks(&cursor);
    return cursor.at && !*cursor.at && *hosts->address;
}
