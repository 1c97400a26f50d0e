/*
 * ring.c - the first program on a card: each rank's number travels around the ring, from card memory to
 * card memory, until it is home again.
 *
 * All steps are enqueued at once. Each waits on the stream for the left neighbour's signal and passes on what
 * came with it; the host waits a single time, at the end.
 */
#include "driver.h"

int main(void)
{
    coh_world *world;
    uint64_t *number, *arrived; /* on every rank's card: what comes in each step, and that it has */
    check(coh_init(NULL, &world));
    coh_heap *heap = cuda_open(world, 0);
    int rank = coh_rank(world), size = coh_size(world);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    size_t steps = (size_t)size;
    check(coh_heap_calloc(heap, steps + 1, sizeof *number, (void **)&number));
    check(coh_heap_calloc(heap, steps + 1, sizeof *arrived, (void **)&arrived));

    uint64_t mine = 1000 + (uint64_t)rank, back = 0;
    check(coh_put(world, &number[0], &mine, sizeof mine,
                  rank)); /* into this rank's own card memory */
    check(coh_quiet(world));
    for (size_t step = 0; step < steps; step++) {
        check(coh_cuda_put_signal(world, &number[step + 1], &number[step], sizeof mine,
                                  &arrived[step + 1], 1, COH_SIGNAL_SET, right, cuda.stream));
        check(coh_cuda_wait_until(world, &arrived[step + 1], COH_EQ, 1, left, cuda.stream));
    }
    cuda_finish(world);
    check(coh_get(world, &back, &number[steps], sizeof back, rank));
    printf("rank %d of %d sent %llu around, and %llu came back\n", rank, size,
           (unsigned long long)mine, (unsigned long long)back);

    cuda_close();
    check(coh_heap_destroy(heap));
    check(coh_finalize(world));
    return back != mine;
}
