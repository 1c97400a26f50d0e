#include "table.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

int cohi_table_make(cohi_table *table, const char *const *titles, int columns, size_t rows)
{
    *table = (cohi_table){.titles = titles, .columns = columns, .count = rows};
    table->rows = calloc(rows ? rows : 1, sizeof *table->rows);
    return table->rows ? 0 : -1;
}

void cohi_table_free(cohi_table *table)
{
    free(table->rows);
    table->rows = NULL;
}

static const char *shown(const char *cell)
{
    return *cell ? cell : "-";
}

static int column_width(const cohi_table *table, int column)
{
    size_t width = strlen(table->titles[column]);
    for (size_t i = 0; i < table->count; i++) {
        size_t length = strlen(shown(table->rows[i].cell[column]));
        width = length > width ? length : width;
    }
    return column == table->columns - 1 ? 0 : (int)width;
}

void cohi_table_hide(cohi_table *table, int column)
{
    table->hidden |= 1u << column;
}

/* A line of cells, of the titles where `row` is NULL. */
static void print_line(const cohi_table *table, const int *width, const cohi_table_row *row,
                       FILE *stream)
{
    const char *before = "";
    for (int column = 0; column < table->columns; column++) {
        if (table->hidden >> column & 1)
            continue;
        fprintf(stream, "%s%-*s", before, width[column],
                row ? shown(row->cell[column]) : table->titles[column]);
        before = "  ";
    }
    fputc('\n', stream);
}

void cohi_table_print(const cohi_table *table, const char *indent, FILE *stream)
{
    int width[COHI_TABLE_COLUMNS];
    for (int column = 0; column < table->columns; column++)
        width[column] = column_width(table, column);
    fputs(indent, stream);
    print_line(table, width, NULL, stream);
    for (size_t i = 0; i < table->count; i++) {
        fputs(indent, stream);
        print_line(table, width, &table->rows[i], stream);
    }
}

void cohi_duration_text(uint64_t nanoseconds, char *text, size_t room)
{
    double seconds = (double)nanoseconds / (double)COHI_NS_PER_S;
    if (nanoseconds == 0)
        snprintf(text, room, "-");
    else if (seconds < 1)
        snprintf(text, room, "%.0f ms", seconds * 1e3);
    else if (seconds < 120)
        snprintf(text, room, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(text, room, "%.0f min", seconds / 60);
    else
        snprintf(text, room, "%.1f h", seconds / 3600);
}

void cohi_bytes_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double shown = (double)bytes;
    for (; shown >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        shown /= 1024;
    snprintf(text, room, "%.4g %s", shown, units[unit]);
}
