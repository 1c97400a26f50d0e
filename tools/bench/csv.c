/* bench/csv.c - results as comma-separated values: one line for each contender. */
#include "bench/bench.h"

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

/* Quoted, since names have commas in them. */
static void write_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

/* The columns that tell the point, and who it is. */
static void write_point(FILE *stream, const json_t *result, const char *who, const char *name)
{
    fprintf(stream, "%s,%" JSON_INTEGER_FORMAT ",%" JSON_INTEGER_FORMAT ",%s,%s,%s,%d,%s,",
            text_at(result, "benchmark"), json_integer_value(json_object_get(result, "ranks")),
            json_integer_value(json_object_get(result, "bytes")), text_at(result, "dtype"),
            text_at(result, "memory"), text_at(result, "caches"),
            json_is_true(json_object_get(result, "in_place")), who);
    write_text(stream, name);
}

static void write_numbers(FILE *stream, const json_t *figure, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_object_get(figure, keys[i]);
        fputc(',', stream);
        if (number)
            fprintf(stream, "%.6g", json_number_value(number));
    }
}

/* What the lines of a report are about: how many busy processes were beside. */
struct sheet {
    FILE *stream;
    json_int_t load;
};

static void write_figure(const struct sheet *sheet, const json_t *result, const char *who,
                         const json_t *figure)
{
    static const char *const keys[] = {"median_ns", "low_ns", "high_ns", "fraction", "ratio"};
    if (!figure)
        return;
    write_point(sheet->stream, result, who, text_at(figure, "name"));
    write_numbers(sheet->stream, figure, keys, sizeof keys / sizeof *keys);
    fprintf(sheet->stream, ",%" JSON_INTEGER_FORMAT "\n", sheet->load);
}

static void write_result(const struct sheet *sheet, const json_t *result)
{
    const char *name;
    const json_t *peer;
    write_figure(sheet, result, "cohort", json_object_get(result, "ours"));
    write_figure(sheet, result, "limit", json_object_get(result, "limit"));
    json_object_foreach((json_t *)(uintptr_t)json_object_get(result, "peers"), name, peer)
    {
        write_figure(sheet, result, name, peer);
    }
    write_figure(sheet, result, "worst", json_object_get(result, "worst"));
}

int cohi_bench_report_csv(const json_t *report, FILE *stream)
{
    size_t index;
    const json_t *result;
    struct sheet sheet = {stream, json_integer_value(json_object_get(report, "load"))};
    fputs("benchmark,ranks,bytes,dtype,memory,caches,in_place,who,name,median_ns,low_ns,high_ns,"
          "of_limit,cohort_to_peer,load\n",
          stream);
    json_array_foreach(json_object_get(report, "results"), index, result)
    {
        write_result(&sheet, result);
    }
    return fflush(stream) == 0 && !ferror(stream) ? 0 : -1;
}
