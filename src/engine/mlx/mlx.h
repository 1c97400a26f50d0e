/*
 * mlx.h - the engine over MLX's distributed groups, as its files see it.
 *
 *   shim.cpp    MLX, which is C++, behind a table of C: a file of its own, linked with libmlx
 *   library.c   libmlx and the shim, found at run time
 *   process.c   MLX in this process: the one thread that calls it, and its group
 *   sockets.c   the connections that MLX has made
 *   frame.c     what travels in a round
 *   round.c     the rounds, and how they end
 *   watch.c     the thread that tells core of rounds that do not come
 *   mlx.c       the slots
 *   module.c    the engine's name, mlx:ring, mlx:mpi, mlx:jaccl or mlx:nccl: one module each of the same files
 *
 * MLX's groups have collectives that block, and sends whose receiver must know what comes; those of a ring
 * reach the neighbours alone. So bytes for any rank travel in **rounds**: an all_gather of one frame a rank, in
 * which all that a rank has for others is packed, as much as fits. A frame also says how much is left, so
 * all ranks know how long the frames of the next round are, without asking. Over a ring, that is
 * passing on by neighbours: the fewest hops that there are, made by MLX's own threads.
 *
 * A round is begun by whoever has something to send. The others see that a connection of MLX's has bytes to
 * read, and take part; nobody calls MLX without a reason, since its threads spin while they wait. Where a
 * back end has no connections to look at (mpi), the ranks begin a round after pauses, which grow while
 * nothing is sent.
 *
 * One lock, endpoint->lock, guards everything here. It is held around no call of MLX's and no upcall.
 */
#ifndef COHI_ENGINE_MLX_MLX_H
#define COHI_ENGINE_MLX_MLX_H

#include "engine/engine.h"
#include "engine/mlx/shim.h"
#include "engine/modules/events.h"

#include <netinet/in.h>
#include <pthread.h>

/* "ring", and "mlx:ring". */
extern const char cohi_mlx_backend[];
extern const char cohi_mlx_name[];

enum { COHI_MLX_ERROR_BYTES = 256 };

/* ---- library.c ---- */

/* Opens libmlx and the shim, once a process. COH_NOT_AVAILABLE with the loader's reason. */
coh_status cohi_mlx_library_open(const cohi_mlx_shim **shim);

/* Whether libmlx has the back end, and what it is for people to read, if `text` is not NULL. */
coh_status cohi_mlx_library_look(char *text, size_t room);

/* ---- sockets.c ---- */

enum { COHI_MLX_SOCKETS_MOST = 64 };

/* Connections of MLX's, found by what appeared in the process while it made them. */
typedef struct cohi_mlx_sockets {
    int count;
    int fds[COHI_MLX_SOCKETS_MOST];
    int peers[COHI_MLX_SOCKETS_MOST]; /* ranks at the other ends; -1: not known */
} cohi_mlx_sockets;

/* The two ends of each, which the ranks tell each other to learn who is at which. */
typedef struct cohi_mlx_ends {
    int32_t count;
    struct {
        uint32_t address[2]; /* here, there */
        uint16_t port[2];
    } ends[COHI_MLX_SOCKETS_MOST];
} cohi_mlx_ends;

/* Descriptors of the program's, which may have any number. */
typedef struct cohi_mlx_fds {
    int count, room;
    int *fds;
} cohi_mlx_fds;

/* The TCP sockets of this process that are inherited by its children: MLX's are, Cohort's are not. False: no memory.
 * Those that are listed are to be freed either way. */
bool cohi_mlx_fds_list(cohi_mlx_fds *listed);
void cohi_mlx_fds_free(cohi_mlx_fds *listed);

/* Those of them that came since. */
void cohi_mlx_sockets_find(const cohi_mlx_fds *before, cohi_mlx_sockets *found);

/* Drops those that are not connected, which MLX leaves behind where it had to try again, and keeps the others from the
 * process's children, which would keep the connections open. */
void cohi_mlx_sockets_keep(cohi_mlx_sockets *sockets);

void cohi_mlx_sockets_describe(const cohi_mlx_sockets *sockets, cohi_mlx_ends *ends);

