/*
 * Room: rendezvous.
 *
 * What launchers tell a process of its job: which rank of how many it is, and the unique id by which
 * bootstrap finds the others.
 * Uses bootstrap, base.
 * Hides each launcher's variables, protocol and library.
 */
/* provider.h - one way to have been started together with others. The rows are in start/provider.c. */
#ifndef COHI_RENDEZVOUS_PROVIDER_H
#define COHI_RENDEZVOUS_PROVIDER_H

#include "base/config.h"
#include "bootstrap/launch.h"

/* What the environment says of a launcher. */
typedef enum cohi_presence {
    COHI_ABSENT, /* it did not start this process */
    COHI_ALONE,  /* it did, and no other */
    COHI_PRESENT /* it did, with others, or how many is not known yet */
} cohi_presence;

/* For people: the variables that were looked for and found. */
enum { COHI_WHY_BYTES = 256 };

typedef struct cohi_provider {
    const char *name;
    /* Looks at the environment alone. */
    cohi_presence (*look)(const cohi_config *config, char why[COHI_WHY_BYTES]);
    /*
     * Finds out rank, size and id within config->init_timeout; *launch is filled in, with a board only
     * where the launcher made one. A size of 1 needs no id. Fails when the job cannot be joined and says
     * what was found and what is missing: COH_NOT_AVAILABLE, COH_TIMED_OUT, COH_TRANSPORT, or
     * COH_INVALID_ARGUMENT for what the user must put right.
     */
    coh_status (*ask)(const cohi_config *config, cohi_launch *launch);
    /* Whether the library that it needs can be opened, or why not; NULL: it needs none. */
    bool (*usable)(char *reason, size_t room);
} cohi_provider;

/* cohort run: bootstrap/launch.h */
cohi_presence cohi_own_look(const cohi_config *config, char why[COHI_WHY_BYTES]);

/* torchrun, which marks its processes: TORCHELASTIC_RUN_ID */
cohi_presence cohi_torch_look(const cohi_config *config, char why[COHI_WHY_BYTES]);

/* RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, whoever set them */
cohi_presence cohi_environment_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_environment_ask(const cohi_config *config, cohi_launch *launch);

/* MLX_RANK, MLX_HOSTFILE */
cohi_presence cohi_mlx_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_mlx_ask(const cohi_config *config, cohi_launch *launch);

/* PMIX_NAMESPACE, PMIX_RANK */
cohi_presence cohi_pmix_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_pmix_ask(const cohi_config *config, cohi_launch *launch);
bool cohi_pmix_usable(char *reason, size_t room);

/* PMI_FD, PMI_RANK, PMI_SIZE */
cohi_presence cohi_pmi_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_pmi_ask(const cohi_config *config, cohi_launch *launch);

/* SLURM_PROCID and others, for steps without PMI */
cohi_presence cohi_slurm_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_slurm_ask(const cohi_config *config, cohi_launch *launch);

/* Launchers that are known by a variable, and no more: asking fails. */
cohi_presence cohi_other_look(const cohi_config *config, char why[COHI_WHY_BYTES]);
coh_status cohi_other_ask(const cohi_config *config, cohi_launch *launch);

#endif
