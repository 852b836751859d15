/* The check of a result: compares every row with a bound that holds for any correct order of
 * summation.
 *
 * The reference is computed with the default method of a host context. Each of two computed results
 * differs from the exact one by at most (n_i + 3) u S_i to first order, where S_i is the sum of the
 * absolute values of the terms and u the unit roundoff; so the two differ by at most twice that.
 * For complex numbers, absolute values are moduli. The relative error of a product is then at most
 * sqrt(8) u and that of a sum u (Higham, section 3.6), so n_i sums and products, alpha and beta
 * give (n_i + 6) u S_i. A complex product has four underflows instead of one. 16-bit vectors have sums in
 * f32; then each of the two results is rounded once more, by at most half a last place.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "core/reals.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"

/* The arguments of the check of a row. */
struct question {
    const spmv_csr *a;
    spmv_type type;                           /* of the vectors; a->type is that of the values */
    long double alpha, beta;                  /* moduli */
    const void *x, *y0, *y, *reference;       /* y0 is NULL when beta is 0 */
    long double roundoff, smallest;           /* of the sums */
    long double last_roundoff, last_smallest; /* of the rounding to 16 bits at the end; else 0 */
    const void *alpha_at, *beta_at;           /* NULL: 1 */
    struct row_squares *squares;              /* of each row */
};

/* A real or complex number; im is 0 for a real one. */
struct wide {
    long double re, im;
};

static inline struct wide element(const void *values, spmv_type type, int64_t i)
{
    const spmv_type part = type_part(type);
    if (type_is_complex(type))
        return (struct wide){real_at(part, values, 2 * i), real_at(part, values, 2 * i + 1)};
    return (struct wide){real_at(part, values, i), 0};
}

static inline bool is_finite(struct wide z)
{
    return isfinite(z.re) && isfinite(z.im);
}

static inline long double modulus(struct wide z)
{
    return z.im == 0 ? fabsl(z.re) : hypotl(z.re, z.im);
}

static inline long double modulus_at(const void *values, spmv_type type, int64_t i)
{
    return type_is_complex(type) ? modulus(element(values, type, i)) : fabsl(real_at(type, values, i));
}

