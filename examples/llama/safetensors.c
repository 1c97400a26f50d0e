#include "safetensors.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, FILES_MAX = 1024 };

/* A header is text for people; the format's own library takes no longer ones. */
#define HEADER_MAX UINT64_C(100000000)

struct st_archive {
    st_tensor *tensors;
    size_t count, room;
    coh_file *files[FILES_MAX];
    size_t file_count;
};

st_archive *st_new(void)
{
    return calloc(1, sizeof(st_archive));
}

void st_close(st_archive *archive)
{
    if (!archive)
        return;
    for (size_t i = 0; i < archive->count; i++)
        free(archive->tensors[i].name);
    for (size_t i = 0; i < archive->file_count; i++)
        coh_file_close(archive->files[i]);
    free(archive->tensors);
    free(archive);
}

size_t st_count(const st_archive *archive)
{
    return archive->count;
}

const st_tensor *st_at(const st_archive *archive, size_t index)
{
    return index < archive->count ? &archive->tensors[index] : NULL;
}

static const st_tensor *find(const st_archive *archive, const char *name)
{
    for (size_t i = 0; i < archive->count; i++)
        if (strcmp(archive->tensors[i].name, name) == 0)
            return &archive->tensors[i];
    return NULL;
}

coh_status st_find(const st_archive *archive, const char *name, const st_tensor **tensor)
{
    *tensor = find(archive, name);
    return *tensor
               ? COH_OK
               : coh_fail(COH_INVALID_ARGUMENT, "%s: there is no tensor '%s'",
                          archive->file_count ? coh_file_path(archive->files[0]) : "archive", name);
}

/* ---- the header ---- */

static coh_dtype find_dtype(const char *name)
{
    static const struct {
        const char *name;
        coh_dtype dtype;
    } rows[] = {{"F64", COH_F64},   {"F32", COH_F32},        {"F16", COH_F16},
                {"BF16", COH_BF16}, {"F8_E4M3", COH_F8E4M3}, {"F8_E5M2", COH_F8E5M2},
                {"I64", COH_I64},   {"I32", COH_I32},        {"I16", COH_I16},
                {"I8", COH_I8},     {"U8", COH_U8},          {"U16", COH_U16},
                {"U32", COH_U32},   {"U64", COH_U64},        {"BOOL", COH_BOOL}};
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].dtype;
    return (coh_dtype)0;
}

static int read_length(const json_t *value, uint64_t *length)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    *length = (uint64_t)json_integer_value(value);
    return 1;
}

static int read_shape(const json_t *list, coh_shape *shape)
{
    if (!json_is_array(list) || json_array_size(list) > COH_DIMS_MAX)
        return 0;
    shape->dims = (int)json_array_size(list);
    for (int i = 0; i < shape->dims; i++)
        if (!read_length(json_array_get(list, (size_t)i), &shape->dim[i]))
            return 0;
    return 1;
}

/* What one entry says, held against the bytes that there are. */
static coh_status read_tensor(const char *path, const char *name, const json_t *entry,
                              uint64_t data_bytes, st_tensor *tensor)
{
    const json_t *range = json_object_get(entry, "data_offsets");
    uint64_t first, end;
    tensor->dtype = find_dtype(json_string_value(json_object_get(entry, "dtype")));
    if (!tensor->dtype || !read_shape(json_object_get(entry, "shape"), &tensor->shape)
        || json_array_size(range) != 2 || !read_length(json_array_get(range, 0), &first)
        || !read_length(json_array_get(range, 1), &end))
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: tensor '%.64s' needs a known dtype, a shape and data_offsets", path,
                        name);
    if (first > end || end > data_bytes)
        return coh_fail(COH_OUT_OF_BOUNDS, "%s: tensor '%.64s' is at bytes %llu to %llu of %llu",
                        path, name, (unsigned long long)first, (unsigned long long)end,
                        (unsigned long long)data_bytes);
    if (coh_shape_bytes(&tensor->shape, tensor->dtype) != end - first)
        return coh_fail(COH_LENGTH_MISMATCH,
                        "%s: the shape of tensor '%.64s' takes %llu bytes, and it has %llu", path,
                        name, (unsigned long long)coh_shape_bytes(&tensor->shape, tensor->dtype),
                        (unsigned long long)(end - first));
    tensor->offset = first;
    return COH_OK;
}

