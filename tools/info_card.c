#include "info.h"

#include "card.h"
#include "json_text.h"
#include "table.h"

#include <cohort-cuda.h>
#include <stdio.h>

/* The numbers of the cards whose memory kernels of this one can reach: "1, 3". */
static json_t *reached_json(const cohi_card_driver *driver, int device, int count)
{
    json_t *list = json_array();
    for (int peer = 0; driver && peer < count; peer++) {
        int reaches = 0;
        if (peer != device && driver->reaches(&reaches, device, peer) == 0 && reaches)
            json_array_append_new(list, json_integer(peer));
    }
    return list;
}

static json_t *card_json(const cohi_card_driver *driver, int device, int count)
{
    coh_cuda_card card = {.size = sizeof card};
    if (coh_cuda_query(device, &card) != COH_OK)
        return json_pack("{s:i, s:o}", "card", device, "reason", cohi_json_text(coh_last_error()));
    return json_pack("{s:i, s:o, s:o, s:i, s:I, s:o, s:b, s:o}", "card", device, "name",
                     cohi_json_text(card.name), "capability",
                     json_sprintf("%d.%d", card.major, card.minor), "multiprocessors",
                     card.multiprocessors, "memory_bytes", (json_int_t)card.memory, "driver",
                     json_sprintf("%d.%d", card.driver / 1000, card.driver % 1000 / 10), "mps",
                     card.mps != 0, "reaches", reached_json(driver, device, count));
}

json_t *cohi_info_cards(void)
{
    int count = 0;
    if (coh_cuda_count(&count) != COH_OK)
        return json_pack("{s:[], s:o}", "list", "reason", cohi_json_text(coh_last_error()));
    const cohi_card_driver *driver = cohi_card_open();
    json_t *list = json_array();
    for (int device = 0; device < count; device++)
        json_array_append_new(list, card_json(driver, device, count));
    return json_pack("{s:o, s:o}", "list", list, "reason",
                     count ? json_null() : json_string("the driver shows no card"));
}

/* ---- printing ---- */

enum { CARD, NAME, CAPABILITY, MULTIPROCESSORS, MEMORY, DRIVER, MPS, REACHES, COLUMNS };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void reached_text(const json_t *list, char *cell)
{
    size_t index, used = 0;
    const json_t *peer;
    json_array_foreach(list, index, peer)
    {
        if (used < COHI_TABLE_CELL_BYTES)
            used += (size_t)snprintf(cell + used, COHI_TABLE_CELL_BYTES - used,
                                     "%s%" JSON_INTEGER_FORMAT, index ? ", " : "",
                                     json_integer_value(peer));
    }
    if (json_array_size(list) == 0)
        snprintf(cell, COHI_TABLE_CELL_BYTES, "-");
}

static void fill_cells(const json_t *card, cohi_table_row *row)
{
    const char *why = json_string_value(json_object_get(card, "reason"));
    snprintf(row->cell[CARD], COHI_TABLE_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
             number_of(card, "card"));
    snprintf(row->cell[NAME], COHI_TABLE_CELL_BYTES, "%s", why ? why : text_of(card, "name"));
    if (why)
        return;
    snprintf(row->cell[CAPABILITY], COHI_TABLE_CELL_BYTES, "%s", text_of(card, "capability"));
    snprintf(row->cell[MULTIPROCESSORS], COHI_TABLE_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
             number_of(card, "multiprocessors"));
    snprintf(row->cell[MEMORY], COHI_TABLE_CELL_BYTES, "%.1f GiB",
             (double)number_of(card, "memory_bytes") / 0x1p30);
    snprintf(row->cell[DRIVER], COHI_TABLE_CELL_BYTES, "CUDA %s", text_of(card, "driver"));
    snprintf(row->cell[MPS], COHI_TABLE_CELL_BYTES, "%s",
             json_is_true(json_object_get(card, "mps")) ? "yes" : "no");
    reached_text(json_object_get(card, "reaches"), row->cell[REACHES]);
}

int cohi_info_print_cards(const json_t *cards)
{
    static const char *const titles[COLUMNS] = {"CARD",   "NAME",   "CAPABILITY", "SMS",
                                                "MEMORY", "DRIVER", "MPS",        "REACHES"};
    const json_t *list = json_object_get(cards, "list");
    cohi_table table;
    if (json_array_size(list) == 0) {
        printf("  none: %s\n", text_of(cards, "reason"));
        return 0;
    }
    if (cohi_table_make(&table, titles, COLUMNS, json_array_size(list)) != 0)
        return -1;
    for (size_t i = 0; i < table.count; i++)
        fill_cells(json_array_get(list, i), &table.rows[i]);
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}
