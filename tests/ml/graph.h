/* graph.h - small words for tests of graphs. */
#ifndef TEST_ML_GRAPH_H
#define TEST_ML_GRAPH_H

#include "ml.h"

#include <cohort-graph.h>
#include <stdarg.h>
#include <stdio.h>

#define SHAPE(...) \
    (&(coh_shape){(int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)), {__VA_ARGS__}})

static inline coh_graph *parse_graph(const char *lines)
{
    char text[8192];
    coh_graph *graph = NULL;
    int length = snprintf(text, sizeof text, "cohort-graph 1\n%s", lines);
    assert_true(length < (int)sizeof text);
    assert_ok(coh_graph_parse(text, (size_t)length, &graph));
    return graph;
}

/* Compiles the lines; the program is the caller's. */
static inline coh_program *compile_lines(coh_device *device, const char *lines, int separate)
{
    coh_graph *graph = parse_graph(lines);
    coh_program_options options = COH_PROGRAM_OPTIONS_INIT;
    coh_program *program = NULL;
    options.separate = separate;
    assert_ok(coh_graph_compile(graph, device, &options, &program));
    coh_graph_destroy(graph);
    return program;
}

/* Compiling the lines is refused, in words that hold each of `words` (separated by '|'). */
static inline void assert_no_compile(const char *lines, coh_status status, const char *words)
{
    coh_device *device = open_cpu();
    coh_graph *graph = parse_graph(lines);
    coh_program *program = NULL;
    char copy[512], *rest = copy;
    assert_status(coh_graph_compile(graph, device, NULL, &program), status, lines, __FILE__,
                  __LINE__);
    assert_null(program);
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word; (word = strsep(&rest, "|")) != NULL;)
        assert_says(word);
    coh_graph_destroy(graph);
    assert_ok(coh_device_close(device));
}

static inline int32_t bits_of(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
