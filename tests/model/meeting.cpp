/*
 * meeting.cpp - how the members of a team come together: in meetings, by rounds of flags (core/team/rounds.c) or by
 * looking at all posts (core/team/posts.c), and in collectives on data, by posts (coll/call/assemble.c,
 * coll/mapped/one_shot.c).
 *
 * meeting: members meet some times, in rounds and by posts. Nobody leaves a meeting before all have
 * entered it; what a member stored before, all see after; no member is taken to be in another
 * call.
 *
 * posts: members make the same collective calls, among them such as a member leaves ahead of the
 * others, barriers, and calls that one member refuses. Each gets what the others gave in that very
 * call; no post is written again before all who need it have read it (else there is a data
 * race); a refusal reaches those who need the refused; no member is taken to be in another call.
 *
 * parts: what is too long for a post goes by parts, through two buffers of each member in turns
 * (coll/mapped/staged.c). Each part is read by those who need it before its buffer is written again.
 *
 * Epochs wrap in all of them.
 */
#include "model.hpp"

enum { MEMBERS = 4, COH_PEER_LOST = 3 };

/* ---- what stands around the library's text ---- */

typedef uint32_t cohi_opcode;
typedef cohi_opcode coh_collective_kind;
typedef int coh_dtype, coh_reduce_op;
enum { COHI_OP_NONE, COHI_OP_BARRIER, COHI_OP_ALL_GATHER, COHI_OP_GATHER, COHI_OP_BROADCAST };
enum { COH_COLLECTIVE_SCATTER = 99 };

static bool cohi_terms_on_data(cohi_opcode op)
{
    return op > COHI_OP_BARRIER;
}

typedef struct coh_world {
    int size;
    bool crowded;
    void *fault;
} coh_world;

typedef struct cohi_slot {
    int unused;
} cohi_slot;

typedef struct coh_team coh_team;

// pick board.h COHI_RANKS_MAX cohi_flag cohi_terms cohi_post cohi_posted_terms cohi_count cohi_meet
// but s/COHI_ROUNDS = 17/COHI_ROUNDS = 2/
// but s/COHI_POST_WIDE = 16 \*/COHI_POST_WIDE = 1 */
// but s/unsigned char (data|wide)\[(.*)\]/model::bytes<\2> \1/
// but s/^    (u?int32_t) (op|status);/    model::plain<\1> \2;/
// but s/uint64_t argument\[4\]/model::plain<uint64_t> argument[4]/
// pick board.h cohi_meet_post cohi_meet_terms COHI_SCRATCH_BYTES cohi_staging
// but s/32 << 10/128/
// but s/512 << 10/64/
// but s/unsigned char (scratch|in|out)\[([A-Z0-9_]+)\]\[(.*)\]/model::bytes<\3> \1[\2]/

// pick party.h cohi_party
// pick mark.h COHI_PRINT_DATA COHI_PRINT_HASH COHI_PRINT_OP_AT
// pick mark.h cohi_print cohi_mark cohi_mark_epoch cohi_mark_print cohi_mark_is_of cohi_mark_refused cohi_mark_op
// pick team.h coh_team
// pick entry.h cohi_entry cohi_entry_of

struct cohi_own {
    void *function;
};

struct coh_group_part;

// pick call.h cohi_call_blocks cohi_call cohi_block_count cohi_block_first cohi_block_bytes cohi_block_at

typedef struct cohi_coll_gear {
    uint64_t counts[2];
    uint64_t serial;
    uint64_t shown[COHI_POSTS];
} cohi_coll_gear;

/* A member, as a thread of the model has it. */
struct member {
    coh_team team; /* first */
    coh_world world;
    cohi_coll_gear gear;
    int ranks[MEMBERS];
    cohi_meet *meets[MEMBERS];
    cohi_slot *slots[MEMBERS];
    cohi_staging *stagings[MEMBERS];

    void open(int index, cohi_meet (&all)[MEMBERS], cohi_staging *staged, uint32_t start)
    {
        world = {};
        gear = {};
        world.size = MEMBERS;
        team.world = &world;
        team.size = MEMBERS;
        team.index = index;
        team.ranks = ranks;
        team.meets = meets;
        team.slots = slots;
        team.mapped = true;
        team.mine = &all[index];
        team.start = team.epoch = team.settled = start;
        for (int i = 0; i < MEMBERS; i++) {
            ranks[i] = i;
            meets[i] = &all[i];
            slots[i] = NULL;
            stagings[i] = staged ? &staged[i] : NULL;
        }
        for (uint32_t post = 0; post < COHI_POSTS; post++)
            team.mine->posts[post].mark = cohi_mark(start, COHI_OP_NONE);
    }
};

static cohi_coll_gear *cohi_team_gear(const coh_team *team)
{
    return &((member *)team)->gear;
}

