#include "collectives/calls.h"

#include "collectives/oracle.h"

#include <stdlib.h>
#include <string.h>

/* What a buffer consists of. */
typedef enum shape {
    SHAPE_COUNT,  /* one block */
    SHAPE_PART,   /* one block, this member's part */
    SHAPE_BLOCKS, /* a block for each member */
    SHAPE_PARTS,  /* each member's part */
    SHAPE_OUT,    /* what this member sends to each */
    SHAPE_IN      /* what it gets from each */
} shape;

static const struct shapes {
    shape side[2];
    bool root_only[2];
} shapes[CALL_KIND_COUNT] = {
    [CALL_ALL_REDUCE] = {{SHAPE_COUNT, SHAPE_COUNT}, {false, false}},
    [CALL_REDUCE] = {{SHAPE_COUNT, SHAPE_COUNT}, {false, true}},
    [CALL_REDUCE_SCATTER] = {{SHAPE_BLOCKS, SHAPE_COUNT}, {false, false}},
    [CALL_REDUCE_SCATTER_V] = {{SHAPE_PARTS, SHAPE_PART}, {false, false}},
    [CALL_ALL_GATHER] = {{SHAPE_COUNT, SHAPE_BLOCKS}, {false, false}},
    [CALL_ALL_GATHER_V] = {{SHAPE_PART, SHAPE_PARTS}, {false, false}},
    [CALL_GATHER] = {{SHAPE_COUNT, SHAPE_BLOCKS}, {false, true}},
    [CALL_GATHER_V] = {{SHAPE_PART, SHAPE_PARTS}, {false, true}},
    [CALL_SCATTER_V] = {{SHAPE_PARTS, SHAPE_PART}, {true, false}},
    [CALL_SCATTER] = {{SHAPE_BLOCKS, SHAPE_COUNT}, {true, false}},
    [CALL_BROADCAST] = {{SHAPE_COUNT, SHAPE_COUNT}, {true, false}},
    [CALL_ALL_TO_ALL] = {{SHAPE_BLOCKS, SHAPE_BLOCKS}, {false, false}},
    [CALL_ALL_TO_ALL_V] = {{SHAPE_OUT, SHAPE_IN}, {false, false}},
    [CALL_ALL_TO_ALL_STRIDED] = {{SHAPE_BLOCKS, SHAPE_BLOCKS}, {false, false}},
    [CALL_SCAN] = {{SHAPE_COUNT, SHAPE_COUNT}, {false, false}},
    [CALL_SCAN_EXCLUSIVE] = {{SHAPE_COUNT, SHAPE_COUNT}, {false, false}},
};

/* The members and which of them this is. */
typedef struct crowd {
    int size, me;
} crowd;

typedef struct layout {
    int blocks; /* 0: the member has no such buffer */
    size_t count[CALL_MEMBERS], first[CALL_MEMBERS];
    size_t stride;
    size_t span; /* elements from the first to the last, gaps among them */
} layout;

/* ---- lengths ---- */

static uint64_t mix(uint64_t seed, uint64_t one, uint64_t two)
{
    uint64_t state = seed * 0x9e3779b1u + (one << 40) + two;
    return test_random(&state);
}

static size_t ragged(const test_call *call, int from, int to)
{
    uint64_t number = mix(call->seed, (uint64_t)from + 100, (uint64_t)to);
    return number % 4 == 0 ? 0 : (size_t)(number >> 8) % (2 * call->count + 1);
}

static size_t sliver(const test_call *call, int number)
{
    return number % 2 == 0 ? call->count : call->count % 16;
}

static size_t part_of(const test_call *call, int members, int index)
{
    if (call->parts == PARTS_SLIVERS)
        return sliver(call, index);
    if (call->parts == PARTS_RAGGED)
        return ragged(call, index, 0);
    if (call->parts == PARTS_ONE)
        return index == members / 2 ? call->count * (size_t)members : 0;
    return call->count;
}

static size_t part_between(const test_call *call, int members, int from, int to)
{
    if (call->parts == PARTS_SLIVERS)
        return sliver(call, from + to);
    if (call->parts == PARTS_RAGGED)
        return ragged(call, from, to);
    if (call->parts == PARTS_ONE)
        return to == members / 2 ? call->count : 0;
    return call->count;
}

static size_t block_count(const test_call *call, shape what, crowd who, int block)
{
    switch (what) {
    case SHAPE_PART:
        return part_of(call, who.size, who.me);
    case SHAPE_PARTS:
        return part_of(call, who.size, block);
    case SHAPE_OUT:
        return part_between(call, who.size, who.me, block);
    case SHAPE_IN:
        return part_between(call, who.size, block, who.me);
    default:
        return call->count;
    }
}

