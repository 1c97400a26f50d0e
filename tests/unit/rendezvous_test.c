/* What launchers say of a job: their lines, lists and files; and one that answers PMI-1 late, wrong or not at
 * all, or takes short values only: docs/faults.md F38. */
#include "unit.h"

#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/unique_id.h"
#include "rendezvous/bounded.h"
#include "rendezvous/hex.h"
#include "rendezvous/mlx_hosts.h"
#include "rendezvous/pmi_wire.h"
#include "rendezvous/provider.h"
#include "rendezvous/slurm.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- lines of PMI-1 ---- */

static cohi_pmi_read feed(cohi_pmi_reader *reader, const char *bytes, size_t count, char *line)
{
    size_t room;
    char *at = cohi_pmi_room(reader, &room);
    assert_true(count <= room);
    memcpy(at, bytes, count);
    reader->got += count;
    return cohi_pmi_take_line(reader, line);
}

static void lines_in_pieces(void **state)
{
    static cohi_pmi_reader reader;
    static char line[COHI_PMI_LINE_BYTES], many[COHI_PMI_LINE_BYTES];
    (void)state;
    assert_int_equal(feed(&reader, "cmd=a", 5, line), COHI_PMI_PARTIAL);
    assert_int_equal(feed(&reader, " b=1\ncmd", 8, line), COHI_PMI_LINE);
    assert_string_equal(line, "cmd=a b=1");
    assert_int_equal(feed(&reader, "=c\n\n", 4, line), COHI_PMI_LINE);
    assert_string_equal(line, "cmd=c");
    assert_int_equal(cohi_pmi_take_line(&reader, line), COHI_PMI_LINE);
    assert_string_equal(line, "");
    assert_int_equal(cohi_pmi_take_line(&reader, line), COHI_PMI_PARTIAL);
    memset(many, 'x', sizeof many);
    assert_int_equal(feed(&reader, many, sizeof many, line), COHI_PMI_STRANGE);
    reader.got = 0;
    assert_int_equal(feed(&reader, "a\0b\n", 4, line), COHI_PMI_STRANGE);
}

static void fields_of_a_line(void **state)
{
    static const char line[] = "cmd=get_result  rc=-1 msg=key_x value=a=b valueless";
    char value[16];
    long number;
    (void)state;
    assert_true(cohi_pmi_field(line, "cmd", value, sizeof value));
    assert_string_equal(value, "get_result");
    assert_true(cohi_pmi_field(line, "value", value, sizeof value));
    assert_string_equal(value, "a=b");
    assert_false(cohi_pmi_field(line, "val", value, sizeof value));
    assert_false(cohi_pmi_field(line, "valueless", value, sizeof value));
    assert_false(cohi_pmi_field(line, "cmd", value, sizeof "get_result" - 1));
    assert_true(cohi_pmi_number(line, "rc", &number));
    assert_int_equal(number, -1);
    assert_false(cohi_pmi_number(line, "msg", &number));
    assert_false(cohi_pmi_number("rc=", "rc", &number));
    assert_false(cohi_pmi_number("rc=12345678901", "rc", &number));
}

/* ---- Slurm's and MLX's lists ---- */

static void first_nodes(void **state)
{
    static const char *const right[][2] = {
        {"a", "a"},
        {"a,b", "a"},
        {"n[1-3]", "n1"},
        {"n[07,9-11],m", "n07"},
        {"r[2-3]n[4]", "r2n4"},
        {"n[1-3]-ib", "n1-ib"},
        {"host.example", "host.example"},
    };
    static const char *const wrong[] = {"", ",a", "n[", "n[]", "n[x]", "n[1", "n[-1]"};
    char name[16];
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_true(cohi_slurm_first_node(right[i][0], name, sizeof name));
        assert_string_equal(name, right[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cohi_slurm_first_node(wrong[i], name, sizeof name));
    assert_false(cohi_slurm_first_node("a-name-that-does-not-fit", name, sizeof name));
}

static void files_of_mlx(void **state)
{
    static const char *const wrong[] = {"",
                                        "[",
                                        "[]",
                                        "[[]]",
                                        "{}",
                                        "[[\"a:1\"]",
                                        "[[\"a\"]]",
                                        "[[\"a:0\"]]",
                                        "[[\"a:65536\"]]",
                                        "[[\"a:1\"]] x",
                                        "[[\"a:1\"],]",
                                        "[[\":1\"]]",
                                        "[[\"a:1b\"]]",
                                        "[\"a:1\"]",
                                        "[[\"a:1\\\"\"]]"};
    cohi_mlx_hosts hosts;
    (void)state;
    assert_true(cohi_mlx_hosts_parse(
        " [[\"10.0.0.1:5000\", \"10.0.1.1:5009\"],\n[\"10.0.0.1:5001\"], [\"10.0.0.2:7000\"]]\n",
        &hosts));
    assert_int_equal(hosts.ranks, 3);
    assert_string_equal(hosts.address, "10.0.0.1");
    assert_int_equal(hosts.port, 5001);
    assert_true(cohi_mlx_hosts_parse("[[\"fd00::1:5000\"]]", &hosts));
    assert_string_equal(hosts.address, "fd00::1");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cohi_mlx_hosts_parse(wrong[i], &hosts))
            fail_msg("taken for a list: %s", wrong[i]);
}

