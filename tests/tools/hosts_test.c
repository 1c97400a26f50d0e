/* Lists of hosts, orders and frames, as tools/hosts reads them. */
#include "hosts/frame.h"
#include "hosts/hosts.h"
#include "hosts/order.h"
#include "hosts/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_says(const char *text)
{
    if (!strstr(coh_last_error(), text))
        fail_msg("'%s' does not say '%s'", coh_last_error(), text);
}

/* "a:4 b:1 10.0.0.7" of all hosts: name, slots and the address where there is one. */
static const char *describe(const cohi_hosts *hosts)
{
    static char text[1024];
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < hosts->count; i++) {
        const cohi_host_entry *host = &hosts->list[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d%s%s", i ? " " : "",
                                 host->name, host->slots, *host->address ? "@" : "", host->address);
    }
    return text;
}

static void expect_list(const char *text, const char *found)
{
    cohi_hosts hosts;
    assert_int_equal(cohi_hosts_parse_list("--hosts", text, &hosts), COH_OK);
    assert_string_equal(describe(&hosts), found);
    cohi_hosts_free(&hosts);
}

static void refuse_list(const char *text, const char *why)
{
    cohi_hosts hosts;
    assert_int_equal(cohi_hosts_parse_list("--hosts", text, &hosts), COH_INVALID_ARGUMENT);
    assert_says(why);
    assert_null(hosts.list);
}

static void lists(void **state)
{
    (void)state;
    expect_list("a", "a:1");
    expect_list("a:4,b:4", "a:4 b:4");
    expect_list("me@10.0.0.7:2,b-1.x_y", "me@10.0.0.7:2 b-1.x_y:1");
    refuse_list("", "--hosts: the name of a host is empty");
    refuse_list("a,,b", "is empty");
    refuse_list("a,", "is empty");
    refuse_list(":4", "is empty");
    refuse_list("a:0", "0 slots takes no rank");
    refuse_list("a:", "'' is no number of slots from 1 to 1024");
    refuse_list("a:x", "'x' is no number of slots");
    refuse_list("a:1025", "is no number of slots");
    refuse_list("a:99999999999999", "is no number of slots");
    refuse_list("a:4,b,a:2", "host 'a' is there twice");
    refuse_list("-oProxyCommand=x", "cannot be the name of a host");
    refuse_list("me@-x", "cannot be the name of a host");
    refuse_list("me@", "cannot be the name of a host");
    refuse_list("a b", "has a character that is no letter");
    refuse_list("$(x)", "has a character that is no letter");
    refuse_list("a\033[2J", "'a?[2J'");
    refuse_list("a234567890123456789012345678901234567890123456789012345678901234567890",
                "55 are the most");
}

static void expect_file(const char *text, const char *found)
{
    cohi_hosts hosts;
    if (cohi_hosts_parse_file("f", text, strlen(text), &hosts) != COH_OK)
        fail_msg("%s", coh_last_error());
    assert_string_equal(describe(&hosts), found);
    cohi_hosts_free(&hosts);
}

static void refuse_file(const char *text, const char *why)
{
    cohi_hosts hosts;
    assert_int_equal(cohi_hosts_parse_file("f", text, strlen(text), &hosts), COH_INVALID_ARGUMENT);
    assert_says(why);
    assert_null(hosts.list);
}

