#include "unit.h"

#include "base/clock.h"
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t in_ms(uint64_t milliseconds)
{
    return cohi_now_ns() + milliseconds * COHI_NS_PER_MS;
}

static void make_pair(int *pair)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
}

static void close_pair(int *pair)
{
    cohi_os_close(pair[0]);
    cohi_os_close(pair[1]);
}

static void bytes_arrive(void **state)
{
    int pair[2], count = 7;
    char text[6];
    (void)state;
    make_pair(pair);
    assert_int_equal(cohi_os_send(pair[0], "hello", 6, NULL, 0, in_ms(1000)), 0);
    assert_int_equal(cohi_os_receive(pair[1], text, 6, NULL, 0, &count, in_ms(1000)), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(count, 0);
    close_pair(pair);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

static void descriptors_travel(void **state)
{
    int pair[2], sent[3], got[3] = {-1, -1, -1}, count = 0;
    struct stat one, two;
    char byte;
    (void)state;
    make_pair(pair);
    for (int i = 0; i < 3; i++)
        sent[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(cohi_os_send(pair[0], "x", 1, sent, 3, in_ms(1000)), 0);
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, got, 3, &count, in_ms(1000)), 0);
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(fcntl(got[i], F_GETFD) & FD_CLOEXEC);
        assert_int_equal(fstat(sent[i], &one), 0);
        assert_int_equal(fstat(got[i], &two), 0);
        assert_true(one.st_ino == two.st_ino && got[i] > STDERR_FILENO);
        close(sent[i]);
        close(got[i]);
    }
    close_pair(pair);
}

/* What there is no room for must be closed, not leaked. */
static void superfluous_descriptors_are_closed(void **state)
{
    int pair[2], sent[4], got[1] = {-1}, count = 0;
    char byte;
    (void)state;
    make_pair(pair);
    for (int i = 0; i < 4; i++)
        sent[i] = dup(pair[0]);
    int before = open_descriptors();
    assert_int_equal(cohi_os_send(pair[0], "x", 1, sent, 4, in_ms(1000)), 0);
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, got, 1, &count, in_ms(1000)), 0);
    assert_int_equal(count, 1);
    assert_int_equal(open_descriptors(), before + 1);
    close(got[0]);
    for (int i = 0; i < 4; i++)
        close(sent[i]);
    close_pair(pair);
}

static void a_closed_peer_is_a_reset(void **state)
{
    int pair[2];
    char bytes[10];
    (void)state;
    make_pair(pair);
    assert_int_equal(cohi_os_send(pair[0], "abc", 3, NULL, 0, in_ms(1000)), 0);
    close(pair[0]);
    assert_int_equal(cohi_os_receive(pair[1], bytes, 10, NULL, 0, NULL, in_ms(1000)), ECONNRESET);
    assert_int_equal(cohi_os_send(pair[1], bytes, 10, NULL, 0, in_ms(1000)), ECONNRESET);
    close(pair[1]);
}

/* Half a message with a descriptor, then the end: the descriptor is not leaked either. */
static void a_cut_message_leaks_nothing(void **state)
{
    int pair[2], sent, got[1], count;
    char bytes[10];
    (void)state;
    make_pair(pair);
    sent = dup(pair[0]);
    assert_int_equal(cohi_os_send(pair[0], "abc", 3, &sent, 1, in_ms(1000)), 0);
    close(sent);
    close(pair[0]);
    int before = open_descriptors();
    int error = cohi_os_receive(pair[1], bytes, 10, got, 1, &count, in_ms(100));
    assert_true(error == ECONNRESET || error == ETIMEDOUT);
    assert_int_equal(open_descriptors(), before);
    close(pair[1]);
}

static void deadlines_pass(void **state)
{
    int pair[2];
    char byte;
    (void)state;
    make_pair(pair);
    uint64_t began = cohi_now_ns();
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, NULL, 0, NULL, in_ms(30)), ETIMEDOUT);
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, NULL, 0, NULL, in_ms(30)), ETIMEDOUT);
    assert_true(cohi_now_ns() - began >= 50 * COHI_NS_PER_MS);
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, NULL, 0, NULL, 1),
                     ETIMEDOUT); /* long past */
    assert_int_equal(cohi_os_send(pair[0], "x", 1, NULL, 0, in_ms(1000)), 0);
    assert_int_equal(cohi_os_receive(pair[1], &byte, 1, NULL, 0, NULL, in_ms(1000)), 0);
    close_pair(pair);
}

/* More than any socket buffer: both ends must go on in parts. */
enum { LARGE = 8 << 20 };

static void *send_large(void *arg)
{
    int fd = *(int *)arg;
    char *bytes = malloc(LARGE);
    memset(bytes, 0x5a, LARGE);
    int error = cohi_os_send(fd, bytes, LARGE, NULL, 0, in_ms(20000));
    free(bytes);
    return (void *)(intptr_t)error;
}

