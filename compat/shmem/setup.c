/* setup.c - setup, exit and query; threads; the environment; how a failure ends the job. */
#include "internal.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shmemi_state shmemi;

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int open_count;                                         /* inits without a finalize */
static bool ends_by_itself;                                    /* start_pes was called */
static bool ends_all;                                          /* shmem_global_exit was */
static bool exiting;                                           /* exit(3) is under way */
static int exit_status;                                        /* what it was given */
static pid_t joined_as;                                        /* the process that is the PE */
static int thread_level = SHMEM_THREAD_MULTIPLE;

/* ---- failure ---- */

static _Noreturn void end_job(void)
{
    fflush(NULL);
    ends_all = true;
    if (shmemi.world)
        (void)coh_global_exit(shmemi.world, EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

void shmemi_fail(const char *routine, const char *format, ...)
{
    char arguments[512], reason[SHMEMI_TEXT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    fprintf(stderr, "shmem: PE %d: %s(%s): %s\n", shmemi.pe, routine, arguments,
            shmemi_translate(coh_last_error(), reason, sizeof reason));
    end_job();
}

void shmemi_refuse(const char *routine, const char *reason)
{
    if (shmemi.world)
        fprintf(stderr, "shmem: PE %d: %s: %s\n", shmemi.pe, routine, reason);
    else
        fprintf(stderr, "shmem: process %d: %s: %s\n", (int)getpid(), routine, reason);
    end_job();
}

/* ---- the environment ---- */

/* The variable, or the one with the old prefix. */
static const char *variable(const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "SHMEM_%s", name);
    const char *value = getenv(full);
    if (value)
        return value;
    snprintf(full, sizeof full, "SMA_%s", name);
    return getenv(full);
}

static uint64_t multiplier(char suffix)
{
    static const char suffixes[] = "kmgt";
    const char *found = suffix ? strchr(suffixes, tolower((unsigned char)suffix)) : NULL;
    return found ? UINT64_C(1) << (10 * (found - suffixes + 1)) : 1;
}

/* A number with a fraction, and a letter; what follows the letter is ignored. */
static bool parse_size(const char *text, uint64_t *bytes)
{
    char *rest;
    errno = 0;
    double number = strtod(text, &rest);
    if (rest == text || errno || !(number >= 0) || (*rest && multiplier(*rest) == 1))
        return false;
    double product = number * (double)multiplier(*rest);
    if (product > (double)(UINT64_C(1) << 46))
        return false;
    *bytes = (uint64_t)product;
    *bytes += (double)*bytes < product;
    return true;
}

/* What the program asked for, and what its variables and the rounding of blocks take beside. */
static bool heap_size(uint64_t *heap)
{
    const char *asked = variable("SYMMETRIC_SIZE");
    uint64_t bytes = 0;
    if (asked && !parse_size(asked, &bytes)) {
        fprintf(stderr,
                "shmem: SHMEM_SYMMETRIC_SIZE is '%s'; it is a number with an optional k, m, g or "
                "t, at most 64t\n",
                asked);
        return false;
    }
    *heap = bytes ? bytes + bytes / 8 + shmemi_globals_bytes() + (UINT64_C(4) << 20) : 0;
    return true;
}

/* Bytes that the host could give now; UINT64_MAX where it does not tell. */
static uint64_t available_memory(void)
{
    char line[128];
    unsigned long long kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

/* The size is a bound, for which no memory is set aside: programs that ask for more than there is
 * and use little of it are right. */
static void warn_of_size(void)
{
    const char *asked = variable("SYMMETRIC_SIZE");
    uint64_t bytes = 0, share = available_memory() / (uint64_t)shmemi.npes;
    if (asked && parse_size(asked, &bytes) && bytes > share)
        fprintf(stderr,
                "shmem: warning: SHMEM_SYMMETRIC_SIZE is %s, but this host has memory for %llu "
                "MiB for each of %d PEs; allocations beyond that return NULL\n",
                asked, (unsigned long long)(share >> 20), shmemi.npes);
}

static void print_info(void)
{
    if (variable("VERSION"))
        printf("OpenSHMEM %d.%d, %s %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION,
               SHMEM_VENDOR_STRING, coh_version_string());
    if (variable("INFO"))
        printf("SHMEM_VERSION         print the version of the library at start\n"
               "SHMEM_INFO            print this text at start\n"
               "SHMEM_SYMMETRIC_SIZE  bytes of symmetric memory of each PE: 64m, 1.5G; the default "
               "is what the host has\n"
               "SHMEM_DEBUG           print messages about joining, failures and leaving\n"
               "SMA_*                 the same four under their old names\n"
               "COHORT_*              see cohort(7)\n");
    fflush(stdout);
}

static void print_message(void *arg, coh_log_level level, const char *message)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    char text[SHMEMI_TEXT_BYTES];
    (void)arg;
    fprintf(stderr, "shmem: %s: %s\n", names[level], shmemi_translate(message, text, sizeof text));
}

/* The launcher asks for warnings, which come in our words; other levels show Cohort's own. */
static void choose_messages(void)
{
    const char *asked = getenv("COHORT_LOG");
    if (variable("DEBUG"))
        coh_log_to(print_message, NULL, COH_LOG_DEBUG);
    else if (asked && strcmp(asked, "warn") == 0)
        coh_log_to(print_message, NULL, COH_LOG_WARN);
}

/* ---- joining and leaving ---- */

static void leave(const char *routine)
{
    coh_world *world = shmemi.world;
    shmemi_close_contexts(SHMEM_TEAM_WORLD);
    shmemi_close_teams();
    if (coh_finalize(world) != COH_OK)
        shmemi_fail(routine, "%s", "");
    shmemi.world = NULL;
    open_count = 0;
}

static void note_exit(int status, void *arg)
{
    (void)arg;
    exiting = true;
    exit_status = status;
}

/* A PE that ends all or that ends with an error waits for nobody: the launcher tells the others. */
static bool ends_alone(void)
{
    return ends_all || (exiting && exit_status != 0);
}

/*
 * exit(3), or a return from main. What started by start_pes is finalized here, as the standard has
 * it, and so is a program that forgot to. This is a destructor of the library because those run
 * after every exit handler and static destructor of the program, which may still call us. A forked
 * child is no PE.
 */
__attribute__((destructor)) static void leave_at_exit(void)
{
    if (!shmemi.world || !exiting || ends_alone() || getpid() != joined_as)
        return;
    leave("exit");
}

/* Without a launcher this is a world of one, whose variables can be symmetric all the same. */
static const char *engine(void)
{
    bool launched = getenv("COHORT_RANK") || getenv("COHORT_ENGINE");
    return launched ? NULL : "shm";
}

static bool join(void)
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = engine();
    char reason[SHMEMI_TEXT_BYTES];
    choose_messages();
    if (!heap_size(&options.heap))
        return false;
    if (coh_init(&options, &shmemi.world) != COH_OK) {
        fprintf(stderr, "shmem: shmem_init: %s\n",
                shmemi_translate(coh_last_error(), reason, sizeof reason));
        return false;
    }
    joined_as = getpid();
    shmemi.pe = coh_rank(shmemi.world);
    shmemi.npes = coh_size(shmemi.world);
    shmemi_open_teams();
    if (!shmemi_open_globals() && shmemi.pe == 0)
        fprintf(stderr, "shmem: the program's variables are not symmetric: %s\n",
                shmemi_translate(coh_last_error(), reason, sizeof reason));
    if (shmemi.pe == 0) {
        warn_of_size();
        print_info();
    }
    static bool registered;
    if (!registered)
        registered = on_exit(note_exit, NULL) == 0;
    return true;
}

static bool initialize(void)
{
    pthread_mutex_lock(&setup_lock);
    bool joined = shmemi.world || join();
    open_count += joined;
    pthread_mutex_unlock(&setup_lock);
    return joined;
}

SHMEMI_DEFINE(void, shmem_init, (void))
{
    if (!initialize())
        exit(EXIT_FAILURE);
}

SHMEMI_DEFINE(int, shmem_init_thread, (int requested, int *provided))
{
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
        return 1;
    if (!initialize())
        return 1;
    if (provided)
        *provided = thread_level;
    return 0;
}

SHMEMI_DEFINE(void, start_pes, (int npes))
{
    (void)npes;
    if (ends_by_itself)
        return;
    ends_by_itself = true;
    if (!initialize())
        exit(EXIT_FAILURE);
}

/* One of the job's processes speaks for all, since what is wrong with one is with the others. */
static bool speaks_for_job(void)
{
    const char *rank = getenv("COHORT_RANK");
    return !rank || strcmp(rank, "0") == 0;
}

/* An error in the standard; but programs do it, and other libraries let them. */
static void warn_of_extra_finalize(void)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    if (!exiting && speaks_for_job() && !atomic_flag_test_and_set(&warned))
        fprintf(stderr,
                "shmem: warning: shmem_finalize without a shmem_init before it is ignored\n");
}

