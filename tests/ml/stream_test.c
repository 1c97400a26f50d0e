/* Streams and events, with a worker and without. */
#include "ml.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPERATIONS = 1000 };

typedef struct journal {
    int entries[OPERATIONS];
    int count;
} journal;

typedef struct entry {
    journal *into;
    int value;
    coh_status status; /* to return */
    int silent;        /* without an error message */
    int sleep_us;
} entry;

static coh_status write_entry(void *arg)
{
    const entry *self = arg;
    struct timespec time = {0, self->sleep_us * 1000L};
    if (self->sleep_us)
        nanosleep(&time, NULL);
    self->into->entries[self->into->count++] = self->value;
    if (self->status == COH_OK || self->silent)
        return self->status;
    return coh_fail(self->status, "entry %d is bad", self->value);
}

static coh_status write_kernel(coh_stream *stream, void *arg)
{
    if (!coh_stream_device(stream) || coh_stream_native(stream))
        return coh_fail(COH_INVALID_ARGUMENT, "not the cpu's stream");
    return write_entry(arg);
}

static coh_stream *make_stream(coh_device *device, const char *name, int synchronous)
{
    coh_stream *stream = NULL;
    coh_stream_options options = {sizeof options, name, synchronous, 4};
    assert_ok(coh_stream_create(device, &options, &stream));
    return stream;
}

static void operations_run_in_order(coh_device *device, int synchronous)
{
    static journal log;
    static entry entries[OPERATIONS];
    coh_stream *stream = make_stream(device, "order", synchronous);
    int done = -1;
    log.count = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        entries[i] = (entry){&log, i, COH_OK, 0, 0};
        if (i % 2)
            assert_ok(coh_stream_kernel(stream, "write", write_kernel, &entries[i]));
        else
            assert_ok(coh_stream_host(stream, "write", write_entry, &entries[i]));
        if (i == 10) {
            assert_ok(coh_stream_wait(stream));
            assert_int_equal(log.count, 0); /* nothing runs before it is submitted */
        }
        if (i % 100 == 99)
            assert_ok(coh_stream_submit(stream));
    }
    assert_ok(coh_stream_submit_wait(stream));
    assert_ok(coh_stream_done(stream, &done));
    assert_int_equal(done, 1);
    assert_int_equal(log.count, OPERATIONS);
    for (int i = 0; i < OPERATIONS; i++)
        assert_int_equal(log.entries[i], i);
    assert_ok(coh_stream_destroy(stream));
}

static void a_failure_is_told_at_wait(coh_device *device, int synchronous)
{
    journal log = {.count = 0};
    entry good = {&log, 1, COH_OK, 0, 0}, bad = {&log, 2, COH_LIMIT, 0, 0};
    entry silent = {&log, 3, COH_UNSUPPORTED, 1, 0}, never = {&log, 4, COH_OK, 0, 0};
    coh_stream *stream = make_stream(device, "work", synchronous);
    assert_ok(coh_stream_host(stream, "good", write_entry, &good));
    assert_ok(coh_stream_kernel(stream, "matmul", write_kernel, &bad));
    assert_ok(coh_stream_host(stream, "never", write_entry, &never));
    assert_ok(coh_stream_submit(stream));
    assert_fails(coh_stream_wait(stream), COH_LIMIT,
                 "stream 'work': operation 2, kernel 'matmul', failed: entry 2 is bad");
    assert_int_equal(log.count, 2);
    /* Told once; and the stream goes on. */
    assert_ok(coh_stream_wait(stream));
    assert_ok(coh_stream_host(stream, "good", write_entry, &good));
    assert_ok(coh_stream_submit_wait(stream));
    assert_int_equal(log.count, 3);
    assert_ok(coh_stream_host(stream, "silent", write_entry, &silent));
    assert_fails(coh_stream_submit_wait(stream), COH_UNSUPPORTED,
                 "operation 5, host function 'silent', failed: this cannot be done here");
    assert_ok(coh_stream_host(stream, "last", write_entry, &bad));
    assert_ok(coh_stream_submit(stream));
    assert_fails(coh_stream_destroy(stream), COH_LIMIT, "operation 6, host function 'last'");
}

