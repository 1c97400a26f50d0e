/* Collectives inside graphs, layers and blocks split over a team, partitions and relays. */
#include "graph.h"

#include <math.h>
#include <stdatomic.h>

/* Bodies run on threads of their own, where cmocka's assertions may not be used. */
#define EXPECT(condition)                    \
    do {                                     \
        if (!(condition))                    \
            return __FILE__ ": " #condition; \
    } while (0)
#define EXPECT_OK(call) EXPECT((call) == COH_OK)

static const char *compile_with(coh_world *world, coh_device *device, const coh_registry *registry,
                                const char *lines, coh_program **program)
{
    char text[2048];
    coh_graph *graph;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    options.world = world;
    options.registry = registry;
    int length = snprintf(text, sizeof text, "cohort-graph 1\n%s", lines);
    EXPECT_OK(coh_graph_parse(text, (size_t)length, &graph));
    coh_status status = coh_graph_compile(graph, device, &options, program);
    coh_graph_destroy(graph);
    EXPECT_OK(status);
    return NULL;
}

static const char *compile_text(coh_world *world, coh_device *device, const char *lines,
                                coh_program **program)
{
    return compile_with(world, device, NULL, lines, program);
}

/* ---- collectives ---- */

enum { BLOCK = 6 };

/* Element i of rank r's input is 100 r + i. */
static const char *run_collective(coh_world *world, coh_device *device, const char *op,
                                  size_t in_count, size_t out_count, float *out)
{
    char lines[256];
    coh_program *program = NULL;
    float in[8 * BLOCK];
    snprintf(lines, sizeof lines, "input x f32 %zu\nop y collective.%s\noutput o y\n", in_count,
             op);
    const char *wrong = compile_text(world, device, lines, &program);
    if (wrong)
        return wrong;
    for (size_t i = 0; i < in_count; i++)
        in[i] = (float)(100 * coh_rank(world) + (int)i);
    const coh_binding input = {"x", in, in_count * 4}, output = {"o", out, out_count * 4};
    for (int again = 0; again < 3; again++)
        EXPECT_OK(coh_program_run(program, &input, 1, &output, 1));
    EXPECT_OK(coh_program_destroy(program));
    return NULL;
}

static const char *collectives_body(coh_world *world, coh_device *device)
{
    float out[8 * BLOCK];
    int size = coh_size(world), rank = coh_rank(world), sum = 100 * size * (size - 1) / 2;
    size_t all = (size_t)size * BLOCK;
    const char *wrong;
    if ((wrong = run_collective(world, device, "all_reduce x", BLOCK, BLOCK, out)))
        return wrong;
    for (int i = 0; i < BLOCK; i++)
        EXPECT(out[i] == (float)(sum + size * i));
    if ((wrong = run_collective(world, device, "all_reduce x op=max", BLOCK, BLOCK, out)))
        return wrong;
    for (int i = 0; i < BLOCK; i++)
        EXPECT(out[i] == (float)(100 * (size - 1) + i));
    if ((wrong = run_collective(world, device, "all_gather x", BLOCK, all, out)))
        return wrong;
    for (int i = 0; i < (int)all; i++)
        EXPECT(out[i] == (float)(i / BLOCK * 100 + i % BLOCK));
    if ((wrong = run_collective(world, device, "reduce_scatter x", all, BLOCK, out)))
        return wrong;
    for (int i = 0; i < BLOCK; i++)
        EXPECT(out[i] == (float)(sum + size * (rank * BLOCK + i)));
    int root = size - 1;
    char op[64];
    snprintf(op, sizeof op, "broadcast x root=%d", root);
    if ((wrong = run_collective(world, device, op, BLOCK, BLOCK, out)))
        return wrong;
    for (int i = 0; i < BLOCK; i++)
        EXPECT(out[i] == (float)(100 * root + i));
    if ((wrong = run_collective(world, device, "all_to_all x", all, all, out)))
        return wrong;
    for (int i = 0; i < (int)all; i++)
        EXPECT(out[i] == (float)(i / BLOCK * 100 + rank * BLOCK + i % BLOCK));
    return NULL;
}

static void collectives_inside_graphs(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, collectives_body);
}

