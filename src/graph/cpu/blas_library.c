#include "graph/cpu/blas_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libopenblas.so.0"

static cohi_blas functions;
static char problem[256]; /* why it could not be opened; empty: it is open */

/* ---- the environment that it sees ---- */

enum { MOST_SETTINGS = 2 };

/* The program's variables with some before them. */
struct environment {
    char settings[MOST_SETTINGS][64];
    size_t count;
    char **list;
};

static void set(struct environment *environment, const char *name, const char *value)
{
    if (!getenv(name) && value)
        snprintf(environment->settings[environment->count++], sizeof environment->settings[0],
                 "%s=%s", name, value);
}

static bool make_list(struct environment *environment)
{
    size_t inherited = 0;
    while (environ[inherited])
        inherited++;
    size_t count = environment->count;
    environment->list = malloc((count + inherited + 1) * sizeof *environment->list);
    if (!environment->list)
        return false;
    for (size_t i = 0; i < count; i++)
        environment->list[i] = environment->settings[i];
    memcpy(environment->list + count, environ, (inherited + 1) * sizeof *environ);
    return true;
}

/*
 * OpenBLAS reads its variables while it is loaded. The list is exchanged for that time instead of
 * calling setenv, which changes the list that another thread may be reading: getenv finds either
 * list whole. So they are not freed.
 */
static void *open_library(const char *core)
{
    static struct environment environments[2]; /* one for each core type that is tried */
    static size_t used;
    struct environment *environment = &environments[used++];
    set(environment, "OPENBLAS_NUM_THREADS", "1");
    set(environment, "OPENBLAS_CORETYPE", core);
    char **before = environ;
    if (make_list(environment))
        environ = environment->list;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    environ = before;
    return library;
}

/* ---- opening ---- */

static bool is_loaded(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library;
}

/* Through memcpy, since ISO C has no conversion of object pointers to those of functions. */
static bool find(void *library, const char *name, void *function, size_t bytes)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, bytes);
    return symbol;
}

static bool find_all(void *library)
{
    bool found = library;
#define FIND(function) \
    found = found && find(library, #function, &functions.function, sizeof functions.function);
    COHI_BLAS_TABLE(FIND)
#undef FIND
    if (!found)
        snprintf(problem, sizeof problem, "%s", dlerror());
    return found;
}

/* A library that does not know the core type takes the one that it had. */
static void reopen(void *library, const char *core)
{
    dlclose(library);
    find_all(open_library(core));
}

static void open_once(void)
{
    bool ours = !is_loaded();
    void *library = open_library(NULL);
    if (!find_all(library))
        return;
    const char *core = cohi_blas_better_core(functions.openblas_get_corename());
    if (core && ours && !getenv("OPENBLAS_CORETYPE"))
        reopen(library, core);
    if (!ours && !getenv("OPENBLAS_NUM_THREADS"))
        functions.openblas_set_num_threads(1);
}

coh_status cohi_blas_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return *problem ? coh_fail(COH_UNSUPPORTED, "matrix products need OpenBLAS: %s", problem)
                    : COH_OK;
}

const cohi_blas *cohi_blas_functions(void)
{
    return &functions;
}
