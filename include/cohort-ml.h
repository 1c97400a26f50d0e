/*
 * cohort-ml.h - devices, streams, arenas and asynchronous copies over the symmetric memory of
 * cohort.h. Link with -lcohort-ml -lcohort.
 *
 * Read top to bottom; each group stands on the ones before it:
 *
 *   1. Devices      where kernels run, and whether there is one
 *   2. Buffers      memory that knows where it lives; explicit transfers, typed ones too
 *   3. Handles      named memory of a device that outlives the runs of a graph
 *   4. Streams      ordered queues of kernels, copies, communication and callbacks
 *   5. Events       points of one stream that another waits for
 *   6. Plans        lifetimes of values become offsets
 *   7. Arenas       one block of memory for all values of a plan
 *   8. Files        bytes on disk as the source of copies
 *   9. Copiers      asynchronous copies and their tokens
 *  10. Pipelines    double buffers, deeper ones, and the whole loop over tiles
 *
 * The conventions are those of cohort.h: a call is thread-safe unless it says otherwise, returns a
 * coh_status, sets its outputs only on COH_OK, changed nothing when it was refused, and explains
 * itself in coh_last_error(). Option structs begin with their size; a NULL pointer to one means the
 * INIT value. What is made upon a device must be destroyed before the device is closed. In a forked
 * child streams, events and copiers of the parent are COH_FORKED.
 */
#ifndef COHORT_ML_H
#define COHORT_ML_H

#include <cohort.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Devices ------------------------------------------------------------------------ */

/* X(constant, value, name) */
#define COH_DEVICE_TABLE(X)     \
    X(COH_DEVICE_CPU, 0, "cpu") \
    X(COH_DEVICE_CUDA, 1, "cuda")

typedef enum coh_device_kind {
#define COH_DEVICE_ENUM(constant, value, name) constant = value,
    COH_DEVICE_TABLE(COH_DEVICE_ENUM)
#undef COH_DEVICE_ENUM
} coh_device_kind;

/* The kind's name, "cpu"; NULL for a value not in the table. */
COH_API const char *coh_device_kind_name(coh_device_kind kind);

/*
 * Whether there is a device of that kind here and now. COH_OK; or COH_NOT_AVAILABLE with the reason
 * in coh_last_error(), "cuda: not available: this build has no CUDA module"; or
 * COH_INVALID_ARGUMENT for a value that is not a kind.
 */
COH_API coh_status coh_device_available(coh_device_kind kind);

/* How many devices of the kind there are: 0 where the kind is not available. */
COH_API coh_status coh_device_count(coh_device_kind kind, int *count);

/* A device in use. One device may be opened many times; each has its own handles and counts. */
typedef struct coh_device coh_device;

/* Opens device `index`, from 0, of a kind. Errors as for coh_device_available. */
COH_API coh_status coh_device_open(coh_device_kind kind, int index, coh_device **device);

/*
 * Closes it and frees its named handles. COH_BUSY, and nothing is closed, while a buffer, stream,
 * event, arena or open handle of it is left. NULL does nothing. A handle whose memory lies in a
 * symmetric heap must have been dropped (see there), since freeing that is collective: COH_BUSY.
 */
COH_API coh_status coh_device_close(coh_device *device);

typedef struct coh_device_info {
    size_t size; /* set by the caller: sizeof(coh_device_info) */
    coh_device_kind kind;
    int index;
    int cores;          /* that this process may use: cpu's cores, or multiprocessors */
    uint64_t memory;    /* bytes that the device has */
    uint64_t alignment; /* of buffers and of values in arenas, unless more is asked for */
    uint64_t held;      /* bytes in buffers, arenas and handles of this coh_device now */
    uint64_t moved;     /* bytes that copies have moved: transfers, streams' copies and conversions.
                           What a kernel or a collective does to its operands is not a copy */
} coh_device_info;

COH_API coh_status coh_device_query(coh_device *device, coh_device_info *info);

/* ---- 2. Buffers ------------------------------------------------------------------------ */

/* Memory of a device. Its bytes move only by the calls that say so. */
typedef struct coh_buffer coh_buffer;

