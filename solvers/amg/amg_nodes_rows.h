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

/* Nodes of different sizes: see amg_find_block. */
struct amg_places {
    struct amg_csr a;      /* values may be NULL */
    int64_t rows;          /* of a */
    int block;             /* rows of a full node */
    int64_t *begins;       /* whether a row begins a node */
    const int64_t *before; /* rows + 1: nodes that begin before a row */
    int64_t *first;        /* nodes + 1: the first row of a node */
    int64_t *size;         /* rows of a node, or 0 if it is not full */
    int32_t *component;    /* of each row: in its node if that is full, else -1; with ranks also of ghosts */
    int64_t room;          /* with ranks: the place of the first own row, since rows are counted from there */
    int32_t *slot, *row;   /* see struct amg_slots */
};

/* The rows of node i are in slots i block to (i + 1) block - 1, one for each component. NULL: all nodes are full,
 * and row k is in slot k. */
struct amg_slots {
    int block;           /* at most AMG_NULLS */
    const int32_t *slot; /* of each row, ascending */
    const int32_t *row;  /* in each slot, or -1 */
};

struct amg_nodes {
    struct amg_csr a, c; /* c: the matrix of nodes */
    struct amg_slots slots;
    int64_t *count; /* entries of each row of c */
};

struct amg_basis {
    struct amg_csr r;  /* the nodes of each aggregate */
    struct amg_csr p0; /* tentative interpolation */
    struct amg_slots slots;
    int nulls;                /* near-null-space vectors, 1 to AMG_NULLS */
    double *basis;            /* n x nulls by rows: these vectors */
    double *coarse_basis;     /* those of the next level, nulls x nulls for each aggregate */
    const int32_t *aggregate; /* of each node, or -1 */
    int64_t *count;           /* entries of each row of p0 */
};

/* A basis in the order of rows and of slots. */
struct amg_slot_basis {
    const int32_t *slot;
    int nulls, back; /* back: from slots to rows */
    double *of_rows, *of_slots;
};

/* At most one of so many nodes may be in one row alone: blocks may vanish, as those of quadratic elements do. */
#define AMG_NODES_ALONE 8

/* The entries [above, middle) and [middle, end) of two rows are in the same nodes of `block` columns each, but for
 * few. Entries that vanish in a part of a block do not matter, and rows of boundary values, which have one entry, agree
 * with any. */
AMG_ROW int amg_same_nodes(const int32_t *col, int64_t above, int64_t middle, int64_t end, int block)
{
    int64_t here = middle, nodes = 0, alone = 0;
    if (middle - above <= 1 || end - middle <= 1)
        return 1;
    for (; above < middle || here < end; nodes++) {
        const int32_t first = above < middle ? col[above] / block : INT32_MAX;
        const int32_t second = here < end ? col[here] / block : INT32_MAX;
        const int32_t node = first < second ? first : second;
        alone += first != second;
        while (above < middle && col[above] / block == node)
            above++;
        while (here < end && col[here] / block == node)
            here++;
    }
    return alone * AMG_NODES_ALONE <= nodes;
}

#endif

#ifdef TYPED

/* other_i = the first row of node i that has not the nodes of the row before (amg_same_nodes), INT64_MAX if there is
 * none. */
AMG_ROW void TYPED(amg_node_like)(const struct amg_likeness *s, int64_t i)
{
    s->other[i] = INT64_MAX;
    for (int row = 1; row < s->block; row++) {
        const int64_t own = i * s->block + row, middle = amg_offset(&s->a, own);
        if (!amg_same_nodes(s->a.col, amg_offset(&s->a, own - 1), middle, amg_offset(&s->a, own + 1), s->block)) {
            s->other[i] = own;
            return;
        }
    }
}

/* begins_i: row i has other columns than the row before. */
AMG_ROW void TYPED(amg_node_begin)(const struct amg_places *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->a, i), entries = amg_offset(&s->a, i + 1) - begin;
    const int64_t above = i > 0 ? amg_offset(&s->a, i - 1) : 0;
    int64_t k = 0;
    s->begins[i] = 1;
    if (i == 0 || begin - above != entries)
        return;
    while (k < entries && s->a.col[begin + k] == s->a.col[above + k])
        k++;
    s->begins[i] = k < entries;
}