SHMEMI_DEFINE(void, shmem_finalize, (void))
{
    if (ends_alone())
        return;
    pthread_mutex_lock(&setup_lock);
    if (!shmemi.world) {
        pthread_mutex_unlock(&setup_lock);
        warn_of_extra_finalize();
        return;
    }
    int left = --open_count;
    if (left == 0)
        leave(SHMEMI_NAME);
    pthread_mutex_unlock(&setup_lock);
    if (left > 0 && coh_barrier(shmemi.world) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "%s", "");
}

SHMEMI_DEFINE(void, shmem_global_exit, (int status))
{
    shmemi_enter(SHMEMI_NAME);
    ends_all = true;
    (void)coh_global_exit(shmemi.world, status & 0xff); /* what a process can end with */
    shmemi_fail(SHMEMI_NAME, "status=%d", status);
}

SHMEMI_DEFINE(void, shmem_query_initialized, (int *initialized))
{
    *initialized = shmemi.world != NULL;
}

SHMEMI_DEFINE(void, shmem_query_thread, (int *provided))
{
    shmemi_enter(SHMEMI_NAME);
    *provided = thread_level;
}

/* ---- query ---- */

SHMEMI_DEFINE(int, shmem_my_pe, (void))
{
    shmemi_enter(SHMEMI_NAME);
    return shmemi.pe;
}

