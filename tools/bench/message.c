/*
 * bench/message.c - messages between two ranks, against copies that take turns.
 *
 * The sender writes all bytes again before each message, as a program would, so they are in its own
 * core's cache and in no other. What is sent twice would be found in the receiver's. The writing is
 * timed, and is no part of the figures: not of Cohort's, and not of the copies' that it is held to.
 */
#include "bench/bench.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TAG = 1, ANSWER_TAG = 2, LINE_BYTES = sizeof(uint64_t), RATE_REPEATS = 100 };

struct context {
    coh_team *team;
    int peer;
    int yields;
    size_t bytes;
    char *data;       /* what this rank sends and receives */
    char *mapped;     /* the peer's, as it is mapped here; or NULL */
    pid_t process;    /* the peer's */
    uint64_t address; /* of its data there */
    cohi_limit_pair pair;
    cohi_limit_line *window;  /* the second's, as this rank maps it */
    cohi_limit_relay *mine;   /* what this rank relays by, which is in its own memory */
    cohi_limit_relay *theirs; /* and what the peer does */
    const cohi_limit_copy_form *form;
};

/* A line is written with each message, whatever it says. */
static void write_anew(void *context)
{
    const struct context *c = context;
    if (c->bytes > LINE_BYTES)
        memset(c->data, ++c->data[0], c->bytes);
}

static coh_status send_one(const struct context *c)
{
    return coh_send(c->team, c->peer, TAG, c->data, c->bytes);
}

static coh_status receive_one(const struct context *c)
{
    return coh_receive(c->team, c->peer, TAG, c->data, c->bytes, NULL);
}

/* How one end sends, and how the other receives. */
struct means {
    coh_status (*send)(const struct context *c);
    coh_status (*receive)(const struct context *c);
};

static const struct means messages = {send_one, receive_one};

/* Adds what the writing took, in nanoseconds, to `writing`. */
static coh_status write_and_send(struct context *c, const struct means *means, uint64_t *writing)
{
    if (c->bytes > LINE_BYTES) {
        uint64_t start = cohi_now_ns();
        write_anew(c);
        *writing += cohi_now_ns() - start;
    }
    return means->send(c);
}

/* There and back. */
static coh_status exchange(struct context *c, const struct means *means, uint64_t *writing)
{
    coh_status status = COH_OK;
    if (c->pair.first)
        status = write_and_send(c, means, writing);
    if (status == COH_OK)
        status = means->receive(c);
    if (status == COH_OK && !c->pair.first)
        status = write_and_send(c, means, writing);
    return status;
}

static double run_means(void *context, const void *form, uint64_t repeats)
{
    struct context *c = context;
    uint64_t writing = 0;
    coh_status status = exchange(c, form, &writing);
    uint64_t start = cohi_now_ns();
    writing = 0;
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = exchange(c, form, &writing);
    uint64_t passed = cohi_now_ns() - start;
    return status == COH_OK ? cohi_limit_one_way(&c->pair, passed, writing, repeats) : -1;
}

/* ---- raw ---- */

static double run_line(void *context, const void *form, uint64_t repeats)
{
    return cohi_limit_turns(form, &((struct context *)context)->pair, repeats);
}

static void pull_mapped(void *context)
{
    const struct context *c = context;
    c->form->copy(c->data, c->mapped, c->bytes);
}

static void push_mapped(void *context)
{
    const struct context *c = context;
    memcpy(c->mapped, c->data, c->bytes);
}

static double run_pull(void *context, const void *form, uint64_t repeats)
{
    struct context *c = context;
    const cohi_limit_load load = {write_anew, pull_mapped, 0, c};
    c->form = form;
    return cohi_limit_handover(&c->pair, &load, repeats);
}

/* process_vm_readv, or its twin. */
typedef ssize_t process_copy(pid_t pid, const struct iovec *local, unsigned long local_count,
                             const struct iovec *remote, unsigned long remote_count,
                             unsigned long flags);

