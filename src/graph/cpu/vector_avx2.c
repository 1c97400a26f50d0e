/* vector.h for AVX2: CMake gives the flags. */
#define COHI_VECTOR_TABLE cohi_vector_avx2
#include "graph/cpu/vector_loops.h"
