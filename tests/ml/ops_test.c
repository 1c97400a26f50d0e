/* Every operation on the cpu beside a plain loop in double, and every instruction set's loops. */
#include "graph.h"

#include "graph/cpu/vector.h"

#include <math.h>

enum { MOST = 8192 };

static float *random_values(uint64_t seed, size_t count)
{
    float *values = malloc(count * sizeof *values);
    uint64_t random = seed * 77 + 1;
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((double)(random_next(&random) >> 40) / (1 << 23) - 1.0) * 3.0f;
    return values;
}

static void assert_close(float got, double wanted, double tolerance)
{
    double off = fabs((double)got - wanted);
    if (!(off <= tolerance * (1 + fabs(wanted))))
        fail_msg("got %.9g, wanted %.9g", (double)got, wanted);
}

/* Runs the lines with inputs a, b, c of the given counts; the output is "o". */
static void run_lines(const char *lines, const coh_binding *in, size_t count, void *out,
                      size_t bytes)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device, lines, 1);
    const coh_binding output = {"o", out, bytes};
    assert_ok(coh_program_run(program, in, count, &output, 1));
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

/* ---- element by element ---- */

static double plain_add(double a, double b)
{
    return a + b;
}
static double plain_mul(double a, double b)
{
    return a * b;
}
static double plain_scale(double a, double b)
{
    (void)b;
    return a * -1.5;
}
static double plain_relu(double a, double b)
{
    (void)b;
    return a > 0 ? a : 0;
}
static double plain_silu(double a, double b)
{
    (void)b;
    return a / (1 + exp(-a));
}
static double plain_gelu(double a, double b)
{
    (void)b;
    return 0.5 * a * (1 + erf(a / sqrt(2)));
}
static double plain_gelu_tanh(double a, double b)
{
    (void)b;
    return 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}

static void element_wise(void **state)
{
    static const struct {
        const char *op;
        double (*plain)(double, double);
    } rows[] = {
        {"add a,b", plain_add},
        {"mul a,b", plain_mul},
        {"scale a by=-1.5", plain_scale},
        {"relu a", plain_relu},
        {"silu a", plain_silu},
        {"gelu a", plain_gelu},
        {"gelu a approximate=tanh", plain_gelu_tanh},
    };
    static const size_t counts[] = {1, 15, 16, 17, 1000, MOST};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            size_t n = counts[k];
            char lines[256];
            float *a = random_values(r + 1, n), *b = random_values(r + 9, n), o[MOST];
            const coh_binding in[] = {{"a", a, n * 4}, {"b", b, n * 4}};
            snprintf(lines, sizeof lines, "input a f32 %zu\ninput b f32 %zu\nop y %s\noutput o y\n",
                     n, n, rows[r].op);
            run_lines(lines, in, 2, o, n * 4);
            for (size_t i = 0; i < n; i++)
                assert_close(o[i], rows[r].plain(a[i], b[i]), 1e-6);
            free(a);
            free(b);
        }
}

/* What a value that is no number, or beyond all bounds, becomes. */
static void element_wise_extremes(void **state)
{
    float a[6] = {NAN, INFINITY, -INFINITY, 0, -200, 200}, o[6];
    const coh_binding in = {"a", a, sizeof a};
    (void)state;
    run_lines("input a f32 6\nop y silu a\noutput o y\n", &in, 1, o, sizeof o);
    assert_true(isnan(o[0]) && o[1] == INFINITY && o[3] == 0 && fabsf(o[5] - 200) < 1e-4f);
    assert_true(fabs(o[4]) < 1e-30);
    run_lines("input a f32 6\nop y relu a\noutput o y\n", &in, 1, o, sizeof o);
    assert_true(isnan(o[0]) && o[1] == INFINITY && o[2] == 0 && o[4] == 0);
    run_lines("input a f32 6\nop y gelu a\noutput o y\n", &in, 1, o, sizeof o);
    assert_true(isnan(o[0]) && o[1] == INFINITY && o[5] == 200 && o[4] == 0);
}

static void bias_repeats(void **state)
{
    float *a = random_values(1, 3 * 700), *b = random_values(2, 700), o[3 * 700];
    const coh_binding in[] = {{"a", a, sizeof o}, {"b", b, 700 * 4}};
    (void)state;
    run_lines("input a f32 3,700\ninput b f32 700\nop y bias a,b\noutput o y\n", in, 2, o,
              sizeof o);
    for (size_t i = 0; i < 3 * 700; i++)
        assert_true(o[i] == a[i] + b[i % 700]);
    free(a);
    free(b);
}

