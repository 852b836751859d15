/* The interface between the library and a backend: one table of functions per backend.
 *
 * The public front of a primitive (NAME.c) checks the arguments once, gets the scratch memory and
 * calls the table of the context's backend. A backend function may assume valid arguments and
 * n > 0. A backend is one file backend_NAME.c that fills a table, and one pointer in the list in
 * context.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BACKEND_H
#define BACKEND_H

#include <spmv/primitives.h>

#include "core/loops/filter.h"
#include "core/runtime.h"

struct sort_request;      /* sort_request.h */
struct histogram_request; /* histogram_request.h */

/* With digit_bits > 0 a rung is a least-significant-digit radix sort with stable passes over digits
 * of digit_bits; with 0 it uses another algorithm. The last pass writes out, the one before it
 * spare, and so on alternately. So input may be in out if the number of passes is even, or in spare
 * if it is odd. */
struct sort_rung {
    const char *name;
    int digit_bits;
    int64_t (*scratch)(const struct sort_request *);
    spmv_status (*run)(spmv_context *, const struct sort_request *, void *scratch);
};

/* A rung that cannot hold the number of bins delegates to the rung before it in the list. */
struct histogram_rung {
    const char *name;
    int64_t (*scratch)(const struct histogram_request *);
    spmv_status (*run)(spmv_context *, const struct histogram_request *, void *scratch);
};

/* A gather or a scatter. */
struct move {
    const struct filter *filter; /* NULL: every element is taken */
    spmv_type type;
    const void *in, *index;
    int index_bits;
    void *out;
    int64_t cells; /* elements that the index addresses: of in for a gather, of out for a scatter */
    int64_t n;     /* elements of the index */
};

/* The arguments of spmv_expand. */
struct expansion {
    spmv_type type;
    const void *in;
    const int64_t *offsets;
    int64_t n;
    int index_bits;
    void *out, *source, *rank;
    int64_t total;
};

struct reduce_rung;
struct scan_rung;
struct host_pass; /* pieces.h */

struct backend_table {
    spmv_backend id;
    bool on_device; /* the context's memory is that of a device, which the host cannot read */

    /* open fills the backend's members of the context, and ctx->description; NULL: this build does
     * not have the backend. close must accept a partly opened context. */
    spmv_status (*open)(spmv_context *ctx, const spmv_context_options *options);
    void (*close)(spmv_context *ctx);

    /* bytes > 0 */
    spmv_status (*alloc)(spmv_context *ctx, int64_t bytes, void **memory);
    /* see context_alloc; NULL: same as alloc */
    spmv_status (*alloc_queued)(spmv_context *ctx, int64_t bytes, void **memory);
    void (*free)(spmv_context *ctx, void *memory);
    /* see context_free; NULL: same as free */
    void (*free_queued)(spmv_context *ctx, void *memory);
    void (*freed)(spmv_context *ctx);                /* see context_freed; NULL: nothing to do */
    void (*keep_freed)(spmv_context *ctx, bool all); /* see context_keep_freed; NULL: nothing to do */
    spmv_status (*upload)(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
    spmv_status (*download)(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);
    spmv_status (*synchronize)(spmv_context *ctx);
    spmv_status (*set_stream)(spmv_context *ctx, void *stream); /* NULL: the backend has no streams */

    /* The primitives: backend_slots.h. */
#define FUNCTION(result, name, ...) result (*name)(__VA_ARGS__);
#define RUNGS(type, name) const type *name;
#include "core/backend_slots.h"

    /* The rung below compact, with flags; NULL: none. */
    spmv_status (*compact_below)(spmv_context *, const struct filter *, spmv_type, const void *in, void *out,
                                 int64_t *count, int64_t n, void *scratch);

    /* A pass over a host array in pieces; NULL if the context's memory is host memory. Waits. */
    spmv_status (*host_pass)(spmv_context *, const struct host_pass *);

    /* NULL if positions cannot be checked without waiting. */
    spmv_status (*segments_check)(spmv_context *, const spmv_segments *, int64_t n);
};

extern const struct backend_table backend_ref;
extern const struct backend_table backend_omp;
extern const struct backend_table backend_cuda;

/* Returns the table of a backend, or NULL if this build does not have it (context.c). */
const struct backend_table *backend_find(spmv_backend id);

/* Functions for all backends whose context memory is host memory (backend_host_slots.h). */
spmv_status host_memory_alloc(spmv_context *ctx, int64_t bytes, void **memory);
void host_memory_close(spmv_context *ctx);
void host_memory_free(spmv_context *ctx, void *memory);
spmv_status host_memory_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
spmv_status host_memory_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);
spmv_status host_memory_synchronize(spmv_context *ctx);

#define FUNCTION(result, name, ...) result name##_ref(__VA_ARGS__);
#define RUNGS(type, name) extern const type name##_ref[];
#include "core/backend_slots.h"
#define FUNCTION(result, name, ...) result name##_omp(__VA_ARGS__);
#define RUNGS(type, name) extern const type name##_omp[];
#include "core/backend_slots.h"
#define FUNCTION(result, name, ...) result name##_cuda(__VA_ARGS__);
#define RUNGS(type, name) extern const type name##_cuda[];
#include "core/backend_slots.h"
spmv_status compact_count_write_cuda(spmv_context *, const struct filter *, spmv_type, const void *, void *, int64_t *,
                                     int64_t, void *);
spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n);

#endif
