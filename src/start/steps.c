#include "start/init.h"

#include "base/log.h"
#include "base/os.h"
#include "coll/native.h"
#include "coll/tuning.h"
#include "core/health/control.h"
#include "core/health/peer.h"
#include "core/health/verdict.h"
#include "core/heap/heap.h"
#include "core/heap/segment.h"
#include "core/message/claim.h"
#include "core/message/frame.h"
#include "core/message/mailbox.h"
#include "core/onesided/race.h"
#include "core/onesided/relay.h"
#include "core/team/team.h"
#include "core/world/crew.h"
#include "core/world/fault.h"
#include "memory/host_profile.h"
#include "memory/prepared.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void arrived(void *world)
{
    cohi_slot_ring(((coh_world *)world)->slot);
}

static void stored(void *world)
{
    cohi_control_wake_watcher(((coh_world *)world)->slot);
}

static void deliver(void *world, int from, const void *bytes, size_t count)
{
    uint32_t kind = 0;
    memcpy(&kind, bytes, count < sizeof kind ? count : sizeof kind);
    if (kind == COHI_FRAME_CONTROL)
        cohi_control_deliver(world, from, bytes, count);
    else if (kind == COHI_FRAME_RELAY || kind == COHI_FRAME_RELAYED)
        cohi_relay_deliver(world, from, bytes, count);
    else
        cohi_frame_deliver(world, from, bytes, count);
}

static void left(void *world, int rank)
{
    coh_world *told = world;
    atomic_store_explicit(&told->left[rank], true, memory_order_release);
    cohi_slot_ring(told->slot);
}

const cohi_upcalls cohi_core_upcalls = {
    .lost = cohi_verdict_lost,
    .left = left,
    .silent = cohi_verdict_silent,
    .mute = cohi_peer_mute,
    .attend = cohi_mailbox_attend,
    .arrived = arrived,
    .stored = stored,
    .deliver = deliver,
    .claim = cohi_claim_begin,
    .borrow = cohi_claim_borrow,
    .give_back = cohi_claim_return,
    .part = cohi_finalize_ahead,
};

/* ---- step 1: what this rank brings ---- */

static coh_status add_segments(coh_world *world, cohi_card *card)
{
    void *base;
    cohi_region_key key;
    coh_status status = cohi_heap_check_whole(world, card->heap_bytes);
    if (status == COH_OK)
        status = cohi_segment_offer(cohi_world_server(world),
                                    &(cohi_segment_spec){.id = COHI_SEGMENT_HEAP,
                                                         .bytes = card->heap_bytes,
                                                         .huge_pages = world->huge_pages,
                                                         .prepared = world->prepared > 0},
                                    &base, &key);
    if (status != COH_OK)
        return status;
    world->heap_base = base;
    memcpy(card->heap_key, key.bytes, sizeof card->heap_key);
    card->fds[COHI_CARD_FD_HEAP] = key.fd;
    if (!world->engine->rma)
        return COH_OK;
    status = cohi_segment_offer(cohi_world_server(world),
                                &(cohi_segment_spec){.id = COHI_SEGMENT_CONTROL,
                                                     .bytes = cohi_slot_control_bytes(world->size),
                                                     .existing = world->slot},
                                &base, &key);
    if (status == COH_OK)
        memcpy(card->control_key, key.bytes, sizeof card->control_key);
    return status;
}

static void write_card(const coh_world *world, cohi_card *card)
{
    *card = (cohi_card){.rank = world->rank, .size = world->size, .pid = getpid(), .fds = {-1, -1}};
    card->kernel = cohi_os_kernel_id();
    cohi_os_cores(card->cores);
    snprintf(card->engine, sizeof card->engine, "%s", world->engine_name);
}

/* So that a look at the job shows which ranks have come to init and which have not. */
void cohi_init_announce(cohi_slot *slot)
{
    atomic_store(&slot->pid, getpid());
    atomic_store(&slot->op, COHI_OP_INIT);
    atomic_store(&slot->phase, COHI_PHASE_JOINING);
}

/* Where one for cards was named, it is part of the name, on which the ranks must agree. */
static void name_engines(coh_world *world, const cohi_engine *engine, const char *asked)
{
    world->engine = engine;
    world->cards = cohi_engine_cards_of(asked);
    bool named = strcmp(world->cards, "cuda") != 0;
    snprintf(world->engine_name, sizeof world->engine_name, "%s%s%s", engine->name,
             named ? "+" : "", named ? world->cards : "");
}