/* ---- rows ---- */

static void softmax_row(const float *in, double *out, size_t n)
{
    double most = in[0], total = 0;
    for (size_t i = 1; i < n; i++)
        most = in[i] > most ? in[i] : most;
    for (size_t i = 0; i < n; i++)
        total += out[i] = exp(in[i] - most);
    for (size_t i = 0; i < n; i++)
        out[i] /= total;
}

static void norms(void **state)
{
    enum { ROWS = 3, WIDTH = 333 };
    float *a = random_values(3, ROWS * WIDTH), *w = random_values(4, WIDTH);
    float *b = random_values(5, WIDTH), o[ROWS * WIDTH];
    const coh_binding in[] = {{"a", a, sizeof o}, {"w", w, WIDTH * 4}, {"b", b, WIDTH * 4}};
    double soft[WIDTH];
    (void)state;
#define INPUTS "input a f32 3,333\ninput w f32 333\ninput b f32 333\n"
    run_lines(INPUTS "op y softmax a\noutput o y\n", in, 3, o, sizeof o);
    for (size_t r = 0; r < ROWS; r++) {
        softmax_row(a + r * WIDTH, soft, WIDTH);
        for (size_t i = 0; i < WIDTH; i++)
            assert_close(o[r * WIDTH + i], soft[i], 1e-6);
    }
    run_lines(INPUTS "op y rms_norm a,w eps=0.01\noutput o y\n", in, 3, o, sizeof o);
    for (size_t r = 0; r < ROWS; r++) {
        double total = 0;
        for (size_t i = 0; i < WIDTH; i++)
            total += (double)a[r * WIDTH + i] * a[r * WIDTH + i];
        for (size_t i = 0; i < WIDTH; i++)
            assert_close(o[r * WIDTH + i], a[r * WIDTH + i] / sqrt(total / WIDTH + 0.01) * w[i],
                         1e-6);
    }
    run_lines(INPUTS "op y layer_norm a,w,b eps=0.01\noutput o y\n", in, 3, o, sizeof o);
    for (size_t r = 0; r < ROWS; r++) {
        double mean = 0, total = 0;
        for (size_t i = 0; i < WIDTH; i++)
            mean += a[r * WIDTH + i] / (double)WIDTH;
        for (size_t i = 0; i < WIDTH; i++)
            total += (a[r * WIDTH + i] - mean) * (a[r * WIDTH + i] - mean);
        for (size_t i = 0; i < WIDTH; i++)
            assert_close(o[r * WIDTH + i],
                         (a[r * WIDTH + i] - mean) / sqrt(total / WIDTH + 0.01) * w[i] + b[i],
                         2e-6);
    }
#undef INPUTS
    free(a);
    free(w);
    free(b);
}

/* ---- products ---- */

static void product_is(const char *lines, size_t batch, size_t m, size_t n, size_t k,
                       int transposed, int shared)
{
    float *a = random_values(6, batch * m * k), *b = random_values(7, batch * n * k);
    float o[MOST];
    const coh_binding in[] = {{"a", a, batch * m * k * 4},
                              {"b", b, (shared ? 1 : batch) * n * k * 4}};
    run_lines(lines, in, 2, o, batch * m * n * 4);
    for (size_t p = 0; p < batch; p++)
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                const float *right = b + (shared ? 0 : p * n * k);
                double sum = 0;
                for (size_t x = 0; x < k; x++)
                    sum +=
                        (double)a[(p * m + i) * k + x] * right[transposed ? j * k + x : x * n + j];
                assert_close(o[(p * m + i) * n + j], sum, 1e-5);
            }
    free(a);
    free(b);
}

static void products(void **state)
{
    (void)state;
    product_is("input a f32 5,7\ninput b f32 7,9\nop y matmul a,b\noutput o y\n", 1, 5, 9, 7, 0, 1);
    product_is("input a f32 5,7\ninput b f32 9,7\nop y matmul a,b transpose_b=1\noutput o y\n", 1,
               5, 9, 7, 1, 1);
    product_is("input a f32 1,70\ninput b f32 90,70\nop y matmul a,b transpose_b=1\noutput o y\n",
               1, 1, 90, 70, 1, 1);
    product_is("input a f32 70\ninput b f32 70,90\nop y matmul a,b\noutput o y\n", 1, 1, 90, 70, 0,
               1);
    product_is("input a f32 3,5,7\ninput b f32 7,9\nop y matmul a,b\noutput o y\n", 3, 5, 9, 7, 0,
               1);
    product_is("input a f32 3,5,7\ninput b f32 3,7,9\nop y matmul a,b\noutput o y\n", 3, 5, 9, 7, 0,
               0);
    product_is("input a f32 3,5,7\ninput b f32 3,9,7\nop y matmul a,b transpose_b=1\n"
               "output o y\n",
               3, 5, 9, 7, 1, 0);
}

