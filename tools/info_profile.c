/* info_profile.c - `cohort info --host`: what is known of this host, and every row of its profile. */
#include "info.h"

#include "base/config.h"
#include "json_text.h"
#include "memory/host_profile.h"
#include "table.h"

#include <string.h>
#include <time.h>

/* ---- collecting ---- */

static json_t *facts_json(const cohi_host_facts *facts)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:i}", "cpu", facts->cpu, "kernel",
                     facts->kernel, "cores", facts->cores, "level1_bytes",
                     (json_int_t)facts->level1, "level2_bytes", (json_int_t)facts->level2,
                     "level3_bytes", (json_int_t)facts->level3, "level3_cores",
                     facts->level3_cores);
}

static json_t *value_json(unsigned row, double value)
{
    char text[32];
    cohi_row_text(row, value, text, sizeof text);
    return cohi_row_is_form(row) ? json_string(text) : json_real(value);
}

/* Of a row that was seen but is not in force, what was seen is told beside the value. */
static json_t *row_json(const cohi_host_profile *host, unsigned row)
{
    const cohi_row_info *info = cohi_row_at(row);
    const cohi_finding *finding = &host->findings[row];
    bool waits = finding->origin == COHI_ORIGIN_SEEN || finding->origin == COHI_ORIGIN_UNSTEADY;
    return json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:i, s:s}", "name", info->name, "value",
                     value_json(row, host->profile.value[row]), "unit", info->unit, "origin",
                     cohi_origin_word(finding->origin), "seen",
                     waits ? value_json(row, finding->value) : json_null(), "when",
                     finding->when ? json_integer((json_int_t)finding->when) : json_null(), "tries",
                     finding->tries, "meaning", info->what);
}

json_t *cohi_info_profile(void)
{
    static cohi_host_profile host;
    cohi_config config;
    if (cohi_config_load(&config) != COH_OK)
        return NULL;
    cohi_host_profile_read(config.profile, &host);
    json_t *rows = json_array();
    for (unsigned row = 0; row < COHI_ROWS; row++)
        json_array_append_new(rows, row_json(&host, row));
    return json_pack("{s:o, s:o, s:b, s:o, s:o}", "host", facts_json(cohi_host()), "file",
                     *host.path ? cohi_json_text(host.path) : json_null(), "file_found", host.found,
                     "warning", *host.warning ? cohi_json_text(host.warning) : json_null(), "rows",
                     rows);
}

/* ---- printing ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void print_value(const json_t *value, char *text, size_t room)
{
    if (json_is_string(value))
        snprintf(text, room, "%s", json_string_value(value));
    else
        snprintf(text, room, "%.10g", json_real_value(value));
}

static void print_when(const json_t *when, char *text, size_t room)
{
    time_t seconds = (time_t)json_integer_value(when);
    struct tm at;
    snprintf(text, room, "-");
    if (json_is_integer(when) && localtime_r(&seconds, &at))
        strftime(text, room, "%Y-%m-%d %H:%M", &at);
}

static int print_rows(const json_t *rows)
{
    static const char *const titles[] = {"ROW", "VALUE", "UNIT", "ORIGIN", "WHEN", "MEANING"};
    enum { COLUMNS = sizeof titles / sizeof *titles };
    cohi_table table;
    if (cohi_table_make(&table, titles, COLUMNS, json_array_size(rows)) != 0)
        return 1;
    for (size_t i = 0; i < table.count; i++) {
        const json_t *row = json_array_get(rows, i);
        char(*cell)[COHI_TABLE_CELL_BYTES] = table.rows[i].cell;
        snprintf(cell[0], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "name"));
        print_value(json_object_get(row, "value"), cell[1], COHI_TABLE_CELL_BYTES);
        snprintf(cell[2], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "unit"));
        snprintf(cell[3], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "origin"));
        print_when(json_object_get(row, "when"), cell[4], COHI_TABLE_CELL_BYTES);
        snprintf(cell[5], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "meaning"));
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

int cohi_info_print_profile(const json_t *info)
{
    const json_t *host = json_object_get(info, "host");
    const char *name, *file = text_of(info, "file");
    json_t *value;
    printf("host\n");
    json_object_foreach((json_t *)host, name, value)
    {
        cohi_info_print_fact(name, value);
    }
    printf("\nprofile, %s%s%s\n", *file ? "kept in " : "as described", file,
           !*file || json_is_true(json_object_get(info, "file_found"))
               ? ""
               : " (which is not there yet)");
    if (*text_of(info, "warning"))
        printf("  warning: %s\n", text_of(info, "warning"));
    return print_rows(json_object_get(info, "rows"));
}
