/* What a peer says while ranks find each other: ids with the root's addresses, hellos and frames on a
 * link, cards, the hosts, the board: docs/faults.md F19 and F23. */
#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/root.h"
#include "bootstrap/tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void read_id(const uint8_t *data, size_t size)
{
    coh_unique_id id = {{0}};
    cohi_id_layout layout;
    memcpy(id.bytes, data, size < sizeof id ? size : sizeof id);
    cohi_root root;
    (void)cohi_unique_id_read(&id, &layout);
    memcpy(&layout, id.bytes, sizeof layout);
    cohi_root_read(&layout, &root);
    if (root.count < 0 || root.count > COHI_ROOT_ADDRESSES)
        abort();
}

enum { RANKS = 5 };

/* Frames as they come, cut short where they end. */
static void read_frames(const uint8_t *data, size_t size)
{
    int ends[2], fds[COHI_CARD_FDS], count = 0;
    cohi_incoming incoming = {.payload = NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    if (write(ends[0], data, size) < 0)
        abort();
    close(ends[0]);
    cohi_connection link = {.fd = ends[1]};
    while (cohi_link_receive(&link, COHI_LINK_TEXT_BYTES, &incoming, fds, COHI_CARD_FDS, &count,
                             cohi_now_ns() + COHI_NS_PER_S)
           == 0)
        if (strlen((const char *)incoming.payload) > incoming.frame.bytes)
            abort();
    free(incoming.payload);
    close(ends[1]);
}

static void read_hello(const uint8_t *data, size_t size)
{
    cohi_hello hello;
    memset(&hello, 0, sizeof hello);
    memcpy(&hello, data, size < sizeof hello ? size : sizeof hello);
    if (cohi_link_check_hello(&hello) == 0 && strlen(hello.host) >= sizeof hello.host)
        abort();
}

static void read_cards(const uint8_t *data, size_t size)
{
    cohi_card *cards = calloc(RANKS, sizeof *cards);
    unsigned char seen[RANKS] = {0};
    if (!cards)
        abort();
    (void)cohi_card_read(data, size, COHI_CARD_INTRO, RANKS, cards, seen);
    (void)cohi_card_read(data, size, COHI_CARD_KEYS, RANKS, cards, seen);
    free(cards);
}

/* The hosts, as a leader is told them. */
static void read_welcome(const uint8_t *data, size_t size)
{
    int32_t host_of[RANKS];
    char names[RANKS][COHI_HOST_NAME_BYTES];
    uint8_t *copy = malloc(size + 1);
    struct cohi_group group = {.size = RANKS, .host_of = host_of, .names = names};
    if (!copy)
        abort();
    memcpy(copy, data, size);
    group.incoming = (cohi_incoming){.frame = {.bytes = (uint32_t)size}, .payload = copy};
    if (cohi_welcome_read(&group))
        for (int rank = 0; rank < RANKS; rank++)
            if (host_of[rank] < 0 || host_of[rank] >= group.hosts)
                abort();
    free(copy);
}

/* A descriptor that should be a board and holds something else. */
static void read_board(const uint8_t *data, size_t size)
{
    enum { BYTES = 8192 };
    cohi_board board;
    int fd;
    if (cohi_os_shared_create("fuzz", BYTES, &fd) != 0)
        abort();
    if (pwrite(fd, data, size < BYTES ? size : BYTES, 0) < 0)
        abort();
    if (cohi_board_view(fd, &board) == COH_OK)
        cohi_board_close(&board);
    else
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_id(data, size);
    read_hello(data, size);
    read_frames(data, size);
    read_cards(data, size);
    read_welcome(data, size);
    read_board(data, size);
    return 0;
}