/* ---- secrets and ids as text ---- */

static void digits(void **state)
{
    static const unsigned char bytes[3] = {0, 0xa5, 0xff};
    unsigned char read[3];
    char text[7];
    (void)state;
    cohi_hex_write(bytes, 3, text);
    assert_string_equal(text, "00a5ff");
    assert_true(cohi_hex_read("00A5fF", read, 3));
    assert_memory_equal(read, bytes, 3);
    assert_false(cohi_hex_read("00a5f", read, 3));
    assert_false(cohi_hex_read("00a5ff0", read, 3));
    assert_false(cohi_hex_read("00a5fg", read, 3));
}

/* ---- calls that do not return ---- */

static atomic_int discarded;

static void sleep_ms(long milliseconds)
{
    struct timespec pause = {.tv_nsec = milliseconds * 1000000};
    nanosleep(&pause, NULL);
}

static void take_long(void *arg)
{
    (void)arg;
    sleep_ms(300);
}

static void be_quick(void *arg)
{
    *(int *)arg = 7;
}

static void count_discarded(void *arg)
{
    (void)arg;
    atomic_fetch_add(&discarded, 1);
}

static void bounded_calls(void **state)
{
    int result = 0;
    (void)state;
    assert_int_equal(cohi_bounded_call(be_quick, &result, count_discarded, UINT64_MAX / 2), 0);
    assert_int_equal(result, 7);
    uint64_t began = cohi_now_ns();
    assert_int_equal(cohi_bounded_call(take_long, NULL, count_discarded, began + 50000000),
                     ETIMEDOUT);
    assert_int_equal(atomic_load(&discarded), 0);
    for (int i = 0; i < 200 && atomic_load(&discarded) == 0; i++)
        sleep_ms(20);
    assert_int_equal(atomic_load(&discarded), 1);
}

/* ---- a launcher of PMI-1 ---- */

enum { RANKS = 2, KEYS = 64 };

/* It speaks to one rank by one descriptor each. Values are short, so that the id takes several. */
struct server {
    int fds[RANKS];
    int count, in_barrier, finished;
    char keys[KEYS][2][128];
};

static void answer(int fd, const char *text)
{
    assert_int_equal(cohi_os_send(fd, text, strlen(text), NULL, 0, UINT64_MAX), 0);
}

static void serve_put(struct server *server, int fd, const char *line)
{
    assert_true(server->count < KEYS);
    assert_true(cohi_pmi_field(line, "key", server->keys[server->count][0], 24));
    assert_true(cohi_pmi_field(line, "value", server->keys[server->count][1], 33));
    server->count++;
    answer(fd, "cmd=put_result rc=0 msg=success\n");
}

static void serve_get(const struct server *server, int fd, const char *line)
{
    char key[24], text[256] = "cmd=get_result rc=-1 msg=none value=unknown\n";
    assert_true(cohi_pmi_field(line, "key", key, sizeof key));
    for (int i = 0; i < server->count; i++)
        if (strcmp(server->keys[i][0], key) == 0)
            snprintf(text, sizeof text, "cmd=get_result rc=0 msg=success value=%s\n",
                     server->keys[i][1]);
    answer(fd, text);
}

