/* Large blocks that are freed go back to the host; what is allocated there again has memory, and
 * blocks beside keep what is in them. A program that frees and allocates in turns keeps its own. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, LARGE = 192 * MIB, SMALL = 3 * MIB + 64 };

/* Bytes of memory of this PE's heap. */
static size_t memory_of_heap(void)
{
    size_t most = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[300], target[300] = "";
        struct stat about;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "cohort-heap")
            && stat(path, &about) == 0 && (size_t)about.st_blocks * 512 > most)
            most = (size_t)about.st_blocks * 512;
    }
    closedir(folder);
    return most;
}

static int is_filled(const char *block, size_t bytes, char value)
{
    return block[0] == value && memcmp(block, block + 1, bytes - 1) == 0;
}

static void free_large(void)
{
    char *before = shmem_malloc(SMALL), *large = shmem_malloc(LARGE), *behind = shmem_malloc(SMALL);
    CHECK(before && large && behind);
    memset(before, 1, SMALL);
    memset(large, 2, LARGE);
    memset(behind, 3, SMALL);
    size_t full = memory_of_heap();
    CHECK(full >= LARGE);
    shmem_free(large);
    CHECK(memory_of_heap() <= full - LARGE + MIB);
    CHECK(is_filled(before, SMALL, 1) && is_filled(behind, SMALL, 3));

    large = shmem_malloc(LARGE); /* has memory before it is touched */
    CHECK(large && memory_of_heap() >= LARGE);
    memset(large, 4, LARGE);
    shmem_barrier_all();
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    CHECK(shmem_char_g(&large[LARGE - 1], right) == 4);
    shmem_barrier_all();
    shmem_free(before);
    shmem_free(large);
    CHECK(is_filled(behind, SMALL, 3));
    shmem_free(behind);
}

/* Sizes and order from a seed that all PEs share; every live block has its own mark. */
static void allocate_at_random(void)
{
    enum { SLOTS = 12, ROUNDS = 150 };
    static char *blocks[SLOTS];
    static size_t sizes[SLOTS];
    unsigned seed = 7;
    for (int round = 0; round < ROUNDS; round++) {
        int slot = rand_r(&seed) % SLOTS;
        size_t bytes = (size_t)(rand_r(&seed) % 24 + 1) * MIB + (size_t)(rand_r(&seed) % 5000);
        if (blocks[slot]) {
            CHECK(is_filled(blocks[slot], sizes[slot], (char)slot));
            shmem_free(blocks[slot]);
            blocks[slot] = NULL;
            continue;
        }
        blocks[slot] = shmem_malloc(bytes);
        sizes[slot] = bytes;
        CHECK(blocks[slot]);
        memset(blocks[slot], slot, bytes);
        if (round % 5 == 0) {
            blocks[slot] = shmem_realloc(blocks[slot], 2 * bytes);
            CHECK(blocks[slot] && is_filled(blocks[slot], bytes, (char)slot));
            memset(blocks[slot], slot, sizes[slot] = 2 * bytes);
        }
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        CHECK(!blocks[slot] || is_filled(blocks[slot], sizes[slot], (char)slot));
        shmem_free(blocks[slot]);
    }
}

int main(void)
{
    shmem_init();
    free_large();
    allocate_at_random();
    shmem_finalize();
    return 0;
}