/* Notes the peer of those whose other end is one of `ends`. */
void cohi_mlx_sockets_match(cohi_mlx_sockets *sockets, int rank, const cohi_mlx_ends *ends);

/* Ends them in both directions, so that whatever MLX does with them fails, here and at the neighbours. */
void cohi_mlx_sockets_sever(const cohi_mlx_sockets *sockets);

/* MLX's threads look at their connections over and over while they wait. Calm, they sleep in the kernel until bytes
 * come, or for a few milliseconds: MLX takes the end of that for nothing to read. */
void cohi_mlx_sockets_calm(const cohi_mlx_sockets *sockets, bool calm);

/* The rank at the other end of one that has ended; -1: none has, or it is not known. */
int cohi_mlx_sockets_hung_up(const cohi_mlx_sockets *sockets);

/* Sleeps until one of them has bytes to read, or has ended, or `bell` is rung. UINT64_MAX: for ever.
 * False: it was the bell alone. */
bool cohi_mlx_sockets_await(const cohi_mlx_sockets *sockets, int bell, uint64_t timeout_ns);

/* A socket bound to a port of the loopback address that is free, for MLX to bind too. */
coh_status cohi_mlx_port_take(int *fd, uint16_t *port);

/* Waits, up to `until_ns`, until somebody on this host listens at the port. */
void cohi_mlx_port_await(uint16_t port, uint64_t until_ns);

/* ---- process.c ---- */

/* The group of this process. Those that wait stop at `deadline_ns` with COH_TIMED_OUT; MLX then has been told to
 * give up by the end of its connections. */

/* What MLX's variables say, or with `ports`, a ring of this host at those ports. */
coh_status cohi_mlx_join(const uint16_t *ports, int rank, int size, uint64_t deadline_ns);

bool cohi_mlx_is_joined(int *rank, int *size);

/* The connections of the group. */
cohi_mlx_sockets *cohi_mlx_connections(void);

/* One all_gather of `bytes` bytes a rank. */
coh_status cohi_mlx_exchange(const void *mine, size_t bytes, void *all, uint64_t deadline_ns);

/* Has the thread run `work`, which is over when it returns. */
coh_status cohi_mlx_begin(void (*work)(void *arg), void *arg);

/* Waits until it is over; false: at `until_ns` it is not. */
bool cohi_mlx_await(uint64_t until_ns);

/* Has `stop` called when the process ends before the thread is idle: what the libraries have is taken down after that.
 * Once MLX has worked, so that this comes first. NULL: no more. */
coh_status cohi_mlx_at_exit(void (*stop)(void *arg), void *arg);

/* The thread's own view: the shim, to be called inside of `work` alone. */
const cohi_mlx_shim *cohi_mlx_inside(void);

/* Lets go of the group. `broken`: its ranks have not all left. */
void cohi_mlx_part(bool broken);

extern const cohi_engine_job cohi_mlx_job;

/* ---- frame.c ---- */

/* A message that is to be sent. Its head, and a body if that is short, are copied behind it. */
typedef struct cohi_mlx_request {
    struct cohi_mlx_request *next;
    cohi_op *op; /* NULL: nobody waits for it */
    int to;
    uint32_t head_bytes, body_bytes;
    const void *body;
    unsigned char head[COHI_HEAD_BYTES];
} cohi_mlx_request;

typedef struct cohi_mlx_frame {
    uint64_t key;   /* of the world */
    uint32_t round; /* counted from 1; 0: it has not come */
    uint32_t used;  /* bytes of items that follow */
    uint64_t left;  /* bytes of items that did not fit */
    uint32_t leaving;
    uint32_t unused;
} cohi_mlx_frame;

/* Before each message in a frame; the next begins at a multiple of 8. */
typedef struct cohi_mlx_item {
    uint32_t to;
    uint32_t bytes;
} cohi_mlx_item;

enum {
    COHI_MLX_MESSAGE_BYTES = (63 << 10) + 256, /* with its head */
    COHI_MLX_FRAME_LEAST = 4 << 10,
    COHI_MLX_FRAME_MOST =
        256 << 10 /* above, MLX sends both ways on each connection, which calm ones delay */
};

