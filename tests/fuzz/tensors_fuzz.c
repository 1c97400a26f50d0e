/* Headers of safetensors files: whatever is taken lies inside the file. */
#include "safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEADER = 1000, DATA = 4096 };
    st_archive *archive = st_new();
    if (!archive)
        return 0;
    if (st_parse(archive, (const char *)data, size, HEADER, DATA, NULL, "fuzz") == COH_OK)
        for (size_t i = 0; i < st_count(archive); i++) {
            const st_tensor *tensor = st_at(archive, i);
            uint64_t bytes = coh_shape_bytes(&tensor->shape, tensor->dtype);
            if (tensor->offset < HEADER || tensor->offset > HEADER + DATA
                || bytes > HEADER + DATA - tensor->offset)
                abort();
        }
    st_close(archive);
    return 0;
}