static cohi_staging *cohi_call_staging(const cohi_call *call, int index)
{
    return ((member *)call->team)->stagings[index];
}

static void cohi_call_beat(cohi_call *)
{
}

/* A wait looks again and again; it counts as one that sleeps from a moment on that the checker
 * chooses, so that those who sleep and compare are explored too. The bell has a model of its own. */
typedef struct cohi_wait {
    bool asleep;
    int rank;
} cohi_wait;

static void cohi_wait_begin(cohi_wait *wait, coh_world *, const char *, cohi_opcode, cohi_party *,
                            int)
{
    wait->asleep = rl::rand(2);
}

static coh_status cohi_wait_step(cohi_wait *)
{
    rl::yield(1, $);
    return COH_OK;
}

static void cohi_wait_end(cohi_wait *)
{
}

static unsigned cohi_world_spins(const coh_world *)
{
    return 1;
}

static void cohi_control_wake(const coh_world *, cohi_slot *)
{
}

static coh_status cohi_control_put(coh_world *, int, size_t, const void *, size_t)
{
    RL_ASSERT(false);
    return COH_OK;
}

static size_t cohi_slot_meet_offset(int, int)
{
    return 0;
}

static coh_status cohi_team_unreachable_error(coh_team *, const char *, int)
{
    RL_ASSERT(false);
    return COH_PEER_LOST;
}

/* All members make the same calls. */
static coh_status cohi_team_break(const cohi_entry *, int, uint64_t)
{
    RL_ASSERT(!"a member is taken to be in another call");
    return COH_MISMATCH;
}

static coh_status cohi_team_standing(coh_team *, const char *)
{
    return COH_OK;
}

static coh_status cohi_team_leave(coh_team *, coh_status status)
{
    return status;
}

static coh_status cohi_fault_strike(void *, cohi_opcode)
{
    return COH_OK;
}

static coh_status refuse_out_of_step(const cohi_entry *)
{
    RL_ASSERT(false);
    return COH_MISMATCH;
}

static void publish(const coh_team *, cohi_opcode)
{
}

static bool cohi_world_plain(const coh_world *)
{
    return true;
}

/* ---- core/team ---- */

template <typename T> void cohi_terms_describe(unsigned, const T *, char *, size_t)
{
}

static const char *coh_status_text(coh_status)
{
    return "";
}

static coh_status cohi_fail_peer(coh_status status, int)
{
    return status;
}

static coh_status cohi_world_fail(coh_world *, const char *, coh_status status, const char *, ...)
{
    return status;
}

typedef bool cohi_look(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                       coh_status *status);
static coh_status cohi_team_compare_past(const cohi_entry *entry);
static coh_status cohi_team_compare(const cohi_entry *entry);

/* All members are mapped here. */
static coh_status cohi_apart_look(coh_team *, const char *)
{
    return COH_OK;
}

static coh_status cohi_apart_compare(const cohi_entry *)
{
    return COH_OK;
}

static coh_status meet_by_levels(const cohi_entry *)
{
    return COH_OK;
}

// pick await.h cohi_team_next
// pick await.c cohi_team_wait
// pick posts.h cohi_meet_mark cohi_team_own_mark cohi_team_post cohi_team_wake
// pick posts.c explain has_posted look_for_posts settle_present wait_for_all await_others
// but s/ != 0\) \{/ > model::is("does not look at the last post")) {/
// but s/return count;/return count - model::is("does not look at the last post");/
// pick posts.c cohi_team_await_all cohi_team_look_around cohi_team_await cohi_team_compare cohi_meet_arrived
// pick past.c agrees compare_with cohi_team_compare_past is_here has_arrived cohi_team_settle made_alike
// pick past.c cohi_team_look_back
// but s/team->settled = last;/team->settled = last + model::is("looks back at the present call");/
// pick past.h cohi_team_is_settled
// but s/(ahead <= COHI_POSTS - 2)/(\1 + model::is("runs one call further ahead"))/
// but s/return ahead == 0 \|\|/return ahead == 0 || (model::is("meets before all is settled") \&\& !cohi_terms_on_data(op)) ||/
// pick enter.c enter_checked begin_call
// pick rounds.c tell is_told has_told wait_for_flag cohi_team_meet
// but s/size_t parity = team->epoch \& 1/size_t parity = model::is("one set of flags") ? 0 : team->epoch \& 1/
// but s/distance < team->size; distance/distance < (model::is("a round less") ? team->size >> 1 : team->size); distance/
// pick rounds.c should_look_around cohi_team_line_up

/* ---- coll/call/assemble.c and coll/mapped/one_shot.c ---- */

static cohi_opcode cohi_kind_op(const cohi_call *call)
{
    return call->kind;
}

