/* The steps of classical interpolation, a part of amg_rows_typed.h.
 *
 * Row i depends on row j if -a_ij > strength m_i, where m_i is the largest -a_ik. All matrices are
 * symmetric, so j depends on i if -a_ij > strength m_j. weight has m.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* -a_ij for entry k of row i, if that is positive and both rows are used; else 0 */
AMG_ROW T TYPED(amg_pull)(const struct amg_rows *s, int64_t i, int64_t k)
{
    const T *diagonal = (const T *)s->diagonal;
    const int64_t j = s->a.col[k];
    const T value = ((const T *)s->a.val)[k];
    return value < 0 && j != i && diagonal[i] > 0 && diagonal[j] > 0 ? -value : 0;
}

/* m_i, or that of the first `entries` of the row */
AMG_ROW T TYPED(amg_largest_of)(const struct amg_rows *s, int64_t i, int64_t entries)
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
AMG_ROW T TYPED(amg_largest_pull)(const struct amg_rows *s, int64_t i)
{
    return TYPED(amg_largest_of)(s, i, INT64_MAX);
}

AMG_ROW int TYPED(amg_pulls)(const struct amg_rows *s, T pull, T most)
{
    return pull > (T)s->strength * most;
}

/* Whether both a_jj and m_j are above `least`. The first decides for most matrices, without a look at the row. Of
 * a long row, which many rows may look at, AMG_LOOK entries count. */
AMG_ROW int TYPED(amg_is_far)(const struct amg_rows *s, int64_t j, T least)
{
    return ((const T *)s->diagonal)[j] > least && TYPED(amg_largest_of)(s, j, AMG_LOOK) > least;
}

/* count: for row t times `stride`: the rows on which it depends, less AMG_FAR_WEIGHT for each of them that is
 * far from depending on it: whose a_jj and m_j are more than AMG_FAR times as large as -a_ij. */
AMG_ROW void TYPED(amg_one_way)(const struct amg_rows *s, int64_t t)
{
    const int64_t i = t * s->stride, end = amg_offset(&s->a, i + 1);
    const T own = TYPED(amg_largest_pull)(s, i);
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T pull = TYPED(amg_pull)(s, i, k);
        if (TYPED(amg_pulls)(s, pull, own))
            count += TYPED(amg_is_far)(s, s->a.col[k], AMG_FAR * pull) ? 1 - AMG_FAR_WEIGHT : 1;
    }
    s->count[t] = count;
}

/* weight_out = m */
AMG_ROW void TYPED(amg_dependence)(const struct amg_rows *s, int64_t i)
{
    ((T *)s->weight_out)[i] = TYPED(amg_largest_pull)(s, i);
}

/* ------------------------------------------------------------ coarse rows */

/* The key of a row has its use for the rows that depend on it: the sum of -a_ij / a_jj. A row on which none
 * depends is not coarse. */
AMG_ROW void TYPED(amg_split_begin)(const struct amg_rows *s, int64_t i)
{
    const T *diagonal = (const T *)s->diagonal, *most = (const T *)s->weight;
    const int64_t end = amg_offset(&s->a, i + 1);
    T use = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T pull = TYPED(amg_pull)(s, i, k);
        if (TYPED(amg_pulls)(s, pull, most[s->a.col[k]]))
            use += pull / diagonal[s->a.col[k]];
    }
    s->key[i] = amg_used_key(use > 0 ? AMG_UNDECIDED : AMG_EXCLUDED, (double)use, i);
}

/* near_key: the key after this step. A row becomes coarse if its key is larger than those of the undecided
 * rows that depend on it, or on which it depends. */
AMG_ROW void TYPED(amg_split_decide)(const struct amg_rows *s, int64_t i)
{
    const T *most = (const T *)s->weight;
    const uint64_t key = s->key[i];
    uint64_t next = key;
    if (amg_state(key) == AMG_UNDECIDED) {
        next = amg_with_state(key, AMG_ROOT_STATE);
        const int64_t end = amg_offset(&s->a, i + 1);
        for (int64_t k = amg_offset(&s->a, i); k < end && next != key; k++) {
            const int64_t j = s->a.col[k];
            const uint64_t other = s->key[j];
            if (amg_state(other) == AMG_UNDECIDED && other > key) {
                const T pull = TYPED(amg_pull)(s, i, k);
                if (TYPED(amg_pulls)(s, pull, most[i] < most[j] ? most[i] : most[j]))
                    next = key;
            }
        }
    }
    s->near_key[i] = next;
}