/* The values lie in the symmetric heap and no copy is made of them: the device counts. */
static const char *no_copy_body(coh_world *world, coh_device *device)
{
    coh_program *program;
    coh_device_info before = {.size = sizeof before}, after = {.size = sizeof after};
    coh_view view;
    void *in, *out;
    uint64_t bytes;
    const char *wrong = compile_text(world, device,
                                     "input x f32 4096\nop d scale x by=2\n"
                                     "op y collective.all_reduce d\noutput o y\n",
                                     &program);
    if (wrong)
        return wrong;
    EXPECT_OK(coh_program_pointer(program, "x", &in, &bytes));
    EXPECT_OK(coh_program_pointer(program, "o", &out, &bytes));
    EXPECT_OK(coh_view_of(world, in, bytes, coh_rank(world), &view));
    EXPECT_OK(coh_view_of(world, out, bytes, coh_rank(world), &view));
    for (int i = 0; i < 4096; i++)
        ((float *)in)[i] = (float)i;
    EXPECT_OK(coh_device_query(device, &before));
    EXPECT_OK(coh_program_execute(program));
    EXPECT_OK(coh_device_query(device, &after));
    EXPECT(after.moved == before.moved);
    for (int i = 0; i < 4096; i++)
        EXPECT(((float *)out)[i] == (float)(2 * i * coh_size(world)));
    EXPECT_OK(coh_program_destroy(program));
    return NULL;
}

static void an_all_reduce_copies_nothing(void **state)
{
    (void)state;
    run_ranks(3, no_copy_body);
}

/* Graphs that differ in size still share one heap; a rank whose graph is wrong stops them all. */
static const char *unequal_body(coh_world *world, coh_device *device)
{
    int rank = coh_rank(world);
    coh_program *program = NULL;
    char lines[256];
    snprintf(lines, sizeof lines, "input x f32 %d\nop y scale x by=1\noutput o y\n",
             100 * (rank + 1));
    const char *wrong = compile_text(world, device, lines, &program);
    if (wrong)
        return wrong;
    EXPECT_OK(coh_program_execute(program));
    EXPECT_OK(coh_program_destroy(program));
    for (int first = 0; first < 3; first++) { /* that rank's graph is wrong, and those behind it */
        char named[96];
        snprintf(lines, sizeof lines, "input x f32 8\nop y %s x\noutput o y\n",
                 rank >= first ? "fly" : "relu");
        snprintf(named, sizeof named, "rank %d cannot be compiled", first);
        EXPECT(compile_text(world, device, lines, &program) != NULL);
        EXPECT(strstr(coh_last_error(), rank >= first ? "'y' (fly)" : named));
    }
    return NULL;
}

static void graphs_of_ranks_may_differ(void **state)
{
    (void)state;
    run_ranks(3, unequal_body);
}

static const char *indivisible_body(coh_world *world, coh_device *device)
{
    coh_program *program = NULL;
    EXPECT(compile_text(world, device,
                        "input x f32 7\nop y collective.reduce_scatter x\noutput o y\n", &program)
           != NULL);
    EXPECT(strstr(coh_last_error(), "'y'") && strstr(coh_last_error(), "[7]"));
    EXPECT(compile_text(world, device,
                        "input x f32 7\nop y collective.broadcast x root=3\noutput o y\n", &program)
           != NULL);
    EXPECT(strstr(coh_last_error(), "root=3"));
    return NULL;
}

static void bad_collectives_are_refused(void **state)
{
    (void)state;
    run_ranks(2, indivisible_body);
}

/* ---- runs that fail on one rank ---- */

enum { IDS = 2, FEATURES = 4 };

/* One run, in which rank `failing` has a bad id or no input at all; -1: nobody. */
static coh_status run_lookup(coh_world *world, coh_program *program, int failing, int without,
                             float *out, uint64_t bytes)
{
    int fails = coh_rank(world) == failing;
    int32_t ids[IDS] = {1, fails ? 7 : 2};
    const coh_binding in = {"ids", ids, sizeof ids}, result = {"o", out, bytes};
    return coh_program_run(program, &in, fails && without ? 0 : 1, &result, 1);
}

