#include "rendezvous/secret.h"

#include "base/error.h"
#include "base/os.h"
#include "rendezvous/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGITS = 2 * COHI_SECRET_BYTES };

static coh_status parse(const char *variable, const char *text,
                        unsigned char secret[COHI_SECRET_BYTES])
{
    if (cohi_hex_read(text, secret, COHI_SECRET_BYTES))
        return COH_OK;
    return cohi_fail(
        COH_INVALID_ARGUMENT,
        "%s has no secret: it is %d hexadecimal digits, as openssl rand -hex %d prints", variable,
        DIGITS, COHI_SECRET_BYTES);
}

/* The open file is judged, not its name, which may be another's a moment later. */
static coh_status check_file(const char *path, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return cohi_fail_os(errno, "COHORT_SECRET_FILE: cannot look at '%s'", path);
    if (!S_ISREG(file.st_mode))
        return cohi_fail(COH_INVALID_ARGUMENT, "COHORT_SECRET_FILE: '%s' is not a file", path);
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_SECRET_FILE: '%s' belongs to another user (%d)", path,
                         (int)file.st_uid);
    if (file.st_mode & 077)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_SECRET_FILE: '%s' has mode %03o, so others can read or change it; "
                         "chmod 600 it",
                         path, (unsigned)file.st_mode & 0777);
    return COH_OK;
}

static coh_status read_text(const char *path, int fd, char text[DIGITS + 2])
{
    size_t used = 0;
    ssize_t got = 1;
    while (used < DIGITS + 1 && got != 0) {
        got = read(fd, text + used, DIGITS + 1 - used);
        if (got < 0 && errno != EINTR)
            return cohi_fail_os(errno, "COHORT_SECRET_FILE: cannot read '%s'", path);
        used += got > 0 ? (size_t)got : 0;
    }
    text[used] = '\0';
    if (used > 0 && text[used - 1] == '\n')
        text[used - 1] = '\0';
    return COH_OK;
}

static coh_status read_file(const char *path, unsigned char secret[COHI_SECRET_BYTES])
{
    char text[DIGITS + 2];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return cohi_fail(COH_INVALID_ARGUMENT, "COHORT_SECRET_FILE: cannot open '%s': %s", path,
                         cohi_os_error_text(errno));
    coh_status status = check_file(path, fd);
    if (status == COH_OK)
        status = read_text(path, fd, text);
    cohi_os_close(fd);
    return status == COH_OK ? parse("COHORT_SECRET_FILE", text, secret) : status;
}

coh_status cohi_secret_read(const cohi_config *config, unsigned char secret[COHI_SECRET_BYTES],
                            bool *given)
{
    bool in_file = *config->secret_file, in_text = *config->secret;
    *given = in_file || in_text;
    if (in_file && in_text)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_SECRET and COHORT_SECRET_FILE are both set; give one of them");
    if (in_file)
        return read_file(config->secret_file, secret);
    return in_text ? parse("COHORT_SECRET", config->secret, secret) : COH_OK;
}
