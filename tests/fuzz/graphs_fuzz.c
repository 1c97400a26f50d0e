/* Graphs as text: what is taken comes back the same when it is printed, and compiling it ends. */
#include <cohort-graph.h>

#include <stdlib.h>
#include <string.h>

enum { LENGTH_MOST = 8 }; /* of a dimension that is compiled: fuzzing is not about large memory */

/* Whether every value that the text declares is small, and nothing makes larger ones of them. */
static int is_small(const char *text)
{
    if (strstr(text, "concatenate"))
        return 0;
    for (const char *at = text; (at = strpbrk(at, "0123456789")) != NULL;) {
        char *end;
        if (strtoull(at, &end, 10) > LENGTH_MOST)
            return 0;
        at = end;
    }
    return 1;
}

static void must(coh_status status)
{
    if (status != COH_OK)
        abort();
}

static void compile(const coh_graph *graph, const char *text)
{
    coh_device *device;
    coh_program *program;
    if (!is_small(text))
        return;
    if (coh_device_open(COH_DEVICE_CPU, 0, &device) != COH_OK)
        abort();
    if (coh_graph_compile(graph, device, NULL, &program) == COH_OK)
        must(coh_program_destroy(program));
    must(coh_device_close(device));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coh_graph *graph, *again;
    size_t needed;
    if (coh_graph_parse((const char *)data, size, &graph) != COH_OK)
        return 0;
    must(coh_graph_print(graph, NULL, 0, &needed));
    char *text = malloc(needed), *other = malloc(needed);
    must(coh_graph_print(graph, text, needed, NULL));
    if (coh_graph_parse(text, needed - 1, &again) != COH_OK)
        abort();
    must(coh_graph_print(again, other, needed, NULL));
    if (strcmp(text, other) != 0)
        abort();
    compile(graph, text);
    coh_graph_destroy(graph);
    coh_graph_destroy(again);
    free(text);
    free(other);
    return 0;
}
