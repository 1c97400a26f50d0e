/*
 * cohort-graph.h - graphs of operations over the devices of cohort-ml.h, collectives among them,
 * and what models are split with. Link with -lcohort-ml -lcohort.
 *
 * Read top to bottom; each group stands on the ones before it:
 *
 *   1. Graphs       named values: inputs, parameters, constants, states, operations, outputs
 *   2. Text         graphs as lines of a file
 *   3. Operations   the registry, which users extend
 *   4. Programs     a graph checked, laid out in an arena, and run many times
 *   5. Shards       linear layers and transformer blocks split over a team
 *   6. Relays       layers split over ranks, hidden states passed from one to the next
 *
 * The conventions are those of cohort.h and cohort-ml.h. Everything in a graph goes by name. A name
 * is 1 to COH_NAME_BYTES - 1 letters, digits and characters of "._/:-", but not "-" alone.
 */
#ifndef COHORT_GRAPH_H
#define COHORT_GRAPH_H

#include <cohort-ml.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Graphs ------------------------------------------------------------------------- */

enum { COH_NAME_BYTES = 96, COH_DIMS_MAX = 6, COH_OP_INPUTS_MAX = 16 };

/* `dims` lengths, the outermost first; 0 dims is one element. Elements lie in row-major order. */
typedef struct coh_shape {
    int dims;
    uint64_t dim[COH_DIMS_MAX];
} coh_shape;

/* What is to be computed. Nothing is checked against anything else before coh_graph_compile, so
 * things may be added in any order. One thread at a time may use a graph. */
typedef struct coh_graph coh_graph;

COH_API coh_status coh_graph_create(coh_graph **graph);
COH_EXPORT void coh_graph_destroy(coh_graph *graph); /* NULL does nothing */

/* A value that each run is given. Refused: a bad name or one that is taken, a shape with a length
 * of 0 or whose bytes overflow, an unknown type. All calls that add a value check these. */
COH_API coh_status coh_graph_input(coh_graph *graph, const char *name, coh_dtype dtype,
                                   const coh_shape *shape);

/* A value that stays where the caller has it, and is bound to a program by name: a weight. */
COH_API coh_status coh_graph_parameter(coh_graph *graph, const char *name, coh_dtype dtype,
                                       const coh_shape *shape);

/* A value of the graph itself; `data` is copied. */
COH_API coh_status coh_graph_constant(coh_graph *graph, const char *name, coh_dtype dtype,
                                      const coh_shape *shape, const void *data);

/* A value that outlives runs and programs: the device's handle of the same name (coh_handle_open),
 * zero at first. Operations such as "cache_write" change it. */
COH_API coh_status coh_graph_state(coh_graph *graph, const char *name, coh_dtype dtype,
                                   const coh_shape *shape);

/*
 * The value of operation `op` on `inputs`, names with blanks between them. `attributes` is
 * "name=value" likewise, "axis=1 eps=1e-5 axes=1,0,2"; it may be NULL.
 */
COH_API coh_status coh_graph_op(coh_graph *graph, const char *name, const char *op,
                                const char *inputs, const char *attributes);

/* Makes value `value` an output of the name `name` (outputs have names of their own). A parameter,
 * or bytes of one, can be an output on the cpu. */
COH_API coh_status coh_graph_output(coh_graph *graph, const char *name, const char *value);

/* ---- 2. Text --------------------------------------------------------------------------- */

/*
 * A graph as text, a line for each thing; the first line is "cohort-graph 1":
 *
 *     input x f32 4,128               also: parameter, state
 *     constant half f32 1 0000003f    the bytes, in hexadecimal, little-endian
 *     op y matmul x,w transpose_b=1   name, operation, inputs, attributes
 *     output logits y
 *
 * Empty lines, and lines that begin with '#', say nothing. A scalar's shape is "-". Errors name
 * the line.
 */
COH_API coh_status coh_graph_parse(const char *text, size_t bytes, coh_graph **graph);

/* Cut to `room` bytes with a final NUL; *needed (may be NULL) is the room that it takes. */
COH_API coh_status coh_graph_print(const coh_graph *graph, char *text, size_t room, size_t *needed);

