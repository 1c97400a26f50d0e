#include "engine/mpi/mpi.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* How often a link that has nothing to say says so. */
#define KEEPALIVE_NS COHI_NS_PER_S

/* How long the end of an endpoint waits for frames on their way out. */
#define DRAIN_NS (COHI_NS_PER_S / 5)

/* In a world of at most so many, a rank that leaves tells those too that it never talked to; in a larger
 * one that would make a connection of each pair. */
enum { TELLS_ALL = 64 };

/* ---- opening and closing ---- */

/* That the library is missing is the first thing to know, whoever asks. */
static coh_status mpi_probe(const cohi_need *need)
{
    coh_status status = cohi_mpi_library_look(NULL, 0);
    if (status != COH_OK || !need->in_process || need->size == 1)
        return status;
    return cohi_fail(COH_NOT_AVAILABLE,
                     "mpi: it connects processes; these ranks are threads of one process");
}

static uint64_t tick_of(uint64_t link_timeout_ns)
{
    uint64_t keepalive_ns = KEEPALIVE_NS;
    if (link_timeout_ns > 0 && link_timeout_ns / 4 < keepalive_ns)
        keepalive_ns = link_timeout_ns / 4;
    return keepalive_ns / 2;
}

static bool is_drained(const cohi_endpoint *endpoint)
{
    for (int i = 0; i < endpoint->made_count; i++) {
        const cohi_mpi_link *link = endpoint->made[i];
        if (!link->ended && (link->first_sent || link->requests.first || link->first_answer))
            return false;
    }
    return true;
}

/* Stops using MPI. Lock held. */
static void disconnect(cohi_endpoint *endpoint)
{
    uint64_t until_ns = cohi_now_ns() + DRAIN_NS;
    while (endpoint->leaving && !is_drained(endpoint) && cohi_now_ns() < until_ns)
        if (!cohi_mpi_step(endpoint))
            sched_yield();
    cohi_mpi_receive_end(endpoint);
    if (endpoint->making == 0)
        (void)endpoint->mpi->MPI_Comm_free(&endpoint->comm);
}

static void mpi_close(cohi_endpoint *endpoint)
{
    cohi_mpi_thread_stop(endpoint);
    cohi_mpi_process_remove(endpoint);
    cohi_mpi_lock(endpoint);
    if (endpoint->connected && !endpoint->leaving)
        cohi_mpi_spoil(); /* nobody knows that it goes */
    if (cohi_mpi_may_call(endpoint))
        disconnect(endpoint);
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_mpi_out_free(endpoint->made[i]);
    bool used = endpoint->making > 0;
    cohi_mpi_unlock(endpoint);
    cohi_mpi_memory_close(endpoint);
    if (used) /* MPI does not give a thread back that makes a communicator: it keeps what it looks at */
        return;
    cohi_events_close(&endpoint->events);
    cohi_mpi_pools_free(endpoint);
    pthread_mutex_destroy(&endpoint->lock);
    pthread_mutex_destroy(&endpoint->sleep);
    pthread_cond_destroy(&endpoint->wake);
    free(endpoint->threaded_of);
    free(endpoint->host_of);
    free(endpoint->fates);
    free(endpoint->links);
    free(endpoint->made);
    free(endpoint);
}

static bool allocate_tables(cohi_endpoint *endpoint)
{
    size_t size = (size_t)endpoint->size;
    endpoint->threaded_of = calloc(size, sizeof *endpoint->threaded_of);
    endpoint->host_of = calloc(size, sizeof *endpoint->host_of);
    endpoint->segments.host_of = endpoint->host_of;
    endpoint->fates = calloc(size, sizeof *endpoint->fates);
    endpoint->links = calloc(size, sizeof *endpoint->links);
    endpoint->made = calloc(size, sizeof *endpoint->made);
    return endpoint->threaded_of && endpoint->host_of && endpoint->fates && endpoint->links
           && endpoint->made;
}

static void open_locks(cohi_endpoint *endpoint)
{
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&endpoint->wake, &by_clock);
    pthread_condattr_destroy(&by_clock);
    pthread_mutex_init(&endpoint->lock, NULL);
    pthread_mutex_init(&endpoint->sleep, NULL);
}

