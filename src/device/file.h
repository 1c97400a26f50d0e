/* file.h - files as sources of copies. */
#ifndef COHI_DEVICE_FILE_H
#define COHI_DEVICE_FILE_H

#include <cohort-ml.h>

/* COH_OK when [offset, offset + bytes) lies in the file as it was opened; otherwise names both. */
coh_status cohi_file_range(const char *call, const coh_file *file, uint64_t offset, uint64_t bytes);

/* Reads a range that was checked. */
coh_status cohi_file_fill(const coh_file *file, uint64_t offset, void *target, size_t bytes);

#endif
