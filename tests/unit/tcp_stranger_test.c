/* Strangers at the port of an endpoint, and members that send what they should not:
 * docs/faults.md F15, F19, F22, F23 and F24. */
#include "tcp_rig.h"

#define TIMEOUT_NS (10 * COHI_NS_PER_S)

static void works(struct rig *rig)
{
    uint64_t word = 77, back = 0;
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_put(rig, 0, 2, 512, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_get(rig, 0, 2, 512, &back, sizeof back, &op), COH_OK);
    assert_int_equal(rig_wait(&op), COH_OK);
    assert_int_equal(back, 77);
    for (int rank = 0; rank < 3; rank++)
        for (int of = 0; of < 3; of++)
            assert_int_equal(atomic_load(&rig->world[rank].lost[of]), 0);
}

/* ---- before the hello was believed ---- */

static void garbage_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    unsigned char garbage[4096];
    for (unsigned round = 0; round < 20; round++) {
        int fd = raw_connect(rig, 2);
        rig_fill(garbage, sizeof garbage, round);
        if (round % 4 == 0)
            raw_prove(rig, fd, 1, 2);
        (void)send(fd, garbage, 64 + round * 100, MSG_NOSIGNAL);
        assert_true(raw_is_closed(fd));
        close(fd);
    }
    works(rig);
    rig_close(rig);
}

/* Keys count where there are no handshakes, and there alone. */
static void check_wrong_hellos(bool clear)
{
    struct rig *rig = rig_make_as(clear, 3, 1 << 1, TIMEOUT_NS);
    rig_connect(rig);
    for (int wrong = clear ? 0 : 2; wrong < 6; wrong++) {
        cohi_tcp_hello hello = raw_hello(rig, 1, 2);
        hello.to_key[15] ^= wrong == 0;
        hello.from_key[0] ^= wrong == 1;
        hello.from = wrong == 2 ? 0 : wrong == 3 ? 1000000 : hello.from;
        hello.version += wrong == 4;
        hello.size += wrong == 5;
        int fd = raw_connect(rig, 2);
        raw_prove(rig, fd, 1, 2);
        raw_send(fd, &hello, sizeof hello);
        assert_true(raw_is_closed(fd));
        close(fd);
    }
    works(rig);
    close(raw_open(rig, 1, 2));
    rig_close(rig);
}

static void wrong_hellos_are_refused(void **state)
{
    (void)state;
    check_wrong_hellos(false);
    check_wrong_hellos(true);
}

/* Of a rank of the same job on another network, or of one that has seen the addresses only. */
static void a_hello_without_a_handshake_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    cohi_tcp_hello hello = raw_hello(rig, 1, 2);
    int fd = raw_connect(rig, 2);
    if (cohi_tls_available() != COH_OK)
        skip();
    raw_send(fd, &hello, sizeof hello);
    assert_true(raw_is_closed(fd));
    close(fd);
    works(rig);
    rig_close(rig);
}

static void another_job_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    cohi_tls_self self = {.purpose = COHI_TLS_LINK, .rank = 1, .size = 3};
    int fd = raw_connect(rig, 2), peer = -1;
    if (cohi_tls_available() != COH_OK)
        skip();
    assert_int_equal(
        cohi_tls_handshake("test", &self, fd, 2, cohi_now_ns() + 5 * COHI_NS_PER_S, &peer),
        COH_TRANSPORT);
    assert_true(raw_is_closed(fd));
    close(fd);
    works(rig);
    rig_close(rig);
}

/* Far more than there are places: a rank that calls is let in meanwhile. */
static void silent_connections_hold_nobody_up(void **state)
{
    (void)state;
    enum { STRANGERS = 1000 };
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    int fds[STRANGERS];
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = raw_connect(rig, 2);
        raw_send(fds[i], "hello", (size_t)i % 5);
    }
    double began = (double)cohi_now_ns();
    works(rig);
    assert_true((double)cohi_now_ns() - began < 2e9);
    assert_true(raw_is_closed(fds[0])); /* its place was needed */
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
    rig_close(rig);
}

