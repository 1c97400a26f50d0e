/*
 * cohort-collectives.h - reductions and exchanges in which all members of a team take part: group
 * 17 of cohort.h, which includes it. The conventions at the head of cohort.h hold.
 */
#ifndef COHORT_COLLECTIVES_H
#define COHORT_COLLECTIVES_H

#include <cohort.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(constant, value, name) */
#define COH_REDUCE_TABLE(X)      \
    X(COH_SUM, 0, "sum")         \
    X(COH_MEAN, 1, "mean")       \
    X(COH_PRODUCT, 2, "product") \
    X(COH_MIN, 3, "min")         \
    X(COH_MAX, 4, "max")         \
    X(COH_AND, 5, "and")         \
    X(COH_OR, 6, "or")           \
    X(COH_XOR, 7, "xor")

typedef enum coh_reduce_op {
#define COH_REDUCE_ENUM(constant, value, name) constant = value,
    COH_REDUCE_TABLE(COH_REDUCE_ENUM)
#undef COH_REDUCE_ENUM
} coh_reduce_op;

/* The operation's name, "sum"; NULL for a value not in the table. */
COH_API const char *coh_reduce_op_name(coh_reduce_op op);

/*
 * X(constant, value, name, reduces, root, source, target). Reduces: 1, it takes a reduction. Root: 1,
 * one member, the root, gives what the others get; 2, it gets what they give. Source, target: 1, there
 * is a block for each member in it.
 */
#define COH_COLLECTIVE_TABLE(X)                                       \
    X(COH_COLLECTIVE_BARRIER, 0, "barrier", 0, 0, 0, 0)               \
    X(COH_COLLECTIVE_ALL_REDUCE, 1, "all_reduce", 1, 0, 0, 0)         \
    X(COH_COLLECTIVE_REDUCE, 2, "reduce", 1, 2, 0, 0)                 \
    X(COH_COLLECTIVE_REDUCE_SCATTER, 3, "reduce_scatter", 1, 0, 1, 0) \
    X(COH_COLLECTIVE_ALL_GATHER, 4, "all_gather", 0, 0, 0, 1)         \
    X(COH_COLLECTIVE_GATHER, 5, "gather", 0, 2, 0, 1)                 \
    X(COH_COLLECTIVE_SCATTER, 6, "scatter", 0, 1, 1, 0)               \
    X(COH_COLLECTIVE_BROADCAST, 7, "broadcast", 0, 1, 0, 0)           \
    X(COH_COLLECTIVE_ALL_TO_ALL, 8, "all_to_all", 0, 0, 1, 1)         \
    X(COH_COLLECTIVE_SCAN, 9, "scan", 1, 0, 0, 0)                     \
    X(COH_COLLECTIVE_SCAN_EXCLUSIVE, 10, "scan_exclusive", 1, 0, 0, 0)

/* The collectives: coh_collective (below) describes a call of one, of whatever kind. */
typedef enum coh_collective_kind {
#define COH_COLLECTIVE_ENUM(constant, value, name, reduces, root, source, target) constant = value,
    COH_COLLECTIVE_TABLE(COH_COLLECTIVE_ENUM)
#undef COH_COLLECTIVE_ENUM
} coh_collective_kind;

/* The collective's name, "all_reduce"; NULL for a value not in the table. */
COH_API const char *coh_collective_name(coh_collective_kind kind);

/*
 * All of these are collective over the team: every member makes the call, with the same type,
 * operation, counts and root. Members that differ get COH_MISMATCH with both sides' values (of a
 * list of counts a hash), at this call or at one of their next three on the team, or at
 * coh_finalize when no more follow; and nothing is written from a member that differed.
 *
 * Counts are elements of `dtype`. Source and target are any memory; what lies in the symmetric heap
 * needs no copy on the way. They do not overlap, or are the same (each call says what that is);
 * overlap in part is refused. On return the target is complete, and both may be used again at once.
 * Nothing is written when a call is refused, and the members that need something of the refused one
 * get its error too; when a call fails later (a member was lost), the target is undefined.
 *
 * Reductions: sum, mean, product, min and max of every type; and, or, xor of integers and bool (of
 * which sum, max, or are "one is", and product, min, and are "all are"; bool has no mean). Integers
 * wrap; their mean is the sum divided, towards zero. f16, bf16, f8 are reduced in f32 and rounded
 * once. NaN propagates, also through min and max, where -0 is less than +0. The result has the same
 * bits on all members and in every run, for one build, CPU, placement and tuning; with
 * COHORT_DETERMINISTIC=1 also whatever the algorithm and the size.
 */

