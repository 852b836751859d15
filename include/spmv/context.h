/* Contexts: one backend, one device and one stream; memory, error messages, events.
 *
 *     spmv_context *ctx;
 *     if (spmv_context_create(NULL, &ctx) != SPMV_OK)
 *         fprintf(stderr, "%s\n", spmv_last_error(NULL));
 *     puts(spmv_context_describe(ctx));      (for example "omp, 4 threads (auto: ...)")
 *     spmv_context_destroy(ctx);
 *
 * The following rules hold for all public headers.
 *
 * Memory. "The context's memory" is device memory on the backend cuda and ordinary host memory on
 * ref and omp. Arrays are in the context's memory unless the parameter's name begins with host_ or
 * its comment says otherwise. Structs, options and strings are in host memory.
 *
 * Queued calls. On cuda a queued call puts its work on the context's stream and returns without
 * waiting. Work on one stream runs in order. On ref and omp the work is done on return.
 *
 * Threads. A context, and the objects made from it, must be used by one thread at a time. Different
 * contexts are independent. The library leaves the caller's current CUDA device and OpenMP settings
 * unchanged. If two threads meet on one context all the same, the second call returns
 * SPMV_ERROR_BUSY and does nothing. It stores no message, because the context belongs to the other
 * thread. This is certain if the first call is one of spmv_plan_create, spmv_plan_update_values,
 * spmv_apply, spmv_apply_with, spmv_cg, spmv_solver_solve, spmv_solver_update_values, spmv_upload
 * and spmv_download, and the second one of these, spmv_synchronize, spmv_context_set_stream,
 * spmv_context_scratch or a primitive that needs scratch. Other meetings are not detected.
 *
 * Callbacks. A callback may call the library on the context that runs it where its comment allows
 * that. The call that runs the callback uses objects: a solve its solver, its plans and its
 * preconditioner. While it does,
 *   - they can be described, plans can multiply, other objects can be made, used and destroyed, and
 *     spmv_cg can solve with the same plan and preconditioner;
 *   - spmv_solver_solve, spmv_solver_update_values and spmv_solver_set_callbacks with a solver in
 *     use, spmv_plan_update_values and spmv_preconditioner_update_values with such a plan or
 *     preconditioner, and spmv_preconditioner_apply inside an application of the same
 *     preconditioner return SPMV_ERROR_BUSY and change nothing;
 *   - ..._destroy of such an object takes effect when the last call that uses the object ends. The
 *     caller must not name the object in later calls. spmv_context_destroy does nothing.
 *
 * Errors. A function that can fail returns a spmv_status and stores a message in the context
 * (spmv_last_error). The library never prints, exits or aborts. After an error, output pointers are
 * NULL, and output numbers and structs are zero, unless the function's comment says otherwise. On
 * cuda, further errors are possible in every function that uses the device:
 *   SPMV_ERROR_DEVICE   The device reported an error. The context can no longer be used: every
 *                       later call that needs the device returns this status and the first error.
 *                       Destroy the context.
 *   SPMV_ERROR_CAPTURE  The call would wait or allocate, and the stream is being captured into a
 *                       CUDA graph. The capture stays valid.
 *
 * NULL. A function that returns a spmv_status returns SPMV_ERROR_ARGUMENT if a required context,
 * object or output is NULL. Without a context there is no message. Other functions return the
 * neutral value that their comment names. A ..._destroy, ..._free or ..._init function ignores
 * NULL.
 *
 * Enumerations. A value that is not part of its enumeration gives SPMV_ERROR_TYPE for a type,
 * operator, map function or predicate, and SPMV_ERROR_ARGUMENT for any other enumeration.
 *
 * Ownership. The caller destroys what it created.
 *
 * Option and result structs. The first member of such a struct is its size in bytes. Fill an option
 * struct with its ..._init(&options, sizeof options), then change members. Pass sizeof(result) with
 * a result struct. A program that was compiled with an older or newer header then works with this
 * library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CONTEXT_H
#define SPMV_CONTEXT_H

#include <spmv/types.h>

SPMV_BEGIN_DECLS

typedef struct spmv_context spmv_context;

typedef enum spmv_backend {
    SPMV_BACKEND_AUTO = 0, /* cuda if it is built in and a GPU is usable, else omp */
    SPMV_BACKEND_REF = 1,  /* serial code that defines each operation; tests compare with it */
    SPMV_BACKEND_OMP = 2,  /* OpenMP threads on the host */
    SPMV_BACKEND_CUDA = 3  /* one NVIDIA GPU */
} spmv_backend;

typedef enum spmv_event_kind {
    SPMV_EVENT_WARNING = 1, /* text is the warning; the call continues */
    SPMV_EVENT_PROGRESS = 2 /* text names the activity; done of total units are finished */
} spmv_event_kind;

typedef struct spmv_event {
    size_t size;          /* of this struct in bytes, as the library knows it */
    spmv_event_kind kind; /* warning or progress */
    const char *text;     /* valid during the callback only */
    int64_t done, total;  /* progress: units done, and units in all or 0 if unknown */
} spmv_event;

