/* The handshake between ranks, with the right key, without it, and with those who would like to
 * have it: docs/faults.md F15 and F24. */
#include "unit.h"

#include "base/clock.h"
#include "secure/openssl.h"
#include "secure/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 4, FLIGHT_MAX = 4096 };

static cohi_tls_self self_of(int rank)
{
    cohi_tls_self self = {.purpose = COHI_TLS_LINK, .rank = rank, .size = SIZE};
    memset(self.secret, 0x5a, sizeof self.secret);
    memset(self.job, 0x11, sizeof self.job);
    return self;
}

/* Two ends of a connection that never blocks. */
static void make_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
}

struct meeting {
    int ends[2]; /* the client's, the server's */
    cohi_tls_self client_self, server_self;
    cohi_tls *client, *server;
};

static void begin(struct meeting *meeting, int client, int server)
{
    *meeting = (struct meeting){.client_self = self_of(client), .server_self = self_of(server)};
    make_pair(meeting->ends);
}

/* Both sides in turn, until neither can go on. */
static void run(struct meeting *meeting)
{
    assert_int_equal(cohi_tls_call(&meeting->client_self, meeting->ends[0],
                                   meeting->server_self.rank, &meeting->client),
                     COH_OK);
    assert_int_equal(cohi_tls_answer(&meeting->server_self, meeting->ends[1], &meeting->server),
                     COH_OK);
    for (int i = 0; i < 10; i++) {
        (void)cohi_tls_step(meeting->client);
        (void)cohi_tls_step(meeting->server);
    }
}

static void end(struct meeting *meeting)
{
    cohi_tls_end(meeting->client);
    cohi_tls_end(meeting->server);
    close(meeting->ends[0]);
    close(meeting->ends[1]);
}

static void assert_reason(const cohi_tls *tls, const char *words)
{
    if (!strstr(cohi_tls_reason(tls), words))
        fail_msg("'%s' has no '%s'", cohi_tls_reason(tls), words);
}

/* ---- the right key ---- */

static void ranks_of_a_job_meet(void **state)
{
    (void)state;
    for (int client = 0; client < SIZE; client++) {
        for (int server = 0; server < SIZE; server++) {
            struct meeting meeting;
            if (client == server)
                continue;
            begin(&meeting, client, server);
            run(&meeting);
            assert_int_equal(cohi_tls_step(meeting.client), COHI_TLS_DONE);
            assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_DONE);
            assert_int_equal(cohi_tls_peer(meeting.client), server);
            assert_int_equal(cohi_tls_peer(meeting.server), client);
            end(&meeting);
        }
    }
}

