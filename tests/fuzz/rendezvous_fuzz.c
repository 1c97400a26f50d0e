/* What other launchers say of a job: lines of PMI-1 in pieces, the file of mlx.launch, Slurm's lists of hosts, an
 * id as digits. The first byte chooses. */
#include "rendezvous/hex.h"
#include "rendezvous/mlx_hosts.h"
#include "rendezvous/pmi_wire.h"
#include "rendezvous/slurm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A value is a part of its line, and fits. */
static void read_fields(const char *line)
{
    static const char *const keys[] = {"cmd", "rc", "value", "kvsname", "vallen_max"};
    char value[64];
    long number = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        memset(value, 'x', sizeof value);
        if (cohi_pmi_field(line, keys[i], value, sizeof value)
            && (!memchr(value, '\0', sizeof value) || !strstr(line, value)))
            abort();
        if (cohi_pmi_number(line, keys[i], &number) && labs(number) > 999999999)
            abort();
    }
}

/* The second byte is the size of the pieces in which the rest comes. */
static void read_lines(const char *bytes, size_t length)
{
    static char line[COHI_PMI_LINE_BYTES];
    cohi_pmi_reader *reader = calloc(1, sizeof *reader);
    size_t piece = length > 0 ? (unsigned char)bytes[0] + 1u : 1;
    cohi_pmi_read read = COHI_PMI_PARTIAL;
    for (size_t at = 1; at < length && read != COHI_PMI_STRANGE; at += piece) {
        size_t room, count = length - at < piece ? length - at : piece;
        char *to = cohi_pmi_room(reader, &room);
        if (room == 0)
            abort(); /* nobody could go on */
        count = count < room ? count : room;
        memcpy(to, bytes + at, count);
        reader->got += count;
        while ((read = cohi_pmi_take_line(reader, line)) == COHI_PMI_LINE)
            read_fields(line);
    }
    free(reader);
}

static void read_hosts(const char *bytes, size_t length)
{
    cohi_mlx_hosts hosts;
    (void)length;
    if (cohi_mlx_hosts_parse(bytes, &hosts)
        && (hosts.ranks < 1 || hosts.port < 1 || hosts.port > UINT16_MAX || !*hosts.address))
        abort();
}

static void read_nodes(const char *bytes, size_t length)
{
    char name[32];
    (void)length;
    memset(name, 'x', sizeof name);
    if (cohi_slurm_first_node(bytes, name, sizeof name)
        && (!memchr(name, '\0', sizeof name) || strpbrk(name, ",[")))
        abort();
}

static void read_digits(const char *bytes, size_t length)
{
    unsigned char read[16];
    char text[2 * sizeof read + 1];
    if (!cohi_hex_read(bytes, read, sizeof read))
        return;
    cohi_hex_write(read, sizeof read, text);
    if (length < sizeof text - 1 || strlen(text) != sizeof text - 1)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const char *, size_t) = {read_lines, read_hosts, read_nodes,
                                                            read_digits};
    if (size == 0)
        return 0;
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    readers[data[0] % 4](text, size - 1);
    free(text);
    return 0;
}
