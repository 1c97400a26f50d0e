/*
 * train_step.c - data-parallel training: each rank has a part of the examples, all have the same
 * model, and in every step one all_reduce scales the gradients and adds them to the mean.
 *
 * The model is a small network (two inputs, one hidden layer, one output) that learns a smooth
 * function. At the end three things are checked: the loss has fallen, the weights have the same
 * bits on all ranks, and they are what one rank gets that trains on all examples by itself.
 */
#include <cohort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 16, WEIGHTS = 4 * HIDDEN + 1, EXAMPLES = 240, STEPS = 300 };

#define RATE 0.1f

/* For each hidden unit two weights, a bias and its weight in the output; the output's bias last. */
typedef struct network {
    float weight[WEIGHTS];
} network;

static void check(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "train_step: %s\n", coh_last_error());
    exit(1);
}

/* ---- what is learnt: the same examples for everybody, from a formula ---- */

static void example(int index, float *x, float *y, float *wanted)
{
    *x = (float)(index % 16) / 8.0f - 1.0f;
    *y = (float)(index / 16 % 15) / 7.0f - 1.0f;
    *wanted = sinf(2.0f * *x) * cosf(*y);
}

static void first_weights(network *model)
{
    unsigned state = 12345;
    for (int i = 0; i < WEIGHTS; i++) {
        state = state * 1664525u + 1013904223u;
        model->weight[i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
    }
}

/* ---- one example: the loss, and what each weight has to do with it ---- */

static float learn(const network *model, int index, float *gradient)
{
    float x, y, wanted, unit[HIDDEN], output = model->weight[WEIGHTS - 1];
    example(index, &x, &y, &wanted);
    for (int i = 0; i < HIDDEN; i++) {
        const float *w = &model->weight[4 * i];
        unit[i] = tanhf(w[0] * x + w[1] * y + w[2]);
        output += w[3] * unit[i];
    }
    float error = output - wanted;
    for (int i = 0; i < HIDDEN; i++) {
        float back = error * model->weight[4 * i + 3] * (1 - unit[i] * unit[i]);
        gradient[4 * i] += back * x;
        gradient[4 * i + 1] += back * y;
        gradient[4 * i + 2] += back;
        gradient[4 * i + 3] += error * unit[i];
    }
    gradient[WEIGHTS - 1] += error;
    return error * error / 2;
}

/* The sum over examples `first`, `first + stride`, ...; behind the gradient comes the loss. */
static void sum_gradient(const network *model, int first, int stride, float *gradient)
{
    memset(gradient, 0, sizeof(float) * (WEIGHTS + 1));
    for (int i = first; i < EXAMPLES; i += stride)
        gradient[WEIGHTS] += learn(model, i, gradient);
}

static void step(network *model, const float *gradient, float rate)
{
    for (int i = 0; i < WEIGHTS; i++)
        model->weight[i] -= rate * gradient[i];
}

/* ---- all ranks ---- */

/* The loss of the first and of the last step. Gradient and loss travel together. */
static void train(coh_world *world, network *model, float *gradient, float loss[2])
{
    coh_team *team = coh_team_world(world);
    coh_reduction mean = COH_REDUCTION_INIT; /* the sum of f32 */
    mean.scale = 1.0 / EXAMPLES;
    for (int i = 0; i < STEPS; i++) {
        sum_gradient(model, coh_rank(world), coh_size(world), gradient);
        check(coh_all_reduce_with(team, &mean, gradient, gradient, WEIGHTS + 1));
        step(model, gradient, RATE);
        loss[i > 0] = gradient[WEIGHTS];
    }
}

static void train_alone(network *model)
{
    float gradient[WEIGHTS + 1];
    for (int i = 0; i < STEPS; i++) {
        sum_gradient(model, 0, 1, gradient);
        step(model, gradient, RATE / EXAMPLES);
    }
}

/* Rank 0's weights are compared byte by byte. */
static int differs_from_first(coh_world *world, const network *mine)
{
    network first = *mine;
    check(coh_broadcast(coh_team_world(world), COH_F32, &first, &first, WEIGHTS, 0));
    return memcmp(&first, mine, sizeof first) != 0;
}

static float furthest(const network *left, const network *right)
{
    float most = 0;
    for (int i = 0; i < WEIGHTS; i++)
        most = fmaxf(most, fabsf(left->weight[i] - right->weight[i]));
    return most;
}

int main(void)
{
    coh_world *world;
    float *gradient, loss[2];
    network mine, alone;
    check(coh_init(NULL, &world));
    check(COH_MALLOC(world, WEIGHTS + 1, &gradient));
    first_weights(&mine);
    alone = mine;
    train(world, &mine, gradient, loss);
    train_alone(&alone);

    /* Sums in another order round otherwise, and 300 steps carry it on. */
    float apart = furthest(&mine, &alone);
    int wrong = differs_from_first(world, &mine) || !(loss[1] < loss[0] / 4) || !(apart < 1e-3f);
    if (coh_rank(world) == 0)
        printf(
            "%d ranks, %d steps: loss %.4f to %.4f, weights at most %.1e from those of one rank\n",
            coh_size(world), STEPS, (double)loss[0], (double)loss[1], (double)apart);
    check(coh_free(world, gradient));
    check(coh_finalize(world));
    return wrong;
}
