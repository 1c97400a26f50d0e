#include "bench/links.h"

#include "bench/bench.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PEERS = 3, WORDS = 32, TEXT = 512, PATH_ROOM = COHI_BENCH_PATH };

/* Longer than any of them takes; one that takes longer hangs. */
#define RUN_LIMIT_NS (180 * COHI_NS_PER_S)

struct words {
    const char *at[WORDS];
    size_t count;
};

struct peer {
    int chosen;
    char program[2 * PATH_ROOM];
    char version[TEXT], command[TEXT], complaint[TEXT];
};

struct cohi_links_peers {
    cohi_bench_folder folder;
    const char *self;
    char ranks[24], sizes[TEXT];
    int crowded;
    unsigned runs; /* so far: each has a folder of its own */
    struct peer peers[PEERS];
};

static void add(struct words *words, const char *word)
{
    if (words->count + 1 < WORDS)
        words->at[words->count++] = word;
}

static void add_all(struct words *words, const char *const *list)
{
    for (; *list; list++)
        add(words, *list);
}

/* ---- how each is built and started ---- */

typedef void make_words(const cohi_links_peers *peers, const struct peer *peer, const char *source,
                        struct words *words);

static void build_openmpi(const cohi_links_peers *peers, const struct peer *peer,
                          const char *source, struct words *words)
{
    (void)peers;
    add_all(words, (const char *[]){"mpicc.openmpi", "-O2", "-std=gnu11", "-o", peer->program,
                                    source, NULL});
}

/* Whatever the ranks could share, they go over TCP: so they would between hosts. */
static void start_openmpi(const cohi_links_peers *peers, const struct peer *peer,
                          const char *scratch, struct words *words)
{
    (void)scratch;
    add(words, "mpirun.openmpi");
    if (geteuid() == 0)
        add(words, "--allow-run-as-root");
    if (peers->crowded)
        add_all(words,
                (const char *[]){"--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", NULL});
    else
        add_all(words, (const char *[]){"--bind-to", "core", NULL});
    add_all(words, (const char *[]){"--oversubscribe", "-n", peers->ranks, "--mca", "pml", "ob1",
                                    "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo",
                                    peer->program, peers->sizes, NULL});
}

static void build_gloo(const cohi_links_peers *peers, const struct peer *peer, const char *source,
                       struct words *words)
{
    (void)peers;
    add_all(words, (const char *[]){"c++", "-O2", "-std=c++17", "-o", peer->program, source,
                                    "-lgloo", "-lpthread", NULL});
}

/* `cohort run` starts what knows nothing of Cohort as well, and tells it its rank. */
static void start_by_shell(const cohi_links_peers *peers, const char *line, const char *program,
                           const char *scratch, struct words *words)
{
    add_all(words, (const char *[]){peers->self, "run", "-n", peers->ranks, "--bind",
                                    peers->crowded ? "none" : "core", "sh", "-c", line, program,
                                    peers->ranks, scratch, peers->sizes, NULL});
}

static void start_gloo(const cohi_links_peers *peers, const struct peer *peer, const char *scratch,
                       struct words *words)
{
    start_by_shell(peers, "exec \"$0\" \"$COHORT_RANK\" \"$@\"", peer->program, scratch, words);
}

static void build_mlx(const cohi_links_peers *peers, const struct peer *peer, const char *source,
                      struct words *words)
{
    (void)peer;
    add_all(words, (const char *[]){"python3", source, peers->folder.path, NULL});
}

static void start_mlx(const cohi_links_peers *peers, const struct peer *peer, const char *scratch,
                      struct words *words)
{
    start_by_shell(peers, "exec python3 \"$0\" \"$COHORT_RANK\" \"$@\"", peer->program, scratch,
                   words);
}

static const struct recipe {
    const char *name;
    const char *source;
    int is_script; /* what runs is the source */
    make_words *build, *start;
} recipes[PEERS] = {
    {"openmpi", "mpi_links.c", 0, build_openmpi, start_openmpi},
    {"gloo", "gloo_links.cc", 0, build_gloo, start_gloo},
    {"mlx", "mlx_links.py", 1, build_mlx, start_mlx},
};

const char *cohi_links_peer_name(unsigned index)
{
    return index < PEERS ? recipes[index].name : NULL;
}

/* ---- running ---- */

struct listener {
    struct peer *peer;
    json_t *times;
};

static void take_line(void *arg, const char *line)
{
    static const char mark[] = "cohort-peer ", version[] = "version ";
    struct listener *listener = arg;
    char name[64], key[96];
    uint64_t bytes;
    double nanoseconds;
    if (strncmp(line, mark, sizeof mark - 1) != 0) {
        if (!*listener->peer->complaint && strspn(line, "- \t") < strlen(line))
            snprintf(listener->peer->complaint, TEXT, "%s", line);
        return;
    }
    line += sizeof mark - 1;
    if (strncmp(line, version, sizeof version - 1) == 0)
        snprintf(listener->peer->version, TEXT, "%s", line + sizeof version - 1);
    else if (sscanf(line, "%63s %" SCNu64 " %lf", name, &bytes, &nanoseconds) == 3) {
        snprintf(key, sizeof key, "%s %" PRIu64, name, bytes);
        json_object_set_new(listener->times, key, json_real(nanoseconds));
    }
}