static void a_rank_is_not_claimed_twice(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    cohi_tcp_hello hello = raw_hello(rig, 1, 2);
    cohi_tcp_welcome welcome;
    int first = raw_open(rig, 1, 2), second = raw_connect(rig, 2);
    raw_prove(rig, second, 1, 2);
    raw_send(second, &hello, sizeof hello);
    assert_int_equal(raw_receive(second, &welcome, sizeof welcome), sizeof welcome);
    assert_int_equal(welcome.reply, COHI_TCP_REPLY_CROSSED);
    assert_true(raw_is_closed(second));
    uint64_t word = 5;
    cohi_tcp_frame frame = {.head = {.verb = COHI_TCP_PUT, .generation = 1, .bytes = 8}};
    cohi_tcp_frame quiet = {.head = {.verb = COHI_TCP_QUIET, .number = 1}}, answer;
    raw_frame(first, &frame, &word, sizeof word);
    raw_frame(first, &quiet, NULL, 0);
    assert_true(raw_take(first, &answer, NULL, 0));
    assert_int_equal(answer.head.number, 1);
    assert_int_equal(*(uint64_t *)(void *)rig->memory[2], 5);
    close(first);
    close(second);
    rig_close(rig);
}

/* ---- after it ---- */

struct forged {
    const char *words; /* of the reason */
    cohi_tcp_frame frame;
    size_t payload;
};

static const struct forged forgeries[] = {
    {"verb is unknown", {.head = {.verb = 0}}, 0},
    {"verb is unknown", {.head = {.verb = COHI_TCP_VERBS}}, 0},
    {"verb is unknown", {.head = {.verb = 255}}, 0},
    {"too long", {.head = {.verb = COHI_TCP_PUT, .generation = 1, .bytes = UINT64_MAX}}, 0},
    {"too long", {.head = {.verb = COHI_TCP_MESSAGE, .bytes = COHI_TCP_MESSAGE_BYTES + 1}}, 0},
    {"no such segment",
     {.head = {.verb = COHI_TCP_PUT, .segment = 3, .generation = 1, .bytes = 8}},
     8},
    {"no such segment",
     {.head = {.verb = COHI_TCP_PUT, .segment = 64, .generation = 1, .bytes = 8}},
     8},
    {"no such segment", {.head = {.verb = COHI_TCP_PUT, .generation = 2, .bytes = 8}}, 8},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_PUT, .generation = 1, .offset = RIG_BYTES - 7, .bytes = 8}},
     8},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_PUT, .generation = 1, .offset = UINT64_MAX - 3, .bytes = 8}},
     8},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_PUT, .generation = 1, .offset = RIG_BYTES - 1000, .bytes = 1001}},
     1001},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_GET, .generation = 1, .offset = 8, .bytes = UINT64_MAX}},
     0},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_GET, .generation = 1, .offset = RIG_BYTES, .bytes = 1}},
     0},
    {"outside of the segment",
     {.head = {.verb = COHI_TCP_PUT_SIGNAL, .generation = 1, .bytes = 8},
      .extension.signal = {.offset = RIG_BYTES}},
     8},
    {"not aligned",
     {.head = {.verb = COHI_TCP_PUT_SIGNAL, .generation = 1, .bytes = 0},
      .extension.signal = {.offset = 12}},
     0},
    {"no such atomic",
     {.head = {.verb = COHI_TCP_POST, .generation = 1}, .extension.atomic = {.kind = 99}},
     0},
    {"no such atomic",
     {.head = {.verb = COHI_TCP_FETCH, .generation = 1}, .extension.atomic = {.dtype = 999}},
     0},
    {"not aligned",
     {.head = {.verb = COHI_TCP_FETCH, .generation = 1, .offset = 4},
      .extension.atomic = {.kind = COH_ATOMIC_ADD, .dtype = COH_U64}},
     0},
    {"nobody asked", {.head = {.verb = COHI_TCP_ANSWER, .number = 1}}, 0},
};

