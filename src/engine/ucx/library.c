#include "engine/ucx/library.h"

#include "base/error.h"
#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "libucp.so.0"
#define DEVICES   "/sys/class/infiniband"

enum { PORTS = 4 }; /* of a device that are looked at */

/* The first release whose active messages are complete: rendezvous, and a header of any use. */
enum { LEAST_MAJOR = 1, LEAST_MINOR = 13 };

static coh_status find_functions(void *handle, cohi_ucx_library *library)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define ROW(name) {#name, offsetof(cohi_ucx_library, name)},
        COHI_UCX_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = dlsym(handle, rows[i].name);
        if (!function)
            return cohi_fail(COH_NOT_AVAILABLE, "ucx: " FILE_NAME " has no function %s",
                             rows[i].name);
        memcpy((char *)library + rows[i].at, &function, sizeof function);
    }
    return COH_OK;
}

static coh_status check_version(const cohi_ucx_library *library)
{
    unsigned major, minor, patch;
    library->ucp_get_version(&major, &minor, &patch);
    if (major == LEAST_MAJOR && minor >= LEAST_MINOR)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE, "ucx: UCX is of version %u.%u.%u; it must be 1.%d or later",
                     major, minor, patch, LEAST_MINOR);
}

/* When it is loaded UCX takes over the signals of a crash, and SIGHUP. They stay the program's. */
static void *load(void)
{
    enum { FIRST = 1, LAST = 31 };
    struct sigaction kept[LAST + 1];
    for (int number = FIRST; number <= LAST; number++)
        sigaction(number, NULL, &kept[number]);
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    for (int number = FIRST; number <= LAST; number++)
        if (number != SIGKILL && number != SIGSTOP)
            sigaction(number, &kept[number], NULL);
    return handle;
}

/* UCX prints what it finds wrong, such as each connection that a lost rank refuses. Whoever asks for the
 * log sees it; what matters is told by this engine. */
static ucs_log_func_rc_t take_log(const char *file, unsigned line, const char *function,
                                  ucs_log_level_t level,
                                  const ucs_log_component_config_t *component, const char *message,
                                  va_list arguments)
{
    char text[512];
    (void)component;
    if (level == UCS_LOG_LEVEL_FATAL || level > UCS_LOG_LEVEL_WARN)
        return UCS_LOG_FUNC_RC_CONTINUE;
    vsnprintf(text, sizeof text, message, arguments);
    cohi_log(COH_LOG_INFO, "ucx: UCX says in %s (%s:%u): %s", function, file, line, text);
    return UCS_LOG_FUNC_RC_STOP;
}

static coh_status open_library(cohi_ucx_library *library)
{
    void *handle = load();
    if (!handle)
        return cohi_fail(COH_NOT_AVAILABLE, "ucx: UCX cannot be loaded: %s", dlerror());
    coh_status status = find_functions(handle, library);
    if (status == COH_OK)
        status = check_version(library);
    if (status == COH_OK)
        library->ucs_log_push_handler(take_log);
    return status;
}

coh_status cohi_ucx_library_open(const cohi_ucx_library **library)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static cohi_ucx_library opened;
    static bool is_open;
    coh_status status = COH_OK;
    pthread_mutex_lock(&lock);
    if (!is_open)
        status = open_library(&opened);
    is_open = status == COH_OK;
    pthread_mutex_unlock(&lock);
    *library = &opened;
    return status;
}

/* ---- the fabric ---- */

/* "4: ACTIVE" in ports/1/state of a device. */
static bool is_active(const char *device)
{
    char path[PATH_MAX], state[32] = "";
    bool active = false;
    for (int port = 1; port <= PORTS && !active; port++) {
        snprintf(path, sizeof path, DEVICES "/%s/ports/%d/state", device, port);
        FILE *file = fopen(path, "re");
        active = file && fgets(state, sizeof state, file) && strstr(state, "ACTIVE");
        if (file)
            fclose(file);
    }
    return active;
}

bool cohi_ucx_has_fabric(void)
{
    DIR *folder = opendir(DEVICES);
    bool found = false;
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = entry->d_name[0] != '.' && is_active(entry->d_name);
    if (folder)
        closedir(folder);
    return found;
}