static coh_status append(st_archive *archive, const st_tensor *tensor, const char *name)
{
    if (archive->count == archive->room) {
        size_t room = archive->room ? 2 * archive->room : 64;
        st_tensor *moved = realloc(archive->tensors, room * sizeof *moved);
        if (!moved)
            return coh_fail(COH_NO_MEMORY, "no memory for %zu tensors", room);
        archive->tensors = moved;
        archive->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return coh_fail(COH_NO_MEMORY, "no memory for the name of a tensor");
    archive->tensors[archive->count] = *tensor;
    archive->tensors[archive->count++].name = copy;
    return COH_OK;
}

coh_status st_parse(st_archive *archive, const char *text, size_t bytes, uint64_t data_at,
                    uint64_t data_bytes, coh_file *file, const char *path)
{
    json_error_t error;
    json_t *header = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    coh_status status = COH_OK;
    const char *name;
    json_t *entry;
    if (!json_is_object(header)) {
        json_decref(header);
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the header is not a JSON object: %.100s", path,
                        error.text);
    }
    json_object_foreach(header, name, entry)
    {
        st_tensor tensor = {.file = file};
        if (strcmp(name, "__metadata__") == 0)
            continue;
        status = read_tensor(path, name, entry, data_bytes, &tensor);
        tensor.offset += data_at;
        if (status == COH_OK)
            status = append(archive, &tensor, name);
        if (status != COH_OK)
            break;
    }
    json_decref(header);
    return status;
}

/* ---- files ---- */

static coh_status read_header(st_archive *archive, coh_file *file)
{
    const char *path = coh_file_path(file);
    uint64_t size = coh_file_bytes(file), length = 0;
    unsigned char raw[LENGTH_BYTES];
    if (size < LENGTH_BYTES)
        return coh_fail(COH_LENGTH_MISMATCH, "%s: %llu bytes are no safetensors file", path,
                        (unsigned long long)size);
    coh_status status = coh_file_read(file, 0, raw, sizeof raw);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | raw[i];
    if (status != COH_OK)
        return status;
    if (length > size - LENGTH_BYTES || length > HEADER_MAX)
        return coh_fail(COH_LENGTH_MISMATCH, "%s: a header of %llu bytes is not in a file of %llu",
                        path, (unsigned long long)length, (unsigned long long)size);
    char *text = malloc((size_t)length + 1);
    if (!text)
        return coh_fail(COH_NO_MEMORY, "%s: no memory for a header of %llu bytes", path,
                        (unsigned long long)length);
    status = coh_file_read(file, LENGTH_BYTES, text, length);
    if (status == COH_OK)
        status = st_parse(archive, text, length, LENGTH_BYTES + length,
                          size - LENGTH_BYTES - length, file, path);
    free(text);
    return status;
}

static coh_status add_file(st_archive *archive, const char *path)
{
    if (archive->file_count == FILES_MAX)
        return coh_fail(COH_LIMIT, "%s: more than %d files", path, FILES_MAX);
    coh_status status = coh_file_open(path, &archive->files[archive->file_count]);
    if (status != COH_OK)
        return status;
    return read_header(archive, archive->files[archive->file_count++]);
}

coh_status st_open_file(const char *path, st_archive **archive)
{
    st_archive *made = st_new();
    coh_status status =
        made ? add_file(made, path) : coh_fail(COH_NO_MEMORY, "%s: no memory for an archive", path);
    if (status != COH_OK) {
        st_close(made);
        return status;
    }
    *archive = made;
    return COH_OK;
}

/* Each file that the index names, once. */
static coh_status add_indexed(st_archive *archive, const char *folder, const json_t *map)
{
    char path[4096];
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)map, name, value)
    {
        const char *file = json_string_value(value);
        if (!file || strchr(file, '/'))
            return coh_fail(COH_INVALID_ARGUMENT, "%s: the index has no file for '%.64s'", folder,
                            name);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        int known = 0;
        for (size_t i = 0; i < archive->file_count && !known; i++)
            known = strcmp(coh_file_path(archive->files[i]), path) == 0;
        coh_status status = known ? COH_OK : add_file(archive, path);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

static coh_status open_index(const char *folder, const char *path, st_archive **archive)
{
    json_error_t error;
    json_t *index = json_load_file(path, 0, &error);
    const json_t *map = json_object_get(index, "weight_map");
    st_archive *made = st_new();
    coh_status status = !made ? coh_fail(COH_NO_MEMORY, "%s: no memory for an archive", path)
                        : json_is_object(map)
                            ? add_indexed(made, folder, map)
                            : coh_fail(COH_INVALID_ARGUMENT, "%s: it has no weight_map", path);
    json_decref(index);
    if (status != COH_OK) {
        st_close(made);
        return status;
    }
    *archive = made;
    return COH_OK;
}

coh_status st_open(const char *folder, st_archive **archive)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    FILE *index = fopen(path, "re");
    if (index) {
        fclose(index);
        return open_index(folder, path, archive);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    return st_open_file(path, archive);
}
