/* Graphs: building, text, every refusal of compiling, runs by name, the registry. */
#include "graph.h"
#include "scratch.h"

/* ---- allocations are counted ---- */

static _Thread_local long allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
enum { CAN_COUNT = 0 };
#else
enum { CAN_COUNT = 1 };
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}
#endif

/* ---- building ---- */

static void names_are_checked(void **state)
{
    coh_graph *graph;
    char longest[COH_NAME_BYTES + 1];
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[COH_NAME_BYTES] = '\0';
    assert_ok(coh_graph_create(&graph));
    assert_fails(coh_graph_input(graph, "", COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT, "not a name");
    assert_fails(coh_graph_input(graph, "a b", COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT, "'a b'");
    assert_fails(coh_graph_input(graph, longest, COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT, "95");
    longest[COH_NAME_BYTES - 1] = '\0';
    assert_ok(coh_graph_input(graph, longest, COH_F32, SHAPE(1)));
    assert_fails(coh_graph_parameter(graph, longest, COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT,
                 "taken");
    assert_fails(coh_graph_op(graph, "y", "no op", "x", NULL), COH_INVALID_ARGUMENT, "'no op'");
    assert_fails(coh_graph_op(graph, "y", "add", "x ?", NULL), COH_INVALID_ARGUMENT, "'?'");
    assert_fails(coh_graph_input(graph, "-", COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT, "lone -");
    assert_fails(coh_graph_op(graph, "y", "relu", "-", NULL), COH_INVALID_ARGUMENT, "'-'");
    assert_fails(coh_graph_output(graph, "-", "y"), COH_INVALID_ARGUMENT, "lone -");
    assert_ok(coh_graph_input(graph, "--", COH_F32, SHAPE(1)));
    assert_fails(coh_graph_op(graph, "y", "add", "x x", "by"), COH_INVALID_ARGUMENT, "name=value");
    coh_graph_destroy(graph);
}

static void shapes_are_checked(void **state)
{
    coh_graph *graph;
    coh_shape many = {COH_DIMS_MAX + 1, {1}};
    (void)state;
    assert_ok(coh_graph_create(&graph));
    assert_fails(coh_graph_input(graph, "x", COH_F32, SHAPE(4, 0)), COH_INVALID_ARGUMENT, "[4,0]");
    assert_fails(coh_graph_input(graph, "x", COH_F32, SHAPE(1ull << 40, 1ull << 40)),
                 COH_INVALID_ARGUMENT, "shape");
    assert_fails(coh_graph_input(graph, "x", (coh_dtype)99, SHAPE(4)), COH_INVALID_ARGUMENT, "99");
    assert_fails(coh_graph_input(graph, "x", COH_F32, &many), COH_INVALID_ARGUMENT, "7");
    assert_fails(coh_graph_input(graph, "x", COH_F32, NULL), COH_INVALID_ARGUMENT, "dimensions");
    assert_fails(coh_graph_constant(graph, "x", COH_F32, SHAPE(4), NULL), COH_INVALID_ARGUMENT,
                 "data");
    coh_graph_destroy(graph);
}

/* ---- text ---- */

static const char everything[] = "cohort-graph 1\n"
                                 "input x f32 2,3\n"
                                 "parameter w bf16 3\n"
                                 "state s f32 4,3\n"
                                 "constant c f32 3 0000803f0000004000004040\n"
                                 "input scalar i32 -\n"
                                 "op y matmul x,s transpose_b=1\n"
                                 "op z scale y by=0.5\n"
                                 "output logits z\n"
                                 "output again z\n";

static void text_comes_back(void **state)
{
    coh_graph *graph;
    char text[1024], cut[8];
    size_t needed;
    (void)state;
    assert_ok(coh_graph_parse(everything, strlen(everything), &graph));
    assert_ok(coh_graph_print(graph, text, sizeof text, &needed));
    assert_string_equal(text, everything);
    assert_int_equal(needed, sizeof everything);
    assert_ok(coh_graph_print(graph, cut, sizeof cut, &needed));
    assert_string_equal(cut, "cohort-");
    assert_int_equal(needed, sizeof everything);
    coh_graph_destroy(graph);
}

static void files_come_back(void **state)
{
    coh_graph *graph, *again;
    char text[1024];
    scratch file = scratch_make("", 0);
    (void)state;
    assert_ok(coh_graph_parse(everything, strlen(everything), &graph));
    assert_ok(coh_graph_save(graph, file.path));
    assert_ok(coh_graph_load(file.path, &again));
    assert_ok(coh_graph_print(again, text, sizeof text, NULL));
    assert_string_equal(text, everything);
    coh_graph_destroy(graph);
    coh_graph_destroy(again);
    assert_int_equal(ftruncate(file.fd, 40), 0);
    assert_fails(coh_graph_load(file.path, &again), COH_INVALID_ARGUMENT, file.path);
    scratch_remove(&file);
    assert_true(coh_graph_load("/nowhere/at/all", &again) != COH_OK);
    assert_says("/nowhere/at/all");
}

static void bad_lines_are_named(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "line 1"},
        {"cohort-graph 2\n", "cohort-graph 2"},
        {"cohort-graph 1\nnonsense a b\n", "line 2"},
        {"cohort-graph 1\n\n# a word\ninput x f33 4\n", "line 4"},
        {"cohort-graph 1\ninput x f32\n", "line 2"},
        {"cohort-graph 1\ninput x f32 4,\n", "4,"},
        {"cohort-graph 1\ninput x f32 4x\n", "4x"},
        {"cohort-graph 1\ninput x f32 99999999999999999999\n", "line 2"},
        {"cohort-graph 1\ninput x f32 1,1,1,1,1,1,1\n", "line 2"},
        {"cohort-graph 1\ninput x f32 1\ninput x f32 1\n", "line 3"},
        {"cohort-graph 1\nconstant c f32 1 00\n", "line 2"},
        {"cohort-graph 1\nconstant c f32 1 0000000g\n", "hexadecimal"},
        {"cohort-graph 1\nconstant c f32 1 00000000 11\n", "line 2"},
        {"cohort-graph 1\nop y add\n", "line 2"},
        {"cohort-graph 1\nop y add a,b by\n", "name=value"},
        {"cohort-graph 1\noutput y\n", "line 2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        coh_graph *graph = NULL;
        assert_fails(coh_graph_parse(rows[i].text, strlen(rows[i].text), &graph),
                     COH_INVALID_ARGUMENT, rows[i].says);
        assert_null(graph);
    }
}

/* ---- what compiling refuses ---- */

static void compile_names_the_node(void **state)
{
    (void)state;
    assert_no_compile("input x f32 2\nop y fly x\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|fly|no such operation");
    assert_no_compile("input x f32 2\nop y relu z\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|'z' is not in the graph");
    assert_no_compile("input x f32 2\noutput o z\n", COH_INVALID_ARGUMENT, "'o'|'z'");
    assert_no_compile("input x f32 2\nop y add x\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|2 to 2 inputs, not 1");
    assert_no_compile("input x f32 2\nop y relu x,x\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|1 to 1 inputs, not 2");
    assert_no_compile("input x bf16 2\nop y relu x\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|bf16|takes f32");
    assert_no_compile("input x f32 2\ninput z f32 3\nop y add x,z\noutput o y\n",
                      COH_LENGTH_MISMATCH, "'y'|[3]|[2]");
    assert_no_compile("input x f32 2,3\ninput z f32 2,3\nop y matmul x,z\noutput o y\n",
                      COH_LENGTH_MISMATCH, "'y'|[2,3]|multiplied");
    assert_no_compile("input x f32 2\nop y scale x\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|by= is missing");
    assert_no_compile("input x f32 2\nop y scale x by=fast\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|by=fast|a number");
    assert_no_compile("input x f32 2\nop y relu x by=1\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|no attribute 'by'");
    assert_no_compile("input x f32 2\nop y scale x by=1 by=2\noutput o y\n", COH_INVALID_ARGUMENT,
                      "'y'|twice");
    assert_no_compile("input x f32 2\nop y collective.all_reduce x\noutput o y\n",
                      COH_INVALID_ARGUMENT, "'y'|'world'");
    assert_no_compile("input x f32 2,3\ninput r f32 1,3\ninput p i32 1\n"
                      "op y cache_write x,r,p\noutput o y\n",
                      COH_INVALID_ARGUMENT, "'y'|'x', which is not a state");
}

static void cycles_are_shown(void **state)
{
    (void)state;
    assert_no_compile("input x f32 2\nop a add x,c\nop b relu a\nop c relu b\noutput o c\n",
                      COH_INVALID_ARGUMENT, "depends on itself|c <- b <- a");
    assert_no_compile("op a relu a\noutput o a\n", COH_INVALID_ARGUMENT, "'a'|a <- a");
}

/* The path is longer than an error message: its beginning, and where it comes back to. */
static void long_cycles_are_cut(void **state)
{
    enum { NODES = 8, LENGTH = COH_NAME_BYTES - 1 };
    char names[NODES][COH_NAME_BYTES], shown[3 * COH_NAME_BYTES];
    coh_device *device = open_cpu();
    coh_program *program = NULL;
    coh_graph *graph;
    (void)state;
    assert_ok(coh_graph_create(&graph));
    for (int i = 0; i < NODES; i++) {
        memset(names[i], 'a' + i, LENGTH);
        names[i][LENGTH] = '\0';
    }
    for (int i = 0; i < NODES; i++)
        assert_ok(coh_graph_op(graph, names[i], "relu", names[(i + 1) % NODES], NULL));
    assert_ok(coh_graph_output(graph, "o", names[0]));
    assert_fails(coh_graph_compile(graph, device, NULL, &program), COH_INVALID_ARGUMENT,
                 "depends on itself");
    snprintf(shown, sizeof shown, ": %s <- %s <- ", names[0], names[1]);
    assert_says(shown);
    snprintf(shown, sizeof shown, " <- ... <- %s", names[0]);
    assert_says(shown);
    coh_graph_destroy(graph);
    assert_ok(coh_device_close(device));
}

static void shapes_of_ops_are_refused(void **state)
{
    static const struct {
        const char *lines, *says;
    } rows[] = {
        {"input x f32 4,6\nop y reshape x shape=5,5\n", "[5,5]"},
        {"input x f32 4,6\nop y reshape x shape=-4,-6\n", "[0,0]"},
        {"input x f32 4,6\nop y slice x begin=3 end=5\n", "end=5"},
        {"input x f32 4,6\nop y slice x axis=2 end=1\n", "axis=2"},
        {"input x f32 4,6\nop y transpose x axes=0,0\n", "each dimension once"},
        {"input x f32 4,6\nop y transpose x axes=0\n", "each dimension once"},
        {"input x f32 4,6\nop y reduce x op=median\n", "op=median"},
        {"input x f32 4,6\nop y reduce x axis=2\n", "an axis"},
        {"input x f32 4,6\ninput z f32 4,7\nop y concatenate x,z\n", "[4,7]"},
        {"input x f32 4,6\ninput z i32 4,6\nop y concatenate x,z\n", "i32"},
        {"input x f32 4,6\ninput z f32 4\nop y bias x,z\n", "[6]"},
        {"input x f32 4,6\ninput z f32 4\nop y rms_norm x,z\n", "[6]"},
        {"input x f32 4,6\ninput p i32 1\nop y rotary x,p head=4\n", "head=4"},
        {"input x f32 4,6\ninput p i32 1\nop y rotary x,p head=3\n", "even"},
        {"input x f32 4,6\ninput p f32 1\nop y rotary x,p head=2\n", "i32"},
        {"input x f32 4,6\ninput i i32 2,2\nop y embedding x,i\n", "[2,2]"},
        {"input x f32 4,6\ninput i f32 2\nop y embedding x,i\n", "f32"},
        {"input x f16 4\nop y convert x to=bf16\n", "one of the two"},
        {"input x f32 4\nop y convert x to=f99\n", "f99"},
        {"input x f32 4\nop y gelu x approximate=no\n", "approximate=no"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char lines[512];
        coh_device *device = open_cpu();
        coh_program *program = NULL;
        snprintf(lines, sizeof lines, "%soutput o y\n", rows[i].lines);
        coh_graph *graph = parse_graph(lines);
        if (coh_graph_compile(graph, device, NULL, &program) == COH_OK)
            fail_msg("this compiles: %s", lines);
        assert_says(rows[i].says);
        assert_says("node 'y'");
        coh_graph_destroy(graph);
        assert_ok(coh_device_close(device));
    }
}

/* ---- runs ---- */

static void runs_go_by_name(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device,
                                         "input a f32 4\ninput b f32 4\nparameter w f32 4\n"
                                         "op s add a,b\nop p mul s,w\noutput sum s\n"
                                         "output product p\n",
                                         0);
    float a[4] = {1, 2, 3, 4}, b[4] = {10, 20, 30, 40}, w[4] = {1, 2, 3, 4}, sum[4], product[4];
    coh_binding in[] = {{"a", a, sizeof a}, {"b", b, sizeof b}, {"c", b, sizeof b}};
    const coh_binding out[] = {{"product", product, sizeof product}, {"sum", sum, sizeof sum}};
    (void)state;
    assert_fails(coh_program_run(program, in, 2, out, 2), COH_INVALID_ARGUMENT, "'w' is not bound");
    assert_fails(coh_program_bind(program, "w", w, 12), COH_LENGTH_MISMATCH, "16 bytes, and 12");
    assert_fails(coh_program_bind(program, "a", a, 16), COH_INVALID_ARGUMENT, "no parameter 'a'");
    assert_fails(coh_program_bind(program, "w", (char *)w + 1, 16), COH_BAD_ALIGNMENT, "'w'");
    assert_ok(coh_program_bind(program, "w", w, sizeof w));
    assert_fails(coh_program_run(program, in, 1, out, 2), COH_INVALID_ARGUMENT, "'b' is missing");
    assert_fails(coh_program_run(program, in, 3, out, 2), COH_INVALID_ARGUMENT, "no input 'c'");
    in[2].name = "a";
    assert_fails(coh_program_run(program, in, 3, out, 2), COH_INVALID_ARGUMENT, "twice");
    in[1].bytes = 12;
    assert_fails(coh_program_run(program, in, 2, out, 2), COH_LENGTH_MISMATCH, "'b'");
    in[1].bytes = 16;
    assert_ok(coh_program_run(program, in, 2, out, 2));
    for (int i = 0; i < 4; i++) {
        assert_true(sum[i] == a[i] + b[i]);
        assert_true(product[i] == sum[i] * w[i]);
    }
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void parameters_can_be_outputs(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device,
                                         "input a f32 2\nparameter w f32 2,2\nop r relu a\n"
                                         "op v slice w begin=1 end=2\noutput o r\n"
                                         "output whole w\noutput part v\n",
                                         0);
    float a[2] = {-1, 2}, w[4] = {1, 2, 3, 4}, o[2], whole[4], part[2];
    const coh_binding in = {"a", a, sizeof a};
    const coh_binding out[] = {
        {"o", o, sizeof o}, {"whole", whole, sizeof whole}, {"part", part, sizeof part}};
    (void)state;
    assert_ok(coh_program_bind(program, "w", w, sizeof w));
    assert_ok(coh_program_run(program, &in, 1, out, 3));
    assert_true(o[0] == 0 && o[1] == 2);
    assert_memory_equal(whole, w, sizeof w);
    assert_memory_equal(part, w + 2, sizeof part);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void runs_allocate_nothing(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device,
                                         "input a f32 64,64\nparameter w f32 64,64\n"
                                         "op m matmul a,w\nop n softmax m\nop r relu n\n"
                                         "op s scale r by=2\noutput o s\n",
                                         0);
    static float a[4096], w[4096], o[4096];
    const coh_binding in = {"a", a, sizeof a}, out = {"o", o, sizeof o};
    (void)state;
    assert_ok(coh_program_bind(program, "w", w, sizeof w));
    assert_ok(coh_program_run(program, &in, 1, &out, 1));
    long before = allocations;
    for (int i = 0; i < 100; i++)
        assert_ok(coh_program_run(program, &in, 1, &out, 1));
    assert_true(!CAN_COUNT || before > 0);
    assert_int_equal(allocations, before);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void a_failing_kernel_leaves_all_usable(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(
        device, "input ids i32 2\nparameter t f32 3,1\nop e embedding t,ids\noutput o e\n", 0);
    float t[3] = {5, 6, 7}, o[2] = {-1, -1};
    int32_t ids[2] = {1, 3};
    const coh_binding in = {"ids", ids, sizeof ids}, out = {"o", o, sizeof o};
    (void)state;
    assert_ok(coh_program_bind(program, "t", t, sizeof t));
    assert_fails(coh_program_run(program, &in, 1, &out, 1), COH_OUT_OF_BOUNDS, "node 'e'");
    assert_says("id 3");
    assert_true(o[0] == -1 && o[1] == -1);
    ids[1] = 2;
    assert_ok(coh_program_run(program, &in, 1, &out, 1));
    assert_true(o[0] == 6 && o[1] == 7);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void states_outlive_programs(void **state)
{
    coh_device *device = open_cpu();
    const char *lines = "state s f32 3,2\ninput r f32 1,2\ninput p i32 1\n"
                        "op w cache_write s,r,p\noutput o w\n";
    float r[2] = {1, 2}, o[6];
    int32_t p = 0;
    const coh_binding in[] = {{"r", r, sizeof r}, {"p", &p, sizeof p}}, out = {"o", o, sizeof o};
    (void)state;
    for (p = 0; p < 3; p++) {
        coh_program *program = compile_lines(device, lines, 0);
        r[0] = (float)(p + 1);
        assert_ok(coh_program_run(program, in, 2, &out, 1));
        assert_ok(coh_program_destroy(program));
    }
    for (int i = 0; i < 3; i++)
        assert_true(o[2 * i] == (float)(i + 1) && o[2 * i + 1] == 2);
    coh_program *program = compile_lines(device, lines, 0);
    assert_fails(coh_program_run(program, in, 2, &out, 1), COH_OUT_OF_BOUNDS, "position 3");
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_handle_drop(device, "s"));
    assert_ok(coh_device_close(device));
}

static void streams_run_programs(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program =
        compile_lines(device, "input a f32 4\nop s scale a by=3\noutput o s\n", 0);
    coh_stream *stream;
    void *a, *o;
    uint64_t bytes;
    (void)state;
    assert_ok(coh_stream_create(device, NULL, &stream));
    assert_ok(coh_program_pointer(program, "a", &a, &bytes));
    assert_ok(coh_program_pointer(program, "o", &o, NULL));
    assert_int_equal(bytes, 16);
    for (int run = 0; run < 10; run++) {
        for (int i = 0; i < 4; i++)
            ((float *)a)[i] = (float)(run + i);
        assert_ok(coh_program_enqueue(program, stream));
        assert_ok(coh_stream_submit_wait(stream));
        for (int i = 0; i < 4; i++)
            assert_true(((float *)o)[i] == 3 * (float)(run + i));
    }
    assert_ok(coh_stream_destroy(stream));
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

/* An input and an output may have one name; the output is found first. */
static void pointers_are_to_outputs_first(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device, "input a f32 4\nop s reduce a\noutput a s\n", 0);
    void *data;
    uint64_t bytes;
    (void)state;
    assert_ok(coh_program_pointer(program, "a", &data, &bytes));
    assert_int_equal(bytes, 4);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void unneeded_work_is_left_out(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(
        device, "input a f32 4\nop s relu a\nop t relu a\nop u relu t\noutput o s\n", 0);
    coh_program_info info = {.size = sizeof info};
    (void)state;
    assert_ok(coh_program_query(program, &info));
    assert_int_equal(info.nodes, 1);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

/* ---- the registry ---- */

static coh_status shape_power(coh_op_call *call)
{
    call->output.dtype = call->inputs[0].dtype;
    call->output.shape = call->inputs[0].shape;
    call->scratch_bytes = 64;
    return call->attributes[0].integer >= 0 ? COH_OK
                                            : coh_fail(COH_INVALID_ARGUMENT, "a negative power");
}

static coh_status kernel_power(const coh_op_call *call)
{
    const float *in = call->inputs[0].data;
    float *out = call->output.data, *one = call->scratch;
    *one = 1.0f;
    for (uint64_t i = 0; i < coh_shape_count(&call->output.shape); i++) {
        out[i] = *one;
        for (int64_t k = 0; k < call->attributes[0].integer; k++)
            out[i] *= in[i];
    }
    return in[0] < 0 ? coh_fail(COH_UNSUPPORTED, "%s does not like %g", call->node, (double)in[0])
                     : COH_OK;
}

static void users_add_operations(void **state)
{
    static const coh_attribute_rule rules[] = {{"n", COH_ATTRIBUTE_INTEGER, "2"}};
    coh_op op = COH_OP_INIT;
    coh_registry *registry;
    coh_device *device = open_cpu();
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_program *program = NULL;
    coh_graph *graph = parse_graph("input x f32 2\nop y power x n=3\nop z power x\n"
                                   "output cube y\noutput square z\n");
    float x[2] = {2, 3}, cube[2], square[2];
    const coh_binding in = {"x", x, sizeof x};
    const coh_binding out[] = {{"cube", cube, sizeof cube}, {"square", square, sizeof square}};
    (void)state;
    assert_ok(coh_registry_create(&registry));
    assert_fails(coh_registry_add(registry, &op), COH_INVALID_ARGUMENT, "not a name");
    op.name = "add";
    assert_fails(coh_registry_add(registry, &op), COH_INVALID_ARGUMENT, "there is an operation");
    op.name = "power";
    assert_fails(coh_registry_add(registry, &op), COH_INVALID_ARGUMENT, "no shape function");
    op.shape = shape_power;
    op.rules = rules;
    op.rule_count = 1;
    assert_ok(coh_registry_add(registry, &op));
    options.registry = registry;
    assert_fails(coh_graph_compile(graph, device, &options, &program), COH_UNSUPPORTED,
                 "no kernel for cpu");
    assert_fails(coh_registry_kernel(registry, "powder", COH_DEVICE_CPU, kernel_power),
                 COH_INVALID_ARGUMENT, "powder");
    assert_ok(coh_registry_kernel(registry, "power", COH_DEVICE_CPU, kernel_power));
    assert_ok(coh_graph_compile(graph, device, &options, &program));
    assert_ok(coh_program_run(program, &in, 1, out, 2));
    assert_true(cube[0] == 8 && cube[1] == 27 && square[0] == 4 && square[1] == 9);
    x[0] = -1;
    assert_fails(coh_program_run(program, &in, 1, out, 2), COH_UNSUPPORTED, "y does not like -1");
    assert_ok(coh_program_destroy(program));
    coh_graph_destroy(graph);
    coh_registry_destroy(registry);
    assert_ok(coh_device_close(device));
}

static void the_registry_lists_what_is_built_in(void **state)
{
    static const char *const wanted[] = {"matmul",
                                         "add",
                                         "mul",
                                         "scale",
                                         "bias",
                                         "relu",
                                         "gelu",
                                         "silu",
                                         "softmax",
                                         "layer_norm",
                                         "rms_norm",
                                         "rotary",
                                         "embedding",
                                         "transpose",
                                         "reshape",
                                         "slice",
                                         "concatenate",
                                         "reduce",
                                         "attention",
                                         "cache_write",
                                         "argmax",
                                         "convert",
                                         "collective.all_reduce",
                                         "collective.all_gather",
                                         "collective.reduce_scatter",
                                         "collective.broadcast",
                                         "collective.all_to_all"};
    coh_registry *registry;
    size_t count = 0;
    (void)state;
    assert_ok(coh_registry_create(&registry));
    while (coh_registry_name(registry, count))
        count++;
    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < count && strcmp(coh_registry_name(registry, at), wanted[i]) != 0)
            at++;
        assert_true(at < count);
    }
    coh_registry_destroy(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(compile_names_the_node),
        cmocka_unit_test(cycles_are_shown),
        cmocka_unit_test(long_cycles_are_cut),
        cmocka_unit_test(shapes_of_ops_are_refused),
        cmocka_unit_test(runs_go_by_name),
        cmocka_unit_test(parameters_can_be_outputs),
        cmocka_unit_test(runs_allocate_nothing),
        cmocka_unit_test(a_failing_kernel_leaves_all_usable),
        cmocka_unit_test(states_outlive_programs),
        cmocka_unit_test(streams_run_programs),
        cmocka_unit_test(pointers_are_to_outputs_first),
        cmocka_unit_test(unneeded_work_is_left_out),
        cmocka_unit_test(users_add_operations),
        cmocka_unit_test(the_registry_lists_what_is_built_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
