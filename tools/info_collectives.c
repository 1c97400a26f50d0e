/*
 * info_collectives.c - `cohort info --collectives`: the algorithms, what the choice among them goes
 * by, and what is chosen. The choice is asked of a world inside this process, so that it is the one
 * that a job would make.
 */
#include "info.h"

#include "base/config.h"
#include "base/os.h"
#include "bootstrap/board.h"
#include "coll/tuning.h"
#include "memory/host_profile.h"
#include "json_text.h"
#include "memory/kernels/kernels.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes up to this are looked at. */
static const size_t most_bytes = (size_t)1 << 30;

/* ---- the algorithms ---- */

static const char *moves_of(const cohi_algorithm *row)
{
    if (row->traits & COHI_BY_LEVELS)
        return "levels";
    return row->traits & COHI_MAPPED ? "mapped" : "messages";
}

static json_t *algorithms_json(coh_collective_kind kind)
{
    json_t *list = json_array();
    const cohi_algorithm *row;
    for (unsigned i = 0; (row = cohi_algorithm_at(i)); i++) {
        if (row->kind == kind)
            json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:b}", "name", row->name,
                                                  "moves", moves_of(row), "rank_order",
                                                  (row->traits & COHI_RANK_ORDER) != 0, "symmetric",
                                                  (row->traits & COHI_NEEDS_BUFFERS) != 0));
    }
    return list;
}

static json_t *collectives_json(void)
{
    json_t *list = json_array();
    for (coh_collective_kind kind = COHI_KIND_FIRST; kind <= COHI_KIND_LAST; kind++)
        json_array_append_new(list, json_pack("{s:s, s:o}", "name", coh_collective_name(kind),
                                              "algorithms", algorithms_json(kind)));
    return list;
}

/* ---- the choice by size ---- */

/* What a team chooses for one collective. */
struct question {
    coh_team *team;
    coh_collective_kind kind;
};

/* Elements of a call in which each rank contributes `bytes`, rounded up to a whole one for each. */
static size_t count_of(const struct question *question, size_t bytes)
{
    size_t ranks = (size_t)coh_team_size(question->team);
    const cohi_kind_row *row = &cohi_kind_rows[question->kind];
    bool shared = row->source_blocks && row->root == COHI_NO_ROOT;
    return shared ? (bytes + ranks - 1) / ranks : bytes;
}

/* NULL when no algorithm does it: one was asked for by name, which cannot. */
static const char *answer(const struct question *question, size_t bytes, double *expected_ns)
{
    const char *name;
    coh_collective call = COH_COLLECTIVE_INIT;
    call.kind = question->kind;
    call.team = question->team;
    call.dtype = COH_U8;
    call.count = count_of(question, bytes);
    return coh_collective_choice(&call, &name, expected_ns) == COH_OK ? name : NULL;
}

static int is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The largest size of [from, to] that has the answer of `from`; `to` has another. */
static size_t last_alike(const struct question *question, size_t from, size_t to)
{
    const char *name = answer(question, from, NULL);
    while (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        if (is_same(answer(question, middle, NULL), name))
            from = middle;
        else
            to = middle;
    }
    return from;
}

static void add_range(json_t *list, const struct question *question, size_t from, size_t to)
{
    double expected_ns = 0;
    const char *name = answer(question, to, &expected_ns);
    json_array_append_new(list, json_pack("{s:I, s:I, s:o, s:o, s:o}", "from_bytes",
                                          (json_int_t)from, "to_bytes", (json_int_t)to, "algorithm",
                                          name ? json_string(name) : json_null(), "expected_ns",
                                          name ? json_real(expected_ns) : json_null(), "reason",
                                          name ? json_null() : cohi_json_text(coh_last_error())));
}

/*
 * The choice goes by powers of two, and within one changes at most once, where an algorithm no
 * longer does the call: so the sizes 2^k and 2^k + 1 are asked for, and what is between bisected.
 */
static json_t *ranges_json(const struct question *question)
{
    json_t *list = json_array();
    size_t begin = 1;
    for (size_t from = 1, to = 2; to <= most_bytes;
         from = to, to = from & 1 ? 2 * (from - 1) : from + 1) {
        if (is_same(answer(question, from, NULL), answer(question, to, NULL)))
            continue;
        size_t end = last_alike(question, from, to);
        add_range(list, question, begin, end);
        begin = end + 1;
    }
    add_range(list, question, begin, most_bytes);
    return list;
}

static json_t *choices_json(coh_world *world)
{
    json_t *list = json_array();
    for (coh_collective_kind kind = COHI_KIND_FIRST; kind <= COHI_KIND_LAST; kind++) {
        struct question question = {coh_team_world(world), kind};
        json_array_append_new(list, json_pack("{s:s, s:o}", "collective", coh_collective_name(kind),
                                              "ranges", ranges_json(&question)));
    }
    return json_pack("{s:i, s:s, s:o}", "ranks", coh_size(world), "engine", coh_engine(world),
                     "choices", list);
}