static void copies_are_checked_and_made(coh_device *device, int synchronous)
{
    char host[8] = "abcdefg", back[8] = "";
    coh_buffer *one, *two;
    coh_stream *stream = make_stream(device, "copies", synchronous);
    assert_ok(coh_buffer_create(device, 8, NULL, &one));
    assert_ok(coh_buffer_create(device, 8, NULL, &two));
    assert_fails(coh_stream_write(stream, one, 1, host, 8), COH_OUT_OF_BOUNDS, "coh_stream_write");
    assert_fails(coh_stream_read(stream, one, 9, host, 0), COH_OUT_OF_BOUNDS, "coh_stream_read");
    assert_fails(coh_stream_copy(stream, one, 0, two, 4, 5), COH_OUT_OF_BOUNDS, "5 bytes");
    assert_fails(coh_stream_write(stream, NULL, 1, host, 8), COH_INVALID_ARGUMENT, "buffer");
    assert_fails(coh_stream_write(NULL, one, 0, host, 8), COH_INVALID_ARGUMENT, "stream");
    assert_fails(coh_stream_write(stream, one, 0, NULL, 8), COH_INVALID_ARGUMENT, "NULL");
    assert_ok(coh_stream_write(stream, one, 0, host, 8));
    assert_ok(coh_stream_copy(stream, two, 0, one, 1, 4));
    assert_ok(coh_stream_read(stream, two, 0, back, 8));
    assert_ok(coh_stream_submit_wait(stream));
    assert_string_equal(back, "bcde");
    assert_ok(coh_stream_destroy(stream));
    assert_ok(coh_buffer_destroy(one));
    assert_ok(coh_buffer_destroy(two));
}

static void on_both_kinds(void (*test)(coh_device *device, int synchronous))
{
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        coh_device *device = open_cpu();
        test(device, synchronous);
        assert_ok(coh_device_close(device));
    }
}

static void order(void **state)
{
    (void)state;
    on_both_kinds(operations_run_in_order);
}

static void failures(void **state)
{
    (void)state;
    on_both_kinds(a_failure_is_told_at_wait);
}

static void copies(void **state)
{
    (void)state;
    on_both_kinds(copies_are_checked_and_made);
}

static void arguments_are_checked(void **state)
{
    coh_stream *stream = NULL;
    coh_stream_options options = COH_STREAM_OPTIONS_INIT;
    coh_collective collective = COH_COLLECTIVE_INIT;
    coh_device *device = open_cpu();
    (void)state;
    options.depth = UINT32_MAX;
    assert_fails(coh_stream_create(device, &options, &stream), COH_INVALID_ARGUMENT, "depth");
    assert_fails(coh_stream_create(NULL, NULL, &stream), COH_INVALID_ARGUMENT, "device");
    assert_null(stream);
    stream = make_stream(device, NULL, 0);
    assert_fails(coh_stream_kernel(stream, "k", NULL, NULL), COH_INVALID_ARGUMENT, "kernel");
    assert_fails(coh_stream_host(stream, "h", NULL, NULL), COH_INVALID_ARGUMENT, "function");
    assert_fails(coh_stream_collective(stream, NULL), COH_INVALID_ARGUMENT, "NULL");
    assert_fails(coh_stream_collective(stream, &collective), COH_INVALID_ARGUMENT, "team is NULL");
    collective.size = 8;
    assert_fails(coh_stream_collective(stream, &collective), COH_INVALID_ARGUMENT, "size is 8");
    collective.size = sizeof collective;
    collective.kind = (coh_collective_kind)50;
    assert_fails(coh_stream_collective(stream, &collective), COH_INVALID_ARGUMENT, "50");
    assert_string_equal(coh_collective_name(COH_COLLECTIVE_ALL_TO_ALL), "all_to_all");
    assert_null(coh_collective_name((coh_collective_kind)11));
    assert_ok(coh_stream_submit_wait(stream));
    assert_ok(coh_stream_destroy(stream));
    assert_ok(coh_stream_destroy(NULL));
    assert_ok(coh_device_close(device));
}

/* ---- events ---- */

