/* The typed part of backward_error.c, included once for each type of vectors (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Entry k of A times the factor, added to the sums of one column with the scaled x. */
static inline void TYPED(add)(struct error_row *row, const struct backward_job *job, int64_t k, int v, double factor)
{
    const spmv_csr *const a = job->a;
    const T x = ((const T *)job->x)[(int64_t)a->col[k] * job->columns + v];
    const double scale = job->scale[v];
#if IS_COMPLEX
    const T value = a->val != NULL ? ((const T *)a->val)[k] : (T){1, 0};
    error_row_add_complex(row, factor * (double)value.re, factor * (double)value.im, scale * (double)x.re,
                          scale * (double)x.im);
#else
    const double value = a->val == NULL         ? 1
                         : a->type == job->type ? (double)((const T *)a->val)[k]
                                                : (double)((const float *)a->val)[k];
    error_row_add(row, factor * value, scale * (double)x);
#endif
}

/* omega of a row whose sums are known, and its |r| added to the norm of the part. */
static void TYPED(finish)(const struct backward_job *job, int64_t i, int v, struct error_row row,
                          struct backward_part *part)
{
    const T b = ((const T *)job->b)[i * job->columns + v];
    double factor = 1, size = 0, omega = -1;
    for (int again = 0; again < 2; again++) {
#if IS_COMPLEX
        const double re = factor * (double)b.re * job->scale[v], im = factor * (double)b.im * job->scale[v];
        const double modulus = error_modulus(re, im), r = error_modulus(re + row.re, im + row.im);
#else
        const double modulus = fabs(factor * (double)b * job->scale[v]);
        const double r = fabs(factor * (double)b * job->scale[v] + row.re);
#endif
        size = factor != 1 ? r / factor : r;
        const double next = error_row_factor(row, modulus, job->largest[v]);
        if (again > 0 || next == 1) {
            /* most rows need no division */
            if (!(r <= part->omega * error_row_size(row, modulus, job->largest[v], BACKWARD_TINY)) || part->row < 0)
                omega = error_row_omega(row, modulus, r, job->largest[v], BACKWARD_TINY);
            break;
        }
        factor = next;
        row = (struct error_row){0, 0, 0, 0};
        for (int64_t k = row_first(job->a, i); k < row_first(job->a, i + 1); k++)
            TYPED(add)(&row, job, k, v, factor);
    }
    error_norm_add(&part->norm, size);
    if (omega > part->omega || part->row < 0) {
        part->omega = omega;
        part->row = i;
    }
}

/* The largest |x_i| of one column, or of its real and imaginary parts, in these rows. */
static double TYPED(largest)(const struct backward_job *job, int64_t begin, int64_t end, int v)
{
    const T *const x = job->x;
    double most = 0;
    for (int64_t i = begin; i < end; i++) {
#if IS_COMPLEX
        const double re = fabs((double)x[i * job->columns + v].re), im = fabs((double)x[i * job->columns + v].im);
        const double size = re > im ? re : im;
#else
        const double size = fabs((double)x[i * job->columns + v]);
#endif
        most = size > most ? size : most;
    }
    return most;
}

/* The rows of a tile, for `count` columns from `first` on. */
static void TYPED(tile)(const struct backward_job *job, int64_t begin, int64_t end, int first, int count,
                        struct backward_part *parts)
{
    for (int64_t i = begin; i < end; i++) {
        struct error_row rows[AT_ONCE] = {{0, 0, 0, 0}};
        for (int64_t k = row_first(job->a, i); k < row_first(job->a, i + 1); k++)
            for (int v = 0; v < count; v++)
                TYPED(add)(&rows[v], job, k, first + v, 1);
        for (int v = 0; v < count; v++)
            TYPED(finish)(job, i, first + v, rows[v], &parts[first + v]);
    }
}

/* The same for one right-hand side. */
static void TYPED(one)(const struct backward_job *job, int64_t begin, int64_t end, struct backward_part *part)
{
    const spmv_csr *const a = job->a;
    const int32_t *const col = a->col;
    const T *const x = job->x, *const val = a->val != NULL && a->type == job->type ? a->val : NULL;
    const double scale = job->scale[0];
    for (int64_t i = begin, k = row_first(a, begin); i < end; i++) {
        struct error_row row = {0, 0, 0, 0};
        const int64_t stop = row_first(a, i + 1);
        for (; k < stop && val != NULL; k++)
#if IS_COMPLEX
            error_row_add_complex(&row, (double)val[k].re, (double)val[k].im, scale * (double)x[col[k]].re,
                                  scale * (double)x[col[k]].im);
#else
            error_row_add(&row, (double)val[k], scale * (double)x[col[k]]);
#endif
        for (; k < stop; k++)
            TYPED(add)(&row, job, k, 0, 1);
        TYPED(finish)(job, i, 0, row, part);
    }
}

/* The quick pass over the rows of a tile, for `count` columns from `first` on of `columns`. */
static inline void TYPED(quick_some)(const struct backward_job *job, int64_t begin, int64_t end, int first, int count,
                                     int columns, struct error_quick *sums)
{
    const spmv_csr *const a = job->a;
    const int32_t *const col = a->col;
    const T *const b = (const T *)job->b + first, *const x = (const T *)job->x + first;
    const T *const val = a->val != NULL && a->type == job->type ? a->val : NULL;
    for (int64_t i = begin, k = row_first(a, begin); i < end; i++) {
        struct error_row rows[AT_ONCE];
        const int64_t start = k, stop = row_first(a, i + 1);
        for (int v = 0; v < count; v++)
            rows[v] = (struct error_row){0, 0, 0, 0};
        for (; k < stop; k++) {
            const T *const of = x + (int64_t)col[k] * columns;
#if IS_COMPLEX
            const T value = val != NULL ? val[k] : (T){1, 0};
            for (int v = 0; v < count; v++)
                error_quick_entry_complex(&rows[v], (double)value.re, (double)value.im, (double)of[v].re,
                                          (double)of[v].im);
#else
            const double value = val != NULL ? (double)val[k] : a->val == NULL ? 1 : (double)((const float *)a->val)[k];
            for (int v = 0; v < count; v++)
                error_quick_entry(&rows[v], value, (double)of[v]);
#endif
        }
        for (int v = 0; v < count; v++) {
            const T right = b[i * columns + v];
#if IS_COMPLEX
            const double size = error_modulus((double)right.re, (double)right.im);
            const double r = error_modulus((double)right.re + rows[v].re, (double)right.im + rows[v].im);
#else
            const double size = fabs((double)right), r = fabs((double)right + rows[v].re);
#endif
            error_quick_add(&sums[first + v], i, stop > start, r, rows[v].terms + size);
        }
    }
}

static void TYPED(quick)(const struct backward_job *job, int64_t begin, int64_t end, struct error_quick *sums)
{
    const int columns = job->columns;
    if (columns == 1)
        TYPED(quick_some)(job, begin, end, 0, 1, 1, sums);
    for (int v = 0; v < columns && columns > 1; v += AT_ONCE)
        TYPED(quick_some)(job, begin, end, v, columns - v < AT_ONCE ? columns - v : AT_ONCE, columns, sums);
}
