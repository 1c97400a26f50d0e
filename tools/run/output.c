#include "run/output.h"

#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    DRAIN_READS =
        32 /* more than the largest pipe holds; a stranger may hold it and go on writing */
};

static int same_file(int a, int b)
{
    struct stat one, other;
    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev
           && one.st_ino == other.st_ino;
}

int cohi_output_open(cohi_output *output, int ranks, int tag)
{
    *output = (cohi_output){.count = 2 * ranks, .tag = tag};
    cohi_fold_open(&output->fold);
    output->sources = calloc((size_t)output->count, sizeof *output->sources);
    if (!output->sources)
        return -1;
    cohi_sink_open(&output->sinks[0], STDOUT_FILENO);
    cohi_sink_open(&output->sinks[1], STDERR_FILENO);
    output->error_sink = &output->sinks[!same_file(STDOUT_FILENO, STDERR_FILENO)];
    for (int i = 0; i < output->count; i++) {
        cohi_sink *sink = i & 1 ? output->error_sink : &output->sinks[0];
        output->sources[i] = (cohi_source){.fd = -1, .rank = i / 2, .sink = sink, .fresh = 1};
    }
    return 0;
}

void cohi_output_close(cohi_output *output)
{
    for (int i = 0; output->sources && i < output->count; i++) {
        cohi_os_close(output->sources[i].fd);
        free(output->sources[i].data);
    }
    free(output->sources);
    output->sources = NULL;
    cohi_sink_close(&output->sinks[0]);
    cohi_sink_close(&output->sinks[1]);
}

void cohi_output_attach(cohi_output *output, int rank, int is_error, int fd)
{
    output->sources[2 * rank + is_error].fd = fd;
}

void cohi_output_expect(cohi_output *output, int rank, int is_error, const char *host)
{
    cohi_source *source = &output->sources[2 * rank + is_error];
    source->fed = 1;
    source->host = host;
}

int cohi_source_has_room(const cohi_source *source)
{
    return source->used < COHI_OUTPUT_PIECE_BYTES
           && cohi_sink_pending(source->sink) < COHI_QUEUE_BYTES;
}

int cohi_source_wants(const cohi_source *source)
{
    return source->fd >= 0 && cohi_source_has_room(source);
}

static int is_open(const cohi_source *source)
{
    return source->fd >= 0 || source->fed;
}

/* ---- from source to sink ---- */

static void end_open_line(cohi_sink *sink)
{
    if (!sink->owner)
        return;
    cohi_sink_append(sink, "\n", 1);
    sink->owner->fresh = 1;
    sink->owner->open_bytes = 0;
    sink->owner = NULL;
}

/* Whether an open line may be ended for the sake of others. */
static int may_be_ended(const cohi_source *owner, uint64_t now)
{
    return !is_open(owner) || now - owner->wrote_ns >= COHI_SILENCE_NS
           || owner->open_bytes >= 2 * COHI_OUTPUT_PIECE_BYTES;
}

static int claim_sink(cohi_source *source, uint64_t now)
{
    cohi_sink *sink = source->sink;
    source->waiting = 0;
    if (!sink->owner || sink->owner == source)
        return 1;
    source->waiting = !may_be_ended(sink->owner, now);
    if (source->waiting)
        return 0;
    end_open_line(sink);
    return 1;
}

static int is_error(const cohi_output *output, const cohi_source *source)
{
    return (source - output->sources) % 2 != 0;
}

static void append_line(cohi_output *output, cohi_source *source, const char *bytes, size_t count)
{
    char tag[96];
    if (source->fresh && output->tag)
        cohi_sink_append(source->sink, tag,
                         (size_t)snprintf(tag, sizeof tag, "[%d%s%.60s] ", source->rank,
                                          source->host ? " " : "",
                                          source->host ? source->host : ""));
    else if (source->fresh && is_error(output, source)
             && cohi_fold_takes(&output->fold, source->rank, bytes, count, source->wrote_ns))
        return;
    cohi_sink_append(source->sink, bytes, count);
}

static void append_lines(cohi_output *output, cohi_source *source, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *feed = memchr(bytes, '\n', count);
        size_t line = feed ? (size_t)(feed - bytes) + 1 : count;
        append_line(output, source, bytes, line);
        source->fresh = feed != NULL;
        bytes += line;
        count -= line;
    }
}

/* How much of what the source holds may go: all lines, and the rest of it where that must not wait.
 */
static size_t releasable(const cohi_source *source)
{
    const char *feed = source->used ? memrchr(source->data, '\n', source->used) : NULL;
    size_t lines = feed ? (size_t)(feed - source->data) + 1 : 0;
    int at_once = !is_open(source) || source->sink->terminal;
    return at_once || source->used - lines >= COHI_OUTPUT_PIECE_BYTES ? source->used : lines;
}

static void pass_on(cohi_output *output, cohi_source *source, uint64_t now)
{
    size_t count = releasable(source);
    if (count == 0 || !claim_sink(source, now))
        return;
    cohi_sink *sink = source->sink;
    int ended = source->data[count - 1] == '\n';
    source->wrote_ns = now;
    if (output->tag || is_error(output, source))
        append_lines(output, source, source->data, count);
    else
        cohi_sink_append(sink, source->data, count);
    source->open_bytes = ended ? 0 : source->open_bytes + count;
    sink->owner = ended ? NULL : source;
    source->used -= count;
    memmove(source->data, source->data + count, source->used);
}