/* Where its bytes live. */
typedef enum coh_place {
    COH_PLACE_DEVICE = 0,    /* the device's own memory, of this rank alone */
    COH_PLACE_SYMMETRIC = 1, /* the symmetric heap: other ranks reach it */
    COH_PLACE_BORROWED = 2   /* the caller's memory */
} coh_place;

typedef struct coh_buffer_options {
    size_t size;        /* sizeof(coh_buffer_options) */
    uint64_t alignment; /* a power of two, at most 2 MiB; 0: the device's */
    coh_world *world;   /* not NULL: in that world's symmetric heap; collective, equal arguments */
    void *memory;       /* not NULL: these bytes of the caller's, which outlive the buffer; it is
                           neither set to zero nor freed */
} coh_buffer_options;

#define COH_BUFFER_OPTIONS_INIT                   \
    {                                             \
        sizeof(coh_buffer_options), 0, NULL, NULL \
    }

/*
 * A buffer of `bytes`, at least 1, set to zero. With a world it is collective over that world, as
 * coh_malloc is, and so is its end.
 */
COH_API coh_status coh_buffer_create(coh_device *device, uint64_t bytes,
                                     const coh_buffer_options *options, coh_buffer **buffer);

/* Frees it; nothing may use it any more. Collective where coh_buffer_create was. NULL does nothing.
 */
COH_API coh_status coh_buffer_destroy(coh_buffer *buffer);

typedef struct coh_buffer_info {
    size_t size; /* set by the caller: sizeof(coh_buffer_info) */
    coh_device *device;
    coh_place place;
    uint64_t bytes;
    void *pointer;    /* as kernels of the device see it; on the cpu an address like any other */
    void *mapped;     /* where the host may load and store it; NULL where it may not */
    coh_world *world; /* of the symmetric heap that it lies in, or NULL */
} coh_buffer_info;

COH_API coh_status coh_buffer_query(const coh_buffer *buffer, coh_buffer_info *info);

/* info.pointer alone; NULL for NULL. */
COH_API void *coh_buffer_pointer(const coh_buffer *buffer);

/*
 * Move `bytes` between the host and byte `offset` of the buffer; done on return. A range that
 * leaves the buffer is COH_OUT_OF_BOUNDS naming both, and nothing is moved.
 */
COH_API coh_status coh_buffer_write(coh_buffer *buffer, uint64_t offset, const void *source,
                                    uint64_t bytes);
COH_API coh_status coh_buffer_read(const coh_buffer *buffer, uint64_t offset, void *target,
                                   uint64_t bytes);

/* Copies `bytes` between two buffers, perhaps of two devices; done on return, bounds as above.
 * Ranges of one buffer may overlap. */
COH_API coh_status coh_buffer_copy(coh_buffer *target, uint64_t target_offset,
                                   const coh_buffer *source, uint64_t source_offset,
                                   uint64_t bytes);

/*
 * Typed: `count` elements that are f32 at the host and `dtype` in the buffer, from byte `offset`
 * on, which is aligned to the type's size. Rounding is coh_convert's. COH_INVALID_ARGUMENT for an
 * unknown type; COH_OUT_OF_BOUNDS naming both lengths where they do not fit; then nothing is
 * written.
 */
COH_API coh_status coh_buffer_store(coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                                    const float *source, size_t count);
COH_API coh_status coh_buffer_load(const coh_buffer *buffer, uint64_t offset, coh_dtype dtype,
                                   float *target, size_t count);

/* ---- 3. Handles ------------------------------------------------------------------------ */

/*
 * Named, typed memory of a device: caches, optimizer state. It is made, all zero, by the first
 * opening, keeps its contents while nobody has it open, and is freed by coh_handle_drop or with the
 * device.
 */
typedef struct coh_handle coh_handle;

/* The longest name, its final NUL included. */
enum { COH_HANDLE_NAME_BYTES = 128 };

