/*
 * Room: bootstrap.
 *
 * How the ranks of a job find each other, and what they publish: the launcher's descriptor, the
 * unique id, the group's links, the board.
 * Uses base, memory and secure. The launcher and `cohort ps` use it without the rooms above, so it gives
 * words on the board no meaning beyond their layout.
 * Hides sockets, descriptors that travel, and who writes which cache line.
 */
/*
 * board.h - the board: what the ranks of a job publish on one host.
 *
 * A board is one sealed memfd that every rank of the job on this host maps, the launcher too, and
 * that `cohort ps` opens through /proc. It has no name in any file system and is gone with its last
 * user. It holds one slot for each rank of its host. A slot says who the rank is and what it is
 * doing, and has the words through which others wake it, warn it and meet it. Of ranks on other
 * hosts the board has one word each, see bootstrap/elsewhere.h.
 *
 * Whether peers use each other's slots directly is the engine's affair: ranks that are mapped do;
 * for others the first cohi_slot_control_bytes of a slot are a segment that the engine writes into.
 * So everything there is at the same offset on all hosts, and holds no pointers.
 */
#ifndef COHI_BOOTSTRAP_BOARD_H
#define COHI_BOOTSTRAP_BOARD_H

#include "base/atomics.h"
#include "base/opcode.h"
#include "bootstrap/traffic.h"
#include "memory/profile.h"

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define COHI_BOARD_NAME  "cohort-board" /* of the memfd, as /proc shows it */
#define COHI_BOARD_MAGIC UINT64_C(0x31647261626f6843)

enum {
    COHI_RANKS_MAX = 1024, /* of a host: those that have slots on its board */
    /* Of a world, over all hosts. What is in one word with two ranks or more has 17 bits for each. */
    COHI_WORLD_MAX = (1 << 17) - 1,
    COHI_ROUNDS = 17, /* of a dissemination over as many */
    COHI_TEAMS = 64,  /* that a rank can be in at once: the world, the host's, and others */
    COHI_LANE_BYTES = 65536,
    COHI_LANDING_BYTES = 512, /* words that a rank of another host puts, see core/message/lane.h */
    COHI_LOG_BYTES = 5 << 20, /* of puts under way to the rank, when races are looked for */
    COHI_LINE_PAIR = 128,     /* bytes that the hardware may fetch together */
    COHI_POST_BYTES = COHI_CACHE_LINE - 8,
    COHI_POST_WIDE = 16 * COHI_CACHE_LINE, /* of a longer contribution that still is in the post */
    COHI_ERROR_BYTES = 448,                /* of the message of a failed call */
    COHI_CIRCLE_BYTES = 512,               /* who waits for whom, of ranks that were found stuck */
    COHI_POSTS = 4 /* epochs that a member can be ahead of another, plus one; a power of two */
};

/* ---- meeting: how the ranks of a team synchronise ---- */

/* What a rank brings to a collective that must agree; fits the smallest inline put. */
typedef struct cohi_record {
    uint32_t op;    /* cohi_opcode */
    uint32_t epoch; /* of the collective it belongs to; tells a fresh record from an old one */
    int32_t status; /* coh_status of this rank's part */
    uint32_t heap;  /* the number of the one that the call is about; else 0 */
    uint64_t argument[4]; /* the same on all ranks, unless the operation says otherwise */
    uint64_t offer[2];    /* this rank's own */
} cohi_record;

typedef struct cohi_flag {
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t mark; /* epoch << 32 | fingerprint */
} cohi_flag;

/* What a member calls, in words that can be compared and shown; see core/team/terms.h. */
typedef struct cohi_terms {
    uint32_t op;    /* cohi_opcode */
    int32_t status; /* not COH_OK: the member's call was refused */
    uint64_t argument[4];
} cohi_terms;

/*
 * What a member posts when it enters a collective: the mark, and next to it the contribution itself
 * when it is small, or where it lies. The data comes first, so that a whole vector can be loaded
 * from it without touching another line: 8 bytes reduced in 400 ns, in 490 the other way round.
 *
 * What does not fit next to the mark and is still short lies in the lines behind. They come on
 * their own: a core that misses the line of the mark asks for the neighbours as well. In a page of
 * their own they would be asked for once the mark has come, which is one more line's time.
 */