static void files_of_lines(void **state)
{
    (void)state;
    expect_file("a slots=4 address=10.0.0.1 # the first\n\n  # nothing\nb\tslots=2\r\nc",
                "a:4@10.0.0.1 b:2 c:1");
    expect_file("a:4\nb:2 address=eth1\n", "a:4 b:2@eth1");
    refuse_file("", "f: it names no host");
    refuse_file("# none\n", "f: it names no host");
    refuse_file("a\nb slots=x\n", "f:2:9: 'x' is no number of slots");
    refuse_file("a\n\n  b:0", "f:3:5: a host with 0 slots");
    refuse_file("a\nb speed=4\n",
                "f:2:3: after a host there may be slots=NUMBER and address=ADDRESS");
    refuse_file("a slots", "f:1:3: after a host");
    refuse_file("a:4 slots=4", "f:1:5: the number of slots is given twice");
    refuse_file("a slots=4 slots=4", "f:1:11: the number of slots is given twice");
    refuse_file("a\nb\n a", "f:3:2: host 'a' is there twice");
    refuse_file("a address=-x", "f:1:11: '-x' cannot be");
    refuse_file("-l", "f:1:1: '-l' cannot be the name");
}

static void files_of_mlx(void **state)
{
    (void)state;
    expect_file(
        "[{\"ssh\": \"b\", \"ips\": [\"10.0.0.2\", \"10.0.1.2\"]}, {\"ssh\": \"c\", \"ips\": []}]",
        "b:1@10.0.0.2 c:1");
    expect_file("[[\"127.0.0.1:25001\"], [\"127.0.0.1:25002\"], [\"10.0.0.3:1\"]]",
                "127.0.0.1:2@127.0.0.1 10.0.0.3:1@10.0.0.3");
    expect_file(" \n[[\"fe80::1\"]]", "fe80::1:1@fe80::1");
    refuse_file("[", "f:1:1:");
    refuse_file("[\n\"a\",]", "f:2:");
    refuse_file("{\"ssh\": \"b\"}", "f: it is JSON, but no list of hosts");
    refuse_file("[]", "f: it names no host");
    refuse_file("[7]", "f: entry 1: it is neither");
    refuse_file("[[\"a\"], {\"ips\": []}]", "f: entry 2: it has no \"ssh\"");
    refuse_file("[{\"ssh\": \"b\", \"ips\": [7]}]", "f: entry 1: its \"ips\" are no texts");
    refuse_file("[[]]", "f: entry 1: it is no list of addresses");
    refuse_file("[[\"-x\"]]", "f: entry 1: '-x' cannot be");
}

static void expect_slurm(const char *nodes, const char *tasks, const char *found)
{
    cohi_hosts hosts;
    if (cohi_hosts_parse_slurm(nodes, tasks, &hosts) != COH_OK)
        fail_msg("%s", coh_last_error());
    assert_string_equal(describe(&hosts), found);
    cohi_hosts_free(&hosts);
}

static void refuse_slurm(const char *nodes, const char *tasks, const char *why)
{
    cohi_hosts hosts;
    assert_int_equal(cohi_hosts_parse_slurm(nodes, tasks, &hosts), COH_INVALID_ARGUMENT);
    assert_says(why);
    assert_null(hosts.list);
}

static void allocations_of_slurm(void **state)
{
    (void)state;
    expect_slurm("a", NULL, "a:1");
    expect_slurm("a[1-3,7],b", "4(x2),2,1(x2)", "a1:4 a2:4 a3:2 a7:1 b:1");
    expect_slurm("n[08-10]-ib", "", "n08-ib:1 n09-ib:1 n10-ib:1");
    expect_slurm("r[1-2]n[1-2],x", "3(x9)", "r1n1:3 r1n2:3 r2n1:3 r2n2:3 x:3");
    refuse_slurm("", NULL, "the name of a host is empty");
    refuse_slurm("a[1-3", NULL, "a bracket has no end");
    refuse_slurm("a[]", NULL, "nothing in it");
    refuse_slurm("a[x]", NULL, "a bracket holds no numbers");
    refuse_slurm("a[3-1]", NULL, "a bracket holds no numbers");
    refuse_slurm("a[1-]", NULL, "a bracket holds no numbers");
    refuse_slurm("a[1-999999999]", NULL, "more than 1024 hosts");
    refuse_slurm("a[1-2]", "4(x", "SLURM_TASKS_PER_NODE: it is not written as 4(x3),2");
    refuse_slurm("a[1-2]", "4(x2", "it is not written as");
    refuse_slurm("a[1-2]", "4", "it speaks of 1 hosts, the allocation has 2");
    refuse_slurm("a", "0", "0 slots");
}

