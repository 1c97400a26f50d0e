/*
 * count.c - what a world of many ranks on several hosts costs, counted: scale RANKS HOSTS.
 *
 * Messages of a barrier and of an all_reduce of 8 bytes, and the memory of a rank, in the simulator; bytes
 * through rank 0, by ranks that really join, each a thread with sockets of its own. Prints what it
 * counted, and fails where `cohort info --scale` would say something else.
 */
#include "bootstrap/group.h"
#include "core/world/world.h"
#include "engine/sim/fabric.h"
#include "start/scale.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { STACK_BYTES = 256 << 10, MIB = 1 << 20 };

static int ranks, hosts;
static atomic_int failures;
static pthread_barrier_t meeting;

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "scale: FAILED: %s\n", what);
    atomic_fetch_add(&failures, 1);
}

static void expect(coh_status status, const char *what, int rank)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "scale: FAILED: rank %d: %s: %s\n", rank, what, coh_last_error());
    atomic_fetch_add(&failures, 1);
}

/* Runs the body once for each rank, all at the same time. */
static void run_all(void *(*body)(void *rank))
{
    pthread_t *threads = calloc((size_t)ranks, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    pthread_barrier_init(&meeting, NULL, (unsigned)ranks);
    for (intptr_t rank = 0; rank < ranks; rank++)
        if (pthread_create(&threads[rank], &small, body, (void *)rank) != 0) {
            perror("scale: pthread_create");
            exit(1);
        }
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&meeting);
    pthread_attr_destroy(&small);
    free(threads);
}

/* ---- messages and memory, in the simulator ---- */

static coh_world **worlds;
static cohi_flights before;

/* Since the last time. All ranks are outside of Cohort. */
static cohi_flights traffic_since(void)
{
    cohi_fabric *fabric = worlds[0]->endpoint->fabric;
    pthread_mutex_lock(&fabric->lock);
    cohi_flights now = fabric->traffic, since = now;
    pthread_mutex_unlock(&fabric->lock);
    for (int verb = 0; verb < COHI_VERBS; verb++)
        since.flights[verb] -= before.flights[verb];
    since.words -= before.words;
    before = now;
    return since;
}

/* A leader that has waited long tells the next one its call, by a record and a word behind it; gets are
 * looks at those that are waited for. Neither is a part of the call. */
static void report(const char *call, int expected, bool exactly)
{
    cohi_scale scale = cohi_scale_of(ranks, hosts);
    cohi_flights since = traffic_since();
    int records = (int)(since.flights[COHI_VERB_PUT] - since.words);
    int marks = (int)since.words - records, messages = (int)since.flights[COHI_VERB_MESSAGE];
    printf("%s: %d messages between hosts, %d hints, %d looks\n", call, marks + messages,
           2 * records, (int)since.flights[COHI_VERB_GET]);
    check(marks + messages == expected || (!exactly && marks + messages < expected),
          "the messages are not as many as cohort info --scale says");
    check(2 * records <= scale.hint_messages, "there are more hints than cohort info --scale says");
    check(since.flights[COHI_VERB_ATOMIC] == 0, "there were atomics");
}

static void pause_all(int rank, const char *call, int expected, bool exactly)
{
    pthread_barrier_wait(&meeting);
    if (rank == 0)
        report(call, expected, exactly);
    pthread_barrier_wait(&meeting);
}

static void *simulate(void *argument)
{
    int rank = (int)(intptr_t)argument;
    coh_world *world = worlds[rank];
    cohi_scale scale = cohi_scale_of(ranks, hosts);
    double one = 1, sum = 0;
    pause_all(rank, "init", 0, true);
    expect(coh_barrier(world), "barrier", rank);
    pause_all(rank, "barrier", scale.barrier_messages, true);
    expect(coh_all_reduce(coh_team_world(world), COH_F64, COH_SUM, &one, &sum, 1), "all_reduce",
           rank);
    check(sum == ranks, "the sum is wrong");
    pause_all(rank, "all_reduce of 8 bytes", scale.all_reduce_messages, (hosts & (hosts - 1)) == 0);
    expect(coh_finalize(world), "finalize", rank);
    return NULL;
}

static size_t in_use(void)
{
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

static size_t board_bytes(void)
{
    struct stat board = {.st_blocks = 0};
    fstat(worlds[0]->board->fd, &board);
    return (size_t)board.st_blocks * 512;
}

static void count_in_simulator(void)
{
    char script[64];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "sim";
    options.heap = 4 * MIB;
    snprintf(script, sizeof script, "hosts=%d,delay=0,patience=1,seed=1", hosts);
    setenv("COHORT_SIM", script, 1);
    worlds = calloc((size_t)ranks, sizeof *worlds);
    size_t used = in_use();
    expect(coh_init_threads(ranks, &options, worlds), "init", 0);
    if (atomic_load(&failures))
        return;
    size_t each = (in_use() - used) / (size_t)ranks, slot = board_bytes() / (size_t)ranks;
    printf("a rank: %.3f MiB of memory, %.3f MiB on the board\n", (double)each / MIB,
           (double)slot / MIB);
    check(each + slot < MIB, "a rank needs 1 MiB or more for the others");
    run_all(simulate);
    free(worlds);
}

/* ---- bytes through rank 0, by joining ---- */

static coh_unique_id id;
static _Thread_local uint64_t moved;
static uint64_t through_root;

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t count, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t count, int flags);

