#include "secure/tls.h"

#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "secure/openssl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { KEY_BYTES = 32 };

static const char magic[8] = {'C', 'O', 'H', 'O', 'R', 'T', 'P', '1'};

/* What travels in the clear, and what the key is made for: one thing, so that they cannot differ. Numbers are
 * in network order. */
struct identity {
    char magic[8];
    uint32_t version; /* of Cohort: another one may speak otherwise behind the handshake */
    uint32_t purpose;
    uint32_t client;
    uint32_t server;
    unsigned char job[COHI_TLS_JOB_BYTES];
};

_Static_assert(sizeof(struct identity) == 40, "it has no gaps");

struct cohi_tls {
    const cohi_tls_self *self;
    int fd;
    int peer; /* as it claims, until the end */
    cohi_tls_turn turn;
    bool calls;
    bool proved;              /* the handshake went by the key */
    cohi_tls_turn blocked;    /* COHI_TLS_READS or _WRITES where the socket held the last step up */
    int error;                /* of the socket */
    bool closed;              /* by the other side */
    size_t room;              /* bytes that may still be read */
    struct identity identity; /* of a client */
    struct ssl_st *ssl;
    const char *refused; /* why its identity is not one for this rank */
    char reason[COHI_TLS_REASON_BYTES];
};

/* ---- OpenSSL ---- */

static cohi_openssl openssl;

static int read_socket(struct bio_st *bio, char *bytes, int count);
static int write_socket(struct bio_st *bio, const char *bytes, int count);
static cohi_openssl_use_session use_session;
static cohi_openssl_find_session find_session;

const cohi_openssl *cohi_openssl_table(void)
{
    return &openssl;
}

static bool is_open;
static char why_not[COHI_OPENSSL_REASON_BYTES];

static void open_once(void)
{
    static const cohi_openssl_hooks hooks = {.read = read_socket,
                                             .write = write_socket,
                                             .use_session = use_session,
                                             .find_session = find_session};
    is_open = cohi_openssl_open("libssl.so.3", &hooks, &openssl, why_not);
}

coh_status cohi_tls_available(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return is_open ? COH_OK
                   : cohi_fail(COH_NOT_AVAILABLE,
                               "connections between hosts need OpenSSL 3, which cannot be used: %s",
                               why_not);
}

/* ---- keys ---- */

static bool digest(const void *key, size_t key_bytes, const unsigned char *data, size_t bytes,
                   unsigned char result[KEY_BYTES])
{
    unsigned length = KEY_BYTES;
    return openssl.HMAC(openssl.EVP_sha256(), key, (int)key_bytes, data, bytes, result, &length)
           && length == KEY_BYTES;
}

/* HKDF-SHA-256 (RFC 5869) for one block of output: the magic is the salt, the identity the info. */
static bool derive(const cohi_tls_self *self, const struct identity *identity,
                   unsigned char key[KEY_BYTES])
{
    unsigned char extracted[KEY_BYTES], info[sizeof *identity + 1];
    memcpy(info, identity, sizeof *identity);
    info[sizeof *identity] = 1;
    bool made = digest(magic, sizeof magic, self->secret, sizeof self->secret, extracted)
                && digest(extracted, sizeof extracted, info, sizeof info, key);
    explicit_bzero(extracted, sizeof extracted);
    return made;
}

static uint32_t own_version(void)
{
    return (uint32_t)COH_VERSION_MAJOR << 16 | (uint32_t)COH_VERSION_MINOR << 8
           | (uint32_t)COH_VERSION_PATCH;
}

static struct identity identity_of(const cohi_tls_self *self, int client, int server)
{
    struct identity identity = {.version = htonl(own_version()),
                                .purpose = htonl((uint32_t)self->purpose),
                                .client = htonl((uint32_t)client),
                                .server = htonl((uint32_t)server)};
    memcpy(identity.magic, magic, sizeof magic);
    memcpy(identity.job, self->job, sizeof identity.job);
    return identity;
}

/* A session as if it had been agreed on before, with the key of the pair for its secret. */
static struct ssl_session_st *session_of(cohi_tls *tls, const struct identity *identity)
{
    static const unsigned char aes_256_gcm_sha384[2] = {0x13, 0x02};
    unsigned char key[KEY_BYTES];
    struct ssl_session_st *session = openssl.SSL_SESSION_new();
    const struct ssl_cipher_st *cipher = openssl.SSL_CIPHER_find(tls->ssl, aes_256_gcm_sha384);
    bool made = session && cipher && derive(tls->self, identity, key)
                && openssl.SSL_SESSION_set1_master_key(session, key, sizeof key) == 1
                && openssl.SSL_SESSION_set_cipher(session, cipher) == 1
                && openssl.SSL_SESSION_set_protocol_version(session, COHI_OPENSSL_TLS_1_3) == 1;
    explicit_bzero(key, sizeof key);
    if (made)
        return session;
    openssl.SSL_SESSION_free(session);
    return NULL;
}