typedef struct cohi_post {
    _Alignas(COHI_LINE_PAIR) unsigned char data[COHI_POST_BYTES];
    _Atomic uint64_t mark; /* epoch << 32 | fingerprint; stored last */
    unsigned char wide[COHI_POST_WIDE];
} cohi_post;

/* The terms of a post, read by a member that finds that the marks differ. */
typedef struct cohi_posted_terms {
    _Alignas(COHI_CACHE_LINE) cohi_terms terms;
} cohi_posted_terms;

/* Counts something that the owner has done, for the others to wait for. */
typedef struct cohi_count {
    _Alignas(COHI_LINE_PAIR) _Atomic uint64_t value;
} cohi_count;

/*
 * Two sets of flags, used by even and odd epochs: a rank that meets can be one meeting ahead of
 * another, never two, so that none is overwritten before it was read. Each flag is written by one
 * partner and read by the owner, and has a line of its own. Posts and counts are written by the
 * owner and read by all; posts are used in turn, since a member that needs nothing of the others
 * may be some collectives ahead.
 */
typedef struct cohi_meet {
    cohi_post posts[COHI_POSTS]; /* reach them by cohi_meet_post */
    cohi_count ready;            /* parts of a contribution that lie in the staging area */
    cohi_count done;             /* parts of the work on others' contributions that are finished */
    cohi_flag flags[2][COHI_ROUNDS];
    cohi_posted_terms terms[COHI_POSTS];                 /* reach them by cohi_meet_terms */
    _Alignas(COHI_CACHE_LINE) _Atomic uint64_t mismatch; /* not 0: the team is broken; see core */
} cohi_meet;

/* The post of an epoch. */
static inline cohi_post *cohi_meet_post(cohi_meet *meet, uint32_t epoch)
{
    return &meet->posts[epoch % COHI_POSTS];
}

/* Its terms; only those of a collective on data are stored. */
static inline cohi_terms *cohi_meet_terms(cohi_meet *meet, uint32_t epoch)
{
    return &meet->terms[epoch % COHI_POSTS].terms;
}

/*
 * Where contributions lie that are not in the heap. Scratch is for those that are taken in one
 * piece, one for each post; stages are for those that go by parts, in turn: into `in`, and where
 * the members work on each other's parts, out of `out`. How long a part is, up to a whole stage, is
 * the profile's to say (stage_part).
 */
enum { COHI_SCRATCH_BYTES = 32 << 10, COHI_STAGE_BYTES = 512 << 10 };

typedef struct cohi_staging {
    unsigned char scratch[COHI_POSTS][COHI_SCRATCH_BYTES];
    unsigned char in[2][COHI_STAGE_BYTES];
    unsigned char out[2][COHI_STAGE_BYTES];
    /* Where the members of a team that spans hosts meet on this one (core/team/levels.h); the staging
     * area itself is theirs then, since nobody else could use it. */
    _Alignas(4096) cohi_meet level;
} cohi_staging;

/* ---- slot: one rank ---- */

typedef enum cohi_phase {
    COHI_PHASE_ABSENT = 0,  /* has not called init */
    COHI_PHASE_JOINING = 1, /* in init */
    COHI_PHASE_RUNNING = 2,
    COHI_PHASE_LEFT = 3,    /* finalized */
    COHI_PHASE_EXITING = 4, /* in exit(3) without having finalized */
} cohi_phase;

/*
 * One wait of one thread of a rank, as others see it once it takes long. A rank has as many as
 * threads of it wait. Written by the thread, read by any rank or tool that asks why nothing moves.
 */
enum { COHI_DOINGS = 24, COHI_SPANS = 16 };

enum {
    COHI_DOING_ANY = 1, /* any of those that it waits for can end it, else it takes the one */
    COHI_DOING_ENDS = 2 /* it ends by itself, at a time that the caller gave */
};

/* In cohi_doing.word; the lower bits are the coh_dtype, then the coh_compare. */
enum {
    COHI_WORD_COMPARE_SHIFT = 8,
    COHI_WORD_SHOWN = 1 << 16, /* there is a word */
    COHI_WORD_OTHERS = 1 << 17 /* it is one of several */
};

