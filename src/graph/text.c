/* The graph as lines: cohort-graph.h says how they look. */
#include "graph/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "cohort-graph 1"

/* ---- print ---- */

/* Text that is cut to a room but measured whole. */
typedef struct sink {
    char *text;
    size_t room;
    size_t length;
} sink;

static void emit(sink *out, const char *text, size_t length)
{
    if (out->length + 1 < out->room) {
        size_t left = out->room - 1 - out->length;
        memcpy(out->text + out->length, text, length < left ? length : left);
    }
    out->length += length;
}

static void emit_text(sink *out, const char *text)
{
    emit(out, text, strlen(text));
}

static void emit_shape(sink *out, const coh_shape *shape)
{
    char number[24];
    if (shape->dims == 0)
        emit_text(out, "-");
    for (int i = 0; i < shape->dims; i++) {
        snprintf(number, sizeof number, "%s%" PRIu64, i ? "," : "", shape->dim[i]);
        emit_text(out, number);
    }
}

static void emit_plain(sink *out, const cohi_value *value)
{
    emit_text(out, " ");
    emit_text(out, coh_dtype_name(value->dtype));
    emit_text(out, " ");
    emit_shape(out, &value->shape);
    if (value->kind != COHI_CONSTANT)
        return;
    const unsigned char *data = value->data;
    uint64_t bytes = coh_shape_bytes(&value->shape, value->dtype);
    emit_text(out, " ");
    for (uint64_t i = 0; i < bytes; i++) {
        static const char digits[] = "0123456789abcdef";
        char pair[2] = {digits[data[i] >> 4], digits[data[i] & 15]};
        emit(out, pair, sizeof pair);
    }
}

static void emit_node(sink *out, const cohi_value *value)
{
    emit_text(out, " ");
    emit_text(out, value->op);
    emit_text(out, " ");
    if (value->input_count == 0)
        emit_text(out, "-");
    for (int i = 0; i < value->input_count; i++) {
        emit_text(out, i ? "," : "");
        emit_text(out, value->inputs[i]);
    }
    if (*value->attributes) {
        emit_text(out, " ");
        emit_text(out, value->attributes);
    }
}

static void emit_graph(sink *out, const coh_graph *graph)
{
    emit_text(out, HEADER "\n");
    for (int i = 0; i < graph->value_count; i++) {
        const cohi_value *value = graph->values[i];
        emit_text(out, cohi_value_kind_name(value->kind));
        emit_text(out, " ");
        emit_text(out, value->name);
        (value->kind == COHI_NODE ? emit_node : emit_plain)(out, value);
        emit_text(out, "\n");
    }
    for (int i = 0; i < graph->output_count; i++) {
        emit_text(out, "output ");
        emit_text(out, graph->outputs[i]->name);
        emit_text(out, " ");
        emit_text(out, graph->outputs[i]->value);
        emit_text(out, "\n");
    }
}

coh_status coh_graph_print(const coh_graph *graph, char *text, size_t room, size_t *needed)
{
    if (!graph || (!text && room > 0))
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_print: %s is NULL",
                        graph ? "text" : "graph");
    sink out = {text, room, 0};
    emit_graph(&out, graph);
    if (room > 0)
        text[out.length < room ? out.length : room - 1] = '\0';
    if (needed)
        *needed = out.length + 1;
    return COH_OK;
}

/* ---- parse ---- */

enum { WORDS_MAX = 5, TEXT_SHOWN = 64 };

/* A line cut into words; the last one takes the rest. Its text is the parser's own copy. */
typedef struct line {
    int number;
    int count;
    char *words[WORDS_MAX];
} line;

static coh_status complain(const line *at, const char *what, const char *text)
{
    return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_parse: line %d: %s '%.*s'", at->number, what,
                    TEXT_SHOWN, text);
}

static void cut(char *text, int most, line *out)
{
    out->count = 0;
    while (*(text += strspn(text, " \t")) != '\0') {
        out->words[out->count++] = text;
        if (out->count == most)
            break;
        text += strcspn(text, " \t");
        if (*text)
            *text++ = '\0';
    }
}

