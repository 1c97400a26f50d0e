/* Sealed records: what was changed, repeated, moved or cut does not open, and nothing of it is seen;
 * keys are renewed; nothing is allocated for a record: docs/faults.md F36. */
#include "unit.h"

#include "secure/seal.h"
#include "secure/tls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/uio.h>

enum { ROOM = COHI_SEAL_RECORD_BYTES };

static atomic_long allocations;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 1
extern void *__libc_malloc(size_t bytes);

/* Of all libraries of the process. */
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(bytes);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

struct pair {
    cohi_seal *seals, *opens;
};

static struct pair make(uint64_t records, uint64_t bytes)
{
    unsigned char secret[COHI_SEAL_SECRET_BYTES];
    cohi_seal_limits limits = {.records = records, .bytes = bytes};
    memset(secret, 7, sizeof secret);
    struct pair pair = {cohi_seal_new(secret, COHI_SEAL_SEALS, &limits),
                        cohi_seal_new(secret, COHI_SEAL_OPENS, &limits)};
    assert_true(pair.seals && pair.opens);
    return pair;
}

static struct pair make_usual(void)
{
    return make(cohi_seal_limits_usual.records, cohi_seal_limits_usual.bytes);
}

static void end(struct pair *pair)
{
    cohi_seal_end(pair->seals);
    cohi_seal_end(pair->opens);
}

static void fill(unsigned char *bytes, size_t count, unsigned salt)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 31 + (i >> 8) + salt);
}

static size_t seal(cohi_seal *with, const void *bytes, size_t count, unsigned char *record)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = count};
    return cohi_seal_close(with, COHI_SEAL_DATA, &part, 1, record);
}

static bool is_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static void all_lengths_come_back(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 15, 16, 17, 4096, 65000, COHI_SEAL_PLAIN_BYTES};
    static unsigned char plain[ROOM], record[ROOM], back[ROOM];
    struct pair pair = make_usual();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        cohi_seal_kind kind;
        fill(plain, lengths[i], (unsigned)i);
        size_t bytes = seal(pair.seals, plain, lengths[i], record);
        assert_int_equal(bytes, lengths[i] + COHI_SEAL_EXTRA_BYTES);
        assert_int_equal(cohi_seal_announced(record, &kind), bytes);
        assert_int_equal(kind, COHI_SEAL_DATA);
        if (lengths[i] >= 16)
            assert_memory_not_equal(record + COHI_SEAL_HEAD_BYTES, plain, lengths[i]);
        if (i % 2) { /* in place */
            assert_true(cohi_seal_open(pair.opens, record, bytes, record + COHI_SEAL_HEAD_BYTES));
            assert_memory_equal(record + COHI_SEAL_HEAD_BYTES, plain, lengths[i]);
        } else {
            assert_true(cohi_seal_open(pair.opens, record, bytes, back));
            assert_memory_equal(back, plain, lengths[i]);
        }
    }
    end(&pair);
}

static void parts_are_sealed_as_one(void **state)
{
    (void)state;
    unsigned char plain[1000], record[ROOM], back[1000];
    struct pair pair = make_usual();
    struct iovec parts[4] = {{plain, 32}, {plain + 32, 7}, {plain + 39, 0}, {plain + 39, 961}};
    fill(plain, sizeof plain, 3);
    size_t bytes = cohi_seal_close(pair.seals, COHI_SEAL_GOODBYE, parts, 4, record);
    cohi_seal_kind kind;
    assert_int_equal(cohi_seal_announced(record, &kind), bytes);
    assert_int_equal(kind, COHI_SEAL_GOODBYE);
    assert_true(cohi_seal_open(pair.opens, record, bytes, back));
    assert_memory_equal(back, plain, sizeof plain);
    end(&pair);
}

/* Every bit of a record counts, those of the head too. */
static void a_flipped_bit_does_not_open(void **state)
{
    (void)state;
    enum { BYTES = 40, ALL = BYTES + COHI_SEAL_EXTRA_BYTES };
    unsigned char plain[BYTES], record[ALL], changed[ALL], back[BYTES];
    fill(plain, BYTES, 1);
    for (int bit = 0; bit < ALL * 8; bit++) {
        struct pair pair = make_usual();
        assert_int_equal(seal(pair.seals, plain, BYTES, record), ALL);
        memcpy(changed, record, ALL);
        changed[bit / 8] ^= (unsigned char)(1 << bit % 8);
        memset(back, 0, sizeof back);
        assert_false(cohi_seal_open(pair.opens, changed, ALL, back));
        assert_true(is_zero(back, BYTES));
        assert_false(cohi_seal_open(pair.opens, record, ALL, back)); /* it is over */
        assert_true(is_zero(back, BYTES));
        end(&pair);
    }
}

