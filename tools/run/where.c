/* where.c - the hosts of a job: those that flags name, or those of a Slurm allocation. */
#include "run/run.h"

#include "base/error.h"
#include "base/os.h"
#include "base/pretend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two that exclude each other, or NULL. */
static const char *two_of(const cohi_run_options *options)
{
    if (options->hosts_text && options->hostfile)
        return "--hosts and --hostfile";
    if (options->hosts_text && options->pretend_hosts)
        return "--hosts and --pretend-hosts";
    return options->hostfile && options->pretend_hosts ? "--hostfile and --pretend-hosts" : NULL;
}

/* "node1" is "node1.cluster" too. */
static int is_this_host(const char *name)
{
    char own[256];
    cohi_os_host_name(own, sizeof own);
    size_t length = strcspn(name, ".");
    return length == strcspn(own, ".") && strncmp(name, own, length) == 0;
}

/* Inside an allocation, where -n is given: a program without it is one process, as everywhere. One of
 * this host alone needs no agent. */
static coh_status take_allocation(cohi_run_options *options)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST"), *tasks = getenv("SLURM_TASKS_PER_NODE");
    if (!nodes || !*nodes || !options->ranks_given)
        return COH_OK;
    if (!tasks)
        tasks = getenv("SLURM_JOB_CPUS_PER_NODE");
    coh_status status = cohi_hosts_parse_slurm(nodes, tasks, &options->hosts);
    if (status == COH_OK && options->hosts.count == 1 && is_this_host(options->hosts.list[0].name))
        cohi_hosts_free(&options->hosts);
    return status;
}

static coh_status take_pretended(cohi_run_options *options)
{
    cohi_place place = {.what = "--pretend-hosts"};
    coh_status status = COH_OK;
    if (options->pretend_hosts > options->ranks)
        return cohi_fail(COH_INVALID_ARGUMENT, "--pretend-hosts %d: there %s %d rank%s",
                         options->pretend_hosts, options->ranks > 1 ? "are" : "is", options->ranks,
                         options->ranks > 1 ? "s" : "");
    for (int host = 0; host < options->pretend_hosts && status == COH_OK; host++) {
        char name[16];
        snprintf(name, sizeof name, "host%d", host);
        status = cohi_hosts_add(&options->hosts, &place, name, strlen(name), 1);
    }
    for (int rank = options->ranks - 1; rank >= 0 && status == COH_OK; rank--) {
        int host = cohi_pretended_host(rank, options->ranks, options->pretend_hosts);
        options->hosts.list[host].first = rank;
        options->hosts.list[host].ranks++;
    }
    return status;
}

static coh_status take_hosts(cohi_run_options *options)
{
    if (options->hosts_text)
        return cohi_hosts_parse_list("--hosts", options->hosts_text, &options->hosts);
    if (options->hostfile)
        return cohi_hosts_read_file(options->hostfile, &options->hosts);
    return take_allocation(options);
}

static coh_status place_ranks(cohi_run_options *options)
{
    if (!options->ranks_given)
        options->ranks = cohi_hosts_slots(&options->hosts);
    if (options->ranks > COHI_RUN_RANKS_MAX)
        return cohi_fail(COH_LIMIT, "the hosts have %d slots, a job at most %d ranks; give -n",
                         options->ranks, COHI_RUN_RANKS_MAX);
    return cohi_hosts_place(&options->hosts, options->ranks, options->oversubscribe);
}

coh_status cohi_run_find_hosts(cohi_run_options *options)
{
    const char *both = two_of(options);
    if (both)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: give one of them", both);
    if (options->pretend_hosts)
        return take_pretended(options);
    coh_status status = take_hosts(options);
    if (status == COH_OK && options->hosts.count > 0)
        status = place_ranks(options);
    if (status == COH_OK && options->shell && options->hosts.count == 0)
        status = cohi_fail(COH_INVALID_ARGUMENT,
                           "--shell: no hosts are given; see --hosts and --hostfile");
    return status;
}
