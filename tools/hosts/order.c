#include "hosts/order.h"

#include "base/error.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cohi_order_first(const cohi_order *order)
{
    return order->hosts[order->here].first;
}

int cohi_order_count(const cohi_order *order)
{
    int next = order->here + 1;
    int end = next < order->host_count ? order->hosts[next].first : order->size;
    return end - cohi_order_first(order);
}

/* ---- writing ---- */

static void write_texts(FILE *stream, const char *key, char *const *texts)
{
    for (; *texts; texts++)
        fprintf(stream, "%s=%s%c", key, *texts, 0);
}

coh_status cohi_order_write(const cohi_order *order, char **text, size_t *length)
{
    FILE *stream = open_memstream(text, length);
    if (!stream)
        return cohi_fail(COH_NO_MEMORY, "no memory to describe the job");
    fprintf(stream, "job=%" PRIu64 "%c", order->job, 0);
    fprintf(stream, "size=%d%c", order->size, 0);
    fprintf(stream, "here=%d%c", order->here, 0);
    fprintf(stream, "bind=%d%c", order->bind, 0);
    fprintf(stream, "input=%d%c", order->input_fd, 0);
    fprintf(stream, "folder=%s%c", order->folder, 0);
    for (int i = 0; i < order->host_count; i++)
        fprintf(stream, "host=%d %s%c", order->hosts[i].first, order->hosts[i].name, 0);
    write_texts(stream, "argument", order->command);
    write_texts(stream, "variable", order->environment);
    if (fclose(stream) == 0)
        return COH_OK;
    free(*text);
    return cohi_fail(COH_NO_MEMORY, "no memory to describe the job");
}

/* ---- reading ---- */

static int read_number(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return -1;
    *value = strtoull(text, &end, 10);
    return *end || *value > most ? -1 : 0;
}

static int read_int(const char *text, int most, int *value)
{
    uint64_t number;
    if (read_number(text, (uint64_t)most, &number) != 0)
        return -1;
    *value = (int)number;
    return 0;
}

static int take_job(cohi_order *order, char *value)
{
    return read_number(value, UINT64_MAX, &order->job);
}

static int take_size(cohi_order *order, char *value)
{
    return read_int(value, COHI_RANKS_MAX, &order->size);
}

static int take_here(cohi_order *order, char *value)
{
    return read_int(value, COHI_RANKS_MAX - 1, &order->here);
}

static int take_bind(cohi_order *order, char *value)
{
    return read_int(value, COHI_BIND_MACHINE, &order->bind);
}

static int take_input(cohi_order *order, char *value)
{
    return strcmp(value, "-1") == 0 ? 0 : read_int(value, INT_MAX, &order->input_fd);
}

static int take_folder(cohi_order *order, char *value)
{
    order->folder = value;
    return 0;
}

/* "4 b" */
static int take_host(cohi_order *order, char *value)
{
    char *blank = strchr(value, ' ');
    cohi_order_host *host = &order->hosts[order->host_count];
    if (!blank || order->host_count == COHI_RANKS_MAX || strlen(blank + 1) >= sizeof host->name)
        return -1;
    *blank = '\0';
    strcpy(host->name, blank + 1);
    order->host_count++;
    return read_int(value, COHI_RANKS_MAX - 1, &host->first);
}

static int take_argument(cohi_order *order, char *value)
{
    order->command[order->argument_count++] = value;
    return 0;
}

static int take_variable(cohi_order *order, char *value)
{
    order->environment[order->variable_count++] = value;
    return strchr(value, '=') && *value != '=' ? 0 : -1;
}

static const struct {
    const char *key;
    int (*take)(cohi_order *order, char *value);
} keys[] = {
    {"job", take_job},   {"size", take_size},         {"here", take_here},
    {"bind", take_bind}, {"input", take_input},       {"folder", take_folder},
    {"host", take_host}, {"argument", take_argument}, {"variable", take_variable},
};

static int take_text(cohi_order *order, char *text)
{
    char *equals = strchr(text, '=');
    for (size_t i = 0; equals && i < sizeof keys / sizeof *keys; i++) {
        size_t length = strlen(keys[i].key);
        if ((size_t)(equals - text) == length && memcmp(text, keys[i].key, length) == 0)
            return keys[i].take(order, equals + 1);
    }
    return -1;
}

/* Hosts in ascending order of ranks, from rank 0 on, each with one at least. */
static int hosts_are_sound(const cohi_order *order)
{
    if (order->host_count == 0 || order->hosts[0].first != 0 || order->here >= order->host_count)
        return 0;
    for (int i = 1; i < order->host_count; i++) {
        if (order->hosts[i].first <= order->hosts[i - 1].first)
            return 0;
    }
    return order->hosts[order->host_count - 1].first < order->size;
}

static int make_lists(cohi_order *order, const char *text, size_t length)
{
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += text[i] == '\0';
    order->text = malloc(length + 1);
    order->hosts = calloc(COHI_RANKS_MAX, sizeof *order->hosts);
    order->command = calloc(count + 1, sizeof *order->command);
    order->environment = calloc(count + 1, sizeof *order->environment);
    if (!order->text || !order->hosts || !order->command || !order->environment)
        return -1;
    memcpy(order->text, text, length);
    order->text[length] = '\0';
    return 0;
}

static int take_texts(cohi_order *order, size_t length)
{
    for (char *at = order->text, *next; at < order->text + length; at = next) {
        next = at + strlen(at) + 1; /* before it is cut */
        if (take_text(order, at) != 0)
            return -1;
    }
    return order->argument_count > 0 && hosts_are_sound(order) ? 0 : -1;
}

coh_status cohi_order_read(const char *text, size_t length, cohi_order *order)
{
    *order = (cohi_order){.input_fd = -1, .folder = ""};
    coh_status status = COH_OK;
    if (make_lists(order, text, length) != 0)
        status = cohi_fail(COH_NO_MEMORY, "no memory for the description of the job");
    else if (take_texts(order, length) != 0)
        status = cohi_fail(COH_INVALID_ARGUMENT, "the description of the job makes no sense");
    if (status != COH_OK)
        cohi_order_free(order);
    return status;
}

void cohi_order_free(cohi_order *order)
{
    free(order->text);
    free(order->hosts);
    free(order->command);
    free(order->environment);
    *order = (cohi_order){.input_fd = -1, .folder = ""};
}