static cohi_terms terms_of(const cohi_call *call, coh_status refused)
{
    cohi_terms terms;
    terms.op = call->kind;
    terms.status = refused;
    return terms;
}

enum cohi_counter { COHI_READY, COHI_DONE };

// pick assemble.h cohi_given_at
// pick assemble.c show_terms cohi_post_enter post_refused cohi_post_refusal
// pick assemble.c count_of cohi_count_up wanted is_counted has_counted await_counts cohi_count_await
// pick assemble.c cohi_count_await_all
// pick one_shot.c given copy_given give taken_from leave_ahead take_block take_all_blocks cohi_one_shot_all_gather
// pick one_shot.c cohi_one_shot_gather take_from_root cohi_one_shot_broadcast

/* ---- meeting ---- */

/* Sequences begin so near the end of the epochs that they wrap on the way. */
static uint32_t draw_start(unsigned calls)
{
    return UINT32_MAX - rl::rand(calls);
}

struct meeting_suite : model::suite<meeting_suite, MEMBERS> {
    enum { MEETINGS = 6 };
    cohi_meet meets[MEMBERS];
    member members[MEMBERS];
    model::plain<uint32_t> boxes[2][MEMBERS];
    bool in_rounds[MEETINGS];

    void before()
    {
        uint32_t start = draw_start(MEETINGS);
        unsigned kind = rl::rand(3); /* rounds, posts, mixed */
        for (int i = 0; i < MEMBERS; i++)
            members[i].open(i, meets, NULL, start);
        for (bool &rounds : in_rounds)
            rounds = kind == 2 ? rl::rand(2) : kind == 0;
    }

    void thread(unsigned index)
    {
        coh_team *team = &members[index].team;
        for (uint32_t n = 0; n < MEETINGS; n++) {
            boxes[n % 2][index] = n + 1;
            cohi_entry entry = cohi_entry_of(team, "", COHI_OP_BARRIER);
            RL_ASSERT(begin_call(&entry) == COH_OK);
            RL_ASSERT((in_rounds[n] ? cohi_team_meet(&entry) : cohi_team_line_up(&entry))
                      == COH_OK);
            for (int i = 0; i < MEMBERS; i++)
                RL_ASSERT(boxes[n % 2][i] == n + 1);
        }
    }
};

/* ---- posts ---- */

struct posts_suite : model::suite<posts_suite, MEMBERS> {
    enum { CALLS = 8, REFUSAL = COH_INVALID_ARGUMENT, LONGEST = COHI_SCRATCH_BYTES };
    struct step {
        cohi_opcode op;
        int root, refused;
        size_t bytes;
    };
    cohi_meet meets[MEMBERS];
    cohi_staging stagings[MEMBERS];
    member members[MEMBERS];
    step steps[CALLS];

    void before()
    {
        uint32_t start = draw_start(CALLS);
        /* Most calls alike: it takes some in a row that nobody waits in to run ahead. */
        step usual = draw();
        for (int i = 0; i < MEMBERS; i++)
            members[i].open(i, meets, stagings, start);
        for (step &s : steps)
            s = rl::rand(3) ? usual : draw();
    }

    static step draw()
    {
        static const cohi_opcode ops[] = {COHI_OP_BROADCAST, COHI_OP_BROADCAST,  COHI_OP_GATHER,
                                          COHI_OP_GATHER,    COHI_OP_ALL_GATHER, COHI_OP_BARRIER};
        /* beside the mark, behind it, in the scratch */
        static const size_t lengths[] = {8, COHI_POST_BYTES + 8, LONGEST};
        step s = {ops[rl::rand(6)], (int)rl::rand(MEMBERS), (int)rl::rand(2 * MEMBERS),
                  lengths[rl::rand(3)]};
        return s;
    }

    static unsigned char value(int n, int member)
    {
        return (unsigned char)(n * MEMBERS + member + 1);
    }

    void thread(unsigned index)
    {
        for (int n = 0; n < CALLS; n++)
            if (steps[n].op == COHI_OP_BARRIER)
                barrier(&members[index].team);
            else
                collective(&members[index].team, n, steps[n]);
    }

    void barrier(coh_team *team)
    {
        cohi_entry entry = cohi_entry_of(team, "", COHI_OP_BARRIER);
        RL_ASSERT(begin_call(&entry) == COH_OK);
        RL_ASSERT(cohi_team_line_up(&entry) == COH_OK);
    }

