/* pretend.h - which host a rank plays where one machine stands for several. */
#ifndef COHI_BASE_PRETEND_H
#define COHI_BASE_PRETEND_H

/* Blocks of ranks in order, the first ones longer by one where they do not divide evenly. `hosts` is
 * at most `ranks`. */
static inline int cohi_pretended_host(int rank, int ranks, int hosts)
{
    int each = ranks / hosts, more = ranks % hosts, in_longer = more * (each + 1);
    return rank < in_longer ? rank / (each + 1) : more + (rank - in_longer) / each;
}

#endif
