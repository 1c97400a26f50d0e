#include "base/error.h"
#include "engine/mlx/mlx.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the wheel was when this was built; "": nobody knows. */
#ifndef COHI_MLX_FOLDER
#define COHI_MLX_FOLDER ""
#endif

/* Where Python's packages are, as patterns of glob(7), the first of which may be below a variable. */
static const struct place {
    const char *variable;
    const char *pattern;
} places[] = {
    {"VIRTUAL_ENV", "/lib/python3*/site-packages/mlx/lib/libmlx.so"},
    {"HOME", "/.local/lib/python3*/site-packages/mlx/lib/libmlx.so"},
    {NULL, "/usr/local/lib/python3*/*-packages/mlx/lib/libmlx.so"},
    {NULL, "/usr/lib/python3*/*-packages/mlx/lib/libmlx.so"},
};

enum { PLACES = sizeof places / sizeof *places };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static const cohi_mlx_shim *opened;

/* ---- libmlx ---- */

/* The loader's words for one that is there are worth more than that another is missing. */
static void *try_file(const char *path, char *reason, size_t room)
{
    if (strchr(path, '/') && access(path, F_OK) != 0)
        return NULL;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(reason, room, "%s", dlerror());
    return handle;
}

static void *try_place(const struct place *place, char *reason, size_t room)
{
    char pattern[PATH_MAX];
    void *handle = NULL;
    glob_t found;
    const char *base = place->variable ? getenv(place->variable) : "";
    if (!base)
        return NULL;
    snprintf(pattern, sizeof pattern, "%s%s", base, place->pattern);
    if (glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t i = 0; i < found.gl_pathc && !handle; i++)
        handle = try_file(found.gl_pathv[i], reason, room);
    globfree(&found);
    return handle;
}

/* What the user names is meant, and nothing else. A program that runs in Python, with mlx imported, has it already. */
static void *load_mlx(char *reason, size_t room)
{
    const char *named = getenv("COHORT_MLX");
    if (named && *named) {
        snprintf(reason, room, "there is no %s, which COHORT_MLX names", named);
        return try_file(named, reason, room);
    }
    char first[512] = "";
    void *handle = try_file("libmlx.so", first, sizeof first);
    if (!handle && *COHI_MLX_FOLDER)
        handle = try_file(COHI_MLX_FOLDER "/lib/libmlx.so", first, sizeof first);
    for (int i = 0; i < PLACES && !handle; i++)
        handle = try_place(&places[i], first, sizeof first);
    snprintf(reason, room, "%s", first);
    return handle;
}

/* ---- the shim ---- */

static void shim_path(char *path, size_t room)
{
    Dl_info self;
    path[0] = '\0';
    if (!dladdr((const void *)cohi_mlx_backend, &self) || !self.dli_fname)
        return;
    const char *end = strrchr(self.dli_fname, '/');
    int length = end ? (int)(end - self.dli_fname) + 1 : 0;
    snprintf(path, room, "%.*scohort-mlx.so", length, self.dli_fname);
}

/* Another version has classes of another shape. */
static coh_status check_version(const cohi_mlx_shim *shim)
{
    const char *version = shim->version();
    if (strcmp(version, shim->built_for) == 0)
        return COH_OK;
    return cohi_fail(
        COH_NOT_AVAILABLE,
        "%s: libmlx is of version %s, and Cohort was built for %s: the two must be the "
        "same",
        cohi_mlx_name, version, shim->built_for);
}

static coh_status open_shim(const cohi_mlx_shim **shim)
{
    char path[PATH_MAX];
    shim_path(path, sizeof path);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return cohi_fail(COH_NOT_AVAILABLE, "%s: its part in C++ cannot be opened: %s",
                         cohi_mlx_name, dlerror());
    *shim = dlsym(handle, "cohort_mlx_shim");
    if (*shim && (*shim)->size == sizeof **shim)
        return check_version(*shim);
    dlclose(handle);
    return cohi_fail(COH_NOT_AVAILABLE, "%s: %s is not of the same build as its module",
                     cohi_mlx_name, path);
}

static coh_status open_both(const cohi_mlx_shim **shim)
{
    char reason[640];
    if (!load_mlx(reason, sizeof reason))
        return cohi_fail(
            COH_NOT_AVAILABLE,
            "%s: libmlx cannot be loaded: %s (pip install 'mlx[cpu]'; COHORT_MLX names "
            "the file)",
            cohi_mlx_name, reason);
    return open_shim(shim);
}

coh_status cohi_mlx_library_open(const cohi_mlx_shim **shim)
{
    coh_status status = COH_OK;
    const cohi_mlx_shim *found = NULL;
    pthread_mutex_lock(&lock);
    if (!opened)
        status = open_both(&found);
    if (!opened && status == COH_OK)
        opened = found;
    *shim = opened;
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- back ends ---- */

/* What MLX needs for each. */
static const struct need {
    const char *backend;
    const char *text;
} needs[] = {
    {"jaccl", "it takes MLX with RDMA over Thunderbolt, of macOS"},
    {"nccl", "it takes MLX with CUDA (mlx[cuda]) and NCCL"},
};

/* MLX would load libmpi for good, so it is only looked at: it must be Open MPI's, with the name that MLX gives it. */
static coh_status look_for_mpi(void)
{
    const char *named = getenv("MLX_MPI_LIBNAME");
    const char *name = named ? named : "libmpi.so";
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        return cohi_fail(COH_NOT_AVAILABLE, "%s: MLX looks for %s (MLX_MPI_LIBNAME): %s",
                         cohi_mlx_name, name, dlerror());
    bool is_open_mpi = dlsym(handle, "ompi_mpi_comm_world") != NULL;
    dlclose(handle);
    if (is_open_mpi)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "%s: MLX takes Open MPI alone, and %s (MLX_MPI_LIBNAME) is another",
                     cohi_mlx_name, name);
}

static coh_status look_for_backend(const cohi_mlx_shim *shim)
{
    const char *need = "it is not in this build of MLX";
    if (strcmp(cohi_mlx_backend, "mpi") == 0)
        return look_for_mpi();
    if (shim->is_available(cohi_mlx_backend))
        return COH_OK;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (strcmp(needs[i].backend, cohi_mlx_backend) == 0)
            need = needs[i].text;
    return cohi_fail(COH_NOT_AVAILABLE, "%s: MLX %s has no back end %s here: %s", cohi_mlx_name,
                     shim->version(), cohi_mlx_backend, need);
}

coh_status cohi_mlx_library_look(char *text, size_t room)
{
    const cohi_mlx_shim *shim;
    coh_status status = cohi_mlx_library_open(&shim);
    if (status == COH_OK)
        status = look_for_backend(shim);
    if (status == COH_OK && text)
        snprintf(text, room, "MLX %s", shim->version());
    return status;
}
