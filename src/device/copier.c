/*
 * copier.c - asynchronous copies.
 *
 * A copy takes a slot from its issue to its wait. Its number is a multiple of the slots plus the
 * slot's index, and grows with every use of the slot: so a token finds its slot, and a token that
 * was spent, or never was, is found out. Slots that have work to do stand in a queue.
 *
 * A copy is done in pieces. Workers take the next piece of the first slot in the queue, and a
 * thread that waits for a copy takes pieces of that one, so it
 * never idles while there is work on its own copy, and a computation that is ahead of its copies
 * makes up for it. Each piece is taken, and accounted for, under the lock.
 */
#include "device/event.h"
#include "device/file.h"
#include "device/fork.h"
#include "device/options.h"
#include "device/pause.h"
#include "device/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_DEPTH = 256, MOST_DEPTH = 1 << 20, MOST_WORKERS = 256 };

/* Short compared with a tile, long compared with the lock. 64, 128 and 256 KiB could not be told apart in seven
 * runs of `cohort bench pipeline`. */
enum { PIECE_BYTES = 128 << 10 };

typedef struct slot {
    uint64_t copy;               /* the number of the copy that has it; 0: it is free */
    uint64_t uses;               /* so far */
    atomic_uint_least64_t ended; /* the number of the last copy that ended here */
    void *target;
    const void *source;
    const coh_file *file; /* NULL: from memory */
    uint64_t offset;
    size_t bytes;
    size_t taken;          /* bytes, from the first on, that a thread copies or has copied */
    size_t settled;        /* bytes that were copied, or are not going to be */
    cohi_failure *failure; /* of the first piece that failed; NULL when none did */
    size_t failed_at;
    struct slot *earlier, *later; /* in the queue, where it stands until all of it is taken */
} slot;

struct coh_copier {
    uint64_t number; /* of all copiers of the process */
    unsigned forks;  /* when it was made */
    bool synchronous;
    bool stopping;
    uint32_t depth;
    uint32_t worker_count;
    pthread_t *workers;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t ended;
    slot *slots;
    uint32_t *unused; /* indices of free slots, a stack */
    uint32_t unused_count;
    slot *first, *last;              /* of the queue */
    uint64_t left;                   /* the queue so far */
    atomic_uint_least64_t requested; /* put into the queue; written under the lock */
};

/* A copier that this process can use. */
static coh_status check_copier(const char *call, const coh_copier *copier)
{
    coh_status status = cohi_not_null(call, "copier", copier);
    return status == COH_OK ? cohi_fork_check(call, "copier", copier->forks) : status;
}

/* ---- carrying out ---- */

static cohi_failure out_of_memory = {COH_NO_MEMORY, "no memory was left for the copy's error"};

static cohi_failure *keep_failure(coh_status status)
{
    cohi_failure *failure = malloc(sizeof *failure);
    if (!failure)
        return &out_of_memory;
    cohi_failure_keep(failure, status);
    return failure;
}

static void free_failure(cohi_failure *failure)
{
    if (failure != &out_of_memory)
        free(failure);
}

static void enter_queue(coh_copier *copier, slot *self)
{
    self->earlier = copier->last;
    self->later = NULL;
    *(copier->last ? &copier->last->later : &copier->first) = self;
    copier->last = self;
    atomic_store(&copier->requested, atomic_load(&copier->requested) + 1);
}

static void leave_queue(coh_copier *copier, slot *self)
{
    *(self->earlier ? &self->earlier->later : &copier->first) = self->later;
    *(self->later ? &self->later->earlier : &copier->last) = self->earlier;
    copier->left++;
}

/* Bytes [at, at + bytes) of a slot's copy; the slot's description of it does not change before they
 * are settled. */
static coh_status copy_piece(const slot *self, size_t at, size_t bytes)
{
    char *target = (char *)self->target + at;
    if (self->file)
        return cohi_file_fill(self->file, self->offset + at, target, bytes);
    memcpy(target, (const char *)self->source + at, bytes);
    return COH_OK;
}

