/* vector.h for AVX-512: CMake gives the flags. */
#define COHI_VECTOR_TABLE cohi_vector_avx512
#include "graph/cpu/vector_loops.h"
