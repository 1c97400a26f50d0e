/* Ranks that find each other by levels: processes that play hosts of unequal size. */
#include "unit.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/elsewhere.h"
#include "bootstrap/group.h"
#include "bootstrap/root.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 32 };

/* One job, as its processes see it. */
struct job {
    coh_unique_id id;
    int size;
    const char *hosts[MOST];
    uint64_t timeout_ns;
    bool dies_in_board[MOST]; /* the rank kills itself where it is to make the board */
    bool has_other_secret[MOST];
    bool is_long; /* cards have all their bytes */
};

/* What a rank leaves for the test. */
struct outcome {
    coh_status status;
    char text[512];
    bool ran;
};

struct rank_context {
    const struct job *job;
    int rank;
};

static struct outcome *outcomes; /* [MOST], shared with the processes */

static coh_status make_board(void *context, const int *ranks, int count, cohi_board *board)
{
    const struct rank_context *self = context;
    cohi_profile profile = cohi_profile_describe(cohi_host());
    if (self->job->dies_in_board[self->rank])
        kill(getpid(), SIGKILL);
    cohi_board_spec spec = {.size = self->job->size,
                            .ranks = ranks,
                            .count = count,
                            .host = self->job->hosts[self->rank],
                            .program = "group_test",
                            .profile = &profile};
    return cohi_board_create(&spec, board);
}

static coh_status join(const struct job *job, int rank, cohi_group **group)
{
    struct rank_context context = {job, rank};
    cohi_board none = {.fd = -1};
    coh_unique_id id = job->id;
    cohi_id_layout layout;
    if (job->has_other_secret[rank] && cohi_unique_id_read(&id, &layout) == COH_OK) {
        layout.secret[0] ^= 1;
        cohi_unique_id_write(&layout, &id);
    }
    cohi_group_spec spec = {.id = &id,
                            .rank = rank,
                            .size = job->size,
                            .host = job->hosts[rank],
                            .board = &none,
                            .patience = {.timeout_ns = job->timeout_ns},
                            .make_board = make_board,
                            .context = &context};
    return cohi_group_join(&spec, group);
}

static cohi_card card_of(const struct job *job, int rank)
{
    cohi_card card = {.rank = rank,
                      .size = job->size,
                      .pid = getpid(),
                      .heap_bytes = 1000 + (uint64_t)rank,
                      .fds = {-1, open("/dev/null", O_RDONLY | O_CLOEXEC)}};
    memset(card.address, rank + 1, job->is_long ? sizeof card.address : 7);
    memset(card.heap_key, rank + 1, job->is_long ? sizeof card.heap_key : 3);
    snprintf(card.engine, sizeof card.engine, "engine");
    return card;
}

static bool same_host(const struct job *job, int a, int b)
{
    return strcmp(job->hosts[a], job->hosts[b]) == 0;
}

static coh_status complain(const char *what, int rank)
{
    return cohi_fail(COH_MISMATCH, "%s of rank %d is wrong", what, rank);
}

/* What an exchange brought of one rank. */
static coh_status check_card(const struct job *job, cohi_group *group, const cohi_card *cards,
                             int mine, int rank)
{
    const cohi_card *card = &cards[rank];
    bool near = same_host(job, mine, rank);
    if (card->rank != rank || card->size != job->size || card->heap_bytes != 1000 + (uint64_t)rank
        || strcmp(card->engine, "engine") != 0)
        return complain("the card", rank);
    if (card->address[6] != rank + 1 || card->heap_key[2] != rank + 1)
        return complain("the address or the key", rank);
    if ((card->fds[COHI_CARD_FD_HEAP] >= 0) != near || card->fds[COHI_CARD_FD_PROCESS] >= 0)
        return complain("the set of descriptors", rank);
    if ((cohi_group_host_of(group, rank) == cohi_group_host_of(group, mine)) != near)
        return complain("the host", rank);
    const cohi_board *board = cohi_group_board(group);
    if ((cohi_board_slot(board, rank) != NULL) != near
        || strcmp(cohi_board_host_of(board, rank), job->hosts[rank]) != 0)
        return complain("the board", rank);
    return COH_OK;
}