static void a_stream_waits_for_another(void **state)
{
    journal log = {.count = 0};
    entry slow = {&log, 1, COH_OK, 0, 20000}, after = {&log, 2, COH_OK, 0, 0};
    coh_event *event;
    int done = -1;
    coh_device *device = open_cpu();
    coh_stream *first = make_stream(device, "first", 0), *second = make_stream(device, "second", 0);
    (void)state;
    assert_ok(coh_event_create(device, &event));
    assert_ok(coh_event_done(event, &done));
    assert_int_equal(done, 0);
    assert_fails(coh_event_wait(event), COH_INVALID_ARGUMENT, "never recorded");
    assert_fails(coh_stream_await(second, event), COH_INVALID_ARGUMENT, "never recorded");
    for (int round = 0; round < 20; round++) { /* an event can be used again and again */
        log.count = 0;
        assert_ok(coh_stream_host(first, "slow", write_entry, &slow));
        assert_ok(coh_stream_record(first, event));
        assert_fails(coh_stream_await(second, event), COH_INVALID_ARGUMENT, "not submitted");
        assert_fails(coh_event_wait(event), COH_INVALID_ARGUMENT, "not submitted");
        assert_fails(coh_event_destroy(event), COH_BUSY, "not");
        assert_ok(coh_stream_submit(first));
        assert_ok(coh_stream_await(second, event));
        assert_ok(coh_stream_host(second, "after", write_entry, &after));
        assert_ok(coh_stream_submit_wait(second));
        assert_int_equal(log.count, 2);
        assert_int_equal(log.entries[0], 1);
        assert_ok(coh_event_wait(event));
        assert_ok(coh_event_done(event, &done));
        assert_int_equal(done, 1);
        slow.sleep_us = 500;
    }
    assert_ok(coh_stream_destroy(first));
    assert_ok(coh_stream_destroy(second));
    assert_ok(coh_event_destroy(event));
    assert_ok(coh_device_close(device));
}

/* A later recording on another stream has happened; the older one still refers to the event. */
static void an_event_waits_for_all_its_recordings(void **state)
{
    journal log = {.count = 0};
    entry slow = {&log, 1, COH_OK, 0, 20000};
    coh_event *event;
    coh_device *device = open_cpu();
    coh_stream *first = make_stream(device, "first", 0), *second = make_stream(device, "second", 0);
    (void)state;
    assert_ok(coh_event_create(device, &event));
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_record(second, event));
    assert_ok(coh_stream_submit_wait(second));
    assert_fails(coh_event_destroy(event), COH_BUSY, "not submitted");
    assert_ok(coh_stream_submit_wait(first));
    assert_ok(coh_event_destroy(event));

    assert_ok(coh_event_create(device, &event));
    assert_ok(coh_stream_host(first, "slow", write_entry, &slow));
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_submit(first));
    assert_ok(coh_stream_record(second, event));
    assert_ok(coh_stream_submit_wait(second));
    assert_ok(coh_event_destroy(event));
    assert_int_equal(log.count, 1);

    assert_ok(coh_event_create(device, &event));
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_record(second, event));
    assert_ok(coh_stream_submit_wait(second));
    assert_ok(coh_stream_destroy(first));
    assert_ok(coh_event_wait(event));
    assert_ok(coh_event_destroy(event));
    assert_ok(coh_stream_destroy(second));
    assert_ok(coh_device_close(device));
}