static cohi_endpoint *new_endpoint(const cohi_engine_args *args)
{
    cohi_endpoint *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->rank = args->rank;
    made->size = args->need.size;
    made->link_timeout_ns = args->config->link_timeout;
    made->tick_ns = tick_of(made->link_timeout_ns);
    made->segments.mapped =
        (cohi_mapped){.engine = "mpi", .rank = args->rank, .size = args->need.size};
    cohi_events_open(&made->events, args->upcalls, args->world);
    open_locks(made);
    if (allocate_tables(made))
        return made;
    mpi_close(made);
    return NULL;
}

/* What launchers call the job, so that ranks of two are told from each other before MPI meets them. */
static uint64_t job_number(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"};
    uint64_t number = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const char *text = getenv(names[i]); text && *text; text++)
            number = (number ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return number;
}

/* Where all ranks are on this host MPI has nothing to do, and is not started. */
static coh_status open_mpi(cohi_endpoint *endpoint, const cohi_engine_args *args)
{
    int level, rank = -1, size = 0;
    if (endpoint->size == 1 || args->need.hosts == 1)
        return COH_OK;
    coh_status status = cohi_mpi_start(&endpoint->mpi, &level);
    if (status != COH_OK)
        return status;
    endpoint->threaded = level == MPI_THREAD_MULTIPLE;
    endpoint->owner = pthread_self();
    (void)endpoint->mpi->MPI_Comm_rank(endpoint->mpi->world, &rank);
    (void)endpoint->mpi->MPI_Comm_size(endpoint->mpi->world, &size);
    endpoint->own = (cohi_mpi_address){
        .job = job_number(), .rank = rank, .size = size, .threaded = endpoint->threaded};
    int error = cohi_os_random(&endpoint->own.key, sizeof endpoint->own.key);
    if (error)
        return cohi_fail_os(error, "mpi: no random number can be had");
    if (!endpoint->threaded)
        cohi_log(COH_LOG_INFO,
                 "mpi: rank %d: MPI was initialised with less than MPI_THREAD_MULTIPLE, so this "
                 "rank serves the others inside of calls of its first thread alone",
                 endpoint->rank);
    return COH_OK;
}

static coh_status mpi_open(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = new_endpoint(args);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "mpi: out of memory for rank %d", args->rank);
    coh_status status = open_mpi(made, args);
    if (status != COH_OK) {
        mpi_close(made);
        return status;
    }
    *endpoint = made;
    return COH_OK;
}

static coh_status mpi_address(cohi_endpoint *endpoint, unsigned char *address)
{
    memcpy(address, &endpoint->own, sizeof endpoint->own);
    return COH_OK;
}

/* ---- connecting ---- */

/* MPI would wait for ever for a process that is not in its job, or is in it twice. */
static coh_status check_places(const cohi_endpoint *endpoint, const cohi_mpi_address *addresses,
                               bool *taken)
{
    const cohi_mpi_address *own = &endpoint->own;
    for (int rank = 0; rank < endpoint->size; rank++) {
        const cohi_mpi_address *its = &addresses[rank];
        if (its->job != own->job || its->size != own->size || its->rank < 0
            || its->rank >= own->size || taken[its->rank])
            return cohi_fail(COH_NOT_AVAILABLE,
                             "mpi: rank %d is process %d of %d for MPI, and rank %d process %d of "
                             "%d: they are not of one job of MPI's. Start all ranks by one mpirun "
                             "of " COHI_MPI_LIBRARY,
                             rank, (int)its->rank, (int)its->size, endpoint->rank, (int)own->rank,
                             (int)own->size);
        taken[its->rank] = true;
    }
    return COH_OK;
}

static coh_status fail_mpi(const cohi_endpoint *endpoint, const char *call, int error)
{
    char text[COHI_MPI_TEXT_BYTES];
    return cohi_fail(COH_TRANSPORT, "mpi: rank %d: %s failed: %s", endpoint->rank, call,
                     cohi_mpi_text(endpoint, error, text));
}

