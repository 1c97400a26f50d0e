/* info.c - `cohort info`: collects everything as one JSON value, and prints that or a text of it.
 */
#include "info.h"

#include "base/config.h"
#include "base/error.h"
#include "bootstrap/board.h"
#include "command.h"
#include "engine/engine.h"
#include "flags.h"
#include "json_text.h"
#include "secure/tls.h"
#include "table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- collecting ---- */

static json_t *engine_json(int index)
{
    const char *name = coh_engine_name(index);
    char library[256];
    int available = coh_engine_available(name) == COH_OK;
    json_t *row = json_pack("{s:s, s:b, s:s}", "name", name, "available", available, "summary",
                            cohi_engine_summary(index));
    if (available && cohi_engine_library(index, library, sizeof library))
        json_object_set_new(row, "library", cohi_json_text(library));
    json_object_set_new(row, "reason", available ? json_null() : cohi_json_text(coh_last_error()));
    return row;
}

static json_t *engines_json(void)
{
    json_t *list = json_array();
    for (int i = 0; coh_engine_name(i); i++)
        json_array_append_new(list, engine_json(i));
    return list;
}

/* The value as it is in force: an empty variable counts as unset. */
static json_t *knob_json(const cohi_knob *knob)
{
    const char *set = getenv(knob->variable);
    int from_environment = set && *set;
    if (from_environment && knob->type == COHI_KNOB_SECRET)
        set = "(not shown)";
    return json_pack("{s:s, s:o, s:s, s:s, s:s}", "name", knob->variable, "value",
                     cohi_json_text(from_environment ? set : knob->default_text), "origin",
                     from_environment ? "environment" : "default", "default", knob->default_text,
                     "help", knob->help);
}

static json_t *knobs_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; cohi_knob_at(i); i++)
        json_array_append_new(list, knob_json(cohi_knob_at(i)));
    return list;
}

/* How what travels between hosts would be protected, or why nothing could. */
static json_t *network_json(void)
{
    cohi_config config;
    char text[256];
    if (cohi_config_load(&config) != COH_OK || cohi_tls_available() != COH_OK)
        return json_pack("{s:s, s:o}", "between_hosts", "none", "reason",
                         cohi_json_text(coh_last_error()));
    bool clear = config.net == COHI_NET_CLEAR;
    snprintf(text, sizeof text, "%s, behind a handshake of TLS 1.3 by %s",
             cohi_network_text(clear ? COHI_NETWORK_CLEAR : COHI_NETWORK_SEALED),
             cohi_tls_library());
    return json_pack("{s:o}", "between_hosts", cohi_json_text(text));
}

static json_t *problem_json(void)
{
    cohi_config config;
    return cohi_config_load(&config) == COH_OK ? json_null() : cohi_json_text(coh_last_error());
}

static json_t *collect(void)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
                     coh_version_string(), "engines", engines_json(), "devices",
                     cohi_info_devices(), "cards", cohi_info_cards(), "network", network_json(),
                     "launchers", cohi_info_launchers(), "settings", knobs_json(),
                     "settings_problem", problem_json(), "host", cohi_info_host());
}

/* ---- printing ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void set_cell(cohi_table_row *row, int column, const char *text)
{
    snprintf(row->cell[column], COHI_TABLE_CELL_BYTES, "%s", text);
}

/* With the library behind an engine, where it has one; or why it cannot be used. */
static void set_summary(cohi_table_row *row, const json_t *fields, int available)
{
    const char *library = text_of(fields, "library");
    snprintf(row->cell[2], COHI_TABLE_CELL_BYTES, "%s%s%s%s",
             text_of(fields, available ? "summary" : "reason"), *library ? " (" : "", library,
             *library ? ")" : "");
}