typedef struct cohi_doing {
    /* 0 while it is free or being written; else differs from all that were here before. */
    _Alignas(COHI_CACHE_LINE) atomic_uint turn;
    atomic_uint last_turn;
    atomic_int thread;                    /* the kernel's id of it; 0: free */
    atomic_uint op;                       /* cohi_opcode */
    atomic_uint how;                      /* bits from above */
    atomic_int rank;                      /* that is waited for; -1: those of `set` */
    atomic_int tag;                       /* of a message; -1: none, or any */
    atomic_uint word;                     /* that is waited for, as bits from above; 0: none */
    _Atomic uint64_t wanted, found, spot; /* its value to come, its value now, where it is */
    _Atomic uint64_t sequence;
    _Atomic uint64_t looked_ns;       /* it has looked in vain since then */
    _Atomic uint64_t set[COHI_SPANS]; /* first << 32 | last + 1, of neighbouring ranks; 0: none */
} cohi_doing;

/* What those threads of a rank do that are in no wait, as far as the rank could see. */
typedef enum cohi_rest {
    COHI_REST_UNKNOWN = 0,
    COHI_REST_NONE = 1,   /* there are none */
    COHI_REST_ASLEEP = 2, /* each sleeps until another thread wakes it */
    COHI_REST_BUSY = 3,
} cohi_rest;

typedef struct cohi_slot {
    /* Who it is. Written by the rank; `stopped` and `end` by its supervisor. */
    _Alignas(COHI_CACHE_LINE) atomic_int pid;
    atomic_int thread; /* kernel's thread id of a thread-rank's bound thread, else 0 */
    atomic_uint phase;
    atomic_uint stopped;  /* by a signal, as waitpid(2) told; 0 too where nobody supervises it */
    _Atomic uint64_t end; /* 0, or COHI_ENDED | wait status of waitpid(2) */
    uint64_t image_link;  /* of use to the rank's own kernel only; see core/world/image.h */
    atomic_uint image;    /* 0, the thread that stands for the program, or that it is gone */

    /* What it is doing. Written by the rank, read by peers and tools. */
    _Alignas(COHI_CACHE_LINE) atomic_uint op; /* cohi_opcode; COHI_OP_NONE outside Cohort */
    atomic_int team;                          /* that the operation is of */
    atomic_int waits_for;                     /* a rank, or -1 */
    atomic_uint beat;                         /* counts steps of long work inside one call */
    _Atomic uint64_t sequence;                /* "#88" of a collective; counts from 1 */
    _Atomic uint64_t since_ns;                /* when it began to wait; 0: it has not waited long */
    atomic_uint rest;                         /* cohi_rest */
    atomic_uint rest_turn;                    /* counts how often that changed */
    _Atomic uint64_t rest_ns;                 /* when a look at it began */
    cohi_doing doings[COHI_DOINGS];           /* its waits that take long */

    /* Written by others: not 0 when a verdict was passed on a rank or a team. */
    _Alignas(COHI_CACHE_LINE) atomic_uint alarm;

    /* And by ranks of other hosts: 0, or COHI_ENDED | code, as in the head; the circle that one of
     * them has found, which is written before the verdicts on those in it. */
    _Atomic uint64_t global_exit;
    char circle[COHI_CIRCLE_BYTES];

    /* Rung by others after they wrote something here that this rank may sleep for. */
    _Alignas(COHI_CACHE_LINE) atomic_uint bell; /* futex; counts rings */
    atomic_uint sleepers;                       /* threads of this rank that announced sleep */
    atomic_uint watchers; /* those of them that sleep for a word of the heap */
    atomic_uint core;     /* the core that the rank was last seen on, and 1; 0: not known */

    /* The last call of the rank that failed, for the launcher's report. */
    _Alignas(COHI_CACHE_LINE) atomic_uint error_turn; /* odd while it is written; 0: none failed */
    atomic_int error_status;                          /* coh_status */
    _Atomic uint64_t error_ns;                        /* when */
    char error[COHI_ERROR_BYTES];                     /* "coh_put: there is no rank 9; ..." */

    /* Behind the slot: the verdict on each rank (see core/health/verdict.h); for each team an area in
     * which it meets; for each rank the landings of its messages from another host; for each team a
     * staging area; a log for the race check; for each rank what went between it and this one; for
     * each rank of this host a lane on which its messages come. Only the number of lanes depends on the host. Reach them by the functions
     * below. */
} cohi_slot;

