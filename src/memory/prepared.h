/*
 * prepared.h - memory of the program that the heap of a later world begins with.
 *
 * Pages that become a view of a heap must be copied into its file first, and what another thread
 * stores meanwhile is lost. So it is done once, while there is no other thread: the pages become a
 * view of a file that each world of the process, one at a time, takes for its heap. The view stays
 * until the process ends; joining and leaving copy nothing.
 *
 * Thread-safe. A child made by fork gets the memory as its own, as it was, and nothing prepared.
 */
#ifndef COHI_MEMORY_PREPARED_H
#define COHI_MEMORY_PREPARED_H

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>

enum { COHI_PREPARED_MAX = 8 };

/* Adds whole pages, behind those that were added before. On failure they are as they were. */
coh_status cohi_prepared_add(const char *call, void *base, size_t bytes);

/* Takes the file for a world's heap. Returns how many bytes of it are prepared: none where there
 * are none, or where another world has them. */
uint64_t cohi_prepared_claim(void);

/* The claim ends: nobody looks at the file any more. Its memory behind what is prepared is given
 * back. */
void cohi_prepared_release(void);

/* The claim ends, and perhaps others still write to the file: the pages become private, and are
 * prepared no more. No store of another thread is lost. */
void cohi_prepared_forget(void);

/* A descriptor of the file, for the holder of the claim; to be closed. */
int cohi_prepared_file(int *fd);

/* Where in the file exactly this range is; false when it was not prepared. */
bool cohi_prepared_find(const void *base, size_t bytes, uint64_t *offset);

#endif
