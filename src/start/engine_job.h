/* engine_job.h - joining a job that the library behind an engine brings: rank and size are its own. */
#ifndef COHI_START_ENGINE_JOB_H
#define COHI_START_ENGINE_JOB_H

#include "base/config.h"
#include "core/world/world.h"
#include "engine/engine.h"

/*
 * The engine whose job coh_init joins: one that is asked for by name, or the one whose library the program
 * itself has started (MPI_Init), whatever engine is to connect the ranks. NULL: none. cohort run
 * goes before it, and it before all other launchers, whose variables its ranks have too.
 */
const cohi_engine *cohi_engine_job_find(const coh_options *options, const cohi_config *config);

coh_status cohi_engine_job_join(const cohi_engine *engine, const coh_options *options,
                                const cohi_config *config, coh_world **world);

#endif
