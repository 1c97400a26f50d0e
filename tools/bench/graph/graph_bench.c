/*
 * graph_bench - what a graph costs beside the same work without one.
 *
 *     graph_bench                    kernels beside raw loops, a block beside cblas, chains
 *     cohort run -n 2 graph_bench    the all_reduce of a graph beside the bare call
 *
 * Figures are medians of rounds in which both sides are measured in turns.
 */
#include "graph/cpu/blas_library.h"

#include <cohort-graph.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15 };

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void must(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "graph_bench: %s\n", coh_last_error());
    exit(1);
}

static coh_program *compile(coh_device *device, coh_world *world, const char *lines, int separate)
{
    char text[4096];
    coh_graph *graph;
    coh_program *program;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    options.world = world;
    options.separate = separate;
    int length = snprintf(text, sizeof text, "cohort-graph 1\n%s", lines);
    must(coh_graph_parse(text, (size_t)length, &graph));
    must(coh_graph_compile(graph, device, &options, &program));
    coh_graph_destroy(graph);
    return program;
}

/* ---- kernels beside raw loops ---- */

static void raw_one(const float *a, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i] + 1.0f;
}

static void raw_two(const float *a, const float *b, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

static void *input_of(coh_program *program, const char *name, size_t count)
{
    void *data;
    must(coh_program_pointer(program, name, &data, NULL));
    for (size_t i = 0; i < count; i++)
        ((float *)data)[i] = (float)(i % 997) / 500.0f - 1.0f;
    return data;
}

/* Outputs of their own, so that nothing is in place: the same bytes are read and written. */
static void bench_kernel(coh_device *device, const char *op, int inputs, size_t rows, size_t width)
{
    char lines[512];
    size_t count = rows * width;
    snprintf(lines, sizeof lines,
             "input a f32 %zu,%zu\ninput b f32 %zu,%zu\ninput w f32 %zu\nop y %s\n"
             "output keep a\noutput keep2 b\noutput o y\n",
             rows, width, rows, width, width, op);
    coh_program *program = compile(device, NULL, lines, 1);
    float *a = input_of(program, "a", count), *b = input_of(program, "b", count), *out;
    input_of(program, "w", width);
    must(coh_program_pointer(program, "o", (void **)&out, NULL));
    double ratios[ROUNDS], times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begun = now();
        if (inputs == 1)
            raw_one(a, out, count);
        else
            raw_two(a, b, out, count);
        double raw = now() - begun;
        begun = now();
        must(coh_program_execute(program));
        times[i] = now() - begun;
        ratios[i] = raw / times[i];
    }
    double time = median(times, ROUNDS);
    printf("  %-26s %6.1f GB/s   %.2f of a raw loop\n", op,
           (double)(inputs + 1) * 4e-9 * (double)count / time, median(ratios, ROUNDS));
    must(coh_program_destroy(program));
}

static void bench_kernels(coh_device *device)
{
    static const struct {
        const char *op;
        int inputs;
    } rows[] = {{"add a,b", 2},         {"mul a,b", 2},
                {"scale a by=2", 1},    {"bias a,w", 1},
                {"relu a", 1},          {"silu a", 1},
                {"gelu a", 1},          {"gelu a approximate=tanh", 1},
                {"softmax a", 1},       {"rms_norm a,w", 1},
                {"layer_norm a,w,w", 1}};
    printf("kernels, 64 MiB a value (rows of 4096):\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        bench_kernel(device, rows[i].op, rows[i].inputs, 4096, 4096);
}

/* ---- a block beside cblas ---- */

/* The products of a feed-forward, bare: gate, up, down. */
static void bare_products(const float *x, const float *w[3], float *h[3], int rows, int width,
                          int inner)
{
    const cohi_blas *blas = cohi_blas_functions();
    for (int i = 0; i < 2; i++)
        blas->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, inner, width, 1, x, width,
                          w[i], width, 0, h[i], inner);
    blas->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, width, inner, 1, h[0], inner,
                      w[2], inner, 0, h[2], width);
}

static float *floats(size_t count)
{
    float *made = aligned_alloc(64, count * sizeof *made);
    for (size_t i = 0; made && i < count; i++)
        made[i] = (float)(i % 97) / 97.0f - 0.5f;
    if (!made)
        exit(1);
    return made;
}