/* Writes a graph to a file, and reads one. Errors name the path. */
COH_API coh_status coh_graph_save(const coh_graph *graph, const char *path);
COH_API coh_status coh_graph_load(const char *path, coh_graph **graph);

/* ---- 3. Operations --------------------------------------------------------------------- */

/*
 * Built in (f32 where no type is named; [..] is any number of dimensions):
 *
 *   matmul a[..,m,k] b                 b is [k,n], or [n,k] with transpose_b=1, or has a's outer
 *                                      dimensions too; by cblas
 *   add, mul a b                       equal shapes
 *   scale a                            by=factor
 *   bias a[..,n] b[n]
 *   relu, silu, gelu a                 gelu: approximate=none or tanh
 *   softmax a                          over the last dimension
 *   layer_norm a[..,n] w[n] b[n]       eps=1e-5
 *   rms_norm a[..,n] w[n]              eps=1e-5
 *   rotary a[t,heads*h] position       head=h theta=10000; position is i32 [1], row i is at
 *                                      position + i; the two halves of a head are rotated
 *   embedding table[v,n] ids           ids is i32 [t]
 *   cache_write state[c,n] rows[t,n] position    rows position to position + t - 1; gives the state
 *   attention q[t,heads*h] k[c,groups*h] v position    head=h; causal: row i sees the rows of k and
 *                                      v up to position + i; groups divides heads
 *   transpose a                        axes=1,0,...
 *   reshape a                          shape=...; any type; no bytes move
 *   slice a                            axis=0 begin=0 end=...; any type; along axis 0 no bytes move
 *   concatenate a b ...                axis=0; any type
 *   reduce a                           op=sum, mean, max or min; axis=-1 (the last); it is gone
 *   argmax a[..,n]                     i32; the first of equals; NaN is never it
 *   convert a                          to=type; coh_convert's rounding; any type to or from f32
 *   collective.all_reduce a            team=name op=sum; any type that the collective takes
 *   collective.all_gather a            team=name; along the first dimension
 *   collective.reduce_scatter a        team=name op=sum; the first dimension is divided
 *   collective.broadcast a             team=name root=0
 *   collective.all_to_all a            team=name; the first dimension in equal blocks
 */

/* A value, as shape functions and kernels see it; `data` is NULL for the former. */
typedef struct coh_tensor {
    coh_dtype dtype;
    coh_shape shape;
    void *data;
} coh_tensor;

/* How many elements and bytes a shape has; 0 when that overflows. */
COH_API uint64_t coh_shape_count(const coh_shape *shape);
COH_API uint64_t coh_shape_bytes(const coh_shape *shape, coh_dtype dtype);

typedef enum coh_attribute_kind {
    COH_ATTRIBUTE_INTEGER = 0,
    COH_ATTRIBUTE_REAL = 1,
    COH_ATTRIBUTE_TEXT = 2,
    COH_ATTRIBUTE_LIST = 3 /* of up to COH_DIMS_MAX integers */
} coh_attribute_kind;

/* What a node may say. */
typedef struct coh_attribute_rule {
    const char *name;
    coh_attribute_kind kind;
    const char *fallback; /* the value where a node says nothing; NULL: it must */
} coh_attribute_rule;

/* What a node says. */
typedef struct coh_attribute {
    coh_attribute_kind kind;
    int64_t integer;
    double real;
    const char *text;
    int count; /* of list */
    int64_t list[COH_DIMS_MAX];
} coh_attribute;

#define COH_NO_ALIAS (-1)

