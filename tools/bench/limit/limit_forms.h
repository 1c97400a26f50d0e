/* limit_forms.h - the reductions of limit_avx512.c and limit_avx2.c, for limit_reduce.c. */
#ifndef COHI_LIMIT_FORMS_H
#define COHI_LIMIT_FORMS_H

#include "bench/limit/limit.h"

#if defined(__x86_64__)
extern const cohi_limit_reduce_form cohi_limit_avx512, cohi_limit_avx512_nt;
extern const cohi_limit_reduce_form cohi_limit_avx2, cohi_limit_avx2_nt;
#endif

#endif
