/*
 * mpi_fails - a library in front of MPI's, in which a call fails on rank 1. FAILS says which, "3 MPI_Iallreduce" for the
 * third. HANGS=1: its MPI_Finalize, of a library that speaks PMI-1, does not come to the launcher's barrier, and
 * the others say when they are through. A process that has lost Open MPI's component for PMIx after MPI_Finalize
 * says so.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fails(const char *function, int turn)
{
    int rank;
    const char *chosen = getenv("FAILS");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1 && chosen && atoi(chosen) == turn && strcmp(chosen + 2, function) == 0;
}

int MPI_Iallreduce(const void *source, void *target, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    static int calls;
    if (fails("MPI_Iallreduce", ++calls))
        return MPI_ERR_OTHER;
    return PMPI_Iallreduce(source, target, count, type, op, comm, request);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
{
    static int calls;
    if (fails("MPI_Comm_create_group", ++calls))
        return MPI_ERR_OTHER;
    return PMPI_Comm_create_group(comm, group, tag, made);
}

/* The thread that finalizes MPI, where HANGS is set. */
static __thread enum { NOT_ENDING, HANGING, ENDING } state;

static bool begins_with(const char *bytes, ssize_t count, const char *word)
{
    return count >= (ssize_t)strlen(word) && memcmp(bytes, word, strlen(word)) == 0;
}

/* Whether the file is in memory. */
static bool is_mapped(const char *name)
{
    char line[4096];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

int MPI_Finalize(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (getenv("HANGS"))
        state = rank == 1 ? HANGING : ENDING;
    bool before = is_mapped("/mca_pmix_");
    int error = PMPI_Finalize();
    if (before && !is_mapped("/mca_pmix_"))
        fprintf(stderr, "without Open MPI's PMIx\n");
    return error;
}

/* In front of libc's for all of the process, as is `read`. */
ssize_t write(int fd, const void *bytes, size_t count)
{
    while (state == HANGING && begins_with(bytes, (ssize_t)count, "cmd=barrier_in"))
        pause();
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t read(int fd, void *bytes, size_t room)
{
    ssize_t got = syscall(SYS_read, fd, bytes, room);
    if (state == ENDING && begins_with(bytes, got, "cmd=barrier_out"))
        fprintf(stderr, "through the launcher's barrier\n");
    return got;
}
