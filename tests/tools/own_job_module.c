/*
 * own_job_module.c - engine tcp as an engine that brings its own rank and size, as MPI would: its job is
 * a folder (OWN_JOB), and which rank of how many a process is stands in OWN_JOB_RANK and OWN_JOB_SIZE.
 */
#include "base/clock.h"
#include "engine/module.h"
#include "engine/modules/services.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern const cohi_engine cohi_engine_tcp;

__attribute__((visibility("default"))) extern const cohi_module cohort_module;

static const cohi_services *served;
static int own_rank, times_shared, begun;

static int number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : -1;
}

static coh_status job_begin(uint64_t deadline_ns, int *rank, int *size)
{
    (void)deadline_ns;
    if (!getenv("OWN_JOB"))
        return served->fail(COH_NOT_AVAILABLE, "OWN_JOB is not set");
    *rank = own_rank = number("OWN_JOB_RANK");
    *size = number("OWN_JOB_SIZE");
    begun++;
    return COH_OK;
}

static coh_status write_whole(const char *path, const void *bytes, size_t count)
{
    char draft[PATH_MAX + 8];
    snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *file = fopen(draft, "wb");
    size_t written = file ? fwrite(bytes, 1, count, file) : 0;
    bool good = file && fclose(file) == 0 && written == count && rename(draft, path) == 0;
    return good ? COH_OK : served->fail(COH_TRANSPORT, "the job's folder cannot be written to");
}

static bool read_whole(const char *path, void *bytes, size_t count)
{
    FILE *file = fopen(path, "rb");
    size_t found = file ? fread(bytes, 1, count, file) : 0;
    if (file)
        fclose(file);
    return found == count;
}

static coh_status job_share(void *bytes, size_t count, uint64_t deadline_ns)
{
    static const struct timespec moment = {.tv_nsec = 1000000};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/shared.%d", getenv("OWN_JOB"), times_shared++);
    if (own_rank == 0)
        return write_whole(path, bytes, count);
    while (!read_whole(path, bytes, count)) {
        if (cohi_now_ns() > deadline_ns)
            return served->fail(COH_TIMED_OUT, "rank 0 of the job has shared nothing");
        nanosleep(&moment, NULL);
    }
    return COH_OK;
}

/* Each that was begun is ended once: seen by the test as a line. */
static void job_end(void)
{
    printf("rank %d ends its job %d\n", own_rank, begun);
}

static const cohi_engine_job job = {
    .size = sizeof job, .begin = job_begin, .share = job_share, .end = job_end};

static cohi_engine engine;

static void set_services(const cohi_services *services)
{
    served = services;
    cohi_services_set(services);
    engine = cohi_engine_tcp;
    engine.job = &job;
}

const cohi_module cohort_module = {
    COHI_MODULE_STAMP,
    .engine = &engine,
    .set_services = set_services,
};
