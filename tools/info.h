/*
 * info.h - `cohort info`, in parts: info.c is the command and shows what is general, info_host.c
 * knows this host, info_device.c its devices, info_card.c its cards, info_launchers.c who started this
 * process, info_collectives.c the algorithms of collectives,
 * info_profile.c what was tuned by measuring, info_scale.c what a large job costs.
 */
#ifndef COHI_TOOLS_INFO_H
#define COHI_TOOLS_INFO_H

#include <jansson.h>

/* The facts of this host, in the order in which they are shown; the caller frees it. Strings and
 * numbers; sizes in bytes under a name that ends in "_bytes". */
json_t *cohi_info_host(void);

/* For how many ranks the choice is shown; none: for 2, and for as many as there are cores. */
typedef struct cohi_info_ranks {
    int list[16];
    int count;
} cohi_info_ranks;

/* All that is known of collectives; the caller frees it. NULL with the reason in coh_last_error()
 * when a setting is wrong, or no world can be made. */
json_t *cohi_info_collectives(cohi_info_ranks ranks);

/* The same as text. The exit status. */
int cohi_info_print_collectives(const json_t *info);

/* What is known of this host, and its profile; the caller frees it. NULL as above. */
json_t *cohi_info_profile(void);

/* The same as text. The exit status. */
int cohi_info_print_profile(const json_t *info);

/* One line: "memory_total_bytes", 16777216 as "memory total" and "16.0 MiB". */
void cohi_info_print_fact(const char *name, const json_t *value);

/* The kinds of devices: name, available, summary, reason; the caller frees it. */
json_t *cohi_info_devices(void);

/* The launchers whose jobs can be joined: name, used, why; the caller frees it. And the same as text: -1
 * where there is no memory for that. */
json_t *cohi_info_launchers(void);
int cohi_info_print_launchers(const json_t *list);

/* The cards that heaps can be on: {"list": [...], "reason": why there are none}; the caller frees it. And
 * as text: 0, or -1. */
json_t *cohi_info_cards(void);
int cohi_info_print_cards(const json_t *cards);

/* Reads "RANKS,HOSTS"; -1 with the reason in coh_last_error(). The facts of such a job, and their lines. */
int cohi_info_take_scale(const char *flag, const char *value, int *ranks, int *hosts);
json_t *cohi_info_scale(int ranks, int hosts);
int cohi_info_print_scale(const json_t *info);

#endif
