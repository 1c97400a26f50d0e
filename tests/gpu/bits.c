/* The bits of reductions on a card are those of the CPU in deterministic mode: docs/semantics.md S39, S40. */
#include "gpu.h"

#include "collectives/oracle.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 20011 };

static const coh_dtype dtypes[] = {
#define TYPE(constant, value, name, bytes) constant,
    COH_DTYPE_TABLE(TYPE)
#undef TYPE
};

/* Any bits at all, NaNs and infinities among them; of bool 0 and 1. */
static void draw(coh_dtype dtype, uint64_t *dice, unsigned char *bytes, size_t count)
{
    size_t all = count * coh_dtype_size(dtype);
    for (size_t i = 0; i < all; i++)
        bytes[i] = (unsigned char)(test_random(dice) >> 24);
    for (size_t i = 0; dtype == COH_BOOL && i < all; i++)
        bytes[i] &= 1;
}

/* Two NaNs are the same result; which of the sources' bits a NaN keeps is not promised. */
static bool same_element(coh_dtype dtype, const unsigned char *one, const unsigned char *two)
{
    return memcmp(one, two, coh_dtype_size(dtype)) == 0
           || (oracle_is_float(dtype) && oracle_is_nan(dtype, one) && oracle_is_nan(dtype, two));
}

struct bench {
    gpu_rank gpu;
    unsigned char *card, *source, *host, *found;
};

static bool compare(test_rank *self, struct bench *at, coh_dtype dtype, coh_reduce_op op)
{
    coh_team *team = coh_team_world(self->world);
    size_t bytes = coh_dtype_size(dtype);
    if (!CHECK_OK(coh_all_reduce(team, dtype, op, at->source, at->host, COUNT))
        || !CHECK_EQ(at->gpu.driver->copy(at->card, at->source, COUNT * bytes), 0)
        || !CHECK_EQ(at->gpu.driver->synchronize(NULL), 0))
        return false;
    if (!CHECK_OK(coh_cuda_all_reduce(team, dtype, op, at->card, at->card, COUNT, at->gpu.stream))
        || !gpu_finish(self, &at->gpu)
        || !CHECK_EQ(at->gpu.driver->copy(at->found, at->card, COUNT * bytes), 0))
        return false;
    for (size_t i = 0; i < COUNT; i++)
        if (!same_element(dtype, at->host + i * bytes, at->found + i * bytes)) {
            uint64_t cpu = 0, card = 0;
            memcpy(&cpu, at->host + i * bytes, bytes);
            memcpy(&card, at->found + i * bytes, bytes);
            test_fail("%s of %s, element %zu: the card has %#llx, the CPU %#llx",
                      coh_reduce_op_name(op), coh_dtype_name(dtype), i, (unsigned long long)card,
                      (unsigned long long)cpu);
            return false;
        }
    return true;
}

static void bits_of_the_cpu(test_rank *self)
{
    struct bench at;
    uint64_t dice = self->seed + (uint64_t)self->rank * 77;
    if (!CHECK_OK(coh_malloc(self->world, COUNT * 8, (void **)&at.card))
        || !gpu_open(self, &at.gpu))
        return;
    at.source = malloc(COUNT * 8);
    at.host = malloc(COUNT * 8);
    at.found = malloc(COUNT * 8);
    for (size_t type = 0; type < sizeof dtypes / sizeof *dtypes && !test_failed(); type++)
        for (int op = 0; op < 8; op++)
            if (oracle_allows(dtypes[type], (coh_reduce_op)op)) {
                draw(dtypes[type], &dice, at.source, COUNT);
                if (!compare(self, &at, dtypes[type], (coh_reduce_op)op))
                    break;
            }
    CHECK_OK(coh_barrier(self->world));
    free(at.source);
    free(at.host);
    free(at.found);
    gpu_close(&at.gpu);
    CHECK_OK(coh_free(self->world, at.card));
}

const test_case gpu_bits[] = {
    CASE(bits_of_the_cpu, "S39 S40", ON_GPU, GPU_SIZES, .limit_s = 60,
         .environment = "COHORT_DETERMINISTIC=1"),
};
GPU_COUNT(bits);
