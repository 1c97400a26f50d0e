/*
 * plate.cpp - heat.c in C++ and in two dimensions: each rank holds a block of the plate.
 *
 * The ranks are the cells of a grid. In every step a rank puts its outermost rows and columns into
 * its neighbours' halos, each with a signal; a column is a strided put. Objects clean up after
 * themselves, and whatever fails is an exception. Cells next to the block's corners need no diagonal
 * neighbour, so that four signals are all. At the end the sum of all cells must be what the same
 * plate on one rank has.
 */
#include <cohort.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

namespace
{

constexpr int SIDE = 24, STEPS = 60; /* cells of a block; with its halo, SIDE + 2 */

using block = std::array<std::array<double, SIDE + 2>, SIDE + 2>;

/* A rank's part of the plate, in two copies that are used in turns. */
struct part {
    block cells[2];
    std::uint64_t came[4]; /* steps whose halo has come: from above, below, left, right */
};

struct plate {
    explicit plate(const coh::world &joined) : world(joined), mine(world.allocate<part>())
    {
        coh::check(coh_grid_make(world.size(), 2, nullptr, nullptr, &grid));
        for (int side = 0; side < 4; side++)
            neighbor[side] =
                coh_grid_neighbor(&grid, world.rank(), side / 2, side % 2 == 0 ? -1 : 1);
        if (world.rank() == 0)
            mine->cells[0][1][1] = 1000;
    }

    /* The outermost row or column on a side goes to the opposite halo of the neighbour there. */
    void send(std::uint64_t step, int side)
    {
        block &cells = mine->cells[step % 2];
        int last = side % 2 == 0 ? 1 : SIDE, halo = side % 2 == 0 ? SIDE + 1 : 0;
        std::uint64_t *signal = &mine->came[side ^ 1];
        if (side < 2)
            world.put_signal(&cells[halo][1], coh::span<double>(&cells[last][1], SIDE), signal,
                             step + 1, neighbor[side]);
        else
            coh::check(coh_put_strided_signal(
                world.get(), &cells[1][halo], sizeof cells[0], &cells[1][last], sizeof cells[0],
                sizeof(double), SIDE, signal, step + 1, COH_SIGNAL_SET, neighbor[side]));
    }

    /* Beyond the plate's edge nothing is: the halo mirrors the last cells. */
    void mirror(block &cells, int side)
    {
        int last = side % 2 == 0 ? 1 : SIDE, halo = side % 2 == 0 ? 0 : SIDE + 1;
        for (int i = 1; i <= SIDE; i++)
            (side < 2 ? cells[halo][i] : cells[i][halo]) =
                side < 2 ? cells[last][i] : cells[i][last];
    }

    void step(std::uint64_t number)
    {
        block &old = mine->cells[number % 2], &next = mine->cells[(number + 1) % 2];
        for (int side = 0; side < 4; side++)
            if (neighbor[side] != COH_NO_NEIGHBOR)
                send(number, side);
            else
                mirror(old, side);
        for (int side = 0; side < 4; side++)
            if (neighbor[side] != COH_NO_NEIGHBOR)
                world.wait_until(&mine->came[side], COH_GE, number + 1, neighbor[side]);
        for (int y = 1; y <= SIDE; y++)
            for (int x = 1; x <= SIDE; x++)
                next[y][x] = old[y][x]
                             + 0.2
                                   * (old[y - 1][x] + old[y + 1][x] + old[y][x - 1] + old[y][x + 1]
                                      - 4 * old[y][x]);
    }

    double heat() const
    {
        double sum = 0;
        for (int y = 1; y <= SIDE; y++)
            for (int x = 1; x <= SIDE; x++)
                sum += mine->cells[STEPS % 2][y][x];
        return world.team().all_reduce_value(sum);
    }

    const coh::world &world;
    coh::memory<part> mine;
    coh_grid grid;
    int neighbor[4];
};

int run()
{
    coh::world world;
    plate all(world);
    for (std::uint64_t step = 0; step < STEPS; step++)
        all.step(step);
    double sum = all.heat(), corner = all.mine->cells[STEPS % 2][1][1];
    if (world.rank() == 0)
        std::printf(
            "%d x %d ranks, %d steps: %.6f of 1000 units of heat are there, %.3f of them in "
            "the corner\n",
            all.grid.extent[0], all.grid.extent[1], STEPS, sum, corner);
    return std::fabs(sum - 1000) > 1e-6; /* the edges are insulated: no heat may be lost */
}

} // namespace

int main()
{
    try {
        return run();
    } catch (const coh::error &error) {
        std::fprintf(stderr, "plate: %s\n", error.what());
        return 1;
    }
}
