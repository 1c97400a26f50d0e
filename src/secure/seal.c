#include "secure/seal.h"

#include "secure/openssl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { NONCE_BYTES = 12 };

const cohi_seal_limits cohi_seal_limits_usual = {.records = UINT64_C(1) << 24,
                                                 .bytes = UINT64_C(256) << 30};

struct cohi_seal {
    struct evp_cipher_ctx_st *cipher;
    cohi_seal_use use;
    bool broken;          /* a record did not open */
    uint64_t number;      /* of the next record */
    uint64_t key_records; /* by the present key */
    uint64_t key_bytes;
    cohi_seal_limits limits;
    unsigned char secret[COHI_SEAL_SECRET_BYTES]; /* that the present key is made of */
    unsigned char mask[NONCE_BYTES];              /* of the nonces */
};

/* ---- keys ---- */

static bool derive(const cohi_seal *seal, const char *what,
                   unsigned char made[COHI_SEAL_SECRET_BYTES])
{
    const cohi_openssl *openssl = cohi_openssl_table();
    unsigned length = COHI_SEAL_SECRET_BYTES;
    return openssl->HMAC(openssl->EVP_sha256(), seal->secret, sizeof seal->secret,
                         (const unsigned char *)what, strlen(what), made, &length)
           && length == COHI_SEAL_SECRET_BYTES;
}

/* Makes the key and the mask of the secret. */
static bool set_key(cohi_seal *seal, const struct evp_cipher_st *cipher)
{
    unsigned char key[COHI_SEAL_SECRET_BYTES], mask[COHI_SEAL_SECRET_BYTES];
    bool made = derive(seal, "cohort key", key) && derive(seal, "cohort nonce", mask)
                && cohi_openssl_table()->EVP_CipherInit_ex(seal->cipher, cipher, NULL, key, NULL,
                                                           (int)seal->use)
                       == 1;
    memcpy(seal->mask, mask, sizeof seal->mask);
    explicit_bzero(key, sizeof key);
    explicit_bzero(mask, sizeof mask);
    seal->key_records = seal->key_bytes = 0;
    return made;
}

static bool renew(cohi_seal *seal)
{
    unsigned char next[COHI_SEAL_SECRET_BYTES];
    if (!derive(seal, "cohort next", next))
        return false;
    memcpy(seal->secret, next, sizeof next);
    explicit_bzero(next, sizeof next);
    return set_key(seal, NULL);
}

cohi_seal *cohi_seal_new(const unsigned char secret[COHI_SEAL_SECRET_BYTES], cohi_seal_use use,
                         const cohi_seal_limits *limits)
{
    const cohi_openssl *openssl = cohi_openssl_table();
    cohi_seal *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->use = use;
    made->limits = *limits;
    memcpy(made->secret, secret, sizeof made->secret);
    made->cipher = openssl->EVP_CIPHER_CTX_new();
    if (made->cipher && set_key(made, openssl->EVP_aes_256_gcm()))
        return made;
    cohi_seal_end(made);
    return NULL;
}

void cohi_seal_end(cohi_seal *seal)
{
    if (!seal)
        return;
    cohi_openssl_table()->EVP_CIPHER_CTX_free(seal->cipher);
    explicit_bzero(seal, sizeof *seal);
    free(seal);
}

void cohi_seals_end(cohi_seals *seals)
{
    cohi_seal_end(seals->out);
    cohi_seal_end(seals->in);
    *seals = (cohi_seals){.out = NULL};
}

uint64_t cohi_seal_count(const cohi_seal *seal)
{
    return seal->number;
}

/* ---- records ---- */

/* The number, least significant byte last, over the end of the mask, as in TLS 1.3. */
static void make_nonce(const cohi_seal *seal, unsigned char nonce[NONCE_BYTES])
{
    memcpy(nonce, seal->mask, NONCE_BYTES);
    for (int i = 0; i < 8; i++)
        nonce[NONCE_BYTES - 1 - i] ^= (unsigned char)(seal->number >> 8 * i);
}

