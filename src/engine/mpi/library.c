#include "engine/mpi/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_VERSION = 3 }; /* of the standard */

/* ---- which MPI is in the process ---- */

/* Two of them would take each other's functions, as both export the same names. */
static const char *find_other(void)
{
#if defined(OPEN_MPI)
    static const char *const files[] = {"libmpich.so.12", "libmpi.so.12"};
    const char *other = "MPICH, or one of its kind,";
#else
    static const char *const files[] = {"libmpi.so.40"};
    const char *other = "Open MPI";
#endif
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        void *handle = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        dlclose(handle);
        return other;
    }
    return NULL;
}

/* ---- opening ---- */

static coh_status find_functions(void *handle, cohi_mpi_library *library)
{
    static const struct {
        const char *name;
        size_t at;
        bool optional;
    } rows[] = {
#define ROW(name) {#name, offsetof(cohi_mpi_library, name), false},
        COHI_MPI_FUNCTIONS(ROW)
#undef ROW
#define ROW(name) {#name, offsetof(cohi_mpi_library, name), true},
            COHI_MPI_SESSION_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = dlsym(handle, rows[i].name);
        if (!function && !rows[i].optional)
            return cohi_fail(COH_NOT_AVAILABLE, "mpi: " COHI_MPI_LIBRARY " has no function %s",
                             rows[i].name);
        memcpy((char *)library + rows[i].at, &function, sizeof function);
    }
    return COH_OK;
}

#if defined(OPEN_MPI)
/* A program that names the variable may have it in itself, in the place of the library's own (a copy
 * relocation), and the library uses that one too. The process finds the program's first. */
static void *find_variable(void *handle, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found ? found : dlsym(handle, name);
}

static coh_status find_handles(void *handle, cohi_mpi_library *library)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define ROW(type, field, variable, value) {variable, offsetof(cohi_mpi_library, field)},
        COHI_MPI_HANDLES(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *variable = find_variable(handle, rows[i].name);
        if (!variable)
            return cohi_fail(COH_NOT_AVAILABLE, "mpi: " COHI_MPI_LIBRARY " has no variable %s",
                             rows[i].name);
        memcpy((char *)library + rows[i].at, &variable, sizeof variable);
    }
    return COH_OK;
}
#else
static coh_status find_handles(void *handle, cohi_mpi_library *library)
{
    (void)handle;
#define ROW(type, field, variable, value) library->field = value;
    COHI_MPI_HANDLES(ROW)
#undef ROW
    return COH_OK;
}
#endif

static coh_status check_version(const cohi_mpi_library *library)
{
    int version, minor;
    if (library->MPI_Get_version(&version, &minor) == MPI_SUCCESS && version >= LEAST_VERSION)
        return COH_OK;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "mpi: " COHI_MPI_LIBRARY " is of version %d.%d of MPI; it must be %d or later",
                     version, minor, LEAST_VERSION);
}

/* ---- the library of this process ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static cohi_mpi_library opened;
static bool is_open;

static void *load(int flags, char *reason, size_t room)
{
    static const char *const files[] = {COHI_MPI_FILES};
    void *handle = NULL;
    *reason = '\0';
    for (size_t i = 0; i < sizeof files / sizeof *files && !handle; i++) {
        handle = dlopen(files[i], flags);
        if (!handle && !*reason)
            snprintf(reason, room, "%s", dlerror());
    }
    return handle;
}

static coh_status open_library(int flags, cohi_mpi_library *library, void **handle)
{
    char reason[512];
    const char *other = find_other();
    if (other)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "mpi: " COHI_MPI_LIBRARY " cannot be used: %s is in this process already",
                         other);
    *handle = load(flags, reason, sizeof reason);
    if (!*handle)
        return cohi_fail(COH_NOT_AVAILABLE, "mpi: " COHI_MPI_LIBRARY " cannot be loaded: %s",
                         reason);
    coh_status status = find_functions(*handle, library);
    if (status == COH_OK)
        status = find_handles(*handle, library);
    if (status == COH_OK)
        status = check_version(library);
    if (status != COH_OK)
        dlclose(*handle);
    return status;
}

/* Open MPI opens files of its own, which look for its symbols among those of the whole process. */
coh_status cohi_mpi_library_open(const cohi_mpi_library **library)
{
    coh_status status = COH_OK;
    void *handle;
    pthread_mutex_lock(&lock);
    if (!is_open)
        status = open_library(RTLD_NOW | RTLD_GLOBAL, &opened, &handle);
    is_open = status == COH_OK;
    pthread_mutex_unlock(&lock);
    *library = &opened;
    return status;
}

/* MPICH's text has many lines, "MPICH Version:      4.0.2" the first; Open MPI's is
 * "Open MPI v4.1.4, package: ...". */
static void describe(const cohi_mpi_library *library, char *text, size_t room)
{
    char told[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    (void)library->MPI_Get_library_version(told, &length);
    told[strcspn(told, ",\n")] = '\0';
    const char *version = told + strlen(told);
    while (version > told && version[-1] != ' ' && version[-1] != '\t')
        version--;
    snprintf(text, room, COHI_MPI_LIBRARY " %.64s", *version == 'v' ? version + 1 : version);
}

coh_status cohi_mpi_library_look(char *text, size_t room)
{
    coh_status status = COH_OK;
    cohi_mpi_library found;
    void *handle = NULL;
    pthread_mutex_lock(&lock);
    if (is_open)
        found = opened;
    else
        status = open_library(RTLD_LAZY | RTLD_LOCAL, &found, &handle);
    if (status == COH_OK && text)
        describe(&found, text, room);
    if (status == COH_OK && handle)
        dlclose(handle);
    pthread_mutex_unlock(&lock);
    return status;
}
