#include "base/whole_file.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Closes the descriptor. */
static int write_through(int fd, cohi_file_writer *write, const void *argument)
{
    FILE *stream = fdopen(fd, "w");
    if (!stream) {
        cohi_os_close(fd);
        return -1;
    }
    int status = write(stream, argument);
    status = fchmod(fd, 0644) == 0 ? status : -1;
    return fclose(stream) == 0 ? status : -1;
}

/* Writes, then renames `temporary`, which ends in XXXXXX, to `path`. */
static int write_and_rename(char *temporary, const char *path, cohi_file_writer *write,
                            const void *argument)
{
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -1;
    int status = write_through(fd, write, argument);
    if (status == 0)
        status = rename(temporary, path);
    if (status != 0) {
        int why = errno;
        unlink(temporary);
        errno = why;
    }
    return status;
}

int cohi_whole_file_write(const char *path, cohi_file_writer *write, const void *argument)
{
    char *temporary; /* not on the stack, which may be small: a path has up to 4 KiB */
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return -1;
    int status = write_and_rename(temporary, path, write, argument);
    free(temporary);
    return status;
}

static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return 0;
}

int cohi_whole_file_folders(const char *path)
{
    char *own = strdup(path);
    int status = own ? make_folders(own) : -1;
    free(own);
    return status;
}