/* What the client sends behind its part is there when the server is done, whole; nothing else is. */
static void no_byte_is_swallowed(void **state)
{
    (void)state;
    struct meeting meeting;
    char text[64] = "";
    begin(&meeting, 0, 1);
    assert_int_equal(cohi_tls_call(&meeting.client_self, meeting.ends[0], 1, &meeting.client),
                     COH_OK);
    assert_int_equal(cohi_tls_answer(&meeting.server_self, meeting.ends[1], &meeting.server),
                     COH_OK);
    assert_int_equal(cohi_tls_step(meeting.client), COHI_TLS_READS);
    assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_READS);
    assert_int_equal(cohi_tls_step(meeting.client), COHI_TLS_DONE);
    assert_int_equal(send(meeting.ends[0], "first bytes", 11, MSG_NOSIGNAL), 11);
    assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_DONE);
    assert_int_equal(recv(meeting.ends[1], text, sizeof text, MSG_DONTWAIT), 11);
    assert_string_equal(text, "first bytes");
    assert_int_equal(recv(meeting.ends[0], text, sizeof text, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    end(&meeting);
}

/* Passes up to `most` bytes on, and keeps a copy; returns how many. */
static size_t pass(int from, int to, size_t most, unsigned char *copy)
{
    ssize_t got = recv(from, copy, most, MSG_DONTWAIT);
    if (got > 0)
        assert_int_equal(send(to, copy, (size_t)got, MSG_NOSIGNAL), got);
    return got > 0 ? (size_t)got : 0;
}

static void bytes_one_at_a_time_are_enough(void **state)
{
    (void)state;
    int left[2], right[2];
    unsigned char byte;
    cohi_tls_self client_self = self_of(2), server_self = self_of(0);
    cohi_tls *client, *server;
    make_pair(left);
    make_pair(right);
    assert_int_equal(cohi_tls_call(&client_self, left[0], 0, &client), COH_OK);
    assert_int_equal(cohi_tls_answer(&server_self, right[1], &server), COH_OK);
    size_t passed = 1;
    while (passed > 0) {
        cohi_tls_turn turn = cohi_tls_step(client);
        assert_int_not_equal(turn, COHI_TLS_FAILED);
        assert_int_not_equal(cohi_tls_step(server), COHI_TLS_FAILED);
        passed = pass(left[1], right[0], 1, &byte) + pass(right[0], left[1], 1, &byte);
    }
    assert_int_equal(cohi_tls_step(client), COHI_TLS_DONE);
    assert_int_equal(cohi_tls_step(server), COHI_TLS_DONE);
    cohi_tls_end(client);
    cohi_tls_end(server);
    for (int i = 0; i < 2; i++) {
        close(left[i]);
        close(right[i]);
    }
}

/* ---- what is refused ---- */

typedef void change(struct meeting *meeting);

static void other_secret(struct meeting *meeting)
{
    meeting->client_self.secret[31] ^= 1;
}

static void other_job(struct meeting *meeting)
{
    meeting->client_self.job[0] ^= 1;
}

static void other_purpose(struct meeting *meeting)
{
    meeting->client_self.purpose = COHI_TLS_RENDEZVOUS;
}

static void beyond_the_job(struct meeting *meeting)
{
    meeting->client_self.rank = SIZE;
}

static void itself(struct meeting *meeting)
{
    meeting->client_self.rank = meeting->server_self.rank;
}

static const struct {
    change *change;
    const char *words; /* of the server's reason */
} refusals[] = {
    {other_secret, "the job's secret"}, {other_job, "another job"}, {other_purpose, "at this port"},
    {beyond_the_job, "no such rank"},   {itself, "no such rank"},
};

static void who_differs_is_refused_on_both_sides(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        struct meeting meeting;
        begin(&meeting, 0, 1);
        refusals[i].change(&meeting);
        run(&meeting);
        assert_int_equal(cohi_tls_step(meeting.client), COHI_TLS_FAILED);
        assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_FAILED);
        assert_int_equal(cohi_tls_peer(meeting.client), -1);
        assert_int_equal(cohi_tls_peer(meeting.server), -1);
        assert_reason(meeting.server, refusals[i].words);
        assert_true(*cohi_tls_reason(meeting.client) != '\0');
        end(&meeting);
    }
}

/* A call for another rank that is led to this one, be it the caller's own port or a third rank's. */
static void a_call_cannot_be_led_elsewhere(void **state)
{
    (void)state;
    for (int where = 0; where < SIZE; where += 2) {
        struct meeting meeting;
        begin(&meeting, 0, 1);
        meeting.server_self.rank = where;
        assert_int_equal(cohi_tls_call(&meeting.client_self, meeting.ends[0], 1, &meeting.client),
                         COH_OK);
        assert_int_equal(cohi_tls_answer(&meeting.server_self, meeting.ends[1], &meeting.server),
                         COH_OK);
        (void)cohi_tls_step(meeting.client);
        assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_FAILED);
        assert_reason(meeting.server, "calls another rank");
        assert_int_equal(cohi_tls_step(meeting.client), COHI_TLS_FAILED);
        end(&meeting);
    }
}

/* A caller that gets its own bytes back. */
static void an_echo_is_no_rank(void **state)
{
    (void)state;
    int ends[2];
    unsigned char flight[FLIGHT_MAX];
    cohi_tls_self self = self_of(0);
    cohi_tls *tls;
    make_pair(ends);
    assert_int_equal(cohi_tls_call(&self, ends[0], 1, &tls), COH_OK);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_READS);
    assert_true(pass(ends[1], ends[1], sizeof flight, flight) > 0);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED);
    cohi_tls_end(tls);
    close(ends[0]);
    close(ends[1]);
}

