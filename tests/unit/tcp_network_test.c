/* Engine tcp on a real network: two ranks in network namespaces of their own, with a cable between them.
 * Needs the right to make those; else it is skipped. docs/faults.md F20 and F30. */
#include "tcp_rig.h"

#include "unit.h"

#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>

enum { RANKS = 2 };

#define TIMEOUT_NS (2 * COHI_NS_PER_S)

static struct rig *rig;
static cohi_config config;
static coh_status opened[RANKS], connected[RANKS];

/* One thread lives in each namespace, and does there what it is given to do. */
struct host {
    pthread_t thread;
    int number;
    int id; /* of the thread, for ip(8) */
    sem_t go, done;
    void (*act)(struct host *host);
};

static struct host hosts[RANKS];

static void *live(void *arg)
{
    struct host *host = arg;
    host->id = (int)syscall(SYS_gettid);
    if (unshare(CLONE_NEWNET) != 0)
        host->id = -1;
    for (sem_post(&host->done); sem_wait(&host->go) == 0 && host->act; sem_post(&host->done))
        host->act(host);
    return NULL;
}

static void have(int number, void (*act)(struct host *host))
{
    hosts[number].act = act;
    sem_post(&hosts[number].go);
    sem_wait(&hosts[number].done);
}

static bool run_in(int number, const char *commands)
{
    char line[1024];
    snprintf(line, sizeof line, "nsenter --net=/proc/%d/task/%d/ns/net sh -ec '%s' 2>/dev/null",
             getpid(), hosts[number].id, commands);
    return system(line) == 0;
}

static bool lay_cable(void)
{
    char cable[256];
    snprintf(cable, sizeof cable,
             "ip link add v0 type veth peer name v1 netns /proc/%d/task/%d/ns/net; "
             "ip link set lo up; ip link set v0 up; ip addr add 10.77.0.1/24 dev v0; "
             "ip addr add fd77::1/64 dev v0 nodad",
             getpid(), hosts[1].id);
    return run_in(0, cable)
           && run_in(1, "ip link set lo up; ip link set v1 up; ip addr add 10.77.0.2/24 dev v1; "
                        "ip addr add fd77::2/64 dev v1 nodad");
}

static void open_rank(struct host *host)
{
    int rank = host->number;
    cohi_engine_args args = {.rank = rank,
                             .need = {.size = RANKS},
                             .config = &config,
                             .upcalls = &rig_upcalls,
                             .world = &rig->world[rank],
                             .id = &rig->id};
    opened[rank] = cohi_engine_tcp.lifecycle->open(&args, &rig->endpoint[rank]);
    if (opened[rank] == COH_OK)
        (void)cohi_engine_tcp.lifecycle->address(rig->endpoint[rank], rig->addresses[rank]);
}

static void connect_rank(struct host *host)
{
    int rank = host->number;
    static const int host_of[RANKS] = {0, 1};
    connected[rank] = cohi_engine_tcp.lifecycle->connect(
        rig->endpoint[rank], (const unsigned char(*)[COHI_ADDRESS_BYTES])rig->addresses, host_of);
}

static void add_memory(int rank)
{
    void *base;
    rig->memory[rank] = calloc(1, RIG_BYTES);
    cohi_segment_spec spec = {.id = RIG_SEGMENT, .bytes = RIG_BYTES, .existing = rig->memory[rank]};
    assert_int_equal(cohi_engine_tcp.memory->segment_add(rig->endpoint[rank], &spec, &base),
                     COH_OK);
    rig_attach(rig, rank);
}

static void bring_up(const char *interface)
{
    rig = calloc(1, sizeof *rig);
    rig->size = RANKS;
    config = (cohi_config){.link_timeout = TIMEOUT_NS, .net_interface = interface};
    assert_int_equal(coh_unique_id_create(&rig->id), COH_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        have(rank, open_rank);
        assert_int_equal(opened[rank], COH_OK);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        have(rank, connect_rank);
        assert_int_equal(connected[rank], COH_OK);
        add_memory(rank);
    }
}

enum { BYTES = 3 << 20 };

static char source[BYTES];
static coh_status put[RANKS];

