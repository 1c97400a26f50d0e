/* module.c - the engine as a file of its own. */
#include "engine/module.h"

#include "engine/modules/services.h"

extern const cohi_engine cohi_engine_nvshmem;

__attribute__((visibility("default"))) extern const cohi_module cohort_module;

const cohi_module cohort_module = {
    COHI_MODULE_STAMP,
    .engine = &cohi_engine_nvshmem,
    .set_services = cohi_services_set,
};