static const char *fail_and_go_on(coh_world *world, coh_program *program)
{
    float before[2 * IDS * FEATURES], out[2 * IDS * FEATURES];
    void *data;
    uint64_t bytes;
    EXPECT_OK(coh_program_pointer(program, "o", &data, &bytes));
    EXPECT_OK(run_lookup(world, program, -1, 0, before, bytes));
    for (int round = 0; round < 8; round++) {
        int failing = round % 2, rank = coh_rank(world);
        char other[64];
        snprintf(other, sizeof other, "rank %d was refused", failing);
        coh_status status = run_lookup(world, program, failing, round / 2 % 2, out, bytes);
        EXPECT(status != COH_OK);
        const char *own = round / 2 % 2 ? "'ids' is missing" : "id 7";
        EXPECT(strstr(coh_last_error(), rank == failing ? own : other));
        memset(out, 0, sizeof out);
        EXPECT_OK(run_lookup(world, program, -1, 0, out, bytes));
        EXPECT(memcmp(out, before, bytes) == 0);
    }
    return NULL;
}

static const char *refused_body(coh_world *world, coh_device *device)
{
    static const char *const ops[] = {"all_reduce e",       "all_gather e",
                                      "reduce_scatter e",   "broadcast e root=0",
                                      "broadcast e root=1", "all_to_all e"};
    float table[3 * FEATURES];
    for (int i = 0; i < 3 * FEATURES; i++)
        table[i] = (float)(i + 100 * coh_rank(world));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char lines[256];
        coh_program *program = NULL;
        snprintf(lines, sizeof lines,
                 "input ids i32 2\nparameter t f32 3,4\nop e embedding t,ids\n"
                 "op f collective.%s\nop g collective.all_reduce f\noutput o g\n",
                 ops[i]);
        const char *wrong = compile_text(world, device, lines, &program);
        if (wrong)
            return wrong;
        float none;
        EXPECT(run_lookup(world, program, -1, 0, &none, sizeof none) == COH_LENGTH_MISMATCH);
        EXPECT_OK(coh_program_bind(program, "t", table, sizeof table));
        wrong = fail_and_go_on(world, program);
        if (wrong)
            return wrong;
        EXPECT_OK(coh_program_destroy(program));
    }
    return NULL;
}

/* An operation of the program's own, which describes the collective that it calls. */
static coh_status shape_most(coh_op_call *call)
{
    call->output.dtype = call->inputs[0].dtype;
    call->output.shape = call->inputs[0].shape;
    call->collective.kind = COH_COLLECTIVE_ALL_REDUCE;
    call->collective.team = call->team;
    call->collective.dtype = call->output.dtype;
    call->collective.op = COH_MAX;
    call->collective.count = coh_shape_count(&call->output.shape);
    return COH_OK;
}

static coh_status kernel_most(const coh_op_call *call)
{
    coh_collective most = call->collective;
    most.source = call->inputs[0].data;
    most.target = call->output.data;
    return coh_collective_run(&most);
}

static const char *own_body(coh_world *world, coh_device *device)
{
    static const coh_attribute_rule rules[] = {{"team", COH_ATTRIBUTE_TEXT, "world"}};
    float table[3 * FEATURES], out[IDS * FEATURES];
    coh_op op = COH_OP_INIT;
    coh_registry *registry;
    coh_program *program = NULL;
    op.name = "own.most";
    op.least_inputs = op.most_inputs = 1;
    op.rules = rules;
    op.rule_count = 1;
    op.shape = shape_most;
    op.communicates = 1;
    for (int i = 0; i < 3 * FEATURES; i++)
        table[i] = (float)(i + 100 * coh_rank(world));
    EXPECT_OK(coh_registry_create(&registry));
    EXPECT_OK(coh_registry_add(registry, &op));
    EXPECT_OK(coh_registry_kernel(registry, "own.most", COH_DEVICE_CPU, kernel_most));
    const char *wrong = compile_with(world, device, registry,
                                     "input ids i32 2\nparameter t f32 3,4\nop e embedding t,ids\n"
                                     "op f own.most e\noutput o f\n",
                                     &program);
    if (wrong)
        return wrong;
    EXPECT_OK(coh_program_bind(program, "t", table, sizeof table));
    EXPECT_OK(run_lookup(world, program, -1, 0, out, sizeof out));
    EXPECT(out[0] == (float)(FEATURES + 100 * (coh_size(world) - 1)));
    wrong = fail_and_go_on(world, program);
    if (wrong)
        return wrong;
    EXPECT_OK(coh_program_destroy(program));
    coh_registry_destroy(registry);
    return NULL;
}