static void ranks_by_slots(void **state)
{
    cohi_hosts hosts;
    (void)state;
    assert_int_equal(cohi_hosts_parse_list("--hosts", "a:2,b:4,c:2", &hosts), COH_OK);
    assert_int_equal(cohi_hosts_slots(&hosts), 8);
    assert_int_equal(cohi_hosts_place(&hosts, 9, 0), COH_INVALID_ARGUMENT);
    assert_says("9 ranks do not fit into 8 slots of 3 hosts");
    assert_says("--oversubscribe");
    assert_int_equal(cohi_hosts_place(&hosts, 16, 1), COH_OK);
    assert_int_equal(hosts.list[1].first, 4);
    assert_int_equal(hosts.list[1].ranks, 8);
    assert_int_equal(hosts.list[2].ranks, 4);
    assert_int_equal(cohi_hosts_place(&hosts, 5, 0), COH_OK);
    assert_int_equal(hosts.count, 2); /* the last has no rank */
    assert_int_equal(hosts.list[1].first, 2);
    assert_int_equal(hosts.list[1].ranks, 3);
    cohi_hosts_free(&hosts);
}

/* ---- orders ---- */

static void orders_come_back(void **state)
{
    char *command[] = {(char[]){"./p"}, (char[]){""}, (char[]){"\xff x=y"}, NULL};
    char *environment[] = {(char[]){"A=b c"}, NULL};
    cohi_order_host hosts[] = {{0, "a"}, {2, "b"}};
    cohi_order order = {.job = UINT64_MAX,
                        .size = 5,
                        .here = 1,
                        .input_fd = -1,
                        .folder = "/x y",
                        .hosts = hosts,
                        .host_count = 2,
                        .command = command,
                        .environment = environment};
    cohi_order back;
    char *text;
    size_t length;
    (void)state;
    assert_int_equal(cohi_order_write(&order, &text, &length), COH_OK);
    assert_int_equal(cohi_order_read(text, length, &back), COH_OK);
    assert_true(back.job == UINT64_MAX);
    assert_int_equal(back.size, 5);
    assert_int_equal(cohi_order_first(&back), 2);
    assert_int_equal(cohi_order_count(&back), 3);
    assert_int_equal(back.input_fd, -1);
    assert_string_equal(back.folder, "/x y");
    assert_string_equal(back.hosts[1].name, "b");
    assert_string_equal(back.command[1], "");
    assert_string_equal(back.command[2], "\xff x=y");
    assert_null(back.command[3]);
    assert_string_equal(back.environment[0], "A=b c");
    cohi_order_free(&back);
    free(text);
}

static void orders_that_cannot_be(void **state)
{
    static const char *const texts[] = {
        "size=5\0host=0 a\0",                       /* no program */
        "argument=p\0host=0 a\0",                   /* no ranks */
        "size=5\0argument=p\0",                     /* no host */
        "size=2\0host=1 a\0argument=p\0",           /* not from rank 0 on */
        "size=2\0host=0 a\0host=0 b\0argument=p\0", /* a host without ranks */
        "size=2\0host=0 a\0host=2 b\0argument=p\0",
        "size=2\0host=0 a\0here=1\0argument=p\0",
        "size=9999\0host=0 a\0argument=p\0",
        "size=2\0host=0\0argument=p\0",
        "size=2\0host=0 a\0argument=p\0what=x\0",
        "size=2\0host=0 a\0argument=p\0variable=x\0",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cohi_order order;
        size_t length = 0;
        while (texts[i][length])
            length += strlen(texts[i] + length) + 1;
        assert_int_equal(cohi_order_read(texts[i], length, &order), COH_INVALID_ARGUMENT);
        assert_null(order.text);
    }
}