/* ---- layout ---- */

static void layout(void **state)
{
    float a[2 * 3 * 4], o[2 * 3 * 4], joined[2 * 6 * 4];
    const coh_binding in = {"a", a, sizeof a};
    (void)state;
    for (int i = 0; i < 24; i++)
        a[i] = (float)i;
    run_lines("input a f32 2,3,4\nop y transpose a axes=2,0,1\noutput o y\n", &in, 1, o, sizeof o);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 3; k++)
                assert_true(o[(i * 2 + j) * 3 + k] == a[(j * 3 + k) * 4 + i]);
    run_lines("input a f32 2,3,4\nop r reshape a shape=4,6\nop y slice r begin=1 end=3\n"
              "output o y\n",
              &in, 1, o, 12 * 4);
    for (int i = 0; i < 12; i++)
        assert_true(o[i] == (float)(i + 6));
    run_lines("input a f32 2,3,4\nop y slice a axis=1 begin=1 end=3\noutput o y\n", &in, 1, o,
              16 * 4);
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 8; i++)
            assert_true(o[j * 8 + i] == a[j * 12 + 4 + i]);
    run_lines("input a f32 2,3,4\nop y concatenate a,a axis=1\noutput o y\n", &in, 1, joined,
              sizeof joined);
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 24; i++)
            assert_true(joined[j * 24 + i] == a[j * 12 + i % 12]);
}

static void transposes_every_width(void **state)
{
    static const char *const types[] = {"u8", "f16", "i32", "f64"};
    static const size_t sizes[] = {1, 2, 4, 8};
    (void)state;
    for (int t = 0; t < 4; t++) {
        unsigned char a[15 * 8], o[15 * 8];
        char lines[128];
        const coh_binding in = {"a", a, 15 * sizes[t]};
        for (size_t i = 0; i < sizeof a; i++)
            a[i] = (unsigned char)(i * 7);
        snprintf(lines, sizeof lines, "input a %s 3,5\nop y transpose a axes=1,0\noutput o y\n",
                 types[t]);
        run_lines(lines, &in, 1, o, 15 * sizes[t]);
        for (size_t i = 0; i < 5; i++)
            for (size_t j = 0; j < 3; j++)
                assert_memory_equal(o + (i * 3 + j) * sizes[t], a + (j * 5 + i) * sizes[t],
                                    sizes[t]);
    }
}

/* ---- reduce, argmax, embedding, convert ---- */

static double reduced(const char *op, const float *in, size_t count, size_t stride)
{
    double value = in[0];
    for (size_t i = 1; i < count; i++) {
        double next = in[i * stride];
        if (op[0] == 's' || (op[0] == 'm' && op[1] == 'e'))
            value += next;
        else
            value = op[1] == 'a' ? fmax(value, next) : fmin(value, next);
    }
    return op[1] == 'e' ? value / (double)count : value;
}

static void reductions(void **state)
{
    static const char *const ops[] = {"sum", "mean", "max", "min"};
    static const size_t dims[3] = {3, 37, 21};
    float *a = random_values(8, 3 * 37 * 21), o[3 * 37 * 21];
    const coh_binding in = {"a", a, 3 * 37 * 21 * 4};
    (void)state;
    for (int axis = 0; axis < 3; axis++)
        for (int k = 0; k < 4; k++) {
            char lines[128];
            size_t inner = axis == 0 ? 37 * 21 : axis == 1 ? 21 : 1, count = dims[axis];
            size_t outer = 3 * 37 * 21 / inner / count;
            snprintf(lines, sizeof lines,
                     "input a f32 3,37,21\nop y reduce a axis=%d op=%s\noutput o y\n", axis,
                     ops[k]);
            run_lines(lines, &in, 1, o, outer * inner * 4);
            for (size_t x = 0; x < outer; x++)
                for (size_t y = 0; y < inner; y++)
                    assert_close(o[x * inner + y],
                                 reduced(ops[k], a + x * count * inner + y, count, inner), 2e-6);
        }
    a[40] = NAN;
    run_lines("input a f32 3,37,21\nop y reduce a op=max\noutput o y\n", &in, 1, o, 111 * 4);
    assert_true(!isnan(o[0]) && isnan(o[1]) && !isnan(o[2]));
    free(a);
}

