#include "start/provider.h"

static const cohi_provider providers[] = {
    {"cohort run", cohi_own_look, cohi_launch_accept, NULL},
    {"torchrun", cohi_torch_look, cohi_environment_ask, NULL},
    {"mlx.launch", cohi_mlx_look, cohi_mlx_ask, NULL},
    {"PMIx", cohi_pmix_look, cohi_pmix_ask, cohi_pmix_usable},
    {"PMI-1", cohi_pmi_look, cohi_pmi_ask, NULL},
    {"environment", cohi_environment_look, cohi_environment_ask, NULL},
    {"Slurm", cohi_slurm_look, cohi_slurm_ask, NULL},
    {"another launcher", cohi_other_look, cohi_other_ask, NULL},
};

const cohi_provider *cohi_provider_at(int index)
{
    return index >= 0 && index < (int)(sizeof providers / sizeof *providers) ? &providers[index]
                                                                             : NULL;
}

const cohi_provider *cohi_provider_find(const cohi_config *config)
{
    char why[COHI_WHY_BYTES];
    const cohi_provider *provider;
    for (int i = 0; (provider = cohi_provider_at(i)); i++)
        if (provider->look(config, why) == COHI_PRESENT)
            return provider;
    return NULL;
}
