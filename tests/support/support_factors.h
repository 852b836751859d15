/* The check of a peer that computes C = A B: its values against those of the backend ref.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_FACTORS_H
#define SUPPORT_FACTORS_H

#include <float.h>
#include <math.h>

#include "bench/peers/peer.h"
#include "tests/support/support.h"

/* Whether the peer multiplies sparse matrices. */
static inline bool support_has_factors(enum peer_op op)
{
    return op == PEER_SPGEMM || op == PEER_SPGEMM_NUMERIC;
}

/* A factor in host memory, with values that are whole numbers from -4 to 4, so all sums are exact in
 * every order; and its arrays in ctx's memory. */
struct support_factor {
    spmv_matrix *matrix;
    spmv_csr view;
    void *values, *row_ptr, *col, *val;
};

static inline struct support_factor support_factor(spmv_context *ctx, spmv_context *ref, spmv_type type,
                                                   const char *spec)
{
    struct support_factor f = {.matrix = NULL};
    const int64_t size = (int64_t)spmv_type_size(type);
    uint64_t random = 5;
    assert_ok(ref, spmv_matrix_generate(ref, spec, type, &f.matrix));
    spmv_matrix_view(f.matrix, &f.view);
    f.values = support_zeros(f.view.nnz, (size_t)size);
    int32_t *const offsets = support_zeros(f.view.rows + 1, sizeof *offsets);
    for (int64_t k = 0; k < f.view.nnz; k++)
        real_set(type, f.values, k, (double)(support_random(&random) % 9) - 4);
    for (int64_t i = 0; i <= f.view.rows; i++)
        offsets[i] = (int32_t)((const int64_t *)f.view.row_ptr)[i];
    f.view.val = f.values;
    f.row_ptr = support_upload(ctx, offsets, 4 * (f.view.rows + 1));
    f.col = support_upload(ctx, f.view.col, 4 * f.view.nnz);
    f.val = support_upload(ctx, f.values, f.view.nnz * size);
    free(offsets);
    return f;
}

static inline void support_factor_free(spmv_context *ctx, struct support_factor *f)
{
    spmv_free(ctx, f->row_ptr);
    spmv_free(ctx, f->col);
    spmv_free(ctx, f->val);
    free(f->values);
    spmv_matrix_destroy(f->matrix);
}

/* Runs the peer twice on ctx, whose memory is that of the peer's backend. specs: of A and B; the
 * second is NULL: C = A A. */
static inline void support_factors(spmv_context *ctx, const struct peer *peer, spmv_type type, int threads,
                                   const char *const specs[2])
{
    spmv_context *const ref = support_context_on(SPMV_BACKEND_REF, 1);
    spmv_matrix *c = NULL;
    spmv_csr right;
    const int64_t size = (int64_t)spmv_type_size(type);
    char why[256] = "";
    void *state = NULL;
    struct support_factor a = support_factor(ctx, ref, type, specs[0]), other = {.matrix = NULL};
    if (specs[1] != NULL)
        other = support_factor(ctx, ref, type, specs[1]);
    const struct support_factor *const b = specs[1] != NULL ? &other : &a;
    assert_ok(ref, spmv_spgemm(ref, &a.view, &b->view, NULL, &c));
    spmv_matrix_view(c, &right);
    void *const got = support_zeros(right.nnz, (size_t)size);
    void *const result = support_upload(ctx, got, (right.nnz + 1) * size);
    const struct peer_problem problem = {.op = peer->op,
                                         .type = type,
                                         .threads = threads,
                                         .stream = spmv_context_stream(ctx),
                                         .rows = a.view.rows,
                                         .cols = a.view.cols,
                                         .nnz = a.view.nnz,
                                         .row_ptr = a.row_ptr,
                                         .col = a.col,
                                         .val = a.val,
                                         .right_cols = b->view.cols,
                                         .right_nnz = b->view.nnz,
                                         .right_row_ptr = b->row_ptr,
                                         .right_col = b->col,
                                         .right_val = b->val,
                                         .y = result,
                                         .vectors = 1};
    if (peer->open(&problem, &state, why, sizeof why) != 0)
        fail_msg("%s: %s: %s", peer->name, specs[0], why);
    for (int run = 0; run < 2; run++) {
        memset(got, 0xff, (size_t)(right.nnz * size));
        assert_ok(ctx, spmv_upload(ctx, got, result, right.nnz * size));
        assert_int_equal(peer->run(state), 0);
        if (peer->fetch != NULL)
            assert_int_equal(peer->fetch(state), 0);
        assert_ok(ctx, spmv_download(ctx, result, got, right.nnz * size));
        for (int64_t e = 0; e < right.nnz; e++)
            if (real_at(type, got, e) != real_at(type, right.val, e))
                fail_msg("%s: %s, %s, entry %lld is %g, not %g", peer->name, specs[0], spmv_type_name(type),
                         (long long)e, real_at(type, got, e), real_at(type, right.val, e));
    }
    peer->close(state);
    spmv_free(ctx, result);
    free(got);
    support_factor_free(ctx, &a);
    if (specs[1] != NULL)
        support_factor_free(ctx, &other);
    spmv_matrix_destroy(c);
    spmv_context_destroy(ref);
}

static const char *const support_factor_specs[][2] = {{"poisson2d:40", NULL},  {"rmat:9,5", NULL},
                                                      {"empty:700,0.6", NULL}, {"dense:50,50", NULL},
                                                      {"diagonal:1", NULL},    {"poisson3d:9", "interpolation3d:9,3"}};
enum { SUPPORT_FACTOR_SPECS = sizeof support_factor_specs / sizeof support_factor_specs[0] };

#endif