static void lookups(void **state)
{
    float a[8] = {1, 5, 5, 2, NAN, -1, -3, NAN}, e[6];
    int32_t best[2], ids[3] = {1, 0, 1};
    const coh_binding in[] = {{"a", a, sizeof a}, {"i", ids, sizeof ids}};
    (void)state;
    run_lines("input a f32 2,4\nop y argmax a\noutput o y\n", in, 1, best, sizeof best);
    assert_int_equal(best[0], 1);
    assert_int_equal(best[1], 1);
    run_lines("input a f32 4,2\ninput i i32 3\nop y embedding a,i\noutput o y\n", in, 2, e,
              sizeof e);
    assert_true(e[0] == 5 && e[1] == 2 && e[2] == 1 && e[3] == 5 && e[4] == 5 && e[5] == 2);
}

static void conversions(void **state)
{
    float a[4] = {1.5f, -2.25f, 65504, 3.14159f}, back[4];
    const coh_binding in = {"a", a, sizeof a};
    (void)state;
    run_lines("input a f32 4\nop h convert a to=f16\nop y convert h to=f32\noutput o y\n", &in, 1,
              back, sizeof back);
    for (int i = 0; i < 4; i++)
        assert_close(back[i], a[i], 1e-3);
    assert_true(back[0] == 1.5f && back[1] == -2.25f && back[2] == 65504);
}

/* ---- attention ---- */

static void rotary_turns_halves(void **state)
{
    enum { ROWS = 3, HEADS = 2, HEAD = 6, WIDTH = HEADS * HEAD };
    float *a = random_values(9, ROWS * WIDTH), o[ROWS * WIDTH];
    int32_t position = 5;
    const coh_binding in[] = {{"a", a, sizeof o}, {"p", &position, 4}};
    (void)state;
    run_lines("input a f32 3,12\ninput p i32 1\nop y rotary a,p head=6 theta=100\noutput o y\n", in,
              2, o, sizeof o);
    for (int row = 0; row < ROWS; row++)
        for (int head = 0; head < HEADS; head++)
            for (int i = 0; i < HEAD / 2; i++) {
                double angle = (position + row) * pow(100, -2.0 * i / HEAD);
                const float *x = a + row * WIDTH + head * HEAD + i;
                const float *y = o + row * WIDTH + head * HEAD + i;
                assert_close(y[0], x[0] * cos(angle) - x[3] * sin(angle), 1e-5);
                assert_close(y[3], x[3] * cos(angle) + x[0] * sin(angle), 1e-5);
            }
    free(a);
}

static void attend(const float *q, const float *k, const float *v, size_t seen, size_t head,
                   size_t stride, double *out)
{
    float scores[64];
    double soft[64];
    for (size_t i = 0; i < seen; i++) {
        double sum = 0;
        for (size_t x = 0; x < head; x++)
            sum += (double)q[x] * k[i * stride + x];
        scores[i] = (float)(sum / sqrt((double)head));
    }
    softmax_row(scores, soft, seen);
    for (size_t x = 0; x < head; x++) {
        out[x] = 0;
        for (size_t i = 0; i < seen; i++)
            out[x] += soft[i] * v[i * stride + x];
    }
}

static void attention_is_causal_and_grouped(void **state)
{
    enum { ROWS = 5, HEADS = 4, GROUPS = 2, HEAD = 8, CONTEXT = 20 };
    enum { WIDTH = HEADS * HEAD, STRIDE = GROUPS * HEAD };
    float *q = random_values(10, ROWS * WIDTH), *k = random_values(11, CONTEXT * STRIDE);
    float *v = random_values(12, CONTEXT * STRIDE), o[ROWS * WIDTH];
    double wanted[HEAD];
    (void)state;
    for (int32_t position = 0; position <= CONTEXT - ROWS; position += 5) {
        const coh_binding in[] = {{"q", q, sizeof o},
                                  {"k", k, CONTEXT * STRIDE * 4},
                                  {"v", v, CONTEXT * STRIDE * 4},
                                  {"p", &position, 4}};
        run_lines("input q f32 5,32\ninput k f32 20,16\ninput v f32 20,16\ninput p i32 1\n"
                  "op y attention q,k,v,p head=8\noutput o y\n",
                  in, 4, o, sizeof o);
        for (int row = 0; row < ROWS; row++)
            for (int head = 0; head < HEADS; head++) {
                int group = head / (HEADS / GROUPS);
                attend(q + row * WIDTH + head * HEAD, k + group * HEAD, v + group * HEAD,
                       (size_t)(position + row + 1), HEAD, STRIDE, wanted);
                for (int i = 0; i < HEAD; i++)
                    assert_close(o[row * WIDTH + head * HEAD + i], wanted[i], 2e-6);
            }
    }
    free(q);
    free(k);
    free(v);
}

