/* The typed part of amg_rows.h, included once per real type (each_real.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

AMG_ROW T TYPED(amg_abs)(T x)
{
    return x < 0 ? -x : x;
}

/* ------------------------------------------------------------------- matrix */

/* count[i] = INT64_MAX for a valid row, else 4 i + what is wrong: 0 offsets or a column, 1 the
 * diagonal, 2 columns that do not ascend. Rows are checked before anything else is read of them. */
AMG_ROW void TYPED(amg_check)(const struct amg_rows *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1);
    s->count[i] = 4 * i;
    if (begin < 0 || end < begin || end > s->nnz || (i == 0 && begin != 0) || (i == s->n - 1 && end != s->nnz))
        return;
    double diagonal = 0;
    int sorted = 1;
    for (int64_t k = begin; k < end; k++) {
        const int32_t column = s->a.col[k];
        if (column < 0 || column >= s->n)
            return;
        if (k > begin && column <= s->a.col[k - 1])
            sorted = 0;
        if (column == i)
            diagonal += amg_source(s->source_type, s->source, k);
    }
    s->count[i] = !(diagonal > 0 && diagonal <= 0x1.fffffffffffffp1023) ? 4 * i + 1 : !sorted ? 4 * i + 2 : INT64_MAX;
}

/* Entry k: to_k = source_k times the factor */
AMG_ROW void TYPED(amg_convert)(const struct amg_rows *s, int64_t k)
{
    ((T *)s->to)[k] = (T)(amg_source(s->source_type, s->source, k) * s->factor);
}

/* The diagonal entry, its root, its reciprocal, and the first estimate of the bound below. */
AMG_ROW void TYPED(amg_diagonal)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    const int64_t end = amg_offset(&s->a, i + 1);
    T diagonal = 0, sum = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        sum += TYPED(amg_abs)(val[k]);
        if (s->a.col[k] == i)
            diagonal = val[k];
    }
    const double least = s->least != (const void *)0 ? ((const double *)s->least)[i] : 0;
    if (!((double)diagonal > least))
        diagonal = 0;
    ((T *)s->diagonal_out)[i] = diagonal;
    ((T *)s->root_out)[i] = (T)sqrt((double)diagonal);
    ((T *)s->inverse_out)[i] = diagonal > 0 ? 1 / (s->l1 ? sum : diagonal) : 0;
    ((T *)s->weight_out)[i] = diagonal > 0 ? sum / diagonal : 1;
}

/* |a_ij| / sqrt(a_ii a_jj) for entry k of row i; 0 for the diagonal entry and rows that are left out. */
AMG_ROW T TYPED(amg_coupling)(const struct amg_rows *s, int64_t i, int64_t k)
{
    const T *root = (const T *)s->root;
    const int64_t j = s->a.col[k];
    const T own = root[i], other = root[j];
    return own > 0 && other > 0 && j != i ? TYPED(amg_abs)(((const T *)s->a.val)[k]) / own / other : 0;
}

/* weight_out_i = sum_j |a_ij| w_j / a_ii and ratio_out_i = weight_out_i / w_i. For any w > 0 the
 * largest ratio bounds all eigenvalues of D^-1 A (L. Collatz, Math. Z. 48, 1942). strongest_out as in
 * amg_strongest. */
AMG_ROW void TYPED(amg_bound)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *weight = (const T *)s->weight;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T sum = 0, most = 0;
    if (diagonal > 0)
        for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
            sum += TYPED(amg_abs)(val[k]) * weight[s->a.col[k]];
            if (s->strongest_out != (void *)0) {
                const T coupling = TYPED(amg_coupling)(s, i, k);
                most = coupling > most ? coupling : most;
            }
        }
    ((T *)s->weight_out)[i] = diagonal > 0 ? sum / diagonal : weight[i];
    ((T *)s->ratio_out)[i] = diagonal > 0 ? sum / diagonal / weight[i] : 1;
    if (s->strongest_out != (void *)0)
        ((T *)s->strongest_out)[i] = most;
}

/* A start vector for the power iteration: numbers of -1 to 1 from the hash of the row. */
AMG_ROW void TYPED(amg_power_begin)(const struct amg_rows *s, int64_t i)
{
    const uint64_t hash = amg_key(0, i) >> 32;
    ((T *)s->weight_out)[i] = (T)((double)hash * 0x1p-27 - 1);
}