static void check_forgery(const struct forged *forged)
{
    static unsigned char payload[COHI_TCP_FRAME_BYTES];
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    char text[COHI_TCP_REASON_BYTES + 1] = "";
    unsigned char head[sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST];
    cohi_tcp_frame goodbye;
    int fd = raw_open(rig, 1, 2);
    memset(payload, 0xee, sizeof payload);
    memcpy(head, &forged->frame.head, sizeof forged->frame.head);
    memcpy(head + sizeof forged->frame.head, &forged->frame.extension, COHI_TCP_EXTENSION_MOST);
    raw_send(fd, head, sizeof head);
    if (forged->payload > 0)
        (void)send(fd, payload, forged->payload, MSG_NOSIGNAL);
    assert_true(raw_take(fd, &goodbye, text, COHI_TCP_REASON_BYTES));
    assert_int_equal(goodbye.head.verb, COHI_TCP_GOODBYE);
    if (!strstr(text, forged->words))
        fail_msg("'%s' has no '%s'", text, forged->words);
    assert_true(raw_is_closed(fd));
    assert_true(rig_until(&rig->world[2].lost[1], COHI_LOSS_LINK));
    for (int i = 0; i < RIG_BYTES; i++)
        if (rig->memory[2][i] != 0)
            fail_msg("%s: byte %d was written", forged->words, i);
    atomic_store(&rig->world[2].lost[1], 0);
    works(rig); /* other links go on */
    close(fd);
    rig_close(rig);
}

static void forged_frames_end_their_link(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++)
        check_forgery(&forgeries[i]);
}

static void too_many_requests_end_the_link(void **state)
{
    (void)state;
    enum { MANY = COHI_TCP_WINDOW + 1 };
    struct rig *rig = rig_open(3, 1 << 1, TIMEOUT_NS);
    int fd = raw_open(rig, 1, 2);
    cohi_tcp_frame frame = {
        .head = {.verb = COHI_TCP_GET, .generation = 1, .bytes = RIG_BYTES, .number = 1}};
    for (int i = 0; i < 2 * MANY; i++) { /* and takes no answer */
        unsigned char head[sizeof(cohi_tcp_head)];
        frame.head.number = (uint64_t)i + 1;
        (void)send(fd, head, cohi_tcp_encode(&frame, head), MSG_NOSIGNAL);
    }
    assert_true(rig_until(&rig->world[2].lost[1], COHI_LOSS_LINK));
    atomic_store(&rig->world[2].lost[1], 0);
    works(rig);
    close(fd);
    rig_close(rig);
}

static void wrong_answers_end_the_link(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 3; wrong++) {
        struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
        char target[100] = "", text[COHI_TCP_REASON_BYTES];
        cohi_op op = COHI_NEW_OP;
        cohi_tcp_frame frame;
        int fd = raw_open(rig, 1, 0);
        assert_int_equal(rig_get(rig, 0, 1, 0, target, 10, &op), COH_OK);
        assert_true(raw_take(fd, &frame, NULL, 0));
        frame = (cohi_tcp_frame){.head = {.verb = COHI_TCP_ANSWER,
                                          .number = frame.head.number + (wrong == 0),
                                          .bytes = wrong == 1   ? 11
                                                   : wrong == 2 ? 0
                                                                : 10}};
        raw_frame(fd, &frame, "aaaaaaaaaaa", (size_t)frame.head.bytes);
        assert_int_equal(rig_wait(&op), COH_PEER_LOST);
        assert_int_equal(target[10], 0);
        assert_true(raw_take(fd, &frame, text, sizeof text));
        assert_int_equal(frame.head.verb, COHI_TCP_GOODBYE);
        close(fd);
        rig_close(rig);
    }
}

