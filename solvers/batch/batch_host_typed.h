/* Numbers and products for batch_methods.h on a CPU, included once for each type (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The memory of a system. */
struct TYPED(group) {
    int lanes;
    const T *val;
    T *input, *vector[BATCH_VECTORS], *basis, *scalars;
    double word[1];
};

#if IS_COMPLEX
#define DOT_SUMS 2
#define TOTAL_DOT(s, j) ((T){s[j][0], s[(j) + 1][0]})
#define ADD_DOT(s, j, a, b)                                                                                            \
    do {                                                                                                               \
        const T a_ = a, b_ = b;                                                                                        \
        ADD(s, j, a_.re *b_.re + a_.im * b_.im);                                                                       \
        ADD(s, (j) + 1, a_.re * b_.im - a_.im * b_.re);                                                                \
    } while (0)

static inline T TYPED(times)(T a, T b)
{
    return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline T TYPED(plus)(T a, T b)
{
    return (T){a.re + b.re, a.im + b.im};
}
static inline T TYPED(minus)(T a, T b)
{
    return (T){a.re - b.re, a.im - b.im};
}
static inline T TYPED(scaled)(PART by, T a)
{
    return (T){by * a.re, by * a.im};
}
static inline T TYPED(conjugate)(T a)
{
    return (T){a.re, -a.im};
}
static inline T TYPED(number)(PART re)
{
    return (T){re, 0};
}
static inline double TYPED(modulus)(T a)
{
    return real_hypot((double)a.re, (double)a.im);
}
static inline T TYPED(quotient)(T a, T b)
{
    const double size = TYPED(modulus)(b), re = (double)b.re / size, im = (double)b.im / size;
    return (T){(PART)(((double)a.re * re + (double)a.im * im) / size),
               (PART)(((double)a.im * re - (double)a.re * im) / size)};
}
static inline bool TYPED(is_finite)(T a)
{
    return a.re - a.re == 0 && a.im - a.im == 0;
}
static inline PART TYPED(real_dot)(T a, T b)
{
    return a.re * b.re + a.im * b.im;
}
static inline spmv_c128 TYPED(widened)(T a)
{
    return (spmv_c128){(double)a.re, (double)a.im};
}
static inline T TYPED(rounded)(spmv_c128 a, double factor)
{
    return (T){(PART)(a.re * factor), (PART)(a.im * factor)};
}
#else
#define PART T
#define DOT_SUMS 1
#define TOTAL_DOT(s, j) s[j][0]
#define ADD_DOT(s, j, a, b) ADD(s, j, (a) * (b))

static inline T TYPED(times)(T a, T b)
{
    return a * b;
}
static inline T TYPED(plus)(T a, T b)
{
    return a + b;
}
static inline T TYPED(minus)(T a, T b)
{
    return a - b;
}
static inline T TYPED(scaled)(T by, T a)
{
    return by * a;
}
static inline T TYPED(conjugate)(T a)
{
    return a;
}
static inline T TYPED(number)(T re)
{
    return re;
}
static inline double TYPED(modulus)(T a)
{
    return fabs((double)a);
}
static inline T TYPED(quotient)(T a, T b)
{
    return a / b;
}
static inline bool TYPED(is_finite)(T a)
{
    return a - a == 0;
}
static inline T TYPED(real_dot)(T a, T b)
{
    return a * b;
}
static inline spmv_c128 TYPED(widened)(T a)
{
    return (spmv_c128){(double)a, 0};
}
static inline T TYPED(rounded)(spmv_c128 a, double factor)
{
    return (T)(a.re * factor);
}
#endif

/* Row i of A times x. */
static inline T TYPED(row)(const int32_t *row_ptr, const int32_t *col, const T *val, const T *x, int i)
{
    T sum = TYPED(number)(0);
    for (int e = row_ptr[i]; e < row_ptr[i + 1]; e++)
        sum = TYPED(plus)(sum, TYPED(times)(val[e], x[col[e]]));
    return sum;
}

static void TYPED(multiply)(const struct TYPED(group) * g, const struct batch_job *job, T *q)
{
    for (int i = 0; i < job->rows; i++)
        q[i] = TYPED(row)(job->row_ptr, job->col, g->val, g->input, i);
}

static void TYPED(residual)(const struct TYPED(group) * g, const struct batch_job *job, double (*s)[BATCH_MOST_LANES],
                            const T *b, double factor, T *r)
{
    const int n = job->rows;
    EACH_ROW(i)
    {
        spmv_c128 sum = {0, 0};
        for (int e = job->row_ptr[i]; e < job->row_ptr[i + 1]; e++) {
            const spmv_c128 value = TYPED(widened)(g->val[e]), x = TYPED(widened)(g->input[job->col[e]]);
#if IS_COMPLEX
            sum.re += value.re * x.re - value.im * x.im;
            sum.im += value.re * x.im + value.im * x.re;
#else
            sum.re += value.re * x.re;
#endif
        }
        const spmv_c128 of_b = TYPED(widened)(b[i]);
        const spmv_c128 left = {of_b.re * factor - sum.re, of_b.im * factor - sum.im};
        r[i] = TYPED(rounded)(left, 1);
        ADD(s, 0, left.re * left.re + left.im * left.im);
    }
}

static void TYPED(diagonal)(const struct TYPED(group) * g, const struct batch_job *job, T *w)
{
    for (int i = 0; i < job->rows; i++) {
        w[i] = TYPED(number)(0);
        for (int e = job->row_ptr[i]; e < job->row_ptr[i + 1]; e++)
            if (job->col[e] == i)
                w[i] = TYPED(plus)(w[i], g->val[e]);
    }
}

#include "solvers/batch/batch_methods.h"

static void TYPED(solve_one)(const struct batch_job *job, int group, int64_t system)
{
    const struct batch_layout *const layout = &job->layout;
    char *const work = job->work + group * layout->work_bytes;
    struct TYPED(group) g = {.lanes = job->lanes,
                             .val = (const T *)job->val + system * job->nnz,
                             .input = (T *)(work + layout->input),
                             .basis = (T *)(work + layout->basis),
                             .scalars = (T *)(work + layout->scalars)};
    for (int k = 0; k < BATCH_VECTORS; k++)
        g.vector[k] = (T *)(work + layout->vector[k]);
    TYPED(solve)(&g, job, job->method, system);
}

static void TYPED(apply_one)(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t system)
{
    for (int i = 0; i < batch->rows; i++)
        ((T *)y)[system * batch->rows + i] =
            TYPED(row)(batch->job.row_ptr, batch->job.col, (const T *)val + system * batch->nnz,
                       (const T *)x + system * batch->cols, i);
}

#undef DOT_SUMS
#undef TOTAL_DOT
#undef ADD_DOT
#if !IS_COMPLEX
#undef PART
#endif