/* A communicator of the world's own, in which ranks are the world's. Made by its members alone. */
static coh_status make_comm(cohi_endpoint *endpoint, const int *places)
{
    const cohi_mpi_library *mpi = endpoint->mpi;
    enum { TAG_MOST = 32767 }; /* that every MPI has */
    MPI_Group all, members;
    int error = mpi->MPI_Comm_group(mpi->world, &all);
    if (error != MPI_SUCCESS)
        return fail_mpi(endpoint, "MPI_Comm_group", error);
    error = mpi->MPI_Group_incl(all, endpoint->size, places, &members);
    if (error == MPI_SUCCESS) {
        error = mpi->MPI_Comm_create_group(mpi->world, members, (int)(endpoint->key % TAG_MOST),
                                           &endpoint->comm);
        (void)mpi->MPI_Group_free(&members);
    }
    (void)mpi->MPI_Group_free(&all);
    if (error != MPI_SUCCESS)
        return fail_mpi(endpoint, "MPI_Comm_create_group", error);
    (void)mpi->MPI_Comm_set_errhandler(endpoint->comm, mpi->errors_return);
    endpoint->connected = true;
    return COH_OK;
}

static coh_status go_online(cohi_endpoint *endpoint, const cohi_mpi_address *addresses)
{
    int *places = calloc((size_t)endpoint->size, sizeof *places);
    bool *taken = calloc((size_t)endpoint->own.size + 1, sizeof *taken);
    coh_status status =
        places && taken
            ? check_places(endpoint, addresses, taken)
            : cohi_fail(COH_NO_MEMORY, "mpi: out of memory for %d ranks", endpoint->size);
    endpoint->key = addresses[0].key;
    for (int rank = 0; rank < endpoint->size && status == COH_OK; rank++) {
        places[rank] = addresses[rank].rank;
        endpoint->threaded_of[rank] = addresses[rank].threaded;
    }
    if (status == COH_OK)
        status = make_comm(endpoint, places);
    free(places);
    free(taken);
    if (status == COH_OK)
        status = cohi_mpi_receive_begin(endpoint);
    if (status == COH_OK)
        cohi_mpi_process_add(endpoint);
    if (status == COH_OK && endpoint->threaded)
        status = cohi_mpi_thread_start(endpoint);
    return status;
}

static coh_status mpi_connect(cohi_endpoint *endpoint,
                              const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                              const int *host_of)
{
    bool remote = false;
    cohi_mpi_address *known = calloc((size_t)endpoint->size, sizeof *known);
    if (!known)
        return cohi_fail(COH_NO_MEMORY, "mpi: out of memory for %d ranks", endpoint->size);
    memcpy(endpoint->host_of, host_of, (size_t)endpoint->size * sizeof *host_of);
    for (int rank = 0; rank < endpoint->size; rank++) {
        memcpy(&known[rank], addresses[rank], sizeof known[rank]);
        remote = remote || !cohi_segments_is_near(&endpoint->segments, rank);
    }
    coh_status status = remote ? go_online(endpoint, known) : COH_OK;
    free(known);
    if (status != COH_OK)
        cohi_mpi_spoil(); /* the others may wait in MPI for this rank: MPI_Finalize would wait for them */
    return status;
}

/* ---- the rest of the lifecycle ---- */

static void mpi_query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .detects_loss = !endpoint || endpoint->threaded,
                                 .cpu_coherent_atomics = 1,
                                 .message_bytes = COHI_MPI_PAYLOAD_BYTES,
                                 .takes_prepared = 1};
}

/* A look at MPI that finds nothing takes a microsecond, so there is none once something has come. */
static void mpi_progress(cohi_endpoint *endpoint)
{
    enum { STEPS_AT_ONCE = 16 };
    if (!endpoint->connected)
        return;
    if (cohi_mpi_trylock(endpoint)) {
        bool may = cohi_mpi_may_call(endpoint);
        for (int i = 0; may && i < STEPS_AT_ONCE && !cohi_events_are_there(&endpoint->events); i++)
            may = cohi_mpi_step(endpoint);
        if (cohi_mpi_may_call(endpoint))
            atomic_fetch_add_explicit(&endpoint->looks, 1, memory_order_relaxed);
        cohi_mpi_unlock(endpoint);
    }
    cohi_events_tell(&endpoint->events);
}

