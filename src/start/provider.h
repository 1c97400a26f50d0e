/*
 * provider.h - how this process can have been started together with others: a row for each.
 *
 * coh_init takes the first row that finds its launcher in the environment. None: a world of one.
 */
#ifndef COHI_START_PROVIDER_H
#define COHI_START_PROVIDER_H

#include "base/config.h"
#include "core/world/world.h"

typedef struct cohi_provider {
    const char *name;
    /* Whether the environment says that this launcher started the process. */
    bool (*present)(const cohi_config *config);
    /* Joins the job, or fails and says what is missing: never a world of one in silence. */
    coh_status (*join)(const coh_options *options, const cohi_config *config, coh_world **world);
} cohi_provider;

/* The one that is present; NULL: none. */
const cohi_provider *cohi_provider_find(const cohi_config *config);

#endif
