/* The frames of engine tcp as bytes: docs/faults.md F15 and F19. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "engine/tcp/wire.h"

#include <string.h>

enum { ROOM = sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST };

static const unsigned verbs[] = {
#define VERB(constant, name, extension, most, follows) constant,
    COHI_TCP_VERB_TABLE(VERB)
#undef VERB
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static cohi_tcp_frame frame_of(unsigned verb)
{
    return (cohi_tcp_frame){
        .head =
            {.verb = (uint8_t)verb, .segment = 5, .generation = 7, .offset = 1 << 20, .number = 3},
        .extension.atomic = {.kind = 1, .dtype = 2, .operand = 3, .compare = 4}};
}

static void every_verb_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < VERBS; i++) {
        unsigned char bytes[ROOM];
        cohi_tcp_frame frame = frame_of(verbs[i]), back = {.payload = bytes};
        size_t taken, written = cohi_tcp_encode(&frame, bytes);
        assert_int_equal(written, cohi_tcp_head_bytes(verbs[i]));
        assert_null(cohi_tcp_decode(bytes, written, &back, &taken));
        assert_int_equal(taken, written);
        assert_memory_equal(&back.head, &frame.head, sizeof frame.head);
        assert_memory_equal(&back.extension, &frame.extension, written - sizeof frame.head);
        assert_null(back.payload);
    }
}

static void what_is_cut_short_is_waited_for(void **state)
{
    (void)state;
    for (int i = 0; i < VERBS; i++) {
        unsigned char bytes[ROOM];
        cohi_tcp_frame frame = frame_of(verbs[i]), back;
        size_t written = cohi_tcp_encode(&frame, bytes), taken = 1;
        for (size_t count = 0; count < written; count++) {
            assert_null(cohi_tcp_decode(bytes, count, &back, &taken));
            assert_int_equal(taken, 0);
        }
    }
}

static const char *decode_head(const cohi_tcp_head *head)
{
    cohi_tcp_frame frame;
    size_t taken;
    return cohi_tcp_decode((const unsigned char *)head, sizeof *head, &frame, &taken);
}

/* Before the extension is here. */
static void wrong_heads_are_named(void **state)
{
    (void)state;
    for (unsigned verb = 0; verb < 256; verb++) {
        cohi_tcp_head head = {.verb = (uint8_t)verb};
        const char *wrong = decode_head(&head);
        if (verb > 0 && verb < COHI_TCP_VERBS)
            assert_null(wrong);
        else
            assert_string_equal(wrong, "its verb is unknown");
    }
    cohi_tcp_head put = {.verb = COHI_TCP_PUT, .bytes = COHI_TCP_FRAME_BYTES};
    assert_null(decode_head(&put));
    put.bytes++;
    assert_string_equal(decode_head(&put), "it is too long");
    put.bytes = UINT64_MAX;
    assert_string_equal(decode_head(&put), "it is too long");
    cohi_tcp_head quiet = {.verb = COHI_TCP_QUIET, .bytes = 1};
    assert_string_equal(decode_head(&quiet), "it is too long");
    cohi_tcp_head get = {.verb = COHI_TCP_GET, .bytes = UINT64_MAX, .offset = UINT64_MAX};
    assert_null(decode_head(&get)); /* the segment decides */
    get.segment = COHI_SEGMENTS_MAX;
    assert_string_equal(decode_head(&get), "there can be no such segment");
}

static cohi_tcp_hello good_hello(void)
{
    cohi_tcp_hello hello = {.version = COHI_TCP_VERSION,
                            .order_mark = COHI_TCP_ORDER_MARK,
                            .from = 3,
                            .to = 2,
                            .size = 4};
    memcpy(hello.magic, cohi_tcp_magic, sizeof hello.magic);
    return hello;
}

static void wrong_hellos_are_named(void **state)
{
    (void)state;
    cohi_tcp_hello hello = good_hello();
    assert_null(cohi_tcp_check_hello(&hello, 2, 4));
    assert_non_null(cohi_tcp_check_hello(&hello, 1, 4));
    assert_non_null(cohi_tcp_check_hello(&hello, 2, 5));
#define WRONG(change, words)                                            \
    do {                                                                \
        hello = good_hello();                                           \
        change;                                                         \
        assert_string_equal(cohi_tcp_check_hello(&hello, 2, 4), words); \
    } while (0)
    WRONG(hello.magic[0] ^= 1, "it does not speak this protocol");
    WRONG(hello.order_mark = 0x04030201, "its host has another byte order");
    WRONG(hello.version++, "it speaks another version of the protocol");
    WRONG(hello.from = -1, "there is no such rank");
    WRONG(hello.from = 4, "there is no such rank");
    WRONG(hello.from = 2, "there is no such rank");
    WRONG(hello.to = 1, "it calls another rank");
#undef WRONG
}

static void wrong_answers_are_named(void **state)
{
    (void)state;
    for (uint32_t reply = 0; reply < 7; reply++) {
        cohi_tcp_welcome welcome = {.reply = reply, .rank = 1};
        memcpy(welcome.magic, cohi_tcp_magic, sizeof welcome.magic);
        bool known = reply >= COHI_TCP_REPLY_OPEN && reply <= COHI_TCP_REPLY_LOST;
        assert_int_equal(!cohi_tcp_check_welcome(&welcome, 1), known);
        assert_non_null(cohi_tcp_check_welcome(&welcome, 0));
        welcome.magic[3] ^= 1;
        assert_non_null(cohi_tcp_check_welcome(&welcome, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_comes_back),
        cmocka_unit_test(what_is_cut_short_is_waited_for),
        cmocka_unit_test(wrong_heads_are_named),
        cmocka_unit_test(wrong_hellos_are_named),
        cmocka_unit_test(wrong_answers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
