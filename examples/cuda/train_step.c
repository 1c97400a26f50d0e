/*
 * train_step.c - data-parallel training on cards: each rank has a part of the examples, all have the same
 * model, and the gradients are added on the stream between two kernels.
 *
 * One step is a kernel for the gradient, coh_cuda_all_reduce and a kernel for the new weights. It is recorded
 * into a CUDA graph and replayed, where the ranks can share the card so; else each step is enqueued anew.
 *
 * The model is linear. Checked at the end: the weights have the same bits on all ranks, and are those that
 * the examples were made with.
 */
#include "driver.h"

#include <math.h>
#include <string.h>

enum { WEIGHTS = 16, EXAMPLES = 840, STEPS = 400 }; /* 1 to 8 ranks get equally many examples */

/*
 * gradient: result[j] = the sum over examples i of (weights . inputs[i] - wanted[i]) * inputs[i][j].
 * update:   weights[j] -= rate * gradient[j].
 * A thread for each weight.
 */
static const char kernels_text[] =
    ".version 6.5\n.target sm_52\n.address_size 64\n"
    ".visible .entry gradient(.param .u64 weights, .param .u64 inputs, .param .u64 wanted,\n"
    "                         .param .u64 result, .param .u32 examples) {\n"
    "  .reg .pred %more; .reg .u32 %left, %k, %j;\n"
    "  .reg .u64 %w, %x, %y, %g, %at, %xi, %wk, %own; .reg .f32 %sum, %error, %a, %b;\n"
    "  ld.param.u64 %w, [weights]; ld.param.u64 %x, [inputs]; ld.param.u64 %y, [wanted];\n"
    "  ld.param.u64 %g, [result]; ld.param.u32 %left, [examples];\n"
    "  cvta.to.global.u64 %w, %w; cvta.to.global.u64 %x, %x;\n"
    "  cvta.to.global.u64 %y, %y; cvta.to.global.u64 %g, %g;\n"
    "  mov.u32 %j, %tid.x; mul.wide.u32 %at, %j, 4; mov.f32 %sum, 0f00000000;\n"
    "next_example:\n"
    "  ld.global.f32 %error, [%y]; neg.f32 %error, %error;\n"
    "  mov.u64 %xi, %x; mov.u64 %wk, %w; mov.u32 %k, 16;\n"
    "next_weight:\n"
    "  ld.global.f32 %a, [%xi]; ld.global.f32 %b, [%wk];\n"
    "  fma.rn.f32 %error, %a, %b, %error;\n"
    "  add.u64 %xi, %xi, 4; add.u64 %wk, %wk, 4; sub.u32 %k, %k, 1;\n"
    "  setp.ne.u32 %more, %k, 0;\n"
    "  @%more bra next_weight;\n"
    "  add.u64 %own, %x, %at; ld.global.f32 %a, [%own];\n"
    "  fma.rn.f32 %sum, %error, %a, %sum;\n"
    "  mov.u64 %x, %xi; add.u64 %y, %y, 4; sub.u32 %left, %left, 1;\n"
    "  setp.ne.u32 %more, %left, 0;\n"
    "  @%more bra next_example;\n"
    "  add.u64 %g, %g, %at; st.global.f32 [%g], %sum; ret;\n"
    "}\n"
    ".visible .entry update(.param .u64 weights, .param .u64 gradient, .param .f32 rate) {\n"
    "  .reg .u32 %j; .reg .u64 %w, %g, %at; .reg .f32 %a, %b, %step;\n"
    "  ld.param.u64 %w, [weights]; ld.param.u64 %g, [gradient]; ld.param.f32 %step, [rate];\n"
    "  cvta.to.global.u64 %w, %w; cvta.to.global.u64 %g, %g;\n"
    "  mov.u32 %j, %tid.x; mul.wide.u32 %at, %j, 4;\n"
    "  add.u64 %w, %w, %at; add.u64 %g, %g, %at;\n"
    "  ld.global.f32 %a, [%w]; ld.global.f32 %b, [%g]; neg.f32 %step, %step;\n"
    "  fma.rn.f32 %a, %step, %b, %a;\n"
    "  st.global.f32 [%w], %a; ret;\n"
    "}\n";