/* Lets those that waited write, as far as they may. */
static void pass_on_waiting(cohi_output *output, cohi_sink *sink, uint64_t now)
{
    for (int i = 0; i < output->count; i++) {
        cohi_source *source = &output->sources[i];
        if (source->waiting && source->sink == sink)
            pass_on(output, source, now);
    }
}

static int somebody_waits(const cohi_output *output, const cohi_sink *sink)
{
    for (int i = 0; i < output->count; i++) {
        if (output->sources[i].waiting && output->sources[i].sink == sink)
            return 1;
    }
    return 0;
}

/* ---- from pipe to source ---- */

/* For READ_BYTES more, which is more than is fed at once. */
static int make_room(cohi_source *source)
{
    if (source->room - source->used >= READ_BYTES)
        return 0;
    size_t room = source->room * 2 > READ_BYTES ? source->room * 2 : READ_BYTES;
    char *data = realloc(source->data, room + READ_BYTES);
    if (!data)
        return -1;
    source->data = data;
    source->room = room + READ_BYTES;
    return 0;
}

static void end_source(cohi_source *source)
{
    cohi_os_close(source->fd);
    source->fd = -1;
    source->fed = 0;
}

static void lose_source(cohi_source *source, int error)
{
    source->sink->lost = error;
    end_source(source);
}

/* The bytes read, 0 at the end (which closes the source), -1 when there is nothing now. */
static ssize_t read_once(cohi_source *source)
{
    if (make_room(source) != 0) {
        lose_source(source, ENOMEM);
        return 0;
    }
    ssize_t got = read(source->fd, source->data + source->used, READ_BYTES);
    if (got > 0)
        source->used += (size_t)got;
    else if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return -1;
    else if (got < 0)
        lose_source(source, errno);
    else
        end_source(source);
    return got > 0 ? got : 0;
}

void cohi_source_read(cohi_output *output, cohi_source *source)
{
    uint64_t now = cohi_now_ns();
    cohi_sink *sink = source->sink;
    if (read_once(source) < 0)
        return;
    pass_on(output, source, now);
    pass_on_waiting(output, sink, now);
}

void cohi_output_feed(cohi_output *output, int rank, int is_error, const void *bytes, size_t count)
{
    cohi_source *source = &output->sources[2 * rank + is_error];
    uint64_t now = cohi_now_ns();
    if (count == 0) {
        end_source(source);
    } else if (make_room(source) != 0) {
        lose_source(source, ENOMEM);
    } else {
        memcpy(source->data + source->used, bytes, count);
        source->used += count;
    }
    pass_on(output, source, now);
    pass_on_waiting(output, source->sink, now);
}

int cohi_output_error(const cohi_output *output)
{
    const cohi_sink *sinks = output->sinks;
    return sinks[0].error ? sinks[0].error : sinks[0].lost ? sinks[0].lost : sinks[1].lost;
}

/* What a sink does not take is written past it, at once. */
void cohi_output_say(cohi_output *output, const char *text)
{
    cohi_sink *sink = output->error_sink;
    end_open_line(sink);
    if (cohi_sink_append(sink, text, strlen(text)) != 0 && sink->error != EPIPE)
        dprintf(STDERR_FILENO, "%s", text);
}

void cohi_output_unfold(cohi_output *output)
{
    char text[COHI_FOLD_BYTES + 256];
    while (cohi_fold_tell(&output->fold, text, sizeof text))
        cohi_output_say(output, text);
}

uint64_t cohi_output_deadline(const cohi_output *output)
{
    uint64_t deadline = output->fold.tell_at_ns;
    for (int i = 0; i < 2; i++) {
        const cohi_sink *sink = &output->sinks[i];
        if (!sink->owner || !somebody_waits(output, sink))
            continue;
        uint64_t silent = sink->owner->wrote_ns + COHI_SILENCE_NS;
        deadline = silent < deadline ? silent : deadline;
    }
    return deadline;
}

void cohi_output_tick(cohi_output *output, uint64_t now)
{
    if (now >= output->fold.tell_at_ns)
        cohi_output_unfold(output);
    for (int i = 0; i < 2; i++) {
        if (output->sinks[i].owner)
            pass_on_waiting(output, &output->sinks[i], now);
        cohi_sink_flush(&output->sinks[i]);
    }
}

void cohi_output_drain(cohi_output *output)
{
    for (int index = 0; index < output->count; index++) {
        cohi_source *source = &output->sources[index];
        for (int i = 0; i < DRAIN_READS && source->fd >= 0 && read_once(source) > 0; i++)
            pass_on(output, source, cohi_now_ns());
        end_source(source);
        pass_on(output, source, cohi_now_ns());
    }
    for (int i = 0; i < 2; i++)
        pass_on_waiting(output, &output->sinks[i], cohi_now_ns());
    cohi_output_unfold(output);
}