/* The rest is given up. What was taken before may still fail, and is then the first that did. */
static void settle_failure(coh_copier *copier, slot *self, size_t at, cohi_failure *failure)
{
    if (self->failure && self->failed_at < at) {
        free_failure(failure);
        return;
    }
    free_failure(self->failure);
    self->failure = failure;
    self->failed_at = at;
    if (self->taken < self->bytes) {
        self->settled += self->bytes - self->taken;
        self->taken = self->bytes;
        leave_queue(copier, self);
    }
}

/* Copies the next piece of a slot that has one. Enters and leaves with the lock, without which it
 * copies. */
static void carry_out_piece(coh_copier *copier, slot *self)
{
    size_t at = self->taken, left = self->bytes - at;
    size_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
    self->taken += bytes;
    if (self->taken == self->bytes)
        leave_queue(copier, self);
    pthread_mutex_unlock(&copier->lock);
    coh_status status = copy_piece(self, at, bytes);
    cohi_failure *failure = status == COH_OK ? NULL : keep_failure(status);
    pthread_mutex_lock(&copier->lock);
    if (failure)
        settle_failure(copier, self, at, failure);
    self->settled += bytes;
    if (self->settled == self->bytes) {
        atomic_store(&self->ended, self->copy);
        pthread_cond_broadcast(&copier->ended);
    }
}

/* Enters and leaves with the lock. False when there is nothing to do and the end has come. */
static bool wait_for_work(coh_copier *copier, uint64_t *patience)
{
    uint64_t next = copier->left + 1, free_ns = cohi_now_ns();
    if (!copier->first && !copier->stopping) {
        pthread_mutex_unlock(&copier->lock);
        cohi_pause_for(&copier->requested, next, *patience);
        pthread_mutex_lock(&copier->lock);
    }
    while (!copier->stopping && !copier->first)
        pthread_cond_wait(&copier->work, &copier->lock);
    *patience = cohi_pause_after(cohi_now_ns() - free_ns);
    return copier->first;
}

static bool has_several_pieces(const coh_copier *copier)
{
    const slot *first = copier->first;
    return first->later || first->bytes - first->taken > PIECE_BYTES;
}

static void *work(void *arg)
{
    coh_copier *copier = arg;
    uint64_t patience = COHI_PAUSE_SHORT_NS;
    pthread_mutex_lock(&copier->lock);
    while (wait_for_work(copier, &patience)) {
        if (has_several_pieces(copier))
            pthread_cond_signal(&copier->work); /* another worker may be asleep */
        carry_out_piece(copier, copier->first);
    }
    pthread_mutex_unlock(&copier->lock);
    return NULL;
}

/* ---- life ---- */

static void stop_workers(coh_copier *copier)
{
    pthread_mutex_lock(&copier->lock);
    copier->stopping = true;
    pthread_cond_broadcast(&copier->work);
    pthread_mutex_unlock(&copier->lock);
    for (uint32_t i = 0; i < copier->worker_count; i++)
        pthread_join(copier->workers[i], NULL);
}

static void free_copier(coh_copier *copier)
{
    for (uint32_t i = 0; copier->slots && i < copier->depth; i++)
        free_failure(copier->slots[i].failure);
    pthread_cond_destroy(&copier->ended);
    pthread_cond_destroy(&copier->work);
    pthread_mutex_destroy(&copier->lock);
    free(copier->workers);
    free(copier->slots);
    free(copier->unused);
    free(copier);
}

static coh_copier *make_copier(const coh_copier_options *options, uint32_t workers)
{
    static atomic_uint_least64_t count;
    coh_copier *copier = calloc(1, sizeof *copier);
    if (!copier)
        return NULL;
    copier->number = atomic_fetch_add(&count, 1) + 1;
    copier->forks = cohi_fork_count();
    copier->synchronous = options->synchronous != 0;
    copier->depth = options->depth ? options->depth : USUAL_DEPTH;
    copier->workers = calloc(workers + 1, sizeof *copier->workers);
    copier->slots = calloc(copier->depth, sizeof *copier->slots);
    copier->unused = calloc(copier->depth, sizeof *copier->unused);
    pthread_mutex_init(&copier->lock, NULL);
    pthread_cond_init(&copier->work, NULL);
    pthread_cond_init(&copier->ended, NULL);
    if (!copier->workers || !copier->slots || !copier->unused) {
        free_copier(copier);
        return NULL;
    }
    for (uint32_t i = 0; i < copier->depth; i++)
        copier->unused[copier->unused_count++] = copier->depth - 1 - i;
    return copier;
}

