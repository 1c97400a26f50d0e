/* module.c - the engine as a file of its own, for the back end that the build names. */
#include "engine/module.h"

#include "engine/mlx/mlx.h"
#include "engine/modules/services.h"

extern const cohi_engine cohi_engine_mlx;

__attribute__((visibility("default"))) extern const cohi_module cohort_module;

const char cohi_mlx_backend[] = COHI_MLX_BACKEND;
const char cohi_mlx_name[] = "mlx:" COHI_MLX_BACKEND;

const cohi_module cohort_module = {
    COHI_MODULE_STAMP,
    .engine = &cohi_engine_mlx,
    .set_services = cohi_services_set,
};
