#include "inject.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what a rank's process must not leave behind ---- */

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* A thread that was joined may be listed for a moment. */
static int threads_left(void)
{
    int count = 0;
    for (int look = 0; look < 100; look++) {
        count = count_entries("/proc/self/task") - 2;
        if (count == 1)
            break;
        usleep(10000);
    }
    return count;
}

/* A board or a heap, by its name or its size. What was registered may stay, as a private view. */
static bool is_ours(const char *line)
{
    unsigned long begin, end;
    char access[8];
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, access) != 3)
        return false;
    return (strstr(line, "memfd:cohort") && access[3] == 's') || end - begin >= HEAP_BYTES / 2;
}

/* Where nothing can be mapped any more, registered memory cannot be made private; and what the kernel
 * does not unmap stays. */
static bool mappings_may_stay(const inject_state *state)
{
    const char *function = state->sites[state->target.site].function;
    return state->struck
           && ((state->lasting && strcmp(function, "mmap") == 0)
               || strcmp(function, "munmap") == 0);
}

static void look_for_mappings(rank_report *report)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        if (is_ours(line))
            rank_finds(report, "a mapping is left: %s", line);
    if (maps)
        fclose(maps);
}

/* A run without failure tells how many blocks of each site stay: what remembers worlds that were
 * finalized. */
static void look_for_blocks(inject_state *state, rank_report *report)
{
    static int counts[INJECT_SITES];
    bool clean = state->target.site < 0;
    inject_blocks_count(counts);
    for (int i = 0; i < state->site_count; i++) {
        inject_site *site = &state->sites[i];
        if (clean && counts[i] > site->kept)
            site->kept = counts[i];
        else if (counts[i] > site->kept)
            rank_finds(report, "%d blocks of %s at %#lx are left, %d in a run without failure",
                       counts[i], site->function, (unsigned long)site->offset, site->kept);
    }
}

static void look_for_leftovers(run_page *page, rank_report *report, int descriptors)
{
    int now = count_entries("/proc/self/fd"), threads = threads_left();
    if (now > descriptors)
        rank_finds(report, "%d descriptors where there were %d", now, descriptors);
    if (threads != 1)
        rank_finds(report, "%d threads are left", threads);
    if (count_entries(inject_folder) > 3)
        rank_finds(report, "a file is left beside the profile");
    if (!mappings_may_stay(&page->state))
        look_for_mappings(report);
    look_for_blocks(&page->state, report);
}

/* ---- ranks ---- */

