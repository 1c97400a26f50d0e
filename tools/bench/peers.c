/* bench/peers.c - other libraries, measured by programs that are built with their own compilers. */
#include "bench/bench.h"
#include "bench/load.h"

#include "base/clock.h"
#include "base/os.h"
#include "json_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEERS = 3, WAYS = 2, PROGRAMS = 2, WORDS = 32, TEXT = 1024, PATH_ROOM = COHI_BENCH_PATH };

/* Longer than any of them takes; one that takes longer hangs. */
#define RUN_LIMIT_NS (120 * COHI_NS_PER_S)

#define MESSAGES "message", "private_message", "rate", "barrier"
#define COLLECTIVES                                                                           \
    "all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "broadcast", \
        "all_to_all", "scan"

/* How a library is found, built with and started; NULL where a list ends. */
static const struct recipe {
    const char *name;
    const char *define;         /* so that the compiler of another library is refused */
    const char *compiler[WAYS]; /* by the first that is there, and the launcher beside it */
    const char *launcher[WAYS];
    const char *as_root;
    const char *always[4];
    const char *bound[4];   /* a core for each rank */
    const char *crowded[8]; /* more ranks than cores */
    const char *heap;       /* the variable that sets the symmetric memory, or NULL */
    struct program {
        const char *source;
        const char *cases[12]; /* of ours that it has too */
    } programs[PROGRAMS];
} recipes[PEERS] = {
    {.name = "openmpi",
     .define = "-DPEER_OPENMPI",
     .compiler = {"mpicc.openmpi", "mpicc"},
     .launcher = {"mpirun.openmpi", "mpirun"},
     .as_root = "--allow-run-as-root",
     .bound = {"--bind-to", "core"},
     .crowded = {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
     .programs = {{"mpi_messages.c", {MESSAGES}}, {"mpi_collectives.c", {COLLECTIVES}}}},
    {.name = "oshmem",
     .define = "-DPEER_OSHMEM",
     .compiler = {"oshcc"},
     .launcher = {"oshrun"},
     .as_root = "--allow-run-as-root",
     .always = {"--mca", "osc", "^rdma"}, /* with it, it does not survive finalize */
     .bound = {"--bind-to", "core"},
     .crowded = {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
     .heap = "SHMEM_SYMMETRIC_SIZE",
     .programs = {{"osh_onesided.c",
                   {"quiet", "get", "strided", "fetch_add", "compare_swap", "signal", "barrier"}}}},
    {.name = "mpich",
     .define = "-DPEER_MPICH",
     .compiler = {"mpicc.mpich", "mpicc"},
     .launcher = {"mpirun.mpich", "mpirun"},
     .bound = {"-bind-to", "core"},
     .crowded = {"-genv", "MPIR_CVAR_POLLS_BEFORE_YIELD", "1"},
     .programs = {{"mpi_messages.c", {MESSAGES}}, {"mpi_collectives.c", {COLLECTIVES}}}},
};

struct peer {
    int chosen;
    size_t way; /* of the recipe's */
    char programs[PROGRAMS][PATH_ROOM];
    char version[TEXT];
    char command[TEXT]; /* as it was run last */
    char why[TEXT];     /* not empty: it is not available */
};

struct cohi_bench_peers {
    cohi_bench_folder folder;
    struct peer peers[PEERS];
};

const char *cohi_bench_peer_name(size_t index)
{
    return index < PEERS ? recipes[index].name : NULL;
}

/* Which of its programs has the benchmark; -1: none. */
static int program_of(const struct recipe *recipe, const char *name)
{
    size_t most = sizeof recipe->programs[0].cases / sizeof *recipe->programs[0].cases;
    for (int program = 0; program < PROGRAMS; program++) {
        for (size_t i = 0; i < most && recipe->programs[program].cases[i]; i++) {
            if (strcmp(recipe->programs[program].cases[i], name) == 0)
                return program;
        }
    }
    return -1;
}

unsigned cohi_bench_peer_cases(unsigned peers)
{
    unsigned mask = 0;
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        for (size_t peer = 0; peer < PEERS; peer++) {
            if (peers >> peer & 1 && program_of(&recipes[peer], row->name) >= 0)
                mask |= 1u << i;
        }
    }
    return mask;
}

/* ---- command lines ---- */

struct words {
    char *at[WORDS];
    size_t count;
};

/* There is room for all that the recipes can add. */
static void add(struct words *words, const char *word)
{
    if (word && words->count + 1 < WORDS)
        words->at[words->count++] = (char *)(uintptr_t)word;
}

static void add_list(struct words *words, const char *const *list, size_t most)
{
    for (size_t i = 0; i < most && list[i]; i++)
        add(words, list[i]);
}

static void join(const struct words *words, char *text, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < words->count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? " " : "", words->at[i]);
}

