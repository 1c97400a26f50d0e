/* What graphs, programs, registries and split models refuse before they look any further: arguments
 * that are NULL, too many, or of another size. */
#include "graph.h"
#include "scratch.h"

static void graphs_need_their_arguments(void **state)
{
    coh_graph *graph = NULL;
    size_t needed;
    char text[64], many[4 * COH_OP_INPUTS_MAX] = "";
    (void)state;
    for (int i = 0; i <= COH_OP_INPUTS_MAX; i++)
        strcat(many, "x ");
    assert_ok(coh_graph_create(&graph));
    assert_fails(coh_graph_create(NULL), COH_INVALID_ARGUMENT, "coh_graph_create: graph is NULL");
    assert_fails(coh_graph_input(NULL, "x", COH_F32, SHAPE(1)), COH_INVALID_ARGUMENT,
                 "graph is NULL");
    assert_fails(coh_graph_op(graph, "y", "add", many, NULL), COH_INVALID_ARGUMENT,
                 "has 17 inputs; most are 16");
    assert_fails(coh_graph_output(NULL, "y", "x"), COH_INVALID_ARGUMENT,
                 "coh_graph_output: graph is NULL");
    assert_fails(coh_graph_output(graph, "y", "a b"), COH_INVALID_ARGUMENT, "is of 'a b'");
    assert_fails(coh_graph_print(NULL, text, sizeof text, &needed), COH_INVALID_ARGUMENT,
                 "coh_graph_print: graph is NULL");
    assert_fails(coh_graph_print(graph, NULL, sizeof text, &needed), COH_INVALID_ARGUMENT,
                 "coh_graph_print: text is NULL");
    coh_graph_destroy(graph);
}

static void texts_and_files_need_theirs(void **state)
{
    static const char zero[] = "cohort-graph 1\n\0input x f32 1\n";
    coh_graph *graph = NULL;
    (void)state;
    assert_fails(coh_graph_parse(NULL, 1, &graph), COH_INVALID_ARGUMENT, "text is NULL");
    assert_fails(coh_graph_parse(zero, sizeof zero - 1, NULL), COH_INVALID_ARGUMENT,
                 "graph is NULL");
    assert_fails(coh_graph_parse(zero, sizeof zero - 1, &graph), COH_INVALID_ARGUMENT, "zero byte");
    assert_fails(coh_graph_load(NULL, &graph), COH_INVALID_ARGUMENT, "path is NULL");
    assert_fails(coh_graph_load("/nowhere/at/all", &graph), COH_SYSTEM, "/nowhere/at/all");
    assert_null(graph);
    assert_ok(coh_graph_create(&graph));
    assert_fails(coh_graph_save(NULL, "x"), COH_INVALID_ARGUMENT, "graph is NULL");
    assert_fails(coh_graph_save(graph, NULL), COH_INVALID_ARGUMENT, "path is NULL");
    assert_fails(coh_graph_save(graph, "/nowhere/at/all"), COH_SYSTEM, "/nowhere/at/all");
    coh_graph_destroy(graph);
}

static void compiling_needs_its_arguments(void **state)
{
    coh_device *device = open_cpu();
    coh_graph *graph = parse_graph("input x f32 2\nop y relu x\noutput y y\n");
    coh_program *program = NULL;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_team_binding team = {.name = "t", .team = NULL};
    (void)state;
    assert_fails(coh_graph_compile(NULL, device, NULL, &program), COH_INVALID_ARGUMENT, "graph is");
    assert_fails(coh_graph_compile(graph, NULL, NULL, &program), COH_INVALID_ARGUMENT, "device is");
    assert_fails(coh_graph_compile(graph, device, NULL, NULL), COH_INVALID_ARGUMENT, "program is");
    options.teams = &team;
    options.team_count = 1;
    assert_fails(coh_graph_compile(graph, device, &options, &program), COH_INVALID_ARGUMENT,
                 "team 0 has no name, or is not a team");
    options.size--;
    assert_fails(coh_graph_compile(graph, device, &options, &program), COH_INVALID_ARGUMENT,
                 "sizeof(coh_program_options)");
    assert_null(program);
    coh_graph_destroy(graph);
    assert_ok(coh_device_close(device));
}