static void a_failure_travels_with_the_event(void **state)
{
    journal log = {.count = 0};
    entry bad = {&log, 9, COH_SYSTEM, 0, 0}, never = {&log, 2, COH_OK, 0, 0};
    coh_event *event;
    coh_device *device = open_cpu();
    coh_stream *first = make_stream(device, "first", 0), *second = make_stream(device, "second", 0);
    (void)state;
    assert_ok(coh_event_create(device, &event));
    assert_ok(coh_stream_host(first, "bad", write_entry, &bad));
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_submit(first));
    assert_ok(coh_stream_await(second, event));
    assert_ok(coh_stream_host(second, "never", write_entry, &never));
    assert_fails(coh_stream_submit_wait(second), COH_SYSTEM,
                 "stream 'second': operation 1, wait for an event of another stream, failed: "
                 "stream 'first': operation 1, host function 'bad', failed: entry 9 is bad");
    assert_fails(coh_event_wait(event), COH_SYSTEM, "entry 9 is bad");
    assert_fails(coh_stream_wait(first), COH_SYSTEM, "entry 9 is bad");
    assert_int_equal(log.count, 1);
    /* A new recording is a new chance. */
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_submit(first));
    assert_ok(coh_event_wait(event));
    /* What is never submitted is told too. */
    assert_ok(coh_stream_record(first, event));
    assert_ok(coh_stream_destroy(first));
    assert_fails(coh_event_wait(event), COH_INVALID_ARGUMENT, "'first' was destroyed");
    assert_ok(coh_event_destroy(event));
    assert_ok(coh_stream_destroy(second));
    assert_ok(coh_device_close(device));
}

/* Two workers hand a token to and fro; each step is ordered by events alone. */
static void streams_take_turns(void **state)
{
    static journal log;
    static entry entries[OPERATIONS];
    coh_event *events[2];
    coh_device *device = open_cpu();
    coh_stream *streams[2] = {make_stream(device, "even", 0), make_stream(device, "odd", 0)};
    (void)state;
    log.count = 0;
    for (int i = 0; i < 2; i++)
        assert_ok(coh_event_create(device, &events[i]));
    for (int i = 0; i < OPERATIONS; i++) {
        coh_stream *stream = streams[i % 2];
        entries[i] = (entry){&log, i, COH_OK, 0, 0};
        if (i > 0)
            assert_ok(coh_stream_await(stream, events[(i + 1) % 2]));
        assert_ok(coh_stream_host(stream, "turn", write_entry, &entries[i]));
        assert_ok(coh_stream_record(stream, events[i % 2]));
        assert_ok(coh_stream_submit(stream));
    }
    for (int i = 0; i < 2; i++)
        assert_ok(coh_stream_wait(streams[i]));
    for (int i = 0; i < OPERATIONS; i++)
        assert_int_equal(log.entries[i], i);
    for (int i = 0; i < 2; i++) {
        assert_ok(coh_event_destroy(events[i]));
        assert_ok(coh_stream_destroy(streams[i]));
    }
    assert_ok(coh_device_close(device));
}

/* ---- forks ---- */

typedef struct inherited {
    coh_stream *stream;
    coh_event *event;
    coh_copier *copier;
    coh_token token;
} inherited;

/* In a child: the worker is not there, so whatever could wait for it must be refused. */
static int all_are_refused(const inherited *of)
{
    char from[4] = "abc", to[4];
    int done;
    coh_token token;
    const coh_status got[] = {
        coh_stream_host(of->stream, "write", write_entry, NULL),
        coh_stream_submit(of->stream),
        coh_stream_wait(of->stream),
        coh_stream_done(of->stream, &done),
        coh_stream_record(of->stream, of->event),
        coh_stream_await(of->stream, of->event),
        coh_stream_destroy(of->stream),
        coh_event_wait(of->event),
        coh_event_done(of->event, &done),
        coh_event_destroy(of->event),
        coh_copier_issue(of->copier, to, from, 4, &token),
        coh_copier_wait(of->copier, of->token),
        coh_copier_done(of->copier, of->token, &done),
        coh_copier_destroy(of->copier),
    };
    for (size_t i = 0; i < sizeof got / sizeof *got; i++)
        if (got[i] != COH_FORKED)
            return (int)i + 1;
    return strstr(coh_last_error(), "parent of this process") ? 0 : 100;
}

static void a_child_is_refused(void **state)
{
    static char from[4] = "abc", to[4];
    inherited of;
    int status;
    coh_device *device = open_cpu();
    (void)state;
    of.stream = make_stream(device, "parent", 0);
    assert_ok(coh_event_create(device, &of.event));
    assert_ok(coh_stream_record(of.stream, of.event));
    assert_ok(coh_stream_submit(of.stream));
    assert_ok(coh_copier_create(NULL, &of.copier));
    assert_ok(coh_copier_issue(of.copier, to, from, 4, &of.token));
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(all_are_refused(&of));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    /* And the parent is unharmed. */
    assert_ok(coh_copier_wait(of.copier, of.token));
    assert_ok(coh_event_wait(of.event));
    assert_ok(coh_copier_destroy(of.copier));
    assert_ok(coh_stream_destroy(of.stream));
    assert_ok(coh_event_destroy(of.event));
    assert_ok(coh_device_close(device));
}

