/*
 * heat.c - heat on a plate that the ranks hold in bands of rows.
 *
 * In every step each rank puts its first and last row into its neighbours' halos with
 * coh_put_signal, computes the rows that need no halo meanwhile, waits for its neighbours' signals
 * and computes the two that do. There is no barrier: a rank is held up by its neighbours alone. Two
 * plates are used in turns, so a neighbour that is one step ahead writes into the other one. At the
 * end every cell is compared with a plate that one rank computed by itself: the same operations in
 * the same order, so the bits must be the same.
 */
#include <cohort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 48, HEIGHT = 48, STEPS = 120 };

/* Rows 1 to `rows` are this rank's own; 0 and rows + 1 are the halo. Symmetric, so there is room
 * for the most rows that a rank can have. */
typedef struct plate {
    double cell[2][HEIGHT + 2][WIDTH];
    uint64_t came[2]; /* steps whose halo has come: from above, from below */
    int neighbor[2];  /* the ranks above and below, or COH_NO_NEIGHBOR */
} plate;

static void check(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "heat: %s\n", coh_last_error());
    exit(1);
}

/* Where the rows of `rank` begin, of all HEIGHT. */
static int first_row(int rank, int size)
{
    return HEIGHT * rank / size;
}

/* ---- the physics ---- */

/* The plate's edges keep their temperature; the top edge is hot. */
static double initial(int row, int column)
{
    return row == 0 ? 100.0 + column : 0.0;
}

static void compute_row(const double (*old)[WIDTH], double *new_row, int row, int whole_row)
{
    for (int x = 0; x < WIDTH; x++) {
        int edge = whole_row == 0 || whole_row == HEIGHT - 1 || x == 0 || x == WIDTH - 1;
        double here = old[row][x];
        new_row[x] = edge ? here
                          : here
                                + 0.2
                                      * (old[row - 1][x] + old[row + 1][x] + old[row][x - 1]
                                         + old[row][x + 1] - 4 * here);
    }
}

/* ---- the exchange ---- */

/* My first row is the lower halo of the rank above, my last the upper halo of the one below. */
static void send_halos(coh_world *world, plate *mine, int rows, int step)
{
    double(*cell)[WIDTH] = mine->cell[step & 1];
    for (int side = 0; side < 2; side++) {
        int to = mine->neighbor[side], size = coh_size(world);
        int halo = side ? 0 : first_row(to + 1, size) - first_row(to, size) + 1;
        if (to != COH_NO_NEIGHBOR)
            check(coh_put_signal(world, cell[halo], cell[side ? rows : 1], sizeof *cell,
                                 &mine->came[!side], (uint64_t)step + 1, COH_SIGNAL_SET, to));
    }
}

static void await_halos(coh_world *world, plate *mine, int step)
{
    uint64_t wanted = (uint64_t)step + 1;
    for (int side = 0; side < 2; side++)
        if (mine->neighbor[side] != COH_NO_NEIGHBOR)
            check(coh_wait_until(world, COH_U64, &mine->came[side], COH_GE, &wanted,
                                 mine->neighbor[side]));
}

static void run(coh_world *world, plate *mine, int first, int rows)
{
    for (int step = 0; step < STEPS; step++) {
        const double(*old)[WIDTH] = mine->cell[step & 1];
        double(*next)[WIDTH] = mine->cell[!(step & 1)];
        send_halos(world, mine, rows, step);
        for (int row = 2; row < rows; row++)
            compute_row(old, next[row], row, first + row - 1);
        await_halos(world, mine, step);
        compute_row(old, next[1], 1, first);
        if (rows > 1)
            compute_row(old, next[rows], rows, first + rows - 1);
    }
}

/* ---- the same by one rank ---- */

static const double (*alone(void))[WIDTH]
{
    static double cell[2][HEIGHT + 2][WIDTH];
    for (int row = 0; row < HEIGHT; row++) {
        for (int x = 0; x < WIDTH; x++)
            cell[0][row + 1][x] = initial(row, x);
    }
    for (int step = 0; step < STEPS; step++) {
        for (int row = 1; row <= HEIGHT; row++)
            compute_row(cell[step & 1], cell[!(step & 1)][row], row, row - 1);
    }
    return cell[STEPS & 1];
}

int main(void)
{
    coh_world *world;
    coh_grid bands;
    plate *mine;
    check(coh_init(NULL, &world));
    check(COH_CALLOC(world, 1, &mine));
    int rank = coh_rank(world), size = coh_size(world);
    int first = first_row(rank, size), rows = first_row(rank + 1, size) - first;
    if (rows < 1) {
        fprintf(stderr, "heat: at most %d ranks, not %d\n", HEIGHT, size);
        return 1;
    }
    check(coh_grid_make(size, 1, NULL, NULL, &bands));
    for (int side = 0; side < 2; side++)
        mine->neighbor[side] = coh_grid_neighbor(&bands, rank, 0, side ? 1 : -1);
    for (int row = 1; row <= rows; row++)
        for (int x = 0; x < WIDTH; x++)
            mine->cell[0][row][x] = initial(first + row - 1, x);
    run(world, mine, first, rows);

    const double(*expected)[WIDTH] = alone();
    int wrong =
        memcmp(mine->cell[STEPS & 1][1], expected[first + 1], sizeof(double) * WIDTH * (size_t)rows)
        != 0;
    printf("rank %d: rows %d to %d after %d steps, %s\n", rank, first, first + rows - 1, STEPS,
           wrong ? "WRONG" : "as one rank computes them");
    check(coh_free(world, mine));
    check(coh_finalize(world));
    return wrong;
}