/* weight_out = D^-1 A weight */
AMG_ROW void TYPED(amg_power)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *weight = (const T *)s->weight;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T sum = 0;
    if (diagonal > 0)
        for (int64_t k = amg_offset(&s->a, i); k < end; k++)
            sum += val[k] * weight[s->a.col[k]];
    ((T *)s->weight_out)[i] = diagonal > 0 ? sum / diagonal : 0;
}

/* Row i of the smoother as a matrix: S = factor D^-1 - other D^-1 A D^-1, with the pattern of A. */
AMG_ROW void TYPED(amg_smoother)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *inverse = (const T *)s->inverse;
    T *to = (T *)s->to;
    const int64_t end = amg_offset(&s->a, i + 1);
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T both = inverse[i] * inverse[s->a.col[k]];
        to[k] = (s->a.col[k] == i ? (T)s->factor * inverse[i] : 0) - (T)s->other * (both * val[k]);
    }
}

/* ----------------------------------------------------------------- strength */

/* strongest_out_i = the largest |a_ij| / sqrt(a_ii a_jj), j != i */
AMG_ROW void TYPED(amg_strongest)(const struct amg_rows *s, int64_t i)
{
    const int64_t end = amg_offset(&s->a, i + 1);
    T most = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T coupling = TYPED(amg_coupling)(s, i, k);
        most = coupling > most ? coupling : most;
    }
    ((T *)s->strongest_out)[i] = most;
}

/* |a_ij| > strength min(w_i, w_j) sqrt(a_ii a_jj), with the weights of amg_strongest: symmetric, and
 * the same for S A S with a diagonal S. */
AMG_ROW int TYPED(amg_is_strong)(const struct amg_rows *s, int64_t i, int64_t k)
{
    const T *root = (const T *)s->root;
    const T *weight = (const T *)s->weight;
    const int64_t j = s->a.col[k];
    const T least = weight[i] < weight[j] ? weight[i] : weight[j];
    return root[i] > 0 && root[j] > 0 &&
           TYPED(amg_abs)(((const T *)s->a.val)[k]) > (T)s->strength * least * root[i] * root[j];
}

/* The diagonal entry of F: weak couplings are added to that of A, which keeps the row's sum, unless that
 * halves it. */
AMG_ROW T TYPED(amg_lump)(T diagonal, T weak)
{
    const T lumped = diagonal + weak;
    return lumped > diagonal / 2 ? lumped : diagonal;
}

/* inverse_out: the reciprocal of F's diagonal entry; ratio_out: sum_j |f_ij| / f_ii. strong: the sum of
 * |f_ij| beside the diagonal. */
AMG_ROW void TYPED(amg_store_strong)(const struct amg_rows *s, int64_t i, T diagonal, T lumped, T strong)
{
    ((T *)s->inverse_out)[i] = diagonal > 0 ? 1 / lumped : 0;
    ((T *)s->ratio_out)[i] = diagonal > 0 ? (lumped + strong) / lumped : 1;
}

/* count_i = strong couplings and the diagonal entry; see also amg_store_strong */
AMG_ROW void TYPED(amg_strong_count)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T weak = 0, strong = 0;
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int own = s->a.col[k] == i, is_strong = TYPED(amg_is_strong)(s, i, k);
        count += own || is_strong;
        if (!own && is_strong)
            strong += TYPED(amg_abs)(val[k]);
        else if (!own)
            weak += val[k];
    }
    s->count[i] = count;
    TYPED(amg_store_strong)(s, i, diagonal, TYPED(amg_lump)(diagonal, weak), strong);
}

/* Columns and values of F. */
AMG_ROW void TYPED(amg_strong_fill)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->f.val;
    const int64_t end = amg_offset(&s->a, i + 1);
    int64_t at = amg_offset(&s->f, i), middle = -1;
    T weak = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int own = s->a.col[k] == i;
        if (own || TYPED(amg_is_strong)(s, i, k)) {
            middle = own ? at : middle;
            s->f.col[at] = s->a.col[k];
            to[at++] = val[k];
        } else {
            weak += val[k];
        }
    }
    const T diagonal = ((const T *)s->diagonal)[i];
    if (diagonal > 0)
        to[middle] = TYPED(amg_lump)(diagonal, weak);
}

