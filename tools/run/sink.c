#include "run/sink.h"

#include "base/os.h"
#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SINK_FILE, SINK_SOCKET, SINK_NONBLOCKING, SINK_CAREFUL };

static int reopen_nonblocking(int fd)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void cohi_sink_open(cohi_sink *sink, int fd)
{
    struct stat info;
    *sink = (cohi_sink){.fd = fd, .kind = SINK_FILE, .terminal = isatty(fd)};
    if (fstat(fd, &info) != 0)
        return;
    if (S_ISSOCK(info.st_mode))
        sink->kind = SINK_SOCKET;
    if (!S_ISFIFO(info.st_mode) && !S_ISCHR(info.st_mode))
        return;
    int own = reopen_nonblocking(fd);
    sink->kind = own >= 0 ? SINK_NONBLOCKING : SINK_CAREFUL;
    sink->reopened = own >= 0;
    sink->fd = own >= 0 ? own : fd;
}

void cohi_sink_close(cohi_sink *sink)
{
    if (sink->reopened)
        cohi_os_close(sink->fd);
    free(sink->data);
    *sink = (cohi_sink){.fd = -1};
}

static int make_room(cohi_sink *sink, size_t count)
{
    size_t pending = cohi_sink_pending(sink);
    if (sink->start > 0) {
        memmove(sink->data, sink->data + sink->start, pending);
        sink->start = 0;
        sink->end = pending;
    }
    if (pending + count <= sink->room)
        return 0;
    size_t room = (pending + count) * 2;
    char *data = realloc(sink->data, room);
    if (!data)
        return -1;
    sink->data = data;
    sink->room = room;
    return 0;
}

static int append(cohi_sink *sink, const void *bytes, size_t count)
{
    if (sink->error)
        return -1;
    if (sink->end + count > sink->room && make_room(sink, count) != 0) {
        sink->lost = ENOMEM;
        return -1;
    }
    if (count > 0)
        memcpy(sink->data + sink->end, bytes, count);
    sink->end += count;
    return 0;
}

static int wipe_note(cohi_sink *sink)
{
    static const char wipe[] = "\r\033[K";
    if (!sink->noted)
        return 0;
    sink->noted = 0;
    return append(sink, wipe, sizeof wipe - 1);
}

int cohi_sink_append(cohi_sink *sink, const void *bytes, size_t count)
{
    return wipe_note(sink) == 0 ? append(sink, bytes, count) : -1;
}

void cohi_sink_note(cohi_sink *sink, const char *text)
{
    if (wipe_note(sink) == 0 && *text && !sink->owner)
        sink->noted = append(sink, text, strlen(text)) == 0;
}

/* A pipe that polls writable takes PIPE_BUF bytes without blocking. */
static ssize_t write_carefully(int fd, const char *bytes, size_t count)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    if (cohi_descriptors_poll(&look, 1, 0) <= 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, bytes, count < PIPE_BUF ? count : PIPE_BUF);
}

static ssize_t write_some(const cohi_sink *sink)
{
    const char *bytes = sink->data + sink->start;
    size_t count = cohi_sink_pending(sink);
    if (sink->kind == SINK_SOCKET)
        return send(sink->fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sink->kind == SINK_CAREFUL)
        return write_carefully(sink->fd, bytes, count);
    return write(sink->fd, bytes, count);
}

void cohi_sink_flush(cohi_sink *sink)
{
    while (!sink->error && cohi_sink_pending(sink) > 0) {
        ssize_t wrote = write_some(sink);
        if (wrote >= 0)
            sink->start += (size_t)wrote;
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            sink->error = errno;
    }
    sink->start = sink->end = 0;
}