static ssize_t count(ssize_t bytes)
{
    moved += bytes > 0 ? (uint64_t)bytes : 0;
    return bytes;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return count(__real_sendmsg(fd, message, flags));
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    return count(__real_recvmsg(fd, message, flags));
}

ssize_t __wrap_recv(int fd, void *bytes, size_t bytes_count, int flags)
{
    return count(__real_recv(fd, bytes, bytes_count, flags));
}

/* In blocks, as the simulator spreads them. */
static int host_of(int rank)
{
    int longer = ranks % hosts, most = ranks / hosts + 1;
    return rank < longer * most ? rank / most : longer + (rank - longer * most) / (most - 1);
}

static coh_status make_board(void *context, const int *members, int count_of, cohi_board *board)
{
    (void)context;
    cohi_profile profile = cohi_profile_describe(cohi_host());
    cohi_board_spec spec = {.size = ranks,
                            .ranks = members,
                            .count = count_of,
                            .host = "host",
                            .program = "scale",
                            .profile = &profile};
    return cohi_board_create(&spec, board);
}

/* As full as cards get, but for descriptors: a process of all ranks could not hold those. */
static cohi_card card_of(int rank)
{
    cohi_card card = {.rank = rank, .size = ranks, .pid = 1, .heap_bytes = MIB, .fds = {-1, -1}};
    snprintf(card.engine, sizeof card.engine, "tcp");
    memset(card.address, 1, sizeof card.address);
    memset(card.heap_key, 1, sizeof card.heap_key);
    memset(card.control_key, 1, sizeof card.control_key);
    memset(card.cores, 1, sizeof card.cores);
    if (rank == 0)
        memset(card.tuning, 1, sizeof card.tuning);
    return card;
}

static void *join(void *argument)
{
    int rank = (int)(intptr_t)argument;
    char host[16];
    cohi_board none = {.fd = -1};
    cohi_group *group = NULL;
    cohi_card mine = card_of(rank), *cards = calloc((size_t)ranks, sizeof *cards);
    snprintf(host, sizeof host, "%d", host_of(rank));
    cohi_group_spec spec = {.id = &id,
                            .rank = rank,
                            .size = ranks,
                            .host = host,
                            .board = &none,
                            .patience = {.timeout_ns = UINT64_C(60000000000)},
                            .make_board = make_board};
    coh_status status = cohi_group_join(&spec, &group);
    expect(status, "join", rank);
    if (status == COH_OK)
        status = cohi_group_exchange(group, &mine, COHI_CARD_INTRO, COH_OK, cards);
    if (status == COH_OK)
        status = cohi_group_exchange(group, &mine, COHI_CARD_KEYS, COH_OK, cards);
    if (status == COH_OK)
        status = cohi_group_meet(group, COH_OK);
    expect(status, "exchange", rank);
    check(status != COH_OK || cohi_group_hosts(group) == hosts, "there are not so many hosts");
    if (rank == 0)
        through_root = moved;
    pthread_barrier_wait(&meeting);
    if (status == COH_OK)
        cohi_group_leave(group);
    free(cards);
    return NULL;
}

static bool has_descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > (rlim_t)(4 * ranks + 64);
}

static void count_joining(void)
{
    cohi_scale scale = cohi_scale_of(ranks, hosts);
    if (!has_descriptors()) {
        printf("joining: not counted, for want of descriptors (ulimit -n)\n");
        return;
    }
    expect(coh_unique_id_create(&id), "id", 0);
    run_all(join);
    printf("through rank 0 while all join: %.2f MiB, at most %.2f expected\n",
           (double)through_root / MIB, (double)scale.root_bytes / MIB);
    check(through_root <= scale.root_bytes, "more than cohort info --scale says goes through it");
    check(through_root >= scale.root_bytes / 2, "less than half of what cohort info --scale says");
    check(through_root < (uint64_t)hosts * MIB, "1 MiB or more for each host goes through it");
}

int main(int argc, char **argv)
{
    ranks = argc == 3 ? atoi(argv[1]) : 0;
    hosts = argc == 3 ? atoi(argv[2]) : 0;
    if (ranks < 1 || hosts < 1 || hosts > ranks) {
        fprintf(stderr, "usage: scale RANKS HOSTS\n");
        return 2;
    }
    printf("%d ranks on %d hosts\n", ranks, hosts);
    count_in_simulator();
    count_joining();
    return atomic_load(&failures) ? 1 : 0;
}
