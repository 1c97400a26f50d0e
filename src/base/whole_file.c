#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cohi_whole_file_write(const char *path, cohi_file_writer *write, const void *argument)
{
    char beside[4096];
    if ((size_t)snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= sizeof beside) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(beside, O_CLOEXEC);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!stream)
        return -1;
    int status = write(stream, argument);
    status = fchmod(fd, 0644) == 0 ? status : -1;
    status = fclose(stream) == 0 ? status : -1;
    if (status == 0)
        status = rename(beside, path);
    if (status != 0) {
        int why = errno;
        unlink(beside);
        errno = why;
    }
    return status;
}

int cohi_whole_file_folders(const char *path)
{
    char folder[4096];
    if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0755) != 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return 0;
}