/* The call that makes the link is made in the namespace. */
static void put_all(struct host *host)
{
    int rank = host->number;
    cohi_op op = COHI_NEW_OP;
    put[rank] = rig_put(rig, rank, 1 - rank, 0, source, BYTES, NULL);
    if (put[rank] == COH_OK)
        put[rank] = cohi_engine_tcp.rma->quiet(rig->endpoint[rank], COHI_CONTEXT_DEFAULT, &op);
    if (put[rank] == COH_OK)
        put[rank] = rig_until(&op.done, 1) ? op.status : COH_TIMED_OUT;
}

static void check_traffic(void)
{
    rig_fill(source, BYTES, 4);
    for (int rank = 0; rank < RANKS; rank++) {
        have(rank, put_all);
        assert_int_equal(put[rank], COH_OK);
        assert_memory_equal(rig->memory[1 - rank], source, BYTES);
    }
}

static void all_addresses_are_tried(void **state)
{
    (void)state;
    static const char *const choices[] = {"", "10.77.0.0/16", "fd77::/64"};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        bring_up(choices[i]);
        assert_int_equal(rig->endpoint[0]->own.count, *choices[i] ? 1 : 2);
        check_traffic();
        rig_close(rig);
    }
}

/* The cable is pulled: each side is told that the other is silent. */
static void a_pulled_cable_is_told_on_both_sides(void **state)
{
    (void)state;
    bring_up("10.77.0.0/16");
    check_traffic();
    assert_true(run_in(1, "ip link set v1 down"));
    for (int rank = 0; rank < RANKS; rank++)
        assert_true(rig_until(&rig->world[rank].silent[1 - rank], 1));
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(atomic_load(&rig->world[rank].mute[1 - rank]), 0);
    assert_true(run_in(1, "ip link set v1 up; ip addr add fd77::2/64 dev v1 nodad; "
                          "sleep 0.3")); /* until both ends have noticed */
    rig_close(rig);
}

/* A rank that cannot be called at the only place that it has. */
static void no_route_is_told(void **state)
{
    (void)state;
    bring_up("10.77.0.0/16");
    assert_true(run_in(0, "ip addr del 10.77.0.1/24 dev v0"));
    have(0, put_all);
    assert_int_equal(put[0], COH_PEER_LOST);
    assert_true(rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK));
    assert_true(run_in(0, "ip addr add 10.77.0.1/24 dev v0"));
    rig_close(rig);
}

/* Families that differ: one has IPv4 alone, the other IPv6 alone. */
static void no_common_family_is_told(void **state)
{
    (void)state;
    rig = calloc(1, sizeof *rig);
    rig->size = RANKS;
    assert_int_equal(coh_unique_id_create(&rig->id), COH_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        config = (cohi_config){.link_timeout = TIMEOUT_NS,
                               .net_interface = rank ? "fd77::/64" : "10.77.0.0/24"};
        have(rank, open_rank);
        assert_int_equal(opened[rank], COH_OK);
    }
    have(0, connect_rank);
    assert_int_equal(connected[0], COH_NOT_AVAILABLE);
    rig_close(rig);
}

static bool make_hosts(void)
{
    for (int i = 0; i < RANKS; i++) {
        hosts[i].number = i;
        sem_init(&hosts[i].go, 0, 0);
        sem_init(&hosts[i].done, 0, 0);
        pthread_create(&hosts[i].thread, NULL, live, &hosts[i]);
        sem_wait(&hosts[i].done);
    }
    return hosts[0].id > 0 && hosts[1].id > 0 && lay_cable();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_addresses_are_tried),
        cmocka_unit_test(a_pulled_cable_is_told_on_both_sides),
        cmocka_unit_test(no_route_is_told),
        cmocka_unit_test(no_common_family_is_told),
    };
    bool can = make_hosts() && cohi_tls_available() == COH_OK;
    int failed = 77;
    if (can)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    else
        print_message("skipped: no network namespaces can be made here, or there is no OpenSSL\n");
    for (int i = 0; i < RANKS; i++) {
        hosts[i].act = NULL;
        sem_post(&hosts[i].go);
        pthread_join(hosts[i].thread, NULL);
    }
    return failed;
}