static inline struct wide product_of(struct wide a, struct wide b)
{
    return (struct wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

/* |(alpha A x + beta y0)_i|^2 */
static double square_of_row(const struct question *q, int64_t i)
{
    const spmv_csr *a = q->a;
    const struct wide one = {1, 0};
    const struct wide alpha = q->alpha_at != NULL ? element(q->alpha_at, q->type, 0) : one;
    struct wide sum = {0, 0};
    for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
         k++) {
        const struct wide term =
            product_of(a->val != NULL ? element(a->val, a->type, k) : one, element(q->x, q->type, a->col[k]));
        sum.re += term.re;
        sum.im += term.im;
    }
    sum = product_of(alpha, sum);
    if (q->y0 != NULL) {
        const struct wide term = product_of(element(q->beta_at, q->type, 0), element(q->y0, q->type, i));
        sum.re += term.re;
        sum.im += term.im;
    }
    return (double)(sum.re * sum.re + sum.im * sum.im);
}

/* |y_i - r_i| divided by its bound; infinite if exactly one of the two is finite. Sets the squares of the row. */
static double row_ratio(const struct question *q, int64_t i)
{
    const struct wide y = element(q->y, q->type, i), r = element(q->reference, q->type, i);
    const spmv_csr *a = q->a;
    const int64_t begin = offset_at(a->row_ptr, a->row_ptr_bits, i),
                  end = offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
    long double magnitude = 0;
    for (int64_t k = begin; k < end; k++)
        magnitude += (a->val != NULL ? modulus_at(a->val, a->type, k) : 1) * modulus_at(q->x, q->type, a->col[k]);
    magnitude *= q->alpha;
    if (q->y0 != NULL)
        magnitude += q->beta * modulus_at(q->y0, q->type, i);
    const bool complex = type_is_complex(q->type);
    const long double terms = (long double)(end - begin), most = 2 * (terms + 6) * 0x1p-53L * magnitude;
    q->squares[i].error = (double)(most * most);
    q->squares[i].sum = type_part(q->type) == SPMV_F32 ? square_of_row(q, i) : 0;
    if (!is_finite(y) || !is_finite(r))
        return is_finite(y) == is_finite(r) ? 0 : (double)INFINITY;
    /* of the products before alpha, and of the rest */
    const long double underflows = terms * fmaxl(1, q->alpha) + 2;
    const long double bound = 2 * (terms + (complex ? 6 : 3)) * q->roundoff * magnitude +
                              (complex ? 4 : 1) * underflows * q->smallest +
                              q->last_roundoff * (modulus(y) + modulus(r)) + q->last_smallest;
    return (double)(modulus((struct wide){y.re - r.re, y.im - r.im}) / bound);
}

/* Fills the result from all rows. worst_row is the first row with the largest ratio, for any number
 * of threads. */
static void check_rows(const spmv_context *ctx, const struct question *q, spmv_verify_result *result)
{
    int64_t failed = 0, worst_row = -1;
    double worst = -1;
#pragma omp parallel num_threads(heavy_team(ctx, q->a->rows + q->a->nnz)) reduction(+ : failed)
    {
        int64_t my_row = -1;
        double my_worst = -1;
#pragma omp for schedule(guided) nowait
        for (int64_t i = 0; i < q->a->rows; i++) {
            const double ratio = row_ratio(q, i);
            failed += !(ratio <= 1);
            if (ratio > my_worst || (ratio == my_worst && i < my_row)) {
                my_worst = ratio;
                my_row = i;
            }
        }
#pragma omp critical(spmv_check_rows)
        if (my_row >= 0 && (my_worst > worst || (my_worst == worst && my_row < worst_row))) {
            worst = my_worst;
            worst_row = my_row;
        }
    }
    result->failed_rows = failed;
    result->worst_row = worst_row;
    result->worst_ratio = worst_row >= 0 ? worst : 0;
    if (worst_row >= 0) {
        const struct wide y = element(q->y, q->type, worst_row), r = element(q->reference, q->type, worst_row);
        result->worst_value = (double)y.re;
        result->worst_reference = (double)r.re;
        result->worst_value_im = (double)y.im;
        result->worst_reference_im = (double)r.im;
    }
}

/* reference = alpha A x + beta y0 on ctx. */
static spmv_status recompute(spmv_context *ctx, const spmv_csr *a, const void *alpha, const void *x, const void *beta,
                             const void *y0, spmv_type type, void *reference)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options options;
    spmv_plan *plan = NULL;
    spmv_csr borrowed = *a;
    borrowed.memory = SPMV_MEMORY_CONTEXT; /* the memory of a host context is host memory */
    spmv_plan_options_init(&options, sizeof options);
    options.type = type;
    if (y0 != NULL)
        memcpy(reference, y0, (size_t)a->rows * spmv_type_size(type));
    TRY(spmv_plan_create(ctx, &borrowed, &options, &plan));
    TRY(spmv_apply(plan, alpha, x, beta, reference));
done:
    spmv_plan_destroy(plan);
    return st;
}

