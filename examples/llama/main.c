/*
 * llama - generates text with a model in the Llama layout, split over the ranks of a job.
 *
 *     cohort run -n 4 llama --tensor 2 --pipeline 2 --prompt "And God said"
 */
#include "model.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct options {
    const char *folder;
    const char *prompt;
    const char *logits; /* a file for those of the last step */
    int tensor, pipeline;
    int tokens;
    double temperature; /* 0: the likeliest */
    uint64_t seed;
    int quiet;
} options;

static const char usage[] =
    "usage: llama [options]\n"
    "  -m, --model FOLDER     config.json and safetensors (default: the one that is shipped)\n"
    "  -p, --prompt TEXT      what to continue; numbers of tokens where the model has not 256\n"
    "  -n, --tokens N         how many to add (200)\n"
    "  -t, --tensor N         ranks that share each layer (default: all there are)\n"
    "  -s, --pipeline N       stages that follow each other (default: 1)\n"
    "  -T, --temperature X    0 takes the likeliest each time (0)\n"
    "  -S, --seed N           of the choice\n"
    "  -l, --logits FILE      write those of the last step, f32\n"
    "  -q, --quiet            the text alone\n";

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int parse(int argc, char **argv, options *given)
{
    static const struct option longs[] = {{"model", required_argument, NULL, 'm'},
                                          {"prompt", required_argument, NULL, 'p'},
                                          {"tokens", required_argument, NULL, 'n'},
                                          {"tensor", required_argument, NULL, 't'},
                                          {"pipeline", required_argument, NULL, 's'},
                                          {"temperature", required_argument, NULL, 'T'},
                                          {"seed", required_argument, NULL, 'S'},
                                          {"logits", required_argument, NULL, 'l'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    for (int letter; (letter = getopt_long(argc, argv, "m:p:n:t:s:T:S:l:qh", longs, NULL)) != -1;)
        switch (letter) {
        case 'm':
            given->folder = optarg;
            break;
        case 'p':
            given->prompt = optarg;
            break;
        case 'l':
            given->logits = optarg;
            break;
        case 'n':
            given->tokens = atoi(optarg);
            break;
        case 't':
            given->tensor = atoi(optarg);
            break;
        case 's':
            given->pipeline = atoi(optarg);
            break;
        case 'T':
            given->temperature = atof(optarg);
            break;
        case 'S':
            given->seed = strtoull(optarg, NULL, 0);
            break;
        case 'q':
            given->quiet = 1;
            break;
        default:
            fputs(usage, letter == 'h' ? stdout : stderr);
            return letter == 'h' ? 1 : 2;
        }
    return 0;
}

/* ---- tokens ---- */

enum { BYTE_VOCABULARY = 256 };

/* Bytes, or numbers with anything between; how many. */
static int read_prompt(const llama_model *model, const char *text, int32_t *tokens, int room)
{
    int count = 0;
    if (model->config.vocabulary == BYTE_VOCABULARY) {
        for (; *text && count < room; text++)
            tokens[count++] = (unsigned char)*text;
        return count;
    }
    while (count < room && *(text += strcspn(text, "0123456789")))
        tokens[count++] = (int32_t)strtol(text, (char **)&text, 10);
    return count;
}

static void print_token(const llama_model *model, int32_t token)
{
    if (model->config.vocabulary == BYTE_VOCABULARY)
        putchar(token);
    else
        printf(" %d", (int)token);
    fflush(stdout);
}

static double next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

static int32_t likeliest(const float *logits, uint64_t count)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

static int32_t choose(const llama_model *model, double temperature, uint64_t *state)
{
    const float *logits = model->logits;
    uint64_t count = model->config.vocabulary, i = 0;
    int32_t best = likeliest(logits, count);
    double total = 0;
    if (temperature <= 0)
        return best;
    for (uint64_t k = 0; k < count; k++)
        total += exp((logits[k] - logits[best]) / temperature);
    double left = next_random(state) * total;
    for (; i + 1 < count && left > 0; i++)
        left -= exp((logits[i] - logits[best]) / temperature);
    return (int32_t)(i > 0 ? i - 1 : 0);
}

/* ---- generating ---- */

typedef struct figures {
    double seconds;
    double share; /* of the time, in communication */
} figures;

static coh_status generate(llama_model *model, const options *given, figures *seen)
{
    int32_t *tokens = calloc(model->config.context + 1, sizeof *tokens);
    int show = coh_rank(model->world) == 0;
    uint64_t state = given->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (!tokens)
        return coh_fail(COH_NO_MEMORY, "no memory for the tokens");
    int count = read_prompt(model, given->prompt, tokens, (int)model->config.context);
    int most = count + given->tokens < (int)model->config.context ? count + given->tokens
                                                                  : (int)model->config.context;
    if (show && model->config.vocabulary == BYTE_VOCABULARY)
        fputs(given->prompt, stdout);
    coh_status status = count > 0 ? llama_feed(model, tokens, count, 0)
                                  : coh_fail(COH_INVALID_ARGUMENT, "the prompt has no token");
    uint64_t before = llama_communication_ns(model);
    double begun = now();
    int added = 0;
    for (; count < most && status == COH_OK; count++, added++) {
        if (llama_is_last(model))
            tokens[count] = choose(model, given->temperature, &state);
        status = llama_share(model, &tokens[count]);
        if (status == COH_OK && show)
            print_token(model, tokens[count]);
        if (status == COH_OK && count + 1 < most)
            status = llama_feed(model, &tokens[count], 1, count);
    }
    if (show)
        putchar('\n');
    seen->seconds = (now() - begun) / (added > 0 ? added : 1);
    seen->share = (double)(llama_communication_ns(model) - before) * 1e-9 / (now() - begun);
    free(tokens);
    return status;
}

/* The mean over all ranks of each figure, and the sum of the bytes read. */
static coh_status tell(llama_model *model, const figures *seen)
{
    coh_team *all = coh_team_world(model->world);
    float mine[] = {(float)seen->share, (float)model->weights.file_bytes}, sums[2];
    uint64_t arena, least;
    coh_status status = coh_all_reduce(all, COH_F32, COH_SUM, mine, sums, 2);
    if (status == COH_OK)
        status = llama_arena(model, &arena, &least);
    if (status == COH_OK && coh_rank(model->world) == 0)
        printf("\n%d x %d ranks (tensor x pipeline): %.0f tokens/s, %.0f %% of the time in "
               "communication\nthis rank: layers %d to %d, %.2f of %.2f MiB read, arena %.0f KiB "
               "(%.2f of the lower bound)\n",
               model->tensor, model->pipeline, 1 / seen->seconds,
               100 * sums[0] / (float)coh_size(model->world), model->first, model->last - 1,
               (double)model->weights.file_bytes / 1048576, (double)sums[1] / 1048576,
               (double)arena / 1024, (double)arena / (double)least);
    return status;
}

static coh_status write_logits(const llama_model *model, const char *path)
{
    if (!path || coh_rank(model->world) != (model->pipeline - 1) * model->tensor)
        return COH_OK;
    FILE *file = fopen(path, "we");
    size_t count = model->config.vocabulary;
    int good = file && fwrite(model->logits, sizeof(float), count, file) == count;
    if (file && fclose(file) != 0)
        good = 0;
    return good ? COH_OK : coh_fail(COH_SYSTEM, "%s: the logits could not be written", path);
}

static coh_status work(coh_world *world, options *given)
{
    llama_model model;
    figures seen = {0, 0};
    if (given->pipeline == 0)
        given->pipeline = given->tensor > 0 ? coh_size(world) / given->tensor : 1;
    if (given->tensor == 0)
        given->tensor = coh_size(world) / given->pipeline;
    coh_status status = llama_open(&model, world, given->folder, given->tensor, given->pipeline);
    if (status == COH_OK)
        status = generate(&model, given, &seen);
    if (status == COH_OK && !given->quiet)
        status = tell(&model, &seen);
    if (status == COH_OK)
        status = write_logits(&model, given->logits);
    if (status == COH_OK)
        llama_close(&model);
    return status;
}

int main(int argc, char **argv)
{
    options given = {.folder = LLAMA_MODEL, .prompt = "And God said", .tokens = 200, .seed = 1};
    coh_world *world;
    int refused = parse(argc, argv, &given);
    if (refused)
        return refused - 1;
    coh_status status = coh_init(NULL, &world);
    if (status == COH_OK)
        status = work(world, &given);
    if (status != COH_OK) {
        fprintf(stderr, "llama: %s\n", coh_last_error());
        return 1; /* the launcher takes the other ranks down */
    }
    return coh_finalize(world) == COH_OK ? 0 : 1;
}