static void runs_need_their_arguments(void **state)
{
    coh_device *device = open_cpu();
    coh_program *program = compile_lines(device, "input x f32 2\nop y relu x\noutput y y\n", 0);
    coh_program_info info = {.size = 1};
    float data[2] = {1, 2};
    coh_binding x = {"x", data, sizeof data}, none = {"z", data, sizeof data};
    coh_binding nowhere = {"x", NULL, sizeof data};
    void *place;
    (void)state;
    assert_fails(coh_program_execute(NULL), COH_INVALID_ARGUMENT, "program is NULL");
    assert_fails(coh_program_run(NULL, &x, 1, NULL, 0), COH_INVALID_ARGUMENT, "program is NULL");
    assert_fails(coh_program_run(program, NULL, 1, NULL, 0), COH_INVALID_ARGUMENT,
                 "a list of bindings is NULL");
    assert_fails(coh_program_run(program, &nowhere, 1, NULL, 0), COH_INVALID_ARGUMENT,
                 "the memory for 'x' is NULL");
    assert_fails(coh_program_run(program, &x, 1, &none, 1), COH_INVALID_ARGUMENT,
                 "there is no output 'z'");
    assert_fails(coh_program_pointer(NULL, "x", &place, NULL), COH_INVALID_ARGUMENT, "program is");
    assert_fails(coh_program_pointer(program, "x", NULL, NULL), COH_INVALID_ARGUMENT, "data is");
    assert_fails(coh_program_pointer(program, "z", &place, NULL), COH_INVALID_ARGUMENT,
                 "no input or output 'z'");
    assert_fails(coh_program_enqueue(program, NULL), COH_INVALID_ARGUMENT,
                 "a stream of its device");
    assert_fails(coh_program_query(program, &info), COH_INVALID_ARGUMENT, "info with its size set");
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static coh_status shape_of_input(coh_op_call *call)
{
    call->output = call->inputs[0];
    return COH_OK;
}

static void registries_need_their_arguments(void **state)
{
    coh_registry *registry = NULL;
    coh_op op = COH_OP_INIT;
    (void)state;
    assert_fails(coh_registry_create(NULL), COH_INVALID_ARGUMENT, "registry is NULL");
    assert_ok(coh_registry_create(&registry));
    op.name = "mine";
    op.shape = shape_of_input;
    assert_fails(coh_registry_add(NULL, &op), COH_INVALID_ARGUMENT, "a registry and an op");
    op.most_inputs = COH_OP_INPUTS_MAX + 1;
    assert_fails(coh_registry_add(registry, &op), COH_INVALID_ARGUMENT, "takes 1 to 17 inputs");
    op.most_inputs = 1;
    op.rule_count = 2;
    assert_fails(coh_registry_add(registry, &op), COH_INVALID_ARGUMENT, "2 rules");
    assert_fails(coh_registry_kernel(registry, "relu", (coh_device_kind)99, NULL),
                 COH_INVALID_ARGUMENT, "no kind of device 99");
    coh_registry_destroy(registry);
}

/* ---- what shape functions refuse ---- */

static void shapes_are_checked(void **state)
{
    (void)state;
    assert_no_compile("input x f32 2\ninput z f32 2,3\nop y matmul x,z transpose_b=1\n"
                      "op w matmul z,x\noutput o w\n",
                      COH_LENGTH_MISMATCH, "two dimensions or more");
    assert_no_compile("input q f32 2,8\ninput k f32 4,8\ninput v f32 2,8\ninput p i32 1\n"
                      "op y attention q,k,v,p head=8\noutput o y\n",
                      COH_LENGTH_MISMATCH, "the shape of the keys");
    assert_no_compile("input q f32 2,16\ninput k f32 4,24\ninput v f32 4,24\ninput p i32 1\n"
                      "op y attention q,k,v,p head=8\noutput o y\n",
                      COH_LENGTH_MISMATCH, "a number of heads that divides");
    assert_no_compile("state s f32 2,8\ninput r f32 3,8\ninput p i32 1\n"
                      "op y cache_write s,r,p\noutput o y\n",
                      COH_LENGTH_MISMATCH, "rows of the cache");
    assert_no_compile("input a f32 2\ninput i i32 1\nop y embedding a,i\noutput o y\n",
                      COH_LENGTH_MISMATCH, "[rows,width]");
    assert_no_compile("input a f32 2\nop y concatenate a,a axis=3\noutput o y\n", COH_OUT_OF_BOUNDS,
                      "there is no axis 3");
}

/* What a user's shape function may get wrong: which, the attribute says. */
static coh_status shape_wrong(coh_op_call *call)
{
    call->output = call->inputs[0];
    switch (call->attributes[0].integer) {
    case 0:
        call->output.shape.dims = -1;
        break;
    case 1:
        call->alias = 7;
        break;
    default:
        call->alias = 0;
        call->alias_at = 1;
    }
    return COH_OK;
}

static coh_status kernel_wrong(const coh_op_call *call)
{
    (void)call;
    return COH_OK;
}

static void assert_wrong(coh_registry *registry, const char *how, coh_status status,
                         const char *words)
{
    char lines[128];
    coh_device *device = open_cpu();
    coh_program *program = NULL;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    options.registry = registry;
    snprintf(lines, sizeof lines, "input x f32 2\nop y wrong x how=%s\noutput o y\n", how);
    coh_graph *graph = parse_graph(lines);
    assert_fails(coh_graph_compile(graph, device, &options, &program), status, words);
    coh_graph_destroy(graph);
    assert_ok(coh_device_close(device));
}

static void shapes_of_users_are_checked(void **state)
{
    static const coh_attribute_rule rules[] = {{"how", COH_ATTRIBUTE_INTEGER, NULL}};
    coh_registry *registry;
    coh_op op = COH_OP_INIT;
    (void)state;
    op.name = "wrong";
    op.shape = shape_wrong;
    op.rules = rules;
    op.rule_count = 1;
    assert_ok(coh_registry_create(&registry));
    assert_ok(coh_registry_add(registry, &op));
    assert_ok(coh_registry_kernel(registry, "wrong", COH_DEVICE_CPU, kernel_wrong));
    assert_wrong(registry, "0", COH_INVALID_ARGUMENT, "its shape would be");
    assert_wrong(registry, "1", COH_INVALID_ARGUMENT, "it has no input 7 to lie in");
    assert_wrong(registry, "2", COH_OUT_OF_BOUNDS, "its 8 bytes from 1 on are not in 'x' of 8");
    coh_registry_destroy(registry);
}

static void states_are_checked(void **state)
{
    char prefix[COH_HANDLE_NAME_BYTES] = "";
    coh_device *device = open_cpu();
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_program *program = compile_lines(device, "state s f32 4\nop y relu s\noutput o y\n", 0),
                *other = NULL;
    coh_graph *graph = parse_graph("state s f32 8\nop y relu s\noutput o y\n");
    (void)state;
    assert_fails(coh_graph_compile(graph, device, NULL, &other), COH_LENGTH_MISMATCH,
                 "state 's': ");
    memset(prefix, 'a', sizeof prefix - 1);
    options.prefix = prefix;
    assert_fails(coh_graph_compile(graph, device, &options, &other), COH_INVALID_ARGUMENT,
                 "with its prefix the name is longer");
    coh_graph_destroy(graph);
    assert_ok(coh_program_destroy(program));
    assert_ok(coh_device_close(device));
}

static void reductions_are_named(void **state)
{
    coh_device *device = open_cpu();
    coh_world *world;
    coh_options small = COH_OPTIONS_INIT;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_program *program = NULL;
    coh_graph *graph =
        parse_graph("input x f32 8\nop y collective.all_reduce x op=most\noutput o y\n");
    (void)state;
    small.heap = 1 << 20;
    assert_ok(coh_init_threads(1, &small, &world));
    options.world = world;
    assert_fails(coh_graph_compile(graph, device, &options, &program), COH_INVALID_ARGUMENT,
                 "op=most: there is no such reduction");
    coh_graph_destroy(graph);
    assert_ok(coh_device_close(device));
    assert_ok(coh_finalize(world));
}

static coh_status stage(void *arg, int index, const void *in, void *out)
{
    (void)arg, (void)index, (void)in, (void)out;
    return COH_OK;
}

static void split_models_need_theirs(void **state)
{
    coh_graph *graph;
    coh_relay *relay = NULL;
    coh_shard whole = {.team = "t", .index = 0, .size = 1};
    coh_linear linear = {.name = "l", .input = NULL, .in = 2, .out = 2};
    coh_block block = {.size = sizeof block, .name = "b", .input = "x", .position = "p"};
    char longest[COH_NAME_BYTES] = "";
    double cost = 1;
    int first[2];
    (void)state;
    assert_ok(coh_graph_create(&graph));
    assert_fails(coh_graph_linear_row(graph, &linear, &whole), COH_INVALID_ARGUMENT,
                 "a layer with a name and an input");
    memset(longest, 'a', sizeof longest - 1);
    linear.name = longest;
    linear.input = "x";
    assert_fails(coh_graph_linear_row(graph, &linear, &whole), COH_INVALID_ARGUMENT,
                 "is longer than 95 bytes");
    assert_fails(coh_graph_block(NULL, &block, &whole), COH_INVALID_ARGUMENT,
                 "a graph, and a block");
    block.heads = 3;
    block.groups = 2;
    assert_fails(coh_graph_block(graph, &block, &whole), COH_LENGTH_MISMATCH,
                 "3 heads cannot be divided among 2 groups");
    assert_fails(coh_partition(&cost, 1, 0, first), COH_INVALID_ARGUMENT, "1 layers in 0 stages");
    assert_fails(coh_relay_create(NULL, 8, &relay), COH_INVALID_ARGUMENT, "a team, a length");
    assert_fails(coh_relay_run(NULL, 1, 8, stage, NULL), COH_INVALID_ARGUMENT, "a relay, a stage");
    coh_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_need_their_arguments),
        cmocka_unit_test(texts_and_files_need_theirs),
        cmocka_unit_test(compiling_needs_its_arguments),
        cmocka_unit_test(runs_need_their_arguments),
        cmocka_unit_test(registries_need_their_arguments),
        cmocka_unit_test(shapes_are_checked),
        cmocka_unit_test(shapes_of_users_are_checked),
        cmocka_unit_test(states_are_checked),
        cmocka_unit_test(reductions_are_named),
        cmocka_unit_test(split_models_need_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
