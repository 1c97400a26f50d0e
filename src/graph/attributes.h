/* attributes.h - what a node says ("axis=1 eps=1e-5"), by the rules of its operation. */
#ifndef COHI_GRAPH_ATTRIBUTES_H
#define COHI_GRAPH_ATTRIBUTES_H

#include <cohort-graph.h>

/*
 * Fills values[op->rule_count]. `text` is cut up, and texts among the values point into it or at a
 * rule's fallback. Errors name the attribute.
 */
coh_status cohi_attributes_parse(const coh_op *op, char *text, coh_attribute *values);

#endif