/*
 * Opens `name`, or makes it with `count` elements of `dtype`. Where it is there already its type
 * and count must be these (COH_LENGTH_MISMATCH and COH_INVALID_ARGUMENT name both), and its world
 * too. With a world the making is collective over it; so all of its ranks open the name for the
 * first time together. `world` may be NULL.
 */
COH_API coh_status coh_handle_open(coh_device *device, const char *name, coh_dtype dtype,
                                   size_t count, coh_world *world, coh_handle **handle);

/* Opens one that is there; COH_INVALID_ARGUMENT when there is none of the name. */
COH_API coh_status coh_handle_find(coh_device *device, const char *name, coh_handle **handle);

/* Gives the opening back; name and contents stay. NULL does nothing. */
COH_API coh_status coh_handle_close(coh_handle *handle);

/* Frees name and contents. COH_BUSY while somebody has it open. Collective where making it was. */
COH_API coh_status coh_handle_drop(coh_device *device, const char *name);

typedef struct coh_handle_info {
    size_t size;      /* set by the caller: sizeof(coh_handle_info) */
    const char *name; /* until the handle is dropped */
    coh_dtype dtype;
    uint64_t count;
    coh_buffer *buffer; /* its memory; the handle's, never to be destroyed */
    uint64_t openings;  /* now */
} coh_handle_info;

COH_API coh_status coh_handle_query(const coh_handle *handle, coh_handle_info *info);

/* The names of a device, by index from 0, in order of making; NULL past the last. */
COH_API const char *coh_handle_name(coh_device *device, size_t index);

/* ---- 4. Streams ------------------------------------------------------------------------ */

/*
 * An ordered queue of operations on a device. Enqueuing checks the arguments and returns; nothing
 * runs before coh_stream_submit, which hands on all that was enqueued. On the cpu a worker thread
 * of the stream carries operations out one after the other; a synchronous stream has none, and does
 * so inside coh_stream_submit.
 *
 * An operation that fails ends the run: those behind it are left out, events that they would have
 * recorded fail, and the next coh_stream_wait returns the status with an error message that names
 * the stream, the operation and its number, and what was wrong. After that the stream can be used
 * again.
 *
 * One thread at a time may enqueue to and submit a stream; waiting is free for all. What an
 * operation refers to (memory, arguments, buffers) must live until it has run.
 */
typedef struct coh_stream coh_stream;

typedef struct coh_stream_options {
    size_t size;      /* sizeof(coh_stream_options) */
    const char *name; /* for errors; NULL: "stream" and a number. Copied, and cut to 31 bytes */
    int synchronous;  /* not 0: no worker */
    uint32_t depth;   /* operations that the queue has room for at first; it grows. 0: 64 */
} coh_stream_options;

#define COH_STREAM_OPTIONS_INIT                \
    {                                          \
        sizeof(coh_stream_options), NULL, 0, 0 \
    }

COH_API coh_status coh_stream_create(coh_device *device, const coh_stream_options *options,
                                     coh_stream **stream);

/*
 * Waits for what was submitted, forgets what was not, and frees. The status is coh_stream_wait's;
 * the stream is gone in any case. NULL does nothing.
 */
COH_API coh_status coh_stream_destroy(coh_stream *stream);

/* Starts what was enqueued. The status is that of starting, not of the operations. */
COH_API coh_status coh_stream_submit(coh_stream *stream);

/* Waits until all that was submitted has run; the first failure since the last wait, if any. */
COH_API coh_status coh_stream_wait(coh_stream *stream);

COH_API coh_status coh_stream_submit_wait(coh_stream *stream);

/* Whether all that was submitted has run, or failed. Never waits. */
COH_API coh_status coh_stream_done(coh_stream *stream, int *done);

/* The device, and what the device's own library calls the stream: NULL on the cpu, a cudaStream_t
 * on cuda. */
COH_API coh_device *coh_stream_device(const coh_stream *stream);
COH_API void *coh_stream_native(const coh_stream *stream);

/*
 * A kernel: on the cpu it does the work, elsewhere it launches it on coh_stream_native(stream). To
 * fail it returns coh_fail(...). It must not call back into its stream otherwise.
 */
typedef coh_status coh_kernel(coh_stream *stream, void *arg);

