/* Contexts: one backend, one device, one stream; memory; the sentence of the last failure.
 *
 * Threads. One thread at a time uses a context and the objects made from it. Different contexts are
 * independent. The library leaves the caller's CUDA device and OpenMP settings as it found them.
 *
 * Errors. Every function that can fail returns a spmv_status and keeps a sentence in the context
 * (spmv_last_error). The library never prints, exits or aborts. After an error, outputs are empty
 * (NULL, zeros).
 *
 * NULL. A function that returns a spmv_status returns SPMV_ERROR_ARGUMENT when a context, a plan, a
 * preconditioner or an output that it needs is NULL, unless its comment says that NULL is allowed.
 * It keeps no sentence where the context itself is missing. Other functions return the neutral
 * value that their comment names. A ..._destroy, ..._free or ..._init function does nothing with
 * NULL. An enumeration value that names nothing is refused likewise (SPMV_ERROR_ARGUMENT;
 * SPMV_ERROR_TYPE for a type, an operator, a map function and a predicate).
 *
 * Ownership. The caller destroys what it created.
 *
 * Options. Option structs begin with their size. Fill one with its ..._init(&options, sizeof
 * options), then change members. So a program that was built against an older or newer header works
 * with this library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CONTEXT_H
#define SPMV_CONTEXT_H

#include <spmv/types.h>

SPMV_BEGIN_DECLS

typedef struct spmv_context spmv_context;

typedef enum spmv_backend {
    SPMV_BACKEND_AUTO = 0, /* cuda when it is built in and usable, else omp */
    SPMV_BACKEND_REF = 1,  /* serial, the definition of every operation: what the others are tested
                              against */
    SPMV_BACKEND_OMP = 2,  /* OpenMP threads of this machine */
    SPMV_BACKEND_CUDA = 3  /* one NVIDIA GPU */
} spmv_backend;

typedef enum spmv_event_kind {
    SPMV_EVENT_WARNING = 1, /* text says what; the call goes on */
    SPMV_EVENT_PROGRESS = 2 /* text names the activity; done of total units (total 0: not known) */
} spmv_event_kind;

typedef struct spmv_event {
    size_t size; /* of this struct, as the library knows it */
    spmv_event_kind kind;
    const char *text; /* valid only during the callback */
    int64_t done, total;
} spmv_event;

/* A callback for events. It runs in the thread that made the call and must not use the context. It
 * returns 0 to go on; any other value cancels the running call, which then returns SPMV_CANCELLED
 * with empty outputs. */
typedef int (*spmv_event_fn)(const spmv_event *event, void *user);

/* The most threads of a context. */
#define SPMV_MAX_THREADS 1024

typedef struct spmv_context_options {
    size_t size;
    spmv_backend backend;   /* default SPMV_BACKEND_AUTO */
    int device;             /* cuda: device ordinal; default -1: the caller's current device */
    int threads;            /* OpenMP threads, 1 to SPMV_MAX_THREADS; default 0: as many as OpenMP
                               would use, at most the CPU quota of the control group. Results do
                               not depend on it. */
    void *stream;           /* cuda: an existing cudaStream_t to queue on, which stays the caller's,
                               or cudaStreamLegacy, the default stream; default NULL: the context
                               makes a stream that does not wait for the default one */
    spmv_event_fn on_event; /* default NULL: no events */
    void *user;             /* passed to on_event */
} spmv_context_options;

/* Fills options with the defaults. size: sizeof(spmv_context_options) as the caller sees it. */
SPMV_API void spmv_context_options_init(spmv_context_options *options, size_t size);

/* Creates a context. options: NULL means defaults. *ctx: the context, NULL after an error;
 * spmv_last_error(NULL) then has the sentence. Errors: SPMV_ERROR_NO_DEVICE (this build lacks the
 * backend, or there is no usable device), SPMV_ERROR_DEVICE, SPMV_ERROR_ARGUMENT (also an unknown
 * backend, more than SPMV_MAX_THREADS threads, or OpenMP stacks that are too small),
 * SPMV_ERROR_MEMORY (also when the system does not let that many threads start). */