static int in_path(const char *program)
{
    const char *path = getenv("PATH");
    char *copy = strdup(path ? path : "/usr/bin:/bin"), *rest = copy, *folder;
    char file[4096];
    int found = 0;
    while (!found && (folder = strsep(&rest, ":"))) {
        snprintf(file, sizeof file, "%s/%s", folder, program);
        found = access(file, X_OK) == 0;
    }
    free(copy);
    return found;
}

/* ---- what they say ---- */

/* A program's lines: what is meant for us, and the first of the rest, which may say why it
 * failed. */
struct listener {
    json_t *times;
    struct peer *peer;
    char complaint[TEXT];
};

static void take_time(struct listener *listener, const char *text)
{
    char name[64], key[96];
    uint64_t bytes;
    double nanoseconds;
    if (sscanf(text, "%63s %" SCNu64 " %lf", name, &bytes, &nanoseconds) != 3)
        return;
    snprintf(key, sizeof key, "%s %" PRIu64, name, bytes);
    json_object_set_new(listener->times, key, json_real(nanoseconds));
}

static void take_line(void *arg, const char *line)
{
    static const char mark[] = "cohort-peer ", version[] = "version ";
    struct listener *listener = arg;
    if (strncmp(line, mark, sizeof mark - 1) != 0) {
        int telling = strspn(line, "- \t") < strlen(line);
        int better = !*listener->complaint || strstr(line, "error");
        if (telling && better && !strstr(listener->complaint, "error"))
            snprintf(listener->complaint, TEXT, "%s", line + strspn(line, " \t"));
        return;
    }
    line += sizeof mark - 1;
    if (strncmp(line, version, sizeof version - 1) == 0)
        snprintf(listener->peer->version, TEXT, "%s", line + sizeof version - 1);
    else
        take_time(listener, line);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct peer *peer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(peer->why, sizeof peer->why, format, arguments);
    va_end(arguments);
}

/* What a command came to; 0 when it went well. A stop by the user is no fault of the peer's. */
static int judge(struct peer *peer, const char *what, int status, const char *complaint)
{
    if (status == 0 || cohi_bench_stopped())
        return status;
    if (status < 0)
        refuse(peer, "%s could not be started: %s", what, strerror(errno));
    else if (status == COHI_BENCH_OVERTIME)
        refuse(peer, "%s did not end within %d s", what, (int)(RUN_LIMIT_NS / COHI_NS_PER_S));
    else
        refuse(peer, "%s ended with status %d%s%s", what, status, *complaint ? ": " : "",
               complaint);
    return status;
}

static int run_words(const cohi_bench_peers *peers, struct words *words, struct listener *listener)
{
    words->at[words->count] = NULL;
    cohi_bench_child child = {.arguments = words->at,
                              .temporary = peers->folder.path,
                              .errors_too = 1,
                              .limit_ns = RUN_LIMIT_NS,
                              .take = take_line,
                              .arg = listener};
    return cohi_bench_child_run(&child);
}

/* ---- building ---- */

static int write_source(const char *folder, const cohi_bench_source *source)
{
    char path[2 * PATH_ROOM];
    snprintf(path, sizeof path, "%s/%s", folder, source->name);
    FILE *file = fopen(path, "wx");
    if (!file)
        return -1;
    size_t written = fwrite(source->bytes, 1, source->count, file);
    return fclose(file) == 0 && written == source->count ? 0 : -1;
}

