#include "device/file.h"

#include "device/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct coh_file {
    int fd;
    uint64_t bytes;
    char path[]; /* as it was given */
};

/* The kernel reads at most this much in one call. */
enum { MOST_READ = 0x7ffff000 };

/* Not 0 to 2, which the program may believe to be its standard streams. */
static int open_above_stdio(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = errno;
    close(fd);
    errno = error;
    return moved;
}

static coh_status check_regular(const char *path, int fd, uint64_t *bytes)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return cohi_fail_errno(errno, "coh_file_open: '%s'", path);
    if (!S_ISREG(facts.st_mode))
        return coh_fail(COH_INVALID_ARGUMENT, "coh_file_open: '%s' is not a regular file", path);
    *bytes = (uint64_t)facts.st_size;
    return COH_OK;
}

coh_status coh_file_open(const char *path, coh_file **file)
{
    const char *call = "coh_file_open";
    uint64_t bytes = 0;
    coh_status status = cohi_not_null(call, "path", path);
    if (status == COH_OK)
        status = cohi_not_null(call, "file", file);
    if (status != COH_OK)
        return status;
    int fd = open_above_stdio(path);
    if (fd < 0)
        return cohi_fail_errno(errno, "%s: '%s'", call, path);
    status = check_regular(path, fd, &bytes);
    coh_file *made = status == COH_OK ? malloc(sizeof *made + strlen(path) + 1) : NULL;
    if (status == COH_OK && !made)
        status = cohi_fail_errno(ENOMEM, "%s: '%s'", call, path);
    if (status != COH_OK) {
        close(fd);
        return status;
    }
    made->fd = fd;
    made->bytes = bytes;
    strcpy(made->path, path);
    *file = made;
    return COH_OK;
}

void coh_file_close(coh_file *file)
{
    if (!file)
        return;
    close(file->fd);
    free(file);
}

uint64_t coh_file_bytes(const coh_file *file)
{
    return file ? file->bytes : 0;
}

const char *coh_file_path(const coh_file *file)
{
    return file ? file->path : NULL;
}

coh_status cohi_file_range(const char *call, const coh_file *file, uint64_t offset, uint64_t bytes)
{
    coh_status status = cohi_not_null(call, "file", file);
    if (status != COH_OK)
        return status;
    if (offset <= file->bytes && bytes <= file->bytes - offset)
        return COH_OK;
    return coh_fail(COH_OUT_OF_BOUNDS,
                    "%s: %llu bytes from byte %llu on leave '%s', which has %llu", call,
                    (unsigned long long)bytes, (unsigned long long)offset, file->path,
                    (unsigned long long)file->bytes);
}

coh_status cohi_file_fill(const coh_file *file, uint64_t offset, void *target, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        size_t part = bytes - done < MOST_READ ? bytes - done : MOST_READ;
        ssize_t got = pread(file->fd, (char *)target + done, part, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cohi_fail_errno(errno, "reading %zu bytes at byte %llu of '%s'", bytes,
                                   (unsigned long long)offset, file->path);
        if (got == 0)
            return coh_fail(COH_LENGTH_MISMATCH,
                            "reading %zu bytes at byte %llu of '%s': it ends after %zu of them; it "
                            "had %llu bytes when it was opened",
                            bytes, (unsigned long long)offset, file->path, done,
                            (unsigned long long)file->bytes);
        done += (size_t)got;
    }
    return COH_OK;
}

coh_status coh_file_read(coh_file *file, uint64_t offset, void *target, size_t bytes)
{
    const char *call = "coh_file_read";
    coh_status status = cohi_file_range(call, file, offset, bytes);
    if (status == COH_OK && bytes > 0)
        status = cohi_not_null(call, "target", target);
    return status == COH_OK ? cohi_file_fill(file, offset, target, bytes) : status;
}