static void introduce(coh_world *world, const cohi_config *config)
{
    world->upcalls = &cohi_core_upcalls;
    world->warn_ns = config->warn;
    world->stall_ns = config->stall;
    world->timeout_ns = config->timeout;
    world->link_timeout_ns = config->link_timeout;
    world->huge_pages = config->huge_pages != 0;
    world->card_heap = config->card_heap;
    world->checks_bounds = config->check == COHI_CHECK_BOUNDS;
    cohi_init_announce(world->slot);
}

/* Where the engine counts what goes to other hosts; NULL where there are none. */
static coh_status prepare_traffic(coh_world *world, cohi_traffic **traffic)
{
    const cohi_board_head *head = world->board->head;
    *traffic = NULL;
    if (head->locals == head->size)
        return COH_OK;
    coh_status status = cohi_board_commit_traffic(world->board, world->rank);
    if (status == COH_OK)
        *traffic = cohi_slot_traffic(world->slot, world->size);
    return status;
}

static coh_status open_endpoint(coh_world *world, const cohi_config *config, uint64_t deadline_ns)
{
    cohi_engine_args args = {
        .rank = world->rank,
        .need = {.size = world->size,
                 .in_process = world->crew != NULL,
                 .hosts = world->group ? cohi_group_hosts(world->group) : 0},
        .config = config,
        .deadline_ns = deadline_ns,
        .crew = world->crew ? &world->crew->space : NULL,
        .upcalls = world->upcalls,
        .world = world,
        .id = world->id,
    };
    coh_status status = prepare_traffic(world, &args.traffic);
    if (status == COH_OK)
        status = cohi_engine_admit(world->engine);
    if (status != COH_OK)
        return status;
    status = world->engine->lifecycle->open(&args, &world->endpoint);
    if (status != COH_OK)
        cohi_engine_dismiss(world->engine);
    return status;
}

/* The host's profile is not on the stack, which may be small: it holds a path. */
coh_status cohi_init_board(const cohi_board_spec *given, bool measure, const cohi_config *config,
                           cohi_board *board)
{
    char name[COHI_HOST_NAME_BYTES];
    cohi_board_spec spec = *given;
    cohi_host_profile *host = malloc(sizeof *host);
    if (!host)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the profile of the host");
    if (measure)
        cohi_host_profile_obtain(config->profile, host);
    else
        cohi_host_profile_read(config->profile, host);
    if (*host->warning)
        cohi_log(COH_LOG_WARN, "%s", host->warning);
    cohi_os_host_name(name, sizeof name);
    spec.host = *config->host ? config->host : name;
    spec.program = program_invocation_short_name;
    spec.profile = &host->profile;
    coh_status status = cohi_board_create(&spec, board);
    free(host);
    return status;
}

/* A board that a rank of the job has damaged by then costs speed and nothing else. */
static void take_profile(coh_world *world)
{
    world->profile = world->board->head->profile;
    if (cohi_profile_mend(&world->profile))
        cohi_log(COH_LOG_WARN, "rank %d: the profile on the board has values out of bounds",
                 world->rank);
    cohi_profile_use(&world->profile);
}

/* What was prepared in this process belongs to one world at a time. */
static void heed_facts(coh_world *world, uint64_t heap, cohi_card *card)
{
    world->engine->lifecycle->query(world->endpoint, &world->facts);
    card->heap_bytes = cohi_heap_reservation(world, heap);
    if (world->facts.takes_prepared)
        world->prepared = cohi_prepared_claim();
    card->prepared = world->prepared;
    card->host = (uint64_t)world->facts.pretended_host;
}

coh_status cohi_init_open(coh_world *world, const cohi_engine *engine, const coh_options *options,
                          const cohi_config *config, uint64_t deadline_ns, cohi_card *card)
{
    name_engines(world, engine, options->engine ? options->engine : config->engine);
    introduce(world, config);
    take_profile(world);
    write_card(world, card);
    coh_status status = cohi_fault_parse(config->fault, world->rank, world->size, &world->fault);
    if (status == COH_OK)
        status = cohi_fault_strike(world->fault, COHI_OP_INIT);
    if (world->fault || config->check)
        atomic_fetch_or(&world->state, COHI_WORLD_CAREFUL);
    card->checks = (uint32_t)config->check;
    if (status == COH_OK && config->check == COHI_CHECK_ORDER)
        status = cohi_race_open(world);
    if (status == COH_OK)
        status = cohi_tuning_load(config, &world->profile, card->tuning);
    if (world->rank != 0) /* checked all the same, but rank 0's is the one that counts */
        memset(card->tuning, 0, sizeof card->tuning);
    if (status == COH_OK)
        status = open_endpoint(world, config, deadline_ns);
    if (status == COH_OK && world->rank == 0)
        cohi_native_heed(engine, world->endpoint, card->tuning);
    if (status == COH_OK)
        heed_facts(world, options->heap ? options->heap : config->heap, card);
    if (status == COH_OK && engine->lifecycle->address)
        status = engine->lifecycle->address(world->endpoint, card->address);
    return status;
}