static coh_status exchange(const struct job *job, cohi_group *group, int rank)
{
    cohi_card mine = card_of(job, rank), *cards = calloc((size_t)job->size, sizeof *cards);
    coh_status status = cohi_group_exchange(group, &mine, COHI_CARD_INTRO, COH_OK, cards);
    for (int of = 0; of < job->size && status == COH_OK; of++)
        for (int i = 0; i < COHI_CARD_FDS && of != rank; i++)
            cohi_os_close(cards[of].fds[i]);
    if (status == COH_OK)
        status = cohi_group_exchange(group, &mine, COHI_CARD_KEYS, COH_OK, cards);
    for (int of = 0; of < job->size && status == COH_OK; of++)
        status = check_card(job, group, cards, rank, of);
    free(cards);
    return cohi_group_meet(group, status);
}

static void be_rank(const struct job *job, int rank)
{
    cohi_group *group = NULL;
    coh_status status = join(job, rank, &group);
    if (status == COH_OK)
        status = exchange(job, group, rank);
    snprintf(outcomes[rank].text, sizeof outcomes[rank].text, "%s", coh_last_error());
    outcomes[rank].status = status;
    outcomes[rank].ran = true;
    cohi_group_leave(group);
    _exit(0);
}

static void begin(struct job *job, int size, const char *const *hosts)
{
    *job = (struct job){.size = size, .timeout_ns = 20 * COHI_NS_PER_S};
    for (int rank = 0; rank < size; rank++)
        job->hosts[rank] = hosts[rank];
    assert_int_equal(coh_unique_id_create(&job->id), COH_OK);
    memset(outcomes, 0, MOST * sizeof *outcomes);
}

/* The last rank first, so that leaders are waited for by members too. */
static void start(const struct job *job, unsigned absent, pid_t *pids)
{
    for (int rank = job->size - 1; rank >= 0; rank--) {
        pids[rank] = 0;
        if (absent >> rank & 1)
            continue;
        pids[rank] = fork();
        if (pids[rank] == 0)
            be_rank(job, rank);
        assert_true(pids[rank] > 0);
    }
}

static void await_all(const struct job *job, const pid_t *pids)
{
    for (int rank = 0; rank < job->size; rank++)
        if (pids[rank] > 0)
            assert_int_equal(waitpid(pids[rank], NULL, 0), pids[rank]);
}

static void expect(int rank, coh_status status, const char *text)
{
    assert_true(outcomes[rank].ran);
    if (outcomes[rank].status != status || !strstr(outcomes[rank].text, text))
        fail_msg("rank %d: %s, %s; expected %s, '%s'", rank, coh_status_name(outcomes[rank].status),
                 outcomes[rank].text, coh_status_name(status), text);
}

static const char *const unequal[] = {"a", "b", "a", "c", "a", "b", "a"};

static void hosts_of_unequal_size(void **state)
{
    struct job job;
    pid_t pids[MOST];
    (void)state;
    begin(&job, 7, unequal);
    start(&job, 0, pids);
    await_all(&job, pids);
    for (int rank = 0; rank < job.size; rank++)
        expect(rank, COH_OK, "");
}

/* So long that the ranks of a host share the table. */
static void long_cards(void **state)
{
    const char *hosts[24];
    struct job job;
    pid_t pids[MOST];
    (void)state;
    for (int rank = 0; rank < 24; rank++)
        hosts[rank] = rank % 5 == 0 ? "a" : rank % 5 < 3 ? "b" : "c";
    begin(&job, 24, hosts);
    job.is_long = true;
    start(&job, 0, pids);
    await_all(&job, pids);
    for (int rank = 0; rank < job.size; rank++)
        expect(rank, COH_OK, "");
}

