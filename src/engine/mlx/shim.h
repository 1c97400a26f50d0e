/*
 * shim.h - what the engine needs of MLX, which is C++, as a table of C.
 *
 * The shim is a file of its own beside the modules, cohort-mlx.so, since it alone is linked with libmlx: library.c
 * opens libmlx first, from wherever it is, and the shim finds it in the process. No exception leaves it.
 *
 * All calls but `version` and `is_available` are made by one thread of the process, as MLX's streams belong to
 * threads.
 */
#ifndef COHI_ENGINE_MLX_SHIM_H
#define COHI_ENGINE_MLX_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cohi_mlx_shim {
    size_t size;
    const char *built_for; /* the version of MLX; another has other classes, and is refused */

    const char *(*version)(void);

    /* Whether MLX has that back end here. For "mpi" this loads libmpi into the process, for good. */
    bool (*is_available)(const char *backend);

    /* Those that follow return false, and what MLX said in error[room]. */

    /* MLX's group of that back end, made by MLX's variables if nobody has made it. May wait for the other
     * processes, and for ever. */
    bool (*join)(const char *backend, int *rank, int *size, char *error, size_t room);

    /* Room for gathers of so many bytes a rank: *mine is to be filled, *all has those of all ranks
     * afterwards. Both are MLX's, valid until `part`, and the same for the same bytes. The next gathers use them. */
    bool (*prepare)(size_t bytes, void **mine, void **all, char *error, size_t room);

    /* Sends *mine to all ranks and waits for theirs. */
    bool (*gather)(char *error, size_t room);

    /* Lets go of the group. `forget`: MLX is to forget it too, and may make another one. Else it stays MLX's until the
     * process ends; with `keep` it is then not even taken down, which could wait for ranks that are gone. */
    void (*part)(bool forget, bool keep);
} cohi_mlx_shim;

#define COHI_MLX_SHIM_SYMBOL cohort_mlx_shim

#ifdef __cplusplus
}
#endif

#endif
