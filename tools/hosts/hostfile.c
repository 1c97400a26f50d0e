#include "hosts/hosts.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any list of hosts; what is longer is the wrong file. */
enum { FILE_BYTES_MAX = 4 << 20 };

static const char blanks[] = " \t\r";

static int is_blank(char c)
{
    return c != '\0' && strchr(blanks, c) != NULL;
}

/* One line, and how far it is read. */
struct line {
    cohi_place place;
    const char *text;
    size_t length, at;
};

/* The next word of the line and its length; NULL at the end of the line. */
static const char *next_word(struct line *line, size_t *length)
{
    while (line->at < line->length && is_blank(line->text[line->at]))
        line->at++;
    size_t start = line->at;
    while (line->at < line->length && !is_blank(line->text[line->at]))
        line->at++;
    *length = line->at - start;
    line->place.column = (int)start + 1;
    return *length > 0 ? line->text + start : NULL;
}

static int is_key(const char *word, size_t length, const char *key)
{
    return strlen(key) == length && memcmp(word, key, length) == 0;
}

/* "slots=4", "address=10.0.0.7" of the host that was added last; `counted`: its slots are known. */
static coh_status take_setting(cohi_hosts *hosts, const struct line *line, const char *word,
                               size_t length, int *counted)
{
    const char *equals = memchr(word, '=', length);
    size_t key = equals ? (size_t)(equals - word) : length;
    cohi_place value = line->place;
    value.column += (int)key + 1;
    if (equals && is_key(word, key, "address"))
        return cohi_hosts_set_address(hosts, &value, equals + 1, length - key - 1);
    if (!equals || !is_key(word, key, "slots"))
        return cohi_hosts_refuse(&line->place,
                                 "after a host there may be slots=NUMBER and address=ADDRESS");
    if ((*counted)++)
        return cohi_hosts_refuse(&line->place, "the number of slots is given twice");
    return cohi_hosts_parse_slots(&value, equals + 1, length - key - 1,
                                  &hosts->list[hosts->count - 1].slots);
}

static coh_status parse_line(cohi_hosts *hosts, struct line *line)
{
    size_t length;
    const char *word = next_word(line, &length);
    if (!word)
        return COH_OK;
    int counted = memchr(word, ':', length) != NULL;
    coh_status status = cohi_hosts_parse_word(hosts, &line->place, word, length);
    while (status == COH_OK && (word = next_word(line, &length)))
        status = take_setting(hosts, line, word, length, &counted);
    return status;
}

static size_t line_length(const char *text, size_t left)
{
    const char *feed = memchr(text, '\n', left);
    return feed ? (size_t)(feed - text) : left;
}

static coh_status parse_lines(const char *name, const char *text, size_t length, cohi_hosts *hosts)
{
    coh_status status = COH_OK;
    int number = 0;
    for (size_t at = 0; at < length && status == COH_OK;) {
        size_t whole = line_length(text + at, length - at);
        const char *comment = memchr(text + at, '#', whole);
        struct line line = {.place = {name, ++number, 1},
                            .text = text + at,
                            .length = comment ? (size_t)(comment - text) - at : whole};
        status = parse_line(hosts, &line);
        at += whole + 1;
    }
    return status;
}

static int is_json(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && (is_blank(text[at]) || text[at] == '\n'))
        at++;
    return at < length && (text[at] == '[' || text[at] == '{');
}

coh_status cohi_hosts_parse_file(const char *name, const char *text, size_t length,
                                 cohi_hosts *hosts)
{
    *hosts = (cohi_hosts){NULL, 0};
    coh_status status = is_json(text, length) ? cohi_hosts_parse_json(name, text, length, hosts)
                                              : parse_lines(name, text, length, hosts);
    if (status == COH_OK && hosts->count == 0)
        status = cohi_fail(COH_INVALID_ARGUMENT, "%s: it names no host", name);
    if (status != COH_OK)
        cohi_hosts_free(hosts);
    return status;
}

static coh_status read_stream(const char *path, FILE *stream, cohi_hosts *hosts)
{
    char *text = malloc(FILE_BYTES_MAX + 1);
    if (!text)
        return cohi_fail(COH_NO_MEMORY, "%s: no memory to read it", path);
    errno = 0;
    size_t length = fread(text, 1, FILE_BYTES_MAX + 1, stream);
    coh_status status;
    if (ferror(stream))
        status = cohi_fail_os(errno, "cannot read %s", path);
    else if (length > FILE_BYTES_MAX)
        status = cohi_fail(COH_INVALID_ARGUMENT, "%s: it is longer than a hostfile can be, %d MiB",
                           path, FILE_BYTES_MAX >> 20);
    else
        status = cohi_hosts_parse_file(path, text, length, hosts);
    free(text);
    return status;
}

coh_status cohi_hosts_read_file(const char *path, cohi_hosts *hosts)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return cohi_fail_os(errno, "cannot read %s", path);
    coh_status status = read_stream(path, stream, hosts);
    fclose(stream);
    return status;
}
