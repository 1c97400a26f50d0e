/* What a peer says while ranks find each other: ids, messages on a link, the launcher's
 * descriptor: docs/faults.md F19 and F23. */
#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void read_id(const uint8_t *data, size_t size)
{
    coh_unique_id id = {{0}};
    cohi_id_layout layout;
    memcpy(id.bytes, data, size < sizeof id ? size : sizeof id);
    (void)cohi_unique_id_read(&id, &layout);
}

/* The bytes come as they are, cut short where they end. */
static void read_message(const uint8_t *data, size_t size)
{
    int ends[2], fds[COHI_CARD_FDS], count = 0;
    cohi_link_message message;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    if (write(ends[0], data, size) < 0)
        abort();
    close(ends[0]);
    int error = cohi_link_receive(ends[1], &message, fds, COHI_CARD_FDS, &count,
                                  cohi_now_ns() + COHI_NS_PER_S);
    if (!error && message.kind == COHI_LINK_FAILED && strlen(message.text) >= sizeof message.text)
        abort();
    if (!error)
        (void)cohi_link_take_card(&message, fds, count);
    close(ends[1]);
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
    read_message(data, size);
    read_board(data, size);
    return 0;
}
