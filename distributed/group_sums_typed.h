/* The typed part of group_sums.c, included by each_real.h: T, TYPED(name).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* *sum: the sum of n numbers, which it overwrites: neighbours are added in pairs, then the pairs, and
 * so on. */
static void TYPED(fold)(void *numbers, int64_t n, void *sum)
{
    T *s = numbers;
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < n / 2; i++)
            s[i] = s[2 * i] + s[2 * i + 1];
        if (n % 2 != 0)
            s[n / 2] = s[n - 1];
    }
    *(T *)sum = n > 0 ? s[0] : 0;
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
