/*
 * provider.h - how this process can have been started together with others: a row for each.
 *
 * coh_init takes the first row that is present. None: a world of one.
 */
#ifndef COHI_START_PROVIDER_H
#define COHI_START_PROVIDER_H

#include "base/config.h"
#include "core/world/world.h"

typedef struct cohi_provider {
    const char *name;
    /* Whether the environment, or the engine that is asked for, says that the process was started that
     * way. */
    bool (*present)(const coh_options *options, const cohi_config *config);
    /* Joins the job, or fails and says what is missing: never a world of one in silence. */
    coh_status (*join)(const coh_options *options, const cohi_config *config, coh_world **world);
} cohi_provider;

/* The one that is present; NULL: none. */
const cohi_provider *cohi_provider_find(const coh_options *options, const cohi_config *config);

#endif
