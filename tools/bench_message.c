/*
 * bench_message.c - messages between two ranks, against copies that take turns.
 *
 * What a rank received it sends back, from where it received it: a message is always of bytes that
 * the sender's core has just written, as those of a program are. Nothing is sent twice, which would
 * find it in the receiver's cache.
 */
#include "bench.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TAG = 1, ANSWER_TAG = 2, LINE_BYTES = sizeof(uint64_t), RATE_REPEATS = 100 };

struct context {
    coh_team *team;
    int peer;
    int yields;
    size_t bytes;
    char *data;         /* what this rank sends and receives */
    const char *mapped; /* the peer's, as it is mapped here; or NULL */
    pid_t process;      /* the peer's */
    uint64_t address;   /* of its data there */
    cohi_limit_pair pair;
    cohi_limit_line *window;  /* the second's, as this rank maps it */
    cohi_limit_relay *mine;   /* what this rank relays by, which is in its own memory */
    cohi_limit_relay *theirs; /* and what the peer does */
    const cohi_limit_copy_form *form;
};

static coh_status send_one(const struct context *c)
{
    return coh_send(c->team, c->peer, TAG, c->data, c->bytes);
}

static coh_status receive_one(const struct context *c)
{
    return coh_receive(c->team, c->peer, TAG, c->data, c->bytes, NULL);
}

/* There and back. */
static coh_status exchange(const struct context *c)
{
    coh_status status = c->pair.first ? send_one(c) : receive_one(c);
    if (status == COH_OK)
        status = c->pair.first ? receive_one(c) : send_one(c);
    return status;
}

static double run_message(void *context, const void *form, uint64_t repeats)
{
    (void)form;
    coh_status status = exchange(context);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats && status == COH_OK; i++)
        status = exchange(context);
    return cohi_bench_each(status, start, 2 * repeats);
}

/* ---- raw ---- */

static double run_line(void *context, const void *form, uint64_t repeats)
{
    return cohi_limit_turns(form, &((struct context *)context)->pair, repeats);
}

static void copy_mapped(void *context)
{
    const struct context *c = context;
    c->form->copy(c->data, c->mapped, c->bytes);
}

static double run_copy(void *context, const void *form, uint64_t repeats)
{
    struct context *c = context;
    c->form = form;
    return cohi_limit_handover(&c->pair, copy_mapped, c, repeats);
}

/* 0, or an errno. */
static int read_process(const struct context *c, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        struct iovec to = {c->data + done, bytes - done};
        struct iovec from = {(void *)(uintptr_t)(c->address + done), bytes - done};
        ssize_t moved = process_vm_readv(c->process, &to, 1, &from, 1, 0);
        if (moved <= 0)
            return moved < 0 ? errno : EFAULT;
        done += (size_t)moved;
    }
    return 0;
}

static void copy_by_kernel(void *context)
{
    read_process(context, ((const struct context *)context)->bytes);
}

static double run_kernel(void *context, const void *form, uint64_t repeats)
{
    struct context *c = context;
    (void)form;
    return cohi_limit_handover(&c->pair, copy_by_kernel, c, repeats);
}

static void relay_in(const struct context *c)
{
    cohi_limit_relay_in(c->mine, c->data, c->bytes, c->yields);
}

static void relay_out(const struct context *c)
{
    cohi_limit_relay_out(c->theirs, c->data, c->bytes, c->yields);
}

static double run_relay(void *context, const void *form, uint64_t repeats)
{
    const struct context *c = context;
    (void)form;
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++) {
        (c->pair.first ? relay_in : relay_out)(c);
        (c->pair.first ? relay_out : relay_in)(c);
    }
    return cohi_bench_each(COH_OK, start, 2 * repeats);
}

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

static void add_lines(cohi_bench_plan *plan, const struct context *c)
{
    const cohi_limit_turn_form *form;
    for (size_t i = 0; (form = cohi_limit_turn_form_at(i)); i++) {
        if (form->yields == c->yields)
            cohi_bench_add(plan, form->name, form, run_line);
    }
}

static void add_copies(cohi_bench_plan *plan)
{
    const cohi_limit_copy_form *form;
    for (size_t i = 0; (form = cohi_limit_copy_form_at(i)); i++)
        cohi_bench_add(plan, form->name, form, run_copy);
}

/* A message that fits in a line needs no copy. */
static coh_status measure(cohi_bench_rank *self, struct context *c,
                          void (*add_limits)(cohi_bench_plan *plan, const struct context *c),
                          cohi_bench_result *result)
{
    cohi_bench_plan plan = {
        .rounds = self->rounds, .repeats = cohi_bench_agreed_repeats(c->bytes), .context = c};
    cohi_bench_add(&plan, "coh_send, coh_receive", NULL, run_message);
    if (c->bytes <= LINE_BYTES)
        add_lines(&plan, c);
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
    if (read_process(c, 1) == 0)
        cohi_bench_add(plan, "process_vm_readv", NULL, run_kernel);
    cohi_bench_add(plan, "relay", NULL, run_relay);
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
    context.mapped = same_process ? (const char *)(uintptr_t)context.address : NULL;
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
    cohi_bench_plan plan = {.rounds = self->rounds, .repeats = RATE_REPEATS, .context = &context};
    cohi_bench_add(&plan, "coh_send, coh_receive", NULL, run_rate);
    cohi_bench_add(&plan, "lines", NULL, run_window);
    return cohi_bench_measure(&plan, result);
}