/* ---- frames ---- */

static void magic_after_noise(void **state)
{
    char version[32];
    static const char text[] = "Welcome to b!\nlast login: " COHI_AGENT_MAGIC "1.2.3\nrest";
    (void)state;
    assert_int_equal(cohi_frame_find_magic(text, 30, version, sizeof version), 0);
    assert_int_equal(cohi_frame_find_magic(text, sizeof text - 6, version, sizeof version), 0);
    assert_int_equal(cohi_frame_find_magic(text, sizeof text - 1, version, sizeof version),
                     sizeof text - 5);
    assert_string_equal(version, "1.2.3");
}

static void frames_are_checked(void **state)
{
    struct {
        cohi_frame_head head;
        cohi_end end;
    } sent = {{COHI_FRAME_MARK, COHI_FRAME_ENDED, 3, sizeof(cohi_end)}, {.wait_status = 9}};
    const char *bytes = (const char *)&sent;
    cohi_frame frame;
    (void)state;
    assert_int_equal(cohi_frame_read(bytes, 5, 4, &frame), 0);
    assert_int_equal(cohi_frame_read(bytes, sizeof sent - 5, 4, &frame), 0);
    sent.head.rank = 4;
    assert_int_equal(cohi_frame_read(bytes, sizeof sent, 4, &frame), -1);
    sent.head.rank = -1;
    assert_int_equal(cohi_frame_read(bytes, sizeof sent, 4, &frame), -1);
    sent.head.rank = 3;
    sent.head.length = UINT32_MAX;
    assert_int_equal(cohi_frame_read(bytes, sizeof sent, 4, &frame), -1);
    sent.head.length = sizeof(cohi_end);
    sent.head.kind = COHI_FRAME_KINDS;
    assert_int_equal(cohi_frame_read(bytes, sizeof sent, 4, &frame), -1);
    sent.head.kind = COHI_FRAME_ENDED;
    sent.head.mark = 0xf743;
    assert_int_equal(cohi_frame_read(bytes, sizeof sent, 4, &frame), -1);
    assert_says("cannot be");
}

/* Control that is sent after output that does not fit into the pipe comes before the rest of it, and
 * never inside a frame. */
static void control_overtakes_output(void **state)
{
    int ends[2], outputs_before = 0, outputs = 0, seen = 0;
    static char block[COHI_FRAME_BYTES_MAX];
    cohi_stream out, in;
    cohi_frame frame;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    cohi_stream_open(&out, dup(ends[0]), ends[1]);
    cohi_stream_open(&in, ends[0], dup(ends[1]));
    in.size = 1;
    for (int i = 0; i < 64; i++)
        cohi_stream_send_output(&out, COHI_FRAME_OUTPUT, 0, block, sizeof block);
    cohi_stream_flush(&out);
    cohi_stream_send(&out, COHI_FRAME_PING, -1, NULL, 0);
    while (outputs + seen < 65) {
        cohi_stream_flush(&out);
        cohi_stream_read(&in);
        int got;
        while ((got = cohi_stream_next(&in, &frame)) > 0) {
            outputs += frame.kind == COHI_FRAME_OUTPUT;
            seen += frame.kind == COHI_FRAME_PING;
            outputs_before = seen ? outputs_before : outputs;
        }
        assert_int_equal(got, 0);
    }
    assert_true(outputs_before <= 6); /* what the pipe had, and the frame that was begun */
    cohi_stream_close(&out);
    cohi_stream_close(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(files_of_lines),
        cmocka_unit_test(files_of_mlx),
        cmocka_unit_test(allocations_of_slurm),
        cmocka_unit_test(ranks_by_slots),
        cmocka_unit_test(orders_come_back),
        cmocka_unit_test(orders_that_cannot_be),
        cmocka_unit_test(magic_after_noise),
        cmocka_unit_test(frames_are_checked),
        cmocka_unit_test(control_overtakes_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
