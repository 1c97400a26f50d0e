/*
 * shift.c - the usual first NVSHMEM program, in Cohort: a kernel of each rank writes the rank's number into its
 * right neighbour's card memory. docs/from-nvshmem.md has both, side by side.
 *
 * Engine cuda serves it as it is; with --engine nvshmem the memory is NVSHMEM's.
 */
#include "driver.h"

/* *there = number: what nvshmem_int_p does where the card reaches the peer. */
static const char store_text[] = ".version 6.5\n.target sm_52\n.address_size 64\n"
                                 ".visible .entry store(.param .u64 there, .param .u32 number) {\n"
                                 "  .reg .u64 %to; .reg .u32 %value;\n"
                                 "  ld.param.u64 %to, [there]; ld.param.u32 %value, [number];\n"
                                 "  cvta.to.global.u64 %to, %to;\n"
                                 "  st.global.u32 [%to], %value; ret;\n"
                                 "}\n";

int main(void)
{
    coh_world *world;
    int *destination, found = -1;
    void *there;
    check(coh_init(NULL, &world));
    coh_heap *heap = cuda_open(world, 0);
    int rank = coh_rank(world), size = coh_size(world);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    check(coh_heap_calloc(heap, 1, sizeof *destination, (void **)&destination));
    void *store = cuda_kernel(store_text, "store");

    coh_status status = coh_ptr(world, destination, right, &there);
    if (status == COH_OK) {
        cuda_launch(store, 1, 1, (void *[]){&there, &rank});
    } else { /* the neighbour's card is out of reach, on another host: by a call then */
        check(coh_put(world, destination, &rank, sizeof rank, right));
    }
    check(coh_cuda_barrier(coh_team_world(world), cuda.stream));
    cuda_finish(world);
    check(coh_get(world, &found, destination, sizeof found, rank));
    printf("rank %d of %d (%s) received %d\n", rank, size, coh_engine(world), found);

    cuda_close();
    check(coh_heap_destroy(heap));
    check(coh_finalize(world));
    return found != left;
}
