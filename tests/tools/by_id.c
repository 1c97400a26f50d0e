/* by_id.c RANK SIZE FILE [wrong] - a ring of ranks that join by a unique id, which rank 0 leaves in FILE. "wrong"
 * has another secret than the others. */
#include "bootstrap/unique_id.h"

#include <cohort.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(void)
{
    fprintf(stderr, "by_id: %s\n", coh_last_error());
    return 1;
}

/* Whole at once, for those that look for it. */
static int leave_id(const char *path, const coh_unique_id *id)
{
    char draft[4096];
    snprintf(draft, sizeof draft, "%s.draft", path);
    int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int failed = file < 0 || write(file, id->bytes, sizeof id->bytes) != (ssize_t)sizeof id->bytes;
    close(file);
    return failed || rename(draft, path) != 0;
}

static int find_id(const char *path, coh_unique_id *id)
{
    for (int tries = 0; tries < 3000; tries++) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file >= 0 ? read(file, id->bytes, sizeof id->bytes) : -1;
        close(file);
        if (got == (ssize_t)sizeof id->bytes)
            return 0;
        usleep(10000);
    }
    return 1;
}

/* The same job, and another secret. */
static int spoil(coh_unique_id *id)
{
    cohi_id_layout layout;
    if (cohi_unique_id_read(id, &layout) != COH_OK)
        return 1;
    layout.secret[0] ^= 1;
    cohi_unique_id_write(&layout, id);
    return 0;
}

int main(int argc, char **argv)
{
    coh_world *world;
    coh_unique_id id;
    int *box;
    if (argc < 4)
        return 2;
    int rank = atoi(argv[1]), size = atoi(argv[2]);
    if (rank == 0 ? coh_unique_id_create(&id) != COH_OK || leave_id(argv[3], &id)
                  : find_id(argv[3], &id))
        return complain();
    if (argc > 4 && spoil(&id))
        return complain();
    if (coh_init_unique_id(&id, rank, size, NULL, &world) != COH_OK
        || COH_MALLOC(world, 1, &box) != COH_OK)
        return complain();
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    if (coh_put(world, box, &rank, sizeof rank, right) != COH_OK || coh_barrier(world) != COH_OK)
        return complain();
    printf("rank %d of %d, %d on its host, was sent %d\n", rank, size, coh_local_size(world), *box);
    int wrong = *box != left;
    return coh_free(world, box) != COH_OK || coh_finalize(world) != COH_OK || wrong;
}