bool call_is_placed(const test_call *call)
{
    return call->kind == CALL_ALL_TO_ALL_V && call->seed % 3 != 0;
}

static size_t stride_of(const test_call *call, int side)
{
    if (call->kind != CALL_ALL_TO_ALL_STRIDED)
        return 1;
    return 1 + (size_t)(call->seed >> (2 * side)) % 3;
}

/* Elements one behind the other; or, placed, the last block first and a gap behind each. */
static void place_blocks(const test_call *call, layout *made)
{
    size_t at = 0, gap = call_is_placed(call) ? 1 : 0;
    for (int i = 0; i < made->blocks; i++) {
        int block = gap ? made->blocks - 1 - i : i;
        made->first[block] = at;
        at += made->count[block] * made->stride + gap;
    }
    made->span = at;
}

static layout lay_out(const test_call *call, int side, crowd who)
{
    shape what = shapes[call->kind].side[side];
    bool single = what == SHAPE_COUNT || what == SHAPE_PART;
    layout made = {.blocks = single ? 1 : who.size, .stride = stride_of(call, side)};
    for (int block = 0; block < made.blocks; block++)
        made.count[block] = block_count(call, what, who, block);
    place_blocks(call, &made);
    if (shapes[call->kind].root_only[side] && who.me != call->root)
        made.blocks = 0;
    return made;
}

size_t call_bytes(const test_call *call, int members)
{
    size_t element = coh_dtype_size(call->dtype), all = (size_t)members;
    const shape *side = shapes[call->kind].side;
    if (call->kind == CALL_ALL_TO_ALL_STRIDED || call->kind == CALL_ALL_TO_ALL_V
        || side[0] == SHAPE_PARTS || side[1] == SHAPE_PARTS)
        return all * (3 * call->count + 2) * element;
    bool single = side[0] == SHAPE_COUNT && side[1] == SHAPE_COUNT;
    return (single ? 1 : all) * call->count * element;
}

/* ---- values ---- */

/* The element at a position of what a member brings, its blocks one behind the other. */
static void draw_element(const test_call *call, int member, size_t position, void *element)
{
    uint64_t number = mix(call->seed, (uint64_t)member, position);
    if (call_table[call->kind].reduces) {
        oracle_draw(call->dtype, call->op, number, element);
        return;
    }
    if (call->dtype == COH_BOOL)
        number &= 1;
    memcpy(element, &number, coh_dtype_size(call->dtype));
}

/* Where in member `from`'s source the block for `to` begins. */
static size_t position_of(const test_call *call, int members, int from, int to)
{
    shape what = shapes[call->kind].side[0];
    size_t position = 0;
    for (int block = 0; block < to; block++)
        position += block_count(call, what, (crowd){members, from}, block);
    return position;
}

static void reduce_element(const test_call *call, int members, size_t position, void *element)
{
    unsigned char brought[CALL_MEMBERS * 8];
    size_t bytes = coh_dtype_size(call->dtype);
    for (int member = 0; member < members; member++)
        draw_element(call, member, position, brought + (size_t)member * bytes);
    if (members == 0)
        oracle_identity(call->dtype, call->op, element);
    else
        oracle_reduce(call->dtype, call->op, brought, members, element);
}

/* Element k of a block of this member's target. `base` is where the block's elements are in the
 * sources that they come from. */
static void expect_element(const test_call *call, crowd who, int block, size_t base, size_t k,
                           void *element)
{
    switch (call->kind) {
    case CALL_ALL_REDUCE:
    case CALL_REDUCE:
    case CALL_REDUCE_SCATTER:
    case CALL_REDUCE_SCATTER_V:
        reduce_element(call, who.size, base + k, element);
        break;
    case CALL_SCAN:
        reduce_element(call, who.me + 1, k, element);
        break;
    case CALL_SCAN_EXCLUSIVE:
        reduce_element(call, who.me, k, element);
        break;
    case CALL_SCATTER:
    case CALL_SCATTER_V:
    case CALL_BROADCAST:
        draw_element(call, call->root, base + k, element);
        break;
    default:
        draw_element(call, block, base + k, element);
    }
}

static size_t base_of(const test_call *call, crowd who, int block)
{
    bool spread = shapes[call->kind].side[0] == SHAPE_BLOCKS
                  || shapes[call->kind].side[0] == SHAPE_PARTS
                  || shapes[call->kind].side[0] == SHAPE_OUT;
    return spread ? position_of(call, who.size, block, who.me) : 0;
}

static void write_target(const test_call *call, crowd who, const layout *to, unsigned char *target)
{
    size_t bytes = coh_dtype_size(call->dtype);
    for (int block = 0; block < to->blocks; block++) {
        size_t base = base_of(call, who, block);
        for (size_t k = 0; k < to->count[block]; k++)
            expect_element(call, who, block, base, k,
                           target + (to->first[block] + k * to->stride) * bytes);
    }
}

