/*
 * seal.h - records that are sealed by AES-256-GCM, one sequence for each direction of a connection.
 *
 * A record is a head of four bytes (its kind, and how many bytes follow), as many bytes, and a tag of
 * sixteen that covers head and bytes. The nonce is the number of the record, counted from 0, and does
 * not travel: a record that was changed, repeated, moved, or taken out does not open, and neither does
 * any behind it. After so many records, or bytes, the key is replaced by one that is derived from
 * it; both sides count alike, so nothing is sent for it, and what was sealed before cannot be read by
 * who learns a key later.
 *
 * The functions allocate nothing for a record. A seal is used by one thread at a time.
 */
#ifndef COHI_SECURE_SEAL_H
#define COHI_SECURE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iovec;

enum {
    COHI_SEAL_SECRET_BYTES = 32,
    COHI_SEAL_HEAD_BYTES = 4,
    COHI_SEAL_TAG_BYTES = 16,
    COHI_SEAL_EXTRA_BYTES = COHI_SEAL_HEAD_BYTES + COHI_SEAL_TAG_BYTES,
    COHI_SEAL_RECORD_BYTES = 64 << 10, /* the longest record */
    COHI_SEAL_PLAIN_BYTES = COHI_SEAL_RECORD_BYTES - COHI_SEAL_EXTRA_BYTES
};

/* What is in a record. The users of a connection agree on what follows from it. */
typedef enum cohi_seal_kind {
    COHI_SEAL_DATA = 1,
    COHI_SEAL_GOODBYE = 2 /* why the connection ends, as text */
} cohi_seal_kind;

/* When the key is replaced: before the record that would exceed one of them. */
typedef struct cohi_seal_limits {
    uint64_t records;
    uint64_t bytes;
} cohi_seal_limits;

/* 2^24 records, 256 GiB. */
extern const cohi_seal_limits cohi_seal_limits_usual;

typedef struct cohi_seal cohi_seal;

typedef enum cohi_seal_use { COHI_SEAL_OPENS = 0, COHI_SEAL_SEALS = 1 } cohi_seal_use;

/* One direction, by a secret that both sides have for it alone; cohi_tls_available has said COH_OK.
 * NULL: no memory. */
cohi_seal *cohi_seal_new(const unsigned char secret[COHI_SEAL_SECRET_BYTES], cohi_seal_use use,
                         const cohi_seal_limits *limits);

/* Forgets its keys. NULL is allowed. */
void cohi_seal_end(cohi_seal *seal);

/* Seals `parts`, COHI_SEAL_PLAIN_BYTES of them at most, into `record`, which has room for
 * COHI_SEAL_EXTRA_BYTES more. Returns the bytes of the record; 0: OpenSSL failed. */
size_t cohi_seal_close(cohi_seal *seal, cohi_seal_kind kind, const struct iovec *parts, int count,
                       unsigned char *record);

/* What the head of a record announces: the bytes of all of it; 0: no record begins like that. */
size_t cohi_seal_announced(const unsigned char head[COHI_SEAL_HEAD_BYTES], cohi_seal_kind *kind);

/* Opens a whole record of so many bytes into `plain`, which may be where its own bytes are, behind
 * the head. False: it is not the next record, and what was written to `plain` are zeros. Nothing can be opened after
 * that. */
bool cohi_seal_open(cohi_seal *seal, const unsigned char *record, size_t bytes,
                    unsigned char *plain);

/* How many records it has sealed or opened. */
uint64_t cohi_seal_count(const cohi_seal *seal);

/* Both directions of a connection; NULL: it is in the clear. */
typedef struct cohi_seals {
    cohi_seal *out, *in;
} cohi_seals;

/* Both are NULL then. */
void cohi_seals_end(cohi_seals *seals);

#endif
