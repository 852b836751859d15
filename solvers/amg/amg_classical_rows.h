/* Rows of classical interpolation: dependences, coarse rows, P (amg_classical.c).
 *
 * Row i depends on row j if -a_ij > threshold m_i, where m_i is the largest -a_ik. For a symmetric matrix,
 * j depends on i if -a_ij > threshold m_j. For another one, row i of A' has the a_ji.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_CLASSICAL_ROWS_H
#define AMG_CLASSICAL_ROWS_H

#include "solvers/amg/amg_given_rows.h" /* amg_entry */

/* Classical interpolation is taken if more than one of AMG_FAR_WEIGHT dependences is one-way by far
 * (one_way). */
#define AMG_FAR 256
#define AMG_FAR_WEIGHT 64
#define AMG_LOOK 1024

/* The columns that are found for a row of P, and the most that it keeps. */
#define AMG_GATHER_MOST 64
#define AMG_INTERPOLATE_MOST 4

/* The divisor of a row of P, relative to a_ii, below which it is mostly rounding errors: then the row's sum
 * becomes 1. */
#define AMG_LEAST_DIVISOR 0x1p-12

struct amg_dependence {
    struct amg_csr a;
    struct amg_csr t;     /* A'; without arrays if A is symmetric */
    const void *diagonal; /* T: of a; 0 for rows that the hierarchy leaves out */
    double threshold;
    void *largest; /* T: m */
};

AMG_ROW int amg_is_symmetric(const struct amg_dependence *s)
{
    return s->t.col == (const int32_t *)0;
}

/* The matrix whose row i has the entries of column i. */
AMG_ROW const struct amg_csr *amg_columns_of(const struct amg_dependence *s)
{
    return amg_is_symmetric(s) ? &s->a : &s->t;
}

/* Every stride-th row from `begin` on. */
struct amg_sample {
    struct amg_dependence graph; /* without m */
    int64_t begin, stride;
    /* with ranks: T: m of the first AMG_LOOK entries of rows of other ranks, in the layout of the level; NULL: none.
     * sent: own rows of which others have it, counted from the first one */
    void *seen;
    const int32_t *sent;
    int64_t own_begin, own_end; /* own rows in the layout */
    int64_t *count;             /* see one_way */
};

/* The choice of coarse rows. */
struct amg_split {
    struct amg_dependence graph;
    uint64_t *key, *near_key; /* state and priority of a row: before a round, and within it */
    int32_t *undecided;       /* 1: the row is neither coarse nor excluded */
    int64_t first;            /* the number of row 0 in the whole level */
};

struct amg_interpolation {
    struct amg_dependence graph;
    const int32_t *aggregate; /* number of a coarse row, or -1 */
    struct amg_csr near;      /* see coarse_near; its rows begin where those of A do, or have room for more */
    int32_t *near_count;      /* the same */
    void *to_coarse;          /* the same, T */
    struct amg_csr room;      /* columns and values: rows of P before their lengths are known */
    struct amg_csr p;
    int64_t *count; /* entries of each row of p */
};

/* A key with the row's use above the hash, in sixteenths and with 8 bits. */
AMG_ROW uint64_t amg_used_key(uint64_t state, double use, int64_t row)
{
    const uint64_t sixteenths = use < 15.9375 ? (uint64_t)(16 * use) : 255;
    return (amg_key(state, row) & ~(UINT64_C(255) << 54)) | sixteenths << 54;
}

#endif

#ifdef TYPED

/* -a_ij for entry k of row i of a, if that is positive and both rows are used; else 0 */
AMG_ROW T TYPED(amg_pull_in)(const struct amg_csr *a, const T *diagonal, int64_t i, int64_t k)
{
    const int64_t j = a->col[k];
    const T value = ((const T *)a->val)[k];
    return value < 0 && j != i && diagonal[i] > 0 && diagonal[j] > 0 ? -value : 0;
}

AMG_ROW T TYPED(amg_pull)(const struct amg_dependence *s, int64_t i, int64_t k)
{
    return TYPED(amg_pull_in)(&s->a, (const T *)s->diagonal, i, k);
}

/* -a_ji in the same way, for entry k of row i, which is (i, j) and has the pull -a_ij */
AMG_ROW T TYPED(amg_pull_back)(const struct amg_dependence *s, int64_t i, int64_t k, T pull)
{
    if (amg_is_symmetric(s))
        return pull;
    const T value = TYPED(amg_entry)(&s->t, i, s->a.col[k]);
    return pull > 0 && value < 0 ? -value : 0;
}

