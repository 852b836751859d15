/* The seam between the library and a backend: one table of functions a backend.
 *
 * The public front of a primitive (NAME.c) checks the arguments once, sizes the scratch and calls the table of the
 * context's backend; what stands behind may assume valid arguments and n > 0. A backend is one file backend_NAME.c that
 * fills a table, and one pointer in the list in context.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BACKEND_H
#define BACKEND_H

#include <spmv/primitives.h>

#include "filter.h"
#include "runtime.h"

struct sort_request;      /* sort_request.h */
struct histogram_request; /* histogram_request.h */

/* A rung sorts by digits of digit_bits from the lowest up, each pass stable, or, digit_bits 0, in a way of its own. Of
 * the passes the last one writes out, the one before it spare, and so on in turn: so input may lie in out (an even
 * number of passes) or in spare (an odd one). */
struct sort_rung {
    const char *name;
    int digit_bits;
    int64_t (*scratch)(const struct sort_request *);
    spmv_status (*run)(spmv_context *, const struct sort_request *, void *scratch);
};

/* A rung that has no room for so many bins leaves the work to the rung before it in the list. */
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
    int64_t cells; /* what the index points into: of in in a gather, of out in a scatter */
    int64_t n;     /* of the index */
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

    /* Fills what the context needs of the backend, and ctx->description. close must cope with a half-opened context. */
    spmv_status (*open)(spmv_context *ctx, const spmv_context_options *options);
    void (*close)(spmv_context *ctx);

    /* bytes > 0 */
    spmv_status (*alloc)(spmv_context *ctx, int64_t bytes, void **memory);
    spmv_status (*alloc_queued)(spmv_context *ctx, int64_t bytes, void **memory); /* context_alloc; NULL: as alloc */
    void (*free)(spmv_context *ctx, void *memory);
    void (*freed)(spmv_context *ctx); /* context_freed; NULL: nothing to do */
    spmv_status (*upload)(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
    spmv_status (*download)(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);
    spmv_status (*synchronize)(spmv_context *ctx);

    /* Primitives: as in spmv/primitives.h, n > 0. Those that need scratch say how many bytes (0: none) and receive it.
     */
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
    /* gather: out[i] = in[index[i]] where the filter takes in[index[i]], or with a mask i. scatter: out[index[i]] = in[i]
     * where the filter takes in[i], or with a mask i. An index outside moves nothing. */
    spmv_status (*gather)(spmv_context *, const struct move *);
    spmv_status (*scatter)(spmv_context *, const struct move *);

    /* *host_first = the first i with index[i] not in [lowest, limit), and *host_value = index[i]; n when there is none.
     * Waits. */
    int64_t (*index_check_scratch)(const spmv_context *, int64_t n);
    spmv_status (*index_check)(spmv_context *, const void *index, int index_bits, int64_t lowest, int64_t limit,
                               int64_t n, int64_t *host_first, int64_t *host_value, void *scratch);

    /* numbers[i] = 1 where the filter takes element i, else 0, 0 <= i < n; numbers[n] = 0 */
    spmv_status (*filter_map)(spmv_context *, const struct filter *, spmv_type, const void *in, int64_t *numbers,
                              int64_t n);
    int64_t (*compact_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*compact)(spmv_context *, const struct filter *, spmv_type, const void *in, void *out, int64_t *count,
                           int64_t n, void *scratch);
    /* the rung below it, by flags; NULL: there is none */
    spmv_status (*compact_below)(spmv_context *, const struct filter *, spmv_type, const void *in, void *out,
                                 int64_t *count, int64_t n, void *scratch);

    int64_t (*expand_scratch)(const spmv_context *, int64_t n);
    spmv_status (*expand_offsets)(spmv_context *, const void *counts, int count_bits, int64_t *offsets, int64_t n,
                                  void *scratch);
    /* n > 0, total > 0 */
    spmv_status (*expand)(spmv_context *, spmv_expand_form, const struct expansion *);

    int64_t (*reduce_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*reduce)(spmv_context *, spmv_op, spmv_type, const void *in, void *out, int64_t n, void *scratch);
    /* the same scratch */
    spmv_status (*map_reduce)(spmv_context *, spmv_function, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                              void *scratch);
    const struct reduce_rung *(*reduce_rungs)(void); /* by name: reduce_ladder.h */

    int64_t (*scan_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*scan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                        void *scratch);
    /* the same scratch */
    spmv_status (*map_scan)(spmv_context *, spmv_function, spmv_scan_kind, spmv_op, spmv_type, const void *in,
                            void *out, int64_t n, void *scratch);
    const struct scan_rung *(*scan_rungs)(void); /* by name: scan_ladder.h */

    spmv_status (*flags_pack)(spmv_context *, const uint8_t *flags, uint32_t *bits, int64_t n);
    spmv_status (*flags_unpack)(spmv_context *, const uint32_t *bits, uint8_t *flags, int64_t n);

    /* A pass over a host array piece by piece; NULL where the context's memory is the host's. Waits. */
    spmv_status (*host_pass)(spmv_context *, const struct host_pass *);

    /* NULL where positions cannot be looked at without waiting. */
    spmv_status (*segments_check)(spmv_context *, const spmv_segments *, int64_t n);

    int64_t (*segscan_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segscan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *, const void *in,
                           void *out, int64_t n, void *scratch);
    const struct scan_rung *(*segscan_rungs)(void); /* by name: scan_ladder.h */

    /* segments->count > 0; n may be 0 */
    int64_t (*segreduce_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segreduce)(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *in, void *out,
                             int64_t n, void *scratch);

    const struct sort_rung *sort_rungs;           /* ends with a NULL name; the last one is the automatic choice */
    const struct histogram_rung *histogram_rungs; /* likewise */
};

extern const struct backend_table backend_ref;
extern const struct backend_table backend_omp;
#ifdef SPMV_HAVE_CUDA
extern const struct backend_table backend_cuda;
#endif

/* The table of a backend; NULL: not in this build (context.c). */
const struct backend_table *backend_find(spmv_backend id);

/* Slots of every backend whose context memory is host memory (backend_host_slots.h). */
spmv_status host_memory_alloc(spmv_context *ctx, int64_t bytes, void **memory);
void host_memory_close(spmv_context *ctx);
void host_memory_free(spmv_context *ctx, void *memory);
spmv_status host_memory_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
spmv_status host_memory_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);
spmv_status host_memory_synchronize(spmv_context *ctx);

#define BACKEND(name) name##_ref
#include "backend_declared.h"
#undef BACKEND
#define BACKEND(name) name##_omp
#include "backend_declared.h"
#undef BACKEND
#define BACKEND(name) name##_cuda
#include "backend_declared.h"
#undef BACKEND
spmv_status compact_count_write_cuda(spmv_context *, const struct filter *, spmv_type, const void *, void *, int64_t *,
                                     int64_t, void *);
spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n);

#endif