#define TRY(call) (coh_fail(COH_OK, "%s", ""), rank_notes(self->report, (call), #call))
#define MUST_WORK(call) \
    ((call) == COH_OK || rank_finds(self->report, #call ": %s", coh_last_error()))

static coh_options options_of(const struct scenario *scenario)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = scenario->engine;
    options.heap = HEAP_BYTES;
    return options;
}

static void work_and_leave(rank *self)
{
    self->heap = strcmp(coh_engine(self->world), "sim:channel") != 0;
    program_run(self);
    TRY(coh_finalize(self->world));
}

/* After a failure, all is as if nothing had been. */
static void meet_again(rank *self)
{
    (void)(MUST_WORK(coh_barrier(self->world)) && MUST_WORK(coh_finalize(self->world)));
}

/* ---- as processes ---- */

static void be_rank(const struct scenario *scenario, run_page *page, const coh_unique_id ids[2],
                    int number)
{
    rank member = {.rank = number, .size = RANKS, .report = &page->reports[number]},
         *self = &member;
    coh_options options = options_of(scenario);
    int descriptors = count_entries("/proc/self/fd");
    inject_blocks_begin();
    inject_enable(number == scenario->victim);
    if (TRY(coh_init_unique_id(&ids[0], number, RANKS, &options, &self->world)))
        work_and_leave(self);
    inject_enable(false);
    look_for_leftovers(page, self->report, descriptors);
    setenv("COHORT_INIT_TIMEOUT", "10", 1);
    if (MUST_WORK(coh_init_unique_id(&ids[1], number, RANKS, &options, &self->world)))
        meet_again(self);
    self->report->ended = true;
}

/* The status of a process that was killed by a signal is its number. */
static int reap_all(void)
{
    int worst = 0, status;
    while (wait(&status) > 0)
        if (WIFSIGNALED(status))
            worst = WTERMSIG(status);
    return worst;
}

void job_processes(const struct scenario *scenario, run_page *page)
{
    coh_unique_id ids[2];
    if (coh_unique_id_create(&ids[0]) != COH_OK || coh_unique_id_create(&ids[1]) != COH_OK)
        _exit(1);
    for (int number = 0; number < RANKS; number++) {
        if (fork() != 0)
            continue;
        be_rank(scenario, page, ids, number);
        _exit(0);
    }
    _exit(reap_all());
}

/* ---- as threads ---- */

static void *work_in_thread(void *self)
{
    work_and_leave(self);
    return NULL;
}

static void *meet_in_thread(void *self)
{
    meet_again(self);
    return NULL;
}

static void in_threads(rank *members, void *(*body)(void *))
{
    pthread_t threads[RANKS];
    for (int i = 0; i < RANKS; i++)
        if (pthread_create(&threads[i], NULL, body, &members[i]) != 0)
            _exit(1);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
}

static void make_members(rank *members, coh_world *const *worlds, run_page *page)
{
    for (int i = 0; i < RANKS; i++)
        members[i] = (rank){.rank = i,
                            .size = RANKS,
                            .threads = true,
                            .world = worlds[i],
                            .report = &page->reports[i]};
}

void job_threads(const struct scenario *scenario, run_page *page)
{
    rank members[RANKS], *self = &members[0];
    coh_world *worlds[RANKS] = {NULL};
    coh_options options = options_of(scenario);
    int descriptors = count_entries("/proc/self/fd");
    make_members(members, worlds, page);
    inject_blocks_begin();
    inject_enable(true);
    bool joined = TRY(coh_init_threads(RANKS, &options, worlds));
    make_members(members, worlds, page);
    if (scenario->init_only)
        inject_enable(false);
    if (joined)
        in_threads(members, scenario->init_only ? meet_in_thread : work_in_thread);
    inject_enable(false);
    look_for_leftovers(page, self->report, descriptors);
    bool again = MUST_WORK(coh_init_threads(RANKS, &options, worlds));
    make_members(members, worlds, page);
    if (again)
        in_threads(members, meet_in_thread);
    for (int i = 0; i < RANKS; i++)
        page->reports[i].ended = true;
    _exit(0);
}

/* ---- by the launcher ---- */

void job_launched(const struct scenario *scenario, run_page *page)
{
    (void)page;
    char ranks[16], victim[16];
    snprintf(ranks, sizeof ranks, "%d", RANKS);
    snprintf(victim, sizeof victim, "%d", scenario->victim);
    execl(inject_tool, inject_tool, "run", "--keep-going", "-n", ranks, inject_self, "--member",
          victim, (char *)NULL);
    _exit(1);
}

static run_page *page_of_run(void)
{
    const char *path = getenv("INJECT_STATE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory = mmap(NULL, sizeof(run_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

int job_member(int victim)
{
    const char *number = getenv("COHORT_RANK");
    run_page *page = page_of_run();
    if (!number || !page)
        return 1;
    rank member = {.rank = atoi(number), .size = RANKS}, *self = &member;
    self->report = &page->reports[self->rank];
    coh_options options = options_of(&(struct scenario){.engine = NULL});
    int descriptors = count_entries("/proc/self/fd");
    inject_blocks_begin();
    inject_enable(self->rank == victim);
    if (TRY(coh_init(&options, &self->world)))
        work_and_leave(self);
    inject_enable(false);
    look_for_leftovers(page, self->report, descriptors);
    self->report->ended = true;
    return 0;
}

void job_tool(const struct scenario *scenario, run_page *page)
{
    (void)scenario;
    (void)page;
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", RANKS);
    setenv("LD_PRELOAD", inject_object, 1);
    execl(inject_tool, inject_tool, "run", "-n", ranks, inject_ring, (char *)NULL);
    _exit(1);
}
