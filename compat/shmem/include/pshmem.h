/* pshmem.h - the names that a profiler calls; shmem.h declares them beside the weak ones. */
#ifndef PSHMEM_H
#define PSHMEM_H

#include <shmem.h>

#endif /* PSHMEM_H */