/* A callback for events. It runs in the thread that called the library and must not use the
 * context. It returns 0 to continue. Any other value cancels the running call, which then fails
 * with SPMV_CANCELLED. */
typedef int (*spmv_event_fn)(const spmv_event *event, void *user);

/* The largest number of threads of a context. */
#define SPMV_MAX_THREADS 1024

typedef struct spmv_context_options {
    size_t size;          /* sizeof(spmv_context_options), set by spmv_context_options_init */
    spmv_backend backend; /* default SPMV_BACKEND_AUTO */
    int device;           /* cuda: the device's number from 0; default -1: the current device */

    /* OpenMP threads, 1 to SPMV_MAX_THREADS. Default 0: the number of OpenMP (OMP_NUM_THREADS). If
     * that is the number of processors, at most the CPU quota of the control group. If the system
     * cannot start that many, fewer, with a warning event. Results do not depend on this number. */
    int threads;

    /* cuda: an existing cudaStream_t on the same device, or cudaStreamLegacy for the default
     * stream. The stream stays the caller's and must outlive the context. Default NULL: the context
     * creates a stream, which does not wait for the default stream. */
    void *stream;

    spmv_event_fn on_event; /* callback for events; default NULL: none */
    void *user;             /* passed to on_event; default NULL */

    /* The number of the first row, column, entry or element in messages, 0 or 1. Default 0:
     * messages then say "(counted from 0)". */
    int first_index;
} spmv_context_options;

/* Fills options with the defaults. size: sizeof(spmv_context_options). */
SPMV_API void spmv_context_options_init(spmv_context_options *options, size_t size);

/* Creates a context.
 *
 *   options  NULL means defaults
 *   *ctx     the context; NULL after an error, whose message is then in spmv_last_error(NULL)
 *
 * Errors: SPMV_ERROR_NO_DEVICE (the backend is not in this build, or there is no usable GPU),
 * SPMV_ERROR_DEVICE, SPMV_ERROR_ARGUMENT (also: an unknown backend, a number of threads out of
 * range, stacks of OpenMP threads that are too small), SPMV_ERROR_MEMORY (also: the GPU is there
 * but its memory is full; the system cannot start the number of threads in options),
 * SPMV_CANCELLED. */
SPMV_API spmv_status spmv_context_create(const spmv_context_options *options, spmv_context **ctx);

/* Waits for the queued work, then releases everything that the context owns. Destroy the objects
 * made from the context first. */
SPMV_API void spmv_context_destroy(spmv_context *ctx);

/* The backend of the context, never SPMV_BACKEND_AUTO; SPMV_BACKEND_AUTO for NULL. */
SPMV_API spmv_backend spmv_context_backend(const spmv_context *ctx);

/* The name of a backend: "ref", "omp", "cuda", "auto"; "?" for a value that is not a backend.
 * Static storage. */
SPMV_API const char *spmv_backend_name(spmv_backend backend);

/* Finds a backend by its name.
 *
 *   name      "ref", "omp", "cuda" or "auto"
 *   *backend  the backend; SPMV_BACKEND_AUTO after an error
 *
 * Errors: SPMV_ERROR_ARGUMENT (no such name, NULL). */
SPMV_API spmv_status spmv_backend_parse(const char *name, spmv_backend *backend);

/* 1 if this build contains the backend, else 0. For cuda, 1 does not mean that there is a GPU. */
SPMV_API int spmv_backend_built(spmv_backend backend);

/* One line that says what the context runs on and why it was chosen: "omp, 4 threads (auto: this
 * build has no CUDA)". Valid until the context is destroyed; "" for NULL. */
SPMV_API const char *spmv_context_describe(const spmv_context *ctx);

/* The number of OpenMP threads that the context may use; 1 for ref, 0 for NULL. */
SPMV_API int spmv_context_threads(const spmv_context *ctx);

/* The context's cudaStream_t; NULL for ref, omp and a NULL context. */
SPMV_API void *spmv_context_stream(const spmv_context *ctx);

/* cuda: changes the stream of the context. Later calls queue their work on the new stream, after
 * the work that this context or anyone else has queued on the old one. Does not wait.
 *
 *   stream  as in spmv_context_options: an existing cudaStream_t on the context's device,
 *           cudaStreamLegacy, or NULL for a stream of the context's own
 *
 * The old stream must still exist. CUDA graphs that captured calls of the context stay valid. If
 * the new stream is being captured, there is no order with the old one: the caller launches the
 * graph after the work on the old stream. To set the stream that the context already has costs one
 * comparison.
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (ref, omp), SPMV_ERROR_ARGUMENT (a stream of another device),
 * SPMV_ERROR_CAPTURE (the old stream is being captured), SPMV_ERROR_BUSY, SPMV_ERROR_DEVICE. After
 * an error the context keeps its stream. */
SPMV_API spmv_status spmv_context_set_stream(spmv_context *ctx, void *stream);

/* A function that says whether the running call is to end: any value but 0 cancels it. It must not
 * use the context. */
typedef int (*spmv_cancel_fn)(void *user);

