#include "coll/select.h"

#include "coll/card.h"
#include "coll/native.h"

#include "core/message/mailbox.h"
#include "core/team/levels.h"

#include <float.h>

static cohi_form form_of(const cohi_call *call)
{
    if (call->own.function)
        return COHI_BY_FUNCTION;
    if (call->from.counts || call->to.counts)
        return COHI_VARIABLE;
    if (call->from.stride > 1 || call->to.stride > 1)
        return COHI_STRIDED;
    return COHI_LIKELY(call->team->mapped) || cohi_native_reduces(call) ? COHI_UNIFORM
                                                                        : COHI_UNSERVED;
}

/* One class for each power of two: the sizes above half of it up to itself. */
static unsigned class_of(size_t bytes)
{
    unsigned class = bytes <= 1 ? 0 : 64 - (unsigned)__builtin_clzll((uint64_t)bytes - 1);
    return class < COHI_SIZE_CLASSES ? class : COHI_SIZE_CLASSES - 1;
}

static bool applies(const cohi_algorithm *row, const cohi_call *call)
{
    if (row->traits & COHI_MAPPED && !call->team->mapped)
        return false;
    return !row->applies || row->applies(call);
}

/* Mapped members have no use for messages, unless they are asked for: a message is the same copies
 * and more. So where some members are mapped, the levels are. */
static bool is_suited(const cohi_algorithm *row, const cohi_call *call)
{
    const coh_team *team = call->team;
    if (row->kind != call->kind || team->mapped != ((row->traits & COHI_MAPPED) != 0))
        return false;
    if (row->traits & COHI_NATIVE)
        return true;
    bool levels = team->levels && team->levels->hosts < team->size;
    return levels == ((row->traits & COHI_BY_LEVELS) != 0);
}

/* A function of the program need not be commutative. */
static bool admitted(const cohi_algorithm *row, const cohi_call *call, const cohi_tuning *tuning)
{
    return row->traits & COHI_RANK_ORDER || !(tuning->deterministic || call->own.function);
}

/*
 * How much longer a line takes to come where ranks share cores: its writer must have had a turn
 * first. Measured on two cores, one meeting more: with 4 ranks 3.7 us, with 8 ranks 12 us.
 */
enum { CROWDED_LINES = 25 };

cohi_model cohi_select_model(const coh_team *team)
{
    const coh_world *world = team->world;
    cohi_model model = team->mapped ? cohi_model_of(&world->profile) : cohi_tuning_of(world)->model;
    if (world->crowded && team->mapped) /* other hosts may not be */
        model.line *= CROWDED_LINES;
    if (!team->mapped)
        model.frame = (double)world->mailbox->piece;
    return model;
}

/* For the largest call of its class: a choice is kept for all of them, and a member whose first
 * call was refused must come to the same one with its second. Of costs that cannot be compared, the
 * first row's: there is always one. */
static const cohi_algorithm *cheapest(const cohi_call *call, const cohi_tuning *tuning)
{
    const cohi_algorithm *best = NULL, *first = NULL, *row;
    cohi_model model = cohi_select_model(call->team);
    size_t top = (size_t)1 << class_of(call->bytes);
    cohi_call largest = *call;
    largest.bytes = top < call->bytes ? call->bytes : top;
    double least = DBL_MAX;
    for (unsigned i = 0; (row = cohi_algorithm_at(i)); i++) {
        if (!is_suited(row, call) || !admitted(row, call, tuning) || !applies(row, &largest))
            continue;
        first = first ? first : row;
        double cost = row->cost(&model, call->team->size, (double)top);
        if (cost < least) {
            least = cost;
            best = row;
        }
    }
    return best ? best : first;
}

static coh_status check_forced(const cohi_call *call, const cohi_tuning *tuning)
{
    const cohi_algorithm *row = call->algorithm;
    const coh_world *world = call->team->world;
    if (!admitted(row, call, tuning))
        return cohi_world_fail(world, call->name, COH_UNSUPPORTED,
                               "algorithm %s, which is asked for, does not reduce in the order of "
                               "the ranks, and %s",
                               row->name,
                               call->own.function ? "a function must be applied so"
                                                  : "COHORT_DETERMINISTIC is on");
    if (applies(row, call))
        return COH_OK;
    return cohi_world_fail(world, call->name, COH_UNSUPPORTED,
                           "algorithm %s, which is asked for, does not do this call (%zu bytes "
                           "from each of %d members, engine %s)",
                           row->name, call->bytes, call->team->size, world->engine->name);
}

static cohi_choice choice_of(const cohi_algorithm *row)
{
    return (cohi_choice){row, cohi_algorithm_number(row)};
}

static void choose(cohi_call *call, cohi_choice choice)
{
    call->algorithm = choice.row;
    call->algorithm_number = choice.number;
}

coh_status cohi_select_anew(cohi_call *call)
{
    const cohi_tuning *tuning = cohi_tuning_of(call->team->world);
    unsigned forced = tuning->forced[call->kind];
    call->forced = forced != 0;
    choose(call, choice_of(call->forced ? cohi_algorithm_at(forced - 1) : cheapest(call, tuning)));
    return call->forced ? check_forced(call, tuning) : COH_OK;
}

coh_status cohi_select(cohi_call *call)
{
    if (COHI_UNLIKELY(cohi_card_takes(call))) {
        call->algorithm = &cohi_card_algorithm;
        call->algorithm_number = COHI_CARD_ALGORITHM;
        return COH_OK;
    }
    const cohi_tuning *tuning = cohi_tuning_of(call->team->world);
    if (COHI_UNLIKELY(tuning->forced[call->kind]))
        return cohi_select_anew(call);
    cohi_choice *choice =
        &cohi_team_gear(call->team)->choices[call->kind][form_of(call)][class_of(call->bytes)];
    if (COHI_UNLIKELY(!choice->row))
        *choice = choice_of(cheapest(call, tuning));
    choose(call, *choice);
    return COH_OK;
}
