#include "core/message/lane.h"

#include "base/os.h"

#include <string.h>

/* ---- opening ---- */

static void *place_of(const coh_world *world, int to, int from)
{
    int index = cohi_board_index(world->board, from);
    return (char *)cohi_board_slot(world->board, to) + cohi_slot_lane_offset(world->size, index);
}

static coh_status back(const coh_world *world, const void *memory, size_t bytes)
{
    size_t page = cohi_os_page_bytes();
    size_t from = (size_t)((const char *)memory - (const char *)world->board->head);
    int error =
        cohi_os_commit_shared(world->board->fd, from, from + (bytes + page - 1) / page * page);
    if (error)
        return cohi_fail_os(error, "cannot back %zu bytes for messages with memory", bytes);
    return COH_OK;
}

static size_t doors_bytes(const coh_world *world)
{
    size_t words = ((size_t)world->size + 63) / 64;
    return offsetof(cohi_doors, from) + words * sizeof(uint64_t);
}

static coh_status doors_of(const coh_world *world, int rank, cohi_doors **doors)
{
    *doors = place_of(world, rank, rank);
    return back(world, *doors, doors_bytes(world));
}

coh_status cohi_lane_doors(coh_world *world, cohi_doors **doors)
{
    return doors_of(world, world->rank, doors);
}

/* Doors are for ranks of one host, by their numbers on its board. */
static int door_of(const coh_world *world)
{
    return cohi_board_index(world->board, world->rank);
}

coh_status cohi_lane_open(coh_world *world, int to, cohi_lane_out *out)
{
    cohi_lane *lane = place_of(world, to, world->rank);
    cohi_doors *doors;
    coh_status status = back(world, lane, sizeof *lane);
    if (status == COH_OK)
        status = doors_of(world, to, &doors);
    if (status != COH_OK)
        return status;
    int own = door_of(world);
    atomic_fetch_or(&doors->from[own / 64], UINT64_C(1) << own % 64);
    atomic_fetch_add(&doors->opened, 1);
    *out = (cohi_lane_out){.lane = lane};
    return COH_OK;
}

cohi_lane *cohi_lane_from(const coh_world *world, int from)
{
    return place_of(world, world->rank, from);
}

/* ---- landings ---- */

coh_status cohi_lane_landings(const coh_world *world, int from, cohi_landings **landings)
{
    size_t page = cohi_os_page_bytes(), offset = cohi_slot_landing_offset(world->size, from);
    char *place = (char *)world->slot + offset;
    size_t ahead = (size_t)(place - (char *)world->board->head) % page;
    *landings = (cohi_landings *)place;
    return back(world, place - ahead, ahead + sizeof **landings);
}

uint64_t cohi_lane_landing_offset(const coh_world *world, uint32_t number)
{
    return cohi_slot_landing_offset(world->size, world->rank) + offsetof(cohi_landings, serials)
           + number * sizeof(uint64_t);
}

/* ---- places in the bulk ring, which both ends compute alike ---- */

static uint64_t bulk_start(uint64_t at, uint64_t bytes)
{
    uint64_t inside = at % COHI_LANE_BULK;
    return inside + bytes <= COHI_LANE_BULK ? at : at + COHI_LANE_BULK - inside;
}

static uint64_t bulk_end(uint64_t start, uint64_t bytes)
{
    return start + (bytes + COHI_CACHE_LINE - 1) / COHI_CACHE_LINE * COHI_CACHE_LINE;
}

static bool in_bulk(uint64_t bytes, uint32_t tag)
{
    return bytes > COHI_CELL_BYTES && !(tag & COHI_CELL_ANNOUNCES);
}

/* ---- the sender's end ---- */

static bool has_cell(cohi_lane_out *out)
{
    if (COHI_LIKELY(out->cells - out->cells_consumed < COHI_LANE_CELLS))
        return true;
    out->cells_consumed = atomic_load_explicit(&out->lane->cells_consumed, memory_order_acquire);
    return out->cells - out->cells_consumed < COHI_LANE_CELLS;
}

