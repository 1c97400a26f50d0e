/* bench/plan.c - the jobs that the options ask for, each with its number of ranks, and their runs. */
#include "bench/bench.h"

#include "base/os.h"

#include <stdlib.h>

/* Ranks for each core where there are to be more ranks than cores. */
enum { CROWD = 4 };

unsigned cohi_bench_runnable(const cohi_bench_options *options, int must_crowd)
{
    unsigned mask = 0;
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (options->ranks >= (uint64_t)row->least_ranks && (row->crowded || !must_crowd))
            mask |= 1u << i;
    }
    return mask & options->chosen;
}

/* The options of one job; nothing chosen when there is nothing for so many ranks. */
static cohi_bench_options options_of_job(const cohi_bench_options *options, uint64_t ranks,
                                         int must_crowd)
{
    cohi_bench_options job = *options;
    job.ranks = ranks;
    job.crowded = ranks > (uint64_t)cohi_os_core_count();
    job.chosen = cohi_bench_runnable(&job, must_crowd);
    return job;
}

size_t cohi_bench_plan_jobs(const cohi_bench_options *options,
                            cohi_bench_options jobs[COHI_BENCH_LISTED])
{
    size_t count = 0;
    for (; count < options->rank_count; count++)
        jobs[count] = options_of_job(options, options->rank_list[count], 0);
    if (count > 0)
        return count;
    jobs[count++] = options_of_job(options, 2, 0);
    uint64_t crowd = (uint64_t)cohi_os_core_count() * CROWD;
    if (!options->against && !options->check)
        jobs[count++] =
            options_of_job(options, crowd < COHI_BENCH_RANKS ? crowd : COHI_BENCH_RANKS, 1);
    return count;
}

static double weight_of(const cohi_bench_options *job)
{
    if (job->against)
        return cohi_bench_against_weight(job);
    cohi_bench_points points = cohi_bench_points_of(job);
    double weight = 0;
    for (size_t i = 0; i < points.count; i++)
        weight += cohi_bench_weight(&points.at[i]);
    free(points.at);
    return weight;
}

static int run_jobs(const cohi_bench_options *jobs, size_t count, const cohi_bench_findings *found)
{
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (!jobs[i].chosen)
            continue;
        status = jobs[i].against ? cohi_bench_against(&jobs[i], found)
                                 : cohi_bench_job(&jobs[i], found->results, found->probes);
    }
    return status;
}

int cohi_bench_runs(const cohi_bench_options *options, const cohi_bench_findings *found)
{
    cohi_bench_options jobs[COHI_BENCH_LISTED];
    size_t count = cohi_bench_plan_jobs(options, jobs);
    uint64_t runs = options->runs ? options->runs : 1;
    double weight = 0;
    int status = 0;
    for (size_t i = 0; i < count; i++)
        weight += weight_of(&jobs[i]);
    cohi_bench_progress_begin(weight * (double)runs);
    json_t *all = json_array();
    for (uint64_t run = 0; run < runs && status == 0; run++) {
        cohi_bench_findings once = {json_array(), run == 0 ? found->peers : json_array(),
                                    found->probes};
        status = run_jobs(jobs, count, &once);
        json_array_append_new(all, once.results);
        if (run > 0)
            json_decref(once.peers);
    }
    cohi_bench_progress_end();
    if (status == 0)
        cohi_bench_merge_runs(all, found->results);
    json_decref(all);
    return status;
}
