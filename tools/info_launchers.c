/* info_launchers.c - by which launcher's job coh_init would join from here, and why not by another's. */
#include "info.h"

#include "base/config.h"
#include "json_text.h"
#include "start/provider.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

static json_t *row_json(const cohi_provider *provider, const cohi_provider *used,
                        const cohi_config *config)
{
    char found[COHI_WHY_BYTES], reason[256], why[COHI_WHY_BYTES + 384] = "";
    cohi_presence presence = provider->look(config, found);
    int length = snprintf(why, sizeof why, "%s", found);
    char *end = why + length;
    size_t room = sizeof why - (size_t)length;
    if (presence == COHI_ALONE)
        length = snprintf(end, room, "; it started one process");
    else if (presence == COHI_PRESENT && provider != used)
        length = snprintf(end, room, "; %s goes first", used ? used->name : "nothing");
    else
        length = 0;
    if (provider->usable && !provider->usable(reason, sizeof reason))
        snprintf(end + length, room - (size_t)length, "; it could not be used: %s", reason);
    return json_pack("{s:s, s:b, s:o}", "name", provider->name, "used", provider == used, "why",
                     cohi_json_text(why));
}

json_t *cohi_info_launchers(void)
{
    cohi_config config;
    const cohi_provider *provider;
    json_t *list = json_array();
    if (cohi_config_load(&config) != COH_OK)
        return list; /* what is wrong is shown as the problem of the settings */
    const cohi_provider *used = cohi_provider_find(&config);
    for (int i = 0; (provider = cohi_provider_at(i)); i++)
        json_array_append_new(list, row_json(provider, used, &config));
    return list;
}

int cohi_info_print_launchers(const json_t *list)
{
    static const char *const titles[] = {"LAUNCHER", "USED", "WHY"};
    cohi_table table;
    bool any = false;
    if (cohi_table_make(&table, titles, 3, json_array_size(list)) != 0)
        return -1;
    for (size_t i = 0; i < table.count; i++) {
        const json_t *row = json_array_get(list, i);
        bool used = json_is_true(json_object_get(row, "used"));
        const char *cells[3] = {json_string_value(json_object_get(row, "name")),
                                used ? "yes" : "no",
                                json_string_value(json_object_get(row, "why"))};
        for (int column = 0; column < 3; column++)
            snprintf(table.rows[i].cell[column], COHI_TABLE_CELL_BYTES, "%s",
                     cells[column] ? cells[column] : "");
        any = any || used;
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    if (!any)
        printf("  none: a program that is started like this is a world of one\n");
    return 0;
}