static void join(const struct words *words, char *text, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < words->count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? " " : "", words->at[i]);
}

static int run_words(const cohi_links_peers *peers, struct words *words, struct listener *listener)
{
    words->at[words->count] = NULL;
    listener->peer->complaint[0] = '\0';
    cohi_bench_child child = {.arguments = (char *const *)(uintptr_t)words->at,
                              .temporary = peers->folder.path,
                              .errors_too = 1,
                              .limit_ns = RUN_LIMIT_NS,
                              .take = take_line,
                              .arg = listener};
    return cohi_bench_child_run(&child);
}

static void refuse(struct peer *peer, const char *name, const char *what, int status)
{
    peer->chosen = 0;
    if (cohi_bench_stopped())
        return;
    fprintf(stderr, "cohort bench links: %s is not measured: %s %s%s%s\n", name, what,
            status < 0                      ? strerror(errno)
            : status == COHI_BENCH_OVERTIME ? "takes too long"
                                            : "failed",
            *peer->complaint ? ": " : "", peer->complaint);
}

static int write_source(const char *folder, const char *name)
{
    char path[2 * PATH_ROOM];
    const cohi_bench_source *source = cohi_bench_sources;
    while (source->name && strcmp(source->name, name) != 0)
        source++;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = source->name ? fopen(path, "w") : NULL;
    if (!file)
        return -1;
    size_t written = fwrite(source->bytes, 1, source->count, file);
    return fclose(file) == 0 && written == source->count ? 0 : -1;
}

static void build(cohi_links_peers *peers, const struct recipe *recipe, struct peer *peer)
{
    char source[2 * PATH_ROOM];
    struct words words = {.count = 0};
    struct listener listener = {.peer = peer, .times = json_object()};
    snprintf(source, sizeof source, "%s/%s", peers->folder.path, recipe->source);
    snprintf(peer->program, sizeof peer->program, recipe->is_script ? "%s/%s" : "%s/%s-links",
             peers->folder.path, recipe->is_script ? recipe->source : recipe->name);
    recipe->build(peers, peer, source, &words);
    int status = write_source(peers->folder.path, recipe->source);
    if (status == 0)
        status = run_words(peers, &words, &listener);
    if (status != 0)
        refuse(peer, recipe->name, words.at[0], status);
    json_decref(listener.times);
}

static void list_sizes(cohi_links_peers *peers, uint64_t ranks)
{
    const cohi_links_row *row;
    size_t used = 0;
    for (int i = 0; (row = cohi_links_row_at(i)); i++)
        if (row->reduces && row->bytes <= cohi_links_most_bytes(ranks))
            used += (size_t)snprintf(peers->sizes + used, sizeof peers->sizes - used, "%s%" PRIu64,
                                     used ? "," : "", row->bytes);
}

cohi_links_peers *cohi_links_peers_open(const cohi_links_options *options, const char *self)
{
    cohi_links_peers *peers = calloc(1, sizeof *peers);
    if (!peers || cohi_bench_folder_make(&peers->folder) != 0
        || write_source(peers->folder.path, "peer.h") != 0) {
        fprintf(stderr, "cohort bench links: no temporary folder can be made: %s\n",
                strerror(errno));
        cohi_links_peers_close(peers);
        return NULL;
    }
    peers->self = self;
    peers->crowded = options->crowded;
    snprintf(peers->ranks, sizeof peers->ranks, "%" PRIu64, 2 * options->ranks);
    list_sizes(peers, options->ranks);
    for (unsigned i = 0; i < PEERS && !cohi_bench_stopped(); i++) {
        peers->peers[i].chosen = options->against >> i & 1;
        if (peers->peers[i].chosen)
            build(peers, &recipes[i], &peers->peers[i]);
    }
    return peers;
}

void cohi_links_peers_close(cohi_links_peers *peers)
{
    if (!peers)
        return;
    if (*peers->folder.path)
        cohi_bench_folder_remove(&peers->folder);
    free(peers);
}

json_t *cohi_links_peer_run(cohi_links_peers *peers, unsigned index)
{
    struct peer *peer = &peers->peers[index];
    char scratch[2 * PATH_ROOM];
    struct words words = {.count = 0};
    struct listener listener = {.peer = peer, .times = json_object()};
    if (peer->chosen) {
        snprintf(scratch, sizeof scratch, "%s/run-%u", peers->folder.path, peers->runs++);
        recipes[index].start(peers, peer, scratch, &words);
        join(&words, peer->command, sizeof peer->command);
        int status = mkdir(scratch, 0700) == 0 ? run_words(peers, &words, &listener) : -1;
        if (status != 0)
            refuse(peer, recipes[index].name, words.at[0], status);
    }
    if (peer->chosen)
        return listener.times;
    json_decref(listener.times);
    return NULL;
}

json_t *cohi_links_peer_json(const cohi_links_peers *peers, unsigned index)
{
    const struct peer *peer = &peers->peers[index];
    return peer->chosen ? json_pack("{s:s, s:s, s:s}", "name", recipes[index].name, "version",
                                    peer->version, "command", peer->command)
                        : NULL;
}
