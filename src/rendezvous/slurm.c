/* slurm.c - steps that srun starts without PMI: --mpi=none. */
#include "rendezvous/slurm.h"

#include "base/error.h"
#include "bootstrap/board.h"
#include "rendezvous/plain.h"
#include "rendezvous/provider.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"SLURM_PROCID",  "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID",
                                    "SLURM_STEP_ID", "SLURM_STEP_NODELIST",  NULL};
static const cohi_variables variables = {"srun without PMI", names};

/* A batch script is one process with some of Slurm's variables, or a step of one task. */
cohi_presence cohi_slurm_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    if (!cohi_variable("SLURM_STEP_NUM_TASKS"))
        return COHI_ABSENT;
    return cohi_variable_number("SLURM_STEP_NUM_TASKS") == 1 ? COHI_ALONE : COHI_PRESENT;
}

/* The first of "1-3,7" in a bracket: digits. */
static size_t first_number(const char *at)
{
    size_t digits = strspn(at, "0123456789");
    return at[digits] == '-' || at[digits] == ',' || at[digits] == ']' ? digits : 0;
}

bool cohi_slurm_first_node(const char *list, char *name, size_t room)
{
    size_t used = 0;
    while (*list && *list != ',' && used + 1 < room) {
        if (*list != '[') {
            name[used++] = *list++;
            continue;
        }
        size_t digits = first_number(++list), length = strcspn(list, "]");
        if (digits == 0 || list[length] != ']' || digits >= room - used)
            return false;
        memcpy(name + used, list, digits);
        used += digits;
        list += length + 1;
    }
    name[used] = '\0';
    return used > 0 && (!*list || *list == ',');
}

/* Ports above those that programs are given by themselves are not many; a job's own is as good as any. */
static unsigned port_of(int job, int step)
{
    enum { FIRST = 15000, PORTS = 10000 };
    return FIRST + ((unsigned)job * 7 + (unsigned)step) % PORTS;
}

static coh_status find_address(cohi_plain *plain)
{
    const char *address = cohi_variable("MASTER_ADDR");
    plain->address_from = address ? "MASTER_ADDR" : "the first of SLURM_STEP_NODELIST";
    if (address)
        snprintf(plain->address, sizeof plain->address, "%s", address);
    else if (!cohi_slurm_first_node(cohi_variable("SLURM_STEP_NODELIST"), plain->address,
                                    sizeof plain->address))
        return cohi_variables_refuse(&variables, plain->size,
                                     "SLURM_STEP_NODELIST is not a list of hosts such as n[1-3]");
    return COH_OK;
}

/* Rank 0 is on the first node of the step, unless tasks were placed by hand. */
static void place(cohi_plain *plain)
{
    long nodes = cohi_variable_number("SLURM_STEP_NUM_NODES");
    long node = cohi_variable_number("SLURM_NODEID");
    const char *distribution = cohi_variable("SLURM_DISTRIBUTION");
    bool by_hand = distribution && strstr(distribution, "arbitrary");
    plain->one_host = nodes < 1 ? COHI_PLAIN_UNKNOWN : nodes == 1 ? COHI_PLAIN_YES : COHI_PLAIN_NO;
    plain->near_root = node < 0 || by_hand ? COHI_PLAIN_UNKNOWN
                       : node == 0         ? COHI_PLAIN_YES
                                           : COHI_PLAIN_NO;
}

coh_status cohi_slurm_ask(const cohi_config *config, cohi_launch *launch)
{
    cohi_plain plain = {.variables = &variables};
    int job = 0, step = 0;
    coh_status status = cohi_variables_check(&variables);
    if (status == COH_OK)
        status = cohi_variable_count("SLURM_STEP_NUM_TASKS", 1, COHI_WORLD_MAX, &plain.size);
    if (status == COH_OK)
        status = cohi_variable_count("SLURM_PROCID", 0, (uint64_t)plain.size - 1, &plain.rank);
    if (status == COH_OK)
        status = cohi_variable_count("SLURM_JOB_ID", 0, INT32_MAX, &job);
    if (status == COH_OK)
        status = cohi_variable_count("SLURM_STEP_ID", 0, INT32_MAX, &step);
    if (status == COH_OK)
        status = find_address(&plain);
    if (status != COH_OK)
        return status;
    plain.port = port_of(job, step);
    snprintf(plain.job, sizeof plain.job, "slurm %d %d %d", job, step, plain.size);
    place(&plain);
    return cohi_plain_ask(&plain, config, launch);
}
