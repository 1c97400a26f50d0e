/*
 * terms.h - the arguments of a collective in four words, so that members can compare and show them.
 */
#ifndef COHI_CORE_TEAM_TERMS_H
#define COHI_CORE_TEAM_TERMS_H

#include "bootstrap/board.h"

#include <stdbool.h>

/* What the words of a collective on data are; those of other operations are named in terms.c. */
typedef struct cohi_data_terms {
    coh_dtype dtype; /* 0: a function reduces; see cohi_cut_of_element */
    coh_reduce_op reduce;
    int root;
    unsigned algorithm; /* its number */
    uint64_t count;
    uint64_t cut; /* how the data are cut, where that must agree; 0: in equal blocks */
} cohi_data_terms;

/* Cuts: counts that are each member's own; both strides; counts, of which a hash must do. */
enum { COHI_CUT_OWN = 1 };
uint64_t cohi_cut_of_strides(size_t source, size_t target);
uint64_t cohi_cut_of_hash(uint64_t hash);

/* Where a function reduces, in place of a cut: the bytes of its elements. */
uint64_t cohi_cut_of_element(size_t bytes);

/* Whether the operation is a collective on data: one of COH_COLLECTIVE_TABLE but the barrier. */
bool cohi_terms_on_data(unsigned op);

void cohi_terms_pack(const cohi_data_terms *data, uint64_t argument[4]);

/* "all_reduce(sum of 100 f32)", "malloc(bytes 64)"; cut to `room`. */
void cohi_terms_describe(unsigned op, const uint64_t argument[4], char *text, size_t room);

#endif
