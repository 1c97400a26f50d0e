/* bench_peers.c - other libraries, measured by programs that are built with their own compilers. */
#include "bench.h"

#include "base/clock.h"
#include "base/os.h"
#include "json_text.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PEERS = 3, WAYS = 2, WORDS = 24, TEXT = 1024, PATH_ROOM = 256 };

/* Longer than any of them takes; one that takes longer hangs. */
#define RUN_LIMIT_NS (120 * COHI_NS_PER_S)

/* How a library is found, built with and started; NULL where a list ends. */
static const struct recipe {
    const char *name;
    const char *source;
    const char *define;         /* so that the compiler of another library is refused */
    const char *compiler[WAYS]; /* by the first that is there, and the launcher beside it */
    const char *launcher[WAYS];
    const char *as_root;
    const char *always[4];
    const char *bound[4];   /* a core for each rank */
    const char *crowded[8]; /* more ranks than cores */
    const char *heap;       /* the variable that sets the symmetric memory, or NULL */
    const char *cases[8];   /* of ours that it has too */
} recipes[PEERS] = {
    {.name = "openmpi",
     .source = "mpi_messages.c",
     .define = "-DPEER_OPENMPI",
     .compiler = {"mpicc.openmpi", "mpicc"},
     .launcher = {"mpirun.openmpi", "mpirun"},
     .as_root = "--allow-run-as-root",
     .bound = {"--bind-to", "core"},
     .crowded = {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
     .cases = {"message", "private_message", "rate", "barrier"}},
    {.name = "oshmem",
     .source = "osh_onesided.c",
     .define = "-DPEER_OSHMEM",
     .compiler = {"oshcc"},
     .launcher = {"oshrun"},
     .as_root = "--allow-run-as-root",
     .always = {"--mca", "osc", "^rdma"}, /* with it, it does not survive finalize */
     .bound = {"--bind-to", "core"},
     .crowded = {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
     .heap = "SHMEM_SYMMETRIC_SIZE",
     .cases = {"quiet", "get", "strided", "fetch_add", "compare_swap", "signal", "barrier"}},
    {.name = "mpich",
     .source = "mpi_messages.c",
     .define = "-DPEER_MPICH",
     .compiler = {"mpicc.mpich", "mpicc"},
     .launcher = {"mpirun.mpich", "mpirun"},
     .bound = {"-bind-to", "core"},
     .cases = {"message", "private_message", "rate", "barrier"}},
};

struct peer {
    int chosen;
    size_t way; /* of the recipe's */
    char program[PATH_ROOM];
    char version[TEXT];
    char command[TEXT]; /* as it was run last */
    char why[TEXT];     /* not empty: it is not available */
};

struct cohi_bench_peers {
    char folder[PATH_ROOM];
    struct peer peers[PEERS];
};

const char *cohi_bench_peer_name(size_t index)
{
    return index < PEERS ? recipes[index].name : NULL;
}

static int has_case(const struct recipe *recipe, const char *name)
{
    size_t most = sizeof recipe->cases / sizeof *recipe->cases;
    for (size_t i = 0; i < most && recipe->cases[i]; i++) {
        if (strcmp(recipe->cases[i], name) == 0)
            return 1;
    }
    return 0;
}

unsigned cohi_bench_peer_cases(unsigned peers)
{
    unsigned mask = 0;
    const cohi_bench_case *row;
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        for (size_t peer = 0; peer < PEERS; peer++) {
            if (peers >> peer & 1 && has_case(&recipes[peer], row->name))
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
                              .temporary = peers->folder,
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
    const char *base = getenv("TMPDIR");
    snprintf(peers->folder, sizeof peers->folder, "%.200s/cohort-peers-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(peers->folder)) {
        fprintf(stderr, "cohort bench: no temporary folder %s: %s\n", peers->folder,
                strerror(errno));
        peers->folder[0] = '\0';
        return -1;
    }
    for (const cohi_bench_source *source = cohi_bench_sources; source->name; source++) {
        if (write_source(peers->folder, source) != 0) {
            fprintf(stderr, "cohort bench: %s/%s could not be written: %s\n", peers->folder,
                    source->name, strerror(errno));
            return -1;
        }
    }
    return 0;
}

static int compile(const cohi_bench_peers *peers, struct peer *peer, const struct recipe *recipe,
                   const char *compiler)
{
    char source[2 * PATH_ROOM], what[64];
    struct words words = {.count = 0};
    struct listener listener = {.peer = peer};
    snprintf(source, sizeof source, "%s/%s", peers->folder, recipe->source);
    const char *const line[] = {compiler, "-O2",         "-std=gnu11", recipe->define,
                                "-o",     peer->program, source};
    add_list(&words, line, sizeof line / sizeof *line);
    snprintf(what, sizeof what, "%s", compiler);
    return judge(peer, what, run_words(peers, &words, &listener), listener.complaint);
}

/* By the first way that works; the reason is the first one's. */
static void build(const cohi_bench_peers *peers, struct peer *peer, const struct recipe *recipe)
{
    char why[TEXT] = "";
    snprintf(peer->program, sizeof peer->program, "%.200s/%s", peers->folder, recipe->name);
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

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *where)
{
    (void)stat, (void)type, (void)where;
    return remove(path);
}

void cohi_bench_peers_close(cohi_bench_peers *peers)
{
    enum { FOLDERS_OPEN = 8 };
    if (peers && peers->folder[0])
        nftw(peers->folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    free(peers);
}

/* ---- running ---- */

/* The arguments of the programs: names and sizes with commas between. */
struct request {
    char names[TEXT];
    char sizes[TEXT];
    char ranks[24];
    char heap[96];
};

static void append(char *list, const char *text)
{
    size_t used = strlen(list);
    snprintf(list + used, TEXT - used, "%s%s", used ? "," : "", text);
}

static void make_request(const struct recipe *recipe, const cohi_bench_options *options,
                         struct request *request)
{
    cohi_bench_sizes sizes = cohi_bench_chosen_sizes(options);
    uint64_t largest = 0;
    const cohi_bench_case *row;
    *request = (struct request){.names = ""};
    for (size_t i = 0; (row = cohi_bench_case_at(i)); i++) {
        if (options->chosen >> i & 1 && has_case(recipe, row->name))
            append(request->names, row->name);
    }
    for (size_t i = 0; i < sizes.count; i++) {
        char size[24];
        snprintf(size, sizeof size, "%" PRIu64, sizes.at[i]);
        append(request->sizes, size);
        largest = sizes.at[i] > largest ? sizes.at[i] : largest;
    }
    snprintf(request->ranks, sizeof request->ranks, "%" PRIu64, options->ranks);
    snprintf(request->heap, sizeof request->heap, "%s=%" PRIu64, recipe->heap ? recipe->heap : "",
             4 * largest + (UINT64_C(64) << 20));
}

static void make_words(const struct peer *peer, const struct recipe *recipe,
                       const struct request *request, int crowded, struct words *words)
{
    add(words, recipe->launcher[peer->way]);
    if (geteuid() == 0)
        add(words, recipe->as_root);
    add(words, "-n");
    add(words, request->ranks);
    add_list(words, crowded ? recipe->crowded : recipe->bound,
             crowded ? sizeof recipe->crowded / sizeof *recipe->crowded
                     : sizeof recipe->bound / sizeof *recipe->bound);
    add_list(words, recipe->always, sizeof recipe->always / sizeof *recipe->always);
    if (recipe->heap) {
        add(words, "-x");
        add(words, request->heap);
    }
    add(words, peer->program);
    add(words, request->names);
    add(words, request->sizes);
}

json_t *cohi_bench_peer_run(cohi_bench_peers *peers, size_t index,
                            const cohi_bench_options *options)
{
    struct peer *peer = &peers->peers[index];
    struct request request;
    struct words words = {.count = 0};
    if (!peer->chosen || *peer->why)
        return NULL;
    make_request(&recipes[index], options, &request);
    if (!*request.names) {
        refuse(peer, "it has none of the chosen benchmarks");
        return NULL;
    }
    make_words(peer, &recipes[index], &request, options->crowded, &words);
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
    if (*peer->why) {
        json_object_set_new(json, "why", cohi_json_text(peer->why));
        return json;
    }
    json_object_set_new(json, "version", cohi_json_text(peer->version));
    json_object_set_new(json, "command", cohi_json_text(peer->command));
    return json;
}