/* target[i] = source[i] of all members, reduced, on all members. In place: target == source. */
COH_API coh_status coh_all_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                  const void *source, void *target, size_t count);

/* target[i] = source[i] of all members, reduced, on member `root` alone; others' target is not
 * touched, and may be NULL. In place: the root's target == source. */
COH_API coh_status coh_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                              void *target, size_t count, int root);

/*
 * Source has size * count elements; member i gets the reduced block i, count elements. In place:
 * target is this member's own block of source.
 */
COH_API coh_status coh_reduce_scatter(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                      const void *source, void *target, size_t count);

/* coh_reduce_scatter with counts[i] elements for member i, the same counts on all members. */
COH_API coh_status coh_reduce_scatter_v(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                        const void *source, void *target, const size_t *counts);

/*
 * Brings every member's `count` elements to all, in the order of the members: target has size *
 * count. In place: source is this member's own block of target.
 */
COH_API coh_status coh_all_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                  size_t count);

/* coh_all_gather with counts[i] elements of member i, one block behind the other. */
COH_API coh_status coh_all_gather_v(coh_team *team, coh_dtype dtype, const void *source,
                                    void *target, const size_t *counts);

/* coh_all_gather on member `root` alone; others' target is not touched, and may be NULL. */
COH_API coh_status coh_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                              size_t count, int root);

/* The same with counts[i] elements of member i, the same counts on all members. */
COH_API coh_status coh_gather_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                const size_t *counts, int root);

/*
 * Block i of the root's source, count elements, goes to member i. Others' source is not read, and
 * may be NULL. In place: the root's target is its own block of source.
 */
COH_API coh_status coh_scatter(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               size_t count, int root);

/* The same with counts[i] elements for member i, one block behind the other, the same counts on all
 * members. */
COH_API coh_status coh_scatter_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                 const size_t *counts, int root);

/*
 * The root's `count` elements go to all members' targets, its own among them. Others' source is not
 * read, and may be NULL. In place: the root's target is its source.
 */
COH_API coh_status coh_broadcast(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                 size_t count, int root);

/*
 * Block j of member i's source becomes block i of member j's target; blocks have `count` elements.
 * In place: target == source.
 */
COH_API coh_status coh_all_to_all(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                  size_t count);

/* The blocks of coh_all_to_all_v: how many elements, and from which element of the buffer on. */
typedef struct coh_parts {
    const size_t *counts;  /* [team's size] */
    const size_t *offsets; /* [team's size]; NULL: one block behind the other */
} coh_parts;

/*
 * Block j of the source goes to member j, block i of the target comes from member i. A member must
 * expect what the other sends: COH_MISMATCH otherwise, with both counts at the one that does not
 * expect it. Not in place.
 */
COH_API coh_status coh_all_to_all_v(coh_team *team, coh_dtype dtype, const void *source,
                                    const coh_parts *source_parts, void *target,
                                    const coh_parts *target_parts);

/*
 * As coh_all_to_all, with elements target_stride and source_stride elements apart: element k of
 * block j is at (j * count + k) * stride. Strides are at least 1, and the same on all members. Not
 * in place.
 */
COH_API coh_status coh_all_to_all_strided(coh_team *team, coh_dtype dtype, const void *source,
                                          size_t source_stride, void *target, size_t target_stride,
                                          size_t count);

/* target[i] = source[i] of members 0 to this one, reduced; there is no mean. In place: target ==
 * source. */
COH_API coh_status coh_scan(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                            void *target, size_t count);

/* coh_scan over the members before this one. Member 0 gets the neutral element: zeros for the sum,
 * ones for the product, the largest value (or infinity) for min, and so on. */
COH_API coh_status coh_scan_exclusive(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                      const void *source, void *target, size_t count);

/* ---- reductions that an operation's name does not describe ---- */

/*
 * into[i] = into[i] combined with from[i], for i < count; `into` has what comes first. Both are
 * aligned for any type and do not overlap. Called by each member in its own process, by the thread
 * that makes the call or by the one that carries out started calls, with a part of the elements at
 * a time; it must not call Cohort.
 */
typedef void coh_reduce_function(void *into, const void *from, size_t count, void *user);

#define COH_OWN_ELEMENT_MAX 512

