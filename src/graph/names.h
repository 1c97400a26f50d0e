/* names.h - texts to numbers: which value, output or operation has a name. */
#ifndef COHI_GRAPH_NAMES_H
#define COHI_GRAPH_NAMES_H

#include <cohort-graph.h>

/* Open addressing; at most half of the places are taken. Zero is an empty table. */
typedef struct cohi_names {
    struct cohi_name {
        const char *text; /* the owner's; NULL: free */
        int number;
    } * places;
    size_t room;
    size_t count;
} cohi_names;

/* Adds `text`, which must stay where it is and is not in the table yet. COH_NO_MEMORY. */
coh_status cohi_names_add(cohi_names *names, const char *text, int number);

/* The number of `text` ([length] characters), or -1. */
int cohi_names_find(const cohi_names *names, const char *text, size_t length);

void cohi_names_free(cohi_names *names);

/* Whether the characters make a name, by the rule of cohort-graph.h. */
int cohi_name_valid(const char *text, size_t length);

#endif