/* ---- ranks ---- */

typedef struct box {
    uint64_t signal;
    uint64_t data;
    uint64_t got;
} box;

static const char *ring_on_a_stream(coh_world *world, coh_device *device)
{
    coh_stream_options options = {sizeof options, "ring", 0, 0};
    coh_stream *stream;
    box *mine;
    int rank = coh_rank(world), size = coh_size(world), right = (rank + 1) % size;
    uint64_t value = (uint64_t)rank + 100;
    if (coh_calloc(world, 1, sizeof *mine, (void **)&mine) != COH_OK
        || coh_stream_create(device, &options, &stream) != COH_OK)
        return "start";
    for (uint64_t round = 1; round <= 50; round++) {
        if (coh_stream_put_signal(stream, world, &mine->data, &value, sizeof value, &mine->signal,
                                  1, COH_SIGNAL_ADD, right)
                != COH_OK
            || coh_stream_wait_until(stream, world, &mine->signal, COH_GE, round, COH_ANY_RANK)
                   != COH_OK
            || coh_stream_get(stream, world, &mine->got, &mine->data, sizeof mine->got, right)
                   != COH_OK
            || coh_stream_submit_wait(stream) != COH_OK)
            return "round";
        if (mine->data != (uint64_t)((rank + size - 1) % size) + 100)
            return "what the left neighbour put is not there";
        if (coh_barrier(world) != COH_OK) /* nobody puts again before all have looked */
            return "barrier";
    }
    if (coh_stream_put(stream, world, &mine->data, &value, sizeof value, size) != COH_OK
        || coh_stream_wait(stream) != COH_OK)
        return "enqueue";
    if (coh_stream_submit_wait(stream) != COH_UNKNOWN_RANK
        || !strstr(coh_last_error(), "stream 'ring': operation 151, put of 8 bytes to rank"))
        return "the failed put is not named";
    if (coh_stream_signal(stream, world, &mine->signal, 7, COH_SIGNAL_SET, rank) != COH_OK
        || coh_stream_quiet(stream, world) != COH_OK || coh_stream_submit_wait(stream) != COH_OK
        || mine->signal != 7)
        return "signal";
    if (coh_stream_destroy(stream) != COH_OK || coh_free(world, mine) != COH_OK)
        return "end";
    return NULL;
}

static void ranks_meet_on_streams(void **state)
{
    (void)state;
    run_ranks(2, ring_on_a_stream);
    run_ranks(3, ring_on_a_stream);
}

static const char *barriers_on_a_stream(coh_world *world, coh_device *device)
{
    coh_stream *stream;
    coh_collective barrier = COH_COLLECTIVE_INIT;
    barrier.team = coh_team_world(world);
    if (coh_barrier(world) != COH_OK || coh_stream_create(device, NULL, &stream) != COH_OK)
        return "start";
    for (int i = 0; i < 100; i++)
        if (coh_stream_collective(stream, &barrier) != COH_OK)
            return "enqueue";
    if (coh_stream_submit_wait(stream) != COH_OK)
        return "barriers";
    return coh_stream_destroy(stream) == COH_OK ? NULL : "end";
}

static void barriers_run_on_streams(void **state)
{
    (void)state;
    run_ranks(3, barriers_on_a_stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(failures),
        cmocka_unit_test(copies),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(a_stream_waits_for_another),
        cmocka_unit_test(an_event_waits_for_all_its_recordings),
        cmocka_unit_test(a_failure_travels_with_the_event),
        cmocka_unit_test(streams_take_turns),
        cmocka_unit_test(a_child_is_refused),
        cmocka_unit_test(ranks_meet_on_streams),
        cmocka_unit_test(barriers_run_on_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