/* One node, for its shape function and its kernel. */
typedef struct coh_op_call {
    size_t size; /* sizeof(coh_op_call) */
    const char *node;
    const char *op;
    const coh_tensor *inputs;
    int input_count;
    coh_tensor output;
    const coh_attribute *attributes; /* in the order of the rules */
    coh_team *team;         /* that the attribute "team" names, where there is such a rule */
    int alias;              /* set by the shape function: the output is bytes of that input, */
    uint64_t alias_at;      /* from this one on; COH_NO_ALIAS at first */
    uint64_t scratch_bytes; /* likewise: memory that the kernel needs while it runs */
    void *scratch;
    /*
     * Likewise, by operations that communicate: the one collective that the kernel calls, but for
     * source and target. COH_COLLECTIVE_INIT at first; a team that is NULL says that there is none.
     * When a run fails at an earlier node, this one is called without memory, so that it is refused:
     * the team's other members are told, and stay in step.
     */
    coh_collective collective;
    coh_stream *stream; /* that the kernel is to launch on; on the cpu, which has nothing to launch,
                           the one that the program was enqueued on, or NULL */
} coh_op_call;

/* Checks the inputs and sets output.dtype and output.shape; or coh_fail(...): the node's name is
 * put in front. */
typedef coh_status coh_op_shape(coh_op_call *call);

/* Computes output.data. It may fail; the program can be run again after that. */
typedef coh_status coh_op_kernel(const coh_op_call *call);

/*
 * For element-wise operations on the cpu, in place of a kernel: computes `count` elements from
 * element `first` on. inputs[i] and output point at element `first`, except that an input of
 * another shape than the output is passed from its beginning. Chains of such operations run as one,
 * a block of elements at a time; one that asks for scratch memory is in no chain.
 */
typedef void coh_op_range(const coh_op_call *call, const void *const *inputs, void *output,
                          uint64_t first, uint64_t count);

typedef struct coh_op {
    size_t size; /* sizeof(coh_op); start from COH_OP_INIT */
    const char *name;
    int least_inputs;
    int most_inputs; /* at most COH_OP_INPUTS_MAX */
    const coh_attribute_rule *rules;
    int rule_count;
    coh_op_shape *shape;
    coh_op_range *range; /* or NULL */
    uint32_t in_place; /* bit i: the output may overwrite input i, where both have the same bytes */
    uint32_t writes;   /* bit i: input i is a state, which the kernel changes */
    int communicates;  /* not 0: its time counts as communication, and all members of its team
                            must run it */
} coh_op;

#define COH_OP_INIT                                              \
    {                                                            \
        sizeof(coh_op), NULL, 1, 1, NULL, 0, NULL, NULL, 0, 0, 0 \
    }

/* Operations by name. It holds those that are built in, and what was added. */
typedef struct coh_registry coh_registry;

COH_API coh_status coh_registry_create(coh_registry **registry);
COH_EXPORT void coh_registry_destroy(coh_registry *registry); /* NULL does nothing */

/* Adds an operation; texts and rules are copied. A name that is taken is refused. */
COH_API coh_status coh_registry_add(coh_registry *registry, const coh_op *op);

/* Sets the kernel of an operation on one kind of device; it may replace a built-in one. */
COH_API coh_status coh_registry_kernel(coh_registry *registry, const char *op, coh_device_kind kind,
                                       coh_op_kernel *kernel);

/* The names in the registry, by index from 0; NULL past the last. */
COH_API const char *coh_registry_name(const coh_registry *registry, size_t index);

/* ---- 4. Programs ----------------------------------------------------------------------- */

/* A compiled graph: order, memory, kernels. It needs the graph no longer. */
typedef struct coh_program coh_program;

/* Memory under a name. */
typedef struct coh_binding {
    const char *name;
    void *data;
    uint64_t bytes;
} coh_binding;

/* A team under the name that the attribute "team" uses. */
typedef struct coh_team_binding {
    const char *name;
    coh_team *team;
} coh_team_binding;

typedef struct coh_program_options {
    size_t size;                  /* sizeof(coh_program_options) */
    const coh_registry *registry; /* NULL: what is built in. It must outlive the program */
    coh_world *world; /* not NULL: the arena lies in its symmetric heap, so collectives run on the
                         values where they are; compiling and destroying are collective over the
                         world. The graphs of its ranks may differ */
    const coh_team_binding *teams;
    size_t team_count;  /* "world" is the world's own team, unless one is given that name */
    int separate;       /* not 0: no chains, every operation by itself */
    int timed;          /* not 0: coh_program_info's times are kept, some 100 ns a run */
    const char *prefix; /* of the names of handles that states are; NULL: none */
} coh_program_options;