/* Enqueues a kernel; `name` is a constant, for errors. */
COH_API coh_status coh_stream_kernel(coh_stream *stream, const char *name, coh_kernel *kernel,
                                     void *arg);

/* A function of the host, in its turn; on every device it runs on a thread of the host. */
typedef coh_status coh_host_call(void *arg);
COH_API coh_status coh_stream_host(coh_stream *stream, const char *name, coh_host_call *call,
                                   void *arg);

/* Copies, as the calls on buffers do. Bounds are checked here. */
COH_API coh_status coh_stream_write(coh_stream *stream, coh_buffer *buffer, uint64_t offset,
                                    const void *source, uint64_t bytes);
COH_API coh_status coh_stream_read(coh_stream *stream, const coh_buffer *buffer, uint64_t offset,
                                   void *target, uint64_t bytes);
COH_API coh_status coh_stream_copy(coh_stream *stream, coh_buffer *target, uint64_t target_offset,
                                   const coh_buffer *source, uint64_t source_offset,
                                   uint64_t bytes);

/*
 * One-sided operations, as coh_put, coh_get, coh_put_signal, coh_signal, coh_wait_until (on a
 * 64-bit word) and coh_quiet. Their arguments are checked when they run. The stream's worker makes
 * the calls: a world of coh_init_threads must have been called by its own thread before.
 */
COH_API coh_status coh_stream_put(coh_stream *stream, coh_world *world, void *target,
                                  const void *source, size_t bytes, int rank);
COH_API coh_status coh_stream_get(coh_stream *stream, coh_world *world, void *target,
                                  const void *source, size_t bytes, int rank);
COH_API coh_status coh_stream_put_signal(coh_stream *stream, coh_world *world, void *target,
                                         const void *source, size_t bytes, uint64_t *signal,
                                         uint64_t value, coh_signal_op op, int rank);
COH_API coh_status coh_stream_signal(coh_stream *stream, coh_world *world, uint64_t *signal,
                                     uint64_t value, coh_signal_op op, int rank);
COH_API coh_status coh_stream_wait_until(coh_stream *stream, coh_world *world, const uint64_t *word,
                                         coh_compare compare, uint64_t value, int from);
COH_API coh_status coh_stream_quiet(coh_stream *stream, coh_world *world);

/*
 * Enqueues a call of coh_collective_run, collective over the description's team: all members carry
 * out the same ones, on streams or not, in the same order. The description is copied. The arrays and
 * the reduction that it points at are not: like the buffers they belong to the stream until the call
 * has been carried out. While one runs, no other thread of this rank may be in a collective of the
 * same team (COH_BUSY).
 */
COH_API coh_status coh_stream_collective(coh_stream *stream, const coh_collective *collective);

/* ---- 5. Events ------------------------------------------------------------------------- */

/* A point in a stream. It can be recorded many times; the last one counts. */
typedef struct coh_event coh_event;

COH_API coh_status coh_event_create(coh_device *device, coh_event **event);

/* Waits for all recordings that are under way, on whatever stream; no stream may still have to wait
 * for the event. COH_BUSY where one was enqueued and not submitted. NULL does nothing. */
COH_API coh_status coh_event_destroy(coh_event *event);

/* Enqueues: the event happens when the stream gets here. */
COH_API coh_status coh_stream_record(coh_stream *stream, coh_event *event);

/*
 * Enqueues: the stream goes on when the event's last recording has happened, and fails where that
 * failed. The recording must have been submitted, else COH_INVALID_ARGUMENT: so streams can only
 * wait for what is sure to run, never for each other in a circle.
 */
COH_API coh_status coh_stream_await(coh_stream *stream, coh_event *event);

/* The calling thread waits for the event's last recording, and gets its failure if there is one. */
COH_API coh_status coh_event_wait(coh_event *event);

/* Whether it has happened, or failed. Never waits. An event that was never recorded has not. */
COH_API coh_status coh_event_done(coh_event *event, int *done);

/* ---- 6. Plans -------------------------------------------------------------------------- */

