/*
 * collective.c - MPI's own collectives, on a communicator for each team.
 *
 * All calls that wait for others are those that MPI does not block in, so that a wait can be given up; but
 * there is no such call that makes a communicator. That is made by a thread of its own, which is left
 * behind where a member does not come.
 */
#include "engine/mpi/mpi.h"

#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/board.h"

#include <stdlib.h>
#include <string.h>

/* A team as MPI knows it. With the endpoint's lock. */
struct cohi_mpi_team {
    cohi_mpi_team *next; /* of those under way */
    cohi_endpoint *endpoint;
    MPI_Comm comm;
    MPI_Request request;
    cohi_op *op;                                /* that is under way, or NULL: it was given up */
    enum { MAKING, MADE, FAILED, READY } state; /* of the communicator */
    bool left;                                  /* to the thread that makes it, which frees it */
    int error;
    void **native;
    int tag, size, index;
    int ranks[];
};

/* ---- teams ---- */

static void begin_op(cohi_mpi_team *team, cohi_op *op)
{
    team->op = op;
    team->next = team->endpoint->teams;
    team->endpoint->teams = team;
}

static void unlist(cohi_mpi_team *team)
{
    cohi_mpi_team **place = &team->endpoint->teams;
    while (*place && *place != team)
        place = &(*place)->next;
    if (*place)
        *place = team->next;
}

static void end_op(cohi_mpi_team *team, coh_status status)
{
    cohi_op *op = team->op;
    team->op = NULL;
    unlist(team);
    op->status = status;
    atomic_store_explicit(&op->done, 1, memory_order_release);
    atomic_store_explicit(&team->endpoint->events.rings, 1, memory_order_relaxed);
}

/* Tells apart the teams with a common member, and one that a thread still tries to make from the next of its
 * number. MPI allows up to 32767. */
static int tag_of(const cohi_native_team *team)
{
    enum { TURNS = 256 };
    _Static_assert(COHI_MPI_TEAM_TAG + COHI_TEAMS * TURNS <= 32767, "a tag that MPI allows");
    return COHI_MPI_TEAM_TAG + team->number + COHI_TEAMS * (int)(team->epoch % TURNS);
}

/* The members of the team alone call it. */
static int create(cohi_mpi_team *team)
{
    const cohi_mpi_library *mpi = team->endpoint->mpi;
    MPI_Group all, members;
    int error = mpi->MPI_Comm_group(team->endpoint->comm, &all);
    if (error != MPI_SUCCESS)
        return error;
    error = mpi->MPI_Group_incl(all, team->size, team->ranks, &members);
    if (error == MPI_SUCCESS) {
        error = mpi->MPI_Comm_create_group(team->endpoint->comm, members, team->tag, &team->comm);
        (void)mpi->MPI_Group_free(&members);
    }
    (void)mpi->MPI_Group_free(&all);
    if (error == MPI_SUCCESS)
        (void)mpi->MPI_Comm_set_errhandler(team->comm, mpi->errors_return);
    return error;
}

/* Without the lock, which others need meanwhile. Whoever looks next ends the op: after the lock is given back,
 * nothing of the endpoint is touched. */
static void *make(void *arg)
{
    cohi_mpi_team *team = arg;
    cohi_endpoint *endpoint = team->endpoint;
    cohi_os_thread_serves(true);
    int error = create(team);
    cohi_mpi_lock(endpoint);
    team->error = error;
    team->state = error == MPI_SUCCESS ? MADE : FAILED;
    if (team->left)
        free(team);
    endpoint->making--;
    cohi_mpi_unlock(endpoint);
    cohi_os_thread_serves(false);
    return NULL;
}

static coh_status mpi_team_open(cohi_endpoint *endpoint, const cohi_native_team *team,
                                void **native, cohi_op *op)
{
    pthread_t thread;
    cohi_mpi_team *made = calloc(1, sizeof *made + (size_t)team->size * sizeof *team->ranks);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "mpi: out of memory for a team of %d", team->size);
    made->endpoint = endpoint;
    made->native = native;
    made->tag = tag_of(team);
    made->size = team->size;
    made->index = team->index;
    memcpy(made->ranks, team->ranks, (size_t)team->size * sizeof *team->ranks);
    cohi_mpi_lock(endpoint);
    begin_op(made, op);
    endpoint->making++;
    int error = cohi_os_thread_start("cohort-comm", make, made, &thread);
    if (error) {
        made->op = NULL;
        unlist(made);
        endpoint->making--;
    }
    cohi_mpi_unlock(endpoint);
    if (!error)
        return pthread_detach(thread) == 0 ? COH_OK : COH_TRANSPORT;
    free(made);
    return cohi_fail_os(error, "mpi: rank %d cannot start a thread", endpoint->rank);
}