static int use_session(struct ssl_st *ssl, const struct evp_md_st *hash,
                       const unsigned char **identity, size_t *identity_bytes,
                       struct ssl_session_st **session)
{
    cohi_tls *tls = openssl.SSL_get_ex_data(ssl, 0);
    (void)hash; /* there is one ciphersuite */
    *session = session_of(tls, &tls->identity);
    *identity = (const unsigned char *)&tls->identity;
    *identity_bytes = sizeof tls->identity;
    return *session != NULL;
}

/* NULL, or what makes it an identity that this rank has nothing to do with. */
static const char *check_identity(const cohi_tls_self *self, const struct identity *identity)
{
    uint32_t client = ntohl(identity->client), rank = (uint32_t)self->rank;
    if (memcmp(identity->magic, magic, sizeof magic) != 0)
        return "it is not a rank of Cohort";
    if (identity->version != htonl(own_version()))
        return "it has another version of Cohort";
    if (memcmp(identity->job, self->job, sizeof identity->job) != 0)
        return "it belongs to another job";
    if (identity->purpose != htonl((uint32_t)self->purpose))
        return "it wants something that is not to be had at this port";
    if (identity->server != htonl(rank))
        return "it calls another rank";
    if (client >= (uint32_t)self->size || client == rank)
        return "there is no such rank";
    return NULL;
}

static int find_session(struct ssl_st *ssl, const unsigned char *bytes, size_t count,
                        struct ssl_session_st **session)
{
    cohi_tls *tls = openssl.SSL_get_ex_data(ssl, 0);
    struct identity identity;
    *session = NULL;
    if (count != sizeof identity) {
        tls->refused = "it is not a rank of Cohort";
        return 0;
    }
    memcpy(&identity, bytes, sizeof identity);
    tls->refused = check_identity(tls->self, &identity);
    if (tls->refused)
        return 0;
    tls->peer = (int)ntohl(identity.client);
    *session = session_of(tls, &identity);
    return *session != NULL;
}

/* ---- the socket ---- */

static int blocked(struct bio_st *bio, cohi_tls *tls, cohi_tls_turn turn)
{
    tls->blocked = turn;
    openssl.BIO_set_flags(bio, turn == COHI_TLS_READS ? COHI_OPENSSL_RETRY_READ
                                                      : COHI_OPENSSL_RETRY_WRITE);
    return -1;
}

/* OpenSSL asks for the head of a record, then for the rest of it: what is behind stays in the
 * socket. */
