#include "bootstrap/card.h"

#include <string.h>

/* A field of a card, as it travels: its length without the zeros at its end, and that much of it.
 * Fields of more than one byte have the byte order of the host. */
struct field {
    uint16_t offset, bytes;
    unsigned parts; /* a bit each */
};

enum { INTRO = 1 << COHI_CARD_INTRO, KEYS = 1 << COHI_CARD_KEYS, PROBE = 1 << COHI_CARD_PROBE };

#define FIELD(name, of)                                             \
    {                                                               \
        offsetof(cohi_card, name), sizeof((cohi_card *)0)->name, of \
    }

static const struct field fields[] = {
    FIELD(size, INTRO),    FIELD(pid, INTRO),
    FIELD(checks, INTRO),  FIELD(kernel, INTRO),
    FIELD(host, INTRO),    FIELD(prepared, INTRO),
    FIELD(cores, INTRO),   FIELD(heap_bytes, INTRO | KEYS),
    FIELD(address, INTRO), FIELD(engine, INTRO | PROBE),
    FIELD(tuning, INTRO),  FIELD(control_key, KEYS),
    FIELD(heap_key, KEYS),
};

enum { FIELDS = sizeof fields / sizeof *fields };

/* In front of the fields. */
struct head {
    int32_t rank;
    uint32_t part;
};

size_t cohi_card_most(void)
{
    size_t most = sizeof(struct head);
    for (int i = 0; i < FIELDS; i++)
        most += sizeof(uint16_t) + fields[i].bytes;
    return most;
}

static uint16_t used_of(const unsigned char *field, uint16_t bytes)
{
    while (bytes > 0 && field[bytes - 1] == 0)
        bytes--;
    return bytes;
}

size_t cohi_card_write(const cohi_card *card, cohi_card_part part, unsigned char *bytes)
{
    struct head head = {.rank = card->rank, .part = part};
    unsigned char *at = bytes;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (int i = 0; i < FIELDS; i++) {
        const unsigned char *field = (const unsigned char *)card + fields[i].offset;
        uint16_t used = used_of(field, fields[i].bytes);
        if (!(fields[i].parts >> part & 1))
            continue;
        memcpy(at, &used, sizeof used);
        memcpy(at + sizeof used, field, used);
        at += sizeof used + used;
    }
    return (size_t)(at - bytes);
}

/* Takes `bytes` out of what is left; NULL where that is less. */
static const unsigned char *take(const unsigned char **at, size_t *left, size_t bytes)
{
    const unsigned char *taken = *at;
    if (*left < bytes)
        return NULL;
    *at += bytes;
    *left -= bytes;
    return taken;
}

static bool read_fields(const unsigned char **at, size_t *left, unsigned part, cohi_card *card)
{
    for (int i = 0; i < FIELDS; i++) {
        unsigned char *field = (unsigned char *)card + fields[i].offset;
        uint16_t used;
        if (!(fields[i].parts >> part & 1))
            continue;
        const unsigned char *length = take(at, left, sizeof used);
        if (!length)
            return false;
        memcpy(&used, length, sizeof used);
        const unsigned char *value = used <= fields[i].bytes ? take(at, left, used) : NULL;
        if (!value)
            return false;
        memset(field, 0, fields[i].bytes);
        memcpy(field, value, used);
    }
    return true;
}

bool cohi_card_read(const unsigned char *bytes, size_t count, cohi_card_part part, int size,
                    cohi_card *cards, unsigned char *seen)
{
    while (count > 0) {
        struct head head;
        const unsigned char *front = take(&bytes, &count, sizeof head);
        if (!front)
            return false;
        memcpy(&head, front, sizeof head);
        if (head.part != (uint32_t)part || head.rank < 0 || head.rank >= size || seen[head.rank])
            return false;
        seen[head.rank] = 1;
        cards[head.rank].rank = head.rank;
        if (!read_fields(&bytes, &count, part, &cards[head.rank]))
            return false;
        cards[head.rank].engine[COHI_ENGINE_NAME_BYTES - 1] = '\0';
    }
    return true;
}