SHMEMI_DEFINE(int, shmem_n_pes, (void))
{
    shmemi_enter(SHMEMI_NAME);
    return shmemi.npes;
}

SHMEMI_DEFINE(int, _my_pe, (void))
{
    shmemi_enter(SHMEMI_NAME);
    return shmemi.pe;
}

SHMEMI_DEFINE(int, _num_pes, (void))
{
    shmemi_enter(SHMEMI_NAME);
    return shmemi.npes;
}

SHMEMI_DEFINE(int, shmem_pe_accessible, (int pe))
{
    shmemi_enter(SHMEMI_NAME);
    return pe >= 0 && pe < shmemi.npes;
}

SHMEMI_DEFINE(int, shmem_addr_accessible, (const void *addr, int pe))
{
    coh_view view;
    shmemi_enter(SHMEMI_NAME);
    return coh_view_of(shmemi.world, addr, 1, pe, &view) == COH_OK;
}

SHMEMI_DEFINE(void *, shmem_ptr, (const void *dest, int pe))
{
    void *direct;
    shmemi_enter(SHMEMI_NAME);
    return coh_ptr(shmemi.world, dest, pe, &direct) == COH_OK ? direct : NULL;
}

SHMEMI_DEFINE(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe))
{
    void *direct;
    shmemi_enter(SHMEMI_NAME);
    int rank = coh_team_rank(shmemi_team(team)->team, pe);
    return rank >= 0 && coh_ptr(shmemi.world, dest, rank, &direct) == COH_OK ? direct : NULL;
}

SHMEMI_DEFINE(void, shmem_info_get_version, (int *major, int *minor))
{
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

SHMEMI_DEFINE(void, shmem_info_get_name, (char *name))
{
    snprintf(name, SHMEM_MAX_NAME_LEN, "%s", SHMEM_VENDOR_STRING);
}

SHMEMI_DEFINE(void, shmem_pcontrol, (int level, ...))
{
    (void)level; /* a profiler's, which puts its own in this place */
}