/* MPI does not wait for the others in it, as both libraries have it. */
static void mpi_team_close(cohi_endpoint *endpoint, void *native)
{
    cohi_mpi_team *team = native;
    cohi_mpi_lock(endpoint);
    if (cohi_mpi_may_call(endpoint))
        (void)endpoint->mpi->MPI_Comm_free(&team->comm);
    cohi_mpi_unlock(endpoint);
    free(team);
}

/* ---- calls ---- */

static MPI_Datatype type_of(const cohi_mpi_library *mpi, coh_dtype dtype)
{
    const MPI_Datatype types[] = {
        [COH_I32] = mpi->int32,  [COH_I64] = mpi->int64,   [COH_U32] = mpi->uint32,
        [COH_U64] = mpi->uint64, [COH_F32] = mpi->float32, [COH_F64] = mpi->float64,
    };
    return types[dtype];
}

static MPI_Op op_of(const cohi_mpi_library *mpi, coh_reduce_op op)
{
    const MPI_Op ops[] = {
        [COH_SUM] = mpi->sum,      [COH_PRODUCT] = mpi->product, [COH_MIN] = mpi->min,
        [COH_MAX] = mpi->max,      [COH_AND] = mpi->bits_and,    [COH_OR] = mpi->bits_or,
        [COH_XOR] = mpi->bits_xor,
    };
    return ops[op];
}

/* Core gives memory of its own: source and target are one where the kind is cut into pieces. */
typedef int begin_call(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                       const cohi_native_call *call);

static int bytes_of(const cohi_native_call *call)
{
    return (int)(call->count * coh_dtype_size(call->dtype));
}

static int begin_all_reduce(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                            const cohi_native_call *call)
{
    return mpi->MPI_Iallreduce(MPI_IN_PLACE, call->target, (int)call->count,
                               type_of(mpi, call->dtype), op_of(mpi, call->op), team->comm,
                               &team->request);
}

static int begin_reduce(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                        const cohi_native_call *call)
{
    bool root = team->index == call->root;
    return mpi->MPI_Ireduce(root ? MPI_IN_PLACE : call->source, root ? call->target : NULL,
                            (int)call->count, type_of(mpi, call->dtype), op_of(mpi, call->op),
                            call->root, team->comm, &team->request);
}

static int begin_reduce_scatter(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                                const cohi_native_call *call)
{
    return mpi->MPI_Ireduce_scatter_block(call->source, call->target, (int)call->count,
                                          type_of(mpi, call->dtype), op_of(mpi, call->op),
                                          team->comm, &team->request);
}

static int begin_all_gather(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                            const cohi_native_call *call)
{
    return mpi->MPI_Iallgather(call->source, bytes_of(call), mpi->byte, call->target,
                               bytes_of(call), mpi->byte, team->comm, &team->request);
}

static int begin_gather(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                        const cohi_native_call *call)
{
    return mpi->MPI_Igather(call->source, bytes_of(call), mpi->byte, call->target, bytes_of(call),
                            mpi->byte, call->root, team->comm, &team->request);
}

static int begin_scatter(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                         const cohi_native_call *call)
{
    return mpi->MPI_Iscatter(call->source, bytes_of(call), mpi->byte, call->target, bytes_of(call),
                             mpi->byte, call->root, team->comm, &team->request);
}

static int begin_broadcast(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                           const cohi_native_call *call)
{
    return mpi->MPI_Ibcast(call->target, bytes_of(call), mpi->byte, call->root, team->comm,
                           &team->request);
}

static int begin_all_to_all(const cohi_mpi_library *mpi, cohi_mpi_team *team,
                            const cohi_native_call *call)
{
    return mpi->MPI_Ialltoall(call->source, bytes_of(call), mpi->byte, call->target, bytes_of(call),
                              mpi->byte, team->comm, &team->request);
}

static begin_call *const by_kind[] = {
    [COH_COLLECTIVE_ALL_REDUCE] = begin_all_reduce,
    [COH_COLLECTIVE_REDUCE] = begin_reduce,
    [COH_COLLECTIVE_REDUCE_SCATTER] = begin_reduce_scatter,
    [COH_COLLECTIVE_ALL_GATHER] = begin_all_gather,
    [COH_COLLECTIVE_GATHER] = begin_gather,
    [COH_COLLECTIVE_SCATTER] = begin_scatter,
    [COH_COLLECTIVE_BROADCAST] = begin_broadcast,
    [COH_COLLECTIVE_ALL_TO_ALL] = begin_all_to_all,
};

enum { KINDS = sizeof by_kind / sizeof *by_kind };

/* ---- the offer ---- */

#define BIT(value) (1u << (value))

/*
 * Minimum and maximum of floats are left out, since MPI does not say what becomes of NaN; so are types that MPI
 * has not, and integers of 8 and 16 bits, of which Open MPI 4.1 adds with saturation where the CPU has AVX. Costs, by Open MPI 4.1.4 and MPICH 4.0.2 over TCP between two processes: short calls without
 * blocking take 2 to 4 messages' time more than a blocking one; long ones 1.4 of core's own by Open MPI, 0.6 by MPICH.
 */
