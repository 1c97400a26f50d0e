/* whole_file.h - files that are there as a whole or as they were before. */
#ifndef COHI_BASE_WHOLE_FILE_H
#define COHI_BASE_WHOLE_FILE_H

#include <stdio.h>

/* Writes the text; -1 with errno when it cannot. */
typedef int cohi_file_writer(FILE *stream, const void *argument);

/* Writes a temporary file in the same folder and renames it to `path` when it is whole. -1 with
 * errno. */
int cohi_whole_file_write(const char *path, cohi_file_writer *write, const void *argument);

/* Makes the folders above `path` that are missing. -1 with errno. */
int cohi_whole_file_folders(const char *path);

#endif