/* Who has only heard what a client said can repeat it, but not go on. */
static void a_replayed_call_comes_to_nothing(void **state)
{
    (void)state;
    int left[2], right[2], again[2];
    unsigned char first[FLIGHT_MAX], second[FLIGHT_MAX], answer[FLIGHT_MAX];
    cohi_tls_self client_self = self_of(0), server_self = self_of(1);
    cohi_tls *client, *server, *later;
    make_pair(left);
    make_pair(right);
    make_pair(again);
    assert_int_equal(cohi_tls_call(&client_self, left[0], 1, &client), COH_OK);
    assert_int_equal(cohi_tls_answer(&server_self, right[1], &server), COH_OK);
    (void)cohi_tls_step(client);
    size_t first_bytes = pass(left[1], right[0], sizeof first, first);
    (void)cohi_tls_step(server);
    (void)pass(right[0], left[1], sizeof answer, answer);
    assert_int_equal(cohi_tls_step(client), COHI_TLS_DONE);
    size_t second_bytes = pass(left[1], right[0], sizeof second, second);
    assert_int_equal(cohi_tls_step(server), COHI_TLS_DONE);

    assert_int_equal(cohi_tls_answer(&server_self, again[1], &later), COH_OK);
    assert_int_equal(send(again[0], first, first_bytes, MSG_NOSIGNAL), (ssize_t)first_bytes);
    assert_int_equal(cohi_tls_step(later), COHI_TLS_READS);
    assert_int_equal(cohi_tls_peer(later), -1);
    assert_int_equal(send(again[0], second, second_bytes, MSG_NOSIGNAL), (ssize_t)second_bytes);
    assert_int_equal(cohi_tls_step(later), COHI_TLS_FAILED);
    assert_int_equal(cohi_tls_peer(later), -1);
    cohi_tls_end(client);
    cohi_tls_end(server);
    cohi_tls_end(later);
    for (int i = 0; i < 2; i++) {
        close(left[i]);
        close(right[i]);
        close(again[i]);
    }
}

static void garbage_is_refused(void **state)
{
    (void)state;
    uint64_t dice = 7;
    for (int round = 0; round < 200; round++) {
        int ends[2];
        unsigned char bytes[300];
        cohi_tls_self self = self_of(1);
        cohi_tls *tls;
        make_pair(ends);
        for (size_t i = 0; i < sizeof bytes; i++) {
            dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            bytes[i] = (unsigned char)(dice >> 56);
        }
        if (round % 2) /* the head of a record that is to come */
            memcpy(bytes, "\x16\x03\x01\x01\x27\x01\x00\x01\x23\x03\x03", 11);
        assert_int_equal(round % 4 < 2 ? cohi_tls_answer(&self, ends[0], &tls)
                                       : cohi_tls_call(&self, ends[0], 2, &tls),
                         COH_OK);
        (void)cohi_tls_step(tls);
        assert_int_equal(send(ends[1], bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
        assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED);
        assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED);
        cohi_tls_end(tls);
        close(ends[0]);
        close(ends[1]);
    }
}

/* Heads that announce one long message after another. */
static void an_endless_call_is_cut(void **state)
{
    (void)state;
    int ends[2];
    static unsigned char bytes[COHI_TLS_BYTES * 2];
    cohi_tls_self self = self_of(1);
    cohi_tls *tls;
    make_pair(ends);
    for (size_t i = 0; i < sizeof bytes; i += 1024)
        memcpy(bytes + i, "\x16\x03\x01\x03\xfb\x01\x00\xff\xff", i ? 5 : 9);
    assert_int_equal(cohi_tls_answer(&self, ends[0], &tls), COH_OK);
    assert_int_equal(send(ends[1], bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED);
    assert_reason(tls, "8192 bytes");
    cohi_tls_end(tls);
    close(ends[0]);
    close(ends[1]);
}

static void a_side_that_closes_is_told_of(void **state)
{
    (void)state;
    int ends[2];
    cohi_tls_self self = self_of(0);
    cohi_tls *tls;
    make_pair(ends);
    close(ends[1]);
    assert_int_equal(cohi_tls_call(&self, ends[0], 1, &tls), COH_OK);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED); /* and no SIGPIPE */
    assert_reason(tls, "Broken pipe");
    cohi_tls_end(tls);
    close(ends[0]);
    make_pair(ends);
    assert_int_equal(cohi_tls_call(&self, ends[0], 1, &tls), COH_OK);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_READS);
    shutdown(ends[1], SHUT_RDWR);
    assert_int_equal(cohi_tls_step(tls), COHI_TLS_FAILED);
    assert_reason(tls, "closed the connection");
    assert_true(cohi_tls_was_closed(tls));
    cohi_tls_end(tls);
    close(ends[0]);
    close(ends[1]);
}

