#include "bootstrap/link.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#define LINK_MAGIC UINT32_C(0x6c686f43)

cohi_link_message cohi_link_make(cohi_link_kind kind, int rank, int size)
{
    cohi_link_message message = {.magic = LINK_MAGIC, .kind = kind, .rank = rank, .size = size};
    snprintf(message.version, sizeof message.version, "%s", coh_version_string());
    return message;
}

int cohi_link_check(cohi_link_message *message)
{
    message->version[sizeof message->version - 1] = '\0';
    if (message->kind == COHI_LINK_FAILED || message->kind == COHI_LINK_WAIT)
        message->text[sizeof message->text - 1] = '\0';
    return message->magic == LINK_MAGIC ? 0 : EPROTO;
}

coh_status cohi_link_fail_descriptors(const char *what)
{
    struct rlimit limit = {.rlim_cur = 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return cohi_fail(COH_LIMIT,
                     "coh_init: %s: this process may have %llu open descriptors (RLIMIT_NOFILE, "
                     "ulimit -n), which is not enough",
                     what, (unsigned long long)limit.rlim_cur);
}

int cohi_link_send(int link, const cohi_link_message *message, const int *fds, int fd_count,
                   uint64_t deadline_ns)
{
    return cohi_os_send(link, message, sizeof *message, fds, fd_count, deadline_ns);
}

int cohi_link_receive(int link, cohi_link_message *message, int *fds, int fd_room, int *fd_count,
                      uint64_t deadline_ns)
{
    int error =
        cohi_os_receive(link, message, sizeof *message, fds, fd_room, fd_count, deadline_ns);
    return error ? error : cohi_link_check(message);
}

int cohi_link_send_card(int link, const cohi_card *card, uint64_t deadline_ns)
{
    cohi_link_message message = cohi_link_make(COHI_LINK_CARD, card->rank, card->size);
    int fds[COHI_CARD_FDS], count = 0;
    message.card = *card;
    for (int i = 0; i < COHI_CARD_FDS; i++) {
        if (card->fds[i] < 0)
            continue;
        message.fd_set |= 1u << i;
        fds[count++] = card->fds[i];
    }
    return cohi_link_send(link, &message, fds, count, deadline_ns);
}

int cohi_link_take_card(cohi_link_message *message, const int *fds, int fd_count)
{
    int taken = 0;
    for (int i = 0; i < COHI_CARD_FDS; i++) {
        int expected = (message->fd_set >> i) & 1;
        message->card.fds[i] = expected && taken < fd_count ? fds[taken++] : -1;
        if (expected && message->card.fds[i] < 0) {
            for (int j = 0; j < taken; j++)
                cohi_os_close(fds[j]);
            return EMFILE;
        }
    }
    return 0;
}
