/*
 * lane.cpp - messages between two mapped ranks (core/message/lane.h), and the doors by which a receiver
 * finds the lanes that are in use (core/message/mailbox.c).
 *
 * lane: one sender, one receiver. Each message arrives once, whole and in order; neither a cell nor
 * a place in the bulk ring is written again before the receiver has read it (else there is a
 * data race); a lane that is full has room again once the receiver has taken what is there (else
 * there is a livelock).
 *
 * doors: two senders open a lane each, and send. The receiver, which looks only at lanes that
 * it has seen opened, gets both messages, whichever of its two threads looks. What its threads keep
 * is changed by one at a time (base/latch.h).
 */
#include "model.hpp"

struct coh_world {
    int size, rank;
    bool remote;
};

// pick lane.h COHI_CELL_ANNOUNCES COHI_LANE_CELLS cohi_cell cohi_lane cohi_lane_out cohi_lane_in cohi_lane_peek
// but s/(COHI_LANE_CELLS =) 128/\1 8/
// but s/(COHI_CELL_BYTES =) 40/\1 8/
// but s/(COHI_LANE_BULK =) 32768/\1 512/
// but /cohi_ticket tickets|cohi_stream_slot stream/d
// but s/^    (uint32_t|uint64_t) (tag|team|bytes);/    model::plain<\1> \2;/
// but s/^    cohi_lane \*lane;/    model::plain<cohi_lane *> lane;/
// but s/unsigned char (data|bulk)\[(.*)\]/model::bytes<\2> \1/

// pick lane.c bulk_start bulk_end in_bulk has_cell has_bulk next_cell publish copy_short
// but s/(cells - out->cells_consumed) < COHI_LANE_CELLS/\1 < COHI_LANE_CELLS + model::is("a cell too many")/
// but s/<= COHI_LANE_BULK;/<= COHI_LANE_BULK + 64 * model::is("a line too many");/
// pick lane.c cohi_lane_write cohi_lane_announce cohi_lane_data cohi_lane_next cohi_lane_take
// but s/cells - in->cells_given >= /model::is("cells are not given back") ? false : &/

/* What message `i` of the model is: chosen by the checker, known to both sides. */
struct message {
    size_t bytes;
    bool announced;
};

static void fill(unsigned char *data, size_t bytes, unsigned i)
{
    memset(data, (int)(i + 1), bytes);
}

struct lane_suite : model::suite<lane_suite, 2> {
    enum { MESSAGES = 14, LONGEST = COHI_LANE_EAGER };
    message messages[MESSAGES];
    cohi_lane lane;

    void before()
    {
        static const size_t lengths[] = {8, 8, 0, LONGEST, LONGEST / 2, LONGEST};
        unsigned kind = rl::rand(3); /* mixed, short only, long only */
        for (message &m : messages) {
            unsigned drawn = kind == 0 ? rl::rand(6) : kind == 1 ? rl::rand(2) : 3 + rl::rand(3);
            m.bytes = lengths[drawn];
            m.announced = drawn == 1;
        }
    }

    void thread(unsigned index)
    {
        if (index == 0)
            send();
        else
            receive();
    }

    void send()
    {
        cohi_lane_out out = {};
        out.lane = &lane;
        for (unsigned i = 0; i < MESSAGES; i++) {
            unsigned char data[LONGEST];
            fill(data, sizeof data, i);
            while (!(messages[i].announced ? cohi_lane_announce(&out, i, i, messages[i].bytes, data)
                                           : cohi_lane_write(&out, i, i, data, messages[i].bytes)))
                rl::yield(1, $);
        }
    }

    void receive()
    {
        cohi_lane_in in = {};
        in.lane = &lane;
        for (unsigned i = 0; i < MESSAGES; i++) {
            const cohi_cell *cell;
            while (!(cell = cohi_lane_peek(&in)))
                rl::yield(1, $);
            take(&in, cell, i);
        }
        RL_ASSERT(!cohi_lane_peek(&in));
    }

    void take(cohi_lane_in *in, const cohi_cell *cell, unsigned i)
    {
        unsigned char data[LONGEST], wanted[LONGEST];
        size_t bytes = messages[i].announced ? COHI_CELL_BYTES : messages[i].bytes;
        RL_ASSERT(cell->team == i && cell->bytes == messages[i].bytes);
        RL_ASSERT(cell->tag == (messages[i].announced ? i | COHI_CELL_ANNOUNCES : i));
        if (messages[i].announced) {
            memcpy(data, cell->data, COHI_CELL_BYTES);
            cohi_lane_next(in, cell);
        } else {
            cohi_lane_take(in, cell, data);
        }
        fill(wanted, sizeof wanted, i);
        RL_ASSERT(memcmp(data, wanted, bytes) == 0);
    }
};

