/* bench/floor.c - which rows are below a floor; figures in, failures out. */
#include "bench/floor.h"

double cohi_floor_of(uint64_t bytes)
{
    return bytes >= COHI_FLOOR_LONG_BYTES ? COHI_FLOOR_LONG : COHI_FLOOR_SHORT;
}

static double spread_of(const cohi_floor_row *row)
{
    double spread = row->ratio - row->ratio_low;
    return spread < 0 ? 0 : spread > COHI_FLOOR_SPREAD ? COHI_FLOOR_SPREAD : spread;
}

/* The comparison is such that a fraction that is no number does not hold. */
unsigned cohi_floor_judge(const cohi_floor_row *row)
{
    unsigned why = row->fraction >= cohi_floor_of(row->bytes) ? 0 : COHI_FLOOR_BELOW_LIMIT;
    if (row->ratio > 0 && row->ratio - spread_of(row) > 1)
        why |= COHI_FLOOR_SLOWER;
    return why;
}

size_t cohi_floor_failures(const cohi_floor_row *rows, size_t count, cohi_floor_failure *failures)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned why = cohi_floor_judge(&rows[i]);
        if (why)
            failures[found++] = (cohi_floor_failure){i, why};
    }
    return found;
}