/* 0, or an errno. */
static int copy_process(const struct context *c, process_copy *copy, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct iovec here = {c->data + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(c->address + done), bytes - done};
        ssize_t moved = copy(c->process, &here, 1, &there, 1, 0);
        if (moved <= 0)
            return moved < 0 ? errno : EFAULT;
        done += (size_t)moved;
    }
    return 0;
}

static void pull_by_kernel(void *context)
{
    const struct context *c = context;
    copy_process(c, process_vm_readv, c->bytes);
}

static void push_by_kernel(void *context)
{
    const struct context *c = context;
    copy_process(c, process_vm_writev, c->bytes);
}

static double run_load(void *context, const void *form, uint64_t repeats)
{
    struct context *c = context;
    cohi_limit_load load = *(const cohi_limit_load *)form;
    load.arg = c;
    return cohi_limit_handover(&c->pair, &load, repeats);
}

static const cohi_limit_load mapped_push = {write_anew, push_mapped, 1, NULL};
static const cohi_limit_load kernel_pull = {write_anew, pull_by_kernel, 0, NULL};
static const cohi_limit_load kernel_push = {write_anew, push_by_kernel, 1, NULL};

static coh_status relay_in(const struct context *c)
{
    cohi_limit_relay_in(c->mine, c->data, c->bytes, c->yields);
    return COH_OK;
}

static coh_status relay_out(const struct context *c)
{
    cohi_limit_relay_out(c->theirs, c->data, c->bytes, c->yields);
    return COH_OK;
}

static const struct means relay = {relay_in, relay_out};

/* ---- making ready ---- */

/* Tells the peer where this rank's data is, and learns the same from it. All ranks call it. */
static coh_status exchange_cards(cohi_bench_rank *self, struct context *c, cohi_bench_board *theirs)
{
    self->board->card.process = getpid();
    self->board->card.address = (uint64_t)(uintptr_t)c->data;
    coh_status status = coh_barrier(self->world);
    if (status == COH_OK && theirs) {
        c->process = (pid_t)theirs->card.process;
        c->address = theirs->card.address;
    }
    return status == COH_OK ? coh_barrier(self->world) : status;
}

static coh_status make_context(cohi_bench_rank *self, uint64_t bytes, struct context *c)
{
    cohi_bench_board *theirs, *second;
    *c = (struct context){.team = coh_team_world(self->world),
                          .peer = !self->rank,
                          .yields = self->crowded,
                          .bytes = bytes,
                          .data = self->shared,
                          .mine = &self->board->relay};
    coh_status status = cohi_bench_pair(self, c->peer, &theirs, &c->pair);
    if (status == COH_OK)
        status = coh_ptr(self->world, self->board, 1, (void **)&second);
    if (status != COH_OK)
        return status;
    c->window = second->window;
    c->theirs = &theirs->relay;
    return coh_ptr(self->world, self->shared, c->peer, (void **)&c->mapped);
}

static void add_lines(cohi_bench_plan *plan)
{
    const cohi_limit_turn_form *form;
    for (size_t i = 0; (form = cohi_limit_turn_form_at(i)); i++) {
        if (cohi_bench_tries(plan->self, form->yields))
            cohi_bench_add(plan, form->name, form, run_line);
    }
}

static void add_copies(cohi_bench_plan *plan)
{
    const cohi_limit_copy_form *form;
    for (size_t i = 0; (form = cohi_limit_copy_form_at(i)); i++)
        cohi_bench_add(plan, form->name, form, run_pull);
    cohi_bench_add(plan, "memcpy by the sender", &mapped_push, run_load);
}