/* On each rank's card: what the kernels and the all_reduce work on. */
typedef struct memory {
    float weights[WEIGHTS], gradient[WEIGHTS];
    float wanted[EXAMPLES];
    float inputs[EXAMPLES][WEIGHTS];
} memory;

static float true_weight(int j)
{
    return (float)(j % 5) / 2.0f - 1.0f;
}

/* This rank's examples, from a formula. */
static void fill(memory *host, int rank, int size)
{
    memset(host, 0, sizeof *host);
    for (int i = 0; i < EXAMPLES / size; i++) {
        unsigned state = 12345u + 977u * (unsigned)(i * size + rank);
        for (int j = 0; j < WEIGHTS; j++) {
            state = state * 1664525u + 1013904223u;
            host->inputs[i][j] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
            host->wanted[i] += host->inputs[i][j] * true_weight(j);
        }
    }
}

static void enqueue_step(coh_world *world, memory *on_card, void *gradient, void *update)
{
    float *weights = on_card->weights, *sum = on_card->gradient, *wanted = on_card->wanted;
    float *inputs = on_card->inputs[0], rate = 1.0f / EXAMPLES;
    int examples = EXAMPLES / coh_size(world);
    cuda_launch(gradient, 1, WEIGHTS, (void *[]){&weights, &inputs, &wanted, &sum, &examples});
    check(coh_cuda_all_reduce(coh_team_world(world), COH_F32, COH_SUM, sum, sum, WEIGHTS,
                              cuda.stream));
    cuda_launch(update, 1, WEIGHTS, (void *[]){&weights, &sum, &rate});
}

/* Processes that take turns on a card without MPS cannot record. */
static void train(coh_world *world, memory *on_card, void *gradient, void *update)
{
    void *step = NULL;
    if (cuda.sharing != COH_CUDA_TURNS) {
        cuda_record();
        enqueue_step(world, on_card, gradient, update);
        step = cuda_recorded();
    }
    for (int i = 0; i < STEPS; i++) {
        if (step)
            check_cuda(cuda.graph_launch(step, cuda.stream), "cuGraphLaunch");
        else
            enqueue_step(world, on_card, gradient, update);
    }
    cuda_finish(world);
    if (step)
        check_cuda(cuda.program_free(step), "cuGraphExecDestroy");
}

int main(void)
{
    coh_world *world;
    memory *on_card;
    static memory host;
    float weights[WEIGHTS], first[WEIGHTS], furthest = 0;
    check(coh_init(NULL, &world));
    coh_heap *heap = cuda_open(world, 0);
    int rank = coh_rank(world), size = coh_size(world);
    if (size > 8) {
        fprintf(stderr, "train_step: at most 8 ranks, not %d\n", size);
        return 1;
    }
    check(coh_heap_malloc(heap, sizeof *on_card, (void **)&on_card));
    fill(&host, rank, size);
    check(coh_put(world, on_card, &host, sizeof host, rank));
    check(coh_barrier(world));
    train(world, on_card, cuda_kernel(kernels_text, "gradient"),
          cuda_kernel(kernels_text, "update"));

    check(coh_barrier(world)); /* rank 0's last step is over, too */
    check(coh_get(world, weights, on_card->weights, sizeof weights, rank));
    check(coh_get(world, first, on_card->weights, sizeof first, 0));
    int differs = memcmp(weights, first, sizeof first) != 0;
    for (int j = 0; j < WEIGHTS; j++)
        furthest = fmaxf(furthest, fabsf(weights[j] - true_weight(j)));
    if (rank == 0)
        printf("%d ranks, %d steps on the card%s: weights at most %.1e from the true ones\n", size,
               STEPS, cuda.sharing == COH_CUDA_TURNS ? "" : ", replayed as a graph",
               (double)furthest);

    cuda_close();
    check(coh_barrier(world)); /* all have read rank 0's weights */
    check(coh_heap_destroy(heap));
    check(coh_finalize(world));
    return differs || !(furthest < 1e-3f);
}
