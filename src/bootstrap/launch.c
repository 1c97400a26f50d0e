#include "bootstrap/launch.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LAUNCH_MAGIC UINT64_C(0x3168636e756c6f43)

/* The one message. Both ends are on one host, but need not be of one build: hence the version. */
struct message {
    uint64_t magic;
    char version[16];
    int32_t rank;
    int32_t size;
    uint32_t listens; /* so many listening sockets come behind the board */
    coh_unique_id id;
};

enum { FDS = 1 + COHI_LISTENERS }; /* that come with it: board, listeners */

void cohi_launch_end(cohi_launch *launch)
{
    if (launch->let_go)
        launch->let_go(launch->kept);
    cohi_listeners_close(&launch->listeners);
    cohi_board_close(&launch->board);
    *launch = (cohi_launch)COHI_NO_LAUNCH;
}

/* ---- the launcher's side ---- */

/* The board's comes first. */
static int send_message(int fd, const struct message *message, int board_fd,
                        const cohi_listeners *listeners)
{
    int fds[FDS], count = 0;
    if (board_fd >= 0)
        fds[count++] = board_fd;
    for (int i = 0; listeners && i < listeners->count; i++)
        fds[count++] = listeners->fds[i];
    return cohi_os_send(fd, message, sizeof *message, fds, count, UINT64_MAX);
}

/* What was sent stays readable in the one end after the other is closed. */
static int fill_socket(const struct message *message, int board_fd, const cohi_listeners *listeners,
                       int *fd)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    int error = send_message(ends[1], message, board_fd, listeners);
    cohi_os_close(ends[1]);
    if (!error)
        error = cohi_os_fd_above_stdio(&ends[0]);
    if (!error && fcntl(ends[0], F_SETFD, 0) != 0)
        error = errno;
    if (error) {
        cohi_os_close(ends[0]);
        return error;
    }
    *fd = ends[0];
    return 0;
}

coh_status cohi_launch_offer(const coh_unique_id *id, int rank, int size, int board_fd,
                             const cohi_listeners *listeners, int *fd)
{
    struct message message = {.magic = LAUNCH_MAGIC,
                              .rank = rank,
                              .size = size,
                              .listens = listeners ? (uint32_t)listeners->count : 0,
                              .id = *id};
    snprintf(message.version, sizeof message.version, "%s", coh_version_string());
    int error = fill_socket(&message, board_fd, listeners, fd);
    if (error)
        return cohi_fail_os(error, "cannot describe the job of %d ranks to rank %d", size, rank);
    return COH_OK;
}

/* ---- the rank's side ---- */

int cohi_launch_present(const cohi_config *config)
{
    return *config->rank || *config->size || *config->job_fd;
}

static coh_status check_complete(const cohi_config *config)
{
    const char *const values[] = {config->rank, config->size, config->job_fd};
    static const char *const names[] = {"COHORT_RANK", "COHORT_SIZE", "COHORT_JOB_FD"};
    for (size_t i = 0; i < 3; i++) {
        if (!*values[i])
            return cohi_fail(COH_INVALID_ARGUMENT,
                             "coh_init: the environment has COHORT_RANK='%s', COHORT_SIZE='%s' and "
                             "COHORT_JOB_FD='%s', but cohort run sets all three; %s is missing. "
                             "Start the program by cohort run, or unset them",
                             values[0], values[1], values[2], names[i]);
    }
    return COH_OK;
}

static coh_status parse_environment(const cohi_config *config, int *rank, int *size, int *fd)
{
    uint64_t rank_value = 0, size_value = 0, fd_value = 0;
    coh_status status = check_complete(config);
    if (status == COH_OK)
        status = cohi_parse_count("COHORT_SIZE", config->size, 1, COHI_WORLD_MAX, &size_value);
    if (status == COH_OK)
        status = cohi_parse_count("COHORT_RANK", config->rank, 0, size_value - 1, &rank_value);
    if (status == COH_OK)
        status = cohi_parse_count("COHORT_JOB_FD", config->job_fd, 3, INT32_MAX, &fd_value);
    *rank = (int)rank_value;
    *size = (int)size_value;
    *fd = (int)fd_value;
    return status;
}

static int socket_option(int fd, int option)
{
    int value;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

/* The number may have been given to another file of the program since; nothing is read from that.
 */
static coh_status check_socket(int fd)
{
    if (fcntl(fd, F_GETFD) < 0)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "coh_init: descriptor %d, which cohort run gave this rank, is closed: it "
                         "was used up by an earlier coh_init, or closed by the program or the one "
                         "that started it. One process of each rank may call coh_init, once",
                         fd);
    if (socket_option(fd, SO_DOMAIN) != AF_UNIX || socket_option(fd, SO_TYPE) != SOCK_SEQPACKET)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: COHORT_JOB_FD is %d, but descriptor %d is not the socket of "
                         "cohort run: an earlier coh_init used that up, or the program closed it, "
                         "and the number is another file's now",
                         fd, fd);
    return COH_OK;
}