static int make_folder(cohi_bench_peers *peers)
{
    if (cohi_bench_folder_make(&peers->folder) != 0) {
        fprintf(stderr, "cohort bench: no temporary folder can be made: %s\n", strerror(errno));
        return -1;
    }
    const char *path = peers->folder.path;
    for (const cohi_bench_source *source = cohi_bench_sources; source->name; source++) {
        if (write_source(path, source) != 0) {
            fprintf(stderr, "cohort bench: %s/%s could not be written: %s\n", path, source->name,
                    strerror(errno));
            return -1;
        }
    }
    return 0;
}

static int compile_one(const cohi_bench_peers *peers, struct peer *peer,
                       const struct recipe *recipe, const char *compiler, int program)
{
    char source[2 * PATH_ROOM], what[64];
    struct words words = {.count = 0};
    struct listener listener = {.peer = peer};
    snprintf(source, sizeof source, "%s/%s", peers->folder.path, recipe->programs[program].source);
    snprintf(peer->programs[program], PATH_ROOM, "%.180s/%s-%d", peers->folder.path, recipe->name,
             program);
    const char *const line[] = {
        compiler, "-O2", "-std=gnu11", recipe->define, "-o", peer->programs[program], source};
    add_list(&words, line, sizeof line / sizeof *line);
    snprintf(what, sizeof what, "%s", compiler);
    return judge(peer, what, run_words(peers, &words, &listener), listener.complaint);
}

static int compile(const cohi_bench_peers *peers, struct peer *peer, const struct recipe *recipe,
                   const char *compiler)
{
    int status = 0;
    for (int i = 0; i < PROGRAMS && recipe->programs[i].source && status == 0; i++)
        status = compile_one(peers, peer, recipe, compiler, i);
    return status;
}

/* By the first way that works; the reason is the first one's. */
static void build(const cohi_bench_peers *peers, struct peer *peer, const struct recipe *recipe)
{
    char why[TEXT] = "";
    for (size_t way = 0; way < WAYS && recipe->compiler[way]; way++) {
        const char *missing = !in_path(recipe->compiler[way])   ? recipe->compiler[way]
                              : !in_path(recipe->launcher[way]) ? recipe->launcher[way]
                                                                : NULL;
        peer->why[0] = '\0';
        peer->way = way;
        if (missing)
            refuse(peer, "%s is not in PATH", missing);
        else if (compile(peers, peer, recipe, recipe->compiler[way]) == 0)
            return;
        if (!*why)
            snprintf(why, sizeof why, "%s", peer->why);
    }
    snprintf(peer->why, sizeof peer->why, "%s", why);
}

unsigned cohi_bench_peers_installed(void)
{
    unsigned mask = 0;
    for (size_t i = 0; i < PEERS; i++) {
        const struct recipe *recipe = &recipes[i];
        for (size_t way = 0; way < WAYS && recipe->compiler[way]; way++) {
            if (in_path(recipe->compiler[way]) && in_path(recipe->launcher[way]))
                mask |= 1u << i;
        }
    }
    return mask;
}

cohi_bench_peers *cohi_bench_peers_open(const cohi_bench_options *options)
{
    cohi_bench_peers *peers = calloc(1, sizeof *peers);
    if (!peers || make_folder(peers) != 0) {
        cohi_bench_peers_close(peers);
        return NULL;
    }
    for (size_t i = 0; i < PEERS && !cohi_bench_stopped(); i++) {
        peers->peers[i].chosen = options->against >> i & 1;
        if (peers->peers[i].chosen)
            build(peers, &peers->peers[i], &recipes[i]);
    }
    return peers;
}

void cohi_bench_peers_close(cohi_bench_peers *peers)
{
    if (peers)
        cohi_bench_folder_remove(&peers->folder);
    free(peers);
}

/* ---- running ---- */

/* The arguments of the programs: names and sizes with commas between. */
struct request {
    int program;
    char names[TEXT];
    char sizes[TEXT];
    char ranks[24];
    char round_ms[24];
    char heap[96];
    uint64_t largest;
};