/* m_i, or that of the first `entries` of the row */
AMG_ROW T TYPED(amg_largest_of)(const struct amg_dependence *s, int64_t i, int64_t entries)
{
    const int64_t begin = amg_offset(&s->a, i), after = amg_offset(&s->a, i + 1);
    const int64_t end = entries < after - begin ? begin + entries : after;
    T most = 0;
    for (int64_t k = begin; k < end; k++) {
        const T pull = TYPED(amg_pull)(s, i, k);
        most = pull > most ? pull : most;
    }
    return most;
}

/* m_i */
AMG_ROW T TYPED(amg_largest_pull)(const struct amg_dependence *s, int64_t i)
{
    return TYPED(amg_largest_of)(s, i, INT64_MAX);
}

AMG_ROW int TYPED(amg_pulls)(const struct amg_dependence *s, T pull, T most)
{
    return pull > (T)s->threshold * most;
}

/* Whether both a_jj and m_j are above `least`. The first decides for most matrices, without a look at the row. Of
 * a long row, which many rows may look at, AMG_LOOK entries count. */
AMG_ROW int TYPED(amg_is_far)(const struct amg_sample *s, int64_t j, T least)
{
    return ((const T *)s->graph.diagonal)[j] > least && (s->seen != (void *)0 && (j < s->own_begin || j >= s->own_end)
                                                             ? ((const T *)s->seen)[j]
                                                             : TYPED(amg_largest_of)(&s->graph, j, AMG_LOOK)) > least;
}

AMG_ROW void TYPED(amg_see)(const struct amg_sample *s, int64_t k)
{
    const int64_t i = s->own_begin + s->sent[k];
    ((T *)s->seen)[i] = TYPED(amg_largest_of)(&s->graph, i, AMG_LOOK);
}

/* count: for row `begin` and t times `stride`: the rows on which it depends, less AMG_FAR_WEIGHT for each of
 * them that is far from depending on it: whose a_jj and m_j are more than AMG_FAR times as large as -a_ij. */
AMG_ROW void TYPED(amg_one_way)(const struct amg_sample *s, int64_t t)
{
    const int64_t i = s->begin + t * s->stride, end = amg_offset(&s->graph.a, i + 1);
    const T own = TYPED(amg_largest_pull)(&s->graph, i);
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->graph.a, i); k < end; k++) {
        const T pull = TYPED(amg_pull)(&s->graph, i, k);
        if (TYPED(amg_pulls)(&s->graph, pull, own))
            count += TYPED(amg_is_far)(s, s->graph.a.col[k], AMG_FAR * pull) ? 1 - AMG_FAR_WEIGHT : 1;
    }
    s->count[t] = count;
}

/* largest = m */
AMG_ROW void TYPED(amg_dependence)(const struct amg_dependence *s, int64_t i)
{
    ((T *)s->largest)[i] = TYPED(amg_largest_pull)(s, i);
}

/* ------------------------------------------------------------ coarse rows */

/* The key of a row has its use for the rows that depend on it: the sum of -a_ij / a_jj. A row on which none
 * depends is not coarse. */
AMG_ROW void TYPED(amg_split_begin)(const struct amg_split *s, int64_t i)
{
    const struct amg_csr *columns = amg_columns_of(&s->graph);
    const T *diagonal = (const T *)s->graph.diagonal, *most = (const T *)s->graph.largest;
    const int64_t end = amg_offset(columns, i + 1);
    T use = 0;
    for (int64_t k = amg_offset(columns, i); k < end; k++) {
        const T pull = TYPED(amg_pull_in)(columns, diagonal, i, k);
        if (TYPED(amg_pulls)(&s->graph, pull, most[columns->col[k]]))
            use += pull / diagonal[columns->col[k]];
    }
    s->key[i] = amg_used_key(use > 0 ? AMG_UNDECIDED : AMG_EXCLUDED, (double)use, s->first + i);
}

/* Whether row i of a, which is A or A', has an undecided row with a larger key, and one of both depends on the
 * other. */
AMG_ROW int TYPED(amg_has_rival)(const struct amg_split *s, const struct amg_csr *a, int64_t i)
{
    const T *most = (const T *)s->graph.largest;
    const int either = amg_is_symmetric(&s->graph), rows = a == &s->graph.a;
    const int64_t end = amg_offset(a, i + 1);
    for (int64_t k = amg_offset(a, i); k < end; k++) {
        const int64_t j = a->col[k];
        const uint64_t other = s->key[j];
        if (amg_state(other) == AMG_UNDECIDED && other > s->key[i]) {
            const T pull = TYPED(amg_pull_in)(a, (const T *)s->graph.diagonal, i, k);
            const int own = either ? most[i] < most[j] : rows;
            if (TYPED(amg_pulls)(&s->graph, pull, own ? most[i] : most[j]))
                return 1;
        }
    }
    return 0;
}