static void order_is_all(void **state)
{
    (void)state;
    unsigned char plain[100], records[3][100 + COHI_SEAL_EXTRA_BYTES], back[100];
    static const int orders[][3] = {{1, 0, 2}, {0, 0, 1}, {0, 2, 1}, {2, 1, 0}};
    for (size_t order = 0; order < sizeof orders / sizeof *orders; order++) {
        struct pair pair = make_usual();
        int opened = 0;
        for (int i = 0; i < 3; i++) {
            fill(plain, sizeof plain, (unsigned)i);
            seal(pair.seals, plain, sizeof plain, records[i]);
        }
        for (int i = 0; i < 3; i++) {
            bool right = opened == i && orders[order][i] == i;
            assert_int_equal(
                cohi_seal_open(pair.opens, records[orders[order][i]], sizeof records[0], back),
                right);
            opened += right;
        }
        assert_true(opened < 3);
        end(&pair);
    }
}

/* A record of one direction is none of the other. */
static void a_record_is_not_reflected(void **state)
{
    (void)state;
    unsigned char record[64], back[64], secret[COHI_SEAL_SECRET_BYTES] = {1};
    struct pair pair = make_usual();
    cohi_seal *other = cohi_seal_new(secret, COHI_SEAL_OPENS, &cohi_seal_limits_usual);
    size_t bytes = seal(pair.seals, "twenty bytes of text", 20, record);
    assert_false(cohi_seal_open(other, record, bytes, back));
    cohi_seal_end(other);
    end(&pair);
}

static void heads_that_are_none(void **state)
{
    (void)state;
    cohi_seal_kind kind;
    static const unsigned char heads[][COHI_SEAL_HEAD_BYTES] = {
        {0, 1, 0, 0}, {3, 1, 0, 0}, {1, 0, 0, 1}, {1, 0xff, 0xff, 0}, {2, 0xff, 0xff, 0xff}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(cohi_seal_announced(heads[i], &kind), 0);
}

/* Both sides renew at the same record; the same plain bytes look different before and after. */
static void keys_are_renewed(void **state)
{
    (void)state;
    static const struct {
        uint64_t records, bytes;
    } limits[] = {{1, 1 << 30}, {3, 1 << 30}, {1 << 20, 100}, {1 << 20, 1}, {2, 65}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct pair pair = make(limits[i].records, limits[i].bytes);
        for (unsigned round = 0; round < 50; round++) {
            unsigned char plain[64], record[64 + COHI_SEAL_EXTRA_BYTES], back[64];
            fill(plain, sizeof plain, round);
            size_t bytes = seal(pair.seals, plain, round % 65, record);
            assert_true(cohi_seal_open(pair.opens, record, bytes, back));
            assert_memory_equal(back, plain, round % 65);
        }
        end(&pair);
    }
    struct pair one = make(1, 1 << 30), never = make_usual();
    unsigned char first[2][64], second[2][64], back[64];
    size_t bytes = seal(one.seals, "the same text for both", 22, first[0]);
    seal(never.seals, "the same text for both", 22, first[1]);
    assert_memory_equal(first[0], first[1], bytes);
    seal(one.seals, "the same text for both", 22, second[0]);
    seal(never.seals, "the same text for both", 22, second[1]);
    assert_memory_not_equal(second[0] + COHI_SEAL_HEAD_BYTES, second[1] + COHI_SEAL_HEAD_BYTES, 22);
    /* One side that does not renew with the other cannot go on. */
    assert_true(cohi_seal_open(never.opens, first[0], bytes, back));
    assert_false(cohi_seal_open(never.opens, second[0], bytes, back));
    end(&one);
    end(&never);
}

static void nothing_is_allocated_for_a_record(void **state)
{
    (void)state;
    static unsigned char plain[ROOM], record[ROOM], back[ROOM];
    struct pair pair = make_usual();
    size_t bytes = seal(pair.seals, plain, 1000, record); /* what OpenSSL does once for a thread */
    assert_true(cohi_seal_open(pair.opens, record, bytes, back));
    long before = atomic_load(&allocations);
    for (int i = 0; i < 1000; i++) {
        bytes = seal(pair.seals, plain, (size_t)i * 60, record);
        assert_true(cohi_seal_open(pair.opens, record, bytes, back));
    }
    assert_int_equal(atomic_load(&allocations), before);
    assert_true(before > 0 || !COUNTS_ALLOCATIONS);
    end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lengths_come_back),
        cmocka_unit_test(parts_are_sealed_as_one),
        cmocka_unit_test(a_flipped_bit_does_not_open),
        cmocka_unit_test(order_is_all),
        cmocka_unit_test(a_record_is_not_reflected),
        cmocka_unit_test(heads_that_are_none),
        cmocka_unit_test(keys_are_renewed),
        cmocka_unit_test(nothing_is_allocated_for_a_record),
    };
    if (cohi_tls_available() != COH_OK)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
