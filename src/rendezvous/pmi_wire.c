#include "rendezvous/pmi_wire.h"

#include <stdlib.h>
#include <string.h>

char *cohi_pmi_room(cohi_pmi_reader *reader, size_t *room)
{
    *room = sizeof reader->bytes - reader->got;
    return reader->bytes + reader->got;
}

cohi_pmi_read cohi_pmi_take_line(cohi_pmi_reader *reader, char line[COHI_PMI_LINE_BYTES])
{
    const char *end = memchr(reader->bytes, '\n', reader->got);
    size_t length = end ? (size_t)(end - reader->bytes) : reader->got;
    if (memchr(reader->bytes, '\0', length) || (!end && length == sizeof reader->bytes))
        return COHI_PMI_STRANGE;
    if (!end)
        return COHI_PMI_PARTIAL;
    memcpy(line, reader->bytes, length);
    line[length] = '\0';
    reader->got -= length + 1;
    memmove(reader->bytes, end + 1, reader->got);
    return COHI_PMI_LINE;
}

bool cohi_pmi_field(const char *line, const char *key, char *value, size_t room)
{
    size_t key_length = strlen(key);
    for (const char *word = line; *word;) {
        size_t length = strcspn(word, " ");
        if (length > key_length && word[key_length] == '=' && strncmp(word, key, key_length) == 0) {
            size_t count = length - key_length - 1;
            if (count >= room)
                return false;
            memcpy(value, word + key_length + 1, count);
            value[count] = '\0';
            return true;
        }
        word += length;
        word += strspn(word, " ");
    }
    return false;
}

bool cohi_pmi_number(const char *line, const char *key, long *value)
{
    char text[16];
    if (!cohi_pmi_field(line, key, text, sizeof text))
        return false;
    const char *number = text + (*text == '-');
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 9 || number[digits])
        return false;
    *value = strtol(text, NULL, 10);
    return true;
}
