/* Which addresses engine tcp listens at, and in which order it calls those of others:
 * docs/faults.md F22. */
#include "tcp_rig.h"

#include "unit.h"

static cohi_tcp_place place(const char *text, unsigned prefix)
{
    cohi_tcp_place made = {.family = strchr(text, ':') ? 6 : 4, .prefix = (uint8_t)prefix};
    assert_int_equal(inet_pton(made.family == 6 ? AF_INET6 : AF_INET, text, made.host), 1);
    return made;
}

/* ---- ports ---- */

static void ports_are_read(void **state)
{
    (void)state;
    static const char *const wrong[] = {"x",     "0-5",   "5-",      "-5",    "9-5",
                                        "70000", "1-2-3", "1 - 999", "65536", "+1-5"};
    cohi_tcp_ports ports;
    assert_int_equal(cohi_tcp_ports_parse("", &ports), COH_OK);
    assert_int_equal(ports.last, 0);
    assert_int_equal(cohi_tcp_ports_parse("40000-40099", &ports), COH_OK);
    assert_int_equal(ports.first, 40000);
    assert_int_equal(ports.last, 40099);
    assert_int_equal(cohi_tcp_ports_parse("65535", &ports), COH_OK);
    assert_int_equal(ports.first, 65535);
    assert_int_equal(ports.last, 65535);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(cohi_tcp_ports_parse(wrong[i], &ports), COH_INVALID_ARGUMENT);
        assert_says("COHORT_PORTS");
        assert_says(wrong[i]);
    }
}

static coh_status open_with(const char *interface, const char *ports, int rank,
                            cohi_endpoint **endpoint)
{
    coh_unique_id id;
    cohi_config config = {.net_interface = interface, .ports = ports, .host = "played"};
    cohi_engine_args args = {
        .rank = rank, .need = {.size = 3}, .config = &config, .upcalls = &rig_upcalls, .id = &id};
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    return cohi_engine_tcp.lifecycle->open(&args, endpoint);
}

static unsigned port_of(cohi_endpoint *endpoint)
{
    return ntohs(endpoint->own.places[0].port);
}

/* Two jobs on one range: the one that finds no port says which range that was. */
static void a_range_that_is_taken_is_named(void **state)
{
    (void)state;
    char range[32];
    cohi_endpoint *first, *second, *third;
    coh_status status = COH_LIMIT;
    for (int tries = 0; tries < 10 && status != COH_OK; tries++) { /* the next one may be taken */
        assert_int_equal(open_with("lo", "", 0, &first), COH_OK);
        snprintf(range, sizeof range, "%u-%u", port_of(first), port_of(first) + 1);
        status = open_with("127.0.0.0/8", range, 1, &second);
        if (status != COH_OK)
            cohi_engine_tcp.lifecycle->close(first);
    }
    assert_int_equal(status, COH_OK);
    assert_int_equal(port_of(second), port_of(first) + 1);
    assert_int_equal(open_with("127.0.0.0/8", range, 2, &third), COH_LIMIT);
    assert_says(range);
    assert_says("127.0.0.1");
    assert_says("rank 2");
    cohi_engine_tcp.lifecycle->close(first);
    assert_int_equal(open_with("127.0.0.0/8", range, 2, &third), COH_OK);
    cohi_engine_tcp.lifecycle->close(second);
    cohi_engine_tcp.lifecycle->close(third);
}

/* ---- choosing ---- */

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    static const char *const absent[] = {"nosuch0", "203.0.113.0/24", "2001:db8:1234::/48"};
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0/8", "fd00::/129",
                                        "10.0.0.0/",   "/8",       "10.0.0.0/8x"};
    cohi_endpoint *endpoint;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(open_with(absent[i], "", 0, &endpoint), COH_INVALID_ARGUMENT);
        assert_says("COHORT_NET_INTERFACE");
        assert_says(absent[i]);
        assert_says("lo 127.0.0.1");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(open_with(wrong[i], "", 0, &endpoint), COH_INVALID_ARGUMENT);
        assert_says("is not a subnet");
    }
}

static void the_loopback_is_chosen_where_it_is_meant(void **state)
{
    (void)state;
    cohi_tcp_address address = {.secures = 1};
    cohi_config config = {.net_interface = "", .host = ""};
    assert_int_equal(cohi_tcp_places_choose(&config, &address), COH_OK);
    for (uint32_t i = 0; i < address.count; i++)
        assert_false(cohi_tcp_place_is_loopback(&address.places[i]));
    config.host = "a";
    assert_int_equal(cohi_tcp_places_choose(&config, &address), COH_OK);
    assert_true(address.count > 0 && cohi_tcp_place_is_loopback(&address.places[0]));
    address.secures = 0;
    assert_int_equal(cohi_tcp_places_choose(&config, &address), COH_OK);
    assert_true(address.count > 0);
    for (uint32_t i = 0; i < address.count; i++)
        assert_true(cohi_tcp_place_is_loopback(&address.places[i]));
    config = (cohi_config){.net_interface = "127.0.0.0/8", .host = ""};
    address.secures = 1;
    assert_int_equal(cohi_tcp_places_choose(&config, &address), COH_OK);
    assert_true(address.count > 0 && cohi_tcp_place_is_loopback(&address.places[0]));
}

