/*
 * aside.h - for how long the thread of an engine stands aside while ranks look for what comes themselves.
 *
 * It wakes now and then to see whether they still do, which costs a rank that polls some 15 us of its core: with a
 * period of 250 us a message of 8 bytes takes 6.3 us, with one of 4 ms 5.6 (engine ucx, Zen 5). So the first period is
 * short, and while ranks look often the later ones are long. Periods that double would set the timer each time, which
 * may take 11 us in a virtual machine. The thread takes over when none has looked in a period. So what
 * comes for a rank that has just ended its wait, and computes, is late by two periods at most.
 */
#ifndef COHI_ENGINE_MODULES_ASIDE_H
#define COHI_ENGINE_MODULES_ASIDE_H

#include "base/clock.h"

#define COHI_ASIDE_FIRST_NS (250 * COHI_NS_PER_US)
#define COHI_ASIDE_MOST_NS  COHI_NS_PER_MS
#define COHI_ASIDE_OFTEN_NS \
    (20 * COHI_NS_PER_US) /* between looks of a rank that does nothing else */

/* The period behind one in which ranks have looked so often. */
static inline uint64_t cohi_aside_next(uint64_t period_ns, unsigned looks)
{
    if (looks < period_ns / COHI_ASIDE_OFTEN_NS)
        return COHI_ASIDE_FIRST_NS;
    return COHI_ASIDE_MOST_NS;
}

#endif
