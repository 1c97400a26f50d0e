/* scratch.h - a file with known bytes that has no name any more when the test ends. */
#ifndef TEST_ML_SCRATCH_H
#define TEST_ML_SCRATCH_H

#include "ml.h"

#include <stdio.h>
#include <unistd.h>

typedef struct scratch {
    char path[64];
    int fd;
} scratch;

static inline scratch scratch_make(const void *bytes, size_t count)
{
    scratch made = {.path = "/tmp/cohort-ml-test-XXXXXX"};
    made.fd = mkstemp(made.path);
    assert_true(made.fd >= 0);
    assert_int_equal(write(made.fd, bytes, count), count);
    return made;
}

static inline void scratch_remove(scratch *made)
{
    close(made->fd);
    unlink(made->path);
}

#endif
