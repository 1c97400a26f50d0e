/*
 * race.c - runs one of the omissions: race [--threads N] [--mended] [--deaf] [--linger] NAME, or race
 * --list.
 *
 * Exits with what its ranks found: PART_RIGHT, or the omission's `found`, or PART_FAILED. As a
 * rank of cohort run, or with N ranks as threads. A deaf one does not look at what it found, and
 * exits with 0. A lingering one goes on making calls until what nothing orders has come.
 */
#include "omissions.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MOST = 16 };

struct part {
    coh_world *world;
    const omission *omission;
    bool mended;
    bool deaf;
    bool linger;
    int found;
};

static int part_of(coh_status status)
{
    if (status == COH_OK)
        return PART_RIGHT;
    fprintf(stderr, "%s\n", coh_last_error());
    return status == COH_RACE ? PART_RACE : PART_FAILED;
}

/* Calls by which a rank could learn of others, for longer than anything is left in a log. */
static coh_status linger(coh_world *world)
{
    enum { CALLS = 100, PAUSE_US = 1000 };
    coh_status status = COH_OK;
    for (int i = 0; i < CALLS && status == COH_OK; i++) {
        int there;
        coh_message message;
        status = coh_probe(coh_team_world(world), COH_ANY_RANK, COH_ANY_TAG, &there, &message);
        usleep(PAUSE_US);
    }
    return status;
}

/* A rank with wrong data ends as the others do, so that each of them looks at its own. */
static void *perform(void *arg)
{
    struct part *part = arg;
    bool right = true;
    part->found = part_of(part->omission->body(part->world, part->mended, &right));
    if (part->linger)
        part->found = part_of(linger(part->world));
    if (part->found != PART_RIGHT && !part->deaf)
        return NULL;
    if (!right)
        fprintf(stderr, "rank %d: %s: wrong data\n", coh_rank(part->world), part->omission->name);
    part->found = part_of(coh_finalize(part->world));
    if (!right)
        part->found = PART_WRONG_DATA;
    if (part->deaf)
        part->found = PART_RIGHT;
    return NULL;
}

static int run_process(struct part part)
{
    int found = part_of(coh_init(NULL, &part.world));
    if (found != PART_RIGHT)
        return found;
    perform(&part);
    return part.found;
}

/* What a rank fails with because another has ended tells nothing. */
static int worst(const struct part *parts, int count)
{
    int found = PART_RIGHT;
    for (int i = 0; i < count; i++)
        if (parts[i].found != PART_RIGHT && (found == PART_RIGHT || found == PART_FAILED))
            found = parts[i].found;
    return found;
}

static int run_threads(struct part part, int count)
{
    coh_world *worlds[THREADS_MOST];
    struct part parts[THREADS_MOST];
    pthread_t threads[THREADS_MOST];
    int found = part_of(coh_init_threads(count, NULL, worlds));
    if (found != PART_RIGHT)
        return found;
    for (int i = 0; i < count; i++) {
        parts[i] = part;
        parts[i].world = worlds[i];
        if (pthread_create(&threads[i], NULL, perform, &parts[i]) != 0)
            abort();
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    return worst(parts, count);
}

static const omission *find(const char *name)
{
    const omission *row = omissions;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

static int list(void)
{
    for (const omission *row = omissions; row->name; row++)
        printf("%s %d\n", row->name, row->found);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {
        {"threads", required_argument, NULL, 't'}, {"mended", no_argument, NULL, 'm'},
        {"deaf", no_argument, NULL, 'd'},          {"linger", no_argument, NULL, 'w'},
        {"list", no_argument, NULL, 'l'},          {NULL, 0, NULL, 0}};
    int threads = 0;
    struct part part = {.found = PART_FAILED};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'l')
            return list();
        if (option == 't')
            threads = atoi(optarg);
        else if (option == 'm')
            part.mended = true;
        else if (option == 'd')
            part.deaf = true;
        else if (option == 'w')
            part.linger = true;
        else
            return 2;
    }
    part.omission = optind < argc ? find(argv[optind]) : NULL;
    if (!part.omission || threads < 0 || threads > THREADS_MOST) {
        fprintf(stderr, "usage: %s [--threads 1..%d] [--mended] [--deaf] NAME | --list\n", argv[0],
                THREADS_MOST);
        return 2;
    }
    return threads ? run_threads(part, threads) : run_process(part);
}