/* New values of F, whose pattern stays. If f is a, nothing is written to it. */
AMG_ROW void TYPED(amg_strong_values)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->f.val;
    const int64_t begin = amg_offset(&s->f, i), end = amg_offset(&s->f, i + 1), last = amg_offset(&s->a, i + 1);
    const T diagonal = ((const T *)s->diagonal)[i];
    T weak = 0, strong = 0;
    int64_t at = begin, middle = begin;
    for (int64_t k = amg_offset(&s->a, i); k < last; k++)
        if (at < end && s->f.col[at] == s->a.col[k]) {
            if (s->a.col[k] == i)
                middle = at;
            else
                strong += TYPED(amg_abs)(val[k]);
            if (!s->all_strong)
                to[at] = val[k];
            at++;
        } else
            weak += val[k];
    const T lumped = TYPED(amg_lump)(diagonal, weak);
    if (diagonal > 0 && !s->all_strong)
        to[middle] = lumped;
    TYPED(amg_store_strong)(s, i, diagonal, lumped, strong);
}

/* -------------------------------------------------------------------- nodes */

/* Row i of the matrix of nodes, which is c: the largest absolute value of each block of A. Writes it if
 * `write` is 1. Returns its entries. */
AMG_ROW int64_t TYPED(amg_merge_node)(const struct amg_rows *s, int64_t i, int write)
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

AMG_ROW void TYPED(amg_node_count)(const struct amg_rows *s, int64_t i)
{
    s->count[i] = TYPED(amg_merge_node)(s, i, 0);
}

AMG_ROW void TYPED(amg_node_fill)(const struct amg_rows *s, int64_t i)
{
    TYPED(amg_merge_node)(s, i, 1);
}

/* --------------------------------------------------------------- aggregates */

/* Rows without a strong coupling are excluded: the smoother suffices for them. count: of strong couplings
 * and the diagonal entry. */
AMG_ROW void TYPED(amg_mis_begin)(const struct amg_rows *s, int64_t i)
{
    const int coupled = ((const T *)s->diagonal)[i] > 0 && s->count[i] > 1;
    s->key[i] = amg_key(coupled ? AMG_UNDECIDED : AMG_EXCLUDED, i);
    s->near_key[i] = 0;
}

/* The largest of this key and the keys of the row's neighbours. */
AMG_ROW uint64_t TYPED(amg_largest_key)(const struct amg_rows *s, int64_t i, const uint64_t *key, uint64_t most)
{
    const int64_t end = amg_offset(&s->f, i + 1);
    for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
        const uint64_t near_key = key[s->f.col[k]];
        most = near_key > most ? near_key : most;
    }
    return most;
}

/* The largest key of a row and its neighbours. */
AMG_ROW void TYPED(amg_mis_spread)(const struct amg_rows *s, int64_t i)
{
    if (amg_spread_is_final(s->near_key[i]))
        return;
    s->near_key[i] = TYPED(amg_largest_key)(s, i, s->key, s->key[i]);
}

/* A row becomes a root if its key is the largest within distance 2, and is excluded if a root is
 * within distance 2. */
AMG_ROW void TYPED(amg_mis_decide)(const struct amg_rows *s, int64_t i)
{
    const uint64_t key = s->key[i];
    s->undecided[i] = 0;
    if (amg_state(key) != AMG_UNDECIDED)
        return;
    const uint64_t most = TYPED(amg_largest_key)(s, i, s->near_key, s->near_key[i]);
    if (most == key)
        s->key[i] = amg_key(AMG_ROOT_STATE, i);
    else if (amg_state(most) == AMG_ROOT_STATE)
        s->key[i] = amg_key(AMG_EXCLUDED, i);
    else
        s->undecided[i] = 1;
}

AMG_ROW void TYPED(amg_root)(const struct amg_rows *s, int64_t i)
{
    s->count[i] = amg_state(s->key[i]) == AMG_ROOT_STATE;
}

/* A root and its neighbours make an aggregate; offset has the numbers of the roots. No row has two
 * roots beside it, unless the strong couplings are not symmetric; then the first one found counts. */
AMG_ROW void TYPED(amg_join_root)(const struct amg_rows *s, int64_t i)
{
    const uint64_t own = s->key[i]; /* near_key: of a spread after all decisions */
    const uint64_t most = amg_state(own) == AMG_ROOT_STATE ? own : s->near_key[i];
    s->aggregate[i] =
        amg_state(most) == AMG_ROOT_STATE ? (int32_t)s->offset[(int64_t)(most & UINT64_C(0xffffffff))] : -1;
}