static void serve_line(struct server *server, int fd, const char *line)
{
    char command[32];
    assert_true(cohi_pmi_field(line, "cmd", command, sizeof command));
    if (strcmp(command, "init") == 0)
        answer(fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    else if (strcmp(command, "get_maxes") == 0)
        answer(fd, "cmd=maxes kvsname_max=64 keylen_max=24 vallen_max=33\n");
    else if (strcmp(command, "get_my_kvsname") == 0)
        answer(fd, "cmd=my_kvsname kvsname=space_1\n");
    else if (strcmp(command, "put") == 0)
        serve_put(server, fd, line);
    else if (strcmp(command, "get") == 0)
        serve_get(server, fd, line);
    else if (strcmp(command, "barrier_in") == 0) {
        if (++server->in_barrier == RANKS)
            for (int i = 0; i < RANKS; i++)
                answer(server->fds[i], "cmd=barrier_out\n");
    } else if (strcmp(command, "finalize") == 0) {
        answer(fd, "cmd=finalize_ack\n");
        server->finished++;
    }
}

static void *serve(void *arg)
{
    struct server *server = arg;
    static cohi_pmi_reader readers[RANKS];
    char line[COHI_PMI_LINE_BYTES];
    while (server->finished < RANKS) {
        for (int i = 0; i < RANKS; i++) {
            size_t room, got = 0;
            char *at = cohi_pmi_room(&readers[i], &room);
            if (cohi_os_receive_now(server->fds[i], at, room, &got) == 0)
                readers[i].got += got;
            while (cohi_pmi_take_line(&readers[i], line) == COHI_PMI_LINE)
                serve_line(server, server->fds[i], line);
        }
        sleep_ms(1);
    }
    return NULL;
}

static void set_variables(int fd, int rank)
{
    char text[16];
    snprintf(text, sizeof text, "%d", fd);
    setenv("PMI_FD", text, 1);
    snprintf(text, sizeof text, "%d", rank);
    setenv("PMI_RANK", text, 1);
    setenv("PMI_SIZE", "2", 1);
    setenv("MPI_LOCALNRANKS", "2", 1);
}

static coh_status ask(int timeout_ms, cohi_launch *launch)
{
    cohi_config config;
    assert_int_equal(cohi_config_load(&config), COH_OK);
    config.init_timeout = (uint64_t)timeout_ms * COHI_NS_PER_MS;
    return cohi_pmi_ask(&config, launch);
}

/* Rank 1 is a child, and sends the id that it got to rank 0. */
static void id_in_pieces(void **state)
{
    int pairs[RANKS][2], back[2];
    struct server server = {.count = 0};
    cohi_launch launch;
    coh_unique_id got;
    pthread_t thread;
    (void)state;
    assert_int_equal(pipe(back), 0);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
    pid_t child = fork();
    if (child == 0) {
        set_variables(pairs[1][1], 1);
        bool right = ask(5000, &launch) == COH_OK && launch.rank == 1 && launch.size == 2
                     && write(back[1], launch.id.bytes, sizeof launch.id.bytes)
                            == (ssize_t)sizeof launch.id.bytes;
        _exit(right ? 0 : 1);
    }
    for (int i = 0; i < RANKS; i++)
        server.fds[i] = pairs[i][0];
    assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
    set_variables(pairs[0][1], 0);
    assert_int_equal(ask(5000, &launch), COH_OK);
    assert_int_equal(launch.listeners.count, 0); /* all are on one host */
    assert_int_equal(read(back[0], got.bytes, sizeof got.bytes), sizeof got.bytes);
    assert_memory_equal(got.bytes, launch.id.bytes, sizeof got.bytes);
    assert_int_equal(server.count, 8); /* 256 digits, 32 a value */
    pthread_join(thread, NULL);
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

/* What it gets from a launcher that says `text` and then closes, or stays silent. */
static coh_status meet_launcher(const char *text, bool closes)
{
    int pair[2];
    cohi_launch launch;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    set_variables(pair[1], 0);
    answer(pair[0], text);
    if (closes)
        shutdown(pair[0], SHUT_RDWR);
    coh_status status = ask(200, &launch);
    close(pair[0]);
    close(pair[1]);
    return status;
}

static void launchers_that_fail(void **state)
{
    static const char init[] = "cmd=response_to_init rc=0\n";
    char text[256];
    (void)state;
    assert_int_equal(meet_launcher("", true), COH_TRANSPORT);
    assert_says("the launcher closed its connection");
    assert_int_equal(meet_launcher("HTTP/1.1 400 Bad Request\n", false), COH_TRANSPORT);
    assert_says("is not PMI-1: 'HTTP/1.1 400 Bad Request'");
    assert_int_equal(meet_launcher("cmd=response_to_init rc=-1\n", false), COH_TRANSPORT);
    assert_says("the launcher refused 'cmd=init");
    snprintf(text, sizeof text, "%scmd=maxes keylen_max=4 vallen_max=4\n", init);
    assert_int_equal(meet_launcher(text, false), COH_TRANSPORT);
    snprintf(text, sizeof text, "%scmd=maxes keylen_max=64\n", init);
    assert_int_equal(meet_launcher(text, false), COH_TRANSPORT);
    assert_int_equal(meet_launcher(init, false), COH_TIMED_OUT);
    assert_says("has waited 0.2 s for the launcher");
    snprintf(text, sizeof text,
             "%scmd=maxes keylen_max=64 vallen_max=512\ncmd=my_kvsname kvsname=s\n"
             "cmd=put_result rc=0\n",
             init);
    assert_int_equal(meet_launcher(text, false), COH_TIMED_OUT);
    assert_says("rank 1 has not come, or is on another host");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_in_pieces), cmocka_unit_test(fields_of_a_line),
        cmocka_unit_test(first_nodes),     cmocka_unit_test(files_of_mlx),
        cmocka_unit_test(digits),          cmocka_unit_test(bounded_calls),
        cmocka_unit_test(id_in_pieces),    cmocka_unit_test(launchers_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