static spmv_status verify_rows(spmv_context *ctx, const spmv_csr *a, const void *alpha, const void *x, const void *beta,
                               const void *y0, const void *y, spmv_type type, struct row_squares *squares,
                               spmv_verify_result *result)
{
    spmv_status st = SPMV_OK;
    void *reference = NULL;
    const spmv_type sums = type_of_sums(type);
    const struct real_limits limits = real_limits_of(type_part(sums)), last = real_limits_of(type_part(type));
    const long double b = beta != NULL ? modulus_at(beta, sums, 0) : 0;
    char im[2][40] = {"", ""};
    struct question q = {.a = a,
                         .type = type,
                         .alpha = alpha != NULL ? modulus_at(alpha, sums, 0) : 1,
                         .beta = b,
                         .x = x,
                         .y0 = b != 0 ? y0 : NULL,
                         .y = y,
                         .alpha_at = alpha,
                         .beta_at = beta,
                         .squares = squares,
                         .roundoff = limits.roundoff,
                         .smallest = limits.subnormal,
                         .last_roundoff = sums != type ? last.roundoff : 0,
                         .last_smallest = sums != type ? last.subnormal : 0};
    TRY(host_alloc(ctx, a->rows * (int64_t)spmv_type_size(type), "the reference of the check", &reference));
    TRY(recompute(ctx, a, alpha, x, beta, q.y0, type, reference));
    q.reference = reference;
    check_rows(ctx, &q, result);
    if (result->failed_rows > 0) {
        if (type_is_complex(type)) {
            snprintf(im[0], sizeof im[0], "%+.17gi", result->worst_value_im);
            snprintf(im[1], sizeof im[1], "%+.17gi", result->worst_reference_im);
        }
        st = context_fail(
            ctx, SPMV_ERROR_CHECK,
            "%lld of %lld rows exceed the bound; the worst is row %lld%s: %.17g%s where %s gives %.17g%s, %.3g times "
            "the bound",
            (long long)result->failed_rows, (long long)a->rows, context_number(ctx, result->worst_row),
            context_counted(ctx), result->worst_value, im[0], spmv_backend_name(ctx->backend->id),
            result->worst_reference, im[1], result->worst_ratio);
    }
done:
    host_free(reference);
    return st;
}

spmv_status plan_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                        const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                        spmv_type type, struct row_squares **squares, spmv_verify_result *result)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *transposed = NULL;
    spmv_csr op, any = {0};
    *result = (spmv_verify_result){.size = sizeof *result, .worst_row = -1};
    *squares = NULL;
    if (a != NULL)
        any = csr_of_any_values(a);
    TRY(csr_check_shape(ctx, "spmv_verify", a != NULL ? &any : NULL));
    op = *a;
    if (context_on_device(ctx))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_verify: a ref or omp context is needed");
    if (operation != SPMV_OPERATION_N && operation != SPMV_OPERATION_T && operation != SPMV_OPERATION_H)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_verify: unknown operation %d", (int)operation);
    if (plan_types_of(type, type) == PLAN_TYPES)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_verify: no products in type %s", spmv_type_name(type));
    if (a->val != NULL && plan_types_of(a->type, type) == PLAN_TYPES)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_verify: values of type %s with vectors of type %s",
                            spmv_type_name(a->type), spmv_type_name(type));
    if (operation != SPMV_OPERATION_N) {
        TRY(csr_check(ctx, "spmv_verify", &any, CSR_ANY_ORDER));
        TRY(csr_transpose(ctx, a, &transposed));
        spmv_matrix_view(transposed, &op);
        if (operation == SPMV_OPERATION_H && a->val != NULL)
            csr_conjugate(ctx, transposed);
    }
    if (op.rows > 0 && (host_y == NULL || (host_x == NULL && op.cols > 0) ||
                        (host_y0 == NULL && host_beta != NULL && modulus_at(host_beta, type_of_sums(type), 0) != 0))) {
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_verify: a vector is NULL");
        goto done;
    }
    if (op.rows > 0)
        TRY(host_alloc(ctx, op.rows * (int64_t)sizeof **squares, "the check", (void **)squares));
    if (op.rows > 0)
        st = verify_rows(ctx, &op, host_alpha, host_x, host_beta, host_y0, host_y, type, *squares, result);
done:
    spmv_matrix_destroy(transposed);
    return st;
}

spmv_status spmv_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                        const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                        spmv_type type, spmv_verify_result *result, size_t size)
{
    spmv_verify_result full;
    struct row_squares *squares = NULL;
    long double square = 0, error = 0;
    const spmv_status st =
        plan_verify(ctx, a, operation, host_alpha, host_x, host_beta, host_y0, host_y, type, &squares, &full);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        full = (spmv_verify_result){.worst_row = -1};
    for (int64_t i = 0; squares != NULL && i < (operation == SPMV_OPERATION_N ? a->rows : a->cols); i++) {
        square += squares[i].sum;
        error += squares[i].error;
    }
    full.norm = (double)sqrtl(square);
    full.norm_error = (double)sqrtl(error);
    host_free(squares);
    result_write(result, size, &full, sizeof full);
    return st;
}