/* All that came are told who is missing, on every host. */
static void missing_ranks_are_named(void **state)
{
    struct job job;
    pid_t pids[MOST];
    (void)state;
    begin(&job, 7, unequal);
    job.timeout_ns = COHI_NS_PER_S;
    start(&job, 1u << 5 | 1u << 3, pids);
    await_all(&job, pids);
    for (int rank = 0; rank < job.size; rank++)
        if (rank != 5 && rank != 3)
            expect(rank, COH_TIMED_OUT, "5 of 7 ranks have come; missing: rank 3, 5");
}

/* Rank 3 never comes; `victim` is killed meanwhile. */
static void kill_while_joining(int victim, const char *said)
{
    struct job job;
    pid_t pids[MOST];
    begin(&job, 7, unequal);
    start(&job, 1u << 3, pids);
    usleep(500000);
    kill(pids[victim], SIGKILL);
    uint64_t began = cohi_now_ns();
    await_all(&job, pids);
    assert_true(cohi_now_ns() - began < 5 * COHI_NS_PER_S);
    for (int rank = 0; rank < job.size; rank++)
        if (rank != 3 && rank != victim)
            expect(rank, COH_PEER_LOST, said);
}

static void a_member_is_killed(void **state)
{
    (void)state;
    kill_while_joining(4, "rank 4 ended during init");
}

static void the_root_is_killed(void **state)
{
    (void)state;
    kill_while_joining(0, "rank 0 ended during init");
}

/* Whichever of the two leads host b: it is where boards are made. */
static void a_leader_is_killed(void **state)
{
    struct job job;
    pid_t pids[MOST];
    (void)state;
    begin(&job, 7, unequal);
    job.dies_in_board[1] = job.dies_in_board[5] = true;
    start(&job, 0, pids);
    await_all(&job, pids);
    int survivor = outcomes[1].ran ? 1 : 5;
    assert_false(outcomes[1].ran && outcomes[5].ran);
    for (int rank = 0; rank < job.size; rank++)
        if (rank != 1 && rank != 5)
            expect(rank, COH_PEER_LOST, survivor == 1 ? "rank 5 ended" : "rank 1 ended");
    expect(survivor, COH_PEER_LOST, "ended during init");
}

/* A leader with another secret is turned away, and so is a member; the others miss them. */
static void other_secrets(void **state)
{
    struct job job;
    pid_t pids[MOST];
    (void)state;
    begin(&job, 7, unequal);
    job.timeout_ns = COHI_NS_PER_S;
    job.has_other_secret[3] = job.has_other_secret[6] = true;
    start(&job, 0, pids);
    await_all(&job, pids);
    expect(3, COH_TRANSPORT, "it is of another job, or its unique id or secret differs");
    expect(6, COH_TRANSPORT, "it is of another job, or its unique id or secret differs");
    expect(0, COH_TIMED_OUT, "missing: rank 3, 6");
    expect(5, COH_TIMED_OUT, "missing: rank 3, 6");
}

static void addresses_in_an_id(void **state)
{
    cohi_config config;
    coh_unique_id id, again;
    cohi_id_layout layout;
    cohi_root root;
    cohi_listeners listeners;
    (void)state;
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    assert_int_equal(cohi_root_claim(&id).count, 0);
    assert_int_equal(cohi_config_load(&config), COH_OK);
    config.net_interface = "127.0.0.0/8";
    assert_int_equal(cohi_root_listen(&config, &id, &listeners), COH_OK);
    assert_int_equal(cohi_unique_id_read(&id, &layout), COH_OK);
    cohi_root_read(&layout, &root);
    assert_int_equal(root.count, 1);
    assert_int_equal(root.addresses[0].family, 4);
    assert_int_equal(root.addresses[0].bytes[0], 127);
    char range[16];
    snprintf(range, sizeof range, "%u", root.port);
    config.ports = range;
    assert_int_equal(coh_unique_id_create(&again), COH_OK);
    assert_int_equal(cohi_root_listen(&config, &again, &listeners), COH_NOT_AVAILABLE);
    assert_says("COHORT_PORTS");
    config.ports = "7-3";
    assert_int_equal(cohi_root_listen(&config, &again, &listeners), COH_INVALID_ARGUMENT);
    config.ports = "";
    config.net_interface = "no-such-interface";
    assert_int_equal(cohi_root_listen(&config, &again, &listeners), COH_INVALID_ARGUMENT);
    assert_says("no-such-interface");
}

