/* table.c - all algorithms by number: those of mapped/, then of message/, of levels/, and of native.c. */
#include "coll/call/algorithm.h"

static const cohi_algorithm *const tables[] = {cohi_mapped_algorithms, cohi_message_algorithms,
                                               cohi_level_algorithms, cohi_native_algorithms};
enum { TABLES = sizeof tables / sizeof *tables };

static unsigned count_rows(const cohi_algorithm *table)
{
    unsigned count = 0;
    while (table[count].name)
        count++;
    return count;
}

const cohi_algorithm *cohi_algorithm_at(unsigned number)
{
    for (int i = 0; i < TABLES; i++) {
        unsigned count = count_rows(tables[i]);
        if (number < count)
            return &tables[i][number];
        number -= count;
    }
    return NULL;
}

static const cohi_algorithm *table_of(const cohi_algorithm *algorithm)
{
    if (algorithm->traits & COHI_MAPPED)
        return cohi_mapped_algorithms;
    if (algorithm->traits & COHI_NATIVE)
        return cohi_native_algorithms;
    return algorithm->traits & COHI_BY_LEVELS ? cohi_level_algorithms : cohi_message_algorithms;
}

unsigned cohi_algorithm_number(const cohi_algorithm *algorithm)
{
    const cohi_algorithm *table = table_of(algorithm);
    unsigned before = 0;
    for (int i = 0; tables[i] != table; i++)
        before += count_rows(tables[i]);
    return before + (unsigned)(algorithm - table);
}
