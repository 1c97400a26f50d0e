/* hex.h - bytes as hexadecimal digits, for ids and secrets that travel as text. */
#ifndef COHI_RENDEZVOUS_HEX_H
#define COHI_RENDEZVOUS_HEX_H

#include <cohort.h>
#include <stdbool.h>

enum { COHI_ID_TEXT_BYTES = 2 * sizeof(coh_unique_id) + 1 };

/* Writes 2 * count digits and a NUL. */
void cohi_hex_write(const unsigned char *bytes, size_t count, char *text);

/* Reads exactly 2 * count digits; false for anything else. */
bool cohi_hex_read(const char *text, unsigned char *bytes, size_t count);

#endif
