/* Passes over vectors of the solvers minres, gmres, bicgstab and cocg: linear combinations and dot
 * products, with coefficients from the state in the context's memory, and a function of the sums at
 * the end (krylov_scalars.h). All are queued. Each returns without effect while state->ending is
 * not 0, unless stated otherwise.
 *
 * Determinism: the order of each sum depends on n alone. With several ranks, a sum has one part for each
 * chunk of rows (struct plan_ranks), and all ranks see the same sums. There a pass is called together, and
 * on cuda it waits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_PASSES_H
#define KRYLOV_PASSES_H

#include "core/backend.h"
#include "core/reals.h"
#include "product/plan_internal.h"
#include "solvers/krylov/krylov_scalars.h"

enum { KRYLOV_MOST_INPUTS = 8, KRYLOV_MOST_OUTPUTS = 4, KRYLOV_MOST_BASIS = 201 };

/* What the passes of a run share. */
struct krylov_vectors {
    spmv_context *ctx;
    spmv_type type; /* f32, f64, c64, c128 */
    int64_t n;
    struct krylov_state *state;
    void *parts;                      /* krylov_parts_bytes */
    const struct plan_ranks *ranks;   /* NULL: none */
    struct krylov_scalar *rank_parts; /* with ranks: in host memory, of krylov_rank_parts_bytes */
};

/* Workspace for passes over n elements, with at most `basis` basis vectors (0: only
 * krylov_combine). The first bytes must be 0 before the first pass. */
int64_t krylov_parts_bytes(const spmv_context *ctx, int64_t n, int basis, const struct plan_ranks *ranks);
int64_t krylov_rank_parts_bytes(const struct plan_ranks *ranks, int basis);

/* With ranks: adds v->rank_parts, `stride` numbers of which the first `sums` belong to each chunk, and
 * replaces the first ones by the sums of all ranks. */
spmv_status krylov_sum_ranks(const struct krylov_vectors *v, int sums, int stride);

/* out[o] = sum_i state->c[c[o][i]] in[i]; then sums[d] = sum conj(left[d]) right[d], or without conj if bilinear[d],
 * and finish(state, sums). C_ZERO as coefficient means: without this input.
 *
 * Operands of dot products: an input's number, or KRYLOV_MOST_INPUTS + the number of an output: its
 * new values. An output may be the array of an input. */
struct krylov_combination {
    int inputs, outputs, sums;
    const void *in[KRYLOV_MOST_INPUTS];
    void *out[KRYLOV_MOST_OUTPUTS];
    signed char c[KRYLOV_MOST_OUTPUTS][KRYLOV_MOST_INPUTS];
    signed char left[KRYLOV_MOST_SUMS], right[KRYLOV_MOST_SUMS];
    bool bilinear[KRYLOV_MOST_SUMS];
    enum krylov_finish finish;
    bool always; /* also while state->ending is not 0 */
};
spmv_status krylov_combine(const struct krylov_vectors *v, const struct krylov_combination *combination);

/* The lines of a combination, which starts with its finish alone; a, b, c: places in state->c.
 *
 *   pass_copy      to = x
 *   pass_scale     to = a x
 *   pass_axpby     to = a x + b y
 *   pass_axpbypcz  to = a x + b y + c z
 *   pass_dot       the next sum is u'v
 *   pass_bilinear  the same without conjugation of u
 *
 * All lines read vectors as they were before the pass, which are read once each; only pass_dot and
 * pass_bilinear take the new values of a vector that a line above it has set. The vectors of a line differ. Terms are
 * added in the order in which the pass first names their vectors. */
void pass_copy(struct krylov_combination *pass, const void *x, void *to);
void pass_scale(struct krylov_combination *pass, int a, const void *x, void *to);
void pass_axpby(struct krylov_combination *pass, int a, const void *x, int b, const void *y, void *to);
void pass_axpbypcz(struct krylov_combination *pass, int a, const void *x, int b, const void *y, int c, const void *z,
                   void *to);
void pass_dot(struct krylov_combination *pass, const void *u, const void *v);
void pass_bilinear(struct krylov_combination *pass, const void *u, const void *v);

/* A pass that is one dot product. */
spmv_status krylov_sum(const struct krylov_vectors *v, const void *a, const void *b, enum krylov_finish finish);

/* A pass of Gram-Schmidt over the basis v_0 ... v_j, j = state->j, `stride` elements apart:
 *   subtracts: w -= sum_i state->pass[i] v_i
 *   sums[i] = v_i'w, i <= j, and w'w, with the new w
 * then the function finish of the sums: GMRES_FIRST or GMRES_SECOND. */
struct krylov_projection {
    const void *basis;
    int64_t stride;
    int most; /* basis vectors */
    void *w;
    bool subtracts;
    enum krylov_finish finish;
};
spmv_status krylov_project(const struct krylov_vectors *v, const struct krylov_projection *projection);

/* basis_j = state->c[factor] (from - sum over i < j of state->pass[i] basis_i), j = state->j, the sum
 * only with subtracts. copy, if not NULL, gets the same. */
struct krylov_storing {
    int factor;
    const void *from;
    void *basis, *copy;
    int64_t stride;
    bool subtracts;
};
spmv_status krylov_store(const struct krylov_vectors *v, const struct krylov_storing *storing);

/* to = x + sum over i < state->j of state->g[i] basis_i, also while state->ending is not 0. to may
 * be x. */
spmv_status krylov_expand(const struct krylov_vectors *v, const void *basis, int64_t stride, const void *x, void *to);

/* Solves the triangle of gmres for state->g, also while state->ending is not 0. */
spmv_status krylov_solve_triangle(const struct krylov_vectors *v);

/* krylov_ranks.cu: what each chunk of this rank adds to the sums, to v->parts, and from the sums there the scalars. */
spmv_status krylov_rank_dots_cuda(const struct krylov_vectors *v, const struct krylov_combination *a)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_rank_project_cuda(const struct krylov_vectors *v, const struct krylov_projection *a, int sums)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_rank_finish_cuda(const struct krylov_vectors *v, enum krylov_finish finish, bool always)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

int64_t krylov_parts_bytes_cuda(int sums, const struct plan_ranks *ranks) CUDA_ONLY(0);
spmv_status krylov_combine_cuda(const struct krylov_vectors *v, const struct krylov_combination *a)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_combine_least_squares_cuda(const struct krylov_vectors *v, const struct krylov_combination *a)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_project_cuda(const struct krylov_vectors *v, const struct krylov_projection *a)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_store_cuda(const struct krylov_vectors *v, const struct krylov_storing *a)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_expand_cuda(const struct krylov_vectors *v, const void *basis, int64_t stride, const void *x,
                               void *to) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status krylov_solve_triangle_cuda(const struct krylov_vectors *v) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