/* near_key: the key after this step. A row becomes coarse if its key is larger than those of the undecided
 * rows that depend on it, or on which it depends. */
AMG_ROW void TYPED(amg_split_decide)(const struct amg_split *s, int64_t i)
{
    const uint64_t key = s->key[i];
    const int stays = amg_state(key) != AMG_UNDECIDED || TYPED(amg_has_rival)(s, &s->graph.a, i) ||
                      (!amg_is_symmetric(&s->graph) && TYPED(amg_has_rival)(s, &s->graph.t, i));
    s->near_key[i] = stays ? key : amg_with_state(key, AMG_ROOT_STATE);
}

/* A row that depends on a coarse one is not coarse. */
AMG_ROW void TYPED(amg_split_exclude)(const struct amg_split *s, int64_t i)
{
    const T *most = (const T *)s->graph.largest;
    uint64_t key = s->near_key[i];
    if (amg_state(key) == AMG_UNDECIDED) {
        const int64_t end = amg_offset(&s->graph.a, i + 1);
        for (int64_t k = amg_offset(&s->graph.a, i); k < end; k++)
            if (amg_state(s->near_key[s->graph.a.col[k]]) == AMG_ROOT_STATE &&
                TYPED(amg_pulls)(&s->graph, TYPED(amg_pull)(&s->graph, i, k), most[i])) {
                key = amg_with_state(key, AMG_EXCLUDED);
                break;
            }
    }
    s->key[i] = key;
    s->undecided[i] = amg_state(key) == AMG_UNDECIDED;
}

/* ---------------------------------------------------------- interpolation */

/* The entries of a row of P before most of them are dropped, each times `divisor`. */
struct TYPED(amg_gathered) {
    int count;
    int32_t col[AMG_GATHER_MOST];
    T val[AMG_GATHER_MOST];
    T all, divisor; /* all: the sum, also of entries for which there is no room */
};

/* near: the coarse rows on which row i depends, with -a_ij; near_count_i: how many. to_coarse_i = b_i, the sum
 * of these -a_ij. Coarse rows need none. */
AMG_ROW void TYPED(amg_coarse_near)(const struct amg_interpolation *s, int64_t i)
{
    const T most = ((const T *)s->graph.largest)[i];
    const int64_t end = amg_offset(&s->graph.a, i + 1), begin = amg_offset(&s->graph.a, i);
    const int64_t first = amg_offset(&s->near, i);
    int64_t to = first;
    T sum = 0;
    for (int64_t k = begin; k < end && s->aggregate[i] < 0; k++) {
        const T pull = TYPED(amg_pull)(&s->graph, i, k);
        const int32_t coarse = TYPED(amg_pulls)(&s->graph, pull, most) ? s->aggregate[s->graph.a.col[k]] : -1;
        if (coarse >= 0) {
            s->near.col[to] = coarse;
            ((T *)s->near.val)[to++] = pull;
            sum += pull;
        }
    }
    s->near_count[i] = (int32_t)(to - first);
    ((T *)s->to_coarse)[i] = sum;
}

AMG_ROW void TYPED(amg_gather)(struct TYPED(amg_gathered) * g, int32_t col, T value)
{
    int at = 0;
    g->all += value;
    while (at < g->count && g->col[at] != col)
        at++;
    if (at == AMG_GATHER_MOST)
        return;
    if (at == g->count) {
        g->col[at] = col;
        g->val[at] = 0;
        g->count++;
    }
    g->val[at] += value;
}

/* The row of P of a row that is not coarse, by the interpolation "extended+i": see amg_classical.c. If A is not
 * symmetric, the row's sum is at most 1: columns of A, and rows without their small entries, may have a diagonal
 * entry below the sum beside it, and large weights would magnify rounding errors. */
