/* bench/findings.c - all that is known of a run, as one JSON object. */
#include "bench/bench.h"

#include "base/os.h"
#include "json_text.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>

/* What the CPU calls itself; the text behind "model name" on x86, else the architecture. */
static json_t *cpu_name(const char *fallback)
{
    static const char key[] = "model name";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    json_t *name = NULL;
    while (file && !name && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, key, sizeof key - 1) == 0 ? strchr(line, ':') : NULL;
        line[strcspn(line, "\n")] = '\0';
        if (colon)
            name = cohi_json_text(colon + 1 + strspn(colon + 1, " "));
    }
    if (file)
        fclose(file);
    return name ? name : json_string(fallback);
}

static json_t *host_json(void)
{
    struct utsname system;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    return json_pack("{s:o, s:i, s:o, s:I}", "cpu", cpu_name(system.machine), "cores",
                     cohi_os_core_count(), "kernel", cohi_json_text(system.release), "memory",
                     (json_int_t)cohi_os_memory_total());
}

/* The spread of the probes of jobs that were not crowded: how quiet the machine was. */
static json_t *noise_json(const json_t *probes)
{
    size_t index;
    const json_t *probe;
    double low = 0, high = 0;
    json_array_foreach(probes, index, probe)
    {
        double line = json_number_value(json_object_get(probe, "line_ns"));
        if (json_integer_value(json_object_get(probe, "ranks")) > cohi_os_core_count())
            continue;
        low = low == 0 || line < low ? line : low;
        high = line > high ? line : high;
    }
    return json_pack("{s:f, s:f, s:I}", "line_low_ns", low, "line_high_ns", high, "probes",
                     (json_int_t)json_array_size(probes));
}

static json_t *date_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

/* The ratio to the faster peer is in the results too, for readers of the JSON. */
static void add_ratios(json_t *results)
{
    size_t index;
    json_t *result;
    json_array_foreach(results, index, result)
    {
        double ratio = cohi_bench_of_faster_peer(result);
        if (ratio > 0)
            json_object_set_new(result, "peer_ratio", json_real(ratio));
    }
}

json_t *cohi_bench_report_json(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    add_ratios(found->results);
    json_t *report =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:I, s:O}", "version", coh_version_string(), "engine",
                  options->engine, "date", date_json(), "host", host_json(), "noise",
                  noise_json(found->probes), "runs",
                  (json_int_t)(options->runs ? options->runs : 1), "results", found->results);
    if (report) {
        json_object_set_new(report, "load", json_integer((json_int_t)options->load));
        json_object_set_new(report, "load_pinned", json_boolean(options->load_pinned));
    }
    if (report && json_array_size(found->peers) > 0)
        json_object_set(report, "peers", found->peers);
    return report;
}
