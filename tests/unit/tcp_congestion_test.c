/* Which congestion control links of engine tcp have: src/engine/tcp/congestion.h. */
#include "tcp_rig.h"

#include "unit.h"

#include <netinet/tcp.h>
#include <sys/types.h>

static void name_of(int fd, char name[COHI_TCP_CONGESTION_NAME])
{
    socklen_t length = COHI_TCP_CONGESTION_NAME - 1;
    memset(name, 0, COHI_TCP_CONGESTION_NAME);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
}

static bool can_have(const char *name)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool can = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
    close(fd);
    return can;
}

static void the_system_s_is_left(void **state)
{
    (void)state;
    static const char *const wishes[] = {NULL, "system"};
    for (int i = 0; i < 2; i++) {
        cohi_tcp_congestion chosen = {.near = "x", .far = "y"};
        assert_int_equal(cohi_tcp_congestion_choose(wishes[i], &chosen), COH_OK);
        assert_string_equal(chosen.near, "");
        assert_string_equal(chosen.far, "");
    }
}

/* Only one that paces is replaced, and a long link gets it back. */
static void pacing_is_for_long_links(void **state)
{
    (void)state;
    char usual[COHI_TCP_CONGESTION_NAME];
    cohi_tcp_congestion chosen;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    name_of(fd, usual);
    close(fd);
    assert_int_equal(cohi_tcp_congestion_choose("auto", &chosen), COH_OK);
    if (strncmp(usual, "bbr", 3) == 0) {
        assert_true(strcmp(chosen.near, "cubic") == 0 || strcmp(chosen.near, "reno") == 0);
        assert_string_equal(chosen.far, usual);
    } else {
        assert_string_equal(chosen.near, "");
        assert_string_equal(chosen.far, "");
    }
}

static void names_are_tried(void **state)
{
    (void)state;
    static const char *const wrong[] = {"nonesuch", "a-name-that-is-too-long", "bbr\n", " reno"};
    cohi_tcp_congestion chosen;
    assert_int_equal(cohi_tcp_congestion_choose("reno", &chosen), COH_OK);
    assert_string_equal(chosen.near, "reno");
    assert_string_equal(chosen.far, "");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(cohi_tcp_congestion_choose(wrong[i], &chosen), COH_INVALID_ARGUMENT);
        assert_says("COHORT_CONGESTION");
        assert_says(wrong[i]);
    }
}

static void a_wrong_name_is_told_at_init(void **state)
{
    (void)state;
    coh_unique_id id;
    cohi_endpoint *endpoint = NULL;
    cohi_config config = {
        .net_interface = "", .ports = "", .host = "played", .congestion = "nonesuch"};
    cohi_engine_args args = {
        .rank = 0, .need = {.size = 2}, .config = &config, .upcalls = &rig_upcalls, .id = &id};
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    assert_int_equal(cohi_engine_tcp.lifecycle->open(&args, &endpoint), COH_INVALID_ARGUMENT);
    assert_says("'nonesuch'");
}

/* Both ends of a connection, made as the engine makes them. */
static void connect_with(const cohi_tcp_congestion *chosen, int ends[2])
{
    cohi_tcp_place place = {.family = 4};
    int listener, error = EAGAIN;
    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", place.host), 1);
    assert_int_equal(cohi_tcp_socket_listen(&place, chosen, &listener), 0);
    assert_int_equal(cohi_tcp_socket_call(&place, chosen, 0, &ends[0]), 0);
    while (error == EAGAIN)
        error = cohi_tcp_socket_accept(listener, 0, &ends[1]);
    assert_int_equal(error, 0);
    close(listener);
}

static void both_ends_have_it(void **state)
{
    (void)state;
    const cohi_tcp_congestion chosen = {.near = "reno"};
    int ends[2];
    char name[COHI_TCP_CONGESTION_NAME];
    connect_with(&chosen, ends);
    for (int i = 0; i < 2; i++) {
        name_of(ends[i], name);
        assert_string_equal(name, "reno");
        close(ends[i]);
    }
}

static void a_long_round_trip_gets_the_other(void **state)
{
    (void)state;
    static const char *const others[] = {"bbr", "cubic", "htcp", "vegas"};
    cohi_tcp_congestion chosen = {.near = "reno"};
    int ends[2];
    char name[COHI_TCP_CONGESTION_NAME];
    for (size_t i = 0; i < sizeof others / sizeof *others && !*chosen.far; i++)
        if (can_have(others[i]))
            strcpy(chosen.far, others[i]);
    if (!*chosen.far)
        skip(); /* this kernel has reno alone */
    connect_with(&chosen, ends);
    cohi_tcp_congestion_settle(&chosen, ends[0], cohi_tcp_socket_round_trip_us(ends[0]));
    cohi_tcp_congestion_settle(&chosen, ends[1], 1000);
    name_of(ends[0], name);
    if (cohi_tcp_socket_round_trip_us(ends[0]) < 1000) /* not on a machine that was very busy */
        assert_string_equal(name, "reno");
    name_of(ends[1], name);
    assert_string_equal(name, chosen.far);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_system_s_is_left), cmocka_unit_test(pacing_is_for_long_links),
        cmocka_unit_test(names_are_tried),      cmocka_unit_test(a_wrong_name_is_told_at_init),
        cmocka_unit_test(both_ends_have_it),    cmocka_unit_test(a_long_round_trip_gets_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