/* ---- step 2: being in touch ---- */

static uint64_t common_heap(const coh_world *world, const cohi_card *cards)
{
    uint64_t least = cards[0].heap_bytes;
    for (int rank = 1; rank < world->size; rank++)
        least = cards[rank].heap_bytes < least ? cards[rank].heap_bytes : least;
    return least;
}

/* All heaps begin alike, or none begins with what was prepared. */
static void agree_on_prepared(coh_world *world, const cohi_card *cards)
{
    bool alike = world->prepared <= common_heap(world, cards);
    for (int rank = 0; rank < world->size; rank++)
        alike = alike && cards[rank].prepared == world->prepared;
    if (alike || world->prepared == 0)
        return;
    cohi_log(COH_LOG_INFO,
             "rank %d: prepared memory is not used: the ranks differ in it, or it "
             "does not fit into the heap",
             world->rank);
    cohi_prepared_forget();
    world->prepared = 0;
}

static coh_status check_cards(const coh_world *world, const cohi_card *cards)
{
    for (int rank = 0; rank < world->size; rank++) {
        if (strncmp(cards[rank].engine, world->engine_name, sizeof cards[rank].engine) != 0)
            return cohi_fail(COH_MISMATCH,
                             "coh_init: rank %d joins by engine %.31s, rank %d by engine %s", rank,
                             cards[rank].engine, world->rank, world->engine_name);
        if (cards[rank].checks != cards[world->rank].checks)
            return cohi_fail(COH_MISMATCH,
                             "coh_init: COHORT_CHECK is not the same on rank %d as on rank %d",
                             rank, world->rank);
        if (cards[rank].size != world->size || cards[rank].rank != rank)
            return cohi_fail(COH_MISMATCH, "coh_init: rank %d of %d sent the card of rank %d of %d",
                             rank, world->size, cards[rank].rank, cards[rank].size);
    }
    return COH_OK;
}

static coh_status connect_endpoint(coh_world *world, const cohi_card *cards)
{
    if (!world->engine->lifecycle->connect)
        return COH_OK;
    unsigned char(*addresses)[COHI_ADDRESS_BYTES] = calloc((size_t)world->size, sizeof *addresses);
    if (!addresses)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", world->size);
    for (int rank = 0; rank < world->size; rank++)
        memcpy(addresses[rank], cards[rank].address, sizeof addresses[rank]);
    coh_status status = world->engine->lifecycle->connect(
        world->endpoint, (const unsigned char(*)[COHI_ADDRESS_BYTES])addresses, world->host_of);
    free(addresses);
    return status;
}

/* The peers' watchers sleep on this descriptor, which stands for this process and no later one. A
 * sandbox may refuse it, and an old kernel or valgrind not have it; then they look for the process by its number (watch.c). */
static coh_status open_pidfd(coh_world *world, cohi_card *card)
{
    int *pidfd = &world->peers[world->rank].pidfd;
    int error = cohi_os_pidfd_open(getpid(), pidfd);
    if (cohi_os_refused(error)) {
        cohi_log(error == ENOSYS ? COH_LOG_DEBUG : COH_LOG_WARN,
                 "rank %d: pidfd_open is refused here (%s): the others look for this process by "
                 "its number, and notice its end up to 0.2 s later",
                 world->rank, strerror(error));
        return COH_OK;
    }
    if (error)
        return cohi_fail_os(error,
                            "coh_init: cannot open a descriptor of this process (pidfd_open)");
    card->fds[COHI_CARD_FD_PROCESS] = *pidfd;
    return COH_OK;
}

/* Hosts have numbers in the order of their first ranks. Processes found theirs when they joined. */
static void number_hosts(coh_world *world, const cohi_card *cards)
{
    for (int rank = 0; world->group && rank < world->size; rank++)
        world->host_of[rank] = cohi_group_host_of(world->group, rank);
    if (world->group)
        world->hosts = cohi_group_hosts(world->group);
    if (world->group)
        return;
    world->hosts = 0;
    for (int rank = 0; rank < world->size; rank++) {
        int first = 0;
        while (cards[first].host != cards[rank].host)
            first++;
        world->host_of[rank] = first == rank ? world->hosts++ : world->host_of[first];
    }
}