/* Without a thread the rank looks by itself, now and then, while it sleeps. */
static bool mpi_rest(cohi_endpoint *endpoint)
{
    if (endpoint->started)
        cohi_mpi_thread_resume(endpoint);
    return endpoint->started;
}

static void end_call(cohi_endpoint *endpoint)
{
    cohi_mpi_unlock(endpoint);
    cohi_events_ring(&endpoint->events);
}

static void fail_part(cohi_mpi_link *link, cohi_op *op, coh_status status)
{
    cohi_part part;
    cohi_part_join(&part, op, link->rank);
    cohi_mpi_part_end(link->endpoint, &part, status);
}

static void ask(cohi_mpi_link *link, cohi_mpi_verb verb, unsigned context, cohi_op *op)
{
    cohi_mpi_request *request = cohi_mpi_request_new(link, verb);
    if (!request) {
        fail_part(link, op, COH_NO_MEMORY);
        return;
    }
    request->context = context;
    request->mark = link->counts[context].issued;
    cohi_mpi_request_submit(link, request, NULL, 0, op);
}

/* What a rank that is gone has not got is told once. */
static void ask_quiet(cohi_mpi_link *link, cohi_op *op, unsigned context)
{
    cohi_mpi_count *count = &link->counts[context];
    if (count->issued == count->complete)
        return;
    if (link->ended) {
        count->complete = count->issued;
        fail_part(link, op, COH_PEER_LOST);
        return;
    }
    ask(link, COHI_MPI_QUIET, context, op);
}

static void ask_leave(cohi_mpi_link *link, cohi_op *op)
{
    if (link->ended || link->peer_left || link->told)
        return;
    link->told = true;
    ask(link, COHI_MPI_LEAVE, 0, op);
}

static void tell_all(cohi_endpoint *endpoint)
{
    for (int rank = 0; rank < endpoint->size && endpoint->size <= TELLS_ALL; rank++)
        if (!cohi_segments_is_near(&endpoint->segments, rank) && endpoint->connected)
            (void)cohi_mpi_link_from(endpoint, rank);
}

/* The op is held while its requests are issued: the first may be done before the last is there. */
static coh_status mpi_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_part hold;
    cohi_mpi_lock(endpoint);
    endpoint->leaving = true;
    tell_all(endpoint);
    cohi_part_join(&hold, op, -1);
    for (int i = 0; i < endpoint->made_count; i++)
        ask_leave(endpoint->made[i], op);
    cohi_mpi_part_end(endpoint, &hold, COH_OK);
    end_call(endpoint);
    return COH_OK;
}

void cohi_mpi_shut(cohi_endpoint *endpoint)
{
    endpoint->events.upcalls->part(endpoint->events.world);
    cohi_mpi_lock(endpoint);
    if (cohi_mpi_may_call(endpoint)) {
        endpoint->leaving = true;
        tell_all(endpoint);
        for (int i = 0; i < endpoint->made_count; i++)
            ask_leave(endpoint->made[i], NULL);
        disconnect(endpoint);
    }
    endpoint->finalized = true;
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_mpi_link_end(endpoint->made[i], (cohi_loss)0);
    end_call(endpoint);
}

static void mpi_abandon(cohi_endpoint *endpoint)
{
    if (endpoint->connected)
        cohi_mpi_spoil();
}

/* MPI does not tell the other hosts, so those that see the process do. */
static void tell_loss(cohi_endpoint *endpoint, int rank)
{
    tell_all(endpoint);
    for (int i = 0; i < endpoint->made_count; i++) {
        cohi_mpi_link *link = endpoint->made[i];
        bool open = !link->ended && !link->peer_left;
        cohi_mpi_request *request = open ? cohi_mpi_request_new(link, COHI_MPI_LOSS) : NULL;
        if (!request)
            continue;
        request->frame.offset = (uint64_t)rank;
        cohi_mpi_request_submit(link, request, NULL, 0, NULL);
    }
}