AMG_ROW void TYPED(amg_node_first)(const struct amg_places *s, int64_t i)
{
    if (s->begins[i])
        s->first[s->before[i]] = i;
    if (i == s->rows - 1)
        s->first[s->before[s->rows]] = s->rows;
}

/* Without a block: of all nodes. */
AMG_ROW void TYPED(amg_node_size)(const struct amg_places *s, int64_t i)
{
    const int64_t size = s->first[i + 1] - s->first[i];
    s->size[i] = s->block == 0 || size == s->block ? size : 0;
}

AMG_ROW void TYPED(amg_node_component)(const struct amg_places *s, int64_t i)
{
    const int64_t node = s->before[i + 1] - 1, first = s->first[node];
    s->component[s->room + i] = s->first[node + 1] - first == s->block ? (int32_t)(i - first) : -1;
}

/* How well row i fits each component: the sums of its couplings to that component of full nodes, times -1. Those
 * of one component nearly cancel the diagonal, because a translation has no energy; those to others sum to 0. */
AMG_ROW void TYPED(amg_fit)(const struct amg_places *s, int64_t i, double *fit)
{
    const T *val = (const T *)s->a.val;
    double diagonal = 1;
    for (int c = 0; c < s->block; c++)
        fit[c] = 0;
    for (int64_t k = amg_offset(&s->a, i); k < amg_offset(&s->a, i + 1); k++) {
        const int32_t j = s->a.col[k], c = s->component[j];
        if (j == i + s->room && val != NULL)
            diagonal = (double)val[k];
        if (c >= 0)
            fit[c] -= val != NULL ? (double)val[k] : 0;
    }
    for (int c = 0; c < s->block && diagonal < 0; c++)
        fit[c] = -fit[c];
}

/* The slots of node i. Its rows keep their order; of all sets of components the best fit is taken. */
AMG_ROW void TYPED(amg_node_place)(const struct amg_places *s, int64_t i)
{
    const int64_t first = s->first[i];
    const int rows = (int)(s->first[i + 1] - first);
    double fit[AMG_NULLS][AMG_NULLS], most = 0;
    int best = 0;
    for (int r = 0; r < rows && rows < s->block; r++)
        TYPED(amg_fit)(s, first + r, fit[r]);
    for (int set = 1; set < 1 << s->block; set++) {
        double sum = 0;
        int count = 0;
        for (int c = 0; c < s->block; c++)
            if (set >> c & 1) {
                sum += rows < s->block && count < rows ? fit[count][c] : 0;
                count++;
            }
        if (count == rows && (best == 0 || sum > most)) {
            best = set;
            most = sum;
        }
    }
    for (int c = 0, r = 0; c < s->block; c++) {
        const int64_t slot = i * s->block + c;
        s->row[slot] = -1;
        if (best >> c & 1) {
            s->row[slot] = (int32_t)(first + r);
            s->slot[first + r++] = (int32_t)slot;
        }
    }
}

AMG_ROW int64_t TYPED(amg_slot)(const struct amg_slots *s, int64_t row)
{
    return s->slot != NULL ? s->slot[row] : row;
}

AMG_ROW int64_t TYPED(amg_row_in)(const struct amg_slots *s, int64_t slot)
{
    return s->row != NULL ? s->row[slot] : slot;
}

/* Row i of the matrix of nodes, which is c: the largest absolute value of each block of A. Writes it if
 * `write` is 1. Returns its entries. */
