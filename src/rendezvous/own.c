/* own.c - jobs of cohort run: bootstrap/launch.c reads what it left for this rank. */
#include "bootstrap/launch.h"
#include "rendezvous/provider.h"
#include "rendezvous/variables.h"

static const char *const names[] = {"COHORT_RANK", "COHORT_SIZE", "COHORT_JOB_FD", NULL};
static const cohi_variables variables = {"cohort run", names};

cohi_presence cohi_own_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    return cohi_launch_present(config) ? COHI_PRESENT : COHI_ABSENT;
}