/* Sets the function that long calls on the context ask, in the thread that called the library;
 * NULL: none (at first). A call that is cancelled fails with SPMV_CANCELLED:
 *   - spmv_solver_solve, spmv_solve, spmv_cg: asked between iterations and in the set-up of further
 *     preconditioners; x is the iterate reached, and the result describes it;
 *   - spmv_solver_create, spmv_preconditioner_create, spmv_solver_update_values: asked in the
 *     set-up; nothing is made.
 * It is asked after each 2^16 units of work (entries or multiplications), less than a millisecond
 * on one thread, so the number of calls repeats. Other calls, kernels of a GPU that run, and the
 * analysis and factorisation by KLU (asked only when KLU allocates) are not interrupted.
 *
 * Errors: SPMV_ERROR_ARGUMENT (ctx is NULL). */
SPMV_API spmv_status spmv_context_set_cancel(spmv_context *ctx, spmv_cancel_fn cancel, void *user);

/* The message of the last call on the context that failed: names the file and line or the sizes,
 * and the remedy. "" if no call failed. Valid until the next call on the context.
 *
 * ctx NULL: the message of this thread's last spmv_context_create; "" if that succeeded. */
SPMV_API const char *spmv_last_error(const spmv_context *ctx);

/* Allocates and releases the context's memory.
 *
 *   bytes    at least 0
 *   *memory  aligned to 64 bytes, contents undefined; NULL for 0 bytes and after an error
 *
 * spmv_free takes memory from spmv_alloc of the same context, and does nothing if ctx or memory is
 * NULL. On cuda, spmv_free waits for the queued work. While the stream is being captured, the
 * memory is released after the capture.
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY (the message says how much was needed),
 * SPMV_ERROR_DEVICE, SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory);
SPMV_API void spmv_free(spmv_context *ctx, void *memory);

/* Copies bytes from host memory to the context's memory (upload) or back (download).
 *
 *   bytes  at least 0; the arrays may be NULL if it is 0
 *
 * After spmv_upload the caller may change the host array. spmv_download waits for all work queued
 * before it; the data is there on return. Aliasing: no overlap.
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_DEVICE, SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
SPMV_API spmv_status spmv_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);

/* For code that queues its own work on the context's stream, as spmv/device.cuh does.
 *
 * spmv_context_scratch gives scratch memory of the context.
 *   bytes     at least 0
 *   *scratch  at least bytes of the context's memory, aligned to 64 bytes, contents undefined,
 *             valid until the next call on the context; NULL for 0 bytes and after an error
 * On cuda 8 MiB are allocated with the context. A larger request may wait.
 *
 * spmv_context_report stores a copy of text as the message of the last failed call and returns
 * status.
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE, SPMV_ERROR_CAPTURE (the
 * scratch is too small and the stream is being captured). */
SPMV_API spmv_status spmv_context_scratch(spmv_context *ctx, int64_t bytes, void **scratch);
SPMV_API spmv_status spmv_context_report(spmv_context *ctx, spmv_status status, const char *text);

/* Limits the host memory of this process: what it has in use now, program text included, and what
 * the library allocates from now on, for any context, object or call, working memory included.
 *
 *   bytes  the most bytes in use; 0 or less: no limit (at first)
 *
 * An allocation that would exceed the limit is not made: the call fails with SPMV_ERROR_MEMORY and
 * says what needed how many bytes. A choice by "auto" takes what fits. Memory in use is the larger
 * of two figures: the bytes that the library has allocated, whether touched or not, plus what was
 * in use when the limit was set; and the resident set without pages of files, read for allocations
 * of 1 MiB or more. So memory that other code of the process allocates also counts, once it is
 * touched. The memory of a GPU does not count.
 *
 * Results are the same for all limits that suffice, except that a choice by "auto" may differ. May
 * be called at any time, by any thread. */
SPMV_API void spmv_memory_limit(int64_t bytes);

/* The bytes of host memory that this process can still allocate. It is the smallest of
 *   - what spmv_memory_limit leaves,
 *   - what RLIMIT_AS (ulimit -v) leaves,
 *   - what the memory limits of the control groups leave,
 *   - MemAvailable plus free swap of the machine (its total memory if the system does not report
 *     these).
 *
 *   *used   bytes of memory that the process uses now (resident set); may be NULL
 *   *limit  the name of the smallest limit, static storage; may be NULL */
SPMV_API int64_t spmv_memory_available(int64_t *used, const char **limit);

/* The modules: libraries that are opened when a preconditioner, a solver or a transport needs them.
 * Returns the file of module 0, 1, ..., such as "spmv_direct_klu.so", and NULL after the last.
 *
 *   *purpose  what needs it, such as "solver direct"; static storage; NULL: not wanted
 *   text      receives the path of the module, or why it cannot be used; at most size bytes; NULL:
 *             the module is not searched
 *   *usable   whether it was found and can be opened; NULL: not wanted */
SPMV_API const char *spmv_module_file(int index, const char **purpose, char *text, size_t size, int *usable);

/* Waits until all queued work is done. A device error of queued work is reported here or by the
 * next call that notices it.
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_DEVICE, SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_synchronize(spmv_context *ctx);

SPMV_END_DECLS

#endif
