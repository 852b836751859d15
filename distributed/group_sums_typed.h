/* The typed part of group_sums.c, included by each_real.h: T, TYPED(name).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* A node of the level above: the sum of two nodes of n, or the last one. */
static T TYPED(node)(const T *below, int64_t n, int64_t j)
{
    return 2 * j + 1 < n ? below[2 * j] + below[2 * j + 1] : below[2 * j];
}

/* The nodes that need no others than chunks begin to end - 1. */
static void TYPED(fold)(const struct sum_tree *t, struct span s, void *nodes)
{
    for (int level = 1; level < t->levels; level++) {
        const T *const below = (const T *)nodes + t->first[level - 1];
        const int64_t n = nodes_of(t, level - 1);
        T *const here = (T *)nodes + t->first[level];
        s = above(t, level - 1, s);
        for (int64_t j = s.begin; j < s.end; j++)
            here[j] = TYPED(node)(below, n, j);
    }
}

/* The nodes that neither span has, but both together. */
static void TYPED(join)(const struct sum_tree *t, const struct join *both, void *nodes)
{
    for (int level = 1; level < t->levels; level++)
        for (int i = 0; i < both->seams; i++) {
            const int64_t j = both->seam[i] >> level;
            if (j << level != both->seam[i] && both->seam[i] < nodes_of(t, 0) && is_in(t, both->all, level, j) &&
                !is_in(t, both->mine, level, j) && !is_in(t, both->theirs, level, j))
                ((T *)nodes)[t->first[level] + j] =
                    TYPED(node)((const T *)nodes + t->first[level - 1], nodes_of(t, level - 1), j);
        }
}

static T TYPED(chunk_dot)(const T *a, const T *b, int64_t n)
{
    enum { SUMS = 8 };
    T s[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            s[j] += a[i + j] * b[i + j];
    for (int j = 0; i + j < n; j++)
        s[j] += a[i + j] * b[i + j];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static T TYPED(chunk_dot_ref)(const T *a, const T *b, int64_t n)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (long double)a[i] * b[i];
    return (T)sum;
}

static void TYPED(chunk_dots)(const spmv_group_matrix *m, int of, const void *left, const void *right, void *to)
{
    const T *a = left, *b = right;
    T *parts = to;
    const bool ref = spmv_context_backend(m->ctx) == SPMV_BACKEND_REF;
#pragma omp parallel for num_threads(team_threads(m->ctx, m->own.rows, TEAM_WORTH_AWAKE)) schedule(static)
    for (int64_t c = 0; c < m->ranks.chunks; c++) {
        const int64_t first = of * m->chunk[c], n = of * m->chunk[c + 1] - first;
        parts[c] = ref ? TYPED(chunk_dot_ref)(a + first, b + first, n) : TYPED(chunk_dot)(a + first, b + first, n);
    }
}