/* ---- instruction sets ---- */

static void every_set_gives_the_same(void **state)
{
    float *a = random_values(13, 1003), *b = random_values(14, 1003), one[1003], other[1003];
    const cohi_vector *best = cohi_vector_best();
    int seen = 0;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const cohi_vector *set = cohi_vector_at(k);
        if (!set)
            continue;
        seen++;
#define SAME(call, ...)                                   \
    do {                                                  \
        best->call(__VA_ARGS__, one, 1003);               \
        set->call(__VA_ARGS__, other, 1003);              \
        for (int i = 0; i < 1003; i++)                    \
            assert_close(other[i], (double)one[i], 2e-6); \
    } while (0)
        SAME(add, a, b);
        SAME(mul, a, b);
        SAME(scale, a, 0.3f);
        SAME(relu, a);
        SAME(silu, a);
        SAME(gelu, a);
        SAME(gelu_tanh, a);
        SAME(softmax, a);
        SAME(rms_norm, a, b, 1e-5f);
        SAME(layer_norm, a, b, a, 1e-5f);
#undef SAME
        assert_close(set->sum(a, 1003), best->sum(a, 1003), 1e-4);
        assert_true(set->max(a, 1003) == best->max(a, 1003));
        assert_true(set->min(a, 1003) == best->min(a, 1003));
    }
    assert_true(seen >= 1);
    free(a);
    free(b);
}

/* ---- what is written past the caches ---- */

static void large_values(void **state)
{
    enum { ROWS = 2051, WIDTH = 4112, COUNT = ROWS * WIDTH }; /* 32 MiB and some */
    static const char *const ops[] = {"op y scale a by=2\n", "op s scale a by=2\nop y relu s\n",
                                      "op y softmax a\n", "op y rms_norm a,w\n"};
    float *a = random_values(20, COUNT), *out = malloc(COUNT * sizeof *out);
    float w[WIDTH], row[WIDTH];
    const coh_binding in[] = {{"a", a, COUNT * 4}, {"w", w, sizeof w}};
    const cohi_vector *best = cohi_vector_best();
    (void)state;
    assert_non_null(out);
    for (int i = 0; i < WIDTH; i++)
        w[i] = 1;
    for (int k = 0; k < 4; k++) {
        char lines[256];
        coh_device *device = open_cpu();
        const coh_binding output = {"o", out, COUNT * 4};
        snprintf(lines, sizeof lines, "input a f32 2051,4112\ninput w f32 4112\n%soutput o y\n",
                 ops[k]);
        coh_program *program = compile_lines(device, lines, 0);
        assert_ok(coh_program_run(program, in, 2, &output, 1));
        for (int r = 0; r < ROWS; r++) {
            const float *from = a + r * WIDTH;
            for (int i = 0; k < 2 && i < WIDTH; i++)
                row[i] = k == 1 && from[i] < 0 ? 0 : 2 * from[i];
            if (k == 2)
                best->softmax(from, row, WIDTH);
            if (k == 3)
                best->rms_norm(from, w, 1e-5f, row, WIDTH);
            assert_memory_equal(out + r * WIDTH, row, sizeof row);
        }
        assert_ok(coh_program_destroy(program));
        assert_ok(coh_device_close(device));
    }
    free(a);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_wise),
        cmocka_unit_test(element_wise_extremes),
        cmocka_unit_test(bias_repeats),
        cmocka_unit_test(norms),
        cmocka_unit_test(products),
        cmocka_unit_test(layout),
        cmocka_unit_test(transposes_every_width),
        cmocka_unit_test(reductions),
        cmocka_unit_test(lookups),
        cmocka_unit_test(conversions),
        cmocka_unit_test(rotary_turns_halves),
        cmocka_unit_test(attention_is_causal_and_grouped),
        cmocka_unit_test(every_set_gives_the_same),
        cmocka_unit_test(large_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