/* A message that fits in a line needs no copy. */
static coh_status measure(cohi_bench_rank *self, struct context *c,
                          void (*add_limits)(cohi_bench_plan *plan, const struct context *c),
                          cohi_bench_result *result)
{
    cohi_bench_plan plan = {.rounds = self->rounds,
                            .repeats = cohi_bench_agreed_repeats(c->bytes),
                            .self = self,
                            .context = c};
    cohi_bench_add(&plan, "coh_send, coh_receive", &messages, run_means);
    if (c->bytes <= LINE_BYTES)
        add_lines(&plan);
    else
        add_limits(&plan, c);
    return cohi_bench_measure(&plan, result);
}

/* ---- the benchmarks ---- */

static void add_mapped(cohi_bench_plan *plan, const struct context *c)
{
    (void)c;
    add_copies(plan);
}

coh_status cohi_bench_message(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    struct context context;
    if (self->rank > 1)
        return COH_OK;
    coh_status status = make_context(self, bytes, &context);
    return status == COH_OK ? measure(self, &context, add_mapped, result) : status;
}

/* Another thread's memory is mapped, whatever it is; another process's is the kernel's to read. */
static void add_private(cohi_bench_plan *plan, const struct context *c)
{
    if (c->mapped) {
        add_copies(plan);
        return;
    }
    if (copy_process(c, process_vm_readv, 1) == 0) {
        cohi_bench_add(plan, "process_vm_readv", &kernel_pull, run_load);
        cohi_bench_add(plan, "process_vm_writev", &kernel_push, run_load);
    }
    cohi_bench_add(plan, "relay", &relay, run_means);
}

coh_status cohi_bench_private_message(cohi_bench_rank *self, uint64_t bytes,
                                      cohi_bench_result *result)
{
    struct context context = {.data = NULL};
    cohi_bench_board *theirs = NULL;
    coh_status status = COH_OK;
    if (self->rank <= 1) {
        status = make_context(self, bytes, &context);
        if (status == COH_OK)
            status = coh_ptr(self->world, self->board, context.peer, (void **)&theirs);
        context.data = self->private;
    }
    if (status == COH_OK)
        status = exchange_cards(self, &context, theirs);
    if (status != COH_OK || self->rank > 1)
        return status;
    int same_process = context.process == getpid();
    context.mapped = same_process ? (char *)(uintptr_t)context.address : NULL;
    return measure(self, &context, add_private, result);
}

/* ---- how many a second ---- */

static coh_status send_window(const struct context *c)
{
    coh_status status = COH_OK;
    uint64_t answer;
    for (int i = 0; i < COHI_LIMIT_WINDOW && status == COH_OK; i++)
        status = send_one(c);
    return status == COH_OK
               ? coh_receive(c->team, c->peer, ANSWER_TAG, &answer, sizeof answer, NULL)
               : status;
}

static coh_status receive_window(const struct context *c)
{
    coh_status status = COH_OK;
    uint64_t answer = 0;
    for (int i = 0; i < COHI_LIMIT_WINDOW && status == COH_OK; i++)
        status = receive_one(c);
    return status == COH_OK ? coh_send(c->team, c->peer, ANSWER_TAG, &answer, sizeof answer)
                            : status;
}

static double run_rate(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    coh_status status = COH_OK;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = c->pair.first ? send_window(c) : receive_window(c);
    return cohi_bench_each(status, start, repeats * COHI_LIMIT_WINDOW);
}

static double run_window(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    return cohi_limit_window(&c->pair, c->window, repeats);
}

coh_status cohi_bench_rate(cohi_bench_rank *self, uint64_t bytes, cohi_bench_result *result)
{
    struct context context;
    (void)bytes;
    if (self->rank > 1)
        return COH_OK;
    coh_status status = make_context(self, sizeof(uint64_t), &context);
    if (status != COH_OK)
        return status;
    cohi_bench_plan plan = {
        .rounds = self->rounds, .repeats = RATE_REPEATS, .self = self, .context = &context};
    cohi_bench_add(&plan, "coh_send, coh_receive", NULL, run_rate);
    cohi_bench_add(&plan, "lines", NULL, run_window);
    return cohi_bench_measure(&plan, result);
}