/*
 * The owner is kept by the kernel with the open socket, so all processes that share it see who
 * read, as long as that one lives.
 */
static coh_status fail_used_up(int fd, int rank)
{
    char reader[64] = "another, which has ended";
    int owner = fcntl(fd, F_GETOWN);
    if (owner > 0)
        snprintf(reader, sizeof reader, "process %d", owner);
    return cohi_fail(COH_NOT_AVAILABLE,
                     "coh_init: the place of rank %d was already used by %s; one process of each "
                     "rank may call coh_init",
                     rank, reader);
}

/* Looks at the message and leaves it there, so that a refusal uses nothing up. */
static coh_status peek_message(int fd, int rank, struct message *message)
{
    ssize_t got;
    do {
        got = recv(fd, message, sizeof *message, MSG_PEEK | MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno == EAGAIN))
        return fail_used_up(fd, rank);
    if (got < 0)
        return cohi_fail_os(errno, "coh_init: cannot read descriptor %d of cohort run", fd);
    if ((size_t)got < sizeof *message || message->magic != LAUNCH_MAGIC)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: what waits in descriptor %d (COHORT_JOB_FD) is not the "
                         "description of a job",
                         fd);
    return COH_OK;
}

static coh_status check_message(const struct message *message, int rank, int size)
{
    const char *version = coh_version_string();
    if (strncmp(message->version, version, sizeof message->version) != 0)
        return cohi_fail(COH_MISMATCH,
                         "coh_init: cohort run is of version %.16s, this library of version %s; "
                         "use both of one version",
                         message->version, version);
    if (message->rank != rank || message->size != size)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: the environment says rank %d of %d (COHORT_RANK, COHORT_SIZE), "
                         "but cohort run started this process as rank %d of %d",
                         rank, size, message->rank, message->size);
    return COH_OK;
}

/* The reading that counts: of processes that race for it, the kernel lets one win. */
static coh_status take_message(int fd, int rank, struct message *message, int fds[FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FDS)];
        struct cmsghdr align;
    } room;
    struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = room.bytes,
                            .msg_controllen = sizeof room.bytes};
    ssize_t got;
    do {
        got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0)
        return fail_used_up(fd, rank);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(rights), rights->cmsg_len - CMSG_LEN(0));
    return COH_OK;
}

static coh_status open_board(int board_fd, int rank, cohi_board *board)
{
    *board = (cohi_board){.fd = -1};
    if (board_fd < 0)
        return cohi_fail(COH_LIMIT,
                         "coh_init: the job's board did not reach rank %d: no descriptor was free "
                         "to receive it (see ulimit -n)",
                         rank);
    int error = cohi_os_fd_above_stdio(&board_fd);
    if (error) {
        cohi_os_close(board_fd);
        return cohi_fail_os(error, "coh_init: cannot keep the descriptor of the job's board");
    }
    coh_status status = cohi_board_open(board_fd, board);
    if (status != COH_OK)
        cohi_os_close(board_fd);
    return status;
}

/* Without it the leaders of other hosts would wait in vain. */
static coh_status keep_listeners(const struct message *message, cohi_listeners *listeners)
{
    int error = 0;
    if ((int)message->listens > listeners->count)
        return cohi_link_fail_descriptors("the socket for other hosts did not reach rank 0");
    for (int i = 0; i < listeners->count && !error; i++)
        error = cohi_os_fd_above_stdio(&listeners->fds[i]);
    return error ? cohi_fail_os(error, "coh_init: cannot keep the socket for other hosts") : COH_OK;
}

/* Those that came behind the board. */
static cohi_listeners listeners_of(const int fds[FDS])
{
    cohi_listeners listeners = {.count = 0};
    for (int i = 1; i < FDS && fds[i] >= 0; i++)
        listeners.fds[listeners.count++] = fds[i];
    return listeners;
}

coh_status cohi_launch_accept(const cohi_config *config, cohi_launch *launch)
{
    int rank, size, fd, fds[FDS];
    for (int i = 0; i < FDS; i++)
        fds[i] = -1;
    struct message message;
    coh_status status = parse_environment(config, &rank, &size, &fd);
    if (status == COH_OK)
        status = check_socket(fd);
    if (status == COH_OK)
        status = peek_message(fd, rank, &message);
    if (status == COH_OK)
        status = check_message(&message, rank, size);
    if (status == COH_OK)
        status = take_message(fd, rank, &message, fds);
    if (status != COH_OK)
        return status;

    cohi_board board;
    cohi_listeners listeners = listeners_of(fds);
    (void)fcntl(fd, F_SETOWN, getpid());
    cohi_os_close(fd);
    status = open_board(fds[0], rank, &board);
    if (status != COH_OK) {
        cohi_listeners_close(&listeners);
        return status;
    }
    *launch = (cohi_launch){
        .id = message.id, .rank = rank, .size = size, .board = board, .listeners = listeners};
    status = keep_listeners(&message, &launch->listeners);
    if (status != COH_OK) {
        cohi_listeners_close(&launch->listeners);
        cohi_board_close(&launch->board);
    }
    return status;
}