static void own_collectives_are_refused_too(void **state)
{
    (void)state;
    run_ranks(2, own_body);
}

/* The other rank does not wait for it, learns who it was, and both can go on. */
static void a_failed_run_takes_its_place(void **state)
{
    (void)state;
    run_ranks(2, refused_body);
}

/* ---- blocks ---- */

enum {
    WIDTH = 32,
    INNER = 48,
    HEADS = 8,
    GROUPS = 4,
    HEAD = 4,
    CONTEXT = 24,
    TOKENS = 12,
};

static const struct {
    const char *name;
    int rows, columns; /* of the whole; columns 0: a vector */
    int split;         /* 0 none, 1 rows, 2 columns */
} tensors[] = {
    {"b.input_layernorm.weight", WIDTH, 0, 0},
    {"b.self_attn.q_proj.weight", HEADS *HEAD, WIDTH, 1},
    {"b.self_attn.k_proj.weight", GROUPS *HEAD, WIDTH, 1},
    {"b.self_attn.v_proj.weight", GROUPS *HEAD, WIDTH, 1},
    {"b.self_attn.o_proj.weight", WIDTH, HEADS *HEAD, 2},
    {"b.post_attention_layernorm.weight", WIDTH, 0, 0},
    {"b.mlp.gate_proj.weight", INNER, WIDTH, 1},
    {"b.mlp.up_proj.weight", INNER, WIDTH, 1},
    {"b.mlp.down_proj.weight", WIDTH, INNER, 2},
};

enum { TENSORS = sizeof tensors / sizeof *tensors };

static float element(uint64_t seed, uint64_t index)
{
    uint64_t random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + index * 7919 + 1;
    random_next(&random);
    random_next(&random);
    return (float)((double)(random_next(&random) >> 40) / (1 << 23) - 1.0) * 0.5f;
}

/* This rank's part of tensor t, into memory that the caller frees. */
static float *part_of(int t, const coh_shard *shard, uint64_t *bytes)
{
    int rows = tensors[t].rows, columns = tensors[t].columns ? tensors[t].columns : 1;
    int own_rows = tensors[t].split == 1 ? rows / shard->size : rows;
    int own_columns = tensors[t].split == 2 ? columns / shard->size : columns;
    int row = tensors[t].split == 1 ? own_rows * shard->index : 0;
    int column = tensors[t].split == 2 ? own_columns * shard->index : 0;
    float *values = malloc((size_t)(own_rows * own_columns) * sizeof *values);
    for (int i = 0; i < own_rows; i++)
        for (int k = 0; k < own_columns; k++)
            values[i * own_columns + k] =
                element((uint64_t)t, (uint64_t)((row + i) * columns + column + k));
    *bytes = (uint64_t)(own_rows * own_columns) * sizeof *values;
    return values;
}

static coh_status make_block(coh_graph *graph, const coh_shard *shard, uint64_t rows)
{
    const coh_block block = {.size = sizeof block,
                             .name = "b",
                             .input = "x",
                             .position = "p",
                             .width = WIDTH,
                             .inner = INNER,
                             .heads = HEADS,
                             .groups = GROUPS,
                             .head = HEAD,
                             .context = CONTEXT,
                             .eps = 1e-5,
                             .theta = 10000};
    coh_status status = coh_graph_input(graph, "x", COH_F32, SHAPE(rows, WIDTH));
    if (status == COH_OK)
        status = coh_graph_input(graph, "p", COH_I32, SHAPE(1));
    if (status == COH_OK)
        status = coh_graph_block(graph, &block, shard);
    return status == COH_OK ? coh_graph_output(graph, "o", "b.out") : status;
}

/* What one rank computes; the others must agree with it. Written by the first call. */
static float one_rank[TOKENS * WIDTH];
static atomic_int rounds;