static void mpi_lose(cohi_endpoint *endpoint, int rank)
{
    unsigned char alive = COHI_MPI_ALIVE;
    bool is_new = atomic_compare_exchange_strong(&endpoint->fates[rank], &alive, COHI_MPI_LOST);
    if (!endpoint->connected)
        return;
    cohi_mpi_lose_rank();
    cohi_mpi_lock(endpoint);
    if (endpoint->links[rank])
        cohi_mpi_link_end(endpoint->links[rank], (cohi_loss)0);
    if (is_new && cohi_segments_is_near(&endpoint->segments, rank))
        tell_loss(endpoint, rank);
    end_call(endpoint);
}

static void mpi_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    cohi_mpi_lock(endpoint);
    for (int i = 0; i < endpoint->made_count; i++)
        cohi_mpi_withdraw(endpoint->made[i], op);
    cohi_mpi_teams_cancel(endpoint, op);
    end_call(endpoint);
}

static const cohi_engine_lifecycle mpi_lifecycle = {
    .size = sizeof mpi_lifecycle,
    .probe = mpi_probe,
    .open = mpi_open,
    .address = mpi_address,
    .connect = mpi_connect,
    .leave = mpi_leave,
    .close = mpi_close,
    .query = mpi_query,
    .lose = mpi_lose,
    .cancel = mpi_cancel,
    .progress = mpi_progress,
    .rest = mpi_rest,
    .abandon = mpi_abandon,
};

/* ---- one request to one rank ---- */

/* Takes the lock, which end_request gives back. */
static coh_status begin_request(cohi_endpoint *endpoint, int rank, cohi_mpi_verb verb,
                                cohi_mpi_link **link, cohi_mpi_request **request)
{
    cohi_mpi_lock(endpoint);
    coh_status status = cohi_mpi_link_to(endpoint, rank, link);
    *request = status == COH_OK ? cohi_mpi_request_new(*link, verb) : NULL;
    if (status == COH_OK && !*request)
        status = cohi_fail(COH_NO_MEMORY, "mpi: out of memory for a request to rank %d", rank);
    if (status != COH_OK)
        cohi_mpi_unlock(endpoint);
    return status;
}

static coh_status end_request(cohi_mpi_link *link, cohi_mpi_request *request, const void *source,
                              size_t bytes, cohi_op *op)
{
    cohi_endpoint *endpoint = link->endpoint;
    cohi_mpi_request_submit(link, request, source, bytes, op);
    end_call(endpoint);
    return COH_OK;
}

/* The next quiet of the context is for it too, unless its op tells that it is complete. */
static void aim(cohi_mpi_link *link, cohi_mpi_request *request, cohi_remote at, bool by_quiet)
{
    request->context = at.context;
    link->counts[at.context].issued += by_quiet;
    request->frame.segment = (uint16_t)at.segment;
    request->frame.generation = link->endpoint->segments.rows[at.segment].peers[link->rank];
    request->frame.offset = at.offset;
}

/* ---- rma ---- */

static coh_status mpi_put(cohi_endpoint *endpoint, cohi_remote to, const void *source, size_t bytes,
                          cohi_op *op)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, to.rank, COHI_MPI_PUT, &link, &request);
    if (status != COH_OK)
        return status;
    aim(link, request, to, true);
    return end_request(link, request, source, bytes, op);
}

static coh_status mpi_get(cohi_endpoint *endpoint, cohi_remote from, void *target, size_t bytes,
                          cohi_op *op)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, from.rank, COHI_MPI_GET, &link, &request);
    if (status != COH_OK)
        return status;
    aim(link, request, from, !op);
    request->frame.bytes = request->expected = bytes;
    request->target = target;
    return end_request(link, request, NULL, 0, op);
}

static coh_status mpi_put_signal(cohi_endpoint *endpoint, cohi_remote to, const void *source,
                                 size_t bytes, const cohi_remote_signal *signal, cohi_op *op)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, to.rank, COHI_MPI_PUT, &link, &request);
    if (status != COH_OK)
        return status;
    aim(link, request, to, true);
    request->signals = true;
    request->frame.add = signal->add;
    request->frame.operand = signal->offset;
    request->frame.compare = signal->value;
    return end_request(link, request, source, bytes, op);
}