/* Which bytes of one block each value of a graph gets: values whose lives do not meet share. */
typedef struct coh_plan coh_plan;

#define COH_NO_NODE (-1)

/*
 * One value. It is written at step `first` and read last at step `last`, both included; two values
 * meet when a step is in both lives.
 */
typedef struct coh_plan_value {
    size_t size;        /* sizeof(coh_plan_value) */
    const char *name;   /* for errors and printing; copied, cut to 63 bytes; may be NULL */
    uint64_t bytes;     /* 0: it has no slot */
    uint64_t alignment; /* a power of two, at most 2 MiB; 0: 64 */
    int first;
    int last;
    int in_place;      /* a node that dies at step `first`, whose bytes this one may overwrite as it
                          is written; or COH_NO_NODE. It is taken where it has room and nothing is
                          lost by it */
    int alias_of;      /* a node in whose bytes this one lies (a reshape, a slice), or COH_NO_NODE;
                          that one lives on as long as this */
    uint64_t alias_at; /* from which byte of it on */
    int outside;       /* not 0: its bytes are elsewhere (a parameter), it has no slot */
} coh_plan_value;

#define COH_PLAN_VALUE_INIT                                                      \
    {                                                                            \
        sizeof(coh_plan_value), NULL, 0, 0, 0, 0, COH_NO_NODE, COH_NO_NODE, 0, 0 \
    }

/* A plan belongs to one thread until it is solved; then all may read it. */
COH_API coh_status coh_plan_create(coh_plan **plan);
COH_EXPORT void coh_plan_destroy(coh_plan *plan);

/* Adds a value; *node counts from 0. Nodes that it names must have been added before. */
COH_API coh_status coh_plan_add(coh_plan *plan, const coh_plan_value *value, int *node);

/* Gives every value its offset. Once; nothing can be added after it. */
COH_API coh_status coh_plan_solve(coh_plan *plan);

typedef struct coh_plan_info {
    size_t size; /* set by the caller: sizeof(coh_plan_info) */
    int nodes;
    int slots;          /* nodes that have one */
    int steps;          /* the last step and one */
    uint64_t total;     /* bytes of the block */
    uint64_t alignment; /* of its start */
    uint64_t least;     /* a lower bound for any plan: the most bytes alive at one step */
    uint64_t apart;     /* what it would be if no two values shared */
} coh_plan_info;

COH_API coh_status coh_plan_query(const coh_plan *plan, coh_plan_info *info);

/* Whether a node has a slot: 1; 0 when it has none, or there is no such node, or no plan yet. */
COH_API int coh_plan_has_slot(const coh_plan *plan, int node);

/* Where it is. COH_INVALID_ARGUMENT for a node without a slot, saying why it has none. Either
 * output may be NULL. */
COH_API coh_status coh_plan_slot(const coh_plan *plan, int node, uint64_t *offset, uint64_t *bytes);

/*
 * The plan as text, a line for each value and one for the whole, cut to `room` bytes with a final
 * NUL; *needed (may be NULL) is the room that it takes.
 */
COH_API coh_status coh_plan_print(const coh_plan *plan, char *text, size_t room, size_t *needed);

/* ---- 7. Arenas ------------------------------------------------------------------------- */

/* One buffer for all values of a solved plan. */
typedef struct coh_arena coh_arena;

typedef struct coh_arena_options {
    size_t size;      /* sizeof(coh_arena_options) */
    coh_world *world; /* not NULL: in its symmetric heap, so that the values of all ranks can be
                         reached, and collectives work on them where they are; collective */
} coh_arena_options;

#define COH_ARENA_OPTIONS_INIT          \
    {                                   \
        sizeof(coh_arena_options), NULL \
    }

/* Makes it, all zero. The plan must outlive it. */
COH_API coh_status coh_arena_create(coh_device *device, const coh_plan *plan,
                                    const coh_arena_options *options, coh_arena **arena);
/* Collective where the making was. NULL does nothing. */
COH_API coh_status coh_arena_destroy(coh_arena *arena);

