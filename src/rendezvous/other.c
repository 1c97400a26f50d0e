/* other.c - launchers of which Cohort knows how many processes they started, and no way to join those. */
#include "rendezvous/provider.h"
#include "rendezvous/variables.h"

#include <stdio.h>

static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE",
                                    "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", NULL};
static const cohi_variables variables = {"another launcher", names};

/* The number of processes, or 0. */
static long ranks_started(void)
{
    long most = 0;
    for (const char *const *name = names; *name; name++) {
        long value = cohi_variable_number(*name);
        most = value > most ? value : most;
    }
    return most;
}

cohi_presence cohi_other_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    long ranks = ranks_started();
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    return ranks > 1 ? COHI_PRESENT : ranks == 1 ? COHI_ALONE : COHI_ABSENT;
}

coh_status cohi_other_ask(const cohi_config *config, cohi_launch *launch)
{
    (void)config, (void)launch;
    return cohi_variables_refuse(&variables, ranks_started(),
                                 "none of the variables by which Cohort joins jobs is set (cohort "
                                 "info lists them)");
}