coh_status cohi_init_connect(coh_world *world, const cohi_card *cards, cohi_card *card)
{
    coh_status status = check_cards(world, cards);
    if (status == COH_OK) {
        number_hosts(world, cards);
        world->doubts =
            world->hosts > 1 ? calloc((size_t)world->size, sizeof *world->doubts) : NULL;
        world->mute = world->hosts > 1 ? calloc((size_t)world->size, sizeof *world->mute) : NULL;
        agree_on_prepared(world, cards);
        status = cohi_relay_open(world);
    }
    if (status == COH_OK)
        status = connect_endpoint(world, cards);
    if (status == COH_OK && world->engine->memory)
        status = add_segments(world, card);
    if (status == COH_OK && world->group)
        status = open_pidfd(world, card);
    return status;
}

/* ---- step 3: reaching the others' memory ---- */

static coh_status attach_region(coh_world *world, int id, int rank, uint64_t bytes,
                                const unsigned char *key_bytes, int32_t *fd)
{
    cohi_region_key key = {.fd = fd ? *fd : -1};
    memcpy(key.bytes, key_bytes, sizeof key.bytes);
    coh_status status = cohi_segment_attach(cohi_world_server(world), id, rank, bytes, &key);
    if (fd)
        *fd = key.fd;
    return status;
}

static coh_status attach_peer(coh_world *world, int rank, cohi_card *card, uint64_t heap_bytes)
{
    const cohi_engine *engine = world->engine;
    bool self = rank == world->rank, near = world->host_of[rank] == world->host_of[world->rank];
    cohi_peer *peer = &world->peers[rank];
    coh_status status = COH_OK;
    peer->pid = near ? card->pid : 0;
    if (engine->memory)
        status = attach_region(world, COHI_SEGMENT_HEAP, rank, heap_bytes, card->heap_key,
                               self ? NULL : &card->fds[COHI_CARD_FD_HEAP]);
    if (status == COH_OK && engine->memory && engine->rma)
        status = attach_region(world, COHI_SEGMENT_CONTROL, rank,
                               cohi_slot_control_bytes(world->size), card->control_key, NULL);
    if (status != COH_OK)
        return status;
    if (engine->memory)
        peer->heap = self ? world->heap_base
                          : engine->memory->peer_pointer(world->endpoint, COHI_SEGMENT_HEAP, rank);
    peer->slot = self || peer->heap ? cohi_board_slot(world->board, rank) : NULL;
    if (!peer->slot) {
        peer->heap = NULL; /* both or none: control writes and puts go the same way */
        world->remote = world->delayed = true;
    }
    if (!self && world->group && near) {
        peer->pidfd = card->fds[COHI_CARD_FD_PROCESS];
        card->fds[COHI_CARD_FD_PROCESS] = -1;
    }
    return COH_OK;
}

static void place_on_host(coh_world *world)
{
    for (int rank = 0; rank < world->size; rank++) {
        if (world->host_of[rank] != world->host_of[world->rank])
            continue;
        world->local_size++;
        world->local_rank += rank < world->rank;
    }
}

/* The kernel of this rank's host: that of its first rank, so that all ranks of a host take the same. */
static uint64_t kernel_here(const coh_world *world, const cohi_card *cards)
{
    int first = 0;
    while (world->host_of[first] != world->host_of[world->rank])
        first++;
    return cards[first].kernel;
}

/*
 * Whether the ranks that share this host's cores are more than these, of which each rank may be bound to one.
 * Hosts that one machine plays, or that are containers or network namespaces of one, share its cores.
 */
static bool is_crowded(const coh_world *world, const cohi_card *cards)
{
    unsigned char cores[COHI_OS_CORE_BYTES] = {0};
    uint64_t kernel = kernel_here(world, cards);
    int ranks = 0;
    for (int rank = 0; rank < world->size; rank++) {
        bool is_near = world->host_of[rank] == world->host_of[world->rank];
        if (!is_near && (kernel == 0 || cards[rank].kernel != kernel))
            continue;
        ranks++;
        for (int i = 0; i < COHI_OS_CORE_BYTES; i++)
            cores[i] |= cards[rank].cores[i];
    }
    return ranks > cohi_os_cores_in(cores);
}

/*
 * How often a waiter that found nothing looks again before it takes the ladder (core/health/wait.h), and
 * yields before it sleeps. With a core for each rank a mark usually comes within a microsecond, and
 * a look costs one to two nanoseconds; with fewer cores than ranks the one that is waited for needs
 * this very core, so looking again is wasted. Where what is waited for may be in a socket, looks at
 * memory alone would miss it: each look is a step of the wait, which asks the engine too. Yields are
 * for the case that it has the core in turn; a sleep and a wake cost some ten yields.
 */
