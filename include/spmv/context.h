/* Contexts: one backend, one device, one stream; memory; the sentence of the last failure.
 *
 * A context and everything made from it belong to one thread at a time; different contexts are independent. The
 * caller's CUDA device and OpenMP settings are left as found. Every function that can fail returns a spmv_status; the
 * library never prints, exits or aborts. Who creates destroys; destroying NULL does nothing; outputs are empty (NULL,
 * zeros) after an error.
 *
 * Option structs begin with their size. Fill one with its ..._init(&options, sizeof options) and change what you need:
 * a program built against an older or newer header keeps working with this library.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CONTEXT_H
#define SPMV_CONTEXT_H

#include <spmv/types.h>

SPMV_BEGIN_DECLS

typedef struct spmv_context spmv_context;

typedef enum spmv_backend {
    SPMV_BACKEND_AUTO = 0, /* cuda when it is built in and usable, else omp */
    SPMV_BACKEND_REF = 1,  /* serial, the definition of every operation: what the others are tested against */
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
    const char *text; /* valid during the callback only */
    int64_t done, total;
} spmv_event;

/* Called from the thread that made the call. Return 0 to go on; anything else cancels the running call, which then
 * returns SPMV_CANCELLED with its outputs empty. The callback must not use the context. */
typedef int (*spmv_event_fn)(const spmv_event *event, void *user);

/* The most threads of a context. */
#define SPMV_MAX_THREADS 1024

typedef struct spmv_context_options {
    size_t size;
    spmv_backend backend; /* default SPMV_BACKEND_AUTO */
    int device;           /* cuda: device ordinal; default -1: the caller's current device */
    int threads;          /* OpenMP threads, 1 to SPMV_MAX_THREADS; default 0: what OpenMP would use, at most what the
                             CPU quota of the control group is worth. Results do not depend on it. */
    void *stream; /* cuda: an existing cudaStream_t to queue on (not owned), also cudaStreamLegacy, the default stream;
                     default NULL: a stream of its own, which does not wait for the default stream */
    spmv_event_fn on_event; /* default NULL: no events */
    void *user;             /* handed to on_event */
} spmv_context_options;

/* Fills options with the defaults. size: sizeof(spmv_context_options) as the caller sees it. */
SPMV_API void spmv_context_options_init(spmv_context_options *options, size_t size);

/* Creates a context. options NULL: defaults. Errors: SPMV_ERROR_NO_DEVICE (no such backend in this build, or no usable
 * device), SPMV_ERROR_DEVICE, SPMV_ERROR_ARGUMENT (also too many threads, or stacks of OpenMP's threads that are too
 * small), SPMV_ERROR_MEMORY (also when the system does not let so many threads start); *ctx is then NULL and
 * spmv_last_error(NULL) has the sentence. */
SPMV_API spmv_status spmv_context_create(const spmv_context_options *options, spmv_context **ctx);

/* Waits for the work queued, then releases everything the context owns. Objects made from it must be destroyed first.
 */
SPMV_API void spmv_context_destroy(spmv_context *ctx);

/* What was chosen: never SPMV_BACKEND_AUTO. */
SPMV_API spmv_backend spmv_context_backend(const spmv_context *ctx);

/* "ref", "omp", "cuda", "auto"; "?" otherwise. */
SPMV_API const char *spmv_backend_name(spmv_backend backend);

/* The backend of that name; SPMV_ERROR_ARGUMENT when there is none. */
SPMV_API spmv_status spmv_backend_parse(const char *name, spmv_backend *backend);

/* 1 when this build contains the backend (a GPU may still be missing), else 0. */
SPMV_API int spmv_backend_built(spmv_backend backend);

/* One line: what the context runs on and why it was chosen ("omp, 4 threads (auto: this build has no CUDA)"). Lives as
 * long as the context. */
SPMV_API const char *spmv_context_describe(const spmv_context *ctx);

/* Threads that OpenMP regions of this context ask for; 1 for ref. */
SPMV_API int spmv_context_threads(const spmv_context *ctx);

/* The cudaStream_t on which this context queues; NULL for ref and omp. */
SPMV_API void *spmv_context_stream(const spmv_context *ctx);

/* The sentence about the last failed call on the context: file, line, sizes, what to do. "" when none failed. With
 * NULL: about the last failed spmv_context_create of this thread. Valid until the next call on the context. */
SPMV_API const char *spmv_last_error(const spmv_context *ctx);

/* bytes (>= 0) of the context's memory, at least 64-byte aligned, contents undefined; 0 bytes give NULL. The sentence
 * of SPMV_ERROR_MEMORY says how much was needed. */
SPMV_API spmv_status spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory);
SPMV_API void spmv_free(spmv_context *ctx, void *memory);

/* Copies bytes between host memory and the context's memory (no overlap). upload: the host array may be changed on
 * return; download: the data is there on return, after all work queued before. */
SPMV_API spmv_status spmv_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
SPMV_API spmv_status spmv_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);

/* For code that queues work of its own on the context's stream (spmv/device.cuh does). scratch: at least bytes (>= 0)
 * of the context's memory, aligned to 64, contents undefined, until the next call on the context; 0 bytes give NULL. 2
 * MiB are there from the start on cuda; more may wait, and is SPMV_ERROR_CAPTURE while the stream is captured. report:
 * keeps text (not NULL) as the sentence of the last failure, and returns status. */
SPMV_API spmv_status spmv_context_scratch(spmv_context *ctx, int64_t bytes, void **scratch);
SPMV_API spmv_status spmv_context_report(spmv_context *ctx, spmv_status status, const char *text);

/* Bytes of host memory that this process can still get: the smallest of what RLIMIT_AS leaves, what the control groups
 * leave, and the machine's free memory (MemAvailable and free swap; where the system does not tell, all of its memory).
 * *used: bytes that the process has in use; *limit: which of them it is, in words, static. Both may be NULL. */
SPMV_API int64_t spmv_memory_available(int64_t *used, const char **limit);

/* Waits until all queued work is done. A device error of queued work shows here or at the next call. */
SPMV_API spmv_status spmv_synchronize(spmv_context *ctx);

SPMV_END_DECLS

#endif
