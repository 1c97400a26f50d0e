/* vector.h for what every cpu of the architecture can run: CMake gives the flags. */
#define COHI_VECTOR_TABLE cohi_vector_plain
#include "graph/cpu/vector_loops.h"
