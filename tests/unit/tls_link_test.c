/* Links between hosts by which ranks find each other: sealed, whole, and over at the first change:
 * docs/faults.md F36. */
#include "unit.h"

#include "base/clock.h"
#include "bootstrap/card.h"
#include "bootstrap/link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOON (cohi_now_ns() + COHI_NS_PER_S)

static cohi_tls_self self_of(int rank)
{
    cohi_tls_self self = {.purpose = COHI_TLS_RENDEZVOUS, .rank = rank, .size = 2};
    memset(self.secret, 9, sizeof self.secret);
    return self;
}

/* Both ends of a link whose handshake is through. */
static void make_link(cohi_connection ends[2])
{
    int fds[2];
    cohi_tls_self selves[2] = {self_of(0), self_of(1)};
    cohi_tls *tls[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(cohi_tls_call(&selves[1], fds[1], 0, &tls[1]), COH_OK);
    assert_int_equal(cohi_tls_answer(&selves[0], fds[0], &tls[0]), COH_OK);
    for (int i = 0; i < 6; i++)
        (void)cohi_tls_step(tls[1 - i % 2]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cohi_tls_step(tls[i]), COHI_TLS_DONE);
        assert_true(cohi_link_seal(tls[i], fds[i], &ends[i]));
        cohi_tls_end(tls[i]);
    }
}

static int send_bytes(const cohi_connection *link, const unsigned char *bytes, size_t count)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_CARD, 1);
    frame.bytes = (uint32_t)count;
    return cohi_link_send(link, &frame, bytes, NULL, 0, SOON);
}

static int receive(const cohi_connection *link, cohi_incoming *incoming)
{
    int fds[COHI_CARD_FDS], count;
    return cohi_link_receive(link, 1 << 20, incoming, fds, COHI_CARD_FDS, &count, SOON);
}

static void close_both(cohi_connection ends[2], cohi_incoming *incoming)
{
    cohi_link_close(&ends[0]);
    cohi_link_close(&ends[1]);
    free(incoming->payload);
}

static void frames_of_any_length_come_back(void **state)
{
    (void)state;
    static unsigned char bytes[200000];
    static const size_t lengths[] = {0, 1, 1024, 1025, 65491, 65492, 65493, 65516, 150000};
    cohi_connection ends[2];
    cohi_incoming incoming = {.payload = NULL};
    make_link(ends);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(send_bytes(&ends[0], bytes, lengths[i]), 0);
        assert_int_equal(receive(&ends[1], &incoming), 0);
        assert_int_equal(incoming.frame.bytes, lengths[i]);
        assert_memory_equal(incoming.payload, bytes, lengths[i]);
    }
    close_both(ends, &incoming);
}

/* Nothing readable is on the wire, and any bit that is another ends it. */
static void what_is_changed_is_refused(void **state)
{
    (void)state;
    enum { BYTES = 40 };
    static const unsigned char text[BYTES] = "these forty bytes are nobody's business";
    for (int bit = 0; bit < 8 * (BYTES + 20); bit += 5) {
        cohi_connection ends[2];
        cohi_incoming incoming = {.payload = NULL};
        unsigned char wire[256];
        make_link(ends);
        assert_int_equal(send_bytes(&ends[0], text, BYTES), 0);
        ssize_t got = recv(ends[1].fd, wire, sizeof wire, 0);
        assert_true(got > BYTES);
        assert_null(memmem(wire, (size_t)got, text, 8));
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(send(ends[0].fd, wire, (size_t)got, 0), got);
        shutdown(ends[0].fd, SHUT_WR); /* for lengths that are longer now */
        int error = receive(&ends[1], &incoming);
        assert_true(error == EBADMSG || error == ECONNRESET);
        close_both(ends, &incoming);
    }
}

static void what_is_repeated_is_refused(void **state)
{
    (void)state;
    cohi_connection ends[2];
    cohi_incoming incoming = {.payload = NULL};
    unsigned char wire[256], text[10] = "ten bytes";
    make_link(ends);
    assert_int_equal(send_bytes(&ends[0], text, sizeof text), 0);
    ssize_t got = recv(ends[1].fd, wire, sizeof wire, 0);
    assert_int_equal(send(ends[0].fd, wire, (size_t)got, 0), got);
    assert_int_equal(send(ends[0].fd, wire, (size_t)got, 0), got);
    assert_int_equal(receive(&ends[1], &incoming), 0);
    assert_int_equal(receive(&ends[1], &incoming), EBADMSG);
    close_both(ends, &incoming);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_any_length_come_back),
        cmocka_unit_test(what_is_changed_is_refused),
        cmocka_unit_test(what_is_repeated_is_refused),
    };
    if (cohi_tls_available() != COH_OK)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
