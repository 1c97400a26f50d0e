#include "soak.h"

static const unsigned weights[] = {
#define WEIGHT(constant, weight) weight,
    SOAK_KINDS(WEIGHT)
#undef WEIGHT
};

enum { KINDS = sizeof weights / sizeof *weights };

uint64_t soak_stream(const soak_run *run, const char *purpose, int who)
{
    uint64_t state = run->seed * UINT64_C(0x100000001b3) + run->phase;
    for (; *purpose; purpose++)
        state = (state ^ (unsigned char)*purpose) * UINT64_C(0x100000001b3);
    state ^= (uint64_t)(who + 1) << 40;
    (void)test_random(&state);
    return state;
}

static soak_kind pick_kind(uint64_t *random)
{
    unsigned sum = 0;
    for (int i = 0; i < KINDS; i++)
        sum += weights[i];
    uint64_t at = test_random(random) % sum;
    for (int i = 0; i < KINDS; i++) {
        if (at < weights[i])
            return (soak_kind)i;
        at -= weights[i];
    }
    return SOAK_PUT;
}

/* A range of the chunk; often short, sometimes empty, sometimes all of it. */
static void pick_range(soak_op *op, uint64_t *random)
{
    size_t most = test_random(random) % 2 ? SOAK_CHUNK : 17;
    op->bytes = test_random(random) % (most + 1);
    op->at = test_random(random) % (SOAK_CHUNK - op->bytes + 1);
}

/* Blocks whose spans fit in a chunk by either stride. */
static void pick_blocks(soak_op *op, uint64_t *random)
{
    op->block = 1 + test_random(random) % 24;
    op->stride = op->block + test_random(random) % 20;
    op->other_stride = op->block + test_random(random) % 20;
    size_t widest = op->stride > op->other_stride ? op->stride : op->other_stride;
    op->count = test_random(random) % ((SOAK_CHUNK - op->block) / widest + 2);
    op->at = 0;
    op->bytes = op->block * op->count;
}

void soak_plan(const soak_run *run, int rank, soak_op ops[SOAK_CHUNKS])
{
    uint64_t random = soak_stream(run, "operations", rank);
    for (size_t i = 0; i < SOAK_CHUNKS; i++) {
        soak_op *op = &ops[i];
        *op = (soak_op){.kind = pick_kind(&random), .chunk = i};
        op->to = (int)(test_random(&random) % (unsigned)run->size);
        op->source = (int)(test_random(&random) % (unsigned)run->size);
        op->word = test_random(&random) % SOAK_WORDS;
        op->lane = (int)(test_random(&random) % SOAK_LANES);
        op->adds = (int)(test_random(&random) % 2);
        op->value = test_random(&random);
        if (op->kind == SOAK_GET || op->kind == SOAK_GET_NBI || op->kind == SOAK_GET_STRIDED)
            op->chunk = test_random(&random) % SOAK_CHUNKS;
        if (op->kind == SOAK_PUT_STRIDED || op->kind == SOAK_GET_STRIDED)
            pick_blocks(op, &random);
        else
            pick_range(op, &random);
    }
}

coh_atomic_op soak_change(const soak_run *run, size_t word)
{
    static const coh_atomic_op commuting[] = {COH_ATOMIC_ADD, COH_ATOMIC_AND, COH_ATOMIC_OR,
                                              COH_ATOMIC_XOR};
    uint64_t random = soak_stream(run, "words", (int)word);
    return commuting[test_random(&random) % 4];
}

void soak_fill(const soak_op *op, unsigned char *bytes)
{
    test_fill(bytes, SOAK_CHUNK, op->value);
}