static const char *run_block(coh_world *world, coh_device *device, uint64_t rows, float *out)
{
    const coh_shard shard = {"world", coh_rank(world), coh_size(world)};
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_graph *graph;
    coh_program *program;
    float *parts[TENSORS], in[TOKENS * WIDTH];
    uint64_t bytes;
    options.world = world;
    EXPECT_OK(coh_graph_create(&graph));
    EXPECT_OK(make_block(graph, &shard, rows));
    EXPECT_OK(coh_graph_compile(graph, device, &options, &program));
    coh_graph_destroy(graph);
    for (int t = 0; t < TENSORS; t++) {
        parts[t] = part_of(t, &shard, &bytes);
        EXPECT_OK(coh_program_bind(program, tensors[t].name, parts[t], bytes));
    }
    for (int i = 0; i < TOKENS * WIDTH; i++)
        in[i] = element(99, (uint64_t)i);
    for (int32_t at = 0; at < TOKENS; at += (int32_t)rows) {
        const coh_binding inputs[] = {{"x", in + at * WIDTH, rows * WIDTH * 4}, {"p", &at, 4}};
        const coh_binding output = {"o", out + at * WIDTH, rows * WIDTH * 4};
        EXPECT_OK(coh_program_run(program, inputs, 2, &output, 1));
    }
    EXPECT_OK(coh_program_destroy(program));
    for (int t = 0; t < TENSORS; t++)
        free(parts[t]);
    return NULL;
}

static const char *block_body(coh_world *world, coh_device *device)
{
    float out[TOKENS * WIDTH], again[TOKENS * WIDTH];
    static const uint64_t rows[] = {TOKENS, 1, 4};
    for (int k = 0; k < 3; k++) {
        const char *wrong = run_block(world, device, rows[k], out);
        if (!wrong)
            wrong = run_block(world, device, rows[k], again);
        if (wrong)
            return wrong;
        EXPECT(memcmp(out, again, sizeof out) == 0);
        if (coh_size(world) == 1 && k == 0)
            memcpy(one_rank, out, sizeof out);
        for (int i = 0; i < TOKENS * WIDTH; i++)
            EXPECT(fabsf(out[i] - one_rank[i]) <= 1e-4f * (1 + fabsf(one_rank[i])));
    }
    atomic_fetch_add(&rounds, 1);
    return NULL;
}

static void blocks_agree_with_one_rank(void **state)
{
    (void)state;
    run_ranks(1, block_body);
    run_ranks(2, block_body);
    run_ranks(4, block_body);
    assert_int_equal(rounds, 7);
}

static void what_cannot_be_divided_is_named(void **state)
{
    coh_graph *graph;
    const coh_shard third = {"world", 1, 3}, bad = {"world", 3, 3}, half = {"world", 0, 2};
    const coh_linear linear = {"l", "x", 32, 33};
    uint64_t first, count;
    (void)state;
    assert_ok(coh_graph_create(&graph));
    assert_fails(make_block(graph, &third, 1), COH_LENGTH_MISMATCH, "heads is 8");
    assert_says("'b'");
    assert_fails(coh_graph_linear_column(graph, &linear, &half), COH_LENGTH_MISMATCH, "'l'");
    assert_says("33");
    assert_fails(coh_graph_linear_row(graph, &linear, &third), COH_LENGTH_MISMATCH, "32");
    assert_fails(coh_graph_linear_row(graph, &linear, &bad), COH_INVALID_ARGUMENT, "3 of 3");
    assert_ok(coh_shard_range(&third, "rows", 12, &first, &count));
    assert_int_equal(first, 4);
    assert_int_equal(count, 4);
    coh_graph_destroy(graph);
}

/* ---- partition ---- */

/* The cheapest dearest stage, by trying every partition. */
static double best_cost(const double *costs, int count, int stages)
{
    double best = INFINITY, sum = 0;
    if (stages == 1) {
        for (int i = 0; i < count; i++)
            sum += costs[i];
        return sum;
    }
    for (int take = 1; take <= count - stages + 1; take++) {
        sum += costs[take - 1];
        double rest = best_cost(costs + take, count - take, stages - 1);
        best = fmin(best, fmax(sum, rest));
    }
    return best;
}