/* A row that depends on a coarse one is not coarse. */
AMG_ROW void TYPED(amg_split_exclude)(const struct amg_rows *s, int64_t i)
{
    const T *most = (const T *)s->weight;
    uint64_t key = s->near_key[i];
    if (amg_state(key) == AMG_UNDECIDED) {
        const int64_t end = amg_offset(&s->a, i + 1);
        for (int64_t k = amg_offset(&s->a, i); k < end; k++)
            if (amg_state(s->near_key[s->a.col[k]]) == AMG_ROOT_STATE &&
                TYPED(amg_pulls)(s, TYPED(amg_pull)(s, i, k), most[i])) {
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

/* near: the coarse rows on which row i depends, with -a_ij, from the row's first entry of A on; near_count_i:
 * how many. weight_out_i = b_i, the sum of these -a_ij. Coarse rows need none. */
AMG_ROW void TYPED(amg_coarse_near)(const struct amg_rows *s, int64_t i)
{
    const T most = ((const T *)s->weight)[i];
    const int64_t end = amg_offset(&s->a, i + 1), begin = amg_offset(&s->a, i);
    int64_t to = begin;
    T sum = 0;
    for (int64_t k = begin; k < end && s->aggregate[i] < 0; k++) {
        const T pull = TYPED(amg_pull)(s, i, k);
        const int32_t coarse = TYPED(amg_pulls)(s, pull, most) ? s->aggregate[s->a.col[k]] : -1;
        if (coarse >= 0) {
            s->near.col[to] = coarse;
            ((T *)s->near.val)[to++] = pull;
            sum += pull;
        }
    }
    s->near_count[i] = (int32_t)(to - begin);
    ((T *)s->weight_out)[i] = sum;
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

/* The row of P of a row that is not coarse, by the interpolation "extended+i": see amg_setup.c. */
AMG_ROW void TYPED(amg_gather_row)(const struct amg_rows *s, int64_t i, struct TYPED(amg_gathered) * g)
{
    const T *val = (const T *)s->a.val, *most = (const T *)s->weight, *to_coarse = (const T *)s->to_coarse;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T divisor = diagonal;
    g->count = 0;
    g->all = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end && diagonal > 0; k++) {
        const int64_t j = s->a.col[k];
        const T pull = TYPED(amg_pull)(s, i, k);
        if (j == i)
            continue;
        if (!TYPED(amg_pulls)(s, pull, most[i]) || (s->aggregate[j] < 0 && !(to_coarse[j] > 0))) {
            divisor += val[k];
        } else if (s->aggregate[j] >= 0) {
            TYPED(amg_gather)(g, s->aggregate[j], pull);
        } else {
            const T share = pull / (to_coarse[j] + pull);
            const int64_t first = amg_offset(&s->a, j), last = first + s->near_count[j];
            divisor -= pull * share;
            for (int64_t q = first; q < last; q++)
                TYPED(amg_gather)(g, s->near.col[q], share * ((const T *)s->near.val)[q]);
        }
    }
    g->divisor = divisor > (T)AMG_LEAST_DIVISOR * diagonal ? divisor : g->all;
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

/* Row i of P in p0, which has room for AMG_INTERPOLATE_MOST entries in each row. count_i: its entries. */
AMG_ROW void TYPED(amg_interpolate)(const struct amg_rows *s, int64_t i)
{
    int32_t *col = s->p0.col + AMG_INTERPOLATE_MOST * i;
    T *val = (T *)s->p0.val + AMG_INTERPOLATE_MOST * i;
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

/* Copies row i of P from p0. */
AMG_ROW void TYPED(amg_interpolate_place)(const struct amg_rows *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->p, i), count = amg_offset(&s->p, i + 1) - begin;
    for (int64_t t = 0; t < count; t++) {
        s->p.col[begin + t] = s->p0.col[AMG_INTERPOLATE_MOST * i + t];
        ((T *)s->p.val)[begin + t] = ((const T *)s->p0.val)[AMG_INTERPOLATE_MOST * i + t];
    }
}

/* New values of row i of P, whose columns stay. */
AMG_ROW void TYPED(amg_interpolate_values)(const struct amg_rows *s, int64_t i)
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