/* Once each, however many points have it. */
static void append(char *list, const char *text)
{
    size_t used = strlen(list), length = strlen(text);
    for (const char *at = list; (at = strstr(at, text)); at += length) {
        int begins = at == list || at[-1] == ',';
        if (begins && (at[length] == ',' || at[length] == '\0'))
            return;
    }
    snprintf(list + used, TEXT - used, "%s%s", used ? "," : "", text);
}

static void add_point(const cohi_bench_point *point, struct request *request)
{
    char text[96];
    cohi_bench_point_key(point, text, sizeof text);
    append(request->names, text);
    snprintf(text, sizeof text, "%" PRIu64, point->bytes);
    if (point->bytes)
        append(request->sizes, text);
    request->largest = point->bytes > request->largest ? point->bytes : request->largest;
}

/* All points are of one benchmark, or of one program at least. */
static void make_request(const struct recipe *recipe, const cohi_bench_points *points,
                         uint64_t ranks, struct request *request)
{
    *request = (struct request){.program = -1};
    for (size_t i = 0; i < points->count; i++) {
        int program = program_of(recipe, points->at[i].row->name);
        if (program < 0)
            continue;
        request->program = program;
        add_point(&points->at[i], request);
    }
    if (!*request->sizes)
        append(request->sizes, "8");
    snprintf(request->ranks, sizeof request->ranks, "%" PRIu64, ranks);
    snprintf(request->round_ms, sizeof request->round_ms, "%d", COHI_BENCH_LOADED_MS);
    snprintf(request->heap, sizeof request->heap, "%s=%" PRIu64, recipe->heap ? recipe->heap : "",
             4 * request->largest + (UINT64_C(64) << 20));
}

/* Beside busy processes they are started as on idle cores. Two of those beside two ranks, Open MPI's
 * barrier takes 0.5 us; told to yield it takes 2 ms. MPICH's is the same either way. */
static void make_words(const struct peer *peer, const struct recipe *recipe,
                       const struct request *request, const cohi_bench_options *options,
                       struct words *words)
{
    add(words, recipe->launcher[peer->way]);
    if (geteuid() == 0)
        add(words, recipe->as_root);
    add(words, "-n");
    add(words, request->ranks);
    add_list(words, options->crowded ? recipe->crowded : recipe->bound,
             options->crowded ? sizeof recipe->crowded / sizeof *recipe->crowded
                              : sizeof recipe->bound / sizeof *recipe->bound);
    add_list(words, recipe->always, sizeof recipe->always / sizeof *recipe->always);
    if (recipe->heap) {
        add(words, "-x");
        add(words, request->heap);
    }
    add(words, peer->programs[request->program]);
    add(words, request->names);
    add(words, request->sizes);
    if (options->load)
        add(words, request->round_ms);
}

json_t *cohi_bench_peer_run(cohi_bench_peers *peers, size_t index,
                            const cohi_bench_options *options, const cohi_bench_points *points)
{
    struct peer *peer = &peers->peers[index];
    struct request request;
    struct words words = {.count = 0};
    if (!peer->chosen || *peer->why)
        return NULL;
    make_request(&recipes[index], points, options->ranks, &request);
    if (request.program < 0)
        return json_object();
    make_words(peer, &recipes[index], &request, options, &words);
    join(&words, peer->command, sizeof peer->command);
    struct listener listener = {.times = json_object(), .peer = peer};
    int status = run_words(peers, &words, &listener);
    if (judge(peer, recipes[index].launcher[peer->way], status, listener.complaint) == 0)
        return listener.times;
    json_decref(listener.times);
    return NULL;
}

json_t *cohi_bench_peer_json(const cohi_bench_peers *peers, size_t index)
{
    const struct peer *peer = &peers->peers[index];
    if (!peer->chosen)
        return NULL;
    json_t *json = json_pack("{s:s}", "name", recipes[index].name);
    const char *why = *peer->why ? peer->why : *peer->command ? NULL : COHI_BENCH_NOT_RUN;
    if (why) {
        json_object_set_new(json, "why", cohi_json_text(why));
        return json;
    }
    json_object_set_new(json, "version", cohi_json_text(peer->version));
    json_object_set_new(json, "command", cohi_json_text(peer->command));
    return json;
}