/* ---- doors ---- */

enum { COHI_RANKS_MAX = 64, SENDERS = 2, RECEIVING_THREADS = 2 };

// pick lane.h cohi_doors
// pick latch.h cohi_latch cohi_latch_try

struct cohi_partner {
    cohi_lane_in in;
};

struct cohi_mailbox {
    coh_world *world;
    cohi_doors *doors;
    cohi_latch lock;
    word<uint32_t> opened_seen;
    word<int> active_count, work, pendings;
    model::plain<int> active[SENDERS];
    cohi_partner partners[SENDERS];
};

/* What the model has instead of a board. */
static cohi_lane *lanes;
static cohi_doors *doors_here;
static word<unsigned> *taken;

static void *place_of(const coh_world *, int, int from)
{
    return &lanes[from];
}

static coh_status back(const coh_world *, const void *, size_t)
{
    return COH_OK;
}

static coh_status doors_of(const coh_world *, int, cohi_doors **doors)
{
    *doors = doors_here;
    return COH_OK;
}

static int door_of(const coh_world *world)
{
    return world->rank;
}

static int rank_behind(const coh_world *, int index)
{
    return index;
}

static cohi_lane *cohi_lane_from(const coh_world *, int from)
{
    return &lanes[from];
}

static bool cohi_mailbox_by_lane(const coh_world *, int)
{
    return true;
}

static bool take_cell(cohi_mailbox *, cohi_lane_in *in, const cohi_cell *cell, int from)
{
    RL_ASSERT(cell->tag == (uint32_t)from && cell->bytes == 0);
    cohi_lane_next(in, cell);
    atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
    return true;
}

/* Nobody sleeps for the latch, and there is nothing but lanes. */
static void cohi_latch_wake(cohi_latch *)
{
    RL_ASSERT(false);
}

static void retry(cohi_mailbox *)
{
}

static void cohi_frame_flush(cohi_mailbox *)
{
}

static bool move(cohi_mailbox *)
{
    return false;
}

// pick latch.h cohi_latch_give
// pick lane.c cohi_lane_open
// but s/.*(atomic_fetch_or\(.*)$/    if (model::is("counted before the door is open")) doors->opened.fetch_add(1, rl::mo_seq_cst, $);\n    \1/
// but s/.*(atomic_fetch_add\(&doors->opened, 1\);)$/    if (!model::is("counted before the door is open")) \1/
// pick mailbox.c has_come activate see_doors drain cohi_mailbox_progress

struct doors_suite : model::suite<doors_suite, SENDERS + RECEIVING_THREADS> {
    cohi_lane storage[SENDERS];
    cohi_doors doors;
    cohi_mailbox box;
    coh_world worlds[SENDERS + 1];
    word<unsigned> count;

    void before()
    {
        lanes = storage;
        doors_here = &doors;
        taken = &count;
        for (int i = 0; i <= SENDERS; i++)
            worlds[i] = {SENDERS + 1, i, false};
        box.world = &worlds[SENDERS];
        box.doors = &doors;
    }

    void thread(unsigned index)
    {
        if (index < SENDERS)
            send((int)index);
        else
            receive();
    }

    void send(int rank)
    {
        cohi_lane_out out = {};
        RL_ASSERT(cohi_lane_open(&worlds[rank], SENDERS, &out) == COH_OK);
        RL_ASSERT(cohi_lane_write(&out, 0, (uint32_t)rank, NULL, 0));
    }

    void receive()
    {
        while (atomic_load_explicit(taken, memory_order_relaxed) < SENDERS)
            if (!cohi_mailbox_progress(&box))
                rl::yield(1, $);
    }
};

int main(int argc, char **argv)
{
    model::times(argc, argv);
    bool good = model::check<lane_suite>(
        {"lane", 20000, {"a cell too many", "a line too many", "cells are not given back"}, {}});
    good &= model::check<doors_suite>({"doors", 20000, {"counted before the door is open"}, {}});
    return good ? 0 : 1;
}
