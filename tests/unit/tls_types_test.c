/* The declarations of secure/openssl.h are those of OpenSSL's own headers, where they are installed. */
#include "unit.h"

#include "secure/openssl.h"

#if __has_include(<openssl/ssl.h>)
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>

#define SAME_TYPE(returns, name, parameters)                                               \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), returns(*) parameters), \
                   #name " has another type");
COHI_OPENSSL_TABLE(SAME_TYPE)

_Static_assert(OPENSSL_INIT_NO_ATEXIT == COHI_OPENSSL_NO_ATEXIT, "constant");
_Static_assert(TLS1_3_VERSION == COHI_OPENSSL_TLS_1_3, "constant");
_Static_assert(SSL_CTRL_SET_SESS_CACHE_MODE == COHI_OPENSSL_CACHE_MODE, "constant");
_Static_assert(SSL_CTRL_SET_GROUPS_LIST == COHI_OPENSSL_GROUPS_LIST, "constant");
_Static_assert(SSL_CTRL_SET_MIN_PROTO_VERSION == COHI_OPENSSL_MIN_VERSION, "constant");
_Static_assert(SSL_CTRL_SET_MAX_PROTO_VERSION == COHI_OPENSSL_MAX_VERSION, "constant");
_Static_assert(SSL_VERIFY_PEER == COHI_OPENSSL_VERIFY_PEER, "constant");
_Static_assert(SSL_OP_NO_TICKET == COHI_OPENSSL_NO_TICKET, "constant");
_Static_assert(BIO_TYPE_SOURCE_SINK == COHI_OPENSSL_SOURCE_SINK, "constant");
_Static_assert(EVP_CTRL_AEAD_GET_TAG == COHI_OPENSSL_GET_TAG, "constant");
_Static_assert(EVP_CTRL_AEAD_SET_TAG == COHI_OPENSSL_SET_TAG, "constant");
_Static_assert(BIO_CTRL_FLUSH == COHI_OPENSSL_FLUSH, "constant");
_Static_assert((BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY) == COHI_OPENSSL_RETRY_READ, "constant");
_Static_assert((BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY) == COHI_OPENSSL_RETRY_WRITE, "constant");

int main(void)
{
    return 0; /* it compiles */
}
#else
int main(void)
{
    return 77;
}
#endif
