#include "engine/which_mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    const char *engine;
    const char *files[2];
    const char *variables[3]; /* of its launcher */
} kinds[] = {
    {"mpi:openmpi", {"libmpi.so.40"}, {"OMPI_COMM_WORLD_SIZE"}},
    {"mpi:mpich", {"libmpich.so.12", "libmpi.so.12"}, {"PMI_FD", "PMI_RANK", "MPI_LOCALNRANKS"}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* A handle on it where it is loaded, by whomever; to be closed. */
static void *find_loaded(const struct kind *kind)
{
    void *handle = NULL;
    for (int i = 0; i < 2 && !handle && kind->files[i]; i++)
        handle = dlopen(kind->files[i], RTLD_LAZY | RTLD_NOLOAD);
    return handle;
}

static const struct kind *loaded_kind(void)
{
    for (int i = 0; i < KINDS; i++) {
        void *handle = find_loaded(&kinds[i]);
        if (!handle)
            continue;
        dlclose(handle);
        return &kinds[i];
    }
    return NULL;
}

const char *cohi_which_mpi(void)
{
    const struct kind *loaded = loaded_kind();
    if (loaded)
        return loaded->engine;
    for (int i = 0; i < KINDS; i++)
        for (int j = 0; j < 3 && kinds[i].variables[j]; j++)
            if (getenv(kinds[i].variables[j]))
                return kinds[i].engine;
    return NULL;
}

/* Calls one of MPI's questions that may be asked at any time. */
static bool ask(void *handle, const char *name)
{
    int (*question)(int *flag);
    void *found = dlsym(handle, name);
    int flag = 0;
    memcpy(&question, &found, sizeof question);
    return found && question(&flag) == 0 && flag;
}

bool cohi_mpi_is_running(void)
{
    const struct kind *loaded = loaded_kind();
    void *handle = loaded ? find_loaded(loaded) : NULL;
    if (!handle)
        return false;
    bool running = ask(handle, "MPI_Initialized") && !ask(handle, "MPI_Finalized");
    dlclose(handle);
    return running;
}