static bool has_bulk(cohi_lane_out *out, uint64_t end)
{
    if (end - out->bulk_consumed <= COHI_LANE_BULK)
        return true;
    out->bulk_consumed = atomic_load_explicit(&out->lane->bulk_consumed, memory_order_acquire);
    return end - out->bulk_consumed <= COHI_LANE_BULK;
}

static cohi_cell *next_cell(const cohi_lane_out *out)
{
    return &out->lane->cells[out->cells % COHI_LANE_CELLS];
}

static void publish(cohi_lane_out *out, cohi_cell *cell, uint64_t team, uint32_t tag,
                    uint64_t bytes)
{
    cell->tag = tag;
    cell->team = team;
    cell->bytes = bytes;
    uint32_t lap = (uint32_t)(out->cells++ / COHI_LANE_CELLS + 1);
    atomic_store_explicit(&cell->mark, lap, memory_order_release);
}

/* The commonest length as a single store. */
static inline void copy_short(void *target, const void *source, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(target, source, sizeof(uint64_t));
    else if (bytes > 0)
        memcpy(target, source, bytes);
}

bool cohi_lane_write(cohi_lane_out *out, uint64_t team, uint32_t tag, const void *data,
                     size_t bytes)
{
    if (!has_cell(out))
        return false;
    cohi_cell *cell = next_cell(out);
    if (bytes <= COHI_CELL_BYTES) {
        copy_short(cell->data, data, bytes);
    } else {
        uint64_t start = bulk_start(out->bulk, bytes), end = bulk_end(start, bytes);
        if (!has_bulk(out, end))
            return false;
        memcpy(&out->lane->bulk[start % COHI_LANE_BULK], data, bytes);
        out->bulk = end;
    }
    publish(out, cell, team, tag, bytes);
    return true;
}

bool cohi_lane_announce(cohi_lane_out *out, uint64_t team, uint32_t tag, uint64_t bytes,
                        const unsigned char data[COHI_CELL_BYTES])
{
    if (!has_cell(out))
        return false;
    cohi_cell *cell = next_cell(out);
    memcpy(cell->data, data, COHI_CELL_BYTES);
    publish(out, cell, team, tag | COHI_CELL_ANNOUNCES, bytes);
    return true;
}

/* ---- the receiver's end ---- */

const void *cohi_lane_data(const cohi_lane_in *in, const cohi_cell *cell)
{
    if (!in_bulk(cell->bytes, cell->tag))
        return cell->data;
    return &in->lane->bulk[bulk_start(in->bulk, cell->bytes) % COHI_LANE_BULK];
}

/* Given back in quarters, so that the sender's line is not pulled for every message. */
void cohi_lane_next(cohi_lane_in *in, const cohi_cell *cell)
{
    if (in_bulk(cell->bytes, cell->tag))
        in->bulk = bulk_end(bulk_start(in->bulk, cell->bytes), cell->bytes);
    uint64_t cells = atomic_load_explicit(&in->cells, memory_order_relaxed) + 1;
    atomic_store_explicit(&in->cells, cells, memory_order_relaxed);
    if (cells - in->cells_given >= COHI_LANE_CELLS / 4) {
        in->cells_given = cells;
        atomic_store_explicit(&in->lane->cells_consumed, cells, memory_order_release);
    }
    if (in->bulk - in->bulk_given >= COHI_LANE_BULK / 4) {
        in->bulk_given = in->bulk;
        atomic_store_explicit(&in->lane->bulk_consumed, in->bulk, memory_order_release);
    }
}

void cohi_lane_take(cohi_lane_in *in, const cohi_cell *cell, void *data)
{
    copy_short(data, cohi_lane_data(in, cell), (size_t)cell->bytes);
    cohi_lane_next(in, cell);
}