static void partitions_are_the_best(void **state)
{
    uint64_t random = 42;
    (void)state;
    for (int round = 0; round < 500; round++) {
        double costs[9];
        int first[10], count = 1 + (int)(random_next(&random) % 9);
        int stages = 1 + (int)(random_next(&random) % (uint64_t)count);
        for (int i = 0; i < count; i++)
            costs[i] = (double)(random_next(&random) % 10);
        assert_ok(coh_partition(costs, count, stages, first));
        double dearest = 0;
        assert_int_equal(first[0], 0);
        assert_int_equal(first[stages], count);
        for (int s = 0; s < stages; s++) {
            double sum = 0;
            assert_true(first[s] < first[s + 1]);
            for (int i = first[s]; i < first[s + 1]; i++)
                sum += costs[i];
            dearest = fmax(dearest, sum);
        }
        assert_true(fabs(dearest - best_cost(costs, count, stages)) < 1e-9);
    }
    double cost = 1;
    int first[3];
    assert_fails(coh_partition(&cost, 1, 2, first), COH_INVALID_ARGUMENT,
                 "2 stages are more than the 1 layers");
    cost = NAN;
    assert_fails(coh_partition(&cost, 1, 1, first), COH_INVALID_ARGUMENT, "layer 0");
}

/* ---- relay ---- */

typedef struct lap {
    const coh_team *team;
    int floats; /* of a micro-batch */
    int next;
    int fails_at;
    int results;
} lap;

enum { RELAYED = 3000 }; /* floats: more than a message that is sent at once */

/* Stage s adds 1 to each element; the first makes 10 * index. */
static coh_status stage(void *arg, int index, const void *in, void *out)
{
    lap *self = arg;
    const float *from = in;
    float *to = out, last = 10 * (float)index;
    if (index != self->next++)
        return coh_fail(COH_INVALID_ARGUMENT, "micro-batch %d out of order", index);
    if (index == self->fails_at)
        return coh_fail(COH_UNSUPPORTED, "stage fails at %d", index);
    for (int i = 0; i < self->floats; i++) {
        last = from ? from[i] + 1 : 10 * (float)index;
        if (to)
            to[i] = last;
        if (from && last != 10 * (float)index + (float)coh_team_index(self->team))
            return coh_fail(COH_INVALID_ARGUMENT, "element %d is %g", i, (double)last);
    }
    self->results++;
    return COH_OK;
}

static coh_status run_lap(coh_relay *relay, lap *self, int count)
{
    self->next = self->results = 0;
    return coh_relay_run(relay, count, (uint64_t)self->floats * sizeof(float), stage, self);
}

static const char *relay_body(coh_world *world, coh_device *device)
{
    coh_relay *relay;
    lap self = {coh_team_world(world), RELAYED, 0, -1, 0};
    (void)device;
    EXPECT_OK(coh_relay_create(coh_team_world(world), RELAYED * sizeof(float), &relay));
    for (int count = 0; count < 7; count++) {
        EXPECT_OK(run_lap(relay, &self, count));
        EXPECT(self.results == count);
    }
    EXPECT(coh_relay_run(relay, 1, RELAYED * sizeof(float) + 1, stage, &self)
           == COH_LENGTH_MISMATCH);
    EXPECT_OK(run_lap(relay, &self, 3));
    coh_relay_destroy(relay);
    return NULL;
}

static void relays_pass_on(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, relay_body);
}

/* The team is the world backwards. A stage fails at its third micro-batch: those behind learn of it
 * by name, those before do not, nobody hangs, and the relay works on. */
