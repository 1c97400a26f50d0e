/* bench/links.h - `cohort bench links`: messages and puts between hosts, sealed and in the clear. */
#ifndef COHI_TOOLS_BENCH_LINKS_H
#define COHI_TOOLS_BENCH_LINKS_H

/* argv[0] is "links". The exit status. */
int cohi_bench_links(int argc, char **argv);

#endif