/* How to reduce; start from COH_REDUCTION_INIT, which is the sum of f32. */
typedef struct coh_reduction {
    size_t size; /* sizeof(coh_reduction), so that the struct can grow */
    coh_dtype dtype;
    coh_reduce_op op;
    double scale;                  /* see below; 1: as it is */
    coh_reduce_function *function; /* not NULL: reduces, in place of dtype and op */
    size_t element;                /* bytes of the function's elements, 1 to COH_OWN_ELEMENT_MAX */
    void *user;                    /* handed to the function */
} coh_reduction;

#define COH_REDUCTION_INIT                                          \
    {                                                               \
        sizeof(coh_reduction), COH_F32, COH_SUM, 1.0, NULL, 0, NULL \
    }

/*
 * As the calls without `with` in their name, in two more ways.
 *
 * Scaled: each member's source is multiplied by its own scale before it is reduced, in f64 for f64
 * and in f32 for all others (the scale is rounded to that), and rounded to the type. Floats only.
 * The members' scales may differ. The source stays as it is, unless the target is the same.
 *
 * By a function: any elements of up to 512 bytes that can be copied. It must be associative, and
 * need not be commutative: elements are combined in the order of the members, whatever the
 * algorithm. Members must agree in the element's size and the count; that they pass the same
 * function is their affair. COH_UNSUPPORTED when an algorithm that combines in another order is
 * asked for by name.
 */
COH_API coh_status coh_all_reduce_with(coh_team *team, const coh_reduction *how, const void *source,
                                       void *target, size_t count);
COH_API coh_status coh_reduce_with(coh_team *team, const coh_reduction *how, const void *source,
                                   void *target, size_t count, int root);
COH_API coh_status coh_reduce_scatter_with(coh_team *team, const coh_reduction *how,
                                           const void *source, void *target, size_t count);
COH_API coh_status coh_scan_with(coh_team *team, const coh_reduction *how, const void *source,
                                 void *target, size_t count);

/* One all_reduce among many. */
typedef struct coh_group_part {
    const void *source;
    void *target; /* may be the source */
    size_t count;
    coh_dtype dtype;
    coh_reduce_op op;
} coh_group_part;

/*
 * coh_all_reduce of each of `count` parts, in one call: arrays of up to 64 KiB of the same type and
 * operation are reduced together, a MiB at a time, in one meeting of the members. Members pass lists
 * that are equal but for the addresses. No target overlaps another part's memory. Arguments are
 * checked before anything is written; when the call fails later, all targets are undefined.
 */
COH_API coh_status coh_all_reduce_group(coh_team *team, const coh_group_part *parts, size_t count);

/*
 * Each starts the call of its name and returns; that proceeds without further calls. Until the
 * request is done (coh_request_wait, coh_request_test) source and target belong to it; arrays of
 * counts, offsets and parts, and the coh_reduction, are copied. Collectives of one team are carried out in the order in which they
 * were called, started or not. How the call ended, a refusal of its arguments too, is told by the
 * request.
 */
COH_API coh_status coh_all_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                        const void *source, void *target, size_t count,
                                        coh_request **request);
COH_API coh_status coh_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                    const void *source, void *target, size_t count, int root,
                                    coh_request **request);
COH_API coh_status coh_reduce_scatter_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                            const void *source, void *target, size_t count,
                                            coh_request **request);
COH_API coh_status coh_reduce_scatter_v_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                              const void *source, void *target,
                                              const size_t *counts, coh_request **request);
COH_API coh_status coh_all_gather_start(coh_team *team, coh_dtype dtype, const void *source,
                                        void *target, size_t count, coh_request **request);
COH_API coh_status coh_all_gather_v_start(coh_team *team, coh_dtype dtype, const void *source,
                                          void *target, const size_t *counts,
                                          coh_request **request);
COH_API coh_status coh_gather_start(coh_team *team, coh_dtype dtype, const void *source,
                                    void *target, size_t count, int root, coh_request **request);
COH_API coh_status coh_gather_v_start(coh_team *team, coh_dtype dtype, const void *source,
                                      void *target, const size_t *counts, int root,
                                      coh_request **request);
COH_API coh_status coh_scatter_start(coh_team *team, coh_dtype dtype, const void *source,
                                     void *target, size_t count, int root, coh_request **request);
COH_API coh_status coh_scatter_v_start(coh_team *team, coh_dtype dtype, const void *source,
                                       void *target, const size_t *counts, int root,
                                       coh_request **request);
COH_API coh_status coh_broadcast_start(coh_team *team, coh_dtype dtype, const void *source,
                                       void *target, size_t count, int root, coh_request **request);