AMG_ROW int64_t TYPED(amg_merge_node)(const struct amg_nodes *s, int64_t i, int write)
{
    const T *val = (const T *)s->a.val;
    const int block = s->slots.block;
    int64_t at[AMG_NULLS], end[AMG_NULLS], count = 0;
    for (int c = 0; c < block; c++) {
        const int64_t row = TYPED(amg_row_in)(&s->slots, i * block + c);
        at[c] = row < 0 ? 0 : amg_offset(&s->a, row);
        end[c] = row < 0 ? 0 : amg_offset(&s->a, row + 1);
    }
    for (;; count++) {
        int64_t node = INT64_MAX;
        for (int c = 0; c < block; c++)
            if (at[c] < end[c]) {
                const int64_t here = TYPED(amg_slot)(&s->slots, s->a.col[at[c]]) / block;
                node = here < node ? here : node;
            }
        if (node == INT64_MAX)
            return count;
        T most = 0;
        for (int c = 0; c < block; c++)
            for (; at[c] < end[c] && TYPED(amg_slot)(&s->slots, s->a.col[at[c]]) / block == node; at[c]++)
                most = TYPED(amg_abs)(val[at[c]]) > most ? TYPED(amg_abs)(val[at[c]]) : most;
        if (write) {
            const int64_t to = amg_offset(&s->c, i) + count;
            s->c.col[to] = (int32_t)node;
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

/* Element k of a basis by rows, and its place among slots. */
AMG_ROW void TYPED(amg_slot_basis)(const struct amg_slot_basis *s, int64_t k)
{
    double *const there = s->of_slots + s->slot[k / s->nulls] * (int64_t)s->nulls + k % s->nulls;
    if (s->back)
        s->of_rows[k] = *there;
    else
        *there = s->of_rows[k];
}

/* Element k of the basis without vectors of the caller: each unknown of a node has a constant. */
AMG_ROW void TYPED(amg_components)(const struct amg_basis *s, int64_t k)
{
    s->basis[k] = TYPED(amg_slot)(&s->slots, k / s->nulls) % s->slots.block == k % s->nulls;
}

/* The basis in slot t of an aggregate, whose nodes are from entry `begin` of r on; NULL: there is no row. */
AMG_ROW double *TYPED(amg_basis_row)(const struct amg_basis *s, int64_t begin, int64_t t)
{
    const int block = s->slots.block;
    const int64_t row = TYPED(amg_row_in)(&s->slots, (int64_t)s->r.col[begin + t / block] * block + t % block);
    return row < 0 ? NULL : s->basis + row * s->nulls;
}

/* The vectors in aggregate j, whose nodes are row j of r: B = Q U with orthonormal columns of Q, in place
 * of B, by the modified Gram-Schmidt method; U is the basis of the next level. A vector that depends on
 * those before, for example because there are fewer rows than vectors, becomes 0, and its row of U. */
AMG_ROW void TYPED(amg_orthonormal)(const struct amg_basis *s, int64_t j)
{
    const int k = s->nulls;
    const int64_t begin = amg_offset(&s->r, j), rows = (amg_offset(&s->r, j + 1) - begin) * s->slots.block;
    double *const upper = s->coarse_basis + j * k * k;
    double size[AMG_NULLS] = {0};
    for (int64_t t = 0; t < rows; t++) {
        const double *const b = TYPED(amg_basis_row)(s, begin, t);
        for (int e = 0; e < k && b != NULL; e++)
            size[e] += b[e] * b[e];
    }
    for (int c = 0; c < k; c++) {
        double product[AMG_NULLS] = {0};
        for (int64_t t = 0; t < rows; t++) {
            const double *const b = TYPED(amg_basis_row)(s, begin, t);
            for (int e = c; e < k && b != NULL; e++)
                product[e] += b[c] * b[e];
        }
        const double norm = product[c] > AMG_DEPENDENT * size[c] ? sqrt(product[c]) : 0;
        const double scale = norm > 0 ? 1 / norm : 0;
        for (int e = 0; e < k; e++)
            upper[c * k + e] = e < c ? 0 : e == c ? norm : product[e] * scale;
        for (int64_t t = 0; t < rows; t++) {
            double *const b = TYPED(amg_basis_row)(s, begin, t);
            if (b == NULL)
                continue;
            b[c] = norm > 0 ? b[c] * scale : 0;
            for (int e = c + 1; e < k; e++)
                b[e] -= b[c] * upper[c * k + e];
        }
    }
}

/* count_i = entries of row i of P0 */
AMG_ROW void TYPED(amg_basis_count)(const struct amg_basis *s, int64_t i)
{
    s->count[i] = s->aggregate[TYPED(amg_slot)(&s->slots, i) / s->slots.block] >= 0 ? s->nulls : 0;
}

/* Row i of P0, of the orthonormal basis. */
AMG_ROW void TYPED(amg_basis_fill)(const struct amg_basis *s, int64_t i)
{
    const int32_t aggregate = s->aggregate[TYPED(amg_slot)(&s->slots, i) / s->slots.block];
    const int64_t to = amg_offset(&s->p0, i);
    for (int c = 0; c < s->nulls && aggregate >= 0; c++) {
        s->p0.col[to + c] = aggregate * s->nulls + c;
        ((T *)s->p0.val)[to + c] = (T)s->basis[i * s->nulls + c];
    }
}

#endif
