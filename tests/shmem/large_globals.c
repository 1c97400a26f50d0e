/* A large static array that is hardly used takes hardly any memory: not when it becomes symmetric,
 * nor when the library is left; and nothing of what is in it gets lost on the way. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, STEP = 32 * MIB };
#define BYTES ((size_t)512 * MIB)
#define FEW   (BYTES / 8)

static char large[BYTES];
static char initialized[2 * MIB] = {1, 2, 3};

/* Bytes of memory that the files have which are open under this name. */
static size_t memory_of_files(const char *name)
{
    size_t bytes = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[300], target[300] = "";
        struct stat about;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, name)
            && stat(path, &about) == 0)
            bytes += (size_t)about.st_blocks * 512;
    }
    closedir(folder);
    return bytes;
}

static size_t private_memory(void)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %zu", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

/* A byte here and there is `value`, and those beside it are zero. */
static int is_marked(char value)
{
    for (size_t at = STEP / 2; at < BYTES; at += STEP)
        if (large[at] != value || large[at + 1] != 0 || large[at - 1] != 0)
            return 0;
    return initialized[0] == 1 && initialized[2] == 3 && initialized[sizeof initialized - 1] == 0;
}

static void mark(char value)
{
    for (size_t at = STEP / 2; at < BYTES; at += STEP)
        large[at] = value;
}

int main(void)
{
    size_t before = private_memory();
    mark(7);
    shmem_init();
    CHECK(is_marked(7));
    CHECK(memory_of_files("cohort-heap") < FEW);
    int me = shmem_my_pe(), all = shmem_n_pes(), right = (me + 1) % all;
    CHECK(shmem_char_g(&large[BYTES / 2 + STEP / 2], right) == 7);
    CHECK(shmem_char_g(&large[BYTES - 1], right) == 0);
    shmem_barrier_all();
    mark(9);
    shmem_char_p(&large[BYTES - 1], 1, right);
    shmem_finalize();
    if (!is_marked(9) || large[BYTES - 1] != 1)
        return 1;
    if (private_memory() > before + FEW || memory_of_files("cohort-heap") > FEW)
        return 2;
    mark(4); /* no PE sees it now */
    shmem_init();
    CHECK(is_marked(4) && large[BYTES - 1] == 1);
    shmem_finalize();
    return is_marked(4) ? 0 : 3;
}
