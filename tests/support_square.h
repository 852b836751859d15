/* The check of a peer that computes C = A A: its values against those of the backend ref.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_SQUARE_H
#define SUPPORT_SQUARE_H

#include <float.h>
#include <math.h>

#include "peer.h"
#include "support.h"

/* Whether the peer's work is C = A A. */
static inline bool support_is_square(enum peer_op op)
{
    return op == PEER_SPGEMM || op == PEER_SPGEMM_NUMERIC;
}

/* Runs the peer twice on ctx, whose memory is that of the peer's backend. The values of A are whole
 * numbers from -4 to 4, so all sums are exact in every order. */
static inline void support_square(spmv_context *ctx, const struct peer *peer, spmv_type type, int threads,
                                  const char *spec)
{
    spmv_context *const ref = support_context_on(SPMV_BACKEND_REF, 1);
    spmv_matrix *a = NULL, *c = NULL;
    spmv_csr view, right;
    const int64_t size = (int64_t)spmv_type_size(type);
    uint64_t random = 5;
    char why[256] = "";
    void *state = NULL;
    assert_ok(ref, spmv_matrix_generate(ref, spec, type, &a));
    spmv_matrix_view(a, &view);
    void *const values = support_zeros(view.nnz, (size_t)size);
    int32_t *const offsets = support_zeros(view.rows + 1, sizeof *offsets);
    for (int64_t k = 0; k < view.nnz; k++)
        real_set(type, values, k, (double)(support_random(&random) % 9) - 4);
    for (int64_t i = 0; i <= view.rows; i++)
        offsets[i] = (int32_t)((const int64_t *)view.row_ptr)[i];
    view.val = values;
    assert_ok(ref, spmv_multiply(ref, &view, &view, NULL, &c));
    spmv_matrix_view(c, &right);
    void *const got = support_zeros(right.nnz, (size_t)size);
    void *const memory[] = {support_upload(ctx, offsets, 4 * (view.rows + 1)),
                            support_upload(ctx, view.col, 4 * view.nnz), support_upload(ctx, values, view.nnz * size),
                            support_upload(ctx, got, (right.nnz + 1) * size)};
    const struct peer_problem problem = {.op = peer->op,
                                         .type = type,
                                         .threads = threads,
                                         .stream = spmv_context_stream(ctx),
                                         .rows = view.rows,
                                         .cols = view.cols,
                                         .nnz = view.nnz,
                                         .row_ptr = memory[0],
                                         .col = memory[1],
                                         .val = memory[2],
                                         .y = memory[3],
                                         .vectors = 1};
    if (peer->open(&problem, &state, why, sizeof why) != 0)
        fail_msg("%s: %s: %s", peer->name, spec, why);
    for (int run = 0; run < 2; run++) {
        memset(got, 0xff, (size_t)(right.nnz * size));
        assert_ok(ctx, spmv_upload(ctx, got, memory[3], right.nnz * size));
        assert_int_equal(peer->run(state), 0);
        if (peer->fetch != NULL)
            assert_int_equal(peer->fetch(state), 0);
        assert_ok(ctx, spmv_download(ctx, memory[3], got, right.nnz * size));
        for (int64_t e = 0; e < right.nnz; e++)
            if (real_at(type, got, e) != real_at(type, right.val, e))
                fail_msg("%s: %s, %s, entry %lld is %g, not %g", peer->name, spec, spmv_type_name(type), (long long)e,
                         real_at(type, got, e), real_at(type, right.val, e));
    }
    peer->close(state);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        spmv_free(ctx, memory[i]);
    support_free(values, offsets, got);
    spmv_matrix_destroy(a);
    spmv_matrix_destroy(c);
    spmv_context_destroy(ref);
}

static const char *const support_squares[] = {"poisson2d:40", "rmat:9,5", "empty:700,0.6", "dense:50,50", "diagonal:1"};
enum { SUPPORT_SQUARES = sizeof support_squares / sizeof support_squares[0] };

#endif
