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

/* ---- scratch memory ---- */

enum { SCRATCH = 1 << 20 };

static coh_status shape_mirror(coh_op_call *call)
{
    call->output.dtype = call->inputs[0].dtype;
    call->output.shape = call->inputs[0].shape;
    call->scratch_bytes = SCRATCH;
    return COH_OK;
}

/* The negative of each element, by way of the scratch memory, all of which it writes to. */
static void range_mirror(const coh_op_call *call, const void *const *inputs, void *output,
                         uint64_t first, uint64_t count)
{
    const float *in = inputs[0];
    float *out = output, *held = call->scratch;
    (void)first;
    if (!held)
        return;
    memset(held, 0xff, SCRATCH);
    for (uint64_t i = 0; i < count; i++) {
        held[i % 1024] = -in[i];
        out[i] = held[i % 1024];
    }
}

/* Runs the lines, with the input x and the output o of `count` elements, on -0, -1, -2, ... */
static void run_mirror(const char *lines, uint64_t count, float *out, coh_program_info *info)
{
    coh_op op = COH_OP_INIT;
    coh_registry *registry;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_program *program = NULL;
    coh_device *device = open_cpu();
    coh_graph *graph = parse_graph(lines);
    float *x = malloc(count * sizeof *x);
    const coh_binding in = {"x", x, count * sizeof *x}, result = {"o", out, count * sizeof *out};
    for (uint64_t i = 0; i < count; i++)
        x[i] = -(float)i;
    op.name = "mirror";
    op.shape = shape_mirror;
    op.range = range_mirror;
    assert_ok(coh_registry_create(&registry));
    assert_ok(coh_registry_add(registry, &op));
    options.registry = registry;
    assert_ok(coh_graph_compile(graph, device, &options, &program));
    assert_ok(coh_program_run(program, &in, 1, &result, 1));
    assert_ok(coh_program_query(program, info));
    assert_ok(coh_program_destroy(program));
    coh_registry_destroy(registry);
    coh_graph_destroy(graph);
    free(x);
    assert_ok(coh_device_close(device));
}

/* Inside and at the end of what would be a chain it gets what it asked for. */
static void scratch_keeps_out_of_chains(void **state)
{
    enum { ELEMENTS = 5000 };
    static float out[ELEMENTS];
    coh_program_info info = {.size = sizeof info};
    (void)state;
    run_mirror("input x f32 5000\nop s scale x by=1\nop m mirror s\nop r relu m\nop t relu r\n"
               "output o t\n",
               ELEMENTS, out, &info);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(out[i] == (float)i);
    assert_int_equal(info.steps, 3);
    assert_true(info.arena >= SCRATCH);
    run_mirror("input x f32 5000\nop s scale x by=2\nop m mirror s\noutput o m\n", ELEMENTS, out,
               &info);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(out[i] == 2 * (float)i);
    assert_true(info.arena >= SCRATCH);
}

/* A value so large that it would be written past the caches. */
static void scratch_is_whole_for_large_values(void **state)
{
    enum { ELEMENTS = 8 << 20 };
    float *out = malloc(ELEMENTS * sizeof *out);
    coh_program_info info = {.size = sizeof info};
    (void)state;
    run_mirror("input x f32 8388608\nop m mirror x\noutput o m\n", ELEMENTS, out, &info);
    for (int i = 0; i < ELEMENTS; i++)
        assert_true(out[i] == (float)i);
    assert_true(info.arena >= 2 * ELEMENTS * sizeof *out + SCRATCH);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_give_the_same_bits),
        cmocka_unit_test(a_chain_is_one_step),
        cmocka_unit_test(shared_values_stay),
        cmocka_unit_test(scratch_keeps_out_of_chains),
        cmocka_unit_test(scratch_is_whole_for_large_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