static void write_source(const test_call *call, crowd who, const layout *from,
                         unsigned char *source)
{
    size_t bytes = coh_dtype_size(call->dtype), position = 0;
    for (int block = 0; block < from->blocks; block++)
        for (size_t k = 0; k < from->count[block]; k++)
            draw_element(call, who.me, position++,
                         source + (from->first[block] + k * from->stride) * bytes);
}

/* ---- memory ---- */

bool call_rig_open(call_rig *rig, coh_world *world, size_t bytes)
{
    *rig = (call_rig){.world = world};
    rig->room = (bytes + 3 * CALL_GUARD + 63) / 64 * 64; /* a third for the shift */
    bool memory = test_has_memory(coh_engine(world));
    if (memory && !CHECK_OK(coh_malloc(world, 2 * rig->room, (void **)&rig->heap)))
        return false;
    rig->own = aligned_alloc(64, 2 * rig->room);
    if (test_uses_card() && !CHECK((rig->mirror = malloc(2 * rig->room)) != NULL))
        return false;
    for (int side = 0; side < 2; side++)
        rig->image[side] = malloc(rig->room);
    return CHECK(rig->own && rig->image[0] && rig->image[1]);
}

bool call_rig_close(call_rig *rig)
{
    for (int side = 0; side < 2; side++)
        free(rig->image[side]);
    free(rig->own);
    free(rig->mirror);
    return !rig->heap || CHECK_OK(coh_free(rig->world, rig->heap));
}

/* On a card all members' buffers are of one kind; by calls of the host both of them are. */
static bool in_heap(const call_rig *rig, const test_call *call, int side, crowd who)
{
    if (test_uses_card() && (!rig->card || call->place == PLACE_BY_MEMBER))
        return call->place != PLACE_PRIVATE;
    switch (call->place) {
    case PLACE_HEAP:
        return true;
    case PLACE_PRIVATE:
        return false;
    case PLACE_HEAP_TO_PRIVATE:
        return side == 0;
    case PLACE_PRIVATE_TO_HEAP:
        return side == 1;
    default:
        return mix(call->seed, (uint64_t)who.me + 7, (uint64_t)side) % 2;
    }
}

static void take_area(call_rig *rig, const test_call *call, int side, crowd who, size_t span)
{
    size_t element = coh_dtype_size(call->dtype);
    size_t shift = call->shifted ? element * (1 + (size_t)(call->seed >> side) % 7) : 0;
    bool shared = rig->heap && in_heap(rig, call, side, who);
    unsigned char *own = rig->card ? rig->card->own : rig->own;
    bool on_card = rig->mirror && (shared || rig->card);
    rig->place[side] = (shared ? rig->heap : own) + (size_t)side * rig->room;
    rig->area[side] = on_card ? rig->mirror + (size_t)side * rig->room : rig->place[side];
    rig->used[side] = 2 * CALL_GUARD + shift + span * element;
    if (rig->used[side] > rig->room)
        test_fail("the rig has areas of %zu bytes, and %zu are needed", rig->room, rig->used[side]);
    unsigned char **passed = side == 0 ? &rig->source : &rig->target;
    *passed = rig->place[side] + CALL_GUARD + shift;
    test_fill(rig->area[side], rig->used[side], call->seed + (uint64_t)side);
}

/* In place: one buffer is a part of the other, and has no area of its own. */
static void share_area(call_rig *rig, const test_call *call, crowd who)
{
    size_t element = coh_dtype_size(call->dtype);
    bool gathers =
        shapes[call->kind].side[1] == SHAPE_BLOCKS || shapes[call->kind].side[1] == SHAPE_PARTS;
    bool parts =
        shapes[call->kind].side[0] == SHAPE_PARTS || shapes[call->kind].side[1] == SHAPE_PARTS;
    bool same = shapes[call->kind].side[0] == shapes[call->kind].side[1];
    size_t first = 0;
    for (int member = 0; !same && member < who.me; member++)
        first += parts ? part_of(call, who.size, member) : call->count;
    if (gathers && !same) {
        rig->used[0] = 0;
        rig->source = rig->target + first * element;
    } else {
        rig->used[1] = 0;
        rig->target = rig->source + first * element;
    }
}

/* A member that has no such buffer passes NULL, or what is not to be touched. */
static void drop_unused(call_rig *rig, const test_call *call, const layout *from, const layout *to)
{
    if (from->blocks == 0 && call->seed % 2)
        rig->source = call->in_place && call->kind == CALL_BROADCAST ? rig->target : NULL;
    if (to->blocks == 0 && call->seed % 2)
        rig->target = call->in_place && call->kind == CALL_REDUCE ? rig->source : NULL;
    if (from->span == 0 && call->seed % 5 == 0)
        rig->source = NULL;
    if (to->span == 0 && call->seed % 5 == 0)
        rig->target = NULL;
}

