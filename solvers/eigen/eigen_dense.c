/* All eigenvalues of a small matrix, on the host in f64: A is formed as a dense matrix; with a mass matrix, B'A B with B'M B =
 * I, from the eigenvalues of M.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "solvers/eigen/eigen_internal.h"

/* Adds the entries of a matrix; with parts 1 a real one. */
static spmv_status fill(struct eigen_problem *p, const spmv_csr *a, struct small to)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    const bool complex = a->val != NULL && type_is_complex(a->type);
    const spmv_type part = type_part(a->type);
    TRY(csr_to_host(p->ctx, a, false, &host, &copies));
    small_clear(to);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(&host, i); k < row_first(&host, i + 1); k++) {
            double *const at = small_at(to, (int)i, host.col[k]);
            at[0] += host.val == NULL ? 1 : real_at(part, host.val, complex ? 2 * k : k);
            if (complex)
                at[1] += real_at(part, host.val, 2 * k + 1);
        }
done:
    csr_free_host(&copies);
    return st;
}

/* A'A, or AA' if there are fewer rows. */
static spmv_status fill_square(struct eigen_problem *p, const spmv_csr *a, struct small to)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr host;
    const int parts = a->val != NULL ? type_parts(a->type) : 1;
    const spmv_type part = type_part(a->type);
    double *row = NULL;
    TRY(csr_to_host(p->ctx, a, false, &host, &copies));
    small_clear(to);
    TRY(host_zeros(p->ctx, max_i64(1, a->cols) * 16, "a row", (void **)&row));
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = row_first(&host, i), end = row_first(&host, i + 1);
        for (int64_t k = begin; k < end; k++)
            for (int c = 0; c < parts; c++)
                row[2 * (int64_t)host.col[k] + c] += host.val == NULL ? 1 : real_at(part, host.val, k * parts + c);
        for (int64_t j = p->wide ? 0 : begin; j < (p->wide ? i + 1 : end); j++) {
            const int64_t from = p->wide ? row_first(&host, j) : begin, last = p->wide ? row_first(&host, j + 1) : end;
            for (int64_t k = from; k < last; k++) {
                /* wide: to(i, j) += row_i conj(a_jk); else to(col_j, col_k) += conj(a_ij) a_ik */
                double *const at = p->wide ? small_at(to, (int)i, (int)j) : small_at(to, host.col[j], host.col[k]);
                const double *const x = row + 2 * (int64_t)host.col[p->wide ? k : j];
                double y[2] = {0, 0};
                for (int c = 0; c < parts; c++)
                    y[c] = host.val == NULL ? 1 : real_at(part, host.val, k * parts + c);
                const double cross = x[1] * y[0] - x[0] * y[1];
                if (!p->wide && x[0] == 0 && x[1] == 0)
                    continue;
                at[0] += x[0] * y[0] + x[1] * y[1];
                if (p->parts == 2)
                    at[1] += p->wide ? cross : -cross;
            }
        }
        for (int64_t k = begin; k < end; k++)
            row[2 * (int64_t)host.col[k]] = row[2 * (int64_t)host.col[k] + 1] = 0;
    }
    for (int i = 0; i < to.rows && p->wide; i++) /* the other triangle */
        for (int j = 0; j < i; j++)
            for (int c = 0; c < p->parts; c++)
                small_at(to, j, i)[c] = c == 0 ? small_at(to, i, j)[c] : -small_at(to, i, j)[c];
done:
    csr_free_host(&copies);
    host_free(row);
    return st;
}

/* b: n x n with b'M b = I. */
static spmv_status take_mass(struct eigen_problem *p, struct small m, struct small b)
{
    spmv_status st = SPMV_OK;
    double least = 0;
    int rank = 0;
    struct small to = b;
    TRY(fill(p, &p->mass.a, m));
    TRY(small_orthonormalise(p->ctx, m, (double)p->n * DBL_EPSILON, &to, &rank, &least));
    if (rank < p->n)
        st = context_fail(p->ctx, SPMV_ERROR_NOT_POSITIVE,
                          "%s: the mass matrix is not positive definite: %lld of its %lld "
                          "eigenvalues are positive",
                          p->call, (long long)rank, (long long)p->n);
done:
    return st;
}

static spmv_status run(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    const int n = (int)p->n;
    const int64_t bytes = (int64_t)n * n * p->parts * 8;
    const spmv_type part = type_part(p->type);
    double *at[4] = {NULL}, *values = NULL;
    struct eigen_ranked *order = NULL;
    void *host = NULL;
    for (int i = 0; i < 4; i++)
        TRY(host_alloc(p->ctx, bytes, "a dense matrix", (void **)&at[i]));
    TRY(host_alloc(p->ctx, (int64_t)n * 8, "eigenvalues", (void **)&values));
    TRY(host_alloc(p->ctx, (int64_t)n * (int64_t)sizeof *order, "eigenvalues", (void **)&order));
    struct small a = small_of(p->parts, n, n, at[0]), b = small_of(p->parts, n, n, at[1]),
                 c = small_of(p->parts, n, n, at[2]), vectors = small_of(p->parts, n, n, at[3]);
    if (p->singular_values)
        TRY(fill_square(p, &p->a.a, a));
    else
        TRY(fill(p, &p->a.a, a));
    if (p->has_mass) {
        TRY(take_mass(p, c, b));
        small_multiply(a, false, b, 0, c);
        small_multiply(b, true, c, 0, a);
    }
    small_make_hermitian(a);
    TRY(small_eigen(p->ctx, a, values, 0, vectors));
    if (p->has_mass) {
        small_multiply(b, false, vectors, 0, c);
        vectors = c;
    }
    for (int i = 0; i < n; i++)
        order[i] = (struct eigen_ranked){eigen_rank(p, values[i]), i};
    for (int i = 0; i < n && p->singular_values; i++)
        values[i] = sqrt(fmax(0, values[i]));
    qsort(order, (size_t)n, sizeof *order, eigen_by_rank);
    TRY(host_alloc(p->ctx, max_i64(1, p->n * p->pairs * (int64_t)spmv_type_size(p->type)), "vectors", &host));
    for (int j = 0; j < p->pairs; j++) {
        p->values[j] = values[order[j].at];
        for (int i = 0; i < n; i++)
            for (int k = 0; k < p->parts; k++)
                real_set(part, host, ((int64_t)i * p->pairs + j) * p->parts + k, small_at(vectors, i, order[j].at)[k]);
    }
    if (p->pairs < n) {
        p->next = values[order[p->pairs].at];
        p->next_residual = 0;
    }
    TRY(spmv_upload(p->ctx, host, p->vectors.at, p->n * p->pairs * (int64_t)spmv_type_size(p->type)));
    TRY(spmv_synchronize(p->ctx));
    p->block = n;
    snprintf(p->why_stop, sizeof p->why_stop, "all eigenvalues were computed");
done:
    host_free_all(at[0], at[1], at[2], at[3], values, order, host);
    return st;
}

const struct eigen_solver eigen_dense = {"dense", run};