#define COH_PROGRAM_OPTIONS_INIT                                     \
    {                                                                \
        sizeof(coh_program_options), NULL, NULL, NULL, 0, 0, 0, NULL \
    }

/*
 * Checks the whole graph and lays it out. What is wrong is told with the node that it is wrong
 * with: an unknown operation, a name that nobody has, a cycle, a wrong number of inputs, a type or
 * shape that does not fit, an attribute that is missing or unknown, no kernel for the device.
 * Operations that no output needs are left out, unless they change a state. `options` may be NULL.
 */
COH_API coh_status coh_graph_compile(const coh_graph *graph, coh_device *device,
                                     const coh_program_options *options, coh_program **program);

/* Collective where compiling was. NULL does nothing. */
COH_API coh_status coh_program_destroy(coh_program *program);

/* Binds parameter `name` to memory of the device, of exactly its bytes, aligned to its type;
 * it is not copied, and must stay. Before the first run; and later, to change it. */
COH_API coh_status coh_program_bind(coh_program *program, const char *name, void *data,
                                    uint64_t bytes);

/*
 * Runs on the calling thread: copies every input in, computes, copies the outputs out that are
 * asked for. All inputs must be there and no others, each with exactly its bytes. Allocates
 * nothing. A kernel that fails ends the run with its node's name; outputs are then not written, and
 * the program can be run again. One run of a program at a time.
 *
 * A run that fails, or is refused for its bindings, calls the built-in collectives that are left as
 * refused ones: the other members of their teams do not wait, but fail with an error that names
 * this rank, and on all of them the program can be run again. What an operation of a user's
 * communicates is not made up for.
 */
COH_API coh_status coh_program_run(coh_program *program, const coh_binding *inputs,
                                   size_t input_count, const coh_binding *outputs,
                                   size_t output_count);

/* Where an output or input lies, as kernels see it; an output, where both have the name. An output
 * is valid until the next run, an input until it has been run: its bytes may be used again. */
COH_API coh_status coh_program_pointer(coh_program *program, const char *name, void **data,
                                       uint64_t *bytes);

/* Computes on what lies there, and copies nothing: at once, or in the order of a stream. Failures
 * are as in coh_program_run; but a program that is not enqueued, or that a stream leaves out after
 * a failure, calls nothing. */
COH_API coh_status coh_program_execute(coh_program *program);
COH_API coh_status coh_program_enqueue(coh_program *program, coh_stream *stream);

typedef struct coh_program_info {
    size_t size; /* set by the caller: sizeof(coh_program_info) */
    int nodes;   /* operations that are run */
    int steps;   /* kernels that are: a chain is one */
    int inputs, outputs, parameters, states;
    uint64_t arena;            /* bytes of the arena */
    uint64_t least;            /* the lower bound of its plan */
    uint64_t runs;             /* so far */
    uint64_t run_ns;           /* in all of them, where they are timed */
    uint64_t communication_ns; /* of that, in operations that communicate */
} coh_program_info;

COH_API coh_status coh_program_query(const coh_program *program, coh_program_info *info);

/* ---- 5. Shards ------------------------------------------------------------------------- */

/* How a layer is split: this rank has part `index` of `size`, and meets the others in `team`. */
typedef struct coh_shard {
    const char *team; /* the name for coh_program_options.teams */
    int index;
    int size;
} coh_shard;

/* Part `index` of `total` in equal parts. COH_LENGTH_MISMATCH, naming `what` and both numbers,
 * where there would be a remainder. */
COH_API coh_status coh_shard_range(const coh_shard *shard, const char *what, uint64_t total,
                                   uint64_t *first, uint64_t *count);

/* A linear layer: `out` features of `in`, by the parameter "NAME.weight". */
typedef struct coh_linear {
    const char *name;  /* the value is called "NAME" */
    const char *input; /* [t, in], or [t, in / size] for a row-parallel one */
    uint64_t in;
    uint64_t out;
} coh_linear;