/* ---- the order ---- */

static void the_nearest_is_called_first(void **state)
{
    (void)state;
    unsigned char order[COHI_TCP_PLACES];
    cohi_tcp_address own = {
        .network = 1,
        .count = 3,
        .places = {place("10.1.0.5", 16), place("172.17.0.1", 16), place("fd00:1::5", 64)}};
    cohi_tcp_address peer = {.network = 2,
                             .count = 6,
                             .places = {place("127.0.0.1", 8), place("192.168.0.7", 24),
                                        place("172.17.0.1", 16), place("fd00:2::7", 64),
                                        place("10.1.200.7", 16), place("fd00:1::7", 64)}};
    assert_int_equal(cohi_tcp_places_order(&own, &peer, order), 4);
    assert_int_equal(order[0], 4); /* the common subnets; not the bridge that each host has */
    assert_int_equal(order[1], 5);
    assert_int_equal(order[2], 1);
    assert_int_equal(order[3], 3);
    peer.network = 1; /* another host of the same machine */
    assert_int_equal(cohi_tcp_places_order(&own, &peer, order), 6);
    assert_int_equal(order[0], 0);
    assert_int_equal(order[1], 2);
    own.count = 2; /* no IPv6 here */
    assert_int_equal(cohi_tcp_places_order(&own, &peer, order), 4);
    peer.count = 1000; /* damaged */
    assert_int_equal(cohi_tcp_places_order(&own, &peer, order), 0);
}

/* ---- calling ---- */

/* A place at which nobody is, and one at which a stranger listens, are left for the next. */
static void a_place_that_fails_is_left_for_the_next(void **state)
{
    (void)state;
    struct rig *rig = rig_make(2, 0, 10 * COHI_NS_PER_S);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(stranger, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(stranger, 16), 0); /* and says nothing: five seconds */
    assert_int_equal(getsockname(stranger, (struct sockaddr *)&here, &length), 0);
    cohi_tcp_address address;
    memcpy(&address, rig->addresses[1], sizeof address);
    cohi_tcp_place good = address.places[0], nobody = good, silent = good;
    nobody.port = htons(1);
    silent.port = here.sin_port;
    address.count = 3;
    address.places[0] = nobody;
    address.places[1] = silent;
    address.places[2] = good;
    memcpy(rig->addresses[1], &address, sizeof address);
    rig_connect(rig);
    uint64_t word = 9;
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(cohi_engine_tcp.rma->quiet(rig->endpoint[0], COHI_CONTEXT_DEFAULT, &op),
                     COH_OK);
    for (int i = 0; i < 10000 && !atomic_load(&op.done); i++)
        usleep(1000);
    assert_int_equal(atomic_load(&op.done), 1);
    assert_int_equal(op.status, COH_OK);
    assert_int_equal(*(uint64_t *)(void *)rig->memory[1], 9);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), 0);
    close(stranger);
    rig_close(rig);
}

static void who_cannot_be_reached_is_named(void **state)
{
    (void)state;
    struct rig *rig = rig_make(2, 1 << 1, 10 * COHI_NS_PER_S);
    static const int hosts[] = {0, 1};
    cohi_tcp_address address;
    memcpy(&address, rig->addresses[1], sizeof address);
    address.network++; /* another machine, whose loopback is its own */
    memcpy(rig->addresses[1], &address, sizeof address);
    assert_int_equal(
        cohi_engine_tcp.lifecycle->connect(
            rig->endpoint[0], (const unsigned char(*)[COHI_ADDRESS_BYTES])rig->addresses, hosts),
        COH_NOT_AVAILABLE);
    assert_says("rank 1");
    assert_says("127.0.0.1 port 1");
    address.secures = 0;
    address.count = 0;
    memcpy(rig->addresses[1], &address, sizeof address);
    assert_int_equal(
        cohi_engine_tcp.lifecycle->connect(
            rig->endpoint[0], (const unsigned char(*)[COHI_ADDRESS_BYTES])rig->addresses, hosts),
        COH_NOT_AVAILABLE);
    assert_says("OpenSSL 3");
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_are_read),
        cmocka_unit_test(a_range_that_is_taken_is_named),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(the_loopback_is_chosen_where_it_is_meant),
        cmocka_unit_test(the_nearest_is_called_first),
        cmocka_unit_test(a_place_that_fails_is_left_for_the_next),
        cmocka_unit_test(who_cannot_be_reached_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