/* The socket is bound to that address and port, and no other. */
static void assert_bound_to(int fd, const cohi_os_address *address, unsigned port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at;
    socklen_t length = sizeof at;
    assert_int_equal(getsockname(fd, &at.any, &length), 0);
    bool six = at.any.sa_family == AF_INET6;
    assert_int_equal(address->family, six ? 6 : 4);
    assert_int_equal(ntohs(six ? at.six.sin6_port : at.four.sin_port), port);
    assert_memory_equal(address->bytes, six ? (void *)&at.six.sin6_addr : (void *)&at.four.sin_addr,
                        six ? 16 : 4);
}

/* Interface lo has one address, or two where there is IPv6. */
static void chosen_addresses_alone_are_listened_at(void **state)
{
    cohi_config config;
    coh_unique_id id;
    cohi_id_layout layout;
    cohi_root root;
    cohi_listeners listeners, named;
    (void)state;
    assert_int_equal(cohi_config_load(&config), COH_OK);
    config.net_interface = "lo";
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    assert_int_equal(cohi_root_listen(&config, &id, &listeners), COH_OK);
    assert_int_equal(cohi_unique_id_read(&id, &layout), COH_OK);
    cohi_root_read(&layout, &root);
    assert_int_equal(listeners.count, root.count);
    for (int i = 0; i < root.count; i++)
        assert_bound_to(listeners.fds[i], &root.addresses[i], root.port);
    /* That port is taken at each of them, the last one too. */
    const cohi_os_address *last = &root.addresses[root.count - 1];
    config.net_interface = "";
    assert_int_equal(cohi_root_listen_at(&config, last, 1, root.port, &named), COH_NOT_AVAILABLE);
    assert_says("COHORT_PORT");
    cohi_listeners_close(&listeners);
    assert_int_equal(cohi_root_listen_at(&config, last, 1, root.port, &named), COH_OK);
    assert_int_equal(named.count, 1);
    assert_bound_to(named.fds[0], last, root.port);
    cohi_listeners_close(&named);
}

/* An id that was made to be reached keeps the socket for rank 0. */
static void an_id_that_listens(void **state)
{
    coh_unique_id id;
    (void)state;
    setenv("COHORT_NET_INTERFACE", "127.0.0.0/8", 1);
    assert_int_equal(coh_unique_id_create(&id), COH_OK);
    unsetenv("COHORT_NET_INTERFACE");
    cohi_listeners listeners = cohi_root_claim(&id);
    assert_int_equal(listeners.count, 1);
    assert_int_equal(cohi_root_claim(&id).count, 0);
    cohi_listeners_close(&listeners);
}

int main(void)
{
    outcomes = mmap(NULL, MOST * sizeof *outcomes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_of_unequal_size),
        cmocka_unit_test(long_cards),
        cmocka_unit_test(missing_ranks_are_named),
        cmocka_unit_test(a_member_is_killed),
        cmocka_unit_test(the_root_is_killed),
        cmocka_unit_test(a_leader_is_killed),
        cmocka_unit_test(other_secrets),
        cmocka_unit_test(addresses_in_an_id),
        cmocka_unit_test(an_id_that_listens),
        cmocka_unit_test(chosen_addresses_alone_are_listened_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
