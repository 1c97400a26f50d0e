/* environment.c - jobs of which RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT tell: torchrun, Kubernetes,
 * scripts. */
#include "base/error.h"
#include "bootstrap/board.h"
#include "rendezvous/plain.h"
#include "rendezvous/provider.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", NULL};
static const cohi_variables variables = {"torchrun, or a launcher with the same variables,", names};

cohi_presence cohi_environment_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    if (!cohi_variable("WORLD_SIZE"))
        return COHI_ABSENT;
    return cohi_variable_number("WORLD_SIZE") == 1 ? COHI_ALONE : COHI_PRESENT;
}

cohi_presence cohi_torch_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    const char *run = cohi_variable("TORCHELASTIC_RUN_ID");
    if (run)
        return cohi_environment_look(config, why);
    snprintf(why, COHI_WHY_BYTES, "TORCHELASTIC_RUN_ID: not set");
    return COHI_ABSENT;
}

/* torchrun numbers its hosts and says how many ranks each has. */
static void place(cohi_plain *plain)
{
    long here = cohi_variable_number("LOCAL_WORLD_SIZE"), host = cohi_variable_number("GROUP_RANK");
    plain->one_host = here < 1              ? COHI_PLAIN_UNKNOWN
                      : here == plain->size ? COHI_PLAIN_YES
                                            : COHI_PLAIN_NO;
    plain->near_root = host < 0 ? COHI_PLAIN_UNKNOWN : host == 0 ? COHI_PLAIN_YES : COHI_PLAIN_NO;
}

/* The address is not part of the job's name: rank 0 may know itself by another. */
coh_status cohi_environment_ask(const cohi_config *config, cohi_launch *launch)
{
    cohi_plain plain = {.variables = &variables, .address_from = "MASTER_ADDR"};
    const char *run = cohi_variable("TORCHELASTIC_RUN_ID");
    int port = 0;
    coh_status status = cohi_variables_check(&variables);
    if (status == COH_OK)
        status = cohi_variable_count("WORLD_SIZE", 1, COHI_WORLD_MAX, &plain.size);
    if (status == COH_OK)
        status = cohi_variable_count("RANK", 0, (uint64_t)plain.size - 1, &plain.rank);
    if (status == COH_OK)
        status = cohi_variable_count("MASTER_PORT", 1, UINT16_MAX, &port);
    if (status != COH_OK)
        return status;
    plain.port = (unsigned)port + 1;
    snprintf(plain.address, sizeof plain.address, "%s", cohi_variable("MASTER_ADDR"));
    snprintf(plain.job, sizeof plain.job, "environment %d %d %s", plain.size, port, run ? run : "");
    place(&plain);
    return cohi_plain_ask(&plain, config, launch);
}
