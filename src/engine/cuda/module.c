/* module.c - the engine as a file of its own. */
#include "engine/module.h"

#include "engine/modules/services.h"

extern const cohi_engine cohi_engine_cuda;

__attribute__((visibility("default"))) extern const cohi_module cohort_module;

const cohi_module cohort_module = {
    .size = sizeof cohort_module,
    .contract = COHI_CONTRACT,
    .version = COHI_MODULE_VERSION,
    .engine = &cohi_engine_cuda,
    .set_services = cohi_services_set,
};