/* Split by rows of the weight, so by output features: [out / size, in]. Nothing is sent; each rank
 * has its own features. */
COH_API coh_status coh_graph_linear_column(coh_graph *graph, const coh_linear *linear,
                                           const coh_shard *shard);

/* Split by columns of the weight, so by input features: [out, in / size]; the parts are summed by
 * one all_reduce. */
COH_API coh_status coh_graph_linear_row(coh_graph *graph, const coh_linear *linear,
                                        const coh_shard *shard);

/* A transformer block in the Llama layout; `heads`, `groups` and `inner` are divided by the shard.
 */
typedef struct coh_block {
    size_t size;          /* sizeof(coh_block) */
    const char *name;     /* its values are called "NAME.x"; parameters as below */
    const char *input;    /* f32 [t, width], for t tokens */
    const char *position; /* i32 [1] */
    uint64_t width;
    uint64_t inner;   /* features of the feed-forward */
    uint64_t heads;   /* of queries */
    uint64_t groups;  /* of keys and values */
    uint64_t head;    /* features of a head */
    uint64_t context; /* rows of the cache */
    double eps;       /* of the norms */
    double theta;     /* of the rotary embedding */
} coh_block;

/*
 * Adds it: norm, attention, one all_reduce, norm, feed-forward, one all_reduce. The result is
 * "NAME.out". Parameters, with NAME in front: input_layernorm.weight, self_attn.{q,k,v,o}_proj
 * .weight, post_attention_layernorm.weight, mlp.{gate,up,down}_proj.weight. The cache is the states
 * "NAME.k" and "NAME.v". A dimension that cannot be divided is COH_LENGTH_MISMATCH naming it.
 */
COH_API coh_status coh_graph_block(coh_graph *graph, const coh_block *block,
                                   const coh_shard *shard);

/* ---- 6. Relays ------------------------------------------------------------------------- */

/*
 * Divides `count` layers of the given costs among `stages` in order, so that the dearest stage is
 * as cheap as can be: stage i has layers first[i] to first[i + 1] - 1; `first` has stages + 1
 * entries. Every stage gets at least one: more stages than layers are COH_INVALID_ARGUMENT.
 */
COH_API coh_status coh_partition(const double *costs, int count, int stages, int *first);

/*
 * Passes hidden states along a team, from member 0 to the last, in micro-batches. While one is
 * computed the next is received and the last one sent: two buffers each way.
 */
typedef struct coh_relay coh_relay;

/* A relay's messages have tags of its team from this one to COH_TAG_MAX, each run the next, so that
 * no run takes what a failed one left. Relays of one team share them: one may run at a time. */
#define COH_RELAY_TAG 0x3e000000

/* `bytes` is the most that one micro-batch passes on. Not collective. The team must outlive it. */
COH_API coh_status coh_relay_create(coh_team *team, uint64_t bytes, coh_relay **relay);

/* No run may be under way. NULL does nothing. */
COH_EXPORT void coh_relay_destroy(coh_relay *relay);

/*
 * One stage's work on micro-batch `index`: `in` is what the stage before passed on (NULL for the
 * first), `out` is what is passed on (NULL for the last). Any status but COH_OK ends the computing
 * here and at the stages behind.
 */
typedef coh_status coh_relay_stage(void *arg, int index, const void *in, void *out);

/*
 * Runs `count` micro-batches of `bytes` through all stages, this rank's by `stage`. Collective over
 * the team. The stage that fails returns its own error; the stages behind it return the same
 * status with the stage, its rank and the micro-batch. Those before it are not told. The relay can
 * be run again after that, by all members. A call that is refused is not a run: with bad arguments,
 * or COH_BUSY while a message of a failed run is under way, as it may be in a driven world.
 */
COH_API coh_status coh_relay_run(coh_relay *relay, int count, uint64_t bytes,
                                 coh_relay_stage *stage, void *arg);

/* Nanoseconds in which the relay waited for its neighbours, in all runs so far. */
COH_API uint64_t coh_relay_waited(const coh_relay *relay);

#ifdef __cplusplus
}
#endif

#endif /* COHORT_GRAPH_H */
