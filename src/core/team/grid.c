/* grid.c - members of a team as the cells of a grid. */
#include "base/error.h"

#include <stdbool.h>

/* ---- extents that are chosen ---- */

static bool power_exceeds(int base, int exponent, int bound)
{
    int64_t power = 1;
    for (int i = 0; i < exponent && power <= bound; i++)
        power *= base;
    return power > bound;
}

/* The least divisor of `size` that is more than `over`, or size itself. */
static int next_divisor(int size, int over)
{
    for (int low = over + 1; low <= size / low; low++)
        if (size % low == 0)
            return low;
    /* Those above the root are the quotients of those below it, from the largest of those on. */
    int best = size;
    for (int low = 1; low <= size / low; low++)
        if (size % low == 0 && size / low > over && size / low < best)
            best = size / low;
    return best;
}

/*
 * `size` as `count` factors in falling order, none above `most`: of all ways the one whose first is
 * least, of those the one whose second is, and so on. False when there is none.
 */
static bool factor(int size, int count, int most, int *factors)
{
    if (count == 0)
        return size == 1;
    for (int first = size == 1 ? 1 : next_divisor(size, 0); first <= most;
         first = next_divisor(size, first)) {
        factors[0] = first;
        bool enough = first == size || power_exceeds(first, count, size - 1);
        if (enough && factor(size / first, count - 1, first, factors + 1))
            return true;
        if (first == size)
            break;
    }
    return false;
}

/* ---- making ---- */

static coh_status refuse(int size, const int *extents, int dimension)
{
    return cohi_fail(
        COH_INVALID_ARGUMENT,
        "coh_grid_make: extent %d of dimension %d: the extents of a grid of %d members "
        "are divisors of that, with %d as their product, or 0 to choose",
        extents[dimension], dimension, size, size);
}

/* What is left for the extents that are to be chosen. */
static coh_status divide(int size, int dimensions, const int *extents, int *left, int *open)
{
    *left = size;
    *open = dimensions;
    for (int i = 0; extents && i < dimensions; i++) {
        if (extents[i] == 0)
            continue;
        if (extents[i] < 0 || *left % extents[i] != 0)
            return refuse(size, extents, i);
        *left /= extents[i];
        --*open;
    }
    return *open > 0 || *left == 1 ? COH_OK : refuse(size, extents, dimensions - 1);
}

coh_status coh_grid_make(int size, int dimensions, const int *extents, const int *periodic,
                         coh_grid *grid)
{
    static const char call[] = "coh_grid_make";
    if (!grid)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: grid is NULL", call);
    if (size < 1)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: a grid of %d members; 1 and more", call, size);
    if (dimensions < 1 || dimensions > COH_GRID_DIMENSIONS)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %d dimensions; 1 to %d", call, dimensions,
                         COH_GRID_DIMENSIONS);
    int left, open, chosen[COH_GRID_DIMENSIONS];
    coh_status status = divide(size, dimensions, extents, &left, &open);
    if (status != COH_OK)
        return status;
    factor(left, open, left, chosen); /* one of them, and ones, is always a way */
    *grid = (coh_grid){.dimensions = dimensions};
    for (int i = 0, next = 0; i < dimensions; i++) {
        grid->extent[i] = extents && extents[i] ? extents[i] : chosen[next++];
        grid->periodic[i] = periodic && periodic[i];
    }
    return COH_OK;
}

/* ---- asking ---- */

static int size_of(const coh_grid *grid)
{
    int size = 1;
    for (int i = 0; i < grid->dimensions; i++)
        size *= grid->extent[i];
    return size;
}

static bool has(const coh_grid *grid, int index)
{
    return grid && index >= 0 && index < size_of(grid);
}

static void find_coordinates(const coh_grid *grid, int index, int *coordinates)
{
    for (int i = grid->dimensions - 1; i >= 0; i--) {
        coordinates[i] = index % grid->extent[i];
        index /= grid->extent[i];
    }
}

coh_status coh_grid_coordinates(const coh_grid *grid, int index, int *coordinates)
{
    static const char call[] = "coh_grid_coordinates";
    if (!grid || !coordinates)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: %s is NULL", call,
                         grid ? "coordinates" : "grid");
    if (!has(grid, index))
        return cohi_fail(COH_UNKNOWN_RANK, "%s: there is no member %d; this grid has %d", call,
                         index, size_of(grid));
    find_coordinates(grid, index, coordinates);
    return COH_OK;
}

/* -1 outside of the grid. */
static int64_t wrap(const coh_grid *grid, int dimension, int64_t at)
{
    int64_t extent = grid->extent[dimension];
    if (grid->periodic[dimension])
        at = (at % extent + extent) % extent;
    return at < extent ? at : -1;
}

int coh_grid_index(const coh_grid *grid, const int *coordinates)
{
    int64_t index = 0;
    if (!grid || !coordinates)
        return COH_NO_NEIGHBOR;
    for (int i = 0; i < grid->dimensions; i++) {
        int64_t at = wrap(grid, i, coordinates[i]);
        if (at < 0)
            return COH_NO_NEIGHBOR;
        index = index * grid->extent[i] + at;
    }
    return (int)index;
}

int coh_grid_neighbor(const coh_grid *grid, int index, int dimension, int steps)
{
    int coordinates[COH_GRID_DIMENSIONS];
    if (!has(grid, index) || dimension < 0 || dimension >= grid->dimensions)
        return COH_NO_NEIGHBOR;
    find_coordinates(grid, index, coordinates);
    int64_t at = wrap(grid, dimension, (int64_t)coordinates[dimension] + steps);
    if (at < 0)
        return COH_NO_NEIGHBOR;
    coordinates[dimension] = (int)at;
    return coh_grid_index(grid, coordinates);
}
