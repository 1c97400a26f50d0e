/*
 * heap_only.c - collectives inside a graph work on its values where they are. Asked for are the
 * algorithms that read and write the ranks' own buffers in the heap and can do nothing else: that a
 * call on private memory is refused shows it, and that the graph's calls are not shows that nothing
 * is copied on their way, on this side of the public call or the other.
 *
 * For cohort run, with two ranks or more, of which COUNT is a multiple.
 */
#include <cohort-graph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 48 * 1024 };

typedef struct kind {
    const char *variable; /* that asks for the algorithm */
    const char *algorithm;
    const char *op;
} kind;

static const kind kinds[] = {
    {"COHORT_ALL_REDUCE", "two-shot", "all_reduce"},
    {"COHORT_REDUCE_SCATTER", "direct", "reduce_scatter"},
    {"COHORT_ALL_GATHER", "direct", "all_gather"},
    {"COHORT_BROADCAST", "direct", "broadcast"},
    {"COHORT_ALL_TO_ALL", "direct", "all_to_all"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void fail(const char *what)
{
    fprintf(stderr, "heap_only: %s: %s\n", what, coh_last_error());
    exit(1);
}

static void must(coh_status status, const char *what)
{
    if (status != COH_OK)
        fail(what);
}

static coh_program *compile(coh_world *world, coh_device *device, const char *op)
{
    char text[256];
    coh_graph *graph;
    coh_program *program;
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    options.world = world;
    int length = snprintf(text, sizeof text,
                          "cohort-graph 1\ninput x f32 %d\nop d scale x by=2\n"
                          "op y collective.%s d%s\noutput o y\n",
                          (int)COUNT, op, strcmp(op, "broadcast") == 0 ? " root=0" : "");
    must(coh_graph_parse(text, (size_t)length, &graph), "parse");
    must(coh_graph_compile(graph, device, &options, &program), op);
    coh_graph_destroy(graph);
    return program;
}

/* Element i of the output, where that of every rank's input is i % 64, which the graph doubles. */
static float expected(const char *op, int size, int rank, size_t i)
{
    size_t part = COUNT / (size_t)size;
    size_t at = strcmp(op, "reduce_scatter") == 0 ? (size_t)rank * part + i
                : strcmp(op, "all_gather") == 0   ? i % COUNT
                : strcmp(op, "all_to_all") == 0   ? (size_t)rank * part + i % part
                                                  : i;
    float sum =
        strcmp(op, "all_reduce") == 0 || strcmp(op, "reduce_scatter") == 0 ? (float)size : 1;
    return 2 * sum * (float)(at % 64);
}

static void run(coh_world *world, coh_device *device, const char *op)
{
    coh_program *program = compile(world, device, op);
    coh_device_info before = {.size = sizeof before}, after = {.size = sizeof after};
    float *in, *out;
    uint64_t bytes;
    must(coh_program_pointer(program, "x", (void **)&in, &bytes), "input");
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (float)(i % 64);
    must(coh_device_query(device, &before), "query");
    must(coh_program_execute(program), op);
    must(coh_device_query(device, &after), "query");
    if (after.moved != before.moved)
        fail("the device has moved bytes");
    must(coh_program_pointer(program, "o", (void **)&out, &bytes), "output");
    if (bytes < COUNT / (size_t)coh_size(world) * sizeof *out)
        fail("the output is short");
    for (size_t i = 0; i < bytes / sizeof *out; i++)
        if (out[i] != expected(op, coh_size(world), coh_rank(world), i))
            fail(op);
    must(coh_program_destroy(program), "destroy");
}

/* The other side of the argument: what would have to be copied is refused. */
static void private_memory_is_refused(coh_world *world)
{
    float *source = calloc(COUNT, sizeof *source), *target = calloc(COUNT, sizeof *target);
    if (!source || !target)
        fail("no memory");
    coh_status status =
        coh_all_reduce(coh_team_world(world), COH_F32, COH_SUM, source, target, COUNT);
    if (status != COH_UNSUPPORTED || !strstr(coh_last_error(), "symmetric heap"))
        fail("private memory is taken");
    free(source);
    free(target);
}

int main(void)
{
    coh_world *world;
    coh_device *device;
    for (int i = 0; i < KINDS; i++)
        setenv(kinds[i].variable, kinds[i].algorithm, 1);
    must(coh_init(NULL, &world), "init");
    must(coh_device_open(COH_DEVICE_CPU, 0, &device), "device");
    for (int i = 0; i < KINDS; i++)
        run(world, device, kinds[i].op);
    private_memory_is_refused(world);
    must(coh_device_close(device), "close");
    must(coh_finalize(world), "finalize");
    return 0;
}