#define COHI_ENDED (UINT64_C(1) << 32)

enum { COHI_HOST_NAME_BYTES = 56 };

/* The name of a host, its end included. A name is written once. */
typedef struct cohi_host_name {
    atomic_uint state; /* 0, 1 while it is written, 2 */
    char text[COHI_HOST_NAME_BYTES];
} cohi_host_name;

typedef struct cohi_board_head {
    uint64_t magic;
    char version[16]; /* of the library that made the board */
    uint32_t size;    /* ranks of the world */
    uint32_t locals;  /* ranks of this host: those that have slots */
    int32_t launcher; /* pid of `cohort run`, or 0 */
    uint64_t stride;  /* bytes from one slot to the next */
    uint64_t created_ns;
    uint64_t job; /* boards of one job have the same; 0: not known */
    char host[COHI_HOST_NAME_BYTES];
    char program[64];               /* what runs, for `cohort ps` */
    _Atomic uint64_t global_exit;   /* 0, or COHI_ENDED | code: the job is asked to end */
    _Atomic uint64_t warned_ns;     /* the longest wait that a rank has warned of */
    atomic_uint network;            /* how what leaves the host is protected: cohi_network */
    atomic_uint circle_state;       /* 0, 1 while `circle` is written, 2 */
    char circle[COHI_CIRCLE_BYTES]; /* who waits for whom, of ranks that were found stuck */
    atomic_uint race_state;         /* 0, 1 while `race` is written, 2 */
    char race[768];                 /* the first race that was named (core/onesided/race.h) */
    cohi_profile profile;           /* of the host: all its ranks go by it */
} cohi_board_head;

typedef struct cohi_board {
    cohi_board_head *head;
    size_t bytes;
    int fd; /* kept open: it is what `cohort ps` finds */
} cohi_board;

/* What a board is made for. */
typedef struct cohi_board_spec {
    int size;                    /* ranks of the world */
    const int *ranks;            /* of this host, in ascending order; NULL: all of the world */
    int count;                   /* how many; not used where `ranks` is NULL */
    pid_t launcher;              /* or 0 */
    uint64_t job;                /* see cohi_board_head */
    const char *host;            /* its name; cut to COHI_HOST_NAME_BYTES */
    const char *program;         /* its name */
    const cohi_profile *profile; /* that the ranks will use */
} cohi_board_spec;

coh_status cohi_board_create(const cohi_board_spec *spec, cohi_board *board);

/* Bytes of such a board: all of it, and what of it is backed with memory from the start. */
size_t cohi_board_bytes(int size, int locals);
size_t cohi_board_needed(int size, int locals);

/* Maps the board behind `fd`, checking that it is one and all of it is there. Takes `fd` over only
 * on success. COH_MISMATCH with both versions when another version of the library made it. */
coh_status cohi_board_open(int fd, cohi_board *board);

/* Maps the board behind `fd` read-only, for looking, with no version check beyond the layout's. */
coh_status cohi_board_view(int fd, cohi_board *board);

void cohi_board_close(cohi_board *board);

/* NULL for a rank of another host. */
cohi_slot *cohi_board_slot(const cohi_board *board, int rank);

/* The host's ranks in ascending order, head->locals of them; and the index of a rank among them, -1
 * for a rank of another host. */
const int32_t *cohi_board_ranks(const cohi_board *board);
int cohi_board_index(const cohi_board *board, int rank);

/* The word on a rank of any host and the name of a host, by its number: both are for
 * bootstrap/elsewhere.h alone. There is room for as many hosts as ranks. */
_Atomic uint64_t *cohi_board_told(const cohi_board *board, int rank);
cohi_host_name *cohi_board_host_name(const cohi_board *board, int host);