/* Its memory; NULL for a plan without slots. The arena's, never to be destroyed. */
COH_API coh_buffer *coh_arena_buffer(const coh_arena *arena);
COH_API const coh_plan *coh_arena_plan(const coh_arena *arena);

/* Where a node's value lies, as kernels see it. Errors as for coh_plan_slot. */
COH_API coh_status coh_arena_pointer(const coh_arena *arena, int node, void **pointer,
                                     uint64_t *bytes);

/*
 * Typed transfer: `count` elements, f32 at the host and `dtype` in the slot, from its start on. An
 * unknown type is COH_INVALID_ARGUMENT, more than the slot holds COH_LENGTH_MISMATCH naming both,
 * and nothing is written. A value that was never written reads as zero in a new arena, and as what
 * the slot's last owner left after that.
 */
COH_API coh_status coh_arena_write(coh_arena *arena, int node, coh_dtype dtype, const float *source,
                                   size_t count);
COH_API coh_status coh_arena_read(const coh_arena *arena, int node, coh_dtype dtype, float *target,
                                  size_t count);

/* ---- 8. Files -------------------------------------------------------------------------- */

/* A regular file that is read by copiers. */
typedef struct coh_file coh_file;

/* Opens for reading, with its size as it is now. Errors name the path. */
COH_API coh_status coh_file_open(const char *path, coh_file **file);

/* No copy from it may be under way. NULL does nothing. */
COH_EXPORT void coh_file_close(coh_file *file);

/* Its bytes, and the path that it was opened by; 0 and NULL for NULL. */
COH_API uint64_t coh_file_bytes(const coh_file *file);
COH_API const char *coh_file_path(const coh_file *file);

/* Reads at once. A range that leaves the file is COH_OUT_OF_BOUNDS naming both; a file that has
 * become shorter is COH_LENGTH_MISMATCH. */
COH_API coh_status coh_file_read(coh_file *file, uint64_t offset, void *target, size_t bytes);

/* ---- 9. Copiers ------------------------------------------------------------------------ */

/* Carries out copies: at once, or by workers beside the caller. */
typedef struct coh_copier coh_copier;

/* A copy that was issued. It belongs to its copier, and is waited for once. */
typedef struct coh_token {
    uint64_t copier;
    uint64_t copy;
} coh_token;

typedef struct coh_copier_options {
    size_t size;      /* sizeof(coh_copier_options) */
    int synchronous;  /* not 0: a copy is done when issue returns */
    uint32_t workers; /* threads; 0: 1. They share long copies. More help where files are slow */
    uint32_t depth;   /* copies that may be issued and not waited for; 0: 256 */
} coh_copier_options;

#define COH_COPIER_OPTIONS_INIT             \
    {                                       \
        sizeof(coh_copier_options), 0, 0, 0 \
    }

COH_API coh_status coh_copier_create(const coh_copier_options *options, coh_copier **copier);

/* Finishes what was issued, and frees; tokens that nobody waited for are void. NULL does nothing.
 */
COH_API coh_status coh_copier_destroy(coh_copier *copier);

/*
 * Starts a copy of `bytes` (0 is one too) and returns; source and target belong to it, and do not
 * overlap, until the token was waited for. COH_LIMIT when `depth` tokens have not been waited for.
 */
COH_API coh_status coh_copier_issue(coh_copier *copier, void *target, const void *source,
                                    size_t bytes, coh_token *token);

/* Starts a copy from a file; else as coh_copier_issue. The range is checked here, as by
 * coh_file_read. */
COH_API coh_status coh_copier_issue_file(coh_copier *copier, void *target, coh_file *file,
                                         uint64_t offset, size_t bytes, coh_token *token);

/*
 * Waits for the copy; the status is the copy's, and the token is spent. What no worker has begun of
 * it, the caller copies itself. Tokens may be waited for in any order. COH_INVALID_ARGUMENT for one
 * that was waited for already, or is another copier's.
 */
COH_API coh_status coh_copier_wait(coh_copier *copier, coh_token token);

/* Whether the copy is done, or failed; the token is not spent. Never waits. */
COH_API coh_status coh_copier_done(coh_copier *copier, coh_token token, int *done);