static coh_status check_options(const char *call, const coh_copier_options *options)
{
    if (options->depth > MOST_DEPTH)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: a depth of %u; give at most %d", call,
                        options->depth, MOST_DEPTH);
    if (options->workers > MOST_WORKERS)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %u workers; give at most %d", call,
                        options->workers, MOST_WORKERS);
    return COH_OK;
}

coh_status coh_copier_create(const coh_copier_options *options, coh_copier **copier)
{
    const char *call = "coh_copier_create";
    coh_copier_options chosen = COH_COPIER_OPTIONS_INIT;
    coh_status status = cohi_options_take(call, options, &chosen, sizeof chosen);
    if (status == COH_OK)
        status = cohi_not_null(call, "copier", copier);
    if (status == COH_OK)
        status = check_options(call, &chosen);
    if (status != COH_OK)
        return status;
    uint32_t workers = chosen.synchronous ? 0 : chosen.workers ? chosen.workers : 1;
    coh_copier *made = make_copier(&chosen, workers);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    int error = 0;
    while (!error && made->worker_count < workers) {
        error = cohi_worker_start("coh-copier", work, made, &made->workers[made->worker_count]);
        made->worker_count += error ? 0 : 1;
    }
    if (error) {
        stop_workers(made);
        free_copier(made);
        return cohi_fail_errno(error, "%s: starting a worker", call);
    }
    *copier = made;
    return COH_OK;
}

coh_status coh_copier_destroy(coh_copier *copier)
{
    if (!copier)
        return COH_OK;
    coh_status status = cohi_fork_check("coh_copier_destroy", "copier", copier->forks);
    if (status != COH_OK)
        return status;
    stop_workers(copier);
    free_copier(copier);
    return COH_OK;
}

/* ---- issue ---- */

/* Takes a slot for the copy that `wanted` describes, and starts it; NULL when none is free. */
static slot *start(coh_copier *copier, const slot *wanted)
{
    slot *self = NULL;
    pthread_mutex_lock(&copier->lock);
    if (copier->unused_count > 0) {
        uint32_t index = copier->unused[--copier->unused_count];
        self = &copier->slots[index];
        self->copy = ++self->uses * copier->depth + index;
        self->target = wanted->target;
        self->source = wanted->source;
        self->file = wanted->file;
        self->offset = wanted->offset;
        self->bytes = wanted->bytes;
        self->taken = self->settled = 0;
        if (copier->synchronous || self->bytes == 0) {
            self->taken = self->bytes;
        } else {
            enter_queue(copier, self);
            pthread_cond_signal(&copier->work);
        }
    }
    pthread_mutex_unlock(&copier->lock);
    return self;
}

/* A copy that is in no queue. */
static void carry_out_at_once(slot *self)
{
    coh_status status = self->bytes > 0 ? copy_piece(self, 0, self->bytes) : COH_OK;
    if (status != COH_OK)
        self->failure = keep_failure(status);
    atomic_store(&self->ended, self->copy);
}

static coh_status issue(const char *call, coh_copier *copier, const slot *wanted, coh_token *token)
{
    slot *self = start(copier, wanted);
    if (!self)
        return coh_fail(COH_LIMIT,
                        "%s: %u copies were issued and not waited for; wait for one, or make the "
                        "copier with more depth",
                        call, copier->depth);
    *token = (coh_token){copier->number, self->copy};
    if (copier->synchronous || wanted->bytes == 0)
        carry_out_at_once(self);
    return COH_OK;
}

static coh_status check_issue(const char *call, const coh_copier *copier, const void *target,
                              size_t bytes, const coh_token *token)
{
    coh_status status = check_copier(call, copier);
    if (status == COH_OK)
        status = cohi_not_null(call, "token", token);
    if (status == COH_OK && bytes > 0)
        status = cohi_not_null(call, "target", target);
    return status;
}