static coh_status parse_dtype(const line *at, const char *word, coh_dtype *dtype)
{
    static const struct {
        const char *name;
        coh_dtype dtype;
    } rows[] = {
#define ROW(constant, value, name, bytes) {name, constant},
        COH_DTYPE_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, word) == 0) {
            *dtype = rows[i].dtype;
            return COH_OK;
        }
    return complain(at, "there is no type", word);
}

static coh_status parse_shape(const line *at, const char *word, coh_shape *shape)
{
    const char *next = word;
    shape->dims = 0;
    if (strcmp(word, "-") == 0)
        return COH_OK;
    for (;;) {
        char *end;
        errno = 0;
        if (*next < '0' || *next > '9' || shape->dims == COH_DIMS_MAX)
            return complain(at, "this is not a shape:", word);
        shape->dim[shape->dims++] = strtoull(next, &end, 10);
        if (errno || (*end != ',' && *end != '\0'))
            return complain(at, "this is not a shape:", word);
        if (*end == '\0')
            return COH_OK;
        next = end + 1;
    }
}

static int digit_of(char letter)
{
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Turns hexadecimal digits into bytes where they are. */
static coh_status parse_data(const line *at, char *word, uint64_t bytes)
{
    size_t length = strcspn(word, " \t");
    if (word[length + strspn(word + length, " \t")] != '\0')
        return complain(at, "there is more after the bytes of", at->words[1]);
    if (length % 2 != 0 || length / 2 != bytes)
        return complain(at, "the shape does not match the number of bytes of", at->words[1]);
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_of(word[2 * i]), low = digit_of(word[2 * i + 1]);
        if (high < 0 || low < 0)
            return complain(at, "these are not hexadecimal bytes:", word + 2 * i);
        word[i] = (char)(high * 16 + low);
    }
    return COH_OK;
}

static coh_status parse_plain(coh_graph *graph, line *at, cohi_value_kind kind)
{
    typedef coh_status add_call(coh_graph *, const char *, coh_dtype, const coh_shape *);
    static add_call *const adds[] = {[COHI_INPUT] = coh_graph_input,
                                     [COHI_PARAMETER] = coh_graph_parameter,
                                     [COHI_STATE] = coh_graph_state};
    coh_dtype dtype = COH_F32;
    coh_shape shape = {0};
    if (at->count != (kind == COHI_CONSTANT ? 5 : 4))
        return complain(at, "a name, a type, a shape, and a constant's bytes must follow",
                        at->words[0]);
    coh_status status = parse_dtype(at, at->words[2], &dtype);
    if (status == COH_OK)
        status = parse_shape(at, at->words[3], &shape);
    if (status != COH_OK)
        return status;
    if (kind != COHI_CONSTANT)
        return adds[kind](graph, at->words[1], dtype, &shape);
    status = parse_data(at, at->words[4], coh_shape_bytes(&shape, dtype));
    return status == COH_OK ? coh_graph_constant(graph, at->words[1], dtype, &shape, at->words[4])
                            : status;
}

static coh_status parse_node(coh_graph *graph, line *at)
{
    if (at->count < 4)
        return complain(at, "a name, an operation and its inputs must follow", at->words[0]);
    char *inputs = at->words[3];
    if (strcmp(inputs, "-") == 0)
        inputs = NULL;
    for (char *comma = inputs; comma && (comma = strchr(comma, ',')) != NULL;)
        *comma = ' ';
    return coh_graph_op(graph, at->words[1], at->words[2], inputs,
                        at->count > 4 ? at->words[4] : NULL);
}