/* ---- the model ---- */

/* With those described beside them, to show what measuring has changed. */
static json_t *constants_json(const cohi_profile *profile)
{
    json_t *list = json_array();
    cohi_profile described = cohi_profile_describe(cohi_host());
#define ADD(field)                                                                              \
    json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:s, s:s}", "name", #field, "value", \
                                          profile->value[COHI_ROW_##field], "described",        \
                                          described.value[COHI_ROW_##field], "unit",            \
                                          cohi_row_at(COHI_ROW_##field)->unit, "meaning",       \
                                          cohi_row_at(COHI_ROW_##field)->what));
    COHI_MODEL_TABLE(ADD)
#undef ADD
    return list;
}

/* The file that measured constants came from, or null: they are as described. */
static json_t *file_json(const cohi_config *config)
{
    static cohi_host_profile host;
    cohi_host_profile_read(config->profile, &host);
    return host.found ? cohi_json_text(host.path) : json_null();
}

/* A world made, so the file was read and the kernels were chosen. */
static json_t *basis_json(const coh_world *world, const cohi_config *config)
{
    const cohi_tuning *tuning = cohi_tuning_of(world);
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:[]}", "kernels", cohi_kernels_name(),
                     "deterministic", tuning->deterministic != 0, "profile_file", file_json(config),
                     "constants", constants_json(&world->profile), "collectives",
                     collectives_json(), "teams");
}

/* ---- the worlds ---- */

/* Ranks of one process reach each other as processes of one host do, and choose alike; only the
 * simulator's map nothing. */
static const char *engine_inside(const cohi_config *config)
{
    return strncmp(config->engine, "sim", 3) == 0 ? config->engine : "threads";
}

static coh_status ask_ranks(int ranks, const cohi_config *config, json_t **info)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = engine_inside(config);
    options.driven = 1;
    options.heap = 2 << 20;
    coh_world **worlds = calloc((size_t)ranks, sizeof *worlds);
    coh_status status = worlds ? coh_init_threads(ranks, &options, worlds) : COH_NO_MEMORY;
    if (status != COH_OK) {
        free(worlds);
        return status;
    }
    if (!*info)
        *info = basis_json(worlds[0], config);
    json_array_append_new(json_object_get(*info, "teams"), choices_json(worlds[0]));
    for (int rank = 0; rank < ranks; rank++)
        (void)coh_finalize(worlds[rank]);
    free(worlds);
    return COH_OK;
}

static void add_default_ranks(cohi_info_ranks *ranks)
{
    int cores = cohi_os_core_count();
    ranks->list[ranks->count++] = 2;
    if (cores > 2)
        ranks->list[ranks->count++] = cores < COHI_RANKS_MAX ? cores : COHI_RANKS_MAX;
}

json_t *cohi_info_collectives(cohi_info_ranks ranks)
{
    cohi_config config;
    json_t *info = NULL;
    if (cohi_config_load(&config) != COH_OK)
        return NULL;
    if (ranks.count == 0)
        add_default_ranks(&ranks);
    for (int i = 0; i < ranks.count; i++) {
        if (ask_ranks(ranks.list[i], &config, &info) == COH_OK)
            continue;
        json_decref(info);
        return NULL;
    }
    return info;
}

/* ---- printing ---- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void print_kernels(const json_t *info)
{
    printf("  %-22s", "kernels");
    for (int i = 0; cohi_kernels_at(i); i++) {
        const char *name = cohi_kernels_at(i)->name;
        int in_use = strcmp(name, text_of(info, "kernels")) == 0;
        printf(" %s%s%s", in_use ? "[" : "", name, in_use ? "]" : "");
    }
    printf("\n  %-22s %s\n", "reduced",
           json_is_true(json_object_get(info, "deterministic"))
               ? "in the order of the ranks, whatever the algorithm (COHORT_DETERMINISTIC)"
               : "as the algorithm does it");
}

static int print_constants(const json_t *info)
{
    static const char *const titles[] = {"CONSTANT", "VALUE", "DESCRIBED", "UNIT", "MEANING"};
    const json_t *constants = json_object_get(info, "constants");
    const char *file = text_of(info, "profile_file");
    cohi_table table;
    if (cohi_table_make(&table, titles, 5, json_array_size(constants)) != 0)
        return -1;
    printf("\nmodel, %s%s\n", *file ? "from " : "described", file);
    for (size_t i = 0; i < table.count; i++) {
        const json_t *constant = json_array_get(constants, i);
        char(*cell)[COHI_TABLE_CELL_BYTES] = table.rows[i].cell;
        snprintf(cell[0], COHI_TABLE_CELL_BYTES, "%s", text_of(constant, "name"));
        snprintf(cell[1], COHI_TABLE_CELL_BYTES, "%.7g",
                 json_real_value(json_object_get(constant, "value")));
        snprintf(cell[2], COHI_TABLE_CELL_BYTES, "%.7g",
                 json_real_value(json_object_get(constant, "described")));
        snprintf(cell[3], COHI_TABLE_CELL_BYTES, "%s", text_of(constant, "unit"));
        snprintf(cell[4], COHI_TABLE_CELL_BYTES, "%s", text_of(constant, "meaning"));
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

/* "one-shot, two-shot, ring*": those that move data in that way; a star marks another order. */
static void list_algorithms(const json_t *algorithms, const char *moves, char *text)
{
    size_t used = 0, i;
    const json_t *row;
    text[0] = '\0';
    json_array_foreach(algorithms, i, row)
    {
        if (strcmp(text_of(row, "moves"), moves) != 0 || used >= COHI_TABLE_CELL_BYTES)
            continue;
        const char *star = json_is_true(json_object_get(row, "rank_order")) ? "" : "*";
        used += (size_t)snprintf(text + used, COHI_TABLE_CELL_BYTES - used, "%s%s%s",
                                 used ? ", " : "", text_of(row, "name"), star);
    }
}

