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

    /* open fills the backend's members of the context, and ctx->description. close must accept a
     * partly opened context. */
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

    /* Primitives: as in spmv/primitives.h, with n > 0. NAME_scratch returns the bytes of scratch
     * that NAME needs (0: none). */
    spmv_status (*map)(spmv_context *, spmv_function, spmv_type, const void *in, void *out, int64_t n);
    spmv_status (*map_binary)(spmv_context *, spmv_op, spmv_type, const void *a, const void *b, void *out, int64_t n);
    spmv_status (*map_scalar)(spmv_context *, spmv_op, spmv_type, const void *host_scalar, const void *in, void *out,
                              int64_t n);
    spmv_status (*map_index)(spmv_context *, spmv_type, const void *host_first, const void *host_step, void *out,
                             int64_t n);
    spmv_status (*map_divide)(spmv_context *, spmv_type, const void *a, const void *b, void *out, int64_t n);
    spmv_status (*map_axpby)(spmv_context *, spmv_type, const void *alpha, const void *x, const void *beta, void *y,
                             int64_t n);
    int64_t (*dot_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*dot)(spmv_context *, spmv_type, const void *x, const void *y, void *out, int64_t n, void *scratch);
    /* gather: out[i] = in[index[i]] if the filter takes in[index[i]] (with a mask: if mask[i]).
     * scatter: out[index[i]] = in[i] if the filter takes in[i] (with a mask: if mask[i]).
     * Indices out of range move nothing. */
    spmv_status (*gather)(spmv_context *, const struct move *);
    spmv_status (*scatter)(spmv_context *, const struct move *);

    /* *host_first = the first i with index[i] not in [lowest, limit), or n if there is none;
     * *host_value = index[*host_first]. Waits for the result. */
    int64_t (*index_check_scratch)(const spmv_context *, int64_t n);
    spmv_status (*index_check)(spmv_context *, const void *index, int index_bits, int64_t lowest, int64_t limit,
                               int64_t n, int64_t *host_first, int64_t *host_value, void *scratch);

    /* numbers[i] = 1 if the filter takes element i, else 0, for 0 <= i < n; numbers[n] = 0 */
    spmv_status (*filter_map)(spmv_context *, const struct filter *, spmv_type, const void *in, int64_t *numbers,
                              int64_t n);
    int64_t (*compact_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*compact)(spmv_context *, const struct filter *, spmv_type, const void *in, void *out, int64_t *count,
                           int64_t n, void *scratch);
    /* the rung below compact, with flags; NULL: none */
    spmv_status (*compact_below)(spmv_context *, const struct filter *, spmv_type, const void *in, void *out,
                                 int64_t *count, int64_t n, void *scratch);

    int64_t (*expand_scratch)(const spmv_context *, int64_t n);
    spmv_status (*expand_offsets)(spmv_context *, const void *counts, int count_bits, int64_t *offsets, int64_t n,
                                  void *scratch);
    /* n > 0, total > 0 */
    spmv_status (*expand)(spmv_context *, spmv_expand_form, const struct expansion *);

    int64_t (*reduce_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*reduce)(spmv_context *, spmv_op, spmv_type, const void *in, void *out, int64_t n, void *scratch);
    /* uses the scratch of reduce */
    spmv_status (*map_reduce)(spmv_context *, spmv_function, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                              void *scratch);
    const struct reduce_rung *(*reduce_rungs)(void); /* rungs by name: reduce_ladder.h */

    int64_t (*scan_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*scan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                        void *scratch);
    /* uses the scratch of scan */
    spmv_status (*map_scan)(spmv_context *, spmv_function, spmv_scan_kind, spmv_op, spmv_type, const void *in,
                            void *out, int64_t n, void *scratch);
    const struct scan_rung *(*scan_rungs)(void); /* rungs by name: scan_ladder.h */

    spmv_status (*flags_pack)(spmv_context *, const uint8_t *flags, uint32_t *bits, int64_t n);
    spmv_status (*flags_unpack)(spmv_context *, const uint32_t *bits, uint8_t *flags, int64_t n);

    /* A pass over a host array in pieces; NULL if the context's memory is host memory. Waits. */
    spmv_status (*host_pass)(spmv_context *, const struct host_pass *);

    /* NULL if positions cannot be checked without waiting. */
    spmv_status (*segments_check)(spmv_context *, const spmv_segments *, int64_t n);

    int64_t (*segscan_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segscan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *, const void *in,
                           void *out, int64_t n, void *scratch);
    const struct scan_rung *(*segscan_rungs)(void); /* rungs by name: scan_ladder.h */

    /* segments->count > 0; n may be 0 */
    int64_t (*segreduce_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segreduce)(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *in, void *out,
                             int64_t n, void *scratch);

    const struct sort_rung *sort_rungs;           /* ends with a NULL name; last: the default */
    const struct histogram_rung *histogram_rungs; /* likewise */
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

#define BACKEND(name) name##_ref
#include "core/backend_declared.h"
#undef BACKEND
#define BACKEND(name) name##_omp
#include "core/backend_declared.h"
#undef BACKEND
#define BACKEND(name) name##_cuda
#include "core/backend_declared.h"
#undef BACKEND
spmv_status compact_count_write_cuda(spmv_context *, const struct filter *, spmv_type, const void *, void *, int64_t *,
                                     int64_t, void *);
spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n);

#endif
