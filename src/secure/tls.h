/*
 * Room: secure.
 *
 * How two ranks prove to each other over a network that they belong to one job, and seal what they
 * send.
 * Uses base alone; OpenSSL is opened at run time, when a handshake is first wanted.
 * Hides OpenSSL: no other room sees a type, a constant or an error code of it.
 */
/*
 * tls.h - a handshake of TLS 1.3 by a key that both sides have, on a connected socket.
 *
 * Every ordered pair of ranks has a key of its own, made of the job's secret by HKDF-SHA-256; its
 * identity, which travels in the clear, says for which job, purpose, version, client and server it
 * is. So a handshake cannot be reflected to its sender, passed on to another rank, or used for
 * another purpose. The key is combined with an ephemeral exchange (X25519): who learns the secret
 * later cannot read what was exported before. Nothing but TLS 1.3 with that key is
 * accepted: no certificate, no ticket, no early data.
 *
 * After the handshake the bytes of the socket are the caller's again: in the clear, or in records that
 * are sealed by keys of this handshake (seal.h). Not one byte behind the handshake was read, so
 * both sides may send as soon as theirs is done.
 *
 * Of a stranger, at most COHI_TLS_BYTES are read, and nothing it says is passed on before it has proved
 * that it knows the key. The caller bounds how many handshakes are under way.
 */
#ifndef COHI_SECURE_TLS_H
#define COHI_SECURE_TLS_H

#include "secure/seal.h"

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    COHI_TLS_SECRET_BYTES = 32,
    COHI_TLS_JOB_BYTES = 16,
    COHI_TLS_BYTES = 8192, /* the most that is read from the other side; about 300 are needed */
    COHI_TLS_REASON_BYTES = 256 /* the longest reason, its final NUL included */
};

/* What the connection is for. A key for one purpose is worth nothing for another. */
typedef enum cohi_tls_purpose {
    COHI_TLS_RENDEZVOUS = 1, /* ranks that find each other */
    COHI_TLS_LINK = 2        /* a link of an engine */
} cohi_tls_purpose;

/* This rank, as it presents itself. It outlives the handshakes that it is used for. */
typedef struct cohi_tls_self {
    unsigned char secret[COHI_TLS_SECRET_BYTES]; /* of the job */
    unsigned char job[COHI_TLS_JOB_BYTES];       /* its name, which may be seen */
    cohi_tls_purpose purpose;
    int rank;
    int size; /* of the job: ranks from 0 on */
} cohi_tls_self;

typedef struct cohi_tls cohi_tls;

typedef enum cohi_tls_turn {
    COHI_TLS_DONE,   /* both sides have proved themselves; this one has nothing more to send */
    COHI_TLS_READS,  /* go on when the socket can be read */
    COHI_TLS_WRITES, /* go on when it can be written */
    COHI_TLS_FAILED  /* cohi_tls_reason says why; close the socket */
} cohi_tls_turn;

/* COH_OK where OpenSSL 3 can be used; else COH_NOT_AVAILABLE with the loader's reason and what to
 * install. The first call opens it, the answer stays the same for the life of the process. */
coh_status cohi_tls_available(void);

/* "OpenSSL 3.0.17 1 Jul 2025", once it can be used. */
const char *cohi_tls_library(void);

/*
 * Begin a handshake on the connected socket `fd`, which never blocks and stays the caller's: towards
 * rank `server`, or with whichever rank has called. Nothing is sent or read before the first step.
 * COH_NOT_AVAILABLE; COH_NO_MEMORY. Handshakes are independent of each other; one is used by one thread at
 * a time.
 */
coh_status cohi_tls_call(const cohi_tls_self *self, int fd, int server, cohi_tls **tls);
coh_status cohi_tls_answer(const cohi_tls_self *self, int fd, cohi_tls **tls);

/* Does what can be done at once. Never waits, raises no signal. After COHI_TLS_DONE and
 * COHI_TLS_FAILED it repeats that. Deadlines are the caller's. */
cohi_tls_turn cohi_tls_step(cohi_tls *tls);

/* The rank at the other side, proved, after COHI_TLS_DONE; -1 before. */
int cohi_tls_peer(const cohi_tls *tls);

/* The seals of both directions, after COHI_TLS_DONE; the caller ends them. False: no memory. */
bool cohi_tls_seals(const cohi_tls *tls, const cohi_seal_limits *limits, cohi_seals *seals);

/* Why it failed, as the end of a sentence about the other side: "it does not know the job's
 * secret". Valid until the end. */
const char *cohi_tls_reason(const cohi_tls *tls);

/* Whether it failed because the connection ended. Where two ranks call each other at once one of them
 * takes its call back like that. */
bool cohi_tls_was_closed(const cohi_tls *tls);

/* Ends it, however far it got, and forgets its keys; not the socket. NULL is allowed. */
void cohi_tls_end(cohi_tls *tls);

/*
 * A whole handshake, for callers that may wait: until `deadline_ns` of cohi_now_ns. `server` is the
 * rank that is called, or COHI_TLS_ANSWERS where this side was; *peer is the rank at the other side.
 * COH_NOT_AVAILABLE where there is no OpenSSL, COH_TIMED_OUT, COH_TRANSPORT with the reason; each
 * message names `call`, the other rank where it is known, and the address. The
 * socket stays the caller's.
 */
enum { COHI_TLS_ANSWERS = -1 };
coh_status cohi_tls_handshake(const char *call, const cohi_tls_self *self, int fd, int server,
                              uint64_t deadline_ns, int *peer);

#endif
