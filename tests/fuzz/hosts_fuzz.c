/* What `cohort run` reads about hosts, from users and other launchers, and what it and its agents read of
 * each other. The first byte chooses. */
#include "hosts/frame.h"
#include "hosts/hosts.h"
#include "hosts/order.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096, RANKS = 8 };

/* Every name must be one that no shell takes for an option or takes apart. */
static void check_hosts(coh_status status, cohi_hosts *hosts)
{
    if (status != COH_OK && hosts->list)
        abort();
    for (int i = 0; i < hosts->count; i++) {
        const cohi_host_entry *host = &hosts->list[i];
        if (host->slots < 1 || *host->name == '-' || *host->name == '\0'
            || strpbrk(host->name, " '\"$;&|<>\n\\`"))
            abort();
    }
    if (hosts->count > 0 && cohi_hosts_place(hosts, RANKS, 1) != COH_OK)
        abort();
    int ranks = 0;
    for (int i = 0; i < hosts->count; i++) {
        if (hosts->list[i].first != ranks)
            abort();
        ranks += hosts->list[i].ranks;
    }
    if (hosts->count > 0 && ranks != RANKS)
        abort();
    cohi_hosts_free(hosts);
}

static void read_list(const char *text, size_t length)
{
    cohi_hosts hosts;
    (void)length;
    coh_status status = cohi_hosts_parse_list("fuzz", text, &hosts);
    check_hosts(status, &hosts);
}

static void read_file(const char *text, size_t length)
{
    cohi_hosts hosts;
    coh_status status = cohi_hosts_parse_file("fuzz", text, length, &hosts);
    check_hosts(status, &hosts);
}

static void read_slurm(const char *text, size_t length)
{
    cohi_hosts hosts;
    size_t nodes = strlen(text);
    coh_status status =
        cohi_hosts_parse_slurm(text, nodes < length ? text + nodes + 1 : NULL, &hosts);
    check_hosts(status, &hosts);
}

static void read_order(const char *text, size_t length)
{
    cohi_order order;
    if (cohi_order_read(text, length, &order) != COH_OK)
        return;
    if (cohi_order_first(&order) < 0 || cohi_order_count(&order) < 1
        || cohi_order_first(&order) + cohi_order_count(&order) > order.size || !order.command[0])
        abort();
    cohi_order_free(&order);
}

static void read_frames(const char *text, size_t length)
{
    char version[32], words[64];
    cohi_frame frame;
    size_t at = cohi_frame_find_magic(text, length, version, sizeof version);
    for (ptrdiff_t took; (took = cohi_frame_read(text + at, length - at, RANKS, &frame)) > 0;) {
        if (frame.rank < -1 || frame.rank >= RANKS || frame.data + frame.length > text + length)
            abort();
        cohi_frame_text(&frame, 0, words, sizeof words);
        at += (size_t)took;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *, size_t) = {read_list, read_file, read_slurm,
                                                            read_order, read_frames};
    size_t count = sizeof readers / sizeof *readers;
    if (size == 0 || size > LONGEST)
        return 0;
    char *text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    readers[data[0] % count](text, size - 1);
    free(text);
    return 0;
}