/* ---- who waits ---- */

static int listen_here(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(fd, (struct sockaddr *)address, length), 0);
    assert_int_equal(listen(fd, 2048), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static int connect_there(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void *answer_one(void *arg)
{
    int *listener = arg, peer = -2;
    cohi_tls_self self = self_of(1);
    int fd = accept4(*listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    (void)cohi_tls_handshake("test", &self, fd, COHI_TLS_ANSWERS, cohi_now_ns() + 5 * COHI_NS_PER_S,
                             &peer);
    close(fd);
    return (void *)(intptr_t)peer;
}

/* The time that it takes is printed: it is paid once a link. */
static void a_whole_handshake_works_and_is_measured(void **state)
{
    (void)state;
    enum { ROUNDS = 20 };
    struct sockaddr_in address;
    int listener = listen_here(&address);
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        void *caller;
        int peer = -1;
        cohi_tls_self self = self_of(3);
        pthread_create(&thread, NULL, answer_one, &listener);
        int fd = connect_there(&address);
        uint64_t began_ns = cohi_now_ns();
        assert_int_equal(
            cohi_tls_handshake("test", &self, fd, 1, began_ns + 5 * COHI_NS_PER_S, &peer), COH_OK);
        uint64_t took_ns = cohi_now_ns() - began_ns;
        pthread_join(thread, &caller);
        assert_int_equal(peer, 1);
        assert_int_equal((int)(intptr_t)caller, 3);
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        close(fd);
    }
    print_message("a handshake takes %.2f ms at best\n", (double)best_ns / 1e6);
    close(listener);
}

static void silence_ends_with_the_deadline(void **state)
{
    (void)state;
    struct sockaddr_in address;
    char words[64];
    int listener = listen_here(&address), fd = connect_there(&address), peer = -1;
    cohi_tls_self self = self_of(0);
    uint64_t began_ns = cohi_now_ns();
    assert_int_equal(
        cohi_tls_handshake("coh_init", &self, fd, 2, began_ns + COHI_NS_PER_S / 5, &peer),
        COH_TIMED_OUT);
    assert_true(cohi_now_ns() - began_ns < 2 * COHI_NS_PER_S);
    snprintf(words, sizeof words, "rank 2 at 127.0.0.1 port %u", ntohs(address.sin_port));
    assert_says("coh_init: ");
    assert_says(words);
    assert_int_equal(peer, -1);
    close(fd);
    close(listener);
}

/* Half a handshake: the first flight comes, the rest does not. */
static void half_a_handshake_ends_with_the_deadline(void **state)
{
    (void)state;
    struct sockaddr_in address;
    int listener = listen_here(&address), fd = connect_there(&address), peer = -1;
    int taken = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    cohi_tls_self client_self = self_of(0), server_self = self_of(1);
    cohi_tls *client;
    assert_int_equal(cohi_tls_call(&client_self, fd, 1, &client), COH_OK);
    assert_int_equal(cohi_tls_step(client), COHI_TLS_READS);
    assert_int_equal(cohi_tls_handshake("test", &server_self, taken, COHI_TLS_ANSWERS,
                                        cohi_now_ns() + COHI_NS_PER_S / 5, &peer),
                     COH_TIMED_OUT);
    assert_says("a caller at 127.0.0.1");
    assert_int_equal(peer, -1);
    cohi_tls_end(client);
    close(fd);
    close(taken);
    close(listener);
}

/* Their turns are taken by one thread; the one that talks is done at once. */
static void a_thousand_silent_ones_hold_nobody_up(void **state)
{
    (void)state;
    enum { MANY = 1000 };
    static cohi_tls *silent[MANY];
    static int ends[MANY][2];
    static cohi_tls_self self;
    int count = 0;
    self = self_of(1);
    while (count < MANY
           && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends[count])
                  == 0) {
        assert_int_equal(cohi_tls_answer(&self, ends[count][0], &silent[count]), COH_OK);
        count++;
    }
    assert_true(count > 100); /* as far as descriptors go */
    for (int i = 0; i < count; i++)
        assert_int_equal(cohi_tls_step(silent[i]), COHI_TLS_READS);
    close(ends[count - 1][0]);
    close(ends[count - 1][1]);
    cohi_tls_end(silent[--count]);
    struct meeting meeting;
    begin(&meeting, 0, 1);
    uint64_t began_ns = cohi_now_ns();
    run(&meeting);
    assert_int_equal(cohi_tls_step(meeting.server), COHI_TLS_DONE);
    assert_true(cohi_now_ns() - began_ns < COHI_NS_PER_S);
    end(&meeting);
    for (int i = 0; i < count; i++) {
        cohi_tls_end(silent[i]);
        close(ends[i][0]);
        close(ends[i][1]);
    }
}

/* ---- a server that has a certificate, and no key ---- */

static pid_t start_s_server(unsigned port)
{
    char at[32];
    snprintf(at, sizeof at, "127.0.0.1:%u", port);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0), dup2(null, 1), dup2(null, 2);
        execlp("openssl", "openssl", "s_server", "-accept", at, "-cert", "cert.pem", "-key",
               "key.pem", "-tls1_3", "-www", "-groups", "X25519", (char *)NULL);
        _exit(127);
    }
    return child;
}

