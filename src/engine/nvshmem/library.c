#include "engine/nvshmem/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "libnvshmem_host.so.3"
#define VARIABLE  "COHORT_NVSHMEM"

/* The releases whose headers have the structures of library.h. */
enum { KNOWN_MAJOR = 3, FIRST_MINOR = 4, LAST_MINOR = 8 };

/* ---- where it is ---- */

static void *load(const char *path, char *opened, size_t room)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        snprintf(opened, room, "%s", path);
    return handle;
}

/* What the variable names: the file, or the folder that has it. */
static void *load_given(const char *given, char *opened, size_t room)
{
    char path[512];
    struct stat what;
    bool folder = stat(given, &what) == 0 && S_ISDIR(what.st_mode);
    int length = snprintf(path, sizeof path, "%s%s", given, folder ? "/" FILE_NAME : "");
    return length > 0 && (size_t)length < sizeof path ? load(path, opened, room) : NULL;
}

/* The newest of several comes last. */
static void *load_below(const char *root, const char *more, char *opened, size_t room)
{
    static const char behind[] = "lib/python3*/*-packages/nvidia/nvshmem/lib/" FILE_NAME;
    char pattern[512];
    glob_t found;
    void *handle = NULL;
    if (!root || !*root)
        return NULL;
    int length = snprintf(pattern, sizeof pattern, "%s%s/%s", root, more, behind);
    if ((size_t)length >= sizeof pattern || glob(pattern, 0, NULL, &found) != 0)
        return NULL;
    for (size_t at = found.gl_pathc; at > 0 && !handle; at--)
        handle = load(found.gl_pathv[at - 1], opened, room);
    globfree(&found);
    return handle;
}

/* Of the interpreter that a shell would start: PREFIX/bin/python3 has its packages below PREFIX/lib. */
static void *load_beside_python(char *opened, size_t room)
{
    const char *path = getenv("PATH");
    char *folders = path ? strdup(path) : NULL, *rest = folders, *folder;
    void *handle = NULL;
    while (!handle && rest && (folder = strsep(&rest, ":"))) {
        char name[512], real[PATH_MAX];
        int length = snprintf(name, sizeof name, "%s/python3", folder);
        if (*folder != '/' || (size_t)length >= sizeof name)
            continue;
        handle = access(name, X_OK) == 0 ? load_below(folder, "/..", opened, room) : NULL;
        if (!handle && realpath(name, real)) {
            *strrchr(real, '/') = '\0';
            handle = load_below(real, "/..", opened, room);
        }
    }
    free(folders);
    return handle;
}

/* As pip installs it: in the active environment, for the user, beside the interpreter, or for all. */
static void *load_of_python(char *opened, size_t room)
{
    const char *const roots[][2] = {{getenv("VIRTUAL_ENV"), ""},
                                    {getenv("CONDA_PREFIX"), ""},
                                    {getenv("HOME"), "/.local"},
                                    {"/usr/local", ""},
                                    {"/usr", ""},
                                    {"/opt/conda", ""}};
    void *handle = NULL;
    for (size_t i = 0; i < sizeof roots / sizeof *roots && !handle; i++)
        handle = load_below(roots[i][0], roots[i][1], opened, room);
    return handle ? handle : load_beside_python(opened, room);
}

static coh_status find_library(cohi_nvshmem_library *library)
{
    const char *given = getenv(VARIABLE);
    char reason[384];
    if (given && *given) {
        library->handle = load_given(given, library->path, sizeof library->path);
        if (library->handle)
            return COH_OK;
        return cohi_fail(COH_NOT_AVAILABLE,
                         "nvshmem: " VARIABLE " is %s, which cannot be loaded: %s", given,
                         dlerror());
    }
    library->handle = load(FILE_NAME, library->path, sizeof library->path);
    if (library->handle)
        return COH_OK;
    snprintf(reason, sizeof reason, "%s", dlerror());
    library->handle = load_of_python(library->path, sizeof library->path);
    if (library->handle)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "nvshmem: NVSHMEM is not installed: %s; nor is it among Python's packages "
                     "(nvidia/nvshmem/lib); " VARIABLE " can name the file",
                     reason);
}

/* ---- what it is ---- */

static coh_status find_functions(cohi_nvshmem_library *library)
{
    static const struct {
        const char *symbol;
        size_t at;
    } rows[] = {
#define ROW(field, symbol, result, parameters) {symbol, offsetof(cohi_nvshmem_library, field)},
        COHI_NVSHMEM_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = dlsym(library->handle, rows[i].symbol);
        if (!function)
            return cohi_fail(COH_NOT_AVAILABLE, "nvshmem: %s, NVSHMEM %d.%d.%d, has no function %s",
                             library->path, library->major, library->minor, library->patch,
                             rows[i].symbol);
        memcpy((char *)library + rows[i].at, &function, sizeof function);
    }
    return COH_OK;
}

/* Before any other function is called. */
static coh_status check_version(cohi_nvshmem_library *library)
{
    void (*version)(int *major, int *minor, int *patch);
    *(void **)&version = dlsym(library->handle, "nvshmemx_vendor_get_version_info");
    if (!version)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "nvshmem: %s is not NVSHMEM's library, or older than 3.%d: it has no "
                         "function nvshmemx_vendor_get_version_info",
                         library->path, FIRST_MINOR);
    version(&library->major, &library->minor, &library->patch);
    if (library->major == KNOWN_MAJOR && library->minor >= FIRST_MINOR
        && library->minor <= LAST_MINOR)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "nvshmem: %s is NVSHMEM %d.%d.%d; this engine knows %d.%d to %d.%d",
                     library->path, library->major, library->minor, library->patch, KNOWN_MAJOR,
                     FIRST_MINOR, KNOWN_MAJOR, LAST_MINOR);
}

static coh_status open_library(cohi_nvshmem_library *library)
{
    coh_status status = find_library(library);
    if (status != COH_OK)
        return status;
    status = check_version(library);
    if (status == COH_OK)
        status = find_functions(library);
    if (status != COH_OK) {
        (void)dlclose(library->handle);
        library->handle = NULL;
    }
    return status;
}

coh_status cohi_nvshmem_library_open(const cohi_nvshmem_library **library)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cohi_nvshmem_library opened;
    pthread_mutex_lock(&lock);
    coh_status status = opened.handle ? COH_OK : open_library(&opened);
    pthread_mutex_unlock(&lock);
    *library = &opened;
    return status;
}