/* A frame that ends in the middle is a loss, and what came of it is all that was stored. */
static void cut_short_is_a_loss(void **state)
{
    (void)state;
    static unsigned char payload[100000];
    for (size_t cut = 1; cut < 32 + 100000; cut += 9973) {
        struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
        unsigned char bytes[32 + 100000];
        int fd = raw_open(rig, 1, 0);
        cohi_tcp_frame frame = {
            .head = {.verb = COHI_TCP_PUT, .generation = 1, .bytes = sizeof payload}};
        memset(payload, 1, sizeof payload);
        memcpy(bytes + cohi_tcp_encode(&frame, bytes), payload, sizeof payload);
        raw_send(fd, bytes, cut);
        close(fd);
        assert_true(rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK));
        assert_int_equal(rig->memory[0][cut > 32 ? cut - 32 : 0], 0);
        rig_close(rig);
    }
}

/* The reason is printed as text, whatever it holds. */
static void a_goodbye_is_heard(void **state)
{
    (void)state;
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    int fd = raw_open(rig, 1, 0);
    cohi_op op = COHI_NEW_OP;
    uint64_t word;
    assert_int_equal(rig_get(rig, 0, 1, 0, &word, sizeof word, &op), COH_OK);
    cohi_tcp_frame frame = {.head = {.verb = COHI_TCP_GOODBYE, .bytes = 8}};
    raw_frame(fd, &frame, "a\n%s\0\x1b[m", 8);
    assert_int_equal(rig_wait(&op), COH_PEER_LOST);
    assert_true(rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK));
    close(fd);
    rig_close(rig);
}

/* ---- small pieces ---- */

static void bytes_one_at_a_time_are_right(void **state)
{
    (void)state;
    enum { DATA = 300 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    unsigned char bytes[4096], data[DATA];
    int fd = raw_open(rig, 1, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
    rig_fill(data, DATA, 8);
    cohi_tcp_frame put = {
        .head = {.verb = COHI_TCP_PUT, .generation = 1, .offset = 3, .bytes = DATA}};
    cohi_tcp_frame signal = {
        .head = {.verb = COHI_TCP_PUT_SIGNAL, .generation = 1, .offset = 1000, .bytes = 20},
        .extension.signal = {.offset = 2048, .value = 9}};
    cohi_tcp_frame message = {.head = {.verb = COHI_TCP_MESSAGE, .bytes = DATA}};
    cohi_tcp_frame quiet = {.head = {.verb = COHI_TCP_QUIET, .number = 1}}, answer;
    size_t count = 0;
    count += cohi_tcp_encode(&put, bytes + count);
    memcpy(bytes + count, data, DATA), count += DATA;
    count += cohi_tcp_encode(&signal, bytes + count);
    memcpy(bytes + count, data, 20), count += 20;
    count += cohi_tcp_encode(&message, bytes + count);
    memcpy(bytes + count, data, DATA), count += DATA;
    count += cohi_tcp_encode(&quiet, bytes + count);
    for (size_t i = 0; i < count; i++) {
        raw_send(fd, bytes + i, 1);
        if (i % 7 == 0)
            usleep(300);
    }
    assert_true(raw_take(fd, &answer, NULL, 0));
    assert_int_equal(answer.head.verb, COHI_TCP_ANSWER);
    assert_memory_equal(rig->memory[0] + 3, data, DATA);
    assert_memory_equal(rig->memory[0] + 1000, data, 20);
    assert_int_equal(*(uint64_t *)(void *)(rig->memory[0] + 2048), 9);
    assert_int_equal(atomic_load(&rig->world[0].messages), 1);
    assert_int_equal(rig->world[0].counts[0], DATA);
    close(fd);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(wrong_hellos_are_refused),
        cmocka_unit_test(a_hello_without_a_handshake_is_refused),
        cmocka_unit_test(another_job_is_refused),
        cmocka_unit_test(silent_connections_hold_nobody_up),
        cmocka_unit_test(a_rank_is_not_claimed_twice),
        cmocka_unit_test(forged_frames_end_their_link),
        cmocka_unit_test(too_many_requests_end_the_link),
        cmocka_unit_test(wrong_answers_end_the_link),
        cmocka_unit_test(cut_short_is_a_loss),
        cmocka_unit_test(a_goodbye_is_heard),
        cmocka_unit_test(bytes_one_at_a_time_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
