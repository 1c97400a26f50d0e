#include "bench/pipeline.h"

typedef float lanes __attribute__((vector_size(16), aligned(4), may_alias));

enum { LANES = 4, COLUMNS = COHI_PRODUCT_WIDE / LANES };

/* Two rows at once: eight sums stay in registers, and each load of the right is used twice. */
static void multiply_pair(const float *first, const float *second, const float *right, float *sums)
{
    lanes top[COLUMNS] = {{0}}, bottom[COLUMNS] = {{0}};
    for (int k = 0; k < COHI_PRODUCT_INNER; k++) {
        const lanes *row = (const lanes *)(right + (size_t)k * COHI_PRODUCT_WIDE);
        for (int c = 0; c < COLUMNS; c++) {
            top[c] += first[k] * row[c];
            bottom[c] += second[k] * row[c];
        }
    }
    lanes *total = (lanes *)sums;
    for (int c = 0; c < COLUMNS; c++) {
        total[c] += top[c];
        total[COLUMNS + c] += bottom[c];
    }
}

void cohi_product(const float *left, size_t rows, uint64_t pairs, const float *right, float *sums)
{
    size_t row = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        const float *first = left + row * COHI_PRODUCT_INNER;
        multiply_pair(first, first + COHI_PRODUCT_INNER, right, sums);
        row = row + 4 <= rows ? row + 2 : 0;
    }
}
