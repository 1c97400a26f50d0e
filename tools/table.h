/* table.h - text in aligned columns: the last one is as long as it likes. */
#ifndef COHI_TOOLS_TABLE_H
#define COHI_TOOLS_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { COHI_TABLE_COLUMNS = 14, COHI_TABLE_CELL_BYTES = 192 };

typedef struct cohi_table_row {
    char cell[COHI_TABLE_COLUMNS][COHI_TABLE_CELL_BYTES];
} cohi_table_row;

typedef struct cohi_table {
    const char *const *titles;
    int columns;
    unsigned hidden; /* a bit for each column that is not shown; never the last */
    size_t count;
    cohi_table_row *rows;
} cohi_table;

/* A table with room for `rows`; all cells empty. 0, or -1 when there is no memory. */
int cohi_table_make(cohi_table *table, const char *const *titles, int columns, size_t rows);
void cohi_table_hide(cohi_table *table, int column);
void cohi_table_free(cohi_table *table);

/* Writes it, each line after `indent`; an empty cell shows as "-". */
void cohi_table_print(const cohi_table *table, const char *indent, FILE *stream);

/* "340 ms", "12.3 s", "5 min", "3 h"; "-" for 0. */
void cohi_duration_text(uint64_t nanoseconds, char *text, size_t room);

/* "64 KiB", "1.5 MiB". */
void cohi_bytes_text(uint64_t bytes, char *text, size_t room);

#endif
