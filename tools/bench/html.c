/* bench/html.c - the report as one page: tools/bench/report/page.html with the results in it. */
#include "bench/bench.h"
#include "base/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the results go in the page. */
static const char mark[] = "@REPORT@";

/* As it may stand in a script: no text in it can end the element. */
static void write_json(FILE *stream, const char *json)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", stream);
        else
            fputc(*json, stream);
    }
}

static int write_page(FILE *stream, const void *json)
{
    const cohi_bench_source *page = &cohi_bench_page[0];
    const unsigned char *at = memmem(page->bytes, page->count, mark, sizeof mark - 1);
    if (!at) {
        errno = EINVAL;
        return -1;
    }
    size_t before = (size_t)(at - page->bytes), after = before + sizeof mark - 1;
    fwrite(page->bytes, 1, before, stream);
    write_json(stream, json);
    fwrite(page->bytes + after, 1, page->count - after, stream);
    return ferror(stream) ? -1 : 0;
}

int cohi_bench_report_html(const json_t *report, const char *path)
{
    char *json = json_dumps(report, JSON_COMPACT | JSON_REAL_PRECISION(5));
    if (!json) {
        errno = ENOMEM;
        return -1;
    }
    int status = cohi_whole_file_write(path, write_page, json);
    free(json);
    return status;
}