/* Every other row with a strong coupling joins the aggregate of its strongest neighbour that is in
 * one, the first of equals. */
AMG_ROW void TYPED(amg_join_near)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->f.val;
    const int64_t end = amg_offset(&s->f, i + 1);
    int32_t own = s->joined[i];
    T most = -1;
    if (own < 0 && ((const T *)s->diagonal)[i] > 0)
        for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
            const int32_t other = s->joined[s->f.col[k]];
            if (other >= 0 && TYPED(amg_abs)(val[k]) > most) {
                most = TYPED(amg_abs)(val[k]);
                own = other;
            }
        }
    s->aggregate[i] = own;
}

/* The steps of classical interpolation. */
#include "solvers/amg/amg_classical_typed.h"

/* ------------------------------------------------------------ interpolation */

AMG_ROW T TYPED(amg_near_null)(const struct amg_rows *s, int64_t i)
{
    return s->near_null != (const void *)0 ? ((const T *)s->near_null)[i] : 1;
}

/* The aggregate of the column of entry k of F. */
AMG_ROW int32_t TYPED(amg_aggregate)(const struct amg_rows *s, int64_t k)
{
    return s->gathered ? s->f.col[k] : s->aggregate[s->f.col[k]];
}

/* The product of entry k of F and the entry of P0 in its column. */
AMG_ROW T TYPED(amg_term)(const struct amg_rows *s, int64_t k)
{
    const T value = ((const T *)s->f.val)[k];
    return s->gathered ? value : value * TYPED(amg_near_null)(s, s->f.col[k]);
}

/* The smallest aggregate above `last` beside row i; INT32_MAX: there is none. *sum, if it is not NULL:
 * the sum of the terms of `last`. It starts with -0, so it has the bits of one that its first term
 * starts. */
AMG_ROW int32_t TYPED(amg_next_aggregate)(const struct amg_rows *s, int64_t i, int32_t last, T *sum)
{
    const int64_t end = amg_offset(&s->f, i + 1);
    int32_t next = INT32_MAX;
    T terms = -(T)0;
    for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
        const int32_t other = TYPED(amg_aggregate)(s, k);
        if (other > last)
            next = other < next ? other : next;
        else if (sum != (T *)0 && other == last)
            terms += TYPED(amg_term)(s, k);
    }
    if (sum != (T *)0)
        *sum = terms;
    return next;
}

/* count_i = the aggregates beside row i, which are the columns of its row of P. A row that is too long
 * gets more than all rows together can have. */
AMG_ROW void TYPED(amg_prolong_count)(const struct amg_rows *s, int64_t i)
{
    int64_t count = 0;
    if (amg_offset(&s->f, i + 1) - amg_offset(&s->f, i) > AMG_PROLONG_MOST)
        count = s->nnz + 1;
    else
        for (int32_t j = TYPED(amg_next_aggregate)(s, i, -1, (T *)0); j != INT32_MAX; count++)
            j = TYPED(amg_next_aggregate)(s, i, j, (T *)0);
    s->count[i] = count;
}

/* Row i of P = P0 - omega D^-1 (F P0) in one step, which is much cheaper than a product of sparse
 * matrices: P0 has at most one entry in a row. It is near_null_k in the column of the aggregate of row
 * k. The terms are added in the order of k. factor: omega; inverse: that of F's diagonal. */
AMG_ROW void TYPED(amg_prolong_fill)(const struct amg_rows *s, int64_t i)
{
    const T scale = (T)s->factor * ((const T *)s->inverse)[i];
    int64_t to = amg_offset(&s->p, i);
    for (int32_t j = TYPED(amg_next_aggregate)(s, i, -1, (T *)0); j != INT32_MAX; to++) {
        T sum;
        const int32_t next = TYPED(amg_next_aggregate)(s, i, j, &sum);
        const T tentative = j == s->aggregate[i] ? TYPED(amg_near_null)(s, i) : 0;
        s->p.col[to] = j;
        ((T *)s->p.val)[to] = tentative - scale * sum;
        j = next;
    }
}

/* New values of a row of P, whose columns stay: the same sums as prolong_fill, in the same order, in one
 * pass over the row of F. */