static bool has_certificate(void)
{
    return system("openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                  "-subj /CN=localhost >/dev/null 2>&1")
           == 0;
}

static int connect_soon(const struct sockaddr_in *address)
{
    for (int i = 0; i < 200; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0) {
            assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
            return fd;
        }
        close(fd);
        usleep(20000);
    }
    return -1;
}

static void a_certificate_is_not_the_key(void **state)
{
    (void)state;
    char folder[] = "/tmp/tls_test.XXXXXX";
    struct sockaddr_in address;
    cohi_tls_self self = self_of(0);
    int peer = -1;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    bool can = has_certificate();
    if (can) {
        close(listen_here(&address)); /* a port that is free */
        pid_t server = start_s_server(ntohs(address.sin_port));
        int fd = connect_soon(&address);
        assert_true(fd >= 0);
        assert_int_equal(
            cohi_tls_handshake("test", &self, fd, 1, cohi_now_ns() + 5 * COHI_NS_PER_S, &peer),
            COH_TRANSPORT);
        assert_says("the job's secret");
        assert_int_equal(peer, -1);
        close(fd);
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    unlink("cert.pem");
    unlink("key.pem");
    assert_int_equal(chdir("/"), 0);
    rmdir(folder);
    if (!can)
        skip();
}

/* ---- without OpenSSL ---- */

static void a_missing_library_is_told(void **state)
{
    (void)state;
    static const cohi_openssl_hooks none;
    static cohi_openssl openssl;
    char reason[COHI_OPENSSL_REASON_BYTES] = "";
    assert_false(cohi_openssl_open("libssl.so.999", &none, &openssl, reason));
    assert_non_null(strstr(reason, "libssl.so.999"));
    assert_non_null(strstr(reason, "install libssl3"));
    assert_false(cohi_openssl_open("libm.so.6", &none, &openssl, reason));
    assert_non_null(strstr(reason, "libm.so.6 has no function OPENSSL_init_ssl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_told),
        cmocka_unit_test(ranks_of_a_job_meet),
        cmocka_unit_test(no_byte_is_swallowed),
        cmocka_unit_test(bytes_one_at_a_time_are_enough),
        cmocka_unit_test(who_differs_is_refused_on_both_sides),
        cmocka_unit_test(a_call_cannot_be_led_elsewhere),
        cmocka_unit_test(an_echo_is_no_rank),
        cmocka_unit_test(a_replayed_call_comes_to_nothing),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(an_endless_call_is_cut),
        cmocka_unit_test(a_side_that_closes_is_told_of),
        cmocka_unit_test(a_whole_handshake_works_and_is_measured),
        cmocka_unit_test(silence_ends_with_the_deadline),
        cmocka_unit_test(half_a_handshake_ends_with_the_deadline),
        cmocka_unit_test(a_thousand_silent_ones_hold_nobody_up),
        cmocka_unit_test(a_certificate_is_not_the_key),
    };
    if (cohi_tls_available() != COH_OK) {
        print_message("skipped: %s\n", coh_last_error());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