/* The next record of so many bytes has its key, its nonce, and its head in the tag. */
static bool begin(cohi_seal *seal, const unsigned char head[COHI_SEAL_HEAD_BYTES], size_t bytes)
{
    const cohi_openssl *openssl = cohi_openssl_table();
    unsigned char nonce[NONCE_BYTES];
    int ignored;
    bool spent = seal->key_records >= seal->limits.records
                 || (seal->key_bytes > 0 && seal->key_bytes + bytes > seal->limits.bytes);
    if (spent && !renew(seal))
        return false;
    make_nonce(seal, nonce);
    seal->number++;
    seal->key_records++;
    seal->key_bytes += bytes;
    return openssl->EVP_CipherInit_ex(seal->cipher, NULL, NULL, NULL, nonce, (int)seal->use) == 1
           && openssl->EVP_CipherUpdate(seal->cipher, NULL, &ignored, head, COHI_SEAL_HEAD_BYTES)
                  == 1;
}

static void write_head(unsigned char head[COHI_SEAL_HEAD_BYTES], cohi_seal_kind kind, size_t bytes)
{
    head[0] = (unsigned char)kind;
    for (int i = 0; i < 3; i++)
        head[1 + i] = (unsigned char)(bytes >> 8 * i);
}

size_t cohi_seal_announced(const unsigned char head[COHI_SEAL_HEAD_BYTES], cohi_seal_kind *kind)
{
    size_t bytes = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16;
    *kind = (cohi_seal_kind)head[0];
    bool possible = (head[0] == COHI_SEAL_DATA || head[0] == COHI_SEAL_GOODBYE)
                    && bytes <= COHI_SEAL_PLAIN_BYTES;
    return possible ? bytes + COHI_SEAL_EXTRA_BYTES : 0;
}

static size_t sum(const struct iovec *parts, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

size_t cohi_seal_close(cohi_seal *seal, cohi_seal_kind kind, const struct iovec *parts, int count,
                       unsigned char *record)
{
    const cohi_openssl *openssl = cohi_openssl_table();
    size_t bytes = sum(parts, count);
    unsigned char *at = record + COHI_SEAL_HEAD_BYTES;
    int moved = 0;
    write_head(record, kind, bytes);
    bool sealed = begin(seal, record, bytes);
    for (int i = 0; i < count && sealed; i++, at += moved)
        sealed = openssl->EVP_CipherUpdate(seal->cipher, at, &moved, parts[i].iov_base,
                                           (int)parts[i].iov_len)
                 == 1;
    sealed =
        sealed && openssl->EVP_CipherFinal_ex(seal->cipher, at, &moved) == 1
        && openssl->EVP_CIPHER_CTX_ctrl(seal->cipher, COHI_OPENSSL_GET_TAG, COHI_SEAL_TAG_BYTES, at)
               == 1;
    return sealed ? bytes + COHI_SEAL_EXTRA_BYTES : 0;
}

static bool verify(cohi_seal *seal, const unsigned char *record, size_t bytes, unsigned char *plain)
{
    const cohi_openssl *openssl = cohi_openssl_table();
    unsigned char tag[COHI_SEAL_TAG_BYTES], none;
    const unsigned char *sealed = record + COHI_SEAL_HEAD_BYTES;
    int moved;
    memcpy(tag, sealed + bytes, sizeof tag);
    return begin(seal, record, bytes)
           && openssl->EVP_CipherUpdate(seal->cipher, plain, &moved, sealed, (int)bytes) == 1
           && openssl->EVP_CIPHER_CTX_ctrl(seal->cipher, COHI_OPENSSL_SET_TAG, sizeof tag, tag) == 1
           && openssl->EVP_CipherFinal_ex(seal->cipher, &none, &moved) == 1;
}

bool cohi_seal_open(cohi_seal *seal, const unsigned char *record, size_t bytes,
                    unsigned char *plain)
{
    cohi_seal_kind kind;
    size_t inside = bytes - COHI_SEAL_EXTRA_BYTES;
    if (bytes < COHI_SEAL_EXTRA_BYTES || cohi_seal_announced(record, &kind) != bytes) {
        seal->broken = true;
        return false;
    }
    if (!seal->broken && verify(seal, record, inside, plain))
        return true;
    seal->broken = true;
    memset(plain, 0, inside);
    return false;
}
