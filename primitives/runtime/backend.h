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

#include "runtime.h"

struct reduce_rung;
struct scan_rung;

struct backend_table {
    spmv_backend id;

    /* Fills what the context needs of the backend, and ctx->description. close must cope with a half-opened context. */
    spmv_status (*open)(spmv_context *ctx, const spmv_context_options *options);
    void (*close)(spmv_context *ctx);

    /* bytes > 0 */
    spmv_status (*alloc)(spmv_context *ctx, int64_t bytes, void **memory);
    void (*free)(spmv_context *ctx, void *memory);
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
    spmv_status (*gather)(spmv_context *, spmv_type, const void *in, int64_t in_n, const void *index, int index_bits,
                          void *out, int64_t n);
    spmv_status (*scatter)(spmv_context *, spmv_type, const void *in, const void *index, int index_bits, void *out,
                           int64_t out_n, int64_t n);

    int64_t (*reduce_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*reduce)(spmv_context *, spmv_op, spmv_type, const void *in, void *out, int64_t n, void *scratch);
    /* the same scratch */
    spmv_status (*map_reduce)(spmv_context *, spmv_function, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                              void *scratch);
    const struct reduce_rung *(*reduce_rungs)(void); /* by name: reduce_ladder.h */

    int64_t (*scan_scratch)(const spmv_context *, spmv_type, int64_t n);
    spmv_status (*scan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                        void *scratch);
    const struct scan_rung *(*scan_rungs)(void); /* by name: scan_ladder.h */

    /* NULL where positions cannot be looked at without waiting. */
    spmv_status (*segments_check)(spmv_context *, const spmv_segments *, int64_t n);

    int64_t (*segscan_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segscan)(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *, const void *in,
                           void *out, int64_t n, void *scratch);

    /* segments->count > 0; n may be 0 */
    int64_t (*segreduce_scratch)(const spmv_context *, spmv_type, const spmv_segments *, int64_t n);
    spmv_status (*segreduce)(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *in, void *out,
                             int64_t n, void *scratch);
};

extern const struct backend_table backend_ref;
extern const struct backend_table backend_omp;
#ifdef SPMV_HAVE_CUDA
extern const struct backend_table backend_cuda;
#endif

/* The memory slots of every backend whose context memory is host memory. */
spmv_status host_memory_alloc(spmv_context *ctx, int64_t bytes, void **memory);
void host_memory_free(spmv_context *ctx, void *memory);
spmv_status host_memory_upload(spmv_context *ctx, const void *host_from, void *to, int64_t bytes);
spmv_status host_memory_download(spmv_context *ctx, const void *from, void *host_to, int64_t bytes);
spmv_status host_memory_synchronize(spmv_context *ctx);

/* One prototype a primitive and backend, so that tables and their functions agree. */
#define BACKEND_PROTOTYPES(backend)                                                                                    \
    spmv_status map_##backend(spmv_context *, spmv_function, spmv_type, const void *, void *, int64_t);                \
    spmv_status map_binary_##backend(spmv_context *, spmv_op, spmv_type, const void *, const void *, void *, int64_t); \
    spmv_status map_scalar_##backend(spmv_context *, spmv_op, spmv_type, const void *, const void *, void *, int64_t); \
    spmv_status map_index_##backend(spmv_context *, spmv_type, const void *, const void *, void *, int64_t);           \
    spmv_status map_divide_##backend(spmv_context *, spmv_type, const void *, const void *, void *, int64_t);          \
    spmv_status map_axpby_##backend(spmv_context *, spmv_type, const void *, const void *, const void *, void *,       \
                                    int64_t);                                                                          \
    int64_t dot_scratch_##backend(const spmv_context *, spmv_type, int64_t);                                           \
    spmv_status dot_##backend(spmv_context *, spmv_type, const void *, const void *, void *, int64_t, void *);         \
    spmv_status gather_##backend(spmv_context *, spmv_type, const void *, int64_t, const void *, int, void *,          \
                                 int64_t);                                                                             \
    spmv_status scatter_##backend(spmv_context *, spmv_type, const void *, const void *, int, void *, int64_t,         \
                                  int64_t);                                                                            \
    int64_t reduce_scratch_##backend(const spmv_context *, spmv_type, int64_t);                                        \
    spmv_status reduce_##backend(spmv_context *, spmv_op, spmv_type, const void *, void *, int64_t, void *);           \
    spmv_status map_reduce_##backend(spmv_context *, spmv_function, spmv_op, spmv_type, const void *, void *, int64_t, \
                                     void *);                                                                          \
    const struct reduce_rung *reduce_rungs_##backend(void);                                                            \
    int64_t scan_scratch_##backend(const spmv_context *, spmv_type, int64_t);                                          \
    spmv_status scan_##backend(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *, void *, int64_t,      \
                               void *);                                                                                \
    const struct scan_rung *scan_rungs_##backend(void);                                                                \
    int64_t segscan_scratch_##backend(const spmv_context *, spmv_type, const spmv_segments *, int64_t);                \
    spmv_status segscan_##backend(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *,           \
                                  const void *, void *, int64_t, void *);                                              \
    int64_t segreduce_scratch_##backend(const spmv_context *, spmv_type, const spmv_segments *, int64_t);              \
    spmv_status segreduce_##backend(spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *, void *,   \
                                    int64_t, void *);

BACKEND_PROTOTYPES(ref)
BACKEND_PROTOTYPES(omp)
BACKEND_PROTOTYPES(cuda)
/* The table of a backend; NULL: not in this build. (context.c) */
const struct backend_table *backend_find(spmv_backend id);

spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n);

/* The primitive slots of a table, in the order of the struct. */
#define BACKEND_PRIMITIVES(backend, check)                                                                             \
    .map = map_##backend, .map_binary = map_binary_##backend, .map_scalar = map_scalar_##backend,                      \
    .map_index = map_index_##backend, .map_divide = map_divide_##backend, .map_axpby = map_axpby_##backend,            \
    .dot_scratch = dot_scratch_##backend, .dot = dot_##backend, .gather = gather_##backend,                            \
    .scatter = scatter_##backend, .reduce_scratch = reduce_scratch_##backend, .reduce = reduce_##backend,              \
    .map_reduce = map_reduce_##backend, .reduce_rungs = reduce_rungs_##backend,                                        \
    .scan_scratch = scan_scratch_##backend, .scan = scan_##backend, .scan_rungs = scan_rungs_##backend,                \
    .segments_check = check, .segscan_scratch = segscan_scratch_##backend, .segscan = segscan_##backend,               \
    .segreduce_scratch = segreduce_scratch_##backend, .segreduce = segreduce_##backend

#endif