/* MPI keeps frames in order, and the target applies one before it looks at the next. */
static coh_status mpi_fence(cohi_endpoint *endpoint, unsigned context)
{
    (void)endpoint;
    (void)context;
    return COH_OK;
}

static coh_status mpi_quiet(cohi_endpoint *endpoint, unsigned context, cohi_op *op)
{
    cohi_part hold;
    cohi_mpi_lock(endpoint);
    cohi_part_join(&hold, op, -1);
    for (int i = 0; i < endpoint->made_count; i++)
        ask_quiet(endpoint->made[i], op, context);
    cohi_mpi_part_end(endpoint, &hold, COH_OK);
    end_call(endpoint);
    return COH_OK;
}

static const cohi_engine_rma mpi_rma = {
    .size = sizeof mpi_rma,
    .put = mpi_put,
    .get = mpi_get,
    .put_signal = mpi_put_signal,
    .fence = mpi_fence,
    .quiet = mpi_quiet,
};

/* ---- atomic ---- */

static void describe_atomic(cohi_mpi_frame *frame, const cohi_remote_atomic *call)
{
    size_t bytes = coh_dtype_size(call->dtype);
    frame->kind = (uint16_t)call->kind;
    frame->dtype = (uint16_t)call->dtype;
    if (call->operand)
        memcpy(&frame->operand, call->operand, bytes);
    if (call->compare)
        memcpy(&frame->compare, call->compare, bytes);
}

static coh_status mpi_post(cohi_endpoint *endpoint, cohi_remote at,
                           const cohi_remote_atomic *atomic)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, at.rank, COHI_MPI_POST, &link, &request);
    if (status != COH_OK)
        return status;
    aim(link, request, at, true);
    describe_atomic(&request->frame, atomic);
    return end_request(link, request, NULL, 0, NULL);
}

static coh_status mpi_fetch(cohi_endpoint *endpoint, cohi_remote at,
                            const cohi_remote_atomic *atomic, void *result, cohi_op *op)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, at.rank, COHI_MPI_FETCH, &link, &request);
    if (status != COH_OK)
        return status;
    aim(link, request, at, !op);
    describe_atomic(&request->frame, atomic);
    request->expected = coh_dtype_size(atomic->dtype);
    request->target = result;
    return end_request(link, request, NULL, 0, op);
}

static const cohi_engine_atomic mpi_atomic = {
    .size = sizeof mpi_atomic,
    .post = mpi_post,
    .fetch = mpi_fetch,
};

/* ---- channel ---- */

static coh_status mpi_send(cohi_endpoint *endpoint, int rank, const void *head, size_t head_bytes,
                           const void *body, size_t body_bytes, cohi_op *op)
{
    cohi_mpi_link *link;
    cohi_mpi_request *request;
    coh_status status = begin_request(endpoint, rank, COHI_MPI_MESSAGE, &link, &request);
    if (status != COH_OK)
        return status;
    memcpy(request->copied, head, head_bytes);
    request->head_bytes = head_bytes;
    return end_request(link, request, body, body_bytes, op);
}

static const cohi_engine_channel mpi_channel = {
    .size = sizeof mpi_channel,
    .send = mpi_send,
};

/* ---- the descriptor ---- */

static bool mpi_library(char *text, size_t room)
{
    return cohi_mpi_library_look(text, room) == COH_OK;
}

const cohi_engine cohi_engine_mpi = {
    .size = sizeof cohi_engine_mpi,
    .contract = COHI_CONTRACT,
    .name = COHI_MPI_NAME,
    .lifecycle = &mpi_lifecycle,
    .memory = &cohi_mpi_memory,
    .rma = &mpi_rma,
    .atomic = &mpi_atomic,
    .channel = &mpi_channel,
    .job = &cohi_mpi_job,
    .collective = &cohi_mpi_collective,
    .library = mpi_library,
};