static void bench_block(coh_device *device, size_t rows, size_t width, size_t inner)
{
    char lines[1024];
    float *weights[3], *hidden[3], *x;
    snprintf(lines, sizeof lines,
             "input x f32 %zu,%zu\nparameter n f32 %zu\nparameter g f32 %zu,%zu\n"
             "parameter u f32 %zu,%zu\nparameter d f32 %zu,%zu\nop y rms_norm x,n\n"
             "op a matmul y,g transpose_b=1\nop b matmul y,u transpose_b=1\nop s silu a\n"
             "op m mul s,b\nop p matmul m,d transpose_b=1\nop r add x,p\noutput o r\n",
             rows, width, width, inner, width, inner, width, width, inner);
    coh_program *program = compile(device, NULL, lines, 0);
    for (int i = 0; i < 3; i++) {
        weights[i] = floats(width * inner);
        hidden[i] = floats(rows * (inner > width ? inner : width));
    }
    x = floats(rows * width);
    must(coh_program_bind(program, "n", x, width * 4));
    must(coh_program_bind(program, "g", weights[0], width * inner * 4));
    must(coh_program_bind(program, "u", weights[1], width * inner * 4));
    must(coh_program_bind(program, "d", weights[2], width * inner * 4));
    input_of(program, "x", rows * width);
    double ratios[ROUNDS], times[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double begun = now();
        bare_products(x, (const float **)weights, hidden, (int)rows, (int)width, (int)inner);
        double bare = now() - begun;
        begun = now();
        must(coh_program_execute(program));
        times[i] = now() - begun;
        ratios[i] = bare / times[i];
    }
    double flops = 6.0 * (double)rows * (double)width * (double)inner;
    printf("  feed-forward %zu x %zu x %zu  %6.1f GFLOP/s   %.2f of bare cblas\n", rows, width,
           inner, flops / median(times, ROUNDS) * 1e-9, median(ratios, ROUNDS));
    must(coh_program_destroy(program));
    for (int i = 0; i < 3; i++) {
        free(weights[i]);
        free(hidden[i]);
    }
    free(x);
}

/* ---- chains ---- */

static void bench_chain(coh_device *device, size_t count)
{
    char lines[512];
    double ratios[ROUNDS];
    snprintf(lines, sizeof lines,
             "input g f32 %zu\ninput u f32 %zu\nop s silu g\nop m mul s,u\nop t scale m by=2\n"
             "op r add t,u\noutput o r\noutput g g\noutput u u\n",
             count, count);
    coh_program *chained = compile(device, NULL, lines, 0);
    coh_program *separate = compile(device, NULL, lines, 1);
    input_of(chained, "g", count);
    input_of(chained, "u", count);
    input_of(separate, "g", count);
    input_of(separate, "u", count);
    int repeat = (int)((4u << 20) / count) + 1;
    for (int i = 0; i < ROUNDS; i++) {
        double begun = now();
        for (int k = 0; k < repeat; k++)
            must(coh_program_execute(separate));
        double apart = now() - begun;
        begun = now();
        for (int k = 0; k < repeat; k++)
            must(coh_program_execute(chained));
        ratios[i] = apart / (now() - begun);
    }
    printf("  %9zu elements   %.2f times as fast as one by one\n", count, median(ratios, ROUNDS));
    must(coh_program_destroy(chained));
    must(coh_program_destroy(separate));
}

/* ---- collectives ---- */

static void bench_reduce(coh_device *device, coh_world *world, size_t count)
{
    char lines[256];
    double ratios[ROUNDS], times[ROUNDS];
    float *bare;
    int repeat = (int)((1u << 18) / count) + 4;
    snprintf(lines, sizeof lines, "input x f32 %zu\nop y collective.all_reduce x\noutput o y\n",
             count);
    coh_program *program = compile(device, world, lines, 0);
    coh_team *team = coh_team_world(world);
    must(coh_malloc(world, count * sizeof *bare, (void **)&bare));
    input_of(program, "x", count);
    memset(bare, 0, count * sizeof *bare);
    for (int i = 0; i < ROUNDS; i++) {
        must(coh_barrier(world));
        double begun = now();
        for (int k = 0; k < repeat; k++)
            must(coh_all_reduce(team, COH_F32, COH_SUM, bare, bare, count));
        double alone = now() - begun;
        must(coh_barrier(world));
        begun = now();
        for (int k = 0; k < repeat; k++)
            must(coh_program_execute(program));
        times[i] = (now() - begun) / repeat;
        ratios[i] = times[i] * repeat / alone;
    }
    double time = median(times, ROUNDS), ratio = median(ratios, ROUNDS);
    if (coh_rank(world) == 0)
        printf("  %9zu bytes   %9.1f us   %.3f of the bare call\n", count * 4, time * 1e6, ratio);
    must(coh_program_destroy(program));
    must(coh_free(world, bare));
}

int main(void)
{
    coh_world *world;
    coh_device *device;
    must(coh_init(NULL, &world));
    must(coh_device_open(COH_DEVICE_CPU, 0, &device));
    if (coh_size(world) > 1) {
        if (coh_rank(world) == 0)
            printf("all_reduce inside a graph, %d ranks, f32:\n", coh_size(world));
        for (size_t count = 256; count <= 4 << 20; count *= 8)
            bench_reduce(device, world, count);
    } else {
        bench_kernels(device);
        must(cohi_blas_open());
        printf("products, with the kernels of %s:\n",
               cohi_blas_functions()->openblas_get_corename());
        bench_block(device, 512, 1024, 2816);
        bench_block(device, 64, 512, 1408);
        printf("chain of silu, mul, scale, add:\n");
        for (size_t count = 1 << 12; count <= 1 << 24; count *= 16)
            bench_chain(device, count);
    }
    must(coh_device_close(device));
    return coh_finalize(world) == COH_OK ? 0 : 1;
}
