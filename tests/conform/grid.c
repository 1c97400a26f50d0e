/* Members as the cells of a grid. */
#include "conform.h"

#include <string.h>

static bool is_grid(int size, int dimensions, const int *extents, const int *wanted)
{
    coh_grid grid;
    if (!CHECK_OK(coh_grid_make(size, dimensions, extents, NULL, &grid))
        || !CHECK_EQ(grid.dimensions, dimensions))
        return false;
    for (int i = 0; i < dimensions; i++)
        if (grid.extent[i] != wanted[i]) {
            test_fail("%d members in %d dimensions: extent %d is %d, expected %d", size, dimensions,
                      i, grid.extent[i], wanted[i]);
            return false;
        }
    return true;
}

static void extents_are_chosen(test_rank *self)
{
    (void)self;
    is_grid(1, 3, NULL, (const int[]){1, 1, 1});
    is_grid(12, 2, NULL, (const int[]){4, 3});
    is_grid(16, 2, NULL, (const int[]){4, 4});
    is_grid(7, 2, NULL, (const int[]){7, 1});
    is_grid(48, 3, NULL, (const int[]){4, 4, 3});
    is_grid(1000, 3, NULL, (const int[]){10, 10, 10});
    is_grid(36, 2, NULL, (const int[]){6, 6});
    is_grid(60, 4, NULL, (const int[]){5, 3, 2, 2});
    is_grid(256, 8, NULL, (const int[]){2, 2, 2, 2, 2, 2, 2, 2});
    is_grid(2147483647, 2, NULL, (const int[]){2147483647, 1});
    is_grid(12, 2, (const int[]){0, 6}, (const int[]){2, 6});
    is_grid(24, 3, (const int[]){0, 2, 0}, (const int[]){4, 2, 3});
    is_grid(24, 3, (const int[]){4, 3, 2}, (const int[]){4, 3, 2});
}

/* The spread of the extents is the least there is, by trying all of two. */
static void chosen_are_near(test_rank *self)
{
    (void)self;
    for (int size = 1; size <= 300 && !test_failed(); size++) {
        int best = 1;
        coh_grid grid;
        for (int low = 1; low * low <= size; low++)
            if (size % low == 0)
                best = low;
        CHECK_OK(coh_grid_make(size, 2, NULL, NULL, &grid));
        CHECK(grid.extent[0] == size / best && grid.extent[1] == best);
    }
}

static void grids_that_cannot_be(test_rank *self)
{
    coh_grid grid;
    (void)self;
    CHECK_REFUSED(coh_grid_make(12, 2, (const int[]){5, 0}, NULL, &grid), COH_INVALID_ARGUMENT,
                  "extent 5|12");
    CHECK_STATUS(coh_grid_make(12, 2, (const int[]){2, 3}, NULL, &grid), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_grid_make(12, 2, (const int[]){-2, 0}, NULL, &grid), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_grid_make(0, 2, NULL, NULL, &grid), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_grid_make(-4, 2, NULL, NULL, &grid), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_grid_make(4, 0, NULL, NULL, &grid), COH_INVALID_ARGUMENT);
    CHECK_REFUSED(coh_grid_make(4, 9, NULL, NULL, &grid), COH_INVALID_ARGUMENT, "9|1 to 8");
    CHECK_STATUS(coh_grid_make(4, 1, NULL, NULL, NULL), COH_INVALID_ARGUMENT);
}

static void places_and_neighbours(test_rank *self)
{
    coh_grid grid;
    int at[3], back = 0;
    (void)self;
    CHECK_OK(coh_grid_make(24, 3, (const int[]){2, 3, 4}, (const int[]){0, 1, 0}, &grid));
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 3; y++)
            for (int z = 0; z < 4; z++, back++) {
                CHECK_OK(coh_grid_coordinates(&grid, back, at));
                CHECK(at[0] == x && at[1] == y && at[2] == z);
                CHECK_EQ(coh_grid_index(&grid, at), back);
            }
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 2, 1), 1);
    CHECK_EQ(coh_grid_neighbor(&grid, 3, 2, 1), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 2, -1), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 2, 3), 3);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 1, -1), 8); /* around */
    CHECK_EQ(coh_grid_neighbor(&grid, 9, 1, 1), 1);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 1, 300000003), 0);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 1, -2147483647), 8); /* as -1: that is -1 modulo 3 */
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 0, 1), 12);
    CHECK_EQ(coh_grid_neighbor(&grid, 12, 0, 1), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(&grid, 24, 0, 0), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(&grid, -1, 0, 0), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(&grid, 0, 3, 0), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_neighbor(NULL, 0, 0, 0), COH_NO_NEIGHBOR);
    CHECK_EQ(coh_grid_index(&grid, (const int[]){0, 4, 0}), 4);
    CHECK_EQ(coh_grid_index(&grid, (const int[]){0, -4, 0}), 8);
    CHECK_EQ(coh_grid_index(&grid, (const int[]){2, 0, 0}), COH_NO_NEIGHBOR);
    CHECK_REFUSED(coh_grid_coordinates(&grid, 24, at), COH_UNKNOWN_RANK, "24");
    CHECK_STATUS(coh_grid_coordinates(NULL, 0, at), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_grid_coordinates(&grid, 0, NULL), COH_INVALID_ARGUMENT);
}

const test_case conform_grid[] = {
    CASE(extents_are_chosen, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(chosen_are_near, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(grids_that_cannot_be, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
    CASE(places_and_neighbours, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(grid);
