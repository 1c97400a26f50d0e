/*
 * openssl.h - the functions of OpenSSL 3 that the handshake and the records call, by a table that is filled at run
 * time.
 *
 * They are declared here, so that Cohort is built without OpenSSL's headers and runs without OpenSSL where no
 * handshake is wanted. The interface of libssl.so.3 is stable by its name; tests/unit/tls_types_test.c
 * compares these declarations with OpenSSL's own, where its headers are installed.
 */
#ifndef COHI_SECURE_OPENSSL_H
#define COHI_SECURE_OPENSSL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* OpenSSL's own tags, so that the types are the same where its headers are included as well. */
struct bio_method_st;
struct bio_st;
struct engine_st;
struct evp_cipher_ctx_st;
struct evp_cipher_st;
struct evp_md_st;
struct ossl_init_settings_st;
struct ssl_cipher_st;
struct ssl_ctx_st;
struct ssl_method_st;
struct ssl_session_st;
struct ssl_st;
struct x509_store_ctx_st;

typedef int cohi_openssl_use_session(struct ssl_st *ssl, const struct evp_md_st *digest,
                                     const unsigned char **identity, size_t *identity_bytes,
                                     struct ssl_session_st **session);
typedef int cohi_openssl_find_session(struct ssl_st *ssl, const unsigned char *identity,
                                      size_t identity_bytes, struct ssl_session_st **session);
typedef int cohi_openssl_verify(int accepted, struct x509_store_ctx_st *store);

/* X(what it returns, name, parameters) */
#define COHI_OPENSSL_TABLE(X)                                                                     \
    X(int, OPENSSL_init_ssl, (uint64_t options, const struct ossl_init_settings_st *settings))    \
    X(const struct ssl_method_st *, TLS_method, (void))                                           \
    X(struct ssl_ctx_st *, SSL_CTX_new, (const struct ssl_method_st *method))                     \
    X(void, SSL_CTX_free, (struct ssl_ctx_st * context))                                          \
    X(long, SSL_CTX_ctrl, (struct ssl_ctx_st * context, int what, long number, void *pointer))    \
    X(uint64_t, SSL_CTX_set_options, (struct ssl_ctx_st * context, uint64_t options))             \
    X(int, SSL_CTX_set_ciphersuites, (struct ssl_ctx_st * context, const char *names))            \
    X(int, SSL_CTX_set_num_tickets, (struct ssl_ctx_st * context, size_t count))                  \
    X(void, SSL_CTX_set_psk_use_session_callback,                                                 \
      (struct ssl_ctx_st * context, cohi_openssl_use_session * use))                              \
    X(void, SSL_CTX_set_psk_find_session_callback,                                                \
      (struct ssl_ctx_st * context, cohi_openssl_find_session * find))                            \
    X(struct ssl_st *, SSL_new, (struct ssl_ctx_st * context))                                    \
    X(void, SSL_free, (struct ssl_st * ssl))                                                      \
    X(void, SSL_set_bio, (struct ssl_st * ssl, struct bio_st * reads, struct bio_st * writes))    \
    X(void, SSL_set_verify, (struct ssl_st * ssl, int mode, cohi_openssl_verify *verify))         \
    X(void, SSL_set_connect_state, (struct ssl_st * ssl))                                         \
    X(void, SSL_set_accept_state, (struct ssl_st * ssl))                                          \
    X(int, SSL_set_ex_data, (struct ssl_st * ssl, int index, void *data))                         \
    X(void *, SSL_get_ex_data, (const struct ssl_st *ssl, int index))                             \
    X(int, SSL_do_handshake, (struct ssl_st * ssl))                                               \
    X(int, SSL_session_reused, (const struct ssl_st *ssl))                                        \
    X(const struct ssl_cipher_st *, SSL_CIPHER_find,                                              \
      (struct ssl_st * ssl, const unsigned char *code))                                           \
    X(struct ssl_session_st *, SSL_SESSION_new, (void))                                           \
    X(void, SSL_SESSION_free, (struct ssl_session_st * session))                                  \
    X(int, SSL_SESSION_set1_master_key,                                                           \
      (struct ssl_session_st * session, const unsigned char *key, size_t bytes))                  \
    X(int, SSL_SESSION_set_cipher,                                                                \
      (struct ssl_session_st * session, const struct ssl_cipher_st *cipher))                      \
    X(int, SSL_SESSION_set_protocol_version, (struct ssl_session_st * session, int version))      \
    X(struct bio_method_st *, BIO_meth_new, (int type, const char *name))                         \
    X(void, BIO_meth_free, (struct bio_method_st * method))                                       \
    X(int, BIO_meth_set_read,                                                                     \
      (struct bio_method_st * method, int (*read)(struct bio_st *, char *, int)))                 \
    X(int, BIO_meth_set_write,                                                                    \
      (struct bio_method_st * method, int (*write)(struct bio_st *, const char *, int)))          \
    X(int, BIO_meth_set_ctrl,                                                                     \
      (struct bio_method_st * method, long (*control)(struct bio_st *, int, long, void *)))       \
    X(struct bio_st *, BIO_new, (const struct bio_method_st *method))                             \
    X(void, BIO_set_data, (struct bio_st * bio, void *data))                                      \
    X(void *, BIO_get_data, (struct bio_st * bio))                                                \
    X(void, BIO_set_init, (struct bio_st * bio, int init))                                        \
    X(void, BIO_set_flags, (struct bio_st * bio, int flags))                                      \
    X(void, BIO_clear_flags, (struct bio_st * bio, int flags))                                    \
    X(int, SSL_export_keying_material,                                                            \
      (struct ssl_st * ssl, unsigned char *key, size_t bytes, const char *label,                  \
       size_t label_bytes, const unsigned char *context, size_t context_bytes, int has_context))  \
    X(const struct evp_cipher_st *, EVP_aes_256_gcm, (void))                                      \
    X(struct evp_cipher_ctx_st *, EVP_CIPHER_CTX_new, (void))                                     \
    X(void, EVP_CIPHER_CTX_free, (struct evp_cipher_ctx_st * context))                            \
    X(int, EVP_CIPHER_CTX_ctrl,                                                                   \
      (struct evp_cipher_ctx_st * context, int what, int number, void *pointer))                  \
    X(int, EVP_CipherInit_ex,                                                                     \
      (struct evp_cipher_ctx_st * context, const struct evp_cipher_st *cipher,                    \
       struct engine_st *engine, const unsigned char *key, const unsigned char *nonce,            \
       int encrypts))                                                                             \
    X(int, EVP_CipherUpdate,                                                                      \
      (struct evp_cipher_ctx_st * context, unsigned char *out, int *out_bytes,                    \
       const unsigned char *in, int in_bytes))                                                    \
    X(int, EVP_CipherFinal_ex,                                                                    \
      (struct evp_cipher_ctx_st * context, unsigned char *out, int *out_bytes))                   \
    X(const struct evp_md_st *, EVP_sha256, (void))                                               \
    X(unsigned char *, HMAC,                                                                      \
      (const struct evp_md_st *digest, const void *key, int key_bytes, const unsigned char *data, \
       size_t bytes, unsigned char *result, unsigned *result_bytes))                              \
    X(const char *, OpenSSL_version, (int what))                                                  \
    X(int, ERR_set_mark, (void))                                                                  \
    X(int, ERR_pop_to_mark, (void))                                                               \
    X(unsigned long, ERR_peek_last_error, (void))                                                 \
    X(const char *, ERR_reason_error_string, (unsigned long error))

