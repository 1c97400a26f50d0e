/*
 * script.h - what COHORT_SIM asks of the simulator.
 *
 * Words separated by commas, each `name=value`; docs/sim.md explains them.
 */
#ifndef COHI_ENGINE_SIM_SCRIPT_H
#define COHI_ENGINE_SIM_SCRIPT_H

#include <cohort.h>
#include <stdint.h>

enum {
    COHI_SCRIPT_STRIKES = 8,          /* kills, stalls and failures together */
    COHI_SCRIPT_DELAY_MOST = 1000,    /* steps */
    COHI_SCRIPT_SPLIT_MOST = 64,      /* pieces */
    COHI_SCRIPT_PATIENCE_MOST = 60000 /* milliseconds */
};

typedef enum cohi_blow {
    COHI_BLOW_STALL = 1,
    COHI_BLOW_KILL = 2,
    COHI_BLOW_FAIL = 3 /* that call fails with COH_TRANSPORT, and nobody is to blame */
} cohi_blow;

/* What befalls a rank at one of its engine calls. */
typedef struct cohi_strike {
    int rank;
    cohi_blow blow;
    int struck;      /* by the fabric, once it has happened */
    uint64_t step;   /* that rank's engine call, from 1 */
    uint64_t for_ns; /* of a stall; 0: until all others are gone */
} cohi_strike;

typedef struct cohi_script {
    uint64_t seed;
    int seeded;        /* the seed was given */
    unsigned delay;    /* most steps from issue to arrival; 0: at once */
    unsigned split;    /* most pieces of one transfer */
    int keep_order;    /* arrivals of a pair keep the order of issue */
    int commits_whole; /* all of a segment is backed when it is added */
    int hosts;         /* that the ranks are spread over; those of one map each other. 0: none do */
    uint64_t patience_ns; /* how long to wait for a rank that computes before going on without it */
    int strike_count;
    cohi_strike strikes[COHI_SCRIPT_STRIKES];
} cohi_script;

/*
 * Reads `text` for a world of `size` ranks; without a seed it draws one. COH_INVALID_ARGUMENT names
 * the word, where it stands and what would be accepted.
 */
coh_status cohi_script_parse(const char *text, int size, cohi_script *script);

#endif
