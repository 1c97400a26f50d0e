#include "base/atomics.h"

#ifdef COHI_TSAN
atomic_int cohi_tsan_fence_word;
#else
typedef int cohi_atomics_c_is_for_tsan; /* ISO C forbids an empty file */
#endif
