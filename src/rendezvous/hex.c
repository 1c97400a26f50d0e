#include "rendezvous/hex.h"

static const char digits[] = "0123456789abcdef";

void cohi_hex_write(const unsigned char *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

static int value_of(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

bool cohi_hex_read(const char *text, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++, text += 2) {
        int high = value_of(text[0]), low = high < 0 ? -1 : value_of(text[1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return *text == '\0';
}