/* Wakes the threads of all ranks of this host that sleep. */
void cohi_board_ring(const cohi_board *board);

/* Bytes of a slot and what is behind it, for `size` ranks of which `locals` are on this host. */
size_t cohi_slot_stride(int size, int locals);

/* The part of them that ranks of other hosts write into. */
size_t cohi_slot_control_bytes(int size);

/* Offsets from the start of a slot. `team` is a team's number, `index` a member's index in it. */
size_t cohi_slot_verdict_offset(int rank);
size_t cohi_slot_meet_offset(int size, int team);
size_t cohi_slot_record_offset(int size, int team, uint32_t epoch, int index);
size_t cohi_slot_landing_offset(int size, int from);
size_t cohi_slot_staging_offset(int size, int team);
size_t cohi_slot_log_offset(int size);
size_t cohi_slot_traffic_offset(int size);
size_t cohi_slot_lane_offset(int size, int from_index); /* of the host's ranks */

static inline _Atomic uint64_t *cohi_slot_verdict(cohi_slot *slot, int rank)
{
    return (_Atomic uint64_t *)((char *)slot + cohi_slot_verdict_offset(rank));
}

static inline cohi_meet *cohi_slot_meet(cohi_slot *slot, int size, int team)
{
    return (cohi_meet *)((char *)slot + cohi_slot_meet_offset(size, team));
}

static inline cohi_record *cohi_slot_record(cohi_slot *slot, int size, int team, uint32_t epoch,
                                            int index)
{
    return (cohi_record *)((char *)slot + cohi_slot_record_offset(size, team, epoch, index));
}

static inline cohi_staging *cohi_slot_staging(cohi_slot *slot, int size, int team)
{
    return (cohi_staging *)((char *)slot + cohi_slot_staging_offset(size, team));
}

/* What went between the slot's rank and each other one, [size]. */
static inline cohi_traffic *cohi_slot_traffic(cohi_slot *slot, int size)
{
    return (cohi_traffic *)((char *)slot + cohi_slot_traffic_offset(size));
}

/* These are for ranks of the board's host. Backs what a rank needs to meet in `team` with memory. A
 * lane is backed by its sender. */
coh_status cohi_board_commit(cohi_board *board, int rank, int team);

/* Backs the scratches of the rank's staging area of `team` with memory; and its stages. */
coh_status cohi_board_commit_scratch(cohi_board *board, int rank, int team);
coh_status cohi_board_commit_stages(cohi_board *board, int rank, int team);

/* Backs what a rank needs to meet in `team` with those of its host, where the team spans several. */
coh_status cohi_board_commit_level(cohi_board *board, int rank, int team);

/* Backs the rank's log of puts with memory. */
coh_status cohi_board_commit_log(cohi_board *board, int rank);

/* Backs its counts of what went between it and ranks of other hosts with memory. */
coh_status cohi_board_commit_traffic(cohi_board *board, int rank);

/* Wakes the threads of the rank that sleep. Call after the write they may sleep for. */
void cohi_slot_ring(cohi_slot *slot);

/* Publishes that a call of the slot's own rank failed: "CALL: WHAT". A thread that fails while
 * another publishes stays silent. */
void cohi_slot_publish_error(cohi_slot *slot, coh_status status, const char *call,
                             const char *what);

/* What the rank published last: the time, with the message in `text` and its status; 0: nothing, or
 * it is being written. */
uint64_t cohi_slot_read_error(const cohi_slot *slot, coh_status *status,
                              char text[COHI_ERROR_BYTES]);

/* Whether the rank's process is stopped: as /proc has it, or where that does not tell, as the
 * supervisor has seen it. */
bool cohi_slot_is_stopped(const cohi_slot *slot, pid_t pid);

/* The state of a rank as one word and its doing as a phrase, as tables show them: "waiting", "in
 * barrier #88"; "failed", "killed by signal 9 (Killed)". `text` is cut to `room`. */
const char *cohi_slot_describe(const cohi_slot *slot, char *text, size_t room);

/* "exited with status 3", "killed by signal 11 (Segmentation fault)" for a waitpid(2) status. */
void cohi_describe_end(int wait_status, char *text, size_t room);

#endif