/* Engines or devices: what there is, or why there is none. */
static int print_available(const char *title, const json_t *list)
{
    const char *titles[] = {title, "AVAILABLE", "SUMMARY"};
    cohi_table table;
    if (cohi_table_make(&table, titles, 3, json_array_size(list)) != 0)
        return -1;
    for (size_t i = 0; i < table.count; i++) {
        const json_t *row = json_array_get(list, i);
        int available = json_is_true(json_object_get(row, "available"));
        set_cell(&table.rows[i], 0, text_of(row, "name"));
        set_cell(&table.rows[i], 1, available ? "yes" : "no");
        set_summary(&table.rows[i], row, available);
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

static int print_knobs(const json_t *knobs)
{
    static const char *const titles[] = {"SETTING", "VALUE", "ORIGIN", "MEANING"};
    static const char *const fields[] = {"name", "value", "origin", "help"};
    cohi_table table;
    if (cohi_table_make(&table, titles, 4, json_array_size(knobs)) != 0)
        return -1;
    for (size_t i = 0; i < table.count; i++) {
        for (int column = 0; column < 4; column++)
            set_cell(&table.rows[i], column, text_of(json_array_get(knobs, i), fields[column]));
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

void cohi_info_print_fact(const char *name, const json_t *value)
{
    char label[64];
    int is_size = ends_with(name, "_bytes");
    snprintf(label, sizeof label, "%s", name);
    if (is_size)
        label[strlen(label) - strlen("_bytes")] = '\0';
    for (char *at = label; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    double number = (double)json_integer_value(value);
    if (json_is_string(value))
        printf("  %-22s %s\n", label, json_string_value(value));
    else if (json_is_null(value))
        printf("  %-22s unknown\n", label);
    else if (!is_size)
        printf("  %-22s %.0f\n", label, number);
    else if (number < 0x1p20)
        printf("  %-22s %.1f KiB\n", label, number / 0x1p10);
    else if (number < 0x1p30)
        printf("  %-22s %.1f MiB\n", label, number / 0x1p20);
    else
        printf("  %-22s %.1f GiB\n", label, number / 0x1p30);
}

static void print_facts(const char *title, json_t *facts)
{
    const char *name;
    json_t *value;
    printf("\n%s\n", title);
    json_object_foreach(facts, name, value)
    {
        cohi_info_print_fact(name, value);
    }
}

static int print_text(json_t *info)
{
    printf("cohort %s\n\nengines\n", text_of(info, "version"));
    if (print_available("ENGINE", json_object_get(info, "engines")) != 0)
        return 1;
    printf("\ndevices\n");
    if (print_available("DEVICE", json_object_get(info, "devices")) != 0)
        return 1;
    printf("\ncards\n");
    if (cohi_info_print_cards(json_object_get(info, "cards")) != 0)
        return 1;
    print_facts("network", json_object_get(info, "network"));
    printf("\nlaunchers, in the order in which they are looked for\n");
    if (cohi_info_print_launchers(json_object_get(info, "launchers")) != 0)
        return 1;
    printf("\nsettings\n");
    if (print_knobs(json_object_get(info, "settings")) != 0)
        return 1;
    if (*text_of(info, "settings_problem"))
        printf("\n  problem: %s\n", text_of(info, "settings_problem"));
    print_facts("host", json_object_get(info, "host"));
    return 0;
}

static int print_json(const json_t *info)
{
    int failed = json_dumpf(info, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    putchar('\n');
    return failed ? 1 : 0;
}

/* ---- the command ---- */

struct options {
    int as_json;
    int collectives;
    int host;
    int scale_ranks, scale_hosts; /* 0: --scale was not given */
    cohi_info_ranks ranks;
};

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((struct options *)target)->as_json = 1;
    return 0;
}

static int take_collectives(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((struct options *)target)->collectives = 1;
    return 0;
}

static int take_host(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((struct options *)target)->host = 1;
    return 0;
}

static int take_scale(void *target, const char *flag, const char *value)
{
    struct options *options = target;
    return cohi_info_take_scale(flag, value, &options->scale_ranks, &options->scale_hosts);
}

static int take_one(cohi_info_ranks *ranks, const char *flag, const char *text)
{
    enum { ROOM = sizeof ranks->list / sizeof *ranks->list };
    uint64_t count;
    if (ranks->count == ROOM) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: at most %d numbers", flag, ROOM);
        return -1;
    }
    if (cohi_parse_count(flag, text, 1, COHI_RANKS_MAX, &count) != COH_OK)
        return -1;
    ranks->list[ranks->count++] = (int)count;
    return 0;
}

static int take_ranks(void *target, const char *flag, const char *value)
{
    char one[32];
    for (const char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(at, ","), at);
        if (take_one(&((struct options *)target)->ranks, flag, one) != 0)
            return -1;
    }
    return 0;
}

static const cohi_flag_row flags[] = {
    {"json", 0, NULL, "print as JSON", take_json},
    {"collectives", 0, NULL, "show the algorithms of collectives, and which are chosen",
     take_collectives},
    {"host", 0, NULL, "show what was tuned by measuring, each with its value, origin and date",
     take_host},
    {"ranks", 'n', "LIST", "for how many ranks, such as 2,4,8 (2, and one for each core)",
     take_ranks},
    {"scale", 0, "RANKS,HOSTS", "show what a job of that size costs before it does anything",
     take_scale},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort info",
    .synopsis = "[--json] [--collectives [-n LIST] | --host | --scale RANKS,HOSTS]",
    .summary =
        "Shows the version, the engines and devices and whether they can be used here, the cards\n"
        "that heaps can be on, by which launcher's job a program would join that is started from\n"
        "here, every setting with its value and where that comes from, and facts of this host.\n\n"
        "With --collectives shows instead the instructions that reduce, the constants by which\n"
        "algorithms are compared, the algorithms, and which of them is chosen for which size.\n\n"
        "With --host shows instead the CPU, its caches, and the profile: every number that was\n"
        "tuned by measuring, with its value here, where that comes from, and when it was found.\n\n"
        "With --scale shows instead the memory, bytes and sockets that a job of that size costs\n"
        "while it starts, counted from the structures as they are, at most, and the messages of a\n"
        "barrier and an all_reduce between hosts.",
    .flags = flags,
    .notes = NULL,
};

int cohi_tool_info(int argc, char **argv)
{
    struct options options = {0};
    int status;
    if (cohi_flags_only(&usage, argc, argv, &options, &status) != 0)
        return status;
    if (options.ranks.count > 0 && !options.collectives)
        return cohi_flags_refuse(&usage, "--ranks is for --collectives");
    if (options.scale_ranks && (options.host || options.collectives))
        return cohi_flags_refuse(&usage, "--scale is shown alone");
    if (options.host && options.collectives)
        return cohi_flags_refuse(&usage, "--host and --collectives are shown one at a time");
    json_t *info = options.collectives   ? cohi_info_collectives(options.ranks)
                   : options.host        ? cohi_info_profile()
                   : options.scale_ranks ? cohi_info_scale(options.scale_ranks, options.scale_hosts)
                                         : collect();
    if (!info) {
        bool told = options.collectives || options.host;
        fprintf(stderr, "cohort info: %s\n", told ? coh_last_error() : "no memory");
        return 1;
    }
    if (options.as_json)
        status = print_json(info);
    else if (options.host)
        status = cohi_info_print_profile(info);
    else if (options.scale_ranks)
        status = cohi_info_print_scale(info);
    else
        status = options.collectives ? cohi_info_print_collectives(info) : print_text(info);
    json_decref(info);
    return status;
}