AMG_ROW void TYPED(amg_gather_row)(const struct amg_interpolation *s, int64_t i, struct TYPED(amg_gathered) * g)
{
    const T *val = (const T *)s->graph.a.val, *most = (const T *)s->graph.largest, *to_coarse = (const T *)s->to_coarse;
    const T diagonal = ((const T *)s->graph.diagonal)[i];
    const int64_t end = amg_offset(&s->graph.a, i + 1);
    T divisor = diagonal;
    g->count = 0;
    g->all = 0;
    for (int64_t k = amg_offset(&s->graph.a, i); k < end && diagonal > 0; k++) {
        const int64_t j = s->graph.a.col[k];
        const T pull = TYPED(amg_pull)(&s->graph, i, k);
        if (j == i)
            continue;
        if (!TYPED(amg_pulls)(&s->graph, pull, most[i]) || (s->aggregate[j] < 0 && !(to_coarse[j] > 0))) {
            divisor += val[k];
        } else if (s->aggregate[j] >= 0) {
            TYPED(amg_gather)(g, s->aggregate[j], pull);
        } else {
            const T back = TYPED(amg_pull_back)(&s->graph, i, k, pull), share = pull / (to_coarse[j] + back);
            const int64_t first = amg_offset(&s->near, j), last = first + s->near_count[j];
            divisor -= back * share;
            for (int64_t q = first; q < last; q++)
                TYPED(amg_gather)(g, s->near.col[q], share * ((const T *)s->near.val)[q]);
        }
    }
    g->divisor = divisor > (T)AMG_LEAST_DIVISOR * diagonal ? divisor : g->all;
    if (!amg_is_symmetric(&s->graph) && g->divisor < g->all)
        g->divisor = g->all;
}

/* Moves the largest entries to the front, with ascending columns. Returns their number. */
AMG_ROW int TYPED(amg_keep_largest)(struct TYPED(amg_gathered) * g)
{
    const int kept = g->count < AMG_INTERPOLATE_MOST ? g->count : AMG_INTERPOLATE_MOST;
    for (int t = 0; t < kept; t++) {
        int best = t;
        for (int e = t + 1; e < g->count; e++)
            if (g->val[e] > g->val[best])
                best = e;
        const int32_t col = g->col[best];
        const T val = g->val[best];
        g->col[best] = g->col[t];
        g->val[best] = g->val[t];
        int at = t;
        for (; at > 0 && g->col[at - 1] > col; at--) {
            g->col[at] = g->col[at - 1];
            g->val[at] = g->val[at - 1];
        }
        g->col[at] = col;
        g->val[at] = val;
    }
    return kept;
}

/* What the kept entries are multiplied by: the row keeps its sum. */
AMG_ROW T TYPED(amg_kept_factor)(T all, T kept, T divisor)
{
    return kept > 0 && divisor > 0 ? all / kept / divisor : 0;
}

/* Row i of P in `room`, which has place for AMG_INTERPOLATE_MOST entries in each row. count_i: its entries. */
AMG_ROW void TYPED(amg_interpolate)(const struct amg_interpolation *s, int64_t i)
{
    int32_t *col = s->room.col + AMG_INTERPOLATE_MOST * i;
    T *val = (T *)s->room.val + AMG_INTERPOLATE_MOST * i;
    struct TYPED(amg_gathered) g;
    T sum = 0;
    if (s->aggregate[i] >= 0) {
        col[0] = s->aggregate[i];
        val[0] = 1;
        s->count[i] = 1;
        return;
    }
    TYPED(amg_gather_row)(s, i, &g);
    const int kept = TYPED(amg_keep_largest)(&g);
    for (int t = 0; t < kept; t++)
        sum += g.val[t];
    const T factor = TYPED(amg_kept_factor)(g.all, sum, g.divisor);
    for (int t = 0; t < kept; t++) {
        col[t] = g.col[t];
        val[t] = g.val[t] * factor;
    }
    s->count[i] = kept;
}

/* Copies row i of P from `room`. */
AMG_ROW void TYPED(amg_interpolate_place)(const struct amg_interpolation *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->p, i), count = amg_offset(&s->p, i + 1) - begin;
    for (int64_t t = 0; t < count; t++) {
        s->p.col[begin + t] = s->room.col[AMG_INTERPOLATE_MOST * i + t];
        ((T *)s->p.val)[begin + t] = ((const T *)s->room.val)[AMG_INTERPOLATE_MOST * i + t];
    }
}

/* New values of row i of P, whose columns stay. */
AMG_ROW void TYPED(amg_interpolate_values)(const struct amg_interpolation *s, int64_t i)
{
    T *val = (T *)s->p.val;
    const int64_t begin = amg_offset(&s->p, i), end = amg_offset(&s->p, i + 1);
    struct TYPED(amg_gathered) g;
    T sum = 0;
    if (s->aggregate[i] >= 0) {
        val[begin] = 1;
        return;
    }
    TYPED(amg_gather_row)(s, i, &g);
    for (int64_t k = begin; k < end; k++) {
        val[k] = 0;
        for (int t = 0; t < g.count; t++)
            if (g.col[t] == s->p.col[k])
                val[k] = g.val[t];
        sum += val[k];
    }
    const T factor = TYPED(amg_kept_factor)(g.all, sum, g.divisor);
    for (int64_t k = begin; k < end; k++)
        val[k] *= factor;
}

#endif