COH_API coh_status coh_all_to_all_start(coh_team *team, coh_dtype dtype, const void *source,
                                        void *target, size_t count, coh_request **request);
COH_API coh_status coh_all_to_all_v_start(coh_team *team, coh_dtype dtype, const void *source,
                                          const coh_parts *source_parts, void *target,
                                          const coh_parts *target_parts, coh_request **request);
COH_API coh_status coh_all_to_all_strided_start(coh_team *team, coh_dtype dtype, const void *source,
                                                size_t source_stride, void *target,
                                                size_t target_stride, size_t count,
                                                coh_request **request);
COH_API coh_status coh_scan_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                  const void *source, void *target, size_t count,
                                  coh_request **request);
COH_API coh_status coh_scan_exclusive_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                            const void *source, void *target, size_t count,
                                            coh_request **request);
COH_API coh_status coh_all_reduce_with_start(coh_team *team, const coh_reduction *how,
                                             const void *source, void *target, size_t count,
                                             coh_request **request);
COH_API coh_status coh_reduce_with_start(coh_team *team, const coh_reduction *how,
                                         const void *source, void *target, size_t count, int root,
                                         coh_request **request);
COH_API coh_status coh_reduce_scatter_with_start(coh_team *team, const coh_reduction *how,
                                                 const void *source, void *target, size_t count,
                                                 coh_request **request);
COH_API coh_status coh_scan_with_start(coh_team *team, const coh_reduction *how, const void *source,
                                       void *target, size_t count, coh_request **request);
COH_API coh_status coh_all_reduce_group_start(coh_team *team, const coh_group_part *parts,
                                              size_t count, coh_request **request);
COH_API coh_status coh_barrier_start(coh_team *team, coh_request **request);

/* ---- a collective as a value ---- */

/*
 * A call of any collective of this header, but coh_all_reduce_group; start from
 * COH_COLLECTIVE_INIT. What the kind has no use for, such as the root of an all_reduce, is not
 * looked at. A form that the kind does not have (the next five fields but the reduction's of a kind
 * that does not reduce) is COH_INVALID_ARGUMENT.
 */
typedef struct coh_collective {
    size_t size; /* sizeof(coh_collective), so that the struct can grow */
    coh_collective_kind kind;
    coh_team *team;
    coh_dtype dtype;
    coh_reduce_op op;
    const void *source;
    void *target;
    size_t count;
    int root;

    /* Not NULL, in place of count: the variable form of reduce_scatter, all_gather, gather and
     * scatter. */
    const size_t *counts;
    /* Not NULL, in place of count: coh_all_to_all_v. Both are given, or none. */
    const coh_parts *source_parts, *target_parts;
    /* Not 1: coh_all_to_all_strided. */
    size_t source_stride, target_stride;
    /* Not NULL, in place of dtype and op: reduced as by the calls with `with` in their name. */
    const coh_reduction *how;
} coh_collective;

#define COH_COLLECTIVE_INIT                                                                       \
    {                                                                                             \
        sizeof(coh_collective), COH_COLLECTIVE_BARRIER, NULL, COH_F32, COH_SUM, NULL, NULL, 0, 0, \
            NULL, NULL, NULL, 1, 1, NULL                                                          \
    }

/*
 * Makes the call that is described: the same as the function of that name (of a barrier
 * coh_team_barrier), which other members may call instead. Errors name it
 * "coh_collective_run(all_reduce)". COH_INVALID_ARGUMENT, without a place in the team's sequence,
 * when the description is NULL, or has another size, or a kind that is not in the table.
 */
COH_API coh_status coh_collective_run(const coh_collective *collective);

/* Starts it, and returns, as the functions with `start` in their name do. The description may go,
 * and the arrays and the reduction that it points at. */
COH_API coh_status coh_collective_start(const coh_collective *collective, coh_request **request);

/*
 * The algorithm that the call would use: *name, a constant, and *predicted_ns, what the model expects
 * it to take (may be NULL). Not collective; nothing is read or written at the buffers. All members'
 * are taken to be where this one's are, in the symmetric heap or in private memory; NULL is as the
 * heap. Errors are those of the call; COH_INVALID_ARGUMENT for a barrier, which has no choice.
 */
COH_API coh_status coh_collective_choice(const coh_collective *collective, const char **name,
                                         double *predicted_ns);

#ifdef __cplusplus
}
#endif

#endif /* COHORT_COLLECTIVES_H */