static const char *failing_body(coh_world *world, coh_device *device)
{
    int size = coh_size(world);
    char named[96];
    coh_relay *relay;
    coh_team *team;
    (void)device;
    EXPECT_OK(coh_team_split_strided(coh_team_world(world), size - 1, -1, size, &team));
    EXPECT_OK(coh_relay_create(team, RELAYED * sizeof(float), &relay));
    for (int failing = 0; failing < size; failing++) {
        int own = coh_team_index(team);
        lap self = {team, RELAYED, 0, own == failing ? 2 : -1, 0};
        coh_status status = run_lap(relay, &self, 5);
        EXPECT(status == (own < failing ? COH_OK : COH_UNSUPPORTED));
        EXPECT(self.results == (own < failing ? 5 : 2));
        snprintf(named, sizeof named, "stage %d, rank %d, failed at micro-batch 2", failing,
                 size - 1 - failing);
        EXPECT(own < failing || strstr(coh_last_error(), own > failing ? named : "fails at 2"));
        self.fails_at = -1;
        EXPECT_OK(run_lap(relay, &self, 3));
    }
    coh_relay_destroy(relay);
    EXPECT_OK(coh_team_destroy(team));
    return NULL;
}

static void a_failing_stage_is_named(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        run_ranks(ranks, failing_body);
}

/* The ranks disagree about the count, so that a message is left over; or about the length. */
static const char *leftover_body(coh_world *world, coh_device *device)
{
    coh_relay *relay;
    lap self = {coh_team_world(world), 100, 0, -1, 0};
    (void)device;
    EXPECT_OK(coh_relay_create(coh_team_world(world), RELAYED * sizeof(float), &relay));
    EXPECT_OK(run_lap(relay, &self, coh_rank(world) == 0 ? 3 : 2));
    EXPECT_OK(run_lap(relay, &self, 2));
    EXPECT(self.results == 2);
    self.floats = coh_rank(world) == 0 ? RELAYED : 100;
    EXPECT(run_lap(relay, &self, 2) == (coh_rank(world) == 0 ? COH_OK : COH_LENGTH_MISMATCH));
    EXPECT(coh_rank(world) == 0 || strstr(coh_last_error(), "micro-batch 0"));
    self.floats = 100;
    EXPECT_OK(run_lap(relay, &self, 2));
    coh_relay_destroy(relay);
    return NULL;
}

static void a_run_takes_only_its_own_messages(void **state)
{
    (void)state;
    run_ranks(2, leftover_body);
}

/* One thread drives both ranks, so a receive cannot be waited for, and stays under way. */
static void a_message_under_way_keeps_its_buffer(void **state)
{
    coh_options options = COH_OPTIONS_INIT;
    coh_world *worlds[2];
    coh_relay *relays[2];
    lap laps[2];
    (void)state;
    options.driven = 1;
    assert_ok(coh_init_threads(2, &options, worlds));
    for (int i = 0; i < 2; i++) {
        laps[i] = (lap){coh_team_world(worlds[i]), 100, 0, -1, 0};
        assert_ok(coh_relay_create(coh_team_world(worlds[i]), 400, &relays[i]));
    }
    assert_fails(run_lap(relays[1], &laps[1], 1), COH_UNSUPPORTED, "driven");
    assert_fails(run_lap(relays[1], &laps[1], 1), COH_BUSY, "under way");
    assert_ok(run_lap(relays[0], &laps[0], 1));
    assert_ok(run_lap(relays[0], &laps[0], 1));
    assert_ok(run_lap(relays[1], &laps[1], 1)); /* the second one's: the first was given up */
    assert_int_equal(laps[1].results, 1);
    assert_fails(run_lap(relays[1], &laps[1], 1), COH_UNSUPPORTED, "driven");
    assert_ok(run_lap(relays[0], &laps[0], 1)); /* so that it can be freed */
    for (int i = 0; i < 2; i++) {
        coh_relay_destroy(relays[i]);
        assert_ok(coh_finalize(worlds[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_inside_graphs),
        cmocka_unit_test(an_all_reduce_copies_nothing),
        cmocka_unit_test(graphs_of_ranks_may_differ),
        cmocka_unit_test(bad_collectives_are_refused),
        cmocka_unit_test(a_failed_run_takes_its_place),
        cmocka_unit_test(own_collectives_are_refused_too),
        cmocka_unit_test(blocks_agree_with_one_rank),
        cmocka_unit_test(what_cannot_be_divided_is_named),
        cmocka_unit_test(partitions_are_the_best),
        cmocka_unit_test(relays_pass_on),
        cmocka_unit_test(a_failing_stage_is_named),
        cmocka_unit_test(a_run_takes_only_its_own_messages),
        cmocka_unit_test(a_message_under_way_keeps_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
