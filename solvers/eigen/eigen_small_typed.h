/* The typed part of eigen_small.c: NUMBER, double or double _Complex; CONJ, its conjugate.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

static void TYPED(multiply)(struct small a, bool adjoint, struct small b, int sign, struct small c)
{
    const int inner = adjoint ? a.rows : a.columns, rows = adjoint ? a.columns : a.rows;
    const NUMBER *const of_a = (const NUMBER *)a.at;
    for (int i = 0; i < rows; i++) {
        NUMBER *restrict to = (NUMBER *)small_at(c, i, 0);
        for (int j = 0; j < b.columns && sign == 0; j++)
            to[j] = 0;
        for (int k = 0; k < inner; k++) {
            const NUMBER by = adjoint ? CONJ(of_a[(int64_t)k * a.stride + i]) : of_a[(int64_t)i * a.stride + k];
            const NUMBER by_signed = sign < 0 ? -by : by;
            const NUMBER *from = (const NUMBER *)small_at(b, k, 0);
            if (by == 0)
                continue;
            for (int j = 0; j < b.columns; j++)
                to[j] += by_signed * from[j];
        }
    }
}

/* The sum of x_i y_i, or of conj(x_i) y_i, in four chains, which the compiler can compute side by side. */
static NUMBER TYPED(dot)(bool adjoint, const NUMBER *restrict x, const NUMBER *restrict y, int n)
{
    NUMBER sum[4] = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int c = 0; c < 4; c++)
            sum[c] += (adjoint ? CONJ(x[i + c]) : x[i + c]) * y[i + c];
    for (; i < n; i++)
        sum[0] += (adjoint ? CONJ(x[i]) : x[i]) * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Reduces a to the tridiagonal matrix of d and |e|; row k of a keeps the vector of reflection k from column k + 1 on.
 * phase: of the diagonal matrix that makes the numbers beside the diagonal real. w: n numbers. */
static void TYPED(reduce)(struct small m, double *d, double *e, double *tau, NUMBER *phase, NUMBER *w)
{
    const int n = m.rows;
    NUMBER *const a = (NUMBER *)m.at;
    const int64_t stride = m.stride;
    phase[0] = 1;
    for (int k = 0; k < n - 1; k++) {
        NUMBER *const v = a + k * stride;
        double tail = 0, size;
        for (int i = k + 1; i < n; i++)
            v[i] = a[i * stride + k];
        for (int i = k + 2; i < n; i++)
            tail += SQUARE(v[i]);
        NUMBER beside = v[k + 1];
        size = MODULUS(beside);
        tau[k] = 0;
        if (tail > 0) {
            const double norm = sqrt(tail + size * size);
            const NUMBER sign = size > 0 ? beside / size : 1;
            beside = -sign * norm;
            v[k + 1] += sign * norm;
            tau[k] = 1 / (norm * (norm + size));
            NUMBER part = 0;
            for (int i = k + 1; i < n; i++) {
                w[i] = tau[k] * TYPED(dot)(false, a + i * stride + k + 1, v + k + 1, n - k - 1);
                part += CONJ(v[i]) * w[i];
            }
            part *= 0.5 * tau[k];
            for (int i = k + 1; i < n; i++)
                w[i] -= part * v[i];
            for (int i = k + 1; i < n; i++) {
                NUMBER *restrict row = a + i * stride;
                const NUMBER of_v = v[i], of_w = w[i];
                for (int j = k + 1; j < n; j++)
                    row[j] -= of_v * CONJ(w[j]) + of_w * CONJ(v[j]);
            }
            size = norm;
        }
        e[k] = size;
        phase[k + 1] = size > 0 ? phase[k] * (beside / size) : phase[k];
    }
    for (int i = 0; i < n; i++)
        d[i] = REAL(a[i * stride + i]);
}

/* Column j of vectors = Q D z, z: n numbers. y: n numbers. */
static void TYPED(transform_back)(struct small m, const double *tau, const NUMBER *phase, const double *z, NUMBER *y,
                                  struct small vectors, int j)
{
    const int n = m.rows;
    for (int i = 0; i < n; i++)
        y[i] = phase[i] * z[i];
    for (int k = n - 2; k >= 0; k--) {
        const NUMBER *const v = (const NUMBER *)m.at + (int64_t)k * m.stride;
        if (tau[k] == 0)
            continue;
        const NUMBER sum = tau[k] * TYPED(dot)(true, v + k + 1, y + k + 1, n - k - 1);
        for (int i = k + 1; i < n; i++)
            y[i] -= sum * v[i];
    }
    for (int i = 0; i < n; i++)
        *(NUMBER *)small_at(vectors, i, j) = y[i];
}
