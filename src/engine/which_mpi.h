/*
 * which_mpi.h - which of the modules for MPI is meant by "mpi".
 *
 * Open MPI and MPICH export functions of the same names that take different handles, so the module must
 * fit the library that is in the process.
 */
#ifndef COHI_ENGINE_WHICH_MPI_H
#define COHI_ENGINE_WHICH_MPI_H

#include <stdbool.h>

/* The engine's name: by the library that is loaded, or else by what the launcher's variables tell. NULL:
 * neither says anything. */
const char *cohi_which_mpi(void);

/* Whether the program has called MPI_Init, and not MPI_Finalize. */
bool cohi_mpi_is_running(void);

#endif
