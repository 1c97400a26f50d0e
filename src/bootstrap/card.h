/*
 * card.h - what a rank tells the others of itself when it joins, and how that travels.
 */
#ifndef COHI_BOOTSTRAP_CARD_H
#define COHI_BOOTSTRAP_CARD_H

#include "base/os.h"

#include <cohort.h>
#include <stdint.h>

enum {
    COHI_ENGINE_NAME_BYTES = 32,
    COHI_ADDRESS_BYTES = 256,
    COHI_KEY_BYTES = 128,
    COHI_TUNING_BYTES = 160,
    COHI_CARD_FDS = 2, /* COHI_CARD_FD_* */
    COHI_CARD_FD_PROCESS = 0,
    COHI_CARD_FD_HEAP = 1
};

/*
 * `fds` are valid in the process that holds the card: on exchange they are passed on inside the
 * host, and each receiver owns its copies. -1 where there is none, and for ranks of other hosts.
 */
typedef struct cohi_card {
    int32_t rank;
    int32_t size;
    int32_t pid;
    uint32_t checks;                         /* cohi_check_level */
    uint64_t kernel;                         /* cohi_os_kernel_id */
    uint64_t host;                           /* that a rank of a process plays, in the simulator */
    uint64_t heap_bytes;                     /* the most this rank can offer */
    uint64_t prepared;                       /* of them, memory of memory/prepared.h */
    unsigned char cores[COHI_OS_CORE_BYTES]; /* that it may run on */
    char engine[COHI_ENGINE_NAME_BYTES];
    unsigned char address[COHI_ADDRESS_BYTES]; /* the engine's, of its endpoint */
    unsigned char control_key[COHI_KEY_BYTES]; /* the engine's, for the control segment */
    unsigned char heap_key[COHI_KEY_BYTES];    /* and for the heap */
    unsigned char tuning[COHI_TUNING_BYTES];   /* of its collectives; rank 0's is used by all */
    int32_t fds[COHI_CARD_FDS];
} cohi_card;

/* What of a card an exchange carries. The rest of the receivers' cards stays as it is. */
typedef enum cohi_card_part {
    COHI_CARD_INTRO = 0, /* all but the keys */
    COHI_CARD_KEYS = 1,  /* heap_bytes and the keys */
    COHI_CARD_PROBE = 2, /* the engine that a rank could take, before one is opened */
    COHI_CARD_PARTS
} cohi_card_part;

/* The most bytes of one card on the way. */
size_t cohi_card_most(void);

/* Writes the part of the card; how many bytes that are. Zeros at the end of a field do not travel. */
size_t cohi_card_write(const cohi_card *card, cohi_card_part part, unsigned char *bytes);

/*
 * Reads the cards that follow each other in `bytes` into cards[size], where seen[rank] marks those
 * that came. False where they are not whole, are not of this part, or one of them is of no rank or
 * of a rank that was marked before.
 */
bool cohi_card_read(const unsigned char *bytes, size_t count, cohi_card_part part, int size,
                    cohi_card *cards, unsigned char *seen);

#endif
