/* check.h - a test is a program of the standard that ends the job with status 1 where it finds
 * something wrong. */
#ifndef TESTS_SHMEM_CHECK_H
#define TESTS_SHMEM_CHECK_H

#include <shmem.h>
#include <stdio.h>

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: PE %d: not so: %s\n", __FILE__, __LINE__, shmem_my_pe(), \
                    #condition);                                                             \
            shmem_global_exit(1);                                                            \
        }                                                                                    \
    } while (0)

#endif