static int read_socket(struct bio_st *bio, char *bytes, int count)
{
    cohi_tls *tls = openssl.BIO_get_data(bio);
    ssize_t got;
    openssl.BIO_clear_flags(bio, COHI_OPENSSL_RETRY_READ | COHI_OPENSSL_RETRY_WRITE);
    if ((size_t)count > tls->room) {
        tls->error = EMSGSIZE;
        return -1;
    }
    do
        got = recv(tls->fd, bytes, (size_t)count, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return blocked(bio, tls, COHI_TLS_READS);
    if (got > 0)
        tls->room -= (size_t)got;
    else if (got == 0)
        tls->closed = true;
    else
        tls->error = errno;
    return (int)got;
}

static int write_socket(struct bio_st *bio, const char *bytes, int count)
{
    cohi_tls *tls = openssl.BIO_get_data(bio);
    ssize_t sent;
    openssl.BIO_clear_flags(bio, COHI_OPENSSL_RETRY_READ | COHI_OPENSSL_RETRY_WRITE);
    do
        sent = send(tls->fd, bytes, (size_t)count, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN)
        return blocked(bio, tls, COHI_TLS_WRITES);
    if (sent < 0)
        tls->error = errno;
    return (int)sent;
}

/* ---- a handshake ---- */

const char *cohi_tls_library(void)
{
    return openssl.OpenSSL_version(0 /* OPENSSL_VERSION */);
}

void cohi_tls_end(cohi_tls *tls)
{
    if (!tls)
        return;
    if (tls->ssl)
        openssl.SSL_free(tls->ssl);
    free(tls);
}

/* A caller believes no certificate, since it trusts nobody who could have signed one. The other side
 * neither has one nor asks for one. */
static void take_side(cohi_tls *tls)
{
    if (tls->calls) {
        openssl.SSL_set_verify(tls->ssl, COHI_OPENSSL_VERIFY_PEER, NULL);
        openssl.SSL_set_connect_state(tls->ssl);
    } else {
        openssl.SSL_set_accept_state(tls->ssl);
    }
}

static bool set_up(cohi_tls *tls)
{
    struct bio_st *bio = NULL;
    tls->ssl = openssl.SSL_new(openssl.context);
    if (tls->ssl)
        bio = openssl.BIO_new(openssl.socket);
    if (!bio)
        return false;
    openssl.BIO_set_data(bio, tls);
    openssl.BIO_set_init(bio, 1);
    openssl.SSL_set_bio(tls->ssl, bio, bio);
    take_side(tls);
    return openssl.SSL_set_ex_data(tls->ssl, 0, tls) == 1;
}

static coh_status begin(const cohi_tls_self *self, int fd, int server, cohi_tls **tls)
{
    coh_status status = cohi_tls_available();
    if (status != COH_OK)
        return status;
    cohi_tls *made = calloc(1, sizeof *made);
    if (made) {
        made->self = self;
        made->fd = fd;
        made->calls = server != COHI_TLS_ANSWERS;
        made->peer = server;
        made->room = COHI_TLS_BYTES;
        made->turn = COHI_TLS_READS;
        made->identity = identity_of(self, self->rank, server);
    }
    if (!made || !set_up(made)) {
        cohi_tls_end(made);
        return cohi_fail(COH_NO_MEMORY, "out of memory for a handshake between hosts");
    }
    *tls = made;
    return COH_OK;
}

coh_status cohi_tls_call(const cohi_tls_self *self, int fd, int server, cohi_tls **tls)
{
    return begin(self, fd, server, tls);
}

coh_status cohi_tls_answer(const cohi_tls_self *self, int fd, cohi_tls **tls)
{
    return begin(self, fd, COHI_TLS_ANSWERS, tls);
}

/* What the other side did wrong, as far as it can be known. OpenSSL's own words come last. */
static void explain(cohi_tls *tls)
{
    const char *words = openssl.ERR_reason_error_string(openssl.ERR_peek_last_error());
    if (tls->refused)
        snprintf(tls->reason, sizeof tls->reason, "%s", tls->refused);
    else if (tls->error == EMSGSIZE)
        snprintf(tls->reason, sizeof tls->reason,
                 "it sent more than the %d bytes that a handshake may take", COHI_TLS_BYTES);
    else if (tls->error)
        snprintf(tls->reason, sizeof tls->reason, "the connection failed in the handshake: %s",
                 cohi_os_error_text(tls->error));
    else if (tls->closed)
        snprintf(tls->reason, sizeof tls->reason,
                 "it closed the connection in the handshake, as one does that is of another job or "
                 "another version of Cohort");
    else
        snprintf(tls->reason, sizeof tls->reason,
                 "it does not prove that it knows the job's secret (%s)",
                 words ? words : "the handshake did not go by it");
}

/* A key is only offered: a side that was talked into something else ends here. */
static cohi_tls_turn advance(cohi_tls *tls)
{
    tls->blocked = COHI_TLS_DONE;
    int done = openssl.SSL_do_handshake(tls->ssl);
    if (done != 1 && tls->blocked != COHI_TLS_DONE)
        return tls->blocked;
    tls->proved = done == 1 && openssl.SSL_session_reused(tls->ssl) == 1 && tls->peer >= 0;
    if (tls->proved)
        return COHI_TLS_DONE;
    explain(tls);
    return COHI_TLS_FAILED;
}

cohi_tls_turn cohi_tls_step(cohi_tls *tls)
{
    if (tls->turn == COHI_TLS_DONE || tls->turn == COHI_TLS_FAILED)
        return tls->turn;
    int held = cohi_cancel_hold();
    openssl.ERR_set_mark();
    tls->turn = advance(tls);
    openssl.ERR_pop_to_mark();
    cohi_cancel_release(held);
    return tls->turn;
}

int cohi_tls_peer(const cohi_tls *tls)
{
    return tls->proved ? tls->peer : -1;
}

/* One secret for each direction, the caller's first. */
bool cohi_tls_seals(const cohi_tls *tls, const cohi_seal_limits *limits, cohi_seals *seals)
{
    static const char label[] = "EXPORTER-cohort-records";
    unsigned char secrets[2][COHI_SEAL_SECRET_BYTES];
    int out = tls->calls ? 0 : 1;
    *seals = (cohi_seals){.out = NULL};
    if (!tls->proved
        || openssl.SSL_export_keying_material(tls->ssl, secrets[0], sizeof secrets, label,
                                              sizeof label - 1, NULL, 0, 0)
               != 1)
        return false;
    seals->out = cohi_seal_new(secrets[out], COHI_SEAL_SEALS, limits);
    seals->in = cohi_seal_new(secrets[1 - out], COHI_SEAL_OPENS, limits);
    explicit_bzero(secrets, sizeof secrets);
    if (seals->out && seals->in)
        return true;
    cohi_seals_end(seals);
    return false;
}

bool cohi_tls_was_closed(const cohi_tls *tls)
{
    return tls->turn == COHI_TLS_FAILED
           && (tls->closed || tls->error == ECONNRESET || tls->error == EPIPE);
}

const char *cohi_tls_reason(const cohi_tls *tls)
{
    return tls->reason;
}