/* Constants of its headers. */
enum {
    COHI_OPENSSL_NO_ATEXIT = 0x00080000, /* OPENSSL_INIT_NO_ATEXIT */
    COHI_OPENSSL_TLS_1_3 = 0x0304,       /* TLS1_3_VERSION */
    COHI_OPENSSL_CACHE_MODE = 44,        /* SSL_CTRL_SET_SESS_CACHE_MODE */
    COHI_OPENSSL_GROUPS_LIST = 92,       /* SSL_CTRL_SET_GROUPS_LIST */
    COHI_OPENSSL_MIN_VERSION = 123,      /* SSL_CTRL_SET_MIN_PROTO_VERSION */
    COHI_OPENSSL_MAX_VERSION = 124,      /* SSL_CTRL_SET_MAX_PROTO_VERSION */
    COHI_OPENSSL_VERIFY_PEER = 1,        /* SSL_VERIFY_PEER */
    COHI_OPENSSL_NO_TICKET = 1 << 14,    /* SSL_OP_NO_TICKET */
    COHI_OPENSSL_SOURCE_SINK = 0x0400,   /* BIO_TYPE_SOURCE_SINK */
    COHI_OPENSSL_FLUSH = 11,             /* BIO_CTRL_FLUSH */
    COHI_OPENSSL_RETRY_READ = 0x09,      /* BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY */
    COHI_OPENSSL_GET_TAG = 0x10,         /* EVP_CTRL_AEAD_GET_TAG */
    COHI_OPENSSL_SET_TAG = 0x11,         /* EVP_CTRL_AEAD_SET_TAG */
    COHI_OPENSSL_RETRY_WRITE = 0x0a      /* BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY */
};

typedef struct cohi_openssl {
#define COHI_OPENSSL_DECLARE(returns, name, parameters) returns(*name) parameters;
    COHI_OPENSSL_TABLE(COHI_OPENSSL_DECLARE)
#undef COHI_OPENSSL_DECLARE
    struct ssl_ctx_st *context;   /* that all handshakes of the process are made of */
    struct bio_method_st *socket; /* reads and writes without signals */
} cohi_openssl;

/* What tls.c gives to the context: how bytes move, and which key is whose. */
typedef struct cohi_openssl_hooks {
    int (*read)(struct bio_st *bio, char *bytes, int count);
    int (*write)(struct bio_st *bio, const char *bytes, int count);
    cohi_openssl_use_session *use_session;
    cohi_openssl_find_session *find_session;
} cohi_openssl_hooks;

/* Opens `library` and makes the context; false, and `reason` says why and what to install. It stays
 * open: what it keeps for a thread may outlive every world. */
enum { COHI_OPENSSL_REASON_BYTES = 512 };
bool cohi_openssl_open(const char *library, const cohi_openssl_hooks *hooks, cohi_openssl *openssl,
                       char reason[COHI_OPENSSL_REASON_BYTES]);

/* The table of this process, filled once cohi_tls_available has said COH_OK (tls.c). */
const cohi_openssl *cohi_openssl_table(void);

#endif