/* The same byte in others of the areas' copies: `in` is rig->area or rig->image. */
static unsigned char *copy_of(const call_rig *rig, unsigned char *const in[2],
                              const unsigned char *at)
{
    for (int side = 0; side < 2; side++)
        if (at >= rig->place[side] && at <= rig->place[side] + rig->used[side] && rig->used[side])
            return in[side] + (at - rig->place[side]);
    return NULL;
}

/* Brings what was prepared to the card, or what came of it back. */
static bool move_mirror(const call_rig *rig, int side, bool there)
{
    int rank = coh_rank(rig->world);
    if (rig->area[side] == rig->place[side] || rig->used[side] == 0)
        return true;
    if (rig->card)
        return CHECK(rig->card->copy(there ? rig->place[side] : rig->area[side],
                                     there ? rig->area[side] : rig->place[side], rig->used[side]));
    if (!there)
        return CHECK_OK(
            coh_get(rig->world, rig->area[side], rig->place[side], rig->used[side], rank));
    return CHECK_OK(coh_put(rig->world, rig->place[side], rig->area[side], rig->used[side], rank))
           && CHECK_OK(coh_quiet(rig->world));
}

static void note_parts(call_rig *rig, const layout *from, const layout *to, const test_call *call,
                       crowd who)
{
    for (int i = 0; i < who.size; i++) {
        bool between = call->kind == CALL_ALL_TO_ALL_V;
        rig->counts[0][i] = between ? from->count[i] : part_of(call, who.size, i);
        rig->counts[1][i] = between ? to->count[i] : 0;
        rig->offsets[0][i] = from->first[i];
        rig->offsets[1][i] = to->first[i];
    }
    rig->stride[0] = from->stride;
    rig->stride[1] = to->stride;
}

void call_prepare(call_rig *rig, coh_team *team, const test_call *call)
{
    crowd who = {coh_team_size(team), coh_team_index(team)};
    layout from = lay_out(call, 0, who), to = lay_out(call, 1, who);
    take_area(rig, call, 0, who, from.span);
    take_area(rig, call, 1, who, to.span);
    if (call->in_place && call_table[call->kind].in_place && from.blocks && to.blocks)
        share_area(rig, call, who);
    write_source(call, who, &from, copy_of(rig, rig->area, rig->source));
    call_expect_nothing(rig);
    if (to.blocks)
        write_target(call, who, &to, copy_of(rig, rig->image, rig->target));
    for (int side = 0; side < 2; side++)
        (void)move_mirror(rig, side, true);
    note_parts(rig, &from, &to, call, who);
    drop_unused(rig, call, &from, &to);
}

void call_expect_nothing(call_rig *rig)
{
    for (int side = 0; side < 2; side++)
        memcpy(rig->image[side], rig->area[side], rig->used[side]);
}

/* ---- what came of it ---- */

static bool same_bytes(const call_rig *rig, const test_call *call, int side)
{
    char text[256];
    const unsigned char *have = rig->area[side], *want = rig->image[side];
    if (!move_mirror(rig, side, false))
        return false;
    if (memcmp(have, want, rig->used[side]) == 0)
        return true;
    size_t at = 0;
    while (have[at] == want[at])
        at++;
    test_fail("%s: byte %zu of %zu of the %s's area, which begins with %d guards, is %#x, "
              "expected %#x",
              call_text(call, text), at, rig->used[side], side == 0 ? "source" : "target",
              CALL_GUARD, have[at], want[at]);
    return false;
}

bool call_check(const call_rig *rig, const test_call *call)
{
    bool source = same_bytes(rig, call, 0);
    return same_bytes(rig, call, 1) && source;
}

uint64_t call_digest(const call_rig *rig)
{
    int side = rig->used[1] ? 1 : 0;
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    if (!move_mirror(rig, side, false))
        return 0;
    for (size_t i = 0; i < rig->used[side]; i++)
        digest = (digest ^ rig->area[side][i]) * UINT64_C(0x100000001b3);
    return digest;
}

bool call_perform(call_rig *rig, coh_team *team, const test_call *call)
{
    char text[256];
    call_prepare(rig, team, call);
    coh_status status = call_make(rig, team, call);
    if (status == COH_OK && call->started)
        status = coh_request_wait(&rig->request, NULL);
    if (CHECK_OK(status))
        return call_check(rig, call);
    test_fail("that was %s", call_text(call, text));
    return false;
}
