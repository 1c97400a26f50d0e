/*
 * tree.h - the links of a group: up to the leader or the root, down to those that are spoken for.
 *
 * Private to the group's files: gather.c joins, exchange.c exchanges, group.c has the rest. A member
 * has a link up alone, a leader links down to its members and one up, the root links down to its
 * members and to the other leaders.
 */
#ifndef COHI_BOOTSTRAP_TREE_H
#define COHI_BOOTSTRAP_TREE_H

#include "bootstrap/group.h"
#include "bootstrap/link.h"

#include <poll.h>

/* A link down. */
typedef struct cohi_child {
    cohi_connection link;
    int rank;
    bool leads;   /* it speaks for another host */
    bool awaited; /* it has not done its part yet */
} cohi_child;

struct cohi_group {
    int rank;
    int size;
    cohi_patience patience;
    cohi_board board;
    cohi_connection up; /* none: this is the root, or it has none yet */
    int up_rank;        /* who is at its other end */
    uint64_t heard_ns;  /* when a frame came from there last */
    cohi_child *children;
    int child_count;
    struct pollfd *set;                  /* [size + 1]: the children's, then up's */
    int32_t *host_of;                    /* [size]; -1: has not come */
    char (*names)[COHI_HOST_NAME_BYTES]; /* [size], of which `hosts` are in use */
    int hosts;                           /* that have come */
    unsigned char *absent;               /* [size]: who is waited for; on the root, of all ranks */
    cohi_incoming incoming;              /* the frame that was received last */
    int fds[COHI_CARD_FDS], fd_count;    /* that came with it */
    bool out_of_step;                    /* an exchange failed */
};

#define COHI_TREE_ANSWER_NS (COHI_NS_PER_S)       /* for what a peer sends at once */
#define COHI_TREE_TICK_NS   (20 * COHI_NS_PER_MS) /* between looks at what no link tells */

/* One wait for others. */
typedef struct cohi_vigil {
    const char *reached; /* "have come": what those have done that are not waited for any more */
    uint64_t began_ns;
    uint64_t deadline_ns;
    uint64_t warn_at_ns; /* since the beginning */
    uint64_t word_at_ns; /* when those below are told next that this rank is there */
} cohi_vigil;

/* The root has all the group's patience; a leader gives up a little earlier on its own host, since
 * it knows better who is missing there. */
cohi_vigil cohi_vigil_begin(const cohi_group *group, const char *reached);

/* Another rank got as far. */
void cohi_vigil_progress(const cohi_group *group, cohi_vigil *vigil);

/* Whether it is time for a warning; then the next comes when the wait is twice as long. */
bool cohi_vigil_warns(cohi_vigil *vigil, double *waited_s);

/* What the root does while it waits for those that are absent: warns, and sends word down. COH_TIMED_OUT
 * when its patience has run out, with who is missing. */
coh_status cohi_vigil_keep(cohi_group *group, cohi_vigil *vigil);

/* Tells those below who wait that this rank is alive, so that they do not give up before it does. A
 * link that is full is skipped: the next such word makes up for this one. */
void cohi_tree_word(cohi_group *group, int rank, const char *text);

uint64_t cohi_tree_patience(const cohi_group *group);

/* What an errno on the link to `rank` means. */
coh_status cohi_tree_fail_link(int error, int rank);

/* Passes the calling thread's last error, which is `status`, to all that are linked, but for the
 * one who sent it (the descriptor of a link, or -1). */
void cohi_tree_pass_failure(cohi_group *group, coh_status status, int sender);

/* Sends the error to one. `rank`: whom it is for; -1: for all that it speaks for. */
void cohi_tree_send_failure(const cohi_connection *link, int rank, coh_status status);

/* Receives a frame of up to `limit` bytes from a link on which something is to be read. A frame that
 * says that it is over for all is the error. */
coh_status cohi_tree_receive(cohi_group *group, const cohi_connection *link, int rank,
                             size_t limit);

/* The next frame from above. Those that only say that it still waits are logged and passed down.
 * `block` waits for it, as long as word comes in time; else *came tells whether there was one. */
coh_status cohi_tree_hear(cohi_group *group, size_t limit, bool block, bool *came);

/* COH_TIMED_OUT when nothing has come from above for longer than it is patient itself. */
coh_status cohi_tree_check_silence(const cohi_group *group);

/* There is room for one of each rank. */
void cohi_tree_add_child(cohi_group *group, cohi_connection link, int rank, bool leads);
void cohi_tree_drop_child(cohi_group *group, int index);

/* Drops descriptors that came with a frame that should have none. */
void cohi_tree_drop_fds(cohi_group *group);

/* ---- exchange.c ---- */

/* A table of cards up to this length goes to each rank of the host by its link; a longer one lies in
 * memory that they all map. */
enum { COHI_TABLE_INLINE = 16384 };

/* ---- welcome.c ---- */

/* Renumbers the hosts in the order of their first ranks. */
void cohi_welcome_order(cohi_group *group);

/* The payload of a welcome. Reading takes it from the last frame: false where it is none. */
size_t cohi_welcome_bytes(int hosts, int size);
void cohi_welcome_write(const cohi_group *group, unsigned char *bytes);
bool cohi_welcome_read(cohi_group *group);

/* ---- gather.c ---- */

/* Until all are here, each host has a board, and each rank knows the hosts. */
coh_status cohi_gather(cohi_group *group, const cohi_group_spec *spec);

#endif