SPMV_API spmv_status spmv_context_create(const spmv_context_options *options, spmv_context **ctx);

/* Waits for the queued work, then releases everything that the context owns. The caller destroys
 * objects made from it first. */
SPMV_API void spmv_context_destroy(spmv_context *ctx);

/* The backend that runs the context. SPMV_BACKEND_AUTO only for NULL. */
SPMV_API spmv_backend spmv_context_backend(const spmv_context *ctx);

/* The backend's name: "ref", "omp", "cuda", "auto"; "?" for a value that names no backend. */
SPMV_API const char *spmv_backend_name(spmv_backend backend);

/* Finds the backend of a name. *backend is SPMV_BACKEND_AUTO after an error. Errors:
 * SPMV_ERROR_ARGUMENT (no such name). */
SPMV_API spmv_status spmv_backend_parse(const char *name, spmv_backend *backend);

/* 1 when this build contains the backend, else 0. (A GPU may still be missing.) */
SPMV_API int spmv_backend_built(spmv_backend backend);

/* One line that says what the context runs on and why: "omp, 4 threads (auto: this build has no
 * CUDA)". The text lives as long as the context; "" for NULL. */
SPMV_API const char *spmv_context_describe(const spmv_context *ctx);

/* The largest number of threads of the context's OpenMP regions; 1 for ref, 0 for NULL. */
SPMV_API int spmv_context_threads(const spmv_context *ctx);

/* The cudaStream_t on which the context queues; NULL for ref, omp and a NULL context. */
SPMV_API void *spmv_context_stream(const spmv_context *ctx);

/* The sentence about the last failed call on the context: file, line, sizes, remedy. "" when no
 * call failed. For NULL: about the last failed spmv_context_create of this thread. Valid until the
 * next call on the context. */
SPMV_API const char *spmv_last_error(const spmv_context *ctx);

/* Allocates memory of the context. bytes: at least 0; *memory: aligned to 64 bytes, contents
 * undefined; NULL for 0 bytes. Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_MEMORY (the sentence says
 * how much was needed), SPMV_ERROR_CAPTURE. spmv_free releases memory of the same context; it does
 * nothing where ctx or memory is NULL. */
SPMV_API spmv_status spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory);
SPMV_API void spmv_free(spmv_context *ctx, void *memory);

/* Copies bytes between host memory and the context's memory, without overlap. On return from
 * spmv_upload the caller may change the host array. spmv_download waits: on return the data is
 * there, as all work queued before left it. bytes: at least 0; with 0 the arrays may be NULL.
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_DEVICE, SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
SPMV_API spmv_status spmv_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);

/* For code that queues its own work on the context's stream, as spmv/device.cuh does.
 *
 * spmv_context_scratch: *scratch points to at least bytes (>= 0) of the context's memory, aligned
 * to 64 bytes, contents undefined, valid until the next call on the context; NULL for 0 bytes. On
 * cuda 8 MiB exist from the start; a request for more may wait, and is SPMV_ERROR_CAPTURE while the
 * stream is captured.
 *
 * spmv_context_report: keeps text as the sentence of the last failure and returns status. */
SPMV_API spmv_status spmv_context_scratch(spmv_context *ctx, int64_t bytes, void **scratch);
SPMV_API spmv_status spmv_context_report(spmv_context *ctx, spmv_status status, const char *text);

/* The bytes of host memory that this process can still get: the smallest of what RLIMIT_AS leaves,
 * what the control groups leave, and the machine's free memory (MemAvailable and free swap; all of
 * its memory where the system does not say). *used: bytes that the process has in use. *limit:
 * which limit is the smallest, in words; a static text. Both may be NULL. */
SPMV_API int64_t spmv_memory_available(int64_t *used, const char **limit);

/* Waits until all queued work is done. Errors: SPMV_ERROR_DEVICE (a device error of queued work
 * shows here or at the next call), SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_synchronize(spmv_context *ctx);

SPMV_END_DECLS

#endif