static void large_messages_go_in_parts(void **state)
{
    int pair[2];
    pthread_t sender;
    void *error;
    char *bytes = calloc(1, LARGE);
    (void)state;
    make_pair(pair);
    assert_int_equal(pthread_create(&sender, NULL, send_large, &pair[0]), 0);
    assert_int_equal(cohi_os_receive(pair[1], bytes, LARGE, NULL, 0, NULL, in_ms(20000)), 0);
    pthread_join(sender, &error);
    assert_null(error);
    for (size_t i = 0; i < LARGE; i++)
        if (bytes[i] != 0x5a)
            fail_msg("byte %zu is wrong", i);
    free(bytes);
    close_pair(pair);
}

static void a_full_socket_times_out(void **state)
{
    int pair[2];
    char *bytes = calloc(1, LARGE);
    (void)state;
    make_pair(pair);
    assert_int_equal(cohi_os_send(pair[0], bytes, LARGE, NULL, 0, in_ms(50)), ETIMEDOUT);
    free(bytes);
    close_pair(pair);
}

/* ---- descriptors under way ---- */

enum { DESCRIPTORS = 32, NOBODY = 65534, NEVER_REFUSED = 77 };

static void *receive_after_a_while(void *arg)
{
    char byte;
    int got[1], count;
    usleep(100000);
    cohi_os_receive(*(int *)arg, &byte, 1, got, 1, &count, in_ms(1000));
    cohi_os_receive(*(int *)arg, &byte, 1, got, 1, &count, in_ms(1000));
    return NULL;
}

/* The kernel counts what a user has under way, and exempts the privileged. */
static int send_past_the_users_share(void)
{
    struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
    pthread_t receiver;
    int pair[2], error = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0
        || setrlimit(RLIMIT_NOFILE, &limit) != 0 || (getuid() == 0 && setuid(NOBODY) != 0))
        return 1;
    for (int i = 0; !error && i < 2 * DESCRIPTORS; i++)
        error = cohi_os_send(pair[0], "x", 1, &pair[0], 1, in_ms(20));
    if (!error)
        return NEVER_REFUSED;
    if (error != ETIMEDOUT || pthread_create(&receiver, NULL, receive_after_a_while, &pair[1]) != 0)
        return 2;
    error = cohi_os_send(pair[0], "x", 1, &pair[0], 1, in_ms(5000));
    pthread_join(receiver, NULL);
    return error == 0 ? 0 : 3;
}

static void a_users_share_of_descriptors_is_waited_for(void **state)
{
    int status = -1;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(send_past_the_users_share());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NEVER_REFUSED)
        fail_msg("%d descriptors under way were not too many", 2 * DESCRIPTORS);
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void names_without_files(void **state)
{
    char name[64], byte;
    int listener, client, server, again;
    uid_t uid = 0;
    pid_t pid = 0;
    (void)state;
    snprintf(name, sizeof name, "cohort-test-%d", (int)getpid());
    assert_int_equal(cohi_os_local_connect(name, &client), ECONNREFUSED);
    assert_int_equal(cohi_os_local_listen(name, &listener), 0);
    assert_int_equal(cohi_os_local_listen(name, &again), EADDRINUSE);
    assert_int_equal(cohi_os_accept(listener, &server), EAGAIN);
    assert_int_equal(cohi_os_local_connect(name, &client), 0);
    assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 1000), 1);
    assert_int_equal(cohi_os_accept(listener, &server), 0);
    assert_int_equal(cohi_os_peer_credentials(server, &uid, &pid), 0);
    assert_int_equal(uid, getuid());
    assert_int_equal(pid, getpid());
    assert_int_equal(cohi_os_send(client, "k", 1, NULL, 0, in_ms(1000)), 0);
    assert_int_equal(cohi_os_receive(server, &byte, 1, NULL, 0, NULL, in_ms(1000)), 0);
    cohi_os_close(client);
    cohi_os_close(server);
    cohi_os_close(listener);
    assert_int_equal(cohi_os_local_connect(name, &client), ECONNREFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive),
        cmocka_unit_test(descriptors_travel),
        cmocka_unit_test(superfluous_descriptors_are_closed),
        cmocka_unit_test(a_closed_peer_is_a_reset),
        cmocka_unit_test(a_cut_message_leaks_nothing),
        cmocka_unit_test(deadlines_pass),
        cmocka_unit_test(large_messages_go_in_parts),
        cmocka_unit_test(a_full_socket_times_out),
        cmocka_unit_test(a_users_share_of_descriptors_is_waited_for),
        cmocka_unit_test(names_without_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
