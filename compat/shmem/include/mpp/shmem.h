/* mpp/shmem.h - where the header was in the first versions; deprecated. */
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H

#include <shmem.h>

#endif /* MPP_SHMEM_H */