#if defined(OPEN_MPI)
#define NATIVE_CALL 4
#define NATIVE_BYTE 1.5
#else
#define NATIVE_CALL 3
#define NATIVE_BYTE 0.5
#endif

static void mpi_offer(cohi_endpoint *endpoint, cohi_native_offer *offer)
{
    *offer = (cohi_native_offer){.size = sizeof *offer};
    if (!endpoint->mpi || !endpoint->threaded)
        return;
    for (unsigned kind = 0; kind < KINDS; kind++)
        offer->kinds |= by_kind[kind] ? BIT(kind) : 0;
    offer->types =
        BIT(COH_I32) | BIT(COH_I64) | BIT(COH_U32) | BIT(COH_U64) | BIT(COH_F32) | BIT(COH_F64);
    offer->float_ops = BIT(COH_SUM) | BIT(COH_PRODUCT);
    offer->integer_ops =
        offer->float_ops | BIT(COH_MIN) | BIT(COH_MAX) | BIT(COH_AND) | BIT(COH_OR) | BIT(COH_XOR);
    offer->same_bits = 1;
    offer->call = NATIVE_CALL;
    offer->byte = NATIVE_BYTE;
}

static bool mpi_serves(cohi_endpoint *endpoint, const int *ranks, int size)
{
    bool all = endpoint->connected && !endpoint->finalized;
    for (int i = 0; i < size && all; i++)
        all = endpoint->threaded_of[ranks[i]];
    return all;
}

/* ---- running ---- */

static coh_status mpi_run(cohi_endpoint *endpoint, void *native, const cohi_native_call *call,
                          cohi_op *op)
{
    cohi_mpi_team *team = native;
    char text[COHI_MPI_TEXT_BYTES];
    cohi_mpi_lock(endpoint);
    int error = cohi_mpi_may_call(endpoint) ? by_kind[call->kind](endpoint->mpi, team, call)
                                            : MPI_ERR_OTHER;
    if (error == MPI_SUCCESS)
        begin_op(team, op);
    cohi_mpi_unlock(endpoint);
    if (error == MPI_SUCCESS)
        return COH_OK;
    return cohi_fail(COH_TRANSPORT, "mpi: rank %d: MPI does not begin the collective: %s",
                     endpoint->rank, cohi_mpi_text(endpoint, error, text));
}

/* What became of the making of a communicator. Returns whether it is over. */
static bool look_at_making(cohi_mpi_team *team)
{
    char text[COHI_MPI_TEXT_BYTES];
    bool made = team->state == MADE;
    if (team->state == MAKING)
        return false;
    if (made) {
        team->state = READY;
        *team->native = team;
    } else {
        cohi_log(COH_LOG_WARN, "mpi: rank %d: no communicator can be made for a team of %d: %s",
                 team->endpoint->rank, team->size,
                 cohi_mpi_text(team->endpoint, team->error, text));
    }
    end_op(team, made ? COH_OK : COH_TRANSPORT);
    if (!made)
        free(team);
    return true;
}

static bool look_at_call(cohi_mpi_team *team)
{
    MPI_Status ignored;
    int done = 0;
    int error = team->endpoint->mpi->MPI_Test(&team->request, &done, &ignored);
    if (error == MPI_SUCCESS && !done)
        return false;
    end_op(team, error == MPI_SUCCESS ? COH_OK : COH_TRANSPORT);
    return true;
}

bool cohi_mpi_teams_step(cohi_endpoint *endpoint)
{
    bool any = false;
    for (cohi_mpi_team *team = endpoint->teams, *next; team; team = next) {
        next = team->next;
        any = (team->state == READY ? look_at_call(team) : look_at_making(team)) || any;
    }
    return any;
}

/* A team that is ready is closed by core. */
static void leave(cohi_mpi_team *team)
{
    team->left = team->state == MAKING;
    if (team->state == MADE || team->state == FAILED)
        free(team);
}

/* MPI cannot be told to stop. It is left alone, and the process does not call MPI_Finalize, which would wait. */
void cohi_mpi_teams_cancel(cohi_endpoint *endpoint, const cohi_op *op)
{
    for (cohi_mpi_team *team = endpoint->teams; team; team = team->next)
        if (team->op == op) {
            cohi_mpi_spoil();
            end_op(team, COH_TRANSPORT);
            leave(team);
            return;
        }
}

const cohi_engine_collective cohi_mpi_collective = {
    .size = sizeof cohi_mpi_collective,
    .offer = mpi_offer,
    .serves = mpi_serves,
    .open = mpi_team_open,
    .close = mpi_team_close,
    .run = mpi_run,
};