AMG_ROW void TYPED(amg_prolong_values)(const struct amg_rows *s, int64_t i)
{
    T *const val = (T *)s->p.val;
    const T *const f = (const T *)s->f.val, *const near_null = (const T *)s->near_null;
    const int32_t *const col = s->p.col, *const aggregate = s->aggregate, *const f_col = s->f.col;
    const int64_t begin = amg_offset(&s->p, i), end = amg_offset(&s->p, i + 1), last = amg_offset(&s->f, i + 1);
    const T scale = (T)s->factor * ((const T *)s->inverse)[i];
    int64_t to = begin;
    for (int64_t e = begin; e < end; e++)
        val[e] = -(T)0;
    for (int64_t k = amg_offset(&s->f, i); k < last; k++) {
        const int32_t j = aggregate[f_col[k]];
        if (j < 0)
            continue;
        if (col[to] != j) /* often that of the entry before */
            for (to = begin; col[to] != j; to++)
                ;
        val[to] += near_null != (const T *)0 ? f[k] * near_null[f_col[k]] : f[k];
    }
    for (int64_t e = begin; e < end; e++)
        val[e] = (col[e] == aggregate[i] ? TYPED(amg_near_null)(s, i) : 0) - scale * val[e];
}

AMG_ROW void TYPED(amg_tentative_count)(const struct amg_rows *s, int64_t i)
{
    s->count[i] = s->aggregate[i] >= 0;
}

/* P0: the near-null-space vector, cut into the aggregates. So P0 times ones is the vector, and the
 * vector of the next level is ones. */
AMG_ROW void TYPED(amg_tentative_fill)(const struct amg_rows *s, int64_t i)
{
    if (s->aggregate[i] >= 0) {
        const int64_t k = amg_offset(&s->p0, i);
        s->p0.col[k] = s->aggregate[i];
        ((T *)s->p0.val)[k] = TYPED(amg_near_null)(s, i);
    }
}

/* Element k of the basis without vectors of the caller: each unknown of a node has a constant. */
AMG_ROW void TYPED(amg_components)(const struct amg_rows *s, int64_t k)
{
    s->basis[k] = k / s->nulls % s->block == k % s->nulls;
}

/* Row t of the basis in an aggregate, whose nodes are from entry `begin` of r on. */
AMG_ROW double *TYPED(amg_basis_row)(const struct amg_rows *s, int64_t begin, int64_t t)
{
    return s->basis + ((int64_t)s->r.col[begin + t / s->block] * s->block + t % s->block) * s->nulls;
}

/* The vectors in aggregate j, whose nodes are row j of r: B = Q U with orthonormal columns of Q, in place
 * of B, by the modified Gram-Schmidt method; U is the basis of the next level. A vector that depends on
 * those before, for example because there are fewer rows than vectors, becomes 0, and its row of U. */
AMG_ROW void TYPED(amg_orthonormal)(const struct amg_rows *s, int64_t j)
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
AMG_ROW void TYPED(amg_basis_count)(const struct amg_rows *s, int64_t i)
{
    s->count[i] = s->aggregate[i / s->block] >= 0 ? s->nulls : 0;
}

/* Row i of P0, of the orthonormal basis. */
AMG_ROW void TYPED(amg_basis_fill)(const struct amg_rows *s, int64_t i)
{
    const int32_t aggregate = s->aggregate[i / s->block];
    const int64_t to = amg_offset(&s->p0, i);
    for (int c = 0; c < s->nulls && aggregate >= 0; c++) {
        s->p0.col[to + c] = aggregate * s->nulls + c;
        ((T *)s->p0.val)[to + c] = (T)s->basis[i * s->nulls + c];
    }
}

/* P = P0 - omega D^-1 (F P0), in place of F P0; factor: omega; inverse: that of F's diagonal. The row of
 * F P0 has the columns of P0, which are consecutive, because F has the diagonal. */
AMG_ROW void TYPED(amg_smooth)(const struct amg_rows *s, int64_t i)
{
    T *val = (T *)s->p.val;
    const int64_t end = amg_offset(&s->p, i + 1), own = amg_offset(&s->p0, i), last = amg_offset(&s->p0, i + 1);
    const T scale = (T)s->factor * ((const T *)s->inverse)[i];
    for (int64_t k = amg_offset(&s->p, i); k < end; k++) {
        const int64_t at = own < last && s->p.col[k] >= s->p0.col[own] ? own + (s->p.col[k] - s->p0.col[own]) : last;
        const T tentative = at < last ? ((const T *)s->p0.val)[at] : 0;
        val[k] = tentative - scale * val[k];
    }
}