/* ---- 10. Pipelines --------------------------------------------------------------------- */

/*
 * A ring of tiles that a copier fills ahead of the caller. With depth 2 it is a double buffer:
 *
 *     coh_pipeline_load(p, source, bytes);                    the first tile
 *     for (i = 0; i < tiles; i++) {
 *         if (i + 1 < tiles)
 *             coh_pipeline_load(p, source of i + 1, bytes);   into the other buffer,
 *         coh_pipeline_current(p, &tile, &got);               while this one
 *         compute(tile, got);                                 is computed on
 *         coh_pipeline_swap(p);
 *     }
 *
 * The current tile is never written to before the swap, whatever the copier does. One thread at a
 * time may use a pipeline.
 */
typedef struct coh_pipeline coh_pipeline;

typedef struct coh_pipeline_options {
    size_t size;        /* sizeof(coh_pipeline_options) */
    uint32_t depth;     /* tiles that there is room for, at least 2; 0: 2 */
    coh_device *device; /* the tiles are buffers of it; NULL: memory of the host */
} coh_pipeline_options;

#define COH_PIPELINE_OPTIONS_INIT             \
    {                                         \
        sizeof(coh_pipeline_options), 0, NULL \
    }

/* `tile_bytes` is the most that a tile holds. The copier must outlive the pipeline. */
COH_API coh_status coh_pipeline_create(coh_copier *copier, size_t tile_bytes,
                                       const coh_pipeline_options *options,
                                       coh_pipeline **pipeline);

/* Waits for copies that are under way, and frees. NULL does nothing. */
COH_API coh_status coh_pipeline_destroy(coh_pipeline *pipeline);

/* The tile that would be filled next. COH_BUSY when all are taken: swap first. */
COH_API coh_status coh_pipeline_next(coh_pipeline *pipeline, void **tile);

/*
 * Fill it: from memory, from a file, or (coh_pipeline_filled) by the caller, who has just done so.
 * COH_BUSY as above; COH_LENGTH_MISMATCH when `bytes` is more than a tile holds.
 */
COH_API coh_status coh_pipeline_load(coh_pipeline *pipeline, const void *source, size_t bytes);
COH_API coh_status coh_pipeline_load_file(coh_pipeline *pipeline, coh_file *file, uint64_t offset,
                                          size_t bytes);
COH_API coh_status coh_pipeline_filled(coh_pipeline *pipeline, size_t bytes);

/*
 * The oldest tile that was loaded, when it is there. COH_INVALID_ARGUMENT when none was. Where its
 * copy failed, the status is the copy's, and coh_pipeline_swap goes past it.
 */
COH_API coh_status coh_pipeline_current(coh_pipeline *pipeline, void **tile, size_t *bytes);

/* Gives the current tile back to be filled; the next one becomes current. */
COH_API coh_status coh_pipeline_swap(coh_pipeline *pipeline);

/* What a whole loop runs over: `bytes` from a memory or a file, in tiles; the last may be shorter.
 */
typedef struct coh_tiles {
    size_t size;        /* sizeof(coh_tiles) */
    const void *memory; /* this, or */
    coh_file *file;     /* this, */
    uint64_t offset;    /* from this byte on */
    uint64_t bytes;
    size_t tile_bytes; /* 0: what a tile of the pipeline holds */
} coh_tiles;

#define COH_TILES_INIT                         \
    {                                          \
        sizeof(coh_tiles), NULL, NULL, 0, 0, 0 \
    }

/* Computes on tile `index`; it may change the tile. Any status but COH_OK ends the loop. */
typedef coh_status coh_tile_compute(void *arg, size_t index, void *tile, size_t bytes);

/*
 * The whole loop: loads ahead as deep as the pipeline is, and computes on each tile in order, on
 * the calling thread. The pipeline must be empty, and is afterwards, however it ended. A failure
 * names the tile.
 */
COH_API coh_status coh_pipeline_run(coh_pipeline *pipeline, const coh_tiles *tiles,
                                    coh_tile_compute *compute, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* COHORT_ML_H */