/* Bytes of a frame that the message takes. */
uint64_t cohi_mlx_item_bytes(const cohi_mlx_request *request);

/* Packs what fits, and ends those requests. Lock held. */
void cohi_mlx_pack(cohi_endpoint *endpoint, void *frame, size_t bytes);

/* What a round has brought. */
typedef struct cohi_mlx_round {
    uint64_t left; /* most that a rank has left to send */
    bool all_leave;
    int wrong; /* a rank whose frame is none, or this one without memory; -1 */
    char why[96];
} cohi_mlx_round;

/* Delivers what is for this rank. Lock held. */
cohi_mlx_round cohi_mlx_unpack(cohi_endpoint *endpoint, const void *frames, size_t bytes);

/* ---- the endpoint ---- */

/* What a rank tells the others before they meet. */
typedef struct cohi_mlx_address {
    uint64_t key;   /* rank 0's is the world's */
    int32_t joined; /* it is in a group already */
    int32_t rank;   /* there */
    int32_t size;
    int32_t named; /* MLX's variables name a group */
    uint16_t port; /* of a ring of the world's own */
} cohi_mlx_address;

_Static_assert(sizeof(cohi_mlx_address) <= COHI_ADDRESS_BYTES, "it fits a card");

typedef enum cohi_mlx_state {
    COHI_MLX_APART = 0, /* not connected, or alone */
    COHI_MLX_RUNNING,
    COHI_MLX_BROKEN, /* no round will come any more; who is to blame is not known so far */
    COHI_MLX_ENDED   /* all have left, or one is lost: `culprit` */
} cohi_mlx_state;

struct cohi_endpoint {
    int rank;
    int size;
    uint64_t deadline_ns; /* of joining */
    uint64_t link_timeout_ns;
    uint64_t key;
    int port_fd; /* -1: none */
    cohi_mlx_address own;
    bool several_hosts;

    pthread_mutex_t lock;
    int held;              /* what cohi_mlx_unlock gives back, of the thread that has it */
    pthread_cond_t change; /* of the state, or `closing` */
    cohi_events events;
    cohi_mlx_state state;
    int suspect; /* who seems to be lost, where rounds broke; -1: it cannot be told */
    int culprit; /* who is lost; -1: nobody */
    char why[COHI_MLX_ERROR_BYTES];
    bool closing;
    bool started; /* rounds were */
    bool watched;
    pthread_t watcher;
    int bell; /* an eventfd: there is something to send, or to stop for */

    cohi_mlx_request *first, *last;
    uint64_t left; /* bytes of their items */
    bool leaving;
    cohi_op *leave;
    bool *gone; /* [size]: it leaves */

    uint32_t round;
    bool again;               /* a rank has more to send: the next round comes at once */
    bool told;                /* the others know that this rank leaves */
    uint64_t pause_ns;        /* before the next round, where there are no connections to look at */
    atomic_ulong since_ns;    /* when the round under way began; 0: none is */
    const unsigned char *all; /* frames of the last round, as far as they have come */
    size_t frame_bytes;
};

/* No slot is a cancellation point, so the thread that has the lock cannot be cancelled. */
void cohi_mlx_lock(cohi_endpoint *endpoint);
void cohi_mlx_unlock(cohi_endpoint *endpoint);

/* Ends an op, and what was asked for with it. Lock held. */
void cohi_mlx_end_op(cohi_endpoint *endpoint, cohi_op *op, coh_status status, int rank);

/* Rings the bell of the rounds. */
void cohi_mlx_ring(cohi_endpoint *endpoint);

/* ---- round.c ---- */

/* Tells the others who this is, and begins the rounds. */
coh_status cohi_mlx_rounds_begin(cohi_endpoint *endpoint);

/* `rank` is the one that is lost: all that is under way ends with that. Lock held. */
void cohi_mlx_blame(cohi_endpoint *endpoint, int rank);

/* The rank whose frame is the next that is missing in the round under way; -1: none is. Lock held. */
int cohi_mlx_missing(const cohi_endpoint *endpoint);

/* ---- watch.c ---- */

coh_status cohi_mlx_watch_start(cohi_endpoint *endpoint);
void cohi_mlx_watch_stop(cohi_endpoint *endpoint);

#endif