    void collective(coh_team *team, int n, const step &s)
    {
        char source[LONGEST], target[MEMBERS * LONGEST];
        cohi_call call = {};
        memset(source, value(n, team->index), sizeof source);
        call.team = team;
        call.kind = s.op;
        call.root = s.root;
        call.source = source;
        call.target = target;
        call.element = 1;
        call.count = call.bytes = call.source_bytes = call.to.count = s.bytes;
        call.to.stride = 1;
        call.terms = terms_of(&call, COH_OK);
        call.entry = cohi_entry_of(team, "", s.op);
        call.entry.print = cohi_print(s.op, (uint32_t)s.root);
        call.serial = ++cohi_team_gear(team)->serial;
        RL_ASSERT(begin_call(&call.entry) == COH_OK);
        if (s.refused == team->index) {
            cohi_post_refusal(&call, REFUSAL);
            return;
        }
        run(&call, n, s);
    }

    void run(cohi_call *call, int n, const step &s)
    {
        int index = call->team->index;
        bool root = index == s.root;
        coh_status status = s.op == COHI_OP_BROADCAST ? cohi_one_shot_broadcast(call)
                            : s.op == COHI_OP_GATHER  ? cohi_one_shot_gather(call)
                                                      : cohi_one_shot_all_gather(call);
        bool of_all = s.op == COHI_OP_ALL_GATHER || (s.op == COHI_OP_GATHER && root);
        bool of_root = s.op == COHI_OP_BROADCAST && !root;
        bool refused = s.refused < MEMBERS && (of_all || (of_root && s.refused == s.root));
        RL_ASSERT(status == (refused ? (coh_status)REFUSAL : COH_OK));
        if (status != COH_OK)
            return;
        for (int i = 0; of_all && i < MEMBERS; i++)
            expect(call->target + (size_t)i * s.bytes, value(n, i), s.bytes);
        if (of_root)
            expect(call->target, value(n, s.root), s.bytes);
    }

    static void expect(const char *data, unsigned char wanted, size_t bytes)
    {
        for (size_t i = 0; i < bytes; i++)
            RL_ASSERT((unsigned char)data[i] == wanted);
    }
};

/* ---- parts ---- */

// pick staged.c turn turns await_needed take_turns needs_all root_needs_all needs_root
// but s/counts\[COHI_READY\] & 1/counts[COHI_READY] \& !model::is("one buffer")/
// but s/status = cohi_count_await_all\(call, COHI_READY, 0\)/status = cohi_count_await_all(call, COHI_READY, model::is("a part too early"))/

static size_t *part_of; /* [MEMBERS]: that the member is at */

static unsigned char part_value(size_t part, int member)
{
    return (unsigned char)(part * MEMBERS + (size_t)member + 1);
}

static void bring_part(cohi_call *call, const struct turn *turn)
{
    int index = call->team->index;
    unsigned char data[COHI_STAGE_BYTES];
    memset(data, part_value(++part_of[index], index), sizeof data);
    memcpy(cohi_call_staging(call, index)->in[turn->buffer], data, sizeof data);
}

static bool (*needed)(const cohi_call *call, int index);

static void take_part(cohi_call *call, const struct turn *turn)
{
    int index = call->team->index;
    unsigned char data[COHI_STAGE_BYTES];
    for (int i = 0; i < MEMBERS; i++) {
        if (!needed(call, i))
            continue;
        memcpy(data, cohi_call_staging(call, i)->in[turn->buffer], sizeof data);
        RL_ASSERT(data[0] == part_value(part_of[index], i) && data[sizeof data - 1] == data[0]);
    }
}

struct parts_suite : model::suite<parts_suite, MEMBERS> {
    enum { CALLS = 2, PARTS = 3 };
    cohi_meet meets[MEMBERS];
    cohi_staging stagings[MEMBERS];
    member members[MEMBERS];
    size_t parts[MEMBERS];
    int root;

    void before()
    {
        static bool (*const who[])(const cohi_call *, int) = {needs_all, root_needs_all,
                                                              needs_root};
        needed = who[rl::rand(3)];
        root = (int)rl::rand(MEMBERS);
        part_of = parts;
        for (int i = 0; i < MEMBERS; i++) {
            members[i].open(i, meets, stagings, 0);
            parts[i] = 0;
        }
    }

    void thread(unsigned index)
    {
        for (int i = 0; i < CALLS; i++) {
            cohi_call call = {};
            call.team = &members[index].team;
            call.entry.team = call.team;
            call.root = root;
            struct turns turns = {1, PARTS, bring_part, needed, take_part};
            RL_ASSERT(take_turns(&call, &turns) == COH_OK);
        }
    }
};

int main(int argc, char **argv)
{
    model::times(argc, argv);
    bool good = model::check<meeting_suite>(
        {"meeting",
         10000,
         {"one set of flags", "a round less", "does not look at the last post"},
         {}});
    good &=
        model::check<posts_suite>({"posts",
                                   20000,
                                   {"runs one call further ahead", "looks back at the present call",
                                    "meets before all is settled"},
                                   {}});
    good &= model::check<parts_suite>({"parts", 10000, {"one buffer", "a part too early"}, {}});
    return good ? 0 : 1;
}
