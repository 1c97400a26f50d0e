/* Memory: all PEs allocate alike; what does not fit is NULL on all of them. */
#include "check.h"

#include <stdint.h>
#include <string.h>

static int is_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return 0;
    return 1;
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), all = shmem_n_pes(), right = (me + 1) % all;
    CHECK(shmem_malloc(0) == NULL);

    int *box = shmem_malloc(sizeof *box);
    CHECK(box);
    shmem_int_p(box, me, right);
    shmem_barrier_all();
    CHECK(*box == (me + all - 1) % all);

    char *zeros = shmem_calloc(1000, 3);
    CHECK(zeros && is_zero(zeros, 3000));
    CHECK(shmem_calloc(SIZE_MAX, 16) == NULL);

    for (size_t alignment = sizeof(void *); alignment <= 8u << 20; alignment *= 4) {
        void *aligned = shmem_align(alignment, 100);
        CHECK(aligned && (uintptr_t)aligned % alignment == 0);
        shmem_free(aligned);
    }

    memset(zeros, me + 1, 3000);
    zeros = shmem_realloc(zeros, 500000);
    CHECK(zeros && zeros[0] == me + 1 && zeros[2999] == me + 1);
    CHECK(shmem_realloc(NULL, 0) == NULL);
    CHECK(shmem_realloc(zeros, 0) == NULL); /* frees */

    void *hinted =
        shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    CHECK(hinted);
    CHECK(shmem_malloc(SIZE_MAX / 4) == NULL); /* and the heap is as before */
    shmem_free(hinted);
    shmem_free(NULL);
    shmem_free(box);
    shmem_finalize();
    return 0;
}
