/* Chains and the plan: random graphs give the same bits however they are laid out. */
#include "graph.h"

enum { GRAPHS = 300, NODES = 24, ROWS = 6, WIDTH = 700, COUNT = ROWS * WIDTH };

/* A random graph of element-wise operations, norms, views and products with themselves, and what it
 * outputs it has. */
typedef struct sample {
    char text[8192];
    size_t length;
    int count;
    int outputs[4];
} sample;

static void say(sample *made, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(sample *made, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    made->length += (size_t)vsnprintf(made->text + made->length, sizeof made->text - made->length,
                                      format, arguments);
    va_end(arguments);
    assert_true(made->length < sizeof made->text);
}

static void add_node(sample *made, uint64_t *random)
{
    static const char *const unary[] = {"relu", "silu", "gelu", "scale", "softmax"};
    static const char *const attributes[] = {"", "", "", " by=0.75", ""};
    int n = made->count++, a = (int)(random_next(random) % (uint64_t)n);
    int b = (int)(random_next(random) % (uint64_t)n);
    uint64_t kind = random_next(random) % 9;
    if (kind < 5)
        say(made, "op v%d %s v%d%s\n", n, unary[kind], a, attributes[kind]);
    else if (kind < 7)
        say(made, "op v%d %s v%d,v%d\n", n, kind == 5 ? "add" : "mul", a, b);
    else if (kind == 7)
        say(made, "op v%d bias v%d,b\n", n, a);
    else /* there and back, so that the shape stays */
        say(made, "op r%d reshape v%d shape=%d,%d\nop v%d reshape r%d shape=%d,%d\n", n, a, WIDTH,
            ROWS, n, n, ROWS, WIDTH);
}

static void make_sample(sample *made, uint64_t seed)
{
    uint64_t random = seed * 1234567 + 89;
    *made = (sample){.count = 2};
    say(made, "input v0 f32 %d,%d\ninput v1 f32 %d,%d\ninput b f32 %d\n", ROWS, WIDTH, ROWS, WIDTH,
        WIDTH);
    while (made->count < NODES)
        add_node(made, &random);
    for (int i = 0; i < 4; i++) {
        made->outputs[i] = i == 0 ? NODES - 1 : (int)(random_next(&random) % NODES);
        say(made, "output o%d v%d\n", i, made->outputs[i]);
    }
}

static void fill(float *values, size_t count, uint64_t seed)
{
    uint64_t random = seed + 5;
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((double)(random_next(&random) >> 40) / (1 << 23) - 1.0);
}

static void run_sample(coh_program *program, uint64_t seed, float *out)
{
    static float v0[COUNT], v1[COUNT], b[WIDTH];
    const coh_binding in[] = {{"v0", v0, sizeof v0}, {"v1", v1, sizeof v1}, {"b", b, sizeof b}};
    char names[4][16];
    coh_binding outputs[4];
    fill(v0, COUNT, seed);
    fill(v1, COUNT, seed + 1);
    fill(b, WIDTH, seed + 2);
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "o%d", i);
        outputs[i] = (coh_binding){names[i], out + i * COUNT, COUNT * sizeof *out};
    }
    assert_ok(coh_program_run(program, in, 3, outputs, 4));
}

/* Every value is an output, so that none shares memory with another. */
static coh_program *compile_apart(coh_device *device, const sample *made)
{
    char text[8192];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", made->text);
    for (int i = 0; i < NODES; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "output all%d v%d\n", i, i);
    return compile_lines(device, text, 1);
}

static void layouts_give_the_same_bits(void **state)
{
    static float apart[4 * COUNT], shared[4 * COUNT], chained[4 * COUNT];
    coh_device *device = open_cpu();
    long steps = 0, nodes = 0;
    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        sample made;
        coh_program_info info = {.size = sizeof info};
        make_sample(&made, seed);
        coh_program *programs[] = {compile_apart(device, &made),
                                   compile_lines(device, made.text, 1),
                                   compile_lines(device, made.text, 0)};
        run_sample(programs[0], seed, apart);
        run_sample(programs[1], seed, shared);
        run_sample(programs[2], seed, chained);
        if (memcmp(apart, shared, sizeof apart) != 0 || memcmp(apart, chained, sizeof apart) != 0)
            fail_msg("seed %d:\n%s", (int)seed, made.text);
        run_sample(programs[2], seed, shared);
        assert_memory_equal(shared, chained, sizeof shared);
        assert_ok(coh_program_query(programs[2], &info));
        steps += info.steps;
        nodes += info.nodes;
        for (int i = 0; i < 3; i++)
            assert_ok(coh_program_destroy(programs[i]));
    }
    assert_true(steps < nodes);
    assert_ok(coh_device_close(device));
}

static void a_chain_is_one_step(void **state)
{
    coh_device *device = open_cpu();
    const char *lines = "input g f32 64,704\ninput u f32 64,704\ninput b f32 704\n"
                        "op c bias g,b\nop s silu c\nop m mul s,u\nop t scale m by=2\noutput o t\n";
    coh_program *one = compile_lines(device, lines, 0), *many = compile_lines(device, lines, 1);
    coh_program_info joined = {.size = sizeof joined}, apart = {.size = sizeof apart};
    (void)state;
    assert_ok(coh_program_query(one, &joined));
    assert_ok(coh_program_query(many, &apart));
    assert_int_equal(joined.nodes, 4);
    assert_int_equal(joined.steps, 1);
    assert_int_equal(apart.steps, 4);
    assert_ok(coh_program_destroy(one));
    assert_ok(coh_program_destroy(many));
    assert_ok(coh_device_close(device));
}

/* What an output or two users need is not swallowed by a chain. */
static void shared_values_stay(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device,
                                         "input x f32 8\nop a relu x\nop b silu a\nop c gelu a\n"
                                         "op d add b,c\noutput o d\noutput p b\n",
                                         0);
    coh_program_info info = {.size = sizeof info};
    (void)state;
    assert_ok(coh_program_query(program, &info));
    assert_int_equal(info.nodes, 4);
    assert_int_equal(info.steps, 3);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_give_the_same_bits),
        cmocka_unit_test(a_chain_is_one_step),
        cmocka_unit_test(shared_values_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