/* Entry k of R = P'. */
AMG_ROW void TYPED(amg_transpose)(const struct amg_rows *s, int64_t k)
{
    ((T *)s->r.val)[k] = ((const T *)s->p.val)[amg_number(s->entry, s->entry_bits, k)];
}

/* mass_out_j: the sum of a_ii p_i^2 over column j of P. */
AMG_ROW void TYPED(amg_coarse_mass)(const struct amg_rows *s, int64_t j)
{
    const T *r = (const T *)s->r.val, *diagonal = (const T *)s->diagonal;
    double mass = 0;
    for (int64_t k = amg_offset(&s->r, j), end = amg_offset(&s->r, j + 1); k < end; k++)
        mass = amg_add_mass(mass, (double)diagonal[s->r.col[k]], (double)r[k]);
    s->mass[j] = mass;
}

/* Row j of C = P'AP. p'Ap is 0 if p is in the null space of A, up to rounding relative to the mass of p.
 * ratio_out (f64): p'Ap over the mass, -2 for numbers that are not finite. least (f64, in to): the
 * largest entry that counts as 0. Row and column of a near-null-space vector that was left out of an
 * aggregate are 0; its diagonal entry becomes 1, so the matrix stays regular. */
AMG_ROW void TYPED(amg_coarse_check)(const struct amg_rows *s, int64_t j)
{
    T *val = (T *)s->c.val;
    const double mass = s->mass[j];
    const int64_t last = amg_offset(&s->c, j + 1);
    const int64_t at = first_column_from(s->c.col, amg_offset(&s->c, j), last, j);
    const int left_out = s->nulls > 0 && mass == 0 && at < last && s->c.col[at] == j;
    if (left_out)
        val[at] = 1;
    const double own = at < last && s->c.col[at] == j ? (double)val[at] : 0;
    const double ratio = mass > 0 ? own / mass : left_out;
    ((double *)s->ratio_out)[j] = ratio >= -1e300 && ratio <= 1e300 && mass <= 0x1.fffffffffffffp1023 ? ratio : -2;
    ((double *)s->to)[j] = mass * s->tolerance;
}

/* ------------------------------------------------------- the dense last level */

AMG_ROW void TYPED(amg_dense_clear)(const struct amg_rows *s, int64_t k)
{
    s->dense.element[k] = 0;
}

/* Row i of the lower triangle, and element i of column 0. */
AMG_ROW void TYPED(amg_dense_fill)(const struct amg_rows *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    double *row = s->dense.element + i * s->n;
    double own = 0;
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++)
        if (s->a.col[k] <= i)
            row[s->a.col[k]] = (double)val[k];
    if (((const T *)s->diagonal)[i] > 0)
        own = row[i];
    row[i] = own;
    s->dense.own[i] = own;
    s->dense.column[0][i] = row[0];
}

/* Entry k = i n + j of the inverse, as a sparse matrix with all entries. */
AMG_ROW void TYPED(amg_dense_take)(const struct amg_rows *s, int64_t k)
{
    const uint32_t n = (uint32_t)s->n, i = (uint32_t)k / n, j = (uint32_t)k % n; /* n^2 < 2^32 */
    const double *w = s->dense.element;
    s->c.col[k] = (int32_t)j;
    ((T *)s->c.val)[k] = (T)-w[i > j ? (int64_t)i * n + j : (int64_t)j * n + i];
    if (j == 0)
        s->count[i] = k;
    if (k == s->n * s->n - 1)
        s->count[n] = s->n * s->n;
}

/* ------------------------------------------------------------------ vectors */

/* to_i = from_i in T, times the factor amg_narrowing (on cuda: scale_kernel). The vectors have the
 * other real type. */
AMG_ROW void TYPED(amg_narrow)(const struct amg_rows *s, int64_t i)
{
    ((T *)s->to)[i] = (T)(amg_source(sizeof(T) == sizeof(float) ? SPMV_F64 : SPMV_F32, s->from, i) * s->factor);
}

/* The same backwards, times the factor amg_widening. */
AMG_ROW void TYPED(amg_widen)(const struct amg_rows *s, int64_t i)
{
    const double value = (double)((const T *)s->from)[i] * s->factor;
    if (sizeof(T) == sizeof(float))
        ((double *)s->to)[i] = value;
    else
        ((float *)s->to)[i] = (float)value;
}