static coh_status parse_line(coh_graph *graph, char *text, int number)
{
    line at = {.number = number};
    cut(text, WORDS_MAX, &at);
    if (at.count == 0 || at.words[0][0] == '#')
        return COH_OK;
    coh_status status;
    if (strcmp(at.words[0], "output") == 0)
        status = at.count == 3 ? coh_graph_output(graph, at.words[1], at.words[2])
                               : complain(&at, "a name and a value must follow", at.words[0]);
    else if (strcmp(at.words[0], cohi_value_kind_name(COHI_NODE)) == 0)
        status = parse_node(graph, &at);
    else {
        int kind = COHI_INPUT;
        while (kind < COHI_NODE
               && strcmp(at.words[0], cohi_value_kind_name((cohi_value_kind)kind)) != 0)
            kind++;
        status = kind < COHI_NODE ? parse_plain(graph, &at, (cohi_value_kind)kind)
                                  : complain(&at, "a line cannot begin with", at.words[0]);
    }
    if (status != COH_OK && !strstr(coh_last_error(), ": line "))
        return coh_fail(status, "coh_graph_parse: line %d: %s", number, coh_last_error());
    return status;
}

/* Over the lines of `text`, which it cuts up. */
static coh_status parse_lines(coh_graph *graph, char *text)
{
    coh_status status = COH_OK;
    for (int number = 1; text && status == COH_OK; number++) {
        char *rest = strchr(text, '\n');
        if (rest)
            *rest++ = '\0';
        if (number == 1 && strcmp(text, HEADER) != 0)
            return coh_fail(COH_INVALID_ARGUMENT,
                            "coh_graph_parse: line 1: it must be '%s', not '%.*s'", HEADER,
                            TEXT_SHOWN, text);
        if (number > 1)
            status = parse_line(graph, text, number);
        text = rest;
    }
    return status;
}

coh_status coh_graph_parse(const char *text, size_t bytes, coh_graph **graph)
{
    if (!text || !graph)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_parse: %s is NULL",
                        text ? "graph" : "text");
    if (memchr(text, '\0', bytes))
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_parse: a zero byte is in the text");
    char *copy = malloc(bytes + 1);
    coh_graph *made = NULL;
    coh_status status = copy ? coh_graph_create(&made)
                             : coh_fail(COH_NO_MEMORY, "coh_graph_parse: no memory for the text");
    if (status == COH_OK) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
        status = parse_lines(made, copy);
    }
    free(copy);
    if (status != COH_OK) {
        coh_graph_destroy(made);
        return status;
    }
    *graph = made;
    return COH_OK;
}

/* ---- files ---- */

static coh_status fail_file(const char *call, const char *path, int error)
{
    const char *why = strerrordesc_np(error);
    return coh_fail(COH_SYSTEM, "%s: %s: %s", call, path, why ? why : "unknown error");
}

coh_status coh_graph_save(const coh_graph *graph, const char *path)
{
    size_t needed;
    coh_status status = coh_graph_print(graph, NULL, 0, &needed);
    if (status != COH_OK || !path)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_save: %s is NULL",
                        graph ? "path" : "graph");
    char *text = malloc(needed);
    if (!text)
        return coh_fail(COH_NO_MEMORY, "coh_graph_save: no memory for %zu bytes", needed);
    (void)coh_graph_print(graph, text, needed, NULL);
    FILE *file = fopen(path, "we");
    int error = file ? 0 : errno;
    if (file) {
        error = fwrite(text, 1, needed - 1, file) == needed - 1 ? 0 : errno;
        if (fclose(file) != 0 && !error)
            error = errno;
    }
    free(text);
    return error ? fail_file("coh_graph_save", path, error) : COH_OK;
}

coh_status coh_graph_load(const char *path, coh_graph **graph)
{
    coh_file *file;
    if (!path || !graph)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_graph_load: %s is NULL",
                        path ? "graph" : "path");
    coh_status status = coh_file_open(path, &file);
    if (status != COH_OK)
        return status;
    size_t bytes = coh_file_bytes(file);
    char *text = malloc(bytes + 1);
    status =
        text ? coh_file_read(file, 0, text, bytes)
             : coh_fail(COH_NO_MEMORY, "coh_graph_load: %s: no memory for %zu bytes", path, bytes);
    if (status == COH_OK) {
        status = coh_graph_parse(text, bytes, graph);
        if (status != COH_OK)
            coh_fail(status, "%s: %s", path, coh_last_error());
    }
    free(text);
    coh_file_close(file);
    return status;
}