static coh_status set_patience(coh_world *world, const cohi_config *config, const cohi_card *cards)
{
    world->crowded = is_crowded(world, cards);
    const cohi_profile *profile = &world->profile;
    bool polls = world->remote && world->engine->lifecycle->progress;
    uint64_t spins = world->crowded || polls ? 0 : cohi_profile_bytes(profile, COHI_ROW_wait_spins);
    bool automatic = strcmp(config->spin, "auto") == 0;
    if (!automatic) {
        coh_status status = cohi_parse_count("COHORT_SPIN", config->spin, 0, 1000000000, &spins);
        if (status != COH_OK)
            return status;
    }
    bool asks_engine = world->engine->lifecycle->idle != NULL;
    world->company.own_core = automatic && !world->crowded && !asks_engine;
    world->company.spins = asks_engine ? 0 : (unsigned)spins;
    world->company.yields =
        asks_engine ? 0 : (unsigned)cohi_profile_bytes(profile, COHI_ROW_wait_yields);
    world->company.look_ns = cohi_profile_bytes(profile, COHI_ROW_wait_look);
    atomic_store(&world->spins, world->company.spins);
    return COH_OK;
}

static void drop_descriptors(const coh_world *world, cohi_card *cards)
{
    for (int rank = 0; rank < world->size; rank++)
        for (int i = 0; world->group && rank != world->rank && i < COHI_CARD_FDS; i++)
            cohi_os_close(cards[rank].fds[i]);
}

/* The team of all, and that of those on this host. */
static coh_status open_teams(coh_world *world)
{
    int *ranks = calloc((size_t)world->size, sizeof *ranks);
    if (!ranks)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", world->size);
    for (int rank = 0; rank < world->size; rank++)
        ranks[rank] = rank;
    world->free_teams = ~UINT64_C(0) << COHI_TEAM_FIRST_FREE;
    world->team_epoch = COHI_EPOCH_START;
    for (int number = 0; number < COHI_TEAMS; number++)
        world->team_ends[number] = COHI_EPOCH_START;
    coh_status status =
        cohi_team_open(world, COHI_TEAM_WORLD, ranks, world->size, COHI_EPOCH_START, &world->team);
    int here = 0;
    for (int rank = 0; rank < world->size; rank++)
        if (world->host_of[rank] == world->host_of[world->rank])
            ranks[here++] = rank;
    if (status == COH_OK)
        status = cohi_board_commit(world->board, world->rank, COHI_TEAM_HOST);
    if (status == COH_OK)
        status =
            cohi_team_open(world, COHI_TEAM_HOST, ranks, here, COHI_EPOCH_START, &world->host_team);
    free(ranks);
    return status;
}

static coh_status attach_all(coh_world *world, const cohi_config *config, cohi_card *cards)
{
    coh_status status = COH_OK;
    uint64_t heap_bytes = common_heap(world, cards);
    memcpy(world->tuning, cards[0].tuning, sizeof world->tuning);
    for (int rank = 0; rank < world->size && status == COH_OK; rank++)
        status = attach_peer(world, rank, &cards[rank], heap_bytes);
    place_on_host(world);
    if (world->remote && !world->facts.cpu_coherent_atomics)
        atomic_fetch_or(&world->state, COHI_WORLD_ENGINE_ATOMICS);
    if (world->remote && !world->facts.detects_loss)
        cohi_log(COH_LOG_WARN,
                 "rank %d: engine %s does not tell of ranks that are lost on another host; waits "
                 "for them end by COHORT_STALL and COHORT_TIMEOUT alone",
                 world->rank, world->engine->name);
    if (status == COH_OK)
        status = set_patience(world, config, cards);
    if (status == COH_OK && world->engine->memory)
        status = cohi_heap_open_own(world, heap_bytes);
    if (status == COH_OK)
        status = open_teams(world);
    return status == COH_OK ? cohi_mailbox_open(world) : status;
}

coh_status cohi_init_attach(coh_world *world, const cohi_config *config, cohi_card *cards)
{
    coh_status status = attach_all(world, config, cards);
    drop_descriptors(world, cards);
    if (status != COH_OK)
        return status;
    atomic_store(&world->slot->phase, COHI_PHASE_RUNNING);
    atomic_store(&world->slot->op, COHI_OP_NONE);
    world->engine->lifecycle->query(world->endpoint, &world->facts);
    const char *network = cohi_network_text(world->facts.network);
    atomic_store(&world->board->head->network, world->facts.network);
    cohi_log(COH_LOG_INFO, "rank %d of %d: engine %s%s%s", world->rank, world->size,
             world->engine->name, *network ? "; between hosts all is " : "", network);
    return COH_OK;
}
