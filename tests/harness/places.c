/*
 * places.c - ranks of an MPI job that are children of the harness.
 *
 * MPI's library is used below a launcher of its own, but the harness must start, watch, stop and kill the
 * ranks itself, and mpirun would end them all with the first that dies. So mpirun starts, in
 * the place of each rank, this program as a stub: it sends its environment and the descriptor of its
 * launcher (PMI_FD) to the harness, and sleeps. The rank that the harness forks takes both over,
 * and is the one that MPI_Init finds.
 */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PLACE_BYTES = 64 << 10 };

static const char socket_variable[] = "COHORT_TEST_PLACES";
static const double START_S = 60;
static const double END_S = 3;

/* What a stub told. */
static struct place {
    int stub; /* the connection to it, by which it knows that the run is over; -1: none */
    int pmi;  /* the launcher's descriptor; -1: none */
    char environment[PLACE_BYTES];
} places[TEST_RANKS_MAX];

static int place_count;
static pid_t launcher;

bool test_needs_places(const char *engine)
{
    return strncmp(engine, "mpi:", 4) == 0;
}

static bool is_mpich(const char *engine)
{
    return strcmp(engine, "mpi:mpich") == 0;
}

const char *test_places_launcher(const char *engine)
{
    return is_mpich(engine) ? "mpiexec.mpich" : "mpirun.openmpi";
}

/* ---- the stub ---- */

static bool is_launchers(const char *variable)
{
    static const char *const prefixes[] = {"OMPI_", "PMIX_", "PMI_", "ORTE_", "MPI_", "HYD"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static size_t gather_environment(char *text, size_t room)
{
    size_t used = 0;
    for (char **variable = environ; *variable; variable++) {
        size_t length = strlen(*variable) + 1;
        if (!is_launchers(*variable) || used + length + 1 > room)
            continue;
        memcpy(text + used, *variable, length);
        used += length;
    }
    text[used++] = '\0';
    return used;
}

static void address_of(const char *name, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "%s", name);
}

static ssize_t send_place(int fd)
{
    static char text[PLACE_BYTES];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } room = {.bytes = {0}};
    const char *pmi = getenv("PMI_FD");
    int passed = pmi ? atoi(pmi) : -1;
    struct iovec part = {.iov_base = text, .iov_len = gather_environment(text, sizeof text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof passed);
        memcpy(CMSG_DATA(rights), &passed, sizeof passed);
    }
    return sendmsg(fd, &message, 0);
}

void test_places_stub(void)
{
    const char *name = getenv(socket_variable);
    struct sockaddr_un address;
    char ignored;
    if (!name)
        return;
    address_of(name, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || send_place(fd) < 0)
        _exit(1);
    while (read(fd, &ignored, 1) < 0 && errno == EINTR)
        continue;
    _exit(0);
}

/* ---- the harness ---- */

static void start_launcher(const char *engine, const char *name, int ranks)
{
    char count[16], self[4096] = "";
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        _exit(1);
    snprintf(count, sizeof count, "%d", ranks);
    setenv(socket_variable, name, 1);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    if (!getenv("COHORT_TEST_LAUNCHER_SPEAKS")) {
        dup2(null, 1);
        dup2(null, 2);
    }
    const char *program = test_places_launcher(engine);
    if (is_mpich(engine))
        execlp(program, program, "-n", count, self, (char *)NULL);
    else
        execlp(program, program, "--oversubscribe", "-n", count, self, (char *)NULL);
    _exit(127);
}

static int number_in(const char *environment, const char *name)
{
    size_t length = strlen(name);
    for (const char *variable = environment; *variable; variable += strlen(variable) + 1)
        if (strncmp(variable, name, length) == 0 && variable[length] == '=')
            return atoi(variable + length + 1);
    return -1;
}

/* Takes what one stub tells; its rank, or -1. */
static int receive_place(int fd)
{
    static char text[PLACE_BYTES];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } room;
    struct iovec part = {.iov_base = text, .iov_len = sizeof text};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof room.bytes};
    int pmi = -1;
    if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_type == SCM_RIGHTS)
        memcpy(&pmi, CMSG_DATA(rights), sizeof pmi);
    int rank = number_in(text, "OMPI_COMM_WORLD_RANK");
    if (rank < 0)
        rank = number_in(text, "PMI_RANK");
    if (rank < 0 || rank >= place_count || places[rank].stub >= 0)
        return -1;
    memcpy(places[rank].environment, text, sizeof text);
    places[rank].pmi = pmi;
    places[rank].stub = fd;
    return rank;
}

static bool await_stubs(int listener)
{
    double until = test_now() + START_S;
    for (int came = 0; came < place_count;) {
        struct pollfd source = {.fd = listener, .events = POLLIN};
        if (poll(&source, 1, 50) > 0) {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd < 0 || receive_place(fd) < 0)
                return false;
            came++;
        } else if (test_now() > until || waitpid(launcher, NULL, WNOHANG) == launcher) {
            return false;
        }
    }
    return true;
}

bool test_places_open(const char *engine, int ranks)
{
    static unsigned runs;
    struct sockaddr_un address;
    char name[64];
    snprintf(name, sizeof name, "test-places-%d-%u", (int)getpid(), runs++);
    address_of(name, &address);
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    place_count = ranks;
    for (int i = 0; i < ranks; i++)
        places[i].stub = places[i].pmi = -1;
    bool ready = bind(listener, (struct sockaddr *)&address, sizeof address) == 0
                 && listen(listener, TEST_RANKS_MAX) == 0;
    launcher = ready ? fork() : -1;
    if (launcher == 0)
        start_launcher(engine, name, ranks);
    ready = launcher > 0 && await_stubs(listener);
    close(listener);
    if (!ready)
        test_fail("%s did not start %d processes", test_places_launcher(engine), ranks);
    return ready;
}

void test_places_take(int rank)
{
    struct place *place = &places[rank];
    char number[16];
    for (char *variable = place->environment; *variable;) {
        size_t length = strlen(variable) + 1;
        putenv(variable);
        variable += length;
    }
    if (place->pmi < 0)
        return;
    snprintf(number, sizeof number, "%d", place->pmi);
    setenv("PMI_FD", number, 1);
    for (int i = 0; i < place_count; i++)
        if (i != rank && places[i].pmi >= 0)
            close(places[i].pmi);
}

static void end_launcher(void)
{
    double until = test_now() + END_S;
    while (waitpid(launcher, NULL, WNOHANG) == 0) {
        if (test_now() > until)
            kill(launcher, SIGKILL);
        usleep(2000);
    }
    launcher = 0;
}

void test_places_close(void)
{
    for (int i = 0; i < place_count; i++) {
        if (places[i].stub >= 0)
            close(places[i].stub);
        if (places[i].pmi >= 0)
            close(places[i].pmi);
    }
    place_count = 0;
    if (launcher > 0)
        end_launcher();
    while (waitpid(-1, NULL, WNOHANG) > 0) /* stubs whose launcher was killed */
        continue;
}
