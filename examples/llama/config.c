#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH_MAX = 1 << 24 };

/* A whole number of 1 to LENGTH_MAX; `fallback` where there is none, unless that is 0. */
static coh_status read_length(const char *path, const json_t *root, const char *name,
                              uint64_t fallback, uint64_t *length)
{
    const json_t *value = json_object_get(root, name);
    json_int_t number = json_integer_value(value);
    if ((!value || json_is_null(value)) && fallback > 0) {
        *length = fallback;
        return COH_OK;
    }
    if (!json_is_integer(value) || number < 1 || number > LENGTH_MAX)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %s must be a number of 1 to %d", path, name,
                        LENGTH_MAX);
    *length = (uint64_t)number;
    return COH_OK;
}

static double read_real(const json_t *root, const char *name, double fallback)
{
    const json_t *value = json_object_get(root, name);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

static coh_status read_lengths(const char *path, const json_t *root, llama_config *config)
{
    const struct {
        const char *name;
        uint64_t *length;
    } rows[] = {
        {"vocab_size", &config->vocabulary},     {"hidden_size", &config->width},
        {"intermediate_size", &config->inner},   {"num_hidden_layers", &config->layers},
        {"num_attention_heads", &config->heads},
    };
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == COH_OK; i++)
        status = read_length(path, root, rows[i].name, 0, rows[i].length);
    if (status == COH_OK)
        status = read_length(path, root, "num_key_value_heads", config->heads, &config->groups);
    if (status == COH_OK)
        status = read_length(path, root, "head_dim", config->width / config->heads, &config->head);
    if (status == COH_OK)
        status = read_length(path, root, "max_position_embeddings", 2048, &config->context);
    return status;
}

/* Fields that change the result and are not supported, unless they are null or false. */
static coh_status check_unsupported(const char *path, const json_t *root)
{
    static const char *const names[] = {"attention_bias", "mlp_bias", "rope_scaling",
                                        "rope_parameters", "quantization_config"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(root, names[i]);
        if (value && !json_is_null(value) && !json_is_false(value))
            return coh_fail(COH_UNSUPPORTED, "%s: %s is not supported", path, names[i]);
    }
    double share = read_real(root, "partial_rotary_factor", 1.0);
    return share == 1.0
               ? COH_OK
               : coh_fail(COH_UNSUPPORTED, "%s: partial_rotary_factor is %g, not 1", path, share);
}

/* What this example does not do is refused here, where it can be named. */
static coh_status check(const char *path, const json_t *root, const llama_config *config)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const char *activation = json_string_value(json_object_get(root, "hidden_act"));
    if (type && strcmp(type, "llama") != 0)
        return coh_fail(COH_UNSUPPORTED, "%s: model_type is %.32s, not llama", path, type);
    if (activation && strcmp(activation, "silu") != 0)
        return coh_fail(COH_UNSUPPORTED, "%s: hidden_act is %.32s, not silu", path, activation);
    if (config->heads % config->groups != 0)
        return coh_fail(
            COH_LENGTH_MISMATCH,
            "%s: num_attention_heads %llu is not a multiple of num_key_value_heads %llu", path,
            (unsigned long long)config->heads, (unsigned long long)config->groups);
    return check_unsupported(path, root);
}

coh_status llama_config_read(const char *folder, llama_config *config)
{
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *root = json_load_file(path, 0, &error);
    if (!root)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: line %d: %s", path, error.line, error.text);
    coh_status status = read_lengths(path, root, config);
    config->eps = read_real(root, "rms_norm_eps", 1e-6);
    config->theta = read_real(root, "rope_theta", 10000.0);
    config->tied = json_is_true(json_object_get(root, "tie_word_embeddings"));
    if (status == COH_OK)
        status = check(path, root, config);
    json_decref(root);
    return status;
}
