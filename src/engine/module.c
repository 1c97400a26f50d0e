#include "engine/module.h"

#include "base/config.h"
#include "base/error.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the build installs libraries, below its prefix and with it. */
#ifndef COHI_MODULE_FOLDER
#define COHI_MODULE_FOLDER "" /* it is not to be installed */
#endif
#ifndef COHI_MODULE_LIBDIR
#define COHI_MODULE_LIBDIR "lib"
#endif

/* ---- services ---- */

static coh_status fail(coh_status status, const char *message)
{
    return cohi_fail(status, "%s", message);
}

static coh_status fail_os(int error, const char *message)
{
    return cohi_fail_os(error, "%s", message);
}

static void log_message(coh_log_level level, const char *message)
{
    cohi_log(level, "%s", message);
}

static const cohi_services services = {
    .size = sizeof services,
    .fail = fail,
    .fail_os = fail_os,
    .log_wants = cohi_log_wants,
    .log = log_message,
    .region_shared = cohi_host_region_shared,
    .region_prepared = cohi_host_region_prepared,
    .region_attach = cohi_host_region_attach,
    .region_commit = cohi_host_region_commit,
    .region_decommit = cohi_host_region_decommit,
    .region_release = cohi_host_region_release,
    .thread_serves = cohi_os_thread_serves,
    .thread_serves_as = cohi_os_thread_serves_as,
};

/* ---- finding ---- */

enum { FOLDERS = 5, BESIDE = 3 };

/* Where the library is, or the program that contains it: below it, or in the lib beside its bin. */
static void folders_beside(char folders[BESIDE][PATH_MAX])
{
    Dl_info self;
    char path[PATH_MAX];
    for (int i = 0; i < BESIDE; i++)
        folders[i][0] = '\0';
    if (!dladdr((void *)(uintptr_t)cohi_module_open, &self) || !self.dli_fname)
        return;
    bool program = !strchr(self.dli_fname, '/');
    ssize_t length = program ? readlink("/proc/self/exe", path, sizeof path - 1) : -1;
    if (length >= 0)
        path[length] = '\0';
    else if (!realpath(self.dli_fname, path))
        return;
    char *end = strrchr(path, '/');
    if (!end)
        return;
    *end = '\0';
    snprintf(folders[0], PATH_MAX, "%.*s/cohort", PATH_MAX - 32, path);
    snprintf(folders[1], PATH_MAX, "%.*s/../lib/cohort", PATH_MAX - 32, path);
    snprintf(folders[2], PATH_MAX, "%.*s/../" COHI_MODULE_LIBDIR "/cohort", PATH_MAX - 128, path);
}

/* "mpi:openmpi" is in cohort-mpi-openmpi.so. */
static void file_name(const char *name, char *file, size_t room)
{
    snprintf(file, room, "cohort-%s.so", name);
    for (char *colon = file; (colon = strchr(colon, ':'));)
        *colon = '-';
}

/* Opens the first that is there. What the loader says of one that is there and cannot be opened is
 * worth more than that another is missing. */
static void *open_file(const char *name, char *reason, size_t room)
{
    char beside[BESIDE][PATH_MAX], file[64];
    folders_beside(beside);
    file_name(name, file, sizeof file);
    const char *named = getenv("COHORT_MODULES");
    const char *folders[FOLDERS] = {named ? named : "", beside[0], beside[1], beside[2],
                                    COHI_MODULE_FOLDER};
    snprintf(reason, room, "there is no %s in %s", file,
             *COHI_MODULE_FOLDER ? COHI_MODULE_FOLDER : beside[0]);
    for (int i = 0; i < FOLDERS; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", folders[i], file);
        if (!*folders[i] || length >= (int)sizeof path || access(path, F_OK) != 0)
            continue;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            snprintf(reason, room, "%s", dlerror());
        return handle;
    }
    return NULL;
}

/* The first structure that differs; NULL: none does. */
static const char *other_structure(const cohi_module *module)
{
#define NAME(structure) #structure,
    static const char *const names[COHI_LAYOUT_WORDS] = {COHI_LAYOUT_TABLE(NAME) "cohi_config"};
#undef NAME
    static const cohi_layout ours = COHI_LAYOUT;
    if (module->size != sizeof *module)
        return "cohi_module";
    if (module->services != sizeof(cohi_services))
        return "cohi_services";
    for (int i = 0; i < COHI_LAYOUT_WORDS; i++)
        if (module->layout.words[i] != ours.words[i])
            return names[i];
    return NULL;
}

/* Between two releases the version stays the same while structures change. */
static coh_status check_layout(const char *name, const cohi_module *module)
{
    const char *other = other_structure(module);
    if (!other)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "%s: its module was built with another %s than the library; both must be of "
                     "one build",
                     name, other);
}

static coh_status check_module(const char *name, const cohi_module *module)
{
    if (module->contract != COHI_CONTRACT)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "%s: its module is built for contract %u of engines, the library for %d",
                         name, module->contract, COHI_CONTRACT);
    if (strcmp(module->version, coh_version_string()) != 0)
        return cohi_fail(COH_NOT_AVAILABLE, "%s: its module is of version %s, the library of %s",
                         name, module->version, coh_version_string());
    return check_layout(name, module);
}

static coh_status load(const char *name, const cohi_engine **engine)
{
    char reason[512];
    void *handle = open_file(name, reason, sizeof reason);
    if (!handle)
        return cohi_fail(COH_NOT_AVAILABLE, "%s: its module cannot be opened: %s", name, reason);
    const cohi_module *module = dlsym(handle, "cohort_module");
    coh_status status =
        module ? check_module(name, module)
               : cohi_fail(COH_NOT_AVAILABLE, "%s: its module has no symbol cohort_module", name);
    if (status != COH_OK) {
        dlclose(handle);
        return status;
    }
    module->set_services(&services);
    *engine = module->engine;
    return COH_OK;
}

/* Modules stay open: threads of theirs, and what they keep for a thread, may outlive a world. */
coh_status cohi_module_open(const char *name, const cohi_engine **engine)
{
    enum { MOST = 16 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const cohi_engine *opened[MOST];
    static int count;
    coh_status status = COH_OK;
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < count && strcmp(opened[at]->name, name) != 0)
        at++;
    if (at == count && count < MOST) {
        status = load(name, &opened[count]);
        count += status == COH_OK;
    }
    if (status == COH_OK)
        *engine = opened[at];
    pthread_mutex_unlock(&lock);
    return status;
}
