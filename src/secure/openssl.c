#include "secure/openssl.h"

#include "base/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* AES-256 as for sealed records; its hash is SHA-384. There is one, so that nothing is negotiated. */
#define CIPHERSUITE "TLS_AES_256_GCM_SHA384"
#define GROUP       "X25519"

/* Returns the first function that is not there, or NULL. POSIX wants a data pointer to hold a function's. */
static const char *find_all(void *library, cohi_openssl *openssl)
{
#define FIND(returns, name, parameters)               \
    {                                                 \
        void *found = dlsym(library, #name);          \
        if (!found)                                   \
            return #name;                             \
        memcpy(&openssl->name, &found, sizeof found); \
    }
    COHI_OPENSSL_TABLE(FIND)
#undef FIND
    return NULL;
}

static long control(struct bio_st *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == COHI_OPENSSL_FLUSH; /* nothing is kept back */
}

static bool make_socket(cohi_openssl *openssl, const cohi_openssl_hooks *hooks)
{
    openssl->socket = openssl->BIO_meth_new(COHI_OPENSSL_SOURCE_SINK, "cohort");
    return openssl->socket && openssl->BIO_meth_set_read(openssl->socket, hooks->read) == 1
           && openssl->BIO_meth_set_write(openssl->socket, hooks->write) == 1
           && openssl->BIO_meth_set_ctrl(openssl->socket, control) == 1;
}

/* What a configuration file of the host says about versions and ciphers is overruled. */
static bool make_context(cohi_openssl *openssl, const cohi_openssl_hooks *hooks)
{
    struct ssl_ctx_st *context = openssl->SSL_CTX_new(openssl->TLS_method());
    openssl->context = context;
    if (!context
        || openssl->SSL_CTX_ctrl(context, COHI_OPENSSL_MIN_VERSION, COHI_OPENSSL_TLS_1_3, NULL) != 1
        || openssl->SSL_CTX_ctrl(context, COHI_OPENSSL_MAX_VERSION, COHI_OPENSSL_TLS_1_3, NULL) != 1
        || openssl->SSL_CTX_ctrl(context, COHI_OPENSSL_GROUPS_LIST, 0, (char[]){GROUP}) != 1
        || openssl->SSL_CTX_set_ciphersuites(context, CIPHERSUITE) != 1
        || openssl->SSL_CTX_set_num_tickets(context, 0) != 1)
        return false;
    openssl->SSL_CTX_set_options(context, COHI_OPENSSL_NO_TICKET);
    openssl->SSL_CTX_ctrl(context, COHI_OPENSSL_CACHE_MODE, 0, NULL);
    openssl->SSL_CTX_set_psk_use_session_callback(context, hooks->use_session);
    openssl->SSL_CTX_set_psk_find_session_callback(context, hooks->find_session);
    return true;
}

/* Of the program's own errors of OpenSSL none is taken away. Nothing is freed at exit: threads of
 * ranks may be in a handshake then. */
static bool set_up(cohi_openssl *openssl, const cohi_openssl_hooks *hooks,
                   char reason[COHI_OPENSSL_REASON_BYTES])
{
    openssl->OPENSSL_init_ssl(COHI_OPENSSL_NO_ATEXIT, NULL);
    openssl->ERR_set_mark();
    bool made = make_socket(openssl, hooks) && make_context(openssl, hooks);
    if (!made) {
        const char *words = openssl->ERR_reason_error_string(openssl->ERR_peek_last_error());
        snprintf(reason, COHI_OPENSSL_REASON_BYTES,
                 "it cannot do TLS 1.3 with " CIPHERSUITE " and " GROUP ": %s",
                 words ? words : "out of memory");
        openssl->SSL_CTX_free(openssl->context);
        openssl->BIO_meth_free(openssl->socket);
    }
    openssl->ERR_pop_to_mark();
    return made;
}

/* What is there and cannot be opened, by a process without descriptors, need not be installed. */
static void explain_absence(const char *words, char reason[COHI_OPENSSL_REASON_BYTES])
{
    bool missing = !words || strstr(words, cohi_os_error_text(ENOENT));
    snprintf(reason, COHI_OPENSSL_REASON_BYTES, "it cannot be opened: %s%s",
             words ? words : "nobody knows why",
             missing ? "; install libssl3 (Debian, Ubuntu) or openssl-libs (Fedora)" : "");
}

bool cohi_openssl_open(const char *library, const cohi_openssl_hooks *hooks, cohi_openssl *openssl,
                       char reason[COHI_OPENSSL_REASON_BYTES])
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        explain_absence(dlerror(), reason);
        return false;
    }
    const char *missing = find_all(handle, openssl);
    if (missing)
        snprintf(reason, COHI_OPENSSL_REASON_BYTES, "%s has no function %s", library, missing);
    if (!missing && set_up(openssl, hooks, reason))
        return true;
    dlclose(handle);
    return false;
}
