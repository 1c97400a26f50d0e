/* bounded.h - calls into other libraries that may never return. */
#ifndef COHI_RENDEZVOUS_BOUNDED_H
#define COHI_RENDEZVOUS_BOUNDED_H

#include <stdint.h>

/*
 * Calls work(arg) on a thread of its own and waits for that until `deadline_ns` (of cohi_now_ns).
 * 0: it returned. ETIMEDOUT: it goes on, and `arg` is the thread's, which calls discard(arg) should
 * it ever return. Another errno: no thread could be made, and work was not called.
 */
int cohi_bounded_call(void (*work)(void *arg), void *arg, void (*discard)(void *arg),
                      uint64_t deadline_ns);

#endif
