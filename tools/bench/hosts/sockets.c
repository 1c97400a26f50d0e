/* sockets.c RANK ADDRESS PORT - the rows of scripts/bench-hosts by a bare TCP connection, which both sides poll. A put is the bytes
 * and an answer of one byte; all_reduce sends and receives at once, and adds. */
#define _GNU_SOURCE
#include "rows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int rank, link_fd;
static float *memory, *result;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* How many bytes moved; 0: none at the moment. */
static size_t moved(ssize_t count)
{
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        die("the connection");
    return count > 0 ? (size_t)count : 0;
}

static void send_all(const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;)
        done += moved(send(link_fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL));
}

static void receive_all(void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t got = recv(link_fd, (char *)bytes + done, count - done, 0);
        if (got == 0)
            die("the other side is gone");
        done += moved(got);
    }
}

static void message(size_t bytes)
{
    if (rank == 0)
        send_all(memory, bytes);
    receive_all(memory, bytes);
    if (rank == 1)
        send_all(memory, bytes);
}

static void put(size_t bytes)
{
    char answer = 0;
    if (rank == 0) {
        send_all(memory, bytes);
        receive_all(&answer, 1);
    } else {
        receive_all(memory, bytes);
        send_all(&answer, 1);
    }
}

static void all_reduce(size_t bytes)
{
    size_t sent = 0, got = 0;
    while (sent < bytes || got < bytes) {
        if (sent < bytes)
            sent += moved(send(link_fd, (char *)memory + sent, bytes - sent, MSG_NOSIGNAL));
        if (got < bytes)
            got += moved(recv(link_fd, (char *)result + got, bytes - got, 0));
    }
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        result[i] += memory[i];
}

/* Where the system's congestion control paces, all that is long takes up to twice as long. */
static int unpaced_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    return fd;
}

static int call(struct sockaddr_in *where)
{
    for (int tries = 0; tries < 500; tries++, usleep(10000)) {
        int fd = unpaced_socket();
        if (connect(fd, (struct sockaddr *)where, sizeof *where) == 0)
            return fd;
        close(fd);
    }
    die("connect");
    return -1;
}

static int answer(struct sockaddr_in *where)
{
    int on = 1, fd = unpaced_socket();
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)where, sizeof *where) != 0 || listen(fd, 1) != 0)
        die("listen");
    return accept(fd, NULL, NULL);
}

int main(int argc, char **argv)
{
    struct sockaddr_in where = {.sin_family = AF_INET};
    int on = 1;
    if (argc < 4)
        return 2;
    rank = atoi(argv[1]);
    inet_pton(AF_INET, argv[2], &where.sin_addr);
    where.sin_port = htons((uint16_t)atoi(argv[3]));
    link_fd = rank == 0 ? answer(&where) : call(&where);
    setsockopt(link_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(link_fd, F_SETFL, O_NONBLOCK);
    memory = calloc(1, ROWS_BYTES_MAX);
    result = calloc(1, ROWS_BYTES_MAX);
    rows_measure("message", message, 2, rank);
    rows_measure("put", put, 1, rank);
    rows_measure("all_reduce", all_reduce, 1, rank);
    free(memory);
    free(result);
    return 0;
}