coh_status coh_copier_issue(coh_copier *copier, void *target, const void *source, size_t bytes,
                            coh_token *token)
{
    const char *call = "coh_copier_issue";
    slot wanted = {.target = target, .source = source, .bytes = bytes};
    coh_status status = check_issue(call, copier, target, bytes, token);
    if (status == COH_OK && bytes > 0)
        status = cohi_not_null(call, "source", source);
    return status == COH_OK ? issue(call, copier, &wanted, token) : status;
}

coh_status coh_copier_issue_file(coh_copier *copier, void *target, coh_file *file, uint64_t offset,
                                 size_t bytes, coh_token *token)
{
    const char *call = "coh_copier_issue_file";
    slot wanted = {.target = target, .file = file, .offset = offset, .bytes = bytes};
    coh_status status = check_issue(call, copier, target, bytes, token);
    if (status == COH_OK)
        status = cohi_file_range(call, file, offset, bytes);
    return status == COH_OK ? issue(call, copier, &wanted, token) : status;
}

/* ---- wait ---- */

static coh_status refuse_token(const char *call, const coh_copier *copier, const slot *self,
                               coh_token token)
{
    bool known = self->uses > 0 && token.copy > 0 && token.copy / copier->depth <= self->uses;
    return coh_fail(COH_INVALID_ARGUMENT, "%s: the token %s", call,
                    known ? "was waited for already" : "was never issued");
}

/* The slot of a token that is to be waited for. Enters and leaves with the lock. */
static coh_status find_slot(const char *call, coh_copier *copier, coh_token token, slot **found)
{
    if (token.copier != copier->number)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: the token is copier %llu's, and this is copier %llu", call,
                        (unsigned long long)token.copier, (unsigned long long)copier->number);
    *found = &copier->slots[token.copy % copier->depth];
    return (*found)->copy == token.copy ? COH_OK : refuse_token(call, copier, *found, token);
}

static coh_status tell_failure(cohi_failure *failure)
{
    if (!failure)
        return COH_OK;
    coh_status status = cohi_failure_again(failure);
    free_failure(failure);
    return status;
}

/* Until others have copied what they took of this copy, or it looks as if. Enters and leaves with
 * the lock. */
static void wait_for_end(coh_copier *copier, slot *self, uint64_t copy)
{
    pthread_mutex_unlock(&copier->lock);
    bool ended = cohi_pause_for(&self->ended, copy, COHI_PAUSE_LONG_NS);
    pthread_mutex_lock(&copier->lock);
    if (!ended && atomic_load(&self->ended) < copy)
        pthread_cond_wait(&copier->ended, &copier->lock);
}

coh_status coh_copier_wait(coh_copier *copier, coh_token token)
{
    const char *call = "coh_copier_wait";
    slot *self = NULL;
    coh_status status = check_copier(call, copier);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&copier->lock);
    status = find_slot(call, copier, token, &self);
    while (status == COH_OK && atomic_load(&self->ended) < token.copy) {
        if (self->taken < self->bytes)
            carry_out_piece(copier, self);
        else
            wait_for_end(copier, self, token.copy);
        status = find_slot(call, copier, token, &self); /* another thread may have been faster */
    }
    cohi_failure *failure = NULL;
    if (status == COH_OK) {
        failure = self->failure;
        self->failure = NULL;
        self->copy = 0;
        copier->unused[copier->unused_count++] = (uint32_t)(token.copy % copier->depth);
    }
    pthread_mutex_unlock(&copier->lock);
    return status == COH_OK ? tell_failure(failure) : status;
}

coh_status coh_copier_done(coh_copier *copier, coh_token token, int *done)
{
    const char *call = "coh_copier_done";
    slot *self = NULL;
    coh_status status = check_copier(call, copier);
    if (status == COH_OK)
        status = cohi_not_null(call, "done", done);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&copier->lock);
    status = find_slot(call, copier, token, &self);
    if (status == COH_OK)
        *done = atomic_load(&self->ended) >= token.copy;
    pthread_mutex_unlock(&copier->lock);
    return status;
}
