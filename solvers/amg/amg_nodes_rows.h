/* Rows of the matrix of nodes, and of the basis of several near-null-space vectors (amg_nodes.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_NODES_ROWS_H
#define AMG_NODES_ROWS_H

#include "solvers/amg/amg_common.h"

/* A near-null-space vector that is smaller than this, relative to itself, after its part in the
 * vectors before is subtracted, is left out of an aggregate. The square of this. */
#define AMG_DEPENDENT 0x1p-40

/* Whether rows belong together. */
struct amg_likeness {
    struct amg_csr a; /* without values */
    int block;        /* rows of a node that are tried */
    int64_t *other;   /* see node_like */
};

struct amg_nodes {
    struct amg_csr a, c; /* c: the matrix of nodes */
    int block;           /* rows of a node, at most AMG_NULLS */
    int64_t *count;      /* entries of each row of c */
};

struct amg_basis {
    struct amg_csr r;         /* the nodes of each aggregate */
    struct amg_csr p0;        /* tentative interpolation */
    int block;                /* see above */
    int nulls;                /* near-null-space vectors, 1 to AMG_NULLS */
    double *basis;            /* n x nulls by rows: these vectors */
    double *coarse_basis;     /* those of the next level, nulls x nulls for each aggregate */
    const int32_t *aggregate; /* of each node, or -1 */
    int64_t *count;           /* entries of each row of p0 */
};

#endif

#ifdef TYPED

/* other_i = the first row of node i whose entries are in other nodes than those of the row before,
 * INT64_MAX if there is none. Entries that vanish in a part of a block do not matter, and rows of
 * boundary values, which have one entry, agree with any. */
AMG_ROW void TYPED(amg_node_like)(const struct amg_likeness *s, int64_t i)
{
    s->other[i] = INT64_MAX;
    for (int row = 1; row < s->block; row++) {
        const int64_t own = i * s->block + row, middle = amg_offset(&s->a, own), end = amg_offset(&s->a, own + 1);
        int64_t above = amg_offset(&s->a, own - 1), here = middle;
        if (middle - above <= 1 || end - middle <= 1)
            continue;
        while (above < middle && here < end && s->a.col[above] / s->block == s->a.col[here] / s->block) {
            const int32_t node = s->a.col[here] / s->block;
            while (above < middle && s->a.col[above] / s->block == node)
                above++;
            while (here < end && s->a.col[here] / s->block == node)
                here++;
        }
        if (above < middle || here < end) {
            s->other[i] = own;
            return;
        }
    }
}

/* Row i of the matrix of nodes, which is c: the largest absolute value of each block of A. Writes it if
 * `write` is 1. Returns its entries. */
AMG_ROW int64_t TYPED(amg_merge_node)(const struct amg_nodes *s, int64_t i, int write)
{
    const T *val = (const T *)s->a.val;
    int64_t at[AMG_NULLS], count = 0;
    int32_t node = 0;
    for (int row = 0; row < s->block; row++)
        at[row] = amg_offset(&s->a, i * s->block + row);
    for (;; count++) {
        node = INT32_MAX;
        for (int row = 0; row < s->block; row++)
            if (at[row] < amg_offset(&s->a, i * s->block + row + 1) && s->a.col[at[row]] / s->block < node)
                node = s->a.col[at[row]] / s->block;
        if (node == INT32_MAX)
            return count;
        T most = 0;
        for (int row = 0; row < s->block; row++)
            for (const int64_t end = amg_offset(&s->a, i * s->block + row + 1);
                 at[row] < end && s->a.col[at[row]] / s->block == node; at[row]++)
                most = TYPED(amg_abs)(val[at[row]]) > most ? TYPED(amg_abs)(val[at[row]]) : most;
        if (write) {
            const int64_t to = amg_offset(&s->c, i) + count;
            s->c.col[to] = node;
            ((T *)s->c.val)[to] = most;
        }
    }
}

AMG_ROW void TYPED(amg_node_count)(const struct amg_nodes *s, int64_t i)
{
    s->count[i] = TYPED(amg_merge_node)(s, i, 0);
}

AMG_ROW void TYPED(amg_node_fill)(const struct amg_nodes *s, int64_t i)
{
    TYPED(amg_merge_node)(s, i, 1);
}

/* Element k of the basis without vectors of the caller: each unknown of a node has a constant. */
AMG_ROW void TYPED(amg_components)(const struct amg_basis *s, int64_t k)
{
    s->basis[k] = k / s->nulls % s->block == k % s->nulls;
}

/* Row t of the basis in an aggregate, whose nodes are from entry `begin` of r on. */
AMG_ROW double *TYPED(amg_basis_row)(const struct amg_basis *s, int64_t begin, int64_t t)
{
    return s->basis + ((int64_t)s->r.col[begin + t / s->block] * s->block + t % s->block) * s->nulls;
}

/* The vectors in aggregate j, whose nodes are row j of r: B = Q U with orthonormal columns of Q, in place
 * of B, by the modified Gram-Schmidt method; U is the basis of the next level. A vector that depends on
 * those before, for example because there are fewer rows than vectors, becomes 0, and its row of U. */
AMG_ROW void TYPED(amg_orthonormal)(const struct amg_basis *s, int64_t j)
{
    const int k = s->nulls;
    const int64_t begin = amg_offset(&s->r, j), rows = (amg_offset(&s->r, j + 1) - begin) * s->block;
    double *const upper = s->coarse_basis + j * k * k;
    double size[AMG_NULLS] = {0};
    for (int64_t t = 0; t < rows; t++) {
        const double *const b = TYPED(amg_basis_row)(s, begin, t);
        for (int e = 0; e < k; e++)
            size[e] += b[e] * b[e];
    }
    for (int c = 0; c < k; c++) {
        double product[AMG_NULLS] = {0};
        for (int64_t t = 0; t < rows; t++) {
            const double *const b = TYPED(amg_basis_row)(s, begin, t);
            for (int e = c; e < k; e++)
                product[e] += b[c] * b[e];
        }
        const double norm = product[c] > AMG_DEPENDENT * size[c] ? sqrt(product[c]) : 0;
        const double scale = norm > 0 ? 1 / norm : 0;
        for (int e = 0; e < k; e++)
            upper[c * k + e] = e < c ? 0 : e == c ? norm : product[e] * scale;
        for (int64_t t = 0; t < rows; t++) {
            double *const b = TYPED(amg_basis_row)(s, begin, t);
            b[c] = norm > 0 ? b[c] * scale : 0;
            for (int e = c + 1; e < k; e++)
                b[e] -= b[c] * upper[c * k + e];
        }
    }
}

/* count_i = entries of row i of P0 */
AMG_ROW void TYPED(amg_basis_count)(const struct amg_basis *s, int64_t i)
{
    s->count[i] = s->aggregate[i / s->block] >= 0 ? s->nulls : 0;
}

/* Row i of P0, of the orthonormal basis. */
AMG_ROW void TYPED(amg_basis_fill)(const struct amg_basis *s, int64_t i)
{
    const int32_t aggregate = s->aggregate[i / s->block];
    const int64_t to = amg_offset(&s->p0, i);
    for (int c = 0; c < s->nulls && aggregate >= 0; c++) {
        s->p0.col[to + c] = aggregate * s->nulls + c;
        ((T *)s->p0.val)[to + c] = (T)s->basis[i * s->nulls + c];
    }
}

#endif