static int print_algorithms(const json_t *collectives)
{
    static const char *const titles[] = {"COLLECTIVE", "BETWEEN MAPPED RANKS", "BY MESSAGES",
                                         "OVER HOSTS"};
    cohi_table table;
    if (cohi_table_make(&table, titles, 4, json_array_size(collectives)) != 0)
        return -1;
    printf("\nalgorithms (* reduces in another order than that of the ranks)\n");
    for (size_t i = 0; i < table.count; i++) {
        const json_t *row = json_array_get(collectives, i);
        char(*cell)[COHI_TABLE_CELL_BYTES] = table.rows[i].cell;
        snprintf(cell[0], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "name"));
        list_algorithms(json_object_get(row, "algorithms"), "mapped", cell[1]);
        list_algorithms(json_object_get(row, "algorithms"), "messages", cell[2]);
        list_algorithms(json_object_get(row, "algorithms"), "levels", cell[3]);
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

/* "64 KiB", and in bytes what is not whole. */
static void size_text(size_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; unit < 3 && bytes % 1024 == 0 && bytes > 0; unit++)
        bytes /= 1024;
    snprintf(text, room, "%zu %s", bytes, units[unit]);
}

/* "one-shot to 4 KiB, two-shot"; "none to 64 B" where what was asked for cannot. */
static void list_ranges(const json_t *ranges, char *text)
{
    size_t used = 0, i;
    const json_t *range;
    json_array_foreach(ranges, i, range)
    {
        char end[32];
        const char *name = text_of(range, "algorithm");
        int last = i + 1 == json_array_size(ranges);
        size_text((size_t)json_integer_value(json_object_get(range, "to_bytes")), end, sizeof end);
        if (used < COHI_TABLE_CELL_BYTES)
            used += (size_t)snprintf(text + used, COHI_TABLE_CELL_BYTES - used, "%s%s%s%s",
                                     i ? ", " : "", *name ? name : "none", last ? "" : " to ",
                                     last ? "" : end);
    }
}

static int print_choices(const json_t *team)
{
    static const char *const titles[] = {"COLLECTIVE", "CHOSEN, BY BYTES FROM EACH RANK"};
    const json_t *choices = json_object_get(team, "choices");
    cohi_table table;
    if (cohi_table_make(&table, titles, 2, json_array_size(choices)) != 0)
        return -1;
    int ranks = (int)json_integer_value(json_object_get(team, "ranks"));
    printf("\n%d rank%s, engine %s\n", ranks, ranks == 1 ? "" : "s", text_of(team, "engine"));
    for (size_t i = 0; i < table.count; i++) {
        const json_t *row = json_array_get(choices, i);
        snprintf(table.rows[i].cell[0], COHI_TABLE_CELL_BYTES, "%s", text_of(row, "collective"));
        list_ranges(json_object_get(row, "ranges"), table.rows[i].cell[1]);
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

/* The ranks asked are threads, which have no memory that is private. */
static void print_note(void)
{
    printf("\n  Between processes two-shot and direct work on buffers in the symmetric heap; with "
           "private "
           "memory the same calls are staged.\n");
}

int cohi_info_print_collectives(const json_t *info)
{
    size_t i;
    const json_t *team;
    print_kernels(info);
    if (print_constants(info) != 0 || print_algorithms(json_object_get(info, "collectives")) != 0)
        return 1;
    json_array_foreach(json_object_get(info, "teams"), i, team)
    {
        if (print_choices(team) != 0)
            return 1;
    }
    print_note();
    return 0;
}
